//! Query in, reply out: one parser, one decision, one encoder for every transport.
//!
//! This room knows messages (RFC 1035 section 4, RFC 6891), ECS (RFC 7871) and which section holds what. It knows no socket,
//! reads no clock, takes no lock, logs nothing and allocates nothing per query. Called by `transport`, and by `admin` and
//! the commands for `explain`.

mod ecs;
mod encode;
mod explain;
mod query;
mod reply;
mod sections;
mod stages;

pub use explain::{Explanation, explain};
pub use query::{Query, QueryError};
pub use stages::{Draws, Lookup, Outcome, Sender, Transport, answer};
