//! The tables.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::Arc;

use super::change::{Change, Dirty, Former};
use super::endpoints::{Appeared, Endpoints};
use super::federation::{ClusterFacts, Federation, Outcomes};
use super::intern::Interner;
use super::marks::Spoken;
use super::named::Named;
use super::registry::{cluster_ids, located};
use super::service::{Origin, Service};
use crate::model::{
    Cluster, ClusterIndex, Condition, EndpointIndex, Lookup, MonitorSpec, PolicySpec, ServiceIndex,
    ServiceKey, Slab,
};

/// Everything that exists. Owned by the controller.
///
/// Services stand in dense slots; an index is used again after its service is gone. Equal policies and equal monitors are
/// made one allocation. The cost of a change follows its size: no single change copies or rehashes what others hold.
#[derive(Debug, Default)]
pub struct Inventory {
    clusters: Vec<Option<Arc<Cluster>>>,
    /// Clusters as the configuration has them.
    configured: Vec<(ClusterIndex, Arc<Cluster>)>,
    /// What clusters say of themselves.
    facts: HashMap<ClusterIndex, ClusterFacts>,
    pub(super) federation: Federation,
    pub(super) observed: Observed,
    pub(super) named: Named,
    pub(super) services: Slab<Service>,
    by_key: Lookup,
    pub(super) endpoints: Endpoints,
    policies: Interner<PolicySpec>,
    pub(super) spoken: Spoken,
}

/// What is known of observed clusters.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) clusters: BTreeSet<ClusterIndex>,
    pub(super) federation: Federation,
}

impl Observed {
    /// Tells whether a cluster is observed.
    pub(super) fn has(&self, cluster: ClusterIndex) -> bool {
        self.clusters.contains(&cluster)
    }
}

impl Inventory {
    /// Applies one change and says what became dirty. Equal input gives an empty `Dirty`.
    ///
    /// Services handed in should own their pools alone: then states are written in place, else into a copy.
    pub fn apply(&mut self, change: Change) -> Dirty {
        let mut dirty = Dirty::default();
        // Released last: what one service drops and another takes up keeps its entry.
        let mut dropped = Vec::new();
        match change {
            Change::Clusters(clusters) => {
                self.configured = clusters;
                dirty.clusters = self.set_clusters();
                let ids = cluster_ids(&self.clusters);
                let observed = self.observed.federation.set_clusters(ids.clone());
                let outcomes = self.federation.set_clusters(ids);
                self.take_both(outcomes, observed, &mut dirty, &mut dropped);
            }
            Change::Replace(services) => {
                let services = self.take_named(services);
                self.replace(services, &mut dirty, &mut dropped);
            }
            Change::Upsert(mut service) => {
                self.take_one_named(&mut service);
                self.put(service, &mut dirty, &mut dropped);
            }
            Change::Remove(key) => {
                self.named.forget(&key);
                if let Some(index) = self.find_of(Origin::Configuration, &key) {
                    self.remove(index, &mut dirty, &mut dropped);
                }
            }
            Change::Owners(owners) => self.federation.remember(owners),
            Change::Rules(rules) => {
                let observed = self.observed.federation.set_rules(Arc::clone(&rules));
                let outcomes = self.federation.set_rules(rules);
                self.take_both(outcomes, observed, &mut dirty, &mut dropped);
                self.renew_named(None, &mut dirty, &mut dropped);
            }
            Change::Shards(changes) => {
                let of_observed = |(cluster, _): &(ClusterIndex, _)| self.observed.has(*cluster);
                let (observed, served): (Vec<_>, Vec<_>) =
                    changes.into_iter().partition(of_observed);
                let observed = self.observed.federation.change(observed);
                let served = self.federation.change(served);
                self.take_both(served, observed, &mut dirty, &mut dropped);
            }
            Change::Targets(targets) => {
                let former = Arc::clone(self.federation.all_resolved());
                let observed = self.observed.federation.set_targets(Arc::clone(&targets));
                let outcomes = self.federation.set_targets(targets);
                self.take_both(outcomes, observed, &mut dirty, &mut dropped);
                self.renew_named(Some(&former), &mut dirty, &mut dropped);
            }
            Change::Observed(clusters) => self.set_observed(clusters, &mut dirty, &mut dropped),
            Change::Aged(clusters) => {
                let observed = self.observed.federation.set_aged(clusters.clone());
                let outcomes = self.federation.set_aged(clusters);
                self.take_both(outcomes, observed, &mut dirty, &mut dropped);
            }
            Change::Facts(cluster, facts) => {
                self.facts.insert(cluster, facts);
                dirty.clusters = self.set_clusters();
            }
        }
        for service in dropped {
            self.release(&service, &mut dirty.unwatch);
        }
        dirty.forget_short_lived();
        dirty
    }

