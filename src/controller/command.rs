//! What the controller is asked to do, and the handle to ask it with.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::drains::OwnDrains;
use super::journal::Journal;
use super::status::Status;
use super::withdrawn::Withdrawn;
use crate::geo::GeoDb;
use crate::inventory::{Change, ClusterFacts, FederationRules, Inventory, Service, Shard};
use crate::model::{
    Cluster, ClusterIndex, EndpointIndex, Groups, LowerName, OperatorRecords, Rejection, Target,
    Verdict,
};
use crate::snapshot::Settings;
use crate::zone::ZoneSet;

/// Commands waiting at most: a reload is rare, and the sender waits when it is full.
pub(super) const COMMANDS: usize = 16;

/// A whole configuration, ready to be served.
#[derive(Debug)]
pub struct Load {
    /// Clusters, with the indices that services refer to.
    pub clusters: Vec<(ClusterIndex, Arc<Cluster>)>,
    /// Services of the configuration.
    pub services: Vec<Service>,
    /// Compiled zones; zones that did not change are the same `Arc` as before.
    pub zones: Arc<ZoneSet>,
    /// Compiled places; the same `Arc` as before when no database or override changed.
    pub geo: Arc<GeoDb>,
    /// Groups of countries.
    pub groups: Arc<Groups>,
    /// Settings of answering.
    pub settings: Arc<Settings>,
    /// Who may claim what of the names that come from Kubernetes.
    pub federation: Arc<FederationRules>,
    /// What stood before the start, to be served from the first moment on; empty at a reload.
    pub held: Held,
}

/// What objects of member clusters were served before the start.
#[derive(Debug, Default)]
pub struct Held {
    /// Who had which name, in the order in which they were given.
    pub owners: Vec<(LowerName, Arc<str>)>,
    /// Where the clusters were, as their own Nodes said.
    pub facts: Vec<(ClusterIndex, ClusterFacts)>,
    /// What was offered, by cluster.
    pub shards: Vec<(ClusterIndex, Vec<Shard>)>,
    /// The clusters that were not seen for too long.
    pub aged: BTreeSet<ClusterIndex>,
}

/// What the controller does on request.
pub enum Command {
    /// Puts a configuration in force, whole. Answers with the claims that were refused, once it is published.
    Load(Box<Load>, oneshot::Sender<Vec<Rejection>>),
    /// Puts new places in force.
    Geo(Arc<GeoDb>),
    /// Puts new zones in force.
    Zones(Arc<ZoneSet>),
    /// Takes what member clusters say: shards, targets, places.
    Change(Change),
    /// Puts what operators say in force, whole.
    Operators(OperatorRecords),
    /// Puts drains of clusters that are leaving in force, whole. They are this node's own: nobody is told of them.
    Leaving(OperatorRecords),
    /// Watches from now on these endpoints, which their own objects drain; the first 1000 of them.
    Withdrawn(Vec<Withdrawn>),
    /// Reads what exists, between two publishes: must be short.
    Read(Box<dyn FnOnce(&Inventory) + Send>),
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Load(..) => "Load",
            Self::Geo(_) => "Geo",
            Self::Zones(_) => "Zones",
            Self::Change(_) => "Change",
            Self::Operators(_) => "Operators",
            Self::Leaving(_) => "Leaving",
            Self::Withdrawn(_) => "Withdrawn",
            Self::Read(_) => "Read",
        })
    }
}

/// What the prober should watch from now on, and what no longer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MonitorChange {
    /// Endpoints with their targets.
    pub watch: Vec<(EndpointIndex, Target)>,
    /// Endpoints gone.
    pub unwatch: Vec<EndpointIndex>,
    /// Verdicts from before a restart, of targets that are watched for the first time since.
    pub recalled: Vec<(Target, Verdict)>,
}

/// Asks the controller.
#[derive(Clone, Debug)]
pub struct ControllerHandle {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) status: watch::Receiver<Arc<Status>>,
    pub(super) drains: watch::Receiver<OwnDrains>,
    pub(super) departures: watch::Receiver<OwnDrains>,
    pub(super) journal: Journal,
}

impl ControllerHandle {
    /// Puts a configuration in force and waits until it is published. Gives the claims that were refused; `None` when the
    /// controller is gone (shutdown).
    pub async fn load(&self, load: Load) -> Option<Vec<Rejection>> {
        let (sender, receiver) = oneshot::channel();
        self.commands
            .send(Command::Load(Box::new(load), sender))
            .await
            .ok()?;
        receiver.await.ok()
    }

    /// Sends a command without waiting for its effect. Tells whether the controller is still there.
    pub async fn send(&self, command: Command) -> bool {
        self.commands.send(command).await.is_ok()
    }

    /// Reads what exists with a function that must be short: nothing is published meanwhile. `None` when the controller is gone
    /// (shutdown).
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Inventory) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        let read = Box::new(move |inventory: &Inventory| {
            // Who asked may have gone away.
            let _ = sender.send(read(inventory));
        });
        self.commands.send(Command::Read(read)).await.ok()?;
        receiver.await.ok()
    }

    /// Gives what is known of the drains that began.
    #[must_use]
    pub fn drains(&self) -> OwnDrains {
        Arc::clone(&self.drains.borrow())
    }

    /// Gives what is known of the drains of clusters that are leaving.
    #[must_use]
    pub fn departures(&self) -> OwnDrains {
        Arc::clone(&self.departures.borrow())
    }

    /// Gives the events.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Gives what may be known of the state now.
    #[must_use]
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.status.borrow())
    }

    /// Gives a receiver that sees each publish.
    #[must_use]
    pub fn watch_status(&self) -> watch::Receiver<Arc<Status>> {
        self.status.clone()
    }
}
