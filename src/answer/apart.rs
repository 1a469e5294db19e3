//! Names that stand in no table, and are taken apart where nothing else stands: levels of federated services, ports of services in
//! cluster sets. Static records, zone cuts and wildcards go first.

use crate::model::{NameRef, RecordType, ZoneIndex};
use crate::snapshot::Snapshot;
use crate::zone::{Found, Lookup, NameTree, lookup};

/// Gives the zone of a name where nothing stands, or an empty non-terminal: `exact` is what the table of names has there, `found`
/// what was said of it.
pub(super) fn zone_of(exact: Option<Found>, found: &Lookup<'_>) -> Option<ZoneIndex> {
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

/// Looks a name up for people; `None`: something stands there by itself.
pub(super) fn look<'a>(
    snapshot: &'a Snapshot,
    (name, qtype): (NameRef<'_>, RecordType),
) -> Option<(Option<Found>, Lookup<'a>)> {
    let exact = snapshot.names().find(name);
    if exact.is_some_and(|exact| !exact.is_empty_non_terminal()) {
        return None;
    }
    let found = lookup(snapshot.names(), snapshot.zones(), name, qtype, exact);
    Some((exact, found))
}
