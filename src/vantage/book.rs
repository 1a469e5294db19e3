//! The records of this node: one place that changes them, keeps them on disk, and tells who wants to know.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tracing::{info, warn};

use super::disk::RecordFile;
use crate::disk::WriteFault;
use crate::model::{
    Intent, LowerName, MAX_CHALLENGES, MAX_CHALLENGES_OF_ONE, OperatorRecord, OperatorRecords,
    OperatorTarget, Phase, RecordId, Said, WallTime,
};
use crate::telemetry::wall_time;

/// Two moments so far apart are one, milliseconds: a wish said again is the same, however long the first took.
const SAME: u64 = 60_000;

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookError {
    /// One stands that wants the same of the same target at other times.
    #[error("{} stands with other times (id {}); end it first", .0.target, .0.id)]
    Standing(Arc<OperatorRecord>),
    /// So many records stand that none can make room: end some.
    #[error(
        "so many drains, forces or challenges stand that no other is taken; end some of them first"
    )]
    Full,
    /// So many challenges stand that no other is taken.
    #[error("there are {0} challenges that stand for this name already; clear some of them first")]
    Challenges(usize),
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

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// The record that stands.
    pub record: Arc<OperatorRecord>,
    /// It did not stand before.
    pub is_new: bool,
    /// What it ended: as it was, and as it is.
    pub ended: Option<[Arc<OperatorRecord>; 2]>,
}

