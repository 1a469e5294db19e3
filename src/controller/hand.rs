//! The operator's hand in the controller: records in, states and progress out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tracing::info;

use super::drains::{DrainWatch, News, OwnDrains, Workers};
use super::journal::{Event, Journal, Kind, Weightiness};
use super::operators::Operators;
use super::withdrawn::Withdrawn;
use crate::inventory::{Dirty, Inventory};
use crate::model::{
    EndpointIndex, EndpointState, Generation, Intent, OperatorRecord, OperatorRecords, Phase,
    RecordId, WallTime,
};
use crate::snapshot::{Challenges, Snapshot, UsableTable};
use crate::telemetry::wall_time;

/// What ids of drains by annotations of clusters begin with.
pub const ANNOTATED_ID: &str = "annotated-";

/// Longest wait for the next due time: the wall clock may be set meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// What operators say, how far it is, and what was told of it.
#[derive(Debug)]
pub(super) struct Hand {
    /// All records.
    records: OperatorRecords,
    /// Drains of clusters that are leaving: this node's own.
    leaving: OperatorRecords,
    /// Those of them that somebody waits for: of clusters that leave. What annotations drain may be drained for weeks.
    waited: OperatorRecords,
    /// The challenges that stand.
    challenges: Arc<Challenges>,
    operators: Operators,
    /// States may have operators' bits in them.
    is_laid: bool,
    drains: Watching,
    departures: Watching,
    phases: BTreeMap<RecordId, Phase>,
    /// How many of those are about endpoints.
    steering: usize,
    /// Records about endpoints came that were not there.
    is_stale: bool,
    journal: Journal,
}

/// Drains that are watched, and where it is shown how far they are.
#[derive(Debug)]
struct Watching {
    drains: DrainWatch,
    progress: watch::Sender<OwnDrains>,
}

impl Watching {
    /// Makes one that watches nothing yet.
    fn new(drains: DrainWatch) -> (Self, watch::Receiver<OwnDrains>) {
        let (progress, watched) = watch::channel(OwnDrains::default());
        (Self { drains, progress }, watched)
    }

    /// Follows the drains of records into a new snapshot.
    fn follow(
        &mut self,
        records: &OperatorRecords,
        tables: (&Inventory, &Snapshot),
        now: WallTime,
        news: News<'_>,
    ) {
        let was = !self.drains.is_empty();
        self.drains.follow(records, tables, now, news);
        if was && self.drains.is_empty() {
            self.progress.send_replace(OwnDrains::default());
        }
    }

    /// Looks at how far they are.
    fn look(&mut self, oldest: Generation, tables: (&Inventory, &Snapshot), now: Instant) {
        if !self.drains.is_empty() {
            let known = self.drains.look(oldest, tables, now);
            self.progress.send_replace(known);
        }
    }
}

impl Hand {
    /// Makes one with no records, and what shows how far drains are: those of operators, and those of clusters that are leaving.
    pub(super) fn new(
        workers: &Workers,
        journal: Journal,
    ) -> (Self, [watch::Receiver<OwnDrains>; 2]) {
        let watch = || DrainWatch::new(Workers::clone(workers));
        let (drains, of_drains) = Watching::new(watch());
        // A cluster goes as soon as nothing is held.
        let (departures, of_departures) = Watching::new(watch().hasty());
        let hand = Self {
            records: OperatorRecords::default(),
            leaving: OperatorRecords::default(),
            waited: OperatorRecords::default(),
            challenges: Arc::default(),
            operators: Operators::default(),
            is_laid: false,
            drains,
            departures,
            phases: BTreeMap::new(),
            steering: 0,
            is_stale: false,
            journal,
        };
        (hand, [of_drains, of_departures])
    }

    /// Takes the drains of clusters that leave, and of those that annotations drain: see [`ANNOTATED_ID`].
    pub(super) fn leave(&mut self, records: OperatorRecords, now: WallTime) {
        self.waited = OperatorRecords::default();
        let waited = records
            .iter()
            .filter(|record| !record.id.as_str().starts_with(ANNOTATED_ID));
        for record in waited {
            self.waited.merge(OperatorRecord::clone(record), now);
        }
        self.leaving = records;
    }

    /// Takes all records as they are now.
    pub(super) fn take(&mut self, records: OperatorRecords) {
        let held = |record: &&Arc<OperatorRecord>| {
            let held = self.records.get(&record.id);
            held.is_some_and(|held| Arc::ptr_eq(held, record))
        };
        let steers = |record: &&Arc<OperatorRecord>| record.intent.steers();
        let is_new = records.iter().filter(steers).any(|record| !held(&record));
        self.is_stale |= is_new;
        self.records = records;
    }

