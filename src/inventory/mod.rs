//! What exists: clusters and services, with dense indices for the frozen tables.
//!
//! This room takes changes and says what became dirty. It knows who holds which index and which endpoint states are shared.
//! It knows no verdict, no place of a client and no packet. Called by the controller (apply) and `snapshot` (build).

mod apart;
mod change;
mod endpoints;
mod federation;
mod intern;
mod marks;
mod named;
mod observed;
mod registry;
mod service;
mod spoken;
mod tables;
#[cfg(test)]
mod tests;

pub use apart::Isolation;
pub use change::{Change, Dirty, Former};
pub use federation::{
    Backing, Claim, ClusterFacts, Federation, FederationRules, Grant, Meant, NameForm, NameKeys,
    ObjectKind, ObjectRef, Overruled, Owner, PolicyConflict, PrivateAddresses, Readiness, Refused,
    ResolvedTarget, Shard, ShardChange, ZoneRules, is_private,
};
pub use registry::ClusterRegistry;
pub use service::{
    ClientSets, Extras, Flattened, HostNames, HostsOf, NamedEndpoint, Origin, Particular,
    PortNames, Service,
};
pub use tables::Inventory;
