//! User time of one query, from packet to reply, in process: `cargo bench --bench answer [-- NAMES…]`.
//!
//! The same load as the side-by-side comparison: services with four clusters, A and AAAA, continent maps; queries with a random
//! ECS /24, four of five for A; batches of 64. Prints nanoseconds a query (the best of several rounds, for the machine's other
//! work only ever adds) and fails when a query allocates.

#![expect(
    clippy::cast_possible_truncation,
    reason = "numbers of services and clusters are small by construction"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use meridian::answer::{Draws, Lookup, Outcome, Query, Sender, Transport, answer};
use meridian::geo::{GeoDb, Source, SourceKind};
use meridian::inventory::{Change, Dirty, Inventory, Service};
use meridian::model::{
    Cluster, ClusterIndex, ClusterSelector, Coordinates, Groups, Location, LowerName, MapEntry,
    Names, PolicySpec, PoolsBuilder, PrefixLen, ServiceKey, Ttl, Weight,
};
use meridian::snapshot::{Inputs, Settings, Snapshot, build};
use meridian::telemetry::Counters;
use meridian::zone::{NameForms, Nameserver, SoaTimers, Zone, ZoneSet, ZoneSpec};
use mimalloc::MiMalloc;

/// Queries prepared.
const QUERIES: usize = 100_000;
/// Queries of one batch, as the UDP worker takes them.
const BATCH: usize = 64;
/// Rounds over all queries.
const ROUNDS: usize = 7;
/// Clusters, where they are, and the continents they come first for.
const CLUSTERS: [(&str, f64, f64); 4] = [
    ("us-east", 38.9, -77.4),
    ("eu-west", 53.3, -6.3),
    ("ap-se", 1.3, 103.8),
    ("sa-east", -23.5, -46.6),
];
const MAPS: [(&str, [usize; 4]); 8] = [
    ("continent:NA", [0, 1, 3, 2]),
    ("continent:SA", [3, 0, 1, 2]),
    ("continent:AN", [3, 0, 1, 2]),
    ("continent:EU", [1, 0, 2, 3]),
    ("continent:AF", [1, 0, 2, 3]),
    ("continent:AS", [2, 1, 0, 3]),
    ("continent:OC", [2, 0, 1, 3]),
    ("", [0, 1, 2, 3]),
];

/// Counts allocations of the program's allocator.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(
    unsafe_code,
    reason = "an allocator that counts is the only proof that nothing allocates"
)]
// SAFETY: every call goes to the other allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn main() {
    let given: Vec<usize> = std::env::args()
        .filter_map(|text| text.parse().ok())
        .collect();
    let sizes = if given.is_empty() {
        vec![1_000, 100_000, 1_000_000]
    } else {
        given
    };
    println!(
        "names      parse   begin   locate   in a row   staged   (ns a query, best of {ROUNDS})"
    );
    for names in sizes {
        // On pages as the program has them.
        meridian::app::lay_out(names);
        let snapshot = world(names);
        let queries = queries(names);
        let bench = Bench {
            snapshot: &snapshot,
            queries: &queries,
            clients: queries.iter().map(|query| client(query)).collect(),
        };
        bench.check();
        let parse = bench.best(Bench::parse);
        let begin = bench.best(Bench::begin);
        let locate = bench.best(Bench::locate);
        let row = bench.best(Bench::in_a_row);
        let staged = bench.best(Bench::staged);
        println!(
            "{names:<9} {parse:>6.1}  {begin:>6.1}   {locate:>6.1}   {row:>8.1}   {staged:>6.1}"
        );
    }
}

/// One size.
struct Bench<'a> {
    snapshot: &'a Snapshot,
    queries: &'a [Vec<u8>],
    /// Their clients.
    clients: Vec<IpAddr>,
}

/// What a worker owns.
struct Worker {
    draws: Draws,
    counters: Counters,
    out: Box<[[u8; 1232]; BATCH]>,
}

const SENDER: Sender = Sender {
    address: IpAddr::V4(Ipv4Addr::LOCALHOST),
    transport: Transport::Udp,
};

