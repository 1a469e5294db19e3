//! Member clusters: how each is connected, and what its objects say.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::RefusalDto;

/// How a member cluster is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Link)]
pub enum LinkDto {
    /// What is known of it is what it has.
    Synced,
    /// It was synced, and is not seen now: what was known of it is served on.
    Stale,
    /// It was never synced since the start: what the last good state had of it is served.
    Never,
}

impl LinkDto {
    /// Gives the word that the API uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Synced => "synced",
            Self::Stale => "stale",
            Self::Never => "never",
        }
    }
}

/// How one kind of objects is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = KindState)]
pub enum KindStateDto {
    /// It is not followed now: nothing was asked yet, or the next request waits its turn.
    Waiting,
    /// Its list is being read.
    Listing,
    /// Changes come as they happen.
    Watching,
    /// The server has no such kind.
    Unserved,
    /// The server does not let us (401, 403): what was known stands.
    Refused,
}

impl KindStateDto {
    /// Gives the word that the API uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Listing => "listing",
            Self::Watching => "watching",
            Self::Unserved => "unserved",
            Self::Refused => "refused",
        }
    }
}

/// One kind of objects in a member cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Kind)]
pub struct KindDto {
    /// The kind as Kubernetes spells it: `Service`, `HTTPRoute`.
    pub kind: String,
    /// The version at which it is read.
    pub version: Option<String>,
    /// How it is followed.
    pub state: KindStateDto,
    /// Objects known.
    pub objects: u64,
    /// Objects left out because there are too many.
    pub left_out: u64,
    /// Why it is refused, or why its last request failed.
    pub reason: Option<String>,
}

/// Deletions that are held: most objects of the cluster were gone at once, which is more often a fault than a wish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HeldDeletions)]
pub struct HeldDeletionsDto {
    /// Objects that are served though they are gone.
    pub count: u64,
    /// Since when the first of them is.
    pub since: String,
    /// When the last of them is let go.
    pub until: String,
}

/// What is known of a cluster by its API server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Member)]
pub struct MemberDto {
    /// How it is connected.
    pub link: LinkDto,
    /// The last moment that it was seen whole; absent while it is, and where it never was.
    pub since: Option<String>,
    /// When its API server answered last.
    pub last_contact: Option<String>,
    /// How long ago that is, seconds.
    pub age_seconds: Option<u64>,
    /// The version of its API server.
    pub version: Option<String>,
    /// What is wrong with the connection now.
    pub last_error: Option<String>,
    /// What to know of the connection, such as a certificate that is not checked.
    pub warnings: Vec<String>,
    /// The kinds that are read.
    pub kinds: Vec<KindDto>,
    /// Objects served, held ones included.
    pub shards: u64,
    /// Since when nothing of it was confirmed, where that is longer than `kubernetes.maxAge`: addresses that no probe confirms are
    /// used after all others.
    #[serde(default)]
    pub unconfirmed_since: Option<String>,
    /// Deletions that are held; absent: none.
    pub held: Option<HeldDeletionsDto>,
    /// Objects of which something is refused.
    pub refused_objects: u64,
    /// What is refused of its objects, parts and claims to names, the first 100; empty in lists.
    pub refused: Vec<RefusalDto>,
}

/// All member clusters in a glance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Members)]
pub struct MembersDto {
    /// Synced ones.
    pub synced: u64,
    /// Stale ones.
    pub stale: u64,
    /// Those never synced since the start.
    pub never: u64,
    /// Objects that are served though they are gone.
    pub held_deletions: u64,
    /// Objects of which something is refused.
    pub refused_objects: u64,
    /// Refusals of the whole node: claims to names, and parts of objects.
    pub refusals: u64,
}
