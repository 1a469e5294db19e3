//! Records and names as they stand on the wire: octets compared whole, and what must hold for every name.

use proptest::prelude::*;

use super::world::world;
use super::{Ask, World, lines};
use crate::answer::Transport;

/// What the negative replies of `svc.test` carry that are the same for all.
const NEGATIVE: &str =
    "ns svc.test. 20 IN SOA ns1.svc.test. hostmaster.svc.test. 9 7200 900 1209600 20";

/// Asks over UDP and compares the octets behind the question; header, question and the first owner are looked at too.
fn check_octets(question: &str, answers: u8, expected: &[u8]) {
    let mut world = world();
    let ask = Ask::of(question);
    let reply = world
        .send(&ask.packet(), ask.sender, Transport::Udp)
        .unwrap();
    let end = 12 + ask.name.len() + 4;
    let additional = reply[11];
    assert_eq!(
        reply[..12],
        [0x12, 0x34, 0x84, 0, 0, 1, 0, answers, 0, 0, 0, additional]
    );
    assert_eq!(reply[12..end], ask.packet()[12..end]);
    let found = &reply[end..end + expected.len()];
    assert_eq!(found, expected, "{question}");
    assert!(
        additional > 0 || reply.len() == end + expected.len(),
        "{question}"
    );
}

#[test]
fn rfc3597_4_rfc2782_rfc9460_2_2_nothing_is_compressed_in_newer_types() {
    let head = |rtype: u8, ttl: u16, length: u8| {
        let [high, low] = ttl.to_be_bytes();
        vec![0xc0, 12, 0, rtype, 0, 1, 0, 0, high, low, 0, length]
    };
    check_octets(
        "new.example TYPE65280",
        1,
        &[
            &[0xc0, 12, 0xff, 0, 0, 1, 0, 0, 1, 44, 0, 4][..],
            &[10, 0, 0, 1],
        ]
        .concat(),
    );
    let srv = b"\x00\x00\x00\x05\x01\xbb\x03www\x07example\x00";
    check_octets(
        "_s._tcp.example SRV",
        1,
        &[&head(33, 300, 19)[..], srv].concat(),
    );
    let https = b"\x00\x00\x03svc\x07example\x00";
    check_octets(
        "https.example HTTPS",
        1,
        &[&head(65, 300, 15)[..], https].concat(),
    );
    let service = b"\x00\x01\x00\x00\x01\x00\x03\x02h2";
    check_octets(
        "svc.example HTTPS",
        1,
        &[&head(65, 300, 10)[..], service].concat(),
    );
}

#[test]
fn rfc9460_4_1_an_alias_brings_its_targets_records() {
    let mut world = world();
    let reply = world.ask(&Ask::of("https.example HTTPS"));
    let additional: Vec<String> = reply
        .additionals
        .iter()
        .map(|record| format!("{} {}", record.name, record.record_type()))
        .collect();
    assert_eq!(additional, ["svc.example. HTTPS", "svc.example. A"]);
    // In ServiceMode `.` is the owner (section 2.5.2), and addresses suffice.
    let reply = world.ask(&Ask::of("svc.example HTTPS"));
    assert_eq!(
        lines(&reply).last().unwrap(),
        "ar svc.example. 300 IN A 192.0.2.120"
    );
}

#[test]
fn rfc2308_5_a_soa_ttl_below_minimum_is_the_negative_ttl() {
    let soa =
        "ns short.test. 30 IN SOA ns1.short.test. hostmaster.short.test. 7 7200 900 1209600 300";
    let mut world = world();
    world.check(Ask::of("nothing.short.test A"), &["NXDOMAIN aa", soa]);
    world.check(Ask::of("short.test TXT"), &["NOERROR aa", soa]);
}

/// Only ASCII letters have a case: 0xC0 and 0xE0, a letter's two cases in Latin-1, are two labels.
#[test]
fn rfc4343_3_octets_above_ascii_have_no_case() {
    let mut world = world();
    for (name, address) in [("hi\\192", "192.0.2.141"), ("hi\\224", "192.0.2.142")] {
        let reply = world.ask(&Ask::of(&format!("{name}.example A")));
        assert_eq!(reply.answers[0].data.to_string(), address);
    }
    let reply = world.ask(&Ask::of("hi\\193.example A"));
    assert_eq!(lines(&reply)[0], "NXDOMAIN aa");
}

#[test]
fn rfc4592_3_3_steered_wildcards_are_blocked_by_names_and_empty_non_terminals() {
    let mut world = world();
    let sender = "192.0.2.7";
    for name in ["a.wild", "a.b.wild", "deep.ent.wild", "*.wild"] {
        let name = format!("{name}.svc.test");
        let record = format!("an {name}. 30 IN A 10.1.0.1");
        let ask = Ask::of(&format!("{name} A")).from(sender);
        world.check(ask, &["NOERROR aa", &record]);
    }
    for (name, code) in [
        ("ent.wild", "NOERROR aa"),
        ("wild", "NOERROR aa"),
        ("x.ent.wild", "NXDOMAIN aa"),
        ("x.deep.ent.wild", "NXDOMAIN aa"),
    ] {
        let ask = Ask::of(&format!("{name}.svc.test A")).from(sender);
        world.check(ask, &[code, NEGATIVE]);
    }
}

