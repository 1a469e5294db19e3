//! `endpoints` of one service.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use super::clusters::Clusters;
use super::read;
use crate::config::faults::Report;
use crate::config::spec::{Fields, Kind, Node, fields, v1};
use crate::inventory::{Extras, NamedEndpoint};
use crate::model::{ClusterIndex, LowerName, Pools, PoolsBuilder, PoolsError, Weight};

/// Most entries of one service: more would not fit into [`Pools`] even without an address.
const MAX_ENTRIES: usize = 8192;

/// Endpoints as a service keeps them.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    pub(super) pools: Pools,
    pub(super) extras: Option<Arc<Extras>>,
}

impl Endpoints {
    /// Lists the endpoints that are host names.
    pub(super) fn targets(&self) -> &[NamedEndpoint] {
        let extras = self.extras.as_deref();
        extras.map_or(&[], |extras| &extras.targets)
    }

    /// Lists the clusters, some perhaps twice.
    pub(super) fn clusters(&self) -> impl Iterator<Item = ClusterIndex> {
        let named = self.targets().iter().map(|target| target.cluster);
        self.pools.clusters().chain(named)
    }
}

/// What is collected from one entry to the next.
#[derive(Default)]
struct Collected<'t, 'a> {
    builder: PoolsBuilder,
    client_sets: Vec<Box<[ipnet::IpNet]>>,
    targets: Vec<NamedEndpoint>,
    /// Every address with what makes it another one: cluster and set of clients.
    addresses: Vec<(ClusterIndex, Option<usize>, IpAddr, Node<'t, 'a>)>,
    /// The addresses of one entry, kept for the next.
    found: Vec<IpAddr>,
    /// Every host name with what makes it another one.
    named: Vec<(ClusterIndex, Option<usize>, LowerName, Node<'t, 'a>)>,
}

/// Checks the endpoints of a service.
pub(super) fn read(
    fields: Fields<'_, '_>,
    clusters: &Clusters<'_, '_>,
    report: &mut Report,
) -> Endpoints {
    let Some(node) = fields.get("endpoints") else {
        return Endpoints::default();
    };
    let count = node.items().take(MAX_ENTRIES + 1).count();
    if count > MAX_ENTRIES {
        report.fault(
            node,
            format_args!("a service has at most {MAX_ENTRIES} entries"),
        );
        return Endpoints::default();
    }
    let mut collected = Collected::default();
    let _: Vec<()> = read::list(node, report, |item, report| {
        entry(item, clusters, &mut collected, report)
    });
    check_twice(&mut collected.addresses, report);
    check_named_twice(&mut collected.named, report);
    let pools = collected.builder.build().unwrap_or_else(|error| {
        report.fault(node, error);
        Pools::default()
    });
    if let Err(error) = fit(&pools, &collected.targets) {
        report.fault(node, error);
    }
    let has_extras = !(collected.client_sets.is_empty() && collected.targets.is_empty());
    let extras = has_extras.then(|| {
        Arc::new(Extras {
            client_sets: collected.client_sets.into(),
            targets: collected.targets.into(),
            ..Extras::default()
        })
    });
    Endpoints { pools, extras }
}

/// Makes sure that there is room for each target beside the addresses.
fn fit(pools: &Pools, targets: &[NamedEndpoint]) -> Result<(), PoolsError> {
    if targets.is_empty() {
        return Ok(());
    }
    let mut builder = PoolsBuilder::default();
    for pool in pools.iter() {
        let all = pool.v4().chain(pool.v6());
        let all: Vec<IpAddr> = all.map(|endpoint| endpoint.address).collect();
        builder.addresses(pool.cluster(), pool.weight(), pool.clients(), &all)?;
    }
    for target in targets {
        let any = [Ipv6Addr::UNSPECIFIED.into()];
        builder.addresses(target.cluster, target.weight, target.clients, &any)?;
    }
    builder.build().map(|_| ())
}

