//! Monitors.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The last probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Probe)]
pub struct ProbeDto {
    /// It succeeded.
    pub ok: bool,
    /// How long it took, milliseconds; absent when it failed.
    pub milliseconds: Option<f64>,
    /// Why it failed.
    pub error: Option<String>,
}

/// On whose word a target is probed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Origin)]
pub enum OriginDto {
    /// The configuration file's.
    #[default]
    Operator,
    /// A Kubernetes object's.
    Tenant,
}

/// One monitor: what is probed, and what it says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Monitor)]
pub struct MonitorDto {
    /// Its number: stable while the target and the check are the same, on every node.
    pub id: String,
    /// What is probed, as `address:port`.
    pub target: String,
    /// On whose word: the configuration file's, or a Kubernetes object's, whose targets are held up to `probes.allow`.
    #[serde(default)]
    pub origin: OriginDto,
    /// The check: `http GET /healthz`, `https HEAD /`, `tcp`.
    pub check: String,
    /// `up`, `down` or `unknown`.
    pub verdict: String,
    /// Checks went against the verdict, not enough of them to flip it.
    pub in_doubt: bool,
    /// It never succeeded since its first round: is the check right?
    pub never_succeeded: bool,
    /// Why the target is not probed, such as `private address`: it is a tenant's, and `probes.allow` does not open it. The
    /// verdict is `unknown`, which is answered as up. Absent when it is probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The last probe, if any was finished.
    pub last: Option<ProbeDto>,
    /// The cluster of the first of the endpoints that it judges: they share an address, and nearly always a cluster.
    pub clusters: Vec<String>,
    /// Endpoints it speaks for.
    pub endpoints: u64,
    /// From probe to probe, milliseconds.
    pub interval_ms: u64,
    /// A probe that takes longer has failed, milliseconds.
    pub timeout_ms: u64,
    /// Successes in a row that make it up.
    pub rise: u8,
    /// Failures in a row that make it down.
    pub fall: u8,
}