/// The records. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Book {
    file: Option<RecordFile>,
    records: Arc<watch::Sender<OperatorRecords>>,
    /// Held while records are changed and written.
    writing: Arc<Mutex<()>>,
    /// What is in memory is not on disk.
    unwritten: WriteFault,
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
            unwritten: WriteFault::default(),
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
        self.unwritten.why().is_none()
    }

    /// Says why not everything is on disk that should be; `None`: it is.
    #[must_use]
    pub fn unwritten(&self) -> Option<String> {
        self.unwritten.why()
    }

    /// Adds a record, unless one that is not over wants the same of the same target at the same times. On disk before this
    /// returns, where the disk works. Blocks on the disk.
    ///
    /// # Errors
    /// When there is no room, or when one stands at other times.
    pub fn add(&self, new: &NewRecord) -> Result<Added, BookError> {
        let _held = self.lock();
        let now = wall_time();
        let mut records = self.records();
        let starts = now.after_seconds(new.in_seconds);
        let expires = new.for_seconds.map(|seconds| starts.after_seconds(seconds));
        let same = records.same(&new.target, new.intent, now).cloned();
        // A challenge that is set again later stands for an hour from then on.
        let renewed = same
            .clone()
            .filter(|held| new.intent == Intent::Challenge && !is_within(held, starts, expires));
        if let Some(held) = same.as_ref().filter(|_| renewed.is_none()) {
            if !is_within(held, starts, expires) {
                return Err(BookError::Standing(Arc::clone(held)));
            }
            return Ok(Added {
                record: Arc::clone(held),
                is_new: false,
                ended: None,
            });
        }
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
            expires,
            ended: None,
        };
        if renewed.is_none() {
            check_challenges(&records, new, now)?;
        }
        // Of two opposite forces of one target only the newer can be meant.
        let other = opposite(new.intent)
            .and_then(|opposite| records.same(&new.target, opposite, now))
            .cloned()
            .or(renewed);
        let id = record.id.clone();
        if !records.merge(record, now) {
            return Err(BookError::Full);
        }
        let ended = other.map(|other| {
            let ended = end_of(&other, now, (&new.actor, &new.reason));
            records.merge(ended.clone(), now);
            [other, Arc::new(ended)]
        });
        self.put(records.clone());
        let record = records.get(&id).ok_or(BookError::Full)?;
        Ok(Added {
            record: Arc::clone(record),
            is_new: true,
            ended,
        })
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
                if self.unwritten.succeeded() {
                    info!("Operator records are written again");
                }
            }
            Err(error) => {
                if self.unwritten.failed(&error) {
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

/// Refuses a challenge where too many stand: of its name, or of all.
fn check_challenges(
    records: &OperatorRecords,
    new: &NewRecord,
    now: WallTime,
) -> Result<(), BookError> {
    let Some((name, _)) = new.target.challenge() else {
        return Ok(());
    };
    let owner = |name: &LowerName| {
        let name = name.as_ref();
        // A wildcard's challenges stand with those of the name that it covers.
        name.parent()
            .filter(|_| name.is_wildcard())
            .unwrap_or(name)
            .to_lower()
    };
    let challenges = records
        .standing(now)
        .filter_map(|record| record.target.challenge());
    let (mut all, mut of_name) = (0, 0);
    for (other, _) in challenges {
        all += 1;
        of_name += usize::from(owner(other) == owner(name));
    }
    if of_name >= MAX_CHALLENGES_OF_ONE {
        Err(BookError::Challenges(of_name))
    } else if all >= MAX_CHALLENGES {
        Err(BookError::Full)
    } else {
        Ok(())
    }
}

/// Gives the force that cannot stand beside another.
fn opposite(intent: Intent) -> Option<Intent> {
    match intent {
        Intent::Drain | Intent::Challenge => None,
        Intent::ForceUp => Some(Intent::ForceDown),
        Intent::ForceDown => Some(Intent::ForceUp),
    }
}

/// Tells whether a record does what is wanted from `starts` to `expires`: it begins no later, and ends then.
fn is_within(held: &OperatorRecord, starts: WallTime, expires: Option<WallTime>) -> bool {
    let is_end = match (held.expires, expires) {
        (None, None) => true,
        (Some(held), Some(wanted)) => held.0.abs_diff(wanted.0) <= SAME,
        _ => false,
    };
    is_end && held.starts.0 <= starts.0.saturating_add(SAME)
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
        let added = book.add(&new(Intent::Drain)).unwrap();
        assert!(added.is_new);
        let first = added.record;
        let again = book.add(&new(Intent::Drain)).unwrap();
        assert!(!again.is_new && again.record == first);
        let book = Book::open(Some(file));
        assert_eq!(book.records().get(&first.id), Some(&first));
        let (ended, changed) = book.end(&first.id, ("bob", "done")).unwrap();
        assert!(changed && ended.ended.is_some());
        let (same, changed) = book.end(&first.id, ("eve", "again")).unwrap();
        assert!(!changed && same == ended);
        let next = book.add(&new(Intent::Drain)).unwrap();
        assert!(next.is_new && next.record.id != first.id);
        let unknown = "none".parse().unwrap();
        assert_eq!(book.end(&unknown, ("", "")), Err(BookError::Unknown));
    }

    #[test]
    fn of_two_opposite_forces_the_newer_stands() {
        let book = Book::open(None);
        let up = book.add(&new(Intent::ForceUp)).unwrap();
        assert_eq!(up.ended, None);
        let down = book.add(&new(Intent::ForceDown)).unwrap();
        assert!(down.is_new);
        let records = book.records();
        let ended = records.get(&up.record.id).unwrap();
        assert!(ended.ended.is_some());
        assert_eq!(down.ended, Some([up.record, Arc::clone(ended)]));
        assert!(records.get(&down.record.id).unwrap().ended.is_none());
    }

    #[test]
    fn what_is_wanted_at_other_times_is_not_taken_for_the_same() {
        let hour = Some(3600);
        let wish = |in_seconds, for_seconds| NewRecord {
            in_seconds,
            for_seconds,
            ..new(Intent::Drain)
        };
        for (held, wanted, is_same) in [
            ((0, None), (0, None), true),
            ((0, hour), (0, hour), true),
            // It is drained by then.
            ((0, None), (3600, None), true),
            // To drain now is not granted by a drain of tomorrow.
            ((86_400, None), (0, None), false),
            ((86_400, hour), (0, hour), false),
            // Nor is an end by one without an end, nor the other way round.
            ((0, None), (0, hour), false),
            ((0, hour), (0, None), false),
            ((0, hour), (0, Some(7200)), false),
        ] {
            let book = Book::open(None);
            let first = book.add(&wish(held.0, held.1)).unwrap().record;
            let second = book.add(&wish(wanted.0, wanted.1));
            if is_same {
                let second = second.unwrap();
                assert!(
                    !second.is_new && second.record == first,
                    "{held:?} {wanted:?}"
                );
            } else {
                assert_eq!(second, Err(BookError::Standing(first)));
            }
            assert_eq!(book.records().len(), 1);
        }
    }

    #[test]
    fn a_disk_that_fails_costs_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let file = RecordFile::in_folder(folder.path());
        std::fs::create_dir(file.path().with_extension("tmp")).unwrap();
        let book = Book::open(Some(file.clone()));
        let added = book.add(&new(Intent::Drain)).unwrap();
        assert!(added.is_new && !book.is_written());
        assert_eq!(book.records().len(), 1);
        std::fs::remove_dir(file.path().with_extension("tmp")).unwrap();
        book.tidy();
        assert!(book.is_written());
        let again = Book::open(Some(file)).records();
        assert!(again.get(&added.record.id).is_some());
    }

    fn challenge(name: &str, token: &str) -> NewRecord {
        NewRecord {
            target: OperatorTarget::Challenge {
                name: name.parse().unwrap(),
                token: token.parse().unwrap(),
            },
            intent: Intent::Challenge,
            actor: "ann".to_owned(),
            reason: "certificate".to_owned(),
            in_seconds: 0,
            for_seconds: Some(crate::model::CHALLENGE_SECONDS),
        }
    }

    #[test]
    fn eight_challenges_stand_at_a_name_and_survive() {
        let folder = tempfile::tempdir().unwrap();
        let file = RecordFile::in_folder(folder.path());
        let book = Book::open(Some(file.clone()));
        for at in 0..MAX_CHALLENGES_OF_ONE {
            // Those of a wildcard stand at the same owner.
            let name = if at % 2 == 0 { "web.x" } else { "*.web.x" };
            assert!(
                book.add(&challenge(name, &format!("t{at}")))
                    .unwrap()
                    .is_new
            );
        }
        let full = Err(BookError::Challenges(MAX_CHALLENGES_OF_ONE));
        assert_eq!(book.add(&challenge("web.x", "more")), full);
        // What stands may be said again, and others have room.
        assert!(!book.add(&challenge("web.x", "t0")).unwrap().is_new);
        assert!(book.add(&challenge("api.x", "t0")).unwrap().is_new);
        let again = Book::open(Some(file));
        assert_eq!(again.records(), book.records());
        let first = again.records().iter().next().unwrap().id.clone();
        again.end(&first, ("bob", "issued")).unwrap();
        let one_more = again.add(&challenge("web.x", "more"));
        assert_eq!(
            one_more.is_ok(),
            first == book.records().iter().next().unwrap().id
        );
    }

    #[test]
    fn a_challenge_that_is_set_again_later_stands_for_an_hour_from_then() {
        let book = Book::open(None);
        let now = wall_time();
        let hour = u64::from(crate::model::CHALLENGE_SECONDS) * 1000;
        let new = challenge("web.x", "one");
        let old = OperatorRecord {
            id: "old".parse().unwrap(),
            target: new.target.clone(),
            intent: Intent::Challenge,
            created: Said {
                time: WallTime(now.0 - hour / 2),
                actor: "ann".into(),
                reason: "certificate".into(),
            },
            starts: WallTime(now.0 - hour / 2),
            expires: Some(WallTime(now.0 + hour / 2)),
            ended: None,
        };
        assert!(book.merge([old]));
        let added = book.add(&new).unwrap();
        assert!(added.is_new && added.ended.is_some());
        let end = added.record.expires.unwrap().0;
        assert!(end >= now.0 + hour, "{end}");
        assert_eq!(book.records().standing(wall_time()).count(), 1);
    }
}
