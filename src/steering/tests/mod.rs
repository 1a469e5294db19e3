//! Steering as a whole.

mod classes;
mod draws;
mod named;
mod near;
mod order;
mod properties;
mod reference;
mod resorts;
pub(super) mod world;

use world::{Client, World, at, client, cluster_at, parse, selectors};

use super::{Basis, Family};
use crate::model::{Cluster, FenceRule, Location, MapEntry, PolicySpec, Steer};

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
