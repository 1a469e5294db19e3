//! From a configuration file to everything that can be served: the one way for `run`, reloads, `check` and `explain`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::warn;

use super::allocator::lay_out;
use super::args::host_name;
use super::findings::{Finding, of_rejections};
use super::output::in_one;
use super::serials::Serials;
use crate::config::{self, Config, Defaults, Fault, Faulty, Geoip, Severity, ZoneSource};
use crate::controller::{Kept, LastGood, Load, Memory, Unwritten, content_hash};
use crate::disk::Unread;
use crate::geo::GeoDb;
use crate::inventory::ClusterRegistry;
use crate::model::{LowerName, Refusals, Rejection, counted};
use crate::source::{
    DatabaseFiles, Fingerprint, LoadedZones, ZoneContext, ZoneFiles, load_zones, read_bounded,
    read_databases,
};
use crate::zone::ZoneSpec;

/// Why a configuration cannot be put in force.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] crate::source::FileError),
    /// No text.
    #[error("{0}: is not UTF-8 text; octet {1} is the first that is wrong")]
    NotText(PathBuf, usize),
    /// The configuration's own faults.
    #[error("{}", faults_in_words(path, faults))]
    Faults {
        /// The file.
        path: PathBuf,
        /// The text's hash.
        hash: String,
        /// Every fault, and the warnings behind them.
        faults: Vec<Fault>,
        /// What is sound of it.
        sound: Option<Box<Config>>,
    },
    /// Zones without a former state, or databases without a last good content, are broken; or a claim is refused.
    #[error("{}", findings_in_words(.0))]
    Refused(Vec<Finding>),
}

impl LoadError {
    /// Gives the faults of the configuration at a path, each with its place.
    pub(super) fn rejections(&self, path: &Path) -> Vec<Rejection> {
        match self {
            Self::Faults { path, faults, .. } => {
                let faults = faults.iter();
                let faults = faults.filter(|fault| fault.severity == Severity::Fault);
                faults
                    .map(|fault| Finding::of_fault(path, fault).rejection())
                    .collect()
            }
            Self::Refused(findings) => findings.iter().map(Finding::rejection).collect(),
            Self::File(_) | Self::NotText(..) => vec![Finding::of_error(path, self).rejection()],
        }
    }

    /// Tells whether this node could not read the file, and may the next time though nobody touches it.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::File(error) if error.may_pass())
    }
}

impl Finding {
    /// Takes what was in the way of reading at all.
    pub(super) fn of_error(source: &Path, error: &LoadError) -> Self {
        let source = source.display().to_string();
        let whole = in_one(error);
        let message = whole.strip_prefix(&source).unwrap_or(&whole);
        Self {
            level: "error",
            line: None,
            column: None,
            path: String::new(),
            message: message.trim_start_matches([':', ' ']).to_owned(),
            from: None,
            source,
        }
    }
}

/// Counts faults and shows each on a line of its own.
fn faults_in_words(path: &Path, faults: &[Fault]) -> String {
    let lines: Vec<String> = faults
        .iter()
        .filter(|fault| fault.severity == Severity::Fault)
        .map(|fault| fault.located(path))
        .collect();
    let count = counted(lines.len(), "fault");
    format!("{count} in the configuration\n{}", lines.join("\n"))
}

/// Shows each finding on a line of its own.
fn findings_in_words(findings: &[Finding]) -> String {
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    format!("configuration cannot be used\n{}", lines.join("\n"))
}

/// A checked configuration with what its text was.
#[derive(Debug)]
pub(super) struct Parsed {
    /// The file.
    pub(super) path: PathBuf,
    /// The configuration.
    pub(super) config: Config,
    /// What is allowed and yet doubtful.
    pub(super) warnings: Vec<Fault>,
    /// The text's hash.
    pub(super) hash: String,
    /// For noticing changes.
    pub(super) fingerprint: Fingerprint,
}

/// Reads and checks a configuration file.
pub(super) fn parse(path: &Path, registry: &mut ClusterRegistry) -> Result<Parsed, LoadError> {
    let fingerprint = Fingerprint::of(path);
    let octets = read_bounded(path, config::MAX_BYTES as u64)?;
    let text = String::from_utf8(octets)
        .map_err(|error| LoadError::NotText(path.to_owned(), error.utf8_error().valid_up_to()))?;
    let hash = content_hash(text.as_bytes());
    // Relative paths in the file are relative to its folder, wherever the program was started.
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let defaults = Defaults {
        node_name: host_name(),
    };
    match config::parse(&text, &full, registry, &defaults) {
        Ok((config, warnings)) => Ok(Parsed {
            path: path.to_owned(),
            config,
            warnings,
            hash,
            fingerprint,
        }),
        Err(Faulty { faults, sound }) => Err(LoadError::Faults {
            path: path.to_owned(),
            hash,
            faults,
            sound,
        }),
    }
}

