//! A service as every source hands it in, compact: there may be millions.

use std::sync::Arc;

use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::{
    Carrier, Check, ClusterIndex, Condition, Endpoint, FallbackSpec, HeadlessEndpoint, HostLabel,
    HttpCheck, LowerName, MonitorSpec, NameRef, NamedPort, Names, PolicySpec, PoolRef, Pools,
    ServiceKey, TlsMode, Ttl, Weight,
};

/// Sets of prefixes that `clients` of endpoints name, by position.
pub type ClientSets = Box<[Box<[IpNet]>]>;

/// What few services have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// Sets of `clients`, as pools refer to them.
    pub client_sets: ClientSets,
    /// Host names that are answered as a CNAME, as pools refer to them.
    pub hostnames: Box<[LowerName]>,
    /// Endpoints that are host names and are answered by their addresses, which are among the pools.
    pub targets: Box<[NamedEndpoint]>,
    /// Addresses that are among the pools only because a target in our own zones leads there, in order. Whoever follows a target to
    /// this service leaves them out and follows the targets of this service, so that no address lives on in a circle.
    pub inside: Box<[(ClusterIndex, IpAddr)]>,
    /// Addresses that are not as the service says, in the order of cluster and address.
    pub particulars: Box<[Particular]>,
    /// What is answered in place of a `fallback` that is a host name at the apex of a zone, where no CNAME can stand.
    pub fallback: Option<Flattened>,
    /// The names of its ports.
    pub ports: Option<PortNames>,
    /// The names of its endpoints.
    pub hosts: Option<HostNames>,
}

/// Names of endpoints of a headless service: `<label>.<cluster>` below each of its names in cluster sets (KEP-1645).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNames {
    /// The names that they lie below, in order.
    pub owners: Box<[LowerName]>,
    /// The clusters that have it as such, in the order of their names.
    pub clusters: Box<[HostsOf]>,
}

/// The endpoints of a headless service in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostsOf {
    /// The cluster.
    pub cluster: ClusterIndex,
    /// Its name as a label; `None`: it is none, and endpoints there have no names.
    pub label: Option<HostLabel>,
    /// The endpoints, in order of their labels and addresses.
    pub endpoints: Box<[HeadlessEndpoint]>,
}

impl HostNames {
    /// Tells whether names of endpoints lie below a name.
    #[must_use]
    pub fn are_below(&self, name: NameRef<'_>) -> bool {
        self.owners.iter().any(|owner| owner.as_ref() == name)
    }

    /// Finds a cluster that has endpoints with names by its label, in lower case.
    #[must_use]
    pub fn find(&self, label: &[u8]) -> Option<&HostsOf> {
        let is_it = |hosts: &&HostsOf| {
            let own = hosts.label.as_ref();
            own.is_some_and(|own| own.as_str().as_bytes() == label)
        };
        let hosts = self.clusters.iter().find(is_it)?;
        (!hosts.endpoints.is_empty()).then_some(hosts)
    }

    /// Gives what it is in a cluster; `None`: it is no headless service there.
    #[must_use]
    pub fn of(&self, cluster: ClusterIndex) -> Option<&HostsOf> {
        self.clusters.iter().find(|hosts| hosts.cluster == cluster)
    }
}

impl HostsOf {
    /// Lists the endpoints of a label, in lower case; none: no endpoint has it.
    #[must_use]
    pub fn labeled(&self, label: &[u8]) -> &[HeadlessEndpoint] {
        let of = |endpoint: &HeadlessEndpoint| endpoint.label.as_str().as_bytes().cmp(label);
        let start = self.endpoints.partition_point(|one| of(one).is_lt());
        let end = self.endpoints.partition_point(|one| of(one).is_le());
        self.endpoints.get(start..end).unwrap_or_default()
    }
}

/// Names of ports: `_<port>._<carrier>` below each of a service's names in cluster sets (KEP-1645).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortNames {
    /// The names that they lie below, in order.
    pub owners: Box<[LowerName]>,
    /// The ports, in order, each name once for each carrier.
    pub ports: Box<[NamedPort]>,
}

