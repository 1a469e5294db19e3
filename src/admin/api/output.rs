//! Responses: JSON with its tag, and problems.

use std::convert::Infallible;
use std::fmt::Write as _;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ring::digest::{SHA256, digest};
use serde::Serialize;

use crate::admin::problem::Problem;
use crate::admin::view::ViewError;

/// Seconds after which to ask again when the node goes down: its successor may be there.
const RETRY_SECONDS: u64 = 5;

/// What the client holds already: its `If-None-Match`.
#[derive(Clone, Debug, Default)]
pub(super) struct Held(Vec<HeaderValue>);

impl<S: Sync> FromRequestParts<S> for Held {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let values = parts.headers.get_all(header::IF_NONE_MATCH);
        Ok(Self(values.iter().cloned().collect()))
    }
}

impl Held {
    /// Sends a value as JSON, or says that the client holds it already.
    pub(super) fn or_json<T: Serialize>(&self, value: &T) -> Response {
        match serde_json::to_vec(value) {
            Ok(body) => self.or_send("application/json", body),
            Err(error) => failed(&error).into_response(),
        }
    }

    /// Sends a body with its strong tag, or 304 without it (RFC 9110 section 13.1.2).
    pub(super) fn or_send(
        &self,
        kind: &'static str,
        body: impl Into<axum::body::Bytes>,
    ) -> Response {
        let body = body.into();
        let tag = tag(&body);
        let headers = [
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::ETAG, tag.clone()),
        ];
        if self.has(&tag) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(kind))];
        (headers, kind, body).into_response()
    }

    /// Tells whether a tag is among the client's. Weak comparison, as RFC 9110 has it for this header. Our tags have no
    /// comma, so that lists may be cut at every one.
    fn has(&self, tag: &HeaderValue) -> bool {
        let lists = self.0.iter().filter_map(|value| value.to_str().ok());
        lists.flat_map(|list| list.split(',')).any(|given| {
            let given = given.trim();
            given == "*" || given.strip_prefix("W/").unwrap_or(given).as_bytes() == tag.as_bytes()
        })
    }
}

/// Makes the tag of a body: half of its SHA-256, so that no two bodies share one by accident.
fn tag(body: &[u8]) -> HeaderValue {
    let hash = digest(&SHA256, body);
    let mut text = String::with_capacity(34);
    text.push('"');
    for octet in hash.as_ref().iter().take(16) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{octet:02x}");
    }
    text.push('"');
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// Sends what a change led to: 201 with its place where something new is, else 200.
pub(super) fn changed<T: Serialize>(value: &T, place: Option<String>) -> Response {
    let body = match serde_json::to_vec(value) {
        Ok(body) => body,
        Err(error) => return failed(&error).into_response(),
    };
    let headers: [(HeaderName, &str); 2] = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    match place {
        Some(place) => (
            StatusCode::CREATED,
            headers,
            [(header::LOCATION, place)],
            body,
        )
            .into_response(),
        None => (headers, body).into_response(),
    }
}

/// Says that a value could not be written.
fn failed(error: &serde_json::Error) -> Problem {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        format!("what was asked for could not be written: {error}"),
    )
}

impl From<ViewError> for Problem {
    fn from(error: ViewError) -> Self {
        let words = error.to_string();
        match error {
            ViewError::NotFound(_) => Self::not_found(words),
            ViewError::Invalid(_) => Self::bad_request(words),
            ViewError::Conflict(_) => Self::conflict(words),
            ViewError::Gone => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, words).retry_after(RETRY_SECONDS)
            }
        }
    }
}

/// Makes a problem of a change that was asked for in a body: what the body names and is not there, or makes no sense, is a
/// fault of the body, not of the path.
pub(super) fn of_change(error: ViewError) -> Problem {
    match error {
        ViewError::NotFound(_) | ViewError::Invalid(_) => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(values: &[&str]) -> Held {
        let values = values.iter().map(|value| value.parse().unwrap());
        Held(values.collect())
    }

    #[test]
    fn tags_are_strong_and_follow_the_body() {
        let one = tag(b"one");
        assert_eq!(one, tag(b"one"));
        assert_ne!(one, tag(b"two"));
        assert_eq!(one, "\"7692c3ad3540bb803c020b3aee66cd88\"");
    }

    #[test]
    fn what_the_client_holds_is_not_sent_again() {
        let tag = "\"7692c3ad3540bb803c020b3aee66cd88\"";
        let weak = format!("W/{tag}");
        let list = format!("\"a\" , {weak},\"b\"");
        for (values, status) in [
            (&[tag][..], 304),
            (&[&weak], 304),
            (&["*"], 304),
            (&[&list], 304),
            (&["\"a\"", tag], 304),
            (&[], 200),
            (&["\"a\""], 200),
            (&["7692c3ad3540bb803c020b3aee66cd88"], 200),
            (&[""], 200),
        ] {
            let response = held(values).or_send("text/plain", "one");
            assert_eq!(response.status(), status, "{values:?}");
            assert_eq!(response.headers()["etag"], tag);
            assert_eq!(response.headers()["cache-control"], "no-cache");
            assert_eq!(
                response.headers().contains_key("content-type"),
                status == 200
            );
        }
    }

    #[test]
    fn faults_of_a_body_are_not_faults_of_the_path() {
        let invalid = || ViewError::Invalid("x".to_owned());
        let missing = || ViewError::NotFound("cluster `x`".to_owned());
        assert_eq!(Problem::from(invalid()).status, 400);
        assert_eq!(Problem::from(missing()).status, 404);
        assert_eq!(of_change(invalid()).status, 422);
        assert_eq!(of_change(missing()).status, 422);
        let conflict = || ViewError::Conflict("x".to_owned());
        assert_eq!(Problem::from(conflict()).status, 409);
        assert_eq!(of_change(conflict()).status, 409);
        let gone = of_change(ViewError::Gone).into_response();
        assert_eq!(gone.status(), 503);
        assert_eq!(gone.headers()["retry-after"], "5");
    }
}
