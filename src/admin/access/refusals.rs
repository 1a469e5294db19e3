//! Refused attempts to change something, for the audit log: bounded, so that nobody fills it.

use std::time::Duration;

use tokio::time::Instant;

/// Refused attempts recorded within [`WINDOW`]; the others are counted.
const RECORDED: u32 = 60;
/// How long they count.
const WINDOW: Duration = Duration::from_secs(60);

/// How many were refused lately.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    begun: Option<Instant>,
    count: u32,
    unrecorded: u64,
}

impl Refusals {
    /// Tells whether to record one more; with how many were not recorded since the last.
    pub(super) fn note(&mut self, now: Instant) -> Option<u64> {
        if self.begun.is_none_or(|begun| now >= begun + WINDOW) {
            self.begun = Some(now);
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        if self.count > RECORDED {
            self.unrecorded += 1;
            return None;
        }
        Some(std::mem::take(&mut self.unrecorded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sixty_a_minute_and_the_rest_is_counted() {
        let (mut refusals, begun) = (Refusals::default(), Instant::now());
        for _ in 0..RECORDED {
            assert_eq!(refusals.note(begun), Some(0));
        }
        assert_eq!((refusals.note(begun), refusals.note(begun)), (None, None));
        assert_eq!(refusals.note(begun + WINDOW), Some(2));
        assert_eq!(refusals.note(begun + WINDOW), Some(0));
    }
}
