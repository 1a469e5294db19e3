//! The additional section of static answers: addresses of the names in them. Help for the resolver, never a must: what does
//! not fit is left out without TC (RFC 2181 section 9).

use super::sections::Solver;
use super::witness::Witness;
use crate::model::{NameRef, RecordType};
use crate::zone::{Found, NameTree, RdataRef, Rrset};

/// Names helped with at most.
const MAX_TARGETS: usize = 16;

impl<'a, W: Witness> Solver<'a, '_, W> {
    /// Adds what stands in our zones at the targets of an RRset owned by `owner`: addresses, and for an alias of SVCB the SVCB
    /// records (RFC 9460 section 4.1).
    ///
    /// Static records only: the address of a steered name depends on the client, and is asked for by whoever needs it.
    pub(super) fn additional(&mut self, owner: NameRef<'_>, rrset: &'a Rrset) {
        let rtype = rrset.rtype();
        let mut targets = [NameRef::ROOT; MAX_TARGETS];
        let mut count = 0;
        for (target, alias) in rrset.iter().filter_map(|rdata| target(rtype, rdata, owner)) {
            let known = targets.iter().take(count).any(|known| same(*known, target));
            let Some(slot) = targets.get_mut(count).filter(|_| !known) else {
                continue;
            };
            *slot = target;
            count += 1;
            if alias && !same(target, owner) {
                self.add_alias(target, rtype);
            }
            self.add_addresses(target);
        }
    }

    /// Adds the addresses of one name in our zones.
    fn add_addresses(&mut self, target: NameRef<'_>) {
        let lower = super::key::NameBuf::lowered(target);
        let zones = self.snapshot.zones();
        let Some(zone) = zones.find(lower.name()).and_then(|zone| self.zone(zone)) else {
            return;
        };
        for rrset in zone.addresses(lower.name()) {
            if !self.may_add_rrset(target, rrset) {
                return;
            }
        }
    }

    /// Adds the SVCB or HTTPS records that an alias leads to.
    fn add_alias(&mut self, target: NameRef<'_>, rtype: RecordType) {
        let lower = super::key::NameBuf::lowered(target);
        let Some(Found {
            zone,
            node: Some(node),
            ..
        }) = self.snapshot.names().find(lower.name())
        else {
            return;
        };
        let node = self.zone(zone).and_then(|zone| zone.node(node));
        if let Some(rrset) = node.and_then(|node| node.rrset(rtype)) {
            let _ = self.may_add_rrset(target, rrset);
        }
    }
}

/// Gives the name in an RRset's data that addresses help with, and whether it is an alias of SVCB. `.` in SVCB means the owner
/// itself, but in an alias, where it means that there is no service (RFC 9460 section 2.5).
fn target<'r>(
    rtype: RecordType,
    rdata: RdataRef<'r>,
    owner: NameRef<'r>,
) -> Option<(NameRef<'r>, bool)> {
    let wire = rdata.wire();
    let skip = match rtype {
        RecordType::NS => 0,
        RecordType::MX | RecordType::SVCB | RecordType::HTTPS => 2,
        RecordType::SRV => 6,
        _ => return None,
    };
    let rest = wire.get(skip..)?;
    let end = super::wire::plain_name_end(rest, 0)?;
    let name = NameRef::from_wire(rest.get(..end)?).ok()?;
    let svcb = matches!(rtype, RecordType::SVCB | RecordType::HTTPS);
    let alias = svcb && wire.starts_with(&[0, 0]);
    match (name.is_root(), svcb && !alias) {
        (true, true) => Some((owner, false)),
        (true, false) => None,
        (false, _) => Some((name, alias)),
    }
}

/// Tells whether two names are equal, whatever their case.
fn same(left: NameRef<'_>, right: NameRef<'_>) -> bool {
    left.as_wire().eq_ignore_ascii_case(right.as_wire())
}
