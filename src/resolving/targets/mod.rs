//! Load balancers that are host names, such as AWS's: resolved in the background, on their TTL (DESIGN section 4.4).
//!
//! `flatten` decides what is asked when and what an answer changes, without clock and socket; `known` keeps what one family of
//! one target's addresses is; `table` is what readers get. `servers` asks and follows aliases, and is the only file that knows
//! hickory-resolver; `own` says for which names nobody is asked; `driver` has the clock and the tasks.

mod driver;
mod flatten;
mod handle;
mod known;
mod own;
mod queue;
mod servers;
mod table;

pub use driver::Targets;
pub use flatten::RememberedTarget;
pub use handle::{TargetsConfig, TargetsHandle};
pub use table::{Resolution, Table, TargetState};

#[cfg(test)]
mod tests;
