//! What Kubernetes objects say, as model types.
//!
//! Objects become records at the door, each kind in a file of its own: pure functions, an object in, a record and what was
//! refused out. Nothing of an object that nobody reads is kept.

pub mod annotations;
mod records;
mod rules;

pub use records::{
    Backend, Common, Event, GatewayRecord, IngressRecord, Ingresses, Key, Listener, NodeRecord,
    Parent, Port, Protocol, Record, RouteRecord, ServiceRecord, SliceRecord, Watched,
};
pub use rules::{Access, Config, MassDeletion, MemberConfig, Rules};
