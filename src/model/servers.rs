//! The servers of a zone, as its parent must name them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::name::LowerName;

/// Names and addresses of a zone's servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneServers {
    /// Their names.
    pub nameservers: BTreeSet<LowerName>,
    /// Their addresses, as far as the zone has them.
    pub glue: BTreeSet<(LowerName, IpAddr)>,
    /// TTL of the NS records, seconds.
    pub ttl: u32,
}
