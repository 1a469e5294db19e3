//! How far each drain is on this node: is it in force, who is held, when was it given out last (DESIGN section 4.7).
//!
//! No answer is looked at one by one. A drained endpoint can be given out by workers that still read an older snapshot, until
//! that is let go; and as a last resort, which workers count by service. Both are watched several times a second, so that what is
//! said of the past is late, never early.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

use super::withdrawn::{MAX_WITHDRAWN, Withdrawn};
use crate::inventory::{Dirty, Inventory, Meant, Service};
use crate::model::{
    ClusterIndex, EndpointState, Generation, Intent, OperatorRecord, OperatorRecords, Phase,
    PolicyIndex, RecordId, ServiceIndex, Ttl, WallTime,
};
use crate::snapshot::{ServiceSlot, Snapshot, Steering};
use crate::steering::{ClassId, States};
use crate::telemetry::{Counters, RESORT_CELLS};

/// What stands for the address of a host name.
const NOWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// Names of held services that are listed.
pub const LISTED_HELD: usize = 20;

/// The counters of all workers; empty until the sockets are up.
pub type Workers = Arc<OnceLock<Arc<[Arc<Counters>]>>>;

/// A pause is at least so many times as long as the look at all drained services before it: meanwhile nothing is published.
const SHARE: u32 = 20;

/// What came with a new snapshot.
#[derive(Clone, Copy, Debug)]
pub(super) enum News<'a> {
    /// States alone.
    States,
    /// These services came, changed or went.
    Services(&'a Dirty),
    /// Anything may be another.
    All,
}

/// What this node says of one drain that began.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnDrain {
    /// Every worker answers by it.
    pub in_force: bool,
    /// Services for which it is the last resort, for some clients at least.
    pub held: usize,
    /// The first of them.
    pub held_services: Vec<String>,
    /// Not after this moment was it given out last; `None` while it is not in force.
    pub last_given: Option<Instant>,
    /// The highest TTL that an answer with it may have had.
    pub ttl: u32,
    /// Services it touches.
    pub services: usize,
}

/// What is known of all drains that began, by record.
pub type OwnDrains = Arc<BTreeMap<RecordId, OwnDrain>>;

/// One drain that began.
#[derive(Debug)]
struct Watched {
    record: Arc<OperatorRecord>,
    /// The first snapshot that has it.
    since: Generation,
    own: OwnDrain,
    /// It is an object's own word, about the service of just that key.
    is_objects: bool,
    /// The services that it touches, with how much of each it means.
    services: BTreeMap<ServiceIndex, Meant>,
    /// The cells that their last resorts are counted in, with the sum seen last.
    cells: HashMap<usize, u32>,
}

/// Watches the drains that began.
#[derive(Debug, Default)]
pub(super) struct DrainWatch {
    drains: BTreeMap<RecordId, Watched>,
    workers: Workers,
    /// The snapshot that was judged last.
    judged: Option<Generation>,
    /// When that was, and how long it took; `None`: there are drains that never were.
    looked: Option<(Instant, Duration)>,
    /// What is held decides what this node does next: it is looked at with every snapshot.
    is_hasty: bool,
    /// What objects drain by their own word, by id.
    withdrawn: BTreeMap<RecordId, Arc<OperatorRecord>>,
}

impl DrainWatch {
    /// Makes one that will read these workers' counters.
    pub(super) fn new(workers: Workers) -> Self {
        Self {
            workers,
            ..Self::default()
        }
    }

    /// Has it look at what is held with every snapshot, however long that takes.
    pub(super) fn hasty(self) -> Self {
        Self {
            is_hasty: true,
            ..self
        }
    }

    /// Takes the endpoints that their own objects drain. They are watched from the next snapshot that is followed on.
    pub(super) fn withdraw(&mut self, all: &[Withdrawn], now: WallTime) {
        let records = all.iter().take(MAX_WITHDRAWN);
        let records = records.filter_map(|one| one.record(now));
        self.withdrawn = records.map(|record| (record.id.clone(), record)).collect();
    }

