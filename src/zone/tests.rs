//! The whole room: compiling, and lookup against a slow resolver that knows nothing but a list of records.

use std::sync::Arc;

use proptest::prelude::*;

use super::testing::{PlainTree, name, spec, zone};
use super::*;
use crate::model::{LowerName, RecordType, Ttl};

// === Compiling ===

/// Compiles a text as zone `z`, and gives the faults without their source.
fn faults(text: &str) -> Vec<String> {
    let faults = Zone::compile(&spec("z", text)).err().unwrap_or_default();
    let show = |fault: &crate::model::Rejection| match fault.place.as_str() {
        "" => fault.reason.clone(),
        place => format!("{place}: {}", fault.reason),
    };
    faults.iter().map(show).collect()
}

#[test]
fn what_may_not_stand_side_by_side() {
    // The file's first line is `$TTL`, so that these begin on line 2.
    for (text, expected) in [
        (
            "a A 192.0.2.1\na CNAME b",
            &["line 3: CNAME at a.z beside A (line 2); a CNAME must stand alone"][..],
        ),
        ("a CNAME b\na CNAME b", &[]),
        (
            "a CNAME b\na CNAME c",
            &["line 2: several CNAME records at a.z; there can be one"],
        ),
        (
            "@ CNAME b",
            &["line 2: CNAME at z beside NS; a CNAME must stand alone"],
        ),
        (
            "a DNAME b\na DNAME c",
            &["line 2: several DNAME records at a.z; there can be one"],
        ),
        (
            "a DNAME b\nx.a A 192.0.2.1",
            &[
                "line 3: x.a.z lies below the DNAME at a.z, where nothing may stand (RFC 6672 section 2.4)",
            ],
        ),
        (
            "a DNAME b\na NS ns.y.\n",
            &["line 2: DNAME at the zone cut a.z belongs into the zone below the cut"],
        ),
        ("@ DNAME b.", &[]),
        (
            "@ SOA n. h. 1 2 3 4 5\n@ SOA n. h. 2 2 3 4 5",
            &["line 2: several SOA records at z; there can be one"],
        ),
        (
            "a SOA n. h. 1 2 3 4 5",
            &["line 2: SOA at a.z, but it belongs at the apex z only"],
        ),
        (
            "a NS n.y.\na TXT x",
            &["line 3: TXT at the zone cut a.z belongs into the zone below the cut"],
        ),
        (
            "a NS n.y.\nx.a TXT x\ny.x.a A 192.0.2.1",
            &["line 3: TXT at x.a.z lies below the zone cut at a.z and belongs into that zone"],
        ),
        (
            "a NS n.y.\nb.a NS n.y.",
            &["line 3: NS at b.a.z lies below the zone cut at a.z and belongs into that zone"],
        ),
        (
            "a DS 1 13 9 00",
            &["line 2: DS at a.z without NS: it is no zone cut (RFC 4035 section 2.4)"],
        ),
        (
            "@ DS 1 13 9 00",
            &["line 2: DS at the apex belongs into the parent zone (RFC 4035 section 2.4)"],
        ),
        (
            "*.a NS n.y.",
            &[
                "line 2: NS at the wildcard *.a.z, which has no defined meaning (RFC 4592 section 4)",
            ],
        ),
        (
            "* DNAME n.y.",
            &[
                "line 2: DNAME at the wildcard *.z, which has no defined meaning (RFC 4592 section 4)",
            ],
        ),
    ] {
        assert_eq!(faults(text), expected, "{text}");
    }
}

