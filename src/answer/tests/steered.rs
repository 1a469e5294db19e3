//! Steered names: DESIGN section 4 as it looks on the wire.

use std::collections::BTreeMap;

use super::world::{AMERICAN, GERMAN, world};
use super::{Ask, World, lines};
use crate::telemetry::Count;

/// What the negative replies of `svc.test` carry when they depend on the client or the moment.
const BRIEF: &str =
    "ns svc.test. 5 IN SOA ns1.svc.test. hostmaster.svc.test. 9 7200 900 1209600 20";
const NEGATIVE: &str =
    "ns svc.test. 20 IN SOA ns1.svc.test. hostmaster.svc.test. 9 7200 900 1209600 20";

/// Asks for a client network and compares the answer's lines; scopes are looked at elsewhere.
fn check(world: &mut World, question: &str, client: &str, expected: &[&str]) {
    let shown = lines(&world.ask(&Ask::of(question).ecs(client)));
    let shown: Vec<&str> = shown
        .iter()
        .map(String::as_str)
        .filter(|line| !line.starts_with("edns") && !line.starts_with("ecs"))
        .collect();
    assert_eq!(shown, expected, "{question} for {client}");
}

/// Gives the scope of the reply to a client network.
fn scope(world: &mut World, question: &str, client: &str) -> u8 {
    let shown = lines(&world.ask(&Ask::of(question).ecs(client)));
    let ecs = shown
        .iter()
        .find_map(|line| line.strip_prefix("ecs "))
        .unwrap();
    ecs.split_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn the_nearest_cluster_answers() {
    let mut world = world();
    for (question, client, record) in [
        ("near.svc.test A", GERMAN, "near.svc.test. 30 IN A 10.1.0.1"),
        (
            "near.svc.test A",
            AMERICAN,
            "near.svc.test. 30 IN A 10.2.0.1",
        ),
        (
            "near.svc.test AAAA",
            GERMAN,
            "near.svc.test. 30 IN AAAA 2001:db8:1::1",
        ),
        (
            "near.svc.test A",
            "2001:db8:d::/56",
            "near.svc.test. 30 IN A 10.1.0.1",
        ),
        (
            "near.svc.test A",
            "::ffff:192.0.2.0/120",
            "near.svc.test. 30 IN A 10.1.0.1",
        ),
        ("ttl.svc.test A", AMERICAN, "ttl.svc.test. 3 IN A 10.2.0.1"),
        (
            "x.wild.svc.test A",
            AMERICAN,
            "x.wild.svc.test. 30 IN A 10.2.0.1",
        ),
        (
            "deep.er.svc.test A",
            AMERICAN,
            "deep.er.svc.test. 30 IN A 10.2.0.1",
        ),
    ] {
        check(
            &mut world,
            question,
            client,
            &["NOERROR aa", &format!("an {record}")],
        );
    }
    check(
        &mut world,
        "er.svc.test A",
        GERMAN,
        &["NOERROR aa", NEGATIVE],
    );
    check(
        &mut world,
        "near.svc.test TXT",
        GERMAN,
        &["NOERROR aa", NEGATIVE],
    );
    check(
        &mut world,
        "x.near.svc.test A",
        GERMAN,
        &["NXDOMAIN aa", NEGATIVE],
    );
}

#[test]
fn rfc7871_7_2_1_scopes_are_those_of_the_place() {
    let mut world = world();
    assert_eq!(scope(&mut world, "near.svc.test A", GERMAN), 24);
    assert_eq!(scope(&mut world, "near.svc.test A", "192.0.2.128/32"), 24);
    assert_eq!(
        scope(&mut world, "fenced.svc.test A", "192.0.0.0/16"),
        23,
        "longer than the source"
    );
    assert_eq!(scope(&mut world, "near.svc.test A", "2001:db8:d::/56"), 48);
    assert_eq!(
        scope(&mut world, "near.svc.test A", "::ffff:192.0.2.0/120"),
        120
    );
    assert_eq!(scope(&mut world, "near.svc.test A", "0.0.0.0/0"), 0);
    for question in [
        "near.svc.test TXT",
        "nothing.svc.test A",
        "weighted.svc.test A",
        "turn.svc.test A",
        "many.svc.test AAAA",
        "near.svc.test ANY",
    ] {
        assert_eq!(scope(&mut world, question, GERMAN), 0, "{question}");
    }
    // The steered part of a chain gives the scope.
    assert_eq!(scope(&mut world, "near.example A", GERMAN), 24);
    assert_eq!(scope(&mut world, "far.example A", GERMAN), 0);
}

#[test]
fn without_ecs_the_sender_is_the_client() {
    let mut world = world();
    for (sender, address) in [("192.0.2.7", "10.1.0.1"), ("198.51.100.7", "10.2.0.1")] {
        let reply = world.ask(&Ask::of("near.svc.test A").from(sender));
        assert_eq!(reply.answers[0].data.to_string(), address);
        // RFC 7871 section 7.1.2: source prefix length 0 asks for the same.
        let reply = world.ask(&Ask::of("near.svc.test A").from(sender).ecs("0.0.0.0/0"));
        assert_eq!(reply.answers[0].data.to_string(), address);
    }
}

#[test]
fn static_names_lead_to_steered_ones() {
    check(
        &mut world(),
        "near.example A",
        AMERICAN,
        &[
            "NOERROR aa",
            "an near.example. 300 IN CNAME near.svc.test.",
            "an near.svc.test. 30 IN A 10.2.0.1",
        ],
    );
}

/// Counts the answers of many queries by address.
fn tally(world: &mut World, question: &str, queries: usize) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for _ in 0..queries {
        for record in &world.ask(&Ask::of(question)).answers {
            *tally.entry(record.data.to_string()).or_default() += 1;
        }
    }
    tally
}

