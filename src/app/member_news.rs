//! What is told of member clusters: synced, stale, and back; refused, and no longer; deletions held, and let go.
//!
//! One event a change between two readings. A member that was not there before is as one that was never synced.

use crate::controller::{Event, Kind, Weightiness};
use crate::model::{ClusterId, counted};
use crate::source::kubernetes::{HeldDeletions, KindState, Link, MemberStatus, Watched};

/// Most members that are told of after one reading; the page Sources lists all.
const TOLD: usize = 50;

/// Tells what changed between two readings of all members.
pub(super) fn of_members(before: &[MemberStatus], now: &[MemberStatus]) -> Vec<Event> {
    let mut events = Vec::new();
    let (mut told, mut untold) = (0, 0);
    for member in now {
        let former = before.iter().find(|former| former.id == member.id);
        let news = of_member(former, member);
        if news.is_empty() {
            continue;
        }
        if told < TOLD {
            told += 1;
            events.extend(news);
        } else {
            untold += 1;
        }
    }
    if untold > 0 {
        let clusters = counted(untold, "more member cluster");
        let text = format!("{clusters} changed at once; the page Sources lists them");
        events.push(Event::new(Kind::Source, Weightiness::Warning, text));
    }
    events
}

/// Tells what changed of one member.
fn of_member(before: Option<&MemberStatus>, now: &MemberStatus) -> Vec<Event> {
    let link = of_link(before.map_or(Link::Never, |before| before.link), now);
    let held = before.and_then(|before| before.overview.held);
    let shards = before.map_or(0, |before| before.overview.shards);
    let deletions = of_deletions((held, shards), now);
    link.into_iter()
        .chain(of_kinds(before, now))
        .chain(deletions)
        .collect()
}

/// Begins an event about a cluster.
fn event(cluster: &ClusterId, kind: Kind, weight: Weightiness, text: String) -> Event {
    let mut event = Event::new(kind, weight, text);
    event.clusters.push(cluster.to_string());
    event
}

/// Tells that a member is synced, stale, or back.
fn of_link(before: Link, now: &MemberStatus) -> Option<Event> {
    let id = &now.id;
    let (weight, text) = match (before, now.link) {
        (Link::Never, Link::Synced) => (
            Weightiness::Info,
            format!(
                "Member cluster {id} is synced: {} served",
                counted(now.overview.shards, "object")
            ),
        ),
        (Link::Stale { .. }, Link::Synced) => (
            Weightiness::Info,
            format!("Member cluster {id} is seen again"),
        ),
        (Link::Never | Link::Synced, Link::Stale { .. }) => (
            Weightiness::Warning,
            format!(
                "Member cluster {id} is stale, what was known of it is served on: {}",
                now.last_error
                    .as_deref()
                    .unwrap_or("its API server does not answer")
            ),
        ),
        _ => return None,
    };
    Some(event(id, Kind::Source, weight, text))
}

/// Tells which kinds a member refuses from now on, and which it does no longer. A kind of which nothing new is known, because
/// the next request waits its turn, is neither.
fn of_kinds(before: Option<&MemberStatus>, now: &MemberStatus) -> Vec<Event> {
    let was_refused = |watched: Watched| {
        let mut kinds = before.into_iter().flat_map(|before| &before.kinds);
        kinds.any(|kind| kind.watched == watched && matches!(kind.state, KindState::Refused(_)))
    };
    let (mut refused, mut first, mut granted) = (Vec::new(), None, Vec::new());
    for kind in &now.kinds {
        match (&kind.state, was_refused(kind.watched)) {
            (KindState::Refused(why), false) => {
                refused.push(kind.watched.plural());
                first = first.or(Some(why));
            }
            (KindState::Listing | KindState::Watching | KindState::Unserved, true) => {
                granted.push(kind.watched.plural());
            }
            _ => {}
        }
    }
    let id = &now.id;
    let lost = first.map(|why| {
        let text = format!(
            "Member cluster {id} refuses {}, what was known stands: {why}",
            refused.join(", ")
        );
        event(id, Kind::Refusal, Weightiness::Warning, text)
    });
    let back = (!granted.is_empty()).then(|| {
        let text = format!(
            "Member cluster {id} refuses {} no longer",
            granted.join(", ")
        );
        event(id, Kind::Refusal, Weightiness::Info, text)
    });
    lost.into_iter().chain(back).collect()
}

