//! Zone files: read with their includes, compiled, and never lost for a broken successor.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{Fingerprint, read_bounded};
use crate::model::{LowerName, Rejection};
use crate::zone::{Zone, ZoneFile, ZoneSet, ZoneSpec, include_paths};

/// Largest master file, includes counted one by one: 64 MiB.
const MAX_ZONE_FILE: u64 = 64 << 20;
/// The zone files in force, with what is needed to notice a change.
#[derive(Clone, Debug, Default)]
pub struct ZoneFiles {
    seen: Vec<(PathBuf, Fingerprint)>,
    /// What each zone was compiled from, so that an unchanged one is not compiled again.
    held: HashMap<LowerName, (ZoneSpec, Arc<Zone>)>,
}

impl ZoneFiles {
    /// Takes the fingerprints as they are now: a change counts once they stood still.
    #[must_use]
    pub fn now(&self) -> Vec<Fingerprint> {
        self.seen
            .iter()
            .map(|(path, _)| Fingerprint::of(path))
            .collect()
    }

    /// Tells whether a file is one of them.
    #[must_use]
    pub fn reads(&self, path: &Path) -> bool {
        self.seen.iter().any(|(seen, _)| seen == path)
    }

    /// Tells whether any of the files changed since it was read.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.seen
            .iter()
            .any(|(path, fingerprint)| Fingerprint::of(path) != *fingerprint)
    }
}

/// What loading gave.
#[derive(Debug)]
pub struct LoadedZones {
    /// The zones to serve.
    pub set: ZoneSet,
    /// Every fault of a zone that was refused.
    pub rejections: Vec<Rejection>,
    /// Refused zones that have no former state: they are not served at all.
    pub missing: Vec<String>,
    /// Octets in force by file, for the last good state.
    pub octets: BTreeMap<PathBuf, Arc<[u8]>>,
    /// For noticing changes.
    pub files: ZoneFiles,
}

/// Loads the zones of a configuration. `specs` come without text; `remembered` gives the last good octets of a file.
///
/// A zone whose specification and text did not change is the same `Arc` as before. A broken one keeps its former state: the
/// one being served (`former`), else what is remembered.
#[must_use]
pub fn load_zones(
    specs: &[(ZoneSpec, Option<PathBuf>)],
    former: &ZoneFiles,
    remembered: &dyn Fn(&Path) -> Option<Arc<[u8]>>,
) -> LoadedZones {
    let mut loaded = LoadedZones {
        set: ZoneSet::default(),
        rejections: Vec::new(),
        missing: Vec::new(),
        octets: BTreeMap::new(),
        files: ZoneFiles::default(),
    };
    let mut zones = Vec::with_capacity(specs.len());
    for (spec, path) in specs {
        let held = former.held.get(&spec.apex);
        match load_zone(spec, path.as_deref(), held, &mut loaded) {
            Ok(zone) => zones.push(zone),
            Err(faults) => {
                loaded.rejections.extend(faults);
                let memory = path
                    .as_deref()
                    .and_then(|path| from_memory(spec, path, remembered, &mut loaded));
                match held.and_then(|held| renewed(spec, held)).or(memory) {
                    Some(zone) => zones.push(zone),
                    None => loaded.missing.push(spec.apex.to_string()),
                }
            }
        }
    }
    loaded.set = ZoneSet::new(zones.iter().map(|(_, zone)| Arc::clone(zone)).collect());
    loaded.files.held = zones
        .into_iter()
        .map(|(spec, zone)| (spec.apex.clone(), (spec, zone)))
        .collect();
    loaded
}

/// Gives a file's octets, from wherever they are.
type Reader<'a> = &'a mut dyn FnMut(&Path) -> Result<Arc<[u8]>, Rejection>;

/// A zone with what it was compiled from.
type Held = (ZoneSpec, Arc<Zone>);

