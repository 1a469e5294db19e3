//! Files of the state directory with their checksum in the first line: read whole or refused, written whole or not at all.

use std::fs;
use std::io;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::last_good::{LastGood, LastGoodError, content_hash, io_error, read_bounded};

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

/// What every version of every such file has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl LastGood {
    /// Reads such a file; `None`: it was never written.
    ///
    /// # Errors
    /// When it cannot be read, is torn, or is of another version.
    pub(super) fn read_named<T: DeserializeOwned>(
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
            let reason = "checksum does not match; the state is ignored".to_owned();
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
    /// When the disk is full or read-only, or the next start could not read it: the former file stays.
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
        self.write_whole(&self.path(file.name), &parts)
    }

    /// Tells whether there is such a file.
    pub(super) fn has_named(&self, file: &NamedFile) -> bool {
        self.path(file.name).exists()
    }

    /// Puts such a file aside, so that a write does not take what nobody has read: its name then ends in `.unusable`. One that
    /// was put aside before goes.
    ///
    /// # Errors
    /// When it cannot be renamed. That there is none is no error.
    pub(super) fn put_aside(&self, file: &NamedFile) -> Result<(), LastGoodError> {
        self.open()?;
        let path = self.path(file.name);
        match fs::rename(&path, self.path(&format!("{}.unusable", file.name))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(io_error(&path, "put aside")(error))
            }
            _ => Ok(()),
        }
    }

    /// Says what is wrong with such a file.
    pub(super) fn unusable(&self, file: &NamedFile, reason: String) -> LastGoodError {
        LastGoodError::Unusable {
            path: self.path(file.name),
            reason,
        }
    }
}
