//! The snapshot.

use std::sync::Arc;

use super::names::NameTable;
use super::services::ServiceSlot;
use super::settings::Settings;
use super::usable::UsableTable;
use crate::geo::GeoDb;
use crate::model::{Cluster, ClusterIndex, Generation, PolicyIndex, ServiceIndex};
use crate::steering::{Classes, Policy};
use crate::zone::ZoneSet;

/// A policy with its classes of places.
#[derive(Clone, Debug)]
pub struct Steering {
    /// The compiled policy.
    pub policy: Policy,
    /// Address to class.
    pub classes: Arc<Classes>,
}

/// Everything a query may read. Cheap to clone parts out of; never changed after it is built.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    todo: (),
}

impl Snapshot {
    /// Gives the publish it came from.
    #[must_use]
    pub fn generation(&self) -> Generation {
        todo!()
    }

    /// Gives all owner names.
    #[must_use]
    pub fn names(&self) -> &NameTable {
        todo!()
    }

    /// Gives the zones.
    #[must_use]
    pub fn zones(&self) -> &ZoneSet {
        todo!()
    }

    /// Gives a service.
    #[must_use]
    pub fn service(&self, index: ServiceIndex) -> Option<&ServiceSlot> {
        let _ = index;
        todo!()
    }

    /// Hints that a service will be read.
    pub fn prefetch_service(&self, index: ServiceIndex) {
        let _ = index;
    }

    /// Gives a policy.
    #[must_use]
    pub fn steering(&self, index: PolicyIndex) -> Option<&Steering> {
        let _ = index;
        todo!()
    }

    /// Gives the endpoint states.
    #[must_use]
    pub fn usable(&self) -> &UsableTable {
        todo!()
    }

    /// Gives the places.
    #[must_use]
    pub fn geo(&self) -> &Arc<GeoDb> {
        todo!()
    }

    /// Gives a cluster, for words and counters.
    #[must_use]
    pub fn cluster(&self, index: ClusterIndex) -> Option<&Arc<Cluster>> {
        let _ = index;
        todo!()
    }

    /// Gives the settings of answering.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        todo!()
    }
}
