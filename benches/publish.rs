//! From an observation to the first answer that shows it, with 100,000 services loaded: `cargo bench --bench publish`.
//!
//! The whole way but for the sockets: `Fleet::observe`, the flip's channel, the controller, build, publish, and a reader that
//! answers packets without pause. Three cases: (a) a target of one service alone, (b) one ingress shared by all, (c) 1,000
//! targets at once. Prints percentiles, and fails when a p99 is above 10 ms.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench reads clocks and prints"
)]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use meridian::answer::{Draws, Outcome, Sender, Transport, answer};
use meridian::config::{self, Defaults};
use meridian::controller::{Channels, Controller, Journal, Load, Memory, Workers};
use meridian::geo::{GeoDb, Source, SourceKind};
use meridian::health::{Fleet, Flip, MonitorId, Observation, ProbeError};
use meridian::inventory::ClusterRegistry;
use meridian::model::Moment;
use meridian::snapshot::{SnapshotCell, SnapshotReader};
use meridian::telemetry::Counters;
use meridian::zone::{Zone, ZoneSet};
use tokio::sync::mpsc;

/// As the program has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Services loaded.
const SERVICES: u32 = 100_000;
/// Targets that fail at once in case (c).
const MANY: u32 = 1000;
/// Failures measured in each case.
const ROUNDS: u32 = 200;
/// What a p99 may be.
const GOAL: Duration = Duration::from_millis(10);
/// The ingress that all services share.
const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Clients near the services' own targets, and near the shared ingress.
const AMERICAN: [u8; 3] = [3, 80, 0];
const GERMAN: [u8; 3] = [46, 114, 0];

/// Gives the target that only one service has.
fn own(service: u32) -> Ipv4Addr {
    Ipv4Addr::from((10 << 24) + service)
}