    /// Gives the challenges that stand, as the last [`Self::catch_up`] found them.
    pub(super) fn challenges(&self) -> &Arc<Challenges> {
        &self.challenges
    }

    /// Looks at where the records stand now. Gives whether other challenges stand than before, and whether what is said of endpoints
    /// is another: that is laid over all of them, while a challenge changes no endpoint.
    pub(super) fn catch_up(&mut self, now: WallTime) -> (bool, bool) {
        let is_challenge = |record: &&Arc<OperatorRecord>| record.intent == Intent::Challenge;
        let mut challenges: Vec<&Arc<OperatorRecord>> =
            self.records.standing(now).filter(is_challenge).collect();
        // The oldest first: what is served stays so when too many come.
        challenges.sort_by_key(|record| (record.created.time, record.id.clone()));
        let challenges = Challenges::of(challenges.iter().filter_map(|record| {
            let (name, token) = record.target.challenge()?;
            Some((name.as_ref(), token.as_str()))
        }));
        let has_new = *self.challenges != challenges;
        if has_new {
            self.challenges = Arc::new(challenges);
        }
        let steering = self.records.iter().filter(|record| record.intent.steers());
        let known = |record: &Arc<OperatorRecord>| {
            self.phases.get(&record.id).copied() == Some(record.phase(now))
        };
        let mut count = 0;
        let mut steers = false;
        for record in steering {
            count += 1;
            steers |= !known(record);
        }
        let is_stale = std::mem::take(&mut self.is_stale);
        (has_new, is_stale || steers || count != self.steering)
    }

    /// Gives the time until a record begins or ends by itself, at most ten seconds; for ever where none will.
    pub(super) fn until_due(&self) -> Duration {
        let now = wall_time();
        match self.records.next_change(now) {
            None => Duration::MAX,
            Some(due) => Duration::from_millis(due.since(now)).min(MAX_WAIT),
        }
    }

    /// Tells whether a drain began that is not over.
    pub(super) fn is_watching(&self) -> bool {
        !self.drains.drains.is_empty() || !self.departures.drains.is_empty()
    }

    /// Reads the records anew, and tells entries apart as they need. Gives what became dirty, and which entry took which one's
    /// place.
    pub(super) fn refresh(
        &mut self,
        inventory: &mut Inventory,
        now: WallTime,
    ) -> (Dirty, Vec<(EndpointIndex, EndpointIndex)>) {
        self.operators = Operators::of([&self.records, &self.leaving], inventory, now);
        inventory.isolate(self.operators.isolation())
    }

    /// Lays what operators say over states. Those of entries that went meanwhile are left out: whoever gets such an entry begins
    /// anew.
    pub(super) fn lay_over(
        &mut self,
        mut states: Vec<(EndpointIndex, EndpointState)>,
        tables: (&Inventory, &UsableTable),
        all: bool,
    ) -> Vec<(EndpointIndex, EndpointState)> {
        states.retain(|(index, _)| tables.0.endpoint(*index).is_some());
        let is_empty = self.operators.is_empty();
        if is_empty && !self.is_laid {
            return states;
        }
        // Nobody says anything any more: the bits are taken out of all states once.
        self.is_laid = !is_empty || !all;
        self.operators.lay_over(states, tables, all)
    }

    /// Watches these endpoints, which their own objects drain.
    pub(super) fn watch_withdrawn(
        &mut self,
        withdrawn: &[Withdrawn],
        tables: (&Inventory, &Snapshot),
        now: WallTime,
    ) {
        self.drains.drains.withdraw(withdrawn, now);
        self.follow(tables, now, News::States);
    }

    /// Follows the drains into a new snapshot.
    pub(super) fn follow(
        &mut self,
        tables: (&Inventory, &Snapshot),
        now: WallTime,
        news: News<'_>,
    ) {
        self.drains.follow(&self.records, tables, now, news);
        self.departures.follow(&self.waited, tables, now, news);
    }

    /// Looks at how far the drains are.
    pub(super) fn look(
        &mut self,
        oldest: Generation,
        tables: (&Inventory, &Snapshot),
        now: Instant,
    ) {
        self.drains.look(oldest, tables, now);
        self.departures.look(oldest, tables, now);
    }

