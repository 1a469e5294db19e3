//! What operators and machines ask over HTTP: the dashboard's listeners, who may do what there, and who did what.
//!
//! `routes` says which path leads where, and `access` who may go there. This room reads the controller's status, the monitors'
//! reports and the workers' counters when asked. Called by `app`.

mod access;
mod api;
mod audit;
mod config;
mod connection;
mod crowd;
mod dashboard;
mod deadline;
pub mod dto;
mod exchange;
mod history;
mod identity;
mod login;
mod metrics;
mod problem;
mod routes;
mod sampler;
mod senders;
mod server;
mod sources;
mod tls;
mod view;

pub use access::{Access, FreshToken};
pub use audit::Audit;
pub use config::{AccessConfig, Anonymous, Config, OidcConfig, TlsFiles, TokenFile};
pub use history::{ClusterStep, History, HistoryView, Now, Step};
pub use identity::Role;
pub use senders::{Senders, SendersView, Translated};
pub use server::Bound;
pub use sources::{
    AgedCluster, ClusterExit, ClusterExits, Events, JoinedCluster, LeavingCluster, SourceFile,
    SourceKind, Sources, Streams, TargetCounts,
};
pub use view::{
    Actor, EventQuery, ExplainQuery, MonitorQuery, Paging, ServiceQuery, View, ViewError,
    note_fetched,
};

use crate::model::Rejection;

/// Lists what is wrong with the files that a configuration names: certificate, key and tokens.
#[must_use]
pub fn refused_files(config: &Config) -> Vec<Rejection> {
    let tls = config.tls.as_ref().and_then(tls::refused);
    tls.into_iter()
        .chain(access::refused(&config.access))
        .collect()
}
