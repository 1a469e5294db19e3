//! `endpoints` of one service.

use std::net::IpAddr;
use std::sync::Arc;

use super::clusters::Clusters;
use super::read;
use crate::config::faults::Report;
use crate::config::spec::{Fields, Kind, Node, fields, v1};
use crate::inventory::Extras;
use crate::model::{ClusterIndex, LowerName, Pools, PoolsBuilder, PoolsError, Weight};

/// Endpoints as a service keeps them.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    pub(super) pools: Pools,
    pub(super) extras: Option<Arc<Extras>>,
}

/// What is collected from one entry to the next.
#[derive(Default)]
struct Collected<'t, 'a> {
    builder: PoolsBuilder,
    client_sets: Vec<Box<[ipnet::IpNet]>>,
    hostnames: Vec<LowerName>,
    /// Every address with what makes it another one: cluster and set of clients.
    addresses: Vec<(ClusterIndex, Option<usize>, IpAddr, Node<'t, 'a>)>,
    /// The first entry that is a host name.
    first_hostname: Option<Node<'t, 'a>>,
}

/// Checks the endpoints of a service.
pub(super) fn read(
    fields: Fields<'_, '_>,
    clusters: &Clusters<'_, '_>,
    report: &mut Report,
) -> Endpoints {
    let Some(node) = fields.get("endpoints") else {
        report.warn(
            fields.node,
            "no `endpoints`: the name exists without an address (NODATA)",
        );
        return Endpoints::default();
    };
    let mut collected = Collected::default();
    let entries: Vec<Option<()>> = read::list(node, report, |item, report| {
        Some(entry(item, clusters, &mut collected, report))
    });
    if entries.is_empty() && node.kind() == Kind::List {
        report.warn(
            node,
            "no endpoint: the name exists without an address (NODATA)",
        );
    }
    check_twice(&mut collected.addresses, report);
    if let (Some(hostname), false) = (collected.first_hostname, collected.addresses.is_empty()) {
        report.fault(hostname, "a host name beside endpoints with addresses is not supported yet: a service has one or the other");
    }
    let pools = collected.builder.build().unwrap_or_else(|error| {
        report.fault(node, error);
        Pools::default()
    });
    let has_extras = !(collected.client_sets.is_empty() && collected.hostnames.is_empty());
    let extras = has_extras.then(|| {
        Arc::new(Extras {
            client_sets: collected.client_sets.into(),
            hostnames: collected.hostnames.into(),
        })
    });
    Endpoints { pools, extras }
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
            let found = read::list(list, report, |item, report| {
                Some((item, read::address(item, report)?))
            });
            if list.kind() == Kind::List && list.items().next().is_none() {
                report.fault(list, "an endpoint needs at least one address");
            }
            let cluster = cluster?;
            collected.addresses.extend(
                found
                    .iter()
                    .map(|(item, address)| (cluster, clients, *address, *item)),
            );
            let plain: Vec<IpAddr> = found.iter().map(|(_, address)| *address).collect();
            collected
                .builder
                .addresses(cluster, weight, clients, &plain)
        }
        (None, Some(target)) => {
            collected.first_hostname.get_or_insert(node);
            let name = read::hostname(target, report)?;
            let at = position(&mut collected.hostnames, name);
            collected.builder.hostname(cluster?, weight, clients, at)
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
