//! A bucket of tokens: so many at once, and one more in a while.

use std::time::Duration;

use crate::model::Moment;

/// How a bucket fills.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Tokens of a full one.
    pub(super) burst: u32,
    /// Until one more is there.
    pub(super) every: Duration,
}

/// A bucket, as the moment at which it was, or will be, full of what was taken: tokens that are missing are time ahead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    full: Moment,
}

impl Bucket {
    /// Gives the first moment from `now` on at which there is a token.
    pub(super) fn ready(self, rate: Rate, now: Moment) -> Moment {
        let most = rate.every * rate.burst.saturating_sub(1);
        now.max(Moment(self.full.0.saturating_sub(most)))
    }

    /// Takes a token.
    pub(super) fn take(&mut self, rate: Rate, now: Moment) {
        self.full = self.full.max(now).after(rate.every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_one_in_a_while() {
        let rate = Rate {
            burst: 3,
            every: Duration::from_secs(10),
        };
        let at = |second| Moment(Duration::from_secs(second));
        let mut bucket = Bucket::default();
        for (now, ready) in [
            (100, 100),
            (100, 100),
            (100, 100),
            (100, 110),
            (110, 120),
            (500, 500),
            (500, 500),
            (500, 500),
            (500, 510),
        ] {
            let moment = bucket.ready(rate, at(now));
            assert_eq!(moment, at(ready), "{now}");
            bucket.take(rate, moment);
        }
    }
}
