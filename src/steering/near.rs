//! Levels of a federation's names: the same policy, narrowed to the clusters of a place first (DESIGN section 4.5).
//!
//! A level decides where it has something that the whole name would be answered with on a good day: up, undrained, inside the fence,
//! of a weight above 0. Else the next wider level does, and at last the whole name with all its resorts. Neither the client's
//! class nor its scope depends on the level: whoever shares a scope gets the same answer at each.

use super::decision::{Decision, Level};
use super::policy::{Ask, Policy, States};
use super::selector::RankSet;
use super::usable::in_panic;
use super::walk::Walk;
use crate::model::ClusterIndex;

impl Policy {
    /// Decides for the first of these levels that has something usable, else as [`Self::select`] does. Each level is a set of clusters
    /// in ascending order, the narrowest level first. Gives the position of the level that decided too; `None`: all clusters did.
    /// Never allocates, never fails.
    #[must_use]
    pub fn select_near<'c, S: States>(
        &self,
        ask: &Ask<'_>,
        levels: impl IntoIterator<Item = &'c [ClusterIndex]>,
        states: &S,
    ) -> (Decision<'_>, Option<usize>) {
        let class = ask.client.class;
        let panic = self.panic > 0.0 && in_panic(ask, class.ranks(), self.panic, states);
        let level = if panic { Level::Panic } else { Level::Up };
        let mut doubt = false;
        for (position, clusters) in levels.into_iter().enumerate() {
            let within = ranks_of(ask, clusters);
            let mut walk = Walk::new(self, ask, states).narrow(Some(within));
            let found = walk.at(level);
            doubt |= walk.doubt;
            if let Some(found) = found {
                let decision = Decision {
                    within: Some(within),
                    ..self.found(ask, &found, level, doubt)
                };
                return (decision, Some(position));
            }
        }
        let mut decision = self.select(ask, states);
        // What was passed over may come back before a longer TTL ends.
        decision.brief |= doubt;
        (decision, None)
    }

    /// Decides once more inside of what a decision was narrowed to, for another draw.
    #[must_use]
    pub fn select_again<S: States>(
        &self,
        ask: &Ask<'_>,
        decision: &Decision<'_>,
        states: &S,
    ) -> Decision<'_> {
        let level = decision.reason.level;
        let mut walk = Walk::new(self, ask, states).narrow(decision.within);
        match walk.at(level).filter(|_| decision.within.is_some()) {
            Some(found) => Decision {
                within: decision.within,
                ..self.found(ask, &found, level, walk.doubt)
            },
            None => self.select(ask, states),
        }
    }
}

/// Gives the ranks of some clusters of a service.
fn ranks_of(ask: &Ask<'_>, clusters: &[ClusterIndex]) -> RankSet {
    let mut ranks = RankSet::default();
    for (rank, cluster) in (0..=u8::MAX).zip(ask.service.pools.clusters()) {
        if clusters.binary_search(&cluster).is_ok() {
            ranks.insert(rank);
        }
    }
    ranks
}
