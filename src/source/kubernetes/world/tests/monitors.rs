//! Monitors: from annotations over the configuration to what is usual.

use std::time::Duration;

use super::*;
use crate::model::{Check, MonitorSpec, TlsMode};
use crate::source::kubernetes::annotations::{CheckKind, PortRef};

/// Shows a monitor: `http 80 a.example.com/path 2s/1s 2/2`.
fn shown(spec: &MonitorSpec) -> String {
    let check = match &spec.check {
        Check::Tcp(check) => format!("tcp {}", check.port),
        Check::Http(check) => {
            let scheme = match check.tls {
                None => "http",
                Some(TlsMode::Verify) => "https",
                Some(_) => "https?",
            };
            let host = check.host.as_deref().unwrap_or("-");
            let method = if check.head { " HEAD" } else { "" };
            let codes = check
                .expect
                .iter()
                .map(|range| format!(" {}-{}", range.first, range.last));
            let codes: String = codes.filter(|codes| codes != " 200-399").collect();
            format!(
                "{scheme} {} {host}{}{method}{codes}",
                check.port, check.path
            )
        }
    };
    let MonitorSpec {
        interval,
        timeout,
        rise,
        fall,
        ..
    } = spec;
    format!("{check} {interval:?}/{timeout:?} {rise}/{fall}")
}

/// Shows the monitor of a shard, and the keys that were refused.
fn monitored(shard: &Shard) -> (String, Vec<&str>) {
    let monitor = shard.monitor.as_ref();
    let monitor = monitor.map_or_else(|| "none".to_owned(), |spec| shown(spec));
    let keys = refused(shard).into_iter().map(|(key, _)| key).collect();
    (monitor, keys)
}

#[test]
fn checks_are_for_the_addresses_of_host_names_too() {
    for (said, monitor) in [
        (&[][..], "tcp 8080 2s/1s 2/2"),
        (&[("health-check", "none")], "none"),
        (&[("health-check", "endpoints")], "none"),
        (&[("health-check-port", "80")], "tcp 80 2s/1s 2/2"),
        (
            &[("health-check", "https"), NAMED],
            "https 8080 a.example.com/ 2s/1s 2/2",
        ),
    ] {
        let mut play = Play::listed();
        let mut record = service(enabled(said));
        record.ports = vec![port("web", 8080, Protocol::Tcp)];
        record.entries = entries(&["lb.example.net"]);
        play.put("web", record);
        let shard = play.service("web");
        assert_eq!(monitored(&shard), (monitor.to_owned(), vec![]), "{said:?}");
    }
}

fn of_service(ports: Vec<Port>, more: &[(&str, &str)]) -> Shard {
    let mut play = Play::listed();
    let mut record = service(enabled(more));
    record.ports = ports;
    play.put("web", record);
    play.service("web")
}

/// Host names of which the first is a wildcard.
const NAMED: (&str, &str) = ("hostname", "*.example.com,a.example.com");

