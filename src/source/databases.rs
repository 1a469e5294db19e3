//! GeoIP databases: read whole, never mapped, compiled elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{Fingerprint, read_bounded};
use crate::geo::{GeoDb, Override, Source, SourceKind};
use crate::model::Rejection;

/// The databases in force, with what is needed to notice a change.
#[derive(Clone, Debug, Default)]
pub struct DatabaseFiles {
    seen: Vec<(PathBuf, Fingerprint)>,
}

impl DatabaseFiles {
    /// Tells whether any of the files changed since it was read.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.seen.iter().any(|(path, fingerprint)| Fingerprint::of(path) != *fingerprint)
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
    let seen = paths.iter().map(|path| (path.clone(), Fingerprint::of(path))).collect();
    let mut rejections = Vec::new();
    let mut octets = BTreeMap::new();
    let mut sources = Vec::new();
    for path in paths {
        let name = path.display().to_string();
        let read = read_bounded(path, GeoDb::MAX_BYTES as u64).map(Arc::<[u8]>::from).map_err(|error| {
            let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            Rejection { source: name.clone(), place: String::new(), reason }
        });
        let sound = read.and_then(|bytes| {
            let source = Source { name: name.clone(), kind: SourceKind::Mmdb, bytes };
            GeoDb::verify(&source).map(|()| source)
        });
        match sound {
            Ok(source) => {
                octets.insert(path.clone(), Arc::clone(&source.bytes));
                sources.push(source);
            }
            Err(mut rejection) => {
                if let Some(bytes) = remembered(path) {
                    rejection.reason.push_str("; its last good content goes on being used");
                    octets.insert(path.clone(), Arc::clone(&bytes));
                    sources.push(Source { name, kind: SourceKind::Mmdb, bytes });
                }
                rejections.push(rejection);
            }
        }
    }
    if paths.is_empty() && cfg!(feature = "embedded-geoip") {
        sources.push(Source { name: "embedded".to_owned(), kind: SourceKind::EmbeddedCountry, bytes: Arc::default() });
    }
    let (geo, refused) = GeoDb::compile(&sources, overrides);
    rejections.extend(refused);
    Databases { geo, octets, rejections, files: DatabaseFiles { seen } }
}
