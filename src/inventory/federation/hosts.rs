//! Names of endpoints: those of headless Services in a cluster set, by cluster (KEP-1645).

use std::collections::BTreeSet;

use super::FederationRules;
use super::made::is_in_cluster_set;
use super::merge::Voice;
use crate::inventory::service::{HostNames, HostsOf};
use crate::model::LowerName;

/// Gives the endpoints that have names of their own below the names that a service has in cluster sets; `None`: no cluster has it
/// there as a Service without an address of its own.
pub(super) fn hosts_of(
    rules: &FederationRules,
    names: &BTreeSet<LowerName>,
    voices: &[Voice<'_>],
) -> Option<HostNames> {
    let served = voices
        .iter()
        .filter(|voice| voice.shard.unserved.is_none() && voice.shard.headless.is_some());
    let is_one = |name: &LowerName, voice: &Voice<'_>| {
        is_in_cluster_set(rules, name.as_ref(), &voice.shard.object)
    };
    let voices: Vec<&Voice<'_>> = served
        .filter(|voice| names.iter().any(|name| is_one(name, voice)))
        .collect();
    if voices.is_empty() {
        return None;
    }
    let owners = names.iter();
    let owners = owners.filter(|name| voices.iter().any(|voice| is_one(name, voice)));
    let of_cluster = |voice: &&Voice<'_>| HostsOf {
        cluster: voice.cluster,
        label: voice.id.as_str().parse().ok(),
        endpoints: voice.shard.headless.clone().unwrap_or_default(),
    };
    Some(HostNames {
        owners: owners.cloned().collect(),
        clusters: voices.iter().map(of_cluster).collect(),
    })
}
