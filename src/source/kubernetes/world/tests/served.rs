//! Who is served, and with what: annotations, those of Gateways too, addresses.

use super::*;
use crate::model::{Steer, Ttl, Weight};

/// Tells whether an object is served that is alone in its cluster.
fn is_served(rules: &Rules, record: impl Into<Record>) -> bool {
    let mut play = Play::listed_with(rules.clone());
    play.put("web", record);
    play.take();
    !play.shards.is_empty()
}

#[test]
fn objects_ask_to_be_served() {
    for (annotations, by_choice, unless_not) in [
        (&[][..], false, true),
        (&[("enabled", "true")], true, true),
        (&[("enabled", "false")], false, false),
        (&[("hostname", "a.example.com")], true, true),
        (
            &[("hostname", "a.example.com"), ("enabled", "false")],
            false,
            false,
        ),
        (&[("weight", "3")], false, true),
        (&[("enabled", "true"), ("class", "blue")], false, false),
        (&[("enabled", "true"), ("class", "meridian")], true, true),
        // A name that cannot be read asks all the same.
        (&[("hostname", "a b")], true, true),
    ] {
        for (opt_in, expected) in [(true, by_choice), (false, unless_not)] {
            let rules = Rules {
                opt_in,
                ..Rules::default()
            };
            let common = said(annotations);
            let is_same = |record: Record| is_served(&rules, record) == expected;
            assert!(is_same(service(common.clone()).into()), "{annotations:?}");
            assert!(is_same(ingress(common, &[], &[]).into()), "{annotations:?}");
        }
    }
}

#[test]
fn a_class_is_for_its_own_instances() {
    let rules = Rules {
        class: "blue".into(),
        ..Rules::default()
    };
    assert!(!is_served(&rules, service(enabled(&[]))));
    assert!(is_served(&rules, service(enabled(&[("class", "blue")]))));
}

#[test]
fn services_need_a_load_balancer_or_a_target() {
    let rules = Rules::default();
    let internal = |common| ServiceRecord {
        is_load_balancer: false,
        ..service(common)
    };
    assert!(!is_served(&rules, internal(enabled(&[]))));
    let target = enabled(&[("target", "198.51.100.7,lb.example.net")]);
    assert!(is_served(&rules, internal(target.clone())));
    let mut play = Play::listed();
    play.put("web", internal(target));
    assert_eq!(
        enters(&play.service("web")),
        ["198.51.100.7", "lb.example.net"]
    );
}

#[test]
fn a_gateway_that_carries_routes_is_not_served_itself() {
    for opt_in in [true, false] {
        let rules = Rules {
            opt_in,
            ..Rules::default()
        };
        let listeners = || vec![listener("a", "*.example.com")];
        assert!(!is_served(&rules, gateway(said(&[]), listeners())));
        assert!(is_served(&rules, gateway(enabled(&[]), listeners())));
        let named = said(&[("hostname", "gw.example.com")]);
        assert!(is_served(&rules, gateway(named, listeners())));
    }
}

#[test]
fn routes_are_served_by_the_word_of_their_gateway() {
    for (of_gateway, of_route, expected) in [
        (&[][..], &[][..], false),
        (&[("enabled", "true")], &[], true),
        (&[("enabled", "true")], &[("enabled", "false")], false),
        (&[("enabled", "false")], &[("enabled", "true")], true),
        (
            &[("enabled", "false")],
            &[("hostname", "a.example.com")],
            true,
        ),
        // The names of a Gateway are its own.
        (&[("hostname", "gw.example.com")], &[], false),
        (&[("enabled", "true"), ("class", "blue")], &[], false),
        (&[("class", "blue")], &[("enabled", "true")], false),
        (
            &[("class", "blue")],
            &[("enabled", "true"), ("class", "meridian")],
            true,
        ),
    ] {
        let mut play = Play::listed();
        play.put("gw", gateway(said(of_gateway), vec![listener("a", "")]));
        play.put("web", route(said(of_route), &[], vec![parent("gw")]));
        let shard = play.shard(ObjectKind::HttpRoute, "web");
        assert_eq!(shard.is_some(), expected, "{of_gateway:?} {of_route:?}");
    }
}

