//! RRsets as they go on the wire.

use std::ops::Range;

use crate::model::{RecordType, Ttl};

/// One record's data in wire form, names uncompressed (RFC 3597 section 4): 0..=65535 octets.
pub type Rdata = Box<[u8]>;

/// One record's data, borrowed out of an [`Rrset`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdataRef<'a> {
    rtype: RecordType,
    wire: &'a [u8],
}

impl<'a> RdataRef<'a> {
    /// Gives the wire form, uncompressed.
    #[must_use]
    pub fn wire(self) -> &'a [u8] {
        self.wire
    }

    /// Gives the parts of the wire form that are names which may be compressed: those of the types of RFC 1035 (RFC 3597
    /// section 4), in order.
    pub fn compressible(self) -> impl Iterator<Item = Range<usize>> + 'a {
        let _ = self.rtype;
        std::iter::empty()
    }
}

/// All records of one owner and type: at least one, one TTL (RFC 2181 section 5.2), no duplicates (section 5). The order is
/// that of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rrset {
    rtype: RecordType,
    ttl: Ttl,
    /// `u16` length (big endian) and wire form of each, one after the other.
    rdata: Box<[u8]>,
}

impl Rrset {
    /// Makes an RRset; duplicates are dropped. `None` when there is no data or one is longer than 65535 octets.
    #[must_use]
    pub fn new(rtype: RecordType, ttl: Ttl, rdata: &[Rdata]) -> Option<Self> {
        let _ = (rtype, ttl, rdata);
        todo!()
    }

    /// Gives the type.
    #[must_use]
    pub fn rtype(&self) -> RecordType {
        self.rtype
    }

    /// Gives the TTL.
    #[must_use]
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// Iterates over the records' data; never empty.
    pub fn iter(&self) -> impl Iterator<Item = RdataRef<'_>> {
        let _ = &self.rdata;
        std::iter::empty()
    }

    /// Counts the records; at least 1.
    #[must_use]
    pub fn count(&self) -> usize {
        self.iter().count()
    }
}
