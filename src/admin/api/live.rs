//! Events as they happen, as server-sent events (WHATWG HTML, section 9.2).
//!
//! A stream first takes up what was missed out of the ring of events, then follows. It holds at most what the ring holds: who
//! reads too slowly misses events and is told so.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event as Written, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{Stream, unfold};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::admin::view::{EventQuery, Wanted, said};
use crate::controller::{Event, Journal};

/// Silence after which a comment is sent, so that nobody between takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Keeps a proxy from holding events back until it has many.
const BUFFERING: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

/// What a stream says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// An event.
    Happened(Arc<Event>),
    /// Some were missed.
    Lagged,
}

/// A stream's state.
#[derive(Debug)]
struct Live {
    wanted: Wanted,
    /// Waiting to be sent.
    ready: VecDeque<Word>,
    /// The highest number seen.
    last: u64,
    receiver: Receiver<Arc<Event>>,
}

/// Begins a stream; `last` is the number of the last event that the client saw.
pub(super) fn stream(journal: &Journal, query: &EventQuery, last: Option<u64>) -> Response {
    let live = Live::begin(journal, query, last);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let sse = Sse::new(live.into_stream()).keep_alive(keep_alive);
    ([BUFFERING], sse).into_response()
}

impl Live {
    /// Takes up what was missed.
    fn begin(journal: &Journal, query: &EventQuery, last: Option<u64>) -> Self {
        // Subscribed first, so that nothing falls between the ring and what follows.
        let receiver = journal.subscribe();
        let newest = journal.newest();
        let mut live = Self {
            wanted: Wanted::of(query),
            ready: VecDeque::new(),
            last: newest,
            receiver,
        };
        match last {
            // A number of a former life of this node: what came since then cannot be told.
            Some(last) if last > newest => live.ready.push_back(Word::Lagged),
            Some(last) => {
                let missed = journal.after(last);
                live.last = match (last, missed.first()) {
                    // All that is kept is asked for: nothing of that was missed.
                    (0, Some(oldest)) => oldest.id - 1,
                    (0, None) => newest,
                    _ => last,
                };
                for event in missed {
                    live.take(event);
                }
            }
            None => {}
        }
        live
    }

    /// Takes an event in: those seen are passed over, a gap before it is told.
    fn take(&mut self, event: Arc<Event>) {
        if event.id <= self.last {
            return;
        }
        if event.id > self.last.saturating_add(1) {
            self.ready.push_back(Word::Lagged);
        }
        self.last = event.id;
        if self.wanted.has(&event) {
            self.ready.push_back(Word::Happened(event));
        }
    }

