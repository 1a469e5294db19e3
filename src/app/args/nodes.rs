//! Arguments of the commands that talk to nodes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use reqwest::Url;

use crate::admin::dto::ForcedVerdict;
use crate::config::parse_duration;

/// Words of [`crate::admin::dto::HealthState`].
const STATES: [&str; 5] = ["up", "unknown", "drained", "degraded", "down"];
/// Words of [`crate::admin::dto::EventKind`].
const EVENT_KINDS: [&str; 9] = [
    "flip",
    "service",
    "publish",
    "drain",
    "force",
    "challenge",
    "refusal",
    "conflict",
    "source",
];
/// Words of [`crate::admin::dto::Severity`].
const SEVERITIES: [&str; 3] = ["info", "warning", "critical"];

/// Which nodes.
#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct NodeArgs {
    /// A node's URL; give one for each node
    #[arg(
        long = "server",
        global = true,
        value_name = "URL",
        env = "MERIDIAN_SERVER",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:8053",
        hide_env_values = true,
        help_heading = "Nodes"
    )]
    pub(in crate::app) servers: Vec<ServerArg>,
    #[command(flatten)]
    pub(in crate::app) access: AccessArgs,
}

/// How nodes are spoken to.
#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct AccessArgs {
    /// A file with the token to show; it is sent over https, and over http to loopback addresses only
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "MERIDIAN_TOKEN_FILE",
        hide_env_values = true,
        help_heading = "Nodes"
    )]
    pub(in crate::app) token_file: Option<PathBuf>,
    /// A PEM file with the certificates to trust in place of the system's
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "MERIDIAN_CA",
        hide_env_values = true,
        help_heading = "Nodes"
    )]
    pub(in crate::app) ca: Option<PathBuf>,
}

/// A node's URL. What it must not hold is said by [`Self::flaw`], not while parsing: clap would show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::app) struct ServerArg(pub(in crate::app) Url);

impl ServerArg {
    /// Says what it has beside scheme, host, port and a path in front of the API's, without showing it: it may be a secret.
    pub(in crate::app) fn flaw(&self) -> Option<&'static str> {
        if !self.0.username().is_empty() || self.0.password().is_some() {
            return Some("a node's URL must not hold credentials; use --token-file FILE");
        }
        (self.0.query().is_some() || self.0.fragment().is_some()).then_some(
            "a node's URL has scheme, host, port and perhaps a path, nothing behind them",
        )
    }
}

impl std::str::FromStr for ServerArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let advice = "write one such as http://127.0.0.1:8053 or https://ns1.example.com:8053";
        let url: Url = text
            .trim()
            .parse()
            .map_err(|_| format!("`{text}` is no URL; {advice}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(format!("`{text}` is no URL of a node; {advice}"));
        }
        Ok(Self(url))
    }
}

/// A time from now, or a length of time: whole seconds, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) struct DurationArg(pub(in crate::app) Duration);

impl DurationArg {
    /// Gives whole seconds.
    pub(in crate::app) fn seconds(self) -> u32 {
        u32::try_from(self.0.as_secs()).unwrap_or(u32::MAX)
    }
}

impl std::str::FromStr for DurationArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_duration(text)
            .filter(|span| span.as_secs() > 0 && u32::try_from(span.as_secs()).is_ok())
            .filter(|span| span.subsec_nanos() == 0)
            .map(Self)
            .ok_or_else(|| {
                format!("`{text}` is no time; write seconds, or one such as 30s, 10m, 2h or 1h30m")
            })
    }
}

/// How results about nodes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::app) enum ListOutputArg {
    /// For people
    Table,
    /// For people with wide terminals: more columns
    Wide,
    /// For machines
    Json,
    /// For machines and people
    Yaml,
}

/// How often, and in which form.
#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct HowArgs {
    /// How the result is written
    #[arg(short, long, global = true, default_value = "table")]
    pub(in crate::app) output: ListOutputArg,
    /// Show it again and again, every 2 seconds unless told otherwise, until Ctrl-C
    #[arg(
        short,
        long,
        global = true,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2"
    )]
    pub(in crate::app) watch: Option<DurationArg>,
}

