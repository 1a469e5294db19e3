//! Parts of pages, rendered once for all who look at the same: a hundred dashboards that hear of one flip cost one rendering.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use axum::body::Bytes;
use tokio::time::Instant;

use crate::admin::dto::StatusDto;

/// What was made within this time is shown whatever has happened since. [`SETTLE`](super::live::SETTLE) is as long: whoever
/// is told of an event asks only when nothing older than the event is shown any more.
pub(super) const STEADY: Duration = Duration::from_millis(250);
/// What was made within this time is shown if nothing has happened since: rates move on without events.
const FRESH: Duration = Duration::from_secs(1);
/// Most parts kept; beyond that those no longer fresh are thrown away. Each has one URL, so this bounds what URLs can fill.
const MOST: usize = 256;

/// Something made a moment ago.
#[derive(Debug)]
struct Made<T> {
    at: Instant,
    /// The newest event at the time.
    event: u64,
    what: T,
}

/// A place for something that is made by one and shown to all. The lock is held while it is made, so that nobody makes it twice.
#[derive(Debug)]
struct Slot<T>(tokio::sync::Mutex<Option<Made<T>>>);

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(tokio::sync::Mutex::new(None))
    }
}

impl<T: Clone> Slot<T> {
    /// Gives what is there if it is good enough; else makes it. `event` gives the newest event's number.
    async fn get<E>(
        &self,
        event: impl Fn() -> u64,
        make: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut slot = self.0.lock().await;
        // Read after the lock was waited for, and before it is made: an event in between makes it old, never too new.
        let (now, newest) = (Instant::now(), event());
        if let Some(made) = slot.as_ref() {
            let age = now - made.at;
            if age < STEADY || (age < FRESH && made.event == newest) {
                return Ok(made.what.clone());
            }
        }
        let what = make.await?;
        *slot = Some(Made {
            at: now,
            event: newest,
            what: what.clone(),
        });
        Ok(what)
    }
}

/// A part, and when it was asked for last.
type Kept = (Instant, Arc<Slot<Bytes>>);

/// All parts kept.
#[derive(Debug, Default)]
pub(super) struct Parts {
    by_key: Mutex<HashMap<String, Kept>>,
    status: Slot<Arc<StatusDto>>,
}

impl Parts {
    /// Gives a part; makes it if it is not there or too old.
    pub(super) async fn part<E>(
        &self,
        key: String,
        event: impl Fn() -> u64,
        make: impl Future<Output = Result<Bytes, E>>,
    ) -> Result<Bytes, E> {
        self.slot(key).get(event, make).await
    }

    /// Gives the status, which every page shows a bit of.
    pub(super) async fn status(
        &self,
        event: impl Fn() -> u64,
        make: impl Future<Output = StatusDto>,
    ) -> Arc<StatusDto> {
        let make = async { Ok::<_, std::convert::Infallible>(Arc::new(make.await)) };
        let Ok(status) = self.status.get(event, make).await;
        status
    }

    /// Finds the place of a part.
    fn slot(&self, key: String) -> Arc<Slot<Bytes>> {
        let now = Instant::now();
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        if by_key.len() >= MOST && !by_key.contains_key(&key) {
            by_key.retain(|_, (used, _)| now - *used < FRESH);
            if by_key.len() >= MOST {
                // A flood of URLs: this one is made for whoever asked alone.
                return Arc::default();
            }
        }
        let entry = by_key.entry(key).or_insert_with(|| (now, Arc::default()));
        entry.0 = now;
        Arc::clone(&entry.1)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Asks for one part; gives what it got, and how often it was made so far.
    async fn ask(parts: &Parts, event: u64, made: &Cell<u32>) -> u32 {
        let make = async {
            made.set(made.get() + 1);
            Ok::<_, ()>(Bytes::from(made.get().to_string()))
        };
        let got = parts.part("/".to_owned(), || event, make).await.unwrap();
        std::str::from_utf8(&got).unwrap().parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_is_made_once_a_change_and_once_a_second() {
        let (parts, made) = (Parts::default(), Cell::new(0));
        assert_eq!(ask(&parts, 1, &made).await, 1);
        assert_eq!(ask(&parts, 1, &made).await, 1);
        // Something happened, a moment after it was made.
        tokio::time::advance(STEADY / 2).await;
        assert_eq!(ask(&parts, 2, &made).await, 1);
        tokio::time::advance(STEADY / 2).await;
        assert_eq!(ask(&parts, 2, &made).await, 2);
        tokio::time::advance(FRESH / 2).await;
        assert_eq!(ask(&parts, 2, &made).await, 2);
        tokio::time::advance(FRESH / 2).await;
        assert_eq!(ask(&parts, 2, &made).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_urls_fills_nothing() {
        let parts = Parts::default();
        for at in 0..MOST * 4 {
            let make = async { Ok::<_, ()>(Bytes::new()) };
            parts.part(at.to_string(), || 0, make).await.unwrap();
        }
        assert_eq!(parts.by_key.lock().unwrap().len(), MOST);
        tokio::time::advance(FRESH).await;
        let make = async { Ok::<_, ()>(Bytes::new()) };
        parts.part("new".to_owned(), || 0, make).await.unwrap();
        assert_eq!(parts.by_key.lock().unwrap().len(), 1);
    }
}
