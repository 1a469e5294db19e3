//! Bearer tokens: where they are read from, and how they are kept from being seen.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use hyper::header::HeaderValue;

use super::fault::{Fault, FaultKind};
use crate::source::read_bounded;

/// Octets of a file that holds a token.
const MAX_TOKEN: u64 = 64 * 1024;

/// A bearer token (RFC 6750), never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Bearer {
    secret: Arc<str>,
    header: HeaderValue,
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer(***)")
    }
}

impl Bearer {
    /// Takes a token as it was written, white space around it left out: files of tokens often end in a newline.
    ///
    /// # Errors
    /// When nothing is left, or a header cannot carry it.
    pub(super) fn new(text: &str) -> Result<Self, Fault> {
        let bad = || Fault::new(FaultKind::Unusable, "the token is none that can be sent");
        let secret = text.trim();
        if secret.is_empty() || !secret.bytes().all(|octet| octet.is_ascii_graphic()) {
            return Err(bad());
        }
        let mut header = HeaderValue::try_from(format!("Bearer {secret}")).map_err(|_| bad())?;
        header.set_sensitive(true);
        Ok(Self {
            secret: secret.into(),
            header,
        })
    }

    /// Reads a file that holds a token.
    ///
    /// # Errors
    /// When it cannot be read, is larger than 64 KiB, or holds none.
    pub(super) fn read(path: &Path) -> Result<Self, Fault> {
        let name = path.display();
        let unusable = |why: String| Fault::new(FaultKind::Unusable, &format!("{name}: {why}"));
        let octets = read_bounded(path, MAX_TOKEN).map_err(|error| unusable(error.reason()))?;
        let text = String::from_utf8(octets).map_err(|_| unusable("holds no token".to_owned()))?;
        Self::new(&text).map_err(|_| unusable("holds no token".to_owned()))
    }

    /// Gives the value of the header `Authorization`.
    pub(super) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Gives the token itself, to find it where it must not be.
    pub(super) fn secret(&self) -> &str {
        &self.secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_around_a_token_is_left_out() {
        for text in ["abc.def", "abc.def\n", " \tabc.def\r\n\n"] {
            let bearer = Bearer::new(text).unwrap();
            assert_eq!(bearer.header(), "Bearer abc.def");
            assert_eq!(bearer.secret(), "abc.def");
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for text in ["", " \n", "two words", "a\nb", "tök\u{0}en", "a\u{7f}"] {
            let fault = Bearer::new(text).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Unusable, "{text:?}");
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        let bearer = Bearer::new("canary").unwrap();
        let shown = format!("{bearer:?} {:?}", bearer.header());
        assert!(!shown.contains("canary"), "{shown}");
    }

    #[test]
    fn a_file_of_tokens_is_read_within_limits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert!(Bearer::read(&path).is_err());
        std::fs::write(&path, "abc\n").unwrap();
        assert_eq!(Bearer::read(&path).unwrap().secret(), "abc");
        std::fs::write(&path, "x".repeat(70_000)).unwrap();
        let fault = Bearer::read(&path).unwrap_err();
        assert!(fault.text.contains("larger than"), "{}", fault.text);
        std::fs::write(&path, b"\xff\xfe").unwrap();
        assert!(Bearer::read(&path).is_err());
    }
}
