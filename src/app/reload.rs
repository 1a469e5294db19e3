//! Reloads: the configuration on SIGHUP and on change, databases and zone files on change. All or nothing each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{Instrument as _, error, info, trace_span, warn};

use super::check::claims_of;
use super::clusters_from::{Directories, Turn};
use super::findings::{Finding, of_rejections, places};
use super::joining::{Joining, news as news_of};
use super::load::{
    Former, LoadError, Prepared, Refused, RefusedFiles, Remembered, parse, prepare, read_zones,
    refused_databases, unix_now,
};
use super::members::Outside;
use super::news;
use super::serials::Serials;
use crate::admin::{self, Access, AccessConfig, ClusterExit, Events, SourceFile, SourceKind};
use crate::config::{Config, Warning, ZoneSource};
use crate::controller::{Command, ControllerHandle, Event, Held, Kept, Load};
use crate::inventory::{Change, ClusterRegistry};
use crate::model::{ClusterId, Refusals, Rejection};
use crate::prober::ProberHandle;
use crate::source::{Fingerprint, read_databases};
use crate::telemetry::{OtlpConfig, SPANS, wall_time};
use crate::transport;

/// How often files are looked at. A change counts once it has stood still for one look, so that a file being written in
/// place is not read half.
const LOOK: Duration = Duration::from_secs(1);

/// Most faults of one refused reload that are logged; their number is always told.
const LOGGED: usize = 100;

/// What a reload cannot change: sockets and folders are bound at the start.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frozen {
    dns: transport::Config,
    admin: admin::Config,
    node: crate::config::Node,
    peers: crate::vantage::Config,
    otlp: Option<OtlpConfig>,
}

impl Frozen {
    /// Takes the frozen part of a configuration.
    pub(super) fn of(config: &Config) -> Self {
        Self {
            dns: config.dns.clone(),
            admin: config.admin.clone(),
            node: config.node.clone(),
            peers: config.peers.clone(),
            otlp: config.otlp.clone(),
        }
    }

    /// Gives the folder where state is kept.
    pub(super) fn state_directory(&self) -> Option<&Path> {
        self.node.state_directory.as_deref()
    }

    /// Names the keys that differ.
    fn difference(&self, other: &Self) -> Vec<&'static str> {
        let mut keys = Vec::new();
        for (key, differs) in [
            ("node.name", self.node.name != other.node.name),
            ("node.location", self.node.location != other.node.location),
            (
                "node.stateDirectory",
                self.node.state_directory != other.node.state_directory,
            ),
            ("dns.listen", self.dns.listen != other.dns.listen),
            ("dns.workers", self.dns.workers != other.dns.workers),
            (
                "dns.proxyProtocol",
                self.dns.proxy_protocol != other.dns.proxy_protocol,
            ),
            ("dns.tcp", self.dns.tcp != other.dns.tcp),
            ("queryLog", self.dns.query_log != other.dns.query_log),
            ("telemetry", self.otlp != other.otlp),
            ("admin.listen", self.admin.admin != other.admin.admin),
            ("admin.tls", self.admin.tls != other.admin.tls),
            ("metrics.listen", self.admin.metrics != other.admin.metrics),
            ("peers", self.peers.peers != other.peers.peers),
        ] {
            if differs {
                keys.push(key);
            }
        }
        keys
    }
}

/// Watches the files and carries reloads out.
pub(super) struct Reloader {
    /// The configuration file.
    pub(super) path: PathBuf,
    /// Indices of clusters.
    pub(super) registry: ClusterRegistry,
    /// What must not change.
    pub(super) frozen: Frozen,
    /// What is in force.
    pub(super) former: Former,
    /// Octets of former files.
    pub(super) remembered: Remembered,
    /// Zones of the configuration in force.
    pub(super) zone_sources: Vec<ZoneSource>,
    /// The configuration file as last read.
    pub(super) fingerprint: Fingerprint,
    /// Where loads go.
    pub(super) controller: ControllerHandle,
    /// Where limits of probing go.
    pub(super) prober: ProberHandle,
    /// Where the keeper reads what is in force.
    pub(super) kept: watch::Sender<Kept>,
    /// What happened.
    pub(super) events: Arc<Events>,
    /// Where rules of access go.
    pub(super) access: Access,
    /// Where member clusters and load balancers go.
    pub(super) outside: Outside,
    /// What was seen at the last look.
    pub(super) looks: Looks,
    /// Clusters that come from directories.
    pub(super) joining: Joining,
}

/// Octets by file.
pub(super) type Octets = BTreeMap<PathBuf, Arc<[u8]>>;

