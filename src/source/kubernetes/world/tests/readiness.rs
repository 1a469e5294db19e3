//! Readiness: what stands behind an object, and what is said of it.

use super::*;
use crate::source::kubernetes::AddressType;

/// What is counted of a shard, but for the sum.
fn without_total(shard: &Shard) -> Option<Backing> {
    shard.backing.map(|backing| Backing {
        total: 0,
        ..backing
    })
}

fn backing(ready: u32, serving: u32, terminating: u32) -> Backing {
    Backing {
        total: 0,
        ready,
        serving,
        terminating,
    }
}

#[test]
fn enough_endpoints_make_a_service_ready() {
    // Annotation; ready, serving, terminating and all of one EndpointSlice; why not.
    for (wanted, (ready, serving, terminating, all), expected) in [
        (None, (1, 1, 0, 3), ""),
        (
            None,
            (0, 0, 0, 3),
            "0 of 3 endpoints are ready, 1 at least must be",
        ),
        (
            None,
            (0, 3, 3, 3),
            "0 of 0 endpoints are ready, 1 at least must be",
        ),
        (Some("0"), (0, 0, 0, 0), ""),
        (Some("3"), (3, 3, 0, 3), ""),
        (
            Some("3"),
            (2, 2, 0, 5),
            "2 of 5 endpoints are ready, 3 at least must be",
        ),
        (Some("50%"), (2, 2, 0, 4), ""),
        (
            Some("50%"),
            (1, 1, 0, 4),
            "1 of 4 endpoints is ready, 2 at least must be",
        ),
        (
            Some("50%"),
            (2, 2, 0, 5),
            "2 of 5 endpoints are ready, 3 at least must be",
        ),
        // A rollout: four old ones end while two new ones are ready.
        (Some("100%"), (2, 6, 4, 6), ""),
        (
            Some("1%"),
            (0, 0, 0, 0),
            "0 of 0 endpoints are ready, 1 at least must be",
        ),
    ] {
        let mut play = Play::listed();
        let more: Vec<_> = wanted
            .map(|wanted| ("min-ready-endpoints", wanted))
            .into_iter()
            .collect();
        play.put("web", service(enabled(&more)));
        let counted = SliceRecord {
            backing: backing(ready, serving, terminating),
            ..slice("web", 0, all)
        };
        play.put("web-1", counted);
        let shard = play.service("web");
        assert_eq!(unready(&shard), expected, "{wanted:?} {ready} of {all}");
        // Of as many as the reason says.
        let total = shard.backing.map_or(0, |backing| backing.total);
        if !expected.is_empty() {
            let of_all = format!("{ready} of {total} endpoint");
            assert!(expected.starts_with(&of_all), "{expected}: {total}");
        }
        assert_eq!(
            without_total(&shard),
            Some(backing(ready, serving, terminating))
        );
    }
}

#[test]
fn endpoint_slices_add_up() {
    let mut play = Play::listed();
    play.put("web", service(enabled(&[("min-ready-endpoints", "4")])));
    assert_eq!(without_total(&play.service("web")), Some(backing(0, 0, 0)));
    play.put("web-1", slice("web", 2, 2));
    play.put("web-2", slice("web", 2, 2));
    play.put("b/web-3", slice("web", 9, 9));
    assert_eq!(unready(&play.service("web")), "");
    // A Service of two families has its endpoints in slices of both: none counts twice.
    let other = SliceRecord {
        addresses: AddressType::V6,
        ..slice("web", 3, 3)
    };
    play.put("web-6", other);
    assert_eq!(without_total(&play.service("web")), Some(backing(4, 4, 0)));
    play.gone(Watched::EndpointSlices, "web-6");
    // One moves to another Service, one goes.
    play.put("web-2", slice("other", 2, 2));
    assert_eq!(without_total(&play.service("web")), Some(backing(2, 2, 0)));
    play.gone(Watched::EndpointSlices, "web-1");
    assert_eq!(without_total(&play.service("web")), Some(backing(0, 0, 0)));
}

#[test]
fn unready_endpoints_count_where_they_are_published() {
    let mut play = Play::listed();
    let serving = SliceRecord {
        backing: backing(0, 2, 2),
        ..slice("web", 0, 2)
    };
    play.put("web-1", serving);
    play.put("web", service(enabled(&[])));
    play.put("in", ingress(enabled(&[]), &[], &[("web", true)]));
    assert_ne!(unready(&play.service("web")), "");
    assert_ne!(unready(&play.ingress("in")), "");
    let mut record = service(enabled(&[]));
    record.publishes_not_ready = true;
    play.put("web", record);
    assert_eq!(unready(&play.service("web")), "");
    assert_eq!(unready(&play.ingress("in")), "");
    play.gone(Watched::Services, "web");
    assert_ne!(unready(&play.ingress("in")), "");
}

