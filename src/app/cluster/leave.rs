//! `meridian cluster leave`: the file first, then the nodes, then the rights.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde::Serialize;

use super::wait::{self, Left};
use super::{StepDto, access, dtos};
use crate::app::args::{LeaveArgs, OutputArg};
use crate::app::client::{Nodes, runtime};
use crate::app::kubeconfigs::Context;
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
    /// The server that they were taken away at.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The objects in the cluster; empty: they were left.
    objects: Vec<StepDto>,
}

/// Leaves a cluster.
pub(super) fn leave(args: &LeaveArgs) -> anyhow::Result<ExitCode> {
    let side = match &args.kubeconfig {
        Some(file) => {
            let (context, access) = access(file, args.member.context.as_deref())?;
            Some(Side {
                leaving: Leaving {
                    access,
                    namespace: args.member.namespace.clone(),
                },
                context,
            })
        }
        None => None,
    };
    let nodes = Nodes::new(&args.servers, &args.access)?;
    runtime()?.block_on(carry_out(args, side.as_ref(), &nodes))
}

/// The cluster's own side.
struct Side {
    /// What is to be taken away there.
    leaving: Leaving,
    /// The context that leads there.
    context: Context,
}

impl Side {
    /// Gives the server, if something says that it is the cluster's: the context was named, it or its cluster has the cluster's
    /// name, or the kubeconfig that nodes have leads there too.
    async fn server(&self, args: &LeaveArgs, file: Option<&Path>) -> anyhow::Result<String> {
        let is_proven = match file {
            Some(file) => self.leaving.fits(file).await?,
            None => false,
        };
        let server = self.leaving.server().await?;
        let (name, Context { name: own, cluster }) = (args.name.as_str(), &self.context);
        let is_called_so = own == name || cluster.as_deref() == Some(name);
        if args.member.context.is_none() && !is_called_so && !is_proven {
            bail!(
                "--kubeconfig: its current context `{}` leads to {server}, and nothing says that this is {name}; name the context that \
                 does, with --context",
                clean(own)
            );
        }
        Ok(server)
    }
}

/// Carries out what was asked for, in the order that loses no answer.
async fn carry_out(
    args: &LeaveArgs,
    side: Option<&Side>,
    nodes: &Nodes,
) -> anyhow::Result<ExitCode> {
    let mut done = LeftDto {
        cluster: args.name.to_string(),
        file: None,
        held: Vec::new(),
        server: None,
        objects: Vec::new(),
    };
    let folder = args.directory.as_deref();
    let file = folder.map(|folder| (folder, kubeconfig_file(folder, &args.name)));
    if let Some(side) = side {
        let file = file.as_ref().map(|(_, file)| file.as_path());
        done.server = Some(side.server(args, file).await?);
    }
    if let Some((folder, file)) = file {
        let was_there = remove_file(&file)?;
        if !was_there && side.is_none() && args.servers.is_empty() {
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
    if let (Some(side), Some(server)) = (side, &done.server) {
        say(args, || {
            format!(
                "{}: its rights at {} are taken away",
                args.name,
                clean(server)
            )
        })?;
        let steps = kubernetes::leave(&side.leaving).await;
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
                "next: take the rights in the cluster away, with `meridian cluster leave {} --kubeconfig FILE --context CONTEXT`",
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

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;
    use crate::app::args::{Args, ClusterOf, Command};

    /// Reads the arguments of `cluster leave`.
    fn args(words: &[&str]) -> Result<LeaveArgs, clap::Error> {
        let whole = ["meridian", "cluster", "leave"].iter().chain(words);
        match Args::try_parse_from(whole)?.command {
            Some(Command::Cluster(args)) => match args.of {
                ClusterOf::Leave(args) => Ok(args),
                ClusterOf::Join(_) => panic!("it joins"),
            },
            _ => panic!("another command"),
        }
    }

    /// A kubeconfig of two contexts, of which the first is chosen; nobody listens there.
    fn kubeconfig() -> String {
        let cluster = |name: &str, port: u16| {
            format!("- {{name: {name}, cluster: {{server: \"https://127.0.0.1:{port}\"}}}}\n")
        };
        let context = |name: &str, cluster: &str| {
            format!("- {{name: {name}, context: {{cluster: {cluster}, user: admin}}}}\n")
        };
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: boss@europe\nclusters:\n{}{}contexts:\n{}{}users:\n- {{name: admin, user: {{token: t}}}}\n",
            cluster("europe", 9),
            cluster("america", 10),
            context("boss@europe", "europe"),
            context("boss@america", "america"),
        )
    }

    #[test]
    fn the_context_that_happens_to_be_chosen_is_not_taken_for_any_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let admin = folder.path().join("admin");
        fs::write(&admin, kubeconfig()).unwrap();
        let clusters = folder.path().join("clusters.d");
        fs::create_dir(&clusters).unwrap();
        let own = clusters.join("oceania.yaml");
        fs::write(&own, kubeconfig()).unwrap();
        let (admin, clusters) = (admin.to_str().unwrap(), clusters.to_str().unwrap());
        let why = |words: &[&str]| {
            let words = [words, &["--kubeconfig", admin]].concat();
            let fault = leave(&args(&words).unwrap()).unwrap_err();
            format!("{fault:#}")
        };
        let refusal = why(&["america"]);
        for part in [
            "current context `boss@europe` leads to https://127.0.0.1:9",
            "nothing says that this is america",
            "--context",
        ] {
            assert!(refusal.contains(part), "{refusal}");
        }
        // In a folder that has another cluster's file alone it is refused too, before anything is removed.
        assert!(why(&["america", "--directory", clusters]).contains("--context"));
        assert!(own.exists());
        // What is said to be meant is asked: by the name of the cluster, of the context, or by the same server.
        let still_there = "the rights are still there";
        assert!(why(&["europe"]).contains(still_there));
        let named = why(&["america", "--context", "boss@america"]);
        assert!(
            named.contains(still_there) && named.contains("127.0.0.1:10"),
            "{named}"
        );
        assert!(why(&["oceania", "--directory", clusters]).contains(still_there));
        assert!(!own.exists());
    }

    #[test]
    fn nodes_alone_can_be_waited_for() {
        let read = args(&["europe", "--server", "http://127.0.0.1:9"]).unwrap();
        assert_eq!(read.servers.len(), 1);
        assert!(args(&["europe"]).is_err());
    }
}
