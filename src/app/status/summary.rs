//! The summary: what is wrong first, then everything in a glance; of one node, or of several put together.

use serde::Serialize;

use super::{Form, Frame, challenges, details};
use crate::admin::dto::{
    ChallengeDto, CountsDto, DrainDto, DrainState, ForceDto, PeerDto, ProblemDto, RatesDto,
    Severity, StatusDto,
};
use crate::app::client::{Ask, Client, Fault, Much, Nodes, list};
use crate::app::table::{Cell, Column, Screen, Table};
use crate::app::words::{
    self, Tone, by_state, clean, count, decimal, join, measure, plural, span, when,
};

use Column::{Left, Right};

/// Most drains, forces and challenges that a summary shows, each.
const RECORDS: Much = Much::UpTo(500);

/// The whole, as machines get it: the same shape for one node and for several.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SummaryDto {
    /// Nothing is critical, and every node answered.
    pub(super) ok: bool,
    /// What is wrong, worst first.
    pub(super) problems: Vec<MergedDto>,
    /// Each node asked.
    pub(super) nodes: Vec<NodeStateDto>,
    /// Drains in force or announced, as the first node that answered knows them.
    pub(super) drains: Vec<DrainDto>,
    /// Forces in force, likewise.
    pub(super) forces: Vec<ForceDto>,
    /// Challenges of certificate authorities that stand, likewise.
    pub(super) challenges: Vec<ChallengeDto>,
}

/// What operators said and is not over.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Drains in force or announced.
    pub(super) drains: Vec<DrainDto>,
    /// Forces in force.
    pub(super) forces: Vec<ForceDto>,
    /// Challenges that stand.
    pub(super) challenges: Vec<ChallengeDto>,
}

/// A problem with the nodes that say so.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MergedDto {
    /// The problem, in the words of the first of them.
    #[serde(flatten)]
    pub(super) problem: ProblemDto,
    /// Their names.
    pub(super) nodes: Vec<String>,
}

/// One node.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeStateDto {
    /// Its URL.
    pub(super) server: String,
    /// Why it did not answer.
    pub(super) error: Option<String>,
    /// What it says.
    pub(super) status: Option<StatusDto>,
}

/// Asks all nodes and writes the summary.
///
/// # Errors
///
/// When no node answers.
pub(super) async fn frame(nodes: &Nodes, form: &Form) -> anyhow::Result<Frame> {
    let asked = nodes.all::<StatusDto>(&Ask::of(["status"])).await;
    let mut states = Vec::new();
    let mut faults: Vec<Fault> = Vec::new();
    let mut answered = None;
    for (client, said) in asked {
        let (status, error) = match said {
            Ok(status) => {
                answered.get_or_insert(client);
                (Some(status), None)
            }
            Err(fault) => {
                let words = fault.kind.to_string();
                faults.push(fault);
                (None, Some(words))
            }
        };
        states.push(NodeStateDto {
            server: client.server(),
            error,
            status,
        });
    }
    let Some(client) = answered else {
        return Err(super::Unusable(faults).into());
    };
    let mut notes = Vec::new();
    let said = records(client, &states, &mut notes).await;
    let summary = merge(states, said);
    Ok(Frame {
        text: form.write(&summary, |screen| draw(&summary, screen))?,
        notes,
        failed: !summary.ok,
        newest: None,
    })
}

