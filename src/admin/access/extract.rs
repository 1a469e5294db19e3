//! What a handler writes among its arguments to say who may call it.

use std::sync::Arc;

use axum::extract::{FromRequestParts, OriginalUri};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::admin::identity::{Identity, Role};
use crate::admin::problem::Problem;

/// What the guard found out about a caller; an extension of every request that it lets through.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Caller {
    /// Who they are, if they showed it.
    pub(super) identity: Option<Identity>,
    /// The request's name in the audit log.
    pub(in crate::admin) request: Arc<str>,
}

/// Somebody who may read: viewers and operators.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "the routes of the API and of other nodes take it")]
pub(crate) struct Viewer(pub(crate) Identity);

/// Somebody who may change what is answered.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "the routes of the API and of other nodes take it")]
pub(crate) struct Operator(pub(crate) Identity);

/// Another node.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "the routes of the API and of other nodes take it")]
pub(crate) struct PeerNode(pub(crate) Identity);

/// Whoever asks, for pages that look different to those who may more.
#[derive(Clone, Debug)]
pub(crate) struct MaybeIdentity(pub(crate) Option<Identity>);

/// Why a handler is not called.
#[derive(Debug)]
pub(crate) enum Denied {
    /// What programs are told.
    Problem(Problem),
    /// Where browsers are sent.
    Login(String),
}

impl From<Problem> for Denied {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        match self {
            Self::Problem(problem) => problem.into_response(),
            Self::Login(place) => {
                (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response()
            }
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Viewer {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Denied> {
        who_may(parts, Role::Viewer).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for Operator {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Denied> {
        who_may(parts, Role::Operator).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for PeerNode {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Denied> {
        who_may(parts, Role::Peer).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for MaybeIdentity {
    type Rejection = Denied;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Denied> {
        Ok(Self(caller(parts)?.identity.clone()))
    }
}

/// Finds what the guard left. A route that the guard does not stand before is open to nobody.
fn caller(parts: &Parts) -> Result<&Caller, Denied> {
    parts.extensions.get::<Caller>().ok_or_else(|| {
        let detail = "this route has no guard before it";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).into()
    })
}

/// Gives the caller if the role is theirs; else what to tell them.
fn who_may(parts: &Parts, wanted: Role) -> Result<Identity, Denied> {
    match &caller(parts)?.identity {
        Some(identity) if identity.role.includes(wanted) => Ok(identity.clone()),
        Some(identity) => Err(forbidden(identity, wanted).into()),
        None if is_page(parts) => Err(Denied::Login(login_place(parts))),
        None => Err(unauthorized(
            "this needs a token: send `Authorization: Bearer`, or sign in at /login",
        )
        .into()),
    }
}

/// Says that the role does not suffice. Those who showed nothing are told to.
fn forbidden(identity: &Identity, wanted: Role) -> Problem {
    if identity.how == crate::admin::identity::How::Anonymous {
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
pub(in crate::admin) fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/html"))
}

/// Gives the place of the login page, from where it goes back.
fn login_place(parts: &Parts) -> String {
    let original = parts.extensions.get::<OriginalUri>();
    let uri = original.map_or(&parts.uri, |original| &original.0);
    let next = uri.path_and_query().map_or("/", |path| path.as_str());
    format!("/login?next={}", percent_encode(next))
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
