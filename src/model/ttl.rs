//! Time to live (RFC 2181 section 8).

use std::fmt;

/// A TTL in seconds, 0..=2^31-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(u32);

impl Ttl {
    /// The greatest TTL (RFC 2181 section 8).
    pub const MAX: Self = Self(0x7fff_ffff);
    /// For answers that should be asked for again soon: NODATA before the first address, a denied client, a monitor in doubt.
    pub const BRIEF: Self = Self(5);

    /// Makes a TTL; `None` above 2^31-1.
    #[must_use]
    pub fn new(seconds: u32) -> Option<Self> {
        (seconds <= Self::MAX.0).then_some(Self(seconds))
    }

    /// Reads a TTL off the wire: bit 31 set counts as 0 (RFC 2181 section 8).
    #[must_use]
    pub fn from_wire(seconds: u32) -> Self {
        Self::new(seconds).unwrap_or(Self(0))
    }

    /// Gives the seconds.
    #[must_use]
    pub fn seconds(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc2181_8_bit_31_counts_as_0() {
        for (wire, seconds) in [
            (0, 0),
            (1, 1),
            (0x7fff_ffff, 0x7fff_ffff),
            (0x8000_0000, 0),
            (0x8000_0001, 0),
            (u32::MAX, 0),
        ] {
            assert_eq!(Ttl::from_wire(wire).seconds(), seconds);
            assert_eq!(Ttl::new(wire).is_some(), wire <= 0x7fff_ffff);
        }
    }
}