/// Reads what operators said, when there is any.
async fn records(client: &Client, states: &[NodeStateDto], notes: &mut Vec<String>) -> Said {
    let statuses = || states.iter().filter_map(|state| state.status.as_ref());
    let mut said = Said::default();
    if statuses().any(|status| status.drains > 0) {
        match list::<DrainDto>(client, &Ask::of(["drains"]), RECORDS).await {
            Ok(page) => said.drains = page.items,
            Err(fault) => notes.push(format!("drains: {fault}")),
        }
    }
    if statuses().any(|status| status.forces > 0) {
        match list::<ForceDto>(client, &Ask::of(["forces"]), RECORDS).await {
            Ok(page) => said.forces = page.items,
            Err(fault) => notes.push(format!("forces: {fault}")),
        }
    }
    if statuses().any(|status| status.challenges > 0) {
        match list::<ChallengeDto>(client, &Ask::of(["acme"]), RECORDS).await {
            Ok(page) => said.challenges = page.items,
            Err(fault) => notes.push(format!("challenges: {fault}")),
        }
    }
    said.drains.retain(|drain| drain.state != DrainState::Ended);
    said.forces.retain(|force| force.active);
    said.challenges.retain(challenges::stands);
    said
}

/// Puts together what nodes say: a problem that several have is one.
pub(super) fn merge(nodes: Vec<NodeStateDto>, said: Said) -> SummaryDto {
    let mut problems: Vec<MergedDto> = Vec::new();
    for status in nodes.iter().filter_map(|state| state.status.as_ref()) {
        for problem in &status.problems {
            let same = problems.iter_mut().find(|merged| {
                let known = &merged.problem;
                known.title == problem.title && known.link == problem.link
            });
            let name = status.node.name.clone();
            match same {
                Some(merged) => {
                    if !merged.nodes.contains(&name) {
                        merged.nodes.push(name);
                    }
                    merged.problem.severity = merged.problem.severity.max(problem.severity);
                }
                None => problems.push(MergedDto {
                    problem: problem.clone(),
                    nodes: vec![name],
                }),
            }
        }
    }
    // Stable: among equals the nodes' own order stays.
    problems.sort_by_key(|merged| std::cmp::Reverse(merged.problem.severity));
    let critical = problems
        .iter()
        .any(|merged| merged.problem.severity == Severity::Critical);
    let silent = nodes.iter().any(|state| state.status.is_none());
    SummaryDto {
        ok: !critical && !silent,
        problems,
        nodes,
        drains: said.drains,
        forces: said.forces,
        challenges: said.challenges,
    }
}

/// Draws the summary.
pub(super) fn draw(summary: &SummaryDto, screen: &Screen) -> String {
    let mut text = problems(summary, screen);
    text.push('\n');
    let statuses: Vec<&StatusDto> = statuses(summary).collect();
    let each = |of: fn(&StatusDto) -> CountsDto| counts(&statuses, of);
    let mut pairs = vec![
        ("Clusters", each(|status| status.clusters)),
        ("Services", each(|status| status.services)),
        ("Monitors", each(|status| status.monitors)),
        ("Queries", rates(&statuses)),
    ];
    pairs.extend(senders(&statuses, screen).map(|senders| ("Senders", senders)));
    pairs.extend(members(&statuses).map(|members| ("Members", members)));
    let drains = summary.drains.iter();
    pairs.extend(drains.map(|drain| ("Drain", details::drain_line(drain, screen))));
    let forces = summary.forces.iter();
    pairs.extend(forces.map(|force| ("Force", details::force_line(force, screen.now))));
    let standing = summary.challenges.iter();
    pairs.extend(standing.map(|one| ("Challenge", challenges::line(one, screen))));
    text.push_str(&screen.pairs(&pairs));
    text.push('\n');
    text.push_str(&nodes(summary, screen));
    let peers = unasked(&statuses);
    if !peers.is_empty() {
        text.push('\n');
        text.push_str(&super::lists::peers(&peers, screen));
    }
    text
}

/// Gives what nodes said.
fn statuses(summary: &SummaryDto) -> impl Iterator<Item = &StatusDto> {
    summary
        .nodes
        .iter()
        .filter_map(|state| state.status.as_ref())
}

