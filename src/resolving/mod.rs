//! Questions that we ask of others: what a parent zone shows, and what each node serves.
//!
//! One exchange at a time, over UDP and, when truncated, TCP; bounded in time and size. This room knows hickory-proto's
//! messages and the system's list of resolvers; it decides nothing. Called by the commands.

mod ask;
mod check;
mod delegation;

pub use ask::{AskError, Asked, Question, ask, system_resolver};
pub use check::{Checked, CheckedServer, check_delegation};
pub use delegation::{Delegation, find_addresses, find_delegation};

#[cfg(test)]
mod tests;
