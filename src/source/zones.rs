//! Zone files: read with their includes, compiled, and never lost for a broken successor.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{Fingerprint, read_bounded};
use crate::model::{LowerName, Refusals, Rejection};
use crate::zone::{Include, Zone, ZoneFile, ZoneSet, ZoneSpec, includes};

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

    /// Tells whether a zone is served from this file, or would be if it were good.
    #[must_use]
    pub fn reads(&self, path: &Path) -> bool {
        let is_held = |(spec, _): &Held| {
            spec.file.as_ref().is_some_and(|file| {
                let mut includes = file.includes.iter();
                file.path == path || includes.any(|(include, _)| include == path)
            })
        };
        self.seen.iter().any(|(seen, _)| seen == path) || self.held.values().any(is_held)
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

/// What loading gave.
#[derive(Debug, Default)]
pub struct LoadedZones {
    /// The zones to serve.
    pub set: ZoneSet,
    /// Every fault of a zone that was refused.
    pub rejections: Vec<Rejection>,
    /// The master files, and apexes of zones without one, that were refused, and why.
    pub refused: BTreeMap<String, Refusals>,
    /// Refused zones that have no former state: they are not served at all.
    pub missing: Vec<LowerName>,
    /// Zones that do not delegate a child served beside them, and have no former state that does.
    pub uncut: Vec<Rejection>,
    /// Octets in force by file, for the last good state.
    pub octets: BTreeMap<PathBuf, Arc<[u8]>>,
    /// For noticing changes.
    pub files: ZoneFiles,
}

/// Where a zone's other parts come from than its own file.
#[derive(Clone, Copy)]
pub struct ZoneContext<'a> {
    /// What is served now.
    pub former: &'a ZoneFiles,
    /// Gives the last good octets of a file.
    pub remembered: &'a dyn Fn(&Path) -> Option<Arc<[u8]>>,
    /// Gives the serial of a zone, whose text is filled in.
    pub serial: &'a dyn Fn(&ZoneSpec) -> u32,
}

impl std::fmt::Debug for ZoneContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ZoneContext")
    }
}

/// Loads the zones of a configuration. `specs` come without text and serial.
///
/// A zone whose specification and text did not change is the same `Arc` as before. A broken one keeps its former state: the
/// one being served, else what is remembered. So does one that lost the cut to a child that is served too.
#[must_use]
pub fn load_zones(specs: &[(ZoneSpec, Option<PathBuf>)], context: ZoneContext<'_>) -> LoadedZones {
    let mut loading = Loading {
        context,
        loaded: LoadedZones::default(),
    };
    let mut zones: Vec<Option<Held>> = Vec::with_capacity(specs.len());
    for source in specs {
        let zone = loading.load(source).or_else(|faults| {
            loading.refuse(source, faults);
            loading.former_state(source, &|_| true).ok_or(())
        });
        if zone.is_err() {
            loading.loaded.missing.push(source.0.apex.clone());
        }
        zones.push(zone.ok());
    }
    loading.restore_cuts(specs, &mut zones);
    let mut loaded = loading.loaded;
    loaded.set = set_of(&zones);
    for (spec, _) in zones.iter().flatten() {
        keep_octets(spec, &mut loaded.octets);
    }
    loaded.files.held = zones
        .into_iter()
        .flatten()
        .map(|(spec, zone)| (spec.apex.clone(), (spec, zone)))
        .collect();
    loaded
}

/// Gives a file's octets, from wherever they are.
type Reader<'a> = &'a mut dyn FnMut(&Path) -> Result<Arc<[u8]>, Rejection>;

/// A zone with what it was compiled from.
type Held = (ZoneSpec, Arc<Zone>);

/// One zone to load: its specification without text and serial, and its file.
type ZoneWish = (ZoneSpec, Option<PathBuf>);

/// A load under way.
struct Loading<'a> {
    context: ZoneContext<'a>,
    loaded: LoadedZones,
}