#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = STATUS_EXAMPLES)]
pub(in crate::app) struct StatusArgs {
    #[command(subcommand)]
    pub(in crate::app) of: Option<StatusOf>,
    #[command(flatten)]
    pub(in crate::app) nodes: NodeArgs,
    #[command(flatten)]
    pub(in crate::app) how: HowArgs,
}

/// Examples of `status`.
const STATUS_EXAMPLES: &str = "\
Without a word, it sums up: what is wrong, worst first; then counts, drains and nodes.

Examples:
  meridian status
  meridian status --watch --server http://10.0.0.1:8053 --server http://10.0.0.2:8053
  meridian status services --state down --cluster aws-use1
  meridian status services shop/web
  meridian status services www.svc.example.com --output yaml
  meridian status events --kind flip --watch

Exit codes of the summary: 0 when nothing is critical, 1 when something is or a node is out of reach, 2 for wrong arguments.";

/// What to show.
#[derive(Clone, Debug, Subcommand)]
pub(in crate::app) enum StatusOf {
    /// Clusters; with a name, all about that one
    #[command(alias = "cluster")]
    Clusters(OneArgs),
    /// Services; with a key or a name in the DNS, all about that one
    #[command(alias = "service")]
    Services(ServiceArgs),
    /// Monitors: what is probed, and what it says
    #[command(alias = "monitor")]
    Monitors(MonitorArgs),
    /// Events, newest first: flips, publishes, drains, refusals
    #[command(alias = "event")]
    Events(EventArgs),
    /// Drains; with an id, all about that one
    #[command(alias = "drain")]
    Drains(RecordArgs),
    /// Forces; with an id, all about that one
    #[command(alias = "force")]
    Forces(RecordArgs),
    /// Challenges of certificate authorities; with an id, all about that one
    #[command(alias = "challenge")]
    Challenges(RecordArgs),
    /// The other nodes, as the node that answers sees them
    #[command(alias = "peer")]
    Peers,
    /// Zones; with a name, also how the parent delegates it
    #[command(alias = "zone")]
    Zones(OneArgs),
    /// Files and databases: their age, and what was refused from them
    #[command(alias = "source")]
    Sources,
    /// Who did what, newest first
    Audit(AuditArgs),
}

#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct OneArgs {
    /// Only this one, with everything about it
    pub(in crate::app) name: Option<String>,
}

/// How much of a list.
#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct ListArgs {
    /// Most items to show
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(in crate::app) limit: u32,
}

