//! Faults of services, their policies, monitors and endpoints.

use super::refused::check;
use super::{BASE, ENDPOINTS, with_service};

/// Checks the one fault of a service with these keys and right endpoints.
fn check_service(keys: &str, path: &str, part: &str) {
    check(
        &with_service(&format!("{keys}, {ENDPOINTS}")),
        &[(&format!("services[0]{path}"), 9, part)],
    );
}

/// Checks the one fault of a service with these endpoints.
fn check_endpoints(endpoints: &str, path: &str, part: &str) {
    check(
        &with_service(&format!("endpoints: {endpoints}")),
        &[(&format!("services[0]{path}"), 9, part)],
    );
}

#[test]
fn policies() {
    check_service(
        "policy: {steer: weihgted}",
        ".policy.steer",
        "did you mean `weighted`",
    );
    check_service("policy: {steer: failover}", ".policy", "needs `tiers`");
    check_service(
        "policy: {tiers: [[a, x]]}",
        ".policy.tiers[0][1]",
        "no cluster is called `x`",
    );
    check_service(
        "policy: {tiers: [[\"region:x\"]]}",
        ".policy.tiers[0][0]",
        "matches no cluster",
    );
    check_service("policy: {tiers: [[]]}", ".policy.tiers[0]", "at least one");
    check_service("policy: {tiers: [a]}", ".policy.tiers[0]", "a list");
    check_service(
        "policy: {tiers: [[\"label:x=y\"]]}",
        ".policy.tiers[0][0]",
        "no selector",
    );
    check_service(
        "policy: {weights: {a: 65536}}",
        ".policy.weights.a",
        "65535",
    );
    check_service("policy: {weights: {a: -1}}", ".policy.weights.a", "65535");
    check_service(
        "policy: {weights: {a: \"1\"}}",
        ".policy.weights.a",
        "without quotes",
    );
    check_service(
        "policy: {weights: {a: 1, \"cluster:a\": 2}}",
        ".policy.weights.cluster:a",
        "twice",
    );
    check_service("policy: {weights: [a]}", ".policy.weights", "map");
    check_service("policy: {bias: {a: 100}}", ".policy.bias.a", "-99 to 99");
    check_service(
        "policy: {maps: [{continents: [EU]}]}",
        ".policy.maps[0]",
        "needs `clusters`",
    );
    check_service(
        "policy: {maps: [{continents: [], clusters: [a]}]}",
        ".policy.maps[0].continents",
        "empty",
    );
    check_service(
        "policy: {maps: [{asns: [-1], clusters: [a]}]}",
        ".policy.maps[0].asns[0]",
        "whole number",
    );
    check_service(
        "policy: {maps: [{groups: [EU27], clusters: [a]}]}",
        ".policy.maps[0].groups[0]",
        "did you mean `EU-27`",
    );
    check_service(
        "policy: {maps: [{clusters: []}]}",
        ".policy.maps[0].clusters",
        "at least one",
    );
    check_service(
        "policy: {fence: [{clients: [\"group:x\"], clusters: [a]}], fenceAnswer: 192.0.2.9}",
        ".policy.fence[0].clients[0]",
        "no group",
    );
    check_service(
        "policy: {fence: [{clients: [\"10.0.0.1/8\"], clusters: [a]}], fenceAnswer: 192.0.2.9}",
        ".policy.fence[0].clients[0]",
        "10.0.0.0/8",
    );
    check_service(
        "policy: {fence: [{clients: [\"country:UK\"], clusters: [a]}], fenceAnswer: 192.0.2.9}",
        ".policy.fence[0].clients[0]",
        "GB",
    );
    check_service(
        "policy: {fence: [{clients: [EU], clusters: [a]}], fenceAnswer: 192.0.2.9}",
        ".policy.fence[0].clients[0]",
        "no selector",
    );
    check_service(
        "policy: {fence: [{clients: [], clusters: [a]}], fenceAnswer: 192.0.2.9}",
        ".policy.fence[0].clients",
        "at least one",
    );
    check_service(
        "policy: {fence: [{clients: [\"*\"]}], fenceAnswer: 192.0.2.9}",
        ".policy.fence[0]",
        "needs `clusters`",
    );
    check_service("policy: {fence: }", ".policy.fence", "no value");
    check_service(
        "policy: {fenceAnswer: 0.0.0.0}",
        ".policy.fenceAnswer",
        "unspecified",
    );
    check_service(
        "policy: {fenceAnswer: []}",
        ".policy.fenceAnswer",
        "at least one",
    );
    check_service(
        "policy: {fenceAnswer: {addresses: [192.0.2.1], hostname: x.example}}",
        ".policy.fenceAnswer",
        "either",
    );
    check_service("policy: {fallback: {}}", ".policy.fallback", "either");
    check_service(
        "policy: {fallback: {addresses: []}}",
        ".policy.fallback.addresses",
        "at least one",
    );
    check_service("policy: {fallback: x.example}", ".policy.fallback", "map");
    check_service(
        "policy: {fallback: {hostname: s.svc.example}}",
        ".hostnames",
        "CNAME to itself",
    );
    check_service("policy: {panic: 1.5}", ".policy.panic", "0 to 1");
    check_service("policy: {answers: 0}", ".policy.answers", "1 to 32");
    check_service(
        "policy: {failback: manual}",
        ".policy.failback",
        "not supported yet",
    );
    check_service(
        "policy: {affinity: subnet}",
        ".policy.affinity",
        "not supported yet",
    );
    check_service(
        "policy: {alternates: 1}",
        ".policy.alternates",
        "not supported yet",
    );
    check_service(
        "policy: {weightsFrom: hub}",
        ".policy.weightsFrom",
        "not supported yet",
    );
    check_service(
        "policy: {spill: {high: 0.8}}",
        ".policy.spill",
        "not supported yet",
    );
    check_service("policy: none", ".policy", "map");
}

