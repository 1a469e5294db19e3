//! `meridian run`: load, bind, spawn, wait, drain.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::{info, warn};

use super::allocator::tidy;
use super::args::RunArgs;
use super::clusters_from::Directories;
use super::hand;
use super::joining::Joining;
use super::load::{Former, Parsed, Prepared, Remembered, parse, prepare, seed, unix_now};
use super::members::{self, Beginning, Outside};
use super::observe::{log_queries, send_traces, tell_members};
use super::output::{date, in_one};
use super::reload::{Frozen, Looks, Reloader, log_rejections, log_warnings, show_refused};
use super::{news, write_back};
use crate::admin::{self, Access, Audit, ClusterExits, Events, Sources, Streams, View};
use crate::config::{Config, ZoneSource};
use crate::controller::{
    Channels, Command, Controller, ControllerHandle, Journal, Keeper, Kept, LastGood,
    LastGoodError, MonitorChange, Workers,
};
use crate::disk::Unread;
use crate::inventory::ClusterRegistry;
use crate::lifecycle::{Ready, Supervisor};
use crate::model::counted;
use crate::prober::{Prober, ProberHandle};
use crate::snapshot::SnapshotCell;
use crate::source::Fingerprint;
use crate::telemetry::{OtlpConfig, wall_time};
use crate::transport;
use crate::vantage::{Book, Vantage};

/// Changes of monitors waiting for the prober; the controller waits when it is full.
const MONITOR_CHANGES: usize = 16;
/// After `readyz` says no, before the sockets close: long enough for a load balancer in front to look twice.
const GRACE: Duration = Duration::from_millis(500);
/// Signals to stop are one wish for so long.
const ECHO: Duration = Duration::from_secs(1);
/// Tasks that have not ended by then are left.
const STOP_TIME: Duration = Duration::from_secs(5);
/// Threads for work that blocks, made at the start: the controller's builds, the reloader's reading, the keeper's writing, and
/// one more. Without any the runtime panics when the system has no thread to give; with one the rest waits its turn.
const SPARE_THREADS: usize = 4;
/// Spare threads never end.
const FOR_EVER: Duration = Duration::from_secs(1 << 32);

/// Serves a configuration until SIGTERM or SIGINT.
pub(super) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("meridian")
        .thread_keep_alive(FOR_EVER)
        .on_thread_park(tidy)
        .build()?;
    let served = runtime.block_on(async {
        take_spare_threads().await;
        Box::pin(serve(&args.config)).await
    });
    // Blocking work left over (a build, a write) must not hold the process back.
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

/// Makes the spare threads: as many pieces of blocking work that stand at a gate until all are there.
async fn take_spare_threads() {
    let gate = Arc::new(Mutex::new(()));
    let spares: Vec<_> = {
        let _closed = gate.lock();
        let stand = |_| {
            let gate = Arc::clone(&gate);
            tokio::task::spawn_blocking(move || drop(gate.lock()))
        };
        (0..SPARE_THREADS).map(stand).collect()
    };
    for spare in spares {
        // It can only fail by a panic, and standing has none.
        let _ = spare.await;
    }
}