/// Draws what is wrong, worst first.
fn problems(summary: &SummaryDto, screen: &Screen) -> String {
    let mut text = String::new();
    let several = summary.nodes.len() > 1;
    for state in &summary.nodes {
        if let Some(error) = &state.error {
            let head = screen.paint("critical", Tone::Bad);
            text.push_str(&format!("{head}  no word from {}\n", clean(&state.server)));
            text.push_str(&indented(&clean(error), screen.width));
        }
    }
    for merged in &summary.problems {
        let problem = &merged.problem;
        let word = format!("{:<8}", words::severity(problem.severity));
        let head = screen.paint(&word, problem.severity.into());
        let since = problem.since.as_deref();
        let since = since.map_or_else(String::new, |time| format!(", {}", when(screen.now, time)));
        let who = if several {
            format!(" (says {})", join(&merged.nodes))
        } else {
            String::new()
        };
        text.push_str(&format!("{head}  {}{since}{who}\n", clean(&problem.title)));
        text.push_str(&indented(&clean(&problem.text), screen.width));
    }
    let told = summary.problems.len() as u64;
    let counted = statuses(summary)
        .map(|status| status.problem_count)
        .max()
        .unwrap_or(0);
    if counted > told {
        text.push_str(&format!("          and {} more\n", count(counted - told)));
    }
    if text.is_empty() {
        text = format!("{}\n", screen.paint("Nothing is wrong.", Tone::Good));
    }
    text
}

/// Wraps a text below a heading, ten blanks in.
fn indented(text: &str, width: Option<u16>) -> String {
    const INDENT: usize = 10;
    if text.is_empty() {
        return String::new();
    }
    let room = width.map_or(usize::MAX, |width| {
        usize::from(width).saturating_sub(INDENT).max(20)
    });
    let mut wrapped = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used == 0 || used + 1 + length > room {
            let gap = if used == 0 { "" } else { "\n" };
            wrapped.push_str(&format!("{gap}{:INDENT$}{word}", ""));
            used = length;
        } else {
            wrapped.push_str(&format!(" {word}"));
            used += 1 + length;
        }
    }
    wrapped.push('\n');
    wrapped
}

/// Says counts once where all nodes agree, else node by node.
fn counts(statuses: &[&StatusDto], of: fn(&StatusDto) -> CountsDto) -> String {
    let said: Vec<(String, CountsDto)> = statuses
        .iter()
        .map(|status| (clean(&status.node.name), of(status)))
        .collect();
    let Some((_, one)) = said.first() else {
        return "-".to_owned();
    };
    if said.iter().all(|(_, counts)| counts == one) {
        return by_state(one);
    }
    let each = said
        .iter()
        .map(|(name, counts)| format!("{name}: {}", by_state(counts)));
    each.collect::<Vec<_>>().join(" · ")
}

/// Says how member clusters are connected, as the node sees it that sees the fewest; `None` where there are none.
fn members(statuses: &[&StatusDto]) -> Option<String> {
    let seen = statuses.iter().filter_map(|status| status.members);
    let worst = seen.min_by_key(|members| members.synced)?;
    let parts = [
        (worst.synced, "synced"),
        (worst.stale, "stale"),
        (worst.never, "never synced"),
        (worst.held_deletions, "deletions held"),
        (worst.refused_objects, "objects refused in part"),
    ];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    let parts: Vec<String> = parts
        .map(|(number, word)| format!("{} {word}", count(number)))
        .collect();
    Some(parts.join(", "))
}

/// Says who asks: of several nodes that where they look translated, else that of most queries; `None` where nobody asked.
fn senders(statuses: &[&StatusDto], screen: &Screen) -> Option<String> {
    let seen = statuses.iter().filter_map(|status| status.senders.as_ref());
    let shown = seen.max_by_key(|senders| (senders.translated.is_some(), senders.sampled))?;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let words = format!(
        "{} in a sample of {}: busiest {}, private {}, with Client Subnet {}",
        plural(shown.addresses, "address", "addresses"),
        count(shown.sampled),
        percent(shown.busiest_share),
        percent(shown.private_share),
        percent(shown.subnet_share)
    );
    Some(match shown.translated {
        Some(_) => screen.paint(&format!("{words}; they look translated"), Tone::Doubtful),
        None => words,
    })
}