#[test]
fn routes_take_keys_from_gateways_where_they_say_nothing() {
    let mut play = Play::listed();
    let common = enabled(&[
        ("ttl", "60"),
        ("weight", "7"),
        ("steer", "failover"),
        ("tiers", "eu1,*"),
        ("answers", "2"),
        ("health-check-path", "/gw"),
        ("min-ready-endpoints", "4"),
        ("clients", "198.51.100.0/24"),
        ("fence", "*->*"),
    ]);
    play.put("gw", gateway(common, vec![listener("a", "")]));
    let other = said(&[("ttl", "90"), ("panic", "0.5")]);
    play.put("other", gateway(other, vec![listener("a", "")]));
    let own = said(&[("ttl", "20"), ("weight", "2")]);
    let mut record = route(own, &["a.example.com"], vec![parent("gw"), parent("other")]);
    record.backends = backs(&[("web", true)]);
    play.put("web", record);
    play.put("web-1", slice("web", 3, 3));
    let shard = play.route("web");
    assert_eq!(shard.weight, Weight(2));
    assert_eq!(shard.clients.len(), 1);
    assert_eq!(shard.keys.ttl, Ttl::new(20));
    assert_eq!(shard.keys.steer, Some(Steer::Proximity));
    assert_eq!(shard.keys.tiers.as_ref().unwrap().len(), 2);
    assert_eq!(shard.keys.answers, Some(2));
    assert_eq!(shard.keys.panic, Some(0.5));
    assert!(shard.keys.fence.is_some());
    assert_eq!(
        unready(&shard),
        "3 of 3 endpoints are ready, 4 at least must be"
    );
    assert_eq!(shard.refused, [].into());
    // The names of the Gateway stay its own, and so do its keys.
    let of_gateway = play.shard(ObjectKind::Gateway, "gw").unwrap();
    assert_eq!(of_gateway.keys.ttl, Ttl::new(60));
    // A key that the Gateway changes reaches its Routes.
    play.put("gw", gateway(enabled(&[]), vec![listener("a", "")]));
    let shard = play.route("web");
    assert_eq!(shard.keys.answers, None);
    assert_eq!(unready(&shard), "");
}

#[test]
fn a_slip_in_the_key_that_decides_takes_nothing_away() {
    let mut play = Play::listed();
    play.put("web", service(said(&[("enabled", "yes")])));
    play.take();
    assert!(play.shards.is_empty());
    play.put("web", service(enabled(&[])));
    play.take();
    play.put("web", service(said(&[("enabled", "yes")])));
    let shard = play.service("web");
    assert_eq!(refused(&shard)[0].0, "enabled");
    // A name that cannot be read any more stays.
    play.put("web", service(said(&[("hostname", "a.example.com")])));
    assert_eq!(hosts(&play.service("web")), ["a.example.com"]);
    play.put("web", service(said(&[("hostname", "a..b")])));
    let shard = play.service("web");
    assert_eq!(hosts(&shard), ["a.example.com"]);
    assert_eq!(refused(&shard)[0].0, "hostname");
}

#[test]
fn limits_raise_the_ttl_and_say_so() {
    let rules = Rules {
        min_ttl: Ttl::new(10).unwrap(),
        ..Rules::default()
    };
    let mut play = Play::listed_with(rules);
    play.put("web", service(enabled(&[("ttl", "5")])));
    let shard = play.service("web");
    assert_eq!(shard.keys.ttl, Ttl::new(10));
    assert_eq!(
        refused(&shard),
        [("ttl", "raised to 10s, the least allowed")]
    );
}

#[test]
fn failover_needs_tiers() {
    let mut play = Play::listed();
    play.put("web", service(enabled(&[("steer", "failover")])));
    let shard = play.service("web");
    assert_eq!(shard.keys.steer, None);
    assert_eq!(
        refused(&shard),
        [("steer", "`failover` needs `meridian-dns.io/tiers`")]
    );
}

