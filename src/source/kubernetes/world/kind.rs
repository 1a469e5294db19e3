//! The objects of one watch. A relist is a difference: nothing goes before the list is complete.
//!
//! A list that leaves objects out is never complete. As long as there is no other, what was held stands, but for what is said to
//! be gone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::inventory::Refused;
use crate::source::kubernetes::Key;

/// How far a kind is read.
///
/// ```text
/// Awaited --list complete--> Listed --not served--> Leaving --believed--> Absent
///    ^                                                 |                    |
///    +-------------------- a list begins --------------+--------------------+
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its first list is not complete: what was held stands.
    #[default]
    Awaited,
    /// A list was complete.
    Listed,
    /// The server serves it no more, since that moment (`None`: nobody has said when): what was known stands.
    Leaving(Option<Timestamp>),
    /// That is believed: there is none.
    Absent,
}

/// An object that a list or a watch named.
#[derive(Debug)]
struct Known<T> {
    /// What it said when it could be read last.
    record: Option<T>,
    /// The list that named it last.
    generation: u64,
}

/// All objects of one kind.
#[derive(Debug)]
pub(super) struct Kind<T> {
    known: BTreeMap<Key, Known<T>>,
    /// Those whose last version cannot be read. Each is in `known` too.
    unreadable: BTreeMap<Key, Refused>,
    /// Those that are served and were said to be gone before a list was complete.
    gone: BTreeSet<Key>,
    /// Objects were left out since the last list that was complete.
    is_partial: bool,
    generation: u64,
    phase: Phase,
}

impl<T> Default for Kind<T> {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            gone: BTreeSet::new(),
            is_partial: false,
            generation: 0,
            phase: Phase::default(),
        }
    }
}

impl<T> Kind<T> {
    // === Reading ===

    /// Tells how far it is read.
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Gives what an object said when it could be read last.
    pub(super) fn get(&self, key: &Key) -> Option<&T> {
        self.known.get(key)?.record.as_ref()
    }

    /// Lists what objects said when they could be read last, to change it.
    pub(super) fn records_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.known
            .values_mut()
            .filter_map(|known| known.record.as_mut())
    }

    /// Tells whether an object is there, readable or not.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.known.contains_key(key)
    }

    /// Tells whether an object that is not there is gone, and not only unseen.
    pub(super) fn is_gone(&self, key: &Key) -> bool {
        matches!(self.phase, Phase::Listed | Phase::Absent) || self.gone.contains(key)
    }

    /// Tells whether there may be objects that nobody saw, whatever was listed.
    pub(super) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Counts the objects.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Lists the objects, those that were never readable too.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.known.keys()
    }

    /// Lists the objects whose last version cannot be read.
    pub(super) fn unreadable(&self) -> &BTreeMap<Key, Refused> {
        &self.unreadable
    }

    // === Changes ===

    /// Begins a list. A kind that was not served is awaited again.
    pub(super) fn begin(&mut self) {
        self.generation += 1;
        if matches!(self.phase, Phase::Leaving(_) | Phase::Absent) {
            self.phase = Phase::Awaited;
        }
    }

    /// Takes an object. Gives what it said before.
    pub(super) fn put(&mut self, key: Key, record: T) -> Option<T> {
        self.unreadable.remove(&key);
        self.gone.remove(&key);
        let known = Known {
            record: Some(record),
            generation: self.generation,
        };
        self.known.insert(key, known)?.record
    }

    /// Takes an object that cannot be read.
    pub(super) fn put_unreadable(&mut self, key: Key, why: Refused) {
        let generation = self.generation;
        self.gone.remove(&key);
        let known = self.known.entry(key.clone()).or_insert(Known {
            record: None,
            generation,
        });
        known.generation = generation;
        self.unreadable.insert(key, why);
    }

    /// Takes an object away. Gives what it said.
    pub(super) fn remove(&mut self, key: &Key) -> Option<T> {
        self.unreadable.remove(key);
        self.known.remove(key)?.record
    }

    /// An object that is served was said to be gone: before a list was complete that must be remembered.
    pub(super) fn say_gone(&mut self, key: &Key) {
        if self.phase == Phase::Awaited {
            self.gone.insert(key.clone());
        }
    }

    /// Objects were left out.
    pub(super) fn leave_out(&mut self) {
        self.is_partial = true;
    }

    /// Ends a list. Gives the objects that it did not name: they are gone.
    pub(super) fn end(&mut self) -> Vec<(Key, Option<T>)> {
        self.phase = Phase::Listed;
        self.gone.clear();
        self.is_partial = false;
        let generation = self.generation;
        let is_gone = |_: &Key, known: &mut Known<T>| known.generation < generation;
        let gone: Vec<_> = self.known.extract_if(.., is_gone).collect();
        gone.into_iter()
            .map(|(key, known)| {
                self.unreadable.remove(&key);
                (key, known.record)
            })
            .collect()
    }

    /// The server serves it no more. Nothing goes.
    pub(super) fn leave(&mut self) {
        if matches!(self.phase, Phase::Awaited | Phase::Listed) {
            self.phase = Phase::Leaving(None);
        }
    }

    /// Gives the moment since which it leaves: at first, and where the clock went back, `now`. `None`: it does not.
    pub(super) fn leaves_since(&mut self, now: Timestamp) -> Option<Timestamp> {
        let Phase::Leaving(since) = &mut self.phase else {
            return None;
        };
        let begun = since.map_or(now, |since| since.min(now));
        *since = Some(begun);
        Some(begun)
    }

    /// It is believed that the server serves it no more: gives all objects away.
    pub(super) fn clear(&mut self) -> BTreeMap<Key, Option<T>> {
        self.phase = Phase::Absent;
        self.gone.clear();
        self.is_partial = false;
        self.unreadable.clear();
        let known = std::mem::take(&mut self.known);
        known
            .into_iter()
            .map(|(key, known)| (key, known.record))
            .collect()
    }
}
