//! `_acme-challenge` of steered names: the CNAME of the zone, the challenges set here, and what goes before both.

use std::sync::Arc;

use super::world::{AMERICAN, GERMAN, world_challenged};
use super::zones::{spec, with_file};
use super::{Ask, World, lines};
use crate::model::LowerName;
use crate::zone::{AcmeTarget, Zone, ZoneSpec, challenge_owner};

/// Static records beside steered names.
const RECORDS: &str = "
@ NS ns1
ns1 A 192.0.2.53
fixed A 192.0.2.9
_acme-challenge.own TXT theirs
_acme-challenge.alias CNAME elsewhere.example.
_acme-challenge.cut NS ns.example.
_acme-challenge.dname DNAME else.example.
deep._acme-challenge.ent TXT below
*.star A 192.0.2.10
";

/// Names that are steered.
const STEERED: [&str; 9] = [
    "web", "own", "alias", "cut", "dname", "ent", "*.wild", "*.star2", "a.star",
];

/// Compiles `svc.test.`, whose challenges are answered below `acme`.
fn zone(acme: Option<&str>) -> Arc<Zone> {
    let apex: LowerName = "svc.test".parse().unwrap();
    let target = |below: &str| AcmeTarget::new(below.parse().unwrap(), apex.as_ref()).unwrap();
    let spec = ZoneSpec {
        acme: acme.map(target),
        nameservers: Vec::new(),
        ..with_file("svc.test", format!("$TTL 300{RECORDS}"))
    };
    Arc::new(Zone::compile(&spec).expect("a good zone"))
}

