//! Which addresses of what was chosen are answered (DESIGN section 4.4).
//!
//! Endpoints in the order written, those that can be used at the decision's level, the first `answers` of them: the same set for
//! the same states on every node. Inside a cluster, pools of weight 0 are left out while another pool has something. Rotation
//! changes the order only.

use super::classes::Slot;
use super::decision::{Chosen, Decision, Level};
use super::policy::{Ask, Family, Policy, States};
use super::usable::{Reach, Scan, may_have};
use super::walk::Walk;
use crate::model::{Endpoint, PoolRef};

/// An odd number that spreads the counter: 2^32 / golden ratio.
const SPREAD: u32 = 0x9e37_79b9;

/// Which endpoints to answer with.
#[derive(Clone, Copy, Debug)]
struct Selection<'a> {
    /// Of this cluster,
    one: Option<u8>,
    /// or of each of these.
    group: &'a [Slot],
    /// Those that can be used on this rung.
    level: Level,
    /// Clusters of weight 0 belong to it.
    with_idle: bool,
}

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
        let ask = *ask;
        let selection = self.selection(decision, &ask, states);
        let chosen = move || {
            selection
                .ranks()
                .flat_map(move |rank| self.endpoints_of(rank, selection, ask, states))
                .take(self.answers)
        };
        let count = chosen().count();
        let first = rotation(count, ask.client.draw, self.draws());
        chosen().skip(first).chain(chosen().take(first))
    }

    /// Gives the endpoint that a decision names when its cluster has no other of this family: the common case, without a
    /// walk. `None` says nothing: ask [`Self::endpoints`].
    #[must_use]
    #[inline]
    pub fn only_endpoint(&self, decision: &Decision<'_>, ask: &Ask<'_>) -> Option<Endpoint> {
        let Chosen::Cluster { rank, .. } = decision.chosen else {
            return None;
        };
        let mut pools = ask.service.pools.of(usize::from(rank));
        let pool = pools.next()?;
        let count = match ask.family {
            Family::V4 => pool.v4_count(),
            Family::V6 => pool.v6_count(),
        };
        if count != 1 || pools.next().is_some() {
            return None;
        }
        // The decision found something usable of this family here: it can only have been this one.
        match ask.family {
            Family::V4 => pool.v4().next(),
            Family::V6 => pool.v6().next(),
        }
    }

    /// Tells what a decision selects.
    #[inline]
    fn selection<'a, S: States>(
        &self,
        decision: &Decision<'_>,
        ask: &Ask<'a>,
        states: &S,
    ) -> Selection<'a> {
        let mut selection = Selection {
            one: None,
            group: &[],
            level: Level::Up,
            with_idle: true,
        };
        match decision.chosen {
            Chosen::Cluster { rank, level } => {
                selection.one = Some(rank);
                selection.level = level;
            }
            Chosen::Everything { level } => {
                selection.level = level;
                // The same walk as the decision's, over the same states: it finds the same group.
                if let Some(found) = Walk::new(self, ask, states).at(selection.level) {
                    selection.group = found.group;
                    selection.with_idle = found.with_idle;
                }
            }
            _ => {}
        }
        selection
    }

    /// Iterates over one cluster's endpoints that are selected, in the order written.
    #[inline]
    fn endpoints_of<'a, S: States>(
        &self,
        rank: u8,
        selection: Selection<'_>,
        ask: Ask<'a>,
        states: &'a S,
    ) -> impl Iterator<Item = Endpoint> + use<'a, S> {
        let pools = ask.service.pools;
        let has_idle = pools.of(usize::from(rank)).any(|pool| pool.weight().0 == 0);
        let without_idle = has_idle && {
            let scan = Scan::of(&ask, rank, Reach::Question(ask.family), states);
            scan.busy.has(ask.family, selection.level)
        };
        let is_left_out = !selection.with_idle && (self.is_idle(rank) || has_idle && !without_idle);
        let bit = selection.level.bit();
        pools
            .of(usize::from(rank))
            .filter(move |pool| !is_left_out && (pool.weight().0 > 0 || !without_idle))
            .filter(move |pool| may_have(pool, &ask))
            .flat_map(move |pool| of_family(pool, ask.family))
            .filter(move |endpoint| Level::bits_of(states.state(endpoint.state)) & bit != 0)
    }
}

impl<'a> Selection<'a> {
    /// Iterates over the clusters.
    #[inline]
    fn ranks(self) -> impl Iterator<Item = u8> + use<'a> {
        self.one
            .into_iter()
            .chain(self.group.iter().map(|slot| slot.rank))
    }
}

/// Iterates over a pool's endpoints of one family.
#[inline]
fn of_family(pool: PoolRef<'_>, family: Family) -> impl Iterator<Item = Endpoint> {
    let v4 = (family == Family::V4).then(|| pool.v4());
    let v6 = (family == Family::V6).then(|| pool.v6());
    v4.into_iter().flatten().chain(v6.into_iter().flatten())
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
