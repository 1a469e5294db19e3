//! One monitor's state machine.
//!
//! ```text
//!              success                        `fall` failures in a row
//!   Unknown ------------> Up      Unknown, Up ------------------------> Down
//!
//!                         `rise` successes in a row, the last of them not before the hold-down is over
//!   Down ---------------------------------------------------------------------------------------------> Up
//! ```
//!
//! - One success is enough out of Unknown: an endpoint that was just added must not wait for `rise`. One failure is not:
//!   Unknown is answered as Up, and that takes `fall` failures to change.
//! - Results against the verdict, not enough to flip it, put it *in doubt*; one result in its favor ends the doubt.
//! - The first failure against Unknown or Up asks for the next probe at once, later ones wait for the interval.
//! - [`ProbeError::Local`] says nothing about the endpoint and changes nothing but the last result.
//! - A verdict restored from disk, or inherited from the check before, counts like an own one: it takes `rise` or `fall`.
//!
//! Hold-down. Going Down is a flap. The first flap holds nothing; each one more doubles the time that must pass before the
//! endpoint can come Up again, from 20 s to 5 min, and each 20 s that it stands Up forgets one flap. So the verdict changes at
//! most three times in any 20 s, whatever the results are (Down, Up, Down and then held), and a first recovery waits for
//! nothing. While held and succeeding it is in doubt, and a probe is due when the hold-down ends.

use std::time::Duration;

use super::observation::ProbeError;
use crate::model::{Moment, MonitorSpec, Tick, Verdict};

/// The shortest hold-down, and how long Up must stand for one flap to be forgotten. It is the window in which a flapping
/// endpoint may change an answer three times (FAULTS F4).
const STEADY: Duration = Duration::from_secs(20);

/// The longest hold-down: long enough to keep a broken endpoint out, short enough not to be mistaken for a lasting outage.
const LONGEST_HOLD: Duration = Duration::from_secs(300);

/// Flaps are counted up to here: one more than the longest hold-down needs, so that forgetting takes at most two minutes.
const MOST_FLAPS: u8 = 6;

/// Equal results in a row, `Local` ones left out. Counts stop at 255.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Run {
    #[default]
    None,
    Successes(u8),
    Failures(u8),
}

/// When the next probe should start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// An interval after the start of this one.
    Interval,
    /// Now.
    AtOnce,
    /// An interval after the start of this one, but not after this moment.
    NotAfter(Moment),
}

/// The last result, in a third of the space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Last {
    /// None yet.
    #[default]
    None,
    /// A success, and the microseconds it took: a timeout is an hour at most.
    Took(u32),
    /// A failure.
    Failed(ProbeError),
}

impl From<Last> for Option<Result<Duration, ProbeError>> {
    fn from(last: Last) -> Self {
        match last {
            Last::None => None,
            Last::Took(micros) => Some(Ok(Duration::from_micros(micros.into()))),
            Last::Failed(error) => Some(Err(error)),
        }
    }
}

/// What is thought of one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Monitor {
    verdict: Verdict,
    run: Run,
    flaps: u8,
    /// While Up: since when. While Down: it does not come Up before this.
    edge: Tick,
    succeeded: bool,
    last: Last,
}

impl Monitor {
    /// Gives the verdict.
    pub(super) fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Tells whether results went against the verdict, not enough of them to flip it.
    pub(super) fn in_doubt(&self) -> bool {
        match (self.verdict, self.run) {
            (Verdict::Up | Verdict::Unknown, Run::Failures(_))
            | (Verdict::Down, Run::Successes(_)) => true,
            (_, Run::None | Run::Successes(_) | Run::Failures(_)) => false,
        }
    }

    /// Gives the last result.
    pub(super) fn last(&self) -> Last {
        self.last
    }

    /// Gives why the last probe failed, if it did.
    pub(super) fn reason(&self) -> Option<ProbeError> {
        match self.last {
            Last::Failed(error) => Some(error),
            Last::None | Last::Took(_) => None,
        }
    }

    /// Tells whether a whole round failed and nothing ever succeeded.
    pub(super) fn never_succeeded(&self, spec: &MonitorSpec) -> bool {
        !self.succeeded && matches!(self.run, Run::Failures(count) if count >= spec.fall)
    }

