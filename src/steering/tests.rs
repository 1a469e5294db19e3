//! Each step by itself, in tables.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::testing::{
    Client, Entry, World, at, client, client_from, cluster, cluster_at, country, down, drained,
    entry, forced_down, parse, selectors,
};
use super::{Basis, Chosen, Family, Level, Reason};
use crate::model::{
    Cluster, EndpointState, FallbackSpec, FenceRule, Groups, Location, MapEntry, PolicySpec,
    PrefixLen, Steer, Weight,
};

const V4: Family = Family::V4;
const V6: Family = Family::V6;

/// Three clusters along the equator, and a client nearest to the first, then the second.
fn line() -> Vec<Cluster> {
    vec![
        cluster_at("a", 0.0, 10.0),
        cluster_at("b", 0.0, 30.0),
        cluster_at("c", 0.0, 60.0),
    ]
}

fn near_a() -> Client {
    client(at(0.0, 0.0))
}

fn rule(clients: &[&str], clusters: &[&str]) -> FenceRule {
    FenceRule {
        clients: clients.iter().map(|text| parse(text)).collect(),
        clusters: selectors(clusters),
    }
}

fn map(clients: &[&str], clusters: &[&str]) -> MapEntry {
    MapEntry {
        clients: clients.iter().map(|text| parse(text)).collect(),
        clusters: selectors(clusters),
    }
}

fn proximity() -> PolicySpec {
    PolicySpec::default()
}

fn steer(steer: Steer) -> PolicySpec {
    PolicySpec {
        steer,
        ..PolicySpec::default()
    }
}

fn fenced(fences: &[&[FenceRule]]) -> PolicySpec {
    PolicySpec {
        fences: fences.iter().map(|fence| fence.to_vec()).collect(),
        ..PolicySpec::default()
    }
}

fn mapped(maps: &[MapEntry]) -> PolicySpec {
    PolicySpec {
        maps: maps.to_vec(),
        ..PolicySpec::default()
    }
}

fn tiered(tiers: &[&[&str]]) -> PolicySpec {
    PolicySpec {
        tiers: tiers.iter().map(|tier| selectors(tier)).collect(),
        ..PolicySpec::default()
    }
}

/// The order of clusters for a place, by name; those tied in brackets.
fn order(spec: &PolicySpec, clusters: &[Cluster], location: &Location) -> String {
    order_from(spec, clusters, location, "198.51.100.1")
}

fn order_from(spec: &PolicySpec, clusters: &[Cluster], location: &Location, from: &str) -> String {
    let world = World::plain(spec, clusters);
    let class = world.policy.classify(location, parse(from));
    let mut text = String::new();
    for group in class.slots.chunk_by(|a, b| a.group == b.group) {
        let names: String = group
            .iter()
            .map(|slot| clusters[usize::from(slot.rank)].id.as_str())
            .collect();
        text.push_str(&if group.len() > 1 {
            format!("[{names}]")
        } else {
            names
        });
    }
    text
}

fn basis(spec: &PolicySpec, clusters: &[Cluster], location: &Location) -> Basis {
    World::plain(spec, clusters)
        .policy
        .classify(location, parse("198.51.100.1"))
        .basis()
}

// === Order ===

#[test]
fn the_nearest_cluster_is_first() {
    let spec = proximity();
    let pacific = [
        cluster_at("w", 0.0, -175.0),
        cluster_at("e", 0.0, 165.0),
        cluster_at("n", 88.0, 0.0),
        cluster_at("s", -88.0, 0.0),
    ];
    for (latitude, longitude, expected) in [
        // Across the antimeridian.
        (0.0, 178.0, "we[ns]"),
        (1.0, -176.0, "wens"),
        // Across the pole.
        (80.0, 180.0, "nwes"),
        (-80.0, 150.0, "sewn"),
        (0.5, 150.0, "ewns"),
    ] {
        let got = order(&spec, &pacific, &at(latitude, longitude));
        assert_eq!(got, expected, "{latitude} {longitude}");
    }
    assert_eq!(basis(&spec, &pacific, &at(1.0, 1.0)), Basis::Distance);
}

#[test]
fn cost_and_bias_move_the_border() {
    let mut clusters = line();
    assert_eq!(order(&proximity(), &clusters, &at(0.0, 19.0)), "abc");
    // Two degrees are 222 km.
    clusters[0].cost_km = 300.0;
    assert_eq!(order(&proximity(), &clusters, &at(0.0, 19.0)), "bac");
    clusters[0].cost_km = 0.0;
    let biased = |pairs: &[(&str, i8)]| PolicySpec {
        bias: pairs
            .iter()
            .map(|(name, bias)| (parse(name), *bias))
            .collect(),
        ..proximity()
    };
    assert_eq!(
        order(&biased(&[("b", 50)]), &clusters, &at(0.0, 19.0)),
        "bac"
    );
    assert_eq!(
        order(&biased(&[("a", -50)]), &clusters, &at(0.0, 19.0)),
        "bac"
    );
    // The first match wins.
    assert_eq!(
        order(&biased(&[("b", 0), ("*", 50)]), &clusters, &at(0.0, 21.0)),
        "abc"
    );
}

