//! Writes the last good state: a task of its own, every 2 s at most and at the stop.
//!
//! Nobody else writes to the folder: contents of files come here through [`Unwritten`] and are on disk before the state names
//! them. What fails is tried again until it succeeds; meanwhile the former content of a file is the one that is named.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, trace_span, warn};

use super::folder::{LastGood, LastGoodError, content_hash};
use super::last_good::{Memory, ZoneSerial};
use super::target_key::target_key;
use crate::disk::WriteFault;
use crate::health::MonitorTable;
use crate::model::{Target, Verdict};
use crate::telemetry::SPANS;

/// Shortest time between two writes.
const PAUSE: Duration = Duration::from_secs(2);

/// Time after a write that failed: a full disk must not be kept busy, and room is used soon after it is made.
const RETRY: Duration = Duration::from_secs(5);

/// How long a start may take until all that was monitored before is monitored again.
const START: Duration = Duration::from_secs(60);

/// What a configuration says of the memory; the verdicts come from the monitors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The greatest SOA serial ever given; 0: none yet.
    pub serial: u32,
    /// SOA serial of each zone whose file has none, by apex.
    pub serials: BTreeMap<String, ZoneSerial>,
    /// Content hash of each database and zone file in force, by path.
    pub files: BTreeMap<PathBuf, String>,
}

/// Contents of files that are not known to be on disk, by hash. Who loads files puts them in; the keeper takes them out.
#[derive(Clone, Debug, Default)]
pub struct Unwritten(Arc<Mutex<BTreeMap<String, Arc<[u8]>>>>);

impl Unwritten {
    /// Puts a content in and gives its hash.
    #[must_use]
    pub fn put(&self, octets: Arc<[u8]>) -> String {
        let hash = content_hash(&octets);
        self.all().insert(hash.clone(), octets);
        hash
    }

    /// Gives a content that is not known to be on disk.
    #[must_use]
    pub fn get(&self, hash: &str) -> Option<Arc<[u8]>> {
        self.all().get(hash).cloned()
    }

    /// Forgets contents that are not named any more: they were replaced before they found room.
    pub fn retain(&self, files: &BTreeMap<PathBuf, String>) {
        self.all()
            .retain(|hash, _| files.values().any(|named| named == hash));
    }

    /// Lists what is not on disk.
    fn list(&self) -> Vec<(String, Arc<[u8]>)> {
        let all = self.all();
        all.iter()
            .map(|(hash, octets)| (hash.clone(), Arc::clone(octets)))
            .collect()
    }

    fn forget(&self, hash: &str) {
        self.all().remove(hash);
    }

    /// Locks the map. Held for a few map operations, never across a write.
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<[u8]>>> {
        // Each operation on the map is whole or was not begun.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What there is to write.
struct Known {
    kept: Kept,
    reports: Arc<MonitorTable>,
    recalled: Arc<BTreeMap<String, Verdict>>,
}

/// Tells what was written from what there is to write: the verdicts by a hash, for there may be a million of them.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    kept: Kept,
    verdicts: u64,
    recalls: bool,
}

impl Known {
    /// Gives the verdicts worth keeping.
    fn verdicts(&self) -> impl Iterator<Item = (&Target, Verdict)> {
        let all = self.reports.iter();
        let known = all.filter(|report| report.verdict != Verdict::Unknown);
        known.map(|report| (report.target, report.verdict))
    }

    /// Marks it. `seed` is that of the other marks.
    fn mark(&self, seed: &RandomState) -> Mark {
        let mut hasher = seed.build_hasher();
        for known in self.verdicts() {
            known.hash(&mut hasher);
        }
        Mark {
            kept: self.kept.clone(),
            verdicts: hasher.finish(),
            recalls: !self.recalled.is_empty(),
        }
    }

