//! Measures the tables of names and services: lookup, memory, building, publishing.
//!
//! `cargo bench --bench tables` prints one line a figure. Numbers as arguments measure that many names alone:
//! `cargo bench --bench tables -- 100000`.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement prints and reads the clock"
)]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    missing_docs,
    reason = "a measurement may stop at the first surprise"
)]

use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use meridian::geo::GeoDb;
use meridian::inventory::{Change, Dirty, Inventory, Service};
use meridian::model::{
    Check, Cluster, ClusterIndex, Coordinates, EndpointIndex, EndpointState, Groups, Location,
    LowerName, MonitorSpec, NameRef, Origin, PolicySpec, PoolsBuilder, ServiceKey, Ttl, Verdict,
    Weight,
};
use meridian::prefix::prefetch_pointer;
use meridian::snapshot::{Inputs, NameTable, Settings, Snapshot, SnapshotCell, build};
use meridian::zone::{
    NameForms, NameTree, Nameserver, SoaTimers, Zone, ZoneFile, ZoneSet, ZoneSpec,
};

/// As the program has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Queries a batch, as the UDP workers have.
const BATCH: usize = 64;
/// Lookups a round.
const LOOKUPS: usize = 262_144;
/// Single changes measured.
const CHANGES: usize = 400;

fn main() {
    let numbers: Vec<u32> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    for count in &numbers {
        names(*count);
    }
    if !numbers.is_empty() {
        return;
    }
    // Each in a process of its own: what one leaves behind must not count as memory that another needs.
    let program = std::env::current_exe().unwrap();
    for count in ["1000", "100000", "1000000"] {
        let status = std::process::Command::new(&program).arg(count).status();
        assert!(status.unwrap().success());
    }
    states(100_000);
    thousand_zones();
}

// === The world ===

fn zone(apex: &str, text: &str) -> Arc<Zone> {
    let ttl = |seconds| Ttl::new(seconds).unwrap();
    let hour = Duration::from_secs(3600);
    let spec = ZoneSpec {
        apex: apex.parse().unwrap(),
        nameservers: vec![Nameserver {
            name: "ns.example.net".parse().unwrap(),
            addresses: Vec::new(),
        }],
        contact: None,
        soa: SoaTimers {
            ttl: ttl(3600),
            refresh: hour,
            retry: hour,
            expire: hour,
        },
        ns_ttl: ttl(3600),
        ttl: ttl(30),
        negative_ttl: ttl(30),
        file: Some(ZoneFile {
            path: "/zones/bench.zone".into(),
            text: format!("$TTL 300\n{text}\n").into_bytes().into(),
            includes: Vec::new(),
        }),
        serial: 1,
        acme: None,
        forms: NameForms::default(),
    };
    Arc::new(Zone::compile(&spec).unwrap())
}

fn clusters() -> Vec<(ClusterIndex, Arc<Cluster>)> {
    (0..4_u16)
        .map(|index| {
            let coordinates = Coordinates::new(10.0, f64::from(index) * 30.0).ok();
            let cluster = Cluster {
                location: Location {
                    coordinates,
                    ..Location::default()
                },
                ..Cluster::named(format!("cluster-{index}").parse().unwrap())
            };
            (ClusterIndex(index), Arc::new(cluster))
        })
        .collect()
}

/// What services share, as a source interns it.
#[derive(Clone, Default)]
struct Shared {
    policy: Arc<PolicySpec>,
    monitor: Option<Arc<MonitorSpec>>,
}

fn monitor() -> Arc<MonitorSpec> {
    Arc::new(MonitorSpec::new(Check::connect(443), Origin::Operator))
}

