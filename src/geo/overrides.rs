//! The operator's own knowledge: prefixes with a place or a cluster.

use ipnet::IpNet;

use crate::model::{ClusterId, Location};

/// What an override says of its prefix.
#[derive(Clone, Debug, PartialEq)]
pub enum OverridePlace {
    /// Clients are inside this cluster, at its location (filled in by configuration): nearest by definition.
    Cluster(ClusterId, Location),
    /// Clients are in this place; parts left out are unknown.
    Place(Location),
}

/// One entry of `geoip.overrides`.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// The network, host bits zero.
    pub prefix: IpNet,
    /// What is said of it.
    pub place: OverridePlace,
}
