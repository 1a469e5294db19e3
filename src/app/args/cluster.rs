//! Arguments of the commands that talk to clusters.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::OutputArg;
use super::nodes::{AccessArgs, DurationArg, ServerArg};
use crate::model::ClusterId;
use crate::source::kubernetes::Namespace;

#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct ClusterArgs {
    #[command(subcommand)]
    pub(in crate::app) of: ClusterOf,
}

/// What to do with a cluster.
#[derive(Clone, Debug, Subcommand)]
pub(in crate::app) enum ClusterOf {
    /// Make a service account that may read in a cluster, and write the kubeconfig for nodes
    Join(JoinArgs),
    /// Have nodes leave a cluster, and take the service account and its rights away
    Leave(LeaveArgs),
}

/// Where a node's service account is in a cluster.
#[derive(Clone, Debug, ClapArgs)]
pub(in crate::app) struct MemberArgs {
    /// The context of that kubeconfig; without it, its current one
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub(in crate::app) context: Option<String>,
    /// The namespace of the service account in the cluster
    #[arg(long, value_name = "NAME", default_value = "meridian")]
    pub(in crate::app) namespace: Namespace,
}

#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = JOIN_EXAMPLES)]
pub(in crate::app) struct JoinArgs {
    /// Your own kubeconfig, of somebody who may give rights in the cluster
    #[arg(long, value_name = "FILE")]
    pub(in crate::app) kubeconfig: PathBuf,
    #[command(flatten)]
    pub(in crate::app) member: MemberArgs,
    /// The cluster's name for nodes; without it, that of the context
    #[arg(long, value_name = "CLUSTER")]
    pub(in crate::app) name: Option<ClusterId>,
    /// Write the kubeconfig for nodes into this directory, as CLUSTER.yaml
    #[arg(
        long,
        value_name = "DIRECTORY",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    pub(in crate::app) directory: Option<PathBuf>,
    /// Write the kubeconfig for nodes into this file; `-`: to standard output
    #[arg(long, value_name = "FILE")]
    pub(in crate::app) file: Option<PathBuf>,
    /// Ask for a token that ends after so long, 10m at the least. Without it the token has no end
    #[arg(long, value_name = "DURATION")]
    pub(in crate::app) expires: Option<DurationArg>,
    /// Also give the rights to write Events on objects (`kubernetes.writeBack: events`)
    #[arg(long)]
    pub(in crate::app) write_back: bool,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub(in crate::app) dry_run: bool,
    /// How the result is written
    #[arg(short, long, default_value = "table")]
    pub(in crate::app) output: OutputArg,
}

/// Examples of `cluster join`.
const JOIN_EXAMPLES: &str = "\
It may be said again: what is there stays, and the file of the same cluster is renewed. What is made in the cluster is what
deploy/kubernetes/reader.yaml has, and a token. The new kubeconfig is tried before it is put into its place.

Examples:
  meridian cluster join --kubeconfig ~/.kube/config --context aws-use1 --directory /etc/meridian/clusters.d
  meridian cluster join --kubeconfig admin.yaml --name aws-use1 --directory clusters.d --expires 8760h
  meridian cluster join --kubeconfig admin.yaml --name aws-use1 --file - --dry-run";

#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = LEAVE_EXAMPLES)]
#[group(id = "sides", required = true, multiple = true, args = ["directory", "kubeconfig", "servers"])]
pub(in crate::app) struct LeaveArgs {
    /// The cluster's name
    pub(in crate::app) name: ClusterId,
    /// The directory of kubeconfigs that its file is removed from
    #[arg(long, value_name = "DIRECTORY")]
    pub(in crate::app) directory: Option<PathBuf>,
    /// Your own kubeconfig, of somebody who may take rights away: the service account, its rights and its token are deleted
    #[arg(long, value_name = "FILE")]
    pub(in crate::app) kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::app) member: MemberArgs,
    /// A node to wait for until it has left the cluster; give one for each node
    #[arg(
        long = "server",
        value_name = "URL",
        env = "MERIDIAN_SERVER",
        value_delimiter = ',',
        hide_env_values = true,
        help_heading = "Nodes"
    )]
    pub(in crate::app) servers: Vec<ServerArg>,
    #[command(flatten)]
    pub(in crate::app) access: AccessArgs,
    /// Have the nodes drop the cluster as soon as it is leaving, also where names have no other
    #[arg(long, requires = "servers")]
    pub(in crate::app) force: bool,
    /// Wait at most so long
    #[arg(long, value_name = "DURATION", default_value = "15m")]
    pub(in crate::app) timeout: DurationArg,
    /// How the result is written
    #[arg(short, long, default_value = "table")]
    pub(in crate::app) output: OutputArg,
}

/// Examples of `cluster leave`.
const LEAVE_EXAMPLES: &str = "\
First the file is removed, then the nodes are waited for, then the rights are taken away. Without --directory the file is
left to whoever keeps it, and with --server alone the nodes are waited for and nothing else is done. It may be said again: what is
gone stays gone. The namespace in the cluster stays. Without --context, the current context is only taken where it or its cluster
is called NAME, or where the file in --directory leads to the same server.

Examples:
  meridian cluster leave aws-use1 --directory /etc/meridian/clusters.d --server https://ns1.example.com:8053
  meridian cluster leave aws-use1 --directory clusters.d --kubeconfig admin.yaml --context aws-use1
  meridian cluster leave aws-use1 --kubeconfig admin.yaml --context aws-use1
  meridian cluster leave aws-use1 --server https://ns1.example.com:8053

Exit codes: 0 done; 1 not done; 2 wrong arguments; 3 nodes still have the cluster after --timeout: the rights are left.";
