//! What operators and machines read over HTTP: livez, readyz and metrics.
//!
//! The dashboard and the API come to live here. This room reads the controller's status, the monitors' reports and the
//! workers' counters at each scrape; it changes nothing. Called by `app`.

mod api;
mod config;
mod crowd;
mod history;
mod metrics;
mod server;
mod view;

pub use api::dto;
pub use config::Config;
pub use history::{ClusterStep, History, HistoryView, Now, Step};
pub use server::{Bound, Events, SourceFile, SourceKind, Sources, Streams};
pub use view::{
    Actor, EventQuery, ExplainQuery, MonitorQuery, Paging, ServiceQuery, View, ViewError,
};
