//! A resolver that scans a list of records, as RFC 1034 section 4.3.2 tells it, and agrees about whole replies: the code, AA, and
//! what stands in each section, in its order.

use std::sync::Arc;

use hickory_proto::op::Message;
use hickory_proto::rr::Record;
use proptest::prelude::*;

use super::world::world_with_zones;
use super::zones::with_file;
use super::{Ask, Transport};
use crate::model::RecordType;
use crate::zone::Zone;

/// Labels from the top down.
type Labels = Vec<&'static str>;

/// A record of the slow resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    owner: Labels,
    ttl: u32,
    rtype: RecordType,
    /// The name in its data, where there is one.
    target: Labels,
    /// What else is in it, as text.
    data: &'static str,
}

/// The apexes, from the top down.
const APEXES: [&[&str]; 2] = [&["z"], &["z", "b"]];
/// TTL of records in the file, of those that the configuration makes, and of negatives.
const TTLS: [u32; 3] = [300, 3600, 20];
/// Links of a chain, as `answer` has them.
const MAX_LINKS: usize = 16;

/// What a reply must be.
#[derive(Debug, Default)]
struct Said {
    code: &'static str,
    is_authoritative: bool,
    answers: Vec<String>,
    authorities: Vec<String>,
    /// What must be in the additional section.
    needed: Vec<String>,
}

/// What the slow resolver knows: a list of records for each of two zones.
#[derive(Clone, Debug)]
struct Slow([Vec<Line>; 2]);

impl Slow {
    /// Begins with what the configuration makes, and with the delegation of the second zone by the first.
    fn new() -> Self {
        let zone = |apex: &[&'static str]| {
            let ns = [apex, &["ns1"]].concat();
            let line = |owner: &[&'static str], rtype, target: &[&'static str], data| Line {
                owner: owner.to_vec(),
                ttl: TTLS[1],
                rtype,
                target: target.to_vec(),
                data,
            };
            vec![
                line(apex, RecordType::SOA, &[], ""),
                line(apex, RecordType::NS, &ns, ""),
                line(&ns, RecordType::A, &[], "192.0.2.53"),
            ]
        };
        let mut slow = Self(APEXES.map(zone));
        let delegation = Line {
            owner: APEXES[1].to_vec(),
            ttl: TTLS[0],
            rtype: RecordType::NS,
            target: vec!["t"],
            data: "",
        };
        slow.0[0].push(delegation);
        slow
    }

    /// Adds a record if the compiler takes it.
    fn join(&mut self, line: Line) {
        let is_child = line.owner.starts_with(APEXES[1]) && line.rtype != RecordType::DS;
        let zone = usize::from(is_child);
        let is_made = line.owner == APEXES[zone] && line.rtype == RecordType::NS;
        if is_made || self.0[zone].contains(&line) {
            return;
        }
        self.0[zone].push(line);
        if self.compile(zone).is_none() {
            self.0[zone].pop();
        }
    }

    fn compile(&self, zone: usize) -> Option<Arc<Zone>> {
        let lines = self.0[zone].iter().filter(|line| line.ttl == TTLS[0]);
        let lines = lines.map(|line| {
            let owner = text_of(&line.owner);
            format!("{owner} {} {}\n", line.rtype, data_of(line))
        });
        let text = format!("$TTL 300\n{}", lines.collect::<String>());
        let spec = with_file(&text_of(APEXES[zone]), text);
        Zone::compile(&spec).ok().map(Arc::new)
    }

    /// Lists records of a type at an owner.
    fn at(&self, zone: usize, owner: &[&str], rtype: RecordType) -> Vec<&Line> {
        let lines = self.0[zone].iter();
        let lines = lines.filter(|line| line.owner == owner && line.rtype == rtype);
        lines.collect()
    }

    fn exists(&self, zone: usize, name: &[&str]) -> bool {
        self.0[zone].iter().any(|line| {
            line.owner.starts_with(name) && (zone == 1 || !line.owner.starts_with(APEXES[1]))
        }) || zone == 0 && APEXES[1].starts_with(name)
    }

