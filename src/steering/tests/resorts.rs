//! Last resorts, panic, doubts, families.

use super::world::{World, down, drained, entry, forced_down, parse};
use super::{V4, V6, fenced, line, near_a, proximity, rule, steer, tiered};
use crate::model::{EndpointState, FallbackSpec, PolicySpec, Steer};
use crate::steering::{Basis, Chosen, Level, Reason};

#[test]
fn the_last_resorts_come_in_their_order() {
    type Change = fn(EndpointState) -> EndpointState;
    let keep: Change = |state| state;
    let both: Change = |state| drained(down(state));
    let fallback = FallbackSpec::Hostname(parse("cdn.example.net"));
    // States of a, b, c; what is chosen without a fallback, and with one.
    let cases: &[([Change; 3], &str, &str)] = &[
        ([keep, keep, keep], "0 up", "0 up"),
        ([down, keep, keep], "1 up", "1 up"),
        ([drained, down, keep], "2 up", "2 up"),
        (
            [down, drained, down],
            "1 up but drained",
            "1 up but drained",
        ),
        (
            [forced_down, down, down],
            "1 not forced down, taken as up",
            "fallback",
        ),
        (
            [forced_down, forced_down, both],
            "2 not forced down, taken as up",
            "fallback",
        ),
        (
            [forced_down, forced_down, forced_down],
            "0 forced down",
            "fallback",
        ),
    ];
    for tiers in [proximity(), tiered(&[&["a"], &["b"], &["c"]])] {
        for (changes, expected, with_fallback) in cases {
            for (fallback, expected) in [(None, expected), (Some(fallback.clone()), with_fallback)]
            {
                let spec = PolicySpec {
                    fallback,
                    ..tiers.clone()
                };
                let mut world = World::plain(&spec, &line());
                for (n, change) in changes.iter().enumerate() {
                    world.set_cluster(n, change);
                }
                for family in [V4, V6] {
                    let got = world.ask(&near_a(), family, |ask, decision| match decision.chosen {
                        Chosen::Cluster { rank, level } => {
                            assert_eq!(world.endpoints(&decision, ask).len(), 1);
                            assert_eq!(decision.reason.level, level);
                            format!("{rank} {level}")
                        }
                        Chosen::Fallback(_) => "fallback".to_owned(),
                        other => panic!("{other:?}"),
                    });
                    assert_eq!(&got, expected);
                }
            }
        }
    }
}

#[test]
fn reasons_say_what_was_passed_over() {
    let mut world = World::plain(&tiered(&[&["a"], &["b", "c"]]), &line());
    world.set_cluster(0, down);
    world.set_cluster(1, down);
    let reason = world.ask(&near_a(), V4, |_, decision| decision.reason);
    let expected = Reason {
        basis: Basis::Distance,
        level: Level::Up,
        tier: 1,
        skipped: 2,
        panic: false,
    };
    assert_eq!(reason, expected);
}

#[test]
fn panic_ignores_health_but_not_drains() {
    let spec = PolicySpec {
        panic: 0.5,
        ..proximity()
    };
    let mut world = World::plain(&spec, &line());
    let look = |world: &World| {
        world.ask(&near_a(), V4, |_, decision| match decision.chosen {
            Chosen::Cluster { rank, level } => (rank, level, decision.reason.panic),
            other => panic!("{other:?}"),
        })
    };
    world.set_cluster(0, down);
    // Two of three are usable.
    assert_eq!(look(&world), (1, Level::Up, false));
    world.set_cluster(1, down);
    assert_eq!(look(&world), (0, Level::Panic, true));
    // A drained endpoint neither counts nor is used: 1 of 2 is not below the half.
    world.set_cluster(0, drained);
    assert_eq!(look(&world), (2, Level::Up, false));
    world.set_cluster(2, down);
    assert_eq!(look(&world), (1, Level::Panic, true));
    // The default never panics.
    world.policy = World::plain(&proximity(), &line()).policy;
    assert!(!look(&world).2);
}

#[test]
fn a_doubt_shortens_the_answer_where_it_may_change_it() {
    let doubt = |state: EndpointState| state.with_doubt(true);
    let mut world = World::plain(&proximity(), &line());
    let brief = |world: &World| world.ask(&near_a(), V4, |_, decision| decision.brief);
    assert!(!brief(&world));
    world.set("192.0.2.1", doubt);
    assert!(!brief(&world), "farther away than the answer");
    world.set("192.0.2.0", doubt);
    assert!(brief(&world), "the answer itself");
    world.set("192.0.2.0", |state| down(state.with_doubt(false)));
    world.set("192.0.2.1", |state| state.with_doubt(false));
    assert!(!brief(&world));
    world.set("192.0.2.0", doubt);
    assert!(brief(&world), "a nearer one may come back");
}

