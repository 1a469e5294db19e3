//! Drains and forces: what operators say.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a drain or a force is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum TargetKind {
    /// All endpoints of a cluster.
    Cluster,
    /// A service's endpoints, in one cluster or in all.
    Service,
    /// One address of a cluster, in one service or in all.
    Endpoint,
}

/// What a drain or a force is about. A cluster needs `cluster`; a service `service`, and perhaps `cluster`; an endpoint
/// `cluster` and `address`, and perhaps `service`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = Target)]
pub struct TargetDto {
    /// What kind of thing.
    pub kind: TargetKind,
    /// The cluster's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 253)]
    pub cluster: Option<String>,
    /// The service, as `namespace/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 512)]
    pub service: Option<String>,
    /// The address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub address: Option<String>,
}

/// Asks for a drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewDrain {
    /// What to drain.
    pub target: TargetDto,
    /// Why: 1 to 500 characters, none of them a control character, not only spaces.
    #[schema(
        min_length = 1,
        max_length = 500,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub reason: String,
    /// Seconds from now to the moment it is announced for. Until then TTLs are short, and it takes hold seven seconds before it,
    /// so that at the moment itself no cache has what is drained any more. Default 0: at once.
    #[serde(default)]
    #[schema(maximum = 2_592_000)]
    pub in_seconds: u32,
    /// Seconds from its beginning until it ends by itself; absent: until somebody ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub for_seconds: Option<u32>,
}

/// What a force pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum ForcedVerdict {
    /// Taken as up, whatever monitors say.
    Up,
    /// Taken as down, and used after everything else.
    Down,
}

/// Asks for a force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewForce {
    /// What to force.
    pub target: TargetDto,
    /// The verdict.
    pub verdict: ForcedVerdict,
    /// Why: 1 to 500 characters, none of them a control character, not only spaces.
    #[schema(
        min_length = 1,
        max_length = 500,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub reason: String,
    /// Seconds from now until it ends by itself; absent: until somebody ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub for_seconds: Option<u32>,
}

/// Who did something to a record, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Change)]
pub struct ChangeDto {
    /// When.
    pub time: String,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum DrainState {
    /// It begins later; TTLs are short.
    Announced,
    /// Not every node has it yet.
    Partial,
    /// In force everywhere; old answers may still be in caches.
    Draining,
    /// It is the last that some name has, and served all the same.
    Held,
    /// No new answer names it, and every cache has let go of the old ones: safe to stop.
    Safe,
    /// Over.
    Ended,
}

/// What one node says of a drain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NodeDrain)]
pub struct NodeDrainDto {
    /// The node's name, or its address while its name is not known.
    pub node: String,
    /// It is this node itself.
    pub own: bool,
    /// It has the record, and every worker answers by it.
    pub in_force: bool,
    /// When it was heard of last; absent: never since the start.
    pub heard_ms_ago: Option<u64>,
    /// Why it could not be reached.
    pub error: Option<String>,
    /// Names for which it is the last resort there.
    pub held: u64,
    /// Seconds since the last answer that named it, at most: counted from the moment the drain was in force where there was none.
    pub last_given_seconds_ago: Option<f64>,
    /// The highest TTL that such an answer may have had, seconds.
    pub ttl: u32,
    /// Seconds until the last of those answers has left every cache, margin included; 0: they have.
    pub remaining_seconds: Option<f64>,
}

/// A drain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Drain)]
pub struct DrainDto {
    /// Its id.
    pub id: String,
    /// What is drained.
    pub target: TargetDto,
    /// How far it is.
    pub state: DrainState,
    /// `safe to stop` can be said: every listed node said so.
    pub safe_to_stop: bool,
    /// Why it is not safe yet, one line each; empty when it is.
    pub waiting_for: Vec<String>,
    /// Who announced it.
    pub created: ChangeDto,
    /// When it begins or began.
    pub starts: String,
    /// When it ends by itself.
    pub expires: Option<String>,
    /// Who ended it.
    pub ended: Option<ChangeDto>,
    /// Nodes that have it, this one included.
    pub acknowledged: u32,
    /// Nodes that must have it: this one and those in `peers`.
    pub expected: u32,
    /// Services for which it is the last resort, on any node: the first 20.
    pub held_services: Vec<String>,
    /// Each node's word.
    pub nodes: Vec<NodeDrainDto>,
}

/// A force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Force)]
pub struct ForceDto {
    /// Its id.
    pub id: String,
    /// What is forced.
    pub target: TargetDto,
    /// The verdict.
    pub verdict: ForcedVerdict,
    /// It is in force: neither ended nor expired nor overruled by a newer one.
    pub active: bool,
    /// Who set it.
    pub created: ChangeDto,
    /// When it ends by itself.
    pub expires: Option<String>,
    /// Who ended it.
    pub ended: Option<ChangeDto>,
    /// Nodes that have it, this one included.
    pub acknowledged: u32,
    /// Nodes that must have it.
    pub expected: u32,
    /// Nodes that have not said that they have it.
    pub missing: Vec<String>,
}
