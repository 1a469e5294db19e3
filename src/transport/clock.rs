//! The clocks that the shell of answering reads: twice a batch, and once a logged query.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Gives the moment.
#[inline]
pub(super) fn now() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "the shell reads the clock: how long a batch took"
    )]
    Instant::now()
}

/// Gives the Unix time in milliseconds.
pub(super) fn unix_millis() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the shell reads the clock: when a logged query came"
    )]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| u64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}
