//! The ring behind `events`: what happened on this node, newest last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;

use crate::model::{Verdict, WallTime};

/// Events kept.
pub const KEPT_EVENTS: usize = 10_000;
/// Events that a slow reader of the live stream may lag behind; then it is told so, and reads the ring.
const LAG: usize = 1024;
/// Longest text of an event in octets; more is cut.
const MAX_TEXT: usize = 1024;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A verdict flipped.
    Flip,
    /// A service has nothing up, or something again.
    Service,
    /// A publish of changed input.
    Publish,
    /// A drain was announced, began, became safe or ended.
    Drain,
    /// A force was set or ended.
    Force,
    /// A challenge of a certificate authority was set or ended.
    Challenge,
    /// Input was refused, or is no longer.
    Refusal,
    /// Two claims to one name.
    Conflict,
    /// A source or a peer is out of reach, or back.
    Source,
}

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weightiness {
    /// Ordinary.
    Info,
    /// Unexpected, survived.
    Warning,
    /// Somebody must act.
    Critical,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Counts up, from start to start too.
    pub id: u64,
    /// When.
    pub time: WallTime,
    /// What.
    pub kind: Kind,
    /// How much it matters.
    pub weight: Weightiness,
    /// The clusters it is about, the first few.
    pub clusters: Vec<String>,
    /// The services it is about, the first few.
    pub services: Vec<String>,
    /// All services it is about, counted; `None` where they were not searched.
    pub service_count: Option<u64>,
    /// The target probed.
    pub target: Option<String>,
    /// The verdict before, of a flip.
    pub before: Option<Verdict>,
    /// One sentence without a period.
    pub text: String,
}

impl Event {
    /// Begins an event; id and time are given when it is recorded.
    #[must_use]
    pub fn new(kind: Kind, weight: Weightiness, text: impl Into<String>) -> Self {
        Self {
            id: 0,
            time: WallTime::default(),
            kind,
            weight,
            clusters: Vec::new(),
            services: Vec::new(),
            service_count: None,
            target: None,
            before: None,
            text: text.into(),
        }
    }
}

#[derive(Debug)]
struct Ring {
    next: u64,
    events: VecDeque<Arc<Event>>,
}

/// The events of this node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Journal {
    ring: Arc<Mutex<Ring>>,
    live: broadcast::Sender<Arc<Event>>,
}

impl Default for Journal {
    /// Counts from 1.
    fn default() -> Self {
        Self::counting_from(1)
    }
}

/// Ids that one start may use until those of a start a millisecond later.
const IDS_A_MILLISECOND: u64 = 1000;

impl Journal {
    /// Begins the journal of a start at this time: as long as the clock does not go back, its ids are above those of every start
    /// before it, so whoever resumes sees a gap and no event twice. They stay below 2^53, which is what JavaScript counts to.
    #[must_use]
    pub fn of_start(now: WallTime) -> Self {
        Self::counting_from(now.0.max(1).saturating_mul(IDS_A_MILLISECOND))
    }

    fn counting_from(next: u64) -> Self {
        Self {
            ring: Arc::new(Mutex::new(Ring {
                next,
                events: VecDeque::new(),
            })),
            live: broadcast::channel(LAG).0,
        }
    }

    /// Records an event at a moment; the oldest goes when the ring is full.
    pub fn record(&self, mut event: Event, now: WallTime) {
        let mut ring = self.lock();
        event.id = ring.next;
        event.time = now;
        if event.text.len() > MAX_TEXT {
            let end = (0..=MAX_TEXT)
                .rev()
                .find(|&at| event.text.is_char_boundary(at));
            event.text.truncate(end.unwrap_or(0));
        }
        ring.next += 1;
        let event = Arc::new(event);
        if ring.events.len() >= KEPT_EVENTS {
            ring.events.pop_front();
        }
        ring.events.push_back(Arc::clone(&event));
        // Sent under the lock: readers see ids ascend. Nobody may listen.
        let _ = self.live.send(event);
    }

    /// Lists what is kept, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Event>> {
        self.lock().events.iter().cloned().collect()
    }

    /// Lists what is kept with a higher id, oldest first.
    #[must_use]
    pub fn after(&self, id: u64) -> Vec<Arc<Event>> {
        let ring = self.lock();
        let from = ring.events.partition_point(|event| event.id <= id);
        ring.events.range(from..).cloned().collect()
    }

    /// Gives the id of the newest event; one less than the first will have when there is none.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.lock().next - 1
    }

    /// Listens to what happens from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.live.subscribe()
    }

    /// Locks the ring: for a few steps, or one copy of pointers.
    fn lock(&self) -> MutexGuard<'_, Ring> {
        // Each operation on the ring is whole or was not begun.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_later_start_are_higher() {
        let event = || Event::new(Kind::Publish, Weightiness::Info, "x");
        let (first, second) = (
            Journal::of_start(WallTime(1_795_000_000_000)),
            Journal::of_start(WallTime(1_795_000_000_100)),
        );
        for _ in 0..KEPT_EVENTS {
            first.record(event(), WallTime(7));
        }
        let last = first.newest();
        assert!(second.newest() > last && second.after(last).is_empty());
        second.record(event(), WallTime(7));
        assert_eq!(second.after(last).len(), 1);
        assert!(second.newest() > last + 1, "a gap is seen");
        assert!(Journal::of_start(WallTime(u64::from(u32::MAX) * 1000)).newest() < 1 << 53);
    }

    #[test]
    fn the_newest_are_kept_and_can_be_resumed() {
        let journal = Journal::default();
        let mut live = journal.subscribe();
        for number in 0..KEPT_EVENTS + 5 {
            let text = format!("event {number}");
            let event = Event::new(Kind::Publish, Weightiness::Info, text);
            journal.record(event, WallTime(7));
        }
        let all = journal.all();
        assert_eq!(all.len(), KEPT_EVENTS);
        assert_eq!(all[0].id, 6);
        assert_eq!(journal.newest(), 10_005);
        let rest: Vec<u64> = journal.after(10_003).iter().map(|event| event.id).collect();
        assert_eq!(rest, [10_004, 10_005]);
        assert!(matches!(
            live.try_recv(),
            Err(broadcast::error::TryRecvError::Lagged(_))
        ));
        let long = Event::new(Kind::Refusal, Weightiness::Warning, "é".repeat(MAX_TEXT));
        journal.record(long, WallTime(8));
        assert_eq!(journal.all().last().unwrap().text.len(), MAX_TEXT);
    }
}