/// Addresses of a and b, those that are down, then what A and AAAA are told.
type Families = (
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
    &'static str,
);

const FAMILIES: &[Families] = &[
    (
        &["192.0.2.1", "2001:db8::1"],
        &["192.0.2.2", "2001:db8::2"],
        &[],
        "192.0.2.1",
        "2001:db8::1",
    ),
    // IPv4 only, nearest: the client's A names it.
    (
        &["192.0.2.1"],
        &["192.0.2.2", "2001:db8::2"],
        &[],
        "192.0.2.1",
        "other",
    ),
    // It is down: the next.
    (
        &["192.0.2.1"],
        &["192.0.2.2", "2001:db8::2"],
        &["192.0.2.1"],
        "192.0.2.2",
        "2001:db8::2",
    ),
    // IPv6 only, nearest: AAAA names it, A the next cluster with IPv4.
    (
        &["2001:db8::1"],
        &["192.0.2.2", "2001:db8::2"],
        &[],
        "192.0.2.2",
        "2001:db8::1",
    ),
    // One family of the nearest is down.
    (
        &["192.0.2.1", "2001:db8::1"],
        &["192.0.2.2", "2001:db8::2"],
        &["2001:db8::1"],
        "192.0.2.1",
        "other",
    ),
    (
        &["192.0.2.1", "2001:db8::1"],
        &["192.0.2.2", "2001:db8::2"],
        &["192.0.2.1"],
        "192.0.2.2",
        "2001:db8::1",
    ),
    // All IPv4 is down while IPv6 is up: A still gets an address (promise 1).
    (
        &["192.0.2.1", "2001:db8::1"],
        &["2001:db8::2"],
        &["192.0.2.1"],
        "192.0.2.1",
        "2001:db8::1",
    ),
    // No address of the family at all.
    (&["192.0.2.1"], &["192.0.2.2"], &[], "192.0.2.1", "other"),
    (
        &["2001:db8::1"],
        &["2001:db8::2"],
        &[],
        "other",
        "2001:db8::1",
    ),
    (
        &["2001:db8::1"],
        &["2001:db8::2"],
        &["2001:db8::1", "2001:db8::2"],
        "other",
        "2001:db8::1",
    ),
    (&[], &[], &[], "nothing", "nothing"),
];

#[test]
fn nodata_for_aaaa_only_where_a_names_the_cluster() {
    let clusters = &line()[..2];
    for (a, b, are_down, for_a, for_aaaa) in FAMILIES {
        let mut world = World::new(&proximity(), clusters, &[entry(0, 1, a), entry(1, 1, b)]);
        for address in *are_down {
            world.set(address, down);
        }
        for (family, expected) in [(V4, for_a), (V6, for_aaaa)] {
            let got = world.ask(&near_a(), family, |ask, decision| match decision.chosen {
                Chosen::OtherFamily => "other".to_owned(),
                Chosen::Nothing => "nothing".to_owned(),
                _ => world.endpoints(&decision, ask)[0].to_string(),
            });
            assert_eq!(&got, expected, "{a:?} {b:?} {are_down:?} {family:?}");
        }
    }
}

#[test]
fn negatives_equal_for_all_have_scope_0() {
    let scope = |spec: &PolicySpec, a: &[&str], b: &[&str], family| {
        let world = World::new(spec, &line()[..2], &[entry(0, 1, a), entry(1, 1, b)]);
        world.ask(&near_a(), family, |_, decision| decision.scope.0)
    };
    let spec = proximity();
    assert_eq!(
        scope(&spec, &["192.0.2.1"], &["192.0.2.2"], V6),
        0,
        "IPv4 only, everyone"
    );
    assert_eq!(scope(&spec, &["192.0.2.1"], &["192.0.2.2"], V4), 16);
    assert_eq!(
        scope(&spec, &["192.0.2.1"], &["2001:db8::2"], V6),
        16,
        "others do get one"
    );
    assert_eq!(scope(&spec, &[], &[], V4), 0);
    let spec = fenced(&[&[rule(&["*"], &["*"])]]);
    assert_eq!(
        scope(&spec, &["192.0.2.1"], &["192.0.2.2"], V6),
        16,
        "others are refused"
    );
    for steer_by in [Steer::Weighted, Steer::RoundRobin, Steer::All] {
        assert_eq!(
            scope(&steer(steer_by), &["192.0.2.1"], &["192.0.2.2"], V4),
            0
        );
    }
    let one = World::plain(&proximity(), &line()[..1]);
    assert_eq!(one.ask(&near_a(), V4, |_, decision| decision.scope.0), 0);
    assert!(!one.policy.reads_client());
}
