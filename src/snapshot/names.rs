//! Owner name to service or node: shards by hash bits, each an open table with flat records.

use crate::model::{LowerName, NameRef};
use crate::zone::{Found, NameTree};

/// A name's hash, seeded per process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameHash(pub u64);

/// A record that may be the one looked for: its tag matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate(pub u32);

/// All owner names of all zones, empty non-terminals included.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    todo: (),
}

impl NameTable {
    /// Hashes a name in lower case, wire form.
    #[must_use]
    #[inline]
    pub fn hash(&self, name: NameRef<'_>) -> NameHash {
        let _ = name;
        todo!()
    }

    /// First stage: hints that the slot of this hash will be read.
    #[inline]
    pub fn prefetch(&self, hash: NameHash) {
        let _ = hash;
    }

    /// Second stage: reads the slot, hints that the record will be read.
    #[must_use]
    #[inline]
    pub fn candidate(&self, hash: NameHash) -> Option<Candidate> {
        let _ = hash;
        todo!()
    }

    /// Third stage: finds exactly this name, beginning at the candidate.
    #[must_use]
    #[inline]
    pub fn confirm(
        &self,
        hash: NameHash,
        candidate: Option<Candidate>,
        name: NameRef<'_>,
    ) -> Option<Found> {
        let _ = (hash, candidate, name);
        todo!()
    }

    /// Counts the names, empty non-terminals included.
    #[must_use]
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Tells whether no zone is served.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl NameTree for NameTable {
    fn find(&self, name: NameRef<'_>) -> Option<Found> {
        let hash = self.hash(name);
        self.confirm(hash, self.candidate(hash), name)
    }
}

/// Keeps the import while this is a stub.
#[expect(dead_code, reason = "stub")]
fn stub(_: LowerName) {}
