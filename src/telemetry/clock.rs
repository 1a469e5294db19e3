//! The wall clock, for what outlives a process: records, events, the audit log.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::model::WallTime;

/// Reads the wall clock. It may jump: only what is written down or shown may depend on it.
#[must_use]
pub fn wall_time() -> WallTime {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place of the shell that reads the wall clock"
    )]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
