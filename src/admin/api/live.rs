//! Events as they happen, as server-sent events (WHATWG HTML, section 9.2).
//!
//! A stream first takes up what was missed out of the ring of events, then follows. It holds at most what the ring holds: who
//! reads too slowly misses events and is told so.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{Stream, unfold};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::dto::{EventDto, Page};
use crate::admin::view::{EventQuery, View, ViewError};

/// Silence after which a comment is sent, so that nobody between takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events taken out of the ring at once.
const STRIDE: u32 = 500;
/// Keeps a proxy from holding events back until it has many.
const BUFFERING: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

/// What a stream says.
#[derive(Clone, Debug, PartialEq)]
enum Word {
    /// An event.
    Happened(Box<EventDto>),
    /// Some were missed.
    Lagged,
}

/// A stream's state.
#[derive(Debug)]
struct Live {
    query: EventQuery,
    /// Waiting to be sent.
    ready: VecDeque<Word>,
    /// The highest number seen.
    last: u64,
    receiver: Receiver<EventDto>,
}

/// Begins a stream.
///
/// # Errors
/// What the ring says of the query.
pub(super) fn stream(
    view: &View,
    query: EventQuery,
    last: Option<u64>,
) -> Result<Response, ViewError> {
    // Subscribed first, so that nothing falls between the ring and what follows.
    let receiver = view.subscribe();
    let live = Live::begin(query, last, receiver, |query| view.events(query))?;
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let sse = Sse::new(live.into_stream()).keep_alive(keep_alive);
    Ok(([BUFFERING], sse).into_response())
}

impl Live {
    /// Takes up what was missed. `read` reads the ring.
    fn begin(
        mut query: EventQuery,
        last: Option<u64>,
        receiver: Receiver<EventDto>,
        read: impl Fn(&EventQuery) -> Result<Page<EventDto>, ViewError>,
    ) -> Result<Self, ViewError> {
        let all = read(&EventQuery {
            limit: Some(1),
            ..EventQuery::default()
        })?;
        let newest = all.items.first().map_or(0, |event| event.id);
        let mut ready = VecDeque::new();
        if let Some(last) = last {
            let oldest = (newest + 1).saturating_sub(all.total);
            // Beyond the newest it is a number of a former life of this node.
            let is_whole = last <= newest && last + 1 >= oldest;
            if !is_whole {
                ready.push_back(Word::Lagged);
            }
            query.limit = Some(STRIDE);
            let missed = if last > newest {
                Vec::new()
            } else {
                missed(&query, last, read)?
            };
            let newer = missed.into_iter().rev();
            ready.extend(newer.map(|event| Word::Happened(Box::new(event))));
        }
        // What came into the ring since is in the receiver too.
        let seen = ready.iter().filter_map(|word| match word {
            Word::Happened(event) => Some(event.id),
            Word::Lagged => None,
        });
        let last = seen.max().unwrap_or_default().max(newest);
        Ok(Self {
            query,
            ready,
            last,
            receiver,
        })
    }

