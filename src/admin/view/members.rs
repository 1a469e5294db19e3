//! Member clusters: how each is connected, what is refused of its objects, and what is wrong with it.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::{View, number, words};
use crate::admin::dto::{
    HeldDeletionsDto, KindDto, KindStateDto, LinkDto, MemberDto, MembersDto, ProblemDto,
    RefusalDto, Severity, SourceDto, SourceKind, SourceState,
};
use crate::admin::sources::AgedCluster;
use crate::model::{ClusterId, ClusterIndex, Rejection, WallTime, counted, fair};
use crate::source::kubernetes::{HeldDeletions, KindState, KindStatus, Link, MemberStatus, Told};

/// Refusals listed of one cluster.
const LISTED: usize = 100;

impl View {
    /// Gives how all member clusters stand.
    pub(super) fn members(&self) -> Arc<Vec<MemberStatus>> {
        Arc::clone(&self.sources_of_node().members.borrow())
    }

    /// Lists what is refused of a member's objects, at most 100.
    pub(super) fn refused_of(&self, cluster: ClusterIndex) -> Vec<RefusalDto> {
        let members = self.members();
        let member = members.iter().find(|member| member.cluster == cluster);
        let world = Arc::clone(&self.controller().status().world);
        let all = member.map_or_else(Vec::new, |member| refused(member, &world.refused_objects));
        listed(all)
    }

    /// Counts the member clusters; `None`: there are none.
    pub(super) fn member_sums(&self) -> Option<MembersDto> {
        sums(&self.members(), self.controller().status().world.rejected)
    }

    /// Names the members that are not seen, and the deletions that are held.
    pub(super) fn member_problems(&self, problems: &mut Vec<ProblemDto>) {
        let leaving = self.sources_of_node().events.leaving();
        let members = self.members();
        // Of those that are leaving it is said that they are, and not that they are not seen.
        let others = members
            .iter()
            .filter(|member| !leaving.iter().any(|one| one.id == member.id));
        problems.extend(others.flat_map(wrong));
        let aged = self.sources_of_node().events.aged();
        problems.extend(
            members
                .iter()
                .filter_map(|member| unconfirmed(member, &aged)),
        );
    }

    /// Shows the member clusters as sources of services.
    pub(super) fn members_as_sources(&self, now: WallTime) -> Vec<SourceDto> {
        let world = Arc::clone(&self.controller().status().world);
        let members = self.members();
        let shown = members.iter();
        shown
            .map(|member| source(member, &world.refused_objects, now))
            .collect()
    }
}

/// Counts the objects of which something is refused.
pub(in crate::admin) fn refused_objects(member: &MemberStatus) -> u64 {
    number(member.overview.told.len()).saturating_add(number(member.overview.untold))
}

/// Counts the deletions that are held.
pub(in crate::admin) fn held_deletions(member: &MemberStatus) -> u64 {
    let held = member.overview.held.as_ref();
    held.map_or(0, |held| number(held.count))
}

/// Shows a member, without what is refused of it.
pub(super) fn show(member: &MemberStatus, aged: &[AgedCluster], now: WallTime) -> MemberDto {
    let (link, since) = match member.link {
        Link::Never => (LinkDto::Never, None),
        Link::Synced => (LinkDto::Synced, None),
        Link::Stale { since } => (LinkDto::Stale, Some(words::time(since))),
    };
    let aged = aged.iter().find(|aged| aged.cluster == member.cluster);
    let warnings = member.warnings.iter();
    MemberDto {
        link,
        since,
        last_contact: member.last_contact.map(words::time),
        age_seconds: age(member, now),
        version: member.version.as_deref().map(ToOwned::to_owned),
        last_error: member.last_error.clone(),
        warnings: warnings.map(ToString::to_string).collect(),
        kinds: member.kinds.iter().map(kind).collect(),
        shards: number(member.overview.shards),
        unconfirmed_since: aged.map(|aged| words::time(aged.since)),
        held: member.overview.held.as_ref().map(held),
        refused_objects: refused_objects(member),
        refused: Vec::new(),
    }
}

