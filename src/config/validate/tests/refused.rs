//! Faults: each with its path, its line and what would be right.

use super::{BASE, ENDPOINTS, parse, with_service};
use crate::config::faults::Severity;

/// Checks the faults of a text: path, line and a part of the message of each, and no other fault.
pub(super) fn check(text: &str, expected: &[(&str, usize, &str)]) {
    let Err(mut faults) = parse(text) else {
        panic!("accepted:\n{text}")
    };
    // Warnings come behind the faults.
    faults.retain(|fault| fault.severity == Severity::Fault);
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

/// Iterates over the rows of a table: YAML, path, line if said, part of the message. `⏎` is a line break.
pub(super) fn rows(table: &str) -> impl Iterator<Item = (String, &str, Option<usize>, &str)> {
    table.lines().filter(|row| !row.is_empty()).map(|row| {
        let mut cells = row.split(" => ");
        let mut cell = || {
            cells
                .next()
                .unwrap_or_else(|| panic!("too few cells: {row}"))
        };
        let (yaml, place, part) = (cell(), cell(), cell());
        let (path, line) = place
            .split_once(" @")
            .map_or((place, None), |(path, line)| (path, line.parse().ok()));
        (yaml.replace('⏎', "\n"), path, line, part)
    })
}

/// Checks a table of YAML after `version: 1`, each row with its one fault: on the last line, unless the row says another.
pub(super) fn check_table(table: &str, dress: impl Fn(&str) -> String) {
    for (yaml, path, line, part) in rows(table) {
        let lines = dress(&yaml).replace('⏎', "\n");
        let last = 1 + lines.lines().count();
        check_one(&lines, path, line.unwrap_or(last), part);
    }
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
quorum: all
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
            ("quorum", 15, "not supported yet"),
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
    let twice = format!(
        "{}services: []
",
        with_service(ENDPOINTS)
    );
    check(&twice, &[("services", 10, "twice")]);
    check_one("node:\nnode: {}", "node", 3, "twice");
    check_one("servces: []", "servces", 2, "did you mean `services`");
    for (peers, place, words) in [
        ("{url: ns2.example.com}", "peers[0].url", "no URL"),
        (
            "{url: \"http://ns2.example.com:8053\"}",
            "peers[0].url",
            "clear text",
        ),
        (
            "{url: \"ftp://ns2.example.com\"}",
            "peers[0].url",
            "no scheme",
        ),
        (
            "{url: \"https://a@b/c\"}",
            "peers[0].url",
            "more than scheme",
        ),
        ("{tokenFile: x}", "peers[0]", "needs `url`"),
        (
            "{url: \"https://a\"}, {url: \"https://a/\"}",
            "peers[1].url",
            "twice",
        ),
        (
            "{url: \"https://a\", token: x}",
            "peers[0].token",
            "tokenFile",
        ),
    ] {
        check_one(&format!("peers: [{peers}]"), place, 2, words);
    }
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
}

#[test]
fn texts_that_are_no_yaml() {
    check("version: 1\nnode: {name: a\n", &[("", 3, "not YAML")]);
    // Indented by a tab, the line with the tab is meant, not the end of the one before.
    let faults = parse("version: 1\n\tnode: x\n").unwrap_err();
    assert_eq!((faults[0].line, faults[0].column), (2, 1), "{faults:?}");
    assert!(faults[0].message.contains("tab"), "{faults:?}");
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

const NODE_AND_DNS: &str = r#"
node: {name: a b} => node.name => without spaces
node: {location: {latitude: 1}} => node.location => needs `longitude`
node: {location: {latitude: 91, longitude: 0}} => node.location.latitude => -90 to 90
node: {location: {latitude: NaN, longitude: 0}} => node.location.latitude => a number
node: {stateDirectory: [x]} => node.stateDirectory => not a list
dns: {listen: []} => dns.listen => at least one
dns: {listen: [localhost:53]} => dns.listen[0] => 127.0.0.1:53
dns: {listen: ["192.0.2.1:53", "192.0.2.1:53"]} => dns.listen[1] => twice
dns: {listen: ["224.0.0.1:53"]} => dns.listen[0] => multicast
dns: {workers: 1025} => dns.workers => 0 to 1024
dns: {workers: ٣} => dns.workers => whole number
dns: {workers: 010} => dns.workers => whole number
dns: {identity: "a\nb"} => dns.identity => printable
dns: {ecs: {trust: some}} => dns.ecs.trust => all, none
dns: {ecs: {trust: [10.0.0.1/8]}} => dns.ecs.trust[0] => 10.0.0.0/8
dns: {ecs: {trust: {a: b}}} => dns.ecs.trust => all, none
dns: {proxyProtocol: {from: [10.0.0.1]}} => dns.proxyProtocol.from[0] => 10.0.0.1/32
dns: {tcp: {idle: 0}} => dns.tcp.idle => 100ms
dns: {tcp: {connections: 10, perClient: 11}} => dns.tcp.perClient => more than `connections`
probes: {references: []} => probes.references => not supported yet
probes: {concurrency: 65537} => probes.concurrency => 65536
resolver: {nameservers: 192.0.2.53} => resolver.nameservers => a list
resolver: {nameservers: [dns.example]} => resolver.nameservers[0] => address of a server
resolver: {nameservers: ["192.0.2.53:0"]} => resolver.nameservers[0] => address of a server
resolver: {nameservers: ["192.0.2.53:53:53"]} => resolver.nameservers[0] => address of a server
resolver: {nameservers: [0.0.0.0]} => resolver.nameservers[0] => unspecified
resolver: {nameservers: ["[ff02::fb]:5353"]} => resolver.nameservers[0] => multicast
resolver: {nameservers: ["::ffff:192.0.2.53"]} => resolver.nameservers[0] => write 192.0.2.53
resolver: {nameservers: [192.0.2.53, "192.0.2.53:53"]} => resolver.nameservers[1] => twice
resolver: {nameservers: [127.0.0.1]} => resolver.nameservers[0] => ask itself
resolver: {nameservers: ["[::1]:53"]} => resolver.nameservers[0] => ask itself
resolver: {search: [a.example]} => resolver.search => unknown key
dns: {listen: ["192.0.2.1:5353"]}⏎resolver: {nameservers: ["192.0.2.1:5353"]} => resolver.nameservers[0] => ask itself
queryLog: {sample: 10} => queryLog => needs `file`
queryLog: {file: ""} => queryLog.file => path
queryLog: {file: x, sample: 0} => queryLog.sample => 1 to
queryLog: {file: x, prefixV4: 33} => queryLog.prefixV4 => 0 to 32
queryLog: {file: x, prefixV6: 129} => queryLog.prefixV6 => 0 to 128
queryLog: {file: x, maxBytes: 100} => queryLog.maxBytes => 65536
queryLog: {file: x, keep: 0} => queryLog.keep => 1 to 100
telemetry: {otlp: {}} => telemetry.otlp => needs `endpoint`
telemetry: {otlp: {endpoint: "ftp://a"}} => telemetry.otlp.endpoint => collector
telemetry: {otlp: {endpoint: "http://"}} => telemetry.otlp.endpoint => collector
telemetry: {otlp: {endpoint: "http://u:p@a"}} => telemetry.otlp.endpoint => `headersFile`
telemetry: {otlp: {endpoint: "http://a:0"}} => telemetry.otlp.endpoint => collector
telemetry: {otlp: {endpoint: "http://a", sample: 1.5}} => telemetry.otlp.sample => 0 to 1
admin: {listen: ["0.0.0.0:8053"]} => admin.listen[0] => needs `admin.tls`, and `admin.tokens` or
admin: {listen: ["0.0.0.0:8053"], tokens: []} => admin.listen[0] => `admin.tls`, and
admin: {listen: ["[::]:8053"], tls: {certificate: c, key: k}} => admin.listen[0] => needs `admin.tokens` or `admin.oidc`
admin: {listen: ["192.0.2.1:8053"], tokens: [{name: a, file: f, role: viewer}]} => admin.listen[0] => needs `admin.tls`;
admin: {tls: {certificate: c}} => admin.tls => needs `key`
admin: {anonymous: operator} => admin.anonymous => viewer, none
admin: {tokens: [{name: a, file: f, role: admin}]} => admin.tokens[0].role => viewer, operator, peer
admin: {tokens: [{name: a b, file: f, role: peer}]} => admin.tokens[0].name => without spaces
admin: {tokens: [{name: a, file: "", role: peer}]} => admin.tokens[0].file => path of a file
admin: {tokens: [{name: a, file: f, role: peer}, {name: a, file: g, role: peer}]} => admin.tokens[1] => two tokens
admin: {tokens: [{name: a, file: f, role: peer}, {name: b, file: f, role: peer}]} => admin.tokens[1].file => this file already
admin: {oidc: {issuer: "http://login.example", audience: a, viewer: [a]}} => admin.oidc.issuer => https://
admin: {oidc: {issuer: "https://", audience: a, viewer: [a]}} => admin.oidc.issuer => https://
admin: {oidc: {issuer: "https://login.example?a", audience: a, viewer: [a]}} => admin.oidc.issuer => without
admin: {oidc: {issuer: "https://login.example", audience: a}} => admin.oidc => nobody would have a role
admin: {hosts: ["dash.example.com:8053"]} => admin.hosts[0] => letters, digits
dns: {listen: ["127.0.0.1:53"]}⏎metrics: {listen: ["127.0.0.1:53"]} => metrics.listen[0] => `dns.listen`
metrics: {listen: ["127.0.0.1:53"]} => metrics.listen[0] => the default of `dns.listen` takes `0.0.0.0:53`
metrics: {listen: ["127.0.0.1:8053"]} => metrics.listen[0] => the default of `admin.listen` takes `127.0.0.1:8053`
metrics: {listen: ["0.0.0.0:8053"]} => metrics.listen[0] => the default of `admin.listen`
metrics: {listen: ["[::]:8053"]} => metrics.listen[0] => the default of `admin.listen`
dns: {listen: ["127.0.0.1:8053"]} => dns.listen[0] => the default of `admin.listen`
dns: {listen: ["127.0.0.1:53", "0.0.0.0:8053"]} => dns.listen[1] => the default of `admin.listen`
dns: {listen: ["0.0.0.0:5300"]}⏎admin: {listen: ["127.0.0.1:5300"]} => admin.listen[0] => `dns.listen` takes `0.0.0.0:5300`
dns: {listen: ["[::1]:5300"]}⏎metrics: {listen: ["[::]:5300"]} => metrics.listen[0] => `dns.listen` takes `[::1]:5300`
admin: {listen: ["127.0.0.1:80"]}⏎metrics: {listen: ["0.0.0.0:80"]} => metrics.listen[0] => `admin.listen` takes
metrics: {listen: ["0.0.0.0:80", "192.0.2.1:80"]} => metrics.listen[1] => `metrics.listen` takes `0.0.0.0:80`
metrics: {listen: ["0.0.0.0:80", "[::]:80"]} => metrics.listen[1] => `metrics.listen` takes `0.0.0.0:80`
"#;

#[test]
fn node_and_dns() {
    check_table(NODE_AND_DNS, |lines| lines.to_owned());
    let long = format!("dns: {{identity: {}}}", "x".repeat(129));
    check_one(&long, "dns.identity", 2, "128");
    let many: Vec<String> = (1..=9).map(|last| format!("192.0.2.{last}")).collect();
    let many = format!("resolver: {{nameservers: [{}]}}", many.join(", "));
    check_one(&many, "resolver.nameservers[8]", 2, "more than 8");
}

const ZONES: &str = r#"
zones: [{name: a.example}] => zones[0] => needs `nameservers`
zones: [{name: a.example, nameservers: []}] => zones[0].nameservers => needs `nameservers`
zones: [{nameservers: [{name: b}]}] => zones[0] => needs `name`
zones: [{name: a.example, nameservers: [ns1.example.net]}] => zones[0].nameservers[0] => such as {name: www.example.com, addresses: [192.0.2.10]}
zones: [{name: "*.a", nameservers: [{name: b}]}] => zones[0].name => wildcard
zones: [{name: a..b, nameservers: [{name: b}]}] => zones[0].name => empty
zones: [{name: a.example, nameservers: [{name: ns.a.example}]}] => zones[0].nameservers[0] => needs `addresses`
zones: [{name: a.example, nameservers: [{name: 192.0.2.53}]}] => zones[0].nameservers[0].name => `192.0.2.53` is an address; write a name
zones: [{name: a.example, nameservers: [{name: b}, {name: B.}]}] => zones[0].nameservers[1] => twice
zones: [{name: a.example, nameservers: [{name: ns.a.example, addresses: [0.0.0.0]}]}] => zones[0].nameservers[0].addresses[0] => unspecified
zones: [{name: a, file: x}, {name: A., file: y}] => zones[1].name => twice
zones: [{name: a, nameservers: [{name: b}]}, {name: c.a, file: y}] => zones[1].name => NS records for `c.a`
"#;

const ZONES_ZONE: &str = r#"
contact: a b => zones[0].contact => hostmaster@example.com
contact: "@example.com" => zones[0].contact => hostmaster@example.com
ttl: 0 => zones[0].ttl => 1 to 86400
ttl: 500ms => zones[0].ttl => whole seconds
nsTtl: 2147483648 => zones[0].nsTtl => 2147483647
soa: {refresh: 0} => zones[0].soa.refresh => from 1
soa: {minimum: 0} => zones[0].soa.minimum => unknown key
file: "" => zones[0].file => path
"#;

#[test]
fn zones() {
    check_table(ZONES, |lines| lines.to_owned());
    check_table(ZONES_ZONE, |keys| {
        format!("zones: [{{name: a.example, nameservers: [{{name: ns.example.net}}], {keys}}}]")
    });
}

const PLACES: &str = r#"
groups: {EEA: [DE]} => groups.EEA => built in
groups: {x: [XX]} => groups.x[0] => no country
groups: {x: []} => groups.x => no country
groups: {"a b": [DE]} => groups.a b => letters
groups: [x] => groups => is a map
clusters: [{name: A}] => clusters[0].name => lower-case
clusters: [{region: x}] => clusters[0] => needs `name`
clusters: [{name: a, provider: aws, region: us-east1}] => clusters[0].region => did you mean `us-east-1`
clusters: [{name: a, provider: awss, region: us-east-1}] => clusters[0].provider => one of aws
clusters: [{name: a, provider: awss, region: us-east-1}] => clusters[0].provider => did you mean `aws`
clusters: [{name: a, location: {latitude: 1}}] => clusters[0].location.latitude => `longitude` is missing
clusters: [{name: a, location: {}}] => clusters[0].location => needs
clusters: [{name: a, location: {lat: 1}}] => clusters[0].location.lat => did you mean `latitude`
clusters: [{name: a, location: {country: DE, lon: 1}}] => clusters[0].location.lon => did you mean `longitude`
clusters: [{name: a, location: {continent: XX}}] => clusters[0].location.continent => AF, AN
clusters: [{name: a, location: {country: EL}}] => clusters[0].location.country => Greece
clusters: [{name: a, cost: 40001}] => clusters[0].cost => 40000
geoip: {databases: [a, a]} => geoip.databases[1] => twice
"#;

const PLACES_OVER: &str = r#"
prefix: 10.0.0.1/8, cluster: a => geoip.overrides[0].prefix => 10.0.0.0/8
prefix: 10.0.0.0/8 => geoip.overrides[0] => needs `cluster`
prefix: 10.0.0.0/8, cluster: a, country: DE => geoip.overrides[0] => not both
prefix: 10.0.0.0/8, cluster: b => geoip.overrides[0].cluster => no cluster
prefix: 10.0.0.0/8, country: DE, subdivision: US-CA => geoip.overrides[0].subdivision => another country
prefix: 10.0.0.0/8, latitude: 1 => geoip.overrides[0].latitude => longitude
prefix: 10.0.0.0/8, country: DE}, {prefix: 10.0.0.0/8, country: DE => geoip.overrides[1].prefix => two overrides
"#;

#[test]
fn places() {
    check_table(PLACES, |lines| lines.to_owned());
    check_table(PLACES_OVER, |keys| {
        let cluster = "clusters: [{name: a, location: {country: DE}}]";
        format!("{cluster}⏎geoip: {{overrides: [{{{keys}}}]}}")
    });
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
        "3:3: node.nmae: unknown key `nmae`; did you mean `name`?"
    );
}
