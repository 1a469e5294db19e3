//! The last good state on disk: what a restart needs to answer as before.
//!
//! Kept: verdicts by target, the SOA serial of each zone with the hash of the content it stands for, and the octets of
//! databases and zone files by content hash, so that a file that is gone or broken later does no harm. `state.json` is
//! written whole (temporary file, fsync, rename, fsync of the folder) with a checksum in its first line; a torn or foreign
//! file is reported and ignored. Blobs are written before the state that names them and removed after it no longer does.
//! A lock file keeps a second node out for as long as the first one lives.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::folder::{LastGood, LastGoodError, NamedFile, content_hash, io_error};
use crate::disk::read_bounded;
use crate::model::Verdict;

/// The file of the state: about two million monitors at most.
const STATE: NamedFile = NamedFile {
    name: "state.json",
    version: 1,
    max: 512 << 20,
};
/// Largest blob read, that of the largest database.
const MAX_BLOB: u64 = 1 << 30;

/// What is remembered over a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The greatest SOA serial ever given, for zones that come anew or again; 0: none yet.
    pub serial: u32,
    /// SOA serial of each zone whose file has none, by apex.
    pub serials: BTreeMap<String, ZoneSerial>,
    /// Content hash of each database and zone file in force, by path.
    pub files: BTreeMap<PathBuf, String>,
    /// Up and Down by [`super::target_key()`].
    pub verdicts: BTreeMap<String, Verdict>,
}

/// A serial and what it stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneSerial {
    /// The SOA serial.
    pub serial: u32,
    /// Hash of the zone's content.
    pub content: String,
}

/// The mirror of [`Memory`] on disk. Keys that are unknown are ignored: the checksum tells a torn file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StateDto<'a> {
    version: u32,
    serial: u32,
    /// Apex -> serial and hash of the content.
    #[serde(default)]
    serials: BTreeMap<String, (u32, String)>,
    files: BTreeMap<PathBuf, String>,
    down: BTreeSet<Cow<'a, str>>,
    up: BTreeSet<Cow<'a, str>>,
}

impl<'a> From<&'a Memory> for StateDto<'a> {
    fn from(memory: &'a Memory) -> Self {
        let keys = |wanted| {
            memory
                .verdicts
                .iter()
                .filter(|(_, verdict)| **verdict == wanted)
                .map(|(key, _)| Cow::Borrowed(key.as_str()))
                .collect()
        };
        Self {
            version: STATE.version,
            serial: memory.serial,
            serials: memory
                .serials
                .iter()
                .map(|(apex, zone)| (apex.clone(), (zone.serial, zone.content.clone())))
                .collect(),
            files: memory.files.clone(),
            down: keys(Verdict::Down),
            up: keys(Verdict::Up),
        }
    }
}

impl From<StateDto<'_>> for Memory {
    fn from(dto: StateDto<'_>) -> Self {
        let up = dto
            .up
            .into_iter()
            .map(|key| (key.into_owned(), Verdict::Up));
        let down = dto
            .down
            .into_iter()
            .map(|key| (key.into_owned(), Verdict::Down));
        Self {
            serial: dto.serial,
            serials: dto
                .serials
                .into_iter()
                .map(|(apex, (serial, content))| (apex, ZoneSerial { serial, content }))
                .collect(),
            files: dto.files,
            verdicts: up.chain(down).collect(),
        }
    }
}

impl LastGood {
    /// Reads what is remembered; nothing when nothing was ever written.
    ///
    /// # Errors
    /// When the file cannot be read or is torn: go on without it, and say so.
    pub fn read(&self) -> Result<Memory, LastGoodError> {
        let dto: Option<StateDto<'static>> = self.read_named(&STATE)?;
        Ok(dto.map(Memory::from).unwrap_or_default())
    }

