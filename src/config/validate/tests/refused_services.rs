//! Faults of services, their policies, monitors and endpoints.

use super::refused::{check, rows};
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

const POLICIES: &str = r#"
policy: {steer: weihgted} => .policy.steer => did you mean `weighted`
policy: {steer: failover} => .policy => needs `tiers`
policy: {tiers: [[a, x]]} => .policy.tiers[0][1] => no cluster is called `x`
policy: {tiers: [["region:x"]]} => .policy.tiers[0][0] => matches no cluster
policy: {tiers: [[]]} => .policy.tiers[0] => at least one
policy: {tiers: [a]} => .policy.tiers[0] => a list
policy: {tiers: [["label:x=y"]]} => .policy.tiers[0][0] => no selector
policy: {weights: {a: 65536}} => .policy.weights.a => 65535
policy: {weights: {a: -1}} => .policy.weights.a => 65535
policy: {weights: {a: "1"}} => .policy.weights.a => without quotes
policy: {weights: {a: 1, "cluster:a": 2}} => .policy.weights.cluster:a => twice
policy: {weights: [a]} => .policy.weights => map
policy: {bias: {a: 100}} => .policy.bias.a => -99 to 99
policy: {maps: [{continents: [EU]}]} => .policy.maps[0] => needs `clusters`
policy: {maps: [{continents: [], clusters: [a]}]} => .policy.maps[0].continents => empty
policy: {maps: [{asns: [-1], clusters: [a]}]} => .policy.maps[0].asns[0] => whole number
policy: {maps: [{groups: [EU27], clusters: [a]}]} => .policy.maps[0].groups[0] => did you mean `EU-27`
policy: {maps: [{clusters: []}]} => .policy.maps[0].clusters => at least one
policy: {fence: [{clients: ["group:x"], clusters: [a]}], fenceAnswer: 192.0.2.9} => .policy.fence[0].clients[0] => no group
policy: {fence: [{clients: ["10.0.0.1/8"], clusters: [a]}], fenceAnswer: 192.0.2.9} => .policy.fence[0].clients[0] => 10.0.0.0/8
policy: {fence: [{clients: ["country:UK"], clusters: [a]}], fenceAnswer: 192.0.2.9} => .policy.fence[0].clients[0] => GB
policy: {fence: [{clients: [EU], clusters: [a]}], fenceAnswer: 192.0.2.9} => .policy.fence[0].clients[0] => no selector
policy: {fence: [{clients: [], clusters: [a]}], fenceAnswer: 192.0.2.9} => .policy.fence[0].clients => at least one
policy: {fence: [{clients: ["*"]}], fenceAnswer: 192.0.2.9} => .policy.fence[0] => needs `clusters`
policy: {fence: } => .policy.fence => no value
policy: {fenceAnswer: 0.0.0.0} => .policy.fenceAnswer => unspecified
policy: {fenceAnswer: []} => .policy.fenceAnswer => 1 to 255
policy: {fenceAnswer: {addresses: [192.0.2.1], hostname: x.example}} => .policy.fenceAnswer => either
policy: {fallback: {}} => .policy.fallback => either
policy: {fallback: {addresses: []}} => .policy.fallback.addresses => 1 to 255
policy: {fallback: x.example} => .policy.fallback => map
policy: {fallback: {hostname: 192.0.2.1}} => .policy.fallback.hostname => write `addresses: [192.0.2.1]`
policy: {fenceAnswer: {hostname: 192.0.2.1}} => .policy.fenceAnswer.hostname => write `addresses: [192.0.2.1]`
policy: {fenceAnswer: 192.0.2.1.} => .policy.fenceAnswer => not a host name
policy: {fallback: {hostname: s.svc.example}} => .hostnames => CNAME to itself
policy: {panic: 1.5} => .policy.panic => 0 to 1
policy: {answers: 0} => .policy.answers => 1 to 32
policy: {failback: manual} => .policy.failback => not supported yet
policy: {affinity: subnet} => .policy.affinity => not supported yet
policy: {alternates: 1} => .policy.alternates => not supported yet
policy: {weightsFrom: hub} => .policy.weightsFrom => none, endpoints
policy: {weightsFrom: endpoints} => .policy.weightsFrom => goes into `defaults.policy`
policy: {spill: {high: 0.8}} => .policy.spill => not supported yet
policy: none => .policy => map of keys and values, such as {steer: proximity, tiers: [[…]]}
"#;

#[test]
fn policies() {
    for (keys, path, _, part) in rows(POLICIES) {
        check_service(&keys, path, part);
    }
}

