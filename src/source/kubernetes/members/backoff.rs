//! Waits that grow with every failure in a row, and are spread, so that not all come back at once.

use std::time::Duration;

use crate::model::Chance;

/// The shortest wait.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST: Duration = Duration::from_secs(30);

/// Waits that grow with every failure in a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Draws the wait after one more failure: evenly from 1 s up to a longest that doubles from 2 s to 30 s.
    pub(super) fn failed(&mut self, chance: &mut Chance) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let doubled = Duration::from_secs(1 << self.failures.min(5));
        SHORTEST + chance.part(doubled.min(LONGEST) - SHORTEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_failures_and_are_spread() {
        let draw = |seed| {
            let (mut backoff, mut chance) = (Backoff::default(), Chance::new(seed));
            (0..9)
                .map(|_| backoff.failed(&mut chance))
                .collect::<Vec<_>>()
        };
        let all: Vec<Vec<Duration>> = (0..200).map(draw).collect();
        for (nth, longest) in [2, 4, 8, 16, 30, 30, 30, 30, 30].into_iter().enumerate() {
            let nths: Vec<u64> = all
                .iter()
                .map(|waits| u64::try_from(waits[nth].as_millis()).unwrap())
                .collect();
            let (least, most) = (nths.iter().min().unwrap(), nths.iter().max().unwrap());
            let span = longest * 1000 - 1000;
            assert!(
                *least >= 1000 && *least < 1000 + span / 10,
                "{nth}: {least}"
            );
            assert!(
                *most <= longest * 1000 && *most > 1000 + span * 9 / 10,
                "{nth}: {most}"
            );
        }
    }
}
