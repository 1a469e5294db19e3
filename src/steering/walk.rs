//! The walk down a class's order, at one level of the last resorts, until something is usable.
//!
//! All tiers are walked; in a tier first what has a weight, then what has weight 0 (no answers while another can be used); in
//! each of these passes the groups in order.
//!
//! Families (DESIGN section 4.4): an A question goes to the first cluster with a usable IPv4 address. An AAAA question goes to
//! the first cluster with any usable address, and is NODATA when that is IPv4 only: the client's A names it. Where clusters are
//! drawn per query, the group stands for the cluster.

use super::classes::Slot;
use super::decision::Level;
use super::policy::{Ask, Family, Policy, States};
use super::selector::RankSet;
use super::usable::{Offers, Reach, Scan};
use super::weight::{Wheel, score, slice_key};
use crate::model::Steer;

/// What a group gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// This cluster's endpoints, or its host name.
    Cluster { rank: u8, hostname: Option<u8> },
    /// Every cluster's endpoints.
    Everything,
    /// The other family's question has the answer.
    OtherFamily,
}

/// A group that has something, and what of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'c> {
    /// What of it.
    pub(super) pick: Pick,
    /// Its tier.
    pub(super) tier: u8,
    /// Clusters before it that had nothing usable.
    pub(super) skipped: u8,
    /// The group.
    pub(super) group: &'c [Slot],
    /// Whether endpoints of weight 0 are used, as no other of the tier can be.
    pub(super) with_idle: bool,
}

/// A walk for one question.
#[derive(Debug)]
pub(super) struct Walk<'w, 'a, S> {
    policy: &'w Policy,
    ask: &'w Ask<'a>,
    states: &'w S,
    /// Only these clusters are looked at, and none of weight 0; `None`: all.
    within: Option<RankSet>,
    /// A monitor of an endpoint that was looked at is in doubt.
    pub(super) doubt: bool,
    /// Clusters of the level that had nothing usable.
    skipped: u8,
    /// Endpoints of weight 0 would have been usable in this tier.
    idle: bool,
}

impl<'w, 'a, S: States> Walk<'w, 'a, S> {
    /// Makes a walk.
    pub(super) fn new(policy: &'w Policy, ask: &'w Ask<'a>, states: &'w S) -> Self {
        Self {
            policy,
            ask,
            states,
            within: None,
            doubt: false,
            skipped: 0,
            idle: false,
        }
    }

    /// Looks at some clusters only.
    pub(super) fn narrow(self, within: Option<RankSet>) -> Self {
        Self { within, ..self }
    }

