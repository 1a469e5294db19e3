//! Chains of CNAME and DNAME: RFC 1034 section 4.3.2, RFC 2181, RFC 6672.

use super::world::world;
use super::{Ask, decode, lines};
use crate::answer::Transport;
use crate::telemetry::Count;

const SOA: &str = "ns example. 60 IN SOA ns1.example. hostmaster.example. 7 7200 900 1209600 60";

/// Asks over TCP and shows the reply, DNAMEs by owner, TTL and target.
fn shown(question: &str) -> Vec<String> {
    let mut world = world();
    let ask = Ask::of(question);
    let octets = world
        .send(&ask.packet(), ask.sender, Transport::Tcp)
        .unwrap();
    let reply = decode(&octets);
    let mut lines = lines(&reply);
    for line in &mut lines {
        // hickory shows the data of DNAME as octets.
        if line.contains(" DNAME ") || line.contains("TYPE39") || line.contains("Unknown") {
            let head: Vec<&str> = line.split(' ').take(4).collect();
            *line = format!("{} DNAME", head.join(" "));
        }
    }
    lines
}

/// Gives the target of the first DNAME of a reply, off the wire.
fn dname_target(question: &str) -> (u32, Vec<u8>) {
    let mut world = world();
    let ask = Ask::of(question);
    let octets = world
        .send(&ask.packet(), ask.sender, Transport::Tcp)
        .unwrap();
    let at = 12 + ask.name.len() + 4;
    assert!(octets[at] >= 0xc0, "the owner is part of the question");
    assert_eq!(octets[at + 2..at + 6], [0, 39, 0, 1]);
    let ttl = u32::from_be_bytes(*octets[at + 6..].first_chunk().unwrap());
    let length = usize::from(octets[at + 10]) << 8 | usize::from(octets[at + 11]);
    (ttl, octets[at + 12..at + 12 + length].to_vec())
}

#[test]
fn rfc6672_3_1_a_dname_and_the_cname_made_of_it() {
    assert_eq!(
        shown("x.dname.example A"),
        [
            "NOERROR aa",
            "an dname.example. 300 IN DNAME",
            "an x.dname.example. 300 IN CNAME x.target.example.",
            "an x.target.example. 300 IN A 192.0.2.110",
        ]
    );
    // RFC 3597 section 4: the target is not compressed. The CNAME has the TTL of the DNAME.
    let target = b"\x06target\x07example\x00".to_vec();
    assert_eq!(dname_target("x.dname.example A"), (300, target.clone()));
    assert_eq!(dname_target("x.dttl.example A"), (77, target));
    assert_eq!(
        shown("x.dttl.example A")[1..3],
        [
            "an dttl.example. 77 IN DNAME",
            "an x.dttl.example. 77 IN CNAME x.target.example.",
        ]
    );
    // The owner itself is not redirected (section 2.3).
    assert_eq!(shown("dname.example A"), ["NOERROR aa", SOA]);
    assert_eq!(
        shown("dname.example DNAME"),
        ["NOERROR aa", "an dname.example. 300 IN DNAME"]
    );
    // Several labels are kept, in their order.
    assert_eq!(
        shown("a.b.dname.example A")[..3],
        [
            "NXDOMAIN aa",
            "an dname.example. 300 IN DNAME",
            "an a.b.dname.example. 300 IN CNAME a.b.target.example.",
        ]
    );
}

#[test]
fn rfc6672_2_3_a_dname_leads_into_another_zone() {
    let steered = shown("near.dnin.example A");
    assert_eq!(
        steered[..3],
        [
            "NOERROR aa",
            "an dnin.example. 300 IN DNAME",
            "an near.dnin.example. 300 IN CNAME near.svc.test.",
        ]
    );
    assert!(
        steered[3].starts_with("an near.svc.test. 30 IN A 10."),
        "{steered:?}"
    );
    assert_eq!(
        shown("x.dnout.example A"),
        [
            "NOERROR aa",
            "an dnout.example. 300 IN DNAME",
            "an x.dnout.example. 300 IN CNAME x.example.net.",
        ]
    );
}

/// The target has 201 octets: a front of 54 makes 255, one of 55 makes 256.
#[test]
fn rfc6672_2_2_a_name_above_255_octets_is_yxdomain() {
    let mut world = world();
    for (octets, code, answers) in [(53, "NXDOMAIN aa", 2), (54, "YXDOMAIN aa", 1)] {
        let ask = Ask::of(&format!("{}.long.example A", "d".repeat(octets)));
        let reply = world.ask_over(&ask, Transport::Tcp);
        assert_eq!(lines(&reply)[0], code, "{octets}");
        assert_eq!(reply.answers.len(), answers, "{octets}");
    }
    let long = Ask::of(&format!("{}.long.example A", "d".repeat(63)));
    assert_eq!(world.counted(&long), [Count::YxDomain]);
}

/// What was asked for is there: a chain is not followed for CNAME and ANY.
#[test]
fn rfc1034_4_3_2_a_cname_that_is_asked_for_is_not_followed() {
    let dname = "an dname.example. 300 IN DNAME";
    let made = "an x.dname.example. 300 IN CNAME x.target.example.";
    for qtype in ["CNAME", "ANY"] {
        assert_eq!(
            shown(&format!("x.dname.example {qtype}")),
            ["NOERROR aa", dname, made],
            "{qtype}"
        );
        assert_eq!(
            shown(&format!("alias.example {qtype}")),
            ["NOERROR aa", "an alias.example. 60 IN CNAME www.example."],
            "{qtype}"
        );
    }
}

#[test]
fn rfc2181_5_an_rrset_stands_in_an_answer_once() {
    assert_eq!(
        shown("x.dnloop.example A"),
        [
            "NOERROR aa",
            "an dnloop.example. 300 IN DNAME",
            "an x.dnloop.example. 300 IN CNAME x.dnloop2.example.",
            "an dnloop2.example. 300 IN DNAME",
            "an x.dnloop2.example. 300 IN CNAME x.dnloop.example.",
        ]
    );
    // What was asked for was met on the way to it.
    assert_eq!(
        shown("dnup.dnup.example DNAME"),
        [
            "NOERROR aa",
            "an dnup.example. 300 IN DNAME",
            "an dnup.dnup.example. 300 IN CNAME dnup.example.",
        ]
    );
    // Names below the DNAME that they lead to: the chain ends at its sixteenth link.
    let grown = shown("x.dngrow.example A");
    let count = |what: &str| grown.iter().filter(|line| line.contains(what)).count();
    assert_eq!((count("DNAME"), count("IN CNAME")), (1, 17));
}
