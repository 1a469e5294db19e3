//! The fixed order of the steps.

use std::net::IpAddr;

use ipnet::IpNet;

use super::classes::Class;
use super::decision::Decision;
use crate::model::{
    ClientSubnet, Cluster, Endpoint, EndpointIndex, EndpointState, Groups, LowerName, PolicySpec,
    Pools, PrefixLen,
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

/// A policy compiled for one set of clusters. Immutable.
#[derive(Clone, Debug)]
pub struct Policy {
    todo: (),
}

impl Policy {
    /// Compiles a policy for the clusters of a service, in the order of [`Pools::clusters`]. Selectors that match no cluster
    /// here match nothing; configuration reports names that no cluster has.
    #[must_use]
    pub fn compile(spec: &PolicySpec, clusters: &[&Cluster], groups: &Groups) -> Self {
        let _ = (spec, clusters, groups);
        todo!()
    }

    /// Tells whether the client's place matters at all: else the scope is 0 and no place need be looked up.
    #[must_use]
    pub fn reads_client(&self) -> bool {
        todo!()
    }

    /// Tells whether `draw` matters (weighted, roundRobin): then a counter per service and worker is needed.
    #[must_use]
    pub fn draws(&self) -> bool {
        todo!()
    }

    /// Decides: fence, order, tiers, last resorts, in the fixed order of DESIGN section 4. Never allocates, never fails.
    #[must_use]
    pub fn select<S: States>(&self, ask: &Ask<'_>, states: &S) -> Decision<'_> {
        let _ = (ask, states);
        todo!()
    }

    /// Iterates over the endpoints that a decision names, of the family asked for, in order of answering, rotated by `draw`,
    /// at most `answers` of them. Empty unless the decision chose endpoints.
    pub fn endpoints<'a, S: States>(
        &'a self,
        decision: &Decision<'_>,
        ask: &Ask<'a>,
        states: &'a S,
    ) -> impl Iterator<Item = Endpoint> + 'a {
        let _ = (decision, ask, states);
        std::iter::empty()
    }
}
