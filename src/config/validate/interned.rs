//! What a million services have in common: policies written alike are one, and no name is claimed twice.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};

use crate::config::spec::Node;

/// Two hashes under two random keys stand for a text: nobody can make two texts collide, and by chance none of 2^64 will.
#[derive(Debug, Default)]
struct Digest(RandomState, RandomState);

impl Digest {
    fn of(&self, octets: &[u8]) -> Key {
        Key(self.0.hash_one(octets), self.1.hash_one(octets))
    }
}

/// A digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(u64, u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// Hashes no more what is a hash already.
type Hashed = BuildHasherDefault<Given>;

/// A hash that is given.
#[derive(Default)]
struct Given(u64);

impl Hasher for Given {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        // Never called: a key is one `u64`. Right all the same.
        self.0 = octets
            .iter()
            .fold(self.0, |sum, octet| sum.rotate_left(8) ^ u64::from(*octet));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Values by how they were written: a text that comes again is neither read nor kept again.
#[derive(Debug)]
pub(super) struct Interned<T> {
    digest: Digest,
    /// Kept to be written anew for each node.
    form: Vec<u8>,
    /// The last one: what stands together in a file is often alike.
    last: Option<(Vec<u8>, T)>,
    values: HashMap<Key, T, Hashed>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            digest: Digest::default(),
            form: Vec::new(),
            last: None,
            values: HashMap::default(),
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
        if let Some((form, value)) = &self.last
            && *form == self.form
        {
            return Some(value.clone());
        }
        let key = self.digest.of(&self.form);
        let value = match self.values.get(&key) {
            Some(value) => value.clone(),
            None => {
                let value = read()?;
                self.values.insert(key, value.clone());
                value
            }
        };
        let last = (std::mem::take(&mut self.form), value.clone());
        self.form = self
            .last
            .replace(last)
            .map(|(form, _)| form)
            .unwrap_or_default();
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
    first: HashMap<Key, u32, Hashed>,
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
