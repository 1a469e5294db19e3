//! Challenges of certificate authorities: which stand, and which nodes answer with them.

use super::lists::ends;
use super::{Form, Frame, drawn, listed, one};
use crate::admin::dto::{ChallengeDto, ChallengeState, NodeChallengeDto, Page};
use crate::app::args::RecordArgs;
use crate::app::client::{Ask, Client, Much, Nodes, first, list};
use crate::app::table::{Cell, Column, Screen, Table};
use crate::app::words::{self, Tone, clean, join, or_dash, span, when, yes};

use Column::{Left, Right};

/// Challenges, or one.
pub(super) async fn frame(args: &RecordArgs, nodes: &Nodes, form: &Form) -> anyhow::Result<Frame> {
    if let Some(id) = &args.id {
        let found = one(nodes, &Ask::of(["acme", id]), async |_| None).await?;
        return drawn(form, &found, |screen| details(&found.value, screen));
    }
    let read = async |client: &Client| {
        let mut page: Page<ChallengeDto> =
            list(client, &Ask::of(["acme"]), Much::UpTo(args.list.limit)).await?;
        if !args.all {
            page.items.retain(stands);
            page.total = page.items.len() as u64;
        }
        Ok(page)
    };
    listed(form, &first(nodes, read).await?, table)
}

/// Tells whether a challenge is not over.
pub(super) fn stands(challenge: &ChallengeDto) -> bool {
    challenge.state != ChallengeState::Ended
}

/// How far a challenge is, in its color.
fn state(challenge: &ChallengeDto) -> (String, Tone) {
    let nodes = format!("{}/{}", challenge.acknowledged, challenge.expected);
    match (challenge.state, challenge.missing.is_empty()) {
        (ChallengeState::Served, _) => ("served by every node".to_owned(), Tone::Good),
        (ChallengeState::Partial, _) => (format!("served by {nodes} nodes"), Tone::Doubtful),
        (ChallengeState::Ended, true) => ("over".to_owned(), Tone::Plain),
        (ChallengeState::Ended, false) => {
            (format!("over; {nodes} nodes have said so"), Tone::Plain)
        }
    }
}

/// A challenge in one line.
pub(super) fn line(challenge: &ChallengeDto, screen: &Screen) -> String {
    let (state, tone) = state(challenge);
    let missing = match challenge.missing.is_empty() {
        true => String::new(),
        false => format!(", missing: {}", join(&challenge.missing)),
    };
    format!(
        "{}: {}{missing} · {}",
        clean(&challenge.owner),
        screen.paint(&state, tone),
        words::change(screen.now, &challenge.created)
    )
}

/// Challenges.
pub(super) fn table(page: &Page<ChallengeDto>, screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[
            Left("NAME"),
            Left("STATE"),
            Right("NODES"),
            Left("BY"),
            Left("SINCE"),
            Left("ENDS"),
            Left("MISSING"),
        ],
        &[Left("OWNER"), Left("TOKEN"), Left("REASON"), Left("ID")],
    );
    for challenge in &page.items {
        let (state, tone) = state(challenge);
        table.row(
            [
                (&challenge.name).into(),
                Cell::toned(state, tone),
                format!("{}/{}", challenge.acknowledged, challenge.expected).into(),
                (&challenge.created.actor).into(),
                when(screen.now, &challenge.created.time).into(),
                ends(screen.now, challenge.expires.as_deref()).into(),
                join(&challenge.missing).into(),
            ],
            || {
                [
                    (&challenge.owner).into(),
                    (&challenge.token).into(),
                    (&challenge.created.reason).into(),
                    (&challenge.id).into(),
                ]
            },
        );
    }
    table.draw("no challenges")
}

/// A challenge.
pub(super) fn details(challenge: &ChallengeDto, screen: &Screen) -> String {
    let now = screen.now;
    let (state, tone) = state(challenge);
    let mut pairs = vec![
        ("Name", clean(&challenge.name)),
        ("Owner", clean(&challenge.owner)),
        ("Token", clean(&challenge.token)),
        ("State", screen.paint(&state, tone)),
        ("Set", words::change(now, &challenge.created)),
        ("Ends", ends(now, challenge.expires.as_deref())),
    ];
    if let Some(ended) = &challenge.ended {
        pairs.push(("Ended", words::change(now, ended)));
    }
    pairs.push(("Id", clean(&challenge.id)));
    let mut text = screen.pairs(&pairs);
    text.push('\n');
    text.push_str(&each_node(&challenge.nodes, screen));
    text
}

/// Each node's word about a challenge.
fn each_node(nodes: &[NodeChallengeDto], screen: &Screen) -> String {
    let mut table = Table::new(
        screen,
        &[Left("NODE"), Left("SERVES"), Left("HEARD"), Left("ERROR")],
        &[],
    );
    for node in nodes {
        let heard = match (node.own, node.heard_ms_ago) {
            (true, _) => "itself".to_owned(),
            (false, Some(ms)) => format!("{} ago", span(ms / 1_000)),
            (false, None) => "never".to_owned(),
        };
        table.row(
            [
                (&node.node).into(),
                Cell::toned(yes(node.serves), Tone::of_truth(node.serves)),
                heard.into(),
                or_dash(node.error.as_deref()).into(),
            ],
            || [],
        );
    }
    table.draw("no nodes")
}
