//! The walk down a class's order until something is usable: where the steps of DESIGN section 4 meet.
//!
//! On each rung of the last resorts all tiers are walked; in a tier first what has a weight, then what has weight 0; in each of
//! these passes the groups in order. `Walk::at` is one rung of it; `Policy::walk` climbs down the rungs.
//!
//! Families (DESIGN section 4.4): an A question goes to the first cluster with a usable IPv4 address. An AAAA question goes to
//! the first cluster with any usable address, and is NODATA when that is IPv4 only: the client's A names it. Where clusters are
//! drawn per query, the group stands for the cluster.

use super::classes::Slot;
use super::decision::{Chosen, Decision, Level, Reason};
use super::policy::{Ask, Family, Policy, States};
use super::usable::{Offers, Reach, Rung, Scan, in_panic, may_have};
use super::weight::{Wheel, score, slice_key, slice_scope};
use crate::model::{FallbackSpec, PrefixLen, Steer};

/// What a group gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
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
    pick: Pick,
    tier: u8,
    skipped: u8,
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
    /// A monitor of an endpoint that was looked at is in doubt.
    doubt: bool,
    /// Clusters of the rung that had nothing usable.
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
            doubt: false,
            skipped: 0,
            idle: false,
        }
    }

    /// Walks all tiers on one rung.
    pub(super) fn at(&mut self, rung: Rung) -> Option<Found<'a>> {
        self.skipped = 0;
        let slots: &'a [Slot] = &self.ask.client.class.slots;
        for tier in slots.chunk_by(|one, next| one.tier == next.tier) {
            self.idle = false;
            for with_idle in [false, true] {
                if with_idle && !self.idle {
                    break;
                }
                for group in tier.chunk_by(|one, next| one.group == next.group) {
                    if let Some(pick) = self.pick(group, rung, with_idle) {
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
    fn visit(&mut self, slot: Slot, rung: Rung, with_idle: bool) -> Option<(Scan, Offers)> {
        let scan = self.scan(slot.rank);
        let offers = scan.offers(with_idle);
        if answers(offers, self.ask.family, rung) {
            return Some((scan, offers));
        }
        if !with_idle {
            if answers(scan.idle, self.ask.family, rung) {
                self.idle = true;
            } else {
                self.skipped = self.skipped.saturating_add(1);
            }
        }
        None
    }

    /// Picks of one group; `None`: it has nothing usable on this rung and pass.
    fn pick(&mut self, group: &[Slot], rung: Rung, with_idle: bool) -> Option<Pick> {
        match self.policy.steer {
            Steer::Proximity => self.pick_by_slice(group, rung, with_idle),
            Steer::Weighted | Steer::RoundRobin | Steer::All => {
                self.pick_by_draw(group, rung, with_idle)
            }
        }
    }

    /// Picks the cluster that the client's slice belongs to among those tied: shares by weight, equal ones in the second pass.
    fn pick_by_slice(&mut self, group: &[Slot], rung: Rung, with_idle: bool) -> Option<Pick> {
        let slice = (group.len() > 1).then(|| slice_key(self.ask.client.subnet));
        let mut best: Option<(f64, u8, Scan, Offers)> = None;
        for &slot in group {
            let Some((scan, offers)) = self.visit(slot, rung, with_idle) else {
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
        Some(if offers.has(self.ask.family, rung) {
            Pick::Cluster { rank, hostname }
        } else {
            Pick::OtherFamily
        })
    }

    /// Picks by the counter: by weight, in turn, or everything. Equal shares in the second pass.
    fn pick_by_draw(&mut self, group: &[Slot], rung: Rung, with_idle: bool) -> Option<Pick> {
        let by_weight = self.policy.steer == Steer::Weighted && !with_idle;
        let (mut wheel, mut count, mut any) = (Wheel::default(), 0_u32, false);
        let mut only = None;
        for &slot in group {
            let Some((scan, offers)) = self.visit(slot, rung, with_idle) else {
                continue;
            };
            any = true;
            if offers.has(self.ask.family, rung) {
                wheel.add(if by_weight { scan.weight.max(1) } else { 1 });
                count += 1;
                only = only.or(Some((slot.rank, scan.hostname)));
            }
        }
        let Some((rank, hostname)) = only else {
            return any.then_some(Pick::OtherFamily);
        };
        // A CNAME has one target: under `all` the first host name stands for all.
        if self.policy.steer == Steer::All && hostname.is_none() {
            return Some(Pick::Everything);
        }
        if count == 1 || self.policy.steer == Steer::All {
            return Some(Pick::Cluster { rank, hostname });
        }
        let draw = self.ask.client.draw;
        let mut unit = if by_weight {
            wheel.unit(draw)
        } else {
            draw.checked_rem(count).unwrap_or(0)
        };
        for slot in group {
            let scan = self.scan(slot.rank);
            if !scan.offers(with_idle).has(self.ask.family, rung) {
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
    fn any(&self, is: impl Fn(Offers) -> bool) -> bool {
        self.ask.client.class.ranks().any(|rank| {
            let scan = self.policy.scan(self.ask, rank, Reach::Both, self.states);
            is(scan.offers(true))
        })
    }
}

/// Tells whether a cluster decides a question of this family: for A it needs an IPv4 address, for AAAA any.
fn answers(offers: Offers, family: Family, rung: Rung) -> bool {
    match family {
        Family::V4 => offers.has(Family::V4, rung),
        Family::V6 => offers.has_any(rung),
    }
}

impl Policy {
    /// Decides the common case: by proximity, the first cluster alone at its distance, usable, of the family asked for.
    #[inline]
    pub(super) fn nearest<S: States>(&self, ask: &Ask<'_>, states: &S) -> Option<Decision<'_>> {
        let class = ask.client.class;
        let first = class.slots.first()?;
        let alone = class
            .slots
            .get(1)
            .is_none_or(|next| next.group != first.group);
        if self.steer != Steer::Proximity || !alone || self.panic > 0.0 {
            return None;
        }
        let scan = self.scan(ask, first.rank, Reach::Question(ask.family), states);
        if !scan.busy.has(ask.family, Rung::Up) {
            return None;
        }
        let level = Level::Up;
        Some(Decision {
            chosen: scan.hostname.map_or(
                Chosen::Cluster {
                    rank: first.rank,
                    level,
                },
                Chosen::Hostname,
            ),
            scope: self.scope(ask),
            brief: scan.doubt,
            reason: Reason {
                basis: class.basis,
                level,
                tier: first.tier,
                skipped: 0,
                panic: false,
            },
        })
    }

    /// Decides every case.
    pub(super) fn walk<S: States>(&self, ask: &Ask<'_>, states: &S) -> Decision<'_> {
        let class = ask.client.class;
        if class.is_denied() && !self.sites.is_empty() {
            return self.without_endpoints(ask, self.refusal(), Level::Up, false);
        }
        let mut walk = Walk::new(self, ask, states);
        let panic = self.panic > 0.0 && in_panic(ask, class.ranks(), self.panic, states);
        let rungs: &[Rung] = if panic {
            &[Rung::Panic, Rung::Up, Rung::Drained]
        } else {
            &[Rung::Up, Rung::Drained]
        };
        for &rung in rungs {
            if let Some(found) = walk.at(rung) {
                return self.found(ask, &found, rung, walk.doubt);
            }
        }
        if let Some(fallback) = &self.fallback
            && !walk.any(|offers| offers.has_any(Rung::Drained))
        {
            let chosen = Chosen::Fallback(fallback);
            return self.without_endpoints(ask, chosen, Level::Drained, walk.doubt);
        }
        for rung in [Rung::AsIfUp, Rung::ForcedDown] {
            if let Some(found) = walk.at(rung) {
                return self.found(ask, &found, rung, walk.doubt);
            }
        }
        let chosen = if walk.any(|offers| offers.has_any(Rung::ForcedDown)) {
            Chosen::OtherFamily
        } else if self.is_kept_out(ask) {
            self.refusal()
        } else {
            Chosen::Nothing
        };
        self.without_endpoints(ask, chosen, Level::ForcedDown, walk.doubt)
    }

    /// Reads one cluster, by the weight that counts: the policy's, where it lists any.
    #[inline]
    pub(super) fn scan<S: States>(
        &self,
        ask: &Ask<'_>,
        rank: u8,
        reach: Reach,
        states: &S,
    ) -> Scan {
        let mut scan = Scan::of(ask, rank, reach, states);
        if self.listed_weights
            && let Some(site) = self.sites.get(usize::from(rank))
            && let Some(weight) = site.weight
        {
            scan.reweigh(weight);
        }
        scan
    }

    /// Gives a cluster's hash, for ties.
    fn site_key(&self, rank: u8) -> u64 {
        self.sites.get(usize::from(rank)).map_or(0, |site| site.key)
    }

    /// Makes the decision of a group that has something.
    fn found(&self, ask: &Ask<'_>, found: &Found<'_>, rung: Rung, brief: bool) -> Decision<'_> {
        let level = rung.level();
        let chosen = match found.pick {
            Pick::Cluster {
                hostname: Some(hostname),
                ..
            } => Chosen::Hostname(hostname),
            Pick::Cluster {
                rank,
                hostname: None,
            } => Chosen::Cluster { rank, level },
            Pick::Everything => Chosen::Everything { level },
            Pick::OtherFamily => Chosen::OtherFamily,
        };
        let scope = if found.pick == Pick::OtherFamily {
            self.scope_of_negative(ask)
        } else {
            self.scope(ask)
        };
        Decision {
            chosen,
            scope,
            brief,
            reason: Reason {
                basis: ask.client.class.basis,
                level,
                tier: found.tier,
                skipped: found.skipped,
                panic: rung == Rung::Panic,
            },
        }
    }

    /// Makes the decision of a client that gets no endpoint.
    fn without_endpoints<'p>(
        &self,
        ask: &Ask<'_>,
        chosen: Chosen<'p>,
        level: Level,
        brief: bool,
    ) -> Decision<'p> {
        let class = ask.client.class;
        Decision {
            chosen,
            scope: self.scope_of_negative(ask),
            brief,
            reason: Reason {
                basis: class.basis,
                level,
                tier: class.slots.last().map_or(0, |slot| slot.tier),
                skipped: u8::try_from(class.slots.len()).unwrap_or(u8::MAX),
                panic: false,
            },
        }
    }

    /// Gives what a refused client gets.
    fn refusal(&self) -> Chosen<'_> {
        self.fence_answer
            .as_ref()
            .map_or(Chosen::Denied, |answer: &FallbackSpec| {
                Chosen::FenceAnswer(answer)
            })
    }

    /// Tells whether the fence keeps the client from endpoints that it could have otherwise.
    fn is_kept_out(&self, ask: &Ask<'_>) -> bool {
        let class = ask.client.class;
        (0..=u8::MAX)
            .zip(&self.sites)
            .map(|(rank, _)| rank)
            .filter(|rank| class.ranks().all(|allowed| allowed != *rank))
            .flat_map(|rank| ask.service.pools.of(usize::from(rank)))
            .any(|pool| {
                let has = pool.hostname().is_some() || pool.v4_count() + pool.v6_count() > 0;
                has && may_have(&pool, ask)
            })
    }

    /// Gives the scope: of the class; at least a slice where the class has a tie; 0 where the policy ignores the client.
    #[inline]
    fn scope(&self, ask: &Ask<'_>) -> PrefixLen {
        let client = &ask.client;
        if !self.reads_client() {
            PrefixLen(0)
        } else if client.class.sliced {
            client.scope.max(slice_scope(client.subnet))
        } else {
            client.scope
        }
    }

    /// Gives the scope of a decision that may be the same for all clients: 0 when no fence tells them apart and the service has
    /// no address of this family and no host name at all (RFC 7871 section 7.4). Never depends on health.
    fn scope_of_negative(&self, ask: &Ask<'_>) -> PrefixLen {
        let has = ask.service.pools.iter().any(|pool| {
            let addresses = match ask.family {
                Family::V4 => pool.v4_count(),
                Family::V6 => pool.v6_count(),
            };
            addresses > 0 || pool.hostname().is_some()
        });
        if has || !self.fences.is_empty() {
            self.scope(ask)
        } else {
            PrefixLen(0)
        }
    }
}
