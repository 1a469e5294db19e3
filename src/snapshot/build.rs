//! From inventory, zones and places to a snapshot.

use std::collections::HashSet;
use std::sync::Arc;

use super::claims::{Claiming, Claims};
use super::frozen::Snapshot;
use super::names::{NameTable, NamesEdit};
use super::policies::PolicyTable;
use super::services::{ServiceSlot, ServiceTable};
use super::settings::Settings;
use crate::geo::GeoDb;
use crate::inventory::{Dirty, Inventory};
use crate::model::{EndpointIndex, EndpointState, Generation, Groups, Rejection, ZoneIndex};
use crate::zone::{Zone, ZoneSet};

/// All that a snapshot is made of. What is the same `Arc` as before is not looked at again.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// Clusters and services.
    pub inventory: &'a Inventory,
    /// Zones.
    pub zones: &'a Arc<ZoneSet>,
    /// Places.
    pub geo: &'a Arc<GeoDb>,
    /// Groups of countries.
    pub groups: &'a Arc<Groups>,
    /// Settings of answering.
    pub settings: &'a Arc<Settings>,
    /// Endpoint states that changed since the last build. Of two for one endpoint the later wins.
    pub states: &'a [(EndpointIndex, EndpointState)],
}

/// What building gave.
#[derive(Debug)]
pub struct Built {
    /// The next snapshot.
    pub snapshot: Snapshot,
    /// Claims refused in this build (conflicts with static records, names outside our zones, names of two services); the
    /// rest is served. What an earlier build refused is in [`Snapshot::refused`] until it is resolved.
    pub rejections: Vec<Rejection>,
}

/// Builds the next snapshot out of the last one. Pure. The cost follows the size of the change: a changed set of zones or
/// clusters, or a new geo table, is a change of everything that hangs on it.
///
/// `dirty` is what `Inventory::apply` gave since the last build, merged in order. On the empty snapshot everything is built
/// whatever `dirty` says. Endpoints in `watch` and `unwatch` begin as Up before `states` are applied.
#[must_use]
pub fn build(inputs: &Inputs<'_>, dirty: &Dirty, last: &Snapshot) -> Built {
    let everything;
    let dirty = if last.generation == Generation::default() {
        everything = all_of(inputs.inventory);
        &everything
    } else {
        dirty
    };
    let (names, claims, rejections) = build_names(inputs, dirty, last);
    let (services, policies) = build_services(inputs, dirty, last);
    let fresh = dirty.watch.iter().map(|(index, _)| index);
    let fresh = fresh
        .chain(&dirty.unwatch)
        .map(|&index| (index, EndpointState::UP));
    let clusters = if dirty.clusters {
        list_clusters(inputs.inventory)
    } else {
        Arc::clone(&last.clusters)
    };
    let snapshot = Snapshot {
        generation: last.generation.next(),
        names,
        zones: Arc::clone(inputs.zones),
        services,
        policies,
        usable: last.usable.with(fresh.chain(inputs.states.iter().copied())),
        geo: Arc::clone(inputs.geo),
        groups: Arc::clone(inputs.groups),
        clusters,
        settings: Arc::clone(inputs.settings),
        claims,
    };
    Built {
        snapshot,
        rejections,
    }
}

/// Names all services and clusters as dirty; endpoint states begin as Up anyway.
fn all_of(inventory: &Inventory) -> Dirty {
    Dirty {
        services: inventory.services().map(|(index, _)| index).collect(),
        clusters: true,
        ..Dirty::default()
    }
}

/// Lists clusters by index.
fn list_clusters(inventory: &Inventory) -> Arc<[Option<Arc<crate::model::Cluster>>]> {
    let end = inventory.clusters().map(|(index, _)| index.get() + 1).max();
    let mut list = vec![None; end.unwrap_or(0)];
    for (index, cluster) in inventory.clusters() {
        if let Some(place) = list.get_mut(index.get()) {
            *place = Some(Arc::clone(cluster));
        }
    }
    list.into()
}

// === Names ===

/// How the set of zones differs from the last one.
enum ZoneChange {
    /// In nothing.
    None,
    /// In the records of these zones; apexes and indices are the same.
    Records(HashSet<ZoneIndex>),
    /// In which zones there are: any name may belong to another zone now.
    Apexes,
}

