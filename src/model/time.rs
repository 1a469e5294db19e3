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

/// A [`Moment`] in half the space: whole nanoseconds since the node started, exact for 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

impl From<Moment> for Tick {
    fn from(moment: Moment) -> Self {
        Self(u64::try_from(moment.0.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Tick> for Moment {
    fn from(tick: Tick) -> Self {
        Self(Duration::from_nanos(tick.0))
    }
}
