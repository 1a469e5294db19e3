//! The records of this node: one place that changes them, keeps them on disk, and tells who wants to know.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tracing::{info, warn};

use super::disk::RecordFile;
use crate::model::{
    Intent, MAX_RECORDS, OperatorRecord, OperatorRecords, OperatorTarget, Phase, RecordId, Said,
    WallTime,
};
use crate::telemetry::wall_time;

/// Why a change was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookError {
    /// So many records stand that none can make room: end some.
    #[error("there are {MAX_RECORDS} drains and forces that are not over; end some of them first")]
    Full,
    /// There is no such record.
    #[error("there is no such record")]
    Unknown,
}

/// What an operator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// What it is about.
    pub target: OperatorTarget,
    /// What is wanted.
    pub intent: Intent,
    /// Who asks.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// Seconds until it begins.
    pub in_seconds: u32,
    /// Seconds from then until it ends by itself.
    pub for_seconds: Option<u32>,
}

/// The records. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Book {
    file: Option<RecordFile>,
    records: Arc<watch::Sender<OperatorRecords>>,
    /// Held while records are changed and written.
    writing: Arc<Mutex<()>>,
    /// What is in memory is not on disk.
    unwritten: Arc<AtomicBool>,
}

impl Book {
    /// Opens the book and reads what is on disk. What cannot be read is reported and done without.
    #[must_use]
    pub fn open(file: Option<RecordFile>) -> Self {
        let mut records = OperatorRecords::default();
        if let Some(file) = &file {
            match file.read(wall_time()) {
                Ok((read, refused)) => {
                    for reason in refused {
                        warn!(%reason, "Operator record on disk is not usable; the others are");
                    }
                    records = read;
                }
                Err(error) => {
                    let path = file.path().display();
                    warn!(%path, %error, "Operator records cannot be read; asking the other nodes");
                }
            }
        }
        Self {
            file,
            records: Arc::new(watch::channel(records).0),
            writing: Arc::default(),
            unwritten: Arc::default(),
        }
    }

    /// Gives all records.
    #[must_use]
    pub fn records(&self) -> OperatorRecords {
        self.records.borrow().clone()
    }

