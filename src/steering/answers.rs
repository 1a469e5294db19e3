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
use crate::model::{Endpoint, PoolRef, Pools};

/// The most addresses of one answer: [`crate::model::PolicySpec::max_answers`] gives no more.
const MAX_ANSWERS: usize = 32;
/// An odd number that spreads the counter: 2^32 / golden ratio.
const SPREAD: u32 = 0x9e37_79b9;

impl Policy {
    /// Iterates over the endpoints that a decision names, of the family asked for, in order of answering, rotated by `draw`,
    /// at most `answers` of them. Empty unless the decision chose endpoints.
    #[inline]
    pub fn endpoints<'a, S: States>(
        &self,
        decision: &Decision<'_>,
        ask: &Ask<'a>,
        states: &S,
    ) -> impl ExactSizeIterator<Item = Endpoint> + use<'a, S> {
        let mut answers = Answers {
            pools: ask.service.pools,
            family: ask.family,
            positions: [0; MAX_ANSWERS],
            places: [0; MAX_ANSWERS],
            count: 0,
            next: 0,
            left: 0,
        };
        let mut picker = Picker {
            service: ask.service,
            sender: *ask.client.sender,
            family: ask.family,
            states,
            level: decision.reason.level,
            most: self.answers,
            answers: &mut answers,
        };
        match decision.chosen {
            Chosen::Cluster { rank, .. } => picker.add_cluster(rank),
            Chosen::Everything { level } => {
                // The same walk as the decision's, over the same states: it finds the same group.
                let mut walk = Walk::new(self, ask, states).narrow(decision.within);
                if let Some(found) = walk.at(level) {
                    let is_in = |slot: &&Slot| {
                        let within = decision.within.as_ref();
                        within.is_none_or(|within| within.contains(slot.rank))
                    };
                    for slot in found.group.iter().filter(is_in) {
                        if found.with_idle || picker.is_busy(self, slot.rank) {
                            picker.add_cluster(slot.rank);
                        }
                    }
                }
            }
            _ => {}
        }
        answers.rotate(ask.client.draw, self.draws());
        answers
    }
}

// === Picking ===

/// Picks endpoints into [`Answers`].
struct Picker<'w, 'a, S> {
    service: ServiceView<'a>,
    sender: IpAddr,
    family: Family,
    states: &'w S,
    /// Those of this level or better.
    level: Level,
    /// At most so many.
    most: usize,
    answers: &'w mut Answers<'a>,
}

impl<S: States> Picker<'_, '_, S> {
    /// Tells whether a cluster has something that is not of weight 0.
    fn is_busy(&self, policy: &Policy, rank: u8) -> bool {
        !policy.is_idle(rank) && self.has_busy_pool(rank)
    }

    /// Tells whether a pool with a weight has something.
    fn has_busy_pool(&self, rank: u8) -> bool {
        let reach = Reach::Question(self.family);
        let scan = self.service.scan(self.sender, rank, reach, self.states);
        scan.busy.has(self.family, self.level)
    }

    /// Picks what a cluster has, in the order written.
    #[inline]
    fn add_cluster(&mut self, rank: u8) {
        let of_cluster = || self.service.pools.of(usize::from(rank));
        let has_idle = of_cluster().any(|pool| pool.weight().0 == 0);
        let without_idle = has_idle && self.has_busy_pool(rank);
        for pool in self.service.pools.of(usize::from(rank)) {
            let is_left_out = without_idle && pool.weight().0 == 0;
            if !is_left_out && self.service.may_have(&pool, self.sender) {
                match self.family {
                    Family::V4 => self.add_pool(&pool, pool.v4()),
                    Family::V6 => self.add_pool(&pool, pool.v6()),
                }
            }
        }
    }

    /// Picks what a pool has of one family.
    #[inline]
    fn add_pool(&mut self, pool: &PoolRef<'_>, endpoints: impl Iterator<Item = Endpoint>) {
        let bit = self.level.bit();
        // A pool has at most 255 endpoints of a family.
        for (place, endpoint) in (0..=u8::MAX).zip(endpoints) {
            if self.answers.picked() >= self.most {
                return;
            }
            if Level::bits_of(self.states.state(endpoint.state)) & bit != 0 {
                self.answers.push(pool.position(), place);
            }
        }
    }
}

// === Answering ===

/// The endpoints of one answer, by where they stand in the pools.
#[derive(Debug)]
struct Answers<'a> {
    pools: &'a Pools,
    family: Family,
    /// Of each endpoint its pool's position,
    positions: [u16; MAX_ANSWERS],
    /// and its place in that pool.
    places: [u8; MAX_ANSWERS],
    count: u8,
    /// What comes next.
    next: u8,
    /// How many are to come.
    left: u8,
}

impl Answers<'_> {
    /// Counts what was picked.
    #[inline]
    fn picked(&self) -> usize {
        usize::from(self.count)
    }

    /// Adds one; beyond the most there can be it is left out.
    #[inline]
    fn push(&mut self, position: u16, place: u8) {
        let at = self.picked();
        if let (Some(to), Some(to_place)) = (self.positions.get_mut(at), self.places.get_mut(at)) {
            (*to, *to_place) = (position, place);
            self.count += 1;
        }
    }

    /// Sets which comes first. Where the counter already drew the cluster, its turns would always come with the same rotation:
    /// it is spread first.
    #[inline]
    fn rotate(&mut self, draw: u32, is_drawn: bool) {
        self.left = self.count;
        if self.count > 1 {
            let draw = if is_drawn {
                draw.wrapping_mul(SPREAD) >> 16
            } else {
                draw
            };
            let first = draw.checked_rem(u32::from(self.count));
            self.next = first
                .and_then(|first| u8::try_from(first).ok())
                .unwrap_or(0);
        }
    }
}

impl Iterator for Answers<'_> {
    type Item = Endpoint;

    #[inline]
    fn next(&mut self) -> Option<Endpoint> {
        self.left = self.left.checked_sub(1)?;
        let at = usize::from(self.next);
        self.next = if self.next + 1 == self.count {
            0
        } else {
            self.next + 1
        };
        let pool = self.pools.at(*self.positions.get(at)?)?;
        let place = usize::from(*self.places.get(at)?);
        match self.family {
            Family::V4 => pool.v4_at(place),
            Family::V6 => pool.v6_at(place),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.left);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Answers<'_> {}