/// Writes the configuration: each service has a target of its own in America and shares one in Europe.
fn configuration() -> String {
    let mut text = String::from(
        "version: 1
dns: {listen: [\"127.0.0.1:0\"]}
zones: [{name: svc.example, nameservers: [{name: ns1.svc.example, addresses: [127.0.0.1]}], contact: hostmaster.svc.example}]
clusters:
  - {name: america, provider: aws, region: us-east-1}
  - {name: europe, provider: aws, region: eu-central-1}
defaults: {monitor: {tcp: {port: 80}}}
services:
",
    );
    for service in 0..SERVICES {
        let own = own(service);
        writeln!(
            text,
            "  - {{namespace: bench, name: s{service}, hostnames: [s{service}.svc.example], endpoints: [{{cluster: america, addresses: [{own}]}}, {{cluster: europe, addresses: [{SHARED}]}}]}}"
        )
        .expect("a String takes everything");
    }
    text
}

/// Reads the configuration the way the program does.
fn load() -> Load {
    let defaults = Defaults {
        node_name: "bench".to_owned(),
    };
    let parsed = config::parse(
        &configuration(),
        Path::new("/bench.yaml"),
        &mut ClusterRegistry::default(),
        &defaults,
    );
    let (config, _) = parsed.expect("a good configuration");
    let zone =
        |zone: &config::ZoneSource| Arc::new(Zone::compile(&zone.spec).expect("a good zone"));
    let embedded = Source {
        name: "embedded".to_owned(),
        kind: SourceKind::EmbeddedCountry,
        bytes: [].into(),
    };
    Load {
        clusters: config.clusters,
        services: config.services,
        zones: Arc::new(ZoneSet::new(config.zones.iter().map(zone).collect())),
        geo: Arc::new(GeoDb::compile(&[embedded], &[]).0),
        groups: Arc::new(config.groups),
        settings: Arc::new(config.settings),
        federation: Arc::default(),
        held: meridian::controller::Held::default(),
    }
}

/// Asks the snapshot in force, as a worker would.
struct Client {
    reader: SnapshotReader,
    draws: Draws,
    counters: Counters,
    reply: Vec<u8>,
}

impl Client {
    /// Gives the address that a client is told for a service.
    fn ask(&mut self, service: u32, network: [u8; 3]) -> Option<Ipv4Addr> {
        let snapshot = self.reader.load();
        let sender = Sender {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            transport: Transport::Udp,
        };
        let worker = (&mut self.draws, &self.counters);
        let Outcome::Reply(octets) = answer(
            &snapshot,
            &query(service, network),
            sender,
            &mut self.reply,
            worker,
        ) else {
            return None;
        };
        // One A record behind the question, an OPT of 11 and 4 + 7 octets at the end.
        let end = octets.checked_sub(22)?;
        let address: [u8; 4] = self.reply.get(end.checked_sub(4)?..end)?.try_into().ok()?;
        Some(Ipv4Addr::from(address))
    }

    /// Asks without pause until the address is told.
    fn wait_for(&mut self, service: u32, network: [u8; 3], address: Ipv4Addr) {
        let begun = Instant::now();
        while self.ask(service, network) != Some(address) {
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "s{service} never became {address}"
            );
        }
    }
}

/// Writes a query for A with a /24 in ECS.
fn query(service: u32, network: [u8; 3]) -> Vec<u8> {
    let mut packet = vec![0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    for label in [format!("s{service}").as_str(), "svc", "example"] {
        packet.push(u8::try_from(label.len()).expect("a short label"));
        packet.extend_from_slice(label.as_bytes());
    }
    packet.extend_from_slice(&[
        0, 0, 1, 0, 1, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 11, 0, 8, 0, 7, 0, 1, 24, 0,
    ]);
    packet.extend_from_slice(&network);
    packet
}

/// The monitors, with a clock of their own.
struct Monitors {
    fleet: Fleet,
    now: Moment,
    by_address: HashMap<IpAddr, MonitorId>,
}

impl Monitors {
    /// Has all probes go out, an hour after the last ones: no flap is held down.
    fn go_out(&mut self) {
        self.now = self.now.after(Duration::from_secs(3600));
        for order in self.fleet.due(self.now, usize::MAX) {
            self.by_address
                .insert(order.target.address.ip(), order.monitor);
        }
    }

    /// Observes each target once; gives the flips, unsent.
    fn observe(&mut self, targets: &[Ipv4Addr], result: Result<Duration, ProbeError>) -> Vec<Flip> {
        let mut flips = Vec::new();
        for target in targets {
            let monitor = *self.by_address.get(&IpAddr::V4(*target)).expect("a target");
            let flip = self
                .fleet
                .observe(Observation { monitor, result }, self.now);
            flips.extend(flip.filter(|flip| flip.verdict != flip.before));
        }
        flips
    }

    /// Observes each target until its verdict flips, and sends the flips; gives when the last observation began.
    fn flip(
        &mut self,
        (targets, result): (&[Ipv4Addr], Result<Duration, ProbeError>),
        flips: &mpsc::Sender<Vec<Flip>>,
    ) -> Instant {
        for _ in 0..4 {
            self.go_out();
            let begun = Instant::now();
            let batch = self.observe(targets, result);
            if !batch.is_empty() {
                assert_eq!(batch.len(), targets.len(), "all flip at once");
                flips.blocking_send(batch).expect("a controller");
                return begun;
            }
        }
        panic!("no target flipped");
    }
}

/// Who is asked about, from where, and the address before and after the failure.
type Shown = (u32, [u8; 3], Ipv4Addr, Ipv4Addr);

/// One case: which targets fail, and which answer shows it.
struct Case<'a> {
    name: &'a str,
    targets: Vec<Vec<Ipv4Addr>>,
    /// By round: services asked, from where, and the address before and after.
    shown: fn(usize) -> Vec<Shown>,
}

/// Measures one case; gives its p99.
fn measure(
    case: &Case<'_>,
    client: &mut Client,
    monitors: &mut Monitors,
    flips: &mpsc::Sender<Vec<Flip>>,
) -> Duration {
    let mut times = Vec::new();
    for (round, targets) in case.targets.iter().enumerate() {
        for (result, failing) in [
            (Err(ProbeError::Refused), true),
            (Ok(Duration::from_millis(1)), false),
        ] {
            let begun = monitors.flip((targets, result), flips);
            for (service, network, before, after) in (case.shown)(round) {
                client.wait_for(service, network, if failing { after } else { before });
            }
            times.push(begun.elapsed());
        }
    }
    times.sort();
    let at = |share: usize| {
        times
            .get((times.len() * share / 100).min(times.len() - 1))
            .copied()
            .unwrap_or_default()
    };
    println!(
        "{:<42} p50 {:>9.3?}  p99 {:>9.3?}  max {:>9.3?}",
        case.name,
        at(50),
        at(99),
        at(100)
    );
    at(99)
}

/// Gives the service of one round, spread over all.
fn spread(round: usize) -> u32 {
    u32::try_from(round).unwrap_or(0) * 499 % SERVICES
}

/// Gives the services of one round of many.
fn many(round: usize) -> impl Iterator<Item = u32> {
    (0..MANY).map(move |n| (spread(round) + n * 97) % SERVICES)
}

/// Lists the three cases.
fn cases() -> [Case<'static>; 3] {
    let rounds = 0..ROUNDS as usize;
    [
        Case {
            name: "(a) one service's own target",
            targets: rounds
                .clone()
                .map(|round| vec![own(spread(round))])
                .collect(),
            shown: |round| vec![(spread(round), AMERICAN, own(spread(round)), SHARED)],
        },
        Case {
            name: "(b) one ingress shared by 100,000 services",
            targets: rounds.map(|_| vec![SHARED]).collect(),
            shown: |round| vec![(spread(round), GERMAN, SHARED, own(spread(round)))],
        },
        Case {
            name: "(c) 1,000 targets at once",
            targets: (0..20)
                .map(|round| many(round).map(own).collect())
                .collect(),
            shown: |round| {
                many(round)
                    .map(|service| (service, AMERICAN, own(service), SHARED))
                    .collect()
            },
        },
    ]
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let cell = Arc::new(SnapshotCell::default());
    let (flips, received) = mpsc::channel(64);
    let (monitors, mut changes) = mpsc::channel(64);
    let channels = Channels {
        flips: received,
        monitors,
        workers: Workers::default(),
        journal: Journal::default(),
    };
    let (controller, handle) = Controller::new(Arc::clone(&cell), channels, &Memory::default());
    let token = tokio_util::sync::CancellationToken::new();
    let running = runtime.spawn(controller.run(token.clone()));
    let loaded = runtime.block_on(handle.load(load())).expect("a controller");
    assert!(loaded.is_empty(), "{loaded:?}");
    let change = changes.try_recv().expect("monitors");
    let mut monitors = Monitors {
        fleet: Fleet::new(1),
        now: Moment::default(),
        by_address: HashMap::new(),
    };
    monitors
        .fleet
        .change(change.watch, &change.unwatch, monitors.now);
    for order in monitors.fleet.due(monitors.now, usize::MAX) {
        monitors
            .by_address
            .insert(order.target.address.ip(), order.monitor);
        let observation = Observation {
            monitor: order.monitor,
            result: Ok(Duration::from_millis(1)),
        };
        monitors.fleet.observe(observation, monitors.now);
    }
    let mut client = Client {
        reader: cell.reader(),
        draws: Draws::default(),
        counters: Counters::default(),
        reply: vec![0; 1232],
    };
    let cases = cases();
    println!(
        "{SERVICES} services, {} snapshots before",
        cell.reader().load().generation()
    );
    let worst = cases
        .iter()
        .map(|case| measure(case, &mut client, &mut monitors, &flips))
        .max()
        .unwrap_or_default();
    token.cancel();
    runtime
        .block_on(running)
        .expect("the controller ended well");
    if worst <= GOAL {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