    /// Logs and records what begins and ends.
    pub(super) fn tell(&mut self, now: WallTime) {
        let mut phases = BTreeMap::new();
        for record in self.records.iter() {
            let phase = record.phase(now);
            phases.insert(record.id.clone(), phase);
            let before = self.phases.get(&record.id);
            let is_news = match before {
                None => phase != Phase::Over,
                Some(before) => *before != phase,
            };
            if is_news {
                self.tell_of(record, phase, now);
            }
        }
        self.phases = phases;
        let all = self.records.iter();
        self.steering = all.filter(|record| record.intent.steers()).count();
    }

    /// Logs and records where a record stands now.
    fn tell_of(&self, record: &OperatorRecord, phase: Phase, now: WallTime) {
        let target = &record.target;
        let (what, kind) = match record.intent {
            Intent::Drain => ("Drain", Kind::Drain),
            Intent::ForceUp => ("Force up", Kind::Force),
            Intent::ForceDown => ("Force down", Kind::Force),
            Intent::Challenge => ("Challenge", Kind::Challenge),
        };
        let (verb, said) = match (phase, &record.ended) {
            (Phase::Announced, _) => ("is announced", Some(&record.created)),
            (Phase::Active, _) => ("is in force", Some(&record.created)),
            (Phase::Over, Some(said)) => ("was ended", Some(said)),
            (Phase::Over, None) => ("ran out", None),
        };
        let by = said.map_or_else(String::new, |said| {
            format!(", by {}: {}", said.actor, said.reason)
        });
        info!(id = %record.id, %target, "{what} {verb}{by}");
        let weight = Weightiness::Info;
        let mut event = Event::new(kind, weight, format!("{what} of {target} {verb}{by}"));
        event.clusters = target
            .cluster()
            .map(ToString::to_string)
            .into_iter()
            .collect();
        event.services = target
            .service()
            .map(ToString::to_string)
            .into_iter()
            .collect();
        self.journal.record(event, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{OperatorTarget, Said};

    fn record(id: &str, target: OperatorTarget, intent: Intent, end: u64) -> OperatorRecord {
        OperatorRecord {
            id: id.parse().unwrap(),
            target,
            intent,
            created: Said {
                time: WallTime(10),
                actor: "ann".into(),
                reason: "certificate".into(),
            },
            starts: WallTime(10),
            expires: Some(WallTime(end)),
            ended: None,
        }
    }

    fn challenge(id: &str, token: &str, end: u64) -> OperatorRecord {
        let target = OperatorTarget::Challenge {
            name: "web.x".parse().unwrap(),
            token: token.parse().unwrap(),
        };
        record(id, target, Intent::Challenge, end)
    }

    #[test]
    fn challenges_come_and_run_out_by_the_clock_and_touch_no_endpoint() {
        let (mut hand, _) = Hand::new(&Workers::default(), Journal::default());
        let mut records = OperatorRecords::default();
        let owner = "_acme-challenge.web.x"
            .parse::<crate::model::LowerName>()
            .unwrap();
        let count = |hand: &Hand| {
            let rrset = hand.challenges().get(owner.as_ref());
            rrset.map_or(0, crate::zone::Rrset::count)
        };
        let mut step = |records: &OperatorRecords, now: u64, wanted: (bool, bool), left| {
            hand.take(records.clone());
            assert_eq!(hand.catch_up(WallTime(now)), wanted, "at {now}");
            assert_eq!(count(&hand), left, "at {now}");
            hand.tell(WallTime(now));
            // Nothing is said twice.
            assert_eq!(hand.catch_up(WallTime(now)), (false, false));
        };
        step(&records, 20, (false, false), 0);
        records.merge(challenge("a", "one", 100), WallTime(20));
        step(&records, 21, (true, false), 1);
        records.merge(challenge("b", "two", 200), WallTime(22));
        step(&records, 23, (true, false), 2);
        // The same token by another record: nothing else is found there.
        records.merge(challenge("c", "two", 150), WallTime(23));
        step(&records, 24, (false, false), 2);
        let drain = OperatorTarget::Cluster("a".parse().unwrap());
        records.merge(record("d", drain, Intent::Drain, 300), WallTime(30));
        step(&records, 31, (false, true), 2);
        step(&records, 99, (false, false), 2);
        step(&records, 100, (true, false), 1);
        step(&records, 150, (false, false), 1);
        step(&records, 200, (true, false), 0);
        step(&records, 300, (false, true), 0);
    }
}
