//! What may stand where, and what must.

use super::{Divisions, MAX_RRSET, Owners, POINTER, Placed, divided_by, find, octets};
use crate::model::{LowerName, NameRef, RecordType};
use crate::zone::compile::{ZoneSpec, is_address};
use crate::zone::master_file::{Place, Report};
use crate::zone::rrset::RdataRef;

/// Checks what can stand at the apex only, and what cannot.
pub(super) fn apex_types(spec: &ZoneSpec, owners: &Owners, report: &mut Report) {
    let none = Vec::new();
    let apex = owners.get(&spec.apex).unwrap_or(&none);
    if let Some(set) = find(apex, RecordType::DS) {
        let reason = "DS at the apex belongs into the parent zone (RFC 4035 section 2.4)";
        report.add(set.place, reason);
    }
    for (owner, sets) in owners.iter().filter(|(owner, _)| **owner != spec.apex) {
        if let Some(set) = find(sets, RecordType::SOA) {
            let reason = format!(
                "SOA at {owner}, but it belongs at the apex {} only",
                spec.apex
            );
            report.add(set.place, reason);
        }
    }
}

/// Checks that nothing but addresses stands below a cut.
pub(super) fn below_cut(owner: &LowerName, sets: &[Placed], cut: NameRef<'_>, report: &mut Report) {
    for set in sets.iter().filter(|set| !is_address(set.rrset.rtype())) {
        let rtype = set.rrset.rtype();
        let reason = format!(
            "{rtype} at {owner} lies below the zone cut at {cut} and belongs into that zone"
        );
        report.add(set.place, reason);
    }
}

/// Checks what may stand side by side at one authoritative owner or cut.
pub(super) fn owner(spec: &ZoneSpec, owner: &LowerName, sets: &[Placed], report: &mut Report) {
    for rtype in [RecordType::SOA, RecordType::CNAME, RecordType::DNAME] {
        if let Some(set) = find(sets, rtype).filter(|set| set.rrset.count() > 1) {
            let reason = format!("several {rtype} records at {owner}; there can be one");
            report.add(set.place, reason);
        }
    }
    // RFC 1034 section 3.6.2, RFC 2181 section 10.1.
    if let Some(cname) = find(sets, RecordType::CNAME)
        && let Some(other) = sets
            .iter()
            .find(|set| set.rrset.rtype() != RecordType::CNAME)
    {
        let rtype = other.rrset.rtype();
        let line = match other.place.line() {
            0 => String::new(),
            line => format!(" (line {line})"),
        };
        let reason = format!("CNAME at {owner} beside {rtype}{line}; a CNAME must stand alone");
        report.add(cname.place, reason);
    }
    let is_cut = *owner != spec.apex && find(sets, RecordType::NS).is_some();
    if owner.as_ref().is_wildcard() && *owner != spec.apex {
        for rtype in [RecordType::NS, RecordType::DNAME] {
            if let Some(set) = find(sets, rtype) {
                let reason = format!(
                    "{rtype} at the wildcard {owner}, which has no defined meaning (RFC 4592 section 4)"
                );
                report.add(set.place, reason);
            }
        }
    }
    let is_other = *owner != spec.apex && !is_cut;
    if let Some(ds) = find(sets, RecordType::DS).filter(|_| is_other) {
        let reason = format!("DS at {owner} without NS: it is no zone cut (RFC 4035 section 2.4)");
        report.add(ds.place, reason);
    }
    if is_cut {
        cut_types(owner, sets, report);
    }
}

/// Checks that a cut has NS, DS and addresses only.
fn cut_types(owner: &LowerName, sets: &[Placed], report: &mut Report) {
    // CNAME and SOA are refused for other reasons already.
    let told = [
        RecordType::NS,
        RecordType::DS,
        RecordType::CNAME,
        RecordType::SOA,
    ];
    for (rtype, place) in sets.iter().map(|set| (set.rrset.rtype(), set.place)) {
        if !told.contains(&rtype) && !is_address(rtype) {
            let reason =
                format!("{rtype} at the zone cut {owner} belongs into the zone below the cut");
            report.add(place, reason);
        }
    }
}

/// Checks that each referral fits a message: its NS, and the addresses of name servers below the cut, which all belong there
/// (RFC 9471 section 3.1).
pub(super) fn referrals(
    spec: &ZoneSpec,
    nodes: &[(LowerName, Vec<Placed>)],
    below: &Owners,
    report: &mut Report,
) {
    for (owner, sets) in nodes.iter().filter(|(owner, _)| *owner != spec.apex) {
        let Some(ns) = find(sets, RecordType::NS) else {
            continue;
        };
        let own = |name: &LowerName| {
            if name == owner {
                Some(sets)
            } else {
                below.get(name)
            }
        };
        let targets = ns.rrset.iter().filter_map(RdataRef::target);
        let glue = targets.filter(|target| target.is_at_or_below(owner.as_ref()));
        let size: usize = glue
            .map(|target| {
                let target = target.to_lower();
                let sets = own(&target).into_iter().flatten();
                let sets = sets.filter(|set| is_address(set.rrset.rtype()));
                sets.map(|set| octets(&set.rrset, target.as_wire().len()))
                    .sum::<usize>()
            })
            .sum();
        let size = size + octets(&ns.rrset, POINTER);
        if size > MAX_RRSET {
            let reason = format!(
                "the name servers of {owner} and their addresses have {size} octets, which no message can hold"
            );
            report.add(ns.place, reason);
        }
    }
}

/// Checks that there is an NS at the apex, and that name servers inside the zone have addresses.
pub(super) fn name_servers(
    spec: &ZoneSpec,
    nodes: &[(LowerName, Vec<Placed>)],
    below: &Owners,
    report: &mut Report,
) {
    let by_name = |name: &LowerName| {
        let node = nodes.binary_search_by(|(owner, _)| owner.cmp(name));
        let node = node.ok().and_then(|position| nodes.get(position));
        node.map(|(_, sets)| sets).or_else(|| below.get(name))
    };
    if by_name(&spec.apex).is_none_or(|sets| find(sets, RecordType::NS).is_none()) {
        let reason = "no name server; give `nameservers`, or NS records at the apex in the file";
        report.add(Place::CONFIGURED, reason);
    }
    let cuts: Divisions = nodes
        .iter()
        .filter(|(owner, sets)| *owner != spec.apex && find(sets, RecordType::NS).is_some())
        .map(|(owner, _)| (owner.as_wire().into(), RecordType::NS))
        .collect();
    for (owner, sets) in nodes {
        let Some(ns) = find(sets, RecordType::NS) else {
            continue;
        };
        for target in ns.rrset.iter().filter_map(RdataRef::target) {
            if !target.is_at_or_below(spec.apex.as_ref()) {
                continue;
            }
            let sets = by_name(&target.to_lower());
            if sets.is_some_and(|sets| sets.iter().any(|set| is_address(set.rrset.rtype()))) {
                continue;
            }
            // A name server below another cut can be found there (RFC 9471 section 2.2: sibling glue is optional).
            let cut = divided_by(target, &cuts, spec.apex.as_ref());
            if cut.is_some_and(|(cut, _)| cut != owner.as_ref()) {
                continue;
            }
            let is_alias = sets.is_some_and(|sets| find(sets, RecordType::CNAME).is_some());
            let reason = if is_alias {
                format!(
                    "the name server {target} of {owner} is a CNAME (RFC 2181 section 10.3); give it A or AAAA"
                )
            } else {
                format!(
                    "the name server {target} of {owner} lies in this zone and has no address; add A or AAAA for it"
                )
            };
            report.add(ns.place, reason);
        }
    }
}
