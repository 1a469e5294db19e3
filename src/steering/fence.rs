//! The fence: which clusters a client may have at all (DESIGN section 4.1).

use super::selectors::{Client, Ranks, means_client, ranks_of};
use crate::model::{ClientSelector, Cluster, FenceRule, Groups};

/// All fences of a policy; every one of them must allow.
#[derive(Clone, Debug, Default)]
pub(super) struct Fence {
    lists: Vec<Vec<(Vec<ClientSelector>, Ranks)>>,
}

impl Fence {
    /// Compiles the fences for one set of clusters.
    pub(super) fn compile(
        fences: &[Vec<FenceRule>],
        clusters: &[&Cluster],
        groups: &Groups,
    ) -> Self {
        let rule = |rule: &FenceRule| {
            (
                rule.clients.clone(),
                ranks_of(&rule.clusters, clusters, groups),
            )
        };
        Self {
            lists: fences
                .iter()
                .map(|rules| rules.iter().map(rule).collect())
                .collect(),
        }
    }

    /// Tells whether there is none.
    pub(super) fn is_open(&self) -> bool {
        self.lists.is_empty()
    }

    /// Gives the clusters that a client may have: in each list the first rule that means it counts, no rule denies, and the
    /// lists intersect.
    pub(super) fn allowed(&self, client: &Client<'_>, groups: &Groups) -> Ranks {
        self.lists.iter().fold(Ranks::ALL, |allowed, rules| {
            let matching = rules.iter().find(|(clients, _)| {
                clients
                    .iter()
                    .any(|selector| means_client(selector, client, groups))
            });
            allowed.intersection(matching.map_or(Ranks::default(), |(_, ranks)| *ranks))
        })
    }

    /// Lists every client selector.
    pub(super) fn selectors(&self) -> impl Iterator<Item = &ClientSelector> {
        self.lists.iter().flatten().flat_map(|(clients, _)| clients)
    }
}
