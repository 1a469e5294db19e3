//! A service as every source hands it in, compact: there may be millions.

use std::sync::Arc;

use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::{
    ClusterIndex, Condition, Endpoint, FallbackSpec, LowerName, MonitorSpec, Names, PolicySpec,
    PoolRef, Pools, ServiceKey, Ttl,
};

/// Sets of prefixes that `clients` of endpoints name, by position.
pub type ClientSets = Box<[Box<[IpNet]>]>;

/// What few services have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// Sets of `clients`, as pools refer to them.
    pub client_sets: ClientSets,
    /// Host names, as pools refer to them.
    pub hostnames: Box<[LowerName]>,
    /// Addresses that are not as the service says, in the order of cluster and address.
    pub particulars: Box<[Particular]>,
}

/// What is particular to one address.
#[derive(Clone, Debug, PartialEq)]
pub struct Particular {
    /// Where it leads.
    pub cluster: ClusterIndex,
    /// The address; unspecified for all of a cluster that are host names.
    pub address: IpAddr,
    /// Its monitor in place of the service's; `None`: nobody judges it.
    pub monitor: Option<Arc<MonitorSpec>>,
    /// What its cluster says of it.
    pub condition: Condition,
}

impl Extras {
    /// Finds what is particular to an address.
    #[must_use]
    pub fn particular(&self, cluster: ClusterIndex, address: IpAddr) -> Option<&Particular> {
        let place = (cluster, address);
        let key = |one: &Particular| (one.cluster, one.address);
        let at = self.particulars.binary_search_by_key(&place, key).ok()?;
        self.particulars.get(at)
    }
}

/// Where a service comes from, in the order of right of way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The configuration.
    #[default]
    Configuration,
    /// Objects of member clusters.
    Kubernetes,
    /// Objects of clusters that are observed: nobody is answered with them.
    Observed,
}

/// A steered service. Equal policies and monitors should be the same `Arc`: sources intern them.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Namespace and name.
    pub key: ServiceKey,
    /// Where it comes from.
    pub origin: Origin,
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

impl Service {
    /// Gives who judges one of its addresses: that address's own monitor where it has one, else the service's.
    #[must_use]
    pub fn monitor_of(&self, cluster: ClusterIndex, address: IpAddr) -> Option<&Arc<MonitorSpec>> {
        let extras = self.extras.as_deref();
        match extras.and_then(|extras| extras.particular(cluster, address)) {
            Some(own) => own.monitor.as_ref(),
            None => self.monitor.as_ref(),
        }
    }

    /// Tells whether it is always answered as a CNAME: its endpoints are host names.
    #[must_use]
    pub fn is_cname(&self) -> bool {
        self.pools.iter().any(|pool| pool.hostname().is_some())
    }

    /// Tells whether it may be answered as a CNAME, if only sometimes: its endpoints, its `fallback` or its `fenceAnswer` are
    /// host names. Nothing else may stand at its names, at no moment and for no client (RFC 2181 section 10.1).
    #[must_use]
    pub fn may_be_cname(&self) -> bool {
        let is_hostname =
            |spec: &Option<FallbackSpec>| matches!(spec, Some(FallbackSpec::Hostname(_)));
        let policy = &self.policy;
        self.is_cname() || is_hostname(&policy.fallback) || is_hostname(&policy.fence_answer)
    }

    /// Tells whether another service says the same, whatever states are assigned to the endpoints of either.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let policies = Arc::ptr_eq(&self.policy, &other.policy) || self.policy == other.policy;
        policies
            && self.key == other.key
            && self.origin == other.origin
            && self.names == other.names
            && self.ttl == other.ttl
            && self.monitor == other.monitor
            && self.extras == other.extras
            && same_endpoints(&self.pools, &other.pools)
    }
}

/// Compares endpoints without their states.
fn same_endpoints(a: &Pools, b: &Pools) -> bool {
    let heads = |pool: &PoolRef<'_>| {
        (
            pool.cluster(),
            pool.weight(),
            pool.clients(),
            pool.hostname(),
        )
    };
    let addresses = |endpoint: Endpoint| endpoint.address;
    a.as_bytes().len() == b.as_bytes().len()
        && a.iter()
            .map(|pool| heads(&pool))
            .eq(b.iter().map(|pool| heads(&pool)))
        && a.iter().zip(b.iter()).all(|(a, b)| {
            a.v4().map(addresses).eq(b.v4().map(addresses))
                && a.v6().map(addresses).eq(b.v6().map(addresses))
        })
}
