//! From a configuration file to everything that can be served: the one way for `run`, reloads, `check` and `explain`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::warn;

use super::args::host_name;
use super::output::in_one;
use crate::config::{self, Config, Defaults, Fault, Geoip, ZoneSource};
use crate::controller::{Kept, LastGood, Load, Memory, Unwritten, content_hash};
use crate::geo::GeoDb;
use crate::inventory::ClusterRegistry;
use crate::model::{Rejection, counted};
use crate::source::{
    DatabaseFiles, Fingerprint, ZoneFiles, load_zones, read_bounded, read_databases,
};

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
        /// Every fault.
        faults: Vec<Fault>,
    },
    /// Zones without a former state, or databases without a last good content, are broken.
    #[error("{}", rejections_in_words(.0))]
    Refused(Vec<Rejection>),
}

impl LoadError {
    /// Gives one text a fault, each with its place: a record of the log each.
    pub(super) fn records(&self) -> Vec<String> {
        match self {
            Self::Faults { path, faults } => {
                faults.iter().map(|fault| fault.located(path)).collect()
            }
            Self::Refused(rejections) => rejections.iter().map(Rejection::located).collect(),
            Self::File(_) | Self::NotText(..) => vec![in_one(self)],
        }
    }
}

/// Counts faults and shows each on a line of its own.
fn faults_in_words(path: &Path, faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(|fault| fault.located(path)).collect();
    let count = counted(faults.len(), "fault");
    format!("{count} in the configuration\n{}", lines.join("\n"))
}

/// Shows each rejection on a line of its own.
fn rejections_in_words(rejections: &[Rejection]) -> String {
    let lines: Vec<String> = rejections.iter().map(Rejection::located).collect();
    format!(
        "files of the configuration cannot be used\n{}",
        lines.join("\n")
    )
}

/// A checked configuration with what its text was.
#[derive(Debug)]
pub(super) struct Parsed {
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
            config,
            warnings,
            hash,
            fingerprint,
        }),
        Err(faults) => Err(LoadError::Faults {
            path: path.to_owned(),
            faults,
        }),
    }
}

/// What is in force: the base of the next load.
#[derive(Debug, Default)]
pub(super) struct Former {
    /// The places and what they were made of.
    pub(super) geo: Option<(Arc<GeoDb>, Geoip)>,
    /// Serial and files.
    pub(super) kept: Kept,
    /// For noticing changes of zone files.
    pub(super) zone_files: ZoneFiles,
    /// For noticing changes of databases.
    pub(super) database_files: DatabaseFiles,
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

    /// Gives the last good octets of a file.
    pub(super) fn octets(&self, path: &Path) -> Option<Arc<[u8]>> {
        let hash = self.memory.files.get(path)?;
        let kept = self.last_good.as_ref()?.kept(hash);
        kept.inspect_err(|error| {
            let reason = std::error::Error::source(error).map(ToString::to_string);
            warn!(path = %path.display(), %error, reason, "Last good content is not usable");
        })
        .ok()
        .map(Arc::from)
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

/// Gives the serial for a configuration: the one remembered for the same text, else the time, and never a lower one.
pub(super) fn serial(hash: &str, kept: &Kept) -> u32 {
    if kept.configuration == hash && kept.serial != 0 {
        return kept.serial;
    }
    let now = unix_now();
    // Serials are 32 bits wide and wrap in 2106 (RFC 1982 compares them so).
    let now = u32::try_from(now & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    if kept.serial == 0 {
        now
    } else {
        now.max(kept.serial.wrapping_add(1))
    }
}

/// Reads databases and zone files of a checked configuration and compiles them.
pub(super) fn prepare(
    parsed: Parsed,
    former: &Former,
    remembered: &Remembered,
) -> Result<Prepared, LoadError> {
    let Parsed { config, hash, .. } = parsed;
    let serial = serial(&hash, &former.kept);
    let octets_of = |path: &Path| remembered.octets(path);
    let mut octets = BTreeMap::new();
    let mut rejections = Vec::new();
    let (geo, database_files) = match &former.geo {
        Some((geo, geoip)) if *geoip == config.geoip && !former.database_files.changed() => {
            (Arc::clone(geo), former.database_files.clone())
        }
        _ => {
            let read = read_databases(&config.geoip.databases, &config.geoip.overrides, &octets_of);
            if read.octets.len() < config.geoip.databases.len() {
                return Err(LoadError::Refused(read.rejections));
            }
            rejections.extend(read.rejections);
            octets.extend(read.octets);
            (Arc::new(read.geo), read.files)
        }
    };
    let loaded = load_zones(
        &zone_specs(&config.zones, serial),
        &former.zone_files,
        &octets_of,
    );
    if !loaded.missing.is_empty() {
        return Err(LoadError::Refused(loaded.rejections));
    }
    // A child served beside its parent without the cut there is a fault of the configuration (DESIGN section 7).
    let missing_cuts = loaded.set.missing_cuts();
    if !missing_cuts.is_empty() {
        return Err(LoadError::Refused(missing_cuts));
    }
    rejections.extend(loaded.rejections);
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
        geo: Arc::clone(&geo),
        groups: Arc::new(config.groups),
        settings: Arc::new(config.settings),
    };
    let kept = Kept {
        serial,
        configuration: hash,
        files,
    };
    let former = Former {
        geo: Some((geo, config.geoip)),
        kept,
        zone_files: loaded.files,
        database_files,
    };
    Ok(Prepared {
        load,
        former,
        rejections,
        octets,
    })
}

/// Fills in the serial.
pub(super) fn zone_specs(
    zones: &[ZoneSource],
    serial: u32,
) -> Vec<(crate::zone::ZoneSpec, Option<PathBuf>)> {
    let fill = |zone: &ZoneSource| {
        let mut spec = zone.spec.clone();
        spec.serial = serial;
        (spec, zone.file.clone())
    };
    zones.iter().map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_serial_never_goes_back() {
        let kept = |serial, configuration: &str| Kept {
            serial,
            configuration: configuration.to_owned(),
            ..Kept::default()
        };
        assert_eq!(serial("a", &kept(7, "a")), 7);
        assert!(serial("b", &kept(7, "a")) > 1_700_000_000);
        assert_eq!(serial("b", &kept(4_000_000_000, "a")), 4_000_000_001);
        assert!(serial("a", &Kept::default()) > 1_700_000_000);
    }
}
