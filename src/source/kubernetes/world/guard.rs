//! The guard against mass deletion: most of a cluster's objects gone at once is more often a fault than a wish.
//!
//! What counts as *at once* is a sliding window of the length `wait`. Counted together are the removals that are asked for now,
//! those that are held, and those that were let go within the window by nobody's leave and have not come back. They are
//! compared with the shards that were served before any of them: those served now (the ones that are held or asked for
//! are still among them) and those let go within the window. At `at_least` of them and `share` of the shards it is a mass:
//! what is asked for now is held, each removal until it has been gone for `wait`. With 12 shards, `at_least` 10 and `share` 0.5
//! nine single deletions pass within five minutes, the other three are held.
//!
//! A held removal ends when its object comes back (in whatever shape), or when its time is over. What the guard let go at the
//! end of its time was waited for: it counts no more, so that a wish, once granted, does not hold up the next one.
//!
//! The clock may be set. A moment that lies ahead counts as now: a hold is never longer than `wait`, whatever the clock does.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::inventory::ObjectRef;
use crate::source::kubernetes::MassDeletion;

/// Removals that are held, and those that were not.
#[derive(Debug, Default)]
pub(super) struct Guard {
    /// Object -> since when it is held.
    held: BTreeMap<ObjectRef, Timestamp>,
    /// Object -> when it was let go, within the window.
    passed: BTreeMap<ObjectRef, Timestamp>,
}

impl Guard {
    /// Judges removals. `served` counts the shards served now, those of `gone` and the held ones included. Gives the ones
    /// that are let go now.
    pub(super) fn judge(
        &mut self,
        gone: BTreeSet<ObjectRef>,
        served: usize,
        rules: &MassDeletion,
        now: Timestamp,
    ) -> BTreeSet<ObjectRef> {
        let is_over = |since: &mut Timestamp| {
            *since = (*since).min(now);
            end(*since, rules) <= now
        };
        self.passed.retain(|_, at| !is_over(at));
        let over = self
            .held
            .extract_if(.., |_, since| !rules.hold || is_over(since));
        let mut free: BTreeSet<ObjectRef> = over.map(|(object, _)| object).collect();
        let asked: Vec<ObjectRef> = gone
            .into_iter()
            .filter(|object| !self.held.contains_key(object) && !free.contains(object))
            .collect();
        if asked.is_empty() {
            return free;
        }
        let count = asked.len() + self.held.len() + self.passed.len();
        let before = served.saturating_sub(free.len()) + self.passed.len();
        let is_mass =
            rules.hold && count >= rules.at_least && count as f64 >= rules.share * before as f64;
        if is_mass {
            self.held
                .extend(asked.into_iter().map(|object| (object, now)));
        } else {
            if rules.hold {
                let passed = asked.iter().map(|object| (object.clone(), now));
                self.passed.extend(passed);
            }
            free.extend(asked);
        }
        free
    }

    /// Takes that an object is there: nothing of it is to be removed.
    pub(super) fn welcome(&mut self, object: &ObjectRef) {
        self.held.remove(object);
        self.passed.remove(object);
    }

    /// Gives the next moment at which a removal is let go.
    pub(super) fn due(&self, rules: &MassDeletion) -> Option<Timestamp> {
        self.held.values().min().map(|since| end(*since, rules))
    }

    /// Gives since when removals are held, until when at the latest, and how many; `None`: none.
    pub(super) fn held(&self, rules: &MassDeletion) -> Option<(Timestamp, Timestamp, usize)> {
        let since = *self.held.values().min()?;
        let last = *self.held.values().max()?;
        Some((since, end(last, rules), self.held.len()))
    }
}

