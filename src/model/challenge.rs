//! What certificate authorities look for in the DNS (RFC 8555 section 8.4).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Longest token, octets: one string of a TXT record.
const MAX_TOKEN: usize = 255;

/// Why a token was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token has 1 to {MAX_TOKEN} letters, digits, `-` and `_`")]
pub struct TokenError;

/// What is to be found at `_acme-challenge.<name>`: 1 to 255 characters of base64url (RFC 4648 section 5). No secret: whoever asks
/// the DNS reads it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(Arc<str>);

impl Token {
    /// Gives the characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let fits = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
        if (1..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.into()))
        } else {
            Err(TokenError)
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_base64url_and_fit_one_string() {
        let (longest, long) = ("a".repeat(255), "a".repeat(256));
        for good in ["a", "-_", "gfj9Xq-Rg85nM_z", &longest] {
            assert_eq!(good.parse::<Token>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            &long,
            "a=",
            "a+b",
            "a/b",
            "a b",
            "a\nb",
            "a\"b",
            "a\0",
            "\u{e9}",
            "\u{1b}[2J",
            "{}",
        ] {
            assert_eq!(bad.parse::<Token>(), Err(TokenError), "{bad:?}");
        }
    }
}
