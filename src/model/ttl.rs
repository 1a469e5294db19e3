//! Time to live (RFC 2181 section 8).

use std::fmt;
use std::num::NonZeroU32;

/// A TTL in seconds, 0..=2^31-1. `Option<Ttl>` takes no more room: bit 31, which no TTL has, is set within.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(NonZeroU32);

/// The bit that no TTL has.
const MARK: u32 = 1 << 31;

impl Ttl {
    /// The greatest TTL (RFC 2181 section 8).
    pub const MAX: Self = Self::marked(0x7fff_ffff);
    /// For answers that should be asked for again soon: NODATA before the first address, a denied client, a monitor in doubt.
    pub const BRIEF: Self = Self::marked(5);

    /// Makes a TTL; `None` above 2^31-1.
    #[must_use]
    pub fn new(seconds: u32) -> Option<Self> {
        (seconds & MARK == 0).then_some(Self::marked(seconds))
    }

    /// Reads a TTL off the wire: bit 31 set counts as 0 (RFC 2181 section 8).
    #[must_use]
    pub fn from_wire(seconds: u32) -> Self {
        Self::new(seconds).unwrap_or(Self::marked(0))
    }

    /// Gives the seconds.
    #[must_use]
    pub fn seconds(self) -> u32 {
        self.0.get() & !MARK
    }

    /// Sets the mark. With it nothing is zero, and the order is that of seconds.
    const fn marked(seconds: u32) -> Self {
        match NonZeroU32::new(seconds | MARK) {
            Some(marked) => Self(marked),
            None => Self(NonZeroU32::MAX),
        }
    }
}

impl fmt::Debug for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ttl").field(&self.seconds()).finish()
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_ttl_takes_no_more_room() {
        assert_eq!(size_of::<Option<Ttl>>(), size_of::<u32>());
        assert!(Ttl::from_wire(0) < Ttl::BRIEF && Ttl::BRIEF < Ttl::MAX);
        assert_eq!(format!("{:?}", Ttl::BRIEF), "Ttl(5)");
    }

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
