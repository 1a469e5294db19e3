//! The tables.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::Arc;

use super::apart::Isolation;
use super::change::{Change, Dirty, Former};
use super::endpoints::Endpoints;
use super::intern::Interner;
use super::lookup::Lookup;
use super::service::Service;
use super::slab::Slab;
use crate::model::{
    Cluster, ClusterIndex, EndpointIndex, MonitorSpec, PolicySpec, ServiceIndex, ServiceKey,
};

/// Everything that exists. Owned by the controller.
///
/// Services stand in dense slots; an index is used again after its service is gone. Equal policies and equal monitors are
/// made one allocation. The cost of a change follows its size: no single change copies or rehashes what others hold.
#[derive(Debug, Default)]
pub struct Inventory {
    clusters: Vec<Option<Arc<Cluster>>>,
    services: Slab<Service>,
    by_key: Lookup,
    endpoints: Endpoints,
    policies: Interner<PolicySpec>,
    isolation: Isolation,
    /// Services set apart, by their mark; marks are never used again.
    marks: HashMap<ServiceKey, u32>,
    last_mark: u32,
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
            Change::Clusters(clusters) => dirty.clusters = self.set_clusters(clusters),
            Change::Replace(services) => self.replace(services, &mut dirty, &mut dropped),
            Change::Upsert(service) => {
                self.put(service, &mut dirty, &mut dropped);
            }
            Change::Remove(key) => {
                if let Some(index) = self.find(&key) {
                    self.remove(index, &mut dirty, &mut dropped);
                }
            }
        }
        for service in dropped {
            self.release(&service, &mut dirty.unwatch);
        }
        dirty.forget_short_lived();
        dirty
    }

    /// Sets entries apart for what operators speak of, and joins those that nobody speaks of any more. Gives what became dirty,
    /// and which new entry each old one was replaced by, so that nothing known of it is lost.
    pub fn isolate(
        &mut self,
        isolation: Isolation,
    ) -> (Dirty, Vec<(EndpointIndex, EndpointIndex)>) {
        let (mut dirty, mut moved) = (Dirty::default(), Vec::new());
        if isolation == self.isolation {
            return (dirty, moved);
        }
        let touched = self.touched_by(&isolation);
        for key in &isolation.services {
            if !self.marks.contains_key(key) {
                self.last_mark = self.last_mark.wrapping_add(1).max(1);
                self.marks.insert(key.clone(), self.last_mark);
            }
        }
        self.marks.retain(|key, _| isolation.services.contains(key));
        self.isolation = isolation;
        let mut dropped = Vec::new();
        for index in touched {
            let Some(mut service) = self.service(index).cloned() else {
                continue;
            };
            self.intern_and_assign(&mut service, &mut dirty);
            let Some(held) = self.services.get_mut(index.0) else {
                continue;
            };
            let old = std::mem::replace(held, service);
            let states = |service: &Service| -> Vec<EndpointIndex> {
                let pools = service.pools.iter();
                pools.flat_map(|pool| pool.states()).collect()
            };
            moved.extend(states(&old).into_iter().zip(states(held)));
            dirty.services.push(index);
            dropped.push(old);
        }
        for service in dropped {
            self.release(&service, &mut dirty.unwatch);
        }
        dirty.forget_short_lived();
        moved.retain(|(old, new)| old != new);
        (dirty, moved)
    }

    /// Lists the services whose entries another isolation would change.
    fn touched_by(&self, isolation: &Isolation) -> Vec<ServiceIndex> {
        let held = &self.isolation;
        let mut touched: Vec<ServiceIndex> = isolation
            .services
            .symmetric_difference(&held.services)
            .filter_map(|key| self.find(key))
            .collect();
        let addresses: HashSet<&(ClusterIndex, IpAddr)> = isolation
            .addresses
            .symmetric_difference(&held.addresses)
            .collect();
        if !addresses.is_empty() {
            let has = |service: &Service| {
                let mut pools = service.pools.iter();
                pools.any(|pool| {
                    let mut all = pool.v4().chain(pool.v6());
                    all.any(|endpoint| addresses.contains(&(endpoint.cluster, endpoint.address)))
                })
            };
            let unmonitored = self
                .services()
                .filter(|(_, service)| service.monitor.is_none());
            let found = unmonitored.filter(|(_, service)| has(service));
            touched.extend(found.map(|(index, _)| index));
        }
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// Gives the service that an endpoint's entry was set apart for; `None`: it is shared.
    #[must_use]
    pub fn endpoint_owner(&self, index: EndpointIndex) -> Option<&ServiceKey> {
        let owner = self.endpoints.owner(index).filter(|&owner| owner > 0)?;
        let mut marks = self.marks.iter();
        marks.find(|(_, mark)| **mark == owner).map(|(key, _)| key)
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

    /// Finds a service by key.
    #[must_use]
    pub fn find(&self, key: &ServiceKey) -> Option<ServiceIndex> {
        let services = &self.services;
        self.by_key
            .find(self.by_key.hash(key), |index| {
                services
                    .get(index)
                    .is_some_and(|service| service.key == *key)
            })
            .map(ServiceIndex)
    }

    /// Iterates over all services, by index.
    pub fn services(&self) -> impl Iterator<Item = (ServiceIndex, &Service)> {
        self.services
            .iter()
            .map(|(index, service)| (ServiceIndex(index), service))
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

    /// Takes a whole list of clusters. Gives whether anything changed.
    fn set_clusters(&mut self, clusters: Vec<(ClusterIndex, Arc<Cluster>)>) -> bool {
        let end = clusters.iter().map(|(index, _)| index.get() + 1).max();
        let mut all = vec![None; end.unwrap_or(0)];
        for (index, cluster) in clusters {
            if let Some(slot) = all.get_mut(index.get()) {
                *slot = Some(cluster);
            }
        }
        let changed = self.clusters != all;
        self.clusters = all;
        changed
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
            self.remove(ServiceIndex(index), dirty, dropped);
        }
    }

    /// Adds or changes one service. The old one is put into `dropped`.
    fn put(
        &mut self,
        mut service: Service,
        dirty: &mut Dirty,
        dropped: &mut Vec<Service>,
    ) -> ServiceIndex {
        let found = self.find(&service.key);
        if let Some(index) = found
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
            if is_renamed {
                dirty.former.push(Former {
                    index,
                    key: old.key.clone(),
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
    fn remove(&mut self, index: ServiceIndex, dirty: &mut Dirty, dropped: &mut Vec<Service>) {
        let Some(mut service) = self.services.take(index.0) else {
            return;
        };
        let hash = self.by_key.hash(&service.key);
        self.by_key.remove(hash, index.0);
        self.services.give_back(index.0);
        dirty.removed.push(index);
        dirty.former.push(Former {
            index,
            key: service.key.clone(),
            names: std::mem::take(&mut service.names),
        });
        dropped.push(service);
    }

    /// Makes equal policies and monitors one, and writes the states of all endpoints.
    fn intern_and_assign(&mut self, service: &mut Service, dirty: &mut Dirty) {
        service.policy = self.policies.intern(Arc::clone(&service.policy));
        let monitor = service.monitor.take();
        service.monitor = monitor.map(|spec| self.endpoints.intern(spec));
        let (endpoints, monitor) = (&mut self.endpoints, service.monitor.as_ref());
        let mark = if self.marks.is_empty() {
            None
        } else {
            self.marks.get(&service.key).copied()
        };
        let addresses = &self.isolation.addresses;
        service.pools.assign_states(|cluster, address| {
            let is_host = address.is_unspecified();
            let monitor = monitor.filter(|_| !is_host);
            let place = (cluster, address);
            match mark {
                Some(mark) => endpoints.acquire_apart(place, mark, monitor, &mut dirty.watch),
                None if monitor.is_none()
                    && !addresses.is_empty()
                    && addresses.contains(&place) =>
                {
                    endpoints.acquire_apart(place, 0, monitor, &mut dirty.watch)
                }
                None => endpoints.acquire(cluster, address, monitor, &mut dirty.watch),
            }
        });
    }

    /// Counts a dropped service's endpoints off.
    fn release(&mut self, service: &Service, gone: &mut Vec<EndpointIndex>) {
        if service.monitor.is_none() && !self.endpoints.has_apart() {
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