    /// Takes over what was known of this very check before a restart. Does nothing once there is a verdict.
    pub(super) fn restore(&mut self, verdict: Verdict) {
        if self.verdict == Verdict::Unknown {
            self.inherit(verdict);
            self.succeeded |= verdict == Verdict::Up;
        }
    }

    /// Takes over the verdict of another check of the same address. Does nothing once there is a verdict.
    pub(super) fn inherit(&mut self, verdict: Verdict) {
        if self.verdict == Verdict::Unknown {
            self.verdict = verdict;
            self.flaps = u8::from(verdict == Verdict::Down);
        }
    }

    /// Takes one result and says when to probe again.
    pub(super) fn observe(
        &mut self,
        result: Result<Duration, ProbeError>,
        spec: &MonitorSpec,
        now: Moment,
    ) -> Next {
        self.last = match result {
            Ok(took) => Last::Took(u32::try_from(took.as_micros()).unwrap_or(u32::MAX)),
            Err(error) => Last::Failed(error),
        };
        match result {
            Ok(_) => self.succeed(spec, now),
            Err(ProbeError::Local) => Next::Interval,
            Err(_) => self.fail(spec, now),
        }
    }

    fn succeed(&mut self, spec: &MonitorSpec, now: Moment) -> Next {
        let count = match self.run {
            Run::Successes(count) => count.saturating_add(1),
            Run::None | Run::Failures(_) => 1,
        };
        self.run = Run::Successes(count);
        self.succeeded = true;
        match self.verdict {
            Verdict::Up => return Next::Interval,
            Verdict::Down if count < spec.rise => return Next::Interval,
            Verdict::Down if now < self.edge.into() => return Next::NotAfter(self.edge.into()),
            Verdict::Down | Verdict::Unknown => {}
        }
        self.verdict = Verdict::Up;
        self.edge = now.into();
        Next::Interval
    }

    fn fail(&mut self, spec: &MonitorSpec, now: Moment) -> Next {
        let count = match self.run {
            Run::Failures(count) => count.saturating_add(1),
            Run::None | Run::Successes(_) => 1,
        };
        self.run = Run::Failures(count);
        if self.verdict == Verdict::Down {
            return Next::Interval;
        }
        if count >= spec.fall {
            self.go_down(now);
            return Next::Interval;
        }
        if count == 1 {
            Next::AtOnce
        } else {
            Next::Interval
        }
    }

    fn go_down(&mut self, now: Moment) {
        if self.verdict == Verdict::Up {
            let forgotten = now.since(self.edge.into()).as_secs() / STEADY.as_secs();
            let forgotten = u8::try_from(forgotten).unwrap_or(u8::MAX);
            self.flaps = self.flaps.saturating_sub(forgotten);
        }
        self.verdict = Verdict::Down;
        self.edge = now.after(hold(self.flaps)).into();
        self.flaps = (self.flaps + 1).min(MOST_FLAPS);
    }
}