#[test]
fn name_servers_inside_the_zone_need_addresses() {
    for (text, expected) in [
        ("@ NS n\nn AAAA ::1", &[][..]),
        (
            "@ NS n",
            &[
                "line 2: the name server n.z of z lies in this zone and has no address; add A or AAAA for it",
            ],
        ),
        (
            "@ NS n\nn CNAME m\nm A 192.0.2.1",
            &[
                "line 2: the name server n.z of z is a CNAME (RFC 2181 section 10.3); give it A or AAAA",
            ],
        ),
        (
            "a NS n.a",
            &[
                "line 2: the name server n.a.z of a.z lies in this zone and has no address; add A or AAAA for it",
            ],
        ),
        ("a NS a\na A 192.0.2.1", &[]),
        ("a NS n.b\nb NS n.y.", &[]),
        (
            "a NS n.b\n",
            &[
                "line 2: the name server n.b.z of a.z lies in this zone and has no address; add A or AAAA for it",
            ],
        ),
        // What is missing may stand in the line that was refused.
        (
            "a NS n.a\nn.a A x",
            &["line 3: expected IPv4 address; A is written `192.0.2.1`"],
        ),
    ] {
        assert_eq!(faults(text), expected, "{text}");
    }
    let mut bare = spec("z", "");
    bare.nameservers.clear();
    let faults = Zone::compile(&bare).unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "zone z: no name server; give `nameservers`, or NS records at the apex in the file"
    );
}

#[test]
fn an_rrset_must_fit_into_a_message() {
    let text: String = (0..300)
        .map(|number| format!("a TXT {number}{}\n", "x".repeat(230)))
        .collect();
    assert!(faults(&text)[0].starts_with("line 2: the TXT records of a.z have "));
}

/// Shows all RRsets at a name: `TYPE ttl count`.
fn at(zone: &Zone, owner: &str) -> Vec<String> {
    let found = zone
        .names()
        .find(|(name, _)| name.to_string() == owner)
        .and_then(|(_, index)| zone.node(index));
    found.map_or_else(Vec::new, |node| {
        let show = |set: &Rrset| format!("{} {} {}", set.rtype(), set.ttl().seconds(), set.count());
        node.rrsets.iter().map(show).collect()
    })
}

#[test]
fn configuration_fills_what_the_file_lacks() {
    let mut config = spec("z", "");
    config.nameservers = vec![
        Nameserver {
            name: name("ns1.z"),
            addresses: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
        },
        Nameserver {
            name: name("ns2.other"),
            addresses: vec![],
        },
    ];
    let zone = Zone::compile(&config).unwrap();
    assert_eq!(at(&zone, "z"), ["NS 3600 2", "SOA 3600 1"]);
    assert_eq!(at(&zone, "ns1.z"), ["A 3600 1", "AAAA 3600 1"]);
    let soa = zone.soa().iter().next().unwrap();
    let numbers = [7, 3600, 600, 1_209_600, 60u32]
        .map(u32::to_be_bytes)
        .concat();
    let expected = [&b"\x03ns1\x01z\0\x0ahostmaster\x01z\0"[..], &numbers].concat();
    assert_eq!(soa.wire(), expected);
    assert_eq!((zone.serial(), zone.negative_ttl().seconds()), (7, 60));
    // Without a file too, and with a contact and a long MINIMUM.
    config.file = None;
    config.contact = Some(name("admin.y"));
    config.negative_ttl = Ttl::new(9999).unwrap();
    let zone = Zone::compile(&config).unwrap();
    assert_eq!(zone.negative_ttl().seconds(), 3600);
    assert!(
        zone.soa()
            .iter()
            .next()
            .unwrap()
            .wire()
            .starts_with(b"\x03ns1\x01z\0\x05admin\x01y\0")
    );
    // A refresh that no SOA can hold.
    config.soa.refresh = std::time::Duration::from_secs(1 << 32);
    assert!(
        Zone::compile(&config).unwrap_err()[0]
            .reason
            .contains("soa.refresh")
    );
}