    /// Lets the indices of endpoints that are gone be used again. The controller calls it after each publish: until then
    /// the snapshot in force, and flips on their way, may still mean the old endpoints. Not called, indices only grow.
    pub fn settle(&mut self) {
        self.endpoints.settle();
    }

    /// Gives a cluster.
    #[must_use]
    pub fn cluster(&self, index: ClusterIndex) -> Option<&Arc<Cluster>> {
        self.clusters.get(index.get())?.as_ref()
    }

    /// Iterates over all clusters, by index.
    pub fn clusters(&self) -> impl Iterator<Item = (ClusterIndex, &Arc<Cluster>)> {
        (0..)
            .map(ClusterIndex)
            .zip(&self.clusters)
            .filter_map(|(index, cluster)| Some((index, cluster.as_ref()?)))
    }

    /// Gives a service.
    #[must_use]
    pub fn service(&self, index: ServiceIndex) -> Option<&Service> {
        self.services.get(index.0)
    }

    /// Finds a service by key: that of the configuration before one that Kubernetes objects make.
    #[must_use]
    pub fn find(&self, key: &ServiceKey) -> Option<ServiceIndex> {
        self.find_all(key).next()
    }

    /// Finds all services of one key: the configuration may have one, and Kubernetes objects make another.
    pub fn find_all(&self, key: &ServiceKey) -> impl Iterator<Item = ServiceIndex> {
        let origins = [Origin::Configuration, Origin::Kubernetes, Origin::Observed];
        origins
            .into_iter()
            .filter_map(|origin| self.find_of(origin, key))
    }

    /// Finds the service of one key that comes from there.
    pub(super) fn find_of(&self, origin: Origin, key: &ServiceKey) -> Option<ServiceIndex> {
        let services = &self.services;
        let is_it = |service: &Service| service.key == *key && service.origin == origin;
        self.by_key
            .find(self.by_key.hash(key), |index| {
                services.get(index).is_some_and(is_it)
            })
            .map(ServiceIndex)
    }

    /// Iterates over all services, by index.
    pub fn services(&self) -> impl Iterator<Item = (ServiceIndex, &Service)> {
        self.services
            .iter()
            .map(|(index, service)| (ServiceIndex(index), service))
    }

    /// Counts the services.
    #[must_use]
    pub fn service_count(&self) -> usize {
        self.by_key.len()
    }

    /// Gives one more than the highest index of a service ever given.
    #[must_use]
    pub fn service_end(&self) -> u32 {
        self.services.end()
    }

    /// Counts the entries of the table of endpoint states: one more than the highest index ever given.
    #[must_use]
    pub fn endpoint_count(&self) -> usize {
        self.endpoints.end()
    }

    /// Gives what an endpoint's entry stands for: cluster, address, monitor; `None` for a free index. The address is
    /// unspecified in the entry that all unmonitored endpoints of a cluster share.
    #[must_use]
    pub fn endpoint(
        &self,
        index: EndpointIndex,
    ) -> Option<(ClusterIndex, IpAddr, Option<&Arc<MonitorSpec>>)> {
        self.endpoints.get(index)
    }

    /// Lists the clusters of the configuration, completed by what they say of themselves. Gives whether anything changed.
    fn set_clusters(&mut self) -> bool {
        let end = self
            .configured
            .iter()
            .map(|(index, _)| index.get() + 1)
            .max();
        let mut all = vec![None; end.unwrap_or(0)];
        for (index, cluster) in &self.configured {
            if let Some(slot) = all.get_mut(index.get()) {
                let facts = self.facts.get(index);
                *slot = Some(
                    facts.map_or_else(|| Arc::clone(cluster), |facts| located(cluster, facts)),
                );
            }
        }
        let changed = self.clusters != all;
        self.clusters = all;
        changed
    }

    /// Gives what Kubernetes objects make of services.
    #[must_use]
    pub fn federation(&self) -> &Federation {
        &self.federation
    }

    /// Gives a cluster as the configuration has it, before it is completed by what it says of itself.
    #[must_use]
    pub fn configured(&self, index: ClusterIndex) -> Option<&Arc<Cluster>> {
        let mut configured = self.configured.iter();
        let found = configured.find(|(other, _)| *other == index)?;
        Some(&found.1)
    }

