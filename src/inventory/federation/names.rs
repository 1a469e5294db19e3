//! Who has a name: claims, owners, and what stands at each name (DESIGN section 7).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::shard::{ObjectKind, ObjectRef};
use crate::model::{ClusterIndex, LowerName, NameRef, ServiceKey};

/// One object of one cluster.
pub(super) type Claimant = (ObjectRef, ClusterIndex);

/// What is known of one name.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// Who claims it and may.
    pub(super) claims: BTreeSet<Claimant>,
    /// The namespace that has it.
    pub(super) owner: Option<Owner>,
    /// The service that answers it; `None`: it would hide another owner's wildcard.
    pub(super) service: Option<ServiceKey>,
}

/// A namespace that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The namespace.
    pub namespace: Arc<str>,
    /// Its place in the order in which names were given.
    pub since: u64,
}

impl Entry {
    /// Iterates over the claims of the namespace that has the name.
    pub(super) fn granted(&self) -> impl Iterator<Item = &Claimant> {
        let owner = self.owner.as_ref().map(|owner| &owner.namespace);
        let is_owners = move |(object, _): &&Claimant| Some(&object.namespace) == owner;
        self.claims.iter().filter(is_owners)
    }

    /// Iterates over the claims of others.
    pub(super) fn lost(&self) -> impl Iterator<Item = &Claimant> {
        let owner = self.owner.as_ref().map(|owner| &owner.namespace);
        let is_others = move |(object, _): &&Claimant| Some(&object.namespace) != owner;
        self.claims.iter().filter(is_others)
    }
}

/// All names that objects claim.
#[derive(Clone, Debug, Default)]
pub(super) struct NameBook {
    pub(super) entries: BTreeMap<LowerName, Entry>,
    /// Who had a name before the start and did not claim it again yet.
    recorded: BTreeMap<LowerName, Owner>,
    last: u64,
}

impl NameBook {
    /// Takes over who had which name before the start, in the order in which they were given: it is theirs when they claim it,
    /// whoever came first. An empty list ends that: whoever has not come by then has lost it.
    pub(super) fn remember(&mut self, owners: Vec<(LowerName, Arc<str>)>) {
        if owners.is_empty() {
            self.recorded.clear();
        }
        for (name, namespace) in owners {
            self.last += 1;
            let since = self.last;
            self.recorded
                .entry(name)
                .or_insert(Owner { namespace, since });
        }
    }

    /// Lists who has which name, in the order in which they were given; those from before the start that nobody claims yet too.
    pub(super) fn owners(&self) -> Vec<(LowerName, Arc<str>)> {
        let held = self.entries.iter().filter_map(|(name, entry)| {
            let owner = entry.owner.as_ref()?;
            Some((owner.since, name, &owner.namespace))
        });
        let unclaimed = self.recorded.iter();
        let unclaimed = unclaimed.map(|(name, owner)| (owner.since, name, &owner.namespace));
        let mut all: Vec<_> = held.chain(unclaimed).collect();
        all.sort_unstable();
        all.dedup_by(|a, b| a.1 == b.1);
        let all = all.into_iter();
        all.map(|(_, name, namespace)| (name.clone(), Arc::clone(namespace)))
            .collect()
    }

    /// Decides anew who has a name: whoever had it before the start, whoever has it, else the first namespace by the alphabet. Tells whether that changed.
    pub(super) fn decide(&mut self, name: &LowerName) -> bool {
        let Some(entry) = self.entries.get_mut(name) else {
            return false;
        };
        let claims = |namespace: &Arc<str>| {
            let mut claims = entry.claims.iter();
            claims.any(|(object, _)| object.namespace == *namespace)
        };
        let recorded = self.recorded.get(name);
        if recorded.is_some_and(|owner| claims(&owner.namespace)) {
            entry.owner = self.recorded.remove(name);
            return true;
        }
        if let Some(owner) = &entry.owner
            && claims(&owner.namespace)
        {
            return false;
        }
        let namespaces = entry.claims.iter().map(|(object, _)| &object.namespace);
        let owner = namespaces.min().map(|namespace| {
            self.last += 1;
            Owner {
                namespace: Arc::clone(namespace),
                since: self.last,
            }
        });
        entry.owner = owner;
        true
    }

    /// Finds the wildcard of another namespace that a name would hide, itself or by an empty non-terminal (RFC 4592 section
    /// 2.2.2): one that was there first. `apex` is that of the name's zone: no wildcard reaches into another.
    pub(super) fn hides(&self, name: NameRef<'_>, apex: NameRef<'_>) -> Option<(LowerName, Owner)> {
        let own = self.entries.get(&name.to_lower())?.owner.clone()?;
        let mut above = name.parent()?;
        if name.is_wildcard() {
            above = above.parent()?;
        }
        while above.is_at_or_below(apex) {
            if let Ok(wildcard) = above.to_lower().prepend(b"*")
                && let Some(entry) = self.entries.get(&wildcard)
                && entry.service.is_some()
                && let Some(owner) = &entry.owner
                && owner.namespace != own.namespace
                && owner.since < own.since
            {
                return Some((wildcard, owner.clone()));
            }
            above = above.parent()?;
        }
        None
    }

    /// Lists the names that these wildcards would answer if they were not there, in one walk over all names.
    pub(super) fn below(&self, wildcards: &BTreeSet<LowerName>) -> Vec<LowerName> {
        let tops = wildcards.iter().filter_map(|name| name.as_ref().parent());
        let tops: HashSet<&[u8]> = tops.map(NameRef::as_wire).collect();
        let is_below = |name: &&LowerName| {
            let above = name.as_ref().parent();
            let mut above = std::iter::successors(above, |name| name.parent());
            above.any(|above| tops.contains(above.as_wire()))
        };
        self.entries.keys().filter(is_below).cloned().collect()
    }
}

/// Gives the key of the service that an object is: its own name for a Service, which has no dots, else with its kind behind.
/// `apart` tells apart what it is in zones of other rules.
pub(super) fn key_of(object: &ObjectRef, apart: Option<&'static str>) -> Option<ServiceKey> {
    let kind = object.kind.as_str().to_ascii_lowercase();
    match (object.kind, apart) {
        (ObjectKind::Service, None) => ServiceKey::new(&object.namespace, &object.name).ok(),
        (ObjectKind::Service, Some(apart)) => key(&object.namespace, &object.name, apart),
        (_, None) => key(&object.namespace, &object.name, &kind),
        (_, Some(apart)) => key(&object.namespace, &object.name, &format!("{kind}.{apart}")),
    }
}

/// Gives the key of the service that a name is which several objects answer, or not all clusters of one.
pub(super) fn key_of_name(namespace: &str, name: NameRef<'_>) -> Option<ServiceKey> {
    let text = name.to_string();
    let text = text.trim_end_matches('.');
    match text.strip_prefix("*.") {
        Some(rest) => key(namespace, rest, "wildcard"),
        None => key(namespace, text, "hostname"),
    }
}

/// Makes a key; of a text that is too long, or no name, its hash.
fn key(namespace: &str, text: &str, suffix: &str) -> Option<ServiceKey> {
    ServiceKey::new(namespace, &format!("{text}.{suffix}"))
        .or_else(|_| {
            // FNV-1a: the same on every node.
            let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
                (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
            });
            ServiceKey::new(namespace, &format!("{hash:016x}.{suffix}"))
        })
        .ok()
}
