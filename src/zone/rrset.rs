//! RRsets as they go on the wire.

use std::collections::HashSet;
use std::ops::Range;

use crate::model::{NameRef, RecordType, Ttl};

/// One record's data in wire form, names uncompressed (RFC 3597 section 4): 0..=65535 octets.
pub type Rdata = Box<[u8]>;

/// From this many records on, duplicates are found through a hash set rather than by comparing all pairs.
const MANY: usize = 16;

/// One record's data, borrowed out of an [`Rrset`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdataRef<'a> {
    rtype: RecordType,
    wire: &'a [u8],
}

impl<'a> RdataRef<'a> {
    /// Gives the wire form, uncompressed. Names in it are in lower case: master files are lower-cased when they are read.
    #[must_use]
    pub fn wire(self) -> &'a [u8] {
        self.wire
    }

    /// Gives the parts of the wire form that are names which may be compressed: those of the types of RFC 1035 (RFC 3597
    /// section 4), in order.
    pub fn compressible(self) -> impl Iterator<Item = Range<usize>> + 'a {
        let (start, count) = compressible_names(self.rtype);
        names_at(self.wire, start, count)
    }

    /// Gives the name that a client looks up next, and whose addresses belong in the additional section: the name server,
    /// the exchange, the target. In lower case. `None` for types without one.
    #[must_use]
    pub fn target(self) -> Option<NameRef<'a>> {
        let (start, count) = match self.rtype {
            RecordType::NS
            | RecordType::CNAME
            | RecordType::PTR
            | RecordType::DNAME
            | RecordType::MX
            | RecordType::SRV
            | RecordType::SVCB
            | RecordType::HTTPS
            | RecordType::KX
            | RecordType::AFSDB => plain_names(self.rtype),
            _ => return None,
        };
        let range = names_at(self.wire, start, count).next()?;
        self.wire.get(range).map(NameRef::from_checked)
    }
}

/// Tells where names that may be compressed begin in the rdata of a type, and how many follow one another there.
fn compressible_names(rtype: RecordType) -> (usize, usize) {
    match rtype {
        RecordType::NS
        | RecordType::MD
        | RecordType::MF
        | RecordType::CNAME
        | RecordType::MB
        | RecordType::MG
        | RecordType::MR
        | RecordType::PTR => (0, 1),
        RecordType::SOA | RecordType::MINFO => (0, 2),
        RecordType::MX => (2, 1),
        _ => (0, 0),
    }
}

/// Tells where names begin in the rdata of a type whose names stand at a fixed place, and how many follow one another
/// there, compressible or not. NAPTR, IPSECKEY and HIP have theirs at no fixed place.
pub(super) fn plain_names(rtype: RecordType) -> (usize, usize) {
    match rtype {
        RecordType::DNAME => (0, 1),
        RecordType::RP => (0, 2),
        RecordType::AFSDB | RecordType::KX | RecordType::SVCB | RecordType::HTTPS => (2, 1),
        RecordType::SRV => (6, 1),
        _ => compressible_names(rtype),
    }
}

/// Finds up to `count` uncompressed names, one after the other from `start` on; ends early where the octets are no name.
pub(super) fn names_at(
    wire: &[u8],
    start: usize,
    count: usize,
) -> impl Iterator<Item = Range<usize>> {
    let mut at = start;
    (0..count).map_while(move |_| {
        let begin = at;
        loop {
            let length = usize::from(*wire.get(at)?);
            at += length + 1;
            if length == 0 {
                return Some(begin..at);
            }
        }
    })
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
        let mut packed = Vec::with_capacity(rdata.iter().map(|wire| wire.len() + 2).sum());
        let mut seen = HashSet::new();
        for (position, wire) in rdata.iter().enumerate() {
            let length = u16::try_from(wire.len()).ok()?;
            let earlier = || rdata.iter().take(position).any(|other| other == wire);
            let is_double = if rdata.len() < MANY {
                earlier()
            } else {
                !seen.insert(wire)
            };
            if !is_double {
                packed.extend_from_slice(&length.to_be_bytes());
                packed.extend_from_slice(wire);
            }
        }
        (!packed.is_empty()).then(|| Self {
            rtype,
            ttl,
            rdata: packed.into(),
        })
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
        let mut rest: &[u8] = &self.rdata;
        std::iter::from_fn(move || {
            let (length, tail) = rest.split_first_chunk()?;
            let (wire, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            rest = tail;
            Some(RdataRef {
                rtype: self.rtype,
                wire,
            })
        })
    }

    /// Counts the records; at least 1.
    #[must_use]
    pub fn count(&self) -> usize {
        self.iter().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(rtype: RecordType, rdata: &[&[u8]]) -> Option<Rrset> {
        let rdata: Vec<Rdata> = rdata.iter().map(|&wire| wire.into()).collect();
        Rrset::new(rtype, Ttl::new(60).unwrap(), &rdata)
    }

    #[test]
    fn order_stays_and_duplicates_go() {
        let rrset = set(RecordType::A, &[b"bbbb", b"aaaa", b"bbbb"]).unwrap();
        let wires: Vec<_> = rrset.iter().map(RdataRef::wire).collect();
        assert_eq!(wires, [b"bbbb", b"aaaa"]);
        assert_eq!((rrset.count(), rrset.ttl().seconds()), (2, 60));
        let many: Vec<Rdata> = (0..40u8).map(|octet| [octet % 20].into()).collect();
        let rrset = Rrset::new(RecordType::TXT, Ttl::MAX, &many).unwrap();
        assert!(rrset.iter().map(|rdata| rdata.wire()[0]).eq(0..20));
    }

    #[test]
    fn only_sets_that_can_be_sent_are_made() {
        assert_eq!(set(RecordType::A, &[]), None);
        assert_eq!(set(RecordType::TXT, &[&[0; 65536]]), None);
        assert_eq!(set(RecordType::TXT, &[&[0; 65535]]).unwrap().count(), 1);
        assert_eq!(set(RecordType(65280), &[b""]).unwrap().count(), 1);
    }

    #[test]
    fn names_are_marked_by_type() {
        let soa = [&b"\x01a\0\x01b\x01c\0"[..], &[0; 20]].concat();
        for (rtype, wire, marks, target) in [
            (RecordType::NS, &b"\x01a\0"[..], &[(0, 3)][..], Some("a")),
            (
                RecordType::MX,
                b"\0\x0a\x02mx\x01a\0",
                &[(2, 8)],
                Some("mx.a"),
            ),
            (RecordType::SOA, &soa, &[(0, 3), (3, 8)], None),
            (RecordType::MINFO, b"\0\x01b\0", &[(0, 1), (1, 4)], None),
            (RecordType::SRV, b"\0\0\0\0\0\0\x01a\0", &[], Some("a")),
            (RecordType::HTTPS, b"\0\x01\0\0\x03\0\0", &[], Some(".")),
            (RecordType::DNAME, b"\x01a\0", &[], Some("a")),
            (RecordType::TXT, b"\x01a", &[], None),
            (RecordType(65280), b"\x01a\0", &[], None),
        ] {
            let rrset = set(rtype, &[wire]).unwrap();
            let rdata = rrset.iter().next().unwrap();
            let found: Vec<_> = rdata
                .compressible()
                .map(|range| (range.start, range.end))
                .collect();
            assert_eq!(found, marks, "{rtype}");
            let shown = rdata.target().map(|name| name.to_string());
            assert_eq!(shown.as_deref(), target, "{rtype}");
        }
    }
}
