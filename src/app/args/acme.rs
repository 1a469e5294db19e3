//! The arguments of `meridian acme`.

use clap::{Args as ClapArgs, ValueEnum};

use super::nodes::{DurationArg, NodeArgs};

/// What to do with a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::app) enum AcmeVerb {
    /// Serve it, for an hour
    Set,
    /// Serve it no longer
    Clear,
}

#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(in crate::app) struct AcmeArgs {
    /// What to do
    pub(in crate::app) verb: AcmeVerb,
    /// The steered name that the certificate is for, as it stands in the certificate
    pub(in crate::app) name: String,
    /// What the authority looks for in TXT at `_acme-challenge` of the name; of one that begins with `-`, write `--` before NAME
    pub(in crate::app) token: String,
    /// Why: kept in the record, shown to everybody, and written to the audit log
    #[arg(long, value_name = "TEXT", default_value = "certificate")]
    pub(in crate::app) reason: String,
    /// Wait at most so long for all nodes
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub(in crate::app) timeout: DurationArg,
    #[command(flatten)]
    pub(in crate::app) nodes: NodeArgs,
    /// How the result is written
    #[arg(short, long, default_value = "table")]
    pub(in crate::app) output: super::OutputArg,
}

/// Examples of `acme`.
const EXAMPLES: &str = "\
It may be said again: a challenge that stands stays, and its hour begins anew. Up to eight stand at one name. With several nodes, give
all of them: the first that answers passes it on, and each is asked.

Examples:
  meridian acme set www.svc.example.com gfj9Xq-Rg85nM_zHQ2yU3sQx7Jr0b1c
  meridian acme set --timeout 10s -- '*.svc.example.com' -Rg85nM_zHQ2yU3sQx7Jr0b1c
  meridian acme clear www.svc.example.com gfj9Xq-Rg85nM_zHQ2yU3sQx7Jr0b1c

Exit codes: 0 done on every node; 1 not done; 2 wrong arguments; 3 done, but --timeout passed before every node said so: those
that did not are named.";
