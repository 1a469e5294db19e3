//! One shard of the table of names: an open table and flat records in one allocation.
//!
//! Layout, little endian: the slots, a power of two of `u32`, then the records. A slot is a tag of 8 bits (from the name's
//! hash) over 24 bits of offset into the records, or [`EMPTY`]. A record: zone `u32`, node `u32` (0 none, else one more
//! than its index), service `u32` (0 none, else one more than its index; the top bit: answered as a CNAME), children `u32`
//! (names one label longer), then the name in wire form. A wire form ends in its own zero and no wire form begins with
//! another, so that a name is found by comparing as many octets as it has.

use std::sync::Arc;

use super::hash::NameHash;
use crate::model::{NameRef, NodeIndex, ServiceIndex, ZoneIndex};
use crate::prefix::prefetch;
use crate::zone::Found;

/// Octets of a record before its name.
pub(super) const HEAD: usize = 16;
/// Octets of a slot.
pub(super) const SLOT: usize = 4;
/// A free slot.
pub(super) const EMPTY: u32 = u32::MAX;
/// Bits of a slot that are the offset; above them stands the tag.
pub(super) const OFFSET_BITS: u32 = 24;
/// The offset's bits set.
pub(super) const OFFSET_MASK: u32 = (1 << OFFSET_BITS) - 1;
/// The bit of the service word that says CNAME.
const CNAME: u32 = 1 << 31;

/// A record without its name. All parts but the zone zero: an empty non-terminal without anything below, which must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::snapshot) struct Record {
    pub(in crate::snapshot) zone: ZoneIndex,
    pub(in crate::snapshot) node: Option<NodeIndex>,
    /// The service, and whether it is answered as a CNAME.
    pub(in crate::snapshot) service: Option<(ServiceIndex, bool)>,
    /// Names in the table that are one label longer.
    pub(in crate::snapshot) children: u32,
}

impl Record {
    /// Tells whether the name need not exist.
    pub(in crate::snapshot) fn is_vacant(&self) -> bool {
        self.node.is_none() && self.service.is_none() && self.children == 0
    }

    /// Gives what a lookup says of it.
    #[inline]
    pub(in crate::snapshot) fn found(&self) -> Found {
        Found {
            zone: self.zone,
            node: self.node,
            service: self.service.map(|(index, _)| index),
            is_cname: self.service.is_some_and(|(_, is_cname)| is_cname),
        }
    }

    /// Reads a record's head.
    #[inline]
    pub(super) fn decode(head: &[u8; HEAD]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *head;
        let service = u32::from_le_bytes([i, j, k, l]);
        Self {
            zone: ZoneIndex(u32::from_le_bytes([a, b, c, d])),
            node: u32::from_le_bytes([e, f, g, h])
                .checked_sub(1)
                .map(NodeIndex),
            service: (service & !CNAME)
                .checked_sub(1)
                .map(|index| (ServiceIndex(index), service & CNAME != 0)),
            children: u32::from_le_bytes([m, n, o, p]),
        }
    }

    /// Writes a record's head.
    pub(super) fn encode(&self) -> [u8; HEAD] {
        let node = self.node.map_or(0, |node| node.0.wrapping_add(1));
        let service = self.service.map_or(0, |(index, is_cname)| {
            (index.0.wrapping_add(1) & !CNAME) | if is_cname { CNAME } else { 0 }
        });
        let mut head = [0; HEAD];
        let words = [self.zone.0, node, service, self.children];
        for (to, word) in head.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        head
    }
}

/// A slot whose tag matched, and the offset that stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) slot: u32,
    pub(super) offset: u32,
}

/// A shard, frozen. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    data: Arc<[u8]>,
    /// Slots less one. An empty shard has no slots at all.
    mask: u32,
    /// Records.
    live: u32,
}

impl Shard {
    /// Makes a shard of its layout, with that many slots less one and that many records.
    pub(super) fn new(data: &[u8], mask: u32, live: u32) -> Self {
        let data = data.into();
        Self { data, mask, live }
    }

    /// Gives the records, laid out one after the other.
    pub(super) fn records(&self) -> &[u8] {
        self.data.get(self.record_at(0)..).unwrap_or(&[])
    }

    /// Counts the names.
    pub(super) fn len(&self) -> usize {
        self.live as usize
    }

    /// Gives the octets held.
    pub(super) fn memory(&self) -> usize {
        self.data.len()
    }

