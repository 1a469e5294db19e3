//! The fixed order of the steps.

use std::net::IpAddr;

use ipnet::IpNet;

use super::classes::Class;
use super::fence::Fence;
use super::maps::Map;
use super::proximity::Point;
use super::selector::{bias_of, ranked, weight_of};
use super::tiers::tier_of;
use super::weight::cluster_key;
use crate::model::{
    ClientSubnet, Cluster, ClusterId, EndpointIndex, EndpointState, FallbackSpec, FenceRule,
    Groups, LowerName, MapEntry, PolicySpec, Pools, PrefixLen, Steer,
};

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// A records.
    V4,
    /// AAAA records.
    V6,
}

/// Where endpoint states are read from: the snapshot's table, or a test's.
pub trait States {
    /// Gives one endpoint's state.
    fn state(&self, endpoint: EndpointIndex) -> EndpointState;
}

/// What steering reads of one service.
#[derive(Clone, Copy, Debug)]
pub struct ServiceView<'a> {
    /// Its endpoints.
    pub pools: &'a Pools,
    /// The sets of `clients` that pools refer to: by packet source, never by ECS.
    pub client_sets: &'a [Box<[IpNet]>],
    /// The host names that pools refer to.
    pub hostnames: &'a [LowerName],
}

/// What steering reads of one client and query.
#[derive(Clone, Copy, Debug)]
pub struct ClientView<'a> {
    /// The packet's source address, canonical.
    pub sender: &'a IpAddr,
    /// The network the answer is for.
    pub subnet: &'a ClientSubnet,
    /// The class of its place.
    pub class: &'a Class,
    /// The honest scope of that class around the network.
    pub scope: PrefixLen,
    /// Counts the queries of this service on this worker: the position on the wheel of weights, and the rotation. A and AAAA
    /// are counted apart: resolvers ask both in turn, and one counter would give each family every other place of the wheel.
    pub draw: u32,
}

/// One question to a policy.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// About whom.
    pub service: ServiceView<'a>,
    /// Which records.
    pub family: Family,
    /// For whom.
    pub client: ClientView<'a>,
}

/// What a policy knows of one cluster.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// Its name: overrides put clients inside it.
    pub(super) id: ClusterId,
    /// Its name hashed, for ties.
    pub(super) key: u64,
    /// Where it is.
    pub(super) point: Option<Point>,
    /// Geoproximity bias, -99..=99.
    pub(super) bias: i8,
    /// Kilometers added to every distance, at least 0.
    pub(super) cost_km: f64,
    /// Its tier, from 0.
    pub(super) tier: u8,
    /// The weight that the policy lists; `None`: the pools' own weights.
    pub(super) weight: Option<u16>,
}

/// A policy compiled for one set of clusters. Immutable.
#[derive(Clone, Debug)]
pub struct Policy {
    /// How the best tier is used.
    pub(super) steer: Steer,
    /// By rank; at most 255.
    pub(super) sites: Box<[Site]>,
    /// All must allow.
    pub(super) fences: Box<[Fence]>,
    /// The first that matches orders.
    pub(super) maps: Box<[Map]>,
    /// What a refused client gets.
    pub(super) fence_answer: Option<FallbackSpec>,
    /// What is answered when nothing is up.
    pub(super) fallback: Option<FallbackSpec>,
    /// Share below which health is ignored, 0.0..=1.0.
    pub(super) panic: f64,
    /// The most addresses per family, 1..=32.
    pub(super) answers: usize,
    /// Some cluster has a listed weight.
    pub(super) listed_weights: bool,
    /// The client's place matters.
    pub(super) reads_client: bool,
    /// The first cluster of a class's order is the answer as long as it is usable: by proximity, without `panic`.
    pub(super) follows_lead: bool,
}

impl Policy {
    /// Counts the tiers that have clusters.
    #[must_use]
    pub fn tier_count(&self) -> usize {
        let mut tiers: Vec<u8> = self.sites.iter().map(|site| site.tier).collect();
        tiers.sort_unstable();
        tiers.dedup();
        tiers.len()
    }

