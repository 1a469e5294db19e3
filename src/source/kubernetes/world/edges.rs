//! Moments at which an object looks different though nothing happens.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::inventory::ObjectRef;

/// The next such moment of each object that has one.
#[derive(Debug, Default)]
pub(super) struct Edges {
    by_object: BTreeMap<ObjectRef, Timestamp>,
    /// The same, in the order of time.
    by_time: BTreeSet<(Timestamp, ObjectRef)>,
}

impl Edges {
    /// Takes an object's next moment.
    pub(super) fn set(&mut self, object: &ObjectRef, at: Option<Timestamp>) {
        if self.by_object.get(object).copied() == at {
            return;
        }
        if let Some(former) = self.by_object.remove(object) {
            self.by_time.remove(&(former, object.clone()));
        }
        if let Some(at) = at {
            self.by_object.insert(object.clone(), at);
            self.by_time.insert((at, object.clone()));
        }
    }

    /// Gives the first moment of all.
    pub(super) fn first(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes out the objects whose moment has come.
    pub(super) fn take(&mut self, now: Timestamp) -> Vec<ObjectRef> {
        let mut come = Vec::new();
        while let Some((at, object)) = self.by_time.pop_first() {
            if at > now {
                self.by_time.insert((at, object));
                break;
            }
            self.by_object.remove(&object);
            come.push(object);
        }
        come
    }
}
