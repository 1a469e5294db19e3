//! What tests of this room are written with: a small world of clusters, pools and states.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::{
    ClientSubnet, Cluster, ClusterIndex, ClusterSelector, Coordinates, Endpoint, EndpointIndex,
    EndpointState, Forced, Groups, Location, LowerName, PolicySpec, Pools, PoolsBuilder, PrefixLen,
    Verdict, Weight,
};
use crate::steering::{
    Ask, Chosen, Class, ClientView, Decision, Family, Policy, ServiceView, States,
};

/// Parses what a test wrote.
pub(super) fn parse<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// Parses cluster selectors.
pub(in crate::steering) fn selectors(texts: &[&str]) -> Vec<ClusterSelector> {
    texts.iter().map(|text| parse(text)).collect()
}

/// A cluster that nothing but its name is known of.
pub(in crate::steering) fn cluster(name: &str) -> Cluster {
    Cluster::named(parse(name))
}

/// A cluster at a point.
pub(super) fn cluster_at(name: &str, latitude: f64, longitude: f64) -> Cluster {
    Cluster {
        location: at(latitude, longitude),
        ..cluster(name)
    }
}

/// A place of which the coordinates are known.
pub(super) fn at(latitude: f64, longitude: f64) -> Location {
    Location {
        coordinates: Some(Coordinates::new(latitude, longitude).unwrap()),
        ..Location::default()
    }
}

/// A place in a country.
pub(super) fn country(code: &str, continent: &str) -> Location {
    Location {
        country: Some(parse(code)),
        continent: Some(parse(continent)),
        ..Location::default()
    }
}

/// States by [`EndpointIndex`]; Up where the list ends.
#[derive(Clone, Debug, Default)]
pub(super) struct StateList(pub(super) Vec<EndpointState>);

impl States for StateList {
    fn state(&self, endpoint: EndpointIndex) -> EndpointState {
        self.0.get(endpoint.get()).copied().unwrap_or_default()
    }
}

/// One entry of `endpoints`.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) cluster: usize,
    pub(super) weight: u16,
    pub(super) clients: Option<usize>,
    pub(super) hostname: Option<usize>,
    pub(super) addresses: Vec<IpAddr>,
}

/// A service and its policy.
#[derive(Debug)]
pub(super) struct World {
    pub(super) policy: Policy,
    pub(super) pools: Pools,
    pub(super) client_sets: Vec<Box<[IpNet]>>,
    pub(super) hostnames: Vec<LowerName>,
    pub(super) states: StateList,
    by_address: HashMap<IpAddr, usize>,
}

impl World {
    /// Builds a world; `entries` name clusters by position, each of which must have one.
    pub(super) fn new(spec: &PolicySpec, clusters: &[Cluster], entries: &[Entry]) -> Self {
        Self::with_groups(spec, clusters, entries, &Groups::default())
    }

    pub(super) fn with_groups(
        spec: &PolicySpec,
        clusters: &[Cluster],
        entries: &[Entry],
        groups: &Groups,
    ) -> Self {
        let mut builder = PoolsBuilder::default();
        for entry in entries {
            let cluster = ClusterIndex(entry.cluster.try_into().unwrap());
            let (weight, clients) = (Weight(entry.weight), entry.clients);
            match entry.hostname {
                Some(hostname) => builder.hostname(cluster, weight, clients, hostname),
                None => builder.addresses(cluster, weight, clients, &entry.addresses),
            }
            .unwrap();
        }
        let mut pools = builder.build().unwrap();
        let mut by_address = HashMap::new();
        pools.assign_states(|_, address| {
            let next = by_address.len();
            EndpointIndex(
                (*by_address.entry(address).or_insert(next))
                    .try_into()
                    .unwrap(),
            )
        });
        let known: Vec<&Cluster> = pools
            .clusters()
            .map(|index| &clusters[index.get()])
            .collect();
        assert_eq!(known.len(), clusters.len(), "each cluster has an entry");
        Self {
            policy: Policy::compile(spec, &known, groups),
            pools,
            client_sets: Vec::new(),
            hostnames: Vec::new(),
            states: StateList(vec![EndpointState::UP; by_address.len()]),
            by_address,
        }
    }

    /// A world where cluster number n has 192.0.2.n and 2001:db8::n, weight 1.
    pub(super) fn plain(spec: &PolicySpec, clusters: &[Cluster]) -> Self {
        Self::weighted(spec, clusters, &vec![1; clusters.len()])
    }

