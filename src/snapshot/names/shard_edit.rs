//! Shards being changed, and how they are laid out when they are frozen.

use super::hash::NameHash;
use super::line::{Line, Steered, push};
use super::shard::{EMPTY, POSITION_BITS, POSITION_MASK, Record, Shard, first_slot, tag};
use crate::model::{NameRef, NodeIndex, ServiceIndex, ZoneIndex};

/// Octets of a record before its name.
const HEAD: usize = 16;
/// The zone of a record that is gone, until its shard is sealed.
const DEAD: u32 = u32::MAX;
/// The bit of the service word that says CNAME.
const CNAME: u32 = 1 << 31;

/// A shard being changed, or all names of a table that is made from nothing.
///
/// Records stand one after the other, little endian: zone `u32`, node `u32` (0 none, else one more than its index), service `u32`
/// (0 none, else one more than its index; the top bit: answered as a CNAME), children `u32`, then the name in wire form.
///
/// Its slots are wider than a frozen shard's: the lower half of the hash over the offset, so that growing reads no record.
#[derive(Debug, Default)]
pub(super) struct ShardEdit {
    slots: Vec<u64>,
    records: Vec<u8>,
    live: usize,
    dead: usize,
}

/// Octets of a name of common length.
const COMMON: usize = 40;
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
        // Room for two more names.
        let names = shard.len() + 2;
        let mut edit = Self::with_capacity(names, names * COMMON);
        for (name, entry) in shard.iter() {
            edit.live += 1;
            edit.append(hash_of(name.name()), name.name(), &entry.record());
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
    pub(super) fn seal(
        &self,
        hash_of: impl Fn(NameRef<'_>) -> NameHash,
        steered: SteeredOf<'_>,
    ) -> Shard {
        let records = self.records();
        let mut freezer = Freezer::of(steered);
        freezer.freeze(records.map(|(_, name, record)| (hash_of(name), name, record)))
    }

    /// Freezes into many shards: `shard_of` chooses one of `count`.
    pub(super) fn seal_into(
        &self,
        count: usize,
        (hash_of, shard_of): (impl Fn(NameRef<'_>) -> NameHash, impl Fn(NameHash) -> usize),
        steered: SteeredOf<'_>,
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
        let mut freezer = Freezer::of(steered);
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
        self.records.extend_from_slice(&encode(record));
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
        Some(decode(head))
    }

    fn store(&mut self, offset: u32, record: &Record) {
        let start = offset as usize;
        if let Some(head) = self.records.get_mut(start..start + HEAD) {
            head.copy_from_slice(&encode(record));
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

/// Walks records laid out one after the other, dead ones included: (offset, name, record).
fn records_of(records: &[u8]) -> impl Iterator<Item = (u32, NameRef<'_>, Record)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (head, rest) = records.get(at..)?.split_first_chunk::<HEAD>()?;
        let name = leading_name(rest)?;
        let offset = u32::try_from(at).ok()?;
        at += HEAD + name.as_wire().len();
        Some((offset, name, decode(head)))
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

/// Reads a record's head.
fn decode(head: &[u8; HEAD]) -> Record {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *head;
    let service = u32::from_le_bytes([i, j, k, l]);
    Record {
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
fn encode(record: &Record) -> [u8; HEAD] {
    let node = record.node.map_or(0, |node| node.0.wrapping_add(1));
    let service = record.service.map_or(0, |(index, is_cname)| {
        (index.0.wrapping_add(1) & !CNAME) | if is_cname { CNAME } else { 0 }
    });
    let mut head = [0; HEAD];
    let words = [record.zone.0, node, service, record.children];
    for (to, word) in head.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    head
}

/// Gives what a query reads of a service; `None`: there is none, or it has more than that.
pub(in crate::snapshot) type SteeredOf<'f> = &'f dyn Fn(ServiceIndex) -> Option<Steered>;

/// Lays out frozen shards, with room that is used for one after the other.
struct Freezer<'f> {
    steered: SteeredOf<'f>,
    slots: Vec<u32>,
    /// Hash and position of each entry.
    hashes: Vec<(NameHash, u32)>,
    lines: Vec<Line>,
}

impl<'f> Freezer<'f> {
    fn of(steered: SteeredOf<'f>) -> Self {
        Self {
            steered,
            slots: Vec::new(),
            hashes: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Freezes records.
    fn freeze<'n>(&mut self, all: impl Iterator<Item = (NameHash, NameRef<'n>, Record)>) -> Shard {
        self.hashes.clear();
        for (hash, name, record) in all {
            let position = u32::try_from(self.lines.len())
                .ok()
                .filter(|&position| position < POSITION_MASK)
                .expect("a shard holds a 4096th of the names and never 16 million lines");
            self.hashes.push((hash, position));
            let steered = record.service.and_then(|(index, _)| (self.steered)(index));
            push(&mut self.lines, name, &record, steered);
        }
        if self.hashes.is_empty() {
            return Shard::default();
        }
        let count = slots_for(self.hashes.len());
        let mask = count - 1;
        self.slots.clear();
        self.slots.resize(count, EMPTY);
        for &(hash, position) in &self.hashes {
            let mut at = first_slot(hash) as usize & mask;
            while self.slots.get(at).is_some_and(|&slot| slot != EMPTY) {
                at = (at + 1) & mask;
            }
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = tag(hash) << POSITION_BITS | position;
            }
        }
        Shard::new(self.slots.as_slice().into(), self.lines.drain(..).collect())
    }
}

/// Gives the number of slots for that many names: a power of two, at most three quarters full, never without a free one.
fn slots_for(names: usize) -> usize {
    (names * 4).div_ceil(3).next_power_of_two().max(2)
}