/// Gives how long ago its API server answered, seconds.
fn age(member: &MemberStatus, now: WallTime) -> Option<u64> {
    let contact = member.last_contact?;
    Some(now.0.saturating_sub(contact.0) / 1000)
}

/// Shows one kind.
fn kind(kind: &KindStatus) -> KindDto {
    let (state, why) = match &kind.state {
        KindState::Waiting => (KindStateDto::Waiting, None),
        KindState::Listing => (KindStateDto::Listing, None),
        KindState::Watching => (KindStateDto::Watching, None),
        KindState::Unserved => (KindStateDto::Unserved, None),
        KindState::Refused(why) => (KindStateDto::Refused, Some(why)),
    };
    let reason = why.or(kind.error.as_ref());
    KindDto {
        kind: kind.watched.as_str().to_owned(),
        version: kind.version.map(ToOwned::to_owned),
        state,
        objects: number(kind.objects),
        left_out: number(kind.left_out),
        reason: reason.map(ToString::to_string),
    }
}

/// Shows deletions that are held.
fn held(held: &HeldDeletions) -> HeldDeletionsDto {
    HeldDeletionsDto {
        count: number(held.count),
        since: words::time(wall(held.since)),
        until: words::time(wall(held.until)),
    }
}

/// Reads a moment of the wall clock.
fn wall(at: Timestamp) -> WallTime {
    WallTime(u64::try_from(at.as_millisecond()).unwrap_or_default())
}

/// Lists what is refused of a member's objects: their parts first, then the names that they may not have. Each once, though
/// both the member and the inventory tell of what is refused of an object that is served.
fn refused(member: &MemberStatus, rejections: &[Rejection]) -> Vec<RefusalDto> {
    let parts = member.overview.told.iter().flat_map(parts);
    let claims = rejections.iter().filter_map(|one| {
        let object = object_in(&one.source, &member.id)?;
        // Without a place it is the whole object, of which the member tells.
        (!one.place.is_empty()).then(|| (format!("{object}: {}", one.place), one.reason.clone()))
    });
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for (place, reason) in parts.chain(claims) {
        if seen.insert((place.clone(), reason.clone())) {
            all.push(RefusalDto {
                source: member.id.to_string(),
                place,
                reason,
            });
        }
    }
    all
}

/// Takes what is listed of all that is refused: no namespace hides the others.
fn listed(all: Vec<RefusalDto>) -> Vec<RefusalDto> {
    let namespace = |one: &RefusalDto| {
        let (object, _) = one.place.split_once('/').unwrap_or_default();
        object.rsplit(' ').next().map(ToOwned::to_owned)
    };
    let (listed, _) = fair(all.into_iter(), LISTED, namespace);
    listed.into_iter().map(|(_, one)| one).collect()
}

/// Lists what a member tells of one object: where, and why.
fn parts(told: &Told) -> impl Iterator<Item = (String, String)> {
    let kind = told.watched.as_str();
    let key = &told.key;
    let object = if key.namespace.is_empty() {
        format!("{kind} {}", key.name)
    } else {
        format!("{kind} {}/{}", key.namespace, key.name)
    };
    told.refused
        .iter()
        .map(move |part| (format!("{object}: {}", part.what), part.reason.to_string()))
}

/// Gives the object that a rejection is of, if it is one of this cluster.
fn object_in<'a>(source: &'a str, cluster: &ClusterId) -> Option<&'a str> {
    source.strip_suffix(cluster.as_str())?.strip_suffix(" in ")
}

/// Adds all members up.
fn sums(members: &[MemberStatus], refusals: usize) -> Option<MembersDto> {
    if members.is_empty() {
        return None;
    }
    let mut sums = MembersDto {
        refusals: number(refusals),
        ..MembersDto::default()
    };
    for member in members {
        let cell = match member.link {
            Link::Never => &mut sums.never,
            Link::Synced => &mut sums.synced,
            Link::Stale { .. } => &mut sums.stale,
        };
        *cell += 1;
        sums.held_deletions += held_deletions(member);
        sums.refused_objects += refused_objects(member);
    }
    Some(sums)
}