#[test]
fn what_has_no_place_is_tied_and_last() {
    let clusters = [
        cluster("x"),
        cluster_at("a", 0.0, 10.0),
        cluster("y"),
        cluster_at("b", 0.0, 10.0),
    ];
    let spec = proximity();
    assert_eq!(order(&spec, &clusters, &at(0.0, 0.0)), "[ab][xy]");
    assert_eq!(order(&spec, &clusters, &Location::default()), "[xayb]");
    assert_eq!(
        basis(&spec, &clusters, &Location::default()),
        Basis::UnknownPlace
    );
    assert_eq!(
        basis(&spec, &clusters, &country("DE", "EU")),
        Basis::UnknownPlace
    );
    let nowhere = [cluster("x"), cluster("y")];
    assert_eq!(basis(&spec, &nowhere, &at(0.0, 0.0)), Basis::Weight);
    assert_eq!(basis(&spec, &clusters[..1], &at(0.0, 0.0)), Basis::Fixed);
}

#[test]
fn an_override_into_a_cluster_makes_it_nearest() {
    let inside = |name: &str, place: Location| Location {
        cluster: Some(parse(name)),
        ..place
    };
    let spec = proximity();
    for (location, expected, expected_basis) in [
        (inside("c", at(0.0, 0.0)), "cab", Basis::Inside),
        (inside("c", Location::default()), "c[ab]", Basis::Inside),
        // A cluster that the service is not in: its place counts.
        (inside("z", at(0.0, 50.0)), "cba", Basis::Distance),
    ] {
        assert_eq!(order(&spec, &line(), &location), expected);
        assert_eq!(basis(&spec, &line(), &location), expected_basis);
    }
    // A map is the operator's more explicit word.
    let spec = mapped(&[map(&[], &["b"])]);
    assert_eq!(order(&spec, &line(), &inside("c", at(0.0, 0.0))), "bca");
}

#[test]
fn the_first_map_entry_that_matches_orders() {
    let mut clusters = line();
    clusters[1].region = Some("r".into());
    clusters[2].region = Some("r".into());
    let groups = mapped(&[
        map(&["continent:EU"], &["c", "b", "a"]),
        map(&["country:DE"], &["a"]),
        map(&["asn:64496", "203.0.113.0/24"], &["region:r"]),
        map(&["*"], &["b"]),
        map(&[], &["c"]),
    ]);
    let with_asn = Location {
        asn: Some(64496),
        ..at(0.0, 0.0)
    };
    for (location, from, expected, entry) in [
        (country("DE", "EU"), "192.0.2.1", "cba", 0),
        (with_asn, "192.0.2.1", "bca", 2),
        // Inside one selector distance orders: from the other end, the other way around.
        (at(0.0, 70.0), "203.0.113.9", "cba", 2),
        (at(0.0, 0.0), "192.0.2.1", "bac", 3),
        // `*` is no unknown place; the catch-all is. Those not listed come last.
        (Location::default(), "192.0.2.1", "c[ab]", 4),
        (
            Location {
                asn: Some(1),
                ..Location::default()
            },
            "192.0.2.1",
            "c[ab]",
            4,
        ),
    ] {
        assert_eq!(
            order_from(&groups, &clusters, &location, from),
            expected,
            "{location:?}"
        );
        let world = World::plain(&groups, &clusters);
        assert_eq!(
            world.policy.classify(&location, parse(from)).basis(),
            Basis::Map(entry)
        );
        assert_eq!(
            world.policy.ranking(&location, parse(from)).map,
            Some(entry.into())
        );
    }
    let spec = mapped(&[map(&["unknown"], &["b"])]);
    assert_eq!(order(&spec, &clusters, &Location::default()), "b[ac]");
    assert_eq!(order(&spec, &clusters, &at(0.0, 0.0)), "abc");
}

#[test]
fn a_map_says_what_is_drawn_from_first() {
    let spec = PolicySpec {
        steer: Steer::Weighted,
        ..mapped(&[map(&["continent:EU"], &["c", "b"])])
    };
    assert_eq!(order(&spec, &line(), &country("DE", "EU")), "[bc]a");
    assert_eq!(order(&spec, &line(), &country("US", "NA")), "[abc]");
    assert!(World::plain(&spec, &line()).policy.reads_client());
}

