//! Other nodes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A node in `peers`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Peer)]
pub struct PeerDto {
    /// Its URL.
    pub url: String,
    /// Its name, once it was heard of.
    pub name: Option<String>,
    /// It answered the last time it was asked.
    pub reachable: bool,
    /// When it was heard of last, milliseconds ago.
    pub heard_ms_ago: Option<u64>,
    /// Why it could not be reached.
    pub error: Option<String>,
    /// It has the same records as this node.
    pub in_step: bool,
}