/// Makes the service of a number: one name, four clusters, A and AAAA in each. `salt` changes its addresses.
fn service(number: u32, salt: u8, shared: &Shared) -> Service {
    let mut pools = PoolsBuilder::default();
    let [_, b, c, d] = number.to_be_bytes();
    for cluster in 0..4_u16 {
        let a = 10 + cluster.to_le_bytes()[0];
        let v4 = IpAddr::from([a, b ^ salt, c, d]);
        let low = [u16::from_be_bytes([0, b]), u16::from_be_bytes([c, d])];
        let v6 = IpAddr::from([
            0x2001,
            0xdb8,
            cluster,
            u16::from(salt),
            0,
            0,
            low[0],
            low[1],
        ]);
        pools
            .addresses(ClusterIndex(cluster), Weight(1), None, &[v4, v6])
            .unwrap();
    }
    Service {
        key: ServiceKey::new(&format!("ns-{}", number % 1000), &format!("svc-{number}")).unwrap(),
        origin: meridian::inventory::Origin::default(),
        names: [owner(number)].iter().collect(),
        ttl: None,
        policy: Arc::clone(&shared.policy),
        monitor: shared.monitor.clone(),
        pools: pools.build().unwrap(),
        extras: None,
    }
}

fn owner(number: u32) -> LowerName {
    format!("svc-{number}.ns-{}.svc.example.com", number % 1000)
        .parse()
        .unwrap()
}

struct World {
    inventory: Inventory,
    zones: Arc<ZoneSet>,
    geo: Arc<GeoDb>,
    groups: Arc<Groups>,
    settings: Arc<Settings>,
    cell: Arc<SnapshotCell>,
}

impl World {
    fn new(zones: Vec<Arc<Zone>>) -> Self {
        let mut inventory = Inventory::default();
        inventory.apply(Change::Clusters(clusters()));
        Self {
            inventory,
            zones: Arc::new(ZoneSet::new(zones)),
            geo: Arc::default(),
            groups: Arc::default(),
            settings: Arc::default(),
            cell: Arc::default(),
        }
    }

    fn publish(&self, dirty: &Dirty, states: &[(EndpointIndex, EndpointState)]) -> Arc<Snapshot> {
        let inputs = Inputs {
            inventory: &self.inventory,
            zones: &self.zones,
            geo: &self.geo,
            groups: &self.groups,
            settings: &self.settings,
            challenges: &Arc::default(),
            states,
        };
        let built = build(&inputs, dirty, &self.snapshot());
        assert_eq!(built.rejections, []);
        self.cell.publish(built.snapshot)
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.cell.reader().load())
    }
}

// === Measuring ===

/// Resident octets of this process.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = text
        .split(' ')
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(0);
    pages * 4096
}

/// Runs `change` many times and prints median, 99th percentile and maximum.
fn sample(what: &str, times: usize, mut change: impl FnMut(usize)) {
    let mut taken: Vec<Duration> = (0..times)
        .map(|at| {
            let start = Instant::now();
            change(at);
            start.elapsed()
        })
        .collect();
    taken.sort();
    let at = |share: usize| taken[(taken.len() * share / 100).min(taken.len() - 1)];
    println!(
        "{what}: median {:?}, p99 {:?}, most {:?}",
        at(50),
        at(99),
        taken[taken.len() - 1]
    );
}

/// Gives the best of fifteen rounds in nanoseconds a lookup.
fn best(mut round: impl FnMut()) -> f64 {
    (0..15)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed().as_secs_f64() * 1e9 / f64::from(u32::try_from(LOOKUPS).unwrap())
        })
        .fold(f64::INFINITY, f64::min)
}

/// Queries in random order: wire forms one after the other. Few names are asked for by few queries, again and again, so that
/// the queries themselves stay in the cache as packets do.
struct Queries {
    wire: Vec<u8>,
    ends: Vec<usize>,
}

impl Queries {
    fn new(count: u32) -> Self {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut queries = Self {
            wire: Vec::new(),
            ends: vec![0],
        };
        for _ in 0..LOOKUPS.min(4 * count as usize).next_power_of_two() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let number = u32::try_from((state >> 33) % u64::from(count)).unwrap();
            queries.wire.extend_from_slice(owner(number).as_wire());
            queries.ends.push(queries.wire.len());
        }
        queries
    }

    fn get(&self, at: usize) -> NameRef<'_> {
        // The number of queries is a power of two.
        let at = at & (self.ends.len() - 2);
        NameRef::from_checked(&self.wire[self.ends[at]..self.ends[at + 1]])
    }
}