    /// Gives it as it is written.
    fn memory(&self) -> Memory {
        let mut verdicts = BTreeMap::clone(&self.recalled);
        if !verdicts.is_empty() {
            // Whatever a monitor says of its target, nothing or Unknown too, holds.
            for report in self.reports.iter() {
                verdicts.remove(&target_key(report.target));
            }
        }
        let known = self.verdicts();
        verdicts.extend(known.map(|(target, verdict)| (target_key(target), verdict)));
        Memory {
            serial: self.kept.serial,
            serials: self.kept.serials.clone(),
            files: self.kept.files.clone(),
            verdicts,
        }
    }
}

/// Keeps the last good state on disk.
#[derive(Debug)]
pub struct Keeper {
    /// Where.
    pub last_good: LastGood,
    /// What the configuration in force says.
    pub kept: watch::Receiver<Kept>,
    /// Contents that `kept` names and that may not be on disk.
    pub unwritten: Unwritten,
    /// The files that the state on disk names, with their content hash.
    pub stored: BTreeMap<PathBuf, String>,
    /// What the monitors say.
    pub reports: watch::Receiver<Arc<MonitorTable>>,
    /// Verdicts that were remembered. Those of targets that the monitors do not know yet are kept for as long as a start takes, or a kill
    /// in the meantime would lose them.
    pub recalled: Arc<BTreeMap<String, Verdict>>,
    /// Writes that failed in a row.
    pub failures: Arc<AtomicU64>,
    /// Why the last one did.
    pub fault: WriteFault,
    /// Unix time of the last write.
    pub written: Arc<AtomicU64>,
}

impl Keeper {
    /// Runs until the token falls, then writes once more.
    pub async fn run(mut self, token: CancellationToken) {
        let seed = RandomState::new();
        let started = Instant::now();
        // What is in force at the start is worth keeping too.
        let known = self.known();
        let mut written = self.write(known, &seed).await;
        loop {
            // Cancel-safe: all arms only wait. After a failure nothing needs to change for another try.
            let stop = tokio::select! {
                biased;
                () = token.cancelled() => true,
                () = std::future::ready(()), if written.is_none() => false,
                Ok(()) = self.kept.changed() => false,
                Ok(()) = self.reports.changed() => false,
                else => true,
            };
            if started.elapsed() >= START {
                self.recalled = Arc::default();
            }
            written = self.renew(written, &seed).await;
            if stop {
                return;
            }
            let pause = if written.is_some() { PAUSE } else { RETRY };
            tokio::select! {
                () = token.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Joins what the configuration and the monitors say.
    fn known(&mut self) -> Known {
        Known {
            kept: self.kept.borrow_and_update().clone(),
            reports: Arc::clone(&self.reports.borrow_and_update()),
            recalled: Arc::clone(&self.recalled),
        }
    }

    /// Writes if anything changed since.
    async fn renew(&mut self, written: Option<Mark>, seed: &RandomState) -> Option<Mark> {
        let known = self.known();
        if written.as_ref() == Some(&known.mark(seed)) {
            return written;
        }
        self.write(known, seed).await
    }

    /// Writes; gives the mark of what was written, or `None` when some of it failed and must be tried again.
    async fn write(&mut self, known: Known, seed: &RandomState) -> Option<Mark> {
        let (last_good, unwritten) = (self.last_good.clone(), self.unwritten.clone());
        let (stored, seed) = (self.stored.clone(), seed.clone());
        let writing = tokio::task::spawn_blocking(move || {
            let _span = trace_span!(target: SPANS, "write_last_good").entered();
            let (stored, result) = store(&last_good, &unwritten, stored, known.memory());
            (stored, result.map(|()| known.mark(&seed)))
        });
        let Ok((stored, result)) = writing.await else {
            return None;
        };
        self.stored = stored;
        match result {
            Ok(mark) => {
                self.written.store(unix_now(), Ordering::Relaxed);
                self.fault.succeeded();
                if self.failures.swap(0, Ordering::Relaxed) > 0 {
                    info!("Last good state is written again");
                }
                Some(mark)
            }
            Err(error) => {
                self.fault.failed(&error);
                // One line for a disk that stays full, not one every few seconds.
                if self.failures.fetch_add(1, Ordering::Relaxed) == 0 {
                    let reason = reason(&error);
                    warn!(%error, reason, "Last good state could not be written; serving goes on");
                }
                None
            }
        }
    }
}

/// Writes contents, then the state that names them. `stored` is what the state on disk names; gives what it names afterwards.
/// A content that is not on disk is never named: the former one of that file stands, if there is one.
///
/// # Errors
/// The first failure. All that could be written is written all the same: a database that finds no room does not cost the
/// verdicts.
fn store(
    last_good: &LastGood,
    unwritten: &Unwritten,
    stored: BTreeMap<PathBuf, String>,
    memory: Memory,
) -> (BTreeMap<PathBuf, String>, Result<(), LastGoodError>) {
    let mut result = Ok(());
    for (hash, octets) in unwritten.list() {
        // Newer contents may have come since `memory` was taken: they wait for the state that names them.
        if !memory.files.values().any(|named| *named == hash) {
            continue;
        }
        match last_good.keep(&hash, &octets) {
            Ok(()) => unwritten.forget(&hash),
            Err(error) => result = result.and(Err(error)),
        }
    }
    let on_disk = |path: &PathBuf, hash: &String| {
        let former = stored.get(path).filter(|former| last_good.has(former));
        let hash = Some(hash).filter(|hash| last_good.has(hash)).or(former)?;
        Some((path.clone(), hash.clone()))
    };
    let files = memory.files.iter();
    let state = Memory {
        files: files
            .filter_map(|(path, hash)| on_disk(path, hash))
            .collect(),
        ..memory
    };
    match last_good.write(&state) {
        Ok(()) => (state.files, result),
        Err(error) => (stored, result.and(Err(error))),
    }
}

/// Gives the Unix time in seconds.
fn unix_now() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the shell reads the clock: when the state was written"
    )]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Gives the operating system's word, if an error has one.
fn reason(error: &LastGoodError) -> Option<String> {
    std::error::Error::source(error).map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Fleet;
    use crate::model::{Check, EndpointIndex, Moment, MonitorSpec, Origin};

    fn naming(files: &[(&str, &str)]) -> Memory {
        let files = files.iter();
        Memory {
            files: files
                .map(|(path, hash)| (PathBuf::from(path), (*hash).to_owned()))
                .collect(),
            ..Memory::default()
        }
    }

    #[test]
    fn a_content_that_finds_no_room_costs_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let last_good = LastGood::at(folder.path());
        let unwritten = Unwritten::default();
        let old = unwritten.put(Arc::from(*b"old"));
        let first = naming(&[("zone", &old)]);
        let (stored, result) = store(&last_good, &unwritten, BTreeMap::new(), first.clone());
        assert!(result.is_ok() && unwritten.list().is_empty());
        assert_eq!(stored, first.files);
        assert_eq!(last_good.read().unwrap(), first);
        // A folder where the temporary file should be: this content cannot be written.
        let new = unwritten.put(Arc::from(*b"new"));
        let other = unwritten.put(Arc::from(*b"other"));
        let hurdle = folder.path().join("blobs").join(format!("{new}.tmp"));
        std::fs::create_dir(&hurdle).unwrap();
        let second = naming(&[("zone", &new), ("database", &other)]);
        let (stored, result) = store(&last_good, &unwritten, stored, second.clone());
        assert!(result.is_err());
        let partly = naming(&[("zone", &old), ("database", &other)]);
        assert_eq!(last_good.read().unwrap(), partly);
        assert_eq!(last_good.kept(&old).unwrap(), b"old");
        assert_eq!(unwritten.list().len(), 1);
        // The hurdle is gone.
        std::fs::remove_dir(&hurdle).unwrap();
        let (stored, result) = store(&last_good, &unwritten, stored, second.clone());
        assert!(result.is_ok() && unwritten.list().is_empty());
        assert_eq!(last_good.read().unwrap(), second);
        assert_eq!(stored, second.files);
        assert!(!last_good.has(&old), "swept");
    }

