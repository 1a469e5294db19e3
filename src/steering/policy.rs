//! A policy, compiled for one set of clusters.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use super::classes::{Class, Ranked};
use super::decision::Basis;
use super::fence::Fence;
use super::proximity::{biased_km, distance_km, key};
use super::selectors::{Client, Ranks, means_client, means_cluster, ranked, ranks_of};
use super::weight::hash;
use crate::model::{
    ClientSelector, ClientSubnet, Cluster, ClusterId, Coordinates, EndpointIndex, EndpointState,
    FallbackSpec, Groups, Location, LowerName, PolicySpec, Pools, PrefixLen, Steer, Weight,
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
    pub sender: IpAddr,
    /// The network the answer is for.
    pub subnet: ClientSubnet,
    /// The class of its place.
    pub class: &'a Class,
    /// The honest scope of that class around the network.
    pub scope: PrefixLen,
    /// Counts the queries of this service on this worker: the position on the wheel of weights, and the rotation.
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

/// What a policy knows of one of its clusters.
#[derive(Clone, Debug)]
pub(super) struct Member {
    id: ClusterId,
    /// Hash of its name: the same on every node.
    pub(super) hash: u64,
    coordinates: Option<Coordinates>,
    bias: i8,
    cost_km: f64,
    tier: u8,
}

/// One entry of the maps: who it is for, and the place of each cluster in its order.
#[derive(Clone, Debug)]
struct Map {
    clients: Vec<ClientSelector>,
    /// By rank: the position of the first selector that means the cluster; `u16::MAX`: none does.
    places: Box<[u16]>,
}

/// A policy compiled for one set of clusters. Immutable.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) steer: Steer,
    pub(super) members: Box<[Member]>,
    /// By rank, where the policy gives weights; else the pools' own count.
    pub(super) weights: Option<Box<[Weight]>>,
    pub(super) panic: f64,
    pub(super) max_answers: usize,
    pub(super) fallback: Option<FallbackSpec>,
    pub(super) fence_answer: Option<FallbackSpec>,
    fence: Fence,
    maps: Vec<Map>,
    groups: Arc<Groups>,
    reads_client: bool,
}