/// What is in force: the base of the next load.
#[derive(Debug, Default)]
pub(super) struct Former {
    /// The places and what they were made of.
    pub(super) geo: Option<(Arc<GeoDb>, Geoip)>,
    /// Hash of the configuration's text.
    pub(super) configuration: String,
    /// Serials and files.
    pub(super) kept: Kept,
    /// For noticing changes of zone files.
    pub(super) zone_files: ZoneFiles,
    /// For noticing changes of databases.
    pub(super) database_files: DatabaseFiles,
    /// Files that are not what is served, by kind.
    pub(super) refused: RefusedFiles,
}

/// Why files were refused, by path.
pub(super) type Refused = BTreeMap<String, Refusals>;

/// Files refused at their last reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RefusedFiles {
    /// Databases.
    pub(super) databases: Refused,
    /// Master files of zones.
    pub(super) zones: Refused,
    /// Directories of kubeconfigs, and files in them.
    pub(super) directories: Refused,
}

impl RefusedFiles {
    /// Counts the files.
    pub(super) fn count(&self) -> usize {
        let kinds = [&self.databases, &self.zones, &self.directories];
        kinds.into_iter().map(BTreeMap::len).sum()
    }
}

/// Where octets of former files come from.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// The folder of the last good state, if one is kept.
    pub(super) last_good: Option<LastGood>,
    /// What it said at the start.
    pub(super) memory: Memory,
    /// What the keeper has to write.
    pub(super) unwritten: Unwritten,
    /// What could not be read of the state directory.
    pub(super) unread: Unread,
}

impl Remembered {
    /// Hands octets in force to the keeper and notes their hashes in `kept`, which the keeper must be told of afterwards.
    pub(super) fn hand_over(&self, octets: BTreeMap<PathBuf, Arc<[u8]>>, kept: &mut Kept) {
        if self.last_good.is_none() {
            return;
        }
        // Hashing a large database takes a while.
        let hashes = tokio::task::block_in_place(|| {
            let put = |(path, octets)| (path, self.unwritten.put(octets));
            octets.into_iter().map(put).collect::<Vec<_>>()
        });
        kept.files.extend(hashes);
        self.unwritten.retain(&kept.files);
    }

    /// Gives the last good octets of a file: those in force, else those of the start.
    pub(super) fn octets(&self, path: &Path, kept: &Kept) -> Option<Arc<[u8]>> {
        let last_good = self.last_good.as_ref()?;
        let hashes = [kept.files.get(path), self.memory.files.get(path)];
        hashes.into_iter().flatten().find_map(|hash| {
            // What waits for room on the disk is as good as what is there.
            if let Some(octets) = self.unwritten.get(hash) {
                return Some(octets);
            }
            let octets = last_good.kept(hash).inspect_err(|error| {
                let reason = std::error::Error::source(error).map(ToString::to_string);
                warn!(path = %path.display(), %error, reason, "Last good content is not usable");
            });
            octets.ok().map(Arc::from)
        })
    }
}

/// Everything that follows from a checked configuration.
#[derive(Debug)]
pub(super) struct Prepared {
    /// For the controller.
    pub(super) load: Load,
    /// What the next load begins from.
    pub(super) former: Former,
    /// Files that were refused and replaced by their former content.
    pub(super) rejections: Vec<Rejection>,
    /// Octets of files in force, to be kept.
    pub(super) octets: BTreeMap<PathBuf, Arc<[u8]>>,
}

impl Prepared {
    /// Gives the load, what the next one begins from, and the octets to be kept.
    pub(super) fn into_parts(self) -> (Load, Former, BTreeMap<PathBuf, Arc<[u8]>>) {
        (self.load, self.former, self.octets)
    }
}

/// What a look at all files gave, good or not.
#[derive(Debug)]
pub(super) struct Survey {
    /// All that can be served.
    pub(super) prepared: Prepared,
    /// What makes the configuration unusable.
    pub(super) faults: Vec<Rejection>,
    /// Zones that cannot be served at all.
    pub(super) missing: Vec<LowerName>,
}

/// Gives the Unix time in seconds.
pub(super) fn unix_now() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the root reads the clock for the core"
    )]
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Makes a seed that differs between nodes and starts, so that nodes do not probe in step.
pub(super) fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}

/// Reads databases and zone files of a checked configuration and compiles them.
pub(super) fn prepare(
    parsed: Parsed,
    former: &Former,
    remembered: &Remembered,
) -> Result<Prepared, LoadError> {
    let (path, hash) = (parsed.path.clone(), parsed.hash.clone());
    let survey = survey(parsed, former, remembered);
    if survey.faults.is_empty() {
        // Its tables are built next.
        lay_out(names(&survey.prepared.load));
        Ok(survey.prepared)
    } else {
        let findings = of_rejections(&path, &hash, &survey.faults);
        Err(LoadError::Refused(findings))
    }
}