#[test]
fn tiers_come_before_the_order() {
    for (tiers, expected) in [
        (&[&["c"][..], &["a", "b"]][..], "cab"),
        // What no tier names is one more tier.
        (&[&["b"]], "bac"),
        (&[&["none"], &["c"]], "cab"),
        (&[], "abc"),
    ] {
        assert_eq!(order(&tiered(tiers), &line(), &at(0.0, 0.0)), expected);
    }
    let spec = PolicySpec {
        maps: vec![map(&[], &["b", "c", "a"])],
        ..tiered(&[&["a", "c"]])
    };
    assert_eq!(order(&spec, &line(), &at(0.0, 0.0)), "cab");
}

// === Fence ===

#[test]
fn the_fence_decides_first() {
    let any = rule(&["*"], &["*"]);
    let eu = rule(&["continent:EU"], &["a"]);
    let unknown = rule(&["unknown"], &["c"]);
    let de = country("DE", "EU");
    for (fences, location, expected) in [
        (&[&[eu.clone(), any.clone()][..]][..], &de, "a"),
        (&[&[any.clone(), eu.clone()]], &de, "[abc]"),
        // `*` never matches an unknown place; no match denies.
        (&[&[eu.clone(), any.clone()]], &Location::default(), ""),
        (
            &[&[any.clone(), unknown.clone()]],
            &Location::default(),
            "c",
        ),
        (&[&[eu.clone()]], &country("US", "NA"), ""),
        // Fences intersect.
        (
            &[&[rule(&["*"], &["a", "b"])], &[rule(&["*"], &["b", "c"])]],
            &de,
            "b",
        ),
        (&[&[eu.clone()], &[rule(&["*"], &["b"])]], &de, ""),
        // An empty list of rules matches nobody; a rule may allow nothing.
        (&[&[]], &de, ""),
        (&[&[rule(&["*"], &[])]], &de, ""),
    ] {
        assert_eq!(
            order(&fenced(fences), &line(), location),
            expected,
            "{fences:?}"
        );
    }
    let by_cluster = fenced(&[&[rule(&["cluster:b"], &["b"])]]);
    let inside = Location {
        cluster: Some(parse("b")),
        ..Location::default()
    };
    assert_eq!(order(&by_cluster, &line(), &inside), "b");
}

#[test]
fn groups_are_resolved() {
    let mut clusters = line();
    clusters[1].location.country = Some(parse("NO"));
    let groups = Groups([("nordics".into(), vec![parse("NO"), parse("SE")])].into());
    let spec = fenced(&[&[
        rule(&["group:nordics"], &["group:nordics"]),
        rule(&["group:nobody-knows", "*"], &["a"]),
    ]]);
    let entries: Vec<Entry> = (0..3)
        .map(|n| entry(n, 1, &[&format!("192.0.2.{n}")]))
        .collect();
    let world = World::with_groups(&spec, &clusters, &entries, &groups);
    assert_eq!(world.rank(&client(country("SE", "EU")), V4), 1);
    assert_eq!(world.rank(&client(country("DE", "EU")), V4), 0);
    // A subdivision implies its country.
    let oslo = Location {
        subdivision: Some(parse("NO-03")),
        ..Location::default()
    };
    assert_eq!(world.rank(&client(oslo), V4), 1);
}

#[test]
fn a_refused_client_is_told_so_and_keeps_its_scope() {
    let mut spec = fenced(&[&[rule(&["continent:EU"], &["a"])]]);
    let outside = client(country("US", "NA"));
    let chosen = |spec: &PolicySpec, family| {
        let world = World::plain(spec, &line());
        world.ask(&outside, family, |ask, decision| {
            assert_eq!(decision.scope, PrefixLen(16));
            assert_eq!(world.endpoints(&decision, ask), [] as [IpAddr; 0]);
            format!("{:?}", decision.chosen)
        })
    };
    assert_eq!(chosen(&spec, V4), "Denied");
    assert_eq!(chosen(&spec, V6), "Denied");
    spec.fence_answer = Some(FallbackSpec::Addresses(vec![parse("203.0.113.1")]));
    // Not even the fallback gets a client out of its fence.
    spec.fallback = Some(FallbackSpec::Addresses(vec![parse("203.0.113.2")]));
    assert_eq!(chosen(&spec, V4), "FenceAnswer(Addresses([203.0.113.1]))");
    // One cluster and a fence: the place matters.
    let world = World::plain(&spec, &line()[..1]);
    assert!(world.policy.reads_client());
    // All Down inside is all Up inside.
    let mut world = World::plain(&spec, &line());
    spec.fallback = None;
    world.policy = World::plain(&spec, &line()).policy;
    world.set_cluster(0, down);
    world.ask(&client(country("DE", "EU")), V4, |ask, decision| {
        assert_eq!(
            world.endpoints(&decision, ask),
            [parse::<IpAddr>("192.0.2.0")]
        );
        assert_eq!(decision.reason.level, Level::AsIfUp);
    });
}

// === Last resorts ===

