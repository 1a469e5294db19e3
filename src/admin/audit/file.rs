//! The file of the audit log: lines appended and synced, rotated when it is large.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::Entry;

/// A file that has reached this many octets is set aside.
const ROTATE_AT: u64 = 16 << 20;
/// Files set aside: `.1` is the newest.
const KEEP: u32 = 5;
/// Octets read at the start for the newest entries.
const TAIL: u64 = 4 << 20;

/// `audit.jsonl` in the state directory.
#[derive(Debug)]
pub(super) struct AuditFile {
    path: PathBuf,
    rotate_at: u64,
}

impl AuditFile {
    /// Names the file in a folder; nothing is touched.
    pub(super) fn at(folder: &Path) -> Self {
        Self {
            path: folder.join("audit.jsonl"),
            rotate_at: ROTATE_AT,
        }
    }

    /// The same, rotated earlier.
    #[cfg(test)]
    pub(super) fn rotated_at(folder: &Path, rotate_at: u64) -> Self {
        Self {
            rotate_at,
            ..Self::at(folder)
        }
    }

    /// Names a file set aside.
    fn aside(&self, number: u32) -> PathBuf {
        self.path.with_extension(format!("jsonl.{number}"))
    }

    /// Appends whole lines, and returns once they are on the disk. What was written of them in part is taken back.
    ///
    /// # Errors
    /// When the disk does not take them.
    pub(super) fn append(&self, lines: &[u8]) -> io::Result<()> {
        let mut file = self.open()?;
        let mut length = file.seek(SeekFrom::End(0))?;
        if length >= self.rotate_at {
            self.rotate()?;
            file = self.open()?;
            length = 0;
        }
        let written = mend(&mut file, length)
            .and_then(|()| file.write_all(lines))
            .and_then(|()| file.sync_data());
        if written.is_err() {
            // What is left in part is mended by the next one, if this fails too.
            let _ = file.set_len(length);
        }
        written
    }

    /// Opens the file for its owner alone.
    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        options.open(&self.path)
    }

    /// Sets the file aside. The oldest goes.
    fn rotate(&self) -> io::Result<()> {
        for number in (1..KEEP).rev() {
            match fs::rename(self.aside(number), self.aside(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.aside(1))?;
        // The new names are to survive a crash as the lines do.
        let folder = self.path.parent().unwrap_or_else(|| Path::new("."));
        File::open(folder)?.sync_all()
    }

    /// Reads the newest entries, oldest first. What cannot be read is left out.
    pub(super) fn newest(&self, most: usize) -> Vec<Entry> {
        let mut entries = entries_of(&self.path);
        if entries.len() < most {
            let mut older = entries_of(&self.aside(1));
            older.append(&mut entries);
            entries = older;
        }
        entries.split_off(entries.len().saturating_sub(most))
    }
}

/// Ends a line that a crash left open.
fn mend(file: &mut File, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(length - 1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        Ok(())
    } else {
        file.write_all(b"\n")
    }
}

/// Reads the entries at the end of a file.
fn entries_of(path: &Path) -> Vec<Entry> {
    let read = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut octets = Vec::new();
        file.take(TAIL).read_to_end(&mut octets)?;
        Ok::<_, io::Error>(octets)
    };
    let octets = read().unwrap_or_default();
    // The first may be half a line, the last too; neither is JSON then.
    octets
        .split(|octet| *octet == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}