#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct ServiceArgs {
    /// Only this one, with everything about it: `namespace/name`, or one of its names in the DNS
    #[arg(value_name = "NAMESPACE/NAME|HOSTNAME", conflicts_with_all = ["search", "namespace", "cluster", "state"])]
    pub(in crate::app) name: Option<String>,
    /// With this in the key or in a name in the DNS
    #[arg(long, value_name = "TEXT")]
    pub(in crate::app) search: Option<String>,
    /// In this namespace
    #[arg(short, long)]
    pub(in crate::app) namespace: Option<String>,
    /// With an endpoint in this cluster
    #[arg(long)]
    pub(in crate::app) cluster: Option<String>,
    /// In this state
    #[arg(long, value_parser = STATES)]
    pub(in crate::app) state: Option<String>,
    #[command(flatten)]
    pub(in crate::app) list: ListArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct MonitorArgs {
    /// With this in the target, the check or a cluster's name
    #[arg(long, value_name = "TEXT")]
    pub(in crate::app) search: Option<String>,
    /// With this verdict
    #[arg(long, value_parser = ["up", "down", "unknown"])]
    pub(in crate::app) verdict: Option<String>,
    /// Of endpoints in this cluster: the first of those that share the monitor
    #[arg(long)]
    pub(in crate::app) cluster: Option<String>,
    /// Only those that never succeeded: is the check right?
    #[arg(long)]
    pub(in crate::app) never_succeeded: bool,
    #[command(flatten)]
    pub(in crate::app) list: ListArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct EventArgs {
    /// With this in the text, a cluster's name, a service's key or a target
    #[arg(long, value_name = "TEXT")]
    pub(in crate::app) search: Option<String>,
    /// Of this kind
    #[arg(long, value_parser = EVENT_KINDS)]
    pub(in crate::app) kind: Option<String>,
    /// At least this severe
    #[arg(long, value_parser = SEVERITIES)]
    pub(in crate::app) severity: Option<String>,
    /// About this cluster
    #[arg(long)]
    pub(in crate::app) cluster: Option<String>,
    /// About this service
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(in crate::app) service: Option<String>,
    #[command(flatten)]
    pub(in crate::app) list: ListArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct RecordArgs {
    /// Only this one, with everything about it
    pub(in crate::app) id: Option<String>,
    /// Those that are over too
    #[arg(long, conflicts_with = "id")]
    pub(in crate::app) all: bool,
    #[command(flatten)]
    pub(in crate::app) list: ListArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct AuditArgs {
    #[command(flatten)]
    pub(in crate::app) list: ListArgs,
}

/// What a drain or a force is about.
#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct TargetArgs {
    /// `cluster NAME`, `service NAMESPACE/NAME`, or `endpoint CLUSTER ADDRESS`
    #[arg(value_name = "TARGET", required = true, num_args = 1..=3)]
    pub(in crate::app) words: Vec<String>,
    /// Of a service: only in this cluster
    #[arg(long, value_name = "NAME")]
    pub(in crate::app) cluster: Option<String>,
    /// Of an endpoint: only in this service
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(in crate::app) service: Option<String>,
}

#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = DRAIN_EXAMPLES)]
pub(in crate::app) struct DrainArgs {
    #[command(flatten)]
    pub(in crate::app) target: TargetArgs,
    /// Why: kept in the record, shown to everybody, and written to the audit log
    #[arg(long, value_name = "TEXT")]
    pub(in crate::app) reason: String,
    /// Announce it now, begin then: until it begins TTLs are short
    #[arg(long = "in", value_name = "DURATION")]
    pub(in crate::app) begin: Option<DurationArg>,
    /// End by itself so long after its beginning
    #[arg(long = "for", value_name = "DURATION")]
    pub(in crate::app) length: Option<DurationArg>,
    /// Wait until it is safe to stop
    #[arg(long)]
    pub(in crate::app) wait: bool,
    /// Wait at most so long after its beginning
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "15m",
        requires = "wait"
    )]
    pub(in crate::app) timeout: DurationArg,
    #[command(flatten)]
    pub(in crate::app) nodes: NodeArgs,
    /// How the result is written
    #[arg(short, long, default_value = "table")]
    pub(in crate::app) output: super::OutputArg,
}

/// Examples of `drain`.
const DRAIN_EXAMPLES: &str = "\
It may be said again: a target that is drained already stays as it is. With several nodes, give all of them: the first that
answers passes it on, and --wait asks each.

Examples:
  meridian drain cluster aws-use1 --reason 'kernel update' --wait
  meridian drain service shop/web --cluster aws-use1 --reason 'bad release' --for 2h
  meridian drain endpoint aws-use1 192.0.2.10 --reason 'disk' --in 10m

Exit codes: 0 done, with --wait also safe to stop; 1 not done; 2 wrong arguments; 3 it is drained, but --timeout passed or it
cannot become safe: what stands in the way is said.";

#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = UNDRAIN_EXAMPLES)]
pub(in crate::app) struct UndrainArgs {
    #[command(flatten)]
    pub(in crate::app) target: EndArgs,
}

/// Examples of `undrain`.
const UNDRAIN_EXAMPLES: &str = "\
It may be said again: what is not drained stays as it is.

Examples:
  meridian undrain cluster aws-use1 --reason 'kernel updated'
  meridian undrain service shop/web --cluster aws-use1 --reason 'rolled back'
  meridian undrain 01JF2Z --reason 'done'                  (the id, as `meridian status drains --output wide` shows it)";

