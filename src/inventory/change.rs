//! What enters the inventory, and what it says became dirty.

use std::sync::Arc;

use super::service::Service;
use crate::model::{Cluster, ClusterIndex, EndpointIndex, ServiceIndex, ServiceKey, Target};

/// A change from a source. More kinds come with Kubernetes (`Upsert`, `Remove`, `Stale`).
#[derive(Clone, Debug)]
pub enum Change {
    /// The whole list of clusters, with the indices that pools refer to.
    Clusters(Vec<(ClusterIndex, Arc<Cluster>)>),
    /// All services of the configuration: compared with what is held, never an emptying.
    Replace(Vec<Service>),
    /// One service new or changed.
    Upsert(Service),
    /// One service gone.
    Remove(ServiceKey),
}

/// What a change touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Services new or changed.
    pub services: Vec<ServiceIndex>,
    /// Services gone: index and the names they answered, which the snapshot must give back.
    pub removed: Vec<ServiceIndex>,
    /// The list of clusters changed: every policy must be compiled again.
    pub clusters: bool,
    /// Endpoints that a monitor should judge from now on.
    pub watch: Vec<(EndpointIndex, Target)>,
    /// Endpoints gone; their indices may be used anew after the next publish.
    pub unwatch: Vec<EndpointIndex>,
}
