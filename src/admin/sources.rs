//! What handlers read: counters, status, what monitors say, what happened; and who may do what.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::access::Access;
use super::audit::Audit;
use super::history::History;
use super::senders::Senders;
use crate::controller::ControllerHandle;
use crate::disk::{Unread, WriteFault};
use crate::health::MonitorTable;
use crate::lifecycle::Ready;
use crate::model::{ClusterId, ClusterIndex, Refusals, WallTime};
use crate::source::kubernetes::MemberStatus;
use crate::source::kubernetes::annotations::ClusterRead;
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
    /// Secrets with kubeconfigs that cannot be watched, or of which some are refused, by source.
    pub refused_secrets: AtomicU64,
    /// Writes of the last good state that failed in a row.
    pub last_good_failures: Arc<AtomicU64>,
    /// Unix time of the last write of the last good state; 0: none yet.
    pub last_good_written: Arc<AtomicU64>,
    /// Writes of what member clusters offer that failed in a row.
    pub offers_failures: Arc<AtomicU64>,
    /// Why the last good state cannot be written.
    pub last_good_fault: WriteFault,
    /// Why what member clusters offer cannot be written.
    pub offers_fault: WriteFault,
    /// Files of the state directory that could not be read at the start.
    pub unread: Unread,
    /// Host names of endpoints, by how well each is known.
    pub targets: TargetCounts,
    /// Databases and zone files.
    files: Mutex<Arc<[SourceFile]>>,
    /// Clusters that are leaving.
    leaving: Mutex<Arc<[LeavingCluster]>>,
    /// Clusters that were not seen for too long.
    aged: Mutex<Arc<[AgedCluster]>>,
    /// Clusters that were found.
    joined: Mutex<Arc<[JoinedCluster]>>,
    /// Why the newest configuration file is refused.
    configuration: Mutex<Arc<Refusals>>,
}

impl Events {
    /// Begins the counts of a start that could not read these files.
    #[must_use]
    pub fn with_unread(unread: &Unread) -> Self {
        Self {
            unread: unread.clone(),
            ..Self::default()
        }
    }

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

    /// Gives the clusters that were not seen for longer than `kubernetes.maxAge`.
    #[must_use]
    pub fn aged(&self) -> Arc<[AgedCluster]> {
        // What it guards is replaced whole.
        let aged = self.aged.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&aged)
    }

    /// Replaces them.
    pub fn set_aged(&self, aged: Vec<AgedCluster>) {
        *self.aged.lock().unwrap_or_else(PoisonError::into_inner) = aged.into();
    }

    /// Gives the clusters that were found, in directories and Secrets.
    #[must_use]
    pub fn joined(&self) -> Arc<[JoinedCluster]> {
        // What it guards is replaced whole.
        let joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&joined)
    }

    /// Replaces them.
    pub fn set_joined(&self, joined: Vec<JoinedCluster>) {
        *self.joined.lock().unwrap_or_else(PoisonError::into_inner) = joined.into();
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

/// Host names of endpoints, by how well each is known; each counts once.
#[derive(Debug, Default)]
pub struct TargetCounts {
    /// Their name servers said so within the TTL.
    pub fresh: AtomicU64,
    /// They were not confirmed when they were asked for last; their addresses stay.
    pub failing: AtomicU64,
    /// And that for more than an hour.
    pub expired: AtomicU64,
    /// They had no address so far.
    pub unresolved: AtomicU64,
    /// Their name servers say that they have none any more.
    pub gone: AtomicU64,
    /// They lie in our own zones and are followed there.
    pub inside: AtomicU64,
    /// They lead in a circle, or too far, or go round a fence: they, or a part of them, are not followed.
    pub refused: AtomicU64,
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
    /// Secrets with kubeconfigs.
    Secrets,
}

impl SourceKind {
    /// Gives the label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Zone => "zone",
            Self::Directory => "directory",
            Self::Secrets => "secrets",
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

/// A member cluster that was not seen for longer than `kubernetes.maxAge`: what no probe confirms of it is used after all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgedCluster {
    /// Its index.
    pub cluster: ClusterIndex,
    /// When it was seen last, or, where it never was, when it was known first.
    pub since: WallTime,
}

/// A cluster that was found, in a directory or in Secrets.
#[derive(Clone, Debug)]
pub struct JoinedCluster {
    /// The cluster.
    pub id: ClusterId,
    /// Where its kubeconfig stands.
    pub from: String,
    /// What its annotations say.
    pub read: Arc<ClusterRead>,
    /// It is drained by one of them.
    pub is_drained: bool,
}

/// A cluster whose kubeconfig is gone, or to be ignored, and that is drained before it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingCluster {
    /// The cluster.
    pub id: ClusterId,
    /// Since when.
    pub since: WallTime,
    /// Where its kubeconfig stood; `None`: nobody knows any more.
    pub from: Option<String>,
    /// Why it leaves: lower-case, no period.
    pub why: String,
    /// Services that have nothing else: it stays as long as there are any.
    pub held: usize,
    /// The first of them.
    pub held_services: Vec<String>,
    /// The time until nobody is sent there any more; `None`: nobody can say.
    pub remaining: Option<Duration>,
}

/// The wish to drop a cluster that has no kubeconfig now.
#[derive(Debug)]
pub struct ClusterExit {
    /// The cluster.
    pub cluster: ClusterId,
    /// Takes whether it had none, and so is gone.
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

    /// Drops a cluster that is leaving, or of which nobody knows where its kubeconfig stands. Tells whether that was so; `None` at
    /// shutdown.
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
    pub reports: watch::Receiver<Arc<MonitorTable>>,
    /// How the member clusters stand, in the order of the configuration.
    pub members: watch::Receiver<Arc<Vec<MemberStatus>>>,
    /// What happened.
    pub events: Arc<Events>,
    /// What was counted in the last hour, step by step.
    pub history: Arc<History>,
    /// Who asked in the last minutes.
    pub senders: Arc<Senders>,
    /// Who may do what.
    pub access: Access,
    /// Who did what.
    pub audit: Audit,
    /// Drops clusters that are leaving.
    pub exits: ClusterExits,
}
