//! `meridian cluster leave`: the file first, then the nodes, then the rights.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;

use super::wait::{self, Left};
use super::{StepDto, access, dtos};
use crate::app::args::{LeaveArgs, OutputArg};
use crate::app::client::{Nodes, runtime};
use crate::app::output::{json, line, note, yaml};
use crate::app::words::clean;
use crate::config::nearest;
use crate::model::ClusterId;
use crate::source::kubernetes::{self, Leaving, Step, kubeconfig_file, remove_file};

/// Exit code when nodes still have the cluster.
const STILL_THERE: u8 = 3;
/// Most names of a folder that are looked through for the one that was meant.
const MAX_NAMES: usize = 10_000;

/// What was done, for machines.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LeftDto {
    /// The cluster's name.
    cluster: String,
    /// The kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<StepDto>,
    /// Why nodes still have it, in words; empty: they do not, or none was asked.
    held: Vec<String>,
    /// The objects in the cluster; empty: they were left.
    objects: Vec<StepDto>,
}

/// Leaves a cluster.
pub(super) fn leave(args: &LeaveArgs) -> anyhow::Result<ExitCode> {
    let leaving = match &args.kubeconfig {
        Some(file) => Some(Leaving {
            access: access(file, args.member.context.as_deref())?.1,
            namespace: args.member.namespace.clone(),
        }),
        None => None,
    };
    let nodes = Nodes::new(&args.servers, &args.access)?;
    runtime()?.block_on(carry_out(args, leaving.as_ref(), &nodes))
}

/// Carries out what was asked for, in the order that loses no answer.
async fn carry_out(
    args: &LeaveArgs,
    leaving: Option<&Leaving>,
    nodes: &Nodes,
) -> anyhow::Result<ExitCode> {
    let mut done = LeftDto {
        cluster: args.name.to_string(),
        file: None,
        held: Vec::new(),
        objects: Vec::new(),
    };
    if let Some(folder) = &args.directory {
        let file = kubeconfig_file(folder, &args.name);
        if let Some(leaving) = leaving {
            leaving.fits(&file).await?;
        }
        let was_there = remove_file(&file)?;
        if !was_there && leaving.is_none() && args.servers.is_empty() {
            bail!(
                "{}: is not there{}",
                file.display(),
                near(folder, &args.name)
            );
        }
        let deed = if was_there { "deleted" } else { "not there" };
        say(args, || format!("{}: {deed}", file.display()))?;
        let what = file.display().to_string();
        done.file = Some(StepDto { what, deed });
    }
    if !nodes.each().is_empty() {
        match wait::until_left(nodes, &args.name, (args.timeout.0, args.force)).await? {
            Left::Everywhere => say(args, || format!("{}: no node has it", args.name))?,
            Left::Not(held) => {
                for why in &held {
                    note(&format!("{}: {why}", args.name));
                }
                done.held = held;
                finish(args, &done)?;
                return Ok(ExitCode::from(STILL_THERE));
            }
        }
    }
    if let Some(leaving) = leaving {
        let steps = kubernetes::leave(leaving).await;
        let steps = steps.with_context(|| format!("{}: the rights are still there", args.name))?;
        steps.iter().try_for_each(|step: &Step| {
            say(args, || {
                format!("{}: {}", clean(&step.what), step.deed.word())
            })
        })?;
        done.objects = dtos(&steps);
    } else {
        say(args, || {
            format!(
                "next: take the rights in the cluster away, with `meridian cluster leave {} --kubeconfig FILE`",
                args.name
            )
        })?;
    }
    finish(args, &done)?;
    Ok(ExitCode::SUCCESS)
}

/// Says something to people.
fn say(args: &LeaveArgs, words: impl FnOnce() -> String) -> std::io::Result<()> {
    match args.output {
        OutputArg::Table => line(words()),
        OutputArg::Json | OutputArg::Yaml => Ok(()),
    }
}

/// Writes what was done for machines.
fn finish(args: &LeaveArgs, done: &LeftDto) -> anyhow::Result<()> {
    match args.output {
        OutputArg::Table => Ok(()),
        OutputArg::Json => json(done),
        OutputArg::Yaml => yaml(done),
    }
}

/// Says which cluster of a folder was meant, where one is near.
fn near(folder: &Path, name: &ClusterId) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let names: Vec<String> = entries
        .take(MAX_NAMES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".yaml")?.to_owned()))
        .collect();
    let known = names.iter().map(String::as_str);
    nearest(name.as_str(), known).map_or_else(String::new, |near| {
        format!("; did you mean {}?", clean(near))
    })
}