/// Adds up rates; of latencies the worst is shown.
fn rates(statuses: &[&StatusDto]) -> String {
    let all: Vec<&RatesDto> = statuses.iter().map(|status| &status.rates).collect();
    let queries: f64 = all.iter().map(|rates| rates.queries_per_second).sum();
    let failures: f64 = all.iter().map(|rates| rates.failures_per_second).sum();
    let worst = |of: fn(&RatesDto) -> Option<f64>| {
        all.iter().filter_map(|rates| of(rates)).reduce(f64::max)
    };
    let failing = if failures > 0.0 {
        format!(", {}/s fail", decimal(failures))
    } else {
        String::new()
    };
    let latency = match (
        worst(|rates| rates.latency_p50_us),
        worst(|rates| rates.latency_p99_us),
    ) {
        (None, None) => String::new(),
        (half, most) => format!(
            " · p50 {}, p99 {}",
            measure(half, "us"),
            measure(most, "us")
        ),
    };
    format!("{}/s{failing}{latency}", decimal(queries))
}

/// Draws each node in a line.
fn nodes(summary: &SummaryDto, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("NODE"),
            Left("STATE"),
            Right("UP FOR"),
            Right("NAMES"),
            Right("QUERIES/S"),
            Right("PROBLEMS"),
            Left("VERSION"),
            Left("SERVER"),
        ],
        &[Right("GENERATION"), Right("P50"), Right("P99")],
    );
    for state in &summary.nodes {
        let Some(status) = &state.status else {
            let silent = Cell::toned("no word", Tone::Bad);
            let dash = || "-".into();
            let cells = [dash(), silent, dash(), dash(), dash(), dash(), dash()];
            let [a, b, c, d, e, f, g] = cells;
            table.row([a, b, c, d, e, f, g, (&state.server).into()], || {
                [dash(), dash(), dash()]
            });
            continue;
        };
        let node = &status.node;
        let ready = if node.ready { "ready" } else { "not ready" };
        let rates = &status.rates;
        table.row(
            [
                (&node.name).into(),
                Cell::toned(ready, Tone::of_truth(node.ready)),
                age(&node.started, &node.now).into(),
                count(node.names).into(),
                decimal(rates.queries_per_second).into(),
                count(status.problem_count).into(),
                (&node.version).into(),
                (&state.server).into(),
            ],
            || {
                [
                    count(node.generation).into(),
                    measure(rates.latency_p50_us, "us").into(),
                    measure(rates.latency_p99_us, "us").into(),
                ]
            },
        );
    }
    table.draw("no nodes")
}

/// Says how long a node is up, by its own clock.
fn age(started: &str, now: &str) -> String {
    let (Ok(started), Ok(now)) = (
        started.parse::<jiff::Timestamp>(),
        now.parse::<jiff::Timestamp>(),
    ) else {
        return "-".to_owned();
    };
    let seconds = now.as_second().saturating_sub(started.as_second()).max(0);
    span(seconds.unsigned_abs())
}

/// Lists peers that were not asked themselves: those whose name none of the nodes that answered has.
fn unasked(statuses: &[&StatusDto]) -> Vec<PeerDto> {
    let mut peers: Vec<PeerDto> = Vec::new();
    for peer in statuses.iter().flat_map(|status| &status.peers) {
        let asked = |status: &&StatusDto| Some(&status.node.name) == peer.name.as_ref();
        if !statuses.iter().any(asked) && !peers.iter().any(|known| known.url == peer.url) {
            peers.push(peer.clone());
        }
    }
    peers
}

/// Counts what a summary is about, for its title on a screen that is drawn again and again.
pub(super) fn title(nodes: &Nodes) -> String {
    match nodes.each() {
        [one] => one.server(),
        several => plural(several.len() as u64, "node", "nodes"),
    }
}
