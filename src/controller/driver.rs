//! The loop: wait, take what came, build, publish.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{trace_span, warn};

use super::coalesce::Coalesce;
use super::command::{COMMANDS, Command, ControllerHandle, Load, MonitorChange};
use super::drains::{News, Workers};
use super::flips::{FlipLog, still_judged};
use super::hand::Hand;
use super::journal::{Event, Journal, Kind, Weightiness};
use super::last_good::Memory;
use super::proofs::Proofs;
use super::recalled::Recalled;
use super::status::{KEPT_REJECTIONS, Status};
use super::told::ToldRefusals;
use crate::geo::GeoDb;
use crate::health::Flip;
use crate::inventory::{Change, Dirty, Inventory, Shard, ShardChange};
use crate::model::{
    ClusterIndex, EndpointIndex, EndpointState, Groups, Moment, OperatorRecords, Rejection, counted,
};
use crate::snapshot::{Inputs, Settings, Snapshot, SnapshotCell, build};
use crate::steering::States;
use crate::telemetry::{Histogram, SPANS, wall_time};
use crate::zone::ZoneSet;

/// Most flips and commands taken before one publish, so that a flood cannot put it off for ever.
const MAX_TAKEN: usize = 4096;

/// Most changes of shards that are gathered before they are merged: some tenths of a second of work.
const MAX_GATHERED: usize = 20_000;

/// How often retired snapshots and drains are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// The controller's other ends.
#[derive(Debug)]
pub struct Channels {
    /// Flips from the prober, in batches.
    pub flips: mpsc::Receiver<Vec<Flip>>,
    /// What should be watched; the controller waits when it is full.
    pub monitors: mpsc::Sender<MonitorChange>,
    /// The counters of the workers, once there are any.
    pub workers: Workers,
    /// Where events go.
    pub journal: Journal,
}

/// The single writer.
#[derive(Debug)]
pub struct Controller {
    cell: Arc<SnapshotCell>,
    pub(super) channels: Channels,
    commands: mpsc::Receiver<Command>,
    pub(super) status: watch::Sender<Arc<Status>>,
    pub(super) inventory: Inventory,
    pub(super) zones: Arc<ZoneSet>,
    pub(super) geo: Arc<GeoDb>,
    groups: Arc<Groups>,
    settings: Arc<Settings>,
    pub(super) current: Arc<Snapshot>,
    retired: Vec<Arc<Snapshot>>,
    recalled: Recalled,
    coalesce: Coalesce,
    started: Instant,
    pub(super) flips: u64,
    flip_log: FlipLog,
    proofs: Proofs,
    hand: Hand,
    pub(super) publish_times: Arc<Histogram>,
    pending: Pending,
    pub(super) told: ToldRefusals,
}

/// What came since the last publish.
#[derive(Debug, Default)]
struct Pending {
    /// What clusters offer, not merged yet. Many clusters say much at once when they are read for the first time.
    gathered: Vec<(ClusterIndex, Vec<ShardChange>)>,
    dirty: Dirty,
    states: Vec<(EndpointIndex, EndpointState)>,
    waiting: Vec<oneshot::Sender<Vec<Rejection>>>,
    /// What probes changed, for the log.
    observed: Vec<Flip>,
    any: bool,
    /// Names may have been claimed or given back: the list of refusals is made anew.
    whole: bool,
    /// What operators say, or what they speak of, changed.
    operators: bool,
    /// What operators set as challenges changed.
    challenges: bool,
}

impl Controller {
    /// Makes the controller and its handle. `memory` has the verdicts from before a restart: endpoints begin with them.
    #[must_use]
    pub fn new(
        cell: Arc<SnapshotCell>,
        channels: Channels,
        memory: &Memory,
    ) -> (Self, ControllerHandle) {
        let (sender, commands) = mpsc::channel(COMMANDS);
        let (status, watched) = watch::channel(Arc::new(Status::default()));
        let current = cell.reader().load_owned();
        let (hand, [drains, departures]) = Hand::new(&channels.workers, channels.journal.clone());
        let journal = channels.journal.clone();
        let controller = Self {
            cell,
            channels,
            commands,
            status,
            inventory: Inventory::default(),
            zones: Arc::default(),
            geo: Arc::default(),
            groups: Arc::default(),
            settings: Arc::default(),
            current,
            retired: Vec::new(),
            recalled: Recalled::of(memory),
            coalesce: Coalesce::default(),
            started: Instant::now(),
            flips: 0,
            flip_log: FlipLog::default(),
            proofs: Proofs::default(),
            hand,
            publish_times: Arc::default(),
            pending: Pending::default(),
            told: ToldRefusals::default(),
        };
        (
            controller,
            ControllerHandle {
                commands: sender,
                status: watched,
                drains,
                departures,
                journal,
            },
        )
    }

