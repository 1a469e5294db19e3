//! Clusters.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CountsDto, DrainDto, ForceDto, HealthState, MemberDto};

/// Where a cluster is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Location)]
pub struct LocationDto {
    /// Degrees north, -90 to 90.
    pub latitude: f64,
    /// Degrees east, -180 to 180.
    pub longitude: f64,
}

/// How something about a cluster is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Evidence)]
pub struct EvidenceDto {
    /// What: `coordinates`, `country`, `continent`, `region`.
    pub what: String,
    /// The value in force.
    pub value: String,
    /// Where it comes from, in words.
    pub from: String,
}

/// An annotation about a cluster that counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Annotation)]
pub struct AnnotationDto {
    /// The whole key.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// Gives the only reason that older nodes know.
fn kubeconfig_is_gone() -> String {
    "its kubeconfig is gone".to_owned()
}

/// A cluster whose kubeconfig is gone from its directory, or its Secret. It gets no new answers but as a last resort, and goes when nobody is sent
/// there any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Leaving)]
pub struct LeavingDto {
    /// Since when.
    pub since: String,
    /// Why: `its kubeconfig is gone`, or what else it says.
    #[serde(default = "kubeconfig_is_gone")]
    pub why: String,
    /// Services that have nothing else, for some clients at least: it stays as long as there are any.
    pub held: u64,
    /// The first 20 of them.
    pub held_services: Vec<String>,
    /// Seconds until it goes; absent while that cannot be said.
    pub remaining_seconds: Option<f64>,
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Cluster)]
pub struct ClusterDto {
    /// Its name.
    pub name: String,
    /// Where it comes from: `configuration`, the path of a kubeconfig in a directory, or a Secret with its key.
    pub from: String,
    /// Its state.
    pub state: HealthState,
    /// Its coordinates, if known.
    pub location: Option<LocationDto>,
    /// ISO 3166-1 alpha-2 code of its country.
    pub country: Option<String>,
    /// Code of its continent: AF, AN, AS, EU, NA, OC, SA.
    pub continent: Option<String>,
    /// The cloud.
    pub provider: Option<String>,
    /// The cloud's region.
    pub region: Option<String>,
    /// Zones.
    pub zones: Vec<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Kilometers of penalty.
    pub cost_km: u32,
    /// How its location is known.
    pub evidence: Vec<EvidenceDto>,
    /// What annotations say of it, on the Secret that it comes from; those that are refused are among the refusals of that source.
    pub annotations: Vec<AnnotationDto>,
    /// Services that have an endpoint in it.
    pub services: u64,
    /// Its endpoints by state. Endpoints that share address and monitor count once; all those of a cluster that nobody
    /// monitors count as one.
    pub endpoints: CountsDto,
    /// Answers a second with its endpoints, over the last sampled seconds.
    pub answers_per_second: f64,
    /// Median duration of its last successful probes in milliseconds.
    pub probe_ms: Option<f64>,
    /// The drain in force or announced for the whole cluster.
    pub drain: Option<DrainDto>,
    /// The force in force for the whole cluster.
    pub force: Option<ForceDto>,
    /// It may be answered with; else it is watched and probed, and no answer has it until `clusters` names it or it is found
    /// where `clustersFrom` serves.
    pub admitted: bool,
    /// It is leaving; absent: it is not.
    pub leaving: Option<LeavingDto>,
    /// What its API server says; absent: it is no member cluster.
    pub kubernetes: Option<MemberDto>,
}
