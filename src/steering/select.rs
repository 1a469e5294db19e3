//! The choice: fence, order, tiers, last resorts, in the fixed order of DESIGN section 4.

use super::classes::Ranked;
use super::decision::{Basis, Chosen, Decision, Level, Reason};
use super::policy::{Ask, Policy, States};
use super::usable::{Look, has_family, is_for, look};
use super::weight::{gcd, score, slice_bits, slice_hash, wheel};
use crate::model::{PrefixLen, Steer};

/// What one level gave.
struct Pick {
    chosen: Picked,
    tier: u8,
    skipped: u8,
    in_doubt: bool,
}

/// Who was picked at one level.
enum Picked {
    /// One cluster answers.
    Cluster(u8, Look),
    /// Every cluster of the tier answers.
    Everything,
    /// The other family of the first usable cluster answers.
    OtherFamily,
}

impl Policy {
    /// Decides: fence, order, tiers, last resorts, in the fixed order of DESIGN section 4. Never allocates, never fails.
    #[must_use]
    #[inline]
    pub fn select<S: States>(&self, ask: &Ask<'_>, states: &S) -> Decision<'_> {
        let class = ask.client.class;
        if class.order().is_empty() && ask.service.pools.cluster_count() > 0 {
            let chosen = self
                .fence_answer
                .as_ref()
                .map_or(Chosen::Denied, Chosen::FenceAnswer);
            return self.decide(ask, chosen, Level::Up, None);
        }
        let first = if self.panic > 0.0 && self.is_in_panic(ask, states) {
            Level::Panic
        } else {
            Level::Up
        };
        if let Some(pick) = self.pick(ask, first, states) {
            return self.decide(ask, chosen_of(&pick, first), first, Some(pick));
        }
        self.last_resort(ask, first, states)
    }

    /// Goes down the last resorts (DESIGN section 4.3).
    #[cold]
    fn last_resort<S: States>(&self, ask: &Ask<'_>, first: Level, states: &S) -> Decision<'_> {
        for level in [Level::Drained, Level::AsIfUp, Level::ForcedDown] {
            if level == Level::AsIfUp
                && first == Level::Up
                && let Some(fallback) = &self.fallback
                && ask.service.pools.cluster_count() > 0
            {
                return self.decide(ask, Chosen::Fallback(fallback), level, None);
            }
            if let Some(pick) = self.pick(ask, level, states) {
                return self.decide(ask, chosen_of(&pick, level), level, Some(pick));
            }
        }
        self.decide(ask, Chosen::Nothing, Level::ForcedDown, None)
    }

    /// Words a decision, with its scope.
    fn decide<'p>(
        &'p self,
        ask: &Ask<'_>,
        chosen: Chosen<'p>,
        level: Level,
        pick: Option<Pick>,
    ) -> Decision<'p> {
        let class = ask.client.class;
        let nobody_has_it =
            matches!(chosen, Chosen::OtherFamily | Chosen::Nothing) && !has_family(ask);
        let scope = if !self.reads_client() || nobody_has_it {
            PrefixLen(0)
        } else if class.has_ties() && self.steer == Steer::Proximity {
            // Whether a tie is reached depends on health, which must not change the scope: it is narrow always.
            PrefixLen(
                ask.client
                    .scope
                    .0
                    .max(slice_bits(ask.client.subnet.address)),
            )
        } else {
            ask.client.scope
        };
        let (tier, skipped, brief) = pick.map_or((0, 0, false), |pick| {
            (pick.tier, pick.skipped, pick.in_doubt)
        });
        let basis = if self.members.len() <= 1 {
            Basis::Fixed
        } else {
            class.basis()
        };
        Decision {
            chosen,
            scope,
            brief,
            reason: Reason {
                basis,
                level,
                tier,
                skipped,
                panic: level == Level::Panic,
            },
        }
    }

