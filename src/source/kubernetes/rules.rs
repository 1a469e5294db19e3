//! How objects of member clusters are read: what the configuration says.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::annotations::Checks;
use super::annotations::compat::Compat;
use super::secret::HeldKubeconfig;
use crate::geo::built_in_groups;
use crate::model::{ClusterId, ClusterIndex, Groups, Ttl, Weight};

/// What is done when most of a cluster's objects are gone at once: more often a fault than a wish.
#[derive(Clone, Debug, PartialEq)]
pub struct MassDeletion {
    /// They are held, and an alarm is given; else they are let go at once.
    pub hold: bool,
    /// The share of served objects, 0.0..=1.0, from which on it is a mass.
    pub share: f64,
    /// And so many at least.
    pub at_least: usize,
    /// How long they are held. Gone still, they are let go.
    pub wait: Duration,
}

impl Default for MassDeletion {
    fn default() -> Self {
        Self {
            hold: true,
            share: 0.5,
            at_least: 10,
            wait: Duration::from_secs(300),
        }
    }
}

/// Rules of reading: `kubernetes` of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Only objects that say so are served.
    pub opt_in: bool,
    /// The class that this node serves; objects without a class are of class `meridian`.
    pub class: Box<str>,
    /// Annotated TTLs below are raised to it.
    pub min_ttl: Ttl,
    /// Annotated intervals of health checks below are raised to it.
    pub min_interval: Duration,
    /// Addresses of one namespace's objects that may be probed; objects beyond have readiness alone.
    pub monitors_per_namespace: usize,
    /// Sudden emptiness.
    pub mass_deletion: MassDeletion,
    /// `defaults.monitor`, where objects say nothing.
    pub checks: Checks,
    /// Other programs whose annotations count.
    pub compat: Compat,
    /// The groups of countries that selectors may name: built in, and those of the configuration.
    pub groups: Groups,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            opt_in: true,
            class: "meridian".into(),
            min_ttl: Ttl::new(1).unwrap_or(Ttl::BRIEF),
            min_interval: Duration::from_millis(500),
            monitors_per_namespace: 200,
            mass_deletion: MassDeletion::default(),
            checks: Checks::default(),
            compat: Compat::default(),
            groups: built_in_groups(),
        }
    }
}

/// How far a kubeconfig file is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// It is the operator's own: it may name files and programs.
    #[default]
    Whole,
    /// It was found in a directory that others may write into: it names no file, and no program but these.
    Data {
        /// Programs that it may run, absolute.
        exec: Arc<[PathBuf]>,
    },
}

/// Why a cluster that was found before has no kubeconfig now. What is known of it stays either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Its file is gone: it is leaving.
    Gone,
    /// The directory was not readable since the start: nobody knows.
    Unseen,
}

/// How a cluster's API server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// By a context of a kubeconfig file; `None`: the current one.
    Kubeconfig {
        /// The file, absolute.
        file: PathBuf,
        /// The context.
        context: Option<Box<str>>,
        /// What it may name.
        trust: Trust,
    },
    /// By a kubeconfig that stands in a Secret. It names no file, and no program but these.
    Secret {
        /// What stands there, as it changes.
        kubeconfig: Arc<HeldKubeconfig>,
        /// Programs that it may run, absolute.
        exec: Arc<[PathBuf]>,
    },
    /// By the service account of the pod that this runs in.
    InCluster,
    /// Not at all, for now.
    Absent(Absence),
}

impl Access {
    /// Tells whether the cluster is leaving.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        *self == Self::Absent(Absence::Gone)
    }
}

/// What clusters that are found may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admit {
    /// They are answered with.
    #[default]
    Serve,
    /// They are watched and probed, and nobody is answered with them.
    Observe,
}

/// Where clusters are found that the configuration does not name: one of `clustersFrom`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSource {
    /// Where.
    pub place: FoundIn,
    /// What its clusters may do.
    pub admit: Admit,
    /// Programs that its kubeconfigs may run, absolute.
    pub exec: Arc<[PathBuf]>,
}

/// Where kubeconfigs of clusters are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundIn {
    /// In a directory: each file is one. The path is absolute.
    Directory(PathBuf),
    /// In Secrets.
    Secrets(Arc<SecretsPlace>),
}

impl fmt::Display for FoundIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "{}", path.display()),
            Self::Secrets(place) => place.fmt(f),
        }
    }
}

/// Secrets of one namespace with the kubeconfigs of clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretsPlace {
    /// Which API server has them, in words.
    pub server: Box<str>,
    /// What the cluster of that server is called in the log.
    pub cluster: ClusterId,
    /// How it is reached.
    pub access: Access,
    /// The namespace.
    pub namespace: Box<str>,
    /// A selector of labels, as Kubernetes writes it.
    pub selector: Box<str>,
    /// The key that has the kubeconfig, the Secret's name being that of the cluster; `None`: each key is the name of a cluster.
    pub key: Option<Box<str>>,
    /// The label that has the cluster's name, in the place of the Secret's name.
    pub name_label: Option<Box<str>>,
}

impl fmt::Display for SecretsPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            server,
            namespace,
            selector,
            ..
        } = self;
        write!(f, "Secrets {selector} in {namespace} of {server}")
    }
}

/// One member cluster to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberConfig {
    /// Its index.
    pub cluster: ClusterIndex,
    /// Its name.
    pub id: ClusterId,
    /// How it is reached.
    pub access: Access,
    /// Multiplies the weights of its endpoints.
    pub weight: Weight,
}

impl MemberConfig {
    /// Makes one whose weights stand as its objects say them.
    #[must_use]
    pub fn new(cluster: ClusterIndex, id: ClusterId, access: Access) -> Self {
        Self {
            cluster,
            id,
            access,
            weight: Weight::default(),
        }
    }
}

/// Where Events are written: `kubernetes.writeBack: events`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteBack {
    /// The namespace of the Lease in every member.
    pub namespace: Box<str>,
    /// This node's name.
    pub node: Box<str>,
}

/// What configuration says of member clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The members, in the order of the configuration.
    pub members: Vec<MemberConfig>,
    /// Where more of them are found, in the order of the configuration.
    pub sources: Vec<ClusterSource>,
    /// How their objects are read.
    pub rules: Arc<Rules>,
    /// Without an answer of its API server for this long a cluster is stale, 1 s..=1 h; default 15 s.
    pub stale_after: Duration,
    /// What is written; `None`: nothing.
    pub write_back: Option<WriteBack>,
    /// Addresses that neither their cluster's API nor a probe confirmed for longer are used after all others, 1 min..=30 d;
    /// default 24 h.
    pub max_age: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            sources: Vec::new(),
            rules: Arc::default(),
            stale_after: Duration::from_secs(15),
            write_back: None,
            max_age: Duration::from_secs(86_400),
        }
    }
}
