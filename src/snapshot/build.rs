//! From inventory, zones and places to a snapshot.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::claims::{Claiming, Claims};
use super::frozen::Snapshot;
use super::inputs::Inputs;
use super::levels::Levels;
use super::names::{NameTable, NamesEdit, Steered};
use super::policies::PolicyTable;
use super::services::{ServiceSlot, ServiceTable};
use super::zone_diff::ZoneDiff;
use crate::inventory::{Dirty, Inventory};
use crate::model::{Cluster, EndpointState, Generation, Rejection, ZoneIndex};
use crate::zone::{Zone, ZoneSet};

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
    let (services, policies) = build_services(inputs, dirty, last);
    let (names, claims, rejections) = build_names(inputs, dirty, last, &services);
    let fresh = dirty.watch.iter().map(|(index, _)| index);
    let fresh = fresh
        .chain(&dirty.unwatch)
        .map(|&index| (index, EndpointState::UP));
    let clusters = if dirty.clusters {
        list_clusters(inputs.inventory)
    } else {
        Arc::clone(&last.clusters)
    };
    let levels = if dirty.clusters || !Arc::ptr_eq(&last.zones, inputs.zones) {
        levels_of(inputs.zones, &clusters, &last.levels)
    } else {
        Arc::clone(&last.levels)
    };
    let zone_slots = if Arc::ptr_eq(&last.zones, inputs.zones) {
        last.zone_slots.clone()
    } else {
        last.zone_slots.with(inputs.zones)
    };
    let sends_challenges = if Arc::ptr_eq(&last.zones, inputs.zones) {
        last.sends_challenges
    } else {
        let mut zones = inputs.zones.iter();
        zones.any(|(_, zone)| zone.acme().is_some())
    };
    let snapshot = Snapshot {
        generation: last.generation.next(),
        names,
        zones: Arc::clone(inputs.zones),
        zone_slots,
        services,
        policies,
        usable: last.usable.with(fresh.chain(inputs.states.iter().copied())),
        geo: Arc::clone(inputs.geo),
        groups: Arc::clone(inputs.groups),
        clusters,
        settings: Arc::clone(inputs.settings),
        claims,
        challenges: Arc::clone(inputs.challenges),
        sends_challenges,
        has_challenges: sends_challenges || !inputs.challenges.is_empty(),
        has_levels: !levels.is_empty(),
        levels,
    };
    Built {
        snapshot,
        rejections,
    }
}

/// Lists the claims that a build from nothing would refuse, without building the rest. Of the inputs only inventory and
/// zones count.
#[must_use]
pub fn refused_claims(inputs: &Inputs<'_>) -> Vec<Rejection> {
    build_all_names(inputs, &Snapshot::default(), &ServiceTable::default()).2
}

/// Names all services and clusters as dirty; endpoint states begin as Up anyway.
fn all_of(inventory: &Inventory) -> Dirty {
    Dirty {
        services: inventory.services().map(|(index, _)| index).collect(),
        clusters: true,
        ..Dirty::default()
    }
}

/// Reads regions and zones of the clusters, where a zone of names has levels, and keeps those there were.
fn levels_of(zones: &ZoneSet, clusters: &[Option<Arc<Cluster>>], last: &Levels) -> Arc<Levels> {
    let mut levels = Levels::default();
    if zones.iter().any(|(_, zone)| zone.forms().kubefed) {
        levels = Levels::of(clusters);
        levels.keep(last);
    }
    Arc::new(levels)
}

/// Lists clusters by index.
fn list_clusters(inventory: &Inventory) -> Arc<[Option<Arc<Cluster>>]> {
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
enum ZoneChange<'z> {
    /// In the records of these zones at most; apexes and indices are the same.
    Records(Vec<(ZoneIndex, ZoneDiff<'z>)>),
    /// In which zones there are, or in how one delegates those inside it: any name may belong to another zone now.
    Apexes,
}

/// Builds the table of names and what is known of claims.
fn build_names(
    inputs: &Inputs<'_>,
    dirty: &Dirty,
    last: &Snapshot,
    services: &ServiceTable,
) -> (NameTable, Arc<Claims>, Vec<Rejection>) {
    let diffs = match zone_change(&last.zones, inputs.zones) {
        ZoneChange::Apexes => return build_all_names(inputs, last, services),
        ZoneChange::Records(diffs) => diffs,
    };
    if diffs.is_empty() && dirty.services.is_empty() && dirty.former.is_empty() {
        return (last.names.clone(), Arc::clone(&last.claims), Vec::new());
    }
    let names = NamesEdit::new(&last.names);
    let mut claiming = Claiming::new(inputs, names, Arc::clone(&last.claims));
    for former in &dirty.former {
        claiming.give_back(former);
    }
    claim_after(&mut claiming, &diffs, inputs);
    for &index in &dirty.services {
        if let Some(service) = inputs.inventory.service(index) {
            claiming.claim(index, service);
            if last.services.steered(index) != services.steered(index) {
                claiming.refresh(index, service);
            }
        }
    }
    claiming.seal(&|index| services.steered(index))
}

/// Takes up the new records of zones, and claims again what they may decide otherwise.
fn claim_after(
    claiming: &mut Claiming<'_>,
    diffs: &[(ZoneIndex, ZoneDiff<'_>)],
    inputs: &Inputs<'_>,
) {
    let mut divided = HashSet::new();
    let mut names = HashSet::with_hasher(RandomState::default());
    for (index, diff) in diffs {
        claiming.change_nodes(*index, diff);
        if diff.divides {
            divided.insert(*index);
        } else {
            names.extend(diff.claims.iter().copied());
        }
    }
    if !names.is_empty() {
        claiming.claim_again(&names);
    }
    if !divided.is_empty() {
        for (index, service) in inputs.inventory.services() {
            claiming.claim_in(&divided, index, service);
        }
    }
}

/// Builds the table of names from nothing.
fn build_all_names(
    inputs: &Inputs<'_>,
    last: &Snapshot,
    services: &ServiceTable,
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
    claiming.seal(&|index| services.steered(index))
}

/// Compares two sets of zones.
fn zone_change<'z>(old: &'z Arc<ZoneSet>, new: &'z Arc<ZoneSet>) -> ZoneChange<'z> {
    if Arc::ptr_eq(old, new) {
        return ZoneChange::Records(Vec::new());
    }
    let apexes = |(index, zone): (ZoneIndex, &'z Arc<Zone>)| (index, zone.apex());
    if !old.iter().map(apexes).eq(new.iter().map(apexes)) {
        return ZoneChange::Apexes;
    }
    let pairs = old.iter().zip(new.iter());
    let changed = pairs.filter(|((_, old), (_, new))| !Arc::ptr_eq(old, new));
    let diffs = changed.map(|((index, old), (_, new))| (index, ZoneDiff::between(old, new)));
    let diffs: Vec<_> = diffs.filter(|(_, diff)| !diff.is_empty()).collect();
    // What a zone inside another one is to its parent depends on the parent's cuts.
    let moves_children =
        |(index, diff): &(ZoneIndex, ZoneDiff<'_>)| diff.divides && new.has_children(*index);
    if diffs.iter().any(moves_children) {
        return ZoneChange::Apexes;
    }
    ZoneChange::Records(diffs)
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
            steered: Steered {
                pools: service.pools.clone(),
                policy: policies.index_of(service, inputs),
                ttl: service.ttl,
            },
            extras: service.extras.clone(),
        });
        services.set(index, slot);
    }
    let services = services.seal();
    policies.sweep(&services, false);
    (services, policies.seal())
}
