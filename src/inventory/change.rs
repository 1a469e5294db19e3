//! What enters the inventory, and what it says became dirty.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::federation::{ClusterFacts, FederationRules, ResolvedTarget, ShardChange};
use super::service::{Origin, Service};
use crate::model::{
    Cluster, ClusterIndex, EndpointIndex, LowerName, Names, ServiceIndex, ServiceKey, Target,
};

/// A change from a source.
#[derive(Clone, Debug)]
pub enum Change {
    /// The whole list of clusters, with the indices that pools refer to.
    Clusters(Vec<(ClusterIndex, Arc<Cluster>)>),
    /// All services of the configuration: compared with what is held, never an emptying. Of two with one key the later wins.
    Replace(Vec<Service>),
    /// One service new or changed.
    Upsert(Service),
    /// One service gone.
    Remove(ServiceKey),
    /// Who had which name of those that come from Kubernetes before the start, in the order in which they were given. It is
    /// theirs when they claim it, until an empty list ends that.
    Owners(Vec<(LowerName, Arc<str>)>),
    /// Who may claim what of the names that come from Kubernetes.
    Rules(Arc<FederationRules>),
    /// What objects of member clusters offer, in the order in which they said so. Of many at once each service is made once.
    Shards(Vec<(ClusterIndex, Vec<ShardChange>)>),
    /// Which member clusters are observed from now on: watched and probed, and nobody is answered with them.
    Observed(BTreeSet<ClusterIndex>),
    /// What load balancers that are host names resolve to: the whole table.
    Targets(Arc<HashMap<LowerName, ResolvedTarget>>),
    /// The member clusters that were not seen for too long: the whole set. What nobody probes there is used after all others.
    Aged(BTreeSet<ClusterIndex>),
    /// Where a member cluster is, by its own word; what the configuration says comes first.
    Facts(ClusterIndex, ClusterFacts),
}

impl Change {
    /// Makes a change of what objects of one member cluster offer.
    #[must_use]
    pub fn of_cluster(cluster: ClusterIndex, changes: Vec<ShardChange>) -> Self {
        Self::Shards(vec![(cluster, changes)])
    }
}

/// Names that a service had before: the snapshot gives them back before any are claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Former {
    /// The index it had. May stand for another service by now.
    pub index: ServiceIndex,
    /// Its place in the order of right of way: where it came from, and its key.
    pub rank: (Origin, ServiceKey),
    /// The names it answered.
    pub names: Names,
}

/// What a change touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Services new or changed. In a merged `Dirty` one may stand twice, or be gone again.
    pub services: Vec<ServiceIndex>,
    /// Services gone. In a merged `Dirty` an index may be in use again.
    pub removed: Vec<ServiceIndex>,
    /// Names that removed and changed services had before. A service whose names stayed the same is not here.
    pub former: Vec<Former>,
    /// The list of clusters changed: every policy must be compiled again.
    pub clusters: bool,
    /// What is refused of Kubernetes objects, or who has a name of theirs, changed.
    pub refusals: bool,
    /// Endpoints that a monitor should judge from now on.
    pub watch: Vec<(EndpointIndex, Target)>,
    /// New entries that no monitor judges, and those of which their cluster says something: they begin Up with that, and with
    /// what operators say.
    pub conditioned: Vec<EndpointIndex>,
    /// Entries that others took the place of, at the same address under the same monitor: what is known of the first holds for
    /// the second.
    pub moved: Vec<(EndpointIndex, EndpointIndex)>,
    /// Endpoints gone, perhaps some that never were in `watch`. Their indices are not used anew before `Inventory::settle`.
    pub unwatch: Vec<EndpointIndex>,
}

impl Dirty {
    /// Tells whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what a later change touched, so that several changes make one publish. An endpoint that came and went in
    /// between is in `unwatch` only.
    pub fn merge(&mut self, later: Self) {
        self.services.extend(later.services);
        self.removed.extend(later.removed);
        self.former.extend(later.former);
        self.clusters |= later.clusters;
        self.watch.extend(later.watch);
        self.conditioned.extend(later.conditioned);
        self.moved.extend(later.moved);
        self.refusals |= later.refusals;
        if !later.unwatch.is_empty() {
            self.unwatch.extend(later.unwatch);
            self.forget_short_lived();
        }
    }

    /// Takes endpoints that came and went out of `watch`. No index is used again before `Inventory::settle`: what is in
    /// both lists came first.
    pub(super) fn forget_short_lived(&mut self) {
        if self.watch.is_empty() || self.unwatch.is_empty() {
            return;
        }
        let gone: HashSet<EndpointIndex> = self.unwatch.iter().copied().collect();
        self.watch.retain(|(index, _)| !gone.contains(index));
    }
}
