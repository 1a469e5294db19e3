//! The table: which shard, and the stages of a lookup.

use std::fmt;
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

use super::hash::NameHash;
use super::line::{Entry, Steered};
use super::shard::{Hit, Record, Shard};
use crate::model::NameRef;
use crate::snapshot::grouped::Grouped;
use crate::zone::{Found, NameTree};

/// Fewest shards, as bits of the hash: 64, one group.
pub(super) const MIN_BITS: u32 = 6;
/// Most shards, as bits of the hash: 4096. What lookups read of the list of shards, 32 octets each, then fits into the second
/// cache with room for others.
pub(super) const MAX_BITS: u32 = 12;
/// Names a shard is made for.
const PER_SHARD: usize = 64;
/// Names a shard may have on average before there are more shards, as long as there may be more.
pub(super) const FULL_SHARD: usize = 256;

/// A record that may be the one looked for: its tag matches, as one in 256 others does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate(Hit);

/// All owner names of all zones, empty non-terminals included. Cheap to clone: shards are shared.
///
/// Names are spread over shards by their top hash bits. A change copies the shards it touches, about 256 names each, and the
/// part of the list that each is in.
#[derive(Clone)]
pub struct NameTable {
    /// A power of two of shards.
    pub(super) shards: Grouped<Shard>,
    /// 64 less the bits that choose the shard.
    pub(super) shift: u32,
    pub(super) len: usize,
    /// The same in all tables made of one another; random otherwise, for names come from outside.
    pub(super) hasher: RandomState,
}

impl Default for NameTable {
    fn default() -> Self {
        Self::with_bits(MIN_BITS, RandomState::default())
    }
}

impl fmt::Debug for NameTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameTable")
            .field("len", &self.len)
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}

impl NameTable {
    /// Hashes a name in lower case, wire form.
    #[must_use]
    #[inline]
    pub fn hash(&self, name: NameRef<'_>) -> NameHash {
        hash(&self.hasher, name)
    }

    /// First stage: hints that the slot of this hash will be read.
    #[inline]
    pub fn prefetch(&self, hash: NameHash) {
        if let Some(shard) = self.shard(hash) {
            shard.prefetch(hash);
        }
    }

    /// Second stage: reads the slot, hints that the entry of a name of that many octets will be read. `None`: the name is not in
    /// the table.
    #[must_use]
    #[inline]
    pub fn candidate(&self, hash: NameHash, octets: usize) -> Option<Candidate> {
        self.shard(hash)?.candidate(hash, octets).map(Candidate)
    }

    /// Third stage: finds exactly this name, beginning at the candidate; with what a query reads of its service, unless that is one
    /// of the few that have more.
    #[must_use]
    #[inline]
    pub fn confirm(
        &self,
        hash: NameHash,
        candidate: Option<Candidate>,
        name: NameRef<'_>,
    ) -> Option<(Found, Option<&Steered>)> {
        let entry = self.shard(hash)?.confirm(hash, candidate?.0, name)?;
        Some((entry.record().found(), entry.steered()))
    }

    /// Counts the names, empty non-terminals included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Tells whether no zone is served.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives the octets held.
    #[must_use]
    pub fn memory(&self) -> usize {
        let shards: usize = self.shards.iter().map(Shard::memory).sum();
        shards + self.shards.memory()
    }

    /// Tells whether no shard differs in allocation from another table's.
    #[cfg(test)]
    pub(in crate::snapshot) fn is_shared_with(&self, other: &Self) -> bool {
        self.shards.is_shared_with(&other.shards)
    }

    /// Finds a name's whole record.
    pub(super) fn record(&self, name: NameRef<'_>) -> Option<Record> {
        Some(self.entry(name)?.record())
    }

    /// Finds a name.
    fn entry(&self, name: NameRef<'_>) -> Option<&Entry> {
        let hash = self.hash(name);
        let shard = self.shard(hash)?;
        shard.confirm(hash, shard.candidate(hash, 0)?, name)
    }

    /// Makes an empty table.
    pub(super) fn with_bits(bits: u32, hasher: RandomState) -> Self {
        let mut shards = Grouped::default().edit();
        // Makes all up to the last.
        shards.get_mut((1 << bits) - 1);
        Self {
            shards: shards.seal(),
            shift: u64::BITS - bits,
            len: 0,
            hasher,
        }
    }

    #[inline]
    fn shard(&self, hash: NameHash) -> Option<&Shard> {
        self.shards.get(shard_of(hash, self.shift))
    }
}

impl NameTree for NameTable {
    #[inline]
    fn find(&self, name: NameRef<'_>) -> Option<Found> {
        Some(self.entry(name)?.record().found())
    }
}

/// Hashes a name in lower case.
#[inline]
pub(super) fn hash(hasher: &RandomState, name: NameRef<'_>) -> NameHash {
    let mut hasher = hasher.build_hasher();
    hasher.write(name.as_wire());
    NameHash(hasher.finish())
}

/// Gives the position of the shard of a hash.
#[inline]
pub(super) fn shard_of(hash: NameHash, shift: u32) -> usize {
    usize::try_from(hash.0 >> shift).unwrap_or(usize::MAX)
}

/// Gives the bits of the hash that choose the shard, for that many names.
pub(super) fn bits_for(names: usize) -> u32 {
    let shards = names.div_ceil(PER_SHARD).max(1);
    shards.next_power_of_two().ilog2().clamp(MIN_BITS, MAX_BITS)
}
