//! The name of a federation, as KubeFed has it in its names.

use std::fmt;
use std::str::FromStr;

/// Octets of a label, at most (RFC 1035 section 2.3.4).
const MAX_LABEL: usize = 63;

/// Why the name of a federation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a label of 1 to 63 letters, digits and `-` is wanted, with a letter or digit at both ends"
)]
pub struct FederationNameError;

/// The name of a federation: one label of letters, digits and hyphens (RFC 1123), in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FederationName(Box<str>);

impl FederationName {
    /// Gives the label.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FederationName {
    type Err = FederationNameError;

    fn from_str(text: &str) -> Result<Self, FederationNameError> {
        let bytes = text.as_bytes();
        let has_edges = [bytes.first(), bytes.last()]
            .iter()
            .all(|edge| edge.is_some_and(u8::is_ascii_alphanumeric));
        let inner = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        if has_edges && bytes.len() <= MAX_LABEL && bytes.iter().all(inner) {
            Ok(Self(text.to_ascii_lowercase().into()))
        } else {
            Err(FederationNameError)
        }
    }
}

impl fmt::Display for FederationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_federation_is_one_label() {
        let long = "a".repeat(63);
        for (text, wanted) in [
            ("prod", Some("prod")),
            ("Prod-1", Some("prod-1")),
            ("0", Some("0")),
            (&*long, Some(&*long)),
            (&"a".repeat(64), None),
            ("", None),
            ("-a", None),
            ("a-", None),
            ("a.b", None),
            ("a_b", None),
            ("a b", None),
            ("ü", None),
        ] {
            let read = text.parse::<FederationName>().ok();
            assert_eq!(read.as_ref().map(FederationName::as_str), wanted, "{text}");
        }
    }
}
