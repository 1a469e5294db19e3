//! Who may run: at most so many probes at once, and so many against one address.
//!
//! A hung address with a thousand checks holds its own few places and nobody else's: orders beyond wait in the address's lane,
//! not in the queue of all. Orders run in the order they became ready.
//!
//! Operators do not wait for tenants: of all places a quarter is never a tenant's, however many targets hang, and an address
//! that both probe has a lane for each. Tenants do not wait for one of them either, as far as their targets lie in few networks
//! (`groups.rs`).

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use super::config::Config;
use super::groups::Groups;
use crate::health::ProbeOrder;
use crate::model::{Moment, Origin, Target};

/// Of all places one in so many is kept from tenants, rounded up, but for the only one.
const KEPT: usize = 4;

/// Orders between the fleet and the sockets. At most one per monitor is here or out, so the fleet's size bounds it.
#[derive(Debug)]
pub(super) struct Lanes {
    concurrency: usize,
    per_target: usize,
    /// Addresses with an order ready, running or waiting.
    by_address: HashMap<LaneKey, Lane>,
    sides: Sides,
}

/// Whose lane: an address, on the word of operators or of tenants.
pub(super) type LaneKey = (IpAddr, Origin);

/// Orders of operators and of tenants that hold a place of their address: they run, or wait for one of all places.
#[derive(Debug, Default)]
struct Sides {
    operators: Groups,
    tenants: Groups,
}

/// One address.
#[derive(Debug, Default)]
struct Lane {
    /// Ready or running, at most `per_target`.
    taken: usize,
    waiting: VecDeque<ProbeOrder>,
}

impl Lanes {
    /// Makes empty lanes.
    pub(super) fn new(config: &Config) -> Self {
        Self {
            concurrency: config.concurrency.max(1),
            per_target: config.per_target.max(1),
            by_address: HashMap::new(),
            sides: Sides::default(),
        }
    }

    /// Sets new limits; lower ones hold as probes end.
    pub(super) fn configure(&mut self, config: &Config, now: Moment) {
        self.concurrency = config.concurrency.max(1);
        self.per_target = config.per_target.max(1);
        for ((_, origin), lane) in &mut self.by_address {
            lane.promote(self.per_target, self.sides.of(*origin), now);
        }
    }

    /// Tells how many orders to ask the fleet for: as many of operators as could be ready and not yet run. Zero: wait for one
    /// to end. What tenants have ready does not count, or operators' orders would not be asked for.
    pub(super) fn room(&self) -> usize {
        let ready = self.sides.operators.waiting();
        self.concurrency.saturating_sub(ready)
    }

    /// Tells since when tenants wait for one of their places; `None`: they do not.
    pub(super) fn tenants_wait_since(&self) -> Option<Moment> {
        self.sides.tenants.since()
    }

    /// Takes an order in.
    pub(super) fn enter(&mut self, order: ProbeOrder, now: Moment) {
        let key = key(&order.target);
        let lane = self.by_address.entry(key).or_default();
        lane.waiting.push_back(order);
        lane.promote(self.per_target, self.sides.of(key.1), now);
    }

    /// Gives the next order to run, which must `leave` when its probe has ended.
    pub(super) fn start(&mut self) -> Option<ProbeOrder> {
        let Sides { operators, tenants } = &mut self.sides;
        if operators.running() + tenants.running() >= self.concurrency {
            return None;
        }
        let tenant = tenants.next_within(share(self.concurrency));
        match (operators.next(), tenant) {
            (Some((operator, _)), Some((tenant, network))) if tenant < operator => {
                tenants.start(network)
            }
            (None, Some((_, network))) => tenants.start(network),
            (Some((_, network)), _) => operators.start(network),
            (None, None) => None,
        }
    }

    /// Notes the end of a probe.
    pub(super) fn leave(&mut self, key: LaneKey, now: Moment) {
        let side = self.sides.of(key.1);
        side.leave(key.0);
        let Some(lane) = self.by_address.get_mut(&key) else {
            return;
        };
        lane.taken = lane.taken.saturating_sub(1);
        lane.promote(self.per_target, side, now);
        if lane.taken == 0 && lane.waiting.is_empty() {
            self.by_address.remove(&key);
        }
    }
}

impl Sides {
    fn of(&mut self, origin: Origin) -> &mut Groups {
        match origin {
            Origin::Operator => &mut self.operators,
            Origin::Tenant => &mut self.tenants,
        }
    }
}