#[test]
fn monitors() {
    check_service("monitor: {}", ".monitor", "needs one of");
    check_service("monitor: {interval: 2s}", ".monitor", "needs one of");
    check_service("monitor: http", ".monitor", "none");
    check_service(
        "monitor: {http: {}, tcp: {port: 1}}",
        ".monitor.tcp",
        "one check",
    );
    check_service("monitor: {tcp: {}}", ".monitor.tcp", "needs `port`");
    check_service(
        "monitor: {tcp: {port: 0}}",
        ".monitor.tcp.port",
        "1 to 65535",
    );
    check_service(
        "monitor: {tcp: {port: 1, send: \"\"}}",
        ".monitor.tcp.send",
        "1 to 1024",
    );
    check_service(
        "monitor: {http: {path: x}}",
        ".monitor.http.path",
        "begins with `/`",
    );
    check_service(
        "monitor: {http: {path: \"/a b\"}}",
        ".monitor.http.path",
        "without spaces",
    );
    check_service(
        "monitor: {http: {path: \"/a\\r\\nX: y\"}}",
        ".monitor.http.path",
        "/a\\r\\nX: y",
    );
    check_service(
        "monitor: {http: {host: \"a\\r\\nb\"}}",
        ".monitor.http.host",
        "letters",
    );
    check_service(
        "monitor: {http: {expect: [99]}}",
        ".monitor.http.expect[0]",
        "100 to 599",
    );
    check_service(
        "monitor: {http: {expect: 399-200}}",
        ".monitor.http.expect",
        "200-399",
    );
    check_service(
        "monitor: {http: {expect: []}}",
        ".monitor.http.expect",
        "1 to 64",
    );
    check_service(
        "monitor: {http: {method: POST}}",
        ".monitor.http.method",
        "GET, HEAD",
    );
    check_service(
        "monitor: {http: {tls: skip}}",
        ".monitor.http.tls",
        "unknown key",
    );
    check_service(
        "monitor: {https: {tls: \"pin:00\", host: x}}",
        ".monitor.https.tls",
        "64 hexadecimal",
    );
    check_service(
        "monitor: {http: {}, interval: 99ms}",
        ".monitor.interval",
        "100ms",
    );
    check_service(
        "monitor: {http: {}, interval: 1s, timeout: 2s}",
        ".monitor",
        "longer than the interval",
    );
    check_service("monitor: {http: {}, rise: 21}", ".monitor.rise", "1 to 20");
    check_service("monitor: {http: {}, fall: 0}", ".monitor.fall", "1 to 20");
    check_service("monitor: {grpc: {}}", ".monitor.grpc", "not supported yet");
    let text = format!(
        "{}defaults: {{monitor: {{timeout: 5s}}}}\n",
        with_service(&format!("monitor: {{http: {{}}}}, {ENDPOINTS}"))
    );
    check(
        &text,
        &[("services[0].monitor", 9, "longer than the interval")],
    );
}

