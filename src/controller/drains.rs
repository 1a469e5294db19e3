//! How far each drain is on this node: is it in force, who is held, when was it given out last (DESIGN section 4.7).
//!
//! No answer is looked at one by one. A drained endpoint can be given out by workers that still read an older snapshot, until
//! that is let go; and as a last resort, which workers count by service. Both are watched several times a second, so that what is
//! said of the past is late, never early.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;

use super::withdrawn::{MAX_WITHDRAWN, Withdrawn};
use crate::inventory::{Inventory, Service};
use crate::model::{
    ClusterIndex, EndpointState, Generation, Intent, OperatorRecord, OperatorRecords, Phase,
    PolicyIndex, RecordId, ServiceIndex, Ttl, WallTime,
};
use crate::snapshot::{ServiceSlot, Snapshot, Steering};
use crate::steering::{ClassId, States};
use crate::telemetry::{Counters, RESORT_CELLS};

/// Names of held services that are listed.
pub const LISTED_HELD: usize = 20;

/// The counters of all workers; empty until the sockets are up.
pub type Workers = Arc<OnceLock<Arc<[Arc<Counters>]>>>;

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
    services: Vec<ServiceIndex>,
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

    /// Takes up the drains in force in a new snapshot, and drops those that are over. Where `fresh`, services may have come
    /// or gone.
    pub(super) fn follow(
        &mut self,
        records: &OperatorRecords,
        (inventory, snapshot): (&Inventory, &Snapshot),
        now: WallTime,
        fresh: bool,
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
            let known = self.drains.contains_key(&record.id);
            if known && !fresh {
                continue;
            }
            let services = touched(record, inventory);
            let ttl = highest_ttl(&services, inventory, snapshot);
            let cells = self.cells_of(&services);
            let count = services.len();
            let watched = self
                .drains
                .entry(record.id.clone())
                .or_insert_with(|| Watched {
                    record: Arc::clone(record),
                    since: snapshot.generation(),
                    own: OwnDrain {
                        in_force: false,
                        held: 0,
                        held_services: Vec::new(),
                        last_given: None,
                        ttl: 0,
                        services: 0,
                    },
                    services: Vec::new(),
                    cells: HashMap::new(),
                });
            // A TTL that was lowered since: what was given with the higher one may still be in caches.
            watched.own.ttl = watched.own.ttl.max(ttl);
            watched.own.services = count;
            watched.services = services;
            // Cells that are new begin with the sum of now: what was counted before was before it was drained or there.
            for (cell, sum) in cells {
                watched.cells.entry(cell).or_insert(sum);
            }
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
        let judge = self.judged != Some(snapshot.generation());
        self.judged = Some(snapshot.generation());
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
    /// Finds the services for which this is the last resort.
    fn judge(&mut self, inventory: &Inventory, snapshot: &Snapshot, sets: &mut RankSets) {
        self.own.held = 0;
        self.own.held_services.clear();
        for &index in &self.services {
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
                .map(|rank| self.rank(rank, (inventory, snapshot), (service, slot)))
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
        (service, slot): (&Service, &ServiceSlot),
    ) -> Rank {
        let mut found = Rank::default();
        for pool in slot.pools.of(rank) {
            let touches =
                |address| touches(&self.record, inventory, pool.cluster(), address, service);
            let addresses = pool.v4().chain(pool.v6());
            let states = addresses.map(|endpoint| (endpoint.state, touches(endpoint.address)));
            let nowhere = std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);
            let host = pool.host_state().map(|state| (state, touches(nowhere)));
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

/// Tells whether a record speaks of an endpoint.
fn touches(
    record: &OperatorRecord,
    inventory: &Inventory,
    cluster: ClusterIndex,
    address: std::net::IpAddr,
    service: &Service,
) -> bool {
    inventory
        .cluster(cluster)
        .is_some_and(|cluster| record.target.is_for(&cluster.id, address, &service.key))
}

/// Lists the services that a record touches.
fn touched(record: &OperatorRecord, inventory: &Inventory) -> Vec<ServiceIndex> {
    let has = |service: &Service| {
        service.pools.iter().any(|pool| {
            let touches = |address| touches(record, inventory, pool.cluster(), address, service);
            match record.target.address() {
                None => touches(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)),
                Some(_) => pool
                    .v4()
                    .chain(pool.v6())
                    .any(|endpoint| touches(endpoint.address)),
            }
        })
    };
    if let Some(key) = record.target.service() {
        let found = inventory.find_all(key);
        let found = found.filter(|&index| inventory.service(index).is_some_and(has));
        return found.collect();
    }
    let all = inventory.services();
    all.filter(|(_, service)| has(service))
        .map(|(index, _)| index)
        .collect()
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
