//! `meridian acme set` and `acme clear`: proofs for certificates, until every node has said that it answers with them.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::Instant;

use super::args::{AcmeArgs, AcmeVerb, OutputArg};
use super::client::{Ask, Client, Fault, FaultKind, Much, Nodes, first, list, runtime};
use super::output::{json, line, note, yaml};
use super::table::Screen;
use super::words::{Tone, clean, when};
use crate::admin::dto::{NewProof, ProofDto, ProofState};

/// From question to question.
const EVERY: Duration = Duration::from_millis(200);
/// Most proofs that are looked through for those to clear.
const PROOFS: Much = Much::UpTo(10_000);
/// Exit code of what is done here, and not known to be done everywhere.
const NOT_EVERYWHERE: u8 = 3;

/// Carries out one of them.
pub(super) fn acme(args: &AcmeArgs) -> anyhow::Result<ExitCode> {
    let nodes = Nodes::new(&args.nodes.servers, &args.nodes.access)?;
    runtime()?.block_on(async {
        let proofs = match args.verb {
            AcmeVerb::Set => vec![set(&nodes, args).await?],
            AcmeVerb::Clear => clear(&nodes, args).await?,
        };
        if proofs.is_empty() {
            let name = clean(&args.name);
            say(
                args,
                &format!("{name}: no such proof stands, nothing to clear"),
            )?;
        }
        wait(&nodes, proofs, args).await
    })
}

/// Sets a proof at the first node that answers.
async fn set(nodes: &Nodes, args: &AcmeArgs) -> anyhow::Result<ProofDto> {
    let new = NewProof {
        name: args.name.clone(),
        token: args.token.clone(),
        reason: args.reason.clone(),
    };
    let found = first(nodes, async |client: &Client| {
        client.post::<ProofDto>(&Ask::of(["acme"]), &new).await
    })
    .await?;
    if let Some(words) = found.note() {
        note(&words);
    }
    Ok(found.value.value)
}

/// Ends each such proof at the first node that answers.
async fn clear(nodes: &Nodes, args: &AcmeArgs) -> anyhow::Result<Vec<ProofDto>> {
    let plain = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
    let found = first(nodes, async |client: &Client| {
        let page = list::<ProofDto>(client, &Ask::of(["acme"]), PROOFS).await?;
        let is_meant = |proof: &&ProofDto| {
            proof.state != ProofState::Ended
                && plain(&proof.name) == plain(&args.name)
                && proof.token == args.token
        };
        let mut ended = Vec::new();
        for proof in page.items.iter().filter(is_meant) {
            let ask = Ask::of(["acme", &proof.id]).with("reason", &args.reason);
            ended.push(client.delete::<ProofDto>(&ask).await?);
        }
        Ok(ended)
    })
    .await?;
    if let Some(words) = found.note() {
        note(&words);
    }
    Ok(found.value)
}

/// Waits until every node named, and every node that these know, is as it should be.
async fn wait(
    nodes: &Nodes,
    mut proofs: Vec<ProofDto>,
    args: &AcmeArgs,
) -> anyhow::Result<ExitCode> {
    let deadline = Instant::now() + args.timeout.0;
    let mut left = Vec::new();
    for proof in &mut proofs {
        let ask = Ask::of(["acme", &proof.id.clone()]);
        loop {
            let asked = nodes.all::<ProofDto>(&ask).await.into_iter();
            let said: Vec<(String, Result<ProofDto, Fault>)> = asked
                .map(|(client, said)| (client.server(), said))
                .collect();
            if let Some((_, Ok(latest))) = said.iter().find(|(_, said)| said.is_ok()) {
                *proof = latest.clone();
            }
            let missing = missing(&said, args.verb);
            if missing.is_empty() {
                break;
            }
            if Instant::now() + EVERY > deadline {
                left.extend(missing);
                break;
            }
            tokio::time::sleep(EVERY).await;
        }
    }
    left.sort_unstable();
    left.dedup();
    tell(&proofs, &left, args)?;
    match args.output {
        OutputArg::Table => {}
        OutputArg::Json => json(&proofs)?,
        OutputArg::Yaml => yaml(&proofs)?,
    }
    Ok(if left.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_EVERYWHERE)
    })
}

/// Lists who is not as it should be, each with what is known of why.
fn missing(said: &[(String, Result<ProofDto, Fault>)], verb: AcmeVerb) -> Vec<String> {
    let mut missing = Vec::new();
    for (server, said) in said {
        match said {
            Ok(proof) => {
                let is_meant = (proof.state == ProofState::Ended) == (verb == AcmeVerb::Clear);
                missing.extend(proof.missing.iter().map(|name| {
                    let node = proof.nodes.iter().find(|node| node.node == *name);
                    let why = node.and_then(|node| node.error.as_deref());
                    match why {
                        Some(why) => format!("{} ({})", clean(name), clean(why)),
                        None => clean(name),
                    }
                }));
                if !is_meant {
                    missing.push(format!("{server} (the proof is over)"));
                }
            }
            // A node that never heard of it has nothing to clear.
            Err(fault) if matches!(fault.kind, FaultKind::NotFound(_)) => {
                if verb == AcmeVerb::Set {
                    missing.push(format!("{server} (it has not heard of it yet)"));
                }
            }
            Err(fault) => missing.push(fault.to_string()),
        }
    }
    missing.sort_unstable();
    missing.dedup();
    missing
}

/// Says how it went.
fn tell(proofs: &[ProofDto], left: &[String], args: &AcmeArgs) -> io::Result<()> {
    let screen = Screen::of_output(false);
    for proof in proofs {
        let nodes = format!("{}/{} nodes", proof.acknowledged, proof.expected);
        let owner = clean(&proof.owner);
        let (word, tone) = match (args.verb, left.is_empty()) {
            (AcmeVerb::Set, true) => (format!("served by {nodes}"), Tone::Good),
            (AcmeVerb::Clear, true) => (format!("cleared on {nodes}"), Tone::Good),
            (_, false) => (
                format!(
                    "partial {}/{}, missing: {}",
                    proof.acknowledged,
                    proof.expected,
                    left.join("; ")
                ),
                Tone::Bad,
            ),
        };
        let word = screen.paint(&word, tone);
        let end = match (args.verb, &proof.expires) {
            (AcmeVerb::Set, Some(end)) => format!("; ends {}", when(screen.now, end)),
            _ => String::new(),
        };
        say(
            args,
            &format!("{owner}: {word}{end} (id {})", clean(&proof.id)),
        )?;
    }
    Ok(())
}

/// Says one line: beside results for machines on standard error.
fn say(args: &AcmeArgs, words: &str) -> io::Result<()> {
    if args.output == OutputArg::Table {
        line(words)
    } else {
        note(words);
        Ok(())
    }
}