    /// Tells whether this is the same allocation as another shard's.
    #[cfg(test)]
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.data, &other.data)
    }

    /// Hints that the slot of a hash will be read.
    #[inline]
    pub(super) fn prefetch(&self, hash: NameHash) {
        prefetch(&self.data, (first_slot(hash) & self.mask) as usize * SLOT);
    }

    /// Finds the first slot with this hash's tag, and hints that its record will be read.
    #[inline]
    pub(super) fn candidate(&self, hash: NameHash) -> Option<Hit> {
        let hit = self.probe(hash, first_slot(hash))?;
        let at = self.record_at(hit.offset);
        prefetch(&self.data, at);
        // Records are not aligned: a name of common length may reach into the next line.
        prefetch(&self.data, at + 48);
        Some(hit)
    }

    /// Finds exactly this name, beginning at a slot that [`Shard::candidate`] gave.
    #[inline]
    pub(super) fn confirm(&self, hash: NameHash, hit: Hit, name: NameRef<'_>) -> Option<Record> {
        let mut hit = hit;
        loop {
            if let Some((head, rest)) = self.record(hit.offset)
                && begins_with(rest, name.as_wire())
            {
                return Some(Record::decode(head));
            }
            hit = self.probe(hash, hit.slot.wrapping_add(1))?;
        }
    }

    /// Iterates over the records with their names, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (NameRef<'_>, Record)> {
        records_of(self.records()).map(|(_, name, record)| (name, record))
    }

    /// Finds the next slot with this hash's tag, from `slot` on, up to the first free one.
    #[inline]
    fn probe(&self, hash: NameHash, slot: u32) -> Option<Hit> {
        let tag = tag(hash);
        let mut slot = slot & self.mask;
        loop {
            let start = slot as usize * SLOT;
            let octets = self.data.get(start..start + SLOT)?;
            let entry = u32::from_le_bytes(octets.try_into().ok()?);
            if entry == EMPTY {
                return None;
            }
            if entry >> OFFSET_BITS == tag {
                let offset = entry & OFFSET_MASK;
                return Some(Hit { slot, offset });
            }
            slot = (slot + 1) & self.mask;
        }
    }

    /// Gives a record's head, and all octets from its name on.
    #[inline]
    fn record(&self, offset: u32) -> Option<(&[u8; HEAD], &[u8])> {
        self.data.get(self.record_at(offset)..)?.split_first_chunk()
    }

    /// Gives the position of a record.
    #[inline]
    fn record_at(&self, offset: u32) -> usize {
        (self.mask as usize + 1) * SLOT + offset as usize
    }
}

/// Tells whether octets begin with others: eight at a time, the last eight once more. For names of common length a call of the
/// system's comparison costs more than this.
#[inline]
fn begins_with(octets: &[u8], start: &[u8]) -> bool {
    let Some(octets) = octets.get(..start.len()) else {
        return false;
    };
    match (octets.last_chunk::<8>(), start.last_chunk::<8>()) {
        (Some(last), Some(end)) => {
            let differs = |one: &[u8; 8], other: &[u8; 8]| {
                u64::from_ne_bytes(*one) ^ u64::from_ne_bytes(*other)
            };
            let (chunks, _) = octets.as_chunks();
            let (others, _) = start.as_chunks();
            let pairs = chunks.iter().zip(others);
            pairs.fold(differs(last, end), |bits, (one, other)| {
                bits | differs(one, other)
            }) == 0
        }
        _ => octets == start,
    }
}

/// Gives the tag of a hash: eight bits that choose neither shard nor slot.
#[inline]
pub(super) fn tag(hash: NameHash) -> u32 {
    u32::from((hash.0 >> 32).to_le_bytes()[0])
}

/// Gives the slot at which a hash begins, before masking.
#[inline]
pub(super) fn first_slot(hash: NameHash) -> u32 {
    let [a, b, c, d, ..] = hash.0.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Walks records laid out one after the other, dead ones included: (offset, name, record).
pub(super) fn records_of(records: &[u8]) -> impl Iterator<Item = (u32, NameRef<'_>, Record)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (head, rest) = records.get(at..)?.split_first_chunk::<HEAD>()?;
        let name = leading_name(rest)?;
        let offset = u32::try_from(at).ok()?;
        at += HEAD + name.as_wire().len();
        Some((offset, name, Record::decode(head)))
    })
}

/// Takes the wire-form name that octets begin with.
fn leading_name(octets: &[u8]) -> Option<NameRef<'_>> {
    let mut end = 0;
    loop {
        let length = usize::from(*octets.get(end)?);
        end += length + 1;
        if length == 0 {
            return Some(NameRef::from_checked(octets.get(..end)?));
        }
    }
}
