//! Places are one class when all clusters rank alike and all that fences and maps read is equal.

use super::policy::Policy;
use crate::model::{Location, PrefixLen};
use crate::prefix::Table;

/// A class's number within one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassId(pub u32);

/// What one class of places gets: the clusters allowed, in order, with ties marked. Which tier each is in is known to the
/// policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    todo: (),
}

/// All classes of one policy and the table from address to class.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    todo: (),
}

impl Classes {
    /// Classifies every place of a table (`places[value]`), together with the prefixes that the policy's own fences and maps
    /// name. Pure; cost: one ranking per distinct place, then one pass over the table.
    #[must_use]
    pub fn build(policy: &Policy, table: &Table, places: &[Location]) -> Self {
        let _ = (policy, table, places);
        todo!()
    }

    /// Finds the class of a client address and its honest scope: the widest prefix whose addresses are all of this class.
    /// 0 where the policy has one class. Never allocates.
    #[must_use]
    pub fn locate(&self, address: std::net::IpAddr) -> (ClassId, PrefixLen) {
        let _ = address;
        todo!()
    }

    /// Hints that an address will be located soon.
    pub fn prefetch(&self, address: std::net::IpAddr) {
        let _ = address;
    }

    /// Gives a class.
    #[must_use]
    pub fn get(&self, id: ClassId) -> Option<&Class> {
        let _ = id;
        todo!()
    }

    /// Gives the octets held.
    #[must_use]
    pub fn memory(&self) -> usize {
        todo!()
    }
}
