//! The choice: fence, order, tiers, last resorts, in the fixed order of DESIGN section 4.

use super::classes::Slot;
use super::decision::{Chosen, Decision, Level, Reason};
use super::policy::{Ask, Family, Policy, States};
use super::usable::{Reach, Scan, in_panic};
use super::walk::{Found, Pick, Walk};
use super::weight::slice_scope;
use crate::model::{Endpoint, EndpointState, FallbackSpec, PrefixLen};

impl Policy {
    /// Decides: fence, order, tiers, last resorts, in the fixed order of DESIGN section 4. Never allocates, never fails.
    ///
    /// The common case first: the first cluster of the order has something usable. Else the whole walk.
    #[must_use]
    #[inline(always)]
    pub fn select<S: States>(&self, ask: &Ask<'_>, states: &S) -> Decision<'_> {
        let class = ask.client.class;
        match class.lead.filter(|_| self.follows_lead) {
            Some(lead) => match self.only(ask, lead.rank, states) {
                Some(only) => self.led(ask, lead, (Some(only), None, false)),
                None => self.scan_lead(ask, lead, states),
            },
            None => self.walk(ask, states),
        }
    }

    /// Decides by all that the first cluster has.
    #[inline(never)]
    fn scan_lead<S: States>(&self, ask: &Ask<'_>, lead: Slot, states: &S) -> Decision<'_> {
        let scan = self.scan(ask, lead.rank, Reach::Question(ask.family), states);
        if scan.busy.has(ask.family, Level::Up) {
            self.led(ask, lead, (None, scan.hostname, scan.doubt))
        } else {
            self.walk(ask, states)
        }
    }

    /// Makes the decision for the first cluster.
    #[inline(always)]
    fn led(
        &self,
        ask: &Ask<'_>,
        lead: Slot,
        (only, hostname, brief): (Option<Endpoint>, Option<u8>, bool),
    ) -> Decision<'_> {
        let (rank, level) = (lead.rank, Level::Up);
        Decision {
            chosen: match hostname {
                None => Chosen::Cluster { rank, level },
                Some(hostname) => Chosen::Hostname(hostname),
            },
            scope: self.scope(ask),
            brief,
            reason: Reason {
                basis: ask.client.class.basis,
                level,
                tier: lead.tier,
                skipped: 0,
                panic: false,
            },
            only,
            within: None,
        }
    }

    /// Gives the endpoint of a cluster that has one of the family asked for, where nothing needs weighing: its pool is plain, it is
    /// Up, and no monitor of what the question reads is in doubt. `None` says nothing: scan.
    #[inline(always)]
    fn only<S: States>(&self, ask: &Ask<'_>, rank: u8, states: &S) -> Option<Endpoint> {
        if self.listed_weights {
            return None;
        }
        let pool = ask.service.pools.plain(usize::from(rank))?;
        let endpoint = match ask.family {
            Family::V4 if pool.v4_count() == 1 => pool.v4_at(0)?,
            Family::V6 if pool.v6_count() == 1 && pool.v4_count() <= 1 => {
                let other = pool.v4_at(0);
                if other.is_some_and(|other| states.state(other.state).is_brief()) {
                    return None;
                }
                pool.v6_at(0)?
            }
            _ => return None,
        };
        (states.state(endpoint.state) == EndpointState::UP).then_some(endpoint)
    }

    /// Decides every case: down the levels of the last resorts.
    #[cold]
    fn walk<S: States>(&self, ask: &Ask<'_>, states: &S) -> Decision<'_> {
        let class = ask.client.class;
        if class.is_denied() && !self.sites.is_empty() {
            return self.without_endpoints(ask, self.refusal(), Level::Up, false);
        }
        let mut walk = Walk::new(self, ask, states);
        let panic = self.panic > 0.0 && in_panic(ask, class.ranks(), self.panic, states);
        let first = if panic { Level::Panic } else { Level::Up };
        for level in [first, Level::Drained] {
            if let Some(found) = walk.at(level) {
                return self.found(ask, &found, level, walk.doubt);
            }
        }
        if let Some(fallback) = &self.fallback
            && !walk.any(|offers| offers.has_any(first) || offers.has_any(Level::Drained))
        {
            let chosen = Chosen::Fallback(fallback);
            return self.without_endpoints(ask, chosen, Level::AsIfUp, walk.doubt);
        }
        self.after_fallback(ask, walk)
    }

    /// Decides once more where `fallback` was chosen and cannot be answered: as if the policy had none.
    #[must_use]
    #[cold]
    pub fn without_fallback<S: States>(
        &self,
        ask: &Ask<'_>,
        chosen: &Decision<'_>,
        states: &S,
    ) -> Decision<'_> {
        let mut walk = Walk::new(self, ask, states);
        // What was passed over before may come back.
        walk.doubt = chosen.brief;
        self.after_fallback(ask, walk)
    }

    /// Decides by the last resorts that come after `fallback`.
    fn after_fallback<S: States>(&self, ask: &Ask<'_>, mut walk: Walk<'_, '_, S>) -> Decision<'_> {
        for level in [Level::AsIfUp, Level::ForcedDown] {
            if let Some(found) = walk.at(level) {
                return self.found(ask, &found, level, walk.doubt);
            }
        }
        let chosen = if walk.any(|offers| offers.has_any(Level::ForcedDown)) {
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
        let mut scan = ask.service.scan(*ask.client.sender, rank, reach, states);
        if self.listed_weights
            && let Some(site) = self.sites.get(usize::from(rank))
            && let Some(weight) = site.weight
        {
            scan.reweigh(weight);
        }
        scan
    }

    /// Makes the decision of a group that has something.
    pub(super) fn found(
        &self,
        ask: &Ask<'_>,
        found: &Found<'_>,
        level: Level,
        brief: bool,
    ) -> Decision<'_> {
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
                panic: level == Level::Panic,
            },
            only: None,
            within: None,
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
            only: None,
            within: None,
        }
    }

    /// Gives what a refused client gets.
    pub(super) fn refusal(&self) -> Chosen<'_> {
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
                has && ask.service.may_have(&pool, *ask.client.sender)
            })
    }

    /// Gives the scope: of the class; at least a slice where the class has a tie; 0 where the policy ignores the client.
    #[inline]
    pub(super) fn scope(&self, ask: &Ask<'_>) -> PrefixLen {
        let client = &ask.client;
        if !self.reads_client {
            PrefixLen(0)
        } else if client.class.sliced {
            client.scope.max(slice_scope(*client.subnet))
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
