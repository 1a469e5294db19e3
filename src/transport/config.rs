//! What configuration says of the sockets.

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;

use crate::telemetry::QueryLogConfig;

/// Bounds of TCP service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpLimits {
    /// Connections at once, 1..=1,000,000; default 4096.
    pub connections: usize,
    /// Connections at once of one client: an IPv4 address or an IPv6 /64; default 64. A /24 or /48 may have four times as many.
    pub per_client: usize,
    /// An idle connection is closed after this; default 10 s.
    pub idle: Duration,
    /// A reply that the client does not take is given up after this, and so is a query that trickles in; default 5 s.
    pub write: Duration,
}

impl Default for TcpLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            per_client: 64,
            idle: Duration::from_secs(10),
            write: Duration::from_secs(5),
        }
    }
}

/// `dns` of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Addresses to answer on, UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// UDP workers per address; 0: one per core.
    pub workers: usize,
    /// Senders whose packets and connections begin with a PROXY v2 header.
    pub proxy_protocol: Vec<IpNet>,
    /// Bounds of TCP service.
    pub tcp: TcpLimits,
    /// `queryLog`: one of how many queries is logged, and where.
    pub query_log: Option<QueryLogConfig>,
}
