//! The cookie of a session (RFC 6265).

use axum::http::{HeaderMap, HeaderValue, header};

use super::hosts::Surface;

/// How long a browser keeps it, in seconds: as long as a session lives.
const MAX_AGE: u32 = 12 * 3600;
/// Hexadecimal digits in it.
const LENGTH: usize = 64;

/// Gives its name. Cookies do not know ports, so the port is in the name: two nodes on one machine are two. With TLS the
/// browser itself sees to it that no other host set it.
fn name(surface: &Surface) -> String {
    let prefix = if surface.tls.is_some() { "__Host-" } else { "" };
    format!("{prefix}meridian-{}", surface.local.port())
}

/// Reads what it holds.
pub(in crate::admin) fn read(headers: &HeaderMap, surface: &Surface) -> Option<String> {
    let name = name(surface);
    let lines = headers.get_all(header::COOKIE).iter();
    let mut pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    let is_ours = value.len() == LENGTH && value.bytes().all(|octet| octet.is_ascii_hexdigit());
    is_ours.then(|| value.to_owned())
}

/// Writes the header that sets it; without a secret, the one that takes it away.
pub(in crate::admin) fn write(secret: Option<&str>, surface: &Surface) -> Option<HeaderValue> {
    let secure = if surface.tls.is_some() {
        "; Secure"
    } else {
        ""
    };
    let age = secret.map_or(0, |_| MAX_AGE);
    let text = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}",
        name(surface),
        secret.unwrap_or_default(),
    );
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
