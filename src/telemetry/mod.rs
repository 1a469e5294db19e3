//! What the outside may count and read: the log set-up and the counters of workers.

mod clock;
mod counters;
mod logs;
mod outlet;

pub use clock::wall_time;
pub use counters::{CLUSTERS, Count, Counters, RESORT_CELLS};
pub use logs::{LogFilter, LogFormat, flush_log, set_up, tell};
pub use outlet::lost_log_lines;