#[test]
fn the_file_wins_over_configuration() {
    let mut config = spec(
        "z",
        "@ 50 SOA m. h. 99 1 2 3 20\n@ NS ns1\n@ NS ns2\nns2 A 192.0.2.9\n",
    );
    let server = |text: &str| Nameserver {
        name: name(text),
        addresses: vec!["192.0.2.1".parse().unwrap()],
    };
    config.nameservers = vec![server("ns1.z"), server("ns2.z")];
    let zone = Zone::compile(&config).unwrap();
    assert_eq!((zone.serial(), zone.negative_ttl().seconds()), (99, 20));
    assert_eq!(at(&zone, "z"), ["NS 300 2", "SOA 50 1"]);
    let addresses = |text| -> Vec<u8> {
        let name: LowerName = name(text);
        zone.addresses(name.as_ref())
            .flat_map(|set| set.iter().flat_map(|rdata| rdata.wire().to_vec()))
            .collect()
    };
    assert_eq!(addresses("ns1.z"), [192, 0, 2, 1]);
    assert_eq!(addresses("ns2.z"), [192, 0, 2, 9]);
}

#[test]
fn one_ttl_for_an_rrset_the_smallest() {
    let zone = zone(
        "z",
        "a 60 A 192.0.2.1\na 30 A 192.0.2.2\na 90 A 192.0.2.3\na 10 A 192.0.2.1",
    );
    assert_eq!(at(&zone, "a.z"), ["A 10 3"]);
}

#[test]
fn cuts_take_their_glue() {
    let zone = zone(
        "z",
        "a NS n.a\na NS ns\na NS n.b\na NS n.y.\na DS 1 13 9 00\nn.a A 192.0.2.1\nn.a AAAA ::1\nns A 192.0.2.2\n\
         b NS b\nb A 192.0.2.3\nn.b A 192.0.2.4\nm.b A 192.0.2.5\nc NS n.a\n",
    );
    let names: Vec<String> = zone.names().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, ["a.z", "b.z", "c.z", "z", "ns.z"]);
    let glue = |owner: &str| -> Vec<String> {
        let cut = zone.cut(name(owner).as_ref()).unwrap();
        let show = |(name, set): &(LowerName, Rrset)| format!("{name} {}", set.rtype());
        cut.glue.iter().map(show).collect()
    };
    assert_eq!(glue("a.z"), ["n.a.z A", "n.a.z AAAA", "ns.z A", "n.b.z A"]);
    assert_eq!(glue("b.z"), ["b.z A"]);
    assert_eq!(glue("c.z"), ["n.a.z A", "n.a.z AAAA"]);
    let cut = zone.cut(name("a.z").as_ref()).unwrap();
    assert_eq!((cut.ns.count(), cut.ds.is_some()), (4, true));
    assert!(zone.cut(name("ns.z").as_ref()).is_none());
    assert!(zone.cut(name("x.a.z").as_ref()).is_none());
    for (owner, count) in [
        ("n.a.z", 2),
        ("b.z", 1),
        ("m.b.z", 1),
        ("ns.z", 1),
        ("a.z", 0),
        ("x.z", 0),
    ] {
        assert_eq!(
            zone.addresses(name(owner).as_ref()).count(),
            count,
            "{owner}"
        );
    }
}

#[test]
fn services_yield_to_static_records() {
    let zone = zone(
        "z",
        "cut NS n.y.\nd DNAME y.\na A 192.0.2.1\nq AAAA ::1\nc CNAME a\ns SRV 1 1 1 a\nh HTTPS 1 .\nm MX 1 a\n\
         t TXT x\n* A 192.0.2.2\nx.e TXT x\n",
    );
    for (owner, expected) in [
        ("z", None),
        ("m.z", None),
        ("t.z", None),
        ("free.z", None),
        ("e.z", None),
        ("cut.z", Some("the zone delegates cut.z and all below it")),
        (
            "x.y.cut.z",
            Some("the zone delegates cut.z and all below it"),
        ),
        (
            "d.z",
            Some("the zone redirects by DNAME d.z and all below it"),
        ),
        (
            "x.d.z",
            Some("the zone redirects by DNAME d.z and all below it"),
        ),
        ("a.z", Some("the zone has a static A record at a.z")),
        ("q.z", Some("the zone has a static AAAA record at q.z")),
        ("c.z", Some("the zone has a static CNAME record at c.z")),
        ("s.z", Some("the zone has a static SRV record at s.z")),
        ("h.z", Some("the zone has a static HTTPS record at h.z")),
        ("*.z", Some("the zone has a static A record at *.z")),
        ("y", Some("y lies outside of the zone z")),
    ] {
        assert_eq!(
            zone.conflict(name(owner).as_ref()).as_deref(),
            expected,
            "{owner}"
        );
    }
}