#[test]
fn one_service_behind_an_ingress_is_enough() {
    for (backends, expected, sum) in [
        (&[][..], "", None),
        (&[("a", true)], "", Some(backing(2, 2, 0))),
        (
            &[("b", true)],
            "1 of 3 endpoints is ready, 2 at least must be",
            Some(backing(1, 1, 0)),
        ),
        (&[("a", true), ("b", true)], "", Some(backing(3, 3, 0))),
        (&[("b", true), ("a", true)], "", Some(backing(3, 3, 0))),
        (&[("a", true), ("a", true)], "", Some(backing(2, 2, 0))),
        (
            &[("a", false), ("b", true)],
            "1 of 3 endpoints is ready, 2 at least must be",
            Some(backing(1, 1, 0)),
        ),
        (
            &[("b", true), ("c", true)],
            "too few endpoints are ready in each of the 2 Services behind it",
            Some(backing(1, 1, 0)),
        ),
        (
            &[("a", false), ("b", false)],
            "no traffic goes to any Service behind it: all weights are 0",
            None,
        ),
    ] {
        let mut play = Play::listed();
        play.put("a-1", slice("a", 2, 2));
        play.put("b-1", slice("b", 1, 3));
        let common = enabled(&[("min-ready-endpoints", "2")]);
        play.put("web", ingress(common.clone(), &[], backends));
        let shard = play.ingress("web");
        assert_eq!(unready(&shard), expected, "{backends:?}");
        assert_eq!(without_total(&shard), sum);
        // Routes alike.
        play.put("gw", gateway(said(&[]), vec![listener("a", "")]));
        let mut record = route(common, &[], vec![parent("gw")]);
        record.backends = backs(backends);
        play.put("web", record);
        let shard = play.route("web");
        assert_eq!((unready(&shard), without_total(&shard)), (expected, sum));
    }
}

#[test]
fn gateways_are_ready_when_they_are_programmed() {
    let mut play = Play::listed();
    let mut record = gateway(enabled(&[]), vec![listener("a", "")]);
    play.put("gw", record.clone());
    play.put(
        "web",
        route(said(&[]), &["a.example.com"], vec![parent("gw")]),
    );
    let shard = play.shard(ObjectKind::Gateway, "gw").unwrap();
    assert_eq!((unready(&shard), without_total(&shard)), ("", None));
    record.unready = Some("no address is free".into());
    play.put("gw", record);
    let shard = play.shard(ObjectKind::Gateway, "gw").unwrap();
    assert_eq!(unready(&shard), "no address is free");
    assert_eq!(
        unready(&play.route("web")),
        "Gateway shop/gw: no address is free"
    );
}

#[test]
fn nothing_counts_where_nobody_is_to_judge() {
    let mut play = Play::listed();
    let common = enabled(&[("health-check", "none")]);
    play.put("web", service(common.clone()));
    assert_eq!(unready(&play.service("web")), "");
    let mut record = gateway(common, vec![listener("a", "")]);
    record.unready = Some("no address is free".into());
    play.put("gw", record);
    let shard = play.shard(ObjectKind::Gateway, "gw").unwrap();
    assert_eq!(unready(&shard), "");
    // `endpoints` is readiness alone.
    play.put("web", service(enabled(&[("health-check", "endpoints")])));
    assert_ne!(unready(&play.service("web")), "");
    // The configuration may say it for all.
    let mut rules = Rules::default();
    rules.checks.kind = Some(annotations::CheckKind::None);
    play.world.set_rules(Arc::new(rules));
    play.put("web", service(enabled(&[])));
    assert_eq!(unready(&play.service("web")), "");
}

#[test]
fn endpoints_that_nobody_has_listed_are_not_missing() {
    let mut play = Play::new();
    play.list(
        Watched::Services,
        vec![("web", service(enabled(&[])).into())],
    );
    let shard = play.service("web");
    assert_eq!((unready(&shard), without_total(&shard)), ("", None));
    // A list that is not complete says nothing either.
    play.event(Watched::EndpointSlices, Event::Listing);
    play.put("web-1", slice("web", 0, 3));
    assert_eq!(unready(&play.service("web")), "");
    play.event(Watched::EndpointSlices, Event::Listed);
    let shard = play.service("web");
    assert_ne!(unready(&shard), "");
    assert_eq!(without_total(&shard), Some(backing(0, 0, 0)));
    // Not served: nothing is said.
    play.event(Watched::EndpointSlices, Event::Unserved);
    let shard = play.service("web");
    assert_eq!((unready(&shard), without_total(&shard)), ("", None));
    // Served again, and counted from nothing.
    play.list(Watched::EndpointSlices, vec![]);
    assert_eq!(without_total(&play.service("web")), Some(backing(0, 0, 0)));
}

#[test]
fn what_was_counted_last_stands_over_a_restart() {
    for (ready, expected) in [
        (0, "no endpoint was ready when they were read last"),
        (2, ""),
    ] {
        let mut play = Play::listed();
        play.put("web", service(enabled(&[])));
        play.put("web-1", slice("web", ready, 2));
        let held = play.service("web");
        let mut play = Play::with(Rules::default(), vec![held]);
        // An address that comes meanwhile is not mistaken for endpoints.
        let mut record = service(enabled(&[]));
        record.entries = entries(&["192.0.2.77"]);
        play.put("web", record);
        let shard = play.service("web");
        assert_eq!(unready(&shard), expected);
        assert_eq!(without_total(&shard), Some(backing(ready, ready, 0)));
        play.put("web", service(enabled(&[("min-ready-endpoints", "0")])));
        assert_eq!(unready(&play.service("web")), "");
    }
}
