//! What is said in member clusters: collected from what the node knows, and handed to those who write.
//!
//! Nothing is collected unless `kubernetes.writeBack` is `events`. The inventory is looked through in pieces, so that no publish
//! waits for long, and never more than a tenth of the time.

mod collect;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::collect::{Seen, of_objects, of_refusals};
use crate::controller::{Command, ControllerHandle, MAX_WITHDRAWN, Withdrawn};
use crate::health::MonitorTable;
use crate::inventory::ObjectRef;
use crate::lifecycle::Supervisor;
use crate::model::{ClusterIndex, Generation, Intent, OperatorRecord, Phase, RecordId, Target};
use crate::snapshot::SnapshotReader;
use crate::source::kubernetes::{MembersHandle, Statement, Statements};
use crate::telemetry::wall_time;
use crate::vantage::Vantage;

/// Objects looked at between two publishes.
const PIECE: usize = 256;
/// From look to look at least, and so many times as long as one took.
const PAUSE: (Duration, u32) = (Duration::from_millis(500), 10);
/// From look to look at most: what is refused, what peers say of drains, and what monitors see is not published.
const LOOK: Duration = Duration::from_secs(2);
/// Statements of all clusters, at most; as many again about annotations.
const MAX_STATEMENTS: usize = 50_000;

/// Where statements come from.
pub(super) struct Sources {
    /// What exists.
    pub(super) controller: ControllerHandle,
    /// What is answered.
    pub(super) reader: SnapshotReader,
    /// What monitors see.
    pub(super) reports: watch::Receiver<Arc<MonitorTable>>,
    /// What peers say of drains.
    pub(super) vantage: Vantage,
    /// What objects say of themselves, and who writes.
    pub(super) members: MembersHandle,
}

/// Starts the task that collects what is said.
pub(super) fn start(sources: Sources, wanted: watch::Receiver<bool>, supervisor: &mut Supervisor) {
    let token = supervisor.token();
    // Nothing needs it: it may end early.
    supervisor.spawn_finite("statements", collect_all(sources, wanted, token));
}

/// What statements are made of, apart from the inventory: as long as it is the same, and nothing is published, so are they.
#[derive(PartialEq)]
struct Ground {
    generation: Generation,
    refusals: BTreeMap<ClusterIndex, BTreeSet<Statement>>,
    never: HashSet<Target>,
    safe: BTreeSet<RecordId>,
}

impl Ground {
    /// Reads it.
    fn of(sources: &Sources) -> Self {
        let mut refusals: BTreeMap<ClusterIndex, BTreeSet<Statement>> = BTreeMap::new();
        let mut room = MAX_STATEMENTS;
        for member in sources.members.statuses().iter() {
            let own = refusals.entry(member.cluster).or_default();
            own.extend(of_refusals(&member.overview.told).take(room));
            room = room.saturating_sub(own.len());
        }
        let reports = Arc::clone(&sources.reports.borrow());
        let never = reports.iter().filter(|report| report.never_succeeded);
        Self {
            generation: sources.controller.status().generation,
            refusals,
            never: never.map(|report| report.target.clone()).collect(),
            safe: safe(&sources.vantage),
        }
    }
}

/// What was collected last.
#[derive(Default)]
struct Last {
    ground: Option<Ground>,
    statements: Statements,
    withdrawn: Vec<Withdrawn>,
}

/// Collects what is said while that is wanted, until the token falls.
async fn collect_all(
    sources: Sources,
    mut wanted: watch::Receiver<bool>,
    token: CancellationToken,
) {
    let mut status = sources.controller.watch_status();
    let mut last = Last::default();
    loop {
        let is_wanted = *wanted.borrow_and_update();
        let begun = Instant::now();
        status.mark_unchanged();
        let has_looked = if is_wanted {
            last.renew(&sources).await
        } else {
            last.clear(&sources).await
        };
        if has_looked.is_none() {
            return;
        }
        let (pause, times) = PAUSE;
        let pause = pause.max(begun.elapsed() * times);
        // Cancel-safe: all arms only wait.
        let changed = tokio::select! {
            () = token.cancelled() => return,
            changed = wanted.changed() => changed.map(|()| true),
            () = sleep_until(begun + pause), if is_wanted => Ok(false),
        };
        match changed {
            Ok(true) => continue,
            Ok(false) => {}
            Err(_) => return,
        }
        // Cancel-safe: all arms only wait.
        let changed = tokio::select! {
            () = token.cancelled() => return,
            changed = status.changed() => changed,
            changed = wanted.changed() => changed,
            () = sleep_until(begun + LOOK.max(pause)) => Ok(()),
        };
        if changed.is_err() {
            return;
        }
    }
}

