//! Faults: each with its path, its line and what would be right.

use super::{BASE, ENDPOINTS, parse};

/// Checks the faults of a text: path, line and a part of the message of each, and no other fault.
pub(super) fn check(text: &str, expected: &[(&str, usize, &str)]) {
    let faults = match parse(text) {
        Err(faults) => faults,
        Ok(_) => panic!("accepted:\n{text}"),
    };
    let shown: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let shown = shown.join("\n");
    assert_eq!(faults.len(), expected.len(), "{text}\n{shown}");
    for (fault, (path, line, part)) in faults.iter().zip(expected) {
        assert_eq!(
            (fault.path.as_str(), fault.line),
            (*path, *line),
            "{text}\n{shown}"
        );
        assert!(fault.message.contains(part), "{part:?} is not in\n{shown}");
        assert!(fault.column > 0 || fault.line == 0, "{shown}");
    }
}

/// Checks the one fault that some lines after `version: 1` have.
fn check_one(lines: &str, path: &str, line: usize, part: &str) {
    check(&format!("version: 1\n{lines}\n"), &[(path, line, part)]);
}

#[test]
fn all_faults_come_at_once_by_line() {
    let text = "\
version: 2
node: {nmae: x}
zones:
  - {name: bücher.example, nameservers: [{name: ns1.example.net}]}
clusters:
  - {name: a, cost: -1}
  - {name: a}
services:
  - {namespace: n, name: s, hostnames: [s.x], ttl: 0, endpoints: [{cluster: z, addresses: [1.2.3]}]}
  - namespace: n
    name: S
    hostnames: [\"a.*.x\"]
    policy: {steer: nearest, maps: [{countries: [UK], clusters: [aa]}]}
probes: {perTarget: 1e30}
peers: []
";
    check(
        text,
        &[
            ("version", 1, "only 1"),
            ("node.nmae", 2, "did you mean `name`"),
            ("zones[0].name", 4, "punycode"),
            ("clusters[0].cost", 6, "0 to 40000"),
            ("clusters[1].name", 7, "twice"),
            ("services[0].ttl", 9, "from 1 to 86400"),
            (
                "services[0].endpoints[0].cluster",
                9,
                "no cluster is called `z`",
            ),
            ("services[0].endpoints[0].addresses[0]", 9, "no IP address"),
            ("services[1].name", 11, "lower-case"),
            ("services[1].hostnames[0]", 12, "leftmost"),
            ("services[1].policy.steer", 13, "proximity"),
            ("services[1].policy.maps[0].countries[0]", 13, "GB"),
            ("services[1].policy.maps[0].clusters[0]", 13, "there are a"),
            ("probes.perTarget", 14, "whole number"),
            ("peers", 15, "not supported yet"),
        ],
    );
}

#[test]
fn shapes_and_keys() {
    check("", &[("", 0, "empty")]);
    check("# nothing\n", &[("", 0, "empty")]);
    check("[]\n", &[("", 1, "a map of keys")]);
    check("node: {}\n", &[("", 1, "needs `version`")]);
    check("version: \"1\"\n", &[("version", 1, "without quotes")]);
    check("version:\n", &[("version", 1, "no value")]);
    check_one("servces: []", "servces", 2, "did you mean `services`");
    check_one("zebra: []", "zebra", 2, "has version, node");
    check_one("node: {name: a, name: b}", "node.name", 2, "twice");
    check_one("node: {name: }", "node.name", 2, "no value");
    check_one("node: []", "node", 2, "map of keys");
    check_one("zones: {}", "zones", 2, "a list is wanted");
    check_one("services: {}", "services", 2, "a list is wanted");
    check_one("services:\n  -", "services[0]", 3, "a service is a map");
    check_one("services:\n  - x", "services[0]", 3, "a service is a map");
    check_one("dns: {tls: {}}", "dns.tls", 2, "not supported yet");
    check_one(
        "zones: [{name: a, nameservers: [{name: b}], fence: []}]",
        "zones[0].fence",
        2,
        "not supported yet",
    );
    check_one(
        "clusters: [{name: a, kubeconfig: {}}]",
        "clusters[0].kubeconfig",
        2,
        "not supported yet",
    );
}

#[test]
fn texts_that_are_no_yaml() {
    check("version: 1\nnode: {name: a\n", &[("", 3, "not YAML")]);
    check("version: 1\n\tnode: x\n", &[("", 1, "not YAML")]);
    check("a: *x\n", &[("", 1, "not YAML")]);
    check(
        "a: &x 1\nb: *x\nc: !y z\n",
        &[("", 1, "anchors"), ("", 2, "aliases"), ("", 3, "tags")],
    );
    // One item that is no YAML does not hide another's faults.
    let text = format!(
        "{BASE}services:\n  - {{namespace: n\n  - {{namespace: n, name: s, hostnames: [s.svc.example], x: 1, {ENDPOINTS}}}\n"
    );
    check(
        &text,
        &[
            ("services[0]", 10, "not YAML"),
            ("services[1].x", 10, "unknown key `x`"),
        ],
    );
}

#[test]
fn node_and_dns() {
    check_one("node: {name: a b}", "node.name", 2, "without spaces");
    check_one(
        "node: {location: {latitude: 1}}",
        "node.location",
        2,
        "needs `longitude`",
    );
    check_one(
        "node: {location: {latitude: 91, longitude: 0}}",
        "node.location.latitude",
        2,
        "-90 to 90",
    );
    check_one(
        "node: {location: {latitude: NaN, longitude: 0}}",
        "node.location.latitude",
        2,
        "a number",
    );
    check_one(
        "node: {stateDirectory: [x]}",
        "node.stateDirectory",
        2,
        "not a list",
    );
    check_one("dns: {listen: []}", "dns.listen", 2, "at least one");
    check_one(
        "dns: {listen: [localhost:53]}",
        "dns.listen[0]",
        2,
        "127.0.0.1:53",
    );
    check_one(
        "dns: {listen: [\"192.0.2.1:53\", \"192.0.2.1:53\"]}",
        "dns.listen[1]",
        2,
        "twice",
    );
    check_one(
        "dns: {listen: [\"224.0.0.1:53\"]}",
        "dns.listen[0]",
        2,
        "multicast",
    );
    check_one("dns: {workers: 1025}", "dns.workers", 2, "0 to 1024");
    check_one("dns: {workers: ٣}", "dns.workers", 2, "whole number");
    check_one("dns: {workers: 010}", "dns.workers", 2, "whole number");
    check_one("dns: {identity: \"a\\nb\"}", "dns.identity", 2, "printable");
    check_one(
        &format!("dns: {{identity: {}}}", "x".repeat(129)),
        "dns.identity",
        2,
        "128",
    );
    check_one("dns: {ecs: {trust: some}}", "dns.ecs.trust", 2, "all, none");
    check_one(
        "dns: {ecs: {trust: [10.0.0.1/8]}}",
        "dns.ecs.trust[0]",
        2,
        "10.0.0.0/8",
    );
    check_one(
        "dns: {ecs: {trust: {a: b}}}",
        "dns.ecs.trust",
        2,
        "all, none",
    );
    check_one(
        "dns: {proxyProtocol: {from: [10.0.0.1]}}",
        "dns.proxyProtocol.from[0]",
        2,
        "10.0.0.1/32",
    );
    check_one("dns: {tcp: {idle: 0}}", "dns.tcp.idle", 2, "100ms");
    check_one(
        "dns: {tcp: {connections: 10, perClient: 11}}",
        "dns.tcp.perClient",
        2,
        "more than `connections`",
    );
    check_one(
        "probes: {references: [a]}",
        "probes.references",
        2,
        "not supported yet",
    );
    check_one(
        "probes: {concurrency: 65537}",
        "probes.concurrency",
        2,
        "65536",
    );
    check_one(
        "admin: {listen: [\"0.0.0.0:8053\"]}",
        "admin.listen[0]",
        2,
        "tokens and TLS",
    );
    check_one(
        "admin: {tokens: []}",
        "admin.tokens",
        2,
        "not supported yet",
    );
    check_one(
        "dns: {listen: [\"127.0.0.1:53\"]}\nmetrics: {listen: [\"127.0.0.1:53\"]}",
        "metrics.listen[0]",
        3,
        "`dns.listen`",
    );
}

#[test]
fn zones() {
    let zone = |keys: &str| {
        format!("zones: [{{name: a.example, nameservers: [{{name: ns.example.net}}], {keys}}}]")
    };
    check_one(
        "zones: [{name: a.example}]",
        "zones[0]",
        2,
        "needs `nameservers`",
    );
    check_one(
        "zones: [{name: a.example, nameservers: []}]",
        "zones[0].nameservers",
        2,
        "needs `nameservers`",
    );
    check_one(
        "zones: [{nameservers: [{name: b}]}]",
        "zones[0]",
        2,
        "needs `name`",
    );
    check_one(
        "zones: [{name: \"*.a\", nameservers: [{name: b}]}]",
        "zones[0].name",
        2,
        "wildcard",
    );
    check_one(
        "zones: [{name: a..b, nameservers: [{name: b}]}]",
        "zones[0].name",
        2,
        "empty",
    );
    check_one(
        "zones: [{name: a.example, nameservers: [{name: ns.a.example}]}]",
        "zones[0].nameservers[0]",
        2,
        "needs `addresses`",
    );
    check_one(
        "zones: [{name: a.example, nameservers: [{name: b}, {name: B.}]}]",
        "zones[0].nameservers[1]",
        2,
        "twice",
    );
    check_one(
        "zones: [{name: a.example, nameservers: [{name: ns.a.example, addresses: [0.0.0.0]}]}]",
        "zones[0].nameservers[0].addresses[0]",
        2,
        "unspecified",
    );
    check_one(
        "zones: [{name: a, file: x}, {name: A., file: y}]",
        "zones[1].name",
        2,
        "twice",
    );
    check_one(
        "zones: [{name: a, nameservers: [{name: b}]}, {name: c.a, file: y}]",
        "zones[1].name",
        2,
        "NS records for `c.a`",
    );
    check_one(
        &zone("contact: a b"),
        "zones[0].contact",
        2,
        "hostmaster@example.com",
    );
    check_one(
        &zone("contact: \"@example.com\""),
        "zones[0].contact",
        2,
        "hostmaster@example.com",
    );
    check_one(&zone("ttl: 0"), "zones[0].ttl", 2, "1 to 86400");
    check_one(&zone("ttl: 500ms"), "zones[0].ttl", 2, "whole seconds");
    check_one(
        &zone("nsTtl: 2147483648"),
        "zones[0].nsTtl",
        2,
        "2147483647",
    );
    check_one(
        &zone("soa: {refresh: 0}"),
        "zones[0].soa.refresh",
        2,
        "from 1",
    );
    check_one(
        &zone("soa: {minimum: 0}"),
        "zones[0].soa.minimum",
        2,
        "unknown key",
    );
    check_one(&zone("file: \"\""), "zones[0].file", 2, "path");
}

#[test]
fn places() {
    check_one("groups: {EEA: [DE]}", "groups.EEA", 2, "built in");
    check_one("groups: {x: [XX]}", "groups.x[0]", 2, "no country");
    check_one("groups: {x: []}", "groups.x", 2, "no country");
    check_one("groups: {\"a b\": [DE]}", "groups.a b", 2, "letters");
    check_one("groups: [x]", "groups", 2, "is a map");
    check_one("clusters: [{name: A}]", "clusters[0].name", 2, "lower-case");
    check_one("clusters: [{region: x}]", "clusters[0]", 2, "needs `name`");
    check_one(
        "clusters: [{name: a, provider: aws, region: us-east1}]",
        "clusters[0].region",
        2,
        "did you mean `us-east-1`",
    );
    check_one(
        "clusters: [{name: a, provider: awss, region: us-east-1}]",
        "clusters[0].provider",
        2,
        "one of aws",
    );
    check_one(
        "clusters: [{name: a, location: {latitude: 1}}]",
        "clusters[0].location.latitude",
        2,
        "`longitude` is missing",
    );
    check_one(
        "clusters: [{name: a, location: {}}]",
        "clusters[0].location",
        2,
        "needs",
    );
    check_one(
        "clusters: [{name: a, location: {continent: XX}}]",
        "clusters[0].location.continent",
        2,
        "AF, AN",
    );
    check_one(
        "clusters: [{name: a, location: {country: EL}}]",
        "clusters[0].location.country",
        2,
        "Greece",
    );
    check_one(
        "clusters: [{name: a, cost: 40001}]",
        "clusters[0].cost",
        2,
        "40000",
    );
    let over = |keys: &str| {
        format!(
            "clusters: [{{name: a, location: {{country: DE}}}}]\ngeoip: {{overrides: [{{{keys}}}]}}"
        )
    };
    check_one(
        &over("prefix: 10.0.0.1/8, cluster: a"),
        "geoip.overrides[0].prefix",
        3,
        "10.0.0.0/8",
    );
    check_one(
        &over("prefix: 10.0.0.0/8"),
        "geoip.overrides[0]",
        3,
        "needs `cluster`",
    );
    check_one(
        &over("prefix: 10.0.0.0/8, cluster: a, country: DE"),
        "geoip.overrides[0]",
        3,
        "not both",
    );
    check_one(
        &over("prefix: 10.0.0.0/8, cluster: b"),
        "geoip.overrides[0].cluster",
        3,
        "no cluster",
    );
    check_one(
        &over("prefix: 10.0.0.0/8, country: DE, subdivision: US-CA"),
        "geoip.overrides[0].subdivision",
        3,
        "another country",
    );
    check_one(
        &over("prefix: 10.0.0.0/8, latitude: 1"),
        "geoip.overrides[0].latitude",
        3,
        "longitude",
    );
    check_one(
        &over("prefix: 10.0.0.0/8, country: DE}, {prefix: 10.0.0.0/8, country: DE"),
        "geoip.overrides[1].prefix",
        3,
        "two overrides",
    );
    check_one(
        "geoip: {databases: [a, a]}",
        "geoip.databases[1]",
        2,
        "twice",
    );
}

#[test]
fn one_fault_of_a_name_does_not_make_others() {
    // The zone and the cluster are meant to exist: what refers to them is left alone.
    let text = format!(
        "version: 1\nzones: [{{name: a..b, file: x}}]\nclusters: [{{name: A}}]\nservices:\n  - {{namespace: n, name: s, hostnames: [x.y], policy: {{tiers: [[a]]}}, {ENDPOINTS}}}\n"
    );
    check(
        &text,
        &[
            ("zones[0].name", 2, "empty"),
            ("clusters[0].name", 3, "lower-case"),
        ],
    );
}

#[test]
fn reports_are_bounded() {
    let many: String = (0..3_000)
        .map(|n| {
            format!(
                "  - {{namespace: n, name: s{n}, hostnames: [x{n}.nowhere], ttl: x, {ENDPOINTS}}}\n"
            )
        })
        .collect();
    let faults = parse(&format!("{BASE}services:\n{many}")).unwrap_err();
    assert_eq!(faults.len(), 1001);
    assert_eq!(
        faults.last().map(ToString::to_string),
        Some("5000 more faults".to_owned())
    );
    let long = format!("version: 1\nnode: {{x{}: 1}}\n", "y".repeat(100_000));
    let faults = parse(&long).unwrap_err();
    assert!(faults[0].to_string().len() < 2_000);
}

#[test]
fn a_fault_shows_its_place() {
    let faults = parse("version: 1\nnode:\n  nmae: x\n").unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "line 3, column 3: node.nmae: unknown key `nmae`; did you mean `name`?"
    );
}
