//! What operators and machines read over HTTP: livez, readyz and metrics.
//!
//! The dashboard and the API come to live here. This room reads the controller's status, the monitors' reports and the
//! workers' counters at each scrape; it changes nothing. Called by `app`.

mod access;
mod config;
mod crowd;
mod metrics;
mod problem;
mod server;

pub use access::Role;
pub use config::Config;
pub use server::{Bound, Events, Sources, Streams};
