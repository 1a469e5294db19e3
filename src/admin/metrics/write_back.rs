//! Events in member clusters: who writes them, and whether that works.

use super::rows::by_member;
use super::text::{Kind, Text};
use crate::admin::view::View;
use crate::source::kubernetes::{Link, MemberStatus, WriteBackStatus};

/// What one member has of a figure.
type Value = fn(&MemberStatus) -> u64;

/// Writes all of it.
pub(super) fn write(text: &mut Text, view: &View) {
    let members = view.sources_of_node().members.borrow().clone();
    let wanted = members.iter().filter(|member| member.write_back.wanted);
    let wanted: Vec<MemberStatus> = wanted.cloned().collect();
    show(text, &wanted);
}

/// Shows the members one by one, and those behind them under one name.
fn show(text: &mut Text, members: &[MemberStatus]) {
    let rows = by_member(members);
    let sum = |members: &[MemberStatus], value: Value| -> u64 { members.iter().map(value).sum() };
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let families: [(&str, Kind, &str, Value); 3] = [
        (
            "write_back_leader",
            Kind::Gauge,
            "1 while this node is the one who writes Events in a member cluster.",
            |member| u64::from(member.write_back.leads),
        ),
        (
            "write_back_failing",
            Kind::Gauge,
            "1 while a member cluster is seen, and the last request for the Lease or for Events of it failed.",
            |member| u64::from(member.link == Link::Synced && member.write_back.error.is_some()),
        ),
        (
            "write_back_events_total",
            Kind::Counter,
            "Events that were written, or counted up, in a member cluster.",
            |member| member.write_back.written,
        ),
    ];
    for (name, kind, help, value) in families {
        let mut family = text.family(name, kind, help);
        for (name, members) in &rows {
            family.value(&[("cluster", name)], sum(members, value));
        }
    }
    let reasons: [(&str, Value); 3] = [
        ("forbidden", |member| member.write_back.forbidden),
        ("unreachable", |member| member.write_back.unreachable),
        ("refused", |member| member.write_back.refused),
    ];
    let mut family = text.family(
        "write_back_failures_total",
        Kind::Counter,
        "Requests for the Lease or for Events of a member cluster that failed.",
    );
    for (name, members) in &rows {
        for (reason, value) in reasons {
            family.value(
                &[("cluster", name), ("reason", reason)],
                sum(members, value),
            );
        }
    }
    type Count = fn(&WriteBackStatus) -> usize;
    let counts: [(&str, &str, Count); 2] = [
        (
            "write_back_waiting",
            "What stands of objects of a member cluster and was not said by this node.",
            |status| status.waiting,
        ),
        (
            "write_back_left_out",
            "What stands of objects of a member cluster and is not said, because there is too much of it.",
            |status| status.left_out,
        ),
    ];
    for (name, help, value) in counts {
        let mut family = text.family(name, Kind::Gauge, help);
        for (name, members) in &rows {
            let counts = members.iter().map(|member| value(&member.write_back));
            family.value(&[("cluster", name)], number(counts.sum()));
        }
    }
}