    /// Waits for the next word; `None` when there will be none.
    async fn next(&mut self) -> Option<Word> {
        loop {
            if let Some(word) = self.ready.pop_front() {
                return Some(word);
            }
            match self.receiver.recv().await {
                Ok(event) if event.id <= self.last => {}
                Ok(event) => {
                    self.last = event.id;
                    if concerns(&self.query, &event) {
                        return Some(Word::Happened(Box::new(event)));
                    }
                }
                Err(RecvError::Lagged(_)) => return Some(Word::Lagged),
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Makes the stream of what is sent.
    fn into_stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        unfold(self, |mut live| async move {
            let word = live.next().await?;
            Some((Ok(word.into_event()), live))
        })
    }
}

impl Word {
    /// Gives what is sent.
    fn into_event(self) -> Event {
        match self {
            Self::Happened(event) => {
                // Texts and numbers cannot fail to become JSON.
                let data = serde_json::to_string(&event).unwrap_or_default();
                Event::default().id(event.id.to_string()).data(data)
            }
            Self::Lagged => Event::default().event("lagged").data("{}"),
        }
    }
}

/// Reads what came after a number, newest first.
fn missed(
    query: &EventQuery,
    last: u64,
    read: impl Fn(&EventQuery) -> Result<Page<EventDto>, ViewError>,
) -> Result<Vec<EventDto>, ViewError> {
    let mut query = query.clone();
    let mut missed: Vec<EventDto> = Vec::new();
    loop {
        let page = read(&query)?;
        let (before, there) = (missed.len(), page.items.len());
        missed.extend(page.items.into_iter().take_while(|event| event.id > last));
        let is_all_newer = there > 0 && missed.len() - before == there;
        match page.next {
            Some(next) if is_all_newer => query.cursor = Some(next),
            _ => return Ok(missed),
        }
    }
}

/// Tells whether an event is one that a query asks for, as the pages of events have it.
fn concerns(query: &EventQuery, event: &EventDto) -> bool {
    let is_cluster = |name: &String| event.cluster.as_ref() == Some(name);
    query.kind.is_none_or(|kind| event.kind == kind)
        && query.severity.is_none_or(|least| event.severity >= least)
        && query.cluster.as_ref().is_none_or(is_cluster)
        && query
            .service
            .as_ref()
            .is_none_or(|key| event.services.contains(key))
        && query.search.as_ref().is_none_or(|part| {
            let part = part.to_lowercase();
            let texts = [
                Some(&event.text),
                event.cluster.as_ref(),
                event.target.as_ref(),
            ];
            let mut texts = texts.into_iter().flatten().chain(&event.services);
            texts.any(|text| text.to_lowercase().contains(&part))
        })
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast;

    use super::super::dto::{EventKind, Severity};
    use super::super::examples;
    use super::*;

    fn event(id: u64) -> EventDto {
        EventDto {
            id,
            kind: if id % 2 == 0 {
                EventKind::Flip
            } else {
                EventKind::Publish
            },
            ..examples::event()
        }
    }

    /// Plays a ring that kept these numbers.
    fn ring(
        kept: std::ops::RangeInclusive<u64>,
    ) -> impl Fn(&EventQuery) -> Result<Page<EventDto>, ViewError> {
        move |query| {
            let all = kept.clone().rev().map(event);
            let all: Vec<EventDto> = all.filter(|event| concerns(query, event)).collect();
            let before: u64 = query
                .cursor
                .as_ref()
                .map_or(u64::MAX, |cursor| cursor.parse().unwrap());
            let limit = usize::try_from(query.limit.unwrap_or(50)).unwrap();
            let older: Vec<EventDto> = all
                .iter()
                .filter(|event| event.id < before)
                .cloned()
                .collect();
            let items: Vec<EventDto> = older.iter().take(limit).cloned().collect();
            let next = (items.len() < older.len()).then(|| items[items.len() - 1].id.to_string());
            Ok(Page {
                total: u64::try_from(all.len()).unwrap(),
                items,
                next,
            })
        }
    }

    /// Takes what a stream has to say when nothing more happens: numbers, 0 for `lagged`.
    async fn words(mut live: Live) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(word) = live.next().await {
            numbers.push(match word {
                Word::Happened(event) => event.id,
                Word::Lagged => 0,
            });
        }
        numbers
    }

    async fn resumed(
        kept: std::ops::RangeInclusive<u64>,
        last: Option<u64>,
        query: EventQuery,
    ) -> Vec<u64> {
        let (sender, receiver) = broadcast::channel(16);
        // The newest of the ring comes by the channel too, and then one more.
        let newest = *kept.end();
        sender.send(event(newest)).unwrap();
        sender.send(event(newest + 1)).unwrap();
        drop(sender);
        words(Live::begin(query, last, receiver, ring(kept)).unwrap()).await
    }

    #[tokio::test]
    async fn a_stream_takes_up_exactly_what_was_missed() {
        let any = EventQuery::default;
        assert_eq!(resumed(1..=9, None, any()).await, [10]);
        assert_eq!(resumed(1..=9, Some(6), any()).await, [7, 8, 9, 10]);
        assert_eq!(resumed(1..=9, Some(9), any()).await, [10]);
        assert_eq!(resumed(1..=3, Some(0), any()).await, [1, 2, 3, 4]);
        let many: Vec<u64> = (5..=2001).collect();
        assert_eq!(resumed(1..=2000, Some(4), any()).await, many);
        let exact: Vec<u64> = (1001..=2001).collect();
        assert_eq!(resumed(1..=2000, Some(1000), any()).await, exact);
    }

    #[tokio::test]
    async fn what_is_no_longer_kept_is_told() {
        let any = EventQuery::default;
        assert_eq!(resumed(5..=7, Some(4), any()).await, [5, 6, 7, 8]);
        assert_eq!(resumed(5..=7, Some(3), any()).await, [0, 5, 6, 7, 8]);
        assert_eq!(resumed(1..=7, Some(8), any()).await, [0, 8]);
        let maximum = Some(u64::MAX);
        assert_eq!(resumed(1..=7, maximum, any()).await, [0, 8]);
    }

    #[tokio::test]
    async fn filters_hold_for_what_was_missed_and_for_what_follows() {
        let flips = EventQuery {
            kind: Some(EventKind::Flip),
            ..EventQuery::default()
        };
        assert_eq!(resumed(1..=9, Some(3), flips.clone()).await, [4, 6, 8, 10]);
        assert_eq!(resumed(1..=8, Some(3), flips).await, [4, 6, 8]);
    }

    #[tokio::test]
    async fn who_reads_too_slowly_is_told() {
        let (sender, receiver) = broadcast::channel(2);
        let live = Live::begin(EventQuery::default(), None, receiver, ring(1..=1)).unwrap();
        for id in 2..=6 {
            sender.send(event(id)).unwrap();
        }
        drop(sender);
        assert_eq!(words(live).await, [0, 5, 6]);
    }

    #[tokio::test]
    async fn events_are_written_as_browsers_read_them() {
        let word = Word::Happened(Box::new(event(7)));
        let events = [
            Ok::<_, Infallible>(word.into_event()),
            Ok(Word::Lagged.into_event()),
        ];
        let response = Sse::new(futures_util::stream::iter(events)).into_response();
        let body = axum::body::to_bytes(response.into_body(), 4096)
            .await
            .unwrap();
        let text = std::str::from_utf8(&body).unwrap();
        let json = serde_json::to_string(&event(7)).unwrap();
        assert!(!json.contains('\n'));
        assert_eq!(
            text,
            format!("id: 7\ndata: {json}\n\nevent: lagged\ndata: {{}}\n\n")
        );
    }

    #[test]
    fn filters_are_those_of_the_pages() {
        let event = examples::event();
        let ask = |change: fn(&mut EventQuery)| {
            let mut query = EventQuery::default();
            change(&mut query);
            concerns(&query, &event)
        };
        assert!(ask(|_| ()));
        assert!(ask(|query| query.search = Some("AWS-use1".to_owned())));
        assert!(ask(|query| query.search = Some("192.0.2.10:80".to_owned())));
        assert!(ask(|query| query.search = Some("shop/WEB".to_owned())));
        assert!(!ask(|query| query.search = Some("elsewhere".to_owned())));
        assert!(ask(|query| query.severity = Some(Severity::Warning)));
        assert!(!ask(|query| query.severity = Some(Severity::Critical)));
        assert!(ask(|query| query.cluster = Some("aws-use1".to_owned())));
        assert!(!ask(|query| query.cluster = Some("aws".to_owned())));
        assert!(ask(|query| query.service = Some("shop/web".to_owned())));
        assert!(!ask(|query| query.service = Some("shop/we".to_owned())));
        assert!(!ask(|query| query.kind = Some(EventKind::Drain)));
    }
}
