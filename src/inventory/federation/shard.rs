//! What one object of one member cluster offers: its share of a federated service.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::model::{
    ClusterSelector, FallbackSpec, FederationName, FenceRule, HeadlessEndpoint, Location,
    LowerName, MapEntry, MonitorSpec, NamedPort, Steer, Ttl, Weight,
};

/// The kinds of objects that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// A Service of type LoadBalancer, or one with addresses of its own.
    Service,
    /// An Ingress.
    Ingress,
    /// A Gateway.
    Gateway,
    /// An HTTPRoute.
    HttpRoute,
    /// A GRPCRoute.
    GrpcRoute,
    /// A TLSRoute.
    TlsRoute,
    /// A TCPRoute.
    TcpRoute,
    /// A UDPRoute.
    UdpRoute,
}

impl ObjectKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Service,
        Self::Ingress,
        Self::Gateway,
        Self::HttpRoute,
        Self::GrpcRoute,
        Self::TlsRoute,
        Self::TcpRoute,
        Self::UdpRoute,
    ];

    /// Gives the kind as Kubernetes spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Service => "Service",
            Self::Ingress => "Ingress",
            Self::Gateway => "Gateway",
            Self::HttpRoute => "HTTPRoute",
            Self::GrpcRoute => "GRPCRoute",
            Self::TlsRoute => "TLSRoute",
            Self::TcpRoute => "TCPRoute",
            Self::UdpRoute => "UDPRoute",
        }
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An object's kind, namespace and name: the same in every cluster of a federation. Shown as `Service shop/web`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl ObjectRef {
    /// Names an object.
    #[must_use]
    pub fn new(kind: ObjectKind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// Endpoints that stand behind an object, by what their EndpointSlices say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backing {
    /// Ready ones. One that says nothing is ready (discovery.k8s.io/v1).
    pub ready: u32,
    /// Serving ones, ready or not.
    pub serving: u32,
    /// Those about to end.
    pub terminating: u32,
    /// All that are to stay: those of which enough must be ready. Nothing is said of it in one EndpointSlice.
    pub total: u32,
}

/// Whether a shard can take traffic, as far as its cluster says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    #[default]
    Ready,
    /// It cannot, and why: lower-case, no period. Its addresses are used after all others.
    NotReady(Box<str>),
}

/// What annotations say of a name rather than of a shard; `None` where they say nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NameKeys {
    /// The TTL of answers.
    pub ttl: Option<Ttl>,
    /// How the best tier is used.
    pub steer: Option<Steer>,
    /// Weights by cluster; the first match wins.
    pub weights: Option<Vec<(ClusterSelector, Weight)>>,
    /// Ready endpoints scale each cluster's share, or do not.
    pub weighs_endpoints: Option<bool>,
    /// Tiers in order, each a set of clusters.
    pub tiers: Option<Vec<Vec<ClusterSelector>>>,
    /// Geoproximity bias by cluster, -99..=99.
    pub bias: Option<Vec<(ClusterSelector, i8)>>,
    /// Explicit maps.
    pub maps: Option<Vec<MapEntry>>,
    /// The fence.
    pub fence: Option<Vec<FenceRule>>,
    /// What a refused client gets.
    pub fence_answer: Option<FallbackSpec>,
    /// What is answered when nothing is up.
    pub fallback: Option<FallbackSpec>,
    /// Addresses per family, 1..=32.
    pub answers: Option<u8>,
    /// Share of undrained endpoints below which health is ignored, 0.0..=1.0.
    pub panic: Option<f64>,
    /// The federation in its names of KubeFed, where it says which.
    pub federation: Option<FederationName>,
    /// It has a name in cluster sets, or has none.
    pub in_cluster_set: Option<bool>,
}

/// A part of an object that was refused; the rest of it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What it is about: an annotation's key, a field such as `status.loadBalancer.ingress[0].ip`, or a host name.
    pub what: Box<str>,
    /// Why, and what would be right: lower-case, no period. Cut to 256 octets.
    pub reason: Box<str>,
}

/// What one object of one member cluster offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Shard {
    /// The object.
    pub object: ObjectRef,
    /// The names that it asks for, wildcards included; those that zones make of service and namespace come on top.
    pub hosts: Box<[LowerName]>,
    /// Where its traffic enters. Only what a machine can have; private ones included.
    pub addresses: Box<[IpAddr]>,
    /// Where its traffic enters, as host names.
    pub targets: Box<[LowerName]>,
    /// Its share beside those of other clusters.
    pub weight: Weight,
    /// Only senders in these prefixes get it; empty: everyone.
    pub clients: Box<[IpNet]>,
    /// Who judges its addresses, on a tenant's word ([`crate::model::Origin::Tenant`]) whoever wrote the check; `None`: nobody
    /// but its readiness.
    pub monitor: Option<Arc<MonitorSpec>>,
    /// What its cluster says.
    pub readiness: Readiness,
    /// It is drained by its own word, or being deleted: no new answers.
    pub is_drained: bool,
    /// What stands behind it.
    pub backing: Option<Backing>,
    /// What it says of its names.
    pub keys: Arc<NameKeys>,
    /// Its ports that have a name, each name once for each carrier; empty where it is in no cluster set. 64 at most.
    pub ports: Box<[NamedPort]>,
    /// Its endpoints, where they are all there is of it: a Service in cluster sets without an address of its own. In order of their
    /// labels and addresses, each once; 64 at most, and their addresses are its addresses. `None`: it is no such Service.
    pub headless: Option<Box<[HeadlessEndpoint]>>,
    /// Why it is not served at all: its fence was refused. Its names stay claimed.
    pub unserved: Option<Box<str>>,
    /// What was refused of it.
    pub refused: Box<[Refused]>,
}

#[cfg(test)]
impl Shard {
    /// Makes one that asks for nothing and offers nothing: tests fill in what they are about.
    pub(crate) fn blank(object: ObjectRef) -> Self {
        Self {
            object,
            hosts: Box::default(),
            addresses: Box::default(),
            targets: Box::default(),
            weight: Weight::default(),
            clients: Box::default(),
            monitor: None,
            readiness: Readiness::Ready,
            is_drained: false,
            backing: None,
            keys: Arc::default(),
            ports: Box::default(),
            headless: None,
            unserved: None,
            refused: Box::default(),
        }
    }
}

/// A change of one cluster's shards.
#[derive(Clone, Debug, PartialEq)]
pub enum ShardChange {
    /// New or changed.
    Upsert(Box<Shard>),
    /// Gone.
    Remove(ObjectRef),
    /// All are gone: the cluster is no longer watched.
    Clear,
}

/// Where a member cluster is, as its own Nodes say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterFacts {
    /// The cloud.
    pub provider: Option<Box<str>>,
    /// The cloud's region.
    pub region: Option<Box<str>>,
    /// Availability zones, sorted, without doubles.
    pub zones: Vec<Box<str>>,
    /// Its place, out of the table of cloud regions; unknown where that has none.
    pub location: Location,
    /// What this was read from, for people: `labels of 12 of 12 nodes`.
    pub evidence: Box<str>,
}