/// Fingerprints at the last look: a file being written in place changes from look to look.
#[derive(Debug, Default)]
pub(super) struct Looks {
    databases: Vec<Fingerprint>,
    zones: Vec<Fingerprint>,
    /// The configuration file is gone, and that was said.
    gone: bool,
    /// Why the configuration file as last read was refused.
    refused: Refusals,
    /// Why files are refused, as last told.
    told: RefusedFiles,
}

/// A configuration that can be put in force.
struct Ready {
    prepared: Prepared,
    zones: Vec<ZoneSource>,
    probes: crate::prober::Config,
    kubernetes: crate::source::kubernetes::Config,
    resolver: crate::resolving::TargetsConfig,
    access: AccessConfig,
    joining: Joining,
    turns: Vec<(ClusterId, Turn)>,
}

impl Reloader {
    /// Runs until the token falls.
    pub(super) async fn run(
        mut self,
        mut asked: mpsc::Receiver<()>,
        mut dropping: mpsc::Receiver<ClusterExit>,
        token: CancellationToken,
    ) {
        let mut looks = tokio::time::interval(LOOK);
        let mut seen = self.fingerprint;
        // What the start refused is known from the start.
        self.tell_refused();
        self.show_leaving();
        loop {
            // Cancel-safe: all arms only wait.
            tokio::select! {
                () = token.cancelled() => return,
                Some(()) = asked.recv() => self.reload("SIGHUP").await,
                Some(exit) = dropping.recv() => {
                    let was_absent = self.drop_absent(&exit.cluster).await;
                    // Whoever asked may have gone away.
                    let _ = exit.done.send(was_absent);
                }
                _ = looks.tick() => {
                    let now = Fingerprint::of(&self.path);
                    if now == seen {
                        self.look_at_configuration(now).await;
                    }
                    seen = now;
                    self.look_at_databases().await;
                    self.look_at_zones().await;
                    self.look_at_directories().await;
                }
            }
        }
    }

    /// Reloads a configuration file that changed and stood still, and says when it is gone.
    async fn look_at_configuration(&mut self, now: Fingerprint) {
        let was_gone = std::mem::replace(&mut self.looks.gone, !now.exists());
        if self.looks.gone && !was_gone {
            error!(path = %self.path.display(), "Configuration file is gone; what is in force stays, a restart would fail");
        }
        if was_gone && now.exists() {
            info!(path = %self.path.display(), "Configuration file is back");
        }
        if self.looks.gone != was_gone {
            self.record([news::of_configuration(&self.path, self.looks.gone)]);
        }
        if now != self.fingerprint && now.exists() {
            self.reload("the file changed").await;
        }
        self.show_failing();
    }

    /// Shows whether a restart would find another configuration than the one in force.
    fn show_failing(&self) {
        let failing = u64::from(self.looks.gone || !self.looks.refused.is_empty());
        self.events.reload_failing.store(failing, Ordering::Relaxed);
    }

    /// Reads the configuration anew and puts it in force, whole or not at all.
    async fn reload(&mut self, why: &str) {
        let span = trace_span!(target: SPANS, "reload", why, refused = Empty);
        let outcome = self.reload_now(why).instrument(span.clone()).await;
        span.record("refused", !outcome);
    }

    /// Does that; tells whether it is in force.
    async fn reload_now(&mut self, why: &str) -> bool {
        info!(why, path = %self.path.display(), "Reloading the configuration");
        self.fingerprint = Fingerprint::of(&self.path);
        let outcome = tokio::task::block_in_place(|| self.prepare());
        match outcome {
            Ok(Ready {
                prepared,
                zones,
                probes,
                kubernetes,
                resolver,
                access,
                joining,
                turns,
            }) => {
                let Prepared {
                    load,
                    former,
                    rejections,
                    octets,
                } = prepared;
                log_rejections(&rejections);
                let leaving = Command::Leaving(joining.directories.drains(wall_time()));
                let observing = Command::Change(Change::Observed(joining.observed.clone()));
                for command in [leaving, observing] {
                    if !self.controller.send(command).await {
                        return false;
                    }
                }
                let Some(refused) = self.controller.load(load).await else {
                    return false;
                };
                self.joining = joining;
                self.joining.directories.watch_secrets();
                self.record(news_of(&turns));
                self.prober.configure(probes).await;
                self.outside.set(kubernetes, resolver, &zones).await;
                tokio::task::block_in_place(|| self.access.configure(&access));
                self.former = former;
                self.zone_sources = zones;
                self.tell_refused();
                self.show_leaving();
                self.keep(octets);
                self.judge(Refusals::default());
                self.events.reloads.fetch_add(1, Ordering::Relaxed);
                self.events.last_load.store(unix_now(), Ordering::Relaxed);
                let refused = refused.len() + self.former.refused.count();
                info!(refused, "Configuration is in force");
            }
            Err(error) => self.refuse(&error),
        }
        self.looks.refused.is_empty()
    }

