//! Services without an address of their own, in cluster sets.

use super::*;
use crate::model::{Steer, Weight};

const IN_SET: (&str, &str) = ("clusterset-name", "true");

/// A Service without an address of its own, with the port `web` 80.
fn headless(common: Common) -> ServiceRecord {
    ServiceRecord {
        is_load_balancer: false,
        is_headless: true,
        entries: Ingresses::default(),
        ..service(common)
    }
}

/// A slice whose endpoints are written `label address`, those that are not ready with `!` before; they listen on `web` 8080.
fn endpoints(service: &str, texts: &[&str]) -> SliceRecord {
    let read = |text: &&str| {
        let (is_ready, text) = match text.strip_prefix('!') {
            Some(rest) => (false, rest),
            None => (true, *text),
        };
        let (label, address) = text.split_once(' ').unwrap();
        SliceEndpoint {
            label: label.parse().unwrap(),
            address: address.parse().unwrap(),
            is_ready,
        }
    };
    let first: Vec<SliceEndpoint> = texts.iter().map(read).collect();
    let ready = first.iter().filter(|one| one.is_ready).count();
    SliceRecord {
        ports: vec![port("web", 8080, Protocol::Tcp)],
        first,
        ..slice(
            service,
            u32::try_from(ready).unwrap(),
            u32::try_from(texts.len()).unwrap(),
        )
    }
}

/// Shows the endpoints of a shard as `label address web:8080`.
fn shown(shard: &Shard) -> Vec<String> {
    let endpoints = shard.headless.as_deref().expect("it is headless").iter();
    let shown = endpoints.map(|one| {
        let ports = one.ports.iter();
        let ports: Vec<String> = ports
            .map(|port| format!("{}:{}", port.name, port.number))
            .collect();
        format!("{} {} {}", one.label, one.address, ports.join(" "))
    });
    shown.collect()
}

#[test]
fn ready_endpoints_are_the_addresses_of_a_headless_service_in_a_cluster_set() {
    let mut play = Play::listed();
    play.put("web", headless(enabled(&[IN_SET])));
    // Before its first endpoint it is there, without an address.
    let shard = play.service("web");
    assert_eq!((enters(&shard), shown(&shard)), (vec![], vec![]));
    play.put(
        "web-1",
        endpoints(
            "web",
            &["web-1 10.1.0.2", "web-0 10.1.0.1", "!web-2 10.1.0.3"],
        ),
    );
    play.put("web-6", endpoints("web", &["web-0 2001:db8::1"]));
    play.put("other-1", endpoints("other", &["other-0 10.1.9.9"]));
    let shard = play.service("web");
    assert_eq!(enters(&shard), ["10.1.0.1", "2001:db8::1", "10.1.0.2"]);
    assert_eq!(
        shown(&shard),
        [
            "web-0 10.1.0.1 web:8080",
            "web-0 2001:db8::1 web:8080",
            "web-1 10.1.0.2 web:8080"
        ]
    );
    assert_eq!((unready(&shard), shard.weight), ("", Weight::default()));
    // All of them are answered, unless it says otherwise; nobody probes them.
    assert_eq!(
        (shard.keys.steer, shard.keys.answers),
        (Some(Steer::All), Some(32))
    );
    assert_eq!(shard.monitor, None);
    assert_eq!(refused(&shard), []);
    // What is not ready any more, or gone, goes: another may have the address soon.
    play.put("web-1", endpoints("web", &["!web-0 10.1.0.1"]));
    play.gone(Watched::EndpointSlices, "web-6");
    let shard = play.service("web");
    assert_eq!((enters(&shard), shown(&shard)), (vec![], vec![]));
    assert_eq!(
        unready(&shard),
        "0 of 1 endpoints are ready, 1 at least must be"
    );
    play.gone(Watched::Services, "web");
    assert_eq!(play.shard(ObjectKind::Service, "web"), None);
}

#[test]
fn what_is_not_headless_or_in_no_cluster_set_or_says_where_it_is_has_no_endpoints() {
    let target = [IN_SET, ("target", "198.51.100.7")];
    for (record, wanted) in [
        (headless(enabled(&[])), None),
        (headless(enabled(&[("clusterset-name", "false")])), None),
        (headless(said(&[IN_SET])), None),
        (headless(enabled(&target)), Some("198.51.100.7")),
        (service(enabled(&[IN_SET])), Some("192.0.2.1")),
        (
            ServiceRecord {
                entries: entries(&["192.0.2.9"]),
                ..headless(enabled(&target[..1]))
            },
            None,
        ),
    ] {
        let mut play = Play::listed();
        play.put("web", record);
        play.put("web-1", endpoints("web", &["web-0 10.1.0.1"]));
        let shard = play.shard(ObjectKind::Service, "web");
        let found = shard.as_ref().map(|shard| enters(shard).join(" "));
        assert_eq!(found.as_deref(), wanted);
        assert!(shard.is_none_or(|shard| shard.headless.is_none() && shard.keys.steer.is_none()));
    }
}