    /// Tells whether there is anything to watch.
    pub(super) fn is_empty(&self) -> bool {
        self.drains.is_empty()
    }

    /// Takes up the drains in force in a new snapshot, and drops those that are over. Those that are known look at what changed and
    /// at nothing else.
    pub(super) fn follow(
        &mut self,
        records: &OperatorRecords,
        (inventory, snapshot): (&Inventory, &Snapshot),
        now: WallTime,
        news: News<'_>,
    ) {
        let active = |record: &OperatorRecord| {
            record.intent == Intent::Drain && record.phase(now) == Phase::Active
        };
        let withdrawn = &self.withdrawn;
        self.drains.retain(|id, _| {
            let is_active = records.get(id).is_some_and(|record| active(record));
            is_active || withdrawn.contains_key(id)
        });
        let of_operators = records.iter().filter(|record| active(record));
        let all: Vec<_> = of_operators.chain(withdrawn.values()).cloned().collect();
        for record in &all {
            let (mut watched, news) = match self.drains.remove(&record.id) {
                Some(known) => (known, news),
                None => {
                    self.looked = None;
                    let is_objects = self.withdrawn.contains_key(&record.id);
                    let new = Watched::new(record, snapshot.generation(), is_objects);
                    (new, News::All)
                }
            };
            let services = match news {
                News::States => Vec::new(),
                News::Services(dirty) => {
                    let changed = dirty.services.iter().chain(&dirty.removed);
                    watched.renew(changed.copied(), (inventory, snapshot))
                }
                News::All => {
                    let all = watched.candidates(inventory);
                    watched.services.retain(|index, _| all.contains(index));
                    watched.renew(all.into_iter(), (inventory, snapshot))
                }
            };
            let ttl = highest_ttl(&services, inventory, snapshot);
            // A TTL that was lowered since: what was given with the higher one may still be in caches.
            watched.own.ttl = watched.own.ttl.max(ttl);
            watched.own.services = watched.services.len();
            // Cells that are new begin with the sum of now: what was counted before was before it was drained or there.
            for (cell, sum) in self.cells_of(&services) {
                watched.cells.entry(cell).or_insert(sum);
            }
            self.drains.insert(record.id.clone(), watched);
        }
        self.judged = None;
    }

    /// Looks at what moved since. `oldest` is the oldest snapshot that anyone may still read. Gives what is known now.
    pub(super) fn look(
        &mut self,
        oldest: Generation,
        (inventory, snapshot): (&Inventory, &Snapshot),
        now: Instant,
    ) -> OwnDrains {
        // What is held is shown a little late where that is much to look at. That an answer is given all the same is seen by the
        // counters, at once.
        let is_rested = self
            .looked
            .is_none_or(|(last, took)| now.saturating_duration_since(last) >= took * SHARE);
        let judge = (is_rested || self.is_hasty) && self.judged != Some(snapshot.generation());
        let workers = self.workers.get().cloned().unwrap_or_default();
        let mut sets = HashMap::new();
        for watched in self.drains.values_mut() {
            if !watched.own.in_force && oldest >= watched.since {
                watched.own.in_force = true;
                watched.own.last_given = Some(now);
            }
            let mut moved = false;
            for (&cell, seen) in &mut watched.cells {
                let sum = sum_of(&workers, cell);
                moved |= *seen != sum;
                *seen = sum;
            }
            if judge {
                watched.judge(inventory, snapshot, &mut sets);
            }
            // While it is held it may be given at any moment.
            if watched.own.in_force && (moved || watched.own.held > 0) {
                watched.own.last_given = Some(now);
            }
        }
        if judge {
            self.judged = Some(snapshot.generation());
            self.looked = Some((now, now.elapsed()));
        }
        let all = self.drains.iter();
        Arc::new(
            all.map(|(id, watched)| (id.clone(), watched.own.clone()))
                .collect(),
        )
    }

