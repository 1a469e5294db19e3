//! What operators and machines read over HTTP: livez, readyz and metrics.
//!
//! The dashboard and the API come to live here. This room reads the controller's status, the monitors' reports and the
//! workers' counters at each scrape; it changes nothing. Called by `app`.

mod access;
mod api;
mod config;
mod crowd;
mod dashboard;
mod metrics;
mod problem;
mod server;
mod view;

pub use access::Role;
pub use api::dto;
pub use config::Config;
pub use server::{Bound, Events, Sources, Streams};
pub use view::{
    Actor, EventQuery, ExplainQuery, MonitorQuery, Paging, ServiceQuery, View, ViewError,
};