impl Last {
    /// Looks, and hands on what is new. `None` when the controller is gone.
    async fn renew(&mut self, sources: &Sources) -> Option<()> {
        let ground = Ground::of(sources);
        if self.ground.as_ref() == Some(&ground) {
            return Some(());
        }
        let (statements, withdrawn) = look(sources, &ground).await?;
        self.ground = Some(ground);
        self.hand_on(sources, statements, withdrawn).await
    }

    /// Takes back what was handed on.
    async fn clear(&mut self, sources: &Sources) -> Option<()> {
        self.ground = None;
        self.hand_on(sources, Statements::default(), Vec::new())
            .await
    }

    /// Hands on what is new.
    async fn hand_on(
        &mut self,
        sources: &Sources,
        statements: Statements,
        withdrawn: Vec<Withdrawn>,
    ) -> Option<()> {
        if statements != self.statements {
            self.statements = statements;
            sources.members.say(Arc::clone(&self.statements));
        }
        if withdrawn != self.withdrawn {
            self.withdrawn.clone_from(&withdrawn);
            let command = Command::Withdrawn(withdrawn);
            let is_there = sources.controller.send(command).await;
            return is_there.then_some(());
        }
        Some(())
    }
}

/// Looks at everything once: what stands, and what objects drain by their own word. `None` when the controller is gone.
async fn look(sources: &Sources, ground: &Ground) -> Option<(Statements, Vec<Withdrawn>)> {
    let mut all = ground.refusals.clone();
    let mut room = MAX_STATEMENTS;
    let mut drained: Vec<Withdrawn> = Vec::new();
    let mut after: Option<ObjectRef> = None;
    let snapshot = sources.reader.load_owned();
    let drains = drains_in_force(&sources.vantage);
    let seen = Seen::new(
        ground.never.clone(),
        snapshot,
        (drains, ground.safe.clone()),
    );
    let seen = Arc::new(seen);
    loop {
        let (from, facts) = (after.take(), Arc::clone(&seen));
        let piece = sources
            .controller
            .read(move |inventory| of_objects(inventory, (from.as_ref(), PIECE), &facts))
            .await?;
        for (cluster, statement) in piece.statements.into_iter().take(room) {
            room -= 1;
            all.entry(cluster).or_default().insert(statement);
        }
        let more = MAX_WITHDRAWN.saturating_sub(drained.len());
        drained.extend(piece.withdrawn.into_iter().take(more));
        after = piece.last;
        if after.is_none() {
            break;
        }
    }
    let all = all.into_iter();
    let all = all.map(|(cluster, all)| (cluster, all.into_iter().map(Arc::new).collect()));
    Some((Arc::new(all.collect()), drained))
}

/// Lists what operators drain now.
fn drains_in_force(vantage: &Vantage) -> Vec<Arc<OperatorRecord>> {
    let (now, records) = (wall_time(), vantage.book().records());
    let drains = records
        .standing(now)
        .filter(|record| record.intent == Intent::Drain && record.phase(now) == Phase::Active);
    drains.cloned().collect()
}

/// Lists the drains of which every node says that nobody has the last answer any more.
fn safe(vantage: &Vantage) -> BTreeSet<RecordId> {
    let own = vantage.own_words();
    let is_over = |word: &crate::vantage::DrainWord| word.remaining() == Some(Duration::ZERO);
    let peers = vantage.peers();
    let others = || peers.iter().filter(|peer| !peer.own);
    let is_safe = |id: &RecordId| {
        others().all(|peer| {
            let is_heard = peer.error.is_none() && peer.is_fresh();
            is_heard && peer.drains.get(id).is_some_and(is_over)
        })
    };
    let over = own.into_iter().filter(is_over).map(|word| word.id);
    over.filter(is_safe).collect()
}