    /// Gives what a cluster says of its own place.
    #[must_use]
    pub fn facts(&self, index: ClusterIndex) -> Option<&ClusterFacts> {
        self.facts.get(&index)
    }

    /// Tells whether an entry is of a member cluster that was not seen for too long.
    #[must_use]
    pub fn is_aged(&self, index: EndpointIndex) -> bool {
        self.endpoint(index)
            .is_some_and(|(cluster, ..)| self.federation.is_aged(cluster))
    }

    /// Gives what its own cluster says of an endpoint.
    #[must_use]
    pub fn endpoint_condition(&self, index: EndpointIndex) -> Condition {
        self.endpoints.condition(index)
    }

    /// Takes what came of those who are served and of those who are observed.
    fn take_both(
        &mut self,
        served: Outcomes,
        observed: Outcomes,
        dirty: &mut Dirty,
        dropped: &mut Vec<Service>,
    ) {
        let has_moved = !(served.made.is_empty() && served.gone.is_empty());
        self.take(Origin::Kubernetes, served, dirty, dropped);
        self.take_observed(observed, dirty, dropped);
        if has_moved {
            self.review_observed(dirty, dropped);
        }
    }

    /// Puts and removes services as objects make them, of clusters that are served or of those that are observed.
    pub(super) fn take(
        &mut self,
        origin: Origin,
        outcomes: Outcomes,
        dirty: &mut Dirty,
        dropped: &mut Vec<Service>,
    ) {
        dirty.refusals |= outcomes.refusals;
        for key in outcomes.gone {
            if let Some(index) = self.find_of(origin, &key) {
                self.remove(index, dirty, dropped);
            }
        }
        for service in outcomes.made {
            self.put(service, dirty, dropped);
        }
    }

    /// Tells where a service comes from.
    fn origin(&self, index: ServiceIndex) -> Option<Origin> {
        self.service(index).map(|service| service.origin)
    }

    /// Takes all services: those not in the list are gone.
    fn replace(&mut self, services: Vec<Service>, dirty: &mut Dirty, dropped: &mut Vec<Service>) {
        let mut seen = vec![false; self.services.end() as usize];
        let new = services.len().saturating_sub(self.services().count());
        let (slab, hasher) = (&self.services, self.by_key.hasher());
        self.by_key
            .reserve(new, |index| key_hash(slab, &hasher, index));
        for service in services {
            let index = self.put(service, dirty, dropped);
            if let Some(seen) = seen.get_mut(index.get()) {
                *seen = true;
            }
        }
        for (index, _) in (0..).zip(seen).filter(|(_, seen)| !seen) {
            let index = ServiceIndex(index);
            if self.origin(index) == Some(Origin::Configuration) {
                self.remove(index, dirty, dropped);
            }
        }
    }

    /// Adds or changes one service. The old one is put into `dropped`.
    pub(super) fn put(
        &mut self,
        mut service: Service,
        dirty: &mut Dirty,
        dropped: &mut Vec<Service>,
    ) -> ServiceIndex {
        let found = self.find_of(service.origin, &service.key);
        let is_marked_anew = self.mark(&service);
        if let Some(index) = found
            && !is_marked_anew
            && self
                .service(index)
                .is_some_and(|held| held.is_same(&service))
        {
            return index;
        }
        self.intern_and_assign(&mut service, dirty);
        if let Some(index) = found
            && let Some(held) = self.services.get_mut(index.0)
        {
            let is_renamed = held.names != service.names;
            let mut old = std::mem::replace(held, service);
            self.note_moved(&old, index, &mut dirty.moved);
            if is_renamed {
                dirty.former.push(Former {
                    index,
                    rank: (old.origin, old.key.clone()),
                    names: std::mem::take(&mut old.names),
                });
            }
            dirty.services.push(index);
            dropped.push(old);
            return index;
        }
        let hash = self.by_key.hash(&service.key);
        let index = self.services.insert(service);
        let (slab, hasher) = (&self.services, self.by_key.hasher());
        self.by_key
            .insert(hash, index, |index| key_hash(slab, &hasher, index));
        dirty.services.push(ServiceIndex(index));
        ServiceIndex(index)
    }

    /// Takes one service out and puts it into `dropped`. Nothing happens for a free index.
    pub(super) fn remove(
        &mut self,
        index: ServiceIndex,
        dirty: &mut Dirty,
        dropped: &mut Vec<Service>,
    ) {
        let Some(mut service) = self.services.take(index.0) else {
            return;
        };
        self.spoken.forget(&service);
        let hash = self.by_key.hash(&service.key);
        self.by_key.remove(hash, index.0);
        self.services.give_back(index.0);
        dirty.removed.push(index);
        dirty.former.push(Former {
            index,
            rank: (service.origin, service.key.clone()),
            names: std::mem::take(&mut service.names),
        });
        dropped.push(service);
    }