fn challenged(acme: Option<&str>, challenges: &[(&str, &'static str)]) -> World {
    let other = Zone::compile(&spec("acme.test")).expect("a good zone");
    world_challenged(vec![zone(acme), Arc::new(other)], &STEERED, challenges)
}

/// Gives the code and the lines of answer and authority, without the SOA's data.
fn ask(world: &mut World, question: &str) -> String {
    let shown = lines(&world.ask(&Ask::of(question)));
    let brief = |line: &String| match line.split_once(" IN SOA") {
        Some((front, _)) => format!("{front} IN SOA"),
        None => line.clone(),
    };
    let shown: Vec<String> = shown.iter().map(brief).collect();
    shown.join("; ")
}

fn check(world: &mut World, table: &[(&str, &str)]) {
    for (question, wanted) in table {
        assert_eq!(ask(world, question), *wanted, "{question}");
    }
}

#[test]
fn a_steered_name_has_its_challenge_as_a_cname_of_every_type() {
    let mut world = challenged(Some("acme.example.net"), &[]);
    let cname = "NOERROR aa; an _acme-challenge.web.svc.test. 30 IN CNAME web.acme.example.net.";
    for qtype in [
        "TXT", "A", "AAAA", "CNAME", "ANY", "HTTPS", "NS", "SOA", "CAA",
    ] {
        let question = format!("_acme-challenge.web.svc.test {qtype}");
        assert_eq!(ask(&mut world, &question), cname, "{qtype}");
    }
    check(
        &mut world,
        &[
            (
                "_acme-challenge.wild.svc.test TXT",
                "NOERROR aa; an _acme-challenge.wild.svc.test. 30 IN CNAME wild.acme.example.net.",
            ),
            (
                "_acme-challenge.a.star.svc.test TXT",
                "NOERROR aa; an _acme-challenge.a.star.svc.test. 30 IN CNAME a.star.acme.example.net.",
            ),
        ],
    );
    // The name itself is what it was.
    assert!(ask(&mut world, "web.svc.test A").contains(" IN A 10."));
}

#[test]
fn what_goes_before_the_cname_and_what_is_no_challenge() {
    let mut world = challenged(Some("acme.example.net"), &[]);
    let nothing = "NXDOMAIN aa; ns svc.test. 20 IN SOA";
    check(
        &mut world,
        &[
            // Static records at the owner.
            (
                "_acme-challenge.own.svc.test TXT",
                "NOERROR aa; an _acme-challenge.own.svc.test. 300 IN TXT theirs",
            ),
            (
                "_acme-challenge.own.svc.test A",
                "NOERROR aa; ns svc.test. 20 IN SOA",
            ),
            (
                "_acme-challenge.alias.svc.test TXT",
                "NOERROR aa; an _acme-challenge.alias.svc.test. 300 IN CNAME elsewhere.example.",
            ),
            (
                "_acme-challenge.cut.svc.test TXT",
                "NOERROR; ns _acme-challenge.cut.svc.test. 300 IN NS ns.example.",
            ),
            (
                "x._acme-challenge.cut.svc.test TXT",
                "NOERROR; ns _acme-challenge.cut.svc.test. 300 IN NS ns.example.",
            ),
            // An empty non-terminal is no record.
            (
                "_acme-challenge.ent.svc.test TXT",
                "NOERROR aa; an _acme-challenge.ent.svc.test. 30 IN CNAME ent.acme.example.net.",
            ),
            (
                "deep._acme-challenge.ent.svc.test TXT",
                "NOERROR aa; an deep._acme-challenge.ent.svc.test. 300 IN TXT below",
            ),
            ("x._acme-challenge.ent.svc.test TXT", nothing),
            // Names that are not steered.
            ("_acme-challenge.fixed.svc.test TXT", nothing),
            ("_acme-challenge.none.svc.test TXT", nothing),
            ("_acme-challenge.svc.test TXT", nothing),
            ("x._acme-challenge.web.svc.test TXT", nothing),
            ("_acme-challenge._acme-challenge.web.svc.test TXT", nothing),
            ("_acme-challeng.web.svc.test TXT", nothing),
            ("_acme-challenge1.web.svc.test TXT", nothing),
            ("web._acme-challenge.svc.test TXT", nothing),
        ],
    );
    let dname = ask(&mut world, "x._acme-challenge.dname.svc.test TXT");
    assert!(dname.contains("IN CNAME x.else.example."), "{dname}");
    let mut world = challenged(None, &[]);
    check(&mut world, &[("_acme-challenge.web.svc.test TXT", nothing)]);
}

#[test]
fn rfc4592_a_challenge_blocks_wildcards_at_and_below_itself_only() {
    let mut world = challenged(Some("acme.example.net"), &[]);
    for name in ["x.wild", "y.x.wild", "_acme-challenge.x.wild", "_acme.wild"] {
        let shown = ask(&mut world, &format!("{name}.svc.test A"));
        assert!(
            shown.contains(&format!("{name}.svc.test. 30 IN A 10.")),
            "{shown}"
        );
    }
    let nothing = "NXDOMAIN aa; ns svc.test. 20 IN SOA";
    check(
        &mut world,
        &[
            ("x._acme-challenge.wild.svc.test A", nothing),
            ("y.x._acme-challenge.wild.svc.test A", nothing),
            // A static wildcard beside a steered name below it.
            (
                "x.star.svc.test A",
                "NOERROR aa; an x.star.svc.test. 300 IN A 192.0.2.10",
            ),
            (
                "_acme-challenge.x.star.svc.test A",
                "NOERROR aa; an _acme-challenge.x.star.svc.test. 300 IN A 192.0.2.10",
            ),
        ],
    );
    // Where the zone has none, wildcards cover it as any other name.
    let mut world = challenged(None, &[]);
    let shown = ask(&mut world, "x._acme-challenge.wild.svc.test A");
    assert!(shown.contains("30 IN A 10."), "{shown}");
}

#[test]
fn challenges_go_before_the_cname_and_stand_alone() {
    let mut world = challenged(
        Some("acme.example.net"),
        &[
            ("web.svc.test", "one"),
            ("*.wild.svc.test", "a"),
            ("wild.svc.test", "b"),
            ("own.svc.test", "ours"),
        ],
    );
    let (owner, soa) = ("_acme-challenge.web.svc.test", "ns svc.test. 20 IN SOA");
    assert_eq!(
        ask(&mut world, &format!("{owner} TXT")),
        format!("NOERROR aa; an {owner}. 5 IN TXT one")
    );
    for qtype in ["A", "CNAME", "HTTPS", "DS"] {
        let shown = ask(&mut world, &format!("{owner} {qtype}"));
        assert_eq!(shown, format!("NOERROR aa; {soa}"), "{qtype}");
    }
    let any = ask(&mut world, &format!("{owner} ANY"));
    assert!(any.contains("HINFO") && !any.contains("CNAME"), "{any}");
    assert_eq!(
        ask(&mut world, "_acme-challenge.wild.svc.test TXT"),
        "NOERROR aa; an _acme-challenge.wild.svc.test. 5 IN TXT a; an _acme-challenge.wild.svc.test. 5 IN TXT b"
    );
    // The zone file's go first.
    assert!(ask(&mut world, "_acme-challenge.own.svc.test TXT").contains("theirs"));
    assert_eq!(
        ask(&mut world, &format!("x.{owner} TXT")),
        format!("NXDOMAIN aa; {soa}")
    );
    // A wildcard goes on with its other names, also with the one that is proved.
    let mut world = challenged(None, &[("x.wild.svc.test", "one")]);
    for name in ["x.wild", "z.wild"] {
        let shown = ask(&mut world, &format!("{name}.svc.test A"));
        assert!(shown.contains("30 IN A 10."), "{shown}");
    }
}

#[test]
fn rfc7871_7_4_challenges_are_equal_for_all() {
    let mut world = challenged(Some("acme.example.net"), &[("ent.svc.test", "one")]);
    for name in ["web", "wild", "ent"] {
        for client in [GERMAN, AMERICAN, "203.0.113.0/24"] {
            let ask = Ask::of(&format!("_acme-challenge.{name}.svc.test TXT")).ecs(client);
            let shown = lines(&world.ask(&ask));
            assert_eq!(shown.last().unwrap(), "ecs 24 0", "{name}: {shown:?}");
        }
    }
}

#[test]
fn the_chain_goes_on_where_the_target_is_ours_and_case_is_no_matter() {
    let mut world = challenged(Some("acme.test"), &[]);
    let shown = ask(&mut world, "_Acme-Challenge.WEB.svc.test TXT");
    assert_eq!(
        shown,
        "NXDOMAIN aa; an _Acme-Challenge.WEB.svc.test. 30 IN CNAME web.acme.test.; ns acme.test. 20 IN SOA"
    );
    // A target that is itself such an owner ends.
    let mut world = challenged(Some("_acme-challenge.web.svc.test"), &[]);
    let shown = ask(&mut world, "_acme-challenge.web.svc.test TXT");
    assert!(
        shown.contains("IN CNAME web._acme-challenge.web.svc.test."),
        "{shown}"
    );
}

#[test]
fn a_challenge_is_known_where_it_is_answered() {
    let world = challenged(
        Some("acme.example.net"),
        &[("web.svc.test", "one"), ("own.svc.test", "ours")],
    );
    let snapshot = &world.snapshot;
    for (name, token, wanted) in [
        ("web.svc.test", "one", true),
        ("web.svc.test", "two", false),
        ("ent.svc.test", "one", false),
        ("own.svc.test", "ours", false),
        ("own.svc.test", "theirs", false),
    ] {
        let owner = challenge_owner(name.parse::<LowerName>().unwrap().as_ref()).unwrap();
        let found = super::super::has_challenge(snapshot, &owner, token);
        assert_eq!(found, wanted, "{name} {token}");
    }
}
