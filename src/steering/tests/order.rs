//! The order of clusters: distance, maps, tiers, fences.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::world::{Entry, World, at, client, cluster, cluster_at, country, down, entry, parse};
use super::{V4, V6, basis, fenced, line, map, mapped, order, order_from, proximity, rule, tiered};
use crate::model::{FallbackSpec, Groups, Location, PolicySpec, PrefixLen, Steer};
use crate::steering::{Basis, Level};

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
        (&[std::slice::from_ref(&eu)], &country("US", "NA"), ""),
        // Fences intersect.
        (
            &[&[rule(&["*"], &["a", "b"])], &[rule(&["*"], &["b", "c"])]],
            &de,
            "b",
        ),
        (
            &[std::slice::from_ref(&eu), &[rule(&["*"], &["b"])]],
            &de,
            "",
        ),
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
    let words: BTreeSet<String> = [
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