/// Says what is wrong with a member: it is not seen, deletions are held, or Events cannot be written.
fn wrong(member: &MemberStatus) -> impl Iterator<Item = ProblemDto> + use<> {
    let id = &member.id;
    let why = member.last_error.as_deref();
    let problem = |title: String, text: String, since: Option<WallTime>| ProblemDto {
        severity: Severity::Warning,
        title,
        text,
        link: format!("/clusters/{id}"),
        since: since.map(words::time),
    };
    let unseen = match (member.link, why) {
        (Link::Stale { since }, why) => Some(problem(
            format!("Member cluster {id} is stale"),
            format!(
                "{}. What was known of it is served on.",
                why.unwrap_or("Its API server does not answer")
            ),
            Some(since),
        )),
        (Link::Never, Some(why)) => Some(problem(
            format!("Member cluster {id} was never synced"),
            format!(
                "{why}. {}",
                match member.overview.shards {
                    0 => "Nothing of it is served.",
                    _ => "What the last good state had of it is served.",
                }
            ),
            None,
        )),
        _ => None,
    };
    let held = member.overview.held.as_ref().map(|held| {
        problem(
            format!("{} of {id} held", counted(held.count, "deletion")),
            format!(
                "Most of its objects were gone at once. They are served until {}, and then let go if they are still gone.",
                words::time(wall(held.until))
            ),
            Some(wall(held.since)),
        )
    });
    // Of what is not seen it is said already.
    let is_seen = member.link == Link::Synced;
    let unwritten = member.write_back.error.as_deref().filter(|_| is_seen);
    let unwritten = unwritten.map(|why| {
        problem(
            format!("Events cannot be written in {id}"),
            format!(
                "{why}. Tenants there do not see how their objects fare; everything else goes on."
            ),
            None,
        )
    });
    unseen.into_iter().chain(held).chain(unwritten)
}

/// Says that a member was not seen for too long.
fn unconfirmed(member: &MemberStatus, aged: &[AgedCluster]) -> Option<ProblemDto> {
    let aged = aged.iter().find(|aged| aged.cluster == member.cluster)?;
    let id = &member.id;
    Some(ProblemDto {
        severity: Severity::Warning,
        title: format!("Member cluster {id} is unconfirmed for longer than `maxAge`"),
        text: "Addresses of its objects that no probe confirms are used after all others. Nothing is removed.".to_owned(),
        link: format!("/clusters/{id}"),
        since: Some(words::time(aged.since)),
    })
}

/// Shows a member as a source of services.
fn source(member: &MemberStatus, rejections: &[Rejection], now: WallTime) -> SourceDto {
    let mut kinds = member.kinds.iter();
    let is_denied = kinds.any(|kind| matches!(kind.state, KindState::Refused(_)));
    let state = match (member.link, is_denied) {
        (Link::Synced, _) => SourceState::Ok,
        (_, true) => SourceState::Refused,
        (_, false) => SourceState::Stale,
    };
    let refused = refused(member, rejections);
    let refused_count = number(refused.len()).saturating_add(number(member.overview.untold));
    let refused = listed(refused);
    SourceDto {
        kind: SourceKind::Kubernetes,
        name: member.id.to_string(),
        state,
        loaded: None,
        age_seconds: age(member, now),
        details: details(member),
        refused,
        refused_count,
    }
}

