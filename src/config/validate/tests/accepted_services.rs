//! What becomes of services, their policies, monitors and endpoints.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{BASE, ENDPOINTS, accept, with_service};
use crate::model::{Check, ClusterSelector, FallbackSpec, Steer, TlsMode, Weight};

#[test]
fn services_are_compact_and_share_what_they_write_alike() {
    let service = |name: &str, keys: &str| {
        format!(
            "  - {{namespace: n, name: {name}, hostnames: [{name}.svc.example], {keys}, {ENDPOINTS}}}\n"
        )
    };
    let text = format!(
        "{BASE}services:\n{}{}{}{}",
        service(
            "s1",
            "policy: {steer: weighted, weights: {a: 80, b: 20}}, monitor: {http: {path: /x}}"
        ),
        service(
            "s2",
            "policy: {steer:   weighted, weights: {a: 80, b: 20}}, monitor: {http:  {path: /x}}"
        ),
        service(
            "s3",
            "policy: {steer: weighted, weights: {b: 20, a: 80}}, monitor: none, ttl: 1m"
        ),
        service("s4", "ttl: 5"),
    );
    let (config, _) = accept(&text);
    let [s1, s2, s3, s4] = &config.services[..] else {
        panic!()
    };
    assert!(Arc::ptr_eq(&s1.policy, &s2.policy) && !Arc::ptr_eq(&s1.policy, &s3.policy));
    assert!(Arc::ptr_eq(
        s1.monitor.as_ref().unwrap(),
        s2.monitor.as_ref().unwrap()
    ));
    assert_eq!((s3.monitor.as_ref(), s4.monitor.as_ref()), (None, None));
    assert_eq!(s1.policy.steer, Steer::Weighted);
    let names: Vec<String> = s3
        .policy
        .weights
        .iter()
        .map(|(selector, weight)| format!("{selector}={}", weight.0))
        .collect();
    assert_eq!(names, ["cluster:b=20", "cluster:a=80"]);
    assert_eq!((s3.ttl.map(|ttl| ttl.seconds()), s1.ttl), (Some(60), None));
    assert_eq!(s1.key.as_str(), "n/s1");
    assert_eq!(
        s1.names
            .iter()
            .map(|name| name.to_string())
            .collect::<Vec<_>>(),
        ["s1.svc.example"]
    );
    assert_eq!(s1.pools.cluster_count(), 2);
    let first: Vec<IpAddr> = s1
        .pools
        .iter()
        .flat_map(|pool| pool.v4().collect::<Vec<_>>())
        .map(|endpoint| endpoint.address)
        .collect();
    assert_eq!(
        first,
        ["192.0.2.1", "192.0.2.2"].map(|text| text.parse::<IpAddr>().unwrap())
    );
}

#[test]
fn endpoints_with_clients_weights_and_host_names() {
    let text = with_service(
        "endpoints: [{cluster: a, addresses: [192.0.2.1], weight: 0}, {cluster: a, addresses: [10.0.0.1], clients: [10.0.0.0/8]}, {cluster: b, addresses: [10.0.0.1], clients: [10.0.0.0/8]}]",
    );
    let service = accept(&text).0.services.remove(0);
    let extras = service.extras.expect("extras");
    assert_eq!(extras.client_sets.len(), 1);
    let pools: Vec<(Weight, Option<usize>)> = service
        .pools
        .iter()
        .map(|pool| (pool.weight(), pool.clients()))
        .collect();
    assert_eq!(
        pools,
        [
            (Weight(0), None),
            (Weight(1), Some(0)),
            (Weight(1), Some(0))
        ]
    );
    // Host names stand beside addresses, under a monitor, several in a cluster and at the apex.
    let text = format!(
        "{BASE}services:\n  - {{namespace: n, name: s, hostnames: [svc.example], monitor: {{tcp: {{port: 443}}}}, policy: {{steer: all}}, \
         endpoints: [{{cluster: a, hostname: LB.example.net, weight: 3}}, {{cluster: a, hostname: other.example.net, clients: [192.0.2.0/24]}}, \
         {{cluster: b, addresses: [192.0.2.1]}}]}}\n"
    );
    let (config, warnings) = accept(&text);
    assert_eq!(warnings, []);
    let service = &config.services[0];
    assert_eq!(service.pools.clusters().count(), 1);
    let extras = service.extras.as_deref().unwrap();
    assert!(extras.hostnames.is_empty() && service.monitor.is_some());
    let targets = extras.targets.iter().map(|target| {
        let name = target.name.to_string();
        (name, target.weight, target.clients)
    });
    assert_eq!(
        targets.collect::<Vec<_>>(),
        [
            ("lb.example.net".to_owned(), Weight(3), None),
            ("other.example.net".to_owned(), Weight(1), Some(0)),
        ]
    );
    // Wildcards, underscores and the apex are fine.
    let text = format!(
        "{BASE}services:\n  - {{namespace: n, name: s, hostnames: [\"*.svc.example\", _x.svc.example, svc.example], {ENDPOINTS}}}\n"
    );
    assert_eq!(accept(&text).0.services[0].names.iter().count(), 3);
}

