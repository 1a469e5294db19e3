//! The tables.

use std::sync::Arc;

use super::change::{Change, Dirty};
use super::service::Service;
use crate::model::{Cluster, ClusterIndex, ServiceIndex, ServiceKey};

/// Everything that exists. Owned by the controller.
#[derive(Debug, Default)]
pub struct Inventory {
    todo: (),
}

impl Inventory {
    /// Applies one change and says what became dirty. Equal input gives an empty `Dirty`.
    pub fn apply(&mut self, change: Change) -> Dirty {
        let _ = change;
        todo!()
    }

    /// Gives a cluster.
    #[must_use]
    pub fn cluster(&self, index: ClusterIndex) -> Option<&Arc<Cluster>> {
        let _ = index;
        todo!()
    }

    /// Gives a service.
    #[must_use]
    pub fn service(&self, index: ServiceIndex) -> Option<&Service> {
        let _ = index;
        todo!()
    }

    /// Finds a service by key.
    #[must_use]
    pub fn find(&self, key: &ServiceKey) -> Option<ServiceIndex> {
        let _ = key;
        todo!()
    }

    /// Iterates over all services.
    pub fn services(&self) -> impl Iterator<Item = (ServiceIndex, &Service)> {
        std::iter::empty()
    }

    /// Counts the entries of the table of endpoint states: one more than the highest index ever given.
    #[must_use]
    pub fn endpoint_count(&self) -> usize {
        todo!()
    }
}