#[test]
fn the_last_resorts_come_in_their_order() {
    type Change = fn(EndpointState) -> EndpointState;
    let keep: Change = |state| state;
    let both: Change = |state| drained(down(state));
    let fallback = FallbackSpec::Hostname(parse("cdn.example.net"));
    // States of a, b, c; what is chosen without a fallback, and with one.
    let cases: &[([Change; 3], &str, &str)] = &[
        ([keep, keep, keep], "0 up", "0 up"),
        ([down, keep, keep], "1 up", "1 up"),
        ([drained, down, keep], "2 up", "2 up"),
        (
            [down, drained, down],
            "1 up but drained",
            "1 up but drained",
        ),
        (
            [forced_down, down, down],
            "1 not forced down, taken as up",
            "fallback",
        ),
        (
            [forced_down, forced_down, both],
            "2 not forced down, taken as up",
            "fallback",
        ),
        (
            [forced_down, forced_down, forced_down],
            "0 forced down",
            "fallback",
        ),
    ];
    for tiers in [proximity(), tiered(&[&["a"], &["b"], &["c"]])] {
        for (changes, expected, with_fallback) in cases {
            for (fallback, expected) in [(None, expected), (Some(fallback.clone()), with_fallback)]
            {
                let spec = PolicySpec {
                    fallback,
                    ..tiers.clone()
                };
                let mut world = World::plain(&spec, &line());
                for (n, change) in changes.iter().enumerate() {
                    world.set_cluster(n, change);
                }
                for family in [V4, V6] {
                    let got = world.ask(&near_a(), family, |ask, decision| match decision.chosen {
                        Chosen::Cluster { rank, level } => {
                            assert_eq!(world.endpoints(&decision, ask).len(), 1);
                            assert_eq!(decision.reason.level, level);
                            format!("{rank} {level}")
                        }
                        Chosen::Fallback(_) => "fallback".to_owned(),
                        other => panic!("{other:?}"),
                    });
                    assert_eq!(&got, expected);
                }
            }
        }
    }
}

#[test]
fn reasons_say_what_was_passed_over() {
    let mut world = World::plain(&tiered(&[&["a"], &["b", "c"]]), &line());
    world.set_cluster(0, down);
    world.set_cluster(1, down);
    let reason = world.ask(&near_a(), V4, |_, decision| decision.reason);
    let expected = Reason {
        basis: Basis::Distance,
        level: Level::Up,
        tier: 1,
        skipped: 2,
        panic: false,
    };
    assert_eq!(reason, expected);
}

#[test]
fn panic_ignores_health_but_not_drains() {
    let spec = PolicySpec {
        panic: 0.5,
        ..proximity()
    };
    let mut world = World::plain(&spec, &line());
    let look = |world: &World| {
        world.ask(&near_a(), V4, |_, decision| match decision.chosen {
            Chosen::Cluster { rank, level } => (rank, level, decision.reason.panic),
            other => panic!("{other:?}"),
        })
    };
    world.set_cluster(0, down);
    // Two of three are usable.
    assert_eq!(look(&world), (1, Level::Up, false));
    world.set_cluster(1, down);
    assert_eq!(look(&world), (0, Level::AsIfUp, true));
    // A drained endpoint neither counts nor is used: 1 of 2 is not below the half.
    world.set_cluster(0, drained);
    assert_eq!(look(&world), (2, Level::Up, false));
    world.set_cluster(2, down);
    assert_eq!(look(&world), (1, Level::AsIfUp, true));
    // The default never panics.
    world.policy = World::plain(&proximity(), &line()).policy;
    assert_eq!(look(&world).2, false);
}

#[test]
fn a_doubt_shortens_the_answer_where_it_may_change_it() {
    let doubt = |state: EndpointState| state.with_doubt(true);
    let mut world = World::plain(&proximity(), &line());
    let brief = |world: &World| world.ask(&near_a(), V4, |_, decision| decision.brief);
    assert!(!brief(&world));
    world.set("192.0.2.1", doubt);
    assert!(!brief(&world), "farther away than the answer");
    world.set("192.0.2.0", doubt);
    assert!(brief(&world), "the answer itself");
    world.set("192.0.2.0", |state| down(state.with_doubt(false)));
    world.set("192.0.2.1", |state| state.with_doubt(false));
    assert!(!brief(&world));
    world.set("192.0.2.0", doubt);
    assert!(brief(&world), "a nearer one may come back");
}

// === Families ===