#[test]
fn policies_in_full() {
    let text = with_service(&format!(
        "policy: {{steer: failover, tiers: [[a], [\"region:eu-west-1\", \"*\"]], failback: auto, affinity: none, alternates: 0, \
         bias: {{b: -99}}, maps: [{{continents: [EU], countries: [us], subdivisions: [US-CA], asns: [64496], prefixes: [192.0.2.0/24], groups: [EU-27], clusters: [b, a]}}, {{clusters: [\"*\"]}}], \
         fence: [{{clients: [\"group:EU-27\", \"10.0.0.0/8\"], clusters: [\"group:EU-27\"]}}, {{clients: [\"*\", unknown], clusters: []}}], \
         fenceAnswer: [192.0.2.9, \"2001:db8::9\"], fallback: {{hostname: cdn.example.net}}, panic: 0.25, answers: 2}}, {ENDPOINTS}"
    ));
    let (config, warnings) = accept(&text);
    // Nobody judges: fallback and panic are remarked on, nothing else.
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let policy = &config.services[0].policy;
    assert_eq!(
        (
            policy.steer,
            policy.tiers.len(),
            policy.max_answers(),
            policy.panic
        ),
        (Steer::Proximity, 2, 2, 0.25)
    );
    assert_eq!(
        policy.tiers[1],
        [
            ClusterSelector::Region("eu-west-1".into()),
            ClusterSelector::Any
        ]
    );
    let clients: Vec<String> = policy.maps[0]
        .clients
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        clients,
        [
            "continent:EU",
            "country:US",
            "subdivision:US-CA",
            "asn:64496",
            "192.0.2.0/24",
            "group:EU-27"
        ]
    );
    assert!(policy.maps[1].clients.is_empty());
    assert_eq!(
        (
            policy.fences.len(),
            policy.fences[0].len(),
            policy.fences[0][1].clusters.len()
        ),
        (1, 2, 0)
    );
    assert!(matches!(&policy.fence_answer, Some(FallbackSpec::Addresses(list)) if list.len() == 2));
    assert!(
        matches!(&policy.fallback, Some(FallbackSpec::Hostname(name)) if name.to_string() == "cdn.example.net")
    );
    for (answer, is_hostname) in [
        ("192.0.2.9", false),
        ("sorry.example.net", true),
        ("{addresses: [192.0.2.9]}", false),
        ("{hostname: sorry.example.net}", true),
    ] {
        let text = with_service(&format!("policy: {{fenceAnswer: {answer}}}, {ENDPOINTS}"));
        let policy = accept(&text).0.services[0].policy.clone();
        assert_eq!(
            matches!(policy.fence_answer, Some(FallbackSpec::Hostname(_))),
            is_hostname,
            "{answer}"
        );
    }
}

