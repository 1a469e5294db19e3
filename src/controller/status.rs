//! What the dashboard, the metrics and the commands may know.

use std::sync::Arc;
use std::time::Duration;

use crate::geo::DatabaseInfo;
use crate::model::{
    Chunked, Cluster, ClusterIndex, EndpointIndex, Generation, LowerName, Rejection,
};
use crate::telemetry::Histogram;

/// Rejections kept for show; the rest is only counted.
pub(super) const KEPT_REJECTIONS: usize = 1000;

/// What changes only with a configuration, a zone or a database: shared by the publishes between.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Clusters, with the indices that counters use.
    pub clusters: Vec<(ClusterIndex, Arc<Cluster>)>,
    /// Zones with the serial served.
    pub zones: Vec<(LowerName, u32)>,
    /// Zones with a row of counters of their own, in the order of [`crate::model::ZoneSlot::named`]; some may be gone.
    pub counted_zones: Arc<[LowerName]>,
    /// The cluster of each entry of the table of endpoint states.
    pub(super) endpoint_clusters: Chunked<Option<ClusterIndex>>,
    /// GeoIP databases in force.
    pub databases: Vec<DatabaseInfo>,
    /// Services held.
    pub services: usize,
    /// Claims refused, at most 1000: of each namespace the first come first.
    pub rejections: Vec<Rejection>,
    /// What is refused of Kubernetes objects, as it was told last; at most 1000: of each namespace of each cluster the first come
    /// first.
    pub refused_objects: Vec<Rejection>,
    /// How many of both are refused.
    pub rejected: usize,
    /// How many of them are of Kubernetes objects.
    pub rejected_objects: usize,
}

impl World {
    /// Gives the cluster that an endpoint lies in.
    #[must_use]
    pub fn cluster_of(&self, endpoint: EndpointIndex) -> Option<ClusterIndex> {
        self.endpoint_clusters.get(endpoint.get())
    }
}

/// The state after one publish.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// The publish.
    pub generation: Generation,
    /// The last publish that changed what exists: services, clusters, or how their endpoints are told apart.
    pub inventory: Generation,
    /// How long building and publishing took.
    pub build_time: Duration,
    /// How long all of them took since the start.
    pub publish_times: Arc<Histogram>,
    /// Owner names served, empty non-terminals included.
    pub names: usize,
    /// Flips of verdicts since the start.
    pub flips: u64,
    /// What changes rarely.
    pub world: Arc<World>,
}