impl Lane {
    fn promote(&mut self, per_target: usize, side: &mut Groups, now: Moment) {
        while self.taken < per_target {
            let Some(order) = self.waiting.pop_front() else {
                return;
            };
            self.taken += 1;
            side.enter(order, now);
        }
    }
}

/// Gives the lane of a target.
pub(super) fn key(target: &Target) -> LaneKey {
    (target.address.ip(), target.spec.origin)
}

/// Gives how many of all places tenants may hold.
fn share(concurrency: usize) -> usize {
    let rest = concurrency - concurrency.div_ceil(KEPT);
    rest.max(1)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::health::MonitorId;
    use crate::model::{Check, MonitorSpec};

    const NOW: Moment = Moment(Duration::ZERO);

    fn order(monitor: u32, address: u8) -> ProbeOrder {
        order_of(Origin::Operator, monitor, address)
    }

    fn order_of(origin: Origin, monitor: u32, address: u8) -> ProbeOrder {
        order_at(origin, monitor, [127, 0, 0, address])
    }

    fn order_at(origin: Origin, monitor: u32, address: [u8; 4]) -> ProbeOrder {
        let spec = MonitorSpec::new(Check::connect(80), origin);
        ProbeOrder {
            monitor: MonitorId(monitor),
            target: Target {
                address: SocketAddr::from((address, 80)),
                spec: Arc::new(spec),
            },
        }
    }

    fn limits(concurrency: usize, per_target: usize) -> Config {
        Config {
            concurrency,
            per_target,
            ..Config::default()
        }
    }

    #[test]
    fn a_hung_address_holds_only_its_own_places() {
        let mut lanes = Lanes::new(&limits(4, 2));
        for monitor in 0..100 {
            lanes.enter(order(monitor, 1), NOW);
        }
        lanes.enter(order(100, 2), NOW);
        let running: Vec<u32> = std::iter::from_fn(|| lanes.start())
            .map(|o| o.monitor.0)
            .collect();
        assert_eq!(running, [0, 1, 100]);
        assert_eq!(lanes.room(), 4, "the fleet is asked for others");
        lanes.configure(&limits(4, 5), NOW);
        assert_eq!(lanes.start().map(|order| order.monitor.0), Some(2));
        assert_eq!(lanes.start(), None);
    }

    /// Starts all that may run, and gives the numbers.
    fn run(lanes: &mut Lanes) -> Vec<u32> {
        let started = std::iter::from_fn(|| lanes.start());
        started.map(|order| order.monitor.0).collect()
    }

    #[test]
    fn tenants_leave_a_quarter_of_all_places_to_operators() {
        for (concurrency, held) in [(1, 1), (2, 1), (3, 2), (4, 3), (5, 3), (8, 6), (512, 384)] {
            let mut lanes = Lanes::new(&limits(concurrency, 1000));
            let tenant = |monitor: u32| {
                let [.., high, low] = monitor.to_be_bytes();
                order_at(Origin::Tenant, monitor, [127, high, low, 1])
            };
            for monitor in 0..1000 {
                lanes.enter(tenant(monitor), NOW);
            }
            assert_eq!(run(&mut lanes).len(), held, "{concurrency}");
            assert_eq!(lanes.room(), concurrency, "operators' orders are asked for");
            assert_eq!(lanes.tenants_wait_since(), Some(NOW));
            // Operators may hold all that is left, and all.
            for monitor in 1000..2000 {
                lanes.enter(order(monitor, 1), Moment(Duration::from_secs(1)));
            }
            assert_eq!(run(&mut lanes).len(), concurrency - held, "{concurrency}");
            for monitor in (0..).take(held) {
                lanes.leave(key(&tenant(monitor).target), NOW);
            }
            // Now it is the turn of those who waited longest.
            let next = run(&mut lanes);
            assert!(next.iter().all(|monitor| *monitor < 1000), "{next:?}");
        }
    }

    #[test]
    fn a_network_full_of_hung_targets_leaves_places_to_others() {
        let mut lanes = Lanes::new(&limits(512, 5));
        let at = |seconds| Moment(Duration::from_secs(seconds));
        let hung = |monitor: u32| {
            let [.., low] = monitor.to_be_bytes();
            order_at(Origin::Tenant, monitor, [192, 0, 2, low])
        };
        for monitor in 0..1000 {
            lanes.enter(hung(monitor), NOW);
        }
        let held = run(&mut lanes);
        assert_eq!(held.len(), 288, "three quarters of 384");
        // Another tenant's targets run at once, though the others have waited longer, up to their eighth.
        let other = |monitor: u32| order_at(Origin::Tenant, monitor, [198, 51, 100, 1]);
        for monitor in 1000..1003 {
            lanes.enter(other(monitor), at(5));
        }
        assert_eq!(run(&mut lanes), [1000, 1001, 1002]);
        assert_eq!(lanes.tenants_wait_since(), Some(NOW));
        for monitor in 2000..2100_u32 {
            let [.., low] = monitor.to_be_bytes();
            lanes.enter(order_at(Origin::Tenant, monitor, [203, 0, 113, low]), at(6));
        }
        assert_eq!(run(&mut lanes).len(), 48);
        // What ends makes room for whoever waited longest.
        for monitor in held {
            lanes.leave(key(&hung(monitor).target), at(7));
        }
        let next = run(&mut lanes);
        assert!(
            next[..100].iter().all(|monitor| *monitor < 1000),
            "{next:?}"
        );
    }

    #[test]
    fn an_address_of_both_has_a_lane_for_each() {
        let mut lanes = Lanes::new(&limits(100, 2));
        for monitor in 0..50 {
            lanes.enter(order_of(Origin::Tenant, monitor, 1), NOW);
        }
        assert_eq!(run(&mut lanes), [0, 1]);
        lanes.enter(order(50, 1), NOW);
        assert_eq!(run(&mut lanes), [50]);
        lanes.leave(key(&order(50, 1).target), NOW);
        assert_eq!(
            run(&mut lanes),
            [0_u32; 0],
            "an operator's end gives a tenant nothing"
        );
        lanes.leave(key(&order_of(Origin::Tenant, 0, 1).target), NOW);
        assert_eq!(run(&mut lanes), [2]);
    }

    #[test]
    fn orders_run_in_the_order_they_became_ready() {
        let mut lanes = Lanes::new(&limits(8, 8));
        let at = |seconds| Moment(Duration::from_secs(seconds));
        lanes.enter(order_of(Origin::Tenant, 0, 1), at(1));
        lanes.enter(order(1, 2), at(1));
        lanes.enter(order(2, 3), at(3));
        lanes.enter(order_of(Origin::Tenant, 3, 4), at(2));
        assert_eq!(run(&mut lanes), [1, 0, 3, 2]);
    }

    proptest! {
        #[test]
        fn limits_hold_and_everybody_runs(
            addresses in proptest::collection::vec((1u8..5, any::<bool>()), 0..60),
            steps in proptest::collection::vec((any::<bool>(), any::<usize>()), 0..200),
            limit in (1usize..6, 1usize..4),
        ) {
            let (concurrency, per_target) = limit;
            let mut lanes = Lanes::new(&limits(concurrency, per_target));
            let mut entering = addresses.iter().zip(0u32..).map(|((address, tenant), monitor)| {
                let origin = if *tenant { Origin::Tenant } else { Origin::Operator };
                order_of(origin, monitor, *address)
            });
            let mut running: Vec<ProbeOrder> = Vec::new();
            let mut ran = 0;
            let drain = std::iter::repeat_n((false, 0), 60);
            for (enter, which) in steps.into_iter().chain(drain) {
                if enter {
                    entering.next().into_iter().for_each(|order| lanes.enter(order, NOW));
                } else if !running.is_empty() {
                    let ended = running.swap_remove(which % running.len());
                    lanes.leave(key(&ended.target), NOW);
                    ran += 1;
                }
                running.extend(std::iter::from_fn(|| lanes.start()));
                prop_assert!(running.len() <= concurrency);
                let is_tenants = |order: &&ProbeOrder| order.target.spec.origin == Origin::Tenant;
                let tenants = running.iter().filter(is_tenants).count();
                prop_assert!(tenants <= share(concurrency));
                for order in &running {
                    let same = running.iter().filter(|o| o.target == order.target).count();
                    prop_assert!(same <= per_target);
                }
            }
            prop_assert_eq!(ran + entering.count(), addresses.len());
            prop_assert!(lanes.by_address.is_empty());
            prop_assert_eq!((lanes.sides.operators.running(), lanes.sides.tenants.running()), (0, 0));
        }
    }
}