/// Builds the table of names and what is known of claims.
fn build_names(
    inputs: &Inputs<'_>,
    dirty: &Dirty,
    last: &Snapshot,
) -> (NameTable, Arc<Claims>, Vec<Rejection>) {
    let changed = match zone_change(&last.zones, inputs.zones) {
        ZoneChange::Apexes => return build_all_names(inputs, last),
        ZoneChange::Records(changed) => changed,
        ZoneChange::None => HashSet::new(),
    };
    if changed.is_empty() && dirty.services.is_empty() && dirty.former.is_empty() {
        return (last.names.clone(), Arc::clone(&last.claims), Vec::new());
    }
    let names = NamesEdit::new(&last.names);
    let mut claiming = Claiming::new(inputs, names, Arc::clone(&last.claims));
    for former in &dirty.former {
        claiming.give_back(former);
    }
    for &index in &changed {
        if let (Some(old), Some(new)) = (last.zones.get(index), inputs.zones.get(index)) {
            claiming.replace_nodes(index, old, new);
        }
    }
    if !changed.is_empty() {
        for (index, service) in inputs.inventory.services() {
            claiming.claim_in(&changed, index, service);
        }
    }
    for &index in &dirty.services {
        if let Some(service) = inputs.inventory.service(index) {
            claiming.claim(index, service);
        }
    }
    claiming.seal()
}

/// Builds the table of names from nothing.
fn build_all_names(
    inputs: &Inputs<'_>,
    last: &Snapshot,
) -> (NameTable, Arc<Claims>, Vec<Rejection>) {
    let statics = inputs.zones.iter().flat_map(|(_, zone)| zone.names());
    let claimed = inputs.inventory.services();
    let claimed = claimed.flat_map(|(_, service)| service.names.iter());
    let (mut count, mut octets) = (0, 0);
    for name in statics.map(|(name, _)| name).chain(claimed) {
        count += 1;
        octets += name.as_wire().len();
    }
    let names = NamesEdit::from_nothing(&last.names, count, octets);
    let mut claiming = Claiming::new(inputs, names, Arc::default());
    claiming.put_zones();
    for (index, service) in inputs.inventory.services() {
        claiming.claim(index, service);
    }
    claiming.seal()
}

/// Compares two sets of zones.
fn zone_change(old: &Arc<ZoneSet>, new: &Arc<ZoneSet>) -> ZoneChange {
    if Arc::ptr_eq(old, new) {
        return ZoneChange::None;
    }
    let apexes = |(index, zone): (ZoneIndex, &Arc<Zone>)| (index, zone.apex().clone());
    if !old.iter().map(apexes).eq(new.iter().map(apexes)) {
        return ZoneChange::Apexes;
    }
    let changed = new.iter().filter(|(index, zone)| {
        let held = old.get(*index);
        held.is_none_or(|held| !Arc::ptr_eq(held, zone))
    });
    ZoneChange::Records(changed.map(|(index, _)| index).collect())
}

// === Services and policies ===

/// Builds the pages of services and the policies they use.
fn build_services(
    inputs: &Inputs<'_>,
    dirty: &Dirty,
    last: &Snapshot,
) -> (ServiceTable, PolicyTable) {
    let mut policies = last.policies.edit();
    let places_changed = dirty.clusters
        || !Arc::ptr_eq(&last.geo, inputs.geo)
        || (!Arc::ptr_eq(&last.groups, inputs.groups) && last.groups != *inputs.groups);
    if places_changed {
        policies.sweep(&last.services, true);
        policies.compile_all(inputs);
    }
    if dirty.services.is_empty() && dirty.removed.is_empty() {
        return (last.services.clone(), policies.seal());
    }
    let mut services = last.services.edit();
    for &index in dirty.removed.iter().chain(&dirty.services) {
        let slot = inputs.inventory.service(index).map(|service| ServiceSlot {
            pools: service.pools.clone(),
            policy: policies.index_of(service, inputs),
            ttl: service.ttl,
            extras: service.extras.clone(),
        });
        services.set(index, slot);
    }
    let services = services.seal();
    policies.sweep(&services, false);
    (services, policies.seal())
}
