//! What was said of what stands, and what is to be said next.
//!
//! ```text
//!            stands for `hold`            said                    gone            again, not before REPEAT
//!   (nothing) ---------------> to be said ----> said and standing -----> lapsed -------------------------> to be said
//!                                   ^                 | a warning, after REFRESH
//!                                   '-----------------'
//! ```
//!
//! Events expire after an hour. A warning that stands is said again before that; the same Event is counted up, none is
//! written beside it. A node that takes over does not know what the one before it said: it says all that stands once more, and the
//! server, who has an Event of that name, is asked how often it was said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::bucket::{Bucket, Rate};
use super::statement::Statement;
use crate::inventory::ObjectRef;
use crate::model::Moment;

/// Events of a member: 5 a second, and 25 at once.
const EVENTS: Rate = Rate {
    burst: 25,
    every: Duration::from_millis(200),
};
/// Events of one object, as client-go limits them: whoever changes an annotation all the time floods nobody.
const OF_OBJECT: Rate = Rate {
    burst: 25,
    every: Duration::from_secs(300),
};
/// A warning that stands is said again after so long: twice in the hour after which Events expire.
const REFRESH: Duration = Duration::from_secs(30 * 60);
/// One that another node said was said at some time in that: half of it.
const REFRESH_OTHERS: Duration = Duration::from_secs(15 * 60);
/// What was gone and stands again is said again after so long since it was said.
const REPEAT: Duration = Duration::from_secs(5 * 60);
/// What was said and is gone is remembered for so long: as the Event is.
const MEMORY: Duration = Duration::from_secs(3600);
/// Statements that are remembered, at most.
const MAX_ENTRIES: usize = 10_000;
/// What failed is tried again after so long, doubled with each failure up to the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));

/// What was said.
#[derive(Clone, Copy, Debug)]
struct Said {
    /// When.
    at: Moment,
    /// How often, as the Event counts.
    count: u32,
    /// Until it is said again though it stood all the time.
    refresh: Duration,
    /// It was gone since.
    has_lapsed: bool,
}

/// One statement.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Since when it stands; `None`: it does not.
    since: Option<Moment>,
    /// When it was seen standing last.
    seen: Moment,
    said: Option<Said>,
    /// Not before, because it failed.
    retry: Moment,
    failures: u32,
}

impl Entry {
    /// Gives when it is to be said; `None`: it is not.
    fn due(&self, statement: &Statement) -> Option<Moment> {
        let begun = self.since?.after(statement.reason.hold());
        let due = match self.said {
            None => begun,
            Some(said) if said.has_lapsed => begun.max(said.at.after(REPEAT)),
            Some(said) if statement.reason.is_warning() => said.at.after(said.refresh),
            Some(_) => return None,
        };
        Some(due.max(self.retry))
    }
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::source::kubernetes) enum Next {
    /// Say this. It was said so often before, as far as this node knows.
    Say(Arc<Statement>, u32),
    /// Ask again then.
    At(Moment),
    /// Nothing, until something else stands.
    Never,
}

/// Keeps what stands of one member, and what was said of it.
#[derive(Debug, Default)]
pub(in crate::source::kubernetes) struct Ledger {
    entries: BTreeMap<Arc<Statement>, Entry>,
    bucket: Bucket,
    spent: BTreeMap<ObjectRef, Bucket>,
    /// The namespace that had the last turn.
    turn: Arc<str>,
    /// When this node became the one who writes: what stood before was perhaps said by another.
    leads: Moment,
    left_out: usize,
}

impl Ledger {
    /// Takes all that stands now.
    pub(in crate::source::kubernetes) fn take(&mut self, standing: &[Arc<Statement>], now: Moment) {
        let mut is_standing: BTreeSet<&Arc<Statement>> = BTreeSet::new();
        // Those that are known stay, whatever comes.
        let known = |statement: &&Arc<Statement>| self.entries.contains_key(*statement);
        is_standing.extend(standing.iter().filter(known));
        let mut fresh: BTreeSet<&Arc<Statement>> = BTreeSet::new();
        fresh.extend(standing.iter().filter(|statement| !known(statement)));
        for (statement, entry) in &mut self.entries {
            if is_standing.contains(statement) {
                entry.since = entry.since.or(Some(now));
                entry.seen = now;
            } else {
                entry.since = None;
                if let Some(said) = &mut entry.said {
                    said.has_lapsed = true;
                }
            }
        }
        self.forget(now, fresh.len());
        let room = MAX_ENTRIES.saturating_sub(self.entries.len());
        self.left_out = fresh.len().saturating_sub(room);
        for statement in fresh.into_iter().take(room) {
            let entry = Entry {
                since: Some(now),
                seen: now,
                ..Entry::default()
            };
            self.entries.insert(Arc::clone(statement), entry);
        }
        let entries = &self.entries;
        let objects: BTreeSet<&ObjectRef> = entries.keys().map(|one| &one.object).collect();
        self.spent.retain(|object, _| objects.contains(object));
    }