    /// Lets it begin with what operators said before the start: the first configuration is published with it.
    #[must_use]
    pub fn with_operators(mut self, records: OperatorRecords) -> Self {
        self.hand.take(records);
        self
    }

    /// Lets it begin with clusters that are leaving, and with those that are observed.
    #[must_use]
    pub fn with_leaving(
        mut self,
        leaving: OperatorRecords,
        observed: BTreeSet<ClusterIndex>,
    ) -> Self {
        self.hand.leave(leaving, wall_time());
        // Nothing is there yet that it could touch.
        self.inventory.apply(Change::Observed(observed));
        self
    }

    /// Runs until the token falls or every handle is gone.
    pub async fn run(mut self, token: CancellationToken) {
        loop {
            // Cancel-safe: all arms only receive.
            tokio::select! {
                () = token.cancelled() => return,
                Some(flips) = self.channels.flips.recv() => self.take_flips(&flips),
                command = self.commands.recv() => match command {
                    Some(command) => self.take_command(command).await,
                    None => return,
                },
                () = tokio::time::sleep(self.hand.until_due()) => self.catch_up(),
                () = tokio::time::sleep_until(self.told.due()), if self.told.is_stale => {
                    self.tell_refusals();
                    continue;
                }
                () = tokio::time::sleep(LOOK), if !self.retired.is_empty() || self.hand.is_watching() => {
                    self.drop_retired();
                    self.look_at_drains();
                    continue;
                }
            }
            self.take_more().await;
            let wait = self.coalesce.wait(self.now());
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
                self.take_more().await;
            }
            self.merge_gathered().await;
            self.lay_operators().await;
            self.publish();
        }
    }

    /// Gives the time since the start.
    fn now(&self) -> Moment {
        Moment(self.started.elapsed())
    }

    /// Takes what else has come already.
    async fn take_more(&mut self) {
        for _ in 0..MAX_TAKEN {
            let gathered = self.pending.gathered.iter();
            if gathered.map(|(_, changes)| changes.len()).sum::<usize>() >= MAX_GATHERED {
                return;
            }
            if let Ok(flips) = self.channels.flips.try_recv() {
                self.take_flips(&flips);
            } else if let Ok(command) = self.commands.try_recv() {
                self.take_command(command).await;
            } else {
                return;
            }
        }
    }

    /// Notes new endpoint states.
    fn take_flips(&mut self, flips: &[Flip]) {
        for flip in flips {
            let endpoints = still_judged(flip, &self.inventory);
            if endpoints.is_empty() {
                continue;
            }
            self.proofs.note(flip, &endpoints, &self.inventory);
            let state = EndpointState::UP
                .with_verdict(flip.verdict)
                .with_doubt(flip.in_doubt)
                .with_refused(flip.refused.is_some());
            let states = endpoints.iter().map(|&endpoint| (endpoint, state));
            self.pending.states.extend(states);
            self.pending.any = true;
            // A verdict that was taken over, by another check or after a restart, is no flip.
            if flip.observed && flip.verdict != flip.before {
                self.flips += 1;
                let flip = flip.clone();
                self.pending.observed.push(Flip { endpoints, ..flip });
            }
        }
    }

    /// Carries one command out, up to the publish.
    async fn take_command(&mut self, command: Command) {
        let command = match command {
            Command::Change(Change::Shards(changes)) => {
                self.pending.gathered.extend(changes);
                return;
            }
            command => command,
        };
        self.merge_gathered().await;
        self.pending.any |= !matches!(
            command,
            Command::Read(_) | Command::Change(_) | Command::Withdrawn(_) | Command::Operators(_)
        );
        match command {
            Command::Read(read) => tokio::task::block_in_place(|| read(&self.inventory)),
            Command::Operators(records) => {
                self.hand.take(records);
                self.catch_up();
            }
            Command::Leaving(records) => {
                self.hand.leave(records, wall_time());
                self.pending.operators = true;
            }
            Command::Withdrawn(withdrawn) => {
                let tables = (&self.inventory, &*self.current);
                self.hand.watch_withdrawn(&withdrawn, tables, wall_time());
            }
            Command::Geo(geo) => {
                self.geo = geo;
                self.pending.whole = true;
            }
            Command::Zones(zones) => {
                self.zones = zones;
                self.pending.whole = true;
            }
            Command::Change(change) => self.take_change(change).await,
            Command::Load(load, done) => {
                // Two loads never share a publish: the second may take away what the first one made dirty.
                if !self.pending.waiting.is_empty() {
                    self.lay_operators().await;
                    self.publish();
                    self.pending.any = true;
                }
                self.pending.waiting.push(done);
                self.take_load(*load).await;
            }
        }
    }

    /// Applies a whole configuration to the inventory.
    async fn take_load(&mut self, load: Load) {
        self.pending.whole = true;
        self.pending.operators = true;
        self.zones = load.zones;
        self.geo = load.geo;
        self.groups = load.groups;
        self.settings = load.settings;
        let inventory = &mut self.inventory;
        let (clusters, services) = (load.clusters, load.services);
        let (federation, held) = (load.federation, load.held);
        let span = trace_span!(target: SPANS, "load", services = services.len(), clusters = clusters.len());
        // A million services take a second: other tasks of this thread move elsewhere meanwhile.
        let dirty = tokio::task::block_in_place(|| {
            let _inside = span.enter();
            let mut dirty = inventory.apply(Change::Clusters(clusters));
            for (cluster, facts) in held.facts {
                dirty.merge(inventory.apply(Change::Facts(cluster, facts)));
            }
            dirty.merge(inventory.apply(Change::Owners(held.owners)));
            dirty.merge(inventory.apply(Change::Rules(federation)));
            dirty.merge(inventory.apply(Change::Replace(services)));
            if !held.aged.is_empty() {
                dirty.merge(inventory.apply(Change::Aged(held.aged)));
            }
            let upsert = |shard| ShardChange::Upsert(Box::new(shard));
            let of_cluster = |(cluster, shards): (ClusterIndex, Vec<Shard>)| {
                (cluster, shards.into_iter().map(upsert).collect())
            };
            let shards = held.shards.into_iter().map(of_cluster).collect();
            dirty.merge(inventory.apply(Change::Shards(shards)));
            dirty.merge(inventory.apply(Change::Owners(Vec::new())));
            dirty
        });
        self.absorb(dirty).await;
    }

    /// Merges what clusters offered since the last time.
    async fn merge_gathered(&mut self) {
        let gathered = std::mem::take(&mut self.pending.gathered);
        if !gathered.is_empty() {
            self.take_change(Change::Shards(gathered)).await;
        }
    }

    /// Takes what a member cluster says.
    async fn take_change(&mut self, change: Change) {
        let ages = matches!(change, Change::Aged(_));
        let inventory = &mut self.inventory;
        let dirty = tokio::task::block_in_place(|| inventory.apply(change));
        if ages {
            self.renew_unprobed();
        }
        self.pending.any |= !dirty.is_empty();
        self.pending.operators |= dirty.clusters;
        self.pending.whole |= dirty.clusters;
        self.absorb(dirty).await;
    }

    /// Lays ages anew over the entries that may not be probed: whom nobody judges only the API of its cluster confirms.
    fn renew_unprobed(&mut self) {
        let held = self.current.usable();
        let end = u32::try_from(self.inventory.endpoint_count()).unwrap_or(u32::MAX);
        let all = (0..end).map(EndpointIndex);
        let unprobed = all.map(|index| (index, held.state(index)));
        let unprobed = unprobed.filter(|(_, state)| state.is_refused());
        self.pending.states.splice(0..0, unprobed);
        self.pending.any = true;
    }

    /// Takes up what became dirty: new entries begin as their target was remembered, or as those were whose place they took,
    /// else Up.
    async fn absorb(&mut self, dirty: Dirty) {
        self.proofs.forget(&dirty.unwatch);
        let states = &mut self.pending.states;
        states.extend(
            dirty
                .conditioned
                .iter()
                .map(|&index| (index, EndpointState::UP)),
        );
        for (endpoint, target) in &dirty.watch {
            let recalled = self.recalled.get(target);
            states.push((*endpoint, EndpointState::UP.with_verdict(recalled)));
        }
        if !dirty.moved.is_empty() {
            // Of two states for one entry the later counts: what came before the move is the newer entry's too.
            let known: HashMap<EndpointIndex, EndpointState> = states.iter().copied().collect();
            for (old, new) in &dirty.moved {
                let held = || self.current.usable().state(*old);
                let state = known.get(old).copied().unwrap_or_else(held);
                // What operators and clusters say is laid over it anew.
                states.push((*new, state.with_operator_of(EndpointState::UP)));
            }
        }
        self.watch(&dirty).await;
        self.pending.dirty.merge(dirty);
    }

    /// Tells the prober what to watch from now on.
    async fn watch(&mut self, dirty: &Dirty) {
        let targets = dirty.watch.iter().map(|(_, target)| target);
        let change = MonitorChange {
            recalled: self.recalled.take(targets),
            watch: dirty.watch.clone(),
            unwatch: dirty.unwatch.clone(),
        };
        if !(change.watch.is_empty() && change.unwatch.is_empty())
            && self.channels.monitors.send(change).await.is_err()
        {
            warn!("Prober is gone; monitors keep their last verdicts");
        }
    }

    /// Looks at what operators say now: a challenge changes no endpoint, and costs no more than itself.
    fn catch_up(&mut self) {
        let (challenges, steers) = self.hand.catch_up(wall_time());
        self.pending.any |= challenges || steers;
        self.pending.operators |= steers;
        self.pending.challenges |= challenges;
    }

    /// Takes up what operators say now, and lays it over what monitors say.
    async fn lay_operators(&mut self) {
        let all = std::mem::take(&mut self.pending.operators);
        if all {
            self.hand.catch_up(wall_time());
        }
        if all || std::mem::take(&mut self.pending.challenges) {
            self.hand.tell(wall_time());
        }
        if all {
            self.pending.any = true;
            let (inventory, hand) = (&mut self.inventory, &mut self.hand);
            let (dirty, moved) =
                tokio::task::block_in_place(|| hand.refresh(inventory, wall_time()));
            let dirty = Dirty { moved, ..dirty };
            self.absorb(dirty).await;
        }
        let states = std::mem::take(&mut self.pending.states);
        let tables = (&self.inventory, self.current.usable());
        self.pending.states = self.hand.lay_over(states, tables, all);
        for (index, state) in &mut self.pending.states {
            let condition = self.inventory.endpoint_condition(*index);
            let mut condition = self.proofs.lay(*index, condition);
            condition.is_unready |= state.is_refused() && self.inventory.is_aged(*index);
            *state = state.with_condition(condition);
        }
    }

    /// Looks at how far the drains are.
    fn look_at_drains(&mut self) {
        let oldest = self.retired.iter().map(|snapshot| snapshot.generation());
        let current = self.current.generation();
        let oldest = oldest.min().unwrap_or(current).min(current);
        let tables = (&self.inventory, &*self.current);
        tokio::task::block_in_place(|| self.hand.look(oldest, tables, Instant::now()));
    }

    /// Builds and publishes, if anything came.
    fn publish(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        if !pending.any {
            return;
        }
        let span = trace_span!(target: SPANS, "publish", generation = Empty, services = pending.dirty.services.len(), flips = pending.observed.len());
        let _inside = span.enter();
        let begun = Instant::now();
        let inputs = Inputs {
            inventory: &self.inventory,
            zones: &self.zones,
            geo: &self.geo,
            groups: &self.groups,
            settings: &self.settings,
            challenges: self.hand.challenges(),
            states: &pending.states,
        };
        let last = &self.current;
        let built = tokio::task::block_in_place(|| build(&inputs, &pending.dirty, last));
        for rejection in built.rejections.iter().take(KEPT_REJECTIONS) {
            warn!(%rejection, "Claim refused; the rest is served");
            let mut event = Event::new(
                Kind::Conflict,
                Weightiness::Warning,
                format!(
                    "{} is refused {}: {}",
                    rejection.source, rejection.place, rejection.reason
                ),
            );
            event.services.push(rejection.source.clone());
            self.channels.journal.record(event, wall_time());
        }
        let retired = self.cell.publish(built.snapshot);
        self.current = self.cell.reader().load_owned();
        self.retire(retired);
        self.coalesce.published(self.now());
        self.inventory.settle();
        let fresh = pending.whole || !pending.dirty.is_empty();
        self.told.is_stale |= pending.whole || pending.dirty.refusals;
        let news = match (pending.whole, fresh) {
            (true, _) => News::All,
            (false, true) => News::Services(&pending.dirty),
            (false, false) => News::States,
        };
        self.report(begun.elapsed(), news);
        let journal = &self.channels.journal;
        let told = (&pending.observed[..], journal);
        span.record("generation", self.current.generation().0);
        self.flip_log
            .tell(told, &self.inventory, self.current.usable());
        if pending.whole {
            let text = format!(
                "Published {} and {} as generation {}",
                counted(self.inventory.service_count(), "service"),
                counted(self.zones.iter().count(), "zone"),
                self.current.generation(),
            );
            let event = Event::new(Kind::Publish, Weightiness::Info, text);
            journal.record(event, wall_time());
        }
        let tables = (&self.inventory, &*self.current);
        self.hand.follow(tables, wall_time(), news);
        if self.hand.is_watching() {
            self.look_at_drains();
        }
        for done in pending.waiting {
            // The one who asked may have gone away.
            let _ = done.send(built.rejections.clone());
        }
    }

    /// Keeps a snapshot until no worker reads it, so that no worker frees a world.
    fn retire(&mut self, snapshot: Arc<Snapshot>) {
        self.retired.push(snapshot);
        self.drop_retired();
    }

    /// Frees the snapshots that nobody else holds. A reader's guard counts: the cell pays its debts at the swap.
    fn drop_retired(&mut self) {
        self.retired
            .retain(|snapshot| Arc::strong_count(snapshot) > 1);
    }
}
