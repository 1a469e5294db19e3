//! What configuration says of the HTTP listeners.

use std::net::SocketAddr;

/// `admin.listen` and `metrics.listen`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Everything: loopback only until tokens and TLS are built.
    pub admin: Vec<SocketAddr>,
    /// livez, readyz and metrics alone.
    pub metrics: Vec<SocketAddr>,
}
