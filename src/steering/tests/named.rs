//! Endpoints that are asked for by their own names.

use std::net::IpAddr;

use super::world::{
    World, at, client_from, cluster_at, down, drained, entry, forced_down, parse, selectors,
};
use super::{V4, V6};
use crate::model::{FallbackSpec, FenceRule, PolicySpec, Steer};
use crate::steering::{Basis, Chosen, Family};

/// Two clusters with two endpoints each, the second of the first with IPv6.
fn world(spec: &PolicySpec) -> World {
    let clusters = [cluster_at("a", 50.0, 8.0), cluster_at("b", 40.0, -70.0)];
    World::new(
        spec,
        &clusters,
        &[
            entry(0, 1, &["192.0.2.1", "192.0.2.2", "2001:db8::2"]),
            entry(1, 1, &["192.0.2.3", "192.0.2.4"]),
        ],
    )
}

/// Asks a cluster for these addresses, near the first one. Gives the level and the addresses, or what else was chosen.
fn asked(world: &World, rank: Option<u8>, addresses: &[&str], family: Family) -> String {
    asked_by(world, "198.51.100.1", (rank, addresses), family)
}

fn asked_by(
    world: &World,
    sender: &str,
    (rank, addresses): (Option<u8>, &[&str]),
    family: Family,
) -> String {
    let addresses: Vec<IpAddr> = addresses.iter().map(|text| parse(text)).collect();
    let is_meant = |address: IpAddr| addresses.contains(&address);
    world.ask(&client_from(sender, at(50.0, 8.0)), family, |ask, _| {
        let decision = world
            .policy
            .select_named(ask, (rank, is_meant), &world.states);
        assert_eq!(decision.reason.basis, Basis::Named);
        let named = world
            .policy
            .named(&decision, ask, (is_meant, &world.states));
        let named: Vec<String> = named.map(|one| one.address.to_string()).collect();
        let brief = if decision.brief { " brief" } else { "" };
        match decision.chosen {
            Chosen::Cluster { level, .. } => format!("{level:?}{brief} {}", named.join(" ")),
            other => {
                assert!(named.is_empty());
                format!("{other:?}{brief}")
            }
        }
    })
}

#[test]
fn an_endpoint_is_given_whatever_is_nearer_weighs_more_or_is_up() {
    for steer in [Steer::Proximity, Steer::All, Steer::Weighted] {
        let spec = PolicySpec {
            steer,
            answers: 1,
            ..PolicySpec::default()
        };
        let mut world = world(&spec);
        let far = &["192.0.2.3"][..];
        assert_eq!(asked(&world, Some(1), far, V4), "Up 192.0.2.3");
        world.set("192.0.2.3", drained);
        assert_eq!(asked(&world, Some(1), far, V4), "Drained 192.0.2.3");
        world.set("192.0.2.3", down);
        assert_eq!(asked(&world, Some(1), far, V4), "AsIfUp 192.0.2.3");
        world.set("192.0.2.3", forced_down);
        assert_eq!(asked(&world, Some(1), far, V4), "ForcedDown 192.0.2.3");
    }
}

#[test]
fn of_several_endpoints_of_one_name_those_count_that_are_best_off() {
    let mut world = world(&PolicySpec::default());
    let both = &["192.0.2.1", "192.0.2.2", "2001:db8::2"][..];
    assert_eq!(asked(&world, Some(0), both, V4), "Up 192.0.2.1 192.0.2.2");
    assert_eq!(asked(&world, Some(0), both, V6), "Up 2001:db8::2");
    world.set("192.0.2.1", |state| state.with_doubt(true));
    assert_eq!(
        asked(&world, Some(0), both, V4),
        "Up brief 192.0.2.1 192.0.2.2"
    );
    world.set("192.0.2.1", down);
    assert!(asked(&world, Some(0), both, V4).ends_with(" 192.0.2.2"));
    // The other family, no address at all, and nothing in that cluster.
    assert_eq!(asked(&world, Some(1), &["2001:db8::2"], V4), "Nothing");
    assert_eq!(asked(&world, Some(0), &["2001:db8::2"], V4), "OtherFamily");
    assert_eq!(asked(&world, Some(0), &["192.0.2.9"], V4), "Nothing");
    assert_eq!(asked(&world, Some(0), &["192.0.2.3"], V4), "Nothing");
    assert_eq!(asked(&world, None, both, V4), "Nothing");
}

#[test]
fn the_fence_holds() {
    let fence = vec![FenceRule {
        clients: vec![parse("prefix:198.51.100.0/24")],
        clusters: selectors(&["a"]),
    }];
    let mut spec = PolicySpec {
        fences: vec![fence],
        ..PolicySpec::default()
    };
    let (near, far) = (&["192.0.2.1"][..], &["192.0.2.3"][..]);
    let fenced = world(&spec);
    assert_eq!(asked(&fenced, Some(0), near, V4), "Up 192.0.2.1");
    assert_eq!(asked(&fenced, Some(1), far, V4), "Denied");
    let stranger = "203.0.113.1";
    assert_eq!(asked_by(&fenced, stranger, (Some(0), near), V4), "Denied");
    assert_eq!(asked_by(&fenced, stranger, (None, near), V4), "Denied");
    spec.fence_answer = Some(FallbackSpec::Addresses(vec![parse("203.0.113.80")]));
    assert!(asked(&world(&spec), Some(1), far, V4).starts_with("FenceAnswer"));
}

#[test]
fn an_endpoint_is_for_senders_in_its_clients_alone() {
    let mut inside = entry(0, 1, &["192.0.2.1"]);
    inside.clients = Some(0);
    let clusters = [cluster_at("a", 50.0, 8.0)];
    let mut closed = World::new(&PolicySpec::default(), &clusters, &[inside]);
    closed.client_sets = vec![[parse("198.51.100.0/24")].into()];
    let one = &["192.0.2.1"][..];
    assert_eq!(asked(&closed, Some(0), one, V4), "Up 192.0.2.1");
    let stranger = "203.0.113.1";
    assert_eq!(asked_by(&closed, stranger, (Some(0), one), V4), "Nothing");
}