impl PortNames {
    /// Tells whether names of ports lie below a name.
    #[must_use]
    pub fn are_below(&self, name: NameRef<'_>) -> bool {
        self.owners.iter().any(|owner| owner.as_ref() == name)
    }

    /// Finds a port by its name, in lower case.
    #[must_use]
    pub fn find(&self, name: &[u8], carrier: Carrier) -> Option<&NamedPort> {
        let is_it =
            |port: &&NamedPort| port.carrier == carrier && port.name.as_str().as_bytes() == name;
        self.ports.iter().find(is_it)
    }

    /// Tells whether a port has this carrier.
    #[must_use]
    pub fn has(&self, carrier: Carrier) -> bool {
        self.ports.iter().any(|port| port.carrier == carrier)
    }
}

/// A host name as its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flattened {
    /// The addresses.
    pub addresses: Box<[IpAddr]>,
    /// For how long they may be kept.
    pub ttl: Ttl,
}

/// An endpoint that is a host name, resolved and answered by its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEndpoint {
    /// Where it leads.
    pub cluster: ClusterIndex,
    /// The share of its addresses.
    pub weight: Weight,
    /// The position in the list of client sets; `None`: for everyone.
    pub clients: Option<usize>,
    /// The name.
    pub name: LowerName,
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

    /// Tells whether questions for addresses have nothing to read here: there are names of ports and endpoints at most.
    #[must_use]
    pub fn is_about_names(&self) -> bool {
        // All fields are named, so that none is forgotten.
        let Self {
            client_sets,
            hostnames,
            targets,
            inside,
            particulars,
            fallback,
            ports: _,
            hosts: _,
        } = self;
        client_sets.is_empty()
            && hostnames.is_empty()
            && targets.is_empty()
            && inside.is_empty()
            && particulars.is_empty()
            && fallback.is_none()
    }

    /// Tells whether an address is among the pools only because a target in our own zones leads there.
    #[must_use]
    pub fn is_inside(&self, cluster: ClusterIndex, address: IpAddr) -> bool {
        self.inside.binary_search(&(cluster, address)).is_ok()
    }
}

/// Tells whether a monitor that passes proves that an address is still where a target leads: the certificate is checked, for the
/// target's own name or for one of the `names` of the service.
pub(super) fn proves<'n>(
    monitor: &MonitorSpec,
    target: &LowerName,
    mut names: impl Iterator<Item = NameRef<'n>>,
) -> bool {
    let Check::Http(HttpCheck {
        tls: Some(TlsMode::Verify | TlsMode::Pin(_)),
        host: Some(host),
        ..
    }) = &monitor.check
    else {
        return false;
    };
    let Ok(host) = host.parse::<LowerName>() else {
        return false;
    };
    host == *target || names.any(|name| covers(name, host.as_ref()))
}

/// Tells whether a name lies below another, or is the wildcard there.
pub(super) fn is_below(name: NameRef<'_>, above: NameRef<'_>) -> bool {
    name != above && name.is_at_or_below(above)
}

/// Tells whether a host covers a name: it is the same, or the name lies below the wildcard that the host is.
pub(super) fn covers(host: NameRef<'_>, name: NameRef<'_>) -> bool {
    if !host.is_wildcard() {
        return host == name;
    }
    host.parent().is_some_and(|above| is_below(name, above))
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
        self.is_cname() || self.fallback_name().is_some() || self.has_fence_name()
    }

    /// Tells whether its `fallback` is a host name that is answered by its addresses at an apex, where a CNAME cannot stand
    /// (RFC 1034 section 3.6.2), and nothing else of it is a CNAME: only the operator may say so.
    #[must_use]
    pub fn flattens_fallback(&self) -> bool {
        let is_operators = self.origin == Origin::Configuration;
        let is_alone = !self.is_cname() && !self.has_fence_name();
        is_operators && is_alone && self.fallback_name().is_some()
    }

    /// Gives its `fallback` where that is a host name.
    pub(super) fn fallback_name(&self) -> Option<&LowerName> {
        match &self.policy.fallback {
            Some(FallbackSpec::Hostname(name)) => Some(name),
            _ => None,
        }
    }

    fn has_fence_name(&self) -> bool {
        matches!(self.policy.fence_answer, Some(FallbackSpec::Hostname(_)))
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