#[test]
fn nodata_for_aaaa_only_where_a_names_the_cluster() {
    let clusters = &line()[..2];
    // Addresses of a and b, those that are down, then what A and AAAA are told.
    type Case<'a> = (
        &'a [&'a str],
        &'a [&'a str],
        &'a [&'a str],
        &'a str,
        &'a str,
    );
    let cases: &[Case<'_>] = &[
        (
            &["192.0.2.1", "2001:db8::1"],
            &["192.0.2.2", "2001:db8::2"],
            &[],
            "192.0.2.1",
            "2001:db8::1",
        ),
        // IPv4 only, nearest: the client's A names it.
        (
            &["192.0.2.1"],
            &["192.0.2.2", "2001:db8::2"],
            &[],
            "192.0.2.1",
            "other",
        ),
        // It is down: the next.
        (
            &["192.0.2.1"],
            &["192.0.2.2", "2001:db8::2"],
            &["192.0.2.1"],
            "192.0.2.2",
            "2001:db8::2",
        ),
        // IPv6 only, nearest: AAAA names it, A the next cluster with IPv4.
        (
            &["2001:db8::1"],
            &["192.0.2.2", "2001:db8::2"],
            &[],
            "192.0.2.2",
            "2001:db8::1",
        ),
        // One family of the nearest is down.
        (
            &["192.0.2.1", "2001:db8::1"],
            &["192.0.2.2", "2001:db8::2"],
            &["2001:db8::1"],
            "192.0.2.1",
            "other",
        ),
        (
            &["192.0.2.1", "2001:db8::1"],
            &["192.0.2.2", "2001:db8::2"],
            &["192.0.2.1"],
            "192.0.2.2",
            "2001:db8::1",
        ),
        // All IPv4 is down while IPv6 is up: A still gets an address (promise 1).
        (
            &["192.0.2.1", "2001:db8::1"],
            &["2001:db8::2"],
            &["192.0.2.1"],
            "192.0.2.1",
            "2001:db8::1",
        ),
        // No address of the family at all.
        (&["192.0.2.1"], &["192.0.2.2"], &[], "192.0.2.1", "other"),
        (
            &["2001:db8::1"],
            &["2001:db8::2"],
            &[],
            "other",
            "2001:db8::1",
        ),
        (
            &["2001:db8::1"],
            &["2001:db8::2"],
            &["2001:db8::1", "2001:db8::2"],
            "other",
            "2001:db8::1",
        ),
        (&[], &[], &[], "nothing", "nothing"),
    ];
    for (a, b, are_down, for_a, for_aaaa) in cases {
        let mut world = World::new(&proximity(), clusters, &[entry(0, 1, a), entry(1, 1, b)]);
        for address in *are_down {
            world.set(address, down);
        }
        for (family, expected) in [(V4, for_a), (V6, for_aaaa)] {
            let got = world.ask(&near_a(), family, |ask, decision| match decision.chosen {
                Chosen::OtherFamily => "other".to_owned(),
                Chosen::Nothing => "nothing".to_owned(),
                _ => world.endpoints(&decision, ask)[0].to_string(),
            });
            assert_eq!(&got, expected, "{a:?} {b:?} {are_down:?} {family:?}");
        }
    }
}

#[test]
fn negatives_equal_for_all_have_scope_0() {
    let scope = |spec: &PolicySpec, a: &[&str], b: &[&str], family| {
        let world = World::new(spec, &line()[..2], &[entry(0, 1, a), entry(1, 1, b)]);
        world.ask(&near_a(), family, |_, decision| decision.scope.0)
    };
    let spec = proximity();
    assert_eq!(
        scope(&spec, &["192.0.2.1"], &["192.0.2.2"], V6),
        0,
        "IPv4 only, everyone"
    );
    assert_eq!(scope(&spec, &["192.0.2.1"], &["192.0.2.2"], V4), 16);
    assert_eq!(
        scope(&spec, &["192.0.2.1"], &["2001:db8::2"], V6),
        16,
        "others do get one"
    );
    assert_eq!(scope(&spec, &[], &[], V4), 0);
    let spec = fenced(&[&[rule(&["*"], &["*"])]]);
    assert_eq!(
        scope(&spec, &["192.0.2.1"], &["192.0.2.2"], V6),
        16,
        "others are refused"
    );
    for steer_by in [Steer::Weighted, Steer::RoundRobin, Steer::All] {
        assert_eq!(
            scope(&steer(steer_by), &["192.0.2.1"], &["192.0.2.2"], V4),
            0
        );
    }
    let one = World::plain(&proximity(), &line()[..1]);
    assert_eq!(one.ask(&near_a(), V4, |_, decision| decision.scope.0), 0);
    assert!(!one.policy.reads_client());
}

// === Ties ===

