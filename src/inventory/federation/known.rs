//! What others may know of federated services: what stands behind one, who has which name, and what is to be resolved.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::merge::{PolicyConflict, ResolvedTarget, Targets, keys_of, weighs_endpoints};
use super::names::Owner;
use super::ports::ports_of;
use super::shard::Shard;
use super::{Federation, FederationRules};
use crate::model::{ClusterIndex, LowerName, NameRef, ServiceKey, Ttl};

/// Host names of load balancers of one namespace that are resolved, at most: nobody takes the place of all others.
const MAX_TARGETS: usize = 2000;

impl Federation {
    /// Gives the operator's rules.
    #[must_use]
    pub fn rules(&self) -> &Arc<FederationRules> {
        &self.rules
    }

    /// Lists what stands behind a service, in the order of clusters' names.
    pub fn shards(&self, key: &ServiceKey) -> Vec<(ClusterIndex, &Shard)> {
        let voices = self.voices(key).into_iter();
        voices.map(|voice| (voice.cluster, voice.shard)).collect()
    }

    /// Lists the keys about which the members of a service do not agree.
    #[must_use]
    pub fn conflicts(&self, key: &ServiceKey) -> Vec<PolicyConflict> {
        let mut conflicts = Vec::new();
        let base = (&*self.rules.base, self.private_of(key));
        let voices = self.voices(key);
        let (policy, _) = keys_of(base, &voices, &mut conflicts);
        let weighs = self.rules.weighs_endpoints;
        weighs_endpoints(weighs, &policy, &voices, &mut conflicts);
        if let Some(names) = self.services.get(key) {
            ports_of(&self.rules, names, &voices, &mut conflicts);
        }
        conflicts
    }

    /// Lists the services.
    pub(in crate::inventory) fn keys(&self) -> impl Iterator<Item = &ServiceKey> {
        self.services.keys()
    }

    /// Lists the names of a service.
    pub(in crate::inventory) fn names_of(
        &self,
        key: &ServiceKey,
    ) -> impl Iterator<Item = &LowerName> {
        self.services.get(key).into_iter().flatten()
    }

    /// Tells whether a name is answered, by itself or by a wildcard.
    pub(in crate::inventory) fn answers(&self, name: &LowerName) -> bool {
        let has = |name: &LowerName| {
            let entry = self.book.entries.get(name);
            entry.is_some_and(|entry| entry.service.is_some())
        };
        let above = std::iter::successors(name.as_ref().parent(), |name| name.parent());
        let mut wildcards = above.filter_map(|name| name.to_lower().prepend(b"*").ok());
        has(name) || wildcards.any(|wildcard| has(&wildcard))
    }

    /// Gives who has a name.
    #[must_use]
    pub fn owner(&self, name: &LowerName) -> Option<&Owner> {
        self.book.entries.get(name)?.owner.as_ref()
    }

    /// Lists who has which name, in the order in which they were given.
    #[must_use]
    pub fn owners(&self) -> Vec<(LowerName, Arc<str>)> {
        self.book.owners()
    }

    /// Lists the host names that load balancers are known by, without doubles: of objects that may have a name, and at most
    /// 2,000 of one namespace. Beyond that the first objects by kind and name have theirs.
    #[must_use]
    pub fn targets(&self) -> BTreeSet<LowerName> {
        let mut by_namespace: HashMap<&str, BTreeSet<&LowerName>> = HashMap::new();
        for (object, held) in &self.objects {
            if held.claims.is_empty() {
                continue;
            }
            let targets = by_namespace.entry(&object.namespace).or_default();
            for name in held.shards.values().flat_map(|shard| &shard.targets) {
                if targets.len() < MAX_TARGETS {
                    targets.insert(name);
                }
            }
        }
        by_namespace.into_values().flatten().cloned().collect()
    }

    /// Gives what all host names of load balancers resolve to.
    pub(in crate::inventory) fn all_resolved(&self) -> &Arc<Targets> {
        &self.targets
    }

    /// Tells whether a name is the apex of a zone.
    pub(in crate::inventory) fn is_apex(&self, name: NameRef<'_>) -> bool {
        let zone = self.rules.zone_of(name);
        zone.is_some_and(|zone| zone.apex.as_ref() == name)
    }

    /// Gives the least TTL of the zones that some names lie in.
    pub(in crate::inventory) fn zone_ttl<'n>(
        &self,
        names: impl Iterator<Item = NameRef<'n>>,
    ) -> Option<Ttl> {
        let zones = names.filter_map(|name| self.rules.zone_of(name));
        zones.map(|zone| zone.ttl).min()
    }

    /// Gives what a host name of a load balancer resolves to; `None`: nobody knows yet.
    #[must_use]
    pub fn resolved(&self, target: &LowerName) -> Option<&ResolvedTarget> {
        self.targets.get(target)
    }

    /// Lists all shards, by object and cluster.
    pub fn all(&self) -> impl Iterator<Item = (ClusterIndex, &Arc<Shard>)> {
        let objects = self.objects.values().flat_map(|held| &held.shards);
        objects.map(|(cluster, shard)| (*cluster, shard))
    }
}
