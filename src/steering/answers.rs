//! Which addresses of what was chosen are answered (DESIGN section 4.4).
//!
//! Endpoints in the order written, those that can be used at the decision's level, the first `answers` of them: the same set for
//! the same states on every node. Inside a cluster, pools of weight 0 are left out while another pool has something. Rotation
//! changes the order only.

use std::net::IpAddr;

use super::classes::Slot;
use super::decision::{Chosen, Decision, Level};
use super::policy::{Ask, Family, Policy, ServiceView, States};
use super::usable::Reach;
use super::walk::Walk;
use crate::model::{Endpoint, PoolRef};

/// An odd number that spreads the counter: 2^32 / golden ratio.
const SPREAD: u32 = 0x9e37_79b9;

/// What endpoints are chosen by. Small: it is copied with each pass over them.
#[derive(Debug)]
struct Choice<'a, S> {
    policy: &'a Policy,
    service: ServiceView<'a>,
    sender: IpAddr,
    family: Family,
    states: &'a S,
    /// Those of this level or better.
    level: Level,
    /// Of this cluster,
    one: Option<u8>,
    /// or of each of these.
    group: &'a [Slot],
    /// Of the group also clusters that only have endpoints of weight 0.
    with_idle: bool,
}

impl<S> Clone for Choice<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Choice<'_, S> {}

impl Policy {
    /// Iterates over the endpoints that a decision names, of the family asked for, in order of answering, rotated by `draw`,
    /// at most `answers` of them. Empty unless the decision chose endpoints.
    #[inline]
    pub fn endpoints<'a, S: States>(
        &'a self,
        decision: &Decision<'_>,
        ask: &Ask<'a>,
        states: &'a S,
    ) -> impl Iterator<Item = Endpoint> + use<'a, S> {
        let choice = self.choice(decision, ask, states);
        let mut pass = choice.pass();
        let mut only = pass.next();
        let count = match only {
            None => 0,
            Some(_) => 1 + pass.take(self.answers.saturating_sub(1)).count(),
        };
        let first = rotation(count, ask.client.draw, self.draws());
        let mut pass = None;
        let (mut left, mut before_wrap) = (count, count - first);
        std::iter::from_fn(move || {
            if count <= 1 {
                // One address is the common case: it was found already.
                return only.take();
            }
            left = left.checked_sub(1)?;
            if before_wrap == 0 {
                pass = None;
            }
            before_wrap = before_wrap.wrapping_sub(1);
            let begun = pass.is_some();
            let wrapped = left < first;
            let pass = pass.get_or_insert_with(|| choice.pass());
            if begun || wrapped {
                pass.next()
            } else {
                pass.nth(first)
            }
        })
    }

    /// Tells what a decision selects.
    #[inline]
    fn choice<'a, S: States>(
        &'a self,
        decision: &Decision<'_>,
        ask: &Ask<'a>,
        states: &'a S,
    ) -> Choice<'a, S> {
        let mut choice = Choice {
            policy: self,
            service: ask.service,
            sender: ask.client.sender,
            family: ask.family,
            states,
            level: decision.reason.level,
            one: None,
            group: &[],
            with_idle: true,
        };
        match decision.chosen {
            Chosen::Cluster { rank, .. } => choice.one = Some(rank),
            Chosen::Everything { level } => {
                // The same walk as the decision's, over the same states: it finds the same group.
                if let Some(found) = Walk::new(self, ask, states).at(level) {
                    choice.group = found.group;
                    choice.with_idle = found.with_idle;
                }
            }
            _ => {}
        }
        choice
    }
}

impl<'a, S: States> Choice<'a, S> {
    /// Iterates over the endpoints chosen, in the order written.
    #[inline]
    fn pass(self) -> impl Iterator<Item = Endpoint> + use<'a, S> {
        let bit = self.level.bit();
        let (mut one, mut group) = (self.one, self.group.iter());
        let mut pools = None;
        let mut without_idle = false;
        let mut pool: Option<PoolRef<'a>> = None;
        let mut at = 0;
        std::iter::from_fn(move || {
            loop {
                if let Some(current) = pool {
                    let endpoint = match self.family {
                        Family::V4 => current.v4_at(at),
                        Family::V6 => current.v6_at(at),
                    };
                    at += 1;
                    match endpoint {
                        None => pool = None,
                        Some(endpoint) => {
                            let state = self.states.state(endpoint.state);
                            if Level::bits_of(state) & bit != 0 {
                                return Some(endpoint);
                            }
                        }
                    }
                } else if let Some(next) = pools.as_mut().and_then(Iterator::next) {
                    if self.has(&next, without_idle) {
                        (pool, at) = (Some(next), 0);
                    }
                } else {
                    let rank = one.take().or_else(|| group.next().map(|slot| slot.rank))?;
                    let is_busy;
                    (without_idle, is_busy) = self.idleness(rank);
                    pools = (self.with_idle || is_busy)
                        .then(|| self.service.pools.of(usize::from(rank)));
                }
            }
        })
    }

    /// Tells whether a pool's endpoints are chosen.
    #[inline]
    fn has(&self, pool: &PoolRef<'_>, without_idle: bool) -> bool {
        (!without_idle || pool.weight().0 > 0) && self.service.may_have(pool, self.sender)
    }

    /// Tells of a cluster whether its pools of weight 0 are left out, as others have something, and whether it has endpoints that
    /// are not of weight 0 at all.
    #[inline]
    fn idleness(&self, rank: u8) -> (bool, bool) {
        let pools = self.service.pools;
        let mut weights = pools.of(usize::from(rank)).map(|pool| pool.weight().0);
        if !weights.any(|weight| weight == 0) {
            return (false, !self.policy.is_idle(rank));
        }
        let scan = self
            .service
            .scan(self.sender, rank, Reach::Question(self.family), self.states);
        let without_idle = scan.busy.has(self.family, self.level);
        (without_idle, without_idle && !self.policy.is_idle(rank))
    }
}

/// Tells which of `count` answers comes first. Where the counter already drew the cluster, its own turn would always come with
/// the same rotation: it is spread first.
#[inline]
fn rotation(count: usize, draw: u32, is_drawn: bool) -> usize {
    if count <= 1 {
        return 0;
    }
    let draw = if is_drawn {
        draw.wrapping_mul(SPREAD) >> 16
    } else {
        draw
    };
    usize::try_from(draw)
        .ok()
        .and_then(|draw| draw.checked_rem(count))
        .unwrap_or(0)
}
