//! From file and configuration to nodes, cuts and faults.

use crate::model::{LowerName, RecordType, Rejection, Ttl};
use crate::zone::testing::{name, spec, zone};
use crate::zone::{NameForms, Nameserver, Rrset, Zone, ZoneSpec};

/// Compiles a text as zone `z`, and gives the faults without their source.
fn faults(text: &str) -> Vec<String> {
    let faults = Zone::compile(&spec("z", text)).err().unwrap_or_default();
    let show = |fault: &Rejection| match fault.place.as_str() {
        "" => fault.reason.clone(),
        place => format!("{place}: {}", fault.reason),
    };
    faults.iter().map(show).collect()
}

#[test]
fn a_cluster_set_says_its_version_unless_the_file_has_something_there() {
    let version = |cluster_set: bool, text: &str| {
        let zone = Zone::compile(&ZoneSpec {
            forms: NameForms {
                cluster_set,
                ..NameForms::default()
            },
            ..spec("z", text)
        });
        let zone = zone.unwrap();
        let owner = name("dns-version.z");
        let mut names = zone.names();
        let (_, index) = names.find(|(name, _)| *name == owner.as_ref())?;
        let rrset = zone.node(index)?.rrset(RecordType::TXT)?;
        let data: Vec<Vec<u8>> = rrset.iter().map(|rdata| rdata.wire().to_vec()).collect();
        Some((rrset.ttl().seconds(), data))
    };
    assert_eq!(version(false, ""), None);
    assert_eq!(
        version(true, ""),
        Some((28_800, vec![b"\x051.0.0".to_vec()]))
    );
    assert_eq!(
        version(true, "dns-version TXT own"),
        Some((300, vec![b"\x03own".to_vec()]))
    );
    assert_eq!(version(true, "dns-version CNAME elsewhere.y."), None);
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
            &["line 3: `x`: expected IPv4 address; A is written `192.0.2.1`"],
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

/// A chain of sixteen links may come before the RRset, and TC over TCP helps nobody (RFC 2181 section 9).
#[test]
fn rfc2181_9_rrsets_and_referrals_leave_room_for_a_chain() {
    // Each record has 12 octets and its data: 256 of TXT, 4 of A.
    let text = |count: usize| {
        let one = |at| format!("a TXT {at:0>255}\n");
        (0..count).map(one).collect::<String>()
    };
    assert_eq!(faults(&text(208)), [""; 0]);
    let told = faults(&text(209));
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("have 56012 octets"), "{told:?}");
    // NS: 12 and `n.c.z` of 7 or more; below the cut 10, the owner and 4 for each address.
    let cut = |addresses: usize| {
        let one = |at: usize| format!("n.c A 10.0.{}.{}\n", at / 250, at % 250);
        format!("c NS n.c\n{}", (0..addresses).map(one).collect::<String>())
    };
    assert_eq!(faults(&cut(2600)), [""; 0]);
    let told = faults(&cut(2700));
    assert_eq!(told.len(), 1);
    assert!(
        told[0].contains("the name servers of c.z and their addresses"),
        "{told:?}"
    );
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
