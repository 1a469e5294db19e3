//! Objects as they are kept of a member cluster: what somebody reads, and nothing else.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::annotations;
use crate::inventory::{Backing, ObjectKind, Refused};
use crate::model::{HostLabel, LowerName};

/// The group of Gateways and Routes.
pub(super) const GATEWAYS: &str = "gateway.networking.k8s.io";

/// What is watched in a member cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watched {
    /// Services (v1).
    Services,
    /// EndpointSlices (discovery.k8s.io).
    EndpointSlices,
    /// Ingresses (networking.k8s.io).
    Ingresses,
    /// Gateways (gateway.networking.k8s.io).
    Gateways,
    /// HTTPRoutes.
    HttpRoutes,
    /// GRPCRoutes.
    GrpcRoutes,
    /// TLSRoutes.
    TlsRoutes,
    /// TCPRoutes.
    TcpRoutes,
    /// UDPRoutes.
    UdpRoutes,
    /// Nodes (v1), for the place of the cluster alone.
    Nodes,
}

impl Watched {
    /// Gives the kind of object that it brings; `None`: nothing of it is served.
    #[must_use]
    pub fn served(self) -> Option<ObjectKind> {
        match self {
            Self::Services => Some(ObjectKind::Service),
            Self::Ingresses => Some(ObjectKind::Ingress),
            Self::Gateways => Some(ObjectKind::Gateway),
            Self::HttpRoutes => Some(ObjectKind::HttpRoute),
            Self::GrpcRoutes => Some(ObjectKind::GrpcRoute),
            Self::TlsRoutes => Some(ObjectKind::TlsRoute),
            Self::TcpRoutes => Some(ObjectKind::TcpRoute),
            Self::UdpRoutes => Some(ObjectKind::UdpRoute),
            Self::EndpointSlices | Self::Nodes => None,
        }
    }

    /// Gives what brings objects of a kind.
    #[must_use]
    pub fn of(kind: ObjectKind) -> Self {
        match kind {
            ObjectKind::Service => Self::Services,
            ObjectKind::Ingress => Self::Ingresses,
            ObjectKind::Gateway => Self::Gateways,
            ObjectKind::HttpRoute => Self::HttpRoutes,
            ObjectKind::GrpcRoute => Self::GrpcRoutes,
            ObjectKind::TlsRoute => Self::TlsRoutes,
            ObjectKind::TcpRoute => Self::TcpRoutes,
            ObjectKind::UdpRoute => Self::UdpRoutes,
        }
    }

    /// All kinds, in their order.
    pub const ALL: [Self; 10] = [
        Self::Services,
        Self::EndpointSlices,
        Self::Ingresses,
        Self::Gateways,
        Self::HttpRoutes,
        Self::GrpcRoutes,
        Self::TlsRoutes,
        Self::TcpRoutes,
        Self::UdpRoutes,
        Self::Nodes,
    ];

    /// Names the kind as Kubernetes spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Services => ObjectKind::Service.as_str(),
            Self::EndpointSlices => "EndpointSlice",
            Self::Ingresses => ObjectKind::Ingress.as_str(),
            Self::Gateways => ObjectKind::Gateway.as_str(),
            Self::HttpRoutes => ObjectKind::HttpRoute.as_str(),
            Self::GrpcRoutes => ObjectKind::GrpcRoute.as_str(),
            Self::TlsRoutes => ObjectKind::TlsRoute.as_str(),
            Self::TcpRoutes => ObjectKind::TcpRoute.as_str(),
            Self::UdpRoutes => ObjectKind::UdpRoute.as_str(),
            Self::Nodes => "Node",
        }
    }

    /// Names its objects, for sentences.
    #[must_use]
    pub fn plural(self) -> String {
        let ending = if self == Self::Ingresses { "es" } else { "s" };
        format!("{}{ending}", self.as_str())
    }
}

/// An object's namespace (empty for Nodes) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its namespace; empty where the kind has none.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

/// Where traffic enters an object: what its status says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ingresses {
    /// Addresses that a machine can have, without doubles, in their order.
    pub addresses: Vec<IpAddr>,
    /// Host names, without doubles, in their order.
    pub hostnames: Vec<LowerName>,
}

/// A port of a Service, or of a Gateway's listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name; empty: none.
    pub name: Box<str>,
    /// Its number.
    pub number: u16,
    /// What it speaks.
    pub protocol: Protocol,
}

/// What a port speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, or anything over it.
    Tcp,
    /// HTTP in clear text.
    Http,
    /// HTTPS or TLS.
    Tls,
    /// UDP, or anything over it.
    Udp,
    /// SCTP.
    Sctp,
    /// Anything else.
    Other,
}

/// What all kinds that may be served have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Common {
    /// Its annotations of ours, read.
    pub said: annotations::Read,
    /// Fields that were refused.
    pub refused: Vec<Refused>,
    /// It is being deleted.
    pub is_deleting: bool,
}

