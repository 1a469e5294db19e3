//! How long to wait after a socket failed, and whether to say so.

use std::time::Duration;

use tokio::time::Instant;

/// No more than one log line in this time, however often a socket fails.
const LOG_EVERY: Duration = Duration::from_secs(1);
/// Longest wait.
const LONGEST: Duration = Duration::from_secs(1);

/// Waits that double with every failure in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    first: Duration,
    next: Duration,
    logged: Option<Instant>,
}

/// What to do about one failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    /// How long to wait before the next attempt.
    pub(super) wait: Duration,
    /// Whether a log line is due.
    pub(super) log: bool,
}

impl Backoff {
    /// Starts at `first`, doubles up to one second.
    pub(super) fn new(first: Duration) -> Self {
        Self {
            first,
            next: first,
            logged: None,
        }
    }

    /// Notes a failure at `now`.
    pub(super) fn failed(&mut self, now: Instant) -> Pause {
        let log = self
            .logged
            .is_none_or(|logged| now.saturating_duration_since(logged) >= LOG_EVERY);
        if log {
            self.logged = Some(now);
        }
        let wait = self.next;
        self.next = (wait * 2).min(LONGEST);
        Pause { wait, log }
    }

    /// Notes a success: the next wait is the first again. The log stays as quiet.
    pub(super) fn succeeded(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_the_log_is_quiet() {
        let start = Instant::now();
        let mut backoff = Backoff::new(Duration::from_millis(100));
        let table: &[(u64, u64, bool)] = &[
            (0, 100, true),
            (100, 200, false),
            (300, 400, false),
            (700, 800, false),
            (1500, 1000, true),
            (2499, 1000, false),
            (2500, 1000, true),
        ];
        for &(at, wait, log) in table {
            assert_eq!(
                backoff.failed(start + Duration::from_millis(at)),
                Pause {
                    wait: Duration::from_millis(wait),
                    log
                },
                "at {at} ms"
            );
        }
        backoff.succeeded();
        let pause = backoff.failed(start + Duration::from_millis(2600));
        assert_eq!((pause.wait.as_millis(), pause.log), (100, false));
    }
}
