//! Clusters that are found in directories and Secrets: who is there at the start, and what is told of those that join and leave.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clusters_from::{ClusterList, Directories, Keeper, Turn};
use super::load::seed;
use crate::config::Config;
use crate::controller::{Controller, Event, Kind, LastGood, Offers, Weightiness};
use crate::inventory::ClusterRegistry;
use crate::lifecycle::Supervisor;
use crate::model::{ClusterId, ClusterIndex, OperatorRecords, WallTime, counted};
use crate::source::kubernetes::MemberConfig;
use crate::telemetry::wall_time;

/// Most clusters that are told of after one look.
const TOLD: usize = 50;

/// Tells what became of clusters.
pub(super) fn news(turns: &[(ClusterId, Turn)]) -> Vec<Event> {
    let mut events: Vec<Event> = turns.iter().take(TOLD).map(of_turn).collect();
    if let Some(untold) = turns.len().checked_sub(TOLD).filter(|untold| *untold > 0) {
        let clusters = counted(untold, "more cluster");
        let text = format!("{clusters} joined or are leaving; the page Clusters lists them");
        events.push(Event::new(Kind::Source, Weightiness::Warning, text));
    }
    events
}

/// Tells what became of one.
fn of_turn((id, turn): &(ClusterId, Turn)) -> Event {
    let (weight, text) = match turn {
        Turn::Found => (
            Weightiness::Info,
            format!("Cluster {id} was found by its kubeconfig"),
        ),
        Turn::Leaves => (
            Weightiness::Warning,
            format!("Kubeconfig of cluster {id} is gone: it is leaving, and drained first"),
        ),
        Turn::Ignored => (
            Weightiness::Warning,
            format!("Annotation `ignore` of cluster {id}: it is leaving, and drained first"),
        ),
        Turn::Returns => (
            Weightiness::Info,
            format!("Kubeconfig of cluster {id} is back: it stays"),
        ),
        Turn::Ends => (
            Weightiness::Info,
            format!("Cluster {id} is no longer leaving: the configuration has it"),
        ),
    };
    of_cluster(id, weight, text)
}

/// Begins an event about a cluster.
pub(super) fn of_cluster(id: &ClusterId, weight: Weightiness, text: String) -> Event {
    let mut event = Event::new(Kind::Source, weight, text);
    event.clusters.push(id.to_string());
    event
}

/// Clusters that are found in directories and Secrets, and what is in force of them.
#[derive(Debug, Default)]
pub(super) struct Joining {
    /// Where they are found.
    pub(super) directories: Directories,
    /// Who is followed.
    pub(super) followed: Vec<MemberConfig>,
    /// Whom nobody is answered with.
    pub(super) observed: BTreeSet<ClusterIndex>,
    /// Of whom it was told that they are leaving and held.
    pub(super) held: BTreeSet<ClusterId>,
    /// All clusters, where they are.
    pub(super) clusters: ClusterList,
    /// Who is drained by annotations.
    pub(super) drained: BTreeSet<ClusterId>,
    /// Keeps those of Secrets on disk.
    pub(super) keeper: SharedKeeper,
}

/// The keeper of clusters of Secrets: one in the life of the process, whatever is reloaded.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedKeeper(Arc<Mutex<Keeper>>);

impl SharedKeeper {
    pub(super) fn lock(&self) -> MutexGuard<'_, Keeper> {
        // Every change of it is one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Joining {
    /// Looks at the sources at the start, and puts who is in them, and who was, beside what the configuration has. What Secrets
    /// had before the start is kept in the folder of the last good state.
    pub(super) fn begin(
        config: &mut Config,
        registry: &mut ClusterRegistry,
        (offers, last_good): (&Offers, Option<LastGood>),
    ) -> Self {
        let (keeper, kept) = Keeper::open(last_good);
        let (mut directories, now) = (Directories::of_disk(kept), wall_time());
        directories.adopt(config, now);
        directories.remember(offers.shards.keys(), now);
        let mut joining = Self {
            directories,
            keeper: SharedKeeper(Arc::new(Mutex::new(keeper))),
            ..Self::default()
        };
        joining.join(config, registry);
        joining
    }

    /// Takes up another configuration beside the one in force. Gives what would follow, and what would become of whom.
    pub(super) fn adopt(
        &self,
        config: &mut Config,
        registry: &mut ClusterRegistry,
    ) -> (Self, Vec<(ClusterId, Turn)>) {
        let mut joining = Self {
            directories: self.directories.clone(),
            held: self.held.clone(),
            keeper: self.keeper.clone(),
            ..Self::default()
        };
        let turns = joining.directories.adopt(config, wall_time());
        joining.join(config, registry);
        (joining, turns)
    }

    /// Puts who was found beside what a configuration has, and notes it.
    fn join(&mut self, config: &mut Config, registry: &mut ClusterRegistry) {
        let joined = self.directories.join(registry);
        self.drained = self.drained_now();
        self.clusters.clone_from(&joined.clusters);
        self.followed.clone_from(&joined.kubernetes.members);
        self.observed = joined.observed;
        config.clusters = joined.clusters;
        config.kubernetes = joined.kubernetes;
    }

    pub(super) fn drained_now(&self) -> BTreeSet<ClusterId> {
        self.directories.drained(wall_time()).cloned().collect()
    }

    /// Gives the drains of a moment, and notes who is drained by annotations just then: a window that ends after it, however soon,
    /// is a change that the next look finds.
    pub(super) fn drains_at(&mut self, now: WallTime) -> OperatorRecords {
        self.drained = self.directories.drained(now).cloned().collect();
        self.directories.drains(now)
    }

    /// Begins to watch Secrets that have clusters.
    pub(super) fn watch(&self, supervisor: &mut Supervisor) {
        self.directories.watch_secrets();
        let secrets = self.directories.secrets().clone();
        supervisor.spawn("secrets", secrets.run(seed(), supervisor.token()));
    }

    /// Lets a controller begin with who is leaving and who is observed.
    pub(super) fn lay(&self, controller: Controller) -> Controller {
        let leaving = self.directories.drains(wall_time());
        controller.with_leaving(leaving, self.observed.clone())
    }
}
