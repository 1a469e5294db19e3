//! Reloads: the configuration on SIGHUP and on change, databases and zone files on change. All or nothing each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::check::claims_of;
use super::findings::of_rejections;
use super::load::{
    Former, LoadError, Prepared, Remembered, parse, prepare, read_zones, refused_databases,
    unix_time,
};
use super::serials::Serials;
use crate::admin::{self, Events};
use crate::config::{Config, ZoneSource};
use crate::controller::{Command, ControllerHandle, Kept, LastGood, Load};
use crate::inventory::ClusterRegistry;
use crate::model::Rejection;
use crate::prober::ProberHandle;
use crate::source::{Fingerprint, read_databases};
use crate::transport;

/// How often files are looked at. A change counts once it has stood still for one look, so that a file being written in
/// place is not read half.
const LOOK: Duration = Duration::from_secs(1);
/// Looks between two tries to keep what could not be kept: the disk may have room again, and nobody says so.
const LOOKS_TO_RETRY: u32 = 3;

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
            ("node", self.node != other.node),
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
    /// Octets in force that could not be kept yet.
    pub(super) unkept: Octets,
    /// What was seen at the last look.
    pub(super) looks: Looks,
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
    /// The configuration file as last read was refused.
    refused: bool,
    /// Looks since octets were last tried to be kept.
    since_retry: u32,
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
                    if now == seen {
                        self.look_at_configuration(now).await;
                    }
                    seen = now;
                    self.look_at_databases().await;
                    self.look_at_zones().await;
                    self.retry_keeping();
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
        if now != self.fingerprint && now.exists() {
            self.reload("the file changed").await;
        }
        self.show_failing();
    }

    /// Shows whether a restart would find another configuration than the one in force.
    fn show_failing(&self) {
        let failing = u64::from(self.looks.gone || self.looks.refused);
        self.events.reload_failing.store(failing, Ordering::Relaxed);
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
                let Some(refused) = self.controller.load(load).await else {
                    return;
                };
                self.prober.configure(probes).await;
                self.former = former;
                self.zone_sources = zones;
                show_refused(&self.events, &self.former);
                self.keep(octets);
                self.looks.refused = false;
                self.events.reloads.fetch_add(1, Ordering::Relaxed);
                info!(refused = refused.len(), "Configuration is in force");
            }
            Err(reason) => {
                self.events.reload_failures.fetch_add(1, Ordering::Relaxed);
                self.looks.refused = true;
                error!(%reason, "Configuration is refused; the former one stays in force");
            }
        }
        self.show_failing();
    }

    /// Reads and compiles, changing nothing.
    fn prepare(&mut self) -> Result<(Prepared, Vec<ZoneSource>, crate::prober::Config), String> {
        let parsed = parse(&self.path, &mut self.registry).map_err(|error| in_one(&error))?;
        for warning in &parsed.warnings {
            warn!(place = %warning, "Configuration is doubtful here");
        }
        let difference = self.frozen.difference(&Frozen::of(&parsed.config));
        if !difference.is_empty() {
            return Err(format!(
                "{} cannot change while running; restart to change it",
                difference.join(", ")
            ));
        }
        let (zones, probes) = (parsed.config.zones.clone(), parsed.config.probes.clone());
        let hash = parsed.hash.clone();
        let prepared =
            prepare(parsed, &self.former, &self.remembered).map_err(|error| in_one(&error))?;
        // As `check` has it: a configuration whose claims are refused is refused. Only a start serves the rest, because
        // the alternative would be nothing at all.
        let refused = claims_of(Load {
            clusters: prepared.load.clusters.clone(),
            services: prepared.load.services.clone(),
            zones: Arc::clone(&prepared.load.zones),
            geo: Arc::clone(&prepared.load.geo),
            groups: Arc::clone(&prepared.load.groups),
            settings: Arc::clone(&prepared.load.settings),
        });
        if !refused.is_empty() {
            let findings = of_rejections(&self.path, &hash, &refused);
            return Err(in_one(&LoadError::Refused(findings)));
        }
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
        self.former.refused.databases = refused_databases(&geoip.databases, &read.rejections);
        show_refused(&self.events, &self.former);
        if read.rejections.is_empty() {
            let geo = Arc::new(read.geo);
            self.former.geo = Some((Arc::clone(&geo), geoip));
            if self.controller.send(Command::Geo(geo)).await {
                info!("GeoIP databases are in force");
            }
            self.keep(read.octets);
        } else {
            for rejection in &read.rejections {
                warn!(%rejection, "GeoIP database is refused; the former table stays in force");
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
        let serials = Serials::new(&former.configuration, &former.kept, unix_time());
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
        show_refused(&self.events, &self.former);
        let zones = Command::Zones(Arc::new(loaded.set));
        if self.controller.send(zones).await && is_good {
            info!("Zone files are in force");
        }
        self.keep(loaded.octets);
    }

    /// Keeps octets in force and tells the keeper.
    fn keep(&mut self, octets: Octets) {
        let geoip = self.former.geo.as_ref().map(|(_, geoip)| geoip);
        let (unkept, files) = (&mut self.unkept, &self.former.zone_files);
        unkept.retain(|path, _| {
            geoip.is_some_and(|geoip| geoip.databases.contains(path)) || files.reads(path)
        });
        unkept.extend(octets);
        self.keep_unkept();
    }

    /// Tries again to keep what could not be kept, now and then.
    fn retry_keeping(&mut self) {
        if self.unkept.is_empty() {
            return;
        }
        self.looks.since_retry += 1;
        if self.looks.since_retry >= LOOKS_TO_RETRY {
            self.keep_unkept();
        }
    }

    /// Keeps what is not kept yet.
    fn keep_unkept(&mut self) {
        self.looks.since_retry = 0;
        let octets = std::mem::take(&mut self.unkept);
        let last_good = self.remembered.last_good.as_ref();
        self.unkept = keep_octets(last_good, octets, &mut self.former.kept, &self.events);
        self.kept.send_replace(self.former.kept.clone());
    }
}

/// Writes octets in force beside the last good state and notes their hashes. What could not be written is given back, to be
/// tried again; the first such failure is a warning: serving goes on.
pub(super) fn keep_octets(
    last_good: Option<&LastGood>,
    octets: Octets,
    kept: &mut Kept,
    events: &Events,
) -> Octets {
    let mut unkept = Octets::new();
    let Some(last_good) = last_good else {
        return unkept;
    };
    let failed_before = events.unkept_files.load(Ordering::Relaxed) > 0;
    let keep = |(path, octets): (PathBuf, Arc<[u8]>)| match last_good.keep(&octets) {
        Ok(hash) => Some((path, hash)),
        Err(error) => {
            if !failed_before {
                let error = in_one(&error);
                warn!(path = %path.display(), %error, "File is in force but could not be kept for a restart; trying again");
            }
            unkept.insert(path, octets);
            None
        }
    };
    let hashes: Vec<(PathBuf, String)> =
        tokio::task::block_in_place(|| octets.into_iter().filter_map(keep).collect());
    kept.files.extend(hashes);
    if failed_before && unkept.is_empty() {
        info!("Files in force are kept for a restart again");
    }
    let count = unkept.len() as u64;
    events.unkept_files.store(count, Ordering::Relaxed);
    unkept
}

/// Shows how many files are refused.
pub(super) fn show_refused(events: &Events, former: &Former) {
    let (databases, zones) = (&former.refused.databases, &former.refused.zones);
    for (count, gauge) in [
        (databases.len(), &events.refused_databases),
        (zones.len(), &events.refused_zones),
    ] {
        gauge.store(count as u64, Ordering::Relaxed);
    }
}

/// Logs what was refused.
pub(super) fn log_rejections(rejections: &[Rejection]) {
    for rejection in rejections {
        warn!(%rejection, "Refused; what was good before stays");
    }
}

/// Shows an error with its causes in one text.
pub(super) fn in_one(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