    /// Notes that the configuration is refused, and says why.
    fn refuse(&mut self, error: &LoadError) {
        if error.may_pass() {
            // The next look tries again.
            self.fingerprint = Fingerprint::default();
        }
        self.events.reload_failures.fetch_add(1, Ordering::Relaxed);
        let reasons = error.rejections(&self.path);
        for reason in reasons.iter().take(LOGGED) {
            error!(reason = reason.located(), "Configuration has a fault");
        }
        let faults = reasons.len();
        error!(faults, path = %self.path.display(), "Configuration is refused; the former one stays in force");
        self.judge(reasons.into_iter().collect());
    }

    /// Notes why the configuration is refused, nothing when it is not, and records what changed in that.
    fn judge(&mut self, refused: Refusals) {
        let name = self.path.display().to_string();
        let change = (&self.looks.refused, &refused);
        let event = news::of_source("Configuration", &name, change);
        self.looks.refused = refused.clone();
        self.show_failing();
        self.events.set_configuration(refused);
        self.record(event);
    }

    /// Shows which files are refused, and records what changed in that.
    pub(super) fn tell_refused(&mut self) {
        let members = self.outside.members.statuses();
        let unusable = members.iter();
        let unusable = unusable.filter_map(|one| Some((&one.id, one.unusable.as_deref()?)));
        let unusable = unusable.collect();
        self.former.refused.directories = self.joining.directories.refused(&unusable);
        show_refused(&self.events, &self.former, &self.joining.directories);
        let now = &self.former.refused;
        let events = news::of_files(&self.looks.told, now);
        if !events.is_empty() {
            self.looks.told = now.clone();
        }
        self.record(events);
    }

    /// Records events.
    pub(super) fn record(&self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.controller.journal().record(event, wall_time());
        }
    }

    /// Reads and compiles, changing nothing.
    fn prepare(&mut self) -> Result<Ready, LoadError> {
        let mut parsed = parse(&self.path, &mut self.registry)?;
        log_warnings(&self.path, &parsed.warnings);
        let difference = self.frozen.difference(&Frozen::of(&parsed.config));
        if !difference.is_empty() {
            let known = places(&self.path, &parsed.hash, &[]);
            let refuse = |key: &&str| {
                // A key that is gone has no place, but its section may.
                let section = key.split('.').next().unwrap_or_default();
                let place = known.keys.get(*key).or_else(|| known.keys.get(section));
                let message = format!("{key} cannot change while running; restart to change it");
                Finding::error(&self.path, place, message)
            };
            return Err(LoadError::Refused(difference.iter().map(refuse).collect()));
        }
        let (zones, probes) = (parsed.config.zones.clone(), parsed.config.probes.clone());
        let access = parsed.config.admin.access.clone();
        let (joining, turns) = self.joining.adopt(&mut parsed.config, &mut self.registry);
        let (kubernetes, resolver) = (
            parsed.config.kubernetes.clone(),
            parsed.config.resolver.clone(),
        );
        let hash = parsed.hash.clone();
        let prepared = prepare(parsed, &self.former, &self.remembered)?;
        // As `check` has it: a configuration whose claims are refused is refused. Only a start serves the rest, because
        // the alternative would be nothing at all.
        let refused = claims_of(Load {
            clusters: prepared.load.clusters.clone(),
            services: prepared.load.services.clone(),
            zones: Arc::clone(&prepared.load.zones),
            geo: Arc::clone(&prepared.load.geo),
            groups: Arc::clone(&prepared.load.groups),
            settings: Arc::clone(&prepared.load.settings),
            federation: Arc::clone(&prepared.load.federation),
            held: Held::default(),
        });
        if !refused.is_empty() {
            let findings = of_rejections(&self.path, &hash, &refused);
            return Err(LoadError::Refused(findings));
        }
        Ok(Ready {
            prepared,
            zones,
            probes,
            kubernetes,
            resolver,
            access,
            joining,
            turns,
        })
    }

    /// Swaps databases that changed. If one is broken the whole table stays.
    async fn look_at_databases(&mut self) {
        let Some((_, geoip)) = &self.former.geo else {
            return;
        };
        let now = self.former.database_files.now();
        let before = std::mem::replace(&mut self.looks.databases, now);
        if !self.former.database_files.changed() || before != self.looks.databases {
            return;
        }
        let geoip = geoip.clone();
        let read = tokio::task::block_in_place(|| {
            read_databases(&geoip.databases, &geoip.overrides, &|_| None)
        });
        // Whatever came of it, this content was looked at: the next look waits for the next change.
        self.former.database_files = read.files;
        self.former.refused.databases = refused_databases(&geoip.databases, &read.rejections);
        self.tell_refused();
        if read.rejections.is_empty() {
            let geo = Arc::new(read.geo);
            self.former.geo = Some((Arc::clone(&geo), geoip));
            if self.controller.send(Command::Geo(geo)).await {
                info!("GeoIP databases are in force");
            }
            self.keep(read.octets);
        } else {
            for rejection in &read.rejections {
                warn!(
                    rejection = rejection.located(),
                    "GeoIP database is refused; the former table stays in force"
                );
            }
        }
    }

    /// Swaps zones whose files changed. A broken one keeps its former state.
    async fn look_at_zones(&mut self) {
        let now = self.former.zone_files.now();
        let before = std::mem::replace(&mut self.looks.zones, now);
        if !self.former.zone_files.changed() || before != self.looks.zones {
            return;
        }
        let former = &self.former;
        let serials = Serials::new(&former.configuration, &former.kept, unix_now());
        let loaded = tokio::task::block_in_place(|| {
            read_zones(&self.zone_sources, former, &self.remembered, &serials)
        });
        let (serial, serials) = serials.finish();
        // A parent that lost the cut to a child keeps its former state, which has it: it was served beside the child.
        log_rejections(&loaded.rejections);
        log_rejections(&loaded.uncut);
        let is_good = loaded.rejections.is_empty() && loaded.uncut.is_empty();
        self.former.kept.serial = serial;
        self.former.kept.serials = serials;
        self.former.zone_files = loaded.files;
        self.former.refused.zones = loaded.refused;
        self.tell_refused();
        let zones = Command::Zones(Arc::new(loaded.set));
        if self.controller.send(zones).await && is_good {
            info!("Zone files are in force");
        }
        self.keep(loaded.octets);
    }

    /// Keeps octets in force and tells the keeper.
    fn keep(&mut self, octets: Octets) {
        self.remembered.hand_over(octets, &mut self.former.kept);
        self.kept.send_replace(self.former.kept.clone());
    }
}