/// Annotations, monitor, keys refused.
type Row = (
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static [&'static str],
);

/// Of a Service with the ports `dns` 53 (UDP), `web` 8080 (TCP) and `tls` 8443 (TLS).
const CHECKS: &[Row] = &[
    (&[], "tcp 8080 2s/1s 2/2", &[]),
    (&[("health-check", "none")], "none", &[]),
    (&[("health-check", "endpoints")], "none", &[]),
    // Nothing is accepted and ignored.
    (
        &[
            ("health-check", "endpoints"),
            ("health-check-port", "9000"),
            ("health-check-path", "/up"),
            ("health-check-host", "b.example.com"),
            ("health-check-method", "HEAD"),
            ("health-check-expect", "200"),
            ("health-check-interval", "10s"),
            ("health-check-timeout", "3s"),
            ("health-check-unhealthy-threshold", "5"),
            ("health-check-healthy-threshold", "1"),
            ("health-check-tls", "skip"),
        ],
        "none",
        &[
            "health-check-port",
            "health-check-path",
            "health-check-host",
            "health-check-method",
            "health-check-expect",
            "health-check-interval",
            "health-check-timeout",
            "health-check-unhealthy-threshold",
            "health-check-healthy-threshold",
            "health-check-tls",
        ],
    ),
    (
        &[("health-check", "none"), ("health-check-timeout", "3s")],
        "none",
        &["health-check-timeout"],
    ),
    // No tenant holds a place of the prober for an hour.
    (
        &[
            ("health-check-interval", "1h"),
            ("health-check-timeout", "1h"),
        ],
        "tcp 8080 3600s/10s 2/2",
        &["health-check-timeout"],
    ),
    (&[("health-check", "http")], "http 8080 -/ 2s/1s 2/2", &[]),
    (
        &[("health-check-path", "/up?x=1"), NAMED],
        "http 8080 a.example.com/up?x=1 2s/1s 2/2",
        &[],
    ),
    (
        &[
            ("health-check-path", "/"),
            ("health-check-port", "tls"),
            NAMED,
        ],
        "https 8443 a.example.com/ 2s/1s 2/2",
        &[],
    ),
    (
        &[("health-check-path", "/"), ("health-check-port", "443")],
        "https 443 -/ 2s/1s 2/2",
        &[],
    ),
    (
        &[("health-check-path", "/"), ("health-check-port", "9000")],
        "http 9000 -/ 2s/1s 2/2",
        &[],
    ),
    (
        &[
            ("health-check", "https"),
            ("health-check-tls", "skip"),
            ("health-check-host", "b.example.com"),
        ],
        "https? 8080 b.example.com/ 2s/1s 2/2",
        &[],
    ),
    (
        &[
            ("health-check", "http"),
            ("health-check-method", "HEAD"),
            ("health-check-expect", "200,301-302"),
        ],
        "http 8080 -/ HEAD 200-200 301-302 2s/1s 2/2",
        &[],
    ),
    (&[("health-check-port", "web")], "tcp 8080 2s/1s 2/2", &[]),
    (
        &[("health-check-port", "nope")],
        "tcp 8080 2s/1s 2/2",
        &["health-check-port"],
    ),
    // A port that speaks UDP is none to connect to.
    (
        &[("health-check-port", "dns")],
        "tcp 8080 2s/1s 2/2",
        &["health-check-port"],
    ),
    (
        &[
            ("health-check-unhealthy-threshold", "5"),
            ("health-check-healthy-threshold", "1"),
        ],
        "tcp 8080 2s/1s 1/5",
        &[],
    ),
    (
        &[
            ("health-check-interval", "10s"),
            ("health-check-timeout", "3s"),
        ],
        "tcp 8080 10s/3s 2/2",
        &[],
    ),
    // Bounds, each of them said.
    (
        &[("health-check-interval", "100ms")],
        "tcp 8080 500ms/500ms 2/2",
        &["health-check-interval"],
    ),
    (
        &[("health-check-timeout", "5s")],
        "tcp 8080 2s/2s 2/2",
        &["health-check-timeout"],
    ),
    // Keys without a use.
    (
        &[("health-check", "tcp"), ("health-check-path", "/up")],
        "tcp 8080 2s/1s 2/2",
        &["health-check-path"],
    ),
    (
        &[
            ("health-check-expect", "200"),
            ("health-check-host", "a.example.com"),
            ("health-check-method", "GET"),
            ("health-check-tls", "skip"),
        ],
        "tcp 8080 2s/1s 2/2",
        &[
            "health-check-host",
            "health-check-method",
            "health-check-expect",
            "health-check-tls",
        ],
    ),
    (
        &[("health-check", "http"), ("health-check-tls", "skip")],
        "http 8080 -/ 2s/1s 2/2",
        &["health-check-tls"],
    ),
];

#[test]
fn annotations_choose_the_check() {
    let web = || {
        vec![
            port("dns", 53, Protocol::Udp),
            port("web", 8080, Protocol::Tcp),
            port("tls", 8443, Protocol::Tls),
        ]
    };
    for (more, expected, refused) in CHECKS {
        let shard = of_service(web(), more);
        assert_eq!(
            monitored(&shard),
            ((*expected).to_owned(), refused.to_vec()),
            "{more:?}"
        );
    }
}

#[test]
fn the_first_port_that_speaks_tcp_is_checked() {
    let path = ("health-check-path", "/");
    for (ports, more, expected, refused) in [
        (
            vec![port("a", 443, Protocol::Tcp)],
            &[path][..],
            "https 443 -/ 2s/1s 2/2",
            &[][..],
        ),
        (
            vec![port("a", 443, Protocol::Http)],
            &[path],
            "http 443 -/ 2s/1s 2/2",
            &[],
        ),
        (
            vec![port("a", 8443, Protocol::Tls)],
            &[path],
            "https 8443 -/ 2s/1s 2/2",
            &[],
        ),
        (
            vec![port("a", 443, Protocol::Tls)],
            &[],
            "tcp 443 2s/1s 2/2",
            &[],
        ),
        // What speaks UDP only is judged by its readiness.
        (vec![port("a", 53, Protocol::Udp)], &[], "none", &[]),
        (vec![port("a", 132, Protocol::Other)], &[], "none", &[]),
        (vec![], &[], "none", &[]),
        (
            vec![port("a", 53, Protocol::Udp)],
            &[path],
            "none",
            &["health-check-port"],
        ),
        (
            vec![port("a", 53, Protocol::Udp)],
            &[("health-check", "tcp")],
            "none",
            &["health-check-port"],
        ),
        (
            vec![port("a", 53, Protocol::Udp)],
            &[path, ("health-check-port", "8080")],
            "http 8080 -/ 2s/1s 2/2",
            &[],
        ),
    ] {
        let text = format!("{ports:?} {more:?}");
        let shard = of_service(ports, more);
        assert_eq!(
            monitored(&shard),
            (expected.to_owned(), refused.to_vec()),
            "{text}"
        );
    }
}

#[test]
fn the_configuration_says_what_annotations_do_not() {
    let mut rules = Rules::default();
    rules.checks.path = Some("/ready".into());
    rules.checks.port = Some(PortRef::Number(8081));
    rules.checks.interval = Some(Duration::from_millis(200));
    rules.checks.timeout = Some(Duration::from_secs(3));
    rules.checks.fall = Some(4);
    let mut play = Play::listed_with(rules.clone());
    for (more, expected) in [
        (&[][..], "http 8081 -/ready 500ms/500ms 2/4"),
        (&[("health-check", "tcp")], "tcp 8081 500ms/500ms 2/4"),
        (
            &[
                ("health-check-path", "/own"),
                ("health-check-port", "80"),
                ("health-check-interval", "10s"),
            ],
            "http 80 -/own 10s/3s 2/4",
        ),
    ] {
        play.put("web", service(enabled(more)));
        let shard = play.service("web");
        assert_eq!(monitored(&shard), (expected.to_owned(), vec![]), "{more:?}");
    }
    // It is not for what has no port to connect to, nor refused there.
    rules.checks.kind = Some(CheckKind::Tcp);
    play.world.set_rules(Arc::new(rules));
    let mut record = service(enabled(&[]));
    record.ports = vec![port("dns", 53, Protocol::Udp)];
    play.put("web", record);
    assert_eq!(monitored(&play.service("web")), ("none".to_owned(), vec![]));
}

#[test]
fn ingresses_gateways_and_routes_have_ports_too() {
    let mut play = Play::listed();
    let path = [("health-check-path", "/")];
    let mut record = ingress(enabled(&path), &["a.example.com"], &[]);
    play.put("web", record.clone());
    assert_eq!(
        monitored(&play.ingress("web")).0,
        "http 80 a.example.com/ 2s/1s 2/2"
    );
    record.has_tls = true;
    play.put("web", record);
    assert_eq!(
        monitored(&play.ingress("web")).0,
        "https 443 a.example.com/ 2s/1s 2/2"
    );
    let record = ingress(enabled(&[("health-check-port", "web")]), &[], &[]);
    play.put("web", record);
    assert_eq!(
        monitored(&play.ingress("web")),
        ("tcp 80 2s/1s 2/2".to_owned(), vec!["health-check-port"])
    );

    let mut plain = listener("plain", "");
    plain.port = port("", 8080, Protocol::Http);
    let mut datagrams = listener("quic", "");
    datagrams.port = port("", 8443, Protocol::Udp);
    let listeners = vec![datagrams, plain, listener("tls", "")];
    play.put("gw", gateway(enabled(&[]), listeners.clone()));
    let shard = play.shard(ObjectKind::Gateway, "gw").unwrap();
    assert_eq!(monitored(&shard).0, "tcp 8080 2s/1s 2/2");
    play.put(
        "gw",
        gateway(enabled(&[("health-check-port", "tls"), path[0]]), listeners),
    );
    let shard = play.shard(ObjectKind::Gateway, "gw").unwrap();
    assert_eq!(monitored(&shard).0, "https 443 -/ 2s/1s 2/2");

    // A Route has the ports of its listeners.
    for (at, expected) in [
        ("gw", "https 443 a.example.com/ 2s/1s 2/2"),
        ("gw#tls", "https 443 a.example.com/ 2s/1s 2/2"),
        // Its Gateway asks for a port that it does not have here.
        ("gw#plain", "http 8080 a.example.com/ 2s/1s 2/2"),
    ] {
        play.put(
            "web",
            route(enabled(&[]), &["a.example.com"], vec![parent(at)]),
        );
        assert_eq!(monitored(&play.route("web")).0, expected, "{at}");
    }
    let mut record = route(enabled(&[]), &[], vec![parent("gw")]);
    record.kind = ObjectKind::UdpRoute;
    play.put("dns", record);
    let shard = play.shard(ObjectKind::UdpRoute, "dns").unwrap();
    assert_eq!(shard.monitor, None);
}

#[test]
fn host_names_count_among_what_a_namespace_may_have_probed() {
    let rules = Rules {
        monitors_per_namespace: 5,
        ..Rules::default()
    };
    let mut play = Play::listed_with(rules);
    for (name, at) in [
        ("a", "one.example.net"),
        ("b", "two.example.net"),
        ("c", "192.0.2.1"),
    ] {
        let mut record = service(enabled(&[]));
        record.entries = entries(&[at]);
        play.put(name, record);
    }
    let is_monitored = ["a", "b", "c"].map(|name| play.service(name).monitor.is_some());
    assert_eq!(is_monitored, [true, true, false]);
}

#[test]
fn equal_monitors_are_one() {
    let mut play = Play::listed();
    play.put("a", service(enabled(&[])));
    play.put("b", service(enabled(&[])));
    play.put("c", service(enabled(&[("health-check-port", "81")])));
    let monitors = ["a", "b", "c"].map(|name| play.service(name).monitor.unwrap());
    assert!(Arc::ptr_eq(&monitors[0], &monitors[1]));
    assert!(!Arc::ptr_eq(&monitors[0], &monitors[2]));
    // So are those of the last good state.
    let held = play.service("a");
    let mut play = Play::with(Rules::default(), vec![held]);
    play.put("b", service(enabled(&[])));
    assert!(Arc::ptr_eq(
        &monitors[0],
        &play.service("b").monitor.unwrap()
    ));
    // And those that nobody has any more are swept.
    for number in 1..1_000 {
        let number = number.to_string();
        let common = enabled(&[("health-check-port", &number)]);
        play.put("b", service(common));
        play.take();
    }
    let kept = format!("{:?}", play.world.shared)
        .matches("TcpCheck")
        .count();
    assert!(kept < 200, "{kept}");
}

#[test]
fn keys_that_say_nothing_are_one() {
    let mut play = Play::listed();
    play.put("a", service(enabled(&[])));
    play.put("b", service(enabled(&[])));
    let [a, b] = ["a", "b"].map(|name| play.service(name).keys);
    assert!(Arc::ptr_eq(&a, &b));
    play.put("a", service(enabled(&[("ttl", "9")])));
    let before = play.service("a").keys;
    play.put("a", service(enabled(&[("ttl", "9"), ("weight", "2")])));
    assert!(Arc::ptr_eq(&before, &play.service("a").keys));
}

#[test]
fn every_address_of_a_namespace_counts() {
    let rules = Rules {
        monitors_per_namespace: 5,
        ..Rules::default()
    };
    let mut play = Play::listed_with(rules);
    let put = |play: &mut Play, name: &str, count: u8| {
        let mut record = service(enabled(&[]));
        let addresses: Vec<String> = (0..count).map(|last| format!("192.0.2.{last}")).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        record.entries = entries(&addresses);
        play.put(name, record);
    };
    let monitored = |play: &mut Play| -> String {
        play.take();
        let shards = play.shards.values();
        let with = shards.filter(|shard| shard.monitor.is_some());
        with.map(|shard| &*shard.object.name).collect()
    };
    for (name, count) in [("b", 2), ("c", 2), ("d", 1), ("e", 1), ("f", 1)] {
        put(&mut play, name, count);
    }
    assert_eq!(monitored(&mut play), "bcd");
    // The one that reaches the limit is probed whole, and nobody after it.
    put(&mut play, "a", 4);
    assert_eq!(monitored(&mut play), "ab");
    put(&mut play, "a", 200);
    assert_eq!(monitored(&mut play), "a");
    put(&mut play, "a", 1);
    assert_eq!(monitored(&mut play), "abc");
    // One without an address asks for as much as one with one.
    put(&mut play, "b", 0);
    play.gone(Watched::Services, "a");
    play.gone(Watched::Services, "c");
    assert_eq!(monitored(&mut play), "bdef");
}

#[test]
fn a_namespace_has_so_many_monitors() {
    let rules = Rules {
        monitors_per_namespace: 2,
        ..Rules::default()
    };
    let mut play = Play::listed_with(rules);
    let monitored = |play: &mut Play| -> Vec<String> {
        play.take();
        let shards = play.shards.values();
        let with = shards.filter(|shard| shard.monitor.is_some());
        with.map(|shard| shard.object.name.to_string()).collect()
    };
    for name in ["c", "d", "other/x", "other/y"] {
        play.put(name, service(enabled(&[])));
    }
    assert_eq!(monitored(&mut play), ["x", "y", "c", "d"]);
    // The first by name have them, whoever came first.
    play.put("a", service(enabled(&[])));
    assert_eq!(monitored(&mut play), ["x", "y", "a", "c"]);
    assert_eq!(
        refused(&play.service("d")),
        [(
            "health-check",
            "namespace shop has its 2 probed addresses already: its readiness alone counts"
        )]
    );
    // One that asks for none takes no place.
    play.put("b", service(enabled(&[("health-check", "endpoints")])));
    assert_eq!(monitored(&mut play), ["x", "y", "a", "c"]);
    play.put("b", service(enabled(&[])));
    assert_eq!(monitored(&mut play), ["x", "y", "a", "b"]);
    play.gone(Watched::Services, "a");
    assert_eq!(monitored(&mut play), ["x", "y", "b", "c"]);
    assert_eq!(play.service("c").refused, [].into());
    // Several at once, of which the first pushes out the second.
    play.gone(Watched::Services, "c");
    play.put("bb", service(enabled(&[])));
    play.put("a", service(enabled(&[])));
    assert_eq!(monitored(&mut play), ["x", "y", "a", "b"]);
    let more = Rules {
        monitors_per_namespace: 4,
        ..Rules::default()
    };
    play.world.set_rules(Arc::new(more));
    assert_eq!(monitored(&mut play), ["x", "y", "a", "b", "bb", "d"]);
    let none = Rules {
        monitors_per_namespace: 0,
        ..Rules::default()
    };
    play.world.set_rules(Arc::new(none));
    assert_eq!(monitored(&mut play), Vec::<String>::new());
    play.gone(Watched::Services, "a");
    assert_eq!(monitored(&mut play), Vec::<String>::new());
}
