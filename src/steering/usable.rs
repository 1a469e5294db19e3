//! What of a cluster can be used, and the last resorts (DESIGN section 4.3).
//!
//! The levels, best first: Up and undrained; Up but drained; then `fallback`; then all not forced down, as if Up; then forced
//! down. Below the policy's `panic` the first is another: everything undrained and not forced down, whatever its health.

use std::net::IpAddr;

use super::decision::Level;
use super::policy::{Ask, Family, ServiceView, States};
use crate::model::{EndpointState, PoolRef};

impl Level {
    /// Every bit: what an endpoint that is Up and undrained offers.
    const ALL: u8 = 31;

    /// Gives its bit in [`Offers`].
    pub(super) const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Gives the levels at which an endpoint can be used, as bits.
    #[inline]
    pub(super) fn bits_of(state: EndpointState) -> u8 {
        if state == EndpointState::UP {
            return Self::ALL;
        }
        let mut bits = Self::ForcedDown.bit();
        let drained = state.is_drained();
        if state.is_up() {
            bits |= Self::Drained.bit();
            if !drained {
                bits |= Self::Up.bit();
            }
        }
        if !state.is_forced_down() {
            bits |= Self::AsIfUp.bit();
            if !drained {
                bits |= Self::Panic.bit();
            }
        }
        bits
    }
}

/// At which levels a cluster has an endpoint, by family: bits of [`Level`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offers {
    v4: u8,
    v6: u8,
}

impl Offers {
    /// Tells whether it has an endpoint of this family at this level.
    #[inline]
    pub(super) fn has(self, family: Family, level: Level) -> bool {
        let bits = match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        };
        bits & level.bit() != 0
    }

    /// Tells whether it has an endpoint of any family at this level.
    #[inline]
    pub(super) fn has_any(self, level: Level) -> bool {
        (self.v4 | self.v6) & level.bit() != 0
    }

    /// Adds what others offer.
    fn join(self, other: Self) -> Self {
        Self {
            v4: self.v4 | other.v4,
            v6: self.v6 | other.v6,
        }
    }
}

/// Which families a scan reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// What a question needs: for A the IPv4 endpoints, for AAAA both, as the other family may be the answer.
    Question(Family),
    /// Both.
    Both,
}

/// What a client can be given of one cluster. Endpoints with `clients` count for senders in them only.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    /// What pools with a weight above 0 offer.
    pub(super) busy: Offers,
    /// What pools of weight 0 offer: used when no other endpoint can be.
    pub(super) idle: Offers,
    /// The pools' weights, added up.
    pub(super) weight: u32,
    /// The first host name: of a pool with a weight, if there is one.
    pub(super) hostname: Option<u8>,
    /// A monitor of an endpoint that was read is in doubt.
    pub(super) doubt: bool,
}

impl Scan {
    /// Gives what can be used: of pools with a weight, or of all.
    #[inline]
    pub(super) fn offers(&self, with_idle: bool) -> Offers {
        if with_idle {
            self.busy.join(self.idle)
        } else {
            self.busy
        }
    }

    /// Takes the weight that the policy lists in place of the pools' own.
    pub(super) fn reweigh(&mut self, weight: u16) {
        self.weight = u32::from(weight);
        if weight == 0 {
            self.idle = self.offers(true);
            self.busy = Offers::default();
        }
    }

