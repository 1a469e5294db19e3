//! The fleet by table, by property and by size.

mod refused;
mod story;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::{Fleet, Flip, MonitorId, Observation, ProbeError};
use crate::model::{Chance, Check, EndpointIndex, Moment, MonitorSpec, Origin, Target, Verdict};

const OK: Result<Duration, ProbeError> = Ok(Duration::from_millis(1));
const BAD: Result<Duration, ProbeError> = Err(ProbeError::Refused);

fn spec(interval: Duration, fall: u8) -> Arc<MonitorSpec> {
    Arc::new(MonitorSpec {
        check: Check::connect(80),
        interval,
        timeout: interval / 2,
        rise: 2,
        fall,
        origin: Origin::Operator,
    })
}

/// Gives one of many targets: the low half of the number is the address, the high half tells checks apart.
fn target(number: u32) -> Target {
    let interval = Duration::from_secs(2 + u64::from(number >> 16));
    Target {
        address: SocketAddr::new(
            IpAddr::V4(Ipv4Addr::from(0x7f00_0000 | (number & 0xffff))),
            80,
        ),
        spec: spec(interval, 2),
    }
}

fn at(millis: u64) -> Moment {
    Moment(Duration::from_millis(millis))
}

/// Adds endpoints 0.. with these targets.
fn fleet_of(targets: &[Target]) -> Fleet {
    let mut fleet = Fleet::new(1);
    let watch = targets
        .iter()
        .zip(0..)
        .map(|(t, i)| (EndpointIndex(i), t.clone()))
        .collect();
    assert_eq!(fleet.change(watch, &[], at(0)), []);
    fleet
}

/// Sends out what is due and answers it at once.
fn round(fleet: &mut Fleet, now: Moment, result: Result<Duration, ProbeError>) -> Vec<Flip> {
    let orders = fleet.due(now, usize::MAX);
    let observe = |order: super::ProbeOrder| {
        let observation = Observation {
            monitor: order.monitor,
            result,
        };
        fleet.observe(observation, now)
    };
    orders.into_iter().filter_map(observe).collect()
}

#[test]
fn silence_and_refusal_are_noticed_in_time() {
    // Interval, how long a failing probe takes, and the bound from the last good probe's start.
    let table = [
        (2000, 0, 2100),
        (2000, 1000, 4000),
        (500, 0, 600),
        (500, 400, 1300),
        (100, 100, 300),
    ];
    for (interval, takes, bound) in table {
        for seed in 0..50 {
            let mut fleet = Fleet::new(seed);
            let target = Target {
                address: SocketAddr::from(([127, 0, 0, 1], 80)),
                spec: spec(Duration::from_millis(interval), 2),
            };
            fleet.change(vec![(EndpointIndex(0), target)], &[], at(0));
            let mut last_good = at(0);
            for good in 0..40 {
                last_good = fleet.next_due().unwrap();
                assert_eq!(
                    round(&mut fleet, last_good, OK).len(),
                    usize::from(good == 0)
                );
            }
            let flip = loop {
                let now = fleet.next_due().unwrap();
                let order = fleet.due(now, 1).remove(0);
                let end = now.after(Duration::from_millis(takes));
                let observation = Observation {
                    monitor: order.monitor,
                    result: BAD,
                };
                match fleet.observe(observation, end) {
                    Some(flip) if flip.verdict == Verdict::Down => break end,
                    Some(doubt) => assert!(doubt.in_doubt && doubt.before == Verdict::Up),
                    None => {}
                }
            };
            let noticed = flip.since(last_good);
            assert!(
                noticed <= Duration::from_millis(bound),
                "{interval} {takes}: {noticed:?}"
            );
        }
    }
}

/// Probes one target for `seconds`, every probe judged by `answers`, and counts how often Down comes or goes.
fn changes(seed: u64, seconds: u64, mut answers: impl FnMut(Moment) -> bool) -> usize {
    let mut fleet = Fleet::new(seed);
    let target = Target {
        address: SocketAddr::from(([127, 0, 0, 1], 80)),
        spec: spec(Duration::from_millis(500), 2),
    };
    fleet.change(vec![(EndpointIndex(0), target)], &[], at(0));
    let mut changes = 0;
    while let Some(now) = fleet.next_due().filter(|now| now.0.as_secs() < seconds) {
        let result = if answers(now) { OK } else { BAD };
        let flips = round(&mut fleet, now, result);
        let down = |verdict| verdict == Verdict::Down;
        changes += flips
            .iter()
            .filter(|flip| down(flip.verdict) != down(flip.before))
            .count();
    }
    changes
}

#[test]
fn flapping_changes_answers_at_most_three_times_in_twenty_seconds() {
    let mut most = 0;
    for seed in 0..200 {
        // FAULTS F4: a period of 0.4 s, and half of all probes lost.
        let flapping = changes(seed, 20, |now| now.0.as_millis() / 200 % 2 == 0);
        let mut dice = Chance::new(seed + 1000);
        let lossy = changes(seed, 20, |_| dice.part(Duration::from_nanos(2)).is_zero());
        most = most.max(flapping).max(lossy);
        assert!(flapping <= 3 && lossy <= 3, "{flapping}, {lossy}");
    }
    assert_eq!(most, 3, "the table must be able to fail");
}

