//! One address we may answer with.

use std::net::IpAddr;

use super::index::{ClusterIndex, EndpointIndex};

/// A share of answers, 0..=65535, relative to the others. 0: no answers while another can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(pub u16);

impl Weight {
    /// Multiplies; what is more than can be said is as much as can be said.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self(self.0.saturating_mul(other.0))
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self(1)
    }
}

/// An address we may answer with, as read out of [`super::Pools`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The cluster it leads to.
    pub cluster: ClusterIndex,
    /// The address.
    pub address: IpAddr,
    /// Its entry in the table of states.
    pub state: EndpointIndex,
}
