//! One shard of the table of names: an open table and flat records in one allocation.
//!
//! Layout, little endian: the slots, a power of two of `u32`, then the records. A slot is a tag of 8 bits (from the name's
//! hash) over 24 bits of offset into the records, or [`EMPTY`]. A record: zone `u32`, node `u32` (0 none, else one more
//! than its index), service `u32` (0 none, else one more than its index; the top bit: answered as a CNAME), children `u32`
//! (names one label longer), then the name in wire form. A wire form ends in its own zero and no wire form begins with
//! another, so that a name is found by comparing as many octets as it has.

use std::sync::Arc;

use super::names::NameHash;
use crate::model::{NameRef, NodeIndex, ServiceIndex, ZoneIndex};
use crate::prefix::prefetch;
use crate::zone::Found;

/// Octets of a record before its name.
const HEAD: usize = 16;
/// Octets of a slot.
const SLOT: usize = 4;
/// A free slot.
const EMPTY: u32 = u32::MAX;
/// Bits of a slot that are the offset; above them stands the tag.
const OFFSET_BITS: u32 = 24;
/// The offset's bits set.
const OFFSET_MASK: u32 = (1 << OFFSET_BITS) - 1;
/// The zone of a record that is gone, until its shard is sealed.
const DEAD: u32 = u32::MAX;
/// The bit of the service word that says CNAME.
const CNAME: u32 = 1 << 31;

/// A record without its name. All parts but the zone zero: an empty non-terminal without anything below, which must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) zone: ZoneIndex,
    pub(super) node: Option<NodeIndex>,
    /// The service, and whether it is answered as a CNAME.
    pub(super) service: Option<(ServiceIndex, bool)>,
    /// Names in the table that are one label longer.
    pub(super) children: u32,
}

impl Record {
    /// Tells whether the name need not exist.
    pub(super) fn is_vacant(&self) -> bool {
        self.node.is_none() && self.service.is_none() && self.children == 0
    }

    /// Gives what a lookup says of it.
    #[inline]
    pub(super) fn found(&self) -> Found {
        Found {
            zone: self.zone,
            node: self.node,
            service: self.service.map(|(index, _)| index),
            is_cname: self.service.is_some_and(|(_, is_cname)| is_cname),
        }
    }

    #[inline]
    fn decode(head: &[u8; HEAD]) -> Self {
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

    fn encode(&self) -> [u8; HEAD] {
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
                && rest.starts_with(name.as_wire())
            {
                return Some(Record::decode(head));
            }
            hit = self.probe(hash, hit.slot.wrapping_add(1))?;
        }
    }

    /// Reads the service of a slot's record, whatever its name.
    #[inline]
    pub(super) fn service_at(&self, hit: Hit) -> Option<ServiceIndex> {
        let (head, _) = self.record(hit.offset)?;
        Record::decode(head).service.map(|(index, _)| index)
    }

