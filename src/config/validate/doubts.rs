//! What is allowed and yet cannot do what it says: warnings about services as a whole.

use std::collections::BTreeSet;

use super::clusters::{Clusters, Known};
use super::endpoints::Endpoints;
use super::monitor::MonitorKeys;
use super::policy::PolicyKeys;
use super::world::World;
use crate::config::faults::Report;
use crate::config::spec::{Fields, Kind, Node};
use crate::model::{ClusterIndex, ClusterSelector, Groups, PolicySpec, Steer};

/// A service that was read without a fault.
#[derive(Clone, Copy)]
pub(super) struct Whole<'s, 't, 'a> {
    pub(super) fields: Fields<'t, 'a>,
    pub(super) endpoints: &'s Endpoints,
    pub(super) policy: &'s PolicySpec,
    /// Somebody judges its endpoints.
    pub(super) is_monitored: bool,
}

/// Warns about one service.
pub(super) fn of_service(whole: Whole<'_, '_, '_>, world: World<'_, '_, '_>, report: &mut Report) {
    if whole.endpoints.clusters().next().is_none() {
        return without_endpoints(whole, report);
    }
    clients_only(whole, report);
    if let Some(policy) = whole.fields.get("policy") {
        health(policy, whole, report);
        weights(policy, whole.policy, world.policy, report);
        ineffective(policy, whole.policy, report);
        elsewhere(policy, whole, world, report);
    }
}

/// Warns of `fallback` and `panic` in `defaults` where no service has a monitor.
pub(super) fn of_defaults(
    policy: Option<Node<'_, '_>>,
    monitor: &MonitorKeys,
    any_monitored: bool,
    report: &mut Report,
) {
    let Some(policy) = policy.filter(|_| !any_monitored && !monitor.has_check()) else {
        return;
    };
    for (key, node) in written(policy, &["fallback", "panic"]) {
        report.warn(node, Unjudged(key, "no service has a `monitor`"));
    }
}

/// Gives the values of some keys of a map, in the order of the keys asked for.
fn written<'t, 'a>(map: Node<'t, 'a>, keys: &[&'static str]) -> Vec<(&'static str, Node<'t, 'a>)> {
    let find = |key: &&'static str| {
        let (_, value) = map.entries().find(|(name, _)| name.text() == *key)?;
        Some((*key, value))
    };
    keys.iter().filter_map(find).collect()
}

/// The message about a key that health decides, where nobody judges.
struct Unjudged(&'static str, &'static str);

impl std::fmt::Display for Unjudged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(key, why) = self;
        write!(
            f,
            "{why}, so nothing is ever down and `{key}` does nothing: add a `monitor`, or leave `{key}` out"
        )
    }
}

/// Says what a service without endpoints answers.
fn without_endpoints(whole: Whole<'_, '_, '_>, report: &mut Report) {
    let node = whole.fields.get("endpoints");
    let (node, what) = match node {
        Some(node) if node.kind() == Kind::List => (node, "no endpoint"),
        Some(_) => return,
        None => (whole.fields.node, "no `endpoints`"),
    };
    if whole.policy.fallback.is_some() {
        report.warn(
            node,
            format_args!("{what}: every client gets the `fallback`"),
        );
    } else {
        report.warn(
            node,
            format_args!("{what}: the name exists without an address (NODATA)"),
        );
    }
}

/// Warns where everyone outside of the lists of `clients` gets nothing.
fn clients_only(whole: Whole<'_, '_, '_>, report: &mut Report) {
    let endpoints = whole.endpoints;
    let mut targets = endpoints.targets().iter();
    let everyone = endpoints.pools.iter().any(|pool| pool.clients().is_none())
        || targets.any(|target| target.clients.is_none());
    if let Some(node) = whole.fields.get("endpoints")
        && !everyone
        && whole.policy.fallback.is_none()
    {
        report.warn(node, "every endpoint has `clients`, so everybody else gets no address (NODATA): add an endpoint without `clients`, or a `fallback`");
    }
}

/// Warns of `panic` and `fallback` that health never brings about.
fn health(policy: Node<'_, '_>, whole: Whole<'_, '_, '_>, report: &mut Report) {
    let spec = whole.policy;
    for (key, node) in written(policy, &["fallback", "panic"]) {
        let is_set = match key {
            "panic" => spec.panic > 0.0,
            _ => spec.fallback.is_some(),
        };
        if is_set && !whole.is_monitored {
            report.warn(node, Unjudged(key, "nobody judges these endpoints"));
        }
    }
    if spec.panic > 0.0 && spec.fallback.is_some() && whole.is_monitored {
        let own = written(policy, &["fallback", "panic"]);
        let node = own.first().map_or(policy, |(_, node)| *node);
        report.warn(node, "`panic` comes before `fallback`: when everything is down, health is ignored and the endpoints are answered; `fallback` is left for when all are drained or forced down. To have it answered, write `panic: 0`");
    }
}

