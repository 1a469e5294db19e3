//! Ties, weights, turns, and which addresses are answered.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::world::{
    Client, Entry, World, at, client, client_from, cluster_at, country, down, entry, parse,
    selectors,
};
use super::{V4, V6, fenced, line, near_a, proximity, rule, steer};
use crate::model::{Cluster, PolicySpec, PrefixLen, Steer, Weight};
use crate::steering::{Chosen, Family};

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
    let firsts: BTreeSet<u8> = (0..40).map(|draw| last_octets(&world, draw)[0]).collect();
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
