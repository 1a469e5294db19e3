//! Member clusters: how each is connected, and what is wrong with its objects.

use super::rows::by_member;
use super::text::{Kind, Text};
use crate::admin::view::{View, held_deletions, refused_objects};
use crate::source::kubernetes::{KindStatus, Link, MemberStatus, Watched};

/// Writes all of it.
pub(super) fn write(text: &mut Text, view: &View) {
    let members = view.sources_of_node().members.borrow().clone();
    show(text, &members);
}

/// One member, or all behind those shown one by one.
struct Row<'a> {
    name: &'a str,
    synced: bool,
    /// Unix time; of several the oldest.
    contact: u64,
    lists: u64,
    failures: u64,
    refused: u64,
    held: u64,
}

impl<'a> Row<'a> {
    fn of(name: &'a str, members: &[MemberStatus]) -> Self {
        let sum = |of: fn(&KindStatus) -> u64| {
            let kinds = members.iter().flat_map(|member| &member.kinds);
            kinds.map(of).sum()
        };
        let contact = |member: &MemberStatus| member.last_contact.map_or(0, |at| at.0 / 1000);
        Self {
            name,
            synced: members.iter().all(|member| member.link == Link::Synced),
            contact: members.iter().map(contact).min().unwrap_or_default(),
            lists: sum(|kind| kind.lists),
            failures: sum(|kind| kind.failures),
            refused: members.iter().map(refused_objects).sum(),
            held: members.iter().map(held_deletions).sum(),
        }
    }
}

/// Shows the members one by one, and those behind them under one name.
fn show(text: &mut Text, members: &[MemberStatus]) {
    let rows = by_member(members).into_iter();
    let rows: Vec<Row<'_>> = rows.map(|(name, members)| Row::of(name, members)).collect();
    type Value = fn(&Row<'_>) -> u64;
    let families: [(&str, Kind, &str, Value); 6] = [
        (
            "member_synced",
            Kind::Gauge,
            "1 while what is known of a member cluster is what it has.",
            |row| u64::from(row.synced),
        ),
        (
            "member_contact_timestamp_seconds",
            Kind::Gauge,
            "When the API server of a member cluster answered last; 0: it never did since the start.",
            |row| row.contact,
        ),
        (
            "member_lists_total",
            Kind::Counter,
            "Lists of a member cluster's objects that were read to their end.",
            |row| row.lists,
        ),
        (
            "member_request_failures_total",
            Kind::Counter,
            "Requests for a member cluster's objects that failed.",
            |row| row.failures,
        ),
        (
            "member_refused_objects",
            Kind::Gauge,
            "Objects of a member cluster of which something is refused.",
            |row| row.refused,
        ),
        (
            "member_held_deletions",
            Kind::Gauge,
            "Objects of a member cluster that are served though they are gone.",
            |row| row.held,
        ),
    ];
    for (name, kind, help, value) in families {
        let mut family = text.family(name, kind, help);
        for row in &rows {
            family.value(&[("cluster", row.name)], value(row));
        }
    }
    let mut family = text.family(
        "member_objects",
        Kind::Gauge,
        "Objects known of all member clusters, by kind.",
    );
    for watched in Watched::ALL {
        let kinds = members.iter().flat_map(|member| &member.kinds);
        let known = kinds.filter(|kind| kind.watched == watched);
        let count: usize = known.map(|kind| kind.objects).sum();
        family.value(&[("kind", watched.as_str())], count);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::rows::MEMBERS;
    use super::*;
    use crate::model::{ClusterIndex, WallTime};
    use crate::source::kubernetes::{KindState, Overview, WriteBackStatus};

    fn member(at: u16) -> MemberStatus {
        MemberStatus {
            cluster: ClusterIndex(at),
            id: format!("c{at}").parse().unwrap(),
            link: if at == 40 {
                Link::Stale { since: WallTime(0) }
            } else {
                Link::Synced
            },
            last_contact: Some(WallTime(u64::from(1000 - at) * 1000)),
            version: None,
            warnings: Vec::new(),
            last_error: None,
            kinds: vec![KindStatus {
                watched: Watched::Services,
                state: KindState::Watching,
                version: Some("v1"),
                objects: 3,
                left_out: 0,
                lists: 2,
                failures: 1,
                error: None,
            }],
            overview: Arc::new(Overview {
                kinds: Vec::new(),
                shards: 3,
                held: None,
                told: Vec::new(),
                untold: 5,
            }),
            unusable: None,
            write_back: WriteBackStatus::default(),
        }
    }

    fn shown(members: &[MemberStatus]) -> Vec<String> {
        let mut text = Text::new();
        show(&mut text, members);
        let text = text.finish();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(ToOwned::to_owned).collect()
    }

    #[test]
    fn each_member_has_a_row_and_those_behind_one_together() {
        let all: Vec<MemberStatus> = (0..42).map(member).collect();
        let lines = shown(&all);
        for line in [
            "meridian_member_synced{cluster=\"c31\"} 1",
            "meridian_member_synced{cluster=\"(other)\"} 0",
            "meridian_member_contact_timestamp_seconds{cluster=\"c0\"} 1000",
            "meridian_member_contact_timestamp_seconds{cluster=\"(other)\"} 959",
            "meridian_member_lists_total{cluster=\"c0\"} 2",
            "meridian_member_lists_total{cluster=\"(other)\"} 20",
            "meridian_member_request_failures_total{cluster=\"(other)\"} 10",
            "meridian_member_refused_objects{cluster=\"c0\"} 5",
            "meridian_member_held_deletions{cluster=\"c0\"} 0",
            "meridian_member_objects{kind=\"Service\"} 126",
            "meridian_member_objects{kind=\"Node\"} 0",
        ] {
            assert!(lines.iter().any(|found| found == line), "{line}: {lines:?}");
        }
        assert_eq!(lines.len(), 6 * (MEMBERS + 1) + Watched::ALL.len());
    }

    #[test]
    fn without_members_there_are_the_kinds_alone() {
        assert_eq!(shown(&[]).len(), Watched::ALL.len());
    }
}
