//! Federated services: one name over what many clusters offer.
//!
//! Each object of each member cluster offers a shard: hosts that it asks for, addresses, and what it says. A claim on a host
//! is checked against the zone's grants; of the namespaces that may have a host one has it, the same in all clusters. All
//! objects of that namespace that ask for a host answer it together, each cluster only where its own object asks for it. What
//! stands behind equal hosts is one service: an object's own where all clusters that have it agree, else one for the host.

mod claims;
mod hosts;
mod known;
mod made;
mod meaning;
mod merge;
mod names;
mod ports;
mod refusals;
mod rules;
mod shard;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub use claims::Claim;
use hosts::hosts_of;
pub use meaning::Meant;
pub(super) use meaning::Reading;
pub use merge::{Overruled, PolicyConflict, ResolvedTarget, is_private};
pub(super) use merge::{Targets, old_condition};
use merge::{Voice, Within, endpoints_of, keys_of, weighs_endpoints};
pub use names::Owner;
use names::{Claimant, NameBook, key_of, key_of_name};
use ports::ports_of;
pub use rules::{FederationRules, Grant, NameForm, PrivateAddresses, ZoneRules};
pub use shard::{
    Backing, ClusterFacts, NameKeys, ObjectKind, ObjectRef, Readiness, Refused, Shard, ShardChange,
};

use super::service::{Origin, Service, covers, is_below};
use crate::model::{ClusterId, ClusterIndex, LowerName, NameRef, Names, ServiceKey, Ttl};

/// Why a name is refused that is none of ours.
const OUTSIDE: &str = "it lies outside our zones";

/// One object in all the clusters that have it.
#[derive(Clone, Debug, Default)]
struct Object {
    shards: BTreeMap<ClusterIndex, Arc<Shard>>,
    /// The hosts that it may have, by cluster.
    claims: BTreeSet<(LowerName, ClusterIndex)>,
    /// The hosts that it may not have, with the reason.
    refused: Vec<(LowerName, ClusterIndex, &'static str)>,
}

/// What a change came to.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    /// Services new or changed.
    pub(super) made: Vec<Service>,
    /// Services gone.
    pub(super) gone: Vec<ServiceKey>,
    /// What is refused may have changed.
    pub(super) refusals: bool,
}

/// What Kubernetes objects make of services.
#[derive(Debug, Default)]
pub struct Federation {
    rules: Arc<FederationRules>,
    clusters: HashMap<ClusterIndex, ClusterId>,
    objects: BTreeMap<ObjectRef, Object>,
    book: NameBook,
    /// The names of each service.
    services: BTreeMap<ServiceKey, BTreeSet<LowerName>>,
    /// Services that have no room for all of their objects, with the number of those left out.
    crowded: BTreeMap<ServiceKey, usize>,
    targets: Arc<Targets>,
    /// Clusters that were not seen for too long.
    aged: BTreeSet<ClusterIndex>,
}

impl Federation {
    // === In ===

    /// Takes the names of the clusters. What was offered by a cluster that is no more is gone.
    pub(super) fn set_clusters(&mut self, clusters: HashMap<ClusterIndex, ClusterId>) -> Outcomes {
        if clusters == self.clusters {
            return Outcomes::default();
        }
        self.clusters = clusters;
        let mut touched = BTreeSet::new();
        for object in self.objects.keys().cloned().collect::<Vec<_>>() {
            let clusters = &self.clusters;
            if let Some(held) = self.objects.get_mut(&object) {
                held.shards
                    .retain(|cluster, _| clusters.contains_key(cluster));
            }
            self.claim(&object, &mut touched);
        }
        self.settle(touched)
    }

    /// Takes new rules: every claim is judged anew.
    pub(super) fn set_rules(&mut self, rules: Arc<FederationRules>) -> Outcomes {
        if *rules == *self.rules {
            return Outcomes::default();
        }
        self.rules = rules;
        let mut touched = BTreeSet::new();
        for object in self.objects.keys().cloned().collect::<Vec<_>>() {
            self.claim(&object, &mut touched);
        }
        self.settle(touched)
    }

    /// Takes what targets resolve to: services that use one that changed are made anew.
    pub(super) fn set_targets(&mut self, targets: Arc<Targets>) -> Outcomes {
        let former = std::mem::replace(&mut self.targets, targets);
        let mut touched = BTreeSet::new();
        for held in self.objects.values() {
            let mut names = held.shards.values().flat_map(|shard| &shard.targets);
            if names.any(|name| former.get(name) != self.targets.get(name)) {
                touched.extend(held.claims.iter().map(|(name, _)| name.clone()));
            }
        }
        self.settle(touched)
    }

