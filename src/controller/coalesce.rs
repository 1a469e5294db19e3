//! When to publish: the first change at once, then at most one publish per 5 ms.

use std::time::Duration;

use crate::model::Moment;

/// Shortest time between two publishes: far below what a client notices, and enough to take a burst of flips at once.
const PAUSE: Duration = Duration::from_millis(5);

/// Remembers the last publish.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Coalesce {
    last: Option<Moment>,
}

impl Coalesce {
    /// Tells how long to wait before the next publish; zero: at once.
    pub(super) fn wait(self, now: Moment) -> Duration {
        self.last
            .map_or(Duration::ZERO, |last| PAUSE.saturating_sub(now.since(last)))
    }

    /// Notes a publish.
    pub(super) fn published(&mut self, now: Moment) {
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_goes_at_once_and_the_next_waits() {
        let mut coalesce = Coalesce::default();
        let at = |ms| Moment(Duration::from_millis(ms));
        assert_eq!(coalesce.wait(at(0)), Duration::ZERO);
        coalesce.published(at(10));
        for (now, wait) in [(10, 5), (12, 3), (15, 0), (500, 0)] {
            assert_eq!(coalesce.wait(at(now)), Duration::from_millis(wait), "{now}");
        }
    }
}