#[test]
fn a_fence_that_cannot_hold_keeps_the_object_unserved() {
    let mut play = Play::listed();
    let common = said(&[("hostname", "a.example.com"), ("fence", "->")]);
    play.put("web", service(common));
    let shard = play.service("web");
    assert_eq!(
        shard.unserved.as_deref(),
        Some("its fence was refused: whom it keeps out is not known")
    );
    assert_eq!(hosts(&shard), ["a.example.com"], "its names stay claimed");
    // Two fences would have to hold together.
    for (of_gateway, of_route, expected) in [
        ("country:DE->*", None, None),
        ("country:DE->*", Some("country:DE->*"), None),
        (
            "country:DE->*",
            Some("country:FR->*"),
            Some("not supported yet: a fence beside another one of Gateway shop/gw"),
        ),
        (
            "->",
            Some("country:FR->*"),
            Some("the fence of Gateway shop/gw was refused: whom it keeps out is not known"),
        ),
    ] {
        let common = said(&[("fence", of_gateway)]);
        play.put("gw", gateway(common, vec![listener("a", "")]));
        let mut pairs = vec![("enabled", "true")];
        pairs.extend(of_route.map(|fence| ("fence", fence)));
        play.put("web", route(said(&pairs), &[], vec![parent("gw")]));
        let shard = play.route("web");
        let why = shard.unserved.as_deref();
        assert!(
            match expected {
                None => why.is_none(),
                Some(expected) => why.is_some_and(|why| why.starts_with(expected)),
            },
            "{of_gateway} {of_route:?}: {why:?}"
        );
        assert!(shard.keys.fence.is_some());
    }
}

#[test]
fn what_was_refused_at_the_door_is_told() {
    let mut play = Play::listed();
    let mut common = enabled(&[("weight", "-1"), ("tls", "x")]);
    common.refused = vec![refusal("spec.ports[0]")];
    play.put("web", service(common));
    let shard = play.service("web");
    let what: Vec<&str> = refused(&shard).iter().map(|(what, _)| *what).collect();
    assert_eq!(what, ["spec.ports[0]", "tls", "weight"]);
    assert_eq!(shard.weight, Weight(1));
}

#[test]
fn refusals_of_one_object_are_bounded() {
    let mut play = Play::listed();
    let mut common = enabled(&[]);
    common.refused = vec![refusal("spec.ports[0]"); 100];
    play.put("web", service(common));
    let shard = play.service("web");
    assert_eq!(shard.refused.len(), 64);
    assert_eq!(
        refused(&shard).last(),
        Some(&("others", "37 more were refused"))
    );
}

#[test]
fn addresses_of_the_machine_itself_are_refused() {
    let mut play = Play::listed();
    let all = [
        "127.0.0.1",
        "169.254.169.254",
        "::1",
        "fe80::1",
        "::ffff:127.0.0.1",
        "10.0.0.1",
        "192.0.2.1",
        "2001:db8::1",
        "fd00::1",
        "lb.example.net",
    ];
    let mut record = service(enabled(&[]));
    record.entries = entries(&all);
    play.put("web", record);
    let shard = play.service("web");
    assert_eq!(
        enters(&shard),
        [
            "10.0.0.1",
            "192.0.2.1",
            "2001:db8::1",
            "fd00::1",
            "lb.example.net"
        ]
    );
    assert_eq!(shard.refused.len(), 5);
    assert_eq!(
        refused(&shard)[0],
        (
            "status.loadBalancer.ingress",
            "127.0.0.1 is a loopback address: each machine is itself there"
        )
    );
    let target = enabled(&[("target", "127.0.0.1,192.0.2.9,192.0.2.9")]);
    play.put("web", service(target));
    let shard = play.service("web");
    assert_eq!(enters(&shard), ["192.0.2.9"]);
    assert_eq!(refused(&shard)[0].0, "target");
}

