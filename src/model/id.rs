//! Names of clusters and services, as Kubernetes spells them.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Why a cluster or service name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing was written.
    #[error("a name must not be empty")]
    Empty,
    /// More than 253 octets (RFC 1123 subdomain).
    #[error("a name has at most 253 characters, this one has {0}")]
    TooLong(usize),
    /// A character that Kubernetes does not allow in names.
    #[error(
        "a name has lower-case letters, digits, `-` and `.`, and begins and ends with a letter or digit"
    )]
    BadCharacter,
}

/// Checks a Kubernetes object name (RFC 1123 subdomain: `[a-z0-9]([-a-z0-9.]*[a-z0-9])?`, at most 253 octets).
fn check(text: &str) -> Result<(), IdError> {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return Err(IdError::Empty);
    };
    if bytes.len() > 253 {
        return Err(IdError::TooLong(bytes.len()));
    }
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: &u8| edge(byte) || *byte == b'-' || *byte == b'.';
    if edge(first) && edge(last) && bytes.iter().all(inner) {
        Ok(())
    } else {
        Err(IdError::BadCharacter)
    }
}

/// A cluster's name: an RFC 1123 subdomain in lower case. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(Arc<str>);

impl ClusterId {
    /// Gives the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ClusterId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        check(text)?;
        Ok(Self(text.into()))
    }
}

/// Hash and order are those of the text: sets are asked for a name without making one.
impl Borrow<str> for ClusterId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the key of a service ends in that is observed and not served.
const OBSERVED: &str = "@observed";

/// A service's key: namespace and name, the same in every cluster of a federation. Shown as `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceKey(Box<str>);

impl ServiceKey {
    /// Makes a key of its two parts.
    ///
    /// # Errors
    /// When a part is no RFC 1123 subdomain.
    pub fn new(namespace: &str, name: &str) -> Result<Self, IdError> {
        check(namespace)?;
        check(name)?;
        Ok(Self(format!("{namespace}/{name}").into()))
    }

    /// Makes a key of its two parts as they are shown: the name of one that is observed, and not served, ends in `@observed`.
    ///
    /// # Errors
    /// When a part is no RFC 1123 subdomain.
    pub fn shown(namespace: &str, name: &str) -> Result<Self, IdError> {
        match name.strip_suffix(OBSERVED) {
            Some(name) => Self::new(namespace, name).map(|key| key.observed()),
            None => Self::new(namespace, name),
        }
    }

    /// Gives the key under which it stands where it is observed and not served; no other service can have it.
    #[must_use]
    pub fn observed(&self) -> Self {
        Self(format!("{}{OBSERVED}", self.0).into())
    }

    /// Gives the key that it has where it is served: itself, but for that of one that is observed.
    #[must_use]
    pub fn served(&self) -> Self {
        let served = self.0.strip_suffix(OBSERVED);
        served.map_or_else(|| self.clone(), |served| Self(served.into()))
    }

    /// Gives the namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.0
            .split_once('/')
            .map_or("", |(namespace, _)| namespace)
    }

    /// Gives the name inside the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, name)| name)
    }

    /// Gives the key as `namespace/name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_rfc_1123() {
        for good in ["a", "aws-use1", "a.b", "0"] {
            assert_eq!(
                good.parse::<ClusterId>().map(|id| id.to_string()),
                Ok(good.to_owned())
            );
        }
        for bad in ["", "-a", "a-", "A", "a_b", "ä", "a/b", "a b", "a\n"] {
            assert!(bad.parse::<ClusterId>().is_err(), "{bad:?}");
        }
        assert!("a".repeat(254).parse::<ClusterId>().is_err());
    }

    #[test]
    fn a_key_gives_back_its_parts() {
        let key = ServiceKey::new("shop", "web").unwrap();
        assert_eq!(
            (key.namespace(), key.name(), key.as_str()),
            ("shop", "web", "shop/web")
        );
        assert_eq!(key.observed().as_str(), "shop/web@observed");
        for key in [&key, &key.observed()] {
            let shown = ServiceKey::shown(key.namespace(), key.name());
            assert_eq!(shown.as_ref(), Ok(key));
        }
        for bad in ["web@observed@observed", "@observed", "web@"] {
            assert!(ServiceKey::shown("shop", bad).is_err(), "{bad}");
        }
        assert!(ServiceKey::new("shop", "web@observed").is_err());
        assert_eq!([key.served(), key.observed().served()], [key.clone(), key]);
    }
}
