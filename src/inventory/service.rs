//! A service as every source hands it in, compact: there may be millions.

use std::sync::Arc;

use ipnet::IpNet;

use crate::model::{LowerName, MonitorSpec, Names, PolicySpec, Pools, ServiceKey, Ttl};

/// Sets of prefixes that `clients` of endpoints name, by position.
pub type ClientSets = Box<[Box<[IpNet]>]>;

/// What few services have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// Sets of `clients`, as pools refer to them.
    pub client_sets: ClientSets,
    /// Host names, as pools refer to them.
    pub hostnames: Box<[LowerName]>,
}

/// A steered service. Equal policies and monitors should be the same `Arc`: sources intern them.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Namespace and name.
    pub key: ServiceKey,
    /// The owner names it answers; wildcards allowed.
    pub names: Names,
    /// Its TTL; `None`: the zone's.
    pub ttl: Option<Ttl>,
    /// Its policy, defaults already merged in.
    pub policy: Arc<PolicySpec>,
    /// Its monitor; `None`: nobody judges its endpoints.
    pub monitor: Option<Arc<MonitorSpec>>,
    /// Its endpoints. States are assigned by the inventory.
    pub pools: Pools,
    /// What few services have.
    pub extras: Option<Arc<Extras>>,
}
