//! Federated services: one name over what many clusters offer.

mod rules;
mod shard;

pub use rules::{FederationRules, Grant, NameForm, PrivateAddresses, ZoneRules};
pub use shard::{
    Backing, ClusterFacts, NameKeys, ObjectKind, ObjectRef, Readiness, Refused, Shard, ShardChange,
};