    /// Lists the cells of services with their sums.
    fn cells_of(&self, services: &[ServiceIndex]) -> HashMap<usize, u32> {
        let workers = self.workers.get().cloned().unwrap_or_default();
        let cells: HashSet<usize> = if services.len() >= RESORT_CELLS {
            (0..RESORT_CELLS).collect()
        } else {
            services
                .iter()
                .map(|&index| Counters::resort_cell(index))
                .collect()
        };
        cells
            .into_iter()
            .map(|cell| (cell, sum_of(&workers, cell)))
            .collect()
    }
}

/// Adds one cell up over all workers.
fn sum_of(workers: &[Arc<Counters>], cell: usize) -> u32 {
    workers
        .iter()
        .fold(0, |sum, worker| sum.wrapping_add(worker.resorts(cell)))
}

/// Sets of ranks that clients may have, by policy: one for each kind of class, without doubles.
type RankSets = HashMap<PolicyIndex, Vec<Box<[u8]>>>;

impl Watched {
    /// Begins to watch a drain that this snapshot is the first to have.
    fn new(record: &Arc<OperatorRecord>, since: Generation, is_objects: bool) -> Self {
        Self {
            record: Arc::clone(record),
            since,
            own: OwnDrain {
                in_force: false,
                held: 0,
                held_services: Vec::new(),
                last_given: None,
                ttl: 0,
                services: 0,
            },
            is_objects,
            services: BTreeMap::new(),
            cells: HashMap::new(),
        }
    }

    /// Lists the services that it may touch.
    fn candidates(&self, inventory: &Inventory) -> BTreeSet<ServiceIndex> {
        match self.record.target.service() {
            Some(key) if self.is_objects => inventory.find_all(key).collect(),
            Some(key) => inventory.find_meant(key).into_iter().collect(),
            None => inventory.services().map(|(index, _)| index).collect(),
        }
    }

    /// Looks at services anew. Gives those that it touches. Where it means more than before by the key of a service, that may have
    /// been given until now: it begins anew with this snapshot. What comes into a drained cluster was never given.
    fn renew(
        &mut self,
        services: impl Iterator<Item = ServiceIndex>,
        (inventory, snapshot): (&Inventory, &Snapshot),
    ) -> Vec<ServiceIndex> {
        let mut touched = Vec::new();
        let mut means_more = false;
        for index in services {
            let service = inventory.service(index);
            let Some(meant) = service.and_then(|service| self.touched(service, inventory)) else {
                self.services.remove(&index);
                continue;
            };
            let held = self.services.get(&index);
            means_more |= held.is_none_or(|held| !held.covers(&meant));
            self.services.insert(index, meant);
            touched.push(index);
        }
        let is_by_key = self.record.target.service().is_some() && !self.is_objects;
        if means_more && is_by_key {
            self.since = snapshot.generation();
            self.own.in_force = false;
            self.own.last_given = None;
        }
        touched
    }

    /// Says how much of a service it is about; `None`: it is about others.
    fn meant(&self, service: &Service, inventory: &Inventory) -> Option<Meant> {
        match self.record.target.service() {
            None => Some(Meant::Whole),
            Some(key) if self.is_objects => (service.key == *key).then_some(Meant::Whole),
            Some(key) => inventory.meant(key, service),
        }
    }

    /// Tells whether it is about an endpoint of a service of which so much is meant.
    fn is_about(
        &self,
        (cluster, address): (ClusterIndex, IpAddr),
        meant: &Meant,
        inventory: &Inventory,
    ) -> bool {
        let cluster_at = |cluster| inventory.cluster(cluster);
        meant.has(cluster, address)
            && cluster_at(cluster).is_some_and(|one| self.record.target.is_at(&one.id, address))
    }

    /// Says how much of a service it means, where it touches any of that.
    fn touched(&self, service: &Service, inventory: &Inventory) -> Option<Meant> {
        let meant = self.meant(service, inventory)?;
        let is_whole = self.record.target.address().is_none() && meant == Meant::Whole;
        let is_touched = service.pools.iter().any(|pool| {
            let is_about = |address| self.is_about((pool.cluster(), address), &meant, inventory);
            if is_whole {
                return is_about(NOWHERE);
            }
            let mut all = pool.v4().chain(pool.v6());
            all.any(|endpoint| is_about(endpoint.address))
        });
        is_touched.then_some(meant)
    }

