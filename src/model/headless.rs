//! Endpoints of headless services: each has a name of its own in cluster sets.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use super::port::NamedPort;

/// Octets of a label, at most (RFC 1035 section 2.3.4).
const MAX_LABEL: usize = 63;

/// Why the label of an endpoint was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "1 to 63 lower-case letters, digits and `-` are wanted, with a letter or digit at both ends"
)]
pub struct HostLabelError;

/// The label of an endpoint: lower-case letters, digits and hyphens (RFC 1123).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostLabel(Box<str>);

impl HostLabel {
    /// Makes the label of an endpoint that has no name: its address with hyphens, such as `10-1-2-3`.
    #[must_use]
    pub fn of_address(address: IpAddr) -> Self {
        let mut text = address.to_string().replace(['.', ':'], "-");
        if text.starts_with('-') {
            text.insert(0, '0');
        }
        if text.ends_with('-') {
            text.push('0');
        }
        Self(text.into())
    }

    /// Gives the label.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostLabel {
    type Err = HostLabelError;

    fn from_str(text: &str) -> Result<Self, HostLabelError> {
        let edge = |octet: &u8| octet.is_ascii_lowercase() || octet.is_ascii_digit();
        let octets = text.as_bytes();
        let is_label = octets.len() <= MAX_LABEL
            && octets.first().is_some_and(edge)
            && octets.last().is_some_and(edge)
            && octets.iter().all(|octet| edge(octet) || *octet == b'-');
        if is_label {
            Ok(Self(text.into()))
        } else {
            Err(HostLabelError)
        }
    }
}

impl fmt::Display for HostLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One endpoint of a headless service. Several may have one label, and one address several labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeadlessEndpoint {
    /// Its label.
    pub label: HostLabel,
    /// Its address.
    pub address: IpAddr,
    /// Its ports that have a name, in order, each name once for each carrier. Endpoints of equal ports share them.
    pub ports: Arc<[NamedPort]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_of_an_endpoint_is_one_of_rfc_1123() {
        let long = "a".repeat(63);
        for (text, is_one) in [
            ("web-0", true),
            ("0", true),
            (&*long, true),
            (&"a".repeat(64), false),
            ("", false),
            ("-a", false),
            ("a-", false),
            ("Web", false),
            ("a.b", false),
            ("a_b", false),
            ("ü", false),
        ] {
            let read = text.parse::<HostLabel>().ok();
            let shown = read.as_ref().map(HostLabel::as_str);
            assert_eq!(shown, is_one.then_some(text), "{text}");
        }
    }

    #[test]
    fn an_address_makes_a_label() {
        for (address, wanted) in [
            ("10.1.2.3", "10-1-2-3"),
            ("2001:db8:1:2:3:4:5:6", "2001-db8-1-2-3-4-5-6"),
            ("2001:db8::1", "2001-db8--1"),
            ("2001:db8::", "2001-db8--0"),
            ("::1", "0--1"),
            ("::", "0--0"),
            ("::ffff:192.0.2.1", "0--ffff-192-0-2-1"),
        ] {
            let label = HostLabel::of_address(address.parse().unwrap());
            assert_eq!(label.as_str(), wanted);
            assert_eq!(wanted.parse(), Ok(label));
        }
    }
}
