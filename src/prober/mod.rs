//! Runs the probes that the fleet asks for and hands back what was observed.
//!
//! This room knows sockets, TLS, HTTP and the clock. What a result means for a verdict is `health`'s. The controller tells it
//! what to watch and takes its flips; `admin` reads its reports. Targets of the configuration file are the operator's and
//! trusted. Those of Kubernetes objects are a tenant's: the guard refuses what leads to this node, to a cloud's metadata or into
//! somebody's own network, unless [`Config::allow`] names it. A refused target is Unknown and reported, never probed.

mod config;
mod connect;
mod driver;
mod groups;
mod guard;
mod handle;
mod http;
mod lanes;
mod probe;
mod tcp;
mod tls;

#[cfg(test)]
mod tests;

pub use config::Config;
pub use driver::Prober;
pub use handle::ProberHandle;
