//! From records to nodes: configuration joins in, RRsets form, cuts take what is theirs, and the whole is checked.

mod check;
mod configured;

use std::collections::BTreeMap;

use super::compile::{Precedence, ZoneSpec, is_address};
use super::master_file::{Place, Record, Report};
use super::rrset::Rrset;
use super::set::{Cut, Node};
use crate::model::{LowerName, NameRef, RecordType};

/// Octets that the records of one RRset may take in a message, owner names compressed: 65535 less header, question, OPT and a
/// chain of 16 DNAMEs and CNAMEs before it (under 9000 octets). So no reply over TCP is ever cut.
const MAX_RRSET: usize = 56_000;
/// Octets of a record beside its owner and its data.
const RECORD_HEAD: usize = 10;
/// Octets of a compression pointer.
const POINTER: usize = 2;

/// What a zone is made of.
#[derive(Debug)]
pub(super) struct Assembled {
    /// The SOA.
    pub(super) soa: Rrset,
    /// What the file says itself.
    pub(super) precedence: Precedence,
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

/// Owners of cuts and DNAMEs in wire form, with NS or DNAME for which.
type Divisions = BTreeMap<Box<[u8]>, RecordType>;

/// Joins the records of the file with what configuration gives. `None` when the report is not clean afterwards.
pub(super) fn assemble(
    spec: &ZoneSpec,
    mut records: Vec<Record>,
    report: &mut Report,
) -> Option<Assembled> {
    let is_whole = report.is_clean();
    let precedence = configured::add(spec, &mut records, report);
    let owners = group(records, report);
    check::apex_types(spec, &owners, report);
    let mut nodes = Vec::with_capacity(owners.len());
    let mut below = Owners::new();
    // Cuts and DNAMEs by owner, topmost only: wire order is no tree order, so they are known before the others are placed.
    let divisions = divisions(spec, &owners);
    for (owner, sets) in owners {
        match divided_by(owner.as_ref(), &divisions, spec.apex.as_ref()) {
            Some((top, RecordType::NS)) if top != owner.as_ref() => {
                check::below_cut(&owner, &sets, top, report);
                below.insert(owner, sets);
            }
            Some((top, RecordType::DNAME)) if top != owner.as_ref() => {
                let reason = format!(
                    "{owner} lies below the DNAME at {top}, where nothing may stand (RFC 6672 section 2.4)"
                );
                report.add(first_place(&sets), reason);
            }
            _ => {
                check::owner(spec, &owner, &sets, report);
                nodes.push((owner, sets));
            }
        }
    }
    check::referrals(spec, &nodes, &below, report);
    // What is missing may stand in a line that was refused.
    if is_whole {
        check::name_servers(spec, &nodes, &below, report);
    }
    finish((spec, precedence), nodes, below, report)
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
        let Some(rrset) = Rrset::new(rtype, ttl, &rdata) else {
            unreachable!("there is a first record, and the data of each was checked to fit")
        };
        let size = octets(&rrset, POINTER);
        if size > MAX_RRSET {
            let reason = format!(
                "the {rtype} records of {owner} have {size} octets, which no message can hold"
            );
            report.add(place, reason);
        }
        owners
            .entry(owner)
            .or_default()
            .push(Placed { rrset, place });
    }
    owners
}

/// Counts the octets of an RRset in a message at most, with so many for each owner.
fn octets(rrset: &Rrset, owner: usize) -> usize {
    let records = rrset.iter();
    records
        .map(|rdata| owner + RECORD_HEAD + rdata.wire().len())
        .sum()
}

/// Gives the place of an owner's first RRset.
fn first_place(sets: &[Placed]) -> Place {
    sets.first().map_or(Place::CONFIGURED, |set| set.place)
}

/// Finds an owner's RRset of one type.
fn find(sets: &[Placed], rtype: RecordType) -> Option<&Placed> {
    sets.iter().find(|set| set.rrset.rtype() == rtype)
}

/// Lists the owners of cuts and DNAMEs, with NS or DNAME for which. At the apex NS is no cut.
fn divisions(spec: &ZoneSpec, owners: &Owners) -> Divisions {
    let kind = |(owner, sets): (&LowerName, &Vec<Placed>)| {
        let is_cut = *owner != spec.apex && find(sets, RecordType::NS).is_some();
        let rtype = if is_cut {
            RecordType::NS
        } else {
            RecordType::DNAME
        };
        find(sets, rtype).map(|_| (owner.as_wire().into(), rtype))
    };
    owners.iter().filter_map(kind).collect()
}

/// Finds the topmost cut or DNAME at or above a name.
fn divided_by<'n>(
    name: NameRef<'n>,
    divisions: &Divisions,
    apex: NameRef<'_>,
) -> Option<(NameRef<'n>, RecordType)> {
    if divisions.is_empty() {
        return None;
    }
    std::iter::successors(Some(name), |name| name.parent())
        .take_while(|ancestor| ancestor.as_wire().len() >= apex.as_wire().len())
        .filter_map(|ancestor| Some((ancestor, *divisions.get(ancestor.as_wire())?)))
        .last()
}

/// Makes the nodes, with the glue in their cuts.
fn finish(
    (spec, precedence): (&ZoneSpec, Precedence),
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
        precedence,
        nodes: made,
        glue,
    })
}
