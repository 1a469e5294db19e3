//! Events and the audit log.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How much an event matters.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Ordinary.
    Info,
    /// Unexpected, survived.
    Warning,
    /// Somebody must act.
    Critical,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// A verdict flipped.
    Flip,
    /// A service has nothing up, or has something up again.
    Service,
    /// A new snapshot of changed input was published (flips do not count).
    Publish,
    /// A drain was announced, began, became safe or ended.
    Drain,
    /// A force was set or ended.
    Force,
    /// A challenge of a certificate authority was set or ended.
    Challenge,
    /// Something was refused, or is no longer: a configuration, a zone file, a database, a bad object.
    Refusal,
    /// Two claims to one name.
    Conflict,
    /// A source or a peer is out of reach, or back.
    Source,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Event)]
pub struct EventDto {
    /// Its number on this node; the newest has the highest, after a restart too.
    pub id: u64,
    /// When.
    pub time: String,
    /// What.
    pub kind: EventKind,
    /// How much it matters.
    pub severity: Severity,
    /// The cluster it is about, if one.
    pub cluster: Option<String>,
    /// Services it is about: the first few, as `namespace/name`.
    pub services: Vec<String>,
    /// Services it is about, counted; absent where they were not searched.
    pub service_count: Option<u64>,
    /// The target probed, as `address:port`, for flips.
    pub target: Option<String>,
    /// The verdict before, for flips: `up`, `down` or `unknown`.
    pub before: Option<String>,
    /// In words: one sentence.
    pub text: String,
}

/// One entry of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Audit)]
pub struct AuditDto {
    /// When.
    pub time: String,
    /// Who: the name of the token or of the bearer's subject.
    pub actor: String,
    /// In which role.
    pub role: String,
    /// From which address.
    pub from: String,
    /// What was done, such as `drain`, `undrain`, `force`; `relay drain` and the like where another node brought it.
    pub action: String,
    /// To what.
    pub target: String,
    /// Why, in the actor's words.
    pub reason: String,
    /// `done`, `refused`, or `unchanged`.
    pub outcome: String,
    /// The record before.
    #[schema(value_type = Option<Object>)]
    pub before: Option<serde_json::Value>,
    /// The record after.
    #[schema(value_type = Option<Object>)]
    pub after: Option<serde_json::Value>,
}