    /// Iterates over the records with their names, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (NameRef<'_>, Record)> {
        let records = self.data.get(self.record_at(0)..).unwrap_or(&[]);
        records_of(records).map(|(_, name, record)| (name, record))
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

/// Gives the tag of a hash: eight bits that choose neither shard nor slot.
#[inline]
fn tag(hash: NameHash) -> u32 {
    u32::from((hash.0 >> 32).to_le_bytes()[0])
}

/// Gives the slot at which a hash begins, before masking.
#[inline]
fn first_slot(hash: NameHash) -> u32 {
    let [a, b, c, d, ..] = hash.0.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Walks records laid out one after the other, dead ones included: (offset, name, record).
fn records_of(records: &[u8]) -> impl Iterator<Item = (u32, NameRef<'_>, Record)> {
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

/// A shard being changed, or all names of a table that is made from nothing.
///
/// Its slots are wider than a frozen shard's: the lower half of the hash over the offset, so that growing reads no record.
#[derive(Debug, Default)]
pub(super) struct ShardEdit {
    slots: Vec<u64>,
    records: Vec<u8>,
    live: usize,
    dead: usize,
}

/// A free slot of a [`ShardEdit`]: no offset is that high.
const OPEN_EMPTY: u64 = u64::MAX;

impl ShardEdit {
    /// Makes an empty one with room for that many names and octets of names.
    pub(super) fn with_capacity(names: usize, octets: usize) -> Self {
        Self {
            slots: vec![OPEN_EMPTY; slots_for(names)],
            records: Vec::with_capacity(names * HEAD + octets),
            ..Self::default()
        }
    }

    /// Opens a frozen shard. `hash_of` hashes a name again.
    pub(super) fn open(shard: &Shard, hash_of: impl Fn(NameRef<'_>) -> NameHash) -> Self {
        let records = shard.data.get(shard.record_at(0)..).unwrap_or(&[]);
        // Room for two more names of common length.
        let octets = records.len() - records.len().min(shard.len() * HEAD) + 96;
        let mut edit = Self::with_capacity(shard.len() + 2, octets);
        edit.records.extend_from_slice(records);
        edit.live = shard.len();
        for (offset, name, _) in records_of(records) {
            occupy(&mut edit.slots, open_slot(hash_of(name), offset));
        }
        edit
    }

    /// Counts the names.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// Finds a name's record.
    pub(super) fn get(&self, hash: NameHash, name: NameRef<'_>) -> Option<Record> {
        let record = self.load(self.find(hash, name)?)?;
        (record.zone.0 != DEAD).then_some(record)
    }

    /// Changes a name's record, made if it is not there, and drops it if it is vacant then. Gives whether the name existed
    /// before and after.
    pub(super) fn change(
        &mut self,
        hash: NameHash,
        name: NameRef<'_>,
        fresh: Record,
        change: impl FnOnce(&mut Record),
    ) -> (bool, bool) {
        let found = self.find(hash, name);
        let held = found
            .and_then(|offset| self.load(offset))
            .filter(|record| record.zone.0 != DEAD);
        let mut record = held.unwrap_or(fresh);
        change(&mut record);
        let (before, after) = (held.is_some(), !record.is_vacant());
        match (before, after) {
            // Stays as absent, or as dead, as it is.
            (false, false) => return (false, false),
            (false, true) => {
                self.live += 1;
                if found.is_some() {
                    self.dead -= 1;
                }
            }
            (true, false) => {
                self.live -= 1;
                self.dead += 1;
                record.zone.0 = DEAD;
            }
            (true, true) => {}
        }
        match found {
            Some(offset) => self.store(offset, &record),
            None => self.append(hash, name, &record),
        }
        (before, after)
    }

    /// Freezes into one shard. Records that are gone are left out, and slots fit the number of names.
    pub(super) fn seal(&self, hash_of: impl Fn(NameRef<'_>) -> NameHash) -> Shard {
        let records = self.records();
        let mut freezer = Freezer::default();
        freezer.freeze(records.map(|(_, name, record)| (hash_of(name), name, record)))
    }

    /// Freezes into many shards: `shard_of` chooses one of `count`.
    pub(super) fn seal_into(
        &self,
        count: usize,
        hash_of: impl Fn(NameRef<'_>) -> NameHash,
        shard_of: impl Fn(NameHash) -> usize,
    ) -> Vec<Shard> {
        // Offsets sorted by shard: counted, then placed.
        let mut ends = vec![0_usize; count];
        for (_, name, _) in self.records() {
            if let Some(end) = ends.get_mut(shard_of(hash_of(name))) {
                *end += 1;
            }
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut offsets = vec![0_u32; start];
        for (offset, name, _) in self.records() {
            if let Some(end) = ends.get_mut(shard_of(hash_of(name))) {
                if let Some(place) = offsets.get_mut(*end) {
                    *place = offset;
                }
                *end += 1;
            }
        }
        let mut freezer = Freezer::default();
        let mut start = 0;
        let shards = ends.into_iter().map(|end| {
            let own = offsets.get(start..end).unwrap_or(&[]);
            start = end;
            freezer.freeze(own.iter().filter_map(|&offset| {
                let rest = self.records.get(offset as usize..)?;
                let (_, name, record) = records_of(rest).next()?;
                Some((hash_of(name), name, record))
            }))
        });
        shards.collect()
    }

    /// Walks over the records that are not gone.
    fn records(&self) -> impl Iterator<Item = (u32, NameRef<'_>, Record)> {
        records_of(&self.records).filter(|(_, _, record)| record.zone.0 != DEAD)
    }

    /// Writes a new record, already counted, and its slot.
    fn append(&mut self, hash: NameHash, name: NameRef<'_>, record: &Record) {
        let offset = u32::try_from(self.records.len())
            .ok()
            .filter(|&offset| offset < u32::MAX)
            .expect("all names of one table have less than 4 GiB");
        self.records.extend_from_slice(&record.encode());
        self.records.extend_from_slice(name.as_wire());
        let occupied = self.live + self.dead;
        if slots_for(occupied) > self.slots.len() {
            self.grow(slots_for(occupied * 2));
        }
        occupy(&mut self.slots, open_slot(hash, offset));
    }

    /// Makes more slots.
    fn grow(&mut self, count: usize) {
        let old = std::mem::replace(&mut self.slots, vec![OPEN_EMPTY; count]);
        for slot in old.into_iter().filter(|&slot| slot != OPEN_EMPTY) {
            occupy(&mut self.slots, slot);
        }
    }

    /// Finds the offset of a name's record, also of one that is gone.
    fn find(&self, hash: NameHash, name: NameRef<'_>) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = first_slot(hash) as usize & mask;
        loop {
            let slot = *self.slots.get(at)?;
            if slot == OPEN_EMPTY {
                return None;
            }
            let (tag, offset) = split_open(slot);
            if tag == first_slot(hash)
                && self
                    .records
                    .get(offset as usize + HEAD..)
                    .is_some_and(|rest| rest.starts_with(name.as_wire()))
            {
                return Some(offset);
            }
            at = (at + 1) & mask;
        }
    }

    fn load(&self, offset: u32) -> Option<Record> {
        let head = self.records.get(offset as usize..)?.first_chunk()?;
        Some(Record::decode(head))
    }

    fn store(&mut self, offset: u32, record: &Record) {
        let start = offset as usize;
        if let Some(head) = self.records.get_mut(start..start + HEAD) {
            head.copy_from_slice(&record.encode());
        }
    }
}

/// Joins hash and offset to a slot of a [`ShardEdit`].
fn open_slot(hash: NameHash, offset: u32) -> u64 {
    u64::from(first_slot(hash)) << 32 | u64::from(offset)
}

/// Splits a slot of a [`ShardEdit`] into the lower half of the hash and the offset.
fn split_open(slot: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = slot.to_le_bytes();
    (
        u32::from_le_bytes([e, f, g, h]),
        u32::from_le_bytes([a, b, c, d]),
    )
}

/// Puts a slot into the first free place of its hash. There always is one.
fn occupy(slots: &mut [u64], slot: u64) {
    let mask = slots.len().wrapping_sub(1);
    let mut at = split_open(slot).0 as usize & mask;
    while let Some(place) = slots.get_mut(at) {
        if *place == OPEN_EMPTY {
            *place = slot;
            return;
        }
        at = (at + 1) & mask;
    }
}

/// Lays out frozen shards, with room that is used for one after the other.
#[derive(Debug, Default)]
struct Freezer {
    slots: Vec<u32>,
    /// Hash and offset of each record.
    hashes: Vec<(NameHash, u32)>,
    records: Vec<u8>,
    data: Vec<u8>,
}

impl Freezer {
    /// Freezes records.
    fn freeze<'n>(&mut self, all: impl Iterator<Item = (NameHash, NameRef<'n>, Record)>) -> Shard {
        self.hashes.clear();
        self.records.clear();
        for (hash, name, record) in all {
            let offset = u32::try_from(self.records.len())
                .ok()
                .filter(|&offset| offset < OFFSET_MASK)
                .expect("a shard holds a 4096th of the names and never 16 MiB");
            self.hashes.push((hash, offset));
            self.records.extend_from_slice(&record.encode());
            self.records.extend_from_slice(name.as_wire());
        }
        let Ok(live @ 1..) = u32::try_from(self.hashes.len()) else {
            return Shard::default();
        };
        let count = slots_for(self.hashes.len());
        let mask = count - 1;
        self.slots.clear();
        self.slots.resize(count, EMPTY);
        for &(hash, offset) in &self.hashes {
            let mut at = first_slot(hash) as usize & mask;
            while self.slots.get(at).is_some_and(|&slot| slot != EMPTY) {
                at = (at + 1) & mask;
            }
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = tag(hash) << OFFSET_BITS | offset;
            }
        }
        self.data.clear();
        for slot in &self.slots {
            self.data.extend_from_slice(&slot.to_le_bytes());
        }
        self.data.extend_from_slice(&self.records);
        Shard {
            data: Arc::from(&self.data[..]),
            mask: u32::try_from(mask).unwrap_or(u32::MAX),
            live,
        }
    }
}

/// Gives the number of slots for that many names: a power of two, at most three quarters full, never without a free one.
fn slots_for(names: usize) -> usize {
    (names * 4).div_ceil(3).next_power_of_two().max(2)
}
