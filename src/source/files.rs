//! Reading files within limits, and noticing that they changed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system's word.
    #[error("{path}: cannot read")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No ordinary file: a folder, a pipe, a device.
    #[error("{path}: is not a file")]
    NotAFile {
        /// What was found.
        path: PathBuf,
    },
    /// Larger than this kind of file may be.
    #[error("{path}: larger than {max} octets")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        max: u64,
    },
}

/// Linux: EIO, EAGAIN, ENOMEM, ENFILE and EMFILE (too many open files), ESTALE.
const PASSING: [i32; 6] = [5, 11, 12, 23, 24, 116];

impl FileError {
    /// Tells whether the file may be readable a little later though nobody touches it: this node lacked something.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Io { source, .. } => source
                .raw_os_error()
                .is_some_and(|code| PASSING.contains(&code)),
            Self::NotAFile { .. } | Self::TooLarge { .. } => false,
        }
    }

    /// Says why without the path, for those who name the file themselves.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Io { source, .. } => source.to_string(),
            Self::NotAFile { .. } => "is not a file".to_owned(),
            Self::TooLarge { max, .. } => format!("larger than {max} octets"),
        }
    }
}

/// Reads an ordinary file of at most `max` octets.
///
/// # Errors
/// When it is not there, no file, or too large: nothing of it is kept then.
pub fn read_bounded(path: &Path, max: u64) -> Result<Vec<u8>, FileError> {
    let io = |source| FileError::Io {
        path: path.to_owned(),
        source,
    };
    // A pipe would block at the opening: look first.
    let metadata = fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        return Err(FileError::NotAFile {
            path: path.to_owned(),
        });
    }
    let too_large = || FileError::TooLarge {
        path: path.to_owned(),
        max,
    };
    if metadata.len() > max {
        return Err(too_large());
    }
    let mut octets = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    // The file may grow between the look and the read.
    File::open(path)
        .and_then(|file| file.take(max + 1).read_to_end(&mut octets))
        .map_err(io)?;
    if octets.len() as u64 > max {
        Err(too_large())
    } else {
        Ok(octets)
    }
}

/// What shows that a file was replaced or written: device, inode, size, modification time; `None` when it is not there.
///
/// Taken through symbolic links, so that the swap of a mounted ConfigMap is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint(Option<(u64, u64, u64, i64, i64)>);

impl Fingerprint {
    /// Takes the fingerprint of a path.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        Self(fs::metadata(path).ok().map(|found| {
            (
                found.dev(),
                found.ino(),
                found.size(),
                found.mtime(),
                found.mtime_nsec(),
            )
        }))
    }

    /// Takes the fingerprint of a file that could not be read: when that may pass, one that differs from the file's, so that
    /// the next look reads it again.
    #[must_use]
    pub fn of_unread(path: &Path, error: &FileError) -> Self {
        if error.may_pass() {
            Self(None)
        } else {
            Self::of(path)
        }
    }

    /// Gives the Unix time of the last modification; 0 when the file was not there.
    #[must_use]
    pub fn modified(&self) -> u64 {
        self.0.map_or(0, |(_, _, _, seconds, _)| {
            u64::try_from(seconds).unwrap_or(0)
        })
    }

    /// Tells whether the file was there.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.0.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ordinary_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(matches!(read_bounded(&path, 4), Err(FileError::Io { .. })));
        fs::write(&path, b"1234").unwrap();
        assert_eq!(read_bounded(&path, 4).unwrap(), b"1234");
        assert!(matches!(
            read_bounded(&path, 3),
            Err(FileError::TooLarge { max: 3, .. })
        ));
        assert!(matches!(
            read_bounded(folder.path(), 4),
            Err(FileError::NotAFile { .. })
        ));
        assert!(matches!(
            read_bounded(Path::new("/dev/zero"), 4),
            Err(FileError::NotAFile { .. })
        ));
    }

    #[test]
    fn a_file_that_could_not_be_read_is_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"1").unwrap();
        // Linux numbers: ENOENT, EIO, EACCES, EMFILE.
        for (code, again) in [(2, false), (5, true), (13, false), (24, true)] {
            let error = FileError::Io {
                path: path.clone(),
                source: io::Error::from_raw_os_error(code),
            };
            let seen = Fingerprint::of_unread(&path, &error);
            assert_eq!(seen != Fingerprint::of(&path), again, "{error:?}");
        }
    }

    #[test]
    fn a_replaced_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let none = Fingerprint::of(&path);
        fs::write(&path, b"1").unwrap();
        let first = Fingerprint::of(&path);
        let other = folder.path().join("other");
        fs::write(&other, b"1").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_ne!(none, first);
        assert_ne!(first, Fingerprint::of(&path));
        assert_eq!(Fingerprint::of(&path), Fingerprint::of(&path));
    }
}