/// A Service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceRecord {
    /// Annotations and faults.
    pub common: Common,
    /// Its type is LoadBalancer.
    pub is_load_balancer: bool,
    /// It has no address of its own (`clusterIP: None`): its endpoints are all there is of it.
    pub is_headless: bool,
    /// Its ports.
    pub ports: Vec<Port>,
    /// What its status says.
    pub entries: Ingresses,
    /// Endpoints count whether ready or not.
    pub publishes_not_ready: bool,
}

/// What the endpoints of a slice are reached by. A Service of two families has slices of both, and its endpoints are in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressType {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
    /// Host names.
    Name,
}

/// One endpoint of a slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SliceEndpoint {
    /// Its own host name, else the name of its Pod, else made of its address.
    pub label: HostLabel,
    /// Its address: of several the first.
    pub address: IpAddr,
    /// It is ready.
    pub is_ready: bool,
}

/// An EndpointSlice, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SliceRecord {
    /// The Service that it belongs to, in its own namespace.
    pub service: Box<str>,
    /// What its endpoints are reached by: slices of another type count the same ones again.
    pub addresses: AddressType,
    /// Its endpoints.
    pub backing: Backing,
    /// All of its endpoints, whatever they say.
    pub endpoints: u32,
    /// Ready endpoints by zone.
    pub zones: BTreeMap<Box<str>, u32>,
    /// Kubernetes made it for a Service without an address of its own.
    pub is_headless: bool,
    /// Endpoints that have an address, in order: the first 65 ready ones and the first 65 others, by label and address.
    pub first: Vec<SliceEndpoint>,
    /// Where these listen: its ports that have a number.
    pub ports: Vec<Port>,
}

/// A Service that an Ingress or a Route sends traffic to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Backend {
    /// Its namespace and name.
    pub service: Key,
    /// Some traffic goes there.
    pub is_used: bool,
}

/// An Ingress.
#[derive(Clone, Debug, PartialEq)]
pub struct IngressRecord {
    /// Annotations and faults.
    pub common: Common,
    /// Hosts of its rules, wildcards included, without doubles; of its TLS parts where no rule names one.
    pub hosts: Vec<LowerName>,
    /// Some hosts are served over TLS.
    pub has_tls: bool,
    /// Where it sends traffic: each Service once, by namespace and name.
    pub backends: Vec<Backend>,
    /// What its status says.
    pub entries: Ingresses,
}

/// A listener of a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name.
    pub name: Box<str>,
    /// The host that it is for, wildcards included; `None`: all.
    pub host: Option<LowerName>,
    /// Its port.
    pub port: Port,
    /// Routes attached to it, as its status says.
    pub attached: u32,
}

/// A Gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayRecord {
    /// Annotations and faults.
    pub common: Common,
    /// Its listeners.
    pub listeners: Vec<Listener>,
    /// Why it cannot take traffic; `None`: its condition `Programmed` is true.
    pub unready: Option<Box<str>>,
    /// What its status says.
    pub entries: Ingresses,
}

/// A Gateway that a Route is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Namespace and name of the Gateway.
    pub gateway: Key,
    /// The listener's name; `None`: all.
    pub section: Option<Box<str>>,
    /// The listener's port; `None`: all.
    pub port: Option<u16>,
    /// Why it is not attached; `None`: its condition `Accepted` is true.
    pub unaccepted: Option<Box<str>>,
}

/// A Route of any kind.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteRecord {
    /// Annotations and faults.
    pub common: Common,
    /// Its kind.
    pub kind: ObjectKind,
    /// Its hosts, wildcards included; empty: those of its listeners. TCPRoutes and UDPRoutes have none.
    pub hosts: Vec<LowerName>,
    /// The Gateways that it asks for.
    pub parents: Vec<Parent>,
    /// Where it sends traffic: each Service once, by namespace and name.
    pub backends: Vec<Backend>,
}

/// A Node: where the cluster is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeRecord {
    /// The cloud, from `providerID`, in our spelling where we know it (`gcp` for `gce`).
    pub provider: Option<Box<str>>,
    /// `topology.kubernetes.io/region`, or its older name.
    pub region: Option<Box<str>>,
    /// `topology.kubernetes.io/zone`, or its older name.
    pub zone: Option<Box<str>>,
}

/// Any of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A Service.
    Service(ServiceRecord),
    /// An EndpointSlice.
    Slice(SliceRecord),
    /// An Ingress.
    Ingress(IngressRecord),
    /// A Gateway.
    Gateway(GatewayRecord),
    /// A Route.
    Route(RouteRecord),
    /// A Node.
    Node(NodeRecord),
}

/// What a watch saw.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The list begins anew: what is not seen until [`Event::Listed`] is gone.
    Listing,
    /// An object is there, new or changed.
    Applied(Key, Box<Record>),
    /// An object is there, and cannot be read: what was known of it stands.
    Unreadable(Key, Refused),
    /// An object is gone.
    Gone(Key),
    /// The list is complete.
    Listed,
    /// Some objects were left out, since there are too many: at the end of a list in place of [`Event::Listed`], or later. What
    /// was not seen may be there; what is gone is said one by one.
    LeftOut,
    /// The server does not serve this kind any more.
    Unserved,
}
