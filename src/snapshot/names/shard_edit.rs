//! Shards being changed, and how they are laid out when they are frozen.

use super::hash::NameHash;
use super::shard::{
    EMPTY, HEAD, OFFSET_BITS, OFFSET_MASK, Record, Shard, first_slot, records_of, tag,
};
use crate::model::NameRef;

/// The zone of a record that is gone, until its shard is sealed.
const DEAD: u32 = u32::MAX;

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
        let records = shard.records();
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
        Shard::new(&self.data, u32::try_from(mask).unwrap_or(u32::MAX), live)
    }
}

/// Gives the number of slots for that many names: a power of two, at most three quarters full, never without a free one.
fn slots_for(names: usize) -> usize {
    (names * 4).div_ceil(3).next_power_of_two().max(2)
}
