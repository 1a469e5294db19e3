//! Member clusters: who is followed and how, and what comes of it.
//!
//! Every member has a client, a heartbeat, a discovery, a watch for each kind that its server has, and a world that takes what
//! the watches see. What comes out are changes of shards and a status. A member that is not seen keeps what it had: nothing here
//! empties anything but the end of a list that a server was asked for and gave.

mod backoff;
mod bearer;
mod client;
mod clock;
mod connection;
mod course;
mod discovery;
mod fault;
mod heartbeat;
mod kinds;
mod known;
mod kubeconfig;
mod member;
mod notice;
mod owner;
mod pages;
mod pem;
mod plugin;
mod raw;
mod roster;
mod secrets;
mod server;
mod sink;
mod status;
#[cfg(test)]
mod tests;
mod trust;
mod watch;
mod wording;
mod writer;

pub(in crate::source::kubernetes) use connection::{Connection, Endpoint, Verb};
pub(in crate::source::kubernetes) use fault::{Fault, FaultKind};
pub use pages::read_list;
pub use roster::{Members, MembersHandle, Update};
pub use secrets::SecretsHandle;
pub use status::{KindState, KindStatus, Link, MemberStatus};
