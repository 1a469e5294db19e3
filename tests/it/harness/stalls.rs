//! Times at which the machine itself stood still: nobody answers then, whatever is under test. Whoever starves the machine looks
//! the same, so only a little of it is forgiven.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the watch sleeps at a time.
const NAP: Duration = Duration::from_millis(5);
/// Sleeping so much longer is ordinary.
const ORDINARY: Duration = Duration::from_millis(50);

/// Watches the machine until it is dropped.
pub struct Stalls {
    stop: Arc<AtomicBool>,
    micros: Arc<AtomicU64>,
    watch: Option<JoinHandle<()>>,
}

impl Stalls {
    /// Begins to watch.
    pub fn watch() -> Self {
        let (stop, micros) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (ended, sum) = (Arc::clone(&stop), Arc::clone(&micros));
        let watch = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let begun = Instant::now();
                std::thread::sleep(NAP);
                let late = begun.elapsed().saturating_sub(NAP + ORDINARY);
                sum.fetch_add(u64::try_from(late.as_micros()).unwrap(), Ordering::Relaxed);
            }
        });
        Self {
            stop,
            micros,
            watch: Some(watch),
        }
    }

    /// Runs something that is bounded in time. Gives what came of it and how long it took, without what the machine stood still
    /// meanwhile. Where that is more than half of the bound, the time says nothing, and it is done once more.
    pub fn time<T>(&self, bound: Duration, mut job: impl FnMut() -> T) -> (T, Duration) {
        let mut once = || {
            let (begun, before) = (Instant::now(), self.so_far());
            let made = job();
            (made, begun.elapsed(), self.so_far() - before)
        };
        let (mut made, mut took, mut stalled) = once();
        if stalled > bound / 2 {
            (made, took, stalled) = once();
        }
        (made, took.saturating_sub(stalled.min(bound / 2)))
    }

    /// Gives how long the machine stood still so far.
    pub fn so_far(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
    }
}
