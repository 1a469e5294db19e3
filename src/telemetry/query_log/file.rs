//! The file of the query log: it rotates by size, and a disk that is full costs lines, nothing else.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Who may read it: it tells who asked for what.
const MODE: u32 = 0o640;

/// A file that is put aside when it is full: `path` becomes `path.1`, that `path.2`, and so on.
#[derive(Debug)]
pub(super) struct Rotating {
    path: PathBuf,
    max_octets: u64,
    keep: u32,
    /// Open, and its length.
    open: Option<(File, u64)>,
}

impl Rotating {
    /// Names the file. It is opened by the first write.
    pub(super) fn new(path: &Path, max_octets: u64, keep: u32) -> Self {
        Self {
            path: path.to_owned(),
            max_octets,
            keep,
            open: None,
        }
    }

    /// Appends whole lines, all or none of them.
    ///
    /// # Errors
    /// What the operating system says; the next write opens the file anew.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let (mut file, mut length) = match self.open.take() {
            Some(open) => open,
            None => self.open()?,
        };
        if length > 0 && length + lines.len() as u64 > self.max_octets {
            drop(file);
            self.put_aside()?;
            (file, length) = self.open()?;
        }
        if let Err(error) = file.write_all(lines) {
            // Half a line must not stand before the next one; if that fails too, the reader skips one broken line.
            let _ = file.set_len(length);
            return Err(error);
        }
        self.open = Some((file, length + lines.len() as u64));
        Ok(())
    }

    /// Opens the file at its end.
    fn open(&self) -> io::Result<(File, u64)> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(MODE)
            .open(&self.path)?;
        let length = file.metadata()?.len();
        Ok((file, length))
    }

    /// Moves the file, and those put aside before, one number up. The oldest is overwritten.
    fn put_aside(&self) -> io::Result<()> {
        for number in (1..self.keep).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.numbered(1))
    }

    /// Names a file put aside.
    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_rotate_by_size_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("queries.jsonl");
        let mut file = Rotating::new(&path, 10, 2);
        for line in ["one 1\n", "two 2\n", "three\n", "four4\n"] {
            file.append(line.as_bytes()).unwrap();
        }
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("queries.jsonl"), "four4\n");
        assert_eq!(read("queries.jsonl.1"), "three\n");
        assert_eq!(read("queries.jsonl.2"), "two 2\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        // A restart goes on where it was.
        let mut file = Rotating::new(&path, 12, 2);
        file.append(b"five5\n").unwrap();
        assert_eq!(read("queries.jsonl"), "four4\nfive5\n");
    }

    #[test]
    fn a_full_disk_is_an_error_and_nothing_more() {
        let mut file = Rotating::new(Path::new("/dev/full"), u64::MAX, 1);
        assert!(file.append(b"line\n").is_err());
        assert!(file.append(b"line\n").is_err());
    }
}
