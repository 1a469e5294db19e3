//! Policies that cannot do what they say are remarked on, with their place and what would be right.

use super::{ENDPOINTS, accept, with_service};

/// Keys of one service, the path below it, and a part of the one warning.
const SERVICES: &str = r#"
policy: {panic: 0.5, fallback: {addresses: [192.0.2.9]}}, monitor: {http: {}} => .policy.fallback => write `panic: 0`
policy: {fallback: {addresses: [192.0.2.9]}} => .policy.fallback => add a `monitor`
policy: {fallback: {addresses: [192.0.2.9]}}, monitor: none => .policy.fallback => nothing is ever down
policy: {panic: 0.5} => .policy.panic => `panic` does nothing
policy: {weights: {a: 80, b: 20}} => .policy.weights => write `steer: weighted`
policy: {steer: all, weights: {a: 80, b: 20}} => .policy.weights => treat clusters alike
policy: {steer: roundRobin, weights: {a: 80, b: 20}} => .policy.weights => treat clusters alike
policy: {steer: weighted, weights: {c: 80}} => .policy.weights => has endpoints in a, b
policy: {tiers: [[c]]} => .policy.tiers => `tiers` names only clusters
policy: {tiers: [[c], [a]]} => .policy.tiers[0] => has endpoints in a, b
policy: {maps: [{clusters: [c]}]} => .policy.maps => `maps` names only
policy: {maps: [{countries: [DE], clusters: [c]}, {clusters: [a, b]}]} => .policy.maps[0] => names only
policy: {fence: [{clients: ["*"], clusters: ["country:SG"]}], fenceAnswer: 192.0.2.9} => .policy.fence => `fence` names only
policy: {steer: weighted, bias: {a: 10}} => .policy.bias => `steer: weighted` looks at no distance
policy: {steer: roundRobin, bias: {a: 10}} => .policy.bias => `steer: roundRobin`
policy: {steer: all, bias: {a: 10}} => .policy.bias => `steer: all`
policy: {fenceAnswer: 192.0.2.9} => .policy.fenceAnswer => there is no `fence`
policy: {fence: [{clients: ["*"], clusters: [a]}, {clients: [country:DE], clusters: [b]}], fenceAnswer: 192.0.2.9} => .policy.fence[1] => never reached: the rule on line 9
policy: {fence: [{clients: ["*", "10.0.0.0/8"], clusters: [a]}, {clients: ["group:EEA", "*"], clusters: [b]}], fenceAnswer: 192.0.2.9} => .policy.fence[1] => never reached
policy: {fence: [{clients: [unknown], clusters: [a]}, {clients: ["*"], clusters: [a]}, {clients: ["10.0.0.0/8"], clusters: [b]}], fenceAnswer: 192.0.2.9} => .policy.fence[2] => take every client
policy: {fence: [{clients: [country:DE], clusters: [c]}, {clients: ["*"], clusters: [a]}], fenceAnswer: 192.0.2.9} => .policy.fence[0] => names only
"#;

/// What nothing is to be said about.
const RIGHT: &str = r#"
policy: {panic: 0, fallback: {addresses: [192.0.2.9]}}, monitor: {http: {}}
policy: {panic: 0.5}, monitor: {http: {}}
policy: {steer: proximity, weights: {a: 80, b: 20}}
policy: {weights: {a: 1, b: 0}}
policy: {steer: weighted, weights: {a: 80, c: 20}}
policy: {tiers: [[c, a], [b]]}
policy: {tiers: [["region:eu-west-1"], ["country:SG"], ["*"]]}
policy: {maps: [{countries: [DE], clusters: ["country:SG"]}, {clusters: [a, b]}]}
policy: {bias: {a: 10}}
policy: {steer: failover, tiers: [[a], [b]], bias: {a: 10}}
policy: {fence: [{clients: ["*"], clusters: [a]}, {clients: [unknown], clusters: [b]}], fenceAnswer: 192.0.2.9}
policy: {fence: [{clients: ["*"], clusters: [a]}, {clients: ["10.0.0.0/8"], clusters: [b]}], fenceAnswer: 192.0.2.9}
policy: {fence: [{clients: ["*"], clusters: [a]}, {clients: [country:DE, "asn:64500"], clusters: [b]}], fenceAnswer: 192.0.2.9}
policy: {fence: [{clients: [country:DE], clusters: []}, {clients: ["*"], clusters: [a]}], fenceAnswer: 192.0.2.9}
"#;

/// Endpoints and more, the path below the service, and a part of the one warning.
const ENDPOINT_LISTS: &str = r#"
endpoints: [] => .endpoints => no endpoint: the name exists without an address (NODATA)
endpoints: [], policy: {fallback: {addresses: [192.0.2.9]}} => .endpoints => every client gets the `fallback`
ttl: 5, policy: {fallback: {addresses: [192.0.2.9]}} =>  => every client gets the `fallback`
endpoints: [{cluster: a, addresses: [10.0.0.1], clients: [10.0.0.0/8]}] => .endpoints => every endpoint has `clients`
endpoints: [{cluster: a, hostname: x.example}], policy: {fallback: {addresses: [192.0.2.9]}} => .policy.fallback => nobody judges
"#;

fn check(text: &str, path: &str, part: &str) {
    let (_, warnings) = accept(text);
    let [warning] = &warnings[..] else {
        panic!("{text}: {warnings:#?}")
    };
    assert_eq!(warning.path, path, "{warning}");
    assert!(warning.message.contains(part), "{warning}");
    assert!(warning.line > 0 && warning.column > 0, "{warning:?}");
}

#[test]
fn policies_that_cannot_do_what_they_say() {
    for row in SERVICES.lines().filter(|row| !row.is_empty()) {
        let [keys, path, part] = row.split(" => ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let text = with_service(&format!("{keys}, {ENDPOINTS}"));
        check(&text, &format!("services[0]{path}"), part);
    }
    for keys in RIGHT.lines().filter(|row| !row.is_empty()) {
        let (_, warnings) = accept(&with_service(&format!("{keys}, {ENDPOINTS}")));
        assert!(warnings.is_empty(), "{keys}: {warnings:#?}");
    }
}

#[test]
fn endpoints_that_nobody_gets() {
    for row in ENDPOINT_LISTS.lines().filter(|row| !row.is_empty()) {
        let [keys, path, part] = row.split(" => ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        check(&with_service(keys), &format!("services[0]{path}"), part);
    }
}

#[test]
fn defaults_that_health_never_brings_about() {
    let defaults = "defaults: {policy: {panic: 0.5}}\n";
    let service = |keys: &str| format!("{}{defaults}", with_service(&format!("{keys}{ENDPOINTS}")));
    check(
        &service(""),
        "defaults.policy.panic",
        "no service has a `monitor`",
    );
    assert_eq!(accept(&service("monitor: {http: {}}, ")).1, []);
}

#[test]
fn continents_and_zones() {
    let text = with_service(ENDPOINTS);
    check(
        &text.replace("{country: SG}", "{country: SG, continent: EU}"),
        "clusters[2].location.continent",
        "lies in AS: write AS",
    );
    check(
        &format!(
            "{text}geoip: {{overrides: [{{prefix: 192.0.2.0/24, country: DE, continent: AS}}]}}\n"
        ),
        "geoip.overrides[0].continent",
        "lies in EU",
    );
    check("version: 1\n", "", "every query is refused");
    check("version: 1\nzones: []\n", "zones", "every query is refused");
}
