//! The state directory: its lock, and files with their checksum in the first line, read whole or refused, written whole or not at
//! all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::lock::Lock;
use crate::disk::{self, Unread, read_bounded};

/// Why the state could not be read or written. Serving goes on without.
#[derive(Debug, thiserror::Error)]
pub enum LastGoodError {
    /// The folder or a file in it: look at the disk and at the rights.
    #[error("{path}: cannot {action}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// Another node that lives keeps its state there: give each node a folder of its own.
    #[error(
        "{folder}: another node keeps its state in this folder; give each node its own `node.stateDirectory`"
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// Torn, changed by hand, or of another version: ignored, and put aside before the next write.
    #[error("{path}: {reason}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// More than the next start would read: not written, the former file stays.
    #[error("{path}: {octets} octets are more than the {max} that the next start would read")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What it would have.
        octets: u64,
        /// What it may have.
        max: u64,
    },
}

impl LastGoodError {
    /// Says why, without the path.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Io { action, source, .. } => format!("cannot {action}: {source}"),
            Self::Unusable { reason, .. } => reason.clone(),
            Self::InUse { .. } | Self::TooLarge { .. } => self.to_string(),
        }
    }
}

/// A file of the state directory.
#[derive(Debug)]
pub(super) struct NamedFile {
    /// Its name there.
    pub(super) name: &'static str,
    /// Version of the layout; a file of another one is refused.
    pub(super) version: u32,
    /// Most octets read of it. More are not written either: the next start could not read them.
    pub(super) max: u64,
}

/// The kubeconfigs of Secrets, with which clusters are watched after a start.
const KUBECONFIGS: NamedFile = NamedFile {
    name: "kubeconfigs.json",
    version: 1,
    max: 256 << 20,
};

/// What every version of every such file has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Gives the SHA-256 of octets in hexadecimal digits.
#[must_use]
pub fn content_hash(octets: &[u8]) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, octets).as_ref())
}

/// Writes octets as lower-case hexadecimal digits.
pub(super) fn hex(octets: &[u8]) -> String {
    use std::fmt::Write as _;
    octets.iter().fold(
        String::with_capacity(octets.len() * 2),
        |mut text, octet| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{octet:02x}");
            text
        },
    )
}

/// The folder of the last good state.
#[derive(Clone, Debug)]
pub struct LastGood {
    folder: PathBuf,
    lock: Lock,
    unread: Unread,
}

