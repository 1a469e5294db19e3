//! Reloads: the configuration on SIGHUP and on change, databases and zone files on change. All or nothing each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::load::{Former, LoadError, Prepared, Remembered, parse, prepare, unix_now, zone_specs};
use crate::admin::{self, Events};
use crate::config::{Config, Warning, ZoneSource};
use crate::controller::{Command, ControllerHandle, Kept};
use crate::inventory::ClusterRegistry;
use crate::model::Rejection;
use crate::prober::ProberHandle;
use crate::source::{Fingerprint, load_zones, read_databases};
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
}

impl Frozen {
    /// Takes the frozen part of a configuration.
    pub(super) fn of(config: &Config) -> Self {
        Self {
            dns: config.dns.clone(),
            admin: config.admin.clone(),
            node: config.node.clone(),
        }
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
            ("admin.listen", self.admin.admin != other.admin.admin),
            ("metrics.listen", self.admin.metrics != other.admin.metrics),
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
    /// Databases and zone files at the last look.
    pub(super) looks: Looks,
}

/// Fingerprints at the last look: a file being written in place changes from look to look.
#[derive(Debug, Default)]
pub(super) struct Looks {
    databases: Vec<Fingerprint>,
    zones: Vec<Fingerprint>,
}

/// Why a configuration is not put in force.
struct Refusal {
    /// One record a fault.
    reasons: Vec<String>,
    /// This node could not read the file; the next look tries again.
    may_pass: bool,
}

impl From<LoadError> for Refusal {
    fn from(error: LoadError) -> Self {
        Self {
            reasons: error.records(),
            may_pass: matches!(&error, LoadError::File(error) if error.may_pass()),
        }
    }
}

impl Reloader {
    /// Runs until the token falls.
    pub(super) async fn run(mut self, mut asked: mpsc::Receiver<()>, token: CancellationToken) {
        let mut looks = tokio::time::interval(LOOK);
        let mut seen = self.fingerprint;
        loop {
            // Cancel-safe: all arms only wait.
            tokio::select! {
                () = token.cancelled() => return,
                Some(()) = asked.recv() => self.reload("SIGHUP").await,
                _ = looks.tick() => {
                    let now = Fingerprint::of(&self.path);
                    if now != self.fingerprint && now == seen && now.exists() {
                        self.reload("the file changed").await;
                    }
                    seen = now;
                    self.look_at_databases().await;
                    self.look_at_zones().await;
                }
            }
        }
    }

    /// Reads the configuration anew and puts it in force, whole or not at all.
    async fn reload(&mut self, why: &str) {
        info!(why, path = %self.path.display(), "Reloading the configuration");
        self.fingerprint = Fingerprint::of(&self.path);
        let outcome = tokio::task::block_in_place(|| self.prepare());
        match outcome {
            Ok((prepared, zones, probes)) => {
                let Prepared {
                    load,
                    former,
                    rejections,
                    octets,
                } = prepared;
                log_rejections(&rejections);
                self.events
                    .refused_files
                    .store(rejections.len() as u64, Ordering::Relaxed);
                let Some(refused) = self.controller.load(load).await else {
                    return;
                };
                self.prober.configure(probes).await;
                self.former = former;
                self.zone_sources = zones;
                self.keep(octets);
                self.events.reloads.fetch_add(1, Ordering::Relaxed);
                self.events.last_load.store(unix_now(), Ordering::Relaxed);
                self.events.reload_failing.store(0, Ordering::Relaxed);
                info!(refused = refused.len(), "Configuration is in force");
            }
            Err(Refusal { reasons, may_pass }) => {
                if may_pass {
                    self.fingerprint = Fingerprint::default();
                }
                self.events.reload_failures.fetch_add(1, Ordering::Relaxed);
                self.events.reload_failing.store(1, Ordering::Relaxed);
                for reason in reasons.iter().take(LOGGED) {
                    error!(%reason, "Configuration has a fault");
                }
                let faults = reasons.len();
                error!(faults, path = %self.path.display(), "Configuration is refused; the former one stays in force");
            }
        }
    }

    /// Reads and compiles, changing nothing.
    fn prepare(&mut self) -> Result<(Prepared, Vec<ZoneSource>, crate::prober::Config), Refusal> {
        let parsed = parse(&self.path, &mut self.registry)?;
        log_warnings(&self.path, &parsed.warnings);
        let difference = self.frozen.difference(&Frozen::of(&parsed.config));
        if !difference.is_empty() {
            let refuse =
                |key: &&str| format!("{key} cannot change while running; restart to change it");
            return Err(Refusal {
                reasons: difference.iter().map(refuse).collect(),
                may_pass: false,
            });
        }
        let (zones, probes) = (parsed.config.zones.clone(), parsed.config.probes.clone());
        let prepared = prepare(parsed, &self.former, &self.remembered)?;
        Ok((prepared, zones, probes))
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
        self.events
            .refused_files
            .store(read.rejections.len() as u64, Ordering::Relaxed);
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
        let specs = zone_specs(&self.zone_sources, self.former.kept.serial);
        let former = &self.former.zone_files;
        let loaded = tokio::task::block_in_place(|| load_zones(&specs, former, &|_| None));
        self.former.zone_files = loaded.files;
        log_rejections(&loaded.rejections);
        self.events
            .refused_files
            .store(loaded.rejections.len() as u64, Ordering::Relaxed);
        if self
            .controller
            .send(Command::Zones(Arc::new(loaded.set)))
            .await
            && loaded.rejections.is_empty()
        {
            info!("Zone files are in force");
        }
        self.keep(loaded.octets);
    }

    /// Keeps octets in force and tells the keeper.
    fn keep(&mut self, octets: BTreeMap<PathBuf, Arc<[u8]>>) {
        self.remembered.hand_over(octets, &mut self.former.kept);
        self.kept.send_replace(self.former.kept.clone());
    }
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
