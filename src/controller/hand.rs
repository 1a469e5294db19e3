//! The operator's hand in the controller: records in, states and progress out.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tracing::info;

use super::drains::{DrainWatch, OwnDrains, Workers};
use super::journal::{Event, Journal, Kind, Weightiness};
use super::operators::Operators;
use super::withdrawn::Withdrawn;
use crate::inventory::{Dirty, Inventory};
use crate::model::{
    EndpointIndex, EndpointState, Generation, Intent, OperatorRecord, OperatorRecords, Phase,
    RecordId, WallTime,
};
use crate::snapshot::{Snapshot, UsableTable};
use crate::telemetry::wall_time;

/// Longest wait for the next due time: the wall clock may be set meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// What operators say, how far it is, and what was told of it.
#[derive(Debug)]
pub(super) struct Hand {
    /// All records.
    pub(super) records: OperatorRecords,
    /// Drains of clusters that are leaving: this node's own.
    pub(super) leaving: OperatorRecords,
    operators: Operators,
    /// States may have operators' bits in them.
    is_laid: bool,
    drains: Watching,
    departures: Watching,
    phases: BTreeMap<RecordId, Phase>,
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
    fn new(workers: &Workers) -> (Self, watch::Receiver<OwnDrains>) {
        let (progress, watched) = watch::channel(OwnDrains::default());
        let drains = DrainWatch::new(Workers::clone(workers));
        (Self { drains, progress }, watched)
    }

    /// Follows the drains of records into a new snapshot.
    fn follow(
        &mut self,
        records: &OperatorRecords,
        tables: (&Inventory, &Snapshot),
        now: WallTime,
        fresh: bool,
    ) {
        let was = !self.drains.is_empty();
        self.drains.follow(records, tables, now, fresh);
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
        let (drains, of_drains) = Watching::new(workers);
        let (departures, of_departures) = Watching::new(workers);
        let hand = Self {
            records: OperatorRecords::default(),
            leaving: OperatorRecords::default(),
            operators: Operators::default(),
            is_laid: false,
            drains,
            departures,
            phases: BTreeMap::new(),
            journal,
        };
        (hand, [of_drains, of_departures])
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
        self.tell(now);
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
        self.follow(tables, now, false);
    }

    /// Follows the drains into a new snapshot.
    pub(super) fn follow(&mut self, tables: (&Inventory, &Snapshot), now: WallTime, fresh: bool) {
        self.drains.follow(&self.records, tables, now, fresh);
        self.departures.follow(&self.leaving, tables, now, fresh);
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
    fn tell(&mut self, now: WallTime) {
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
    }

    /// Logs and records where a record stands now.
    fn tell_of(&self, record: &OperatorRecord, phase: Phase, now: WallTime) {
        let target = &record.target;
        let (what, kind) = match record.intent {
            Intent::Drain => ("Drain", Kind::Drain),
            Intent::ForceUp => ("Force up", Kind::Force),
            Intent::ForceDown => ("Force down", Kind::Force),
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
