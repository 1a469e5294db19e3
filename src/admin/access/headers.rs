//! Headers that every answer has.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// What a page may load and who may show it: from here alone, and nobody.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Headers that no handler changes.
const ALWAYS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

/// A year, for browsers to use TLS alone.
const TRANSPORT_SECURITY: &str = "max-age=31536000";

/// Puts them in. What says nothing of caching depends on who asks, and is not kept.
pub(super) fn put(headers: &mut HeaderMap, has_tls: bool) {
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if has_tls {
        let value = HeaderValue::from_static(TRANSPORT_SECURITY);
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}