fn names(count: u32) {
    println!("--- {count} services, 4 clusters, A and AAAA in each");
    let mut world = World::new(vec![zone("svc.example.com", "")]);
    let shared = Shared::default();
    let before = resident();
    let services: Vec<Service> = (0..count).map(|n| service(n, 0, &shared)).collect();
    let start = Instant::now();
    let dirty = world.inventory.apply(Change::Replace(services));
    let applied = start.elapsed();
    let start = Instant::now();
    drop(world.publish(&dirty, &[]));
    println!("apply {applied:?}, build and publish {:?}", start.elapsed());
    drop(dirty);
    let held = resident().saturating_sub(before) / count as usize;
    let snapshot = world.snapshot();
    let memory = snapshot.memory();
    println!(
        "resident {held} octets a name; names {}, services {}",
        memory.names / count as usize,
        memory.services / count as usize
    );
    lookups(&snapshot, count);
    drop(snapshot);
    single_changes(&mut world, count, &shared);
}

fn lookups(snapshot: &Snapshot, count: u32) {
    let queries = Queries::new(count);
    let table = snapshot.names();
    let plain = best(|| {
        for at in 0..LOOKUPS {
            black_box(table.find(queries.get(at)).unwrap());
        }
    });
    let staged = best(|| staged(table, &queries));
    let endpoints = best(|| {
        for at in 0..LOOKUPS {
            let index = table.find(queries.get(at)).unwrap().service.unwrap();
            let slot = snapshot.service(index).unwrap();
            black_box(slot.pools.of(2).next().unwrap().v4().next());
        }
    });
    let endpoints_staged = best(|| endpoints_staged(snapshot, &queries));
    println!("name: {plain:.1} ns, staged {staged:.1} ns");
    println!("name, service and endpoint: {endpoints:.1} ns, staged {endpoints_staged:.1} ns");
}

fn staged(table: &NameTable, queries: &Queries) {
    let mut hashes = [None; BATCH];
    for batch in (0..LOOKUPS).step_by(BATCH) {
        for (at, stage) in hashes.iter_mut().enumerate() {
            let hash = table.hash(queries.get(batch + at));
            table.prefetch(hash);
            *stage = Some((hash, None));
        }
        for (at, (hash, candidate)) in hashes.iter_mut().flatten().enumerate() {
            let octets = queries.get(batch + at).as_wire().len();
            *candidate = table.candidate(*hash, octets);
        }
        for (at, (hash, candidate)) in hashes.iter().flatten().enumerate() {
            black_box(table.confirm(*hash, *candidate, queries.get(batch + at))).unwrap();
        }
    }
}

fn endpoints_staged(snapshot: &Snapshot, queries: &Queries) {
    let table = snapshot.names();
    let mut hashes = [None; BATCH];
    let mut services = [None; BATCH];
    for batch in (0..LOOKUPS).step_by(BATCH) {
        for (at, stage) in hashes.iter_mut().enumerate() {
            let hash = table.hash(queries.get(batch + at));
            table.prefetch(hash);
            *stage = Some((hash, None));
        }
        for (at, (hash, candidate)) in hashes.iter_mut().flatten().enumerate() {
            let octets = queries.get(batch + at).as_wire().len();
            *candidate = table.candidate(*hash, octets);
        }
        for (at, (hash, candidate)) in hashes.iter().flatten().enumerate() {
            let found = table.confirm(*hash, *candidate, queries.get(batch + at));
            let (_, steered) = found.unwrap();
            prefetch_pointer(steered.unwrap().pools.place());
            services[at] = steered;
        }
        for steered in services.iter().flatten() {
            black_box(steered.pools.of(2).next().unwrap().v4().next());
        }
    }
}

