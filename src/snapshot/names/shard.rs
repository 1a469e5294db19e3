//! One shard of the table of names: an open table of slots, and the lines that they lead to.
//!
//! A slot is a tag of 8 bits (from the name's hash) over 24 bits of position among the lines, or [`EMPTY`]. There is a power of
//! two of them.

use std::sync::Arc;

use super::hash::NameHash;
use super::line::{Entry, Joined, Line, entries, entry_of, prefetch_entry};
use crate::model::{NameRef, NodeIndex, ServiceIndex, ZoneIndex};
use crate::prefix::prefetch;
use crate::zone::Found;

/// A free slot.
pub(super) const EMPTY: u32 = u32::MAX;
/// Bits of a slot that are the position; above them stands the tag.
pub(super) const POSITION_BITS: u32 = 24;
/// The position's bits set.
pub(super) const POSITION_MASK: u32 = (1 << POSITION_BITS) - 1;

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
}

/// A slot whose tag matched, and the position that stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    slot: u32,
    position: u32,
}

/// A shard, frozen. Cheap to clone. An empty one has no slots at all.
#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    slots: Arc<[u32]>,
    lines: Arc<[Line]>,
}

impl Shard {
    /// Makes a shard of slots, a power of two of them, and lines.
    pub(super) fn new(slots: Arc<[u32]>, lines: Arc<[Line]>) -> Self {
        Self { slots, lines }
    }

    /// Counts the names. Walks over all.
    pub(super) fn len(&self) -> usize {
        let lines = self.lines.iter();
        lines.filter(|line| matches!(line, Line::Entry(_))).count()
    }

    /// Gives the octets held.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.slots) + size_of_val(&*self.lines)
    }

    /// Tells whether this is the same allocation as another shard's.
    #[cfg(test)]
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.lines, &other.lines)
    }

    /// Hints that the slot of a hash will be read.
    #[inline]
    pub(super) fn prefetch(&self, hash: NameHash) {
        prefetch(&self.slots, (first_slot(hash) & self.mask()) as usize);
    }

    /// Finds the first slot with this hash's tag, and hints that the entry of a name of that many octets will be read.
    #[inline]
    pub(super) fn candidate(&self, hash: NameHash, octets: usize) -> Option<Hit> {
        let hit = self.probe(hash, first_slot(hash))?;
        prefetch_entry(&self.lines, hit.position as usize, octets);
        Some(hit)
    }

    /// Finds exactly this name, beginning at a slot that [`Shard::candidate`] gave.
    #[inline]
    pub(super) fn confirm(&self, hash: NameHash, hit: Hit, name: NameRef<'_>) -> Option<&Entry> {
        let mut hit = hit;
        loop {
            if let Some(entry) = entry_of(&self.lines, hit.position as usize, name) {
                return Some(entry);
            }
            hit = self.probe(hash, hit.slot.wrapping_add(1))?;
        }
    }

    /// Iterates over the names with what stands there, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Joined, &Entry)> {
        entries(&self.lines)
    }

    /// Finds the next slot with this hash's tag, from `slot` on, up to the first free one.
    #[inline]
    fn probe(&self, hash: NameHash, slot: u32) -> Option<Hit> {
        let tag = tag(hash);
        let mut slot = slot & self.mask();
        loop {
            let entry = *self.slots.get(slot as usize)?;
            if entry == EMPTY {
                return None;
            }
            if entry >> POSITION_BITS == tag {
                let position = entry & POSITION_MASK;
                return Some(Hit { slot, position });
            }
            slot = (slot + 1) & self.mask();
        }
    }

    /// Gives the slots less one: there are at most as many as bits of a position can tell apart, twice over.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "there are far fewer slots")]
    fn mask(&self) -> u32 {
        (self.slots.len() as u32).wrapping_sub(1)
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