/// Gives the moment at which `wait` is over.
pub(super) fn end(since: Timestamp, rules: &MassDeletion) -> Timestamp {
    since.checked_add(rules.wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::inventory::ObjectKind;

    fn object(number: usize) -> ObjectRef {
        ObjectRef {
            kind: ObjectKind::Service,
            namespace: "shop".into(),
            name: format!("s{number:03}").into(),
        }
    }

    fn objects(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<ObjectRef> {
        numbers.into_iter().map(object).collect()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    /// Shards that are served, and their guard.
    struct Shards {
        guard: Guard,
        served: BTreeSet<ObjectRef>,
        rules: MassDeletion,
    }

    impl Shards {
        fn new(count: usize) -> Self {
            Self {
                guard: Guard::default(),
                served: objects(0..count),
                rules: MassDeletion::default(),
            }
        }

        /// Asks for removals, and says how many shards are left.
        fn lose(&mut self, numbers: impl IntoIterator<Item = usize>, second: i64) -> usize {
            let gone = objects(numbers);
            let served = self.served.len();
            for object in self.guard.judge(gone, served, &self.rules, at(second)) {
                assert!(self.served.remove(&object), "{object} was removed twice");
            }
            self.served.len()
        }

        fn regain(&mut self, numbers: impl IntoIterator<Item = usize>) {
            for object in objects(numbers) {
                self.guard.welcome(&object);
                self.served.insert(object);
            }
        }
    }

    #[test]
    fn a_mass_needs_number_and_share() {
        for (count, gone, left) in [
            (12, 12, 12),
            (12, 10, 12),
            (12, 9, 3),
            (9, 9, 0),
            (20, 10, 20),
            (21, 10, 11),
            (1_000, 499, 501),
            (1_000, 500, 1_000),
            (1_000, 0, 1_000),
        ] {
            let mut shards = Shards::new(count);
            assert_eq!(shards.lose(0..gone, 0), left, "{gone} of {count}");
        }
    }

    #[test]
    fn a_mass_one_by_one_is_a_mass() {
        let mut shards = Shards::new(12);
        for number in 0..12_usize {
            let left = shards.lose([number], i64::try_from(number).unwrap());
            assert_eq!(left, if number < 9 { 11 - number } else { 3 });
        }
        // The three have been gone for `wait` one after the other.
        for (second, left) in [(308, 3), (309, 2), (310, 1), (311, 0)] {
            assert_eq!(shards.lose([], second), left, "at {second}");
        }
        assert_eq!(shards.guard.due(&shards.rules), None);
    }

    #[test]
    fn what_went_long_ago_counts_no_more() {
        let mut shards = Shards::new(30);
        assert_eq!(shards.lose(0..9, 0), 21);
        // In the window these make 15 of 30; past it 6 of 21.
        assert_eq!(shards.lose(9..15, 299), 21);
        let mut shards = Shards::new(30);
        assert_eq!(shards.lose(0..9, 0), 21);
        assert_eq!(shards.lose(9..15, 300), 15);
    }

    #[test]
    fn what_comes_back_leaves_the_hold() {
        let mut shards = Shards::new(12);
        assert_eq!(shards.lose(0..12, 0), 12);
        shards.regain(0..8);
        // Four stay held until their time is over, and a single one passes meanwhile.
        assert_eq!(shards.lose([0], 100), 11);
        assert_eq!(shards.lose([], 299), 11);
        assert_eq!(shards.guard.due(&shards.rules), Some(at(300)));
        assert_eq!(shards.lose([], 300), 7);
    }

    #[test]
    fn what_comes_back_and_goes_again_begins_anew() {
        let mut shards = Shards::new(12);
        assert_eq!(shards.lose(0..12, 0), 12);
        shards.regain(0..12);
        assert_eq!(shards.lose(0..12, 200), 12);
        assert_eq!(shards.lose([], 499), 12);
        assert_eq!(shards.lose([], 500), 0);
    }

    #[test]
    fn what_passed_and_came_back_counts_no_more() {
        let mut shards = Shards::new(12);
        assert_eq!(shards.lose(0..9, 0), 3);
        shards.regain(0..9);
        assert_eq!(shards.lose(0..9, 1), 3);
    }

    #[test]
    fn a_wish_granted_does_not_hold_up_the_next_one() {
        let mut shards = Shards::new(14);
        assert_eq!(shards.lose(0..10, 0), 14);
        assert_eq!(shards.lose([10], 300), 3);
        assert_eq!(shards.lose([11], 301), 2);
    }

    #[test]
    fn asking_twice_is_asking_once() {
        let mut shards = Shards::new(12);
        assert_eq!(shards.lose(0..12, 0), 12);
        assert_eq!(shards.lose(0..12, 100), 12);
        assert_eq!(shards.guard.held(&shards.rules), Some((at(0), at(300), 12)));
        // Also when the time is over in that moment.
        assert_eq!(shards.lose(0..12, 300), 0);
    }

    #[test]
    fn without_the_guard_everything_goes() {
        let mut shards = Shards::new(12);
        assert_eq!(shards.lose(0..12, 0), 12);
        shards.rules.hold = false;
        assert_eq!(shards.lose([], 1), 0);
        let mut shards = Shards::new(12);
        shards.rules.hold = false;
        assert_eq!(shards.lose(0..12, 0), 0);
    }

    #[test]
    fn a_clock_that_goes_back_holds_nothing_for_ever() {
        let year = 366 * 86_400;
        let mut shards = Shards::new(12);
        assert_eq!(shards.lose(0..12, year), 12);
        assert_eq!(shards.lose([], 0), 12);
        assert_eq!(shards.guard.due(&shards.rules), Some(at(300)));
        assert_eq!(shards.lose([], 300), 0);
        // The same for those that passed.
        let mut shards = Shards::new(30);
        assert_eq!(shards.lose(0..9, year), 21);
        assert_eq!(shards.lose([], 0), 21);
        assert_eq!(shards.lose(9..15, 300), 15);
    }

    #[test]
    fn no_wait_is_no_hold() {
        let mut shards = Shards::new(12);
        shards.rules.wait = Duration::ZERO;
        assert_eq!(shards.lose(0..12, 0), 12);
        assert_eq!(shards.guard.due(&shards.rules), Some(at(0)));
        assert_eq!(shards.lose([], 0), 0);
        shards.rules.wait = Duration::MAX;
        shards.regain(0..12);
        assert_eq!(shards.lose(0..12, 0), 12);
        assert_eq!(shards.guard.due(&shards.rules), Some(Timestamp::MAX));
    }
}
