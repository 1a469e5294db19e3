//! What exists, listed for pages and searches: made when somebody looks, and let go when nobody does.
//!
//! The inventory is the controller's. It is copied in pieces, so that no publish waits for long; what follows from endpoint states
//! is read from the snapshot, once every [`LOOK`] and at most a tenth of the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::words;
use crate::admin::dto::{CountsDto, HealthState};
use crate::controller::ControllerHandle;
use crate::inventory::{Inventory, Origin};
use crate::model::{ClusterIndex, EndpointIndex, Generation, Names, ServiceIndex, ServiceKey};
use crate::snapshot::{ServiceSlot, Snapshot, SnapshotReader};
use crate::steering::States;

/// Services copied between two publishes.
const PIECE: u32 = 4096;
/// Entries copied between two publishes.
const ENTRIES: u32 = 65_536;
/// How old a reading of all states may be when something has changed since. Where a reading takes more than a tenth of this, ten
/// times as long as it takes: it must not hold up those who answer.
pub(in crate::admin) const LOOK: Duration = Duration::from_millis(150);
/// Nobody looked for so long: the copy is let go.
const IDLE: Duration = Duration::from_secs(120);

/// A service in the catalog.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    /// Its key.
    pub(super) key: ServiceKey,
    /// Its index.
    pub(super) index: ServiceIndex,
    /// Its names.
    pub(super) names: Names,
    /// Somebody judges its endpoints.
    pub(super) monitored: bool,
    /// Where it comes from.
    pub(super) origin: Origin,
    /// Without any endpoint it answers with something else.
    falls_back: bool,
}

/// What exists, as of one publish.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    /// The publish that last changed what exists.
    of: Generation,
    /// By key.
    pub(super) services: Vec<Listed>,
    /// Cluster and whether it is monitored, by entry.
    entries: Vec<Option<(ClusterIndex, bool)>>,
}

/// What follows from the states of one snapshot.
#[derive(Debug, Default)]
pub(super) struct Standing {
    generation: Generation,
    /// By position in the catalog.
    pub(super) services: Vec<HealthState>,
    /// Positions of those whose every answer is empty: they have no endpoint.
    pub(super) empty: Vec<usize>,
    /// Services by state.
    pub(super) counts: CountsDto,
    /// Services in each cluster.
    pub(super) per_cluster: BTreeMap<ClusterIndex, u64>,
    /// Endpoints of each cluster by state.
    pub(super) endpoints: BTreeMap<ClusterIndex, CountsDto>,
}

/// A catalog and how it stands.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// What exists.
    pub(super) catalog: Arc<Catalog>,
    /// How it stands. No snapshot is kept: a drain waits for those that are held.
    pub(super) standing: Arc<Standing>,
}

#[derive(Debug)]
struct Kept {
    look: Look,
    /// When the snapshot was taken that it was read from.
    read: Instant,
    took: Duration,
    used: Instant,
}

/// Makes looks, one at a time.
#[derive(Debug, Default)]
pub(super) struct Library {
    kept: Mutex<Option<Kept>>,
}

impl Library {
    /// Looks: at what was read a moment ago, or anew. `None` when the controller is gone.
    pub(super) async fn look(
        &self,
        controller: &ControllerHandle,
        reader: &SnapshotReader,
    ) -> Option<Look> {
        let mut kept = self.kept.lock().await;
        let status = controller.status();
        if let Some(kept) = &mut *kept {
            kept.used = Instant::now();
            let same = kept.look.catalog.of == status.inventory;
            let current = kept.look.standing.generation == status.generation;
            let pause = LOOK.max(kept.took * 10);
            if same && (current || kept.read.elapsed() < pause) {
                return Some(kept.look.clone());
            }
        }
        let begun = Instant::now();
        let held = kept.as_ref().map(|kept| Arc::clone(&kept.look.catalog));
        let catalog = match held.filter(|held| held.of == status.inventory) {
            Some(held) => held,
            None => Arc::new(copy(controller, status.inventory).await?),
        };
        let read = Instant::now();
        let snapshot = reader.load_owned();
        let listed = Arc::clone(&catalog);
        let standing = tokio::task::spawn_blocking(move || judge(&listed, &snapshot));
        let look = Look {
            catalog,
            standing: Arc::new(standing.await.ok()?),
        };
        *kept = Some(Kept {
            look: look.clone(),
            read,
            took: begun.elapsed(),
            used: Instant::now(),
        });
        Some(look)
    }

    /// Lets the copy go when nobody looked for two minutes.
    pub(super) async fn sweep(&self) {
        let mut kept = self.kept.lock().await;
        if kept.as_ref().is_some_and(|kept| kept.used.elapsed() > IDLE) {
            *kept = None;
        }
    }
}

/// Copies what exists in pieces. What changes meanwhile is seen at the next look.
async fn copy(controller: &ControllerHandle, of: Generation) -> Option<Catalog> {
    let mut catalog = Catalog {
        of,
        ..Catalog::default()
    };
    let mut from = 0;
    loop {
        let (piece, end) = controller
            .read(move |inventory| services_of(inventory, from))
            .await?;
        catalog.services.extend(piece);
        from += PIECE;
        if from >= end {
            break;
        }
    }
    let mut from = 0;
    loop {
        let (piece, end) = controller
            .read(move |inventory| entries_of(inventory, from))
            .await?;
        catalog.entries.extend(piece);
        from += ENTRIES;
        if from >= end {
            break;
        }
    }
    catalog.services.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    catalog.services.dedup_by(|a, b| a.key == b.key);
    Some(catalog)
}

