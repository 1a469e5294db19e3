//! What is said in member clusters: collected from what the node knows, and handed to those who write.
//!
//! Nothing is collected unless `kubernetes.writeBack` is `events`. The inventory is looked through in pieces, so that no publish
//! waits for long, and never more than a tenth of the time.

mod collect;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::collect::{Seen, of_objects, of_refusals};
use crate::controller::{Command, ControllerHandle, MAX_WITHDRAWN, Withdrawn};
use crate::health::MonitorReport;
use crate::inventory::ObjectRef;
use crate::lifecycle::Supervisor;
use crate::model::{ClusterIndex, RecordId};
use crate::snapshot::SnapshotReader;
use crate::source::kubernetes::{MemberStatus, MembersHandle, Statement, Statements};
use crate::vantage::Vantage;

/// Objects looked at between two publishes.
const PIECE: usize = 256;
/// From look to look at least, and so many times as long as one took.
const PAUSE: (Duration, u32) = (Duration::from_millis(500), 10);
/// From look to look at most: peers and time say something too.
const LOOK: Duration = Duration::from_secs(2);
/// Statements of all clusters, at most.
const MAX_STATEMENTS: usize = 50_000;

/// Where statements come from.
pub(super) struct Sources {
    /// What exists.
    pub(super) controller: ControllerHandle,
    /// What is answered.
    pub(super) reader: SnapshotReader,
    /// What monitors see.
    pub(super) reports: watch::Receiver<Arc<Vec<MonitorReport>>>,
    /// What peers say of drains.
    pub(super) vantage: Vantage,
    /// What objects say of themselves, and who writes.
    pub(super) members: MembersHandle,
}

/// Starts the task that collects what is said.
pub(super) fn start(sources: Sources, wanted: watch::Receiver<bool>, supervisor: &mut Supervisor) {
    let token = supervisor.token();
    supervisor.spawn("statements", collect_all(sources, wanted, token));
}

/// Collects what is said while that is wanted, until the token falls.
async fn collect_all(
    sources: Sources,
    mut wanted: watch::Receiver<bool>,
    token: CancellationToken,
) {
    let mut status = sources.controller.watch_status();
    let mut members = sources.members.watch();
    let mut reports = sources.reports.clone();
    let mut last = Statements::default();
    let mut withdrawn = Vec::new();
    loop {
        let is_wanted = *wanted.borrow_and_update();
        let begun = Instant::now();
        if is_wanted {
            status.mark_unchanged();
            members.mark_unchanged();
            reports.mark_unchanged();
            let Some((all, drained)) = look(&sources).await else {
                return;
            };
            if all != last {
                last = all;
                sources.members.say(Arc::clone(&last));
            }
            if drained != withdrawn {
                withdrawn.clone_from(&drained);
                if !sources.controller.send(Command::Withdrawn(drained)).await {
                    return;
                }
            }
        } else if !last.is_empty() || !withdrawn.is_empty() {
            last = Statements::default();
            withdrawn = Vec::new();
            sources.members.say(Arc::clone(&last));
            let none = Command::Withdrawn(Vec::new());
            if !sources.controller.send(none).await {
                return;
            }
        }
        let (pause, times) = PAUSE;
        let pause = pause.max(begun.elapsed() * times);
        // Cancel-safe: all arms only wait.
        tokio::select! {
            () = token.cancelled() => return,
            () = sleep_until(begun + pause), if is_wanted => {}
            changed = wanted.changed() => if changed.is_err() {
                return;
            } else {
                continue;
            },
        }
        // Cancel-safe: all arms only wait.
        let changed = tokio::select! {
            () = token.cancelled() => return,
            changed = status.changed() => changed,
            changed = members.changed() => changed,
            changed = reports.changed() => changed,
            changed = wanted.changed() => changed,
            () = sleep_until(begun + LOOK.max(pause)) => Ok(()),
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Looks at everything once: what stands, and what objects drain by their own word. `None` when the controller is gone.
async fn look(sources: &Sources) -> Option<(Statements, Vec<Withdrawn>)> {
    let mut all: BTreeMap<ClusterIndex, BTreeSet<Statement>> = BTreeMap::new();
    let mut count = 0;
    let mut add = |cluster: ClusterIndex, statement: Statement| {
        if count < MAX_STATEMENTS && all.entry(cluster).or_default().insert(statement) {
            count += 1;
        }
    };
    let members: Arc<Vec<MemberStatus>> = sources.members.statuses();
    for member in members.iter() {
        for statement in of_refusals(&member.overview.told) {
            add(member.cluster, statement);
        }
    }
    let seen = Seen::new(
        &sources.reports.borrow(),
        sources.reader.load_owned(),
        safe(&sources.vantage),
    );
    let seen = Arc::new(seen);
    let mut drained: Vec<Withdrawn> = Vec::new();
    let mut after: Option<ObjectRef> = None;
    loop {
        let (from, facts) = (after.take(), Arc::clone(&seen));
        let piece = sources
            .controller
            .read(move |inventory| of_objects(inventory, (from.as_ref(), PIECE), &facts))
            .await?;
        for (cluster, statement) in piece.statements {
            add(cluster, statement);
        }
        let room = MAX_WITHDRAWN.saturating_sub(drained.len());
        drained.extend(piece.withdrawn.into_iter().take(room));
        after = piece.last;
        if after.is_none() {
            break;
        }
    }
    let all = all.into_iter();
    let all = all.map(|(cluster, all)| (cluster, all.into_iter().map(Arc::new).collect()));
    Some((Arc::new(all.collect()), drained))
}

/// Lists the drains of which every node says that nobody has the last answer any more.
fn safe(vantage: &Vantage) -> BTreeSet<RecordId> {
    let own = vantage.own_words();
    let is_over = |word: &crate::vantage::DrainWord| word.remaining() == Some(Duration::ZERO);
    let peers = vantage.peers();
    let others = || peers.iter().filter(|peer| !peer.own);
    let is_safe = |id: &RecordId| {
        others().all(|peer| peer.is_fresh() && peer.drains.get(id).is_some_and(is_over))
    };
    let over = own.into_iter().filter(is_over).map(|word| word.id);
    over.filter(is_safe).collect()
}
