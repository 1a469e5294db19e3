//! What an answer of failure says: problem details (RFC 9457).

use std::borrow::Cow;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// The media type of problem details.
pub(super) const MEDIA_TYPE: &str = "application/problem+json";

/// Longest `detail` in octets: it may quote what a client sent.
const MAX_DETAIL: usize = 1024;

/// Why a request fails, for machines and people alike. Made into a response it is `application/problem+json`.
///
/// `detail` never holds a secret: what a client presented to prove who it is is not quoted.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    /// The kind of problem: `about:blank` where the status says it all.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// The status in words.
    pub(crate) title: &'static str,
    /// The HTTP status.
    pub(crate) status: u16,
    /// What went wrong this time, and what to do about it.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) detail: Cow<'static, str>,
    /// What it happened to, such as the path of an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance: Option<Box<str>>,
    /// The part of the request that is wrong, such as `target.cluster`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<Box<str>>,
    /// Further headers of the response, such as `Retry-After`.
    #[serde(skip)]
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// Makes a problem whose status says what kind it is.
    pub(crate) fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Self {
        let mut detail = detail.into();
        if detail.len() > MAX_DETAIL {
            let end = detail.floor_char_boundary(MAX_DETAIL);
            detail.to_mut().truncate(end);
        }
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail,
            instance: None,
            field: None,
            headers: Vec::new(),
        }
    }

    /// What was asked for is not there.
    pub(crate) fn not_found(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The request makes no sense.
    pub(crate) fn bad_request(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The request collides with what holds now.
    #[allow(dead_code, reason = "the routes of the API say it")]
    pub(crate) fn conflict(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// Names what it happened to.
    #[allow(dead_code, reason = "the routes of the API say it")]
    #[must_use]
    pub(crate) fn at(mut self, instance: impl Into<Box<str>>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Names the part of the request that is wrong.
    #[must_use]
    pub(crate) fn in_field(mut self, field: impl Into<Box<str>>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Adds a header to the response.
    #[must_use]
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Says after how many seconds to try again.
    #[must_use]
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        self.with(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Texts and a number cannot fail to become JSON.
        let body = serde_json::to_string(&self).unwrap_or_default();
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))];
        let mut response = (status, kind, body).into_response();
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn problems_are_what_rfc_9457_says() {
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "slowly\u{1}")
            .at("/api/v1/drains/1")
            .retry_after(0);
        let response = problem.into_response();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["content-type"], MEDIA_TYPE);
        assert_eq!(response.headers()["retry-after"], "1");
        let body = axum::body::to_bytes(response.into_body(), 4096)
            .await
            .unwrap();
        assert_eq!(
            std::str::from_utf8(&body).unwrap(),
            r#"{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"slowly\u0001","instance":"/api/v1/drains/1"}"#
        );
    }

    #[test]
    fn details_are_bounded() {
        let problem = Problem::not_found("ä".repeat(2000));
        assert_eq!(problem.detail.len(), MAX_DETAIL);
        assert_eq!(problem.status, 404);
        assert_eq!(Problem::conflict("").status, 409);
        assert_eq!(Problem::bad_request("").status, 400);
    }
}
