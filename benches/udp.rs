//! What a UDP query costs beside the least that a socket server can do.
//!
//! Three servers in turn on the same core, driven from another thread over loopback: `floor`, a bare recvmmsg/sendmmsg echo;
//! `batch`, the same echo through the batches of `transport/udp/mmsg.rs`; `meridian`, real workers over a real snapshot
//! (1,000 steered names, 4 clusters, random ECS /24, 80 % A and 20 % AAAA). Prints the server's CPU time per query
//! (`/proc/self/task/*/schedstat`), medians of interleaved rounds, and the ratio to the floor.
//!
//! `cargo bench --bench udp [-- SERVER…]`; without `--bench` (as `cargo test --benches` runs it) one short round shows that it works.
#![expect(
    unsafe_code,
    reason = "the bare loop, the generator and pinning are raw system calls on purpose"
)]
#![expect(
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a bench prints, and may die"
)]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use meridian::geo::{GeoDb, Source, SourceKind};
use meridian::inventory::{Change, Inventory, Service};
use meridian::lifecycle::Supervisor;
use meridian::model::{
    Cluster, ClusterIndex, Coordinates, Groups, Location, LowerName, PolicySpec, PoolsBuilder,
    ServiceKey, Ttl, Weight,
};
use meridian::snapshot::{Inputs, Settings, Snapshot, SnapshotCell, build};
use meridian::transport::{Bound, Config};
use meridian::zone::{NameForms, Nameserver, SoaTimers, Zone, ZoneSet, ZoneSpec};

use crate::wire::echo::{bind, echo};
use crate::wire::generator::{Check, Pace, Plan, load};
use crate::wire::queries::{Queries, packet, random};
use crate::wire::threads::{pin, run_time, threads};

/// As the program has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[path = "wire/mod.rs"]
mod wire;

#[path = "../src/transport/udp/mmsg.rs"]
#[allow(dead_code, reason = "the echo needs no way back and no options")]
mod mmsg;

/// Steered names.
const NAMES: usize = 1000;
/// Queries asked in turn.
const QUERIES: usize = 100_000;

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let (rounds, span) = if full {
        (5, Duration::from_secs(2))
    } else {
        (1, Duration::from_millis(50))
    };
    let mut queries = Queries::new((0..QUERIES).map(query));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let stop = Arc::<AtomicBool>::default();
    let mut supervisor = Supervisor::default();
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let mut servers = Vec::new();
    for name in ["floor", "batch", "meridian"] {
        if !chosen.is_empty() && !chosen.iter().any(|chosen| chosen == name) {
            continue;
        }
        let address = match name {
            "floor" => spawn(name, &stop, echo),
            "batch" => spawn(name, &stop, batch),
            _ => runtime.block_on(async { meridian(&mut supervisor) }),
        };
        servers.push((name, address));
    }
    pin(0, 1);
    let mut costs = vec![Vec::new(); servers.len()];
    for _ in 0..rounds {
        for (index, (name, address)) in servers.iter().enumerate() {
            costs[index].push(measure(name, *address, span, (&mut queries, &stop)));
        }
    }
    println!(
        "{:>10} {:>14} {:>9} {:>12}",
        "server", "CPU ns/query", "x floor", "queries/s"
    );
    let mut floor = 0.0;
    for ((name, _), costs) in servers.iter().zip(&mut costs) {
        costs.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (cost, rate) = costs[costs.len() / 2];
        if *name == "floor" {
            floor = cost;
        }
        let (low, high) = (costs[0].0, costs[costs.len() - 1].0);
        println!(
            "{name:>10} {cost:>14.0} {:>9.3} {rate:>12.0}  [{low:.0}-{high:.0}]",
            cost / floor
        );
    }
    stop.store(true, Ordering::Relaxed);
    runtime.block_on(supervisor.shut_down(Duration::from_secs(2)));
}

/// Asks one server for a while: nanoseconds a query of its threads, and queries a second.
fn measure(
    name: &str,
    address: SocketAddr,
    span: Duration,
    (queries, stop): (&mut Queries, &AtomicBool),
) -> (f64, f64) {
    let (prefix, check) = match name {
        "meridian" => ("udp-", Check::Answered),
        _ => (name, Check::Nothing),
    };
    let threads = threads_of(prefix);
    threads.iter().for_each(|&thread| pin(thread, 0));
    let mut plan = Plan {
        address,
        pace: Pace::Saturated,
        span: span / 4,
        check,
        stop,
    };
    load(&plan, queries);
    plan.span = span;
    let before = cpu(&threads);
    let tally = load(&plan, queries);
    let used = cpu(&threads) - before;
    assert!(!tally.silent && tally.replies > 0, "{name} fell silent");
    assert_eq!(tally.refused, 0, "replies without an answer");
    (
        used as f64 / tally.replies as f64,
        tally.replies as f64 / span.as_secs_f64(),
    )
}

/// Starts an echo on a thread of its own and gives its address.
fn spawn(name: &str, stop: &Arc<AtomicBool>, run: fn(&UdpSocket, &AtomicBool)) -> SocketAddr {
    let socket = bind((Ipv4Addr::LOCALHOST, 0).into());
    let address = socket.local_addr().unwrap();
    let stop = Arc::clone(stop);
    let builder = std::thread::Builder::new().name(name.into());
    builder.spawn(move || run(&socket, &stop)).unwrap();
    address
}

/// Starts real workers over a real snapshot and gives their address.
fn meridian(supervisor: &mut Supervisor) -> SocketAddr {
    let cell = Arc::<SnapshotCell>::default();
    drop(cell.publish(world()));
    let config = Config {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        workers: 1,
        ..Config::default()
    };
    let running = Bound::bind(&config)
        .unwrap()
        .spawn(&cell.reader(), supervisor)
        .unwrap();
    running.addresses()[0]
}