#[test]
fn draws_are_exact_per_worker_and_cycle() {
    let mut world = world();
    // The first query finds no counter and makes room for one.
    tally(&mut world, "weighted.svc.test A", 1);
    let weighted = tally(&mut world, "weighted.svc.test A", 400);
    assert_eq!(
        weighted,
        [("10.1.0.1".to_owned(), 300), ("10.2.0.1".to_owned(), 100)].into()
    );
    tally(&mut world, "turn.svc.test A", 1);
    let turn = tally(&mut world, "turn.svc.test A", 400);
    assert_eq!(
        turn,
        [("10.1.0.1".to_owned(), 200), ("10.2.0.1".to_owned(), 200)].into()
    );
    let all = tally(&mut world, "all.svc.test A", 10);
    assert_eq!(
        all,
        [("10.1.0.1".to_owned(), 10), ("10.2.0.1".to_owned(), 10)].into()
    );
}

#[test]
fn no_address_is_nodata_for_a_moment() {
    let mut world = world();
    check(
        &mut world,
        "none.svc.test A",
        GERMAN,
        &["NOERROR aa", BRIEF],
    );
    check(
        &mut world,
        "none.svc.test AAAA",
        GERMAN,
        &["NOERROR aa", BRIEF],
    );
    check(
        &mut world,
        "v4.svc.test AAAA",
        GERMAN,
        &["NOERROR aa", BRIEF],
    );
    check(
        &mut world,
        "mixed.svc.test AAAA",
        GERMAN,
        &["NOERROR aa", BRIEF],
    );
    check(
        &mut world,
        "mixed.svc.test AAAA",
        AMERICAN,
        &["NOERROR aa", "an mixed.svc.test. 30 IN AAAA 2001:db8:2::1"],
    );
    assert!(
        scope(&mut world, "mixed.svc.test AAAA", GERMAN) > 0,
        "it depends on the client"
    );
}

