//! Samples of member clusters and their objects, for tests of templates.

use super::hostile::{HOSTILE, TIME};
use crate::admin::dto::{
    BackingDto, HeldDeletionsDto, KindDto, KindStateDto, LinkDto, MemberDto, ObjectDto, RefusalDto,
    RefusedPartDto,
};

fn s(text: &str) -> String {
    text.to_owned()
}

/// A member cluster that is stale, and one that is hostile in everything that it says.
pub(super) fn member(name: &str) -> MemberDto {
    let kind = |kind: &str, state, objects, reason: Option<&str>| KindDto {
        kind: s(kind),
        version: Some(s("v1")),
        state,
        objects,
        left_out: objects / 1000,
        reason: reason.map(s),
    };
    let refusal = |place: &str| RefusalDto {
        source: s(name),
        place: s(place),
        reason: s(HOSTILE),
    };
    MemberDto {
        link: LinkDto::Stale,
        since: Some(s("2026-11-21T02:40:00Z")),
        last_contact: Some(s("2026-11-21T02:59:30Z")),
        age_seconds: Some(30),
        version: Some(if name == HOSTILE {
            s(HOSTILE)
        } else {
            s("v1.36.2")
        }),
        last_error: Some(format!("connection refused {HOSTILE}")),
        warnings: vec![s("its certificate is not checked")],
        kinds: vec![
            kind("Service", KindStateDto::Waiting, 1200, Some(HOSTILE)),
            kind(
                "EndpointSlice",
                KindStateDto::Refused,
                0,
                Some("it may not list them"),
            ),
            kind("UDPRoute", KindStateDto::Unserved, 0, None),
        ],
        shards: 96,
        unconfirmed_since: Some(s("2026-11-19T02:40:00Z")),
        held: Some(HeldDeletionsDto {
            count: 12,
            since: s(TIME),
            until: s("2026-11-21T03:05:00Z"),
        }),
        refused_objects: 101,
        refused: (0..100).map(|_| refusal(HOSTILE)).collect(),
    }
}

/// An object of a member cluster, hostile where the cluster is.
pub(super) fn object(cluster: &str) -> ObjectDto {
    let is_hostile = cluster == HOSTILE;
    let name = if is_hostile { HOSTILE } else { "web" };
    ObjectDto {
        cluster: s(cluster),
        kind: s("Service"),
        namespace: s("shop"),
        name: s(name),
        addresses: vec![s("192.0.2.20"), s("2001:db8::20")],
        targets: vec![s(name)],
        ready: !is_hostile,
        reason: is_hostile.then(|| s(HOSTILE)),
        served: true,
        drained: false,
        weight: 1,
        backing: Some(BackingDto {
            ready: 2,
            serving: 3,
            terminating: 1,
            total: 4,
        }),
        refused: vec![RefusedPartDto {
            what: s("meridian-dns.io/bias"),
            reason: s(HOSTILE),
        }],
        refused_count: 4,
    }
}