/// Copies one piece of the services; gives one more than the highest index too.
fn services_of(inventory: &Inventory, from: u32) -> (Vec<Listed>, u32) {
    let end = inventory.service_end();
    let piece = (from..end.min(from.saturating_add(PIECE))).map(ServiceIndex);
    let listed = piece.filter_map(|index| {
        let service = inventory.service(index)?;
        Some(Listed {
            key: service.key.clone(),
            index,
            names: service.names.clone(),
            monitored: service.monitor.is_some(),
            origin: service.origin,
            falls_back: service.policy.fallback.is_some(),
        })
    });
    (listed.collect(), end)
}

/// Copies one piece of the entries of endpoint states.
fn entries_of(inventory: &Inventory, from: u32) -> (Vec<Option<(ClusterIndex, bool)>>, u32) {
    let end = u32::try_from(inventory.endpoint_count()).unwrap_or(u32::MAX);
    let piece = (from..end.min(from.saturating_add(ENTRIES))).map(EndpointIndex);
    let entries = piece.map(|index| {
        let (cluster, _, monitor) = inventory.endpoint(index)?;
        Some((cluster, monitor.is_some()))
    });
    (entries.collect(), end)
}

/// Adds one to the count of a state.
pub(super) fn count(counts: &mut CountsDto, state: HealthState) {
    let cell = match state {
        HealthState::Up => &mut counts.up,
        HealthState::Unknown => &mut counts.unknown,
        HealthState::Drained => &mut counts.drained,
        HealthState::Degraded => &mut counts.degraded,
        HealthState::Unready | HealthState::Down => &mut counts.down,
    };
    *cell += 1;
}

/// Says in one word how many stand.
pub(super) fn sum_up(counts: &CountsDto) -> HealthState {
    let usable = counts.up + counts.unknown;
    if counts.total() == 0 {
        HealthState::Unknown
    } else if counts.down == counts.total() {
        HealthState::Down
    } else if counts.down + counts.degraded > 0 {
        HealthState::Degraded
    } else if usable == 0 {
        HealthState::Drained
    } else if counts.up == 0 {
        HealthState::Unknown
    } else {
        HealthState::Up
    }
}

/// Counts the endpoints of one cluster of a service, or of all.
pub(super) fn endpoints(
    slot: &ServiceSlot,
    rank: Option<usize>,
    (snapshot, monitored): (&Snapshot, bool),
) -> CountsDto {
    let mut counts = CountsDto::default();
    let mut add = |state| {
        let state = snapshot.usable().state(state);
        count(&mut counts, words::state(state, monitored));
    };
    match rank {
        Some(rank) => slot
            .pools
            .of(rank)
            .flat_map(|pool| pool.states())
            .for_each(&mut add),
        None => slot
            .pools
            .iter()
            .flat_map(|pool| pool.states())
            .for_each(&mut add),
    }
    counts
}

/// Reads how everything stands.
fn judge(catalog: &Catalog, snapshot: &Snapshot) -> Standing {
    let mut standing = Standing {
        generation: snapshot.generation(),
        services: Vec::with_capacity(catalog.services.len()),
        ..Standing::default()
    };
    for (at, listed) in catalog.services.iter().enumerate() {
        let slot = snapshot.service(listed.index);
        let counts = slot.map(|slot| endpoints(slot, None, (snapshot, listed.monitored)));
        // What is only observed is to answer nobody.
        let is_meant = listed.origin != Origin::Observed && !listed.falls_back;
        if is_meant && counts.is_some_and(|counts| counts.total() == 0) {
            standing.empty.push(at);
        }
        let state = sum_up(&counts.unwrap_or_default());
        count(&mut standing.counts, state);
        standing.services.push(state);
        for cluster in slot.into_iter().flat_map(|slot| slot.pools.clusters()) {
            *standing.per_cluster.entry(cluster).or_default() += 1;
        }
    }
    for (index, entry) in (0..).map(EndpointIndex).zip(&catalog.entries) {
        if let Some((cluster, monitored)) = entry {
            let state = words::state(snapshot.usable().state(index), *monitored);
            count(standing.endpoints.entry(*cluster).or_default(), state);
        }
    }
    standing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_sums_many_up() {
        let counts = |up, unknown, degraded, drained, down| CountsDto {
            up,
            unknown,
            degraded,
            drained,
            down,
        };
        for (all, state) in [
            (counts(0, 0, 0, 0, 0), HealthState::Unknown),
            (counts(3, 0, 0, 0, 0), HealthState::Up),
            (counts(1, 2, 0, 1, 0), HealthState::Up),
            (counts(0, 2, 0, 0, 0), HealthState::Unknown),
            (counts(0, 0, 0, 2, 0), HealthState::Drained),
            (counts(0, 0, 0, 2, 1), HealthState::Degraded),
            (counts(5, 0, 0, 0, 1), HealthState::Degraded),
            (counts(5, 0, 1, 0, 0), HealthState::Degraded),
            (counts(0, 0, 0, 0, 4), HealthState::Down),
        ] {
            assert_eq!(sum_up(&all), state, "{all:?}");
        }
    }
}
