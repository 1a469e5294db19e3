//! Which endpoints answer, judged from observations.
//!
//! This room knows state machines: rise, fall, doubt, when the next probe is due. It opens no socket and reads no clock:
//! the prober calls with `now` and does what the returned orders say.

mod fleet;
mod monitor;

pub use fleet::{Fleet, Flip, MonitorId, MonitorReport, Observation, ProbeError, ProbeOrder};