impl Loading<'_> {
    /// Loads one zone from its file.
    fn load(&mut self, (spec, path): &ZoneWish) -> Result<Held, Vec<Rejection>> {
        let mut spec = spec.clone();
        if let Some(path) = path {
            let seen = &mut self.loaded.files.seen;
            let mut read = |path: &Path| {
                let mut fingerprint = Fingerprint::of(path);
                let read = read_bounded(path, MAX_ZONE_FILE).map(Arc::<[u8]>::from);
                let read = read.map_err(|error| {
                    fingerprint = Fingerprint::of_unread(path, &error);
                    refusal(path, error.reason())
                });
                seen.push((path.to_owned(), fingerprint));
                read
            };
            spec.file = Some(with_includes(path, &mut read).map_err(|rejection| vec![rejection])?);
        }
        spec.serial = (self.context.serial)(&spec);
        let zone = match self.context.former.held.get(&spec.apex) {
            Some((former, zone)) if *former == spec => Arc::clone(zone),
            _ => Arc::new(Zone::compile(&spec)?),
        };
        Ok((spec, zone))
    }

    /// Notes why a zone was refused.
    fn refuse(&mut self, (spec, path): &ZoneWish, faults: Vec<Rejection>) {
        let what = path
            .as_ref()
            .map_or_else(|| spec.apex.to_string(), |path| path.display().to_string());
        let reasons = self.loaded.refused.entry(what).or_default();
        reasons.extend(faults.iter().cloned());
        self.loaded.rejections.extend(faults);
    }

    /// Finds a former state of a zone that suits: the one being served, else what is remembered.
    fn former_state(
        &mut self,
        (spec, path): &ZoneWish,
        suits: &dyn Fn(&Zone) -> bool,
    ) -> Option<Held> {
        let former = self.context.former;
        let held = former.held.get(&spec.apex);
        if let Some(renewed) = held
            .map(|held| self.renewed(spec, held))
            .filter(|(_, zone)| suits(zone))
        {
            return Some(renewed);
        }
        let path = path.as_deref()?;
        let found = self.recall(spec, path).filter(|(_, zone)| suits(zone))?;
        let reason = "its last good content goes on being served";
        self.loaded
            .rejections
            .push(refusal(path, reason.to_owned()));
        Some(found)
    }

    /// Compiles a zone's new specification with the text it is served from now; when even that fails, it stays as it is.
    fn renewed(&self, spec: &ZoneSpec, held: &Held) -> Held {
        let mut spec = ZoneSpec {
            file: held.0.file.clone(),
            ..spec.clone()
        };
        spec.serial = (self.context.serial)(&spec);
        if spec == held.0 {
            return held.clone();
        }
        let zone = Zone::compile(&spec).map(Arc::new);
        zone.map_or_else(|_| held.clone(), |zone| (spec, zone))
    }

    /// Compiles a zone out of remembered octets.
    fn recall(&self, spec: &ZoneSpec, path: &Path) -> Option<Held> {
        let mut spec = spec.clone();
        let mut read = |path: &Path| {
            let octets = (self.context.remembered)(path);
            octets.ok_or_else(|| refusal(path, "not in the last good state".to_owned()))
        };
        spec.file = Some(with_includes(path, &mut read).ok()?);
        spec.serial = (self.context.serial)(&spec);
        let zone = Arc::new(Zone::compile(&spec).ok()?);
        Some((spec, zone))
    }

    /// Refuses files that lost the cut to a child served too, and puts a former state with all of them in their place. A
    /// parent that never had it is a fault of the configuration (DESIGN section 7).
    fn restore_cuts(&mut self, specs: &[ZoneWish], zones: &mut [Option<Held>]) {
        let set = set_of(zones);
        let mut children: BTreeMap<String, Vec<LowerName>> = BTreeMap::new();
        for (parent, child) in set.missing_cuts() {
            let children = children.entry(parent.apex().to_string()).or_default();
            children.push(child.apex().clone());
        }
        if children.is_empty() {
            return;
        }
        for (wish, zone) in specs.iter().zip(zones) {
            let (spec, path) = wish;
            let Some(without) = children.get(&spec.apex.to_string()) else {
                continue;
            };
            let source = path.as_ref().map_or_else(
                || format!("zone {}", spec.apex),
                |path| path.display().to_string(),
            );
            let fault = |child: &LowerName| Rejection {
                source: source.clone(),
                place: String::new(),
                reason: format!(
                    "{child} is served as a zone of its own, but not delegated here; add NS records for it to this zone's file"
                ),
            };
            let faults: Vec<Rejection> = without.iter().map(fault).collect();
            // Those that the refused text does delegate must not lose that either.
            let served: Vec<&LowerName> = set
                .iter()
                .filter(|(index, _)| {
                    let parent = set.parent(*index).and_then(|parent| set.get(parent));
                    parent.is_some_and(|parent| *parent.apex() == spec.apex)
                })
                .map(|(_, child)| child.apex())
                .collect();
            let suits = |zone: &Zone| served.iter().all(|apex| zone.cut(apex.as_ref()).is_some());
            match self.former_state(wish, &suits) {
                Some(found) => {
                    self.refuse(wish, faults);
                    *zone = Some(found);
                }
                None => self.loaded.uncut.extend(faults),
            }
        }
    }
}

