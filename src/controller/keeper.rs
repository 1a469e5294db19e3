//! Writes the last good state: a task of its own, every 2 s at most and at the stop.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::last_good::{LastGood, LastGoodError, Memory, ZoneSerial, target_key};
use crate::health::MonitorReport;
use crate::model::Verdict;

/// Shortest time between two writes.
const PAUSE: Duration = Duration::from_secs(2);
/// How long after a failed write the next one is tried: the disk may have room again, and nobody says so.
const RETRY: Duration = Duration::from_secs(2);

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

/// Keeps the last good state on disk.
#[derive(Debug)]
pub struct Keeper {
    /// Where.
    pub last_good: LastGood,
    /// What the configuration in force says.
    pub kept: watch::Receiver<Kept>,
    /// What the monitors say.
    pub reports: watch::Receiver<Arc<Vec<MonitorReport>>>,
    /// Writes that failed in a row.
    pub failures: Arc<AtomicU64>,
}

impl Keeper {
    /// Runs until the token falls, then writes once more.
    pub async fn run(mut self, token: CancellationToken) {
        // What is in force at the start is worth keeping too.
        let memory = self.memory();
        let mut written = self.write(memory).await;
        loop {
            // Cancel-safe: all arms only wait.
            let stop = tokio::select! {
                () = token.cancelled() => true,
                Ok(()) = self.kept.changed() => false,
                Ok(()) = self.reports.changed() => false,
                () = tokio::time::sleep(RETRY), if written.is_none() => false,
                else => true,
            };
            let memory = self.memory();
            if written.as_ref() != Some(&memory) {
                written = self.write(memory).await;
            }
            if stop {
                return;
            }
            tokio::select! {
                () = token.cancelled() => {}
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// Joins what the configuration and the monitors say.
    fn memory(&mut self) -> Memory {
        let kept = self.kept.borrow_and_update().clone();
        let reports = Arc::clone(&self.reports.borrow_and_update());
        let known = reports
            .iter()
            .filter(|report| report.verdict != Verdict::Unknown);
        Memory {
            serial: kept.serial,
            serials: kept.serials,
            files: kept.files,
            verdicts: known
                .map(|report| (target_key(&report.target), report.verdict))
                .collect(),
        }
    }

    /// Writes; gives back what was written, or `None` when it failed and must be tried again.
    async fn write(&self, memory: Memory) -> Option<Memory> {
        let last_good = self.last_good.clone();
        let writing =
            tokio::task::spawn_blocking(move || last_good.write(&memory).map(|()| memory));
        match writing.await {
            Ok(Ok(memory)) => {
                if self.failures.swap(0, Ordering::Relaxed) > 0 {
                    info!("Last good state is written again");
                }
                Some(memory)
            }
            Ok(Err(error)) => {
                // One line for a disk that stays full, not one every two seconds.
                if self.failures.fetch_add(1, Ordering::Relaxed) == 0 {
                    let reason = reason(&error);
                    warn!(%error, reason, "Last good state could not be written; serving goes on");
                }
                None
            }
            Err(_) => None,
        }
    }
}

/// Gives the operating system's word, if an error has one.
fn reason(error: &LastGoodError) -> Option<String> {
    std::error::Error::source(error).map(ToString::to_string)
}
