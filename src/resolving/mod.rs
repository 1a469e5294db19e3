//! Questions that we ask of others: what a parent zone shows, what each node serves, and where load balancers are that have
//! only a host name.
//!
//! Bounded in time and size, over UDP and, when truncated, TCP. This room knows hickory's messages and resolvers and the system's
//! list of resolvers. The commands ask one question at a time; [`Targets`] is a task that keeps what it is told to resolved.

mod ask;
mod check;
mod delegation;
mod targets;

pub use ask::{AskError, Asked, Question, ask, system_resolver};
pub use check::{Checked, CheckedServer, check_delegation};
pub use delegation::{Delegation, find_addresses, find_delegation};
pub use targets::{
    RememberedTarget, Resolution, Table, TargetState, Targets, TargetsConfig, TargetsHandle,
};

#[cfg(test)]
mod tests;