// === Lookup ===

/// Shows what was found, without the places in tables.
fn shown(found: &Lookup<'_>) -> String {
    let star = |wildcard: &bool| if *wildcard { " by *" } else { "" };
    let wires = |rrset: &Rrset| -> Vec<Vec<u8>> {
        rrset.iter().map(|rdata| rdata.wire().to_vec()).collect()
    };
    match found {
        Lookup::NotOurs => "not ours".to_owned(),
        Lookup::Rrset {
            zone,
            rrset,
            wildcard,
        } => {
            format!(
                "{zone} {} {:?}{}",
                rrset.rtype(),
                wires(rrset),
                star(wildcard)
            )
        }
        Lookup::Cname { zone, rrset } => format!("{zone} alias {:?}", wires(rrset)),
        Lookup::Dname {
            zone, owner_labels, ..
        } => format!("{zone} redirect at {owner_labels}"),
        Lookup::Referral {
            zone, owner_labels, ..
        } => format!("{zone} referral at {owner_labels}"),
        Lookup::Ds { zone, rrset } => format!("{zone} ds {:?}", rrset.map(wires)),
        Lookup::Steered {
            zone,
            service,
            wildcard,
        } => {
            format!("{zone} service {service}{}", star(wildcard))
        }
        Lookup::Any { zone, .. } => format!("{zone} any"),
        Lookup::NoData { zone } => format!("{zone} nodata"),
        Lookup::NxDomain { zone } => format!("{zone} nxdomain"),
    }
}

/// Asks a set of zones with services.
fn ask(zones: &ZoneSet, tree: &PlainTree, qname: &str, qtype: RecordType) -> String {
    let qname = name(qname);
    let exact = tree.find(qname.as_ref());
    shown(&lookup(tree, zones, qname.as_ref(), qtype, exact))
}

#[test]
fn wildcards_of_rfc_4592() {
    // Section 2.2.1.
    let text = "* TXT w\n* MX 10 h\nsub.* TXT s\nhost1 A 192.0.2.1\n_ssh._tcp.host1 SRV 1 1 1 h\n\
                _ssh._tcp.host2 SRV 1 1 1 h\nsubdel NS n.y.\n";
    let zones = ZoneSet::new(vec![zone("example", text)]);
    let tree = PlainTree::new(&zones, &[]);
    let any = |_: &str| {};
    any("");
    for (qname, qtype, part) in [
        ("host3.example", RecordType::MX, "0 MX"),
        ("host3.example", RecordType::A, "0 nodata"),
        ("foo.bar.example", RecordType::TXT, "by *"),
        ("host1.example", RecordType::MX, "0 nodata"),
        ("sub.*.example", RecordType::MX, "0 nodata"),
        ("_telnet._tcp.host1.example", RecordType::SRV, "0 nxdomain"),
        ("host.subdel.example", RecordType::A, "0 referral at 2"),
        ("ghost.*.example", RecordType::MX, "0 nxdomain"),
        ("*.example", RecordType::TXT, "0 TXT"),
        ("_tcp.host2.example", RecordType::A, "0 nodata"),
        ("x.host2.example", RecordType::A, "0 nxdomain"),
        ("x.example", RecordType::ANY, "0 any"),
    ] {
        let got = ask(&zones, &tree, qname, qtype);
        assert!(got.contains(part), "{qname} {qtype}: {got}");
    }
    let exact = ask(&zones, &tree, "*.example", RecordType::TXT);
    assert!(!exact.contains("by *"));
}

