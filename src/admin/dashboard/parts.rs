//! Parts of pages, rendered once for all who look at the same: a hundred dashboards that hear of one flip cost one rendering.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use axum::body::Bytes;
use tokio::time::Instant;

/// What was made within this time is shown whatever has happened since.
pub(super) const STEADY: Duration = Duration::from_millis(100);
/// Most parts kept; beyond that those nobody asked for in the last second are thrown away. Each has one URL, so this bounds what URLs can fill.
const MOST: usize = 256;
/// A part that nobody asked for within this time may be thrown away.
const IDLE: Duration = Duration::from_secs(1);

/// A place for something that is made by one and shown to all, and when it was made. The lock is held while it is made, so that
/// nobody makes it twice.
#[derive(Debug)]
struct Slot<T>(tokio::sync::Mutex<Option<(Instant, T)>>);

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(tokio::sync::Mutex::new(None))
    }
}

impl<T: Clone> Slot<T> {
    /// Gives what is there if it was made a moment ago; else makes it.
    async fn get<E>(&self, make: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let mut slot = self.0.lock().await;
        // Read after the lock was waited for, and before it is made: what is made is never older than this.
        let now = Instant::now();
        if let Some((at, made)) = slot.as_ref()
            && now - *at < STEADY
        {
            return Ok(made.clone());
        }
        let made = make.await?;
        *slot = Some((now, made.clone()));
        Ok(made)
    }
}

/// A part, and when it was asked for last.
type Kept = (Instant, Arc<Slot<Bytes>>);

/// All parts kept.
#[derive(Debug, Default)]
pub(super) struct Parts {
    by_key: Mutex<HashMap<String, Kept>>,
}

impl Parts {
    /// Gives a part; makes it if it is not there or too old.
    pub(super) async fn part<E>(
        &self,
        key: String,
        make: impl Future<Output = Result<Bytes, E>>,
    ) -> Result<Bytes, E> {
        self.slot(key).get(make).await
    }

    /// Finds the place of a part.
    fn slot(&self, key: String) -> Arc<Slot<Bytes>> {
        let now = Instant::now();
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        if by_key.len() >= MOST && !by_key.contains_key(&key) {
            by_key.retain(|_, (used, _)| now - *used < IDLE);
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

    #[tokio::test(start_paused = true)]
    async fn a_part_is_made_once_for_all_who_ask_within_a_moment() {
        let (parts, made) = (Parts::default(), Cell::new(0));
        let ask = async || {
            let make = async {
                made.set(made.get() + 1);
                Ok::<_, ()>(Bytes::from(made.get().to_string()))
            };
            let got = parts.part("/".to_owned(), make).await.unwrap();
            std::str::from_utf8(&got).unwrap().parse::<u32>().unwrap()
        };
        assert_eq!(ask().await, 1);
        tokio::time::advance(STEADY / 2).await;
        assert_eq!(ask().await, 1);
        tokio::time::advance(STEADY / 2).await;
        assert_eq!(ask().await, 2);
        assert_eq!(ask().await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_urls_fills_nothing() {
        let parts = Parts::default();
        for at in 0..MOST * 4 {
            let make = async { Ok::<_, ()>(Bytes::new()) };
            parts.part(at.to_string(), make).await.unwrap();
        }
        assert_eq!(parts.by_key.lock().unwrap().len(), MOST);
        tokio::time::advance(IDLE).await;
        let make = async { Ok::<_, ()>(Bytes::new()) };
        parts.part("new".to_owned(), make).await.unwrap();
        assert_eq!(parts.by_key.lock().unwrap().len(), 1);
    }
}