    /// Walks all tiers at one level.
    pub(super) fn at(&mut self, level: Level) -> Option<Found<'a>> {
        self.skipped = 0;
        let slots: &'a [Slot] = &self.ask.client.class.slots;
        for tier in slots.chunk_by(|one, next| one.tier == next.tier) {
            self.idle = false;
            for with_idle in [false, true] {
                if with_idle && !self.idle {
                    break;
                }
                for group in tier.chunk_by(|one, next| one.group == next.group) {
                    if let Some(pick) = self.pick(group, level, with_idle) {
                        return Some(Found {
                            pick,
                            tier: group.first().map_or(0, |slot| slot.tier),
                            skipped: self.skipped,
                            group,
                            with_idle,
                        });
                    }
                }
            }
        }
        None
    }

    /// Reads one cluster, by the weight that counts.
    fn scan(&mut self, rank: u8) -> Scan {
        let reach = Reach::Question(self.ask.family);
        let scan = self.policy.scan(self.ask, rank, reach, self.states);
        self.doubt |= scan.doubt;
        scan
    }

    /// Reads one cluster of a group, and notes what it lacks. Gives what can be used in this pass, if anything.
    fn visit(&mut self, slot: Slot, level: Level, with_idle: bool) -> Option<(Scan, Offers)> {
        if self.is_outside(slot) {
            return None;
        }
        let scan = self.scan(slot.rank);
        let offers = scan.offers(with_idle);
        if answers(offers, self.ask.family, level) {
            return Some((scan, offers));
        }
        if !with_idle {
            // Weight 0 is for where no other of the tier can be used, and others may be outside.
            if self.within.is_none() && answers(scan.idle, self.ask.family, level) {
                self.idle = true;
            } else {
                self.skipped = self.skipped.saturating_add(1);
            }
        }
        None
    }

    /// Tells whether a cluster is none of those looked at.
    fn is_outside(&self, slot: Slot) -> bool {
        let within = self.within.as_ref();
        within.is_some_and(|within| !within.contains(slot.rank))
    }

    /// Picks of one group; `None`: it has nothing usable at this level and in this pass.
    fn pick(&mut self, group: &[Slot], level: Level, with_idle: bool) -> Option<Pick> {
        match self.policy.steer {
            Steer::Proximity => self.pick_by_slice(group, level, with_idle),
            Steer::Weighted | Steer::RoundRobin | Steer::All => {
                self.pick_by_draw(group, level, with_idle)
            }
        }
    }

    /// Picks the cluster that the client's slice belongs to among those tied: shares by weight, equal ones in the second pass.
    fn pick_by_slice(&mut self, group: &[Slot], level: Level, with_idle: bool) -> Option<Pick> {
        let slice = (group.len() > 1).then(|| slice_key(*self.ask.client.subnet));
        let mut best: Option<(f64, u8, Scan, Offers)> = None;
        for &slot in group {
            let Some((scan, offers)) = self.visit(slot, level, with_idle) else {
                continue;
            };
            let weight = if with_idle { 1 } else { scan.weight.max(1) };
            let score = slice.map_or(0.0, |slice| {
                score(slice, self.policy.site_key(slot.rank), weight)
            });
            if best.is_none_or(|(least, ..)| score < least) {
                best = Some((score, slot.rank, scan, offers));
            }
        }
        let (_, rank, scan, offers) = best?;
        let hostname = scan.hostname;
        Some(if offers.has(self.ask.family, level) {
            Pick::Cluster { rank, hostname }
        } else {
            Pick::OtherFamily
        })
    }

    /// Picks by the counter: by weight, in turn, or everything. Equal shares in the second pass.
    fn pick_by_draw(&mut self, group: &[Slot], level: Level, with_idle: bool) -> Option<Pick> {
        let by_weight = self.policy.steer == Steer::Weighted && !with_idle;
        let (mut wheel, mut count, mut any) = (Wheel::default(), 0_u32, false);
        let mut only = None;
        for &slot in group {
            let Some((scan, offers)) = self.visit(slot, level, with_idle) else {
                continue;
            };
            any = true;
            if offers.has(self.ask.family, level) {
                wheel.add(if by_weight { scan.weight.max(1) } else { 1 });
                count += 1;
                only = only.or(Some((slot.rank, scan.hostname)));
            }
        }
        let Some((rank, hostname)) = only else {
            return any.then_some(Pick::OtherFamily);
        };
        // Host names cannot stand side by side: under `all` they take turns.
        if self.policy.steer == Steer::All && hostname.is_none() {
            return Some(Pick::Everything);
        }
        if count == 1 {
            return Some(Pick::Cluster { rank, hostname });
        }
        let draw = self.ask.client.draw;
        let mut unit = if by_weight {
            wheel.unit(draw)
        } else {
            draw.checked_rem(count).unwrap_or(0)
        };
        for slot in group {
            if self.is_outside(*slot) {
                continue;
            }
            let scan = self.scan(slot.rank);
            if !scan.offers(with_idle).has(self.ask.family, level) {
                continue;
            }
            let weight = if by_weight { scan.weight.max(1) } else { 1 };
            if unit < weight {
                let hostname = scan.hostname;
                return Some(Pick::Cluster {
                    rank: slot.rank,
                    hostname,
                });
            }
            unit -= weight;
        }
        Some(Pick::Cluster { rank, hostname })
    }

    /// Tells whether any cluster that the client may have offers something by `is`, whichever family.
    pub(super) fn any(&self, is: impl Fn(Offers) -> bool) -> bool {
        self.ask.client.class.ranks().any(|rank| {
            let scan = self.policy.scan(self.ask, rank, Reach::Both, self.states);
            is(scan.offers(true))
        })
    }
}

/// Tells whether a cluster decides a question of this family: for A it needs an IPv4 address, for AAAA any.
fn answers(offers: Offers, family: Family, level: Level) -> bool {
    match family {
        Family::V4 => offers.has(Family::V4, level),
        Family::V6 => offers.has_any(level),
    }
}
