//! Explicit maps: the operator's own order of clusters for some clients (DESIGN section 4.2).
//!
//! The first entry that matches the client decides; an entry without selectors matches every client, the unknown place
//! included. Clusters that one selector of the entry names together are ordered by distance. Clusters that the entry does
//! not name come after all that it names, by distance: they are the last choice, so that a configured name always has an
//! address (promise 1); who wants them out writes a fence.

use ipnet::IpNet;

use super::selector::{Clients, Place, position, ranked};
use crate::model::{Cluster, Groups, MapEntry};

/// The position of clusters that an entry does not name.
pub(super) const UNLISTED: u8 = u8::MAX;

/// One entry, made ready for the clusters of a service.
#[derive(Clone, Debug)]
pub(super) struct Map {
    /// Whom it is for; empty: everyone.
    clients: Clients,
    /// By rank: the position of the first selector that names the cluster, or [`UNLISTED`].
    positions: Box<[u8]>,
}

impl Map {
    /// Makes one entry ready.
    pub(super) fn compile(entry: &MapEntry, clusters: &[&Cluster], groups: &Groups) -> Self {
        Self {
            clients: Clients::compile(&entry.clients, groups),
            positions: ranked(clusters)
                .map(|(_, cluster)| position(&entry.clusters, cluster, groups).unwrap_or(UNLISTED))
                .collect(),
        }
    }

    /// Tells whether the entry is for this client.
    pub(super) fn matches(&self, place: Place<'_>) -> bool {
        self.clients.is_empty() || self.clients.matches(place)
    }

    /// Gives a cluster's position in the entry, or [`UNLISTED`].
    pub(super) fn position(&self, rank: u8) -> u8 {
        self.positions
            .get(usize::from(rank))
            .copied()
            .unwrap_or(UNLISTED)
    }

    /// Iterates over the prefixes that it names.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = IpNet> {
        self.clients.prefixes()
    }
}