    /// Takes the clusters that were not seen for too long: what they offer is made anew where that turned.
    pub(super) fn set_aged(&mut self, aged: BTreeSet<ClusterIndex>) -> Outcomes {
        let turned: BTreeSet<_> = self.aged.symmetric_difference(&aged).copied().collect();
        self.aged = aged;
        let mut touched = BTreeSet::new();
        for held in self.objects.values() {
            if held.shards.keys().any(|cluster| turned.contains(cluster)) {
                touched.extend(held.claims.iter().map(|(name, _)| name.clone()));
            }
        }
        self.settle(touched)
    }

    /// Tells whether a cluster was not seen for too long.
    pub(super) fn is_aged(&self, cluster: ClusterIndex) -> bool {
        self.aged.contains(&cluster)
    }

    /// Takes who had which name before the start, in the order in which they were given; an empty list says that all who had
    /// one had their chance to claim it again.
    pub(super) fn remember(&mut self, owners: Vec<(LowerName, Arc<str>)>) {
        self.book.remember(owners);
    }

    /// Takes what changed in clusters, in this order. Each object is judged once, and each service made once.
    pub(super) fn change(&mut self, changes: Vec<(ClusterIndex, Vec<ShardChange>)>) -> Outcomes {
        if changes.is_empty() {
            return Outcomes::default();
        }
        let mut objects = BTreeSet::new();
        for (cluster, changes) in changes {
            for change in changes {
                self.note(cluster, change, &mut objects);
            }
        }
        let mut touched = BTreeSet::new();
        for object in objects {
            self.claim(&object, &mut touched);
        }
        let mut outcomes = self.settle(touched);
        outcomes.refusals = true;
        outcomes
    }

    /// Notes what a cluster offers now, and which objects that touches.
    fn note(
        &mut self,
        cluster: ClusterIndex,
        change: ShardChange,
        objects: &mut BTreeSet<ObjectRef>,
    ) {
        match change {
            // A cluster that was taken away meanwhile offers nothing.
            ShardChange::Upsert(shard) if self.clusters.contains_key(&cluster) => {
                let object = shard.object.clone();
                let held = self.objects.entry(object.clone()).or_default();
                held.shards.insert(cluster, Arc::from(shard));
                objects.insert(object);
            }
            ShardChange::Upsert(_) => {}
            ShardChange::Remove(object) => {
                if let Some(held) = self.objects.get_mut(&object) {
                    held.shards.remove(&cluster);
                    objects.insert(object);
                }
            }
            ShardChange::Clear => {
                for (object, held) in &mut self.objects {
                    if held.shards.remove(&cluster).is_some() {
                        objects.insert(object.clone());
                    }
                }
            }
        }
    }

    // === Claims ===

    /// Judges all claims of one object anew.
    fn claim(&mut self, object: &ObjectRef, touched: &mut BTreeSet<LowerName>) {
        let Some(held) = self.objects.get(object) else {
            return;
        };
        let mut claims = BTreeSet::new();
        let mut refused = Vec::new();
        // Most clusters say the same of an object: the names that follow are made once.
        let mut last: Option<(&Arc<NameKeys>, _)> = None;
        for (&cluster, shard) in &held.shards {
            let (_, (made, without)) = match last.take() {
                Some((keys, names)) if keys == &shard.keys => last.insert((keys, names)),
                _ => last.insert((&shard.keys, self.names_made(object, &shard.keys))),
            };
            let without = without.iter();
            refused.extend(without.map(|(name, reason)| (name.clone(), cluster, *reason)));
            for name in shard.hosts.iter().chain(&*made) {
                match self.judge(object, cluster, name.as_ref()) {
                    Ok(()) => {
                        claims.insert((name.clone(), cluster));
                    }
                    Err(reason) => refused.push((name.clone(), cluster, reason)),
                }
            }
        }
        let Some(held) = self.objects.get_mut(object) else {
            return;
        };
        held.refused = refused;
        for (name, cluster) in held.claims.difference(&claims) {
            if let Some(entry) = self.book.entries.get_mut(name) {
                entry.claims.remove(&(object.clone(), *cluster));
            }
            touched.insert(name.clone());
        }
        for (name, cluster) in claims.difference(&held.claims) {
            let entry = self.book.entries.entry(name.clone()).or_default();
            entry.claims.insert((object.clone(), *cluster));
        }
        for (name, _) in &claims {
            if !touched.contains(name) {
                touched.insert(name.clone());
            }
        }
        held.claims = claims;
        if held.shards.is_empty() {
            self.objects.remove(object);
        }
    }

