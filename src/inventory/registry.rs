//! Indices of clusters: the same for as long as the process lives, so that a reload touches only what it changed.

use std::collections::HashMap;

use crate::model::{ClusterId, ClusterIndex};

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
