//! Orders that are ready, by the network of their target, so that nobody's many targets keep those of all others waiting.
//!
//! Who wrote the object of a target is not known here. A network stands for it: what somebody owns mostly lies side by side,
//! and what does not costs them. One network has as many places as are free, up to three quarters of them. Of the last quarter
//! a network has a part only as long as it holds no more than an eighth of all places.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::health::ProbeOrder;
use crate::model::Moment;

/// Of all places one in so many is for networks that hold few.
const KEPT: usize = 4;
/// One in so many is what such a network may hold.
const FEW: usize = 8;
/// What belongs together, as the routing between networks has it at the finest.
const NETWORK_BITS: (u8, u8) = (24, 48);

/// A place in the order of all: since when, and its number.
type Turn = (Moment, u64);

/// Orders that are ready, those longest so first.
#[derive(Debug, Default)]
pub(super) struct Groups {
    by_network: HashMap<IpNet, Group>,
    /// The first order of each network that has one ready.
    turns: BTreeSet<(Turn, IpNet)>,
    entered: u64,
    waiting: usize,
    running: usize,
}

/// Orders of one network. None is empty.
#[derive(Debug, Default)]
struct Group {
    ready: VecDeque<(Turn, ProbeOrder)>,
    running: usize,
}

impl Groups {
    /// Takes an order that is ready now.
    pub(super) fn enter(&mut self, order: ProbeOrder, now: Moment) {
        let network = network(order.target.address.ip());
        self.entered += 1;
        let turn = (now, self.entered);
        let group = self.by_network.entry(network).or_default();
        if group.ready.is_empty() {
            self.turns.insert((turn, network));
        }
        group.ready.push_back((turn, order));
        self.waiting += 1;
    }

    /// Counts the orders that are ready.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Counts those that run.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// Tells since when the first order is ready.
    pub(super) fn since(&self) -> Option<Moment> {
        self.turns.first().map(|((since, _), _)| *since)
    }

    /// Gives the next order, whoever's it is, and the moment since which it is ready.
    pub(super) fn next(&self) -> Option<(Moment, IpNet)> {
        let ((since, _), network) = self.turns.first()?;
        Some((*since, *network))
    }

    /// Gives the next order whose network may have one of `places`. Looks at no more networks than hold more than a few.
    pub(super) fn next_within(&self, places: usize) -> Option<(Moment, IpNet)> {
        if self.running >= places {
            return None;
        }
        let few = (places / FEW).max(1);
        let is_ample = self.running < places - places / KEPT;
        let may = |network: &IpNet| {
            let group = self.by_network.get(network);
            is_ample || group.is_none_or(|group| group.running < few)
        };
        let ((since, _), network) = self.turns.iter().find(|(_, network)| may(network))?;
        Some((*since, *network))
    }

    /// Takes the next order of a network out: it runs.
    pub(super) fn start(&mut self, network: IpNet) -> Option<ProbeOrder> {
        let group = self.by_network.get_mut(&network)?;
        let (turn, order) = group.ready.pop_front()?;
        self.turns.remove(&(turn, network));
        if let Some((next, _)) = group.ready.front() {
            self.turns.insert((*next, network));
        }
        group.running += 1;
        self.running += 1;
        self.waiting -= 1;
        Some(order)
    }

    /// Notes the end of a probe.
    pub(super) fn leave(&mut self, address: IpAddr) {
        let network = network(address);
        let Some(group) = self.by_network.get_mut(&network) else {
            return;
        };
        group.running = group.running.saturating_sub(1);
        self.running = self.running.saturating_sub(1);
        if group.running == 0 && group.ready.is_empty() {
            self.by_network.remove(&network);
        }
    }
}

/// Gives the network of an address.
fn network(address: IpAddr) -> IpNet {
    let (v4, v6) = NETWORK_BITS;
    match address.to_canonical() {
        IpAddr::V4(address) => Ipv4Net::new_assert(address, v4).trunc().into(),
        IpAddr::V6(address) => Ipv6Net::new_assert(address, v6).trunc().into(),
    }
}