    /// Makes the names that zones give to a service, and tells of one that it asks for and no zone gives.
    fn names_made(
        &self,
        object: &ObjectRef,
        keys: &NameKeys,
    ) -> (Vec<LowerName>, Option<(LowerName, &'static str)>) {
        if object.kind != ObjectKind::Service {
            return (Vec::new(), None);
        }
        let zones = self.rules.zones.iter();
        let made = zones.flat_map(|zone| made::of_zone(zone, object, keys));
        (
            made.collect(),
            made::without_zone(&self.rules, object, keys),
        )
    }

    /// Tells whether an object of a cluster may have a name.
    fn judge(
        &self,
        object: &ObjectRef,
        cluster: ClusterIndex,
        name: NameRef<'_>,
    ) -> Result<(), &'static str> {
        let Some(zone) = self.rules.zone_of(name) else {
            return Err(OUTSIDE);
        };
        if zone.grants.is_empty() {
            return made::may_without_grants(zone, &object.namespace, name);
        }
        let id = self.clusters.get(&cluster);
        let is_granted = |grant: &Grant| {
            let in_cluster = grant.clusters.as_ref();
            let in_namespace = grant.namespaces.as_ref();
            in_cluster.is_none_or(|all| id.is_some_and(|id| all.contains(id)))
                && in_namespace.is_none_or(|all| all.contains(&*object.namespace))
                && grant
                    .hostnames
                    .iter()
                    .any(|host| covers(host.as_ref(), name))
        };
        if zone.grants.iter().any(is_granted) {
            Ok(())
        } else {
            Err("no grant of the zone gives it to this namespace of this cluster")
        }
    }

    // === Out ===

    /// Decides who has the touched names, and makes the services behind them anew.
    fn settle(&mut self, touched: BTreeSet<LowerName>) -> Outcomes {
        let mut changed = BTreeSet::new();
        let wildcards = self.place_all(touched, &mut changed);
        // Where a wildcard comes, goes or passes to another, others may hide it or no longer do. A wildcard among these has
        // nothing below it that is not among them too, so that one round is enough.
        if !wildcards.is_empty() {
            self.place_all(self.book.below(&wildcards), &mut changed);
        }
        let mut outcomes = Outcomes {
            refusals: !changed.is_empty(),
            ..Outcomes::default()
        };
        for key in changed {
            match self.service(&key) {
                Some((service, left_out)) => {
                    if left_out > 0 {
                        self.crowded.insert(key, left_out);
                    } else {
                        self.crowded.remove(&key);
                    }
                    outcomes.made.push(service);
                }
                None => {
                    self.crowded.remove(&key);
                    outcomes.gone.push(key);
                }
            }
        }
        outcomes
    }

    /// Puts names to the services that they are, shorter names first: what a wildcard hides is decided after it. Gives the
    /// wildcards that have another holder than before.
    fn place_all(
        &mut self,
        names: impl IntoIterator<Item = LowerName>,
        changed: &mut BTreeSet<ServiceKey>,
    ) -> BTreeSet<LowerName> {
        let labels = |name: &LowerName| {
            std::iter::successors(Some(name.as_ref()), |name| name.parent()).count()
        };
        let mut names: Vec<LowerName> = names.into_iter().collect();
        names.sort_by_cached_key(labels);
        let mut wildcards = BTreeSet::new();
        for name in names {
            let had = self.holder(&name);
            self.place(&name, changed);
            if name.as_ref().is_wildcard() && had != self.holder(&name) {
                wildcards.insert(name);
            }
        }
        wildcards
    }

    /// Finds the wildcard of another namespace that a name would hide.
    fn hides(&self, name: &LowerName) -> Option<(LowerName, Owner)> {
        let zone = self.rules.zone_of(name.as_ref())?;
        self.book.hides(name.as_ref(), zone.apex.as_ref())
    }

    /// Gives whose a name is that is answered.
    fn holder(&self, name: &LowerName) -> Option<Owner> {
        let entry = self.book.entries.get(name)?;
        entry.owner.clone().filter(|_| entry.service.is_some())
    }