/// Makes the set of the zones that there are.
fn set_of(zones: &[Option<Held>]) -> ZoneSet {
    let there = zones.iter().flatten();
    ZoneSet::new(there.map(|(_, zone)| Arc::clone(zone)).collect())
}

/// Refuses a whole file.
fn refusal(path: &Path, reason: String) -> Rejection {
    Rejection {
        source: path.display().to_string(),
        place: String::new(),
        reason,
    }
}

/// Notes the octets that a zone was made of.
fn keep_octets(spec: &ZoneSpec, octets: &mut BTreeMap<PathBuf, Arc<[u8]>>) {
    if let Some(file) = &spec.file {
        octets.insert(file.path.clone(), Arc::clone(&file.text));
        octets.extend(file.includes.iter().cloned());
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
    let mut waiting = includes_of(path, &file.text);
    while let Some((by, Include { path, line })) = waiting.pop() {
        let full = folder.join(path);
        if file.includes.iter().any(|(known, _)| *known == full) {
            continue;
        }
        // What is wrong with the file is wrong with the line that includes it.
        let refused = |reason: String| Rejection {
            source: by.display().to_string(),
            place: format!("line {line}"),
            reason: format!("$INCLUDE of {}: {reason}", full.display()),
        };
        if leads_out(folder, &full) {
            let reason = "a symbolic link leads out of the zone file's folder";
            return Err(refused(reason.to_owned()));
        }
        let text = read(&full).map_err(|rejection| refused(rejection.reason))?;
        waiting.extend(includes_of(&full, &text));
        file.includes.push((full, text));
    }
    Ok(file)
}

/// Lists what a file includes, each with the file itself.
fn includes_of(path: &Path, text: &[u8]) -> Vec<(PathBuf, Include)> {
    let (found, _) = includes(&path.display().to_string(), text);
    let with_file = found.into_iter().map(|include| (path.to_owned(), include));
    with_file.collect()
}

/// Tells whether symbolic links lead out of a folder. What is not there leads nowhere: reading it says so.
fn leads_out(folder: &Path, file: &Path) -> bool {
    let (Ok(folder), Ok(file)) = (folder.canonicalize(), file.canonicalize()) else {
        return false;
    };
    !file.starts_with(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Reads a zone file of a folder with its includes; what was refused, as it is shown.
    fn refused(folder: &Path) -> String {
        let mut read = |path: &Path| {
            let octets = read_bounded(path, MAX_ZONE_FILE).map(Arc::<[u8]>::from);
            octets.map_err(|error| refusal(path, error.reason()))
        };
        let refused = with_includes(&folder.join("a.zone"), &mut read).unwrap_err();
        let shown = refused.located();
        shown.replace(&format!("{}/", folder.display()), "")
    }

    #[test]
    fn what_cannot_be_included_is_told_at_the_line_that_includes_it() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("a.zone"), "$TTL 300\n$INCLUDE b.zone\n").unwrap();
        let missing = refused(folder);
        assert!(
            missing.starts_with("a.zone:2: $INCLUDE of b.zone: "),
            "{missing}"
        );
        assert!(missing.contains("No such file"), "{missing}");
        std::os::unix::fs::symlink("/etc/passwd", folder.join("b.zone")).unwrap();
        let out = refused(folder);
        assert!(
            out.starts_with("a.zone:2: $INCLUDE of b.zone: a symbolic link"),
            "{out}"
        );
        // In an included file it is that file's line.
        fs::remove_file(folder.join("b.zone")).unwrap();
        fs::write(folder.join("b.zone"), "\nx A 192.0.2.1\n$INCLUDE c.zone\n").unwrap();
        let deep = refused(folder);
        assert!(deep.starts_with("b.zone:3: $INCLUDE of c.zone: "), "{deep}");
    }
}
