//! What operators speak of more closely than entries are shared: services, and addresses that nobody monitors.
//!
//! Each service that a key means has entries of its own, under a mark, and knows which keys mean how much of it. What a key means
//! is looked at whenever a service is put: its key may be another by then, or other objects may stand behind it.

use std::collections::HashSet;
use std::net::IpAddr;

use super::apart::Isolation;
use super::change::Dirty;
use super::federation::{Federation, Meant, Reading};
use super::service::{Origin, Service};
use super::tables::Inventory;
use crate::model::{ClusterIndex, EndpointIndex, ServiceIndex, ServiceKey};

/// Says how much of a service a key means; `None`: nothing.
fn meant(
    (key, reading): (&ServiceKey, &Reading),
    service: &Service,
    (served, observed): (&Federation, &Federation),
) -> Option<Meant> {
    if service.key == *key {
        return Some(Meant::Whole);
    }
    match service.origin {
        Origin::Configuration => None,
        Origin::Kubernetes => served.meant_of(&service.key, reading),
        Origin::Observed => {
            let served = service.key.served();
            if served == *key {
                return Some(Meant::Whole);
            }
            observed.meant_of(&served, reading)
        }
    }
}

impl Inventory {
    /// Sets entries apart for what operators speak of, and joins those that nobody speaks of any more. Gives what became dirty,
    /// and which new entry each old one was replaced by, so that nothing known of it is lost.
    pub fn isolate(
        &mut self,
        isolation: Isolation,
    ) -> (Dirty, Vec<(EndpointIndex, EndpointIndex)>) {
        let (mut dirty, mut moved) = (Dirty::default(), Vec::new());
        if isolation == self.spoken.isolation {
            return (dirty, moved);
        }
        let touched = self.touched_by(&isolation);
        self.spoken.set(isolation);
        let mut dropped = Vec::new();
        for index in touched {
            let Some(mut service) = self.service(index).cloned() else {
                continue;
            };
            self.mark(&service);
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
        let held = &self.spoken.isolation;
        let mut touched: Vec<ServiceIndex> = isolation
            .services
            .symmetric_difference(&held.services)
            .flat_map(|key| self.find_meant(key))
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
            let unmonitored = self.services().filter(|(_, service)| {
                let extras = service.extras.as_ref();
                service.monitor.is_none()
                    || extras.is_some_and(|extras| !extras.particulars.is_empty())
            });
            let found = unmonitored.filter(|(_, service)| has(service));
            touched.extend(found.map(|(index, _)| index));
        }
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// Looks which keys that are spoken of mean a service that is put. Tells whether that is not as it was.
    pub(super) fn mark(&mut self, service: &Service) -> bool {
        if self.spoken.is_empty() {
            return false;
        }
        let federations = (&self.federation, &self.observed.federation);
        let of_namespace = self.spoken.keys_of(service.key.namespace());
        let keys = of_namespace.iter().filter_map(|(key, reading)| {
            Some((key.clone(), meant((key, reading), service, federations)?))
        });
        let keys = keys.collect();
        self.spoken.mark(service, keys)
    }

    /// Finds all services that a key means, whatever their own keys are: see [`Meant`].
    #[must_use]
    pub fn find_meant(&self, key: &ServiceKey) -> Vec<ServiceIndex> {
        let served = self.federation.meant_by(key);
        let served = served
            .iter()
            .filter_map(|key| self.find_of(Origin::Kubernetes, key));
        let observed = self.observed.federation.meant_by(key);
        let observed = observed
            .iter()
            .filter_map(|key| self.find_of(Origin::Observed, &key.observed()));
        let mut all: Vec<_> = self.find_all(key).chain(served).chain(observed).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Says how much of a service a key means; `None`: nothing.
    #[must_use]
    pub fn meant(&self, key: &ServiceKey, service: &Service) -> Option<Meant> {
        if key.namespace() != service.key.namespace() {
            return None;
        }
        let federations = (&self.federation, &self.observed.federation);
        meant((key, &Reading::of(key)), service, federations)
    }

    /// Gives the keys by which operators speak of an endpoint's service, each with how much of it that means. Nothing for an entry
    /// that is shared.
    #[must_use]
    pub fn spoken_of(&self, index: EndpointIndex) -> &[(ServiceKey, Meant)] {
        let owner = self.endpoints.owner(index).filter(|&owner| owner > 0);
        owner.map_or(&[], |owner| self.spoken.keys_at(owner))
    }
}
