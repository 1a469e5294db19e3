//! Which endpoints answer, judged from observations.
//!
//! This room knows state machines: rise, fall, doubt, hold-down, when the next probe is due. It opens no socket and reads no
//! clock: the prober calls with `now` and does what the returned orders say. Which targets may be probed is the prober's to
//! say.

mod fleet;
mod monitor;
mod observation;
mod spoken_for;
mod table;

#[cfg(test)]
mod tests;

pub use fleet::Fleet;
pub use observation::{
    Flip, MonitorId, MonitorReport, Observation, ProbeError, ProbeOrder, Refusal,
};
pub use table::MonitorTable;
