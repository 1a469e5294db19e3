//! Classes of places: what steering knows of a client before it looks at any endpoint.
//!
//! Two places are one class when the same clusters are allowed and stand in the same order, with the same ties. Which entry of
//! `maps` or which rule of a fence led there makes no difference to the client, and so none to the scope: the answer depends on
//! the order alone. A class therefore carries the basis of the first place that led to it; [`super::Policy::ranking`] names
//! the entry and the rules for one place exactly.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::decision::Basis;
use super::policy::Policy;
use super::selector::Place;
use crate::model::{Location, PrefixLen};
use crate::prefix::Table;

/// A class's number within one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassId(pub u32);

/// One cluster in the order of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    /// Its rank: the position in [`crate::model::Pools::clusters`].
    pub(super) rank: u8,
    /// Its tier; never descends within a class.
    pub(super) tier: u8,
    /// Clusters of one group are used alike: tied, or on one wheel. Counts up from 0 within a class.
    pub(super) group: u8,
}

/// What one class of places gets: the clusters allowed, in order, with ties marked. Which tier each is in is known to the
/// policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The clusters allowed, by tier, then by order; inside a group by rank. Empty: the fence leaves nothing.
    pub(super) slots: Box<[Slot]>,
    /// The first cluster, where it is alone in its group.
    pub(super) lead: Option<Slot>,
    /// What the order came from.
    pub(super) basis: Basis,
    /// A tie is decided by the client's slice, so that the scope is at least the slice's length. It is whenever there is a tie at
    /// all, reached or not: which clusters are up must not change a scope (promise 5).
    pub(super) sliced: bool,
}

impl Class {
    /// Tells whether the fence leaves these clients no cluster at all.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.slots.is_empty()
    }

    /// Gives the rank of the first cluster.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Option<u8> {
        self.slots.first().map(|slot| slot.rank)
    }

    /// Iterates over the ranks of the clusters allowed, in order.
    pub fn ranks(&self) -> impl Iterator<Item = u8> {
        self.slots.iter().map(|slot| slot.rank)
    }

    /// Tells what the order came from: of the first place that led to this class.
    #[must_use]
    pub fn basis(&self) -> Basis {
        self.basis
    }
}

/// All classes of one policy and the table from address to class.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    /// By [`ClassId`].
    classes: Box<[Class]>,
    /// Address to class; `None`: every client is of the first class.
    table: Option<Table>,
}

impl Classes {
    /// Classifies every place of a table (`places[value]`), together with the prefixes that the policy's own fences and maps
    /// name. Pure; cost: one ranking per distinct place, then one pass over the table. A value that has no place is the
    /// unknown place.
    #[must_use]
    pub fn build(policy: &Policy, table: &Table, places: &[Location]) -> Self {
        let mut sorter = Sorter::default();
        let unknown = Location::default();
        if !policy.reads_client() {
            let network = None;
            sorter.class_of(
                policy,
                Place {
                    location: &unknown,
                    network,
                },
            );
            return sorter.finish(None);
        }
        let place = |value: u32| {
            let at = usize::try_from(value).ok();
            at.and_then(|at| places.get(at)).unwrap_or(&unknown)
        };
        let own = policy.prefixes();
        let joined = if own.is_empty() {
            table.map(|value| {
                sorter.class_of(
                    policy,
                    Place {
                        location: place(value),
                        network: None,
                    },
                )
            })
        } else {
            // Prefixes nest or are apart: the longest that holds an address tells all that hold it.
            let numbered = (1..).zip(&own).map(|(number, &prefix)| (prefix, number));
            table.zip(&Table::build(numbered, 0), |value, number| {
                let network = number_to_prefix(&own, number);
                sorter.class_of(
                    policy,
                    Place {
                        location: place(value),
                        network,
                    },
                )
            })
        };
        sorter.finish(Some(joined))
    }

    /// Finds the class of a client address and its honest scope: the widest prefix whose addresses are all of this class.
    /// 0 where the policy has one class. Never allocates. IPv4-mapped addresses must have been turned into IPv4.
    #[must_use]
    #[inline(always)]
    pub fn locate(&self, address: IpAddr) -> (ClassId, PrefixLen) {
        match &self.table {
            None => (ClassId(0), PrefixLen(0)),
            Some(table) => {
                let found = table.lookup(address);
                (ClassId(found.value), found.scope)
            }
        }
    }

    /// Hints that an address will be located soon, after [`Self::prefetch`] had time to work: reads what that hinted at.
    #[inline]
    pub fn prefetch_runs(&self, address: IpAddr) {
        if let Some(table) = &self.table {
            table.prefetch_runs(address);
        }
    }

    /// Hints that an address will be located soon.
    #[inline]
    pub fn prefetch(&self, address: IpAddr) {
        if let Some(table) = &self.table {
            table.prefetch(address);
        }
    }

    /// Gives a class.
    #[must_use]
    #[inline]
    pub fn get(&self, id: ClassId) -> Option<&Class> {
        self.classes.get(usize::try_from(id.0).ok()?)
    }

    /// Counts the classes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Tells whether nothing was built.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Gives the octets held.
    #[must_use]
    pub fn memory(&self) -> usize {
        let slots: usize = self
            .classes
            .iter()
            .map(|class| size_of_val(&*class.slots))
            .sum();
        size_of_val(&*self.classes) + slots + self.table.as_ref().map_or(0, Table::memory)
    }
}

/// Gives the prefix with a number from 1; `None` for 0, which is outside all of them.
fn number_to_prefix(own: &[IpNet], number: u32) -> Option<IpNet> {
    let at = usize::try_from(number.checked_sub(1)?).ok()?;
    own.get(at).copied()
}

/// Numbers classes as they come up. Its buffers are used again for each place, so that only a new class allocates.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    numbers: HashMap<Box<[Slot]>, u32>,
    classes: Vec<Class>,
    order: Vec<Slot>,
    keys: Vec<super::ranking::Key>,
}

impl Sorter {
    /// Gives the number of a place's class, a new one if need be.
    pub(super) fn class_of(&mut self, policy: &Policy, place: Place<'_>) -> u32 {
        let basis = policy.order(place, &mut self.keys, &mut self.order);
        if let Some(&number) = self.numbers.get(self.order.as_slice()) {
            return number;
        }
        // A class needs a place of its own to exist: there are fewer than 2^32.
        let number = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        let slots: Box<[Slot]> = self.order.as_slice().into();
        self.numbers.insert(slots.clone(), number);
        self.classes.push(policy.class(slots, basis));
        number
    }

    /// Gives the classes. With one class the table tells nothing and is let go.
    fn finish(self, table: Option<Table>) -> Classes {
        let table = table.filter(|_| self.classes.len() > 1);
        Classes {
            classes: self.classes.into(),
            table,
        }
    }
}
