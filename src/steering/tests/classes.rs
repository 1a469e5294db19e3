//! Classes of places over a real table: scopes that are honest and the widest, by promise 5's definition.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use proptest::prelude::*;
use proptest::sample::select;

use super::world::{World, at, cluster_at, country, parse};
use super::{fenced, line, map, mapped, proximity, rule, steer};
use crate::model::{Location, PolicySpec, PrefixLen, Steer};
use crate::prefix::Table;
use crate::steering::{Basis, ClassId, Classes};

/// Places of the tables below. The first is the unknown place.
fn places() -> Vec<Location> {
    let inside = |name: &str| Location {
        cluster: Some(parse(name)),
        ..at(0.0, 11.0)
    };
    vec![
        Location::default(),
        at(0.0, 0.0),
        at(0.0, 5.0),
        at(0.0, 25.0),
        at(0.0, 70.0),
        Location {
            coordinates: at(0.0, 29.0).coordinates,
            ..country("DE", "EU")
        },
        inside("a"),
        inside("c"),
    ]
}

fn table(prefixes: &[(&str, u32)]) -> Table {
    Table::build(
        prefixes.iter().map(|(text, place)| (parse(text), *place)),
        0,
    )
}

/// Finds the class's clusters and the scope of an address.
fn find(classes: &Classes, address: &str) -> (Vec<u8>, u8) {
    let (id, scope) = classes.locate(parse(address));
    (classes.get(id).unwrap().ranks().collect(), scope.0)
}

#[test]
fn places_that_rank_alike_are_one_class() {
    let table = table(&[
        ("10.0.0.0/16", 1),
        ("10.1.0.0/16", 2),
        ("10.2.0.0/16", 3),
        ("10.3.0.0/16", 6),
        ("2001:db8::/32", 1),
    ]);
    let world = World::plain(&proximity(), &line());
    let classes = Classes::build(&world.policy, &table, &places());
    // Two places, and an override inside the nearest cluster, are told the same.
    assert_eq!(find(&classes, "10.0.1.1"), (vec![0, 1, 2], 15));
    assert_eq!(find(&classes, "10.1.1.1"), (vec![0, 1, 2], 15));
    assert_eq!(find(&classes, "10.3.1.1"), (vec![0, 1, 2], 16));
    assert_eq!(find(&classes, "10.2.1.1"), (vec![1, 0, 2], 16));
    assert_eq!(find(&classes, "2001:db8::1"), (vec![0, 1, 2], 32));
    // An unknown place has the scope of the hole, not 0.
    assert_eq!(find(&classes, "11.0.0.1").1, 8);
    assert_eq!(classes.len(), 3);
    assert!(classes.memory() > 0);
}

#[test]
fn the_entry_that_led_there_does_not_divide() {
    let table = table(&[("10.0.0.0/9", 1), ("10.128.0.0/9", 5)]);
    let spec = mapped(&[
        map(&["country:DE"], &["b", "a"]),
        map(&["10.64.0.0/10", "10.160.0.0/11"], &["b", "a"]),
        map(&[], &["a"]),
    ]);
    let world = World::plain(&spec, &line());
    let classes = Classes::build(&world.policy, &table, &places());
    assert_eq!(find(&classes, "10.130.0.1"), (vec![1, 0, 2], 9));
    assert_eq!(find(&classes, "10.160.0.1"), (vec![1, 0, 2], 9));
    assert_eq!(find(&classes, "10.64.0.1"), (vec![1, 0, 2], 10));
    assert_eq!(find(&classes, "10.0.0.1"), (vec![0, 1, 2], 10));
    // `explain` names the entry exactly.
    let ranking = |text: &str, place: usize| world.policy.ranking(&places()[place], parse(text));
    assert_eq!(ranking("10.130.0.1", 5).basis, Basis::Map(0));
    assert_eq!(ranking("10.64.0.1", 1).basis, Basis::Map(1));
}

#[test]
fn one_class_needs_no_table_and_has_scope_0() {
    let table = table(&[("10.0.0.0/8", 1), ("11.0.0.0/8", 3)]);
    let fence_for_all = fenced(&[&[rule(&["*", "unknown"], &["b"])]]);
    for (spec, clusters) in [
        (steer(Steer::Weighted), 3),
        (steer(Steer::All), 3),
        (proximity(), 1),
        (fence_for_all, 3),
        (mapped(&[map(&[], &["c", "b", "a"])]), 3),
    ] {
        let world = World::plain(&spec, &line()[..clusters]);
        let classes = Classes::build(&world.policy, &table, &places());
        assert_eq!(classes.len(), 1, "{spec:?}");
        for address in ["10.0.0.1", "11.0.0.1", "192.0.2.1", "2001:db8::1"] {
            let found = classes.locate(parse(address));
            assert_eq!(found, (ClassId(0), PrefixLen(0)), "{spec:?}");
        }
    }
    assert!(Classes::default().is_empty());
    assert_eq!(Classes::default().get(ClassId(0)), None);
}

