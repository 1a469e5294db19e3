//! The endpoints that a decision names.

use super::decision::{Chosen, Decision, Level};
use super::policy::{Ask, Family, Policy, States};
use super::usable::is_for;
use crate::model::{Endpoint, PoolRef};

/// Either family's endpoints of one pool.
#[inline]
fn of_family<'a>(
    pool: PoolRef<'a>,
    family: Family,
) -> impl Iterator<Item = Endpoint> + Clone + use<'a> {
    let v4 = (family == Family::V4)
        .then(|| pool.v4())
        .into_iter()
        .flatten();
    let v6 = (family == Family::V6)
        .then(|| pool.v6())
        .into_iter()
        .flatten();
    v4.chain(v6)
}

impl Policy {
    /// Iterates over the endpoints that a decision names, of the family asked for, in order of answering, rotated by `draw`,
    /// at most `answers` of them. Which are kept is fixed: the first usable ones as written; the rotation changes their order
    /// only. Empty unless the decision chose endpoints.
    pub fn endpoints<'a, S: States>(
        &'a self,
        decision: &Decision<'_>,
        ask: &Ask<'a>,
        states: &'a S,
    ) -> impl Iterator<Item = Endpoint> + 'a {
        let ask = *ask;
        let tier = decision.reason.tier;
        let (only, level) = match decision.chosen {
            Chosen::Cluster { rank, level } => (Some(rank), Some(level)),
            Chosen::Everything { level } => (None, Some(level)),
            _ => (None, None),
        };
        let everything = level.is_some() && only.is_none();
        let many = ask
            .client
            .class
            .order()
            .iter()
            .filter(move |ranked| everything && ranked.tier == tier);
        let ranks = only.into_iter().chain(many.map(|ranked| ranked.rank));
        let level = level.unwrap_or(Level::Up);
        let kept = ranks
            .flat_map(move |rank| ask.service.pools.of(usize::from(rank)))
            .filter(move |pool| is_for(pool, &ask))
            .flat_map(move |pool| of_family(pool, ask.family))
            .filter(move |endpoint| level.admits(states.state(endpoint.state)))
            .take(self.max_answers);
        let count = kept.clone().take(2).count();
        // One address, the common case, is not counted further.
        let turn = if count < 2 {
            0
        } else {
            ask.client.draw as usize % kept.clone().count()
        };
        kept.clone().skip(turn).chain(kept.take(turn))
    }
}