    /// Resolves by scanning everything.
    fn resolve(&self, asked: &[&'static str], qtype: RecordType) -> Said {
        let mut said = Said {
            code: "NoError",
            is_authoritative: true,
            ..Said::default()
        };
        let mut met: Vec<Labels> = Vec::new();
        let mut name = asked.to_vec();
        while met.len() <= MAX_LINKS && !met.contains(&name) {
            met.push(name.clone());
            match self.step(&mut said, &name, qtype, met.len() == 1) {
                Some(next) => name = next,
                None => break,
            }
        }
        said
    }

    /// Looks one name up, and gives the next one of the chain.
    fn step(
        &self,
        said: &mut Said,
        name: &[&'static str],
        qtype: RecordType,
        is_first: bool,
    ) -> Option<Labels> {
        if !name.starts_with(APEXES[0]) {
            if is_first {
                said.code = "Refused";
                said.is_authoritative = false;
            }
            return None;
        }
        let is_parents = qtype == RecordType::DS && name == APEXES[1];
        let zone = usize::from(name.starts_with(APEXES[1]) && !is_parents);
        for length in APEXES[zone].len()..=name.len() {
            let owner = &name[..length];
            let cut = self.at(zone, owner, RecordType::NS);
            if owner != APEXES[zone] && !cut.is_empty() {
                if owner == name && qtype == RecordType::DS {
                    return self.answer(said, (zone, name), name, qtype);
                }
                said.is_authoritative = !is_first;
                said.authorities = cut.iter().map(|line| shown(name_of(owner), line)).collect();
                let below = cut.iter().filter(|line| line.target.starts_with(owner));
                for line in below {
                    self.help(said, zone, &line.target);
                }
                return None;
            }
            if let [redirect, ..] = &*self.at(zone, owner, RecordType::DNAME)
                && owner != name
            {
                let dname = shown(name_of(owner), redirect);
                if !said.answers.contains(&dname) {
                    said.answers.push(dname);
                }
                let target = [&redirect.target, &name[length..]].concat();
                let made = Line {
                    rtype: RecordType::CNAME,
                    target,
                    ..(*redirect).clone()
                };
                said.answers.push(shown(name_of(name), &made));
                let is_asked = [RecordType::CNAME, RecordType::ANY].contains(&qtype);
                return (!is_asked).then_some(made.target);
            }
        }
        if self.exists(zone, name) {
            return self.answer(said, (zone, name), name, qtype);
        }
        let lengths = (0..name.len()).rev();
        let mut above = lengths.filter(|length| self.exists(zone, &name[..*length]));
        let star = [&name[..above.next().unwrap()], &["*"]].concat();
        if self.exists(zone, &star) {
            return self.answer(said, (zone, &star), name, qtype);
        }
        said.code = "NXDomain";
        self.negative(said, zone);
        None
    }

    /// Answers out of what stands at one owner, in the name of another one for wildcards.
    fn answer(
        &self,
        said: &mut Said,
        (zone, at): (usize, &[&str]),
        name: &[&str],
        qtype: RecordType,
    ) -> Option<Labels> {
        let found = self.at(zone, at, qtype);
        let alias = self.at(zone, at, RecordType::CNAME);
        match (&*found, &*alias) {
            (_, [alias]) => {
                said.answers.push(shown(name_of(name), alias));
                let is_asked = [RecordType::CNAME, RecordType::ANY].contains(&qtype);
                return (!is_asked).then(|| alias.target.clone());
            }
            (_, _) if qtype == RecordType::ANY => {
                said.answers
                    .push(format!("{} {} HINFO", name_of(name), TTLS[2]));
            }
            ([], _) => self.negative(said, zone),
            (found, _) => {
                for line in found {
                    let line = shown(name_of(name), line);
                    if !said.answers.contains(&line) {
                        said.answers.push(line);
                    }
                }
                let helped = [RecordType::NS, RecordType::MX].contains(&qtype);
                for line in found.iter().filter(|_| helped) {
                    let home = usize::from(line.target.starts_with(APEXES[1]));
                    self.help(said, home, &line.target);
                }
            }
        }
        None
    }

    fn negative(&self, said: &mut Said, zone: usize) {
        said.authorities
            .push(format!("{} {} SOA", name_of(APEXES[zone]), TTLS[2]));
    }

    /// Adds addresses of a name.
    fn help(&self, said: &mut Said, zone: usize, name: &[&str]) {
        for rtype in [RecordType::A, RecordType::AAAA] {
            let lines = self.at(zone, name, rtype);
            said.needed
                .extend(lines.iter().map(|line| shown(name_of(name), line)));
        }
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

fn name_of(labels: &[&str]) -> String {
    text_of(labels)
}

/// Writes the data of a record.
fn data_of(line: &Line) -> String {
    let name = text_of(&line.target);
    match (line.data, line.target.is_empty()) {
        (data, true) => data.to_owned(),
        ("", false) => name,
        (data, false) => format!("{data} {name}"),
    }
}

/// Shows a record; of some types hickory-proto shows no data.
fn shown(owner: String, line: &Line) -> String {
    let head = format!("{owner} {} {}", line.ttl, line.rtype);
    match line.rtype {
        RecordType::SOA | RecordType::TXT | RecordType::DS | RecordType::DNAME => head,
        _ => format!("{head} {}", data_of(line)),
    }
}

/// Shows a record of a reply the same way.
fn read(record: &Record) -> String {
    let text = record.to_string();
    let words: Vec<&str> = text.split(' ').filter(|word| *word != "IN").collect();
    let kept = match words[2] {
        "SOA" | "TXT" | "DS" | "DNAME" | "HINFO" => 3,
        _ => words.len(),
    };
    words[..kept].join(" ")
}

/// Shows a section. Records of one owner and type that follow each other are in any order.
fn section(records: &[Record]) -> Vec<String> {
    ordered(records.iter().map(read).collect())
}

fn ordered(mut lines: Vec<String>) -> Vec<String> {
    let head = |line: &String| line.split(' ').take(3).collect::<Vec<_>>().join(" ");
    for run in lines.chunk_by_mut(|one, other| head(one) == head(other)) {
        run.sort();
    }
    lines
}

fn labels(with: Vec<&'static str>, most: usize) -> impl Strategy<Value = Labels> {
    let tail = prop::collection::vec(prop::sample::select(with), 0..most);
    tail.prop_map(|tail| [vec!["z"], tail].concat())
}

fn line() -> impl Strategy<Value = Line> {
    let kinds = prop::sample::select(vec![
        (RecordType::A, "192.0.2.1"),
        (RecordType::A, "192.0.2.2"),
        (RecordType::AAAA, "2001:db8::1"),
        (RecordType::TXT, "x"),
        (RecordType::DS, "1 13 9 00"),
        (RecordType::MX, "10"),
        (RecordType::CNAME, ""),
        (RecordType::CNAME, ""),
        (RecordType::DNAME, ""),
        (RecordType::DNAME, ""),
        (RecordType::NS, ""),
    ]);
    let target = prop_oneof![
        9 => labels(vec!["a", "b", "c"], 3),
        1 => Just(vec!["out"]),
    ];
    (labels(vec!["a", "b", "c", "*"], 4), kinds, target).prop_map(
        |(owner, (rtype, data), target)| {
            let has_none = [
                RecordType::A,
                RecordType::AAAA,
                RecordType::TXT,
                RecordType::DS,
            ];
            Line {
                owner,
                ttl: TTLS[0],
                rtype,
                target: if has_none.contains(&rtype) {
                    Vec::new()
                } else {
                    target
                },
                data,
            }
        },
    )
}

/// Compares a reply with what it must be.
fn compare(reply: &Message, said: Said) -> Result<(), TestCaseError> {
    let code = format!("{:?}", reply.metadata.response_code);
    prop_assert_eq!(code, said.code);
    prop_assert_eq!(reply.metadata.authoritative, said.is_authoritative);
    prop_assert_eq!(section(&reply.answers), ordered(said.answers));
    prop_assert_eq!(section(&reply.authorities), ordered(said.authorities));
    let help = section(&reply.additionals);
    for line in &said.needed {
        prop_assert!(help.contains(line), "{line} is missing in {help:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn whole_replies_agree_with_the_slow_resolver(
        lines in prop::collection::vec(line(), 0..16),
        questions in prop::collection::vec(labels(vec!["a", "b", "c"], 5), 30),
    ) {
        let mut slow = Slow::new();
        for line in lines {
            slow.join(line);
        }
        let zones = [0, 1].map(|zone| slow.compile(zone).unwrap());
        let mut world = world_with_zones(zones.to_vec());
        let qtypes = [
            RecordType::A, RecordType::AAAA, RecordType::TXT, RecordType::MX, RecordType::CNAME, RecordType::DNAME,
            RecordType::DS, RecordType::NS, RecordType::SOA, RecordType::ANY, RecordType(65280),
        ];
        for question in questions {
            for qtype in qtypes {
                let ask = Ask::of(&format!("{} {qtype}", text_of(&question)));
                let reply = world.ask_over(&ask, Transport::Tcp);
                let all = [&reply.answers, &reply.authorities, &reply.additionals];
                let read: Vec<String> = all.iter().flat_map(|records| records.iter().map(read)).collect();
                let mut once = read.clone();
                once.sort();
                once.dedup();
                prop_assert_eq!(read.len(), once.len(), "a record stands twice: {:?}", read);
                compare(&reply, slow.resolve(&question, qtype))
                    .map_err(|error| TestCaseError::fail(format!("{ask:?} of {slow:?}: {error}")))?;
            }
        }
    }
}