    /// Adds one pool.
    #[inline]
    fn add<S: States>(&mut self, pool: &PoolRef<'_>, reach: Reach, states: &S) {
        let mut offers = Offers::default();
        if let Some(hostname) = pool.hostname() {
            let first_busy = pool.weight().0 > 0 && !self.busy.has_any(Level::Up);
            if self.hostname.is_none() || first_busy {
                self.hostname = u8::try_from(hostname).ok();
            }
            // It stands for both families. Nobody judges it, but an operator may drain it.
            let state = pool.host_state().map(|index| states.state(index));
            let state = state.unwrap_or(EndpointState::UP);
            let bits = Level::bits_of(state);
            offers = Offers { v4: bits, v6: bits };
            self.doubt |= state.is_brief();
        }
        for endpoint in pool.v4() {
            let state = states.state(endpoint.state);
            offers.v4 |= Level::bits_of(state);
            self.doubt |= state.is_brief();
        }
        if reach != Reach::Question(Family::V4) {
            for endpoint in pool.v6() {
                let state = states.state(endpoint.state);
                offers.v6 |= Level::bits_of(state);
                self.doubt |= state.is_brief();
            }
        }
        let weight = pool.weight().0;
        self.weight = self.weight.saturating_add(u32::from(weight));
        if weight > 0 {
            self.busy = self.busy.join(offers);
        } else {
            self.idle = self.idle.join(offers);
        }
    }
}

impl ServiceView<'_> {
    /// Tells whether a sender may be given a pool: `clients` are prefixes of senders, by packet source, never by ECS.
    #[inline]
    pub(super) fn may_have(&self, pool: &PoolRef<'_>, sender: IpAddr) -> bool {
        pool.clients().is_none_or(|at| {
            let set = self.client_sets.get(at);
            set.is_some_and(|set| set.iter().any(|net| net.contains(&sender)))
        })
    }

    /// Reads one cluster.
    #[inline]
    pub(super) fn scan<S: States>(
        &self,
        sender: IpAddr,
        rank: u8,
        reach: Reach,
        states: &S,
    ) -> Scan {
        let mut scan = Scan::default();
        for pool in self.pools.of(usize::from(rank)) {
            if self.may_have(&pool, sender) {
                scan.add(&pool, reach, states);
            }
        }
        scan
    }
}

/// Tells whether the usable share of the undrained endpoints that a client may have is below `threshold`. Host names count as
/// nothing, as nobody judges them.
pub(super) fn in_panic<S: States>(
    ask: &Ask<'_>,
    ranks: impl Iterator<Item = u8>,
    threshold: f64,
    states: &S,
) -> bool {
    let (mut undrained, mut usable) = (0_u32, 0_u32);
    for pool in ranks.flat_map(|rank| ask.service.pools.of(usize::from(rank))) {
        if !ask.service.may_have(&pool, *ask.client.sender) {
            continue;
        }
        for endpoint in pool.v4().chain(pool.v6()) {
            let state = states.state(endpoint.state);
            undrained += u32::from(!state.is_drained());
            usable += u32::from(state.is_usable());
        }
    }
    undrained > 0 && f64::from(usable) < f64::from(undrained) * threshold
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Forced, Verdict};

    #[test]
    fn every_state_is_at_its_levels() {
        use Level::{AsIfUp, Drained, ForcedDown, Panic, Up};
        let up = EndpointState::UP;
        let down = up.with_verdict(Verdict::Down);
        for (state, levels) in [
            (up, &[Up, Drained, Panic, AsIfUp, ForcedDown][..]),
            (
                up.with_doubt(true),
                &[Up, Drained, Panic, AsIfUp, ForcedDown],
            ),
            (up.with_drained(true), &[Drained, AsIfUp, ForcedDown]),
            (down, &[Panic, AsIfUp, ForcedDown]),
            (down.with_drained(true), &[AsIfUp, ForcedDown]),
            (
                down.with_forced(Forced::Up),
                &[Up, Drained, Panic, AsIfUp, ForcedDown],
            ),
            (up.with_forced(Forced::Down), &[ForcedDown]),
            (
                up.with_forced(Forced::Down).with_drained(true),
                &[ForcedDown],
            ),
        ] {
            let expected = levels.iter().fold(0, |bits, level| bits | level.bit());
            assert_eq!(Level::bits_of(state), expected, "{state:?}");
        }
        assert_eq!(Level::ALL, Level::bits_of(up.with_doubt(true)));
    }
}