/// Checks one entry. `None` where a fault left nothing to keep.
fn entry<'t, 'a>(
    node: Node<'t, 'a>,
    clusters: &Clusters<'_, '_>,
    collected: &mut Collected<'t, 'a>,
    report: &mut Report,
) -> Option<()> {
    let fields = fields(node, &v1::ENDPOINT, report)?;
    let cluster = fields.get("cluster").and_then(|node| {
        let name = read::text(node, report)?;
        clusters.find(node, name, report).map(|(index, _)| *index)
    });
    let weight = fields
        .get("weight")
        .and_then(|node| read::integer(node, 0..=u16::MAX, report))
        .map_or_else(Weight::default, Weight);
    let clients = fields.get("clients").map(|node| {
        let prefixes = read::prefixes(node, report);
        if node.kind() == Kind::List && node.items().next().is_none() {
            report.fault(
                node,
                "`clients` is empty, so nobody would get this endpoint: leave it out for everyone",
            );
        }
        position(&mut collected.client_sets, prefixes.into())
    });
    let (addresses, hostname) = (fields.get("addresses"), fields.get("hostname"));
    let added = match (addresses, hostname) {
        (Some(list), None) => {
            let Collected {
                addresses, found, ..
            } = collected;
            found.clear();
            let _: Vec<()> = read::list(list, report, |item, report| {
                let address = read::address(item, report)?;
                found.push(address);
                addresses.push((cluster?, clients, address, item));
                None
            });
            if list.kind() == Kind::List && list.items().next().is_none() {
                report.fault(list, "an endpoint needs at least one address");
            }
            collected
                .builder
                .addresses(cluster?, weight, clients, &collected.found)
        }
        (None, Some(target)) => {
            let name = read::hostname_or_addresses(target, report)?;
            let cluster = cluster?;
            collected
                .named
                .push((cluster, clients, name.clone(), target));
            collected.targets.push(NamedEndpoint {
                cluster,
                weight,
                clients,
                name,
            });
            Ok(())
        }
        (Some(_), Some(target)) => {
            report.fault(target, "an endpoint has either `addresses` or `hostname`");
            Ok(())
        }
        (None, None) => {
            let is_written = node
                .entries()
                .any(|(key, _)| matches!(key.text(), "addresses" | "hostname"));
            if !is_written {
                report.fault(
                    node,
                    "an endpoint needs `addresses`, such as [192.0.2.10], or a `hostname`",
                );
            }
            Ok(())
        }
    };
    added
        .map_err(|error: PoolsError| report.fault(node, error))
        .ok()
}

/// Finds a value's position in a list, adding it at the end.
fn position<T: PartialEq>(list: &mut Vec<T>, value: T) -> usize {
    list.iter()
        .position(|other| *other == value)
        .unwrap_or_else(|| {
            list.push(value);
            list.len() - 1
        })
}

/// Refuses an address that a cluster has twice for the same clients.
fn check_twice(
    addresses: &mut [(ClusterIndex, Option<usize>, IpAddr, Node<'_, '_>)],
    report: &mut Report,
) {
    // Stable: of equal ones the later in the file is the one too many.
    addresses.sort_by_key(|(cluster, clients, address, _)| (*cluster, *clients, *address));
    for (one, next) in addresses.iter().zip(addresses.iter().skip(1)) {
        if (one.0, one.1, one.2) == (next.0, next.1, next.2) {
            report.fault(
                next.3,
                format_args!("`{}` is listed twice for this cluster", next.2),
            );
        }
    }
}

/// Refuses a host name that a cluster has twice for the same clients.
fn check_named_twice(
    named: &mut [(ClusterIndex, Option<usize>, LowerName, Node<'_, '_>)],
    report: &mut Report,
) {
    named.sort_by(|a, b| (a.0, a.1, &a.2).cmp(&(b.0, b.1, &b.2)));
    for (one, next) in named.iter().zip(named.iter().skip(1)) {
        if (one.0, one.1, &one.2) == (next.0, next.1, &next.2) {
            report.fault(
                next.3,
                format_args!("`{}` is listed twice for this cluster", next.2),
            );
        }
    }
}
