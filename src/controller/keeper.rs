//! Writes the last good state: a task of its own, every 2 s at most and at the stop.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::last_good::{LastGood, Memory, target_key};
use crate::health::MonitorReport;
use crate::model::Verdict;

/// Shortest time between two writes.
const PAUSE: Duration = Duration::from_secs(2);

/// What a configuration says of the memory; the verdicts come from the monitors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// SOA serial of zones whose file has none.
    pub serial: u32,
    /// Hash of the configuration that the serial stands for.
    pub configuration: String,
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
    /// Counts writes that failed.
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
            configuration: kept.configuration,
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
                    let reason = std::error::Error::source(&error).map(ToString::to_string);
                    warn!(%error, reason, "Last good state could not be written; serving goes on");
                }
                None
            }
            Err(_) => None,
        }
    }
}
