//! The snapshot.

use std::sync::Arc;

use super::challenges::Challenges;
use super::claims::{Claims, Refused};
use super::levels::Levels;
use super::names::NameTable;
use super::policies::{PolicyTable, Steering};
use super::services::{ServiceSlot, ServiceTable};
use super::settings::Settings;
use super::usable::UsableTable;
use super::zone_slots::ZoneSlots;
use crate::geo::GeoDb;
use crate::model::{
    Cluster, ClusterIndex, Generation, Groups, LowerName, PolicyIndex, ServiceIndex, ZoneIndex,
    ZoneSlot,
};
use crate::zone::ZoneSet;

/// Everything a query may read. Never changed after it is built. All parts are shared with the snapshots before and after
/// as far as they are equal: a clone costs a dozen counters. The default one serves no zone: every query is refused.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub(super) generation: Generation,
    pub(super) names: NameTable,
    pub(super) zones: Arc<ZoneSet>,
    pub(super) zone_slots: ZoneSlots,
    pub(super) services: ServiceTable,
    pub(super) policies: PolicyTable,
    pub(super) usable: UsableTable,
    pub(super) geo: Arc<GeoDb>,
    pub(super) groups: Arc<Groups>,
    pub(super) clusters: Arc<[Option<Arc<Cluster>>]>,
    pub(super) settings: Arc<Settings>,
    pub(super) claims: Arc<Claims>,
    pub(super) challenges: Arc<Challenges>,
    /// A zone sends challenges elsewhere.
    pub(super) sends_challenges: bool,
    pub(super) has_challenges: bool,
    pub(super) levels: Arc<Levels>,
    pub(super) has_levels: bool,
}

/// Octets that the parts of a snapshot hold, without zones and the geo table. Parts shared with other snapshots count in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The table of names.
    pub names: usize,
    /// Slots of services and their endpoints, which the inventory shares.
    pub services: usize,
    /// Endpoint states.
    pub states: usize,
    /// Tables of classes of places.
    pub classes: usize,
    /// How many policies are compiled.
    pub policies: usize,
    /// How many tables of classes they share.
    pub class_tables: usize,
}

impl Snapshot {
    /// Gives the publish it came from; 0 for the empty snapshot.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Gives all owner names.
    #[must_use]
    #[inline]
    pub fn names(&self) -> &NameTable {
        &self.names
    }

    /// Gives the zones.
    #[must_use]
    #[inline]
    pub fn zones(&self) -> &ZoneSet {
        &self.zones
    }

    /// Gives a zone's row in the tables of counters.
    #[must_use]
    #[inline]
    pub fn zone_slot(&self, zone: ZoneIndex) -> ZoneSlot {
        self.zone_slots.get(zone)
    }

    /// Names the zones that have a row of counters of their own, in the order of [`ZoneSlot::named`]; some may be gone.
    #[must_use]
    pub fn counted_zones(&self) -> &Arc<[LowerName]> {
        self.zone_slots.named()
    }

    /// Gives a service.
    #[must_use]
    #[inline]
    pub fn service(&self, index: ServiceIndex) -> Option<&ServiceSlot> {
        self.services.get(index)
    }

    /// Iterates over all services, by index.
    pub fn services(&self) -> impl Iterator<Item = (ServiceIndex, &ServiceSlot)> {
        self.services.iter()
    }

    /// Gives a number that every service index is below: the size for tables by service.
    #[must_use]
    #[inline]
    pub fn service_end(&self) -> usize {
        self.services.end()
    }

    /// Gives a policy.
    #[must_use]
    #[inline]
    pub fn steering(&self, index: PolicyIndex) -> Option<&Steering> {
        self.policies.get(index)
    }

    /// Gives the endpoint states.
    #[must_use]
    #[inline]
    pub fn usable(&self) -> &UsableTable {
        &self.usable
    }

    /// Gives the places.
    #[must_use]
    pub fn geo(&self) -> &Arc<GeoDb> {
        &self.geo
    }

    /// Gives a cluster, for words and counters.
    #[must_use]
    pub fn cluster(&self, index: ClusterIndex) -> Option<&Arc<Cluster>> {
        self.clusters.get(index.get())?.as_ref()
    }

    /// Gives the settings of answering.
    #[must_use]
    #[inline]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Tells whether any challenge of a certificate authority may be answered here: a zone sends them elsewhere, or one is set.
    #[must_use]
    #[inline]
    pub fn has_challenges(&self) -> bool {
        self.has_challenges
    }

    /// Gives the challenges of certificate authorities.
    #[must_use]
    pub fn challenges(&self) -> &Challenges {
        &self.challenges
    }

    /// Lists every name that a service asks for and does not get, by service: outside our zones, against the right of way,
    /// or another service's.
    pub fn refused(&self) -> impl Iterator<Item = Refused<'_>> {
        self.claims.refused()
    }

    /// Counts what the tables hold. Walks over all services: for status, not for each scrape.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let (policies, class_tables, classes) = self.policies.count();
        Memory {
            names: self.names.memory(),
            services: self.services.memory(),
            states: self.usable.memory(),
            classes,
            policies,
            class_tables,
        }
    }
}