const MONITORS: &str = r#"
monitor: {} => .monitor => needs one of
monitor: {interval: 2s} => .monitor => needs one of
monitor: http => .monitor => write none, or a map such as {http: {path: /healthz}}
monitor: tcp => .monitor => {tcp: {port: 443}}
monitor: nnoe => .monitor => did you mean `none`
monitor: {http: {}, tcp: {port: 1}} => .monitor.tcp => one check
monitor: {tcp: {}} => .monitor.tcp => needs `port`
monitor: {tcp: {port: 0}} => .monitor.tcp.port => 1 to 65535
monitor: {tcp: {port: 1, send: ""}} => .monitor.tcp.send => 1 to 1024
monitor: {http: {path: x}} => .monitor.http.path => begins with `/`
monitor: {http: {path: "/a b"}} => .monitor.http.path => without spaces
monitor: {http: {path: "/a\r\nX: y"}} => .monitor.http.path => /a\r\nX: y
monitor: {http: {host: "a\r\nb"}} => .monitor.http.host => letters
monitor: {http: {expect: [99]}} => .monitor.http.expect[0] => 100 to 599
monitor: {http: {expect: 399-200}} => .monitor.http.expect => 200-399
monitor: {http: {expect: []}} => .monitor.http.expect => 1 to 64
monitor: {http: {method: POST}} => .monitor.http.method => GET, HEAD
monitor: {http: {tls: skip}} => .monitor.http.tls => unknown key
monitor: {https: {tls: "pin:00", host: x}} => .monitor.https.tls => 64 hexadecimal
monitor: {http: {}, interval: 99ms} => .monitor.interval => 100ms
monitor: {http: {}, interval: 1s, timeout: 2s} => .monitor => longer than the interval
monitor: {http: {}, rise: 21} => .monitor.rise => 1 to 20
monitor: {http: {}, fall: 0} => .monitor.fall => 1 to 20
monitor: {grpc: {}} => .monitor.grpc => not supported yet
monitor: endpoints => .monitor => not supported yet
"#;

#[test]
fn monitors() {
    for (keys, path, _, part) in rows(MONITORS) {
        check_service(&keys, path, part);
    }
    let text = format!(
        "{}defaults: {{monitor: {{timeout: 5s}}}}\n",
        with_service(&format!("monitor: {{http: {{}}}}, {ENDPOINTS}"))
    );
    check(
        &text,
        &[("services[0].monitor", 9, "longer than the interval")],
    );
}

const ENDPOINT_FAULTS: &str = r#"
[{cluster: a}] => .endpoints[0] => needs `addresses`
[192.0.2.1] => .endpoints[0] => such as {cluster: …, addresses: [192.0.2.10]}
[{cluster: a, addresses: []}] => .endpoints[0].addresses => at least one
[{addresses: [192.0.2.1]}] => .endpoints[0] => needs `cluster`
[{cluster: a, addresses: ["::ffff:192.0.2.1"]}] => .endpoints[0].addresses[0] => write 192.0.2.1
[{cluster: a, addresses: [255.255.255.255]}] => .endpoints[0].addresses[0] => broadcast
[{cluster: a, addresses: ["ff02::1"]}] => .endpoints[0].addresses[0] => multicast
[{cluster: a, addresses: [010.0.0.1]}] => .endpoints[0].addresses[0] => no IP address
[{cluster: a, addresses: [192.0.2.1, 192.0.2.1]}] => .endpoints[0].addresses[1] => twice
[{cluster: a, addresses: [192.0.2.1], weight: 65536}] => .endpoints[0].weight => 65535
[{cluster: a, addresses: [192.0.2.1], clients: []}] => .endpoints[0].clients => nobody
[{cluster: a, addresses: [192.0.2.1], capacity: 1}] => .endpoints[0].capacity => not supported yet
[{cluster: a, addresses: [192.0.2.1], hostname: x.example}] => .endpoints[0].hostname => either
[{cluster: a, hostname: s.svc.example}] => .endpoints => in a circle
[{cluster: a, hostname: x.example}, {cluster: a, hostname: X.example.}] => .endpoints[1].hostname => twice
[{cluster: a, hostname: "*.example"}] => .endpoints[0].hostname => `*`
[{cluster: a, hostname: 10.0.0.1}] => .endpoints[0].hostname => `10.0.0.1` is an address; write `addresses: [10.0.0.1]`
[{cluster: a, hostname: 10.0.0.1.}] => .endpoints[0].hostname => write `addresses: [10.0.0.1]`
[{cluster: a, hostname: "2001:db8::1"}] => .endpoints[0].hostname => write `addresses: ["2001:db8::1"]`
"#;

const SERVICE_FAULTS: &str = r#"
namespace: n, name: s => services[0] => needs `hostnames`
namespace: n, name: s, hostnames: [] => services[0].hostnames => 1 to 1000
namespace: N, name: s, hostnames: [a.svc.example] => services[0].namespace => lower-case
namespace: n, name: s, hostnames: [a.example] => services[0].hostnames[0] => svc.example
namespace: n, name: s, hostnames: ["a b.svc.example"] => services[0].hostnames[0] => letters
namespace: n, name: s, hostnames: ["a\nb.svc.example"] => services[0].hostnames[0] => a\nb
namespace: n, name: s, hostnames: [straße.svc.example] => services[0].hostnames[0] => punycode
namespace: n, name: s, hostnames: [-a.svc.example] => services[0].hostnames[0] => begins
namespace: n, name: s, hostnames: ["*.*.svc.example"] => services[0].hostnames[0] => leftmost
namespace: n, name: s, hostnames: [a.svc.example, A.svc.example.] => services[0].hostnames[1] => `a.svc.example` is listed twice
namespace: n, name: s, hostnames: [svc.example], policy: {fence: [{clients: ["*"], clusters: ["*"]}], fenceAnswer: {hostname: x.example}} => services[0].hostnames => apex
"#;

#[test]
fn services_and_endpoints() {
    for (endpoints, path, _, part) in rows(ENDPOINT_FAULTS) {
        check_endpoints(&endpoints, path, part);
    }
    for (keys, path, _, part) in rows(SERVICE_FAULTS) {
        let text = format!("{BASE}services:\n  - {{{keys}, {ENDPOINTS}}}\n");
        check(&text, &[(path, 9, part)]);
    }
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