    /// Forgets what does not stand and is old, or was never said; more of it where others want its room.
    fn forget(&mut self, now: Moment, wanted: usize) {
        self.entries.retain(|_, entry| {
            let is_remembered = entry.said.is_some() && now.since(entry.seen) < MEMORY;
            entry.since.is_some() || is_remembered
        });
        let room = MAX_ENTRIES.saturating_sub(self.entries.len());
        let lacking = wanted.saturating_sub(room);
        if lacking > 0 {
            let lapsed = self.entries.iter();
            let lapsed = lapsed.filter(|(_, entry)| entry.since.is_none());
            let mut lapsed: Vec<_> = lapsed.map(|(one, entry)| (entry.seen, one)).collect();
            lapsed.sort();
            let oldest = lapsed.into_iter().take(lacking);
            let oldest: Vec<_> = oldest.map(|(_, one)| Arc::clone(one)).collect();
            for statement in oldest {
                self.entries.remove(&statement);
            }
        }
    }

    /// Gives what is to be done next: what is due, one namespace after the other, and of each what is new first, warnings before the rest.
    pub(in crate::source::kubernetes) fn next(&mut self, now: Moment) -> Next {
        let mut soonest: Option<Moment> = None;
        let mut best = None;
        for (statement, entry) in &self.entries {
            let Some(due) = entry.due(statement) else {
                continue;
            };
            let object = self.spent.get(&statement.object);
            let due = object.map_or(due, |spent| due.max(spent.ready(OF_OBJECT, now)));
            soonest = Some(soonest.map_or(due, |other| other.min(due)));
            if due > now {
                continue;
            }
            let is_old = entry.since.is_none_or(|since| since < self.leads);
            let namespace = &statement.object.namespace;
            let rank = (
                (*namespace <= self.turn, namespace),
                (is_old, !statement.reason.is_warning()),
                entry.since,
            );
            if best.as_ref().is_none_or(|(other, _, _)| rank < *other) {
                best = Some((rank, statement, entry));
            }
        }
        let Some(soonest) = soonest else {
            return Next::Never;
        };
        let ready = self.bucket.ready(EVENTS, now);
        match best {
            Some((_, statement, entry)) if ready <= now => {
                let statement = Arc::clone(statement);
                let said = entry.said.map_or(0, |said| said.count);
                self.turn = Arc::clone(&statement.object.namespace);
                self.bucket.take(EVENTS, now);
                let spent = self.spent.entry(statement.object.clone()).or_default();
                spent.take(OF_OBJECT, now);
                Next::Say(statement, said)
            }
            _ => Next::At(soonest.max(ready)),
        }
    }

    /// Notes that it was said, by this node or, as was found, by another; so often by now.
    pub(in crate::source::kubernetes) fn said(
        &mut self,
        statement: &Arc<Statement>,
        (count, by_others): (u32, bool),
        now: Moment,
    ) {
        if let Some(entry) = self.entries.get_mut(statement) {
            entry.failures = 0;
            entry.said = Some(Said {
                at: now,
                count: count.max(1),
                refresh: if by_others { REFRESH_OTHERS } else { REFRESH },
                has_lapsed: entry.since.is_none(),
            });
        }
    }

    /// Notes that the Event is there no more: it is to be written anew.
    pub(in crate::source::kubernetes) fn lost(&mut self, statement: &Arc<Statement>) {
        if let Some(entry) = self.entries.get_mut(statement) {
            entry.said = None;
        }
    }

    /// Notes that it could not be said.
    pub(in crate::source::kubernetes) fn failed(
        &mut self,
        statement: &Arc<Statement>,
        now: Moment,
    ) {
        if let Some(entry) = self.entries.get_mut(statement) {
            let (first, longest) = RETRY;
            let pause = first * (1 << entry.failures.min(8));
            entry.failures = entry.failures.saturating_add(1);
            entry.retry = now.after(pause.min(longest));
        }
    }

    /// Notes that this node is the one who writes from now on.
    pub(in crate::source::kubernetes) fn lead(&mut self, now: Moment) {
        self.leads = now;
    }

    /// Notes that it is not: what was said will be unknown by the time that it is again.
    pub(in crate::source::kubernetes) fn follow(&mut self) {
        for entry in self.entries.values_mut() {
            entry.said = None;
        }
    }

    /// Counts the statements that stand and were not said.
    pub(in crate::source::kubernetes) fn waiting(&self) -> usize {
        let waits = |entry: &&Entry| entry.since.is_some() && entry.said.is_none();
        self.entries.values().filter(waits).count()
    }

    /// Counts the statements that found no room.
    pub(in crate::source::kubernetes) fn left_out(&self) -> usize {
        self.left_out
    }
}
