//! What handlers read: counters, status, what monitors say, what happened; and who may do what.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::access::Access;
use super::audit::Audit;
use super::history::History;
use crate::controller::ControllerHandle;
use crate::health::MonitorReport;
use crate::lifecycle::Ready;
use crate::model::{ClusterId, Refusals, WallTime};
use crate::source::kubernetes::MemberStatus;
use crate::telemetry::Counters;

/// Counts of what happened outside the answering path.
#[derive(Debug, Default)]
pub struct Events {
    /// Unix time of the start.
    pub started: AtomicU64,
    /// Unix time at which the configuration in force was put there.
    pub last_load: AtomicU64,
    /// Reloads put in force.
    pub reloads: AtomicU64,
    /// Reloads refused.
    pub reload_failures: AtomicU64,
    /// 1 while the newest configuration file is refused or gone.
    pub reload_failing: AtomicU64,
    /// Databases refused at their last reading.
    pub refused_databases: AtomicU64,
    /// Zone files refused at their last reading.
    pub refused_zones: AtomicU64,
    /// Directories of kubeconfigs that cannot be read, or with files that are refused, at their last reading.
    pub refused_directories: AtomicU64,
    /// Writes of the last good state that failed in a row.
    pub last_good_failures: Arc<AtomicU64>,
    /// Unix time of the last write of the last good state; 0: none yet.
    pub last_good_written: Arc<AtomicU64>,
    /// Writes of what member clusters offer that failed in a row.
    pub offers_failures: Arc<AtomicU64>,
    /// Databases and zone files.
    files: Mutex<Arc<[SourceFile]>>,
    /// Clusters that are leaving.
    leaving: Mutex<Arc<[LeavingCluster]>>,
    /// Why the newest configuration file is refused.
    configuration: Mutex<Arc<Refusals>>,
}

impl Events {
    /// Gives the databases and zone files, as of their last reading.
    #[must_use]
    pub fn files(&self) -> Arc<[SourceFile]> {
        // What it guards is replaced whole.
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&files)
    }

    /// Replaces them.
    pub fn set_files(&self, files: Vec<SourceFile>) {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = files.into();
    }

    /// Gives the clusters that are leaving.
    #[must_use]
    pub fn leaving(&self) -> Arc<[LeavingCluster]> {
        // What it guards is replaced whole.
        let leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&leaving)
    }

    /// Replaces them.
    pub fn set_leaving(&self, leaving: Vec<LeavingCluster>) {
        *self.leaving.lock().unwrap_or_else(PoisonError::into_inner) = leaving.into();
    }

    /// Tells why the newest configuration file is refused; empty while it is not.
    #[must_use]
    pub fn configuration(&self) -> Arc<Refusals> {
        // What it guards is replaced whole.
        let refusals = self.configuration.lock();
        Arc::clone(&refusals.unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces that.
    pub fn set_configuration(&self, refusals: Refusals) {
        let held = self.configuration.lock();
        *held.unwrap_or_else(PoisonError::into_inner) = Arc::new(refusals);
    }
}

/// What kind of file something is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A GeoIP database.
    Database,
    /// A master file.
    Zone,
    /// A directory of kubeconfigs.
    Directory,
}

impl SourceKind {
    /// Gives the label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Zone => "zone",
            Self::Directory => "directory",
        }
    }
}

/// A file that the node reads, as of its last reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// What it is.
    pub kind: SourceKind,
    /// Its path.
    pub name: String,
    /// Unix time of its last modification; 0: it was not there.
    pub modified: u64,
    /// Why it was refused: what is served is older. Empty when it was not.
    pub refused: Refusals,
}

/// A cluster whose kubeconfig is gone, and that is drained before it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingCluster {
    /// The cluster.
    pub id: ClusterId,
    /// Since when.
    pub since: WallTime,
    /// Services that have nothing else: it stays as long as there are any.
    pub held: usize,
    /// The first of them.
    pub held_services: Vec<String>,
    /// The time until nobody is sent there any more; `None`: nobody can say.
    pub remaining: Option<Duration>,
}

/// The wish to drop a cluster that is leaving.
#[derive(Debug)]
pub struct ClusterExit {
    /// The cluster.
    pub cluster: ClusterId,
    /// Takes whether it was leaving, and so is gone.
    pub done: oneshot::Sender<bool>,
}

/// Where such wishes go.
#[derive(Clone, Debug)]
pub struct ClusterExits(mpsc::Sender<ClusterExit>);

impl ClusterExits {
    /// Makes one, and its other end.
    #[must_use]
    pub fn channel() -> (Self, mpsc::Receiver<ClusterExit>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }

    /// Drops a cluster that is leaving. Tells whether it was; `None` at shutdown.
    pub async fn drop(&self, cluster: ClusterId) -> Option<bool> {
        let (done, answer) = oneshot::channel();
        self.0.send(ClusterExit { cluster, done }).await.ok()?;
        answer.await.ok()
    }
}

/// Gives what the sockets count beside the workers' counters.
#[derive(Clone)]
pub struct Streams(pub Arc<dyn Fn() -> Vec<(&'static str, u64)> + Send + Sync>);

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Streams")
    }
}

/// What is shown.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Readiness.
    pub ready: Ready,
    /// The counters of every worker.
    pub counters: Arc<[Arc<Counters>]>,
    /// What else the sockets count, by name and labels without the common prefix.
    pub streams: Streams,
    /// Status.
    pub controller: ControllerHandle,
    /// What the monitors say.
    pub reports: watch::Receiver<Arc<Vec<MonitorReport>>>,
    /// How the member clusters stand, in the order of the configuration.
    pub members: watch::Receiver<Arc<Vec<MemberStatus>>>,
    /// What happened.
    pub events: Arc<Events>,
    /// What was counted in the last hour, step by step.
    pub history: Arc<History>,
    /// Who may do what.
    pub access: Access,
    /// Who did what.
    pub audit: Audit,
    /// Drops clusters that are leaving.
    pub exits: ClusterExits,
}