#[test]
fn places_that_are_not_there_are_unknown() {
    let table = table(&[("10.0.0.0/8", 99)]);
    let world = World::plain(&fenced(&[&[rule(&["unknown"], &["c"])]]), &line());
    let classes = Classes::build(&world.policy, &table, &places());
    assert_eq!(find(&classes, "10.0.0.1"), (vec![2], 0));
}

fn some_prefix() -> impl Strategy<Value = IpNet> {
    // Close together, so that they nest, touch and overlap.
    (any::<u16>(), 8_u8..=28).prop_map(|(bits, length)| {
        let address = Ipv4Addr::from(0x0a00_0000 | u32::from(bits) << 8);
        IpNet::V4(Ipv4Net::new(address, length).unwrap().trunc())
    })
}

fn some_spec() -> impl Strategy<Value = PolicySpec> {
    let text = |prefix: IpNet| prefix.to_string();
    (
        select(vec![Steer::Proximity, Steer::Weighted]),
        prop::collection::vec(some_prefix().prop_map(text), 0..4),
        0..4,
    )
        .prop_map(|(steer, prefixes, kind)| {
            let own: Vec<&str> = prefixes.iter().map(String::as_str).collect();
            let (first, rest) = own.split_at(own.len() / 2);
            let spec = match kind {
                0 => proximity(),
                1 => mapped(&[map(&[&["country:DE"], first].concat(), &["b"])]),
                2 => fenced(&[&[
                    rule(&[&["continent:EU"], first].concat(), &["a", "b"]),
                    rule(&[&["*"], rest].concat(), &["*"]),
                ]]),
                _ => PolicySpec {
                    maps: vec![map(&[&["cluster:c"], rest].concat(), &["c", "a"])],
                    ..fenced(&[&[rule(&[&["*"], first].concat(), &["a", "c"])]])
                },
            };
            PolicySpec { steer, ..spec }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Promise 5: every address of a scope is of one class, and no wider prefix is. The oracle ranks each address by itself.
    #[test]
    fn scopes_are_honest_and_the_widest(
        spec in some_spec(),
        prefixes in prop::collection::vec((some_prefix(), 0_u32..8), 0..12),
    ) {
        let clusters = [line(), vec![cluster_at("d", 0.0, 10.0)]].concat();
        let world = World::plain(&spec, &clusters);
        let places = places();
        let table = Table::build(prefixes.iter().copied(), 0);
        let classes = Classes::build(&world.policy, &table, &places);
        // Between neighboring borders nothing changes.
        let own = world.policy.prefixes();
        let mut borders: Vec<u32> = prefixes.iter().map(|(prefix, _)| prefix).chain(&own).flat_map(|prefix| {
            let (IpAddr::V4(first), IpAddr::V4(last)) = (prefix.network(), prefix.broadcast()) else { unreachable!() };
            [u32::from(first), u32::from(last).wrapping_add(1)]
        }).collect();
        borders.extend([0, u32::MAX]);
        borders.sort_unstable();
        borders.dedup();
        let rank_of = |address: u32| {
            let address = IpAddr::from(Ipv4Addr::from(address));
            let longest = prefixes.iter().rev().filter(|(prefix, _)| prefix.contains(&address));
            // Of equal prefixes the later one counts.
            let longest = longest.max_by_key(|(prefix, _)| prefix.prefix_len());
            let best = longest.map(|(prefix, _)| *prefix);
            let place = best.map_or(0, |best| prefixes.iter().rev().find(|(prefix, _)| *prefix == best).unwrap().1);
            world.policy.classify(&places[place as usize], address).slots
        };
        for &border in &borders {
            let (id, scope) = classes.locate(Ipv4Addr::from(border).into());
            let here = rank_of(border);
            prop_assert_eq!(&classes.get(id).unwrap().slots, &here);
            let is_uniform = |length: u8| {
                let net = Ipv4Net::new(border.into(), length).unwrap();
                let inside = borders.iter().copied().filter(|&other| net.contains(&Ipv4Addr::from(other)));
                inside.chain([u32::from(net.network())]).all(|other| rank_of(other) == here)
            };
            prop_assert!(is_uniform(scope.0), "{} /{}", Ipv4Addr::from(border), scope.0);
            if scope.0 > 0 {
                prop_assert!(!is_uniform(scope.0 - 1), "{} /{}", Ipv4Addr::from(border), scope.0);
            }
        }
    }
}
