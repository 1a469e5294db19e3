//! Equal values become one allocation, so that a pointer tells equality and a million services hold one policy.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::model::{MonitorSpec, PolicySpec};

/// Values kept before the first sweep.
const SWEEP_AT_LEAST: usize = 64;

/// What can be interned: hashed and compared by value. Floats count by their bits.
pub(super) trait Value {
    /// Feeds everything that `same` compares.
    fn feed(&self, hasher: &mut impl Hasher);
    /// Tells whether two values are equal in everything.
    fn same(&self, other: &Self) -> bool;
}

impl Value for MonitorSpec {
    fn feed(&self, hasher: &mut impl Hasher) {
        self.hash(hasher);
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Value for PolicySpec {
    fn feed(&self, hasher: &mut impl Hasher) {
        self.steer.hash(hasher);
        self.tiers.hash(hasher);
        self.weights.hash(hasher);
        self.bias.hash(hasher);
        self.maps.hash(hasher);
        self.fences.hash(hasher);
        self.fence_answer.hash(hasher);
        self.fallback.hash(hasher);
        self.panic.to_bits().hash(hasher);
        self.answers.hash(hasher);
    }

    fn same(&self, other: &Self) -> bool {
        self.panic.to_bits() == other.panic.to_bits() && self == other
    }
}

/// One allocation for each distinct value in use. Values that nobody else holds any more are swept now and then.
pub(super) struct Interner<T> {
    values: HashTable<Arc<T>>,
    /// Addresses of the kept allocations: what is one of them needs no hashing.
    addresses: HashSet<usize, RandomState>,
    hasher: RandomState,
    /// Values that were left after the last sweep.
    swept: usize,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            values: HashTable::new(),
            addresses: HashSet::default(),
            hasher: RandomState::default(),
            swept: 0,
        }
    }
}

impl<T> fmt::Debug for Interner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interner")
            .field("values", &self.values.len())
            .finish_non_exhaustive()
    }
}

impl<T: Value> Interner<T> {
    /// Gives the one allocation of a value equal to this one.
    pub(super) fn intern(&mut self, value: Arc<T>) -> Arc<T> {
        if self.addresses.contains(&address(&value)) {
            return value;
        }
        let hash = hash(&self.hasher, &*value);
        if let Some(kept) = self.values.find(hash, |kept| kept.same(&value)) {
            return Arc::clone(kept);
        }
        self.sweep();
        self.addresses.insert(address(&value));
        let hasher = &self.hasher;
        self.values
            .insert_unique(hash, Arc::clone(&value), |kept| self::hash(hasher, &**kept));
        value
    }

    /// Drops the values that only this table holds, whenever as many were added as were left the last time.
    fn sweep(&mut self) {
        if self.values.len() < self.swept * 2 + SWEEP_AT_LEAST {
            return;
        }
        let addresses = &mut self.addresses;
        self.values.retain(|kept| {
            let held = Arc::strong_count(kept) > 1;
            if !held {
                addresses.remove(&address(kept));
            }
            held
        });
        self.swept = self.values.len();
    }
}

/// Gives where a value lives: unique as long as it is held.
fn address<T>(value: &Arc<T>) -> usize {
    Arc::as_ptr(value).addr()
}

fn hash<T: Value>(hasher: &RandomState, value: &T) -> u64 {
    let mut hasher = hasher.build_hasher();
    value.feed(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(answers: u8, panic: f64) -> Arc<PolicySpec> {
        Arc::new(PolicySpec {
            answers,
            panic,
            ..PolicySpec::default()
        })
    }

    #[test]
    fn equal_values_become_one() {
        let mut interner = Interner::default();
        let first = interner.intern(spec(1, 0.5));
        assert!(Arc::ptr_eq(&first, &interner.intern(spec(1, 0.5))));
        assert!(Arc::ptr_eq(&first, &interner.intern(Arc::clone(&first))));
        assert!(!Arc::ptr_eq(&first, &interner.intern(spec(1, 0.25))));
        assert!(!Arc::ptr_eq(&first, &interner.intern(spec(2, 0.5))));
    }

    #[test]
    fn what_nobody_holds_is_swept() {
        let mut interner = Interner::default();
        let held = interner.intern(spec(1, 0.0));
        for n in 0..10_000 {
            interner.intern(spec(2, f64::from(n)));
        }
        assert!(interner.values.len() < 200, "{}", interner.values.len());
        assert!(Arc::ptr_eq(&held, &interner.intern(spec(1, 0.0))));
    }
}