    /// Picks at one level; `None` when nothing is usable at it.
    #[inline]
    fn pick<S: States>(&self, ask: &Ask<'_>, level: Level, states: &S) -> Option<Pick> {
        match self.steer {
            Steer::Proximity => self.pick_nearest(ask, level, states),
            Steer::Weighted | Steer::RoundRobin | Steer::All => {
                self.pick_from_tier(ask, level, states)
            }
        }
    }

    /// Goes down the order: the first cluster with anything usable decides (DESIGN section 4.4 for the families).
    #[inline]
    fn pick_nearest<S: States>(&self, ask: &Ask<'_>, level: Level, states: &S) -> Option<Pick> {
        let mut rest = ask.client.class.order();
        let mut walk = Walk {
            level,
            skipped: 0,
            in_doubt: false,
        };
        while let Some(first) = rest.first() {
            let end = rest
                .iter()
                .position(|ranked| ranked.tie != first.tie)
                .unwrap_or(rest.len());
            let (tied, others) = rest.split_at_checked(end)?;
            let found = if let [only] = tied {
                walk.step(ask, *only, states)
            } else {
                self.pick_tied(ask, tied, &mut walk, states)
            };
            if found.is_some() {
                return found;
            }
            rest = others;
        }
        None
    }

    /// Tries tied clusters in the order that the client's slice draws them by weight.
    fn pick_tied<S: States>(
        &self,
        ask: &Ask<'_>,
        tied: &[Ranked],
        walk: &mut Walk,
        states: &S,
    ) -> Option<Pick> {
        let slice = slice_hash(ask.client.subnet.address);
        let score_of = |ranked: &Ranked| {
            let member = self
                .members
                .get(usize::from(ranked.rank))
                .map_or(0, |member| member.hash);
            score(slice, member, self.weight(ask, ranked.rank))
        };
        let mut below = f64::INFINITY;
        for _ in tied {
            let scored = tied
                .iter()
                .map(|ranked| (score_of(ranked), *ranked))
                .filter(|(score, _)| *score < below);
            let (score, best) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
            if let Some(pick) = walk.step(ask, best, states) {
                return Some(pick);
            }
            below = score;
        }
        None
    }

    /// Finds the first tier with anything usable and draws from it.
    fn pick_from_tier<S: States>(&self, ask: &Ask<'_>, level: Level, states: &S) -> Option<Pick> {
        let mut rest = ask.client.class.order();
        let mut skipped = 0_u8;
        let mut in_doubt = false;
        let mut other_family = None;
        while let Some(first) = rest.first() {
            let end = rest
                .iter()
                .position(|ranked| ranked.tier != first.tier)
                .unwrap_or(rest.len());
            let (tier, others) = rest.split_at_checked(end)?;
            let (mut usable, mut elsewhere) = (0_u32, false);
            for ranked in tier {
                let look = look(ask, ranked.rank, level, states);
                in_doubt |= look.in_doubt;
                usable += u32::from(look.answers());
                elsewhere |= look.other;
                skipped = skipped.saturating_add(u8::from(!look.any()));
            }
            if usable > 0 {
                let chosen = self.draw(ask, tier, usable, level, states)?;
                return Some(Pick {
                    chosen,
                    tier: first.tier,
                    skipped,
                    in_doubt,
                });
            }
            if elsewhere && other_family.is_none() {
                other_family = Some(Pick {
                    chosen: Picked::OtherFamily,
                    tier: first.tier,
                    skipped,
                    in_doubt,
                });
            }
            rest = others;
        }
        other_family
    }

