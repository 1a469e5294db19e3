//! The fence: which clusters a client may have at all. Hard, and first (DESIGN section 4.1).
//!
//! Fences of zone, operator and tenant all must allow: their results intersect. In each, the first rule that matches the
//! client decides; no match denies.

use ipnet::IpNet;

use super::selector::{Clients, Place, RankSet, names, ranked};
use crate::model::{Cluster, FenceRule, Groups};

/// One rule, made ready.
#[derive(Clone, Debug)]
struct Rule {
    /// Whom it is for.
    clients: Clients,
    /// What they may have.
    allowed: RankSet,
}

/// One fence, made ready for the clusters of a service.
#[derive(Clone, Debug)]
pub(super) struct Fence(Box<[Rule]>);

impl Fence {
    /// Makes one fence ready.
    pub(super) fn compile(rules: &[FenceRule], clusters: &[&Cluster], groups: &Groups) -> Self {
        let rule = |rule: &FenceRule| {
            let mut allowed = RankSet::default();
            for (rank, cluster) in ranked(clusters) {
                let named = |selector| names(selector, cluster, groups);
                if rule.clusters.iter().any(named) {
                    allowed.insert(rank);
                }
            }
            Rule {
                clients: Clients::compile(&rule.clients, groups),
                allowed,
            }
        };
        Self(rules.iter().map(rule).collect())
    }

    /// Gives the position of the rule that decides; `None`: no rule matches, all is denied.
    pub(super) fn rule(&self, place: Place<'_>) -> Option<usize> {
        self.0.iter().position(|rule| rule.clients.matches(place))
    }

    /// Gives what a client may have.
    fn allowed(&self, place: Place<'_>) -> RankSet {
        self.rule(place)
            .and_then(|at| self.0.get(at))
            .map_or_else(RankSet::default, |rule| rule.allowed)
    }

    /// Iterates over the prefixes that its rules name.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = IpNet> {
        self.0.iter().flat_map(|rule| rule.clients.prefixes())
    }
}

/// Gives what a client may have under all fences; everything where there is none.
pub(super) fn allowed(fences: &[Fence], place: Place<'_>) -> RankSet {
    fences.iter().fold(RankSet::ALL, |all, fence| {
        all.intersect(fence.allowed(place))
    })
}
