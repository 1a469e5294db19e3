//! Log lines on their way to standard error: a bounded queue, and one thread that writes it.
//!
//! Whoever logs never waits for whoever reads the log: a line that finds the queue full is lost and counted. A part of the queue
//! is kept for what matters more, so that details never cost a warning its place. A line that cannot be written (a full disk, a
//! reader that is gone) is lost and counted too.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait: more than a start or a reload with many faults logs at once. Further ones are lost.
const LINES: usize = 4096;
/// Octets that may wait, in all lines together. Further lines are lost.
const OCTETS: usize = 1 << 20;
/// Octets of a line, its end included. A longer one is cut and counted as lost.
const LINE_OCTETS: usize = 16 << 10;
/// What a line that was cut ends with.
const CUT: &[u8] = b"...\n";

/// Log lines that could not be written since the start.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Whether the last line was lost while it was written, and perhaps cut in its middle.
static TORN: AtomicBool = AtomicBool::new(false);

/// Gives the log lines lost since the start.
#[must_use]
pub fn lost_log_lines() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Where lines go: into the queue, or straight to standard error where no thread was to be had.
#[derive(Clone, Debug, Default)]
pub(super) struct Outlet(Option<Arc<Queue>>);

impl Outlet {
    /// Starts the thread that writes. It ends with the process.
    pub(super) fn open() -> Self {
        let queue = Arc::new(Queue::default());
        let written = Arc::clone(&queue);
        let write = move || {
            let mut log = Forgiving(io::stderr());
            loop {
                written.write_next(&mut log);
            }
        };
        let thread = thread::Builder::new().name("meridian-log".to_owned());
        Self(thread.spawn(write).is_ok().then_some(queue))
    }

    /// Takes a line of any length.
    pub(super) fn put(&self, line: &[u8], level: Level) {
        let Some(queue) = &self.0 else {
            // It never fails.
            let _ = Forgiving(io::stderr()).write(line);
            return;
        };
        if !queue.push(line, level) {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all lines are written, at most so long.
    pub(super) fn drain(&self, limit: Duration) {
        if let Some(queue) = &self.0 {
            queue.wait_until_written(limit);
        }
    }
}

impl<'a> MakeWriter<'a> for Outlet {
    type Writer = Entry<'a>;

    /// Makes the way of a line that matters most.
    fn make_writer(&'a self) -> Entry<'a> {
        self.entry(Level::ERROR)
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Entry<'a> {
        self.entry(*metadata.level())
    }
}

impl Outlet {
    /// Makes the way of a line of a level.
    fn entry(&self, level: Level) -> Entry<'_> {
        Entry {
            outlet: self,
            level,
        }
    }
}

/// The way of one line into the queue.
pub(super) struct Entry<'a> {
    outlet: &'a Outlet,
    level: Level,
}

impl Write for Entry<'_> {
    /// Takes one line, as the subscriber hands it over.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match cut(line) {
            None => self.outlet.put(line, self.level),
            Some(start) => {
                LOST.fetch_add(1, Ordering::Relaxed);
                self.outlet.put(&[start, CUT].concat(), self.level);
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Whoever logs must not wait.
        Ok(())
    }
}

/// Gives what is kept of a line that is too long, a whole number of UTF-8 characters; `None` when all of it is.
fn cut(line: &[u8]) -> Option<&[u8]> {
    if line.len() <= LINE_OCTETS {
        return None;
    }
    let (start, rest) = line.split_at_checked(LINE_OCTETS - CUT.len())?;
    let is_inside = |octet: Option<&u8>| octet.is_some_and(|octet| octet & 0xc0 == 0x80);
    if !is_inside(rest.first()) {
        return Some(start);
    }
    let first = start.iter().rposition(|&octet| octet & 0xc0 != 0x80)?;
    start.get(..first)
}

// === Queue ===

/// Lines that wait to be written, in their order.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// A line was added.
    added: Condvar,
    /// All lines are written.
    written: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    /// The sum of the lines' lengths.
    octets: usize,
    /// A line was taken out and is not written yet.
    is_writing: bool,
}

impl Queue {
    /// Locks the lines. Held for a few instructions only, never while writing.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line; tells whether there was room. Details have the first half of the queue, news three quarters of it, and
    /// warnings and errors all.
    fn push(&self, line: &[u8], level: Level) -> bool {
        let quarters = match level {
            Level::TRACE | Level::DEBUG => 2,
            Level::INFO => 3,
            Level::WARN | Level::ERROR => 4,
        };
        let mut waiting = self.lock();
        let octets = waiting.octets + line.len();
        if waiting.lines.len() >= LINES / 4 * quarters || octets > OCTETS / 4 * quarters {
            return false;
        }
        waiting.octets = octets;
        waiting.lines.push_back(line.to_owned());
        drop(waiting);
        self.added.notify_one();
        true
    }