    /// The same, with weights.
    pub(super) fn weighted(spec: &PolicySpec, clusters: &[Cluster], weights: &[u16]) -> Self {
        let entries: Vec<Entry> = weights
            .iter()
            .enumerate()
            .map(|(n, &weight)| {
                entry(
                    n,
                    weight,
                    &[&format!("192.0.2.{n}"), &format!("2001:db8::{n}")],
                )
            })
            .collect();
        Self::new(spec, clusters, &entries)
    }

    /// Changes one endpoint's state.
    pub(super) fn set(&mut self, address: &str, change: impl Fn(EndpointState) -> EndpointState) {
        let at = self.by_address[&parse::<IpAddr>(address)];
        self.states.0[at] = change(self.states.0[at]);
    }

    /// Changes the states of cluster number n of a plain world.
    pub(super) fn set_cluster(
        &mut self,
        n: usize,
        change: impl Fn(EndpointState) -> EndpointState,
    ) {
        self.set(&format!("192.0.2.{n}"), &change);
        self.set(&format!("2001:db8::{n}"), &change);
    }

    /// Gives the state of an address.
    pub(super) fn state(&self, address: IpAddr) -> EndpointState {
        self.states.0[self.by_address[&address]]
    }

    /// Asks, and hands the question along: the class is that of `location`.
    pub(super) fn ask<R>(
        &self,
        client: &Client,
        family: Family,
        then: impl FnOnce(&Ask<'_>, Decision<'_>) -> R,
    ) -> R {
        let class = self
            .policy
            .classify(&client.location, client.subnet.address);
        self.ask_in(&class, client, family, then)
    }

    /// The same with a class at hand.
    pub(super) fn ask_in<R>(
        &self,
        class: &Class,
        client: &Client,
        family: Family,
        then: impl FnOnce(&Ask<'_>, Decision<'_>) -> R,
    ) -> R {
        let ask = Ask {
            service: ServiceView {
                pools: &self.pools,
                client_sets: &self.client_sets,
                hostnames: &self.hostnames,
            },
            family,
            client: ClientView {
                sender: &client.sender,
                subnet: &client.subnet,
                class,
                scope: PrefixLen(16),
                draw: client.draw,
            },
        };
        let decision = self.policy.select(&ask, &self.states);
        then(&ask, decision)
    }

    /// Gives the addresses answered with.
    pub(super) fn addresses(&self, client: &Client, family: Family) -> Vec<IpAddr> {
        self.ask(client, family, |ask, decision| {
            self.endpoints(&decision, ask)
        })
    }

    /// Gives the addresses of a decision.
    pub(super) fn endpoints(&self, decision: &Decision<'_>, ask: &Ask<'_>) -> Vec<IpAddr> {
        let endpoints: Vec<Endpoint> = self.policy.endpoints(decision, ask, &self.states).collect();
        assert!(decision.only.is_none_or(|only| endpoints == [only]));
        let endpoints = endpoints.into_iter();
        endpoints
            .map(|endpoint: Endpoint| endpoint.address)
            .collect()
    }

    /// Gives the rank chosen; panics when no cluster was.
    pub(super) fn rank(&self, client: &Client, family: Family) -> u8 {
        self.ask(client, family, |_, decision| match decision.chosen {
            Chosen::Cluster { rank, .. } => rank,
            other => panic!("{other:?}"),
        })
    }
}

/// Who asks.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) sender: IpAddr,
    pub(super) subnet: ClientSubnet,
    pub(super) location: Location,
    pub(super) draw: u32,
}

/// A client in a place, at 198.51.100.1.
pub(super) fn client(location: Location) -> Client {
    client_from("198.51.100.1", location)
}

/// A client in a place, by its own address.
pub(super) fn client_from(address: &str, location: Location) -> Client {
    let sender = parse(address);
    Client {
        sender,
        subnet: ClientSubnet::host(sender),
        location,
        draw: 0,
    }
}

/// One entry of addresses for everyone.
pub(super) fn entry(cluster: usize, weight: u16, addresses: &[&str]) -> Entry {
    Entry {
        cluster,
        weight,
        clients: None,
        hostname: None,
        addresses: addresses.iter().map(|text| parse(text)).collect(),
    }
}

/// Makes an endpoint Down.
pub(super) fn down(state: EndpointState) -> EndpointState {
    state.with_verdict(Verdict::Down)
}

/// Drains an endpoint.
pub(super) fn drained(state: EndpointState) -> EndpointState {
    state.with_drained(true)
}

/// Forces an endpoint down.
pub(super) fn forced_down(state: EndpointState) -> EndpointState {
    state.with_forced(Forced::Down)
}
