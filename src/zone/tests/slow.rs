//! A resolver that scans a list of records, and agrees.

use std::sync::Arc;

use proptest::prelude::*;

use super::looking_up::ask;
use crate::model::{LowerName, RecordType, Rejection};
use crate::zone::testing::{PlainTree, name, spec};
use crate::zone::{Zone, ZoneSet};

/// A record of the slow resolver: labels from the top down, type, data as text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    owner: Vec<&'static str>,
    rtype: RecordType,
    data: &'static str,
}

/// What the slow resolver knows: a list of records for each of two zones, `z` and `b.z`, and services.
#[derive(Clone, Debug, Default)]
struct Slow {
    lines: [Vec<Line>; 2],
    services: Vec<(Vec<&'static str>, bool)>,
}

/// The apexes, from the top down.
const APEXES: [&[&str]; 2] = [&["z"], &["z", "b"]];

impl Slow {
    /// Tells whether a record may join the records of its zone.
    fn may_join(&self, zone: usize, line: &Line) -> bool {
        let lines = &self.lines[zone];
        let apex = APEXES[zone];
        let is_apex = line.owner == apex;
        let address = |rtype| rtype == RecordType::A || rtype == RecordType::AAAA;
        let mut all: Vec<Line> = lines.clone();
        all.push(line.clone());
        let cut = |owner: &[&str]| {
            owner != apex
                && all
                    .iter()
                    .any(|l| l.rtype == RecordType::NS && l.owner == owner)
        };
        let redirect = |owner: &[&str]| {
            all.iter()
                .any(|l| l.rtype == RecordType::DNAME && l.owner == owner)
        };
        let is_star = line.owner.last() == Some(&"*");
        if is_star && [RecordType::NS, RecordType::DNAME].contains(&line.rtype) {
            return false;
        }
        if is_apex && [RecordType::DS, RecordType::CNAME].contains(&line.rtype) {
            return false;
        }
        all.iter().all(|l| {
            let above = (apex.len()..l.owner.len()).map(|length| &l.owner[..length]);
            let mut beside = all.iter().filter(|o| o.owner == l.owner && *o != l);
            let is_cut = cut(&l.owner);
            let single = [RecordType::CNAME, RecordType::DNAME].contains(&l.rtype);
            !above.clone().any(redirect)
                && (!above.clone().any(cut) || address(l.rtype))
                && (!is_cut
                    || address(l.rtype)
                    || [RecordType::NS, RecordType::DS].contains(&l.rtype))
                && (l.rtype != RecordType::DS || is_cut)
                && !(l.rtype == RecordType::CNAME && beside.clone().next().is_some())
                && !(single && beside.any(|o| o.rtype == l.rtype))
        })
    }

    /// Tells whether a service may claim a name, by the rules of DESIGN section 7.
    fn may_claim(&self, owner: &[&'static str]) -> bool {
        let zone = usize::from(owner.starts_with(APEXES[1]));
        let apex = APEXES[zone];
        self.lines[zone].iter().all(|line| {
            let divides = line.rtype == RecordType::DNAME
                || line.rtype == RecordType::NS && line.owner != apex;
            let beside = [RecordType::A, RecordType::AAAA, RecordType::CNAME].contains(&line.rtype);
            !(divides && owner.starts_with(&line.owner) || beside && owner == line.owner)
        }) && self.services.iter().all(|(other, _)| other != owner)
    }

    /// Resolves by scanning everything, as RFC 1034 section 4.3.2 tells it.
    fn resolve(&self, qname: &[&str], qtype: RecordType) -> String {
        if !qname.starts_with(APEXES[0]) {
            return "not ours".to_owned();
        }
        let zone = usize::from(qname.starts_with(APEXES[1]));
        let ds = |zone: usize| {
            let mut found = self.lines[zone].iter();
            match found.find(|line| line.owner == qname && line.rtype == RecordType::DS) {
                Some(_) => format!("{zone} ds Some([[0, 1, 13, 9, 0]])"),
                None => format!("{zone} ds None"),
            }
        };
        // `b.z` is always delegated by `z`.
        if qtype == RecordType::DS && qname == APEXES[1] {
            return ds(0);
        }
        let apex = APEXES[zone];
        let has = |owner: &[&str], rtype: RecordType| {
            self.lines[zone]
                .iter()
                .any(|line| line.owner == owner && line.rtype == rtype)
        };
        for length in apex.len()..=qname.len() {
            let owner = &qname[..length];
            if owner != apex && has(owner, RecordType::NS) {
                return if owner == qname && qtype == RecordType::DS {
                    ds(zone)
                } else {
                    format!("{zone} referral at {length}")
                };
            }
            if owner != qname && has(owner, RecordType::DNAME) {
                return format!("{zone} redirect at {length}");
            }
        }
        let exists = |name: &[&str]| {
            let below = |owner: &[&str]| {
                owner.starts_with(name) && (zone == 1 || !owner.starts_with(APEXES[1]))
            };
            name == apex
                || self.lines[zone].iter().any(|line| below(&line.owner))
                || self.services.iter().any(|(owner, _)| below(owner))
                || zone == 0 && APEXES[1].starts_with(name)
        };
        if exists(qname) {
            return self.answer(zone, qname, qtype, "");
        }
        let length = (0..qname.len())
            .rev()
            .find(|length| exists(&qname[..*length]));
        let mut star = qname[..length.unwrap()].to_vec();
        star.push("*");
        if exists(&star) {
            self.answer(zone, &star, qtype, " by *")
        } else {
            format!("{zone} nxdomain")
        }
    }

    /// Answers out of what stands at one owner.
    fn answer(&self, zone: usize, owner: &[&str], qtype: RecordType, star: &str) -> String {
        let service = self.services.iter().position(|(name, _)| name == owner);
        if let Some(number) = service {
            let is_cname = self.services[number].1;
            if is_cname || qtype == RecordType::A || qtype == RecordType::AAAA {
                return format!("{zone} service {number}{star}");
            }
        }
        let data = |rtype: RecordType| -> Vec<Vec<u8>> {
            let lines = self.lines[zone].iter();
            lines
                .filter(|line| line.owner == owner && line.rtype == rtype)
                .map(|line| wire(line.data))
                .collect()
        };
        let alias = data(RecordType::CNAME);
        if qtype == RecordType::ANY {
            return if alias.is_empty() {
                format!("{zone} any")
            } else {
                format!("{zone} CNAME {alias:?}{star}")
            };
        }
        let found = data(qtype);
        if !found.is_empty() {
            format!("{zone} {qtype} {found:?}{star}")
        } else if alias.is_empty() {
            format!("{zone} nodata")
        } else {
            format!("{zone} alias {alias:?}")
        }
    }
}

/// Gives the wire form of the data that the random records have.
fn wire(data: &str) -> Vec<u8> {
    match data {
        "192.0.2.1" => vec![192, 0, 2, 1],
        "::1" => vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        "x" => b"\x01x".to_vec(),
        "1 13 9 00" => vec![0, 1, 13, 9, 0],
        "t." => b"\x01t\0".to_vec(),
        other => unreachable!("no random record has {other}"),
    }
}

/// Writes labels from the top down as a name.
fn text_of(labels: &[&str]) -> String {
    labels
        .iter()
        .rev()
        .map(|label| format!("{label}."))
        .collect()
}

fn labels() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "*"]), 0..4).prop_map(|tail| {
        let mut owner = vec!["z"];
        owner.extend(tail);
        owner
    })
}

