//! What is said of a drain, and when it is safe to stop.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{OperatorTarget, RecordId};

/// Shortest margin after the last TTL ran out.
const MIN_MARGIN: Duration = Duration::from_secs(5);

/// What one node says of one drain that began there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainWord {
    /// Which.
    pub id: RecordId,
    /// Every worker answers by it.
    pub in_force: bool,
    /// Services for which it is the last resort.
    pub held: u64,
    /// The first of them.
    pub held_services: Vec<String>,
    /// How long ago it was given out last, at most; `None` while it is not in force.
    pub last_given: Option<Duration>,
    /// The highest TTL that such an answer may have had, seconds.
    pub ttl: u32,
}

impl DrainWord {
    /// Gives the time until the last answer has left every cache; `None` while that cannot be said.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let since = self
            .last_given
            .filter(|_| self.in_force && self.held == 0)?;
        Some(safe_after(self.ttl).saturating_sub(since))
    }
}

/// Gives how long after the last answer with a TTL it is safe to stop: the TTL and a tenth of it, at least 5 s (DESIGN section
/// 4.7).
#[must_use]
pub fn safe_after(ttl: u32) -> Duration {
    let ttl = Duration::from_secs(ttl.into());
    ttl + (ttl / 10).max(MIN_MARGIN)
}

/// Tells how far the drains are on this node.
#[derive(Clone)]
pub struct OwnWords(pub Arc<dyn Fn() -> Vec<DrainWord> + Send + Sync>);

impl std::fmt::Debug for OwnWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnWords")
    }
}

/// Tells whether this node answers with a challenge.
#[derive(Clone)]
pub struct Serves(pub Arc<dyn Fn(&OperatorTarget) -> bool + Send + Sync>);

impl Default for Serves {
    /// Answers with none.
    fn default() -> Self {
        Self(Arc::new(|_| false))
    }
}

impl std::fmt::Debug for Serves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Serves")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_is_the_ttl_and_a_margin_after_the_last_answer() {
        assert_eq!(safe_after(30), Duration::from_secs(35));
        assert_eq!(safe_after(300), Duration::from_secs(330));
        let mut word = DrainWord {
            id: "a".parse().unwrap(),
            in_force: true,
            held: 0,
            held_services: Vec::new(),
            last_given: Some(Duration::from_secs(10)),
            ttl: 30,
        };
        assert_eq!(word.remaining(), Some(Duration::from_secs(25)));
        word.last_given = Some(Duration::from_secs(50));
        assert_eq!(word.remaining(), Some(Duration::ZERO));
        word.held = 1;
        assert_eq!(word.remaining(), None);
        word.held = 0;
        word.in_force = false;
        assert_eq!(word.remaining(), None);
    }
}