/// Shows how many files are refused.
pub(super) fn show_refused(events: &Events, former: &Former, directories: &Directories) {
    let (databases, zones) = (&former.refused.databases, &former.refused.zones);
    let refused = &former.refused.directories;
    let is_directory =
        |(name, seen): &(String, Option<Fingerprint>)| refused.contains_key(name) && seen.is_some();
    let of_directories = directories.seen().filter(is_directory).count();
    for (count, gauge) in [
        (databases.len(), &events.refused_databases),
        (zones.len(), &events.refused_zones),
        (of_directories, &events.refused_directories),
        (refused.len() - of_directories, &events.refused_secrets),
    ] {
        gauge.store(count as u64, Ordering::Relaxed);
    }
    let file = |kind, (path, seen): (&Path, Fingerprint), refused: &Refused| {
        let name = path.display().to_string();
        SourceFile {
            kind,
            modified: seen.modified(),
            refused: refused.get(&name).cloned().unwrap_or_default(),
            name,
        }
    };
    let of_databases = former.database_files.seen();
    let of_databases = of_databases.map(|seen| file(SourceKind::Database, seen, databases));
    let of_zones = former.zone_files.seen();
    let of_zones = of_zones.map(|seen| file(SourceKind::Zone, seen, zones));
    let of_sources = directories.seen().map(|(name, seen)| {
        let (kind, modified) = match seen {
            Some(seen) => (SourceKind::Directory, seen.modified()),
            None => (SourceKind::Secrets, u64::from(directories.is_read(&name))),
        };
        SourceFile {
            kind,
            modified,
            refused: refused.get(&name).cloned().unwrap_or_default(),
            name,
        }
    });
    let files = of_databases.chain(of_zones).chain(of_sources);
    events.set_files(files.collect());
}

/// Logs what was refused.
pub(super) fn log_rejections(rejections: &[Rejection]) {
    for rejection in rejections {
        warn!(
            rejection = rejection.located(),
            "Refused; what was good before stays"
        );
    }
}

/// Logs what is allowed and yet doubtful.
pub(super) fn log_warnings(path: &Path, warnings: &[Warning]) {
    for warning in warnings {
        warn!(
            place = warning.located(path),
            "Configuration is doubtful here"
        );
    }
}
