//! `meridian acme set` and `acme clear`: challenges of certificate authorities, until every node has said that it answers with them.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::Instant;

use super::args::{AcmeArgs, AcmeVerb, OutputArg};
use super::client::{Ask, Client, Fault, FaultKind, Much, Nodes, first, list, runtime};
use super::output::{json, line, note, yaml};
use super::table::Screen;
use super::words::{Tone, clean, when};
use crate::admin::dto::{ChallengeDto, ChallengeState, NewChallenge};

/// From question to question.
const EVERY: Duration = Duration::from_millis(200);
/// Most challenges that are looked through for those to clear.
const CHALLENGES: Much = Much::UpTo(10_000);
/// Exit code of what is done here, and not known to be done everywhere.
const NOT_EVERYWHERE: u8 = 3;

/// Carries out one of them.
pub(super) fn acme(args: &AcmeArgs) -> anyhow::Result<ExitCode> {
    let nodes = Nodes::new(&args.nodes.servers, &args.nodes.access)?;
    runtime()?.block_on(async {
        let challenges = match args.verb {
            AcmeVerb::Set => vec![set(&nodes, args).await?],
            AcmeVerb::Clear => clear(&nodes, args).await?,
        };
        if challenges.is_empty() {
            let name = clean(&args.name);
            say(
                args,
                &format!("{name}: no such challenge stands, nothing to clear"),
            )?;
        }
        wait(&nodes, challenges, args).await
    })
}

/// Sets a challenge at the first node that answers.
async fn set(nodes: &Nodes, args: &AcmeArgs) -> anyhow::Result<ChallengeDto> {
    let new = NewChallenge {
        name: args.name.clone(),
        token: args.token.clone(),
        reason: args.reason.clone(),
    };
    let found = first(nodes, async |client: &Client| {
        client.post::<ChallengeDto>(&Ask::of(["acme"]), &new).await
    })
    .await?;
    if let Some(words) = found.note() {
        note(&words);
    }
    Ok(found.value.value)
}

/// Ends each such challenge at the first node that answers.
async fn clear(nodes: &Nodes, args: &AcmeArgs) -> anyhow::Result<Vec<ChallengeDto>> {
    let plain = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
    let found = first(nodes, async |client: &Client| {
        let page = list::<ChallengeDto>(client, &Ask::of(["acme"]), CHALLENGES).await?;
        let is_meant = |challenge: &&ChallengeDto| {
            challenge.state != ChallengeState::Ended
                && plain(&challenge.name) == plain(&args.name)
                && challenge.token == args.token
        };
        let mut ended = Vec::new();
        for challenge in page.items.iter().filter(is_meant) {
            let ask = Ask::of(["acme", &challenge.id]).with("reason", &args.reason);
            ended.push(client.delete::<ChallengeDto>(&ask).await?);
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
    mut challenges: Vec<ChallengeDto>,
    args: &AcmeArgs,
) -> anyhow::Result<ExitCode> {
    let deadline = Instant::now() + args.timeout.0;
    let mut left = Vec::new();
    for challenge in &mut challenges {
        let ask = Ask::of(["acme", &challenge.id.clone()]);
        loop {
            let asked = nodes.all::<ChallengeDto>(&ask).await.into_iter();
            let said: Vec<(String, Result<ChallengeDto, Fault>)> = asked
                .map(|(client, said)| (client.server(), said))
                .collect();
            if let Some((_, Ok(latest))) = said.iter().find(|(_, said)| said.is_ok()) {
                *challenge = latest.clone();
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
    tell(&challenges, &left, args)?;
    match args.output {
        OutputArg::Table => {}
        OutputArg::Json => json(&challenges)?,
        OutputArg::Yaml => yaml(&challenges)?,
    }
    Ok(if left.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_EVERYWHERE)
    })
}

/// Lists who is not as it should be, each with what is known of why.
fn missing(said: &[(String, Result<ChallengeDto, Fault>)], verb: AcmeVerb) -> Vec<String> {
    let mut missing = Vec::new();
    for (server, said) in said {
        match said {
            Ok(challenge) => {
                let is_meant =
                    (challenge.state == ChallengeState::Ended) == (verb == AcmeVerb::Clear);
                missing.extend(challenge.missing.iter().map(|name| {
                    let node = challenge.nodes.iter().find(|node| node.node == *name);
                    let why = node.and_then(|node| node.error.as_deref());
                    match why {
                        Some(why) => format!("{} ({})", clean(name), clean(why)),
                        None => clean(name),
                    }
                }));
                if !is_meant {
                    missing.push(format!("{server} (the challenge is over)"));
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
fn tell(challenges: &[ChallengeDto], left: &[String], args: &AcmeArgs) -> io::Result<()> {
    let screen = Screen::of_output(false);
    for challenge in challenges {
        let nodes = format!("{}/{} nodes", challenge.acknowledged, challenge.expected);
        let owner = clean(&challenge.owner);
        let (word, tone) = match (args.verb, left.is_empty()) {
            (AcmeVerb::Set, true) => (format!("served by {nodes}"), Tone::Good),
            (AcmeVerb::Clear, true) => (format!("cleared on {nodes}"), Tone::Good),
            (_, false) => (
                format!(
                    "partial {}/{}, missing: {}",
                    challenge.acknowledged,
                    challenge.expected,
                    left.join("; ")
                ),
                Tone::Bad,
            ),
        };
        let word = screen.paint(&word, tone);
        let end = match (args.verb, &challenge.expires) {
            (AcmeVerb::Set, Some(end)) => format!("; ends {}", when(screen.now, end)),
            _ => String::new(),
        };
        say(
            args,
            &format!("{owner}: {word}{end} (id {})", clean(&challenge.id)),
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
