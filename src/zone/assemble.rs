//! From records to nodes: configuration joins in, RRsets form, cuts take what is theirs, and the whole is checked.

use std::collections::BTreeMap;

use super::compile::{ZoneSpec, is_address};
use super::master_file::{Place, Record, Report};
use super::rrset::{Rdata, Rrset};
use super::set::{Cut, Node};
use crate::model::{LowerName, NameRef, RecordType, Ttl};

/// Octets that the records of one RRset may take in a message, owner names compressed: 65535 less header, question and some
/// room for OPT.
const MAX_RRSET: usize = 65_000;
/// Octets of a record beside its data when its owner is a pointer.
const RECORD_HEAD: usize = 12;

/// What a zone is made of.
#[derive(Debug)]
pub(super) struct Assembled {
    /// The SOA.
    pub(super) soa: Rrset,
    /// Owner name and node, sorted by the name's wire form; nothing below cuts.
    pub(super) nodes: Vec<(LowerName, Node)>,
    /// Addresses at or below cuts.
    pub(super) glue: BTreeMap<LowerName, Vec<Rrset>>,
}

/// An RRset and where its first record was written.
#[derive(Clone, Debug)]
struct Placed {
    rrset: Rrset,
    place: Place,
}

/// RRsets by owner; those of one owner by ascending type.
type Owners = BTreeMap<LowerName, Vec<Placed>>;

/// Joins the records of the file with what configuration gives. `None` when the report is not clean afterwards.
pub(super) fn assemble(
    spec: &ZoneSpec,
    mut records: Vec<Record>,
    report: &mut Report,
) -> Option<Assembled> {
    let is_whole = report.is_clean();
    configured(spec, &mut records, report);
    let owners = group(records, report);
    check_apex_types(spec, &owners, report);
    let mut nodes = Vec::with_capacity(owners.len());
    let mut below = Owners::new();
    // Cuts and DNAMEs by owner, topmost only: wire order is no tree order, so they are known before the others are placed.
    let divisions = divisions(spec, &owners);
    for (owner, sets) in owners {
        match divided_by(owner.as_ref(), &divisions, spec.apex.as_ref()) {
            Some((top, RecordType::NS)) if top != owner.as_ref() => {
                check_below_cut(&owner, &sets, top, report);
                below.insert(owner, sets);
            }
            Some((top, RecordType::DNAME)) if top != owner.as_ref() => {
                let reason = format!(
                    "{owner} lies below the DNAME at {top}, where nothing may stand (RFC 6672 section 2.4)"
                );
                report.add(first_place(&sets), reason);
            }
            _ => {
                check_owner(spec, &owner, &sets, report);
                nodes.push((owner, sets));
            }
        }
    }
    // What is missing may stand in a line that was refused.
    if is_whole {
        check_name_servers(spec, &nodes, &below, report);
    }
    finish(spec, nodes, below, report)
}

/// Adds SOA, NS and addresses of name servers as configured, where the file has none.
fn configured(spec: &ZoneSpec, records: &mut Vec<Record>, report: &mut Report) {
    let has = |records: &[Record], name: &LowerName, test: &dyn Fn(RecordType) -> bool| {
        records
            .iter()
            .any(|record| test(record.rtype) && record.owner == *name)
    };
    let mut made = Vec::new();
    let record = |owner: &LowerName, rtype, ttl, rdata: &[u8]| Record {
        owner: owner.clone(),
        rtype,
        ttl,
        rdata: rdata.into(),
        place: Place::CONFIGURED,
    };
    if !has(records, &spec.apex, &|rtype| rtype == RecordType::NS) {
        for server in &spec.nameservers {
            let wire = server.name.as_wire();
            made.push(record(&spec.apex, RecordType::NS, spec.ns_ttl, wire));
        }
    }
    for server in &spec.nameservers {
        let is_inside = server.name.as_ref().is_at_or_below(spec.apex.as_ref());
        if !is_inside || has(records, &server.name, &is_address) {
            continue;
        }
        for address in &server.addresses {
            made.push(match address {
                std::net::IpAddr::V4(a) => {
                    record(&server.name, RecordType::A, spec.ns_ttl, &a.octets())
                }
                std::net::IpAddr::V6(a) => {
                    record(&server.name, RecordType::AAAA, spec.ns_ttl, &a.octets())
                }
            });
        }
    }
    let has_soa = has(records, &spec.apex, &|rtype| rtype == RecordType::SOA);
    records.append(&mut made);
    if !has_soa {
        match soa(spec, records) {
            Ok(Some(rdata)) => {
                made.push(record(&spec.apex, RecordType::SOA, spec.soa.ttl, &rdata));
            }
            // Without NS there is no MNAME: told below.
            Ok(None) => {}
            Err(reason) => report.add(Place::CONFIGURED, reason),
        }
    }
    records.append(&mut made);
}