impl LastGood {
    /// Names the folder; nothing is made yet.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            lock: Lock::new(folder.join("lock")),
            unread: Unread::default(),
        }
    }

    /// Gives what could not be read of the folder since the start.
    #[must_use]
    pub fn unread(&self) -> &Unread {
        &self.unread
    }

    /// Makes the folder and takes the lock where that has not been done. Every write does this first, so that a folder
    /// that could not be made, or was removed, is made as soon as that is possible.
    ///
    /// # Errors
    /// When the folder cannot be made, or another node holds it.
    pub fn open(&self) -> Result<(), LastGoodError> {
        let blobs = self.folder.join("blobs");
        fs::create_dir_all(&blobs).map_err(io_error(&blobs, "make the folder"))?;
        match self.lock.take() {
            Ok(true) => Ok(()),
            Ok(false) => Err(LastGoodError::InUse {
                folder: self.folder.clone(),
            }),
            Err(error) => Err(io_error(self.lock.path(), "lock")(error)),
        }
    }

    /// Gives the path of a file of the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file whole, or not at all.
    pub(super) fn write_whole(&self, path: &Path, parts: &[&[u8]]) -> Result<(), LastGoodError> {
        self.open()?;
        disk::write_whole(path, parts).map_err(io_error(path, "write"))
    }

    /// Reads such a file; `None`: it was never written. One that cannot be read is noted, so that it is put aside before it is
    /// written over.
    ///
    /// # Errors
    /// When it cannot be read, is torn, or is of another version.
    pub(super) fn read_named<T: DeserializeOwned>(
        &self,
        file: &NamedFile,
    ) -> Result<Option<T>, LastGoodError> {
        let read = self.read_whole(file);
        read.inspect_err(|error| self.note(file, &error.reason()))
    }

    fn read_whole<T: DeserializeOwned>(
        &self,
        file: &NamedFile,
    ) -> Result<Option<T>, LastGoodError> {
        let path = self.path(file.name);
        let octets = match read_bounded(&path, file.max) {
            Ok(octets) => octets,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error(&path, "read")(error)),
        };
        let end = octets.iter().position(|&octet| octet == b'\n');
        let end = end.unwrap_or(octets.len());
        let (checksum, rest) = octets.split_at_checked(end).unwrap_or((&octets, &[]));
        let body = rest.get(1..).unwrap_or(&[]);
        if checksum != content_hash(body).as_bytes() {
            let reason = "checksum does not match".to_owned();
            return Err(self.unusable(file, reason));
        }
        let faulty = |error: serde_json::Error| self.unusable(file, error.to_string());
        // Before the rest: another version may have another layout.
        let Versioned { version } = serde_json::from_slice(body).map_err(faulty)?;
        if version != file.version {
            let reason = format!("version {version} is not ours ({})", file.version);
            return Err(self.unusable(file, reason));
        }
        serde_json::from_slice(body).map(Some).map_err(faulty)
    }

    /// Writes such a file, whole or not at all. `hash` is that of `body`.
    ///
    /// # Errors
    /// When the disk is full or read-only, the next start could not read it, or what nobody has read cannot be put aside: the
    /// former file stays.
    pub(super) fn write_named(
        &self,
        file: &NamedFile,
        (hash, body): (&str, &[u8]),
    ) -> Result<(), LastGoodError> {
        self.open()?;
        let parts = [hash.as_bytes(), b"\n", body];
        let octets: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if octets > file.max {
            return Err(LastGoodError::TooLarge {
                path: self.path(file.name),
                octets,
                max: file.max,
            });
        }
        let path = self.path(file.name);
        let sparing = self.unread().spare(&path);
        sparing.map_err(io_error(&path, "put aside"))?;
        self.write_whole(&path, &parts)
    }

    /// Reads the kubeconfigs of Secrets; `None`: none were ever written.
    ///
    /// # Errors
    /// When they cannot be read, are torn, or of another version.
    pub fn read_kubeconfigs<T: DeserializeOwned>(&self) -> Result<Option<T>, LastGoodError> {
        self.read_named(&KUBECONFIGS)
    }

    /// Writes them, whole or not at all.
    ///
    /// # Errors
    /// When the disk is full or read-only: the former ones stay.
    pub fn write_kubeconfigs<T: Serialize>(&self, all: &T) -> Result<(), LastGoodError> {
        let body = serde_json::to_vec(all);
        let body = body.map_err(|error| self.unusable(&KUBECONFIGS, error.to_string()))?;
        self.write_named(&KUBECONFIGS, (&content_hash(&body), &body))
    }

    /// Tells whether there is such a file.
    pub(super) fn has_named(&self, file: &NamedFile) -> bool {
        self.path(file.name).exists()
    }

    /// Notes that such a file was not read whole: it is put aside before it is written over.
    pub(super) fn note(&self, file: &NamedFile, reason: &str) {
        self.unread().note(&self.path(file.name), reason);
    }

    /// Tells whether such a file was not read whole.
    pub(super) fn has_unread(&self, file: &NamedFile) -> bool {
        self.unread().has(&self.path(file.name))
    }

    /// Says what is wrong with such a file.
    pub(super) fn unusable(&self, file: &NamedFile, reason: String) -> LastGoodError {
        LastGoodError::Unusable {
            path: self.path(file.name),
            reason,
        }
    }
}

/// Puts file and action beside an error of the operating system.
pub(super) fn io_error(
    path: &Path,
    action: &'static str,
) -> impl FnOnce(io::Error) -> LastGoodError + use<> {
    let path = path.to_owned();
    move |source| LastGoodError::Io {
        path,
        action,
        source,
    }
}