#[test]
fn probes_are_spread_and_never_later_than_their_interval() {
    let targets: Vec<Target> = (0..1000).map(target).collect();
    let mut fleet = fleet_of(&targets);
    assert_eq!(fleet.due(at(0), 300).len(), 300, "no more than asked for");
    let mut fleet = fleet_of(&targets);
    assert_eq!(
        round(&mut fleet, at(0), OK).len(),
        1000,
        "the first round comes at once"
    );
    let mut by_tenth = [0; 10];
    let mut last: HashMap<MonitorId, Moment> = HashMap::new();
    for millis in 0..20_000 {
        let now = at(millis);
        for order in fleet.due(now, usize::MAX) {
            if millis < 2000 {
                by_tenth[usize::try_from(millis / 200).unwrap()] += 1;
            }
            if let Some(last) = last.insert(order.monitor, now) {
                let apart = now.since(last).as_millis();
                assert!((1739..=1941).contains(&apart), "{apart}");
            }
            fleet.observe(
                Observation {
                    monitor: order.monitor,
                    result: OK,
                },
                now,
            );
        }
    }
    assert_eq!(last.len(), 1000);
    assert!(
        by_tenth.iter().all(|count| (50..200).contains(count)),
        "{by_tenth:?}"
    );
}

#[test]
fn a_pause_of_five_minutes_makes_no_storm() {
    let targets: Vec<Target> = (0..1000).map(target).collect();
    let mut fleet = fleet_of(&targets);
    for millis in 0..10_000 {
        round(&mut fleet, at(millis), OK);
    }
    let resumed = 10_000 + 300_000;
    let mut by_tenth = [0; 10];
    let mut probes = 0;
    for millis in resumed..resumed + 2000 {
        let orders = fleet.due(at(millis), 512);
        assert!(orders.len() <= 512);
        for order in &orders {
            let observation = Observation {
                monitor: order.monitor,
                result: OK,
            };
            assert_eq!(fleet.observe(observation, at(millis)), None);
        }
        if millis > resumed + 1 {
            by_tenth[usize::try_from((millis - resumed) / 200).unwrap()] += orders.len();
        }
        probes += orders.len();
    }
    // Once at the end of the pause, and about once more in the interval after it.
    assert!((1900..2200).contains(&probes), "{probes}");
    assert!(
        by_tenth.iter().all(|count| (50..200).contains(count)),
        "spread anew: {by_tenth:?}"
    );
}

#[test]
fn equal_targets_share_a_monitor_and_newcomers_its_verdict() {
    let mut fleet = fleet_of(&[target(1), target(1), target(2)]);
    assert_eq!(fleet.table().len(), 2);
    let flips = round(&mut fleet, at(0), OK);
    assert_eq!(flips[0].endpoints, [EndpointIndex(0), EndpointIndex(1)]);
    let newcomer = fleet.change(vec![(EndpointIndex(9), target(1))], &[], at(1));
    assert_eq!(newcomer.len(), 1);
    assert_eq!(
        (
            newcomer[0].verdict,
            newcomer[0].before,
            &newcomer[0].endpoints[..]
        ),
        (Verdict::Up, Verdict::Unknown, &[EndpointIndex(9)][..])
    );
    // The same again changes nothing.
    assert_eq!(
        fleet.change(vec![(EndpointIndex(9), target(1))], &[], at(2)),
        []
    );
    // It moves to a target that nobody has judged.
    let moved = fleet.change(vec![(EndpointIndex(9), target(3))], &[], at(3));
    assert_eq!(
        (moved[0].verdict, moved[0].before),
        (Verdict::Unknown, Verdict::Up)
    );
    // Named twice, the last counts.
    let twice = vec![(EndpointIndex(9), target(4)), (EndpointIndex(9), target(1))];
    assert_eq!(fleet.change(twice, &[], at(4))[0].verdict, Verdict::Up);
    let endpoints: usize = fleet.table().iter().map(|report| report.endpoints).sum();
    assert_eq!((endpoints, fleet.table().len()), (4, 2));
}

#[test]
fn a_monitor_may_go_while_its_probe_is_out() {
    let mut fleet = fleet_of(&[target(1)]);
    let order = fleet.due(at(0), 1).remove(0);
    fleet.change(vec![], &[EndpointIndex(0)], at(1));
    assert_eq!(
        (fleet.table().len(), fleet.report(order.monitor)),
        (0, None)
    );
    // The same target again, before the probe is back: a monitor of its own under another number.
    fleet.change(vec![(EndpointIndex(0), target(1))], &[], at(2));
    let second = fleet.due(at(2), 1).remove(0);
    assert_ne!(second.monitor, order.monitor);
    let late = Observation {
        monitor: order.monitor,
        result: BAD,
    };
    assert_eq!(fleet.observe(late, at(3)), None);
    assert_eq!(
        fleet.table().iter().next().unwrap().last,
        None,
        "a late result is nobody's"
    );
    assert_eq!(
        fleet.observe(late, at(3)),
        None,
        "nor is one that nobody ordered"
    );
    let observed = Observation {
        monitor: second.monitor,
        result: OK,
    };
    assert_eq!(fleet.observe(observed, at(4)).unwrap().verdict, Verdict::Up);
    assert_eq!(
        fleet.observe(observed, at(4)),
        None,
        "one order, one result"
    );
    // Now the first number is free for another.
    fleet.change(vec![(EndpointIndex(1), target(2))], &[], at(5));
    assert_eq!(fleet.due(at(5), 1)[0].monitor, order.monitor);
}