    /// Writes what is to be remembered, whole or not at all, then removes blobs that it does not name.
    ///
    /// # Errors
    /// When the disk is full or read-only: the former state stays.
    pub fn write(&self, memory: &Memory) -> Result<(), LastGoodError> {
        let body = serde_json::to_vec(&StateDto::from(memory))
            .map_err(|error| self.unusable(&STATE, error.to_string()))?;
        self.write_named(&STATE, (&content_hash(&body), &body))?;
        // Where the former state was put aside, so is what it names: until the next start.
        if !self.unread().has(&self.path(STATE.name)) {
            self.sweep(memory);
        }
        Ok(())
    }

    /// Keeps the octets of a database or zone file under their hash. Does nothing when they are kept already.
    ///
    /// # Errors
    /// When the disk is full or read-only.
    pub fn keep(&self, hash: &str, octets: &[u8]) -> Result<(), LastGoodError> {
        // What is there is read, not only measured: a content that went bad on disk is written anew.
        if self.kept(hash).is_ok() {
            return Ok(());
        }
        self.write_whole(&self.blob_path(hash), &[octets])
    }

    /// Tells whether there is a content of this hash, without reading it.
    #[must_use]
    pub fn has(&self, hash: &str) -> bool {
        self.blob_path(hash).is_file()
    }

    /// Gives kept octets back, checked against their hash.
    ///
    /// # Errors
    /// When they are gone or changed.
    pub fn kept(&self, hash: &str) -> Result<Vec<u8>, LastGoodError> {
        let path = self.blob_path(hash);
        let octets = read_bounded(&path, MAX_BLOB).map_err(io_error(&path, "read"))?;
        if content_hash(&octets) == hash {
            Ok(octets)
        } else {
            Err(LastGoodError::Unusable {
                path,
                reason: "content does not match its hash".to_owned(),
            })
        }
    }

    fn blob_path(&self, hash: &str) -> PathBuf {
        // Hashes come out of a checked file, and still: nothing but hexadecimal digits may become a path.
        let name: String = hash.chars().filter(char::is_ascii_hexdigit).collect();
        self.path("blobs").join(name)
    }