impl Policy {
    /// Compiles a policy for the clusters of a service, in the order of [`Pools::clusters`]. Selectors that match no cluster
    /// here match nothing; configuration reports names that no cluster has.
    #[must_use]
    pub fn compile(spec: &PolicySpec, clusters: &[&Cluster], groups: &Groups) -> Self {
        let tiers: Vec<Ranks> = spec
            .tiers
            .iter()
            .map(|tier| ranks_of(tier, clusters, groups))
            .collect();
        let member = |(rank, cluster): (u8, &Cluster)| Member {
            id: cluster.id.clone(),
            hash: hash(cluster.id.as_str().as_bytes()),
            coordinates: cluster.location.coordinates,
            bias: first_match(&spec.bias, cluster, groups)
                .copied()
                .unwrap_or(0),
            cost_km: cluster.cost_km,
            tier: tier_of(rank, &tiers),
        };
        let weight = |(_, cluster)| {
            first_match(&spec.weights, cluster, groups)
                .copied()
                .unwrap_or(Weight(0))
        };
        let map = |entry: &crate::model::MapEntry| {
            let place = |(_, cluster): (u8, &Cluster)| {
                let at = entry
                    .clusters
                    .iter()
                    .position(|selector| means_cluster(selector, cluster, groups));
                at.and_then(|at| u16::try_from(at).ok()).unwrap_or(u16::MAX)
            };
            Map {
                clients: entry.clients.clone(),
                places: ranked(clusters).map(place).collect(),
            }
        };
        let fence = Fence::compile(&spec.fences, clusters, groups);
        let reads_client =
            !fence.is_open() || (spec.steer == Steer::Proximity && clusters.len() > 1);
        Self {
            steer: spec.steer,
            members: ranked(clusters).map(member).collect(),
            weights: (!spec.weights.is_empty()).then(|| ranked(clusters).map(weight).collect()),
            panic: spec.panic,
            max_answers: spec.max_answers(),
            fallback: spec.fallback.clone(),
            fence_answer: spec.fence_answer.clone(),
            fence,
            maps: spec.maps.iter().map(map).collect(),
            groups: Arc::new(groups.clone()),
            reads_client,
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
    #[inline]
    pub fn draws(&self) -> bool {
        matches!(self.steer, Steer::Weighted | Steer::RoundRobin)
    }

    /// Gives the distance from a place to the cluster at a position, bias and cost included, in kilometers; `None` where
    /// either has no coordinates. For `explain`.
    #[must_use]
    pub fn distance_km(&self, location: &Location, rank: u8) -> Option<f64> {
        let member = self.members.get(usize::from(rank))?;
        let distance = distance_km(location.coordinates?, member.coordinates?);
        Some(biased_km(distance, member.bias) + member.cost_km)
    }

    /// Lists the prefixes that fences and maps name.
    pub(super) fn prefixes(&self) -> Vec<IpNet> {
        let maps = if self.steer == Steer::Proximity {
            self.maps.as_slice()
        } else {
            &[]
        };
        let all = self
            .fence
            .selectors()
            .chain(maps.iter().flat_map(|map| &map.clients));
        let mut prefixes: Vec<IpNet> = all
            .filter_map(|selector| match selector {
                ClientSelector::Prefix(prefix) => Some(*prefix),
                _ => None,
            })
            .collect();
        prefixes.sort();
        prefixes.dedup();
        prefixes
    }

    /// Ranks the clusters for one place: fence, then tiers, then maps or distance.
    pub(super) fn classify(&self, client: &Client<'_>) -> Class {
        let allowed = self.fence.allowed(client, &self.groups);
        let (basis, preference) = self.preference(client);
        let mut keyed: Vec<((u8, u16, u64), u8)> = (0..=u8::MAX)
            .zip(self.members.iter())
            .filter(|(rank, _)| allowed.contains(*rank))
            .map(|(rank, member)| {
                let (place, distance) = preference(rank);
                ((member.tier, place, distance), rank)
            })
            .collect();
        keyed.sort_unstable();
        let mut tie = 0_u8;
        let mut last = None;
        let order = keyed.into_iter().map(|(key, rank)| {
            // At most 255 clusters: the number cannot pass 255.
            tie = tie.saturating_add(u8::from(last.is_some_and(|last| last != key)));
            last = Some(key);
            Ranked {
                rank,
                tier: key.0,
                tie,
            }
        });
        Class::new(order.collect(), basis)
    }

    /// Tells how a place prefers clusters: by map entry, then by distance.
    fn preference<'a>(
        &'a self,
        client: &Client<'a>,
    ) -> (Basis, impl Fn(u8) -> (u16, u64) + use<'a>) {
        let location = client.location;
        let ordered = self.steer == Steer::Proximity;
        let matching = self
            .maps
            .iter()
            .enumerate()
            .filter(|_| ordered)
            .find(|(_, map)| {
                map.clients.is_empty()
                    || map
                        .clients
                        .iter()
                        .any(|selector| means_client(selector, client, &self.groups))
            });
        let basis = match (self.steer, matching) {
            (Steer::Weighted, _) => Basis::Weight,
            (Steer::RoundRobin, _) => Basis::Turn,
            (Steer::All, _) => Basis::Everything,
            (Steer::Proximity, _) if self.members.len() <= 1 => Basis::Fixed,
            (Steer::Proximity, Some((at, _))) => Basis::Map(u8::try_from(at).unwrap_or(u8::MAX)),
            (Steer::Proximity, None) if self.is_inside(location) => Basis::Inside,
            (Steer::Proximity, None) if location.coordinates.is_some() => Basis::Distance,
            (Steer::Proximity, None) => Basis::UnknownPlace,
        };
        let map = matching.map(|(_, map)| map);
        let preference = move |rank: u8| {
            if !ordered {
                return (0, 0);
            }
            let place = map.map_or(0, |map| {
                map.places
                    .get(usize::from(rank))
                    .copied()
                    .unwrap_or(u16::MAX)
            });
            let inside = self
                .members
                .get(usize::from(rank))
                .is_some_and(|member| location.cluster.as_ref() == Some(&member.id));
            // Inside a cluster is nearer than any distance: distances are moved up by one.
            let distance = key(self.distance_km(location, rank)).saturating_add(1);
            (place, if inside { 0 } else { distance })
        };
        (basis, preference)
    }

    /// Tells whether an override puts this place inside one of our clusters.
    fn is_inside(&self, location: &Location) -> bool {
        location
            .cluster
            .as_ref()
            .is_some_and(|cluster| self.members.iter().any(|member| member.id == *cluster))
    }
}

/// Finds the value of the first selector that means a cluster.
fn first_match<'a, T>(
    list: &'a [(crate::model::ClusterSelector, T)],
    cluster: &Cluster,
    groups: &Groups,
) -> Option<&'a T> {
    list.iter()
        .find(|(selector, _)| means_cluster(selector, cluster, groups))
        .map(|(_, value)| value)
}

/// Finds the first tier that names a cluster; those in none form one last tier.
fn tier_of(rank: u8, tiers: &[Ranks]) -> u8 {
    let found = tiers
        .iter()
        .position(|tier| tier.contains(rank))
        .unwrap_or(tiers.len());
    u8::try_from(found).unwrap_or(u8::MAX)
}
