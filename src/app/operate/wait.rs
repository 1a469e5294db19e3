//! Waiting until it is safe to stop: every node given is asked, and each must say so.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::written;
use crate::admin::dto::{DrainDto, DrainState};
use crate::app::args::OutputArg;
use crate::app::client::{Ask, Client, Fault, FaultKind, Nodes};
use crate::app::output::{line, note};
use crate::app::table::Screen;
use crate::app::words::{Tone, clean, decimal, join, remaining};

/// From question to question.
const EVERY: Duration = Duration::from_secs(1);
/// The same words are said again after so long, so that a log shows that somebody still waits.
const AGAIN: Duration = Duration::from_secs(10);
/// Exit code of a drain that is in force, and not known to be safe.
const NOT_SAFE: u8 = 3;

/// How far a drain is, by all nodes that were asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Safe to stop, says every one of them.
    Safe,
    /// Not yet: why, in words without numbers that count down, and then those numbers.
    Waiting {
        /// What stands in the way.
        reasons: Vec<String>,
        /// Seconds until caches have let go, as far as known.
        left: Option<String>,
    },
    /// It will not become safe: why.
    Never(String),
}

/// Waits for a drain to become safe, at most `patience`.
///
/// # Errors
///
/// When nobody reads what is written. Nodes out of reach are waited for.
pub(super) async fn wait(
    nodes: &Nodes,
    drain: &DrainDto,
    patience: Duration,
    output: OutputArg,
) -> anyhow::Result<ExitCode> {
    let deadline = Instant::now() + patience;
    let mut teller = Teller::new(output);
    let ask = Ask::of(["drains", &drain.id]);
    let mut latest = drain.clone();
    loop {
        let asked = nodes
            .each()
            .iter()
            .map(async |client: &Client| (client.server(), client.get::<DrainDto>(&ask).await));
        let said: Vec<(String, Result<DrainDto, Fault>)> = join_all(asked).await;
        if let Some((_, Ok(drain))) = said.iter().find(|(_, said)| said.is_ok()) {
            latest = drain.clone();
        }
        let progress = judge(&said);
        match &progress {
            Progress::Safe => {
                teller.end("safe to stop", Tone::Good)?;
                written(output, &latest)?;
                return Ok(ExitCode::SUCCESS);
            }
            Progress::Never(why) => {
                teller.end(&format!("cannot become safe: {why}"), Tone::Bad)?;
                written(output, &latest)?;
                return Ok(ExitCode::from(NOT_SAFE));
            }
            Progress::Waiting { reasons, left } => teller.tell(reasons, left.as_deref())?,
        }
        if Instant::now() + EVERY > deadline {
            let Progress::Waiting { reasons, .. } = progress else {
                unreachable!("the others have returned");
            };
            let why = reasons.join("; ");
            let words = format!(
                "not safe within {} s: {why}; it stays drained",
                patience.as_secs()
            );
            teller.end(&words, Tone::Bad)?;
            written(output, &latest)?;
            return Ok(ExitCode::from(NOT_SAFE));
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Puts together what nodes say.
pub(super) fn judge(said: &[(String, Result<DrainDto, Fault>)]) -> Progress {
    let known = || said.iter().filter_map(|(_, said)| said.as_ref().ok());
    if let Some(drain) = known().find(|drain| drain.state == DrainState::Ended) {
        let by = drain.ended.as_ref();
        let by = by.map_or_else(
            || "its time has passed".to_owned(),
            |by| format!("{} ended it: {}", clean(&by.actor), clean(&by.reason)),
        );
        return Progress::Never(format!("the drain is over, {by}"));
    }
    if let Some(drain) = known().find(|drain| drain.state == DrainState::Held) {
        return Progress::Never(format!(
            "it is the last that {} can be answered with; raise another endpoint, or undrain",
            held(drain)
        ));
    }
    if !said.is_empty()
        && said
            .iter()
            .all(|(_, said)| matches!(said, Ok(drain) if drain.safe_to_stop))
    {
        return Progress::Safe;
    }
    let mut reasons: Vec<String> = Vec::new();
    let mut add = |reason: String| {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    };
    for (server, said) in said {
        match said {
            Ok(drain) if drain.safe_to_stop => {}
            Ok(drain) => waiting_for(drain).into_iter().for_each(&mut add),
            Err(fault) if matches!(fault.kind, FaultKind::NotFound(_)) => {
                add(format!("{server} has not heard of it yet"));
            }
            Err(fault) => add(format!("no word from {fault}")),
        }
    }
    let left = known().filter_map(remaining).reduce(f64::max);
    Progress::Waiting {
        reasons,
        left: left
            .filter(|left| *left > 0.0)
            .map(|left| decimal(left.ceil())),
    }
}

/// Says what one node waits for: which node is missing, and what its answers still bind.
fn waiting_for(drain: &DrainDto) -> Vec<String> {
    if drain.state == DrainState::Announced {
        return vec![format!("it begins at {}", clean(&drain.starts))];
    }
    let mut reasons = Vec::new();
    for node in &drain.nodes {
        let name = clean(&node.node);
        match &node.error {
            Some(error) => reasons.push(format!("{name} is out of reach ({})", clean(error))),
            None if !node.in_force => reasons.push(format!("{name} has it not in force yet")),
            None if node.remaining_seconds.is_none_or(|left| left > 0.0) => {
                reasons.push(format!("caches keep what {name} gave out"));
            }
            None => {}
        }
    }
    if reasons.is_empty() {
        // Numbers in the node's own words would make every line a new one.
        reasons.extend(drain.waiting_for.iter().map(|what| clean(what)));
    }
    if reasons.is_empty() {
        reasons.push("it is not safe yet".to_owned());
    }
    reasons
}

/// Names the services for which a drain is the last resort.
fn held(drain: &DrainDto) -> String {
    if drain.held_services.is_empty() {
        return "some name".to_owned();
    }
    let most = drain.nodes.iter().map(|node| node.held).max().unwrap_or(0);
    let more = most.saturating_sub(drain.held_services.len() as u64);
    let named = join(&drain.held_services);
    if more > 0 {
        format!("{named} and {more} more names")
    } else {
        named
    }
}

/// Says how far it is: in place on a terminal, in lines elsewhere; beside results for machines on standard error.
struct Teller {
    output: OutputArg,
    screen: Screen,
    in_place: bool,
    last: Option<(Vec<String>, Instant)>,
}

impl Teller {
    /// Looks at where it writes.
    fn new(output: OutputArg) -> Self {
        Self {
            output,
            screen: Screen::of_output(false),
            in_place: output == OutputArg::Table && io::stdout().is_terminal(),
            last: None,
        }
    }

    /// Says what is waited for.
    fn tell(&mut self, reasons: &[String], left: Option<&str>) -> io::Result<()> {
        let left = left.map_or_else(String::new, |left| format!(", {left} s left"));
        let words = format!("waiting{left}: {}", reasons.join("; "));
        if self.in_place {
            let room = usize::from(self.screen.width.unwrap_or(80)).saturating_sub(1);
            let words: String = words.chars().take(room).collect();
            let mut out = io::stdout().lock();
            write!(
                out,
                "\r\x1b[2K{}",
                self.screen.paint(&words, Tone::Doubtful)
            )?;
            return out.flush();
        }
        let told = self.last.as_ref();
        let known = told.is_some_and(|(told, at)| told == reasons && at.elapsed() < AGAIN);
        if !known {
            self.say(&words)?;
            self.last = Some((reasons.to_vec(), Instant::now()));
        }
        Ok(())
    }

    /// Says how it ended.
    fn end(&self, words: &str, tone: Tone) -> io::Result<()> {
        if self.in_place {
            write!(io::stdout(), "\r\x1b[2K")?;
        }
        self.say(&self.screen.paint(words, tone))
    }

    /// Says one line.
    fn say(&self, words: &str) -> io::Result<()> {
        if self.output == OutputArg::Table {
            line(words)
        } else {
            note(words);
            Ok(())
        }
    }
}