    fn target(port: u16) -> Target {
        Target {
            address: ([192, 0, 2, 1], port).into(),
            spec: Arc::new(MonitorSpec::new(Check::connect(port), Origin::Operator)),
        }
    }

    /// Reports on these targets.
    fn table(verdicts: &[(Target, Verdict)]) -> Arc<MonitorTable> {
        let mut fleet = Fleet::new(1);
        let watch = (0..).map(EndpointIndex).zip(verdicts);
        let watch = watch.map(|(index, (target, _))| (index, target.clone()));
        fleet.change(watch.collect(), &[], Moment::default());
        fleet.restore(verdicts);
        Arc::new(fleet.table())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_stays_until_the_monitors_say_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let last_good = LastGood::at(folder.path());
        let remembered: BTreeMap<String, Verdict> = [1, 2, 3]
            .map(|port| (target_key(&target(port)), Verdict::Down))
            .into();
        let (_kept, kept) = watch::channel(Kept {
            serial: 7,
            ..Kept::default()
        });
        let (monitors, reports) = watch::channel(Arc::default());
        let keeper = Keeper {
            last_good: last_good.clone(),
            kept,
            unwritten: Unwritten::default(),
            stored: BTreeMap::new(),
            reports,
            recalled: Arc::new(remembered.clone()),
            failures: Arc::default(),
            fault: WriteFault::default(),
            written: Arc::default(),
        };
        let token = CancellationToken::new();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(keeper.run(token.clone()));
        let on_disk = async |wanted: &[(u16, Verdict)]| {
            let wanted = wanted.iter();
            let wanted = wanted.map(|(port, verdict)| (target_key(&target(*port)), *verdict));
            let wanted: BTreeMap<String, Verdict> = wanted.collect();
            let begun = Instant::now();
            while last_good.read().unwrap().verdicts != wanted {
                assert!(begun.elapsed() < PAUSE * 4, "{:?}", last_good.read());
                tokio::time::sleep(PAUSE / 4).await;
            }
        };
        let (up, down) = (Verdict::Up, Verdict::Down);
        // At once, though no monitor has said anything.
        on_disk(&[(1, down), (2, down), (3, down)]).await;
        assert_eq!(last_good.read().unwrap().serial, 7);
        // Two of them are watched; of one of these nothing is known any more.
        monitors.send_replace(table(&[(target(1), up), (target(2), Verdict::Unknown)]));
        on_disk(&[(1, up), (3, down)]).await;
        // The start is over.
        tokio::time::sleep(START).await;
        monitors.send_replace(table(&[(target(1), down)]));
        on_disk(&[(1, down)]).await;
        token.cancel();
        assert!(tasks.join_next().await.is_some_and(|ended| ended.is_ok()));
    }

    #[test]
    fn a_content_that_is_nowhere_is_not_named() {
        let folder = tempfile::tempdir().unwrap();
        let last_good = LastGood::at(folder.path());
        let unwritten = Unwritten::default();
        let content = unwritten.put(Arc::from(*b"content"));
        unwritten.retain(&BTreeMap::new());
        let memory = naming(&[("zone", &content)]);
        let (stored, result) = store(&last_good, &unwritten, BTreeMap::new(), memory);
        assert!(result.is_ok() && stored.is_empty());
        assert_eq!(last_good.read().unwrap(), Memory::default());
    }
}
