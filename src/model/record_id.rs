//! Ids of what operators say.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Why an id was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id has 1 to 64 lower-case letters, digits and `-`")]
pub struct RecordIdError;

/// A record's id: unique over all nodes, made by the one that took the record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(Arc<str>);

impl RecordId {
    /// Gives the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RecordId {
    type Err = RecordIdError;

    fn from_str(text: &str) -> Result<Self, RecordIdError> {
        let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if (1..=64).contains(&text.len()) && text.bytes().all(is_good) {
            Ok(Self(text.into()))
        } else {
            Err(RecordIdError)
        }
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain() {
        for good in ["a", "0-9", "01jd-abc"] {
            assert_eq!(good.parse::<RecordId>().unwrap().as_str(), good);
        }
        for bad in ["", "A", "a/b", "a b", "é", &"a".repeat(65)] {
            assert!(bad.parse::<RecordId>().is_err(), "{bad:?}");
        }
    }
}