    /// Puts a name to the service that it is.
    fn place(&mut self, name: &LowerName, changed: &mut BTreeSet<ServiceKey>) {
        let owned_anew = self.book.decide(name);
        let Some(entry) = self.book.entries.get(name) else {
            return;
        };
        let former = entry.service.clone();
        let key = if entry.claims.is_empty() || self.hides(name).is_some() {
            None
        } else {
            self.key_at(name)
        };
        if entry.claims.is_empty() {
            self.book.entries.remove(name);
        } else if let Some(entry) = self.book.entries.get_mut(name) {
            entry.service.clone_from(&key);
        }
        if let Some(former) = former
            && (Some(&former) != key.as_ref() || owned_anew)
        {
            if let Some(names) = self.services.get_mut(&former) {
                names.remove(name);
                if names.is_empty() {
                    self.services.remove(&former);
                }
            }
            changed.insert(former);
        }
        if let Some(key) = key {
            self.services
                .entry(key.clone())
                .or_default()
                .insert(name.clone());
            changed.insert(key);
        }
    }

    /// Gives the key of the service that a name is.
    fn key_at(&self, name: &LowerName) -> Option<ServiceKey> {
        let entry = self.book.entries.get(name)?;
        let mut granted = entry.granted();
        let (first, _) = granted.next()?;
        let is_one = granted.all(|(object, _)| object == first);
        let clusters = entry.granted().count();
        let in_all = self
            .objects
            .get(first)
            .is_some_and(|held| held.shards.len() == clusters);
        if is_one && in_all {
            key_of(first, self.rules.apart(name.as_ref()))
        } else {
            key_of_name(&first.namespace, name.as_ref())
        }
    }

    /// Makes a service, and counts the objects that it has no room for; `None`: no name is its.
    pub(super) fn service(&self, key: &ServiceKey) -> Option<(Service, usize)> {
        let names = self.services.get(key)?;
        let voices = self.voices(key);
        let zones = || {
            let zones = names.iter();
            zones.filter_map(|name| self.rules.zone_of(name.as_ref()))
        };
        let private = self.private_of(key);
        let base = (&*self.rules.base, private);
        let (policy, ttl) = keys_of(base, &voices, &mut Vec::new());
        let weighs = self.rules.weighs_endpoints;
        let by_endpoints = weighs_endpoints(weighs, &policy, &voices, &mut Vec::new());
        let within = Within {
            targets: &self.targets,
            private,
            names,
        };
        let endpoints = endpoints_of(&voices, within, by_endpoints);
        // A zone's own TTL counts where nobody says another; a target's only shortens.
        let ttl: Option<Ttl> = match endpoints.ttl {
            None => ttl,
            Some(target) => {
                let target = target.max(self.rules.min_ttl.unwrap_or(target));
                let own = ttl.or_else(|| zones().map(|zone| zone.ttl).min());
                Some(own.map_or(target, |own| own.min(target)))
            }
        };
        let (mut extras, left_out) = (endpoints.extras, endpoints.left_out);
        let ports = ports_of(&self.rules, names, &voices, &mut Vec::new());
        if ports.is_some() {
            Arc::make_mut(extras.get_or_insert_default()).ports = ports;
        }
        let hosts = hosts_of(&self.rules, names, &voices);
        if hosts.is_some() {
            Arc::make_mut(extras.get_or_insert_default()).hosts = hosts;
        }
        let service = Service {
            key: key.clone(),
            origin: Origin::Kubernetes,
            names: names.iter().collect::<Names>(),
            ttl,
            policy: Arc::new(policy),
            monitor: endpoints.monitor,
            pools: endpoints.pools,
            extras,
        };
        Some((service, left_out))
    }

    /// Tells where private addresses of a service may be answered: all zones of one service say the same (see `key_at`).
    fn private_of(&self, key: &ServiceKey) -> PrivateAddresses {
        let names = self.services.get(key);
        let zone = names.and_then(|names| self.rules.zone_of(names.first()?.as_ref()));
        zone.map(|zone| zone.private).unwrap_or_default()
    }

    /// Lists the shards of a service, in the order of their clusters' names.
    fn voices(&self, key: &ServiceKey) -> Vec<Voice<'_>> {
        let names = self.services.get(key);
        let entry = names
            .and_then(|names| names.first())
            .and_then(|name| self.book.entries.get(name));
        let claims = entry.into_iter().flat_map(|entry| entry.granted());
        let voice = |(object, cluster): &Claimant| {
            let held = self.objects.get(object)?;
            Some(Voice {
                cluster: *cluster,
                id: self.clusters.get(cluster)?,
                shard: held.shards.get(cluster)?,
                is_aged: self.aged.contains(cluster),
            })
        };
        let mut voices: Vec<Voice<'_>> = claims.filter_map(voice).collect();
        voices.sort_by(|a, b| (a.id, &a.shard.object).cmp(&(b.id, &b.shard.object)));
        voices
    }
}