fn line() -> impl Strategy<Value = Line> {
    let kinds = prop::sample::select(vec![
        (RecordType::A, "192.0.2.1"),
        (RecordType::AAAA, "::1"),
        (RecordType::TXT, "x"),
        (RecordType::CNAME, "t."),
        (RecordType::DNAME, "t."),
        (RecordType::NS, "t."),
        (RecordType::DS, "1 13 9 00"),
        (RecordType::TXT, "x"),
        (RecordType::A, "192.0.2.1"),
    ]);
    (labels(), kinds).prop_map(|(owner, (rtype, data))| Line { owner, rtype, data })
}

/// Makes the zone file of a list of records.
fn file_of(lines: &[Line]) -> String {
    let line = |line: &Line| format!("{} {} {}\n", text_of(&line.owner), line.rtype, line.data);
    lines.iter().map(line).collect()
}

/// Compiles one of the two zones; its name servers are the configured ones, outside.
fn compile(apex: &[&str], lines: &[Line]) -> Result<Arc<Zone>, Vec<Rejection>> {
    Zone::compile(&spec(&text_of(apex), &file_of(lines))).map(Arc::new)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn lookup_agrees_with_the_slow_resolver(
        lines in prop::collection::vec(line(), 0..14),
        claims in prop::collection::vec((labels(), prop::bool::weighted(0.3)), 0..5),
        questions in prop::collection::vec(labels(), 40),
    ) {
        let delegation = Line { owner: APEXES[1].to_vec(), rtype: RecordType::NS, data: "t." };
        let mut slow = Slow::default();
        slow.lines[0].push(delegation);
        for line in lines {
            // What lies below `b.z` belongs there; what is at it may be the parent's DS.
            let is_child = line.owner.starts_with(APEXES[1]) && line.rtype != RecordType::DS;
            let zone = usize::from(is_child);
            if line.owner == APEXES[zone] && line.rtype == RecordType::NS || slow.lines[zone].contains(&line) {
                continue;
            }
            let mut joined = slow.lines[zone].clone();
            joined.push(line.clone());
            let is_good = slow.may_join(zone, &line);
            // The two agree on what a zone may hold.
            prop_assert_eq!(compile(APEXES[zone], &joined).is_ok(), is_good, "{:?}", joined);
            if is_good {
                slow.lines[zone] = joined;
            }
        }
        let zones: Vec<Arc<Zone>> = (0..2).map(|zone| compile(APEXES[zone], &slow.lines[zone]).unwrap()).collect();
        for (owner, is_cname) in claims {
            let zone = usize::from(owner.starts_with(APEXES[1]));
            let is_good = slow.may_claim(&owner);
            let is_double = slow.services.iter().any(|(other, _)| *other == owner);
            let conflict = zones[zone].conflict(name(&text_of(&owner)).as_ref());
            prop_assert_eq!(conflict.is_none() && !is_double, is_good, "{:?}", owner);
            // A CNAME stands alone: configuration refuses it beside other records and at the apex.
            let is_alone = !slow.lines[zone].iter().any(|line| line.owner == owner) && owner != APEXES[zone];
            if is_good && (!is_cname || is_alone) {
                slow.services.push((owner, is_cname));
            }
        }
        let zones = ZoneSet::new(zones);
        let services: Vec<(LowerName, bool)> = slow
            .services
            .iter()
            .map(|(owner, is_cname)| (name(&text_of(owner)), *is_cname))
            .collect();
        let tree = PlainTree::new(&zones, &services);
        let qtypes = [
            RecordType::A, RecordType::AAAA, RecordType::TXT, RecordType::MX, RecordType::CNAME, RecordType::DNAME,
            RecordType::DS, RecordType::ANY, RecordType(65280),
        ];
        for question in questions {
            for qtype in qtypes {
                let got = ask(&zones, &tree, &text_of(&question), qtype);
                prop_assert_eq!(got, slow.resolve(&question, qtype), "{:?} {}", question, qtype);
            }
        }
    }
}