/// Tells that deletions are held, more of them, or no longer.
fn of_deletions(
    (before, shards): (Option<HeldDeletions>, usize),
    now: &MemberStatus,
) -> Option<Event> {
    let id = &now.id;
    let count = |held: &HeldDeletions| held.count;
    let (weight, text) = match (before.as_ref().map(count), &now.overview.held) {
        (former, Some(held)) if former.is_none_or(|former| former < held.count) => (
            Weightiness::Critical,
            format!(
                "Member cluster {id}: {} held until {:.0}, for most of its objects were gone at once",
                counted(held.count, "deletion"),
                held.until
            ),
        ),
        (Some(former), None) if now.overview.shards < shards => (
            Weightiness::Critical,
            format!(
                "Member cluster {id}: {} no longer held; {} served",
                counted(former, "deletion"),
                counted(now.overview.shards, "object")
            ),
        ),
        (Some(_), None) => (
            Weightiness::Info,
            format!("Member cluster {id}: no deletion is held any longer, its objects are back"),
        ),
        _ => return None,
    };
    Some(event(id, Kind::Source, weight, text))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::model::{ClusterIndex, WallTime};
    use crate::source::kubernetes::{KindStatus, Overview, WriteBackStatus};

    const STALE: Link = Link::Stale { since: WallTime(7) };

    fn member(id: &str, link: Link) -> MemberStatus {
        let kind = |watched| KindStatus {
            watched,
            state: KindState::Watching,
            version: Some("v1"),
            objects: 1,
            left_out: 0,
            lists: 1,
            failures: 0,
            error: None,
        };
        MemberStatus {
            cluster: ClusterIndex(0),
            id: id.parse().unwrap(),
            link,
            last_contact: None,
            version: None,
            warnings: Vec::new(),
            last_error: None,
            kinds: [Watched::Services, Watched::Nodes].map(kind).into(),
            overview: Arc::new(Overview {
                kinds: Vec::new(),
                shards: 20,
                held: None,
                told: Vec::new(),
                untold: 0,
            }),
            unusable: None,
            write_back: WriteBackStatus::default(),
        }
    }

    fn holding(count: usize) -> MemberStatus {
        let mut member = member("aws", Link::Synced);
        Arc::make_mut(&mut member.overview).held = Some(HeldDeletions {
            since: Timestamp::from_second(0).unwrap(),
            until: Timestamp::from_second(300).unwrap(),
            count,
        });
        member
    }

    fn refusing(watched: &[Watched], state: &KindState) -> MemberStatus {
        let mut member = member("aws", Link::Synced);
        for kind in &mut member.kinds {
            if watched.contains(&kind.watched) {
                kind.state = state.clone();
            }
        }
        member
    }

    /// A reading, and what is told of it.
    type Step<'a> = (MemberStatus, &'a [(Kind, Weightiness, &'a str)]);

    /// Checks what is told over a course of readings of one member, with its weights.
    fn check(course: &[Step<'_>]) {
        let mut before: Vec<MemberStatus> = Vec::new();
        for (at, (member, told)) in course.iter().enumerate() {
            let now = vec![member.clone()];
            let events = of_members(&before, &now);
            let said: Vec<_> = events
                .iter()
                .map(|event| (event.kind, event.weight, &*event.text))
                .collect();
            assert_eq!(said, *told, "reading {at}");
            assert!(events.iter().all(|event| event.clusters == ["aws"]));
            before = now;
        }
    }

    #[test]
    fn a_member_comes_goes_and_comes_back() {
        let mut stale = member("aws", STALE);
        stale.last_error = Some("connection refused".to_owned());
        let (kind, info) = (Kind::Source, Weightiness::Info);
        check(&[
            (member("aws", Link::Never), &[]),
            (
                member("aws", Link::Synced),
                &[(
                    kind,
                    info,
                    "Member cluster aws is synced: 20 objects served",
                )],
            ),
            (member("aws", Link::Synced), &[]),
            (
                stale.clone(),
                &[(
                    kind,
                    Weightiness::Warning,
                    "Member cluster aws is stale, what was known of it is served on: connection refused",
                )],
            ),
            (stale, &[]),
            (
                member("aws", Link::Synced),
                &[(kind, info, "Member cluster aws is seen again")],
            ),
        ]);
    }

    #[test]
    fn refusals_are_told_in_one_event_and_a_retry_is_none() {
        let refused = KindState::Refused("it may not list them (403)".into());
        let both = [Watched::Services, Watched::Nodes];
        let kind = Kind::Refusal;
        let synced = (
            Kind::Source,
            Weightiness::Info,
            "Member cluster aws is synced: 20 objects served",
        );
        check(&[
            (member("aws", Link::Synced), &[synced]),
            (
                refusing(&both, &refused),
                &[(
                    kind,
                    Weightiness::Warning,
                    "Member cluster aws refuses Services, Nodes, what was known stands: it may not list them (403)",
                )],
            ),
            (refusing(&both, &refused), &[]),
            (
                refusing(&[Watched::Nodes], &refused),
                &[(
                    kind,
                    Weightiness::Info,
                    "Member cluster aws refuses Services no longer",
                )],
            ),
            (refusing(&[Watched::Nodes], &KindState::Waiting), &[]),
        ]);
    }

    #[test]
    fn deletions_are_held_and_let_go_or_come_back() {
        let mut gone = member("aws", Link::Synced);
        Arc::make_mut(&mut gone.overview).shards = 8;
        let synced = (
            Kind::Source,
            Weightiness::Info,
            "Member cluster aws is synced: 20 objects served",
        );
        let held = (
            Kind::Source,
            Weightiness::Critical,
            "Member cluster aws: 12 deletions held until 1970-01-01T00:05:00Z, for most of its objects were gone at once",
        );
        check(&[
            (member("aws", Link::Synced), &[synced]),
            (holding(12), &[held]),
            (holding(12), &[]),
            (holding(3), &[]),
            (
                member("aws", Link::Synced),
                &[(
                    Kind::Source,
                    Weightiness::Info,
                    "Member cluster aws: no deletion is held any longer, its objects are back",
                )],
            ),
            (holding(12), &[held]),
            (
                gone,
                &[(
                    Kind::Source,
                    Weightiness::Critical,
                    "Member cluster aws: 12 deletions no longer held; 8 objects served",
                )],
            ),
        ]);
    }

    #[test]
    fn many_members_are_told_of_in_a_bounded_number_of_events() {
        let all = |link| -> Vec<_> {
            let ids = (0..150).map(|at| format!("c{at}"));
            ids.map(|id| member(&id, link)).collect()
        };
        let events = of_members(&all(Link::Synced), &all(STALE));
        assert_eq!(events.len(), TOLD + 1);
        assert_eq!(
            events.last().unwrap().text,
            "100 more member clusters changed at once; the page Sources lists them"
        );
        // One that is taken out of the configuration is no news: the reload is.
        assert_eq!(of_members(&all(STALE), &[]), []);
    }
}
