//! Signing in with a token, and out: the pages and what their forms are sent to.

use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::{Extension, Form};
use serde::Deserialize;

use super::access::{Access, Caller, MaybeIdentity, Surface, accepts_html, cookie};
use super::audit::{Act, Actor, Outcome};
use super::dashboard;
use super::identity::{How, Identity};
use super::problem::Problem;

/// Longest place to go to after signing in, in octets.
const MAX_NEXT: usize = 2048;

/// Where to go after signing in.
#[derive(Debug, Default, Deserialize)]
pub(in crate::admin) struct NextQuery {
    #[serde(default)]
    next: String,
}

/// What the form of the login page sends.
#[derive(Deserialize)]
pub(in crate::admin) struct LoginForm {
    token: String,
    #[serde(default)]
    next: String,
}

/// `GET /login`: the page to sign in on.
pub(in crate::admin) async fn show(
    query: Result<Query<NextQuery>, QueryRejection>,
    MaybeIdentity(identity): MaybeIdentity,
) -> Html<String> {
    let query = query.map(|Query(query)| query).unwrap_or_default();
    Html(page(&local_path(&query.next), identity.as_ref(), None))
}

/// `POST /login`: opens a session for a token, and goes on to the place asked for.
pub(in crate::admin) async fn sign_in(
    State(access): State<Access>,
    Extension(surface): Extension<Surface>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    form: Result<Form<LoginForm>, FormRejection>,
) -> Response {
    let form = match form {
        Ok(Form(form)) => form,
        // What the form holds is never quoted.
        Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return Problem::new(error.status(), "the form is too large").into_response();
        }
        Err(_) => return Problem::bad_request("a form with `token` is wanted").into_response(),
    };
    let next = local_path(&form.next);
    let (name, role, secret) = match access.sign_in(form.token.trim(), surface.from).await {
        Ok(opened) => opened,
        Err(problem) if accepts_html(&headers) => return again(&next, problem),
        Err(problem) => return problem.into_response(),
    };
    let by = Actor {
        name: &name,
        role: role.word(),
        from: Some(surface.from),
        request: &caller.request,
    };
    record(&access, by, "login");
    go(&next, cookie::write(Some(&secret), &surface))
}

/// `POST /logout`: ends the session.
pub(in crate::admin) async fn sign_out(
    State(access): State<Access>,
    Extension(surface): Extension<Surface>,
    MaybeIdentity(identity): MaybeIdentity,
    headers: HeaderMap,
) -> Response {
    if let Some(secret) = cookie::read(&headers, &surface) {
        access.close_session(&secret);
    }
    if let Some(identity) = identity.filter(|identity| identity.how == How::Session) {
        record(&access, Actor::from(&identity), "logout");
    }
    go("/login", cookie::write(None, &surface))
}

/// Writes down that somebody signed in or out.
fn record(access: &Access, by: Actor<'_>, action: &str) {
    let act = Act {
        action,
        target: "",
        reason: "",
        before: None,
        after: None,
        outcome: Outcome::Done,
    };
    access.audit().record(by, act);
}

/// Goes to a place of ours with a cookie.
fn go(place: &str, cookie: Option<HeaderValue>) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    let mut put = |name: HeaderName, value: Option<HeaderValue>| {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    };
    put(header::LOCATION, HeaderValue::from_str(place).ok());
    put(header::SET_COOKIE, cookie);
    response
}

/// Shows the page anew and says why.
fn again(next: &str, problem: Problem) -> Response {
    let page = page(next, None, Some(&problem.detail));
    let mut response = problem.into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    headers.remove(header::CONTENT_LENGTH);
    let (mut parts, _) = response.into_parts();
    let (kind, body) = Html(page).into_response().into_parts();
    parts.headers.extend(kind.headers);
    Response::from_parts(parts, body)
}

/// Takes a place to go to if it is a path of ours, else `/`: no link may lead through us to somebody else.
///
/// Browsers read `\` as `/`, leave tabs and line breaks out, and take `//host` for another host.
fn local_path(next: &str) -> String {
    let is_path = next.starts_with('/')
        && !next.starts_with("//")
        && next.len() <= MAX_NEXT
        && !next.contains(|one: char| one.is_control() || one == '\\');
    let path = next.split(['?', '#']).next().unwrap_or_default();
    if !is_path || matches!(path, "/login" | "/logout") {
        return "/".to_owned();
    }
    let mut place = String::with_capacity(next.len());
    for octet in next.bytes() {
        // RFC 3986 leaves these out, and a header takes none that is not ASCII.
        if octet.is_ascii_graphic() && !b"\"<>^`{|}".contains(&octet) {
            place.push(char::from(octet));
        } else {
            // Writing to a String cannot fail.
            let _ = std::fmt::Write::write_fmt(&mut place, format_args!("%{octet:02X}"));
        }
    }
    place
}

/// Writes the login page. Whoever is here without having signed in is not told who they are.
fn page(next: &str, identity: Option<&Identity>, problem: Option<&str>) -> String {
    let who = identity.filter(|identity| identity.how == How::Session);
    dashboard::login_page(next, who, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_ours_are_gone_to() {
        for (next, place) in [
            ("/services?q=a b&page=2#x", "/services?q=a%20b&page=2#x"),
            ("/names/ä", "/names/%C3%A4"),
            ("/a%2Fb", "/a%2Fb"),
            ("/", "/"),
            ("", "/"),
            ("services", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("\\\\evil.example", "/"),
            ("/\t/evil.example", "/"),
            ("/\r\nSet-Cookie: a=b", "/"),
            ("https://evil.example", "/"),
            ("javascript:alert(1)", "/"),
            ("/login?next=/login", "/"),
            ("/logout", "/"),
        ] {
            assert_eq!(local_path(next), place, "{next:?}");
        }
        assert_eq!(local_path(&format!("/{}", "a".repeat(MAX_NEXT))), "/");
    }

    #[test]
    fn the_page_escapes_what_it_shows() {
        let page = page("/\"><script>", None, Some("<b>'&"));
        assert!(
            !page.contains("\"><script>") && !page.contains("<b>"),
            "{page}"
        );
        assert!(page.contains("&lt;b&gt;&#39;&amp;"), "{page}");
    }
}
