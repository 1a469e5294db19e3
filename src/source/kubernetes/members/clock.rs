//! The two clocks of the watches: one that never jumps, for waits and ages, and the wall clock, for what is shown.

use jiff::Timestamp;
use tokio::time::Instant;

use crate::model::{Moment, WallTime};
use crate::telemetry::wall_time;

/// Counts moments from its making.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts at zero.
    pub(super) fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// Gives the moment.
    pub(super) fn now(self) -> Moment {
        Moment(self.start.elapsed())
    }

    /// Gives the moment on both clocks.
    pub(super) fn stamp(self) -> Stamp {
        Stamp {
            at: self.now(),
            wall: wall_time(),
        }
    }
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// To reckon with.
    pub(super) at: Moment,
    /// To show.
    pub(super) wall: WallTime,
}

/// Reads the wall clock in the form of Kubernetes.
pub(super) fn timestamp() -> Timestamp {
    let millis = i64::try_from(wall_time().0).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}