    /// Waits for the next word; `None` when there will be none.
    async fn next(&mut self) -> Option<Word> {
        loop {
            if let Some(word) = self.ready.pop_front() {
                return Some(word);
            }
            match self.receiver.recv().await {
                Ok(event) => self.take(event),
                // The next event shows the gap.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Makes the stream of what is sent.
    fn into_stream(self) -> impl Stream<Item = Result<Written, Infallible>> {
        unfold(self, |mut live| async move {
            let word = live.next().await?;
            Some((Ok(word.write()), live))
        })
    }
}

impl Word {
    /// Gives what is sent.
    fn write(&self) -> Written {
        match self {
            Self::Happened(event) => {
                // Texts and numbers cannot fail to become JSON.
                let data = serde_json::to_string(&said(event)).unwrap_or_default();
                Written::default().id(event.id.to_string()).data(data)
            }
            Self::Lagged => Written::default().event("lagged").data("{}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::dto::EventKind;
    use crate::controller::{KEPT_EVENTS, Kind, Weightiness};
    use crate::model::WallTime;

    /// Records events; every second one is a flip, by its number.
    fn record(journal: &Journal, count: usize) {
        for _ in 0..count {
            let kind = if journal.newest() % 2 == 1 {
                Kind::Flip
            } else {
                Kind::Publish
            };
            journal.record(Event::new(kind, Weightiness::Info, "x\ny"), WallTime(7));
        }
    }

    /// Takes what a stream has to say until nothing more happens: numbers, 0 for `lagged`.
    async fn words(mut live: Live, journal: Journal) -> Vec<u64> {
        drop(journal);
        let mut numbers = Vec::new();
        while let Some(word) = live.next().await {
            numbers.push(match word {
                Word::Happened(event) => event.id,
                Word::Lagged => 0,
            });
        }
        numbers
    }

    /// Resumes after `last` where so many were recorded before, and one more after.
    async fn resumed(recorded: usize, last: Option<u64>, query: &EventQuery) -> Vec<u64> {
        let journal = Journal::default();
        record(&journal, recorded);
        let live = Live::begin(&journal, query, last);
        record(&journal, 1);
        words(live, journal).await
    }

    #[tokio::test]
    async fn a_stream_takes_up_exactly_what_was_missed() {
        let any = EventQuery::default();
        assert_eq!(resumed(0, None, &any).await, [1]);
        assert_eq!(resumed(9, None, &any).await, [10]);
        assert_eq!(resumed(9, Some(6), &any).await, [7, 8, 9, 10]);
        assert_eq!(resumed(9, Some(9), &any).await, [10]);
        assert_eq!(resumed(3, Some(0), &any).await, [1, 2, 3, 4]);
        // Where nothing was kept yet, nothing was missed, whatever number the first has.
        let journal = Journal::of_start(WallTime(5));
        let live = Live::begin(&journal, &any, Some(0));
        record(&journal, 1);
        assert_eq!(words(live, journal).await, [5000]);
    }

    #[tokio::test]
    async fn what_is_no_longer_kept_is_told() {
        let any = EventQuery::default();
        let kept = u64::try_from(KEPT_EVENTS).unwrap();
        let whole: Vec<u64> = (6..=kept + 6).collect();
        assert_eq!(resumed(KEPT_EVENTS + 5, Some(5), &any).await, whole);
        let with_gap: Vec<u64> = std::iter::once(0).chain(whole).collect();
        assert_eq!(resumed(KEPT_EVENTS + 5, Some(4), &any).await, with_gap);
    }

    #[tokio::test]
    async fn a_number_of_a_former_life_is_told() {
        let any = EventQuery::default();
        assert_eq!(resumed(7, Some(8), &any).await, [0, 8]);
        assert_eq!(resumed(7, Some(u64::MAX), &any).await, [0, 8]);
    }

    #[tokio::test]
    async fn filters_hold_for_what_was_missed_and_for_what_follows() {
        let flips = EventQuery {
            kind: Some(EventKind::Flip),
            ..EventQuery::default()
        };
        assert_eq!(resumed(9, Some(3), &flips).await, [4, 6, 8, 10]);
        assert_eq!(resumed(8, Some(3), &flips).await, [4, 6, 8]);
    }

    #[tokio::test]
    async fn who_reads_too_slowly_is_told_once() {
        let journal = Journal::default();
        let live = Live::begin(&journal, &EventQuery::default(), None);
        record(&journal, 3000);
        let numbers = words(live, journal).await;
        assert_eq!(numbers[0], 0);
        assert!(numbers[1] > 1 && numbers.len() > 2);
        assert!(numbers[1..].windows(2).all(|pair| pair[1] == pair[0] + 1));
        assert_eq!(numbers.last(), Some(&3000));
    }

    #[tokio::test]
    async fn events_are_written_as_browsers_read_them() {
        let journal = Journal::default();
        record(&journal, 1);
        let event = Arc::clone(&journal.all()[0]);
        let words = [Word::Happened(Arc::clone(&event)), Word::Lagged];
        let written = words.map(|word| Ok::<_, Infallible>(word.write()));
        let response = Sse::new(futures_util::stream::iter(written)).into_response();
        let body = axum::body::to_bytes(response.into_body(), 4096);
        let body = body.await.unwrap();
        let text = std::str::from_utf8(&body).unwrap();
        let json = serde_json::to_string(&said(&event)).unwrap();
        assert!(!json.contains('\n'));
        assert_eq!(
            text,
            format!("id: 1\ndata: {json}\n\nevent: lagged\ndata: {{}}\n\n")
        );
    }
}