/// Warns of `weights` that give no shares. They are weighed for ties of proximity and for clients whose place is unknown, and
/// weight 0 is a reserve everywhere: who writes `steer` beside them, or only 0 and one other number, means that.
fn weights(policy: Node<'_, '_>, spec: &PolicySpec, defaults: &PolicyKeys, report: &mut Report) {
    let Some((_, node)) = written(policy, &["weights"]).pop() else {
        return;
    };
    let mut shares: Vec<u16> = spec.weights.iter().map(|(_, weight)| weight.0).collect();
    shares.retain(|share| *share > 0);
    if shares.is_empty() && !spec.weights.is_empty() && spec.steer == Steer::Weighted {
        report.warn(node, "all are 0, so nobody has a share: clusters of weight 0 are used only when no other can be, and then alike");
        return;
    }
    shares.dedup();
    let is_said = defaults.says_steer() || !written(policy, &["steer"]).is_empty();
    match spec.steer {
        Steer::Proximity if shares.len() > 1 && !is_said => report.warn(
            node,
            "without `steer` the nearest cluster is answered, and `weights` only share clients equally near or of unknown place: write `steer: weighted` for shares of all, or `steer: proximity` if this is meant",
        ),
        Steer::RoundRobin | Steer::All if shares.len() > 1 => report.warn(
            node,
            "`steer: roundRobin` and `steer: all` treat clusters alike, whatever `weights` say beside 0: write `steer: weighted` for shares",
        ),
        _ => {}
    }
}

/// Warns of keys that nothing looks at beside what else the policy says.
fn ineffective(policy: Node<'_, '_>, spec: &PolicySpec, report: &mut Report) {
    for (key, node) in written(policy, &["bias", "fenceAnswer"]) {
        if key == "bias" && spec.steer != Steer::Proximity {
            let steer = spec.steer.as_str();
            report.warn(
                node,
                format_args!("`steer: {steer}` looks at no distance, so `bias` does nothing: leave it out, or write `steer: proximity`"),
            );
        }
        if key == "fenceAnswer" && spec.fences.is_empty() {
            report.warn(
                node,
                "there is no `fence`, so nobody gets the `fenceAnswer`: add a `fence`, or leave it out",
            );
        }
    }
}

/// Warns of rules that name only clusters in which this service has no endpoint.
fn elsewhere(
    policy: Node<'_, '_>,
    whole: Whole<'_, '_, '_>,
    world: World<'_, '_, '_>,
    report: &mut Report,
) {
    let spec = whole.policy;
    let keys = written(policy, &["weights", "maps", "tiers", "fence"]);
    if keys.is_empty() {
        return;
    }
    let here = Here {
        clusters: own_clusters(whole.endpoints, world.scope.clusters),
        groups: world.scope.groups,
    };
    for (key, node) in keys {
        let rules: Vec<Vec<&ClusterSelector>> = match key {
            "weights" => vec![spec.weights.iter().map(|(selector, _)| selector).collect()],
            "maps" => spec
                .maps
                .iter()
                .map(|entry| entry.clusters.iter().collect())
                .collect(),
            "tiers" => spec
                .tiers
                .iter()
                .map(|tier| tier.iter().collect())
                .collect(),
            // Fences of `defaults` come first: the last one is the service's own.
            _ => spec.fences.last().map_or_else(Vec::new, |rules| {
                rules
                    .iter()
                    .map(|rule| rule.clusters.iter().collect())
                    .collect()
            }),
        };
        let mut named = rules.iter().flatten();
        // What matches no cluster at all has a warning of its own.
        let any = named
            .clone()
            .any(|one| world.scope.clusters.any_match(one, here.groups));
        if any && named.all(|one| here.has_none(&[one])) {
            report.warn(node, format_args!("`{key}` names only clusters in which this service has no endpoint; it has endpoints in {}", here.names()));
            continue;
        }
        // One rule of several: only where clusters are called by their names. Others may be meant for clusters to come.
        let items = if node.kind() == Kind::List {
            Some(node.items())
        } else {
            None
        };
        for (item, rule) in items.into_iter().flatten().zip(&rules) {
            if !rule.is_empty() && rule.iter().all(|one| is_name(one)) && here.has_none(rule) {
                report.warn(item, format_args!("names only clusters in which this service has no endpoint; it has endpoints in {}", here.names()));
            }
        }
    }
}

/// The clusters in which a service has endpoints.
struct Here<'s> {
    clusters: Vec<Known<'s>>,
    groups: &'s Groups,
}

impl Here<'_> {
    /// Tells whether no cluster matches.
    fn has_none(&self, selectors: &[&ClusterSelector]) -> bool {
        let any = |known: &Known<'_>| {
            selectors
                .iter()
                .any(|selector| known.may_match(selector, self.groups))
        };
        !self.clusters.iter().any(any)
    }

    /// Names the first few.
    fn names(&self) -> String {
        const SHOWN: usize = 5;
        let names = self
            .clusters
            .iter()
            .take(SHOWN)
            .map(|known| known.cluster.id.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        match self.clusters.len().saturating_sub(SHOWN) {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }
}

/// Looks up the clusters of endpoints.
fn own_clusters<'s>(endpoints: &Endpoints, clusters: &'s Clusters<'_, '_>) -> Vec<Known<'s>> {
    let indices: BTreeSet<ClusterIndex> = endpoints.clusters().collect();
    indices
        .into_iter()
        .filter_map(|index| clusters.by_index(index))
        .collect()
}

/// Tells whether a selector calls one cluster by its name.
fn is_name(selector: &ClusterSelector) -> bool {
    matches!(selector, ClusterSelector::Cluster(_))
}