/// Which record to end.
#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct EndArgs {
    /// `cluster NAME`, `service NAMESPACE/NAME`, `endpoint CLUSTER ADDRESS`, or a record's id
    #[arg(value_name = "TARGET|ID", required = true, num_args = 1..=3)]
    pub(in crate::app) words: Vec<String>,
    /// Of a service: only in this cluster
    #[arg(long, value_name = "NAME")]
    pub(in crate::app) cluster: Option<String>,
    /// Of an endpoint: only in this service
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(in crate::app) service: Option<String>,
    /// Why: kept in the record, shown to everybody, and written to the audit log
    #[arg(long, value_name = "TEXT")]
    pub(in crate::app) reason: String,
    #[command(flatten)]
    pub(in crate::app) nodes: NodeArgs,
    /// How the result is written
    #[arg(short, long, default_value = "table")]
    pub(in crate::app) output: super::OutputArg,
}

/// What to force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::app) enum ForceVerb {
    /// Take it as up, whatever monitors say
    Up,
    /// Take it as down, and use it after everything else
    Down,
    /// Leave it to the monitors again, as `meridian unforce` does
    Clear,
}

impl ForceVerb {
    /// Gives the verdict to pin; `None` to pin none.
    pub(in crate::app) fn verdict(self) -> Option<ForcedVerdict> {
        match self {
            Self::Up => Some(ForcedVerdict::Up),
            Self::Down => Some(ForcedVerdict::Down),
            Self::Clear => None,
        }
    }
}

#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = FORCE_EXAMPLES)]
pub(in crate::app) struct ForceArgs {
    /// The verdict
    pub(in crate::app) verb: ForceVerb,
    #[command(flatten)]
    pub(in crate::app) target: EndArgs,
    /// End by itself after so long
    #[arg(long = "for", value_name = "DURATION")]
    pub(in crate::app) length: Option<DurationArg>,
}

/// Examples of `force`.
const FORCE_EXAMPLES: &str = "\
It may be said again: a target that is forced so already stays as it is. A newer force of the same target takes its place.

Examples:
  meridian force up cluster onprem --reason 'probes are blocked there' --for 1h
  meridian force down endpoint aws-use1 192.0.2.10 --reason 'answers, but wrongly'
  meridian force clear cluster onprem --reason 'firewall mended'";

#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = UNFORCE_EXAMPLES)]
pub(in crate::app) struct UnforceArgs {
    #[command(flatten)]
    pub(in crate::app) target: EndArgs,
}

/// Examples of `unforce`.
const UNFORCE_EXAMPLES: &str = "\
It may be said again: what is not forced stays as it is.

Examples:
  meridian unforce cluster onprem --reason 'firewall mended'
  meridian unforce service shop/web --reason 'monitor mended'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_nodes() {
        for good in [
            "http://127.0.0.1:8053",
            "https://ns1.example.com:8053/",
            "https://ns1.example.com/meridian",
            "http://[::1]:8053",
        ] {
            assert_eq!(good.parse::<ServerArg>().unwrap().flaw(), None, "{good}");
        }
        for (bad, words) in [
            ("127.0.0.1:8053", "no URL"),
            ("ftp://ns1", "no URL of a node"),
            ("localhost:8053", "no URL of a node"),
            ("", "no URL"),
        ] {
            let error = bad.parse::<ServerArg>().unwrap_err();
            assert!(error.contains(words), "{bad}: {error}");
        }
        for (bad, words) in [
            ("https://me:secret@ns1", "--token-file"),
            ("https://secret@ns1", "--token-file"),
            ("http://ns1/?token=secret", "nothing behind"),
            ("http://ns1/#secret", "nothing behind"),
        ] {
            let flaw = bad.parse::<ServerArg>().unwrap().flaw().unwrap();
            assert!(flaw.contains(words) && !flaw.contains("secret"), "{flaw}");
        }
    }

    #[test]
    fn times_are_whole_seconds() {
        for (text, seconds) in [("90", 90), ("30s", 30), ("1h30m", 5_400), ("2d", 172_800)] {
            assert_eq!(
                text.parse::<DurationArg>().unwrap().seconds(),
                seconds,
                "{text}"
            );
        }
        for text in ["", "0", "soon", "500ms", "-1", "1000000w"] {
            assert!(text.parse::<DurationArg>().is_err(), "{text}");
        }
    }
}