#[test]
fn ds_is_the_parents() {
    // RFC 4035 section 3.1.4.1.
    let zones = ZoneSet::new(vec![
        zone(
            "z",
            "a NS n.y.\na DS 1 13 9 00\nb NS n.y.\nd NS n.y.\nd DS 1 13 9 00",
        ),
        zone("a.z", ""),
        zone("b.z", ""),
    ]);
    let tree = PlainTree::new(&zones, &[]);
    for (qname, expected) in [
        ("a.z", "0 ds Some([[0, 1, 13, 9, 0]])"),
        ("b.z", "0 ds None"),
        ("d.z", "0 ds Some([[0, 1, 13, 9, 0]])"),
        ("x.d.z", "0 referral at 2"),
        ("z", "0 nodata"),
        ("x.a.z", "1 nxdomain"),
    ] {
        assert_eq!(
            ask(&zones, &tree, qname, RecordType::DS),
            expected,
            "{qname}"
        );
    }
}

#[test]
fn aliases_and_any() {
    let zones = ZoneSet::new(vec![zone(
        "z",
        "c CNAME a\na A 192.0.2.1\n*.w CNAME a\nm MX 1 a\n",
    )]);
    let services = [
        (name("m.z"), false),
        (name("k.z"), true),
        (name("*.v.z"), true),
    ];
    let tree = PlainTree::new(&zones, &services);
    for (qname, qtype, expected) in [
        ("c.z", RecordType::A, "0 alias [[1, 97, 1, 122, 0]]"),
        ("c.z", RecordType::CNAME, "0 CNAME [[1, 97, 1, 122, 0]]"),
        // RFC 8482 section 4.2: HINFO cannot stand beside a CNAME.
        ("c.z", RecordType::ANY, "0 CNAME [[1, 97, 1, 122, 0]]"),
        ("x.w.z", RecordType::A, "0 alias [[1, 97, 1, 122, 0]]"),
        (
            "x.w.z",
            RecordType::CNAME,
            "0 CNAME [[1, 97, 1, 122, 0]] by *",
        ),
        ("m.z", RecordType::A, "0 service 0"),
        ("m.z", RecordType::TXT, "0 nodata"),
        ("m.z", RecordType::MX, "0 MX [[0, 1, 1, 97, 1, 122, 0]]"),
        ("m.z", RecordType::ANY, "0 any"),
        ("k.z", RecordType::TXT, "0 service 1"),
        ("k.z", RecordType::ANY, "0 service 1"),
        ("x.y.v.z", RecordType::CNAME, "0 service 2 by *"),
        ("v.z", RecordType::A, "0 nodata"),
        ("y", RecordType::A, "not ours"),
    ] {
        assert_eq!(
            ask(&zones, &tree, qname, qtype),
            expected,
            "{qname} {qtype}"
        );
    }
}

/// Counts lookups, and knows one name.
struct Counting<'t>(&'t PlainTree, std::cell::Cell<usize>);

impl NameTree for Counting<'_> {
    fn find(&self, name: crate::model::NameRef<'_>) -> Option<Found> {
        self.1.set(self.1.get() + 1);
        self.0.find(name)
    }
}

#[test]
fn a_deep_name_costs_few_lookups() {
    let zones = ZoneSet::new(vec![zone("z", "b.a TXT x")]);
    let tree = PlainTree::new(&zones, &[]);
    for (labels, most) in [(1, 2), (2, 3), (120, 13)] {
        let qname = name(&format!("{}b.a.z", "x.".repeat(labels)));
        let counting = Counting(&tree, std::cell::Cell::new(0));
        let found = lookup(&counting, &zones, qname.as_ref(), RecordType::A, None);
        assert_eq!(shown(&found), "0 nxdomain");
        assert!(counting.1.get() <= most, "{labels}: {}", counting.1.get());
    }
    let counting = Counting(&tree, std::cell::Cell::new(0));
    let qname = name(&"x.".repeat(127));
    let found = lookup(&counting, &zones, qname.as_ref(), RecordType::A, None);
    assert!(matches!(found, Lookup::NotOurs) && counting.1.get() == 0);
}

// === The slow resolver ===

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
            !(divides && owner.starts_with(&line.owner)) && !(beside && owner == line.owner)
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
fn compile(apex: &[&str], lines: &[Line]) -> Result<Arc<Zone>, Vec<crate::model::Rejection>> {
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