    /// Gives a receiver that sees each change.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<OperatorRecords> {
        self.records.subscribe()
    }

    /// Tells whether everything is on disk that should be.
    #[must_use]
    pub fn is_written(&self) -> bool {
        !self.unwritten.load(Ordering::Relaxed)
    }

    /// Adds a record, unless one that is not over wants the same of the same target. Gives the record that stands, and whether
    /// it is new. On disk before this returns, where the disk works. Blocks on the disk.
    ///
    /// # Errors
    /// When there is no room.
    pub fn add(&self, new: &NewRecord) -> Result<(Arc<OperatorRecord>, bool), BookError> {
        let _held = self.lock();
        let now = wall_time();
        let mut records = self.records();
        if let Some(held) = records.same(&new.target, new.intent, now) {
            return Ok((Arc::clone(held), false));
        }
        let starts = now.after_seconds(new.in_seconds);
        let record = OperatorRecord {
            id: new_id(now),
            target: new.target.clone(),
            intent: new.intent,
            created: Said {
                time: now,
                actor: new.actor.as_str().into(),
                reason: new.reason.as_str().into(),
            },
            starts,
            expires: new.for_seconds.map(|seconds| starts.after_seconds(seconds)),
            ended: None,
        };
        let mut ended = Vec::new();
        if let Some(opposite) = opposite(new.intent)
            && let Some(other) = records.same(&new.target, opposite, now)
        {
            // Of two opposite forces of one target only the newer can be meant.
            ended.push(end_of(other, now, (&new.actor, &new.reason)));
        }
        let id = record.id.clone();
        if !records.merge(record, now) {
            return Err(BookError::Full);
        }
        for record in ended {
            records.merge(record, now);
        }
        self.put(records.clone());
        let record = records.get(&id).ok_or(BookError::Full)?;
        Ok((Arc::clone(record), true))
    }

    /// Ends a record. Gives it as it is then, and whether that changed anything: one that is over stays as it is. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// When there is none of this id.
    pub fn end(
        &self,
        id: &RecordId,
        (actor, reason): (&str, &str),
    ) -> Result<(Arc<OperatorRecord>, bool), BookError> {
        let _held = self.lock();
        let now = wall_time();
        let mut records = self.records();
        let held = records.get(id).ok_or(BookError::Unknown)?;
        if held.phase(now) == Phase::Over {
            return Ok((Arc::clone(held), false));
        }
        let ended = end_of(held, now, (actor, reason));
        records.merge(ended, now);
        self.put(records.clone());
        let record = records.get(id).ok_or(BookError::Unknown)?;
        Ok((Arc::clone(record), true))
    }

    /// Takes in the records of another node. Tells whether anything was new. Blocks on the disk when it was.
    pub fn merge(&self, others: impl IntoIterator<Item = OperatorRecord>) -> bool {
        let _held = self.lock();
        let now = wall_time();
        let mut records = self.records();
        let mut changed = false;
        for record in others {
            changed |= records.merge(record, now);
        }
        if changed {
            self.put(records);
        }
        changed
    }

    /// Tries again to write what is not on disk, and forgets what has been over for long. Blocks on the disk.
    pub fn tidy(&self) {
        let _held = self.lock();
        let mut records = self.records();
        if records.prune(wall_time()) {
            self.put(records);
        } else if !self.is_written() {
            self.write(&records);
        }
    }

    /// Puts records in force: on disk first.
    fn put(&self, records: OperatorRecords) {
        self.write(&records);
        self.records.send_replace(records);
    }

    /// Writes; a disk that fails costs only the memory of a restart, and the other nodes have it too.
    fn write(&self, records: &OperatorRecords) {
        let Some(file) = &self.file else {
            return;
        };
        match file.write(records) {
            Ok(()) => {
                if self.unwritten.swap(false, Ordering::Relaxed) {
                    info!("Operator records are written again");
                }
            }
            Err(error) => {
                if !self.unwritten.swap(true, Ordering::Relaxed) {
                    let path = file.path().display();
                    warn!(%path, %error, "Operator records cannot be written; they hold until a restart, and on the other nodes");
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        // It guards no data: the records are whole at any moment.
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the force that cannot stand beside another.
fn opposite(intent: Intent) -> Option<Intent> {
    match intent {
        Intent::Drain => None,
        Intent::ForceUp => Some(Intent::ForceDown),
        Intent::ForceDown => Some(Intent::ForceUp),
    }
}

/// Ends a record.
fn end_of(record: &OperatorRecord, now: WallTime, (actor, reason): (&str, &str)) -> OperatorRecord {
    OperatorRecord {
        ended: Some(Said {
            time: now,
            actor: actor.into(),
            reason: reason.into(),
        }),
        ..record.clone()
    }
}

/// Makes an id: the time, so that ids sort by age, and chance, so that no two nodes make the same.
fn new_id(now: WallTime) -> RecordId {
    let chance = RandomState::new().build_hasher().finish();
    let text = format!("{:012x}-{:08x}", now.0, chance & 0xffff_ffff);
    text.parse()
        .expect("hexadecimal digits and a dash make an id")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(intent: Intent) -> NewRecord {
        NewRecord {
            target: OperatorTarget::Cluster("a".parse().unwrap()),
            intent,
            actor: "ann".to_owned(),
            reason: "upgrade".to_owned(),
            in_seconds: 0,
            for_seconds: None,
        }
    }

    #[test]
    fn adding_and_ending_are_idempotent_and_survive() {
        let folder = tempfile::tempdir().unwrap();
        let file = RecordFile::in_folder(folder.path());
        let book = Book::open(Some(file.clone()));
        let (first, is_new) = book.add(&new(Intent::Drain)).unwrap();
        assert!(is_new);
        let (again, is_new) = book.add(&new(Intent::Drain)).unwrap();
        assert!(!is_new && again == first);
        let book = Book::open(Some(file));
        assert_eq!(book.records().get(&first.id), Some(&first));
        let (ended, changed) = book.end(&first.id, ("bob", "done")).unwrap();
        assert!(changed && ended.ended.is_some());
        let (same, changed) = book.end(&first.id, ("eve", "again")).unwrap();
        assert!(!changed && same == ended);
        let (next, is_new) = book.add(&new(Intent::Drain)).unwrap();
        assert!(is_new && next.id != first.id);
        let unknown = "none".parse().unwrap();
        assert_eq!(book.end(&unknown, ("", "")), Err(BookError::Unknown));
    }

    #[test]
    fn of_two_opposite_forces_the_newer_stands() {
        let book = Book::open(None);
        let (up, _) = book.add(&new(Intent::ForceUp)).unwrap();
        let (down, is_new) = book.add(&new(Intent::ForceDown)).unwrap();
        assert!(is_new);
        let records = book.records();
        assert!(records.get(&up.id).unwrap().ended.is_some());
        assert!(records.get(&down.id).unwrap().ended.is_none());
    }

    #[test]
    fn a_disk_that_fails_costs_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = RecordFile::in_folder(folder.path());
        std::fs::create_dir(file.path().with_extension("tmp")).unwrap();
        let book = Book::open(Some(file.clone()));
        let (record, is_new) = book.add(&new(Intent::Drain)).unwrap();
        assert!(is_new && !book.is_written());
        assert_eq!(book.records().len(), 1);
        std::fs::remove_dir(file.path().with_extension("tmp")).unwrap();
        book.tidy();
        assert!(book.is_written());
        assert!(Book::open(Some(file)).records().get(&record.id).is_some());
    }
}
