//! Places are one class when all clusters rank alike and all that fences and maps read is equal.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::decision::Basis;
use super::policy::Policy;
use super::selectors::Client;
use crate::model::{Location, PrefixLen};
use crate::prefix::Table;

/// A class's number within one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassId(pub u32);

/// One cluster in a class's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ranked {
    /// Position of the cluster in the service's pools.
    pub rank: u8,
    /// Its tier, from 0.
    pub tier: u8,
    /// Clusters next to each other with the same number are tied: equal tier, equal preference.
    pub tie: u8,
}

/// What one class of places gets: the clusters allowed, in order: by tier, then by preference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    order: Box<[Ranked]>,
    has_ties: bool,
    basis: Basis,
}

impl Class {
    /// Makes a class out of an order.
    pub(super) fn new(order: Vec<Ranked>, basis: Basis) -> Self {
        let has_ties = order
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.tie == b.tie));
        Self {
            order: order.into(),
            has_ties,
            basis,
        }
    }

    /// Gives the clusters allowed, in order. Empty: a fence leaves these clients nothing.
    #[must_use]
    pub fn order(&self) -> &[Ranked] {
        &self.order
    }

    /// Tells whether clusters are tied somewhere in the order: the answer then depends on the slice of the client.
    #[must_use]
    pub fn has_ties(&self) -> bool {
        self.has_ties
    }

    /// Tells what the order came from. Places that rank alike for different reasons share a class: it is the reason of the
    /// first of them.
    #[must_use]
    pub fn basis(&self) -> Basis {
        self.basis
    }
}

/// All classes of one policy and the table from address to class.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    /// `None` where the policy has one class.
    table: Option<Table>,
    classes: Box<[Class]>,
}

impl Classes {
    /// Classifies every place of a table (`places[value]`), together with the prefixes that the policy's own fences and maps
    /// name. Pure; cost: one ranking per distinct place, then one pass over the table.
    #[must_use]
    pub fn build(policy: &Policy, table: &Table, places: &[Location]) -> Self {
        let unknown = Location::default();
        if !policy.reads_client() {
            let only = policy.classify(&Client {
                location: &unknown,
                within: None,
            });
            return Self {
                table: None,
                classes: [only].into(),
            };
        }
        let mut builder = Builder {
            policy,
            places,
            unknown,
            numbers: HashMap::new(),
            classes: Vec::new(),
        };
        let prefixes = policy.prefixes();
        let table = if prefixes.is_empty() {
            table.map(|place| builder.number(place, None))
        } else {
            // 0 stands for "in none of them".
            let numbered = prefixes
                .iter()
                .zip(1..)
                .map(|(prefix, number)| (*prefix, number));
            let own = Table::build(numbered, 0);
            table.zip(&own, |place, number| {
                let within = number
                    .checked_sub(1)
                    .and_then(|at| prefixes.get(at as usize));
                builder.number(place, within)
            })
        };
        let classes = builder.classes.into_boxed_slice();
        Self {
            table: (classes.len() > 1).then_some(table),
            classes,
        }
    }

    /// Finds the class of a client address and its honest scope: the widest prefix whose addresses are all of this class.
    /// 0 where the policy has one class. Never allocates.
    #[must_use]
    #[inline]
    pub fn locate(&self, address: IpAddr) -> (ClassId, PrefixLen) {
        self.table
            .as_ref()
            .map_or((ClassId(0), PrefixLen(0)), |table| {
                let found = table.lookup(address);
                (ClassId(found.value), found.scope)
            })
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
        self.classes.get(id.0 as usize)
    }

    /// Gives the octets held.
    #[must_use]
    pub fn memory(&self) -> usize {
        let orders: usize = self
            .classes
            .iter()
            .map(|class| class.order.len() * size_of::<Ranked>())
            .sum();
        self.table.as_ref().map_or(0, Table::memory)
            + self.classes.len() * size_of::<Class>()
            + orders
    }
}

/// Numbers classes as they are met.
struct Builder<'a> {
    policy: &'a Policy,
    places: &'a [Location],
    unknown: Location,
    numbers: HashMap<Box<[Ranked]>, u32>,
    classes: Vec<Class>,
}

impl Builder<'_> {
    /// Gives the number of the class of a place inside one of the policy's own prefixes.
    fn number(&mut self, place: u32, within: Option<&IpNet>) -> u32 {
        let location = self.places.get(place as usize).unwrap_or(&self.unknown);
        let within = within.map(|prefix| (prefix.network(), prefix.prefix_len()));
        let class = self.policy.classify(&Client { location, within });
        if let Some(&number) = self.numbers.get(&class.order) {
            return number;
        }
        // Not more classes than places and prefixes, of which there are fewer than 2^32.
        let number = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        self.numbers.insert(class.order.clone(), number);
        self.classes.push(class);
        number
    }
}