/// Starts everything and waits for the end.
async fn serve(path: &Path) -> anyhow::Result<ExitCode> {
    // First of all: a signal that nobody listens to ends the process.
    let mut signals = Signals::listen()?;
    let file = path.to_owned();
    let loading = tokio::task::spawn_blocking(move || Loaded::load(&file));
    // Cancel-safe: what is interrupted is never gone on with. A reload asked for meanwhile waits.
    let loaded = tokio::select! {
        loaded = loading => loaded.context("loading failed")??,
        () = signals.stop() => return Ok(ExitCode::SUCCESS),
    };
    let dns = transport::Bound::bind(&loaded.dns).context("cannot listen for DNS")?;
    let admin = admin::Bound::bind(&loaded.admin).map_err(|(address, error)| {
        anyhow::Error::new(error).context(format!("cannot listen on {address} for HTTP"))
    })?;
    let admin_addresses = admin.addresses();
    let mut supervisor = Supervisor::default();
    send_traces(loaded.otlp.as_ref(), &loaded.node_name, &mut supervisor);
    let own = [dns.addresses(), admin_addresses.clone()].concat();
    let node = Node::start(loaded, &own, &mut supervisor).await?;
    let mut running = dns.spawn(&node.cell.reader(), &mut supervisor)?;
    log_queries(&mut running, &node.controller, &mut supervisor);
    let ready = node.ready.clone();
    let sources = node.sources(&running);
    let view = node.view(&sources, &path.display().to_string());
    admin.spawn(&mut supervisor, &sources, &view);
    node.condition.meet();
    let world = Arc::clone(&node.controller.status().world);
    let databases = world.databases.iter().map(|database| {
        let built = match database.build_epoch {
            0 => "of unknown date".to_owned(),
            epoch => date(epoch),
        };
        format!("{} ({built})", database.name)
    });
    info!(
        version = env!("CARGO_PKG_VERSION"),
        configuration = %path.display(),
        zones = world.zones.len(),
        services = world.services,
        clusters = world.clusters.len(),
        databases = databases.collect::<Vec<_>>().join(", "),
        restored = node.restored,
        dns = ?running.addresses(),
        http = ?admin_addresses,
        "Serving"
    );
    let well = wait(&mut supervisor, &mut signals, &node.reload).await;
    info!("Stopping");
    let begun = Instant::now();
    ready.stop();
    tokio::select! {
        () = tokio::time::sleep(GRACE) => {}
        () = signals.force(begun) => bail!("stopped by a second signal"),
    }
    tokio::select! {
        () = supervisor.shut_down(STOP_TIME) => {}
        () = signals.force(begun) => bail!("stopped by a second signal"),
    }
    if well {
        Ok(ExitCode::SUCCESS)
    } else {
        bail!("a critical task ended; see the log")
    }
}

/// Waits for the end: a signal, or a critical task. SIGHUP asks for a reload.
async fn wait(
    supervisor: &mut Supervisor,
    signals: &mut Signals,
    reload: &mpsc::Sender<()>,
) -> bool {
    loop {
        // Cancel-safe: signals are kept, and the supervisor only waits.
        tokio::select! {
            well = supervisor.run() => return well,
            wish = signals.next() => match wish {
                Wish::Stop => return true,
                Wish::Reload => {
                    // One reload waiting is enough: it reads the newest file.
                    let _ = reload.try_send(());
                }
            }
        }
    }
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGHUP.
    Reload,
}

/// The signals we listen to.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Registers all of them. From here on none of them ends the process by itself.
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for any of them.
    async fn next(&mut self) -> Wish {
        // Cancel-safe: signals are kept until received.
        tokio::select! {
            _ = self.terminate.recv() => Wish::Stop,
            _ = self.interrupt.recv() => Wish::Stop,
            _ = self.hangup.recv() => Wish::Reload,
        }
    }

    /// Waits for SIGTERM or SIGINT. A SIGHUP meanwhile is kept.
    async fn stop(&mut self) {
        // Cancel-safe: signals are kept until received.
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Waits for a signal that means it: not the echo of the one that began the stop, as `timeout` sends it to the process
    /// and then to its group.
    async fn force(&mut self, begun: Instant) {
        loop {
            self.stop().await;
            if begun.elapsed() >= ECHO {
                return;
            }
        }
    }
}

/// All of the node but its sockets: what `run` and `demo` share.
pub(super) struct Node {
    /// The snapshot in force.
    pub(super) cell: Arc<SnapshotCell>,
    /// Readiness.
    pub(super) ready: Ready,
    /// Met by the caller once the sockets answer.
    pub(super) condition: crate::lifecycle::Condition,
    /// Asks for a reload.
    pub(super) reload: mpsc::Sender<()>,
    /// The controller.
    pub(super) controller: ControllerHandle,
    /// The prober.
    pub(super) prober: ProberHandle,
    /// What happened.
    pub(super) events: Arc<Events>,
    /// This node among its peers.
    pub(super) vantage: Vantage,
    /// Member clusters and load balancers.
    outside: Outside,
    /// Where the controller looks for the workers' counters.
    workers: Workers,
    /// Who may do what.
    access: Access,
    /// Who did what.
    audit: Audit,
    /// Drops clusters that are leaving.
    exits: ClusterExits,
    /// What was taken over from before the start, in words.
    pub(super) restored: String,
}