/// QNAME minimization asks for NS on its way down.
#[test]
fn rfc9156_3_rfc4592_2_2_2_a_steered_empty_non_terminal_has_no_ns_but_exists() {
    let mut world = world();
    for name in ["er.svc.test", "ent.wild.svc.test", "near.svc.test"] {
        for qtype in ["NS", "A6", "SOA"] {
            let qtype = if qtype == "A6" { "TYPE38" } else { qtype };
            let ask = Ask::of(&format!("{name} {qtype}"));
            world.check(ask, &["NOERROR aa", NEGATIVE]);
        }
    }
}

#[test]
fn rfc1034_4_2_1_parent_and_child_are_both_served() {
    let mut world = world();
    let soa = |zone: &str, ttl: u32| {
        format!("ns {zone}. {ttl} IN SOA ns1.{zone}. hostmaster.{zone}. 9 7200 900 1209600 20")
    };
    for zone in ["kid.example", "t.s.example"] {
        let address = format!("an www.{zone}. 30 IN A 192.0.2.151");
        world.check(Ask::of(&format!("www.{zone} A")), &["NOERROR aa", &address]);
        let negative = soa(zone, 20);
        let ask = Ask::of(&format!("nothing.{zone} A"));
        world.check(ask, &["NXDOMAIN aa", &negative]);
        let ns = lines(&world.ask(&Ask::of(&format!("{zone} NS"))));
        assert_eq!(ns[0], "NOERROR aa");
        assert_eq!(ns[1], format!("an {zone}. 3600 IN NS ns1.{zone}."));
    }
    // RFC 4035 section 3.1.4.1: DS is the parent's, where the parent is served.
    let ds = world.ask(&Ask::of("kid.example DS"));
    assert_eq!(
        (lines(&ds)[0].as_str(), ds.answers.len()),
        ("NOERROR aa", 1)
    );
    world.check(
        Ask::of("t.s.example DS"),
        &["NOERROR aa", &soa("t.s.example", 20)],
    );
    // In between there is a zone of somebody else.
    for name in ["s.example", "x.s.example", "x.y.s.example"] {
        let reply = lines(&world.ask(&Ask::of(&format!("{name} A"))));
        assert_eq!(
            reply,
            ["NOERROR", "ns s.example. 300 IN NS ns.example.net."],
            "{name}"
        );
    }
}

#[test]
fn rfc2181_8_no_ttl_is_above_what_is_configured_nor_0_unless_configured() {
    let mut world = world();
    world.check(
        Ask::of("zero.example A"),
        &["NOERROR aa", "an zero.example. 0 IN A 192.0.2.140"],
    );
    let names = [
        "www.example",
        "alias2.example",
        "child.example",
        "x.dttl.example",
        "example",
        "nothing.example",
        "near.svc.test",
        "ttl.svc.test",
        "none.svc.test",
        "doubt.svc.test",
        "dead3.svc.test",
        "svc.test",
        "nothing.svc.test",
        "short.test",
        "host.svc.test",
        "near.example",
    ];
    for name in names {
        for qtype in ["A", "AAAA", "NS", "MX", "SOA", "TXT", "ANY"] {
            let reply = world.ask(&Ask::of(&format!("{name} {qtype}")).edns(1232));
            for record in reply
                .answers
                .iter()
                .chain(&reply.authorities)
                .chain(&reply.additionals)
            {
                // All that the zones and services of this world say, and 5 s for what may change soon.
                let ttls = [3, 5, 20, 30, 60, 77, 300, 3600];
                assert!(ttls.contains(&record.ttl), "{record}");
            }
        }
    }
}

/// Names out of the labels that the zones have, and some that they have not.
fn names() -> impl Strategy<Value = String> {
    let labels = [
        "a", "b", "ent", "wild", "x", "www", "near", "deep", "er", "*", "nothing", "dname", "cw",
        "alias", "none", "_tcp", "kid", "ttl",
    ];
    let labels = prop::collection::vec(prop::sample::select(labels.to_vec()), 1..4);
    let zone = prop::sample::select(vec!["example", "svc.test", "kid.example"]);
    (labels, zone).prop_map(|(labels, zone)| format!("{}.{zone}", labels.join(".")))
}

thread_local! {
    static WORLD: std::cell::RefCell<World> = std::cell::RefCell::new(world());
}

proptest! {
    /// With the real table of names.
    #[test]
    fn rfc8020_2_nothing_is_below_nxdomain(name in names(), below in prop::sample::select(vec!["a", "*", "x.y", "www", "ent"])) {
        WORLD.with_borrow_mut(|world| {
            let code = |world: &mut World, name: &str| {
                let reply = world.ask(&Ask::of(&format!("{name} A")));
                (lines(&reply)[0].clone(), reply.answers.len())
            };
            let (above, answers) = code(world, &name);
            if above == "NXDOMAIN aa" && answers == 0 {
                let (child, answers) = code(world, &format!("{below}.{name}"));
                prop_assert_eq!((child.as_str(), answers), ("NXDOMAIN aa", 0));
            }
            Ok(())
        })?;
    }
}
