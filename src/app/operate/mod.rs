//! `meridian drain`, `undrain`, `force` and `unforce`: the operator's hand.
//!
//! `target` turns words into what is meant; `wait` asks every node until it is safe to stop. A change goes to the first node that
//! answers: nodes pass records on among themselves. All of it may be said again.

mod target;
#[cfg(test)]
mod tests;
mod wait;

use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::args::{
    DrainArgs, EndArgs, ForceArgs, ForceVerb, OutputArg, UndrainArgs, UnforceArgs, misuse,
};
use super::client::{Ask, Client, Fault, FaultKind, Made, Much, Nodes, first, list, runtime};
use super::output::{json, line, note, yaml};
use super::status::{near_cluster, near_service};
use super::table::Screen;
use super::words::{self, Tone, clean, when};
use crate::admin::dto::{
    ClusterDto, DrainDto, DrainState, ForceDto, ForcedVerdict, NewDrain, NewForce, ServiceDto,
    TargetDto, TargetKind,
};
use target::{Meant, read};

/// Most records that are looked through for one to end.
const RECORDS: Much = Much::UpTo(10_000);

/// Drains something, and perhaps waits until it is safe to stop.
pub(super) fn drain(args: &DrainArgs) -> anyhow::Result<ExitCode> {
    let words = &args.target;
    let target = match read(
        &words.words,
        words.cluster.as_deref(),
        words.service.as_deref(),
    ) {
        Ok(Meant::Target(target)) => target,
        Ok(Meant::Id(word)) => return misuse("drain", target::unknown(&word)),
        Err(fault) => return misuse("drain", fault),
    };
    let new = NewDrain {
        target,
        reason: args.reason.clone(),
        in_seconds: args.begin.map_or(0, |time| time.seconds()),
        for_seconds: args.length.map(|time| time.seconds()),
    };
    let nodes = Nodes::new(&args.nodes.servers, &args.nodes.access)?;
    runtime()?.block_on(async {
        let made = made(&nodes, "drains", &new, &new.target).await?;
        let screen = Screen::of_output(false);
        let drain: &DrainDto = &made.value;
        if args.output == OutputArg::Table {
            line(drained(&made, &screen))?;
        }
        if args.wait {
            let patience = args.timeout.0 + std::time::Duration::from_secs(new.in_seconds.into());
            return wait::wait(&nodes, drain, patience, args.output).await;
        }
        written(args.output, drain)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Says what a drain did.
fn drained(made: &Made<DrainDto>, screen: &Screen) -> String {
    let drain = &made.value;
    let what = words::target(&drain.target);
    let state = words::drain_state(screen.now, drain);
    let state = screen.paint(&state, drain.state.into());
    let id = clean(&drain.id);
    if made.new {
        let end = until(drain.expires.as_deref(), screen);
        return format!("{what}: {state}; drained until {end} (id {id})");
    }
    let (word, since) = match drain.state {
        DrainState::Announced => ("announced", &drain.created.time),
        _ => ("drained", &drain.starts),
    };
    format!(
        "{what}: already {word} since {} ({}: {}); {state} (id {id})",
        when(screen.now, since),
        clean(&drain.created.actor),
        clean(&drain.created.reason),
    )
}

/// Says when a record ends.
fn until(expires: Option<&str>, screen: &Screen) -> String {
    expires.map_or_else(
        || "somebody ends it".to_owned(),
        |time| when(screen.now, time),
    )
}

/// Ends a drain.
pub(super) fn undrain(args: &UndrainArgs) -> anyhow::Result<ExitCode> {
    let kind = Kind {
        command: "undrain",
        path: "drains",
        state: "drained",
    };
    end(&args.target, &kind, |drain: &DrainDto| {
        (drain.state != DrainState::Ended).then_some(&drain.target)
    })
}

/// Forces something, or no longer.
pub(super) fn force(args: &ForceArgs) -> anyhow::Result<ExitCode> {
    let Some(verdict) = args.verb.verdict() else {
        if args.length.is_some() {
            return misuse("force", "--for goes with `up` and `down`, not with `clear`");
        }
        return unforce_as("force", &args.target);
    };
    let words = &args.target;
    let target = match read(
        &words.words,
        words.cluster.as_deref(),
        words.service.as_deref(),
    ) {
        Ok(Meant::Target(target)) => target,
        Ok(Meant::Id(word)) => return misuse("force", target::unknown(&word)),
        Err(fault) => return misuse("force", fault),
    };
    let new = NewForce {
        target,
        verdict,
        reason: words.reason.clone(),
        for_seconds: args.length.map(|time| time.seconds()),
    };
    let nodes = Nodes::new(&words.nodes.servers, &words.nodes.access)?;
    runtime()?.block_on(async {
        let made = made(&nodes, "forces", &new, &new.target).await?;
        if words.output == OutputArg::Table {
            line(forced(&made, args.verb, &Screen::of_output(false)))?;
        }
        written(words.output, &made.value)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Says what a force did.
fn forced(made: &Made<ForceDto>, verb: ForceVerb, screen: &Screen) -> String {
    let force = &made.value;
    let what = words::target(&force.target);
    let tone = match verb.verdict() {
        Some(ForcedVerdict::Down) => Tone::Bad,
        _ => Tone::Good,
    };
    let verdict = screen.paint(words::verdict(force.verdict), tone);
    let (id, end) = (clean(&force.id), until(force.expires.as_deref(), screen));
    let nodes = format!("{}/{} nodes", force.acknowledged, force.expected);
    if made.new {
        return format!("{what}: forced {verdict} until {end}, {nodes} (id {id})");
    }
    format!(
        "{what}: already forced {verdict} since {} ({}: {}) until {end}, {nodes} (id {id})",
        when(screen.now, &force.created.time),
        clean(&force.created.actor),
        clean(&force.created.reason)
    )
}

/// Ends a force.
pub(super) fn unforce(args: &UnforceArgs) -> anyhow::Result<ExitCode> {
    unforce_as("unforce", &args.target)
}

/// Ends a force, whichever command said so.
fn unforce_as(command: &'static str, args: &EndArgs) -> anyhow::Result<ExitCode> {
    let kind = Kind {
        command,
        path: "forces",
        state: "forced",
    };
    end(args, &kind, |force: &ForceDto| {
        force.active.then_some(&force.target)
    })
}

/// A kind of record.
struct Kind {
    command: &'static str,
    path: &'static str,
    state: &'static str,
}

/// Makes a record at the first node that answers.
///
/// # Errors
///
/// When none does, or it refuses; where the target may have been misspelled, with the one that was meant.
async fn made<T: DeserializeOwned>(
    nodes: &Nodes,
    path: &str,
    new: &impl Serialize,
    target: &TargetDto,
) -> anyhow::Result<Made<T>> {
    let post = async |client: &Client| match client.post(&Ask::of([path]), new).await {
        Err(Fault {
            server,
            kind: FaultKind::NotFound(words) | FaultKind::Refusal(words),
        }) => {
            let words = match near(client, target).await {
                Some(near) => format!("{words}; {near}"),
                None => words,
            };
            Err(Fault {
                server,
                kind: FaultKind::Refusal(words),
            })
        }
        other => other,
    };
    let found = first(nodes, post).await?;
    if let Some(words) = found.note() {
        note(&words);
    }
    Ok(found.value)
}

/// Says what a target that there is not may have meant; `None` where all of it is there.
async fn near(client: &Client, target: &TargetDto) -> Option<String> {
    if let Some(cluster) = &target.cluster
        && is_missing::<ClusterDto>(client, &Ask::of(["clusters", cluster])).await
    {
        let near = near_cluster(client, cluster).await;
        return Some(near.unwrap_or_else(|| "`meridian status clusters` lists them".to_owned()));
    }
    let (namespace, name) = target.service.as_ref()?.split_once('/')?;
    if is_missing::<ServiceDto>(client, &Ask::of(["services", namespace, name])).await {
        let near = near_service(client, target.service.as_ref()?).await;
        return Some(near.unwrap_or_else(|| "`meridian status services` lists them".to_owned()));
    }
    None
}

/// Tells whether there is no such thing.
async fn is_missing<T: DeserializeOwned>(client: &Client, ask: &Ask) -> bool {
    let found = client.get::<T>(ask).await;
    matches!(found, Err(fault) if matches!(fault.kind, FaultKind::NotFound(_)))
}

/// Ends every record of a target, or the one with an id, at the first node that answers.
///
/// # Errors
///
/// When none does, it refuses, or what is named does not exist.
fn end<T: DeserializeOwned + Serialize + Ended>(
    args: &EndArgs,
    kind: &Kind,
    in_force: impl Fn(&T) -> Option<&TargetDto>,
) -> anyhow::Result<ExitCode> {
    let meant = match read(
        &args.words,
        args.cluster.as_deref(),
        args.service.as_deref(),
    ) {
        Ok(meant) => meant,
        Err(fault) => return misuse(kind.command, fault),
    };
    let nodes = Nodes::new(&args.nodes.servers, &args.nodes.access)?;
    runtime()?.block_on(async {
        let act = async |client: &Client| {
            let ids: Vec<String> = match &meant {
                Meant::Id(id) => vec![id.clone()],
                Meant::Target(target) => {
                    let page = list::<T>(client, &Ask::of([kind.path]), RECORDS).await?;
                    let of = |record: &&T| in_force(record).is_some_and(|of| same(of, target));
                    page.items
                        .iter()
                        .filter(of)
                        .map(|record| record.id().to_owned())
                        .collect()
                }
            };
            let mut ended: Vec<T> = Vec::new();
            for id in &ids {
                let ask = Ask::of([kind.path, id]).with("reason", &args.reason);
                ended.push(
                    client
                        .delete(&ask)
                        .await
                        .map_err(|fault| advised(fault, &meant))?,
                );
            }
            if ended.is_empty()
                && let Meant::Target(target) = &meant
                && let Some(near) = near(client, target).await
            {
                return Err(Fault {
                    server: client.server(),
                    kind: FaultKind::NotFound(format!(
                        "there is no {}; {near}",
                        words::target(target)
                    )),
                });
            }
            Ok(ended)
        };
        let found = first(&nodes, act).await?;
        if let Some(words) = found.note() {
            note(&words);
        }
        let screen = Screen::of_output(false);
        match args.output {
            OutputArg::Json => json(&found.value)?,
            OutputArg::Yaml => yaml(&found.value)?,
            OutputArg::Table => {
                if let (Meant::Target(target), true) = (&meant, found.value.is_empty()) {
                    line(format_args!(
                        "{}: not {}, nothing to end",
                        words::target(target),
                        kind.state
                    ))?;
                }
                for record in &found.value {
                    line(record.words(kind.state, &screen))?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Tells who named no record that a target has two words.
fn advised(mut fault: Fault, meant: &Meant) -> Fault {
    if let (FaultKind::NotFound(words), Meant::Id(id)) = (&mut fault.kind, meant) {
        words.push_str(&format!(
            "; if `{}` is a cluster, write `cluster` before it",
            clean(id)
        ));
    }
    fault
}

/// A record that can be ended.
trait Ended {
    /// Its id.
    fn id(&self) -> &str;
    /// Says that it is over.
    fn words(&self, state: &str, screen: &Screen) -> String;
}

impl Ended for DrainDto {
    fn id(&self) -> &str {
        &self.id
    }

    fn words(&self, state: &str, _: &Screen) -> String {
        let (got, all) = (self.acknowledged, self.expected);
        format!(
            "{}: no longer {state}; {got}/{all} nodes know",
            words::target(&self.target)
        )
    }
}

impl Ended for ForceDto {
    fn id(&self) -> &str {
        &self.id
    }

    fn words(&self, state: &str, _: &Screen) -> String {
        let (got, all) = (self.acknowledged, self.expected);
        format!(
            "{}: no longer {state}; {got}/{all} nodes know",
            words::target(&self.target)
        )
    }
}

/// Tells whether two targets are the same, however their names and addresses are spelled.
fn same(a: &TargetDto, b: &TargetDto) -> bool {
    let address = |target: &TargetDto| -> Option<String> {
        let text = target.address.as_ref()?;
        let parsed = text.parse::<std::net::IpAddr>();
        Some(parsed.map_or_else(|_| text.to_ascii_lowercase(), |address| address.to_string()))
    };
    a.kind == b.kind
        && a.cluster == b.cluster
        && a.service == b.service
        && (a.kind != TargetKind::Endpoint || address(a) == address(b))
}

/// Writes a record for machines; for people it was said in words.
fn written(output: OutputArg, record: &impl Serialize) -> anyhow::Result<()> {
    match output {
        OutputArg::Table => Ok(()),
        OutputArg::Json => json(record),
        OutputArg::Yaml => yaml(record),
    }
}
