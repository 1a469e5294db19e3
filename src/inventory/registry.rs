//! Indices of clusters: the same for as long as the process lives, so that a reload touches only what it changed.

use std::collections::HashMap;
use std::sync::Arc;

use super::federation::ClusterFacts;
use crate::model::{Cluster, ClusterId, ClusterIndex};

/// Gives each cluster name an index once and for all.
#[derive(Clone, Debug, Default)]
pub struct ClusterRegistry {
    by_id: HashMap<ClusterId, ClusterIndex>,
}

impl ClusterRegistry {
    /// Gives a cluster's index: the one it ever had, else the next free one; `None` after 65,535 names.
    pub fn index_of(&mut self, id: &ClusterId) -> Option<ClusterIndex> {
        if let Some(&index) = self.by_id.get(id) {
            return Some(index);
        }
        let index = u16::try_from(self.by_id.len())
            .ok()
            .filter(|&index| index < u16::MAX)
            .map(ClusterIndex)?;
        self.by_id.insert(id.clone(), index);
        Some(index)
    }
}

/// Completes a cluster of the configuration by what it says of itself: where the configuration is silent.
pub(super) fn located(cluster: &Arc<Cluster>, facts: &ClusterFacts) -> Arc<Cluster> {
    let mut whole = Cluster::clone(cluster);
    // What Nodes elsewhere say is of another place.
    let is_there = whole.region.is_none() || whole.region == facts.region;
    whole.provider = whole.provider.or_else(|| facts.provider.clone());
    whole.region = whole.region.or_else(|| facts.region.clone());
    if whole.zones.is_empty() {
        whole.zones.clone_from(&facts.zones);
    }
    if is_there {
        whole.location = whole.location.or(&facts.location);
    }
    Arc::new(whole)
}

/// Names the clusters.
pub(super) fn cluster_ids(clusters: &[Option<Arc<Cluster>>]) -> HashMap<ClusterIndex, ClusterId> {
    let clusters = (0..).map(ClusterIndex).zip(clusters);
    clusters
        .filter_map(|(index, cluster)| Some((index, cluster.as_ref()?.id.clone())))
        .collect()
}
