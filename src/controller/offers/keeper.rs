//! Writes the offers: a task of its own, after changes, every 2 s at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{FILE, Offers};
use crate::controller::command::ControllerHandle;
use crate::controller::folder::{LastGood, LastGoodError, content_hash};
use crate::disk::WriteFault;

/// Shortest time between two writes.
const PAUSE: Duration = Duration::from_secs(2);
/// And that after a write which failed.
const RETRY: Duration = Duration::from_secs(5);
/// A pause is at least so many times as long as the write before it: much that changes all the time does not keep a core and the
/// disk busy.
const SHARE: u32 = 20;

/// Keeps the offers on disk.
#[derive(Debug)]
pub struct OffersKeeper {
    /// Where.
    pub last_good: LastGood,
    /// Whose.
    pub controller: ControllerHandle,
    /// Writes that failed in a row.
    pub failures: Arc<AtomicU64>,
    /// Why the last one did.
    pub fault: WriteFault,
}

impl OffersKeeper {
    /// Runs until the token falls. What changed in the pause before is lost then, as in a crash: the clusters say it again.
    pub async fn run(self, token: CancellationToken) {
        let mut status = self.controller.watch_status();
        let (mut written, mut seen) = (None, None);
        loop {
            let begun = Instant::now();
            // What changes only states of endpoints is not ours.
            let inventory = status.borrow_and_update().inventory;
            let mut pause = PAUSE;
            if seen != Some(inventory) {
                let result = self.write(&mut written).await;
                if self.note(result) {
                    seen = Some(inventory);
                } else {
                    pause = RETRY;
                }
            }
            let pause = pause.max(begun.elapsed() * SHARE);
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            // Cancel-safe: all arms only wait. After a failure nothing needs to change for another try.
            tokio::select! {
                () = token.cancelled() => return,
                () = std::future::ready(()), if seen != Some(inventory) => {}
                changed = status.changed() => if changed.is_err() {
                    return;
                },
            }
        }
    }

    /// Counts and logs what became of a write. Tells whether it succeeded.
    fn note(&self, result: Result<(), LastGoodError>) -> bool {
        match result {
            Ok(()) => {
                self.fault.succeeded();
                if self.failures.swap(0, Ordering::Relaxed) > 0 {
                    info!("Offers of member clusters are written again");
                }
                true
            }
            Err(error) => {
                self.fault.failed(&error);
                // One line for a disk that stays full, not one every few seconds.
                if self.failures.fetch_add(1, Ordering::Relaxed) == 0 {
                    let reason = std::error::Error::source(&error).map(ToString::to_string);
                    warn!(%error, reason, "Offers of member clusters could not be written; serving goes on");
                }
                false
            }
        }
    }

    /// Writes what is offered now, unless it is what was written last: `written` is its hash.
    async fn write(&self, written: &mut Option<String>) -> Result<(), LastGoodError> {
        let Some(offers) = self.controller.read(Offers::of).await else {
            return Ok(());
        };
        // A node without member clusters needs no file.
        if written.is_none() && offers == Offers::default() && !self.last_good.has_named(&FILE) {
            return Ok(());
        }
        let (last_good, last) = (self.last_good.clone(), written.clone());
        let writing = tokio::task::spawn_blocking(move || {
            let body = offers
                .to_body()
                .map_err(|error| last_good.unusable(&FILE, error.to_string()))?;
            let hash = content_hash(&body);
            if last.as_ref() != Some(&hash) {
                last_good.write_named(&FILE, (&hash, &body))?;
            }
            Ok(hash)
        });
        // It can only fail by a panic, which ends the process.
        if let Ok(result) = writing.await {
            *written = Some(result?);
        }
        Ok(())
    }
}
