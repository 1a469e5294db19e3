//! The lock of the state directory: an advisory one (flock), so that it dies with its owner, however that dies.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A lock file. Clones share the lock; it is given back with the last one.
#[derive(Clone, Debug)]
pub(super) struct Lock {
    path: PathBuf,
    held: Arc<Mutex<Option<File>>>,
}

impl Lock {
    /// Names the lock file.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            held: Arc::default(),
        }
    }

    /// Gives the lock file's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the lock if it is not ours already. False when somebody else has it.
    ///
    /// # Errors
    /// When the file cannot be made, or its file system knows no locks.
    pub(super) fn take(&self) -> io::Result<bool> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may have removed the folder: a lock on a file that is gone keeps nobody out.
        if held.as_ref().is_some_and(|file| self.is(file)) {
            return Ok(true);
        }
        // Held open for reading: a file open for writing would bar a remount of the disk.
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                File::options()
                    .create(true)
                    .truncate(false)
                    .write(true)
                    .open(&self.path)?;
                File::open(&self.path)?
            }
            opened => opened?,
        };
        match file.try_lock() {
            Ok(()) => {
                *held = Some(file);
                Ok(true)
            }
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Tells whether a file is the one that stands at our path.
    fn is(&self, file: &File) -> bool {
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let (Ok(ours), Ok(there)) = (file.metadata(), fs::metadata(&self.path)) else {
            return false;
        };
        identity(ours) == identity(there)
    }
}
