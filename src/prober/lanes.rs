//! Who may run: at most so many probes at once, and so many against one address.
//!
//! A hung address with a thousand checks holds its own few places and nobody else's: orders beyond wait in the address's lane,
//! not in the queue of all. Orders run in the order they became ready.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use super::config::Config;
use crate::health::ProbeOrder;

/// Orders between the fleet and the sockets. At most one per monitor is here or out, so the fleet's size bounds it.
#[derive(Debug)]
pub(super) struct Lanes {
    concurrency: usize,
    per_target: usize,
    /// Addresses with an order ready, running or waiting.
    by_address: HashMap<IpAddr, Lane>,
    /// Orders that hold a place of their address and wait for one of all.
    ready: VecDeque<ProbeOrder>,
    running: usize,
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
            ready: VecDeque::new(),
            running: 0,
        }
    }

    /// Sets new limits; lower ones hold as probes end.
    pub(super) fn configure(&mut self, config: &Config) {
        self.concurrency = config.concurrency.max(1);
        self.per_target = config.per_target.max(1);
        for lane in self.by_address.values_mut() {
            lane.promote(self.per_target, &mut self.ready);
        }
    }

    /// Tells how many orders to ask the fleet for: as many as could be ready and not yet run. Zero: wait for one to end.
    pub(super) fn room(&self) -> usize {
        self.concurrency.saturating_sub(self.ready.len())
    }

    /// Takes an order in.
    pub(super) fn enter(&mut self, order: ProbeOrder) {
        let lane = self
            .by_address
            .entry(order.target.address.ip())
            .or_default();
        lane.waiting.push_back(order);
        lane.promote(self.per_target, &mut self.ready);
    }

    /// Gives the next order to run, which must `leave` when its probe has ended.
    pub(super) fn start(&mut self) -> Option<ProbeOrder> {
        if self.running >= self.concurrency {
            return None;
        }
        let order = self.ready.pop_front()?;
        self.running += 1;
        Some(order)
    }

    /// Notes the end of a probe against an address.
    pub(super) fn leave(&mut self, address: IpAddr) {
        self.running = self.running.saturating_sub(1);
        let Some(lane) = self.by_address.get_mut(&address) else {
            return;
        };
        lane.taken = lane.taken.saturating_sub(1);
        lane.promote(self.per_target, &mut self.ready);
        if lane.taken == 0 && lane.waiting.is_empty() {
            self.by_address.remove(&address);
        }
    }
}

impl Lane {
    fn promote(&mut self, per_target: usize, ready: &mut VecDeque<ProbeOrder>) {
        while self.taken < per_target {
            let Some(order) = self.waiting.pop_front() else {
                return;
            };
            self.taken += 1;
            ready.push_back(order);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::health::MonitorId;
    use crate::model::{Check, MonitorSpec, Target, TcpCheck};

    fn order(monitor: u32, address: u8) -> ProbeOrder {
        let spec = MonitorSpec {
            check: Check::Tcp(TcpCheck {
                port: 80,
                send: Box::default(),
                expect: Box::default(),
            }),
            interval: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            rise: 2,
            fall: 2,
        };
        ProbeOrder {
            monitor: MonitorId(monitor),
            target: Target {
                address: SocketAddr::from(([127, 0, 0, address], 80)),
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
            lanes.enter(order(monitor, 1));
        }
        lanes.enter(order(100, 2));
        let running: Vec<u32> = std::iter::from_fn(|| lanes.start())
            .map(|o| o.monitor.0)
            .collect();
        assert_eq!(running, [0, 1, 100]);
        assert_eq!(lanes.room(), 4, "the fleet is asked for others");
        lanes.configure(&limits(4, 5));
        assert_eq!(lanes.start().map(|order| order.monitor.0), Some(2));
        assert_eq!(lanes.start(), None);
    }

    proptest! {
        #[test]
        fn limits_hold_and_everybody_runs(
            addresses in proptest::collection::vec(1u8..5, 0..60),
            steps in proptest::collection::vec((any::<bool>(), any::<usize>()), 0..200),
            limit in (1usize..6, 1usize..4),
        ) {
            let (concurrency, per_target) = limit;
            let mut lanes = Lanes::new(&limits(concurrency, per_target));
            let mut entering = addresses.iter().zip(0u32..).map(|(a, m)| order(m, *a));
            let mut running: Vec<ProbeOrder> = Vec::new();
            let mut ran = 0;
            let drain = std::iter::repeat_n((false, 0), 60);
            for (enter, which) in steps.into_iter().chain(drain) {
                if enter {
                    entering.next().into_iter().for_each(|order| lanes.enter(order));
                } else if !running.is_empty() {
                    let ended = running.swap_remove(which % running.len());
                    lanes.leave(ended.target.address.ip());
                    ran += 1;
                }
                running.extend(std::iter::from_fn(|| lanes.start()));
                prop_assert!(running.len() <= concurrency);
                for order in &running {
                    let same = running.iter().filter(|o| o.target == order.target).count();
                    prop_assert!(same <= per_target);
                }
            }
            prop_assert_eq!(ran + entering.count(), addresses.len());
            prop_assert!(lanes.by_address.is_empty() && lanes.running == 0);
        }
    }
}