#[test]
fn a_headless_service_in_no_cluster_set_is_told() {
    let mut play = Play::listed();
    play.put("web", headless(enabled(&[])));
    play.take();
    let overview = play.world.overview();
    let told = overview.told.iter().flat_map(|told| &told.refused);
    let told: Vec<&str> = told.map(|refused| &*refused.reason).collect();
    assert_eq!(
        told,
        [
            "it has no address of its own and is in no cluster set, and there is no `meridian-dns.io/target`"
        ]
    );
}

#[test]
fn the_order_in_which_a_service_and_its_slices_come_does_not_matter() {
    let slice = || endpoints("web", &["web-0 10.1.0.1", "web-1 10.1.0.2"]);
    let mut before = Play::listed();
    before.put("web", headless(enabled(&[IN_SET])));
    before.put("web-1", slice());
    let wanted = before.service("web");
    assert_eq!(enters(&wanted), ["10.1.0.1", "10.1.0.2"]);
    let mut after = Play::listed();
    after.put("web-1", slice());
    after.take();
    after.put("web", headless(enabled(&[])));
    after.take();
    // Nothing but the annotation comes last.
    after.put("web", headless(enabled(&[IN_SET])));
    assert_eq!(after.service("web"), wanted);
    // A Service that had an address of its own, and slices that say what they are of.
    let mut other = Play::listed();
    other.put("web", service(enabled(&[IN_SET])));
    other.put(
        "web-1",
        SliceRecord {
            is_headless: true,
            ..slice()
        },
    );
    other.take();
    other.put("web", headless(enabled(&[IN_SET])));
    assert_eq!(other.service("web"), wanted);
}

#[test]
fn of_a_service_with_an_address_nothing_but_counts_is_kept() {
    let kept = |play: &Play, service: &str| play.world.behind.kept(&key(service)).count();
    let mut play = Play::listed();
    play.put("web-1", endpoints("web", &["web-0 10.1.0.1"]));
    play.put("db-1", endpoints("db", &["db-0 10.1.0.2"]));
    assert_eq!((kept(&play, "web"), kept(&play, "db")), (1, 1));
    play.put("web", service(enabled(&[IN_SET])));
    play.put("db", headless(enabled(&[])));
    assert_eq!((kept(&play, "web"), kept(&play, "db")), (0, 1));
    play.put("web-2", endpoints("web", &["web-1 10.1.0.3"]));
    play.put("db-2", endpoints("db", &["db-1 10.1.0.4"]));
    assert_eq!((kept(&play, "web"), kept(&play, "db")), (0, 2));
    // They go with their slices, and when these are another's.
    play.gone(Watched::EndpointSlices, "db-1");
    play.put("db-2", endpoints("web", &["db-1 10.1.0.4"]));
    assert_eq!((kept(&play, "web"), kept(&play, "db")), (0, 0));
    play.put("db-3", endpoints("db", &["db-2 10.1.0.5"]));
    play.list(Watched::EndpointSlices, vec![]);
    assert_eq!(kept(&play, "db"), 0);
}

#[test]
fn a_slice_that_only_moves_an_address_is_a_change() {
    let mut play = Play::listed();
    play.put("web", headless(enabled(&[IN_SET])));
    play.put("web-1", endpoints("web", &["web-0 10.1.0.1"]));
    assert_eq!(enters(&play.service("web")), ["10.1.0.1"]);
    play.put("web-1", endpoints("web", &["web-0 10.1.0.2"]));
    assert_eq!(enters(&play.service("web")), ["10.1.0.2"]);
    let mut moved = endpoints("web", &["web-0 10.1.0.2"]);
    moved.ports = vec![port("web", 9090, Protocol::Tcp)];
    play.put("web-1", moved);
    assert_eq!(shown(&play.service("web")), ["web-0 10.1.0.2 web:9090"]);
}

#[test]
fn unready_endpoints_are_given_where_they_are_published() {
    let mut play = Play::listed();
    let mut record = headless(enabled(&[IN_SET]));
    record.publishes_not_ready = true;
    play.put("web", record);
    play.put(
        "web-1",
        endpoints("web", &["web-1 10.1.0.2", "!web-0 10.1.0.1"]),
    );
    assert_eq!(enters(&play.service("web")), ["10.1.0.1", "10.1.0.2"]);
}

