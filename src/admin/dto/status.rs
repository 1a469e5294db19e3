//! The whole in a glance.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{MembersDto, PeerDto, Severity};

/// Things by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Counts)]
pub struct CountsDto {
    /// Up and undrained.
    pub up: u64,
    /// Not judged: answered as up.
    pub unknown: u64,
    /// Some of it down.
    pub degraded: u64,
    /// Drained.
    pub drained: u64,
    /// Down.
    pub down: u64,
}

impl CountsDto {
    /// Adds all up.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.up + self.unknown + self.degraded + self.drained + self.down
    }
}

/// Something wrong now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
pub struct ProblemDto {
    /// How bad.
    pub severity: Severity,
    /// What it is, short.
    pub title: String,
    /// Whom it touches and what was done about it.
    pub text: String,
    /// Where to look: a path of the dashboard.
    pub link: String,
    /// Since when, if known.
    pub since: Option<String>,
}

/// This node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Node)]
pub struct NodeDto {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// When it started.
    pub started: String,
    /// Its clock, to the second.
    pub now: String,
    /// It serves, and is not going down.
    pub ready: bool,
    /// The publish in force, counted since the start.
    pub generation: u64,
    /// Owner names served.
    pub names: u64,
}

/// Rates over the last sampled seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Rates)]
pub struct RatesDto {
    /// Queries a second.
    pub queries_per_second: f64,
    /// Replies a second with SERVFAIL.
    pub failures_per_second: f64,
    /// Half of the batches of queries took less, microseconds.
    pub latency_p50_us: Option<f64>,
    /// 99 of 100 batches took less, microseconds.
    pub latency_p99_us: Option<f64>,
}

/// Why senders look translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Translated)]
pub enum TranslatedDto {
    /// One address sends most queries.
    OneAddress,
    /// A few private addresses do, and nobody knows where these are.
    FewPrivate,
}

/// Who asked in the last 5 minutes, by a sample of the queries for names of ours; those from the machine itself are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Senders)]
pub struct SendersDto {
    /// Queries in the sample.
    pub sampled: u64,
    /// Different addresses among their senders.
    pub addresses: u64,
    /// The share of private addresses, 0 to 1.
    pub private_share: f64,
    /// The share of queries with a believed Client Subnet, 0 to 1.
    pub subnet_share: f64,
    /// The share of the address that sends most, 0 to 1.
    pub busiest_share: f64,
    /// The network of that address: 24 bits of IPv4, 48 of IPv6.
    pub busiest_network: Option<String>,
    /// Why most senders look translated; absent: they do not.
    pub translated: Option<TranslatedDto>,
}

/// The state of everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Status)]
pub struct StatusDto {
    /// This node.
    pub node: NodeDto,
    /// What is wrong now, worst first; at most 50.
    pub problems: Vec<ProblemDto>,
    /// How many problems there are.
    pub problem_count: u64,
    /// Clusters by state.
    pub clusters: CountsDto,
    /// Services by state.
    pub services: CountsDto,
    /// Monitors by verdict (degraded: in doubt).
    pub monitors: CountsDto,
    /// Traffic.
    pub rates: RatesDto,
    /// Who asked; absent: nobody, as far as is known.
    #[serde(default)]
    pub senders: Option<SendersDto>,
    /// Drains in force or announced.
    pub drains: u64,
    /// Forces in force.
    pub forces: u64,
    /// Challenges of certificate authorities that stand.
    #[serde(default)]
    pub challenges: u64,
    /// Member clusters; absent: there are none.
    pub members: Option<MembersDto>,
    /// The other nodes.
    pub peers: Vec<PeerDto>,
}

/// What happened over the last hour, for charts. All series have one value a step, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Traffic)]
pub struct TrafficDto {
    /// Unix time of the last step, seconds.
    pub end: u64,
    /// Seconds a step.
    pub step_seconds: u32,
    /// Queries a second.
    pub queries: Vec<f64>,
    /// Replies a second, by RCODE.
    pub replies: std::collections::BTreeMap<String, Vec<f64>>,
    /// Answers a second, by cluster.
    pub clusters: std::collections::BTreeMap<String, Vec<f64>>,
    /// Answers of the last five minutes by country of the client.
    pub countries: std::collections::BTreeMap<String, u64>,
    /// Median latency, microseconds; 0 where nothing was asked.
    pub latency_p50_us: Vec<f64>,
    /// 99th percentile, microseconds.
    pub latency_p99_us: Vec<f64>,
    /// Median duration of probes, milliseconds, by cluster.
    pub probe_ms: std::collections::BTreeMap<String, Vec<f64>>,
}