/// Says in words how a member stands.
fn details(member: &MemberStatus) -> Vec<String> {
    let link = match member.link {
        Link::Never => "never synced since the start".to_owned(),
        Link::Synced => "synced".to_owned(),
        Link::Stale { since } => format!("stale, seen last {}", words::time(since)),
    };
    let mut details = vec![match &member.last_error {
        Some(error) => format!("{link}: {error}"),
        None => link,
    }];
    let version = member.version.as_deref();
    details.extend(version.map(|version| format!("API server {version}")));
    details.push(format!(
        "{} served",
        counted(member.overview.shards, "object")
    ));
    let known = member.kinds.iter().filter(|kind| kind.objects > 0);
    let known: Vec<String> = known
        .map(|kind| format!("{} {}", kind.watched.as_str(), kind.objects))
        .collect();
    if !known.is_empty() {
        details.push(format!("known: {}", known.join(", ")));
    }
    if let Some(held) = &member.overview.held {
        let until = words::time(wall(held.until));
        details.push(format!(
            "{} held until {until}",
            counted(held.count, "deletion")
        ));
    }
    details.extend(member.warnings.iter().map(ToString::to_string));
    details
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::Refused;
    use crate::source::kubernetes::{Key, Overview, Watched, WriteBackStatus};

    fn overview() -> Overview {
        Overview {
            kinds: Vec::new(),
            shards: 3,
            held: None,
            told: Vec::new(),
            untold: 0,
        }
    }

    fn status(link: Link) -> MemberStatus {
        let kind = |watched, state, objects| KindStatus {
            watched,
            state,
            version: Some("v1"),
            objects,
            left_out: 0,
            lists: 1,
            failures: 0,
            error: None,
        };
        MemberStatus {
            cluster: ClusterIndex(0),
            id: "aws".parse().unwrap(),
            link,
            last_contact: Some(WallTime(50_000)),
            version: Some("v1.36.2".into()),
            warnings: vec!["its certificate is not checked"],
            last_error: None,
            kinds: vec![
                kind(Watched::Services, KindState::Watching, 120),
                kind(Watched::UdpRoutes, KindState::Unserved, 0),
            ],
            overview: Arc::new(overview()),
            unusable: None,
            write_back: WriteBackStatus::default(),
        }
    }

    fn told(name: &str, what: &str, reason: &str) -> Told {
        Told {
            watched: Watched::Services,
            key: Key {
                namespace: "shop".into(),
                name: name.into(),
            },
            is_served: true,
            refused: vec![Refused {
                what: what.into(),
                reason: reason.into(),
            }],
        }
    }

    fn rejection(source: &str, place: &str, reason: &str) -> Rejection {
        Rejection {
            source: source.to_owned(),
            place: place.to_owned(),
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn a_member_is_shown_with_its_age_and_its_kinds() {
        let dto = show(&status(Link::Synced), &[], WallTime(62_900));
        assert_eq!(
            (dto.link, dto.since, dto.age_seconds),
            (LinkDto::Synced, None, Some(12))
        );
        let kinds: Vec<_> = dto
            .kinds
            .iter()
            .map(|kind| (kind.kind.as_str(), kind.state, kind.objects))
            .collect();
        assert_eq!(
            kinds,
            [
                ("Service", KindStateDto::Watching, 120),
                ("UDPRoute", KindStateDto::Unserved, 0)
            ]
        );
        let since = WallTime(1_795_219_200_042);
        let mut stale = status(Link::Stale { since });
        stale.kinds[0].state = KindState::Refused("it may not list".into());
        let aged = AgedCluster {
            cluster: ClusterIndex(0),
            since,
        };
        assert_eq!(unconfirmed(&stale, &[]), None);
        let problem = unconfirmed(&stale, std::slice::from_ref(&aged)).unwrap();
        assert_eq!(problem.since.as_deref(), Some("2026-11-21T00:00:00.042Z"));
        let dto = show(&stale, &[aged], WallTime(0));
        assert_eq!(dto.unconfirmed_since, dto.since);
        assert_eq!(dto.since.as_deref(), Some("2026-11-21T00:00:00.042Z"));
        assert_eq!(dto.age_seconds, Some(0), "a clock that went back");
        assert_eq!(dto.kinds[0].state, KindStateDto::Refused);
        assert_eq!(dto.kinds[0].reason.as_deref(), Some("it may not list"));
    }

    #[test]
    fn what_two_tell_of_is_listed_once_and_only_of_this_cluster() {
        let mut member = status(Link::Synced);
        Arc::make_mut(&mut member.overview).told = vec![told("web", "ttl", "no number")];
        let rejections = [
            rejection("Service shop/web in aws", "ttl", "no number"),
            rejection("Service shop/web in aws", "www.a.example", "not granted"),
            rejection("Service shop/web in aws", "", "it is not served: x"),
            rejection("Service shop/web in gcp", "www.a.example", "not granted"),
            rejection("shop/aws", "www.b.example", "shop/web has it"),
        ];
        let places: Vec<_> = refused(&member, &rejections)
            .into_iter()
            .map(|one| (one.source, one.place, one.reason))
            .collect();
        let of = |place: &str, reason: &str| ("aws".into(), place.into(), reason.into());
        assert_eq!(
            places,
            [
                of("Service shop/web: ttl", "no number"),
                of("Service shop/web: www.a.example", "not granted")
            ]
        );
    }

    #[test]
    fn lists_of_refusals_are_bounded_and_counted() {
        let mut member = status(Link::Synced);
        let all = (0..300).map(|at| told(&format!("web-{at}"), "ttl", "no number"));
        Arc::make_mut(&mut member.overview).told = all.collect();
        Arc::make_mut(&mut member.overview).untold = 7;
        let dto = source(&member, &[], WallTime(50_000));
        assert_eq!((dto.refused.len(), dto.refused_count), (LISTED, 307));
        assert_eq!(show(&member, &[], WallTime(0)).refused_objects, 307);
    }

    #[test]
    fn a_source_is_ok_stale_or_refused() {
        let since = WallTime(40_000);
        let mut denied = status(Link::Never);
        denied.last_error = Some("services: it may not list them".to_owned());
        denied.kinds[0].state = KindState::Refused("401".into());
        for (member, state, first) in [
            (status(Link::Synced), SourceState::Ok, "synced"),
            (
                status(Link::Stale { since }),
                SourceState::Stale,
                "stale, seen last 1970-01-01T00:00:40.000Z",
            ),
            (
                denied,
                SourceState::Refused,
                "never synced since the start: services: it may not list them",
            ),
        ] {
            let dto = source(&member, &[], WallTime(55_000));
            assert_eq!((dto.kind, dto.state), (SourceKind::Kubernetes, state));
            assert_eq!(dto.details[0], first);
            assert_eq!(dto.age_seconds, Some(5));
        }
        let details = details(&status(Link::Synced));
        assert_eq!(
            details[1..],
            [
                "API server v1.36.2",
                "3 objects served",
                "known: Service 120",
                "its certificate is not checked"
            ]
        );
    }

    #[test]
    fn members_are_counted_and_what_is_wrong_is_said() {
        assert_eq!(sums(&[], 3), None);
        let mut stale = status(Link::Stale {
            since: WallTime(1000),
        });
        stale.last_error = Some("connection refused".to_owned());
        let mut holding = status(Link::Synced);
        Arc::make_mut(&mut holding.overview).held = Some(HeldDeletions {
            since: Timestamp::from_second(60).unwrap(),
            until: Timestamp::from_second(360).unwrap(),
            count: 12,
        });
        Arc::make_mut(&mut holding.overview).told = vec![told("web", "ttl", "no number")];
        // A start is no fault yet.
        let fresh = status(Link::Never);
        let all = [stale, holding, fresh];
        let sums = sums(&all, 3).unwrap();
        assert_eq!((sums.synced, sums.stale, sums.never), (1, 1, 1));
        assert_eq!((sums.held_deletions, sums.refused_objects), (12, 1));
        let titles: Vec<String> = all.iter().flat_map(wrong).map(|one| one.title).collect();
        assert_eq!(
            titles,
            ["Member cluster aws is stale", "12 deletions of aws held"]
        );
    }
}