/// Makes the data of a SOA: MNAME is the first name server (RFC 1035 section 3.3.13). `None` without a name server.
fn soa(spec: &ZoneSpec, records: &[Record]) -> Result<Option<Rdata>, String> {
    let first = records
        .iter()
        .find(|record| record.rtype == RecordType::NS && record.owner == spec.apex);
    let Some(first) = first else { return Ok(None) };
    let contact = match &spec.contact {
        Some(contact) => contact.clone(),
        None => spec.apex.prepend(b"hostmaster").map_err(|error| {
            format!("no contact is given, and hostmaster.{}: {error}", spec.apex)
        })?,
    };
    let mut wire = first.rdata.to_vec();
    wire.extend_from_slice(contact.as_wire());
    wire.extend_from_slice(&spec.serial.to_be_bytes());
    for (what, time) in [
        ("refresh", spec.soa.refresh),
        ("retry", spec.soa.retry),
        ("expire", spec.soa.expire),
    ] {
        let seconds = u32::try_from(time.as_secs()).ok().and_then(Ttl::new);
        let seconds = seconds.ok_or_else(|| {
            format!(
                "soa.{what} of {} s is more than 2147483647 s",
                time.as_secs()
            )
        })?;
        wire.extend_from_slice(&seconds.seconds().to_be_bytes());
    }
    wire.extend_from_slice(&spec.negative_ttl.seconds().to_be_bytes());
    Ok(Some(wire.into()))
}

/// Forms RRsets: one TTL each, the smallest (RFC 2181 section 5.2), the order that of the file.
fn group(mut records: Vec<Record>, report: &mut Report) -> Owners {
    // A stable sort: what stands first in the file stays first.
    records.sort_by(|a, b| (&a.owner, a.rtype).cmp(&(&b.owner, b.rtype)));
    let mut owners = Owners::new();
    let mut rest = records.into_iter().peekable();
    let mut rdata = Vec::new();
    while let Some(first) = rest.next() {
        let Record {
            owner,
            rtype,
            mut ttl,
            place,
            ..
        } = first;
        rdata.clear();
        rdata.push(first.rdata);
        while let Some(next) = rest.next_if(|next| next.rtype == rtype && next.owner == owner) {
            ttl = ttl.min(next.ttl);
            rdata.push(next.rdata);
        }
        let size: usize = rdata.iter().map(|wire| wire.len() + RECORD_HEAD).sum();
        match Rrset::new(rtype, ttl, &rdata).filter(|_| size <= MAX_RRSET) {
            Some(rrset) => owners
                .entry(owner)
                .or_default()
                .push(Placed { rrset, place }),
            None => report.add(
                place,
                format!(
                    "the {rtype} records of {owner} have {size} octets, which no message can hold"
                ),
            ),
        }
    }
    owners
}

/// Gives the place of an owner's first RRset.
fn first_place(sets: &[Placed]) -> Place {
    sets.first().map_or(Place::CONFIGURED, |set| set.place)
}

/// Finds an owner's RRset of one type.
fn find(sets: &[Placed], rtype: RecordType) -> Option<&Placed> {
    sets.iter().find(|set| set.rrset.rtype() == rtype)
}

/// Checks what can stand at the apex only, and what cannot.
fn check_apex_types(spec: &ZoneSpec, owners: &Owners, report: &mut Report) {
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

/// Lists the owners of cuts and DNAMEs, with NS or DNAME for which. At the apex NS is no cut.
fn divisions(spec: &ZoneSpec, owners: &Owners) -> BTreeMap<LowerName, RecordType> {
    let kind = |(owner, sets): (&LowerName, &Vec<Placed>)| {
        let is_cut = *owner != spec.apex && find(sets, RecordType::NS).is_some();
        let rtype = if is_cut {
            RecordType::NS
        } else {
            RecordType::DNAME
        };
        find(sets, rtype).map(|_| (owner.clone(), rtype))
    };
    owners.iter().filter_map(kind).collect()
}

/// Finds the topmost cut or DNAME at or above a name.
fn divided_by<'n>(
    name: NameRef<'n>,
    divisions: &BTreeMap<LowerName, RecordType>,
    apex: NameRef<'_>,
) -> Option<(NameRef<'n>, RecordType)> {
    if divisions.is_empty() {
        return None;
    }
    std::iter::successors(Some(name), |name| name.parent())
        .take_while(|ancestor| ancestor.as_wire().len() >= apex.as_wire().len())
        .filter_map(|ancestor| Some((ancestor, *divisions.get(&ancestor.to_lower())?)))
        .last()
}

/// Checks that nothing but addresses stands below a cut.
fn check_below_cut(owner: &LowerName, sets: &[Placed], cut: NameRef<'_>, report: &mut Report) {
    for set in sets.iter().filter(|set| !is_address(set.rrset.rtype())) {
        let rtype = set.rrset.rtype();
        let reason = format!(
            "{rtype} at {owner} lies below the zone cut at {cut} and belongs into that zone"
        );
        report.add(set.place, reason);
    }
}

