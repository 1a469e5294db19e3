//! Where a service comes from: objects of member clusters, and who has its names.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a service comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum ServiceOrigin {
    /// The configuration.
    #[default]
    Configuration,
    /// Objects of member clusters.
    Kubernetes,
}

impl ServiceOrigin {
    /// Gives the word that the API uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Kubernetes => "kubernetes",
        }
    }
}

/// Who has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Owner)]
pub struct OwnerDto {
    /// The name in the DNS.
    pub name: String,
    /// The namespace that has it, the same in all clusters.
    pub namespace: String,
}

/// Endpoints that stand behind an object, as its cluster counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Backing)]
pub struct BackingDto {
    /// Ready ones.
    pub ready: u32,
    /// Serving ones, ready or not.
    pub serving: u32,
    /// Those about to end.
    pub terminating: u32,
    /// All that are to stay: those of which enough must be ready.
    #[serde(default)]
    pub total: u32,
}

/// A part of an object that is refused; the rest of it counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RefusedPart)]
pub struct RefusedPartDto {
    /// An annotation's key, a field, or a host name.
    pub what: String,
    /// Why, and what would be right.
    pub reason: String,
}

/// What an object of a member cluster gives to a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Object)]
pub struct ObjectDto {
    /// The cluster.
    pub cluster: String,
    /// Its kind as Kubernetes spells it.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where its traffic enters, the first 64 addresses.
    pub addresses: Vec<String>,
    /// Where its traffic enters, as host names, the first 64.
    pub targets: Vec<String>,
    /// It can take traffic, as its cluster says.
    pub ready: bool,
    /// Why it cannot, or why it is not served at all.
    pub reason: Option<String>,
    /// It is served; else only its names are kept for it.
    pub served: bool,
    /// It drains itself, or is being deleted.
    pub drained: bool,
    /// Its share beside those of other clusters.
    pub weight: u16,
    /// What stands behind it; absent where nothing is counted.
    pub backing: Option<BackingDto>,
    /// What is refused of it, the first 20.
    pub refused: Vec<RefusedPartDto>,
    /// How much is refused of it.
    pub refused_count: u64,
}

/// A word about a service on which its members do not agree: most of them are followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PolicyConflict)]
pub struct PolicyConflictDto {
    /// The annotation's key, or a field of the object.
    pub key: String,
    /// Clusters that say otherwise.
    pub overruled: Vec<String>,
}