    /// Makes equal policies and monitors one, and writes the states of all endpoints.
    pub(super) fn intern_and_assign(&mut self, service: &mut Service, dirty: &mut Dirty) {
        service.policy = self.policies.intern(Arc::clone(&service.policy));
        let monitor = service.monitor.take();
        service.monitor = monitor.map(|spec| self.endpoints.intern(spec));
        let (endpoints, shared) = (&mut self.endpoints, service.monitor.as_ref());
        let mark = self.spoken.mark_of(service);
        let addresses = &self.spoken.isolation.addresses;
        let extras = service.extras.as_deref();
        let extras = extras.filter(|extras| !extras.particulars.is_empty());
        let mut appeared = Appeared {
            watch: &mut dirty.watch,
            conditioned: &mut dirty.conditioned,
        };
        service.pools.assign_states(|cluster, address| {
            let own = extras.and_then(|extras| extras.particular(cluster, address));
            let particular = own.map(|own| {
                let monitor = own.monitor.as_ref().map(Arc::clone);
                (monitor.map(|spec| endpoints.intern(spec)), own.condition)
            });
            let (monitor, condition) = match &particular {
                Some((monitor, condition)) => (monitor.as_ref(), *condition),
                None => (shared, Condition::default()),
            };
            let is_host = address.is_unspecified();
            let monitor = monitor.filter(|_| !is_host);
            let place = (cluster, address);
            let is_spoken_of =
                monitor.is_none() && !addresses.is_empty() && addresses.contains(&place);
            if mark.is_some() || is_spoken_of || condition != Condition::default() {
                let owner = (mark.unwrap_or(0), condition);
                endpoints.acquire_apart(place, owner, monitor, &mut appeared)
            } else {
                endpoints.acquire(cluster, address, monitor, &mut appeared)
            }
        });
    }

    /// Notes which entries took the place of which, where an address of a changed service is judged by the same monitor.
    fn note_moved(
        &self,
        old: &Service,
        index: ServiceIndex,
        moved: &mut Vec<(EndpointIndex, EndpointIndex)>,
    ) {
        let Some(new) = self.service(index) else {
            return;
        };
        let states = |service: &Service| -> Vec<EndpointIndex> {
            let pools = service.pools.iter();
            pools.flat_map(|pool| pool.states()).collect()
        };
        let (before, after) = (states(old), states(new));
        if before == after {
            return;
        }
        let mut known = HashMap::with_capacity(before.len());
        for pool in old.pools.iter() {
            for endpoint in pool.v4().chain(pool.v6()) {
                let place = (endpoint.cluster, endpoint.address);
                known.insert(place, endpoint.state);
            }
        }
        for pool in new.pools.iter() {
            for endpoint in pool.v4().chain(pool.v6()) {
                let place = (endpoint.cluster, endpoint.address);
                let Some(&former) = known.get(&place) else {
                    continue;
                };
                if former != endpoint.state && self.is_judged_alike(former, endpoint.state) {
                    moved.push((former, endpoint.state));
                }
            }
        }
    }

    /// Tells whether two entries have one monitor, or none.
    fn is_judged_alike(&self, a: EndpointIndex, b: EndpointIndex) -> bool {
        let spec = |index| self.endpoint(index).map(|(_, _, spec)| spec);
        match (spec(a), spec(b)) {
            (Some(Some(a)), Some(Some(b))) => Arc::ptr_eq(a, b),
            (Some(None), Some(None)) => true,
            _ => false,
        }
    }

    /// Counts a dropped service's endpoints off.
    pub(super) fn release(&mut self, service: &Service, gone: &mut Vec<EndpointIndex>) {
        let extras = service.extras.as_ref();
        let is_plain = extras.is_none_or(|extras| extras.particulars.is_empty());
        if service.monitor.is_none() && is_plain && !self.endpoints.has_apart() {
            return;
        }
        for pool in service.pools.iter() {
            for state in pool.states() {
                self.endpoints.release(state, gone);
            }
        }
    }
}

/// Hashes the key of a held service again.
fn key_hash(services: &Slab<Service>, hasher: &impl BuildHasher, index: u32) -> u64 {
    services
        .get(index)
        .map_or(0, |service| hasher.hash_one(&service.key))
}