impl Bench<'_> {
    /// Runs one way over all queries several times; gives the best in nanoseconds a query. Not one may allocate.
    fn best(&self, run: impl Fn(&Self, &mut Worker) -> usize) -> f64 {
        let mut worker = Worker {
            draws: Draws::default(),
            counters: Counters::default(),
            out: Box::new([[0; 1232]; BATCH]),
        };
        run(self, &mut worker);
        let best = (0..ROUNDS).map(|_| {
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            let start = now();
            let done = std::hint::black_box(run(self, &mut worker));
            let took = start.elapsed();
            assert_eq!(
                ALLOCATIONS.load(Ordering::Relaxed),
                before,
                "queries allocate nothing"
            );
            assert!(done > 0);
            took
        });
        let best = best.min().unwrap_or(Duration::ZERO);
        best.as_secs_f64() * 1e9 / QUERIES as f64
    }

    /// Parses.
    fn parse(&self, _: &mut Worker) -> usize {
        self.queries
            .iter()
            .filter(|packet| std::hint::black_box(Query::parse(packet)).is_ok())
            .count()
    }

    /// Parses, hashes, hints.
    fn begin(&self, _: &mut Worker) -> usize {
        for packet in self.queries {
            let mut place = None;
            std::hint::black_box(Lookup::begin(&mut place, self.snapshot, packet, SENDER));
        }
        self.queries.len()
    }

    /// Looks up where clients are, and how far that holds: the geo lookup with its scope.
    fn locate(&self, _: &mut Worker) -> usize {
        let mut services = self.snapshot.services();
        let policy = services.next().map(|(_, service)| service.policy);
        let steering = policy.and_then(|policy| self.snapshot.steering(policy));
        let classes = &steering.expect("a policy").classes;
        let located = self.clients.iter().map(|client| classes.locate(*client));
        let octets = located.map(|(_, PrefixLen(scope))| usize::from(scope));
        octets.sum()
    }

    /// Answers one after the other.
    fn in_a_row(&self, worker: &mut Worker) -> usize {
        let Worker {
            draws,
            counters,
            out,
        } = worker;
        let mut octets = 0;
        for packet in self.queries {
            let Some(out) = out.first_mut() else { return 0 };
            octets += length(answer(
                self.snapshot,
                packet,
                SENDER,
                out,
                (draws, counters),
            ));
        }
        octets
    }

    /// Answers in batches, stage by stage.
    fn staged(&self, worker: &mut Worker) -> usize {
        let Worker {
            draws,
            counters,
            out,
        } = worker;
        let mut octets = 0;
        let mut lookups: [Option<Lookup<'_>>; BATCH] = [None; BATCH];
        for batch in self.queries.chunks(BATCH) {
            draws.fit(self.snapshot);
            for (slot, packet) in lookups.iter_mut().zip(batch) {
                Lookup::begin(slot, self.snapshot, packet, SENDER);
            }
            Lookup::advance(&mut lookups, self.snapshot);
            for (slot, out) in lookups.iter_mut().zip(out.iter_mut()) {
                if let Some(lookup) = slot {
                    octets += length(lookup.finish(self.snapshot, out, draws, counters));
                }
            }
        }
        octets
    }

    /// Looks at every reply once: NOERROR with one answer.
    fn check(&self) {
        let (mut draws, counters) = (Draws::default(), Counters::default());
        let mut out = [0; 1232];
        for packet in self.queries {
            let outcome = answer(
                self.snapshot,
                packet,
                SENDER,
                &mut out,
                (&mut draws, &counters),
            );
            assert!(length(outcome) > 0);
            assert_eq!((out[3] & 15, out[7]), (0, 1), "{packet:02x?}");
        }
    }
}

/// Gives the network that a query's ECS option says.
fn client(query: &[u8]) -> IpAddr {
    match query {
        [.., a, b, c] => Ipv4Addr::new(*a, *b, *c, 0).into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    }
}

fn length(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Reply(length) => length,
        Outcome::Drop | Outcome::Rare => 0,
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn now() -> Instant {
    Instant::now()
}

/// A small generator of the same numbers every time (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }
}

/// Writes queries: `sNNNNNN.svc.example`, A or AAAA, ECS with a random /24.
fn queries(names: usize) -> Vec<Vec<u8>> {
    let mut random = Random(42);
    (0..QUERIES)
        .map(|_| {
            let mut packet = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 7];
            packet.extend(format!("s{:06}", random.below(names)).bytes());
            packet.extend(b"\x03svc\x07example\0");
            packet.extend([0, if random.below(5) == 0 { 28 } else { 1 }, 0, 1]);
            packet.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 11, 0, 8, 0, 7, 0, 1, 24, 0]);
            let network = 1 + random.below(223);
            packet.extend([network, random.below(256), random.below(256)].map(|octet| octet as u8));
            packet
        })
        .collect()
}

