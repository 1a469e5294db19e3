//! The command line: the only folder that reads arguments and environment. `nodes` has the commands that talk to nodes,
//! `cluster` those that talk to clusters.

mod acme;
mod cluster;
mod nodes;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgGroup, Args as ClapArgs, CommandFactory, Parser, Subcommand, ValueEnum};
use ipnet::IpNet;

pub(super) use acme::{AcmeArgs, AcmeVerb};
pub(super) use cluster::{ClusterArgs, ClusterOf, JoinArgs, LeaveArgs};
pub(super) use nodes::{
    AccessArgs, DrainArgs, EndArgs, ForceArgs, ForceVerb, ListOutputArg, OneArgs, RecordArgs,
    ServerArg, ServiceArgs, StatusArgs, StatusOf, UndrainArgs, UnforceArgs,
};

use crate::model::{LowerName, RecordType};
use crate::telemetry::LogFilter;

/// Where `--help` lists what every command takes.
const LOGGING: &str = "Logging";

/// An authoritative Geo-DNS load balancer: one name, the nearest healthy cluster.
#[derive(Debug, Parser)]
#[command(name = "meridian", disable_version_flag = true, max_term_width = 100)]
#[command(after_help = "Try `meridian demo`: it needs nothing but this program.")]
pub(super) struct Args {
    /// What is logged to standard error: off, error, warn, info, debug, trace, or directives such as `info,meridian::transport=debug`
    ///
    /// Default: info for `run`, warn for the other commands; also for what directives leave open.
    #[arg(
        long,
        global = true,
        env = "MERIDIAN_LOG",
        hide_env_values = true,
        help_heading = LOGGING
    )]
    pub(super) log_level: Option<LogLevelArg>,
    /// How log lines are written
    #[arg(
        long,
        global = true,
        env = "MERIDIAN_LOG_FORMAT",
        default_value = "text",
        hide_env_values = true,
        help_heading = LOGGING
    )]
    pub(super) log_format: LogFormatArg,
    /// Print the version; with --verbose also what is built in and where its data comes from
    #[arg(short = 'V', long)]
    pub(super) version: bool,
    /// With --version: what is built in too
    #[arg(short, long, requires = "version")]
    pub(super) verbose: bool,
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

/// What is logged.
#[derive(Clone, Debug)]
pub(super) struct LogLevelArg(pub(super) LogFilter);

impl std::str::FromStr for LogLevelArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        LogFilter::parse(text).map(Self)
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum LogFormatArg {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve the zones of a configuration until SIGTERM; SIGHUP reloads it
    Run(RunArgs),
    /// Report every fault of a configuration with its place; exit code 1 when there is one
    Check(CheckArgs),
    /// Show it all on this machine: five clusters, a DNS server, and a failover
    Demo(DemoArgs),
    /// Say what a client is told for a name, and why
    Explain(ExplainArgs),
    /// Show what nodes know: what is wrong, clusters, services, monitors, events, drains, and more
    Status(StatusArgs),
    /// Give out no new answers with a cluster, a service or an address, and say when it is safe to stop
    Drain(DrainArgs),
    /// End a drain
    Undrain(UndrainArgs),
    /// Pin the verdict of a cluster, a service or an address, whatever monitors say
    Force(ForceArgs),
    /// Leave the verdict to the monitors again
    Unforce(UnforceArgs),
    /// Serve what a certificate authority looks for at `_acme-challenge` of a steered name
    Acme(AcmeArgs),
    /// Let nodes read a Kubernetes cluster, or no longer
    Cluster(ClusterArgs),
    /// Print the JSON Schema of the configuration
    Schema,
    /// Print the NS and glue records that the parent zone needs, and check the live delegation
    Delegation(DelegationArgs),
    /// Make a token for the dashboard and its API, and the line for the file that `admin.tokens` names
    Token(TokenArgs),
    /// Print the completion script of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands into a directory
    Man(ManArgs),
}

#[derive(Clone, Debug, ClapArgs)]
pub(super) struct RunArgs {
    /// The configuration file
    #[arg(short, long, value_name = "FILE", env = "MERIDIAN_CONFIG")]
    pub(super) config: PathBuf,
}

#[derive(Clone, Debug, ClapArgs)]
pub(super) struct CheckArgs {
    /// The configuration file
    #[arg(short, long, value_name = "FILE", env = "MERIDIAN_CONFIG")]
    pub(super) config: PathBuf,
    /// How the result is written
    #[arg(short, long, default_value = "table")]
    pub(super) output: OutputArg,
}

#[derive(Clone, Debug, ClapArgs)]
pub(super) struct DemoArgs {
    /// Do not wait for keys: show the failover, then end
    #[arg(long)]
    pub(super) script: bool,
}

#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXPLAIN_EXAMPLES)]
#[command(group = ArgGroup::new("asker").required(true).args(["client", "resolver"]))]
pub(super) struct ExplainArgs {
    /// The name asked for
    pub(super) name: LowerName,
    /// The record type asked for
    #[arg(short = 't', long = "type", default_value = "A", value_name = "TYPE")]
    pub(super) record_type: RecordType,
    /// The client's network, as a believed resolver's ECS option would give it. Its own address stands for the packet's source,
    /// which endpoints with `clients` look at
    #[arg(long, value_name = "PREFIX")]
    pub(super) client: Option<ClientArg>,
    /// The address of a resolver that sends no ECS option: it is located itself, and is the packet's source
    #[arg(long, value_name = "ADDRESS")]
    pub(super) resolver: Option<IpAddr>,
    /// The configuration file, whose answer with every endpoint up is explained. Without --config and --server: the file that
    /// MERIDIAN_CONFIG names, else the nodes that MERIDIAN_SERVER names
    #[arg(short, long, value_name = "FILE", conflicts_with = "servers")]
    pub(super) config: Option<PathBuf>,
    /// A node that explains what it answers now; give more of them to ask the next when one is out of reach
    #[arg(long = "server", value_name = "URL", value_delimiter = ',')]
    pub(super) servers: Vec<ServerArg>,
    #[command(flatten)]
    pub(super) access: AccessArgs,
    /// How the result is written
    #[arg(short, long, default_value = "table")]
    pub(super) output: OutputArg,
}

