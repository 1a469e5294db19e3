//! Names of the levels of federated services: `<service>.<namespace>.<federation>.svc`, then a region, or a zone and its region
//! (DESIGN section 4.5).
//!
//! They stand in no table: a name that is not found, or is an empty non-terminal, is taken apart here. Static records, zone cuts and
//! wildcards go first, and a region or zone that no cluster has, or had, is NXDOMAIN.

use super::apart;
use crate::model::{NameRef, RecordType, ServiceIndex};
use crate::snapshot::{AtLevel, Snapshot};
use crate::zone::{Found, Lookup};

/// Looks once more at a name where nothing stands: `exact` is what the table of names has there, `found` what was said of it.
#[inline]
pub(super) fn amend<'a>(
    snapshot: &Snapshot,
    (name, qtype): (NameRef<'_>, RecordType),
    exact: Option<Found>,
    found: Lookup<'a>,
) -> Lookup<'a> {
    if snapshot.has_levels() {
        amended(snapshot, (name, qtype), exact, found)
    } else {
        found
    }
}

/// Looks at a name where levels may be.
#[cold]
fn amended<'a>(
    snapshot: &Snapshot,
    (name, qtype): (NameRef<'_>, RecordType),
    exact: Option<Found>,
    found: Lookup<'a>,
) -> Lookup<'a> {
    let Some(zone) = apart::zone_of(exact, &found) else {
        return found;
    };
    match snapshot.at_level(zone, name) {
        Some(AtLevel::Service {
            service,
            is_cname,
            area,
        }) if is_cname || matches!(qtype, RecordType::A | RecordType::AAAA) => Lookup::Level {
            zone,
            service,
            area,
        },
        Some(_) => apart::without(zone, qtype),
        None => found,
    }
}

/// Finds the service that a name is answered by because it is one of a region or a zone; `None`: it is none, or something else stands
/// there.
#[must_use]
#[cold]
pub fn service_at_level(snapshot: &Snapshot, name: NameRef<'_>) -> Option<ServiceIndex> {
    let asked = (name, RecordType::A);
    let (exact, found) = apart::look(snapshot, asked)?;
    match amend(snapshot, asked, exact, found) {
        Lookup::Level { service, .. } => Some(service),
        _ => None,
    }
}
