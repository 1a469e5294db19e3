//! Chance that can be repeated: equal seeds draw equal delays.

use std::time::Duration;

/// Draws delays (SplitMix64: small, fast, passes what is asked of jitter; nothing here guards a secret).
#[derive(Clone, Debug, Default)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// Starts a sequence.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Draws a part of `span`, evenly: from zero to just below it.
    pub fn part(&mut self, span: Duration) -> Duration {
        let share = u128::from(self.seed() >> 32);
        let nanos = (span.as_nanos() * share) >> 32;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Draws a word, which may be the seed of another sequence.
    pub fn seed(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_spread_and_repeatable() {
        let span = Duration::from_secs(1000);
        let draw = |seed| {
            let mut chance = Chance::new(seed);
            (0..1000).map(|_| chance.part(span)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!(draw(7).iter().all(|part| *part < span));
        for tenth in 0..10 {
            let tenths = draw(7)
                .iter()
                .filter(|part| part.as_secs() / 100 == tenth)
                .count();
            assert!((60..140).contains(&tenths), "{tenth}: {tenths}");
        }
        assert_eq!(Chance::new(1).part(Duration::ZERO), Duration::ZERO);
    }
}
