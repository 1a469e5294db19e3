//! Log set-up: the only file that knows tracing-subscriber.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tracing_subscriber::EnvFilter;

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people, colored on a terminal only.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Log lines that could not be written since the start.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Whether the last line was lost, and perhaps cut in its middle.
static TORN: AtomicBool = AtomicBool::new(false);

/// Sends log lines to standard error. `filter` is a directive list such as `info` or `meridian=debug`; a bad one is `info`.
/// Later calls do nothing. A line that cannot be written (a full disk, a reader that is gone) is counted and lost.
pub fn set_up(filter: &str, format: LogFormat) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Forgiving(io::stderr()))
        .with_ansi(io::stderr().is_terminal())
        .log_internal_errors(false)
        .with_target(false);
    // A second call finds a subscriber already there: tests and the demo share a process.
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}

/// Gives the log lines lost since the start.
#[must_use]
pub fn lost_log_lines() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// A writer that never fails. The subscriber answers a failed write with a message on standard error, which fails too, and
/// that is a panic: a full disk under the log would end the process.
struct Forgiving<W>(W);

impl<W: Write> Write for Forgiving<W> {
    /// Takes one line, as the subscriber hands it over.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let torn = TORN.load(Ordering::Relaxed);
        let start: &[u8] = if torn { b"\n" } else { b"" };
        let written = self
            .0
            .write_all(start)
            .and_then(|()| self.0.write_all(line));
        if written.is_err() {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
        TORN.store(written.is_err(), Ordering::Relaxed);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // What could not be written is counted already.
        let _ = self.0.flush();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for so many octets.
    struct Disk {
        room: usize,
        octets: Vec<u8>,
    }

    impl Write for &mut Disk {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            let taken = octets.len().min(self.room);
            if taken == 0 && !octets.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= taken;
            self.octets.extend(&octets[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_full_disk_loses_lines_and_nothing_else() {
        let mut disk = Disk {
            room: 9,
            octets: Vec::new(),
        };
        let before = lost_log_lines();
        for line in ["first\n", "second\n", "third\n"] {
            let mut log = Forgiving(&mut disk);
            log.write_all(line.as_bytes()).unwrap();
            log.flush().unwrap();
        }
        assert_eq!(lost_log_lines() - before, 2);
        disk.room = 100;
        Forgiving(&mut disk).write_all(b"fourth\n").unwrap();
        assert_eq!(disk.octets, b"first\nsec\nfourth\n");
        assert_eq!(lost_log_lines() - before, 2);
    }
}
