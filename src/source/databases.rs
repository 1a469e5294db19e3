//! GeoIP databases: read whole, never mapped, compiled elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{FileError, Fingerprint, read_bounded};
use crate::geo::{GeoDb, Override, Source, SourceKind};
use crate::model::Rejection;

/// The databases in force, with what is needed to notice a change.
#[derive(Clone, Debug, Default)]
pub struct DatabaseFiles {
    seen: Vec<(PathBuf, Fingerprint)>,
}

impl DatabaseFiles {
    /// Takes the fingerprints as they are now: a change counts once they stood still.
    #[must_use]
    pub fn now(&self) -> Vec<Fingerprint> {
        self.seen
            .iter()
            .map(|(path, _)| Fingerprint::of(path))
            .collect()
    }

    /// Lists the files with their fingerprints as of their last reading.
    pub fn seen(&self) -> impl Iterator<Item = (&Path, Fingerprint)> {
        self.seen.iter().map(|(path, seen)| (path.as_path(), *seen))
    }

    /// Tells whether any of the files changed since it was read.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.seen
            .iter()
            .any(|(path, fingerprint)| Fingerprint::of(path) != *fingerprint)
    }
}

/// What reading gave.
#[derive(Debug)]
pub struct Databases {
    /// The table.
    pub geo: GeoDb,
    /// Octets in force by file, for the last good state.
    pub octets: BTreeMap<PathBuf, Arc<[u8]>>,
    /// Files left out or taken from memory, and why.
    pub rejections: Vec<Rejection>,
    /// For noticing changes.
    pub files: DatabaseFiles,
}

/// Reads and compiles the databases of the configuration; none: the embedded one.
///
/// A file that cannot be read or is broken is replaced by the octets that `remembered` gives for it, if any, and reported
/// either way: the table that results is never worse than the one before.
#[must_use]
pub fn read_databases(
    paths: &[PathBuf],
    overrides: &[Override],
    remembered: &dyn Fn(&Path) -> Option<Arc<[u8]>>,
) -> Databases {
    let mut seen = Vec::with_capacity(paths.len());
    let mut rejections = Vec::new();
    let mut octets = BTreeMap::new();
    for path in paths {
        let mut fingerprint = Fingerprint::of(path);
        match read_bounded(path, GeoDb::MAX_BYTES as u64) {
            Ok(bytes) => {
                octets.insert(path.clone(), Arc::from(bytes));
            }
            Err(error) => {
                fingerprint = Fingerprint::of_unread(path, &error);
                rejections.push(refuse(path, &error));
                octets.extend(remembered(path).map(|bytes| (path.clone(), bytes)));
            }
        }
        seen.push((path.clone(), fingerprint));
    }
    let (mut geo, mut refused) = GeoDb::compile(&sources(paths, &octets), overrides);
    let broken = broken(paths, &refused);
    if !broken.is_empty() {
        for path in broken {
            octets.remove(path);
            octets.extend(remembered(path).map(|bytes| (path.clone(), bytes)));
        }
        rejections.append(&mut refused);
        (geo, refused) = GeoDb::compile(&sources(paths, &octets), overrides);
        for path in self::broken(paths, &refused) {
            octets.remove(path);
        }
    }
    rejections.extend(refused);
    Databases {
        geo,
        octets,
        rejections,
        files: DatabaseFiles { seen },
    }
}

/// Names the databases to compile, in the order of the configuration.
fn sources(paths: &[PathBuf], octets: &BTreeMap<PathBuf, Arc<[u8]>>) -> Vec<Source> {
    if paths.is_empty() && cfg!(feature = "embedded-geoip") {
        return vec![Source {
            name: "embedded".to_owned(),
            kind: SourceKind::EmbeddedCountry,
            bytes: Arc::default(),
        }];
    }
    let known = paths
        .iter()
        .filter_map(|path| Some((path, octets.get(path)?)));
    let source = |(path, bytes): (&PathBuf, &Arc<[u8]>)| Source {
        name: path.display().to_string(),
        kind: SourceKind::Mmdb,
        bytes: Arc::clone(bytes),
    };
    known.map(source).collect()
}

/// Finds the files that compiling refused.
fn broken<'p>(paths: &'p [PathBuf], refused: &[Rejection]) -> Vec<&'p PathBuf> {
    let is_broken = |path: &&PathBuf| {
        refused
            .iter()
            .any(|rejection| rejection.source == path.display().to_string())
    };
    paths.iter().filter(is_broken).collect()
}

/// Says why a file was not read.
fn refuse(path: &Path, error: &FileError) -> Rejection {
    Rejection {
        source: path.display().to_string(),
        place: String::new(),
        reason: error.reason(),
    }
}
