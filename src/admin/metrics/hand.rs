//! What operators said, and how far it is.

use super::text::{Kind, Text};
use crate::admin::dto::{ChallengeState, DrainState};
use crate::admin::view::View;

/// The states of drains that are not over, with their labels.
const STATES: [(DrainState, &str); 5] = [
    (DrainState::Announced, "announced"),
    (DrainState::Partial, "partial"),
    (DrainState::Draining, "draining"),
    (DrainState::Held, "held"),
    (DrainState::Safe, "safe"),
];

/// Writes all of it.
pub(super) fn write(text: &mut Text, view: &View) {
    let drains = view.drain_states();
    let mut family = text.family(
        "vantage_drains",
        Kind::Gauge,
        "Drains that are not over, by how far they are.",
    );
    for (state, label) in STATES {
        let count = drains.iter().filter(|one| **one == state).count();
        family.value(&[("state", label)], count);
    }
    text.gauge(
        "vantage_forces",
        "Verdicts that operators pin.",
        view.force_count(),
    );
    let challenges = view.challenge_states();
    let mut family = text.family(
        "vantage_challenges",
        Kind::Gauge,
        "Challenges of certificate authorities that stand, by whether every node answers with them.",
    );
    for (state, label) in [
        (ChallengeState::Partial, "partial"),
        (ChallengeState::Served, "served"),
    ] {
        let count = challenges.iter().filter(|one| **one == state).count();
        family.value(&[("state", label)], count);
    }
    let peers = view.vantage().peers();
    let reachable = |peer: &&crate::vantage::PeerWord| peer.error.is_none() && peer.is_fresh();
    let well = peers.iter().filter(reachable).count();
    let mut family = text.family(
        "vantage_peers",
        Kind::Gauge,
        "Nodes in `peers`, by whether they can be reached.",
    );
    family.value(&[("state", "reachable")], well);
    family.value(&[("state", "unreachable")], peers.len() - well);
    let mut family = text.family(
        "vantage_peer_heard_timestamp_seconds",
        Kind::Gauge,
        "When a node in `peers` was heard of last; 0: it never was since the start.",
    );
    for peer in &peers {
        let at = peer.heard_at.map_or(0, |at| at.0 / 1000);
        family.value(&[("peer", &peer.url)], at);
    }
    text.gauge(
        "vantage_records_unwritten",
        "1 while drains and forces are not on disk.",
        u8::from(!view.vantage().book().is_written()),
    );
}