#[test]
fn fences_leave_some_clients_nothing() {
    let mut world = world();
    check(
        &mut world,
        "fenced.svc.test A",
        GERMAN,
        &["NOERROR aa", "an fenced.svc.test. 30 IN A 10.1.0.1"],
    );
    check(
        &mut world,
        "fenced.svc.test A",
        AMERICAN,
        &["NOERROR aa", BRIEF, "option 15 [0, 18]"],
    );
    // All that the fence denies is one class: up to where the German network would be inside.
    assert_eq!(scope(&mut world, "fenced.svc.test A", AMERICAN), 6);
    let plain = world.ask(&Ask::of("fenced.svc.test A").from("198.51.100.7"));
    assert_eq!(lines(&plain), ["NOERROR aa", BRIEF]);
    check(
        &mut world,
        "fenced2.svc.test A",
        AMERICAN,
        &["NOERROR aa", "an fenced2.svc.test. 30 IN A 203.0.113.80"],
    );
    check(
        &mut world,
        "fenced2.svc.test AAAA",
        AMERICAN,
        &["NOERROR aa", BRIEF],
    );
    check(
        &mut world,
        "fenced3.svc.test AAAA",
        AMERICAN,
        &[
            "NOERROR aa",
            "an fenced3.svc.test. 30 IN CNAME www.example.",
            "an www.example. 300 IN AAAA 2001:db8::80",
        ],
    );
    let counted = world.counted(&Ask::of("fenced.svc.test A").ecs(AMERICAN));
    assert!(counted.contains(&Count::FenceDenied), "{counted:?}");
    let counted = world.counted(&Ask::of("fenced2.svc.test A").ecs(AMERICAN));
    assert!(counted.contains(&Count::FenceAnswer), "{counted:?}");
}

#[test]
fn health_never_empties_an_answer() {
    let mut world = world();
    let dead = world.ask(&Ask::of("dead.svc.test A").ecs(GERMAN));
    assert_eq!(
        dead.answers[0].data.to_string(),
        "10.3.0.1",
        "all Down is answered as all Up"
    );
    check(
        &mut world,
        "dead2.svc.test A",
        GERMAN,
        &["NOERROR aa", "an dead2.svc.test. 30 IN A 203.0.113.81"],
    );
    check(
        &mut world,
        "dead2.svc.test AAAA",
        GERMAN,
        &["NOERROR aa", "an dead2.svc.test. 30 IN AAAA 2001:db8:f::1"],
    );
    check(
        &mut world,
        "dead3.svc.test A",
        GERMAN,
        &[
            "NOERROR aa",
            "an dead3.svc.test. 30 IN CNAME cdn.example.net.",
        ],
    );
    for (question, count) in [
        ("dead.svc.test A", Count::LastResortAsIfUp),
        ("dead2.svc.test A", Count::LastResortFallback),
    ] {
        let counted = world.counted(&Ask::of(question).ecs(GERMAN));
        assert_eq!(
            counted,
            [
                Count::NoError,
                Count::Ecs,
                Count::Steered,
                Count::PlaceFromEcs,
                count
            ],
        );
    }
}

#[test]
fn doubt_makes_the_ttl_brief() {
    check(
        &mut world(),
        "doubt.svc.test A",
        GERMAN,
        &["NOERROR aa", "an doubt.svc.test. 5 IN A 10.6.0.1"],
    );
}

#[test]
fn rfc1034_3_6_2_host_names_are_cnames_for_every_type() {
    let mut world = world();
    let cname = "an host.svc.test. 30 IN CNAME www.example.";
    check(
        &mut world,
        "host.svc.test AAAA",
        GERMAN,
        &[
            "NOERROR aa",
            cname,
            "an www.example. 300 IN AAAA 2001:db8::80",
        ],
    );
    check(
        &mut world,
        "host.svc.test CNAME",
        GERMAN,
        &["NOERROR aa", cname],
    );
    let txt = world.ask(&Ask::of("host.svc.test TXT").ecs(GERMAN));
    assert_eq!(lines(&txt)[1], cname);
    check(
        &mut world,
        "host2.svc.test A",
        AMERICAN,
        &[
            "NOERROR aa",
            "an host2.svc.test. 30 IN CNAME lb-us.example.net.",
        ],
    );
}

#[test]
fn places_and_clusters_are_counted() {
    let mut world = world();
    let from_sender = world.counted(&Ask::of("near.svc.test A").from("192.0.2.7"));
    assert_eq!(
        from_sender,
        [Count::NoError, Count::Steered, Count::PlaceFromSender]
    );
    let unknown = world.counted(&Ask::of("near.svc.test A"));
    assert!(unknown.contains(&Count::PlaceUnknown), "{unknown:?}");
    let fixed = world.counted(&Ask::of("many.svc.test AAAA").edns(1232));
    assert_eq!(fixed, [Count::NoError, Count::Steered]);
}
