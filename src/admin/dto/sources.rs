//! Sources: files, databases, member clusters, peers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What kind of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum SourceKind {
    /// The configuration file.
    Configuration,
    /// A zone file.
    ZoneFile,
    /// A GeoIP database.
    Database,
    /// A directory of kubeconfigs.
    Directory,
    /// Secrets with kubeconfigs.
    Secrets,
    /// A file of tokens, listed where it has faults.
    TokenFile,
    /// The last good state on disk.
    LastGoodState,
    /// A member cluster.
    Kubernetes,
    /// Another node.
    Peer,
}

/// How a source is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum SourceState {
    /// In force as it stands.
    Ok,
    /// Out of reach or gone; what was last good is in force.
    Stale,
    /// Its newest content was refused; what was last good is in force.
    Refused,
}

/// Something refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Refusal)]
pub struct RefusalDto {
    /// Who or what it came from.
    pub source: String,
    /// The place in it: `file:line` or `file:line:column` of a file, the name of a refused claim.
    pub place: String,
    /// Why.
    pub reason: String,
}

/// A source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Source)]
pub struct SourceDto {
    /// Its kind.
    pub kind: SourceKind,
    /// Its path, name or URL.
    pub name: String,
    /// Its state.
    pub state: SourceState,
    /// Since when what is in force is in force.
    pub loaded: Option<String>,
    /// Age of the content in force in seconds: since a database's build, a peer's last word, a cluster's last
    /// answer, the last write.
    pub age_seconds: Option<u64>,
    /// More in words: type, build date, networks, zone.
    pub details: Vec<String>,
    /// What was refused from it: the first 50 faults of a file, and 100 with the claims of a configuration.
    pub refused: Vec<RefusalDto>,
    /// How much was refused from it.
    pub refused_count: u64,
}
