//! What a handler writes among its arguments to say who may call it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::identity::{Identity, Role};
use crate::admin::problem::Problem;

/// What the guard found out about a caller; an extension of every request that it lets through.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// Who they are, if they showed it.
    pub(super) identity: Option<Identity>,
    /// Where they ask from.
    pub(super) from: IpAddr,
    /// The request's name in the audit log.
    pub(super) request: Arc<str>,
}

/// Somebody who may read: viewers and operators.
#[derive(Clone, Debug)]
pub(crate) struct Viewer(pub(crate) Identity);

/// Somebody who may change what is answered.
#[derive(Clone, Debug)]
pub(crate) struct Operator(pub(crate) Identity);

/// Another node.
#[derive(Clone, Debug)]
pub(crate) struct PeerNode(pub(crate) Identity);

/// Whoever asks, for pages that look different to those who may more.
#[derive(Clone, Debug)]
pub(crate) struct MaybeIdentity(pub(crate) Option<Identity>);

impl<S: Sync> FromRequestParts<S> for Viewer {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        who_may(parts, Role::Viewer).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        who_may(parts, Role::Operator).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for PeerNode {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        who_may(parts, Role::Peer).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for MaybeIdentity {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        Ok(Self(caller(parts)?.identity.clone()))
    }
}

/// Finds what the guard left. A route that the guard does not stand before is open to nobody.
fn caller(parts: &Parts) -> Result<&Caller, Response> {
    parts.extensions.get::<Caller>().ok_or_else(|| {
        let detail = "this route has no guard before it";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).into_response()
    })
}

/// Gives the caller if the role is theirs; else what to tell them.
fn who_may(parts: &Parts, wanted: Role) -> Result<Identity, Response> {
    match &caller(parts)?.identity {
        Some(identity) if identity.role.includes(wanted) => Ok(identity.clone()),
        Some(identity) => Err(forbidden(identity, wanted).into_response()),
        None if is_page(parts) => Err(to_login(parts)),
        None => Err(unauthorized(
            "this needs a token: send `Authorization: Bearer`, or sign in at /login",
        )
        .into_response()),
    }
}

/// Says that the role does not suffice. Those who showed nothing are told to.
fn forbidden(identity: &Identity, wanted: Role) -> Problem {
    if identity.how == super::identity::How::Anonymous {
        return unauthorized(format!("this needs a token of role {wanted}"));
    }
    let detail = format!(
        "`{}` has role {}; this needs role {wanted}",
        identity.name, identity.role
    );
    Problem::new(StatusCode::FORBIDDEN, detail)
}

/// Says that it must be shown who asks.
pub(super) fn unauthorized(detail: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    let challenge = HeaderValue::from_static("Bearer realm=\"meridian\"");
    Problem::new(StatusCode::UNAUTHORIZED, detail).with(header::WWW_AUTHENTICATE, challenge)
}

/// Tells whether a person looks at a page: a read whose answer may be HTML.
fn is_page(parts: &Parts) -> bool {
    let is_read = matches!(parts.method, Method::GET | Method::HEAD);
    is_read && !parts.uri.path().starts_with("/api/") && accepts_html(&parts.headers)
}

/// Tells whether HTML is asked for by name: `*/*` is what programs send.
pub(super) fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/html"))
}

/// Sends a browser to the login page, and from there back.
fn to_login(parts: &Parts) -> Response {
    let original = parts.extensions.get::<axum::extract::OriginalUri>();
    let uri = original.map_or(&parts.uri, |original| &original.0);
    let next = uri.path_and_query().map_or("/", |path| path.as_str());
    let place = format!("/login?next={}", percent_encode(next));
    (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response()
}

/// Encodes all that is not unreserved (RFC 3986 section 2.3), but for `/`.
fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for octet in text.bytes() {
        if octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~' | b'/') {
            out.push(char::from(octet));
        } else {
            // Writing to a String cannot fail.
            let _ = std::fmt::Write::write_fmt(&mut out, format_args!("%{octet:02X}"));
        }
    }
    out
}
