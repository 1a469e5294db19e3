//! What a million services have in common: policies written alike are one, and no name is claimed twice.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::config::spec::Node;

/// Two hashes under two random keys stand for a text: nobody can make two texts collide, and by chance none of 2^64 will.
#[derive(Debug, Default)]
struct Digest(RandomState, RandomState);

impl Digest {
    fn of(&self, octets: &[u8]) -> [u64; 2] {
        [self.0.hash_one(octets), self.1.hash_one(octets)]
    }
}

/// Values by how they were written: a text that comes again is neither read nor kept again.
#[derive(Debug)]
pub(super) struct Interned<T> {
    digest: Digest,
    /// Kept to be written anew for each node.
    form: Vec<u8>,
    values: HashMap<[u64; 2], T>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            digest: Digest::default(),
            form: Vec::new(),
            values: HashMap::new(),
        }
    }
}

impl<T: Clone> Interned<T> {
    /// Gives the value of a node; `read` makes it the first time. A node in which `read` finds a fault is read again each
    /// time it comes, so that each place has its fault.
    pub(super) fn get(
        &mut self,
        node: Node<'_, '_>,
        read: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        self.form.clear();
        node.write_form(&mut self.form);
        let key = self.digest.of(&self.form);
        if let Some(value) = self.values.get(&key) {
            return Some(value.clone());
        }
        let value = read()?;
        self.values.insert(key, value.clone());
        Some(value)
    }

    /// Iterates over the distinct values.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.values()
    }
}

/// Finds what comes twice.
#[derive(Debug, Default)]
pub(super) struct Seen {
    digest: Digest,
    first: HashMap<[u64; 2], u32>,
}

impl Seen {
    /// Notes a text of the service at `index`; gives the service that had it before.
    pub(super) fn note(&mut self, octets: &[u8], index: usize) -> Option<u32> {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let key = self.digest.of(octets);
        match self.first.entry(key) {
            std::collections::hash_map::Entry::Occupied(entry) => Some(*entry.get()),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(index);
                None
            }
        }
    }
}