/// What a start begins with: everything read, nothing bound.
pub(super) struct Loaded {
    path: PathBuf,
    registry: ClusterRegistry,
    frozen: Frozen,
    fingerprint: Fingerprint,
    zone_sources: Vec<ZoneSource>,
    beginning: Beginning,
    joining: Joining,
    probes: crate::prober::Config,
    peers: crate::vantage::Config,
    book: Book,
    remembered: Remembered,
    /// What was taken over from before the start, in words.
    restored: String,
    prepared: Prepared,
    /// Sockets for DNS.
    pub(super) dns: transport::Config,
    /// Listeners for HTTP.
    pub(super) admin: admin::Config,
    /// Where traces go.
    otlp: Option<OtlpConfig>,
    /// This node's name.
    node_name: String,
}

impl Loaded {
    /// Reads the configuration, takes the state directory, and reads all files.
    pub(super) fn load(path: &Path) -> anyhow::Result<Self> {
        let mut registry = ClusterRegistry::default();
        let parsed = parse(path, &mut registry)?;
        Self::of(path, parsed, registry)
    }

    /// Does the rest of a load after the configuration was read.
    pub(super) fn of(
        path: &Path,
        mut parsed: Parsed,
        mut registry: ClusterRegistry,
    ) -> anyhow::Result<Self> {
        log_warnings(path, &parsed.warnings);
        let (remembered, kept) = recall(&parsed.config)?;
        let recalled = members::recall(remembered.last_good.as_ref());
        let known = (&recalled, remembered.last_good.clone());
        let joining = Joining::begin(&mut parsed.config, &mut registry, known);
        let restored = restored(&parsed.config, &remembered);
        let config = &parsed.config;
        let frozen = Frozen::of(config);
        let fingerprint = parsed.fingerprint;
        let (zone_sources, probes) = (config.zones.clone(), config.probes.clone());
        let (dns, admin) = (config.dns.clone(), config.admin.clone());
        let (peers, book) = (
            config.peers.clone(),
            hand::open_book(config, &remembered.unread),
        );
        let (otlp, node_name) = (config.otlp.clone(), config.node.name.clone());
        let mut beginning = Beginning::of(config, recalled, remembered.last_good.clone());
        let held = beginning.held();
        let former = Former {
            kept,
            ..Former::default()
        };
        let mut prepared = prepare(parsed, &former, &remembered)?;
        prepared.load.held = held;
        prepared.former.refused.directories = joining.directories.refused(&<_>::default());
        log_rejections(&prepared.rejections);
        Ok(Self {
            path: path.to_owned(),
            registry,
            frozen,
            fingerprint,
            zone_sources,
            beginning,
            joining,
            probes,
            peers,
            book,
            remembered,
            restored,
            prepared,
            dns,
            admin,
            otlp,
            node_name,
        })
    }
}

