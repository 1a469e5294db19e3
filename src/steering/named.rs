//! Endpoints that are asked for by names of their own: nothing is chosen, the client gets those that it may have.
//!
//! The fence and `clients` hold as for the whole service. How it steers, weights and the health of other endpoints say nothing: who
//! asks for one endpoint is not served by another. Of several endpoints of one name those count that are best off, down the levels of
//! the last resorts (DESIGN section 4.3), so that health never makes an empty answer.

use std::net::IpAddr;

use super::decision::{Basis, Chosen, Decision, Level, Reason};
use super::policy::{Ask, Family, Policy, States};
use crate::model::{Endpoint, PrefixLen};

/// The levels of single endpoints, best first.
const LEVELS: [Level; 4] = [Level::Up, Level::Drained, Level::AsIfUp, Level::ForcedDown];

impl Policy {
    /// Decides about the endpoints of one cluster, by its rank, that have one of these addresses. `None` of a rank: the service has
    /// nothing there. Never allocates, never fails.
    #[must_use]
    pub fn select_named<S: States>(
        &self,
        ask: &Ask<'_>,
        (rank, is_meant): (Option<u8>, impl Fn(IpAddr) -> bool),
        states: &S,
    ) -> Decision<'_> {
        let class = ask.client.class;
        let is_allowed = rank.is_some_and(|rank| class.ranks().any(|allowed| allowed == rank));
        let is_kept_out = !is_allowed && (rank.is_some() || class.is_denied()) && self.is_fenced();
        if is_kept_out {
            return self.of_named(ask, (self.refusal(), Level::Up), false);
        }
        let (mut own, mut other, mut doubt) = (0, false, false);
        for endpoint in every(ask, rank).filter(|endpoint| is_meant(endpoint.address)) {
            let state = states.state(endpoint.state);
            if is_of(endpoint.address, ask.family) {
                own |= Level::bits_of(state);
                doubt |= state.is_brief();
            } else {
                other = true;
            }
        }
        let level = LEVELS.into_iter().find(|level| own & level.bit() != 0);
        let chosen = match (rank.zip(level), other) {
            (Some((rank, level)), _) => Chosen::Cluster { rank, level },
            (None, true) => Chosen::OtherFamily,
            (None, false) => Chosen::Nothing,
        };
        self.of_named(ask, (chosen, level.unwrap_or(Level::Up)), doubt)
    }

    /// Iterates over the endpoints that such a decision names, of the family asked for.
    pub fn named<'a, S: States>(
        &self,
        decision: &Decision<'_>,
        ask: &Ask<'a>,
        (is_meant, states): (impl Fn(IpAddr) -> bool, &S),
    ) -> impl Iterator<Item = Endpoint> {
        let (rank, level) = match decision.chosen {
            Chosen::Cluster { rank, level } => (Some(rank), level),
            _ => (None, Level::Up),
        };
        let family = ask.family;
        every(ask, rank).filter(move |endpoint| {
            is_of(endpoint.address, family)
                && is_meant(endpoint.address)
                && Level::bits_of(states.state(endpoint.state)) & level.bit() != 0
        })
    }

    /// Makes the decision.
    fn of_named<'p>(
        &self,
        ask: &Ask<'_>,
        (chosen, level): (Chosen<'p>, Level),
        brief: bool,
    ) -> Decision<'p> {
        Decision {
            chosen,
            // Without a fence everybody is answered alike.
            scope: if self.is_fenced() {
                self.scope(ask)
            } else {
                PrefixLen(0)
            },
            brief,
            reason: Reason {
                basis: Basis::Named,
                level,
                tier: 0,
                skipped: 0,
                panic: false,
            },
            only: None,
            within: None,
        }
    }
}

/// Iterates over all endpoints of a cluster that the sender may have.
fn every<'a>(ask: &Ask<'a>, rank: Option<u8>) -> impl Iterator<Item = Endpoint> + use<'a> {
    let (service, sender) = (ask.service, *ask.client.sender);
    let ranks = rank.map(usize::from).into_iter();
    let pools = ranks.flat_map(move |rank| service.pools.of(rank));
    let pools = pools.filter(move |pool| service.may_have(pool, sender));
    pools.flat_map(|pool| pool.v4().chain(pool.v6()))
}

/// Tells whether an address is of a family.
fn is_of(address: IpAddr, family: Family) -> bool {
    match family {
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    }
}
