//! What stands before every route: who asks, by which name, from which page, how much and how slowly.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use super::cookie;
use super::extract::Caller;
use super::gate::{Access, Known, invalid_token};
use super::headers;
use super::hosts::{HostPort, Surface, host, is_ours, is_same_origin};
use crate::admin::audit::{Act, Actor, Outcome};
use crate::admin::config::Anonymous;
use crate::admin::crowd::client;
use crate::admin::deadline::Deadlined;
use crate::admin::identity::{How, Identity, Role};
use crate::admin::problem::Problem;
use crate::vantage::{EXCHANGE_LIMIT, EXCHANGE_PATH};

/// Largest body of a request in octets.
pub(in crate::admin) const MAX_BODY: usize = 64 << 10;
/// A body that has not come by then is given up.
const BODY_TIME: Duration = Duration::from_secs(10);
/// An answer that has not begun by then is given up.
const HANDLER_TIME: Duration = Duration::from_secs(20);
/// Largest text of a failure that is made into a problem, in octets.
const MAX_TEXT: usize = 4096;
/// What proxies add: who comes through one is not on this machine.
const FORWARDED: [&str; 5] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
];

/// Lets a request through to its route, or says why not.
pub(in crate::admin) async fn guard(
    State(access): State<Access>,
    request: Request,
    next: Next,
) -> Response {
    let name = access.next_request();
    let (mut parts, body) = request.into_parts();
    let Some(surface) = parts.extensions.get::<Surface>().cloned() else {
        let detail = "this connection has no listener";
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).into_response();
    };
    let is_probe = is_probe(parts.uri.path());
    let what = is_unsafe(&parts.method).then(|| what(&parts));
    let mut identity = None;
    let mut response = match admit(&access, &surface, &name, &parts).await {
        Ok(caller) => {
            identity.clone_from(&caller.identity);
            parts.extensions.insert(caller);
            answer(Request::from_parts(parts, body), next).await
        }
        Err(problem) => problem.into_response(),
    };
    if !is_probe {
        response = mend(response).await;
    }
    if is_stream(response.headers()) {
        response = match access.streams().enter(client(surface.from)) {
            Some(place) => {
                response.extensions_mut().insert(place);
                response
            }
            None => too_many_streams().into_response(),
        };
    }
    if let Some(what) = what.filter(|_| is_refusal(response.status())) {
        let by = actor(identity.as_ref(), surface.from, &name);
        record(&access, by, &what, response.status());
    }
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert("x-request-id", name);
    }
    headers::put(response.headers_mut(), surface.tls.is_some());
    response
}

/// Puts the headers of every answer on those of a listener that is open to all.
pub(in crate::admin) async fn open(request: Request, next: Next) -> Response {
    let is_probe = is_probe(request.uri().path());
    let mut response = answer(request, next).await;
    if !is_probe {
        response = mend(response).await;
    }
    headers::put(response.headers_mut(), false);
    response
}

/// Gives the largest body that is taken at a path. What is larger than usual is not read before its sender is known.
fn max_body(path: &str) -> usize {
    if path == EXCHANGE_PATH {
        EXCHANGE_LIMIT
    } else {
        MAX_BODY
    }
}

/// Tells whether it is asked whether the node lives or is ready: open to all, by any name, for those who watch it.
fn is_probe(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz")
}

/// Tells whether a method may change something (RFC 9110 section 9.2.1).
fn is_unsafe(method: &Method) -> bool {
    !matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE
    )
}

/// Tells whether an answer is a stream of events.
pub(in crate::admin) fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// Names what is asked for, without what stands behind `?`: that may be anything.
fn what(request: &Parts) -> String {
    format!("{} {}", request.method, request.uri.path())
}

fn too_many_streams() -> Problem {
    let detail = "as many event streams are open as there may be; try again later";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(10)
}

/// Finds out who asks, and refuses what must not reach a route.
async fn admit(
    access: &Access,
    surface: &Surface,
    name: &Arc<str>,
    request: &Parts,
) -> Result<Caller, Problem> {
    let caller = |known: Option<Known>| Caller {
        identity: known.map(|known| Identity {
            name: known.name,
            role: known.role,
            how: known.how,
            from: surface.from,
            request: Arc::clone(name),
        }),
        request: Arc::clone(name),
    };
    let headers = &request.headers;
    let most = max_body(request.uri.path());
    if length(headers).is_some_and(|length| length > most as u64) {
        let detail = format!("at most {most} octets are taken");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    if is_probe(request.uri.path()) {
        return Ok(caller(None));
    }
    let Some(host) = host(request) else {
        return Err(Problem::bad_request(
            "one `Host` is wanted, a name or an address",
        ));
    };
    let policy = access.policy();
    if !is_ours(&host, surface, &policy.config.hosts) {
        let detail = "the dashboard is not called by this name; `admin.hosts` lists further ones";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail));
    }
    let origin = is_same_origin(headers, &host, surface);
    let is_unsafe = is_unsafe(&request.method);
    if origin == Some(false) && (is_unsafe || wants_stream(headers)) {
        return Err(foreign());
    }
    let known = match headers.get(header::AUTHORIZATION) {
        Some(_) => Some(by_header(access, headers, surface.from).await?),
        None => cookie::read(headers, surface)
            .and_then(|secret| access.by_session(&secret))
            .or_else(|| {
                let is_open = policy.config.anonymous == Anonymous::Viewer;
                (is_open && is_here(headers, &host, surface)).then(anonymous)
            }),
    };
    let by_cookie = known
        .as_ref()
        .is_some_and(|known| known.how == How::Session);
    let opens_or_ends = matches!(request.uri.path(), "/login" | "/logout");
    if is_unsafe && (by_cookie || opens_or_ends) {
        check_form(headers, origin)?;
    }
    Ok(caller(known))
}