#[test]
fn an_edited_check_begins_with_the_verdict_before() {
    let edited = |number: u32| target(number | (1 << 16));
    let mut fleet = fleet_of(&[target(1), target(2), target(3)]);
    for millis in [0, 100] {
        round(&mut fleet, at(millis), BAD);
    }
    assert!(
        fleet
            .table()
            .iter()
            .all(|report| report.verdict == Verdict::Down)
    );
    // 0 gets a new index for its new check, 1 keeps its own, 2 goes and its address comes back in a later change.
    let watch = vec![(EndpointIndex(7), edited(1)), (EndpointIndex(1), edited(2))];
    let flips = fleet.change(watch, &[EndpointIndex(0), EndpointIndex(2)], at(200));
    assert_eq!(flips.len(), 1, "endpoint 1 was Down and is Down");
    assert_eq!(
        (flips[0].verdict, &flips[0].endpoints[..]),
        (Verdict::Down, &[EndpointIndex(7)][..])
    );
    assert_eq!(
        fleet.change(vec![(EndpointIndex(8), edited(3))], &[], at(300)),
        []
    );
    let verdicts: Vec<Verdict> = fleet.table().iter().map(|report| report.verdict).collect();
    assert_eq!(verdicts.iter().filter(|v| **v == Verdict::Down).count(), 2);
    assert_eq!(
        verdicts.iter().filter(|v| **v == Verdict::Unknown).count(),
        1
    );
    // Two checks of one address that disagree leave nothing.
    let mut fleet = fleet_of(&[target(1), edited(1)]);
    for (order, result) in fleet.due(at(0), 2).into_iter().zip([OK, BAD]) {
        fleet.observe(
            Observation {
                monitor: order.monitor,
                result,
            },
            at(0),
        );
    }
    let third = vec![(EndpointIndex(5), target(1 | (2 << 16)))];
    assert_eq!(
        fleet.change(third, &[EndpointIndex(0), EndpointIndex(1)], at(1)),
        []
    );
}

#[test]
fn restored_verdicts_stand_until_own_eyes_say_otherwise() {
    let mut fleet = fleet_of(&[target(1), target(2), target(3)]);
    let remembered = [
        (target(1), Verdict::Down),
        (target(2), Verdict::Up),
        (target(3), Verdict::Unknown),
        (target(4), Verdict::Down),
    ];
    let flips = fleet.restore(&remembered);
    let verdicts: Vec<_> = flips
        .iter()
        .map(|flip| (flip.before, flip.verdict))
        .collect();
    assert_eq!(
        verdicts,
        [
            (Verdict::Unknown, Verdict::Down),
            (Verdict::Unknown, Verdict::Up)
        ]
    );
    assert_eq!(fleet.restore(&remembered), []);
    let first = round(&mut fleet, at(0), OK);
    assert!(
        first
            .iter()
            .any(|flip| flip.verdict == Verdict::Down && flip.in_doubt)
    );
    let second = round(&mut fleet, at(2000), OK);
    assert!(
        second
            .iter()
            .any(|flip| flip.before == Verdict::Down && flip.verdict == Verdict::Up)
    );
    assert!(
        fleet
            .table()
            .iter()
            .all(|report| report.verdict == Verdict::Up)
    );
}

#[test]
fn a_hundred_thousand_monitors_are_no_burden() {
    let targets: Vec<Target> = (0..100_000)
        .map(|n| target((n % 50_000) | ((n / 50_000) << 16)))
        .collect();
    let mut fleet = fleet_of(&targets);
    assert_eq!(fleet.table().len(), 100_000);
    let mut out = 0;
    for millis in 0..30 {
        let now = at(millis * 100);
        out += fleet.due(now, 10_000).into_iter().fold(0, |sum, order| {
            fleet.observe(
                Observation {
                    monitor: order.monitor,
                    result: OK,
                },
                now,
            );
            sum + 1
        });
    }
    assert!((170_000..230_000).contains(&out), "{out}");
    let all: Vec<EndpointIndex> = (0..100_000).map(EndpointIndex).collect();
    fleet.change(vec![], &all, at(5000));
    assert_eq!((fleet.table().len(), fleet.next_due()), (0, None));
    // One target shared by all of them: added, flipped and taken away.
    fleet.change(all.iter().map(|e| (*e, target(1))).collect(), &[], at(6000));
    assert_eq!(round(&mut fleet, at(6000), OK)[0].endpoints.len(), 100_000);
    fleet.change(vec![], &all, at(7000));
    assert_eq!(fleet.table().len(), 0);
}
