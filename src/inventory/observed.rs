//! Clusters that are observed: watched and probed, and nobody is answered with them.
//!
//! What they offer is put together apart from all else, so that it changes no name, no policy and no share of those who are served.
//! What comes out are services with keys of their own behind a fence that lets nobody in: their endpoints have monitors, and a name
//! that nobody else answers is there without an address. They have the last place in the right of way.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::change::Dirty;
use super::federation::{Federation, Outcomes, ShardChange};
use super::service::{Extras, Origin, Service};
use super::tables::Inventory;
use crate::model::{ClusterIndex, LowerName, Names, PolicySpec, Rejection, ServiceKey};

impl Inventory {
    /// Tells whether a cluster is observed: watched and probed, and nobody is answered with it.
    #[must_use]
    pub fn observes(&self, cluster: ClusterIndex) -> bool {
        self.observed.has(cluster)
    }

    /// Gives where a service is put together that objects make, and its key there.
    #[must_use]
    pub fn federation_of(&self, service: &Service) -> (&Federation, ServiceKey) {
        match service.origin {
            Origin::Observed => (&self.observed.federation, service.key.served()),
            _ => (self.federation(), service.key.clone()),
        }
    }

    /// Lists everything that is refused of objects, and the targets of the configuration that are not followed, with the reason.
    pub fn refusals(&self) -> impl Iterator<Item = Rejection> {
        let served = self.federation.refusals();
        let observed = self.observed.federation.refusals();
        served.chain(observed).chain(self.refused_targets())
    }

    /// Takes which clusters are observed from now on. What the others offer is served.
    pub(super) fn set_observed(
        &mut self,
        clusters: BTreeSet<ClusterIndex>,
        dirty: &mut Dirty,
        dropped: &mut Vec<Service>,
    ) {
        let former = std::mem::replace(&mut self.observed.clusters, clusters);
        let turned = former.symmetric_difference(&self.observed.clusters);
        for cluster in turned.copied().collect::<Vec<_>>() {
            let (from, to) = if self.observed.has(cluster) {
                (&mut self.federation, &mut self.observed.federation)
            } else {
                (&mut self.observed.federation, &mut self.federation)
            };
            let of_cluster = from.all().filter(|(index, _)| *index == cluster);
            let shards = of_cluster
                .map(|(_, shard)| ShardChange::Upsert(Box::new((**shard).clone())))
                .collect();
            let (gone, made) = (
                from.change(vec![(cluster, vec![ShardChange::Clear])]),
                to.change(vec![(cluster, shards)]),
            );
            if self.observed.has(cluster) {
                self.take(Origin::Kubernetes, gone, dirty, dropped);
                self.take_observed(made, dirty, dropped);
            } else {
                self.take_observed(gone, dirty, dropped);
                self.take(Origin::Kubernetes, made, dirty, dropped);
            }
        }
        self.review_observed(dirty, dropped);
    }

    /// Puts and removes what objects of observed clusters make.
    pub(super) fn take_observed(
        &mut self,
        outcomes: Outcomes,
        dirty: &mut Dirty,
        dropped: &mut Vec<Service>,
    ) {
        let made = outcomes.made.into_iter().map(|service| {
            let all: Vec<LowerName> = service.names.iter().map(|name| name.to_lower()).collect();
            let names = self.unanswered(all.iter());
            shadow(service, names)
        });
        let shadows = Outcomes {
            made: made.collect(),
            gone: outcomes.gone.iter().map(ServiceKey::observed).collect(),
            refusals: outcomes.refusals,
        };
        self.take(Origin::Observed, shadows, dirty, dropped);
    }

    /// Looks again which names of observed clusters nobody else answers: those who are served may have changed.
    pub(super) fn review_observed(&mut self, dirty: &mut Dirty, dropped: &mut Vec<Service>) {
        let keys: Vec<ServiceKey> = self.observed.federation.keys().cloned().collect();
        for key in keys {
            let names = self.unanswered(self.observed.federation.names_of(&key));
            let held = self.find_of(Origin::Observed, &key.observed());
            let held = held.and_then(|index| self.service(index));
            if held.is_some_and(|held| held.names == names) {
                continue;
            }
            if let Some((service, _)) = self.observed.federation.service(&key) {
                self.put(shadow(service, names), dirty, dropped);
            }
        }
    }

    /// Picks the names that nobody else answers, by a wildcard neither.
    fn unanswered<'n>(&self, names: impl Iterator<Item = &'n LowerName>) -> Names {
        names
            .filter(|name| !self.federation.answers(name))
            .collect()
    }
}

/// Makes the service that stands for one of observed clusters: nobody is let in.
fn shadow(service: Service, names: Names) -> Service {
    let policy = PolicySpec {
        fences: vec![Vec::new()],
        ..PolicySpec::default()
    };
    let mut extras = service.extras;
    let has_names = |extras: &&mut Arc<Extras>| extras.ports.is_some() || extras.hosts.is_some();
    if let Some(extras) = extras.as_mut().filter(has_names) {
        // What they say of ports and endpoints is no answer either.
        let extras = Arc::make_mut(extras);
        (extras.ports, extras.hosts) = (None, None);
    }
    Service {
        key: service.key.observed(),
        origin: Origin::Observed,
        names,
        ttl: None,
        policy: Arc::new(policy),
        extras,
        ..service
    }
}
