//! Query in, reply out: one parser, one decision, one encoder for every transport.
//!
//! This room knows messages (RFC 1035 section 4, RFC 6891), ECS (RFC 7871) and which section holds what. It knows no socket,
//! reads no clock, takes no lock, logs nothing and allocates nothing per query. Called by `transport`, and by `admin` and
//! the commands for `explain`.

mod additional;
mod apart;
mod challenges;
mod compress;
mod draws;
mod ecs;
mod edns;
mod encode;
mod explain;
mod hosts;
mod key;
mod levels;
mod ports;
mod query;
mod reply;
mod sample;
mod sections;
mod stages;
mod steered;
#[cfg(test)]
mod tests;
mod tsig;
mod wire;
mod witness;

pub use apart::synthesized_service;
pub use challenges::has_challenge;
pub use draws::Draws;
pub use explain::{Asker, Explanation, explain, explain_offline};
pub use query::{Query, QueryError};
pub use stages::{Lookup, Outcome, Sender, Transport, answer};
pub use tsig::{BadKey, bad_key};
