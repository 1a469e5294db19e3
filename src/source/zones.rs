//! Zone files: read with their includes, compiled, and never lost for a broken successor.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{Fingerprint, read_bounded};
use crate::model::Rejection;
use crate::zone::{Zone, ZoneFile, ZoneSet, ZoneSpec, included_files};

/// Largest master file, includes counted one by one: 64 MiB.
const MAX_ZONE_FILE: u64 = 64 << 20;
/// Most files that one zone may include.
const MAX_INCLUDES: usize = 1000;

/// The zone files in force, with what is needed to notice a change.
#[derive(Clone, Debug, Default)]
pub struct ZoneFiles {
    seen: Vec<(PathBuf, Fingerprint)>,
}

impl ZoneFiles {
    /// Tells whether any of the files changed since it was read.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.seen.iter().any(|(path, fingerprint)| Fingerprint::of(path) != *fingerprint)
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
/// A zone whose specification and text did not change is the same `Arc` as in `former`. A broken one keeps its former state:
/// the one being served, else what is remembered.
#[must_use]
pub fn load_zones(
    specs: &[(ZoneSpec, Option<PathBuf>)],
    former: &ZoneSet,
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
        let held = former.iter().map(|(_, zone)| zone).find(|zone| zone.apex() == &spec.apex);
        match load_zone(spec, path.as_deref(), held, &mut loaded) {
            Ok(zone) => zones.push(zone),
            Err(faults) => {
                loaded.rejections.extend(faults);
                let memory = path.as_deref().and_then(|path| from_memory(spec, path, remembered, &mut loaded));
                match held.map(Arc::clone).or(memory) {
                    Some(zone) => zones.push(zone),
                    None => loaded.missing.push(spec.apex.to_string()),
                }
            }
        }
    }
    loaded.set = ZoneSet::new(zones);
    loaded
}

/// Loads one zone from its file.
fn load_zone(
    spec: &ZoneSpec,
    path: Option<&Path>,
    held: Option<&Arc<Zone>>,
    loaded: &mut LoadedZones,
) -> Result<Arc<Zone>, Vec<Rejection>> {
    let mut spec = spec.clone();
    if let Some(path) = path {
        let mut read = |path: &Path| {
            loaded.files.seen.push((path.to_owned(), Fingerprint::of(path)));
            read_bounded(path, MAX_ZONE_FILE).map(Arc::<[u8]>::from).map_err(|error| {
                let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                Rejection { source: path.display().to_string(), place: String::new(), reason }
            })
        };
        spec.file = Some(with_includes(path, &mut read).map_err(|rejection| vec![rejection])?);
    }
    if let Some(held) = held.filter(|held| held.spec() == &spec) {
        keep_octets(&spec, loaded);
        return Ok(Arc::clone(held));
    }
    let zone = Zone::compile(&spec)?;
    keep_octets(&spec, loaded);
    Ok(Arc::new(zone))
}

/// Compiles a zone out of remembered octets.
fn from_memory(
    spec: &ZoneSpec,
    path: &Path,
    remembered: &dyn Fn(&Path) -> Option<Arc<[u8]>>,
    loaded: &mut LoadedZones,
) -> Option<Arc<Zone>> {
    let mut spec = spec.clone();
    let mut read = |path: &Path| {
        remembered(path).ok_or_else(|| Rejection {
            source: path.display().to_string(),
            place: String::new(),
            reason: "not in the last good state".to_owned(),
        })
    };
    spec.file = Some(with_includes(path, &mut read).ok()?);
    let zone = Zone::compile(&spec).ok()?;
    keep_octets(&spec, loaded);
    loaded.rejections.push(Rejection {
        source: path.display().to_string(),
        place: String::new(),
        reason: "its last good content goes on being served".to_owned(),
    });
    Some(Arc::new(zone))
}

/// Notes the octets that a zone was made of.
fn keep_octets(spec: &ZoneSpec, loaded: &mut LoadedZones) {
    if let Some(file) = &spec.file {
        loaded.octets.insert(file.path.clone(), Arc::clone(&file.text));
        loaded.octets.extend(file.includes.iter().map(|(path, text)| (path.clone(), Arc::clone(text))));
    }
}

/// Reads a master file and everything it includes, each once.
fn with_includes(
    path: &Path,
    read: &mut dyn FnMut(&Path) -> Result<Arc<[u8]>, Rejection>,
) -> Result<ZoneFile, Rejection> {
    let mut file = ZoneFile { path: path.to_owned(), text: read(path)?, includes: Vec::new() };
    let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    let mut waiting = included_files(path, &file.text, &folder)?;
    while let Some(path) = waiting.pop() {
        if file.includes.iter().any(|(known, _)| *known == path) {
            continue;
        }
        if file.includes.len() >= MAX_INCLUDES {
            return Err(Rejection {
                source: file.path.display().to_string(),
                place: String::new(),
                reason: format!("includes more than {MAX_INCLUDES} files"),
            });
        }
        let text = read(&path)?;
        waiting.extend(included_files(&path, &text, &folder)?);
        file.includes.push((path, text));
    }
    Ok(file)
}