    /// Waits for a line and writes it.
    fn write_next(&self, log: &mut impl Write) {
        let mut waiting = self.lock();
        let line = loop {
            if let Some(line) = waiting.lines.pop_front() {
                break line;
            }
            waiting = self
                .added
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        };
        waiting.octets -= line.len();
        waiting.is_writing = true;
        drop(waiting);
        // The log is forgiving: it counts what fails.
        let _ = log.write_all(&line);
        let mut waiting = self.lock();
        waiting.is_writing = false;
        if waiting.lines.is_empty() {
            self.written.notify_all();
        }
    }

    /// Waits until no line is left, at most so long.
    fn wait_until_written(&self, limit: Duration) {
        let is_left = |waiting: &mut Waiting| waiting.is_writing || !waiting.lines.is_empty();
        // Whoever waits goes on in any case.
        let _ = self.written.wait_timeout_while(self.lock(), limit, is_left);
    }
}

// === Forgiving ===

/// A writer that never fails. The subscriber answers a failed write with a message on standard error, which fails too, and
/// that is a panic: a full disk under the log would end the process.
struct Forgiving<W>(W);

impl<W: Write> Write for Forgiving<W> {
    /// Takes one line.
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

    /// Tests that read the counter of lost lines take turns.
    static TURN: Mutex<()> = Mutex::new(());

    #[test]
    fn a_full_disk_loses_lines_and_nothing_else() {
        let _turn = TURN.lock();
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

    #[test]
    fn a_queue_has_room_for_so_many_lines_and_octets() {
        for (line, room) in [(&[b'a'; 8][..], LINES), (&[b'a'; 1 << 10], OCTETS >> 10)] {
            let _turn = TURN.lock();
            let outlet = Outlet(Some(Arc::default()));
            let write = |level| {
                let before = lost_log_lines();
                outlet.entry(level).write_all(line).unwrap();
                lost_log_lines() == before
            };
            let fill = |level| (0..=room).take_while(|_| write(level)).count();
            // Lines of a lesser level leave room for those that matter more.
            for (levels, filled) in [
                ([Level::TRACE, Level::DEBUG], room / 2),
                ([Level::INFO, Level::TRACE], room / 4),
                ([Level::WARN, Level::INFO], room / 4),
            ] {
                assert_eq!(levels.map(fill), [filled, 0]);
            }
            assert!(!write(Level::ERROR));
            let queue = outlet.0.as_ref().unwrap();
            let mut log = Vec::new();
            queue.write_next(&mut log);
            assert_eq!(log, line);
            assert!(write(Level::ERROR), "there is room again");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_between_characters_and_counted() {
        for (line, kept) in [
            (format!("{}\n", "a".repeat(LINE_OCTETS - 1)), None),
            (
                format!("{}\n", "a".repeat(LINE_OCTETS)),
                Some(LINE_OCTETS - 4),
            ),
            (
                format!("{}\n", "\u{20ac}".repeat(LINE_OCTETS)),
                Some((LINE_OCTETS - 4) / 3 * 3),
            ),
        ] {
            let _turn = TURN.lock();
            let outlet = Outlet(Some(Arc::default()));
            let before = lost_log_lines();
            let mut entry = outlet.entry(Level::INFO);
            entry.write_all(line.as_bytes()).unwrap();
            let mut log = Vec::new();
            outlet.0.as_ref().unwrap().write_next(&mut log);
            let expected =
                kept.map_or_else(|| line.clone(), |kept| format!("{}...\n", &line[..kept]));
            assert_eq!(String::from_utf8(log).unwrap(), expected);
            assert_eq!(lost_log_lines() - before, u64::from(kept.is_some()));
        }
    }

    #[test]
    fn the_end_waits_for_what_is_written_and_no_longer_than_it_may() {
        let queue = Queue::default();
        assert!(queue.push(b"first\n", Level::INFO));
        // Nobody writes: this returns all the same.
        queue.wait_until_written(Duration::from_millis(1));
        let mut log = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| queue.write_next(&mut log));
            queue.wait_until_written(Duration::from_secs(60));
            let waiting = queue.lock();
            assert!(waiting.lines.is_empty() && !waiting.is_writing);
        });
        assert_eq!(log, b"first\n");
    }
}