    /// Removes blobs that nothing names any more, and temporary files of an interrupted write. What is not ours stays.
    fn sweep(&self, memory: &Memory) {
        let named: BTreeSet<&str> = memory.files.values().map(String::as_str).collect();
        let Ok(entries) = fs::read_dir(self.path("blobs")) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_unused = |name: &str| is_ours(name) && !named.contains(name);
            if name.to_str().is_some_and(is_unused) {
                // Left behind it does no harm but for its room; the next sweep tries again.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Tells whether a name in the folder of blobs is one that we give: 64 hexadecimal digits, those of a temporary file with
/// `.tmp` behind them.
fn is_ours(name: &str) -> bool {
    let digits = name.strip_suffix(".tmp").unwrap_or(name);
    let is_digit = |octet: u8| matches!(octet, b'0'..=b'9' | b'a'..=b'f');
    digits.len() == 64 && digits.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn sample(hash: &str) -> Memory {
        Memory {
            serial: 7,
            serials: [(
                "svc.mesh".to_owned(),
                ZoneSerial {
                    serial: 6,
                    content: "c".to_owned(),
                },
            )]
            .into(),
            files: [(PathBuf::from("geo.mmdb"), hash.to_owned())].into(),
            verdicts: [
                ("tcp a".to_owned(), Verdict::Down),
                ("tcp b".to_owned(), Verdict::Up),
            ]
            .into(),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let last_good = LastGood::at(folder.path());
        assert_eq!(last_good.read().unwrap(), Memory::default());
        let hash = content_hash(b"database");
        last_good.keep(&hash, b"database").unwrap();
        last_good.write(&sample(&hash)).unwrap();
        assert_eq!(last_good.read().unwrap(), sample(&hash));
        assert_eq!(last_good.kept(&hash).unwrap(), b"database");
    }

    #[test]
    fn a_torn_file_is_ignored_at_every_length() {
        let folder = tempfile::tempdir().unwrap();
        let last_good = LastGood::at(folder.path());
        last_good.write(&sample("")).unwrap();
        let whole = fs::read(folder.path().join("state.json")).unwrap();
        for length in 0..whole.len() {
            fs::write(folder.path().join("state.json"), &whole[..length]).unwrap();
            assert!(last_good.read().is_err(), "{length}");
        }
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        fs::write(folder.path().join("state.json"), &flipped).unwrap();
        assert!(last_good.read().is_err());
    }

    /// Names what is on disk: every file with its content.
    fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        for folder in [folder.to_owned(), folder.join("blobs")] {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_file() {
                    files.insert(entry.path(), fs::read(entry.path()).unwrap());
                }
            }
        }
        files
    }

    /// Puts the disk into a former state.
    fn restore(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
        for path in snapshot(folder).keys() {
            fs::remove_file(path).unwrap();
        }
        for (path, octets) in files {
            fs::write(path, octets).unwrap();
        }
    }

    /// Lists the disk after a kill at every step of writing one file whole: the temporary file at every length, then renamed.
    fn steps(
        before: &BTreeMap<PathBuf, Vec<u8>>,
        path: &Path,
        octets: &[u8],
    ) -> Vec<BTreeMap<PathBuf, Vec<u8>>> {
        let mut all = vec![before.clone()];
        for length in 0..=octets.len() {
            let mut disk = before.clone();
            disk.insert(path.with_extension("tmp"), octets[..length].to_vec());
            all.push(disk);
        }
        // Blocks that were never written read as zeros after a crash of the machine.
        let mut zeros = before.clone();
        zeros.insert(path.with_extension("tmp"), vec![0; octets.len()]);
        all.push(zeros);
        let mut disk = before.clone();
        disk.insert(path.to_owned(), octets.to_vec());
        all.push(disk);
        all
    }

    #[test]
    fn a_kill_at_every_step_leaves_the_old_state_or_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let last_good = LastGood::at(folder.path());
        let (old, new) = (content_hash(b"old database"), content_hash(b"new database"));
        let (first, second) = (
            sample(&old),
            Memory {
                serial: 8,
                ..sample(&new)
            },
        );
        last_good.keep(&old, b"old database").unwrap();
        last_good.write(&first).unwrap();
        let before = snapshot(folder.path());
        // What the whole sequence leaves, for the octets that it writes.
        last_good.keep(&new, b"new database").unwrap();
        last_good.write(&second).unwrap();
        let after = snapshot(folder.path());
        let (blob, state) = (last_good.blob_path(&new), folder.path().join(STATE.name));
        let with_blob = steps(&before, &blob, &after[&blob]);
        let with_state = steps(with_blob.last().unwrap(), &state, &after[&state]);
        // The last step: former contents are swept.
        let all = with_blob.iter().chain(&with_state).chain([&after]);
        let mut found = [0; 2];
        for disk in all {
            restore(folder.path(), disk);
            let memory = last_good.read().unwrap();
            let is_new = memory == second;
            assert!(is_new || memory == first, "{memory:?}");
            let (hash, content) = if is_new {
                (&new, b"new database")
            } else {
                (&old, b"old database")
            };
            assert_eq!(last_good.kept(hash).unwrap(), content);
            found[usize::from(is_new)] += 1;
            // The next start writes the new state over whatever was left, and leaves nothing of it.
            last_good.keep(&new, b"new database").unwrap();
            last_good.write(&second).unwrap();
            assert_eq!(snapshot(folder.path()), after);
        }
        assert!(found[0] > 100 && found[1] == 2, "{found:?}");
    }

    #[test]
    fn a_state_that_cannot_be_read_is_put_aside_with_what_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let (state, aside) = ("state.json", "state.json.unusable");
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        let old = content_hash(b"old");
        let before = LastGood::at(folder.path());
        before.keep(&old, b"old").unwrap();
        before.write(&sample(&old)).unwrap();
        drop(before);
        let whole = read(state);
        let torn = &whole[..whole.len() / 2];
        fs::write(folder.path().join(state), torn).unwrap();
        let last_good = LastGood::at(folder.path());
        assert!(last_good.read().is_err());
        let unread = last_good.unread().list();
        assert_eq!(unread.len(), 1);
        assert_eq!(unread[0].reason, "checksum does not match");
        for _ in 0..2 {
            last_good.write(&Memory::default()).unwrap();
            assert_eq!(read(aside), torn);
            assert_eq!(last_good.kept(&old).unwrap(), b"old");
        }
        // The next start reads what is ours again, and tidies up.
        drop(last_good);
        let next = LastGood::at(folder.path());
        assert_eq!(next.read().unwrap(), Memory::default());
        next.write(&Memory::default()).unwrap();
        assert_eq!(read(aside), torn);
        assert!(next.unread().list().is_empty() && !next.has(&old));
    }

