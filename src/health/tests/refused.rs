//! Targets that may not be probed, and on whose word the others are.

use std::sync::Arc;
use std::time::Duration;

use super::{BAD, OK, at, fleet_of, spec, target};
use crate::health::{Fleet, Observation, Refusal};
use crate::model::{EndpointIndex, MonitorSpec, Origin, Target, Verdict};

#[test]
fn a_refused_target_is_unknown_whatever_is_remembered_of_it() {
    let mut fleet = fleet_of(&[target(1), target(2)]);
    fleet.restore(&[(target(1), Verdict::Down)]);
    let orders = fleet.due(at(0), 2);
    let flip = fleet
        .refuse(orders[0].monitor, Refusal::Private, at(1))
        .unwrap();
    assert_eq!(
        (flip.before, flip.verdict, flip.in_doubt, flip.observed),
        (Verdict::Down, Verdict::Unknown, false, false)
    );
    assert_eq!(
        (flip.refused, &flip.endpoints[..]),
        (Some(Refusal::Private), &[EndpointIndex(0)][..])
    );
    assert_eq!(
        fleet.refuse(orders[0].monitor, Refusal::Private, at(1)),
        None,
        "one order, one answer"
    );
    assert_eq!(fleet.restore(&[(target(1), Verdict::Down)]), []);
    // A newcomer is told of it: what somebody remembers of it must not stand.
    let newcomer = fleet.change(vec![(EndpointIndex(5), target(1))], &[], at(2));
    assert_eq!(newcomer[0].refused, Some(Refusal::Private));
    assert_eq!(newcomer[0].endpoints, [EndpointIndex(5)]);
    let report = fleet.report(orders[0].monitor).unwrap();
    assert_eq!(
        (report.refused, report.verdict, report.never_succeeded),
        (Some(Refusal::Private), Verdict::Unknown, false)
    );
    // It is asked for again an interval later, and refused again: nothing changes, but where the reason does.
    assert_eq!(fleet.due(at(3), 2), []);
    let again = fleet.due(at(2000), 2).remove(0);
    assert_eq!(again.monitor, orders[0].monitor);
    assert_eq!(
        fleet.refuse(again.monitor, Refusal::Private, at(2000)),
        None
    );
    let again = fleet.due(at(4000), 2).remove(0);
    let flip = fleet.refuse(again.monitor, Refusal::Own, at(4000)).unwrap();
    assert_eq!(flip.refused, Some(Refusal::Own));
    // Let through, it is judged like any other.
    let again = fleet.due(at(6000), 2).remove(0);
    let observation = Observation {
        monitor: again.monitor,
        result: OK,
    };
    let flip = fleet.observe(observation, at(6000)).unwrap();
    assert_eq!((flip.refused, flip.verdict), (None, Verdict::Up));
}

#[test]
fn targets_are_hurried_by_what_they_were_refused_for() {
    let mut fleet = fleet_of(&[target(1), target(2), target(3)]);
    let orders = fleet.due(at(0), 2);
    fleet.refuse(orders[0].monitor, Refusal::Private, at(0));
    fleet.observe(
        Observation {
            monitor: orders[1].monitor,
            result: OK,
        },
        at(0),
    );
    let third = fleet.due(at(0), 1).remove(0);
    let hurried = |fleet: &mut Fleet, wants: fn(Option<Refusal>) -> bool| {
        fleet.hurry(at(1), |_, refused| wants(refused));
        let orders = fleet.due(at(1), 9).into_iter();
        orders.map(|order| order.monitor).collect::<Vec<_>>()
    };
    assert_eq!(hurried(&mut fleet, |_| false), []);
    let refused = hurried(&mut fleet, |refused| refused == Some(Refusal::Private));
    assert_eq!(refused, [orders[0].monitor]);
    // What is out stays out.
    let others = hurried(&mut fleet, |_| true);
    assert_eq!(others, [orders[1].monitor]);
    assert_ne!(third.monitor, orders[1].monitor);
}

#[test]
fn a_tenants_verdict_is_no_operators() {
    let of = |origin: Origin, fall: u8| {
        let plain = spec(Duration::from_secs(2), fall);
        Target {
            address: target(1).address,
            spec: Arc::new(MonitorSpec {
                origin,
                ..MonitorSpec::clone(&plain)
            }),
        }
    };
    let (tenant, operator) = (of(Origin::Tenant, 2), of(Origin::Operator, 2));
    let mut fleet = fleet_of(&[tenant.clone(), operator.clone()]);
    assert_eq!(fleet.table().len(), 2);
    for order in fleet.due(at(0), 2) {
        let result = if order.target == tenant { BAD } else { OK };
        let monitor = order.monitor;
        fleet.observe(Observation { monitor, result }, at(0));
    }
    for order in fleet.due(at(100), 2) {
        let result = if order.target == tenant { BAD } else { OK };
        let monitor = order.monitor;
        fleet.observe(Observation { monitor, result }, at(100));
    }
    let verdicts: Vec<Verdict> = fleet.table().iter().map(|report| report.verdict).collect();
    assert_eq!(verdicts, [Verdict::Down, Verdict::Up]);
    // New checks take over what was thought of the address on the same word, and nothing of what was thought on the other.
    let watch = vec![
        (EndpointIndex(2), of(Origin::Tenant, 3)),
        (EndpointIndex(3), of(Origin::Operator, 3)),
    ];
    let flips = fleet.change(watch, &[EndpointIndex(0), EndpointIndex(1)], at(200));
    let begun: Vec<_> = flips
        .iter()
        .map(|flip| (flip.endpoints[0], flip.verdict))
        .collect();
    assert_eq!(
        begun,
        [
            (EndpointIndex(2), Verdict::Down),
            (EndpointIndex(3), Verdict::Up)
        ]
    );
}