    /// Finds the services for which this is the last resort.
    fn judge(&mut self, inventory: &Inventory, snapshot: &Snapshot, sets: &mut RankSets) {
        self.own.held = 0;
        self.own.held_services.clear();
        for (&index, meant) in &self.services {
            let (Some(service), Some(slot)) = (inventory.service(index), snapshot.service(index))
            else {
                continue;
            };
            let Some(steering) = snapshot.steering(slot.policy) else {
                continue;
            };
            let sets = sets
                .entry(slot.policy)
                .or_insert_with(|| rank_sets(steering));
            let ranks: Vec<Rank> = (0..slot.pools.cluster_count())
                .map(|rank| self.rank(rank, (inventory, snapshot), (meant, slot)))
                .collect();
            let of = |at: &u8| ranks.get(usize::from(*at)).copied().unwrap_or_default();
            let is_held = sets.iter().any(|set| {
                set.iter().any(|at| of(at).drained) && !set.iter().any(|at| of(at).usable)
            });
            if is_held {
                self.own.held += 1;
                if self.own.held_services.len() < LISTED_HELD {
                    self.own.held_services.push(service.key.to_string());
                }
            }
        }
    }

    /// Reads one cluster of a service.
    fn rank(
        &self,
        rank: usize,
        (inventory, snapshot): (&Inventory, &Snapshot),
        (meant, slot): (&Meant, &ServiceSlot),
    ) -> Rank {
        let mut found = Rank::default();
        for pool in slot.pools.of(rank) {
            let touches = |address| self.is_about((pool.cluster(), address), meant, inventory);
            let addresses = pool.v4().chain(pool.v6());
            let states = addresses.map(|endpoint| (endpoint.state, touches(endpoint.address)));
            let host = pool.host_state().map(|state| (state, touches(NOWHERE)));
            for (index, touched) in states.chain(host) {
                let state: EndpointState = snapshot.usable().state(index);
                // Others may not be given what is for some senders only.
                found.usable |= state.is_usable() && pool.clients().is_none();
                found.drained |= touched && !state.is_forced_down();
            }
        }
        found
    }
}

/// What one cluster of a service has.
#[derive(Clone, Copy, Debug, Default)]
struct Rank {
    /// Something that everyone may be given.
    usable: bool,
    /// Something of this drain that would be given if nothing else could.
    drained: bool,
}

/// Finds the highest TTL of services: their own, or that of any zone they have names in.
fn highest_ttl(services: &[ServiceIndex], inventory: &Inventory, snapshot: &Snapshot) -> u32 {
    let zones = snapshot.zones();
    let mut default = None;
    let services = services.iter().filter_map(|&at| inventory.service(at));
    let ttls = services.map(|service| match service.ttl {
        Some(ttl) => ttl.seconds(),
        // The highest of all zones: cheaper than a search by name, and never too low.
        None => *default.get_or_insert_with(|| {
            let all = zones.iter().map(|(_, zone)| zone.ttl().seconds());
            all.max().unwrap_or(0)
        }),
    });
    ttls.max().unwrap_or_else(|| Ttl::BRIEF.seconds())
}

/// Lists the sets of ranks that the classes of a policy allow.
fn rank_sets(steering: &Steering) -> Vec<Box<[u8]>> {
    let classes = &steering.classes;
    let count = u32::try_from(classes.len()).unwrap_or(u32::MAX);
    let mut sets: HashSet<Box<[u8]>> = HashSet::new();
    for class in (0..count).filter_map(|id| classes.get(ClassId(id))) {
        let mut ranks: Vec<u8> = class.ranks().collect();
        ranks.sort_unstable();
        ranks.dedup();
        sets.insert(ranks.into());
    }
    sets.into_iter().collect()
}
