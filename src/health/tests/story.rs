//! Any operations in any order: what follows from flips is what the fleet's own table says.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use proptest::prelude::*;

use super::{BAD, OK, target};
use crate::health::{Fleet, Flip, MonitorId, Observation, ProbeError, Refusal};
use crate::model::{EndpointIndex, Moment, Target, Verdict};

/// What a list of operations does to the fleet.
#[derive(Clone, Debug)]
enum Operation {
    Change(Vec<(u32, u32)>, Vec<u32>),
    Restore(u32, bool),
    Wait(u64),
    Due(usize),
    /// The result of one of the probes out.
    Observe(usize, Option<bool>),
    /// One of the probes out may not be.
    Refuse(usize, Refusal),
    Hurry,
}

fn operation() -> impl Strategy<Value = Operation> {
    let number = || prop_oneof![0u32..6, (0u32..6).prop_map(|n| n | (1 << 16))];
    let watch = proptest::collection::vec((0u32..12, number()), 0..4);
    let unwatch = proptest::collection::vec(0u32..12, 0..3);
    prop_oneof![
        2 => (watch, unwatch).prop_map(|(watch, unwatch)| Operation::Change(watch, unwatch)),
        1 => (number(), any::<bool>()).prop_map(|(t, up)| Operation::Restore(t, up)),
        3 => (0u64..3000).prop_map(Operation::Wait),
        4 => (0usize..8).prop_map(Operation::Due),
        8 => (any::<usize>(), proptest::option::weighted(0.9, any::<bool>()))
            .prop_map(|(which, good)| Operation::Observe(which, good)),
        2 => (any::<usize>(), prop_oneof![Just(Refusal::Own), Just(Refusal::Private)])
            .prop_map(|(which, why)| Operation::Refuse(which, why)),
        1 => Just(Operation::Hurry),
    ]
}

/// What the controller would believe from flips alone, and what the prober has out.
#[derive(Default)]
struct Model {
    now: Moment,
    target_of: BTreeMap<EndpointIndex, Target>,
    believed: BTreeMap<EndpointIndex, (Verdict, bool, Option<Refusal>)>,
    out: Vec<MonitorId>,
}

impl Model {
    fn take(&mut self, flips: impl IntoIterator<Item = Flip>) {
        for flip in flips {
            assert!(!flip.endpoints.is_empty());
            for endpoint in flip.endpoints {
                assert!(
                    self.target_of.contains_key(&endpoint),
                    "flip of {endpoint}, not watched"
                );
                let held = self.believed.entry(endpoint).or_default();
                assert_eq!(held.0, flip.before, "endpoint {endpoint}");
                let now = (flip.verdict, flip.in_doubt, flip.refused);
                assert_ne!(*held, now, "no change of {endpoint}");
                *held = now;
            }
        }
    }

    fn play(&mut self, fleet: &mut Fleet, operation: Operation) {
        match operation {
            Operation::Change(watch, unwatch) => {
                let unwatch: Vec<EndpointIndex> = unwatch.into_iter().map(EndpointIndex).collect();
                for endpoint in &unwatch {
                    self.target_of.remove(endpoint);
                    self.believed.remove(endpoint);
                }
                let watch: Vec<_> = watch
                    .into_iter()
                    .map(|(e, t)| (EndpointIndex(e), target(t)))
                    .collect();
                self.target_of.extend(watch.iter().cloned());
                let flips = fleet.change(watch, &unwatch, self.now);
                self.take(flips);
            }
            Operation::Restore(number, up) => {
                let verdict = if up { Verdict::Up } else { Verdict::Down };
                let flips = fleet.restore(&[(target(number), verdict)]);
                self.take(flips);
            }
            Operation::Wait(millis) => self.now = self.now.after(Duration::from_millis(millis)),
            Operation::Due(limit) => {
                let orders = fleet.due(self.now, limit);
                assert!(orders.len() <= limit);
                for order in orders {
                    assert!(!self.out.contains(&order.monitor), "a probe is out already");
                    assert!(
                        self.target_of
                            .values()
                            .any(|target| *target == order.target)
                    );
                    self.out.push(order.monitor);
                }
            }
            Operation::Observe(which, good) => {
                if self.out.is_empty() {
                    return;
                }
                let monitor = self.out.swap_remove(which % self.out.len());
                let result = match good {
                    Some(true) => OK,
                    Some(false) => BAD,
                    None => Err(ProbeError::Local),
                };
                let was_refused = fleet
                    .report(monitor)
                    .is_some_and(|report| report.refused.is_some());
                let flip = fleet.observe(Observation { monitor, result }, self.now);
                assert!(
                    good.is_some() || flip.is_none() || was_refused,
                    "local errors say nothing"
                );
                self.take(flip);
            }
            Operation::Refuse(which, why) => {
                if self.out.is_empty() {
                    return;
                }
                let monitor = self.out.swap_remove(which % self.out.len());
                let flip = fleet.refuse(monitor, why, self.now);
                self.take(flip);
            }
            Operation::Hurry => fleet.hurry(self.now, |_, refused| refused.is_some()),
        }
    }

    /// Compares the fleet's own table with what followed from flips.
    fn check(&self, fleet: &Fleet) {
        let targets: HashSet<&Target> = self.target_of.values().collect();
        let mut by_target = HashMap::new();
        let table = fleet.table();
        for report in table.iter() {
            let twice = by_target.insert(report.target.clone(), report);
            assert!(twice.is_none(), "two monitors of one target");
        }
        assert_eq!(by_target.keys().collect::<HashSet<_>>(), targets);
        for (target, report) in &by_target {
            let speaks_for: Vec<_> = self
                .target_of
                .iter()
                .filter(|(_, t)| *t == target)
                .map(|(e, _)| e)
                .collect();
            assert_eq!(report.endpoints, speaks_for.len());
            for endpoint in speaks_for {
                let believed = self.believed.get(endpoint).copied().unwrap_or_default();
                assert_eq!(
                    believed,
                    (report.verdict, report.in_doubt, report.refused),
                    "endpoint {endpoint}"
                );
                assert!(report.refused.is_none() || report.verdict == Verdict::Unknown);
            }
        }
    }
}

proptest! {
    #[test]
    fn flips_tell_the_whole_story(operations in proptest::collection::vec(operation(), 0..120), seed: u64) {
        let mut fleet = Fleet::new(seed);
        let mut model = Model::default();
        for operation in operations {
            model.play(&mut fleet, operation);
            model.check(&fleet);
        }
        // Nobody is forgotten: past every interval, each monitor is out or due.
        let later = model.now.after(Duration::from_secs(3600));
        let due = fleet.due(later, usize::MAX).into_iter().map(|order| order.monitor);
        let busy: BTreeSet<MonitorId> = due.chain(model.out).collect();
        prop_assert!(busy.len() >= fleet.table().len());
        prop_assert_eq!(fleet.next_due(), None);
    }
}
