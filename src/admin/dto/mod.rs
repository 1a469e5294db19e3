//! What the API says, resource by resource: the only shapes that leave this room, for browsers, scripts and our own commands.
//!
//! Times are RFC 3339 in UTC, ages and durations are numbers with their unit in the name. Lists come in pages. Fields may be
//! added; none changes its meaning within `v1`.

mod challenges;
mod clusters;
mod events;
mod explain;
mod members;
mod monitors;
mod objects;
mod operate;
mod problem;
mod services;
mod sources;
mod status;
mod vantage;
mod zones;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use challenges::{ChallengeDto, ChallengeState, NewChallenge, NodeChallengeDto};
pub use clusters::{AnnotationDto, ClusterDto, EvidenceDto, LeavingDto, LocationDto};
pub use events::{AuditDto, EventDto, EventKind, Severity};
pub use explain::{ExplanationDto, StepDto};
pub use members::{HeldDeletionsDto, KindDto, KindStateDto, LinkDto, MemberDto, MembersDto};
pub use monitors::{MonitorDto, OriginDto, ProbeDto};
pub use objects::{
    BackingDto, ObjectDto, OwnerDto, PolicyConflictDto, RefusedPartDto, ServiceOrigin,
};
pub use operate::{
    ChangeDto, DrainDto, DrainState, ForceDto, ForcedVerdict, NewDrain, NewForce, NodeDrainDto,
    TargetDto, TargetKind,
};
pub use problem::ProblemDetailsDto;
pub use services::{
    BudgetDto, EndpointDto, PlaceShareDto, ServiceDto, ServiceRowDto, ShareDto, TtlDto,
};
pub use sources::{RefusalDto, SourceDto, SourceKind, SourceState};
pub use status::{
    CountsDto, NodeDto, ProblemDto, RatesDto, SendersDto, StatusDto, TrafficDto, TranslatedDto,
};
pub use vantage::PeerDto;
pub use zones::{DelegationDto, DelegationServerDto, ZoneDto};

/// What a cluster, a service or an endpoint is worth right now: one word, worst last.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum HealthState {
    /// Everything is up and undrained.
    Up,
    /// Nobody has judged it yet, or nobody watches it: answered as up.
    Unknown,
    /// An operator drains it, or its own object does.
    Drained,
    /// Some of it is down.
    Degraded,
    /// Its own cluster says that it takes no traffic: counted as down. Endpoints alone are.
    Unready,
    /// All of it is down.
    Down,
}

impl HealthState {
    /// Gives the word that the API uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Unknown => "unknown",
            Self::Drained => "drained",
            Self::Degraded => "degraded",
            Self::Unready => "unready",
            Self::Down => "down",
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// Items in the whole list after filtering.
    pub total: u64,
    /// The value of `cursor` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
