//! `meridian cluster join` and `leave`: a Kubernetes cluster is given to the nodes, or taken from them.
//!
//! `join` and `leave` say in words what `source::kubernetes` does in the cluster; `wait` asks nodes until they have left it.

mod join;
mod leave;
mod wait;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use serde::Serialize;

use super::args::{ClusterArgs, ClusterOf};
use super::kubeconfigs::{self, Context};
use super::words::clean;
use crate::source::kubernetes::{Access, Step};

/// Carries out one of the two.
pub(super) fn cluster(args: &ClusterArgs) -> anyhow::Result<ExitCode> {
    match &args.of {
        ClusterOf::Join(args) => join::join(args),
        ClusterOf::Leave(args) => leave::leave(args),
    }
}

/// One step for machines.
#[derive(Debug, Serialize)]
struct StepDto {
    /// The object.
    what: String,
    /// `created`, `changed`, `unchanged`, `deleted` or `not there`.
    deed: &'static str,
}

/// Writes steps for machines.
fn dtos(steps: &[Step]) -> Vec<StepDto> {
    let dto = |step: &Step| StepDto {
        what: clean(&step.what),
        deed: step.deed.word(),
    };
    steps.iter().map(dto).collect()
}

/// Finds a context in a kubeconfig; gives it, and how the cluster is reached by it.
///
/// # Errors
/// When the file cannot be read or has no such context, with the one that is near.
fn access(file: &Path, asked: Option<&str>) -> anyhow::Result<(Context, Access)> {
    let context =
        kubeconfigs::context(file, asked).map_err(|why| anyhow!("--kubeconfig: {why}"))?;
    let access = Access::Kubeconfig {
        file: std::path::absolute(file).unwrap_or_else(|_| PathBuf::from(file)),
        context: Some(context.name.as_str().into()),
        trust: crate::source::kubernetes::Trust::Whole,
    };
    Ok((context, access))
}
