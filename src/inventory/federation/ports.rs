//! Names of ports: those of a service in a cluster set, out of what its clusters say (KEP-1645).

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;

use super::FederationRules;
use super::made::is_in_cluster_set;
use super::merge::{Overruled, PolicyConflict, Voice};
use super::shard::Shard;
use crate::inventory::service::PortNames;
use crate::model::{Carrier, ClusterId, LowerName, NamedPort, PortName};

/// Named ports of one service, at most, whatever number of clusters say them.
const MAX_PORTS: usize = 64;
/// The field that says them.
const FIELD: &str = "spec.ports";

/// The numbers that are said of one port, each with how many say it, in the order of clusters' names.
type Numbers = Vec<(NonZeroU16, usize)>;

/// Gives the named ports that a service has in cluster sets: those of all its clusters. Of several numbers of one name the one that
/// most say counts, of equally many that of the first cluster by name. `None`: it has no such name, or no such port.
pub(super) fn ports_of(
    rules: &FederationRules,
    names: &BTreeSet<LowerName>,
    voices: &[Voice<'_>],
    conflicts: &mut Vec<PolicyConflict>,
) -> Option<PortNames> {
    let (voices, owners) =
        in_cluster_sets((rules, names), voices, |shard| !shard.ports.is_empty())?;
    let said = said(&voices, conflicts);
    let ports = said.iter().filter_map(|((name, carrier), numbers)| {
        Some(NamedPort {
            name: (*name).clone(),
            carrier: *carrier,
            number: winner(numbers)?,
        })
    });
    let ports: Box<[NamedPort]> = ports.collect();
    let counts = |port: &NamedPort| ports.contains(port);
    // What has no room is told by itself.
    let loses = |port: &NamedPort| said.contains_key(&(&port.name, port.carrier)) && !counts(port);
    note(
        Overruled::ByMost,
        overruled(&voices, |port| loses(port)),
        conflicts,
    );
    Some(PortNames { owners, ports })
}

/// Picks those who are served in a cluster set and have something to name there, and the names that they have, in order; `None`:
/// there is nobody.
pub(super) fn in_cluster_sets<'v, 's>(
    (rules, names): (&FederationRules, &BTreeSet<LowerName>),
    voices: &'v [Voice<'s>],
    has_some: impl Fn(&Shard) -> bool,
) -> Option<(Vec<&'v Voice<'s>>, Box<[LowerName]>)> {
    let is_one = |name: &LowerName, voice: &Voice<'_>| {
        is_in_cluster_set(rules, name.as_ref(), &voice.shard.object)
    };
    let voices = voices
        .iter()
        .filter(|voice| voice.shard.unserved.is_none() && has_some(voice.shard))
        .filter(|voice| names.iter().any(|name| is_one(name, voice)));
    let voices: Vec<&Voice<'_>> = voices.collect();
    if voices.is_empty() {
        return None;
    }
    let owners = names.iter();
    let owners = owners.filter(|name| voices.iter().any(|voice| is_one(name, voice)));
    let owners = owners.cloned().collect();
    Some((voices, owners))
}

/// Counts what is said of each port, as long as there is room.
fn said<'a>(
    voices: &[&Voice<'a>],
    conflicts: &mut Vec<PolicyConflict>,
) -> BTreeMap<(&'a PortName, Carrier), Numbers> {
    let mut said: BTreeMap<(&PortName, Carrier), Numbers> = BTreeMap::new();
    for port in voices.iter().flat_map(|voice| &voice.shard.ports) {
        let key = (&port.name, port.carrier);
        if said.len() >= MAX_PORTS && !said.contains_key(&key) {
            continue;
        }
        let numbers = said.entry(key).or_default();
        match numbers.iter_mut().find(|(other, _)| *other == port.number) {
            Some((_, count)) => *count += 1,
            None => numbers.push((port.number, 1)),
        }
    }
    let has_none = |port: &NamedPort| !said.contains_key(&(&port.name, port.carrier));
    note(Overruled::ByRoom, overruled(voices, has_none), conflicts);
    said
}

/// Gives the number that most say; of equally many the first.
fn winner(numbers: &Numbers) -> Option<NonZeroU16> {
    let most = numbers.iter().map(|(_, count)| *count).max()?;
    let mut best = numbers.iter().filter(|(_, count)| *count == most);
    best.next().map(|(number, _)| *number)
}

/// Lists the clusters, each once, that have such a port.
fn overruled(voices: &[&Voice<'_>], is: impl Fn(&NamedPort) -> bool) -> Vec<ClusterId> {
    let those = voices
        .iter()
        .filter(|voice| voice.shard.ports.iter().any(&is));
    let mut clusters: Vec<ClusterId> = those.map(|voice| voice.id.clone()).collect();
    clusters.dedup();
    clusters
}

/// Notes what does not count.
fn note(why: Overruled, overruled: Vec<ClusterId>, conflicts: &mut Vec<PolicyConflict>) {
    if !overruled.is_empty() {
        conflicts.push(PolicyConflict {
            key: FIELD,
            why,
            overruled,
        });
    }
}