/// Whoever is on this machine.
fn anonymous() -> Known {
    Known {
        name: "anonymous".into(),
        role: Role::Viewer,
        how: How::Anonymous,
    }
}

/// Tells whether the caller is on this machine: both ends are, and no proxy says that it speaks for others.
fn is_here(headers: &HeaderMap, host: &HostPort<'_>, surface: &Surface) -> bool {
    surface.is_loopback
        && surface.from.is_loopback()
        && host.is_loopback()
        && !FORWARDED.iter().any(|name| headers.contains_key(*name))
}

/// Finds out who shows a bearer token (RFC 6750).
async fn by_header(access: &Access, headers: &HeaderMap, from: IpAddr) -> Result<Known, Problem> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().and_then(|value| value.to_str().ok());
    let token = value.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        let token = token.trim();
        let is_bearer = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty();
        is_bearer.then_some(token)
    });
    match (token, values.next()) {
        (Some(token), None) => Ok(access.by_token(token, from).await?.0),
        _ => Err(invalid_token(
            "one header `Authorization: Bearer` is wanted",
        )),
    }
}

/// Refuses what another site's page sends in its visitor's name.
fn foreign() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "this request comes from a page of another site",
    )
}

/// Checks that a change by cookie was sent by a page of ours, as our pages send it.
fn check_form(headers: &HeaderMap, origin: Option<bool>) -> Result<(), Problem> {
    if origin != Some(true) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "a change by cookie needs `Origin` or `Sec-Fetch-Site` of this very server",
        ));
    }
    let kind = headers.get(header::CONTENT_TYPE);
    let has_body = length(headers).is_some_and(|length| length > 0)
        || headers.contains_key(header::TRANSFER_ENCODING);
    let fits = |kind: &HeaderValue| {
        let kind = kind.to_str().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        ["application/json", "application/x-www-form-urlencoded"]
            .iter()
            .any(|known| kind.eq_ignore_ascii_case(known))
    };
    match kind {
        Some(kind) if fits(kind) => Ok(()),
        None if !has_body => Ok(()),
        _ => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "application/json or application/x-www-form-urlencoded is wanted",
        )),
    }
}

/// Gives the length of a body as announced.
fn length(headers: &HeaderMap) -> Option<u64> {
    let length = headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// Tells whether a stream of events is asked for.
fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/event-stream"))
}

/// Lets the route answer, in time.
async fn answer(request: Request, next: Next) -> Response {
    let (body, late) = Deadlined::new(BODY_TIME);
    let request = request.map(|inner| Body::new(body.around(inner)));
    let answered = tokio::time::timeout(HANDLER_TIME, next.run(request)).await;
    let (status, detail) = match answered {
        Ok(response) if !late.has_passed() => return response,
        _ if late.has_passed() => (StatusCode::REQUEST_TIMEOUT, "the body came too slowly"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the answer took too long"),
    };
    // What is left of the body is not waited for.
    let close = HeaderValue::from_static("close");
    Problem::new(status, detail)
        .with(header::CONNECTION, close)
        .into_response()
}

/// Makes a problem of a failure that is a plain text, or nothing: what the router and its extractors say. Headers stay.
async fn mend(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_plain = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    let size = response.body().size_hint().upper();
    let is_small = size.is_some_and(|size| size <= MAX_TEXT as u64);
    if !(status.is_client_error() || status.is_server_error()) || !is_plain || !is_small {
        return response;
    }
    let (parts, body) = response.into_parts();
    let text = to_bytes(body, MAX_TEXT).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    let mut mended = Problem::new(status, text).into_response();
    for (name, value) in &parts.headers {
        if !matches!(*name, header::CONTENT_TYPE | header::CONTENT_LENGTH) {
            mended.headers_mut().append(name, value.clone());
        }
    }
    mended
}

/// Names who asks, for the audit log.
fn actor<'a>(identity: Option<&'a Identity>, from: IpAddr, request: &'a str) -> Actor<'a> {
    match identity {
        Some(identity) => Actor::from(identity),
        None => Actor {
            name: "unknown",
            role: "",
            from: Some(from),
            request,
        },
    }
}

/// Writes a refused attempt down.
fn record(access: &Access, by: Actor<'_>, what: &str, status: StatusCode) {
    let unrecorded = access.refusals().note(Instant::now());
    let Some(unrecorded) = unrecorded else { return };
    let reason = match unrecorded {
        0 => status.to_string(),
        count => format!("{status}; {count} before it were not recorded"),
    };
    let act = Act {
        action: "request",
        target: what,
        reason: &reason,
        before: None,
        after: None,
        outcome: Outcome::Refused,
    };
    access.audit().record(by, act);
}