#[test]
fn ties_are_shared_by_weight_and_sliced() {
    let twins = [
        cluster_at("a", 0.0, 10.0),
        cluster_at("b", 0.0, 10.0),
        cluster_at("c", 0.0, 60.0),
    ];
    let mut world = World::weighted(&proximity(), &twins, &[3, 1, 1]);
    let mut counts = BTreeMap::new();
    let at_slice = |n: u32| client_from(&format!("10.{}.{}.77", n / 256, n % 256), at(0.0, 0.0));
    for n in 0..4000 {
        let rank = world.rank(&at_slice(n), V4);
        assert_eq!(world.rank(&at_slice(n), V6), rank, "all types alike");
        *counts.entry(rank).or_insert(0_u32) += 1;
    }
    assert!(
        counts[&0].abs_diff(3000) < 150 && !counts.contains_key(&2),
        "{counts:?}"
    );
    let before: Vec<u8> = (0..500).map(|n| world.rank(&at_slice(n), V4)).collect();
    world.set_cluster(1, down);
    for (n, before) in (0..500).zip(before) {
        assert_eq!(world.rank(&at_slice(n), V4), 0, "was {before}");
    }
    // The scope is the slice's, also for those whom a nearer cluster serves before the tie.
    for (place, address, expected) in [
        (at(0.0, 0.0), "198.51.100.1", 24),
        (at(0.0, 70.0), "198.51.100.1", 24),
        (at(0.0, 0.0), "2001:db8::1", 48),
    ] {
        let scope = world.ask(&client_from(address, place), V4, |_, decision| {
            decision.scope
        });
        assert_eq!(scope, PrefixLen(expected));
    }
    let untied = World::plain(&proximity(), &line());
    assert_eq!(
        untied.ask(&near_a(), V4, |_, decision| decision.scope),
        PrefixLen(16)
    );
}

// === Weights, turns, everything ===

/// Counts what some draws give, by rank.
fn drawn(world: &World, draws: std::ops::Range<u32>, family: Family) -> Vec<u32> {
    let mut counts = vec![0; world.pools.cluster_count()];
    for draw in draws {
        counts[usize::from(world.rank(&Client { draw, ..near_a() }, family))] += 1;
    }
    counts
}

#[test]
fn weights_are_exact_in_each_turn() {
    let spec = steer(Steer::Weighted);
    let mut world = World::weighted(&spec, &line(), &[80, 20, 0]);
    assert!(world.policy.draws() && !world.policy.reads_client());
    for start in [0, 5, 5000] {
        assert_eq!(drawn(&world, start..start + 5, V4), [4, 1, 0]);
    }
    assert_eq!(drawn(&world, 0..10, V6), [8, 2, 0]);
    // Only the usable are on the wheel.
    world.set_cluster(0, down);
    assert_eq!(drawn(&world, 0..5, V4), [0, 5, 0]);
    // Weight 0 is served when nothing else can be, in equal shares.
    world.set_cluster(1, down);
    assert_eq!(drawn(&world, 0..5, V4), [0, 0, 5]);
    let idle = World::weighted(&spec, &line(), &[0, 0, 0]);
    assert_eq!(drawn(&idle, 0..6, V4), [2, 2, 2]);
    // All down is all up, by weight.
    world.set_cluster(2, down);
    assert_eq!(drawn(&world, 0..5, V4), [4, 1, 0]);
}

#[test]
fn listed_weights_stand_in_place_of_the_pools_own() {
    let listed = |pairs: &[(&str, u16)]| PolicySpec {
        weights: pairs
            .iter()
            .map(|(name, weight)| (parse(name), Weight(*weight)))
            .collect(),
        ..steer(Steer::Weighted)
    };
    let clusters = line();
    for (pairs, expected) in [
        (&[("a", 3), ("b", 1)][..], [3, 1, 0]),
        // The first match wins; what is not listed has 0.
        (&[("c", 2), ("*", 1)], [1, 1, 2]),
        (&[("*", 1), ("c", 2)], [1, 1, 1]),
    ] {
        let world = World::weighted(&listed(pairs), &clusters, &[7, 7, 7]);
        let turn = expected.iter().sum();
        assert_eq!(drawn(&world, 0..turn, V4), expected, "{pairs:?}");
    }
}

#[test]
fn weight_0_is_for_when_nothing_else_is_usable() {
    // Under proximity too: the nearest has no weight.
    let mut world = World::weighted(&proximity(), &line(), &[0, 1, 1]);
    assert_eq!(world.rank(&near_a(), V4), 1);
    assert_eq!(world.rank(&near_a(), V6), 1);
    world.set_cluster(1, down);
    world.set_cluster(2, down);
    assert_eq!(world.rank(&near_a(), V4), 0);
    // And inside a cluster.
    let entries = [
        entry(0, 0, &["192.0.2.1"]),
        entry(0, 1, &["192.0.2.2"]),
        entry(1, 1, &["192.0.2.3"]),
    ];
    let mut world = World::new(&proximity(), &line()[..2], &entries);
    assert_eq!(
        world.addresses(&near_a(), V4),
        [parse::<IpAddr>("192.0.2.2")]
    );
    world.set("192.0.2.2", down);
    assert_eq!(
        world.addresses(&near_a(), V4),
        [parse::<IpAddr>("192.0.2.3")]
    );
    world.set("192.0.2.3", down);
    assert_eq!(
        world.addresses(&near_a(), V4),
        [parse::<IpAddr>("192.0.2.1")]
    );
}