/// Builds a snapshot of many services.
fn world(names: usize) -> Snapshot {
    let mut inventory = Inventory::default();
    let clusters = CLUSTERS
        .iter()
        .enumerate()
        .map(|(at, (id, latitude, longitude))| {
            let location = Location {
                coordinates: Coordinates::new(*latitude, *longitude).ok(),
                ..Location::default()
            };
            let cluster = Cluster {
                location,
                ..Cluster::named(id.parse().expect("a name"))
            };
            (ClusterIndex(at as u16), Arc::new(cluster))
        });
    let clusters = clusters.collect();
    inventory.apply(Change::Clusters(clusters));
    let policy = Arc::new(policy());
    let services = (0..names).map(|name| service(name, &policy)).collect();
    inventory.apply(Change::Replace(services));
    let embedded = Source {
        name: "embedded".to_owned(),
        kind: SourceKind::EmbeddedCountry,
        bytes: [].into(),
    };
    let (geo, _) = GeoDb::compile(&[embedded], &[]);
    let inputs = Inputs {
        inventory: &inventory,
        zones: &Arc::new(ZoneSet::new(vec![Arc::new(zone())])),
        geo: &Arc::new(geo),
        groups: &Arc::new(Groups::default()),
        settings: &Arc::new(Settings::default()),
        challenges: &Arc::default(),
        states: &[],
    };
    let built = build(&inputs, &Dirty::default(), &Snapshot::default());
    assert!(built.rejections.is_empty());
    built.snapshot
}

/// The policy of all: continents by maps, and a catch-all.
fn policy() -> PolicySpec {
    let cluster = |at: usize| -> ClusterSelector {
        let name = CLUSTERS.get(at).map_or("", |cluster| cluster.0);
        name.parse().expect("a name")
    };
    let maps = MAPS.iter().map(|(client, order)| MapEntry {
        clients: client.parse().into_iter().collect(),
        clusters: order.iter().map(|&at| cluster(at)).collect(),
    });
    PolicySpec {
        maps: maps.collect(),
        ..PolicySpec::default()
    }
}

/// A service with an address of each family in each cluster.
fn service(name: usize, policy: &Arc<PolicySpec>) -> Service {
    let mut pools = PoolsBuilder::default();
    for cluster in 0..CLUSTERS.len() {
        let v4 = Ipv4Addr::from(((10 << 24) + (cluster << 20) + name) as u32);
        let v6 = Ipv6Addr::from((0x2001_0db8 << 96) + ((cluster as u128) << 80) + name as u128 + 1);
        pools
            .addresses(
                ClusterIndex(cluster as u16),
                Weight(1),
                None,
                &[v4.into(), v6.into()],
            )
            .expect("few clusters");
    }
    let hostname: LowerName = format!("s{name:06}.svc.example").parse().expect("a name");
    Service {
        key: ServiceKey::new("bench", &format!("s{name:06}")).expect("a name"),
        origin: meridian::inventory::Origin::default(),
        names: [&hostname].into_iter().collect::<Names>(),
        ttl: None,
        policy: Arc::clone(policy),
        monitor: None,
        pools: pools.build().expect("few endpoints"),
        extras: None,
    }
}

/// The zone `svc.example`.
fn zone() -> Zone {
    let name = |text: &str| -> LowerName { text.parse().expect("a name") };
    let ttl = |seconds| Ttl::new(seconds).expect("a short time");
    Zone::compile(&ZoneSpec {
        apex: name("svc.example"),
        nameservers: vec![Nameserver {
            name: name("ns1.svc.example"),
            addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        }],
        contact: Some(name("hostmaster.svc.example")),
        soa: SoaTimers {
            ttl: ttl(3600),
            refresh: Duration::from_secs(7200),
            retry: Duration::from_secs(900),
            expire: Duration::from_secs(1_209_600),
        },
        ns_ttl: ttl(3600),
        ttl: ttl(60),
        negative_ttl: ttl(60),
        file: None,
        serial: 1,
        acme: None,
        forms: NameForms::default(),
    })
    .expect("a good zone")
}
