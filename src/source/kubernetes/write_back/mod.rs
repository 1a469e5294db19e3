//! What is said in member clusters: Events on the objects that they concern, by one node at a time.
//!
//! Pure. [`Statement`] is what stands of an object, made elsewhere of what the node knows. [`Ledger`] knows what was said of
//! it, and what is to be said next: nothing twice, within a rate, and everything in the end. [`Election`] knows whether this node
//! is the one who writes, by a Lease. `body` has the objects as they are written. The requests are made by `members`.

mod body;
mod bucket;
mod election;
mod ledger;
mod statement;
mod tally;
#[cfg(test)]
mod tests;

pub(super) use body::{EVENTS, LEASES, event, event_name, lease, read_count, read_lease, series};
pub(super) use election::{Ask, Election, Lease};
pub(super) use ledger::{Ledger, Next};
pub use statement::{Reason, Statement, Statements};
pub use tally::WriteBackStatus;