impl ExplainArgs {
    /// Gives what to explain by: a file, or nodes. The command line goes before the environment, the file before the nodes.
    ///
    /// # Errors
    ///
    /// In words, when there is neither, or the environment names no node.
    pub(super) fn world(&self) -> Result<World, String> {
        if let Some(config) = &self.config {
            return Ok(World::File(config.clone()));
        }
        if !self.servers.is_empty() {
            return Ok(World::Nodes(self.servers.clone()));
        }
        if let Some(config) = std::env::var_os("MERIDIAN_CONFIG") {
            return Ok(World::File(config.into()));
        }
        let servers = std::env::var_os("MERIDIAN_SERVER").ok_or(
            "give --config FILE to explain a configuration, or --server URL to explain what a node answers",
        )?;
        let parse = |url: &str| {
            url.parse::<ServerArg>()
                .map_err(|error| format!("MERIDIAN_SERVER: {error}"))
        };
        let servers: Result<Vec<ServerArg>, String> =
            servers.to_string_lossy().split(',').map(parse).collect();
        servers.map(World::Nodes)
    }
}

/// What an explanation is about.
#[derive(Clone, Debug)]
pub(super) enum World {
    /// What a configuration says.
    File(PathBuf),
    /// What nodes answer now.
    Nodes(Vec<ServerArg>),
}

/// A prefix, or an address as its host prefix.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientArg(pub(super) IpNet);

impl std::str::FromStr for ClientArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text
            .parse::<IpNet>()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        parsed.map(|prefix| Self(prefix.trunc())).map_err(|_| {
            format!("`{text}` is no prefix; write one such as 203.0.113.0/24 or 2001:db8::/48, or an address")
        })
    }
}

#[derive(Clone, Debug, ClapArgs)]
pub(super) struct DelegationArgs {
    /// The zone
    pub(super) zone: LowerName,
    /// The configuration file
    #[arg(short, long, value_name = "FILE", env = "MERIDIAN_CONFIG")]
    pub(super) config: PathBuf,
    /// Only print the records, ask nobody
    #[arg(long)]
    pub(super) offline: bool,
    /// Ask this resolver instead of the system's
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub(super) resolver: Option<ResolverArg>,
    /// How the result is written
    #[arg(short, long, default_value = "table")]
    pub(super) output: OutputArg,
}

/// A resolver's address, port 53 unless given.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResolverArg(pub(super) std::net::SocketAddr);

impl std::str::FromStr for ResolverArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text
            .parse()
            .or_else(|_| text.parse::<IpAddr>().map(|address| (address, 53).into()));
        parsed.map(Self).map_err(|_| {
            format!("`{text}` is no address; write one such as 192.0.2.53 or [2001:db8::53]:5353")
        })
    }
}

#[derive(Clone, Debug, ClapArgs)]
pub(super) struct TokenArgs {
    /// How the result is written
    #[arg(short, long, default_value = "table")]
    pub(super) output: OutputArg,
}

#[derive(Clone, Debug, ClapArgs)]
pub(super) struct CompletionsArgs {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = MAN_EXAMPLES)]
pub(super) struct ManArgs {
    /// Write a page for each command into this directory, which is made if it is not there
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) directory: Option<PathBuf>,
}

/// Examples of `man`.
const MAN_EXAMPLES: &str = "\
Examples:
  meridian man | man -l -
  meridian man --directory /usr/local/share/man/man1";

/// Examples of `explain`.
const EXPLAIN_EXAMPLES: &str = "\
Examples:
  meridian explain www.svc.example.com --client 203.0.113.0/24 --config meridian.yaml
  meridian explain www.svc.example.com --client 203.0.113.0/24 --server http://127.0.0.1:8053
  meridian explain www.svc.example.com --type AAAA --resolver 192.0.2.1 --server https://ns1.example.com:8053";

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputArg {
    /// For people
    Table,
    /// For machines
    Json,
    /// For machines and people
    Yaml,
}

/// Says that arguments do not fit together as clap would; gives its exit code.
pub(super) fn misuse(command: &str, text: impl std::fmt::Display) -> anyhow::Result<ExitCode> {
    let mut whole = Args::command();
    whole.build();
    let error = match whole.find_subcommand_mut(command) {
        Some(command) => command.error(ErrorKind::ValueValidation, text),
        None => whole.error(ErrorKind::ValueValidation, text),
    };
    error.print()?;
    Ok(ExitCode::from(2))
}

/// Prints the help text: what the program says without a command.
pub(super) fn print_help() -> anyhow::Result<ExitCode> {
    Args::command().print_help()?;
    Ok(ExitCode::from(2))
}

/// Gives the command line's description, for completions.
pub(super) fn description() -> clap::Command {
    Args::command()
}

/// Tells whether colors are unwanted: `NO_COLOR` is set and not empty (no-color.org).
pub(super) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Gives this machine's host name as a default for `node.name`; `node` when it has none.
pub(super) fn host_name() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = read.trim();
    if name.is_empty() {
        "node".to_owned()
    } else {
        name.to_owned()
    }
}