    /// Draws one of the `usable` clusters of a tier.
    fn draw<S: States>(
        &self,
        ask: &Ask<'_>,
        tier: &[Ranked],
        usable: u32,
        level: Level,
        states: &S,
    ) -> Option<Picked> {
        let draw = ask.client.draw;
        let looks = || {
            tier.iter()
                .map(|ranked| (ranked.rank, look(ask, ranked.rank, level, states)))
        };
        let mut able = looks().filter(|(_, look)| look.answers());
        match self.steer {
            Steer::Proximity => None,
            // Host names cannot stand side by side: one is answered, in turn.
            Steer::All if looks().all(|(_, look)| look.hostname.is_none()) => {
                Some(Picked::Everything)
            }
            Steer::All | Steer::RoundRobin => able
                .nth((draw % usable.max(1)) as usize)
                .map(|(rank, look)| Picked::Cluster(rank, look)),
            Steer::Weighted => {
                let weights = || {
                    looks()
                        .filter(|(_, look)| look.answers())
                        .map(|(rank, _)| self.weight(ask, rank))
                };
                let divisor = weights().fold(0, |divisor, weight| gcd(divisor, u64::from(weight)));
                // All weights 0: equal shares.
                let share = |weight: u32| u64::from(weight).checked_div(divisor).unwrap_or(1);
                let total: u64 = weights().map(share).sum();
                let mut place = wheel(draw, total.max(1));
                able.find_map(|(rank, look)| {
                    let share = share(self.weight(ask, rank));
                    if place < share {
                        return Some(Picked::Cluster(rank, look));
                    }
                    place -= share;
                    None
                })
            }
        }
    }

    /// Gives a cluster's weight: the policy's, else the sum of its pools'.
    fn weight(&self, ask: &Ask<'_>, rank: u8) -> u32 {
        if let Some(weights) = &self.weights {
            return weights
                .get(usize::from(rank))
                .map_or(0, |weight| u32::from(weight.0));
        }
        let pools = ask
            .service
            .pools
            .of(usize::from(rank))
            .filter(|pool| is_for(pool, ask));
        pools
            .map(|pool| u32::from(pool.weight().0))
            .sum::<u32>()
            .min(0xff_ffff)
    }

    /// Tells whether less than the policy's share of the undrained endpoints that this client may have is usable.
    #[cold]
    fn is_in_panic<S: States>(&self, ask: &Ask<'_>, states: &S) -> bool {
        let (mut usable, mut undrained) = (0_u32, 0_u32);
        for ranked in ask.client.class.order() {
            for pool in ask
                .service
                .pools
                .of(usize::from(ranked.rank))
                .filter(|pool| is_for(pool, ask))
            {
                for endpoint in pool.v4().chain(pool.v6()) {
                    let state = states.state(endpoint.state);
                    usable += u32::from(state.is_usable());
                    undrained += u32::from(!state.is_drained());
                }
            }
        }
        undrained > 0 && f64::from(usable) < self.panic * f64::from(undrained)
    }
}

/// What was passed on the way down the order.
struct Walk {
    level: Level,
    skipped: u8,
    in_doubt: bool,
}

impl Walk {
    /// Looks at the next cluster: it decides as soon as anything of it is usable, unless only the family not asked for A is.
    #[inline]
    fn step<S: States>(&mut self, ask: &Ask<'_>, ranked: Ranked, states: &S) -> Option<Pick> {
        let look = look(ask, ranked.rank, self.level, states);
        self.in_doubt |= look.in_doubt;
        let chosen = if look.answers() {
            Picked::Cluster(ranked.rank, look)
        } else if look.other && ask.family == super::policy::Family::V6 {
            // The client's A names a usable address of this cluster: it stays there.
            Picked::OtherFamily
        } else {
            self.skipped = self.skipped.saturating_add(1);
            return None;
        };
        Some(Pick {
            chosen,
            tier: ranked.tier,
            skipped: self.skipped,
            in_doubt: self.in_doubt,
        })
    }
}

/// Words what was picked.
fn chosen_of<'p>(pick: &Pick, level: Level) -> Chosen<'p> {
    match pick.chosen {
        Picked::Cluster(
            _,
            Look {
                hostname: Some(at), ..
            },
        ) => Chosen::Hostname(at),
        Picked::Cluster(rank, _) => Chosen::Cluster { rank, level },
        Picked::Everything => Chosen::Everything { level },
        Picked::OtherFamily => Chosen::OtherFamily,
    }
}
