//! A hash index of dense numbers that keeps no copy of its keys.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Parts of the index. A part grows on its own, so that no single insertion rehashes a million entries.
const PARTS: usize = 256;

/// Numbers by the hash of their key. The keys live in the table that the numbers point into.
#[derive(Debug)]
pub struct Lookup {
    parts: Box<[HashTable<u32>]>,
    /// Seeded per process: keys come from outside.
    hasher: RandomState,
}

impl Default for Lookup {
    fn default() -> Self {
        Self {
            parts: std::iter::repeat_with(HashTable::new).take(PARTS).collect(),
            hasher: RandomState::default(),
        }
    }
}

impl Lookup {
    /// Hashes a key.
    #[must_use]
    pub fn hash(&self, key: &(impl Hash + ?Sized)) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Gives the hasher, for the `hash_of` of this lookup's other functions.
    #[must_use]
    pub fn hasher(&self) -> RandomState {
        self.hasher.clone()
    }

    /// Counts the numbers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(HashTable::len).sum()
    }

    /// Tells whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(HashTable::is_empty)
    }

    /// Finds the number whose key `is` accepts.
    pub fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        self.parts
            .get(part(hash))?
            .find(hash, |&number| is(number))
            .copied()
    }

    /// Adds a number whose key is not there yet. `hash_of` hashes the key of a number again.
    pub fn insert(&mut self, hash: u64, number: u32, hash_of: impl Fn(u32) -> u64) {
        if let Some(part) = self.parts.get_mut(part(hash)) {
            part.insert_unique(hash, number, |&number| hash_of(number));
        }
    }

    /// Takes a number out.
    pub fn remove(&mut self, hash: u64, number: u32) {
        let part = self.parts.get_mut(part(hash));
        if let Some(Ok(entry)) = part.map(|part| part.find_entry(hash, |&other| other == number)) {
            entry.remove();
        }
    }

    /// Makes room for that many more numbers. `hash_of` hashes the key of a number again.
    pub fn reserve(&mut self, more: usize, hash_of: impl Fn(u32) -> u64) {
        // Hashes spread evenly: an eighth more than the mean is enough for nearly every part.
        let each = more / PARTS + more / PARTS / 8;
        for part in &mut self.parts {
            part.reserve(each, |&number| hash_of(number));
        }
    }
}

/// Gives the part of a hash: by bits that hashbrown does not use for small tables.
fn part(hash: u64) -> usize {
    usize::from((hash >> 40).to_le_bytes()[0])
}
