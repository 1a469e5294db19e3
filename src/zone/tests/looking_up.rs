//! Lookup, by the examples of the RFCs.

use crate::model::{NameRef, RecordType};
use crate::zone::testing::{PlainTree, name, zone};
use crate::zone::{Found, Lookup, NameTree, Rrset, ZoneSet, lookup};

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
        Lookup::Challenge { zone, .. } => format!("{zone} challenge"),
        Lookup::Level { zone, service, .. } => format!("{zone} level of {service}"),
        Lookup::Port { zone, service, .. } => format!("{zone} port of {service}"),
        Lookup::Host { zone, service } => format!("{zone} endpoint of {service}"),
        Lookup::NoData { zone } => format!("{zone} nodata"),
        Lookup::NxDomain { zone } => format!("{zone} nxdomain"),
    }
}

/// Asks a set of zones with services.
pub(super) fn ask(zones: &ZoneSet, tree: &PlainTree, qname: &str, qtype: RecordType) -> String {
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

#[test]
fn another_zones_apex_is_no_wildcard() {
    let zones = ZoneSet::new(vec![zone("z", ""), zone("*.z", "@ A 192.0.2.1")]);
    let tree = PlainTree::new(&zones, &[]);
    assert_eq!(ask(&zones, &tree, "x.z", RecordType::A), "0 nxdomain");
    assert!(ask(&zones, &tree, "*.z", RecordType::A).starts_with("1 A"));
}

/// Counts lookups in a table.
struct Counting<'t>(&'t PlainTree, std::cell::Cell<usize>);

impl NameTree for Counting<'_> {
    fn find(&self, name: NameRef<'_>) -> Option<Found> {
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
    // The closest encloser may lie far from both ends.
    let text = format!("{}a TXT x", "x.".repeat(60));
    let deep = ZoneSet::new(vec![zone("z", &text)]);
    let deep_tree = PlainTree::new(&deep, &[]);
    let counting = Counting(&deep_tree, std::cell::Cell::new(0));
    let qname = name(&format!("{}y.{}a.z", "x.".repeat(60), "x.".repeat(30)));
    let found = lookup(&counting, &deep, qname.as_ref(), RecordType::A, None);
    assert_eq!(shown(&found), "0 nxdomain");
    assert!(counting.1.get() <= 13, "{}", counting.1.get());
    let counting = Counting(&tree, std::cell::Cell::new(0));
    let qname = name(&"x.".repeat(127));
    let found = lookup(&counting, &zones, qname.as_ref(), RecordType::A, None);
    assert!(matches!(found, Lookup::NotOurs) && counting.1.get() == 0);
}