/// Gives the hold-down after so many flaps before this one.
fn hold(flaps: u8) -> Duration {
    match flaps {
        0 => Duration::ZERO,
        _ => STEADY
            .saturating_mul(1 << (flaps.min(MOST_FLAPS) - 1))
            .min(LONGEST_HOLD),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::model::{Check, Origin};

    const OK: Result<Duration, ProbeError> = Ok(Duration::from_millis(1));
    const BAD: Result<Duration, ProbeError> = Err(ProbeError::Refused);
    const LOCAL: Result<Duration, ProbeError> = Err(ProbeError::Local);

    fn spec(rise: u8, fall: u8) -> MonitorSpec {
        MonitorSpec {
            check: Check::connect(80),
            interval: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            rise,
            fall,
            origin: Origin::Operator,
        }
    }

    fn at(millis: u64) -> Moment {
        Moment(Duration::from_millis(millis))
    }

    /// Plays results a second apart and gives the monitor after the last of them.
    fn played(results: &[Result<Duration, ProbeError>], spec: &MonitorSpec) -> Monitor {
        let mut monitor = Monitor::default();
        for (second, &result) in results.iter().enumerate() {
            monitor.observe(result, spec, at(second as u64 * 1000));
        }
        monitor
    }

    /// Writes an outcome: the verdict, `?` in doubt, `!` probe at once, `@28` probe not after second 28.
    fn outcome(monitor: &Monitor, next: Next) -> String {
        let doubt = if monitor.in_doubt() { "?" } else { "" };
        let next = match next {
            Next::Interval => String::new(),
            Next::AtOnce => "!".to_owned(),
            Next::NotAfter(moment) => format!("@{}", moment.0.as_secs()),
        };
        format!("{}{doubt}{next}", monitor.verdict())
    }

    #[test]
    fn every_state_meets_every_result() {
        // Rise 3, fall 3. The way there, a result a second (s: success, f: failure, l: local); then what a success, a failure
        // and a local error make of it. The last two rows: Down at 2 s, Up at 5 s, Down at 8 s and held until 28 s.
        let table = [
            ("", ["up", "unknown?!", "unknown"]),
            ("l", ["up", "unknown?!", "unknown"]),
            ("f", ["up", "unknown?", "unknown?"]),
            ("ff", ["up", "down", "unknown?"]),
            ("s", ["up", "up?!", "up"]),
            ("sf", ["up", "up?", "up?"]),
            ("sff", ["up", "down", "up?"]),
            ("sffsf", ["up", "up?", "up?"]),
            ("fff", ["down?", "down", "down"]),
            ("fffs", ["down?", "down", "down?"]),
            ("fffss", ["up", "down", "down?"]),
            ("fffssf", ["down?", "down", "down"]),
            ("fffsls", ["up", "down", "down?"]),
            ("fffsssfffss", ["down?@28", "down", "down?"]),
            ("fffsssfffsss", ["down?@28", "down", "down?"]),
        ];
        let spec = spec(3, 3);
        for (way, outcomes) in table {
            let results: Vec<_> = way
                .chars()
                .map(|letter| match letter {
                    's' => OK,
                    'f' => BAD,
                    _ => LOCAL,
                })
                .collect();
            for (result, expected) in [OK, BAD, LOCAL].into_iter().zip(outcomes) {
                let mut monitor = played(&results, &spec);
                let next = monitor.observe(result, &spec, at(way.len() as u64 * 1000));
                assert_eq!(outcome(&monitor, next), expected, "{way}, {result:?}");
                assert_eq!(Option::from(monitor.last()), Some(result));
            }
        }
    }

    #[test]
    fn the_shortest_rise_and_fall_flip_at_once() {
        let spec = spec(1, 1);
        let mut monitor = Monitor::default();
        assert_eq!(monitor.observe(BAD, &spec, at(0)), Next::Interval);
        assert_eq!(monitor.verdict(), Verdict::Down);
        monitor.observe(OK, &spec, at(500));
        assert_eq!(
            monitor.verdict(),
            Verdict::Up,
            "a first recovery is not held"
        );
    }

    #[test]
    fn hold_down_doubles_and_is_forgotten() {
        let spec = spec(1, 1);
        let mut monitor = Monitor::default();
        let mut now = 0;
        let mut holds = Vec::new();
        for _ in 0..8 {
            monitor.observe(BAD, &spec, at(now));
            assert_eq!(monitor.verdict(), Verdict::Down);
            let since = now;
            while monitor.verdict() == Verdict::Down {
                now += 1000;
                monitor.observe(OK, &spec, at(now));
            }
            holds.push((now - since) / 1000);
            now += 1000;
        }
        assert_eq!(holds, [1, 20, 40, 80, 160, 300, 300, 300]);
        // Up for 40 s forgets two of six flaps: 160 s instead of 300.
        monitor.observe(BAD, &spec, at(now + 39_000));
        assert_eq!(Moment::from(monitor.edge), at(now + 39_000 + 160_000));
        // An hour forgets all.
        let mut monitor = Monitor {
            flaps: MOST_FLAPS,
            verdict: Verdict::Up,
            ..Monitor::default()
        };
        monitor.observe(BAD, &spec, at(3_600_000));
        assert_eq!(Moment::from(monitor.edge), at(3_600_000));
    }

    #[test]
    fn restored_verdicts_need_rise_or_fall() {
        let spec = spec(2, 2);
        let mut monitor = Monitor::default();
        monitor.restore(Verdict::Down);
        assert!(!monitor.in_doubt());
        monitor.observe(OK, &spec, at(0));
        assert_eq!(
            (monitor.verdict(), monitor.in_doubt()),
            (Verdict::Down, true)
        );
        monitor.restore(Verdict::Up);
        assert_eq!(monitor.verdict(), Verdict::Down, "own eyes win");
        monitor.observe(OK, &spec, at(1));
        assert_eq!(monitor.verdict(), Verdict::Up);

        let mut monitor = Monitor::default();
        monitor.observe(BAD, &spec, at(0));
        monitor.restore(Verdict::Up);
        assert_eq!((monitor.verdict(), monitor.in_doubt()), (Verdict::Up, true));
        monitor.observe(BAD, &spec, at(1));
        assert_eq!(monitor.verdict(), Verdict::Down);
        assert!(
            !monitor.never_succeeded(&spec),
            "it was Up before the restart"
        );
    }

    #[test]
    fn a_check_that_never_succeeded_is_told_after_its_first_round() {
        let spec = spec(2, 2);
        assert!(!played(&[], &spec).never_succeeded(&spec));
        assert!(!played(&[BAD, LOCAL], &spec).never_succeeded(&spec));
        assert!(played(&[BAD, BAD], &spec).never_succeeded(&spec));
        assert!(played(&[BAD, BAD, LOCAL, BAD], &spec).never_succeeded(&spec));
        assert!(!played(&[BAD, BAD, OK], &spec).never_succeeded(&spec));
        assert!(!played(&[OK, BAD, BAD], &spec).never_succeeded(&spec));
        let mut heir = Monitor::default();
        heir.inherit(Verdict::Up);
        heir.observe(BAD, &spec, at(0));
        heir.observe(BAD, &spec, at(1));
        assert!(
            heir.never_succeeded(&spec),
            "another check's success is not its own"
        );
    }

    /// The verdict by its definition, out of the whole history, hold-down left out.
    fn by_definition(results: &[Result<Duration, ProbeError>], rise: u8, fall: u8) -> Verdict {
        let judged: Vec<bool> = results
            .iter()
            .filter(|r| **r != LOCAL)
            .map(|r| r.is_ok())
            .collect();
        let mut verdict = Verdict::Unknown;
        for end in 1..=judged.len() {
            let tail = |count: u8, good: bool| {
                end >= usize::from(count)
                    && judged[end - usize::from(count)..end]
                        .iter()
                        .all(|ok| *ok == good)
            };
            verdict = match verdict {
                Verdict::Unknown if judged[end - 1] => Verdict::Up,
                Verdict::Down if tail(rise, true) => Verdict::Up,
                Verdict::Unknown | Verdict::Up if tail(fall, false) => Verdict::Down,
                other => other,
            };
        }
        verdict
    }

    fn results() -> impl Strategy<Value = Vec<Result<Duration, ProbeError>>> {
        let result = prop_oneof![4 => Just(OK), 4 => Just(BAD), 1 => Just(LOCAL)];
        proptest::collection::vec(result, 0..200)
    }

    proptest! {
        #[test]
        fn verdicts_are_what_their_definition_says(results in results(), rise in 1u8..5, fall in 1u8..5) {
            // Ten minutes between results: no hold-down outlasts that.
            let spec = spec(rise, fall);
            let mut monitor = Monitor::default();
            for (index, &result) in results.iter().enumerate() {
                monitor.observe(result, &spec, at(index as u64 * 600_000));
            }
            prop_assert_eq!(monitor.verdict(), by_definition(&results, rise, fall));
        }

        #[test]
        fn at_most_three_flips_in_any_twenty_seconds(
            steps in proptest::collection::vec((prop_oneof![Just(OK), Just(BAD)], 1u64..4000), 0..400),
            rise in 1u8..4,
            fall in 1u8..4,
            restored in prop_oneof![Just(Verdict::Up), Just(Verdict::Down), Just(Verdict::Unknown)],
        ) {
            let spec = spec(rise, fall);
            let mut monitor = Monitor::default();
            monitor.restore(restored);
            let mut now = 0;
            let mut flips = VecDeque::new();
            for (result, gap) in steps {
                now += gap;
                let before = monitor.verdict() == Verdict::Down;
                monitor.observe(result, &spec, at(now));
                if before != (monitor.verdict() == Verdict::Down) {
                    flips.push_back(now);
                }
                while flips.front().is_some_and(|first| now - first >= 20_000) {
                    flips.pop_front();
                }
                prop_assert!(flips.len() <= 3, "{:?}", flips);
            }
        }
    }
}
