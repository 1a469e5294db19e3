//! How parents delegate our zones: looked up aside, one lookup for all who ask.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::admin::dto::DelegationDto;
use crate::model::LowerName;

/// A delegation is looked up again after so long.
const KEPT: Duration = Duration::from_secs(60);
/// A lookup that came to nothing is tried again after so long.
const AGAIN: Duration = Duration::from_secs(5);
/// Longest time of a lookup.
const LOOKUP: Duration = Duration::from_secs(10);
/// Longest time until a lookup that waits behind others has ended.
const LONGEST: Duration = LOOKUP.saturating_mul(2).saturating_add(AGAIN);
/// Lookups at once; so many more wait.
const AT_ONCE: usize = 16;
/// Delegations kept.
const MAX_KEPT: usize = 1000;

/// What is known of one.
#[derive(Clone, Debug)]
struct Known {
    /// When it is looked up again.
    until: Instant,
    /// What was found last.
    last: Option<DelegationDto>,
    /// Falls when the lookup under way has ended.
    ended: watch::Receiver<()>,
}

/// A lookup with what becomes of it.
type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// All that are known. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Delegations {
    known: Arc<Mutex<HashMap<LowerName, Known>>>,
    jobs: mpsc::Sender<Job>,
}

/// The lookups to come.
pub(super) struct Jobs(mpsc::Receiver<Job>);

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Jobs")
    }
}

impl Jobs {
    /// Does them until the token falls.
    pub(super) async fn run(mut self, token: CancellationToken) {
        let mut under_way = JoinSet::new();
        loop {
            // Cancel-safe: all arms only wait.
            tokio::select! {
                () = token.cancelled() => return,
                Some(_) = under_way.join_next() => {}
                job = self.0.recv(), if under_way.len() < AT_ONCE => match job {
                    Some(job) => {
                        under_way.spawn(job);
                    }
                    None => return,
                },
            }
        }
    }
}

impl Delegations {
    /// Begins with nothing known.
    pub(super) fn new() -> (Self, Jobs) {
        let (jobs, to_come) = mpsc::channel(AT_ONCE);
        let known = Arc::default();
        (Self { known, jobs }, Jobs(to_come))
    }

    /// Gives what was found less than a minute ago; else begins a lookup unless one is under way, waits for it for as long as
    /// `patience` lasts, and gives what was found last.
    pub(super) async fn get(
        &self,
        apex: &LowerName,
        patience: Duration,
        lookup: impl Future<Output = DelegationDto> + Send + 'static,
    ) -> Option<DelegationDto> {
        let mut ended = {
            let mut known = self.lock();
            let now = Instant::now();
            if let Some(one) = known.get(apex).filter(|one| now < one.until) {
                one.ended.clone()
            } else {
                let last = known.remove(apex).and_then(|one| one.last);
                if known.len() >= MAX_KEPT {
                    known.retain(|_, one| now < one.until);
                }
                if known.len() >= MAX_KEPT {
                    return last;
                }
                let (under_way, ended) = watch::channel(());
                let job = self.clone().keep(apex.clone(), under_way, lookup);
                // With too many in front it is not begun: whoever waits is let go, and the next one tries again.
                let until = match self.jobs.try_send(Box::pin(job)) {
                    Ok(()) => now + LONGEST,
                    Err(_) => now,
                };
                let one = Known {
                    until,
                    last,
                    ended: ended.clone(),
                };
                known.insert(apex.clone(), one);
                ended
            }
        };
        // An error says that the lookup has ended.
        let _ = timeout(patience, ended.changed()).await;
        self.lock().get(apex).and_then(|one| one.last.clone())
    }

    /// Looks up, and keeps what comes of it.
    async fn keep(
        self,
        apex: LowerName,
        under_way: watch::Sender<()>,
        lookup: impl Future<Output = DelegationDto>,
    ) {
        let found = timeout(LOOKUP, lookup).await.ok();
        let mut known = self.lock();
        if let Some(one) = known.get_mut(&apex) {
            one.until = Instant::now() + if found.is_some() { KEPT } else { AGAIN };
            // What was found before says itself when that was.
            one.last = found.or_else(|| one.last.take());
        }
        drop(under_way);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LowerName, Known>> {
        // Every change leaves it whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(100);

    fn found(serial: u32) -> DelegationDto {
        DelegationDto {
            checked: serial.to_string(),
            ok: true,
            faults: Vec::new(),
            wanted: Vec::new(),
            found: Vec::new(),
            servers: Vec::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_slow_parent_and_it_is_asked_once() {
        let (all, jobs) = Delegations::new();
        let _jobs = JoinSet::from_iter([jobs.run(CancellationToken::new())]);
        let apex = "svc.example".parse().unwrap();
        let asked = Arc::new(AtomicU32::new(0));
        let ask = async |patience, takes| {
            let asked = Arc::clone(&asked);
            let lookup = async move {
                let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
                tokio::time::sleep(takes).await;
                found(number)
            };
            let begun = Instant::now();
            let said = all.get(&apex, patience, lookup).await;
            (said.map(|one| one.checked), begun.elapsed())
        };
        let slow = Duration::from_secs(3);
        // Not known yet: the page comes all the same.
        assert_eq!(ask(PATIENCE, slow).await, (None, PATIENCE));
        assert_eq!(ask(PATIENCE, slow).await, (None, PATIENCE));
        // Whoever has time gets what comes of the same lookup.
        let (said, took) = ask(slow, slow).await;
        assert_eq!((said.as_deref(), took), (Some("1"), slow - PATIENCE * 2));
        let (said, took) = ask(PATIENCE, slow).await;
        assert_eq!((said.as_deref(), took), (Some("1"), Duration::ZERO));
        // A minute later the last word is shown until there is a new one.
        tokio::time::advance(KEPT).await;
        assert_eq!(ask(PATIENCE, slow).await.0.as_deref(), Some("1"));
        tokio::time::sleep(slow).await;
        assert_eq!(ask(PATIENCE, slow).await.0.as_deref(), Some("2"));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_that_never_ends_is_given_up_and_tried_again() {
        let (all, jobs) = Delegations::new();
        let _jobs = JoinSet::from_iter([jobs.run(CancellationToken::new())]);
        let apex = "svc.example".parse().unwrap();
        let never = || std::future::pending::<DelegationDto>();
        assert!(all.get(&apex, LOOKUP * 2, never()).await.is_none());
        tokio::time::advance(AGAIN).await;
        let lookup = async { found(1) };
        let said = all.get(&apex, PATIENCE, lookup).await;
        assert_eq!(said.map(|one| one.checked).as_deref(), Some("1"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_found_last_is_shown_while_nobody_can_look() {
        let (all, jobs) = Delegations::new();
        let mut under_way = JoinSet::from_iter([jobs.run(CancellationToken::new())]);
        let apex = "svc.example".parse().unwrap();
        let lookup = async { found(1) };
        assert!(all.get(&apex, PATIENCE, lookup).await.is_some());
        // Nobody does what is asked for any more.
        under_way.abort_all();
        while under_way.join_next().await.is_some() {}
        tokio::time::advance(KEPT).await;
        for _ in 0..3 {
            let said = all.get(&apex, PATIENCE, async { found(2) }).await;
            assert_eq!(said.map(|one| one.checked).as_deref(), Some("1"));
        }
    }
}
