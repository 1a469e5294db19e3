//! Names of endpoints: those of headless Services in a cluster set, by cluster (KEP-1645).

use std::collections::BTreeSet;

use super::FederationRules;
use super::merge::Voice;
use super::ports::in_cluster_sets;
use crate::inventory::service::{HostNames, HostsOf};
use crate::model::LowerName;

/// Gives the endpoints that have names of their own below the names that a service has in cluster sets; `None`: no cluster has it
/// there as a Service without an address of its own.
pub(super) fn hosts_of(
    rules: &FederationRules,
    names: &BTreeSet<LowerName>,
    voices: &[Voice<'_>],
) -> Option<HostNames> {
    let (voices, owners) =
        in_cluster_sets((rules, names), voices, |shard| shard.headless.is_some())?;
    let of_cluster = |voice: &&Voice<'_>| HostsOf {
        cluster: voice.cluster,
        label: voice.id.as_str().parse().ok(),
        endpoints: voice.shard.headless.clone().unwrap_or_default(),
    };
    Some(HostNames {
        owners,
        clusters: voices.iter().map(of_cluster).collect(),
    })
}
