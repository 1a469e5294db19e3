//! Zones.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One server of a zone, as it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DelegationServer)]
pub struct DelegationServerDto {
    /// Its name.
    pub name: String,
    /// The address asked.
    pub address: String,
    /// Its SOA serial.
    #[schema(format = Int64)]
    pub serial: Option<u32>,
    /// What is wrong with it.
    pub fault: Option<String>,
}

/// How the parent delegates a zone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delegation)]
pub struct DelegationDto {
    /// When it was looked up.
    pub checked: String,
    /// It is as it should be.
    pub ok: bool,
    /// What is wrong, one line each.
    pub faults: Vec<String>,
    /// Records the parent must have.
    pub wanted: Vec<String>,
    /// Records the parent has.
    pub found: Vec<String>,
    /// The zone's servers, as they answer.
    pub servers: Vec<DelegationServerDto>,
}

/// A zone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Zone)]
pub struct ZoneDto {
    /// Its apex.
    pub name: String,
    /// The SOA serial served.
    #[schema(format = Int64)]
    pub serial: u32,
    /// Its name servers.
    pub nameservers: Vec<String>,
    /// TTL of steered names, seconds.
    pub ttl: u32,
    /// TTL of negative answers, seconds.
    pub negative_ttl: u32,
    /// Names with static records.
    pub names: u64,
    /// Which names it makes of Kubernetes services, as `names` of the configuration says; empty: only those that they ask for.
    #[serde(default)]
    pub name_forms: Vec<String>,
    /// The federation of names of the form `kubefed`; absent: only objects that name theirs have such a name.
    #[serde(default)]
    pub federation_name: Option<String>,
    /// Its delegation; absent until it was looked up, and in lists.
    pub delegation: Option<DelegationDto>,
}