#[test]
fn round_robin_turns() {
    let mut world = World::weighted(&steer(Steer::RoundRobin), &line(), &[5, 1, 1]);
    let ranks = |world: &World| -> Vec<u8> {
        (0..6)
            .map(|draw| world.rank(&Client { draw, ..near_a() }, V4))
            .collect()
    };
    assert_eq!(ranks(&world), [0, 1, 2, 0, 1, 2]);
    world.set_cluster(1, down);
    assert_eq!(ranks(&world), [0, 2, 0, 2, 0, 2]);
    assert!(world.policy.draws());
    assert!(
        !World::plain(&steer(Steer::RoundRobin), &line()[..1])
            .policy
            .draws()
    );
}

#[test]
fn all_gives_every_usable_endpoint_of_the_first_tier() {
    let spec = PolicySpec {
        answers: 3,
        ..steer(Steer::All)
    };
    let mut world = World::plain(
        &PolicySpec {
            tiers: vec![selectors(&["a", "b"])],
            ..spec
        },
        &line(),
    );
    let addresses = |world: &World, family| -> Vec<String> {
        world
            .addresses(&near_a(), family)
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(addresses(&world, V4), ["192.0.2.0", "192.0.2.1"]);
    world.set("192.0.2.0", down);
    assert_eq!(addresses(&world, V4), ["192.0.2.1"]);
    assert_eq!(addresses(&world, V6), ["2001:db8::", "2001:db8::1"]);
    world.set("192.0.2.1", down);
    world.set("2001:db8::", down);
    world.set("2001:db8::1", down);
    assert_eq!(addresses(&world, V4), ["192.0.2.2"], "the next tier");
    // NODATA for AAAA only where nothing of the tier has IPv6.
    let entries = [
        entry(0, 1, &["192.0.2.1"]),
        entry(1, 1, &["192.0.2.2", "2001:db8::2"]),
    ];
    let mut mixed = World::new(&steer(Steer::All), &line()[..2], &entries);
    assert_eq!(addresses(&mixed, V6), ["2001:db8::2"]);
    mixed.set("2001:db8::2", down);
    mixed.ask(&near_a(), V6, |_, decision| {
        assert_eq!(decision.chosen, Chosen::OtherFamily)
    });
    assert!(!mixed.policy.draws());
}

// === Answers ===

#[test]
fn answers_are_capped_kept_and_rotated() {
    let addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
    let spec = PolicySpec {
        answers: 3,
        ..proximity()
    };
    let mut world = World::new(&spec, &line()[..1], &[entry(0, 1, &addresses)]);
    let last_octets = |world: &World, draw| -> Vec<u8> {
        let addresses = world.addresses(&Client { draw, ..near_a() }, V4);
        addresses
            .iter()
            .map(|address| match address {
                IpAddr::V4(address) => address.octets()[3],
                IpAddr::V6(_) => 0,
            })
            .collect()
    };
    for (draw, expected) in [
        (0, [1, 2, 3]),
        (1, [2, 3, 1]),
        (2, [3, 1, 2]),
        (3, [1, 2, 3]),
    ] {
        assert_eq!(last_octets(&world, draw), expected);
    }
    world.set("192.0.2.2", down);
    assert_eq!(last_octets(&world, 0), [1, 3, 4]);
    // Where the counter draws the cluster, its turns still rotate through all orders.
    let entries = [
        entry(0, 1, &["192.0.2.1", "192.0.2.2"]),
        entry(1, 1, &["192.0.2.3", "192.0.2.4"]),
    ];
    let world = World::new(&steer(Steer::RoundRobin), &line()[..2], &entries);
    let firsts: std::collections::BTreeSet<u8> =
        (0..40).map(|draw| last_octets(&world, draw)[0]).collect();
    assert_eq!(firsts.len(), 4);
}

#[test]
fn endpoints_for_some_senders_are_for_them_alone() {
    let inside = Entry {
        clients: Some(0),
        ..entry(0, 1, &["10.9.8.7"])
    };
    let mut world = World::new(
        &proximity(),
        &line()[..2],
        &[inside.clone(), entry(1, 1, &["192.0.2.1"])],
    );
    world.client_sets = vec![[parse("10.0.0.0/8")].into()];
    let from = |sender: &str, subnet: &str| Client {
        sender: parse(sender),
        ..client_from(subnet, at(0.0, 0.0))
    };
    assert_eq!(
        world.addresses(&from("10.1.1.1", "198.51.100.1"), V4),
        [parse::<IpAddr>("10.9.8.7")]
    );
    // What ECS claims does not count.
    assert_eq!(
        world.addresses(&from("198.51.100.1", "10.1.1.1"), V4),
        [parse::<IpAddr>("192.0.2.1")]
    );
    // A set that is not there is nobody's.
    world.client_sets.clear();
    assert_eq!(
        world.addresses(&from("10.1.1.1", "10.1.1.1"), V4),
        [parse::<IpAddr>("192.0.2.1")]
    );
    // Nothing for this sender is not a fence's doing, unless one keeps it from the rest.
    let outside = client_from("198.51.100.1", country("DE", "EU"));
    let alone = World::new(&proximity(), &line()[..1], std::slice::from_ref(&inside));
    alone.ask(&outside, V4, |_, decision| {
        assert_eq!(decision.chosen, Chosen::Nothing)
    });
    let spec = fenced(&[&[rule(&["*"], &["a"])]]);
    let fenced = World::new(&spec, &line()[..2], &[inside, entry(1, 1, &["192.0.2.1"])]);
    fenced.ask(&outside, V4, |_, decision| {
        assert_eq!(decision.chosen, Chosen::Denied)
    });
}

#[test]
fn host_names_answer_both_families() {
    let named = |cluster, at| Entry {
        hostname: Some(at),
        ..entry(cluster, 1, &[])
    };
    let entries = [named(0, 4), named(1, 2), named(1, 3)];
    let world = World::new(&proximity(), &line()[..2], &entries);
    for family in [V4, V6] {
        let chosen = |client: &Client| {
            world.ask(client, family, |ask, decision| {
                assert_eq!(world.endpoints(&decision, ask), [] as [IpAddr; 0]);
                format!("{:?} {}", decision.chosen, decision.scope.0)
            })
        };
        assert_eq!(chosen(&near_a()), "Hostname(4) 16");
        assert_eq!(chosen(&client(at(0.0, 40.0))), "Hostname(2) 16");
    }
}

#[test]
fn no_clusters_is_nothing_and_the_same_for_all() {
    for spec in [proximity(), steer(Steer::Weighted), fenced(&[&[]])] {
        let world = World::new(&spec, &[], &[]);
        assert!(!world.policy.reads_client() && !world.policy.draws());
        world.ask(&near_a(), V4, |_, decision| {
            assert_eq!(
                (decision.chosen, decision.scope),
                (Chosen::Nothing, PrefixLen(0))
            );
        });
    }
}

#[test]
fn the_most_clusters_are_ranked() {
    let clusters: Vec<Cluster> = (0..255)
        .map(|n| cluster_at(&format!("c{n}"), 0.0, f64::from(n) / 2.0))
        .collect();
    let entries: Vec<Entry> = (0..255)
        .map(|n| entry(n, 1, &[&format!("192.0.2.{n}")]))
        .collect();
    let mut world = World::new(&proximity(), &clusters, &entries);
    for n in 0..254 {
        world.set(&format!("192.0.2.{n}"), down);
    }
    assert_eq!(world.rank(&near_a(), V4), 254);
    let skipped = world.ask(&near_a(), V4, |_, decision| decision.reason.skipped);
    assert_eq!(skipped, 254);
}

// === Words ===

#[test]
fn rankings_give_the_numbers() {
    let spec = PolicySpec {
        bias: vec![(parse("a"), 50)],
        ..fenced(&[&[rule(&["*"], &["a", "c"])]])
    };
    let mut clusters = line();
    clusters[2].cost_km = 100.0;
    let world = World::plain(&spec, &clusters);
    let ranking = world.policy.ranking(&at(0.0, 0.0), parse("192.0.2.1"));
    let degree = 111.194_9;
    let expected = [
        (0, true, 10.0 * degree, 5.0 * degree),
        (2, true, 60.0 * degree, 60.0 * degree + 100.0),
        (1, false, 30.0 * degree, 30.0 * degree),
    ];
    for (ranked, (rank, allowed, distance, effective)) in ranking.clusters.iter().zip(expected) {
        assert_eq!((ranked.rank, ranked.allowed), (rank, allowed));
        assert!((ranked.distance_km.unwrap() - distance).abs() < 0.1);
        assert!((ranked.effective_km.unwrap() - effective).abs() < 0.1);
    }
    assert_eq!(ranking.fence_rules, [Some(0)]);
    assert_eq!(
        world
            .policy
            .ranking(&Location::default(), parse("192.0.2.1"))
            .fence_rules,
        [None]
    );
}

#[test]
fn reasons_have_words() {
    assert_eq!(Basis::Map(2).to_string(), "maps[2]");
    let words: std::collections::BTreeSet<String> = [
        Basis::Fixed,
        Basis::Distance,
        Basis::Inside,
        Basis::UnknownPlace,
        Basis::Weight,
        Basis::Turn,
        Basis::Everything,
    ]
    .iter()
    .map(ToString::to_string)
    .collect();
    assert_eq!(words.len(), 7);
}
