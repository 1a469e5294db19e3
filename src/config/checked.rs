//! The checked configuration, made of each room's own.

use std::path::PathBuf;
use std::sync::Arc;

use crate::admin;
use crate::geo::Override;
use crate::inventory::{FederationRules, Service};
use crate::model::{Cluster, ClusterIndex, Coordinates, Groups};
use crate::prober;
use crate::resolving::TargetsConfig;
use crate::snapshot::Settings;
use crate::source::kubernetes;
use crate::telemetry::OtlpConfig;
use crate::transport;
use crate::vantage;
use crate::zone::ZoneSpec;

/// `node`.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The vantage point's name; default: the host name.
    pub name: String,
    /// Where the node is.
    pub location: Option<Coordinates>,
    /// Where the last good state is kept; `None` keeps nothing. A relative path is relative to the configuration file.
    pub state_directory: Option<PathBuf>,
}

/// `geoip`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Geoip {
    /// MMDB files, absolute; none: the embedded country database.
    pub databases: Vec<PathBuf>,
    /// The operator's prefixes.
    pub overrides: Vec<Override>,
}

/// One entry of `zones`.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneSource {
    /// All but the file's text (`spec.file` is `None`, `spec.serial` 0: the source of zones fills both in).
    pub spec: ZoneSpec,
    /// The master file, absolute.
    pub file: Option<PathBuf>,
}

/// A configuration without faults.
#[derive(Debug)]
pub struct Config {
    /// `node`.
    pub node: Node,
    /// `dns`, the sockets' part.
    pub dns: transport::Config,
    /// `dns`, the part of answering.
    pub settings: Settings,
    /// `zones`.
    pub zones: Vec<ZoneSource>,
    /// `geoip`.
    pub geoip: Geoip,
    /// `groups` and the built-in ones.
    pub groups: Groups,
    /// `clusters`, with the indices that services refer to.
    pub clusters: Vec<(ClusterIndex, Arc<Cluster>)>,
    /// `services`.
    pub services: Vec<Service>,
    /// `kubernetes`, and the clusters that are watched.
    pub kubernetes: kubernetes::Config,
    /// What zones say of names from Kubernetes, and `defaults.policy`.
    pub federation: Arc<FederationRules>,
    /// `probes`.
    pub probes: prober::Config,
    /// `resolver`.
    pub resolver: TargetsConfig,
    /// `telemetry.otlp`.
    pub otlp: Option<OtlpConfig>,
    /// `admin` and `metrics`.
    pub admin: admin::Config,
    /// `peers`.
    pub peers: vantage::Config,
}
