//! What configuration says of probing.

use ipnet::IpNet;

/// `probes` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Prefixes that targets of tenants may lie in. A private range opens to every prefix that holds the target; loopback,
    /// link-local and metadata addresses and the like only to one within their range, other addresses of this node only to one
    /// that names it alone. Targets of the configuration file are trusted.
    pub allow: Vec<IpNet>,
    /// Probes at once against one address, operators' and tenants' apart, 1..=1000; default 5.
    pub per_target: usize,
    /// Probes at once, 1..=65,536; default 512. Tenants' hold three quarters of them at most.
    pub concurrency: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            per_target: 5,
            concurrency: 512,
        }
    }
}