#[test]
fn defaults_are_merged_key_by_key_and_fences_add_up() {
    let defaults = "\
defaults:
  policy:
    steer: weighted
    weights: {a: 1}
    fallback: {addresses: [192.0.2.99]}
    fence: [{clients: ['*'], clusters: [a]}]
    fenceAnswer: 192.0.2.9
  monitor: {http: {path: /healthz}, interval: 5s, timeout: 3s}
";
    let service = |keys: &str| {
        let (config, warnings) = accept(&format!(
            "{}{defaults}",
            with_service(&format!("{keys}{ENDPOINTS}"))
        ));
        assert!(warnings.is_empty(), "{warnings:?}");
        config.services.into_iter().next().expect("one")
    };
    let plain = service("");
    assert_eq!(
        (plain.policy.steer, plain.policy.fences.len()),
        (Steer::Weighted, 1)
    );
    assert_eq!(
        plain.monitor.as_ref().map(|monitor| monitor.interval),
        Some(Duration::from_secs(5))
    );
    let own = service(
        "policy: {answers: 3, fence: [{clients: ['*'], clusters: [b]}], fallback: {addresses: [], hostname: \"\"}}, monitor: {tcp: {port: 22}, timeout: 1s}, ",
    );
    assert_eq!(
        (
            own.policy.steer,
            own.policy.answers,
            own.policy.fences.len()
        ),
        (Steer::Weighted, 3, 2)
    );
    assert_eq!(
        (own.policy.weights.len(), own.policy.fallback.as_ref()),
        (1, None)
    );
    let monitor = own.monitor.expect("a monitor");
    assert_eq!(
        (monitor.check.port(), monitor.interval, monitor.timeout),
        (22, Duration::from_secs(5), Duration::from_secs(1))
    );
    assert_eq!(service("monitor: none, ").monitor, None);
    assert_eq!(service("monitor: {none: {}}, ").monitor, None);
    assert_eq!(service("policy: {steer: all}, ").policy.steer, Steer::All);
}

#[test]
fn monitors_in_full() {
    let monitor = |keys: &str| {
        let (config, warnings) = accept(&with_service(&format!("monitor: {keys}, {ENDPOINTS}")));
        let monitor = config
            .services
            .into_iter()
            .next()
            .and_then(|service| service.monitor);
        (monitor.expect("a monitor"), warnings)
    };
    let (http, _) = monitor("{http: {}, interval: 500ms, rise: 1, fall: 20}");
    assert_eq!(
        (http.interval, http.timeout, http.rise, http.fall),
        (
            Duration::from_millis(500),
            Duration::from_millis(500),
            1,
            20
        )
    );
    let Check::Http(check) = &http.check else {
        panic!()
    };
    assert_eq!(
        (check.port, &*check.path, check.tls, check.head),
        (80, "/", None, false)
    );
    assert_eq!(
        check
            .expect
            .iter()
            .map(|range| (range.first, range.last))
            .collect::<Vec<_>>(),
        [(200, 399)]
    );
    let pin = "ab".repeat(32);
    let (https, warnings) = monitor(&format!(
        "{{https: {{tls: 'pin:{pin}', method: HEAD, host: x.example, path: '/a?b=c', expect: [200, 300-302]}}}}"
    ));
    let Check::Http(check) = &https.check else {
        panic!()
    };
    assert_eq!(
        (check.port, check.tls, check.head, check.expect.len()),
        (443, Some(TlsMode::Pin([0xab; 32])), true, 2)
    );
    assert!(warnings.is_empty());
    assert!(
        monitor("{https: {}}").1[0]
            .message
            .contains("without `host`")
    );
    let (tcp, _) = monitor("{tcp: {port: 6379, send: \"PING\\r\\n\", expect: PONG}}");
    let Check::Tcp(check) = &tcp.check else {
        panic!()
    };
    assert_eq!(
        (&*check.send, &*check.expect),
        (&b"PING\r\n"[..], &b"PONG"[..])
    );
}

#[test]
fn failover_by_default_takes_its_tiers_from_the_service() {
    let defaults = "defaults: {policy: {steer: failover}}\n";
    let text = format!(
        "{}{defaults}",
        with_service(&format!("policy: {{tiers: [[a], [b]]}}, {ENDPOINTS}"))
    );
    assert_eq!(accept(&text).0.services[0].policy.tiers.len(), 2);
    let text = format!("{}{defaults}", with_service(ENDPOINTS));
    assert!(
        super::parse(&text).unwrap_err()[0]
            .message
            .contains("needs `tiers`")
    );
}
