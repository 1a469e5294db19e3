//! Tests of what is said about drains, and of when waiting ends.

use serde_json::json;

use super::wait::{Progress, judge};
use super::{drained, same};
use crate::admin::dto::{DrainDto, TargetDto};
use crate::app::client::{Fault, FaultKind, Made};
use crate::app::table::Screen;

/// What one node says of a drain of two nodes.
fn drain(state: &str, nodes: &[(&str, bool, Option<f64>, Option<&str>)]) -> DrainDto {
    let words = nodes.iter().map(|(node, in_force, remaining, error)| {
        json!({
            "node": node, "own": false, "inForce": in_force, "heardMsAgo": 10, "error": error, "held": 3,
            "lastGivenSecondsAgo": 1.0, "ttl": 30, "remainingSeconds": remaining
        })
    });
    let said = json!({
        "id": "d-1", "target": {"kind": "cluster", "cluster": "a"}, "state": state, "safeToStop": state == "safe",
        "waitingFor": [], "created": {"time": "2026-11-21T11:57:00Z", "actor": "alice", "reason": "update"},
        "starts": "2026-11-21T11:57:00Z", "expires": null,
        "ended": (state == "ended").then(|| json!({"time": "2026-11-21T11:58:00Z", "actor": "bob", "reason": "back"})),
        "acknowledged": 1, "expected": 2, "heldServices": ["shop/web"], "nodes": words.collect::<Vec<_>>()
    });
    serde_json::from_value(said).unwrap()
}

fn fault(kind: FaultKind) -> Fault {
    Fault {
        server: "http://b".to_owned(),
        kind,
    }
}

/// Judges what two servers say.
fn judged(a: Result<DrainDto, Fault>, b: Result<DrainDto, Fault>) -> Progress {
    judge(&[("http://a".to_owned(), a), ("http://b".to_owned(), b)])
}

fn waiting(reasons: &[&str], left: Option<&str>) -> Progress {
    Progress::Waiting {
        reasons: reasons.iter().map(|&reason| reason.to_owned()).collect(),
        left: left.map(str::to_owned),
    }
}

#[test]
fn safe_is_only_what_every_server_calls_safe() {
    let safe = || drain("safe", &[]);
    assert_eq!(judged(Ok(safe()), Ok(safe())), Progress::Safe);
    assert_eq!(
        judged(Ok(safe()), Err(fault(FaultKind::Refused))),
        waiting(
            &[&format!("no word from {}", fault(FaultKind::Refused))],
            None
        )
    );
    assert_eq!(
        judged(Ok(safe()), Err(fault(FaultKind::NotFound("no".to_owned())))),
        waiting(&["http://b has not heard of it yet"], None)
    );
    assert_eq!(judge(&[]), waiting(&[], None), "nobody is not everybody");
}

#[test]
fn what_is_waited_for_is_named_without_numbers_that_run() {
    let cut = drain(
        "partial",
        &[
            ("fra-1", true, Some(12.2), None),
            ("nyc-1", false, None, Some("timeout\u{1b}")),
            ("tok-1", false, None, None),
        ],
    );
    assert_eq!(
        judged(Ok(cut), Ok(drain("safe", &[]))),
        waiting(
            &[
                "caches keep what fra-1 gave out",
                "nyc-1 is out of reach (timeout\u{fffd})",
                "tok-1 has it not in force yet"
            ],
            Some("13")
        )
    );
    let announced = drain("announced", &[]);
    assert_eq!(
        judged(Ok(announced.clone()), Ok(announced)),
        waiting(&["it begins at 2026-11-21T11:57:00Z"], None)
    );
}

#[test]
fn held_and_ended_never_become_safe() {
    let safe = || drain("safe", &[]);
    let held = drain("held", &[("fra-1", true, Some(0.0), None)]);
    for (said, words) in [
        (held, "shop/web and 2 more names"),
        (drain("ended", &[]), "bob ended it: back"),
    ] {
        let Progress::Never(why) = judged(Ok(safe()), Ok(said)) else {
            panic!("it is waited for");
        };
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn saying_it_again_is_told() {
    let screen = Screen::plain(None, false);
    let made = |new, state| Made {
        new,
        value: drain(state, &[]),
    };
    assert_eq!(
        drained(&made(true, "partial"), &screen),
        "cluster a: partial 1/2; drained until somebody ends it (id d-1)"
    );
    assert_eq!(
        drained(&made(false, "safe"), &screen),
        "cluster a: already drained since 3 m ago (alice: update); safe to stop (id d-1)"
    );
}

#[test]
fn what_is_announced_is_not_called_drained() {
    let made = Made {
        new: false,
        value: drain("announced", &[]),
    };
    let said = drained(&made, &Screen::plain(None, false));
    assert!(
        said.starts_with(
            "cluster a: already announced since 3 m ago (alice: update); announced, begins"
        ),
        "{said}"
    );
}

#[test]
fn targets_are_the_same_however_addresses_are_spelled() {
    let target = |address: &str, service: Option<&str>| -> TargetDto {
        serde_json::from_value(
            json!({"kind": "endpoint", "cluster": "a", "address": address, "service": service}),
        )
        .unwrap()
    };
    assert!(same(
        &target("2001:db8::1", None),
        &target("2001:DB8:0::1", None)
    ));
    assert!(same(
        &target("LB.example", None),
        &target("lb.example", None)
    ));
    assert!(!same(
        &target("192.0.2.1", None),
        &target("192.0.2.2", None)
    ));
    assert!(!same(
        &target("192.0.2.1", None),
        &target("192.0.2.1", Some("n/s"))
    ));
}
