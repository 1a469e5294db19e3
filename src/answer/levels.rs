//! Names of the levels of federated services: `<service>.<namespace>.<federation>.svc`, then a region, or a zone and its region
//! (DESIGN section 4.5).
//!
//! They stand in no table: a name that is not found, or is an empty non-terminal, is taken apart here. Static records, zone cuts and
//! wildcards go first, and a region or zone that no cluster has, or had, is NXDOMAIN.

use super::apart;
use crate::model::{NameRef, RecordType, ZoneIndex};
use crate::snapshot::{AtLevel, Snapshot};
use crate::zone::Lookup;

/// Gives what stands at the name of a level; `None`: it is none.
pub(super) fn at<'a>(
    snapshot: &Snapshot,
    zone: ZoneIndex,
    (name, qtype): (NameRef<'_>, RecordType),
) -> Option<Lookup<'a>> {
    if !snapshot.has_levels() {
        return None;
    }
    Some(match snapshot.at_level(zone, name)? {
        AtLevel::Service {
            service,
            is_cname,
            area,
        } if apart::is_answered(is_cname, qtype) => Lookup::Level {
            zone,
            service,
            area,
        },
        _ => apart::without(zone, qtype),
    })
}