fn single_changes(world: &mut World, count: u32, shared: &Shared) {
    let number = |at: usize| (u32::try_from(at).unwrap() * 7919) % count;
    sample("upsert, other addresses", CHANGES, |at| {
        let salt = 1 + (at % 200).to_le_bytes()[0];
        let service = service(number(at), salt, shared);
        let dirty = world.inventory.apply(Change::Upsert(service));
        drop(world.publish(&dirty, &[]));
    });
    sample("upsert, other name", CHANGES, |at| {
        let mut service = service(number(at), 0, shared);
        let owner: LowerName = format!("new-{at}.svc.example.com").parse().unwrap();
        service.names = [owner].iter().collect();
        let dirty = world.inventory.apply(Change::Upsert(service));
        drop(world.publish(&dirty, &[]));
    });
    for (what, records) in [
        ("zone, other serial", ["", ""]),
        ("zone, a record more or less", ["", "static A 192.0.2.1"]),
        (
            "zone, a cut more or less",
            ["", "static NS ns.example.net."],
        ),
    ] {
        let zones = records.map(|text| zone("svc.example.com", text));
        sample(what, 20, |at| {
            let zone = Zone::clone(&zones[at % 2]);
            world.zones = Arc::new(ZoneSet::new(vec![Arc::new(zone)]));
            drop(world.publish(&Dirty::default(), &[]));
        });
    }
    sample("upsert, new service", CHANGES, |at| {
        let number = count + u32::try_from(at).unwrap();
        let dirty = world
            .inventory
            .apply(Change::Upsert(service(number, 0, shared)));
        drop(world.publish(&dirty, &[]));
    });
    sample("remove", CHANGES, |at| {
        let number = count + u32::try_from(at).unwrap();
        let key = service(number, 0, shared).key;
        let dirty = world.inventory.apply(Change::Remove(key));
        drop(world.publish(&dirty, &[]));
    });
}

/// Flips among many states, and of one state that all services share.
fn states(count: u32) {
    let shared = Shared {
        monitor: Some(monitor()),
        ..Shared::default()
    };
    for is_shared in [false, true] {
        let mut world = World::new(vec![zone("svc.example.com", "")]);
        let services = (0..count).map(|n| {
            let mut own = service(n, 0, &shared);
            if is_shared {
                own.pools = service(0, 0, &shared).pools;
            }
            own
        });
        let services = services.collect();
        let before = resident();
        let start = Instant::now();
        let dirty = world.inventory.apply(Change::Replace(services));
        let applied = start.elapsed();
        drop(world.publish(&dirty, &[]));
        let end = u32::try_from(world.inventory.endpoint_count()).unwrap();
        println!(
            "--- {count} monitored services, {end} states, {} targets; apply {applied:?}, {} octets a service beside pools",
            dirty.watch.len(),
            resident().saturating_sub(before) / count as usize
        );
        let flip = |at: usize, up: bool| {
            let verdict = if up { Verdict::Up } else { Verdict::Down };
            let index = EndpointIndex(u32::try_from(at * 7919).unwrap() % end);
            (index, EndpointState::UP.with_verdict(verdict))
        };
        sample("flip of one", CHANGES, |at| {
            drop(world.publish(&Dirty::default(), &[flip(at / 2, at % 2 == 1)]));
        });
        sample("flip of 1,000", CHANGES, |at| {
            let all: Vec<_> = (0..1000).map(|n| flip(n, at % 2 == 1)).collect();
            drop(world.publish(&Dirty::default(), &all));
        });
    }
}

fn thousand_zones() {
    let records: String = (0..10)
        .map(|n| format!("host-{n} 300 A 192.0.2.{n}\n"))
        .collect();
    let zones: Vec<Arc<Zone>> = (0..1000)
        .map(|n| zone(&format!("z{n}.example.com"), &records))
        .collect();
    let mut world = World::new(zones.clone());
    let start = Instant::now();
    drop(world.publish(&Dirty::default(), &[]));
    println!("--- 1,000 zones of 10 names: build {:?}", start.elapsed());
    let all = zones.len();
    sample("one zone replaced", 20, |at| {
        let mut zones = zones.clone();
        zones[at % all] = zone(&format!("z{at}.example.com"), &records);
        world.zones = Arc::new(ZoneSet::new(zones));
        drop(world.publish(&Dirty::default(), &[]));
    });
}