#[test]
fn addresses_that_were_there_stay() {
    let mut play = Play::listed();
    let without = |common| ServiceRecord {
        entries: entries(&[]),
        ..service(common)
    };
    let ready = enabled(&[("min-ready-endpoints", "0")]);
    play.put("web", without(ready.clone()));
    let shard = play.service("web");
    assert_eq!(enters(&shard), Vec::<String>::new());
    assert_eq!(unready(&shard), "its status names no address");
    play.put("web", service(ready.clone()));
    let shard = play.service("web");
    assert_eq!(
        (enters(&shard), unready(&shard)),
        (vec!["192.0.2.1".into()], "")
    );
    for common in [
        ready.clone(),
        enabled(&[("health-check", "none")]),
        enabled(&[("target", "127.0.0.1")]),
    ] {
        play.put("web", without(common));
        let shard = play.service("web");
        assert_eq!(enters(&shard), ["192.0.2.1"]);
        assert_eq!(unready(&shard), "its status names no address any more");
    }
    // New ones take their place.
    let mut record = service(ready.clone());
    record.entries = entries(&["lb.example.net"]);
    play.put("web", record);
    assert_eq!(enters(&play.service("web")), ["lb.example.net"]);
    play.put("web", without(ready.clone()));
    assert_eq!(enters(&play.service("web")), ["lb.example.net"]);
    // What is being deleted keeps nothing.
    let mut record = without(ready);
    record.common.is_deleting = true;
    play.put("web", record);
    let shard = play.service("web");
    assert_eq!(enters(&shard), Vec::<String>::new());
    assert!(shard.is_drained);
}

#[test]
fn routes_enter_by_their_gateways() {
    let mut play = Play::listed();
    let at = |address: &str| {
        let mut record = gateway(said(&[]), vec![listener("a", "")]);
        record.entries = entries(&[address]);
        record
    };
    play.put("one", at("192.0.2.11"));
    play.put("two", at("192.0.2.12"));
    let both = vec![parent("one"), parent("one#a"), parent("two")];
    play.put("web", route(enabled(&[]), &["a.example.com"], both));
    assert_eq!(enters(&play.route("web")), ["192.0.2.11", "192.0.2.12"]);
    // By the ones that are not ready, or drained, only where there is no other.
    for (unready_one, drained_one, unready_two, drained_two, expected, is_drained, why) in [
        (true, false, false, false, &["192.0.2.12"][..], false, ""),
        (false, true, false, false, &["192.0.2.12"], false, ""),
        (true, false, false, true, &["192.0.2.12"], true, ""),
        (
            false,
            true,
            false,
            true,
            &["192.0.2.11", "192.0.2.12"],
            true,
            "",
        ),
        (
            true,
            true,
            true,
            false,
            &["192.0.2.12"],
            false,
            "Gateway shop/two: no address is free",
        ),
    ] {
        let put = |play: &mut Play, name, address, is_unready: bool, is_drained: bool| {
            let mut record = at(address);
            record.unready = is_unready.then(|| "no address is free".into());
            if is_drained {
                record.common = said(&[("drain", "true")]);
            }
            play.put(name, record);
        };
        put(&mut play, "one", "192.0.2.11", unready_one, drained_one);
        put(&mut play, "two", "192.0.2.12", unready_two, drained_two);
        let shard = play.route("web");
        assert_eq!(enters(&shard), expected);
        assert_eq!((shard.is_drained, unready(&shard)), (is_drained, why));
    }
    // The `target` of a Gateway is in place of its status, and that of a Route in place of both.
    let mut record = at("192.0.2.11");
    record.common = said(&[("target", "198.51.100.1")]);
    play.put("one", record);
    play.put("two", at("192.0.2.12"));
    assert_eq!(enters(&play.route("web")), ["198.51.100.1", "192.0.2.12"]);
    let own = enabled(&[("target", "198.51.100.2")]);
    play.put("web", route(own, &[], vec![parent("one")]));
    assert_eq!(enters(&play.route("web")), ["198.51.100.2"]);
}