    /// Counts the clusters of one tier, from 0.
    #[must_use]
    pub fn clusters_in_tier(&self, tier: u8) -> usize {
        let same = self.sites.iter().filter(|site| site.tier == tier);
        same.count()
    }

    /// Compiles a policy for the clusters of a service, in the order of [`Pools::clusters`]. Selectors that match no cluster
    /// here match nothing; configuration reports names that no cluster has.
    #[must_use]
    pub fn compile(spec: &PolicySpec, clusters: &[&Cluster], groups: &Groups) -> Self {
        let site = |(_, cluster): (u8, &Cluster)| Site {
            id: cluster.id.clone(),
            key: cluster_key(cluster.id.as_str()),
            point: cluster.location.coordinates.map(Point::from),
            bias: bias_of(&spec.bias, cluster, groups),
            cost_km: cluster.cost_km,
            tier: tier_of(&spec.tiers, cluster, groups),
            weight: weight_of(&spec.weights, cluster, groups),
        };
        let fence = |rules: &Vec<FenceRule>| Fence::compile(rules, clusters, groups);
        let map = |entry: &MapEntry| Map::compile(entry, clusters, groups);
        Self {
            steer: spec.steer,
            sites: ranked(clusters).map(site).collect(),
            fences: spec.fences.iter().map(fence).collect(),
            maps: spec.maps.iter().map(map).collect(),
            fence_answer: spec.fence_answer.clone(),
            fallback: spec.fallback.clone(),
            panic: spec.panic,
            answers: spec.max_answers(),
            listed_weights: !spec.weights.is_empty(),
            reads_client: reads_client(spec, clusters.len()),
            follows_lead: spec.steer == Steer::Proximity && spec.panic <= 0.0,
        }
    }

    /// Tells whether the client's place matters at all: else the scope is 0 and no place need be looked up.
    #[must_use]
    #[inline]
    pub fn reads_client(&self) -> bool {
        self.reads_client
    }

    /// Tells whether `draw` matters (weighted, roundRobin): then a counter per service and worker is needed.
    #[must_use]
    pub fn draws(&self) -> bool {
        self.sites.len() > 1 && matches!(self.steer, Steer::Weighted | Steer::RoundRobin)
    }

    /// Gives a cluster's hash, for ties.
    pub(super) fn site_key(&self, rank: u8) -> u64 {
        self.sites.get(usize::from(rank)).map_or(0, |site| site.key)
    }

    /// Tells whether a fence keeps clients out.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        !self.fences.is_empty()
    }

    /// Gives the tier of a cluster, from 0.
    #[must_use]
    pub fn tier(&self, rank: u8) -> u8 {
        let site = self.sites.get(usize::from(rank));
        site.map_or(0, |site| site.tier)
    }

    /// Tells whether the policy lists weight 0 for a cluster.
    #[must_use]
    pub fn is_idle(&self, rank: u8) -> bool {
        let site = self.sites.get(usize::from(rank));
        site.is_some_and(|site| site.weight == Some(0))
    }

    /// Lists the prefixes that fences and maps name, each once.
    pub(super) fn prefixes(&self) -> Vec<IpNet> {
        let fences = self.fences.iter().flat_map(Fence::prefixes);
        let mut prefixes: Vec<IpNet> = fences
            .chain(self.maps.iter().flat_map(Map::prefixes))
            .collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        prefixes
    }
}

/// Tells whether a policy looks at the client: where a fence may deny, and where more than one cluster is ordered by place.
fn reads_client(spec: &PolicySpec, clusters: usize) -> bool {
    let is_ordered = spec.steer == Steer::Proximity || !spec.maps.is_empty();
    match clusters {
        0 => false,
        1 => !spec.fences.is_empty(),
        _ => is_ordered || !spec.fences.is_empty(),
    }
}