/// Loads one zone from its file.
fn load_zone(
    spec: &ZoneSpec,
    path: Option<&Path>,
    held: Option<&Held>,
    loaded: &mut LoadedZones,
) -> Result<Held, Vec<Rejection>> {
    let mut spec = spec.clone();
    if let Some(path) = path {
        let mut read = |path: &Path| {
            let mut fingerprint = Fingerprint::of(path);
            let read = read_bounded(path, MAX_ZONE_FILE).map(Arc::<[u8]>::from);
            let read = read.map_err(|error| {
                fingerprint = Fingerprint::of_unread(path, &error);
                Rejection {
                    source: path.display().to_string(),
                    place: String::new(),
                    reason: error.reason(),
                }
            });
            loaded.files.seen.push((path.to_owned(), fingerprint));
            read
        };
        spec.file = Some(with_includes(path, &mut read).map_err(|rejection| vec![rejection])?);
    }
    let zone = match held {
        Some((former, zone)) if *former == spec => Arc::clone(zone),
        _ => Arc::new(Zone::compile(&spec)?),
    };
    keep_octets(&spec, loaded);
    Ok((spec, zone))
}

/// Compiles a zone's new specification with the text it is served from now; when even that fails, it stays as it is.
fn renewed(spec: &ZoneSpec, held: &Held) -> Option<Held> {
    let spec = ZoneSpec {
        file: held.0.file.clone(),
        ..spec.clone()
    };
    let zone = Zone::compile(&spec).map(Arc::new);
    Some(zone.map_or_else(|_| held.clone(), |zone| (spec, zone)))
}

/// Compiles a zone out of remembered octets.
fn from_memory(
    spec: &ZoneSpec,
    path: &Path,
    remembered: &dyn Fn(&Path) -> Option<Arc<[u8]>>,
    loaded: &mut LoadedZones,
) -> Option<Held> {
    let mut spec = spec.clone();
    let mut read = |path: &Path| {
        remembered(path).ok_or_else(|| Rejection {
            source: path.display().to_string(),
            place: String::new(),
            reason: "not in the last good state".to_owned(),
        })
    };
    spec.file = Some(with_includes(path, &mut read).ok()?);
    let zone = Arc::new(Zone::compile(&spec).ok()?);
    keep_octets(&spec, loaded);
    loaded.rejections.push(Rejection {
        source: path.display().to_string(),
        place: String::new(),
        reason: "its last good content goes on being served".to_owned(),
    });
    Some((spec, zone))
}

/// Notes the octets that a zone was made of.
fn keep_octets(spec: &ZoneSpec, loaded: &mut LoadedZones) {
    if let Some(file) = &spec.file {
        let folder = file.path.parent().unwrap_or_else(|| Path::new("."));
        loaded
            .octets
            .insert(file.path.clone(), Arc::clone(&file.text));
        loaded.octets.extend(
            file.includes
                .iter()
                .map(|(path, text)| (folder.join(path), Arc::clone(text))),
        );
    }
}

/// Reads a master file and everything it includes, each once. Includes lie below the file's folder, symbolic links followed.
fn with_includes(path: &Path, read: Reader<'_>) -> Result<ZoneFile, Rejection> {
    let mut file = ZoneFile {
        path: path.to_owned(),
        text: read(path)?,
        includes: Vec::new(),
    };
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    // Faults of the paths themselves are reported when the zone is compiled.
    let (mut waiting, _) = include_paths(&path.display().to_string(), &file.text);
    while let Some(relative) = waiting.pop() {
        if file.includes.iter().any(|(known, _)| *known == relative) {
            continue;
        }
        let full = folder.join(&relative);
        if leads_out(folder, &full) {
            return Err(Rejection {
                source: full.display().to_string(),
                place: String::new(),
                reason: "a symbolic link leads out of the zone file's folder".to_owned(),
            });
        }
        let text = read(&full)?;
        waiting.extend(include_paths(&full.display().to_string(), &text).0);
        file.includes.push((relative, text));
    }
    Ok(file)
}

/// Tells whether symbolic links lead out of a folder. What is not there leads nowhere: reading it says so.
fn leads_out(folder: &Path, file: &Path) -> bool {
    let (Ok(folder), Ok(file)) = (folder.canonicalize(), file.canonicalize()) else {
        return false;
    };
    !file.starts_with(folder)
}
