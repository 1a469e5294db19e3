//! Services.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    CountsDto, DrainDto, EventDto, ForceDto, HealthState, ObjectDto, OwnerDto, PolicyConflictDto,
    ServiceOrigin,
};

/// A service in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ServiceRow)]
pub struct ServiceRowDto {
    /// `namespace/name`.
    pub key: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where it comes from.
    #[serde(default)]
    pub origin: ServiceOrigin,
    /// Its names in the DNS, the first 10.
    pub hostnames: Vec<String>,
    /// Its state: of the answers that clients get.
    pub state: HealthState,
    /// How it is steered: `proximity`, `weighted`, `roundRobin`, `all`, `failover`.
    pub steer: String,
    /// Its clusters, each with its state.
    pub clusters: Vec<ShareDto>,
    /// Its endpoints by state.
    pub endpoints: CountsDto,
}

/// A cluster's part in a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Share)]
pub struct ShareDto {
    /// The cluster.
    pub cluster: String,
    /// Its state within the service.
    pub state: HealthState,
    /// The share of answers expected now, 0 to 1; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// What clients of a country get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PlaceShare)]
pub struct PlaceShareDto {
    /// The country's code.
    pub country: String,
    /// The cluster its clients get; absent where they get no cluster's endpoints.
    pub cluster: Option<String>,
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Endpoint)]
pub struct EndpointDto {
    /// Its cluster.
    pub cluster: String,
    /// Its address, or its host name.
    pub address: String,
    /// Its weight.
    pub weight: u16,
    /// Its state.
    pub state: HealthState,
    /// Why it is unready, or drained by its own object.
    #[serde(default)]
    pub reason: Option<String>,
    /// Since when neither the API of its cluster nor a probe confirmed it, where that is longer than `kubernetes.maxAge`: it is used
    /// after all others.
    #[serde(default)]
    pub unconfirmed_since: Option<String>,
    /// Where it comes from: `configuration`, or objects such as `Service shop/web in aws-use1`.
    #[serde(default)]
    pub from: String,
    /// `up`, `down` or `unknown`: what the monitor says.
    pub verdict: String,
    /// Checks went against the verdict.
    pub in_doubt: bool,
    /// An operator drains it.
    pub drained: bool,
    /// Its own object drains it, or is being deleted.
    #[serde(default)]
    pub withdrawn: bool,
    /// What an operator forced it to.
    pub forced: Option<super::ForcedVerdict>,
    /// Senders it is for; empty: everyone.
    pub clients: Vec<String>,
    /// The monitor that judges it.
    pub monitor: Option<String>,
    /// The last probe.
    pub last: Option<super::ProbeDto>,
    /// When its verdict flipped last, since the start.
    pub last_flip: Option<String>,
}

/// How long a failure can last for a client, at most, milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Budget)]
pub struct BudgetDto {
    /// Until the monitor is sure: interval and `fall` timeouts.
    pub detect_ms: u64,
    /// Until the vantage points agree.
    pub agree_ms: u64,
    /// Until the new snapshot answers.
    pub publish_ms: u64,
    /// Until caches let go of the old answer.
    pub ttl_ms: u64,
    /// The sum.
    pub total_ms: u64,
}

/// A service's TTL, seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Ttl)]
pub struct TtlDto {
    /// As configured, for the service or its zone.
    pub configured: u32,
    /// Given now: shorter while a monitor is in doubt or a drain is announced.
    pub now: u32,
    /// Why it is shorter now.
    pub reason: Option<String>,
}

/// A service, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Service)]
pub struct ServiceDto {
    /// `namespace/name`.
    pub key: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where it comes from.
    #[serde(default)]
    pub origin: ServiceOrigin,
    /// Its names in the DNS.
    pub hostnames: Vec<String>,
    /// Which namespace has each of its names; empty for a service of the configuration.
    #[serde(default)]
    pub owners: Vec<OwnerDto>,
    /// The objects that it is made of, by cluster, the first 200; empty for a service of the configuration.
    #[serde(default)]
    pub objects: Vec<ObjectDto>,
    /// How many objects there are.
    #[serde(default)]
    pub object_count: u64,
    /// On what its objects do not agree.
    #[serde(default)]
    pub conflicts: Vec<PolicyConflictDto>,
    /// Names it asked for and did not get, with the reason.
    pub refused: Vec<super::RefusalDto>,
    /// Its state.
    pub state: HealthState,
    /// How it is steered.
    pub steer: String,
    /// Its policy in words, one sentence each, in the order of the steps.
    pub policy: Vec<String>,
    /// Its monitor in words; absent: nobody judges its endpoints.
    pub monitor: Option<String>,
    /// Its clusters: state, and the share of answers expected now from the countries of the last minutes' clients (of all
    /// countries alike when there were none).
    pub clusters: Vec<ShareDto>,
    /// Which cluster the clients of a country get now, for countries whose clients asked in the last minutes; else for all.
    pub places: Vec<PlaceShareDto>,
    /// Its endpoints.
    pub endpoints: Vec<EndpointDto>,
    /// Its endpoints by state.
    pub counts: CountsDto,
    /// Its TTL.
    pub ttl: TtlDto,
    /// Its failover budget; absent where nobody judges.
    pub budget: Option<BudgetDto>,
    /// Drains that touch it.
    pub drains: Vec<DrainDto>,
    /// Forces that touch it.
    pub forces: Vec<ForceDto>,
    /// Its latest events, newest first.
    pub history: Vec<EventDto>,
}