#[test]
fn nobody_seeing_slices_takes_no_endpoint_away() {
    let held = {
        let mut play = Play::listed();
        play.put("web", headless(enabled(&[IN_SET])));
        play.put("web-1", endpoints("web", &["web-0 10.1.0.1"]));
        play.service("web")
    };
    let mut play = Play::with(Rules::default(), vec![held.clone()]);
    play.list(
        Watched::Services,
        vec![("web", headless(enabled(&[IN_SET])).into())],
    );
    let shard = play.service("web");
    assert_eq!(
        (&shard.addresses, &shard.headless),
        (&held.addresses, &held.headless)
    );
    play.list(
        Watched::EndpointSlices,
        vec![("web-1", endpoints("web", &["web-1 10.1.0.2"]).into())],
    );
    assert_eq!(enters(&play.service("web")), ["10.1.0.2"]);
    play.event(Watched::EndpointSlices, Event::Unserved);
    assert_eq!(enters(&play.service("web")), ["10.1.0.2"]);
}

#[test]
fn endpoints_that_several_slices_name_are_one_with_the_ports_of_all() {
    let mut play = Play::listed();
    play.put("web", headless(enabled(&[IN_SET])));
    play.put(
        "web-1",
        endpoints("web", &["web-0 10.1.0.1", "web-1 10.1.0.2"]),
    );
    let mut more = endpoints("web", &["web-0 10.1.0.1"]);
    more.ports = vec![
        port("web", 8081, Protocol::Tcp),
        port("dns", 53, Protocol::Udp),
        port("", 99, Protocol::Tcp),
        port("No label", 98, Protocol::Tcp),
        port("odd", 97, Protocol::Other),
    ];
    play.put("web-2", more);
    assert_eq!(
        shown(&play.service("web")),
        ["web-0 10.1.0.1 dns:53 web:8080", "web-1 10.1.0.2 web:8080"]
    );
}

#[test]
fn a_service_has_so_many_endpoints_in_one_cluster_and_none_that_nobody_reaches() {
    let mut play = Play::listed();
    play.put("web", headless(enabled(&[IN_SET])));
    for part in 0..3 {
        let texts: Vec<String> = (0..40)
            .map(|at| format!("w{:03} 10.1.{part}.{}", at * 3 + part, at + 1))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        play.put(&format!("web-{part}"), endpoints("web", &texts));
    }
    let shard = play.service("web");
    let all = shown(&shard);
    assert_eq!((all.len(), shard.addresses.len()), (64, 64));
    assert!(all[0].starts_with("w000 ") && all[63].starts_with("w063 "));
    let told = (
        "endpoints",
        "the first 64 endpoints by their names alone count",
    );
    assert_eq!(refused(&shard), [told]);
    play.list(
        Watched::EndpointSlices,
        vec![(
            "web-1",
            endpoints("web", &["a 127.0.0.1", "b 169.254.0.9", "c 10.1.0.1"]).into(),
        )],
    );
    let shard = play.service("web");
    assert_eq!(enters(&shard), ["10.1.0.1"]);
    assert_eq!(refused(&shard).len(), 2);
    // Those that nobody reaches take nobody's place.
    let texts: Vec<String> = (0..100)
        .map(|at| match at {
            0..70 => format!("w{at:03} 127.0.1.{at}"),
            _ => format!("w{at:03} 10.1.0.{at}"),
        })
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    play.list(
        Watched::EndpointSlices,
        vec![("web-1", endpoints("web", &texts).into())],
    );
    let shard = play.service("web");
    assert_eq!(shown(&shard).len(), 30);
    assert_eq!(refused(&shard).len(), 8);
}

#[test]
fn endpoints_are_probed_where_that_is_asked_for_at_the_ports_that_they_listen_on() {
    for (more, wanted) in [
        (&[][..], None),
        (&[("health-check", "endpoints")], None),
        (&[("health-check", "tcp")], Some(8080)),
        (&[("health-check-path", "/up")], Some(8080)),
        (
            &[("health-check", "tcp"), ("health-check-port", "web")],
            Some(8080),
        ),
        (
            &[("health-check", "tcp"), ("health-check-port", "81")],
            Some(81),
        ),
    ] {
        let mut rules = Rules::default();
        rules.checks.kind = Some(annotations::CheckKind::Tcp);
        let mut play = Play::listed_with(rules);
        let said: Vec<_> = more.iter().copied().chain([IN_SET]).collect();
        play.put("web", headless(enabled(&said)));
        play.put("web-1", endpoints("web", &["web-0 10.1.0.1"]));
        let monitor = play.service("web").monitor;
        let port = monitor.map(|monitor| monitor.check.port());
        assert_eq!(port, wanted, "{more:?}");
    }
}

#[test]
fn what_is_said_of_its_names_counts_as_of_any_other() {
    let mut play = Play::listed();
    let said = [IN_SET, ("steer", "proximity"), ("answers", "3")];
    play.put("web", headless(enabled(&said)));
    play.put("web-1", endpoints("web", &["web-0 10.1.0.1"]));
    let shard = play.service("web");
    assert_eq!(
        (shard.keys.steer, shard.keys.answers),
        (Some(Steer::Proximity), Some(3))
    );
}
