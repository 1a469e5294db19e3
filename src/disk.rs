//! Files that a node keeps for itself: written whole or not at all, and never over what nobody could read.
//!
//! A file of the state directory that was not read whole may be that of a newer version, or all that is left of a disk that goes
//! bad. It is noted when it is read, so that people are told, and put aside before the first write: its name then ends in
//! `.unusable`. What stands in these files is their rooms' own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::warn;

/// What a file's name ends in when it was put aside.
const ASIDE: &str = ".unusable";

/// A file that was not read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadFile {
    /// Its path.
    pub path: PathBuf,
    /// Why: lower-case, no period.
    pub reason: String,
    /// It was put aside.
    pub is_aside: bool,
}

impl UnreadFile {
    /// Gives the path that it has when it was put aside.
    #[must_use]
    pub fn aside(&self) -> PathBuf {
        aside(&self.path)
    }
}

impl fmt::Display for UnreadFile {
    /// Says it in one sentence without a period.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, aside) = (self.path.display(), self.aside());
        let kept = if self.is_aside {
            "it is kept as"
        } else {
            "before it is written over it is renamed to"
        };
        let (reason, aside) = (&self.reason, aside.display());
        write!(f, "{path} cannot be read: {reason}; {kept} {aside}")
    }
}

/// Why the last write of a file failed; nothing once one succeeds. Cheap to clone: all clones are one.
#[derive(Clone, Debug, Default)]
pub struct WriteFault(Arc<Mutex<Option<String>>>);

impl WriteFault {
    /// Notes that a write failed, with all that lies below the error. Tells whether the one before had succeeded.
    pub fn failed(&self, error: &(dyn std::error::Error + 'static)) -> bool {
        let mut why = error.to_string();
        let mut below = error.source();
        while let Some(error) = below {
            why.push_str(&format!(": {error}"));
            below = error.source();
        }
        self.held().replace(why).is_none()
    }

    /// Notes that one succeeded. Tells whether the one before had failed.
    pub fn succeeded(&self) -> bool {
        self.held().take().is_some()
    }

    /// Says why the last one failed; `None`: it did not.
    #[must_use]
    pub fn why(&self) -> Option<String> {
        self.held().clone()
    }

    fn held(&self) -> MutexGuard<'_, Option<String>> {
        // It is replaced whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files that were not read whole since the start. Cheap to clone: all clones are one list.
#[derive(Clone, Debug, Default)]
pub struct Unread(Arc<Mutex<BTreeMap<PathBuf, UnreadFile>>>);

impl Unread {
    /// Notes that a file was not read whole.
    pub fn note(&self, path: &Path, reason: &str) {
        let file = UnreadFile {
            path: path.to_owned(),
            reason: reason.to_owned(),
            is_aside: false,
        };
        self.all().entry(path.to_owned()).or_insert(file);
    }

    /// Lists them by path.
    #[must_use]
    pub fn list(&self) -> Vec<UnreadFile> {
        self.all().values().cloned().collect()
    }

    /// Tells whether a file was not read whole.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        self.all().contains_key(path)
    }

    /// Puts a file aside, once, if it was not read whole: before every write. One that was put aside by a former start goes.
    ///
    /// # Errors
    /// When it cannot be renamed: then it must not be written over either. That it is gone is no error.
    pub fn spare(&self, path: &Path) -> io::Result<()> {
        let mut all = self.all();
        let Some(file) = all.get_mut(path).filter(|file| !file.is_aside) else {
            return Ok(());
        };
        let to = file.aside();
        match fs::rename(path, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => {}
            Ok(()) => {
                let (path, to) = (path.display(), to.display());
                warn!(%path, %to, reason = file.reason, "File that could not be read is put aside before it is written anew");
            }
        }
        file.is_aside = true;
        Ok(())
    }

    /// Locks the list. Held for a rename at most.
    fn all(&self) -> MutexGuard<'_, BTreeMap<PathBuf, UnreadFile>> {
        // Each entry is whole at any moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the path of a file that was put aside.
fn aside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(ASIDE);
    name.into()
}

/// Reads a file of at most `max` octets.
///
/// # Errors
/// When it is not there, cannot be read, or is larger.
pub fn read_bounded(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    File::open(path)?.take(max + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {max} octets"),
        ));
    }
    Ok(octets)
}

/// Writes a file whole, of these parts: temporary file beside it, fsync, rename, fsync of the folder.
///
/// # Errors
/// When the disk is full or read-only: the former file stays.
pub fn write_whole(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let write = || -> io::Result<()> {
        // Some of it is secret, and none of it is anybody else's.
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        for part in parts {
            file.write_all(part)?;
        }
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| {
        // What was written of it only takes room on a disk that may be full.
        let _ = fs::remove_file(&temporary);
    })?;
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_failed_says_why_until_one_succeeds() {
        let fault = WriteFault::default();
        let other = fault.clone();
        assert!(!fault.succeeded());
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert!(fault.failed(&full) && !fault.failed(&full));
        assert_eq!(other.why(), Some(full.to_string()));
        assert!(other.succeeded());
        assert_eq!(fault.why(), None);
    }

    #[test]
    fn what_was_not_read_is_put_aside_once_and_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        let unread = Unread::default();
        let other = unread.clone();
        let write = |text: &str| {
            other.spare(&path)?;
            write_whole(&path, &[text.as_bytes()])
        };
        // What was read is written over.
        write("one").unwrap();
        write("two").unwrap();
        assert_eq!((read(&path), unread.list().len()), ("two".to_owned(), 0));
        fs::write(&path, "torn").unwrap();
        unread.note(&path, "checksum does not match");
        assert!(unread.has(&path) && !unread.list()[0].is_aside);
        // A name that is taken by a folder: the file stays, whatever is to be written.
        let aside = unread.list()[0].aside();
        assert_eq!(aside, folder.path().join("state.json.unusable"));
        fs::create_dir(&aside).unwrap();
        assert!(write("three").is_err());
        assert_eq!(read(&path), "torn");
        fs::remove_dir(&aside).unwrap();
        write("three").unwrap();
        // It is told as what happened, and what is written now is ours.
        assert!(unread.list()[0].is_aside);
        write("four").unwrap();
        assert_eq!(
            (read(&path), read(&aside)),
            ("four".to_owned(), "torn".to_owned())
        );
    }

    #[test]
    fn a_file_that_is_gone_meanwhile_bars_no_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        let unread = Unread::default();
        unread.note(&path, "cannot be read");
        unread.spare(&path).unwrap();
        assert!(!unread.list()[0].aside().exists());
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        write_whole(&path, &[b"12", b"34"]).unwrap();
        assert_eq!(read_bounded(&path, 4).unwrap(), b"1234");
        let error = read_bounded(&path, 3).unwrap_err();
        assert_eq!(error.to_string(), "larger than 3 octets");
    }
}