    #[test]
    fn unnamed_blobs_are_swept_and_changed_ones_refused() {
        let folder = tempfile::tempdir().unwrap();
        let last_good = LastGood::at(folder.path());
        let (old, new) = (content_hash(b"old"), content_hash(b"new"));
        last_good.keep(&old, b"old").unwrap();
        last_good.keep(&new, b"new").unwrap();
        last_good.write(&sample(&new)).unwrap();
        assert!(last_good.kept(&old).is_err());
        fs::write(folder.path().join("blobs").join(&new), b"nex").unwrap();
        assert!(last_good.kept(&new).is_err());
        last_good.keep(&new, b"new").unwrap();
        assert_eq!(last_good.kept(&new).unwrap(), b"new", "written anew");
    }

    #[test]
    fn the_sweep_leaves_what_is_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        let last_good = LastGood::at(folder.path());
        let old = content_hash(b"old");
        last_good.keep(&old, b"old").unwrap();
        let blobs = folder.path().join("blobs");
        let half = format!("{}.tmp", content_hash(b"half"));
        let foreign = ["notes.txt", "0123", &old.to_uppercase()];
        for name in foreign.iter().copied().chain([half.as_str()]) {
            fs::write(blobs.join(name), b"").unwrap();
        }
        last_good.write(&Memory::default()).unwrap();
        let exists = |name: &str| blobs.join(name).exists();
        assert!(foreign.iter().all(|name| exists(name)));
        assert!(!exists(&old) && !exists(&half));
    }

    #[test]
    fn a_folder_has_one_owner_and_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (LastGood::at(folder.path()), LastGood::at(folder.path()));
        first.open().unwrap();
        assert!(matches!(second.open(), Err(LastGoodError::InUse { .. })));
        assert!(second.write(&sample("")).is_err());
        first.clone().write(&sample("")).unwrap();
        drop(first);
        second.open().unwrap();
        fs::remove_dir_all(folder.path()).unwrap();
        second.write(&sample("")).unwrap();
        assert_eq!(second.read().unwrap(), sample(""));
        let third = LastGood::at(folder.path());
        assert!(matches!(third.open(), Err(LastGoodError::InUse { .. })));
    }

    #[test]
    fn a_state_of_before_the_serials_were_kept_by_zone_is_read() {
        let body =
            br#"{"version":1,"serial":7,"configuration":"c","files":{},"down":[],"up":["tcp b"]}"#;
        let folder = tempfile::tempdir().unwrap();
        let text = [content_hash(body).as_bytes(), b"\n", body].concat();
        fs::write(folder.path().join("state.json"), text).unwrap();
        let memory = LastGood::at(folder.path()).read().unwrap();
        assert_eq!((memory.serial, memory.verdicts.len()), (7, 1));
        assert!(memory.serials.is_empty());
    }
}
