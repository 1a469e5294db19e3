//! Ports of services that have a name.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

/// Octets of a port's name, at most: with `_` before it, it is a label (RFC 1035 section 2.3.4).
const MAX_NAME: usize = 62;

/// Why a port has no name in the DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortNameError {
    /// It is no label of letters, digits and hyphens.
    #[error("lower-case letters, digits and `-` are wanted, with a letter or digit at both ends")]
    NoLabel,
    /// There is no room for `_` before it.
    #[error("at most 62 octets fit into a label behind `_`")]
    Long,
}

/// What a port's packets are carried by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carrier {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Carrier {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    /// Gives its label in names of SRV (RFC 2782), in lower case.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Tcp => "_tcp",
            Self::Udp => "_udp",
            Self::Sctp => "_sctp",
        }
    }

    /// Reads a label in lower case; `None`: it says something else.
    #[must_use]
    pub fn from_label(label: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|carrier| carrier.label().as_bytes() == label)
    }
}

/// The name of a port, as Kubernetes has it: a label of lower-case letters, digits and hyphens, short enough for `_` before it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortName(Box<str>);

impl PortName {
    /// Gives the name, without `_`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PortName {
    type Err = PortNameError;

    fn from_str(text: &str) -> Result<Self, PortNameError> {
        let edge = |octet: &u8| octet.is_ascii_lowercase() || octet.is_ascii_digit();
        let octets = text.as_bytes();
        let is_label = octets.first().is_some_and(edge)
            && octets.last().is_some_and(edge)
            && octets.iter().all(|octet| edge(octet) || *octet == b'-');
        if !is_label {
            Err(PortNameError::NoLabel)
        } else if octets.len() > MAX_NAME {
            Err(PortNameError::Long)
        } else {
            Ok(Self(text.into()))
        }
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A port of a service that has a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedPort {
    /// Its name.
    pub name: PortName,
    /// What it is carried by: a service may have one name for each.
    pub carrier: Carrier,
    /// Its number.
    pub number: NonZeroU16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_port_is_a_label_behind_an_underscore() {
        let long = "a".repeat(62);
        for (text, wanted) in [
            ("http", Ok("http")),
            ("h2-c", Ok("h2-c")),
            ("8080", Ok("8080")),
            (&*long, Ok(&*long)),
            (&"a".repeat(63), Err(PortNameError::Long)),
            ("", Err(PortNameError::NoLabel)),
            ("_http", Err(PortNameError::NoLabel)),
            ("-a", Err(PortNameError::NoLabel)),
            ("a-", Err(PortNameError::NoLabel)),
            ("Http", Err(PortNameError::NoLabel)),
            ("a.b", Err(PortNameError::NoLabel)),
            ("ü", Err(PortNameError::NoLabel)),
        ] {
            let read = text.parse::<PortName>();
            let read = read.as_ref().map(PortName::as_str).map_err(|error| *error);
            assert_eq!(read, wanted, "{text}");
        }
    }

    #[test]
    fn carriers_are_read_from_their_labels() {
        for carrier in Carrier::ALL {
            let label = carrier.label().as_bytes();
            assert_eq!(Carrier::from_label(label), Some(carrier));
        }
        for label in [&b"tcp"[..], b"_TCP", b"_http", b"_", b""] {
            assert_eq!(Carrier::from_label(label), None);
        }
    }
}