/// Reads and compiles all there is, whatever is wrong with some of it.
pub(super) fn survey(parsed: Parsed, former: &Former, remembered: &Remembered) -> Survey {
    let Parsed { config, hash, .. } = parsed;
    let mut faults = Vec::new();
    let mut rejections = Vec::new();
    let places = read_places(&config.geoip, former, remembered);
    if places.is_whole {
        rejections.extend(places.rejections);
    } else {
        faults.extend(places.rejections);
    }
    let mut octets = places.octets;
    let serials = Serials::new(&hash, &former.kept, unix_now());
    let loaded = read_zones(&config.zones, former, remembered, &serials);
    let (serial, serials) = serials.finish();
    if loaded.missing.is_empty() {
        rejections.extend(loaded.rejections);
    } else {
        faults.extend(loaded.rejections);
    }
    // A child served beside its parent without the cut there is a fault of the configuration (DESIGN section 7).
    faults.extend(loaded.uncut);
    octets.extend(loaded.octets);
    // What the configuration no longer names need not be kept.
    let is_used =
        |path: &PathBuf| config.geoip.databases.contains(path) || loaded.files.reads(path);
    let files = former.kept.files.iter().filter(|(path, _)| is_used(path));
    let files = files
        .map(|(path, hash)| (path.clone(), hash.clone()))
        .collect();
    let load = Load {
        clusters: config.clusters,
        services: config.services,
        zones: Arc::new(loaded.set),
        geo: Arc::clone(&places.geo),
        groups: Arc::new(config.groups),
        settings: Arc::new(config.settings),
        federation: config.federation,
        held: crate::controller::Held::default(),
    };
    let former = Former {
        geo: Some((places.geo, config.geoip)),
        configuration: hash,
        kept: Kept {
            serial,
            serials,
            files,
        },
        zone_files: loaded.files,
        database_files: places.files,
        refused: RefusedFiles {
            databases: places.refused,
            zones: loaded.refused,
            directories: former.refused.directories.clone(),
        },
    };
    Survey {
        prepared: Prepared {
            load,
            former,
            rejections,
            octets,
        },
        faults,
        missing: loaded.missing,
    }
}

/// Counts the names of a configuration, more or less: what tables are laid out for.
fn names(load: &Load) -> usize {
    let records = load.zones.iter().map(|(_, zone)| zone.names().count());
    let hosts = load.services.iter().map(|service| service.names.count());
    hosts.sum::<usize>() + records.sum::<usize>()
}

/// What reading the databases gave.
struct PlacesRead {
    geo: Arc<GeoDb>,
    files: DatabaseFiles,
    octets: BTreeMap<PathBuf, Arc<[u8]>>,
    rejections: Vec<Rejection>,
    refused: Refused,
    /// Every database has some content.
    is_whole: bool,
}

/// Reads the databases, unless what is in force was made of the same.
fn read_places(geoip: &Geoip, former: &Former, remembered: &Remembered) -> PlacesRead {
    if let Some((geo, of)) = &former.geo
        && of == geoip
        && !former.database_files.changed()
    {
        return PlacesRead {
            geo: Arc::clone(geo),
            files: former.database_files.clone(),
            octets: BTreeMap::new(),
            rejections: Vec::new(),
            refused: former.refused.databases.clone(),
            is_whole: true,
        };
    }
    let read = read_databases(&geoip.databases, &geoip.overrides, &|path| {
        remembered.octets(path, &former.kept)
    });
    PlacesRead {
        geo: Arc::new(read.geo),
        files: read.files,
        is_whole: read.octets.len() >= geoip.databases.len(),
        octets: read.octets,
        refused: refused_databases(&geoip.databases, &read.rejections),
        rejections: read.rejections,
    }
}

/// Sorts what was refused by database.
pub(super) fn refused_databases(paths: &[PathBuf], rejections: &[Rejection]) -> Refused {
    let refused = paths.iter().map(|path| {
        let name = path.display().to_string();
        let its = rejections.iter().filter(|one| one.source == name);
        let its: Refusals = its.cloned().collect();
        (name, its)
    });
    refused.filter(|(_, its)| !its.is_empty()).collect()
}

/// Reads the zone files.
pub(super) fn read_zones(
    zones: &[ZoneSource],
    former: &Former,
    remembered: &Remembered,
    serials: &Serials<'_>,
) -> LoadedZones {
    let specs: Vec<(ZoneSpec, Option<PathBuf>)> = zones
        .iter()
        .map(|zone| (zone.spec.clone(), zone.file.clone()))
        .collect();
    let context = ZoneContext {
        former: &former.zone_files,
        remembered: &|path| remembered.octets(path, &former.kept),
        serial: &|spec| serials.of(spec),
    };
    load_zones(&specs, context)
}
