//! Time as the core sees it: passed in, never read.

use std::time::Duration;

/// A moment on the monotonic clock: the time since the node started. The core compares moments; only shells make them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub Duration);

impl Moment {
    /// Gives the moment `delay` later, at most the end of time.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(delay))
    }

    /// Gives the time since an earlier moment; zero when that lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
