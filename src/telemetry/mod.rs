//! What the outside may count and read: the log set-up and the counters of workers.

mod counters;
mod logs;

pub use counters::{CLUSTERS, Count, Counters};
pub use logs::{LogFilter, LogFormat, lost_log_lines, set_up};
