//! Names that stand in no table, and are taken apart where nothing else stands: levels of federated services, ports and endpoints
//! of services in cluster sets. Static records, zone cuts and wildcards go first.

use super::{hosts, levels, ports};
use crate::model::{NameRef, RecordType, ServiceIndex, ZoneIndex};
use crate::snapshot::Snapshot;
use crate::zone::{Found, Lookup, NameTree, lookup};

/// Looks once more at a name where nothing stands: `exact` is what the table of names has there, `found` what was said of it.
#[inline]
pub(super) fn amend<'a>(
    snapshot: &Snapshot,
    asked: (NameRef<'_>, RecordType),
    exact: Option<Found>,
    found: Lookup<'a>,
) -> Lookup<'a> {
    match zone_of(exact, &found) {
        Some(zone) => synthesized(snapshot, zone, asked).unwrap_or(found),
        None => found,
    }
}

/// Takes a name apart.
#[cold]
fn synthesized<'a>(
    snapshot: &Snapshot,
    zone: ZoneIndex,
    asked: (NameRef<'_>, RecordType),
) -> Option<Lookup<'a>> {
    levels::at(snapshot, zone, asked)
        .or_else(|| ports::at(snapshot, zone, asked))
        .or_else(|| hosts::at(snapshot, zone, asked))
}

/// Gives the zone of a name where nothing stands, or an empty non-terminal: `exact` is what the table of names has there, `found`
/// what was said of it.
#[inline]
fn zone_of(exact: Option<Found>, found: &Lookup<'_>) -> Option<ZoneIndex> {
    match *found {
        Lookup::NxDomain { zone } => Some(zone),
        // Without an empty non-terminal these come of a wildcard.
        Lookup::NoData { zone } | Lookup::Any { zone, node: None } if exact.is_some() => Some(zone),
        _ => None,
    }
}

/// Says that a name is there without what is asked for. What a name stands below exists too (RFC 8020).
pub(super) fn without<'a>(zone: ZoneIndex, qtype: RecordType) -> Lookup<'a> {
    if qtype == RecordType::ANY {
        Lookup::Any { zone, node: None }
    } else {
        Lookup::NoData { zone }
    }
}

/// Tells whether a name that stands for endpoints has something to say to a type; whatever may be a CNAME has.
pub(super) fn is_answered(is_cname: bool, qtype: RecordType) -> bool {
    is_cname || matches!(qtype, RecordType::A | RecordType::AAAA)
}

/// Finds the service that answers a type at a name that stands in no table: A for levels and endpoints, SRV for ports. `None`: there
/// is none, or something stands there by itself.
#[must_use]
#[cold]
pub fn synthesized_service(
    snapshot: &Snapshot,
    name: NameRef<'_>,
    qtype: RecordType,
) -> Option<ServiceIndex> {
    let exact = snapshot.names().find(name);
    if exact.is_some_and(|exact| !exact.is_empty_non_terminal()) {
        return None;
    }
    let found = lookup(snapshot.names(), snapshot.zones(), name, qtype, exact);
    match amend(snapshot, (name, qtype), exact, found) {
        Lookup::Level { service, .. }
        | Lookup::Port { service, .. }
        | Lookup::Host { service, .. } => Some(service),
        _ => None,
    }
}