impl Node {
    /// Publishes the first snapshot, by what operators said before, and starts prober, controller, keeper and reloader. `own` is
    /// where this node listens.
    pub(super) async fn start(
        loaded: Loaded,
        own: &[SocketAddr],
        supervisor: &mut Supervisor,
    ) -> anyhow::Result<Self> {
        let mut remembered = loaded.remembered;
        let (load, mut former, octets) = loaded.prepared.into_parts();
        let (prober, prober_handle, flips) = Prober::new(&loaded.probes, own, seed());
        let events = begin_events(&former, &loaded.joining.directories, &remembered.unread);
        let cell = Arc::new(SnapshotCell::default());
        let (monitors, changes) = mpsc::channel(MONITOR_CHANGES);
        let workers = Workers::default();
        let channels = Channels {
            flips,
            monitors,
            workers: Arc::clone(&workers),
            journal: Journal::of_start(wall_time()),
        };
        news::tell_unread(&remembered.unread, &channels.journal);
        let (controller, handle) = Controller::new(Arc::clone(&cell), channels, &remembered.memory);
        let audit = Audit::open(loaded.frozen.state_directory());
        let told = (audit.clone(), cell.reader());
        let vantage = hand::join(&loaded.peers, loaded.book, &handle, told, seed());
        let (controller, records) = hand::begin(controller, &vantage).await;
        let ready = Ready::default();
        let condition = ready.condition();
        let controller = loaded.joining.lay(controller);
        loaded.joining.watch(supervisor);
        supervisor.spawn("controller", controller.run(supervisor.token()));
        supervisor.spawn("prober", prober.run(supervisor.token()));
        supervisor.spawn("monitors", pump(changes, prober_handle.clone()));
        let known = Command::Change(loaded.beginning.targets());
        handle.send(known).await;
        handle.load(load).await.context("the controller is gone")?;
        hand::keep_in_step(&vantage, records, &handle, supervisor);
        remembered.hand_over(octets, &mut former.kept);
        let (kept, watched) = watch::channel(former.kept.clone());
        let told = (&prober_handle, &events);
        keep(&mut remembered, watched, told, supervisor);
        let zones = &loaded.zone_sources;
        let told = (&handle, cell.reader(), &events);
        let outside = members::start(loaded.beginning, zones, told, seed(), supervisor);
        tell_members(&outside.members.watch(), &handle, supervisor);
        let known = (&cell, &prober_handle, &vantage);
        write_back(&outside, &handle, known, supervisor);
        let access = Access::new(&loaded.admin.access, audit.clone());
        let (reload, asked) = mpsc::channel(1);
        let (exits, dropping) = ClusterExits::channel();
        let reloader = Reloader {
            path: loaded.path,
            registry: loaded.registry,
            frozen: loaded.frozen,
            former,
            remembered,
            zone_sources: loaded.zone_sources,
            fingerprint: loaded.fingerprint,
            controller: handle.clone(),
            prober: prober_handle.clone(),
            kept,
            events: Arc::clone(&events),
            access: access.clone(),
            outside: outside.clone(),
            looks: Looks::default(),
            joining: loaded.joining,
        };
        let reloading = reloader.run(asked, dropping, supervisor.token());
        supervisor.spawn("reloader", reloading);
        Ok(Self {
            cell,
            ready,
            condition,
            reload,
            controller: handle,
            prober: prober_handle,
            events,
            vantage,
            outside,
            workers,
            access,
            audit,
            exits,
            restored: loaded.restored,
        })
    }

    /// Gives what API and dashboard show. `configuration` is the path of the file, as it was given.
    pub(super) fn view(&self, sources: &Sources, configuration: &str) -> View {
        View::new(
            sources.clone(),
            self.cell.reader(),
            self.vantage.clone(),
            configuration.to_owned(),
        )
    }

    /// Gives what the HTTP listeners show.
    pub(super) fn sources(&self, running: &transport::Running) -> Sources {
        let streams = Arc::clone(running.streams());
        // Set once: there is one set of workers in a process.
        let _ = self.workers.set(running.counters().into());
        Sources {
            ready: self.ready.clone(),
            counters: running.counters().into(),
            streams: Streams(Arc::new(move || streams.totals().to_vec())),
            controller: self.controller.clone(),
            reports: self.prober.reports(),
            members: self.outside.members.watch(),
            events: Arc::clone(&self.events),
            history: Arc::default(),
            senders: Arc::default(),
            access: self.access.clone(),
            audit: self.audit.clone(),
            exits: self.exits.clone(),
        }
    }
}