#[test]
fn services_and_endpoints() {
    check_endpoints("[{cluster: a}]", ".endpoints[0]", "needs `addresses`");
    check_endpoints(
        "[{cluster: a, addresses: []}]",
        ".endpoints[0].addresses",
        "at least one",
    );
    check_endpoints(
        "[{addresses: [192.0.2.1]}]",
        ".endpoints[0]",
        "needs `cluster`",
    );
    check_endpoints(
        "[{cluster: a, addresses: [\"::ffff:192.0.2.1\"]}]",
        ".endpoints[0].addresses[0]",
        "write 192.0.2.1",
    );
    check_endpoints(
        "[{cluster: a, addresses: [255.255.255.255]}]",
        ".endpoints[0].addresses[0]",
        "broadcast",
    );
    check_endpoints(
        "[{cluster: a, addresses: [\"ff02::1\"]}]",
        ".endpoints[0].addresses[0]",
        "multicast",
    );
    check_endpoints(
        "[{cluster: a, addresses: [010.0.0.1]}]",
        ".endpoints[0].addresses[0]",
        "no IP address",
    );
    check_endpoints(
        "[{cluster: a, addresses: [192.0.2.1, 192.0.2.1]}]",
        ".endpoints[0].addresses[1]",
        "twice",
    );
    check_endpoints(
        "[{cluster: a, addresses: [192.0.2.1], weight: 65536}]",
        ".endpoints[0].weight",
        "65535",
    );
    check_endpoints(
        "[{cluster: a, addresses: [192.0.2.1], clients: []}]",
        ".endpoints[0].clients",
        "nobody",
    );
    check_endpoints(
        "[{cluster: a, addresses: [192.0.2.1], capacity: 1}]",
        ".endpoints[0].capacity",
        "not supported yet",
    );
    check_endpoints(
        "[{cluster: a, addresses: [192.0.2.1], hostname: x.example}]",
        ".endpoints[0].hostname",
        "either",
    );
    check_endpoints(
        "[{cluster: a, addresses: [192.0.2.1]}, {cluster: b, hostname: x.example}]",
        ".endpoints[1]",
        "not supported yet",
    );
    check_endpoints(
        "[{cluster: a, hostname: s.svc.example}]",
        ".hostnames",
        "itself",
    );
    check_endpoints(
        "[{cluster: a, hostname: \"*.example\"}]",
        ".endpoints[0].hostname",
        "`*`",
    );
    let service = |keys: &str| format!("{BASE}services:\n  - {{{keys}, {ENDPOINTS}}}\n");
    let one = |keys: &str, path: &str, part: &str| check(&service(keys), &[(path, 9, part)]);
    one("namespace: n, name: s", "services[0]", "needs `hostnames`");
    one(
        "namespace: n, name: s, hostnames: []",
        "services[0].hostnames",
        "1 to 1000",
    );
    one(
        "namespace: N, name: s, hostnames: [a.svc.example]",
        "services[0].namespace",
        "lower-case",
    );
    one(
        "namespace: n, name: s, hostnames: [a.example]",
        "services[0].hostnames[0]",
        "svc.example",
    );
    one(
        "namespace: n, name: s, hostnames: [\"a b.svc.example\"]",
        "services[0].hostnames[0]",
        "letters",
    );
    one(
        "namespace: n, name: s, hostnames: [\"a\\nb.svc.example\"]",
        "services[0].hostnames[0]",
        "a\\nb",
    );
    one(
        "namespace: n, name: s, hostnames: [straße.svc.example]",
        "services[0].hostnames[0]",
        "punycode",
    );
    one(
        "namespace: n, name: s, hostnames: [-a.svc.example]",
        "services[0].hostnames[0]",
        "begins",
    );
    one(
        "namespace: n, name: s, hostnames: [\"*.*.svc.example\"]",
        "services[0].hostnames[0]",
        "leftmost",
    );
    one(
        "namespace: n, name: s, hostnames: [a.svc.example, A.svc.example.]",
        "services[0].hostnames[1]",
        "services[0]",
    );
    one(
        "namespace: n, name: s, hostnames: [svc.example], policy: {fallback: {hostname: x.example}}",
        "services[0].hostnames",
        "apex",
    );
    let two = |first: &str, second: &str| {
        format!("{BASE}services:\n  - {{{first}, {ENDPOINTS}}}\n  - {{{second}, {ENDPOINTS}}}\n")
    };
    check(
        &two(
            "namespace: n, name: s, hostnames: [a.svc.example]",
            "namespace: n, name: s, hostnames: [A.svc.example]",
        ),
        &[
            ("services[1].name", 10, "services[0]"),
            ("services[1].hostnames[0]", 10, "services[0]"),
        ],
    );
}