/// Checks what may stand side by side at one authoritative owner or cut.
fn check_owner(spec: &ZoneSpec, owner: &LowerName, sets: &[Placed], report: &mut Report) {
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
    if owner.as_ref().is_wildcard() {
        for rtype in [RecordType::NS, RecordType::DNAME] {
            if let Some(set) = find(sets, rtype) {
                let reason = format!(
                    "{rtype} at the wildcard {owner}, which has no defined meaning (RFC 4592 section 4)"
                );
                report.add(set.place, reason);
            }
        }
    }
    let Some(ds) = find(sets, RecordType::DS).filter(|_| *owner != spec.apex) else {
        return check_cut_types(owner, sets, is_cut, report);
    };
    if !is_cut {
        let reason = format!("DS at {owner} without NS: it is no zone cut (RFC 4035 section 2.4)");
        report.add(ds.place, reason);
    }
    check_cut_types(owner, sets, is_cut, report);
}

/// Checks that a cut has NS, DS and addresses only.
fn check_cut_types(owner: &LowerName, sets: &[Placed], is_cut: bool, report: &mut Report) {
    let allowed = |rtype| rtype == RecordType::NS || rtype == RecordType::DS || is_address(rtype);
    for set in sets
        .iter()
        .filter(|set| is_cut && !allowed(set.rrset.rtype()))
    {
        let rtype = set.rrset.rtype();
        if rtype != RecordType::CNAME && rtype != RecordType::SOA {
            let reason =
                format!("{rtype} at the zone cut {owner} belongs into the zone below the cut");
            report.add(set.place, reason);
        }
    }
}

/// Checks that there is an NS at the apex, and that name servers inside the zone have addresses.
fn check_name_servers(
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
    let cuts: BTreeMap<LowerName, RecordType> = nodes
        .iter()
        .filter(|(owner, sets)| *owner != spec.apex && find(sets, RecordType::NS).is_some())
        .map(|(owner, _)| (owner.clone(), RecordType::NS))
        .collect();
    for (owner, sets) in nodes {
        let Some(ns) = find(sets, RecordType::NS) else {
            continue;
        };
        for target in ns.rrset.iter().filter_map(super::rrset::RdataRef::target) {
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

/// Makes the nodes, with the glue in their cuts.
fn finish(
    spec: &ZoneSpec,
    nodes: Vec<(LowerName, Vec<Placed>)>,
    below: Owners,
    report: &Report,
) -> Option<Assembled> {
    if !report.is_clean() {
        return None;
    }
    let addresses = |sets: &[Placed]| -> Vec<Rrset> {
        let sets = sets.iter().filter(|set| is_address(set.rrset.rtype()));
        sets.map(|set| set.rrset.clone()).collect()
    };
    let is_cut = |owner: &LowerName, sets: &[Placed]| {
        *owner != spec.apex && find(sets, RecordType::NS).is_some()
    };
    let at_cuts = nodes.iter().filter(|(owner, sets)| is_cut(owner, sets));
    let glue: BTreeMap<LowerName, Vec<Rrset>> = at_cuts
        .map(|(owner, sets)| (owner.clone(), addresses(sets)))
        .chain(
            below
                .into_iter()
                .map(|(owner, sets)| (owner, addresses(&sets))),
        )
        .filter(|(_, rrsets)| !rrsets.is_empty())
        .collect();
    let glue_of = |ns: &Rrset| -> Vec<(LowerName, Rrset)> {
        let targets = ns
            .iter()
            .filter_map(|rdata| Some(rdata.target()?.to_lower()));
        let found = targets.flat_map(|target| {
            let own = nodes.binary_search_by(|(owner, _)| owner.cmp(&target)).ok();
            let own = own.and_then(|position| nodes.get(position));
            let rrsets = match glue.get(&target) {
                Some(rrsets) => rrsets.clone(),
                None => own.map_or_else(Vec::new, |(_, sets)| addresses(sets)),
            };
            rrsets.into_iter().map(move |rrset| (target.clone(), rrset))
        });
        found.collect()
    };
    let made: Vec<(LowerName, Node)> = nodes
        .iter()
        .map(|(owner, sets)| {
            let rrset = |rtype| find(sets, rtype).map(|set| set.rrset.clone());
            let ns = rrset(RecordType::NS).filter(|_| is_cut(owner, sets));
            let node = match ns {
                Some(ns) => Node {
                    rrsets: Box::default(),
                    cut: Some(Box::new(Cut {
                        glue: glue_of(&ns),
                        ds: rrset(RecordType::DS),
                        ns,
                    })),
                },
                None => Node {
                    rrsets: sets.iter().map(|set| set.rrset.clone()).collect(),
                    cut: None,
                },
            };
            (owner.clone(), node)
        })
        .collect();
    let apex = made.iter().find(|(owner, _)| *owner == spec.apex);
    let soa = apex
        .and_then(|(_, node)| node.rrset(RecordType::SOA))
        .cloned()?;
    Some(Assembled {
        soa,
        nodes: made,
        glue,
    })
}