/// Makes the counts of what happened, with the time of the start.
fn begin_events(former: &Former, directories: &Directories, unread: &Unread) -> Arc<Events> {
    let events = Arc::new(Events::with_unread(unread));
    let now = unix_now();
    for moment in [&events.started, &events.last_load] {
        moment.store(now, std::sync::atomic::Ordering::Relaxed);
    }
    show_refused(&events, former, directories);
    events
}

/// Says what the last good state gave, and how old it is.
fn restored(config: &Config, remembered: &Remembered) -> String {
    let Some(folder) = &config.node.state_directory else {
        return "nothing, for no state is kept".to_owned();
    };
    let written = std::fs::metadata(folder.join("state.json"))
        .and_then(|found| found.modified())
        .ok();
    let age = written
        .and_then(|written| written.duration_since(std::time::UNIX_EPOCH).ok())
        .map(|since| unix_now().saturating_sub(since.as_secs()));
    let verdicts = counted(remembered.memory.verdicts.len(), "verdict");
    match age {
        Some(age) => format!("{verdicts}, {age} s old"),
        None => "nothing, for there is no state yet".to_owned(),
    }
}

/// Starts the keeper of the last good state, if one is to be kept.
fn keep(
    remembered: &mut Remembered,
    kept: watch::Receiver<Kept>,
    (prober, events): (&ProberHandle, &Arc<Events>),
    supervisor: &mut Supervisor,
) {
    // The controller has them now.
    let verdicts = std::mem::take(&mut remembered.memory.verdicts);
    if let Some(last_good) = remembered.last_good.clone() {
        let failures = Arc::clone(&events.last_good_failures);
        let written = Arc::clone(&events.last_good_written);
        let keeper = Keeper {
            last_good,
            kept,
            unwritten: remembered.unwritten.clone(),
            stored: remembered.memory.files.clone(),
            reports: prober.reports(),
            recalled: Arc::new(verdicts),
            failures,
            fault: events.last_good_fault.clone(),
            written,
        };
        supervisor.spawn("keeper", keeper.run(supervisor.token()));
    }
}

/// Takes the state directory, if state is to be kept, and reads what it says. What cannot be read or made is reported and
/// done without, to be tried again; a directory that another node holds is an error.
fn recall(config: &Config) -> Result<(Remembered, Kept), LastGoodError> {
    let Some(folder) = &config.node.state_directory else {
        return Ok((Remembered::default(), Kept::default()));
    };
    let last_good = LastGood::at(folder);
    match last_good.open() {
        Ok(()) => {}
        Err(error @ LastGoodError::InUse { .. }) => return Err(error),
        Err(error) => {
            let error = in_one(&error);
            warn!(%error, "State directory cannot be used; trying again. A restart before that begins from the files alone");
        }
    }
    let memory = last_good.read().unwrap_or_else(|error| {
        let error = in_one(&error);
        warn!(%error, "Last good state is not usable; beginning from the files alone");
        crate::controller::Memory::default()
    });
    let kept = Kept {
        serial: memory.serial,
        serials: memory.serials.clone(),
        files: memory.files.clone(),
    };
    let remembered = Remembered {
        unread: last_good.unread().clone(),
        last_good: Some(last_good),
        memory,
        ..Remembered::default()
    };
    Ok((remembered, kept))
}

/// Starts to collect what is said in member clusters.
fn write_back(
    outside: &Outside,
    controller: &ControllerHandle,
    (cell, prober, vantage): (&Arc<SnapshotCell>, &ProberHandle, &Vantage),
    supervisor: &mut Supervisor,
) {
    let sources = write_back::Sources {
        controller: controller.clone(),
        reader: cell.reader(),
        reports: prober.reports(),
        vantage: vantage.clone(),
        members: outside.members.clone(),
    };
    write_back::start(sources, outside.writes_back(), supervisor);
}

/// Hands what should be watched to the prober, and once per target what was remembered of it.
async fn pump(mut changes: mpsc::Receiver<MonitorChange>, prober: ProberHandle) {
    while let Some(change) = changes.recv().await {
        let MonitorChange {
            watch,
            unwatch,
            recalled,
        } = change;
        prober.change(watch, unwatch, recalled).await;
    }
}
