//! Entries set apart: for an operator's word of one service or of one address that nobody monitors, and for what a cluster
//! says of some of the services at an address.
//!
//! Few: their index is a plain map, and entries that nobody set apart pay nothing for it.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use crate::model::{ClusterIndex, Condition, EndpointIndex, ServiceKey};

/// Cluster, address, the monitor's allocation (0: none), whose it is (0: everyone's), and what its cluster says.
pub(super) type ApartKey = (ClusterIndex, IpAddr, usize, u32, Condition);

/// What operators speak of more closely than entries are shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isolation {
    /// Services whose endpoints have entries of their own.
    pub services: HashSet<ServiceKey>,
    /// Addresses that have an entry of their own even where nobody monitors them.
    pub addresses: HashSet<(ClusterIndex, IpAddr)>,
}

impl Isolation {
    /// Tells whether nothing is set apart.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.services.is_empty() && self.addresses.is_empty()
    }
}

/// The entries set apart.
#[derive(Debug, Default)]
pub(super) struct Apart {
    by_key: HashMap<ApartKey, EndpointIndex>,
    entries: HashMap<EndpointIndex, (ApartKey, u32)>,
}

impl Apart {
    /// Gives the entry of a key and counts one more user.
    pub(super) fn take(&mut self, key: &ApartKey) -> Option<EndpointIndex> {
        let index = *self.by_key.get(key)?;
        let (_, users) = self.entries.get_mut(&index)?;
        *users = users.saturating_add(1);
        Some(index)
    }

    /// Tells whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry with one user.
    pub(super) fn put(&mut self, key: ApartKey, index: EndpointIndex) {
        self.by_key.insert(key, index);
        self.entries.insert(index, (key, 1));
    }

    /// Counts one user less. Tells whether it was the last; `None`: the entry was not set apart.
    pub(super) fn release(&mut self, index: EndpointIndex) -> Option<bool> {
        let (key, users) = self.entries.get_mut(&index)?;
        *users = users.saturating_sub(1);
        if *users > 0 {
            return Some(false);
        }
        let key = *key;
        self.entries.remove(&index);
        self.by_key.remove(&key);
        Some(true)
    }

    /// Gives whose an entry is; `None`: it was not set apart.
    pub(super) fn owner(&self, index: EndpointIndex) -> Option<u32> {
        self.entries.get(&index).map(|(key, _)| key.3)
    }

    /// Gives what its cluster says of an entry; all is well where it was not set apart.
    pub(super) fn condition(&self, index: EndpointIndex) -> Condition {
        let entry = self.entries.get(&index);
        entry.map_or_else(Condition::default, |(key, _)| key.4)
    }
}