// === The servers to compare with ===

/// The same echo through our batches: what the safe door, separate reply buffers and copied addresses cost.
fn batch(socket: &UdpSocket, stop: &AtomicBool) {
    let mut received = mmsg::Received::new(mmsg::PacketInfo::Off);
    let mut replies = mmsg::Replies::new();
    while !stop.load(Ordering::Relaxed) {
        if received.receive(socket, mmsg::Wait::ForOne).is_err() {
            continue;
        }
        for datagram in received.iter() {
            let query = datagram.octets();
            if datagram.sender().is_none() || !datagram.is_whole() {
                continue;
            }
            let buffer = &mut replies.buffer()[..query.len()];
            buffer.copy_from_slice(query);
            buffer[2] |= 0x84;
            replies.push(query.len(), &datagram);
        }
        replies.send(socket);
    }
}

// === The threads ===

/// Lists our threads whose name begins so.
fn threads_of(name: &str) -> Vec<i32> {
    let ours = threads(std::process::id()).into_iter();
    ours.filter(|(_, thread)| thread.starts_with(name))
        .map(|(id, _)| id)
        .collect()
}

/// Sums the nanoseconds that threads ran.
fn cpu(threads: &[i32]) -> u64 {
    threads.iter().filter_map(|&thread| run_time(thread)).sum()
}

// === The world and its queries ===

/// Makes one query: a name, A or AAAA, ECS with a /24.
fn query(seed: usize) -> Vec<u8> {
    let draw = random(seed);
    let name = host((draw % NAMES as u64) as usize);
    let rtype = if draw >> 20 & 7 < 6 { 1 } else { 28 };
    let network = (draw >> 32) as u32 % 0xdf00_0000 + 0x0100_0000;
    packet(&name, rtype, network.into())
}

/// Gives a steered name.
fn host(number: usize) -> LowerName {
    format!("s{number:06}.svc.example").parse().unwrap()
}

/// Builds the snapshot: one zone, four clusters on four continents, [`NAMES`] services in all of them.
fn world() -> Snapshot {
    let places = [
        ("aws-use1", 38.9, -77.4),
        ("gcp-euw1", 50.4, 3.8),
        ("aws-apse1", 1.3, 103.8),
        ("aws-sae1", -23.5, -46.6),
    ];
    let cluster = |(index, (id, latitude, longitude)): (usize, (&str, f64, f64))| {
        let cluster = Cluster {
            location: Location {
                coordinates: Coordinates::new(latitude, longitude).ok(),
                ..Location::default()
            },
            ..Cluster::named(id.parse().unwrap())
        };
        (ClusterIndex(index as u16), Arc::new(cluster))
    };
    let policy = Arc::<PolicySpec>::default();
    let service = |number: usize| {
        let mut pools = PoolsBuilder::default();
        for index in 0..places.len() as u16 {
            let v4 = Ipv4Addr::from(0x0a00_0000 + (u32::from(index) << 20) + number as u32);
            let v6 = Ipv6Addr::from(
                (0x2001_0db8 << 96) + (u128::from(index) << 64) + number as u128 + 1,
            );
            let addresses = [IpAddr::V4(v4), IpAddr::V6(v6)];
            pools
                .addresses(ClusterIndex(index), Weight(1), None, &addresses)
                .unwrap();
        }
        Service {
            key: ServiceKey::new("bench", &format!("s{number:06}")).unwrap(),
            origin: meridian::inventory::Origin::default(),
            names: [host(number)].iter().collect(),
            ttl: None,
            policy: Arc::clone(&policy),
            monitor: None,
            pools: pools.build().unwrap(),
            extras: None,
        }
    };
    let mut inventory = Inventory::default();
    let mut dirty = inventory.apply(Change::Clusters(
        places.into_iter().enumerate().map(cluster).collect(),
    ));
    let more = inventory.apply(Change::Replace((0..NAMES).map(service).collect()));
    dirty.services.extend(more.services);
    let source = Source {
        name: "embedded".into(),
        kind: SourceKind::EmbeddedCountry,
        bytes: [].into(),
    };
    let (geo, rejections) = GeoDb::compile(&[source], &[]);
    assert!(rejections.is_empty(), "{rejections:?}");
    let inputs = Inputs {
        inventory: &inventory,
        zones: &Arc::new(ZoneSet::new(vec![Arc::new(zone())])),
        geo: &Arc::new(geo),
        groups: &Arc::<Groups>::default(),
        settings: &Arc::<Settings>::default(),
        challenges: &Arc::default(),
        states: &[],
    };
    let built = build(&inputs, &dirty, &Snapshot::default());
    assert!(built.rejections.is_empty(), "{:?}", built.rejections);
    built.snapshot
}

/// Compiles the zone of the names.
fn zone() -> Zone {
    let hour = Duration::from_secs(3600);
    let ttl = Ttl::new(30).unwrap();
    let spec = ZoneSpec {
        apex: "svc.example".parse().unwrap(),
        nameservers: vec![Nameserver {
            name: "ns1.svc.example".parse().unwrap(),
            addresses: vec![[127, 0, 0, 1].into()],
        }],
        contact: "hostmaster.example".parse().ok(),
        soa: SoaTimers {
            ttl,
            refresh: hour,
            retry: hour,
            expire: hour,
        },
        ns_ttl: ttl,
        ttl,
        negative_ttl: ttl,
        file: None,
        serial: 1,
        acme: None,
        forms: NameForms::default(),
    };
    Zone::compile(&spec).unwrap()
}
