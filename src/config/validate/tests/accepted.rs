//! What is accepted, and what becomes of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{ENDPOINTS, accept, atlas, with_service};
use crate::admin::{Anonymous, Role, TokenFile};
use crate::config::spec::Lane;
use crate::config::validate::{Surroundings, parse_with};
use crate::geo::OverridePlace;
use crate::inventory::ClusterRegistry;
use crate::model::{Continent, Ttl};
use crate::snapshot::EcsTrust;
use crate::telemetry::QueryLogTarget;

#[test]
fn nothing_said_means_the_defaults_of_the_contract() {
    let (config, warnings) = accept("version: 1\n");
    let [no_zone] = &warnings[..] else {
        panic!("{warnings:?}")
    };
    assert!(no_zone.message.contains("every query is refused"));
    assert_eq!(config.node.name, "host-1");
    assert_eq!(
        config.node.state_directory,
        Some(PathBuf::from("/var/lib/meridian"))
    );
    let listen: Vec<String> = config.dns.listen.iter().map(ToString::to_string).collect();
    assert_eq!(listen, ["0.0.0.0:53", "[::]:53"]);
    assert_eq!(
        (config.dns.workers, config.dns.tcp),
        (0, crate::transport::TcpLimits::default())
    );
    assert_eq!(config.settings, crate::snapshot::Settings::default());
    assert_eq!(
        config
            .admin
            .admin
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["127.0.0.1:8053"]
    );
    assert!(config.admin.metrics.is_empty() && config.services.is_empty());
    assert_eq!(config.probes, crate::prober::Config::default());
    let kubernetes = crate::source::kubernetes::Config {
        rules: std::sync::Arc::new(crate::source::kubernetes::Rules {
            groups: atlas().groups,
            ..Default::default()
        }),
        ..Default::default()
    };
    assert_eq!(config.kubernetes, kubernetes);
    let federation = crate::inventory::FederationRules {
        min_ttl: Ttl::new(1),
        ..crate::inventory::FederationRules::default()
    };
    assert_eq!(*config.federation, federation);
    assert_eq!(config.resolver, crate::resolving::TargetsConfig::default());
    assert!(config.groups.0.contains_key("EU-27"));
}

#[test]
fn sections_may_be_blank() {
    let (config, _) = accept("version: 1\nnode:\nservices:\n# - none yet\nclusters:\n");
    assert!(config.services.is_empty() && config.clusters.is_empty());
}

#[test]
fn line_breaks_and_marks_of_other_systems_change_nothing() {
    let text = with_service(&format!("ttl: 5, {ENDPOINTS}"));
    let (config, _) = accept(&text);
    for other in [
        text.replace('\n', "\r\n"),
        format!("\u{feff}{text}"),
        format!("---\n{text}...\n"),
        text.trim_end().to_owned(),
    ] {
        assert_eq!(accept(&other).0.services, config.services, "{other:?}");
    }
}

#[test]
fn json_is_accepted() {
    let (config, _) = accept(
        "{\"version\": 1, \"clusters\": [{\"name\": \"a\", \"cost\": 5}], \"services\": []}",
    );
    assert_eq!(config.clusters.len(), 1);
}

#[test]
fn node_dns_and_listeners() {
    let text = "\
version: 1
node: {name: fra-1, location: {latitude: 50.11, longitude: 8.68}, stateDirectory: state}
dns:
  listen: [\"127.0.0.1:0\", \"127.0.0.1:0\", \"[::1]:5353\"]
  workers: 3
  identity: fra-1
  ecs: {trust: [10.0.0.0/8]}
  proxyProtocol: {from: [\"2001:db8::/32\"]}
  tcp: {connections: 10, idle: 30s, write: 500ms}
probes: {allow: [10.0.0.0/8], perTarget: 1, concurrency: 2}
resolver: {nameservers: [192.0.2.53, \"127.0.0.1:53\", \"[2001:db8::53]:5353\", \"::1\"]}
admin: {listen: []}
metrics: {listen: [\"0.0.0.0:9090\"]}
";
    let (config, _) = accept(text);
    assert_eq!(
        config.node.state_directory,
        Some(PathBuf::from("/etc/meridian/state"))
    );
    assert_eq!(
        config.node.location.map(|point| point.latitude()),
        Some(50.11)
    );
    assert_eq!(config.dns.listen.len(), 3);
    assert_eq!(config.dns.tcp.per_client, 10);
    assert_eq!(config.dns.tcp.write, Duration::from_millis(500));
    assert_eq!(
        (&*config.settings.identity, config.settings.keepalive),
        (&b"fra-1"[..], 300)
    );
    assert_eq!(
        config.settings.ecs_trust,
        EcsTrust::From(vec!["10.0.0.0/8".parse().unwrap()])
    );
    assert_eq!(
        (config.probes.per_target, config.probes.concurrency),
        (1, 2)
    );
    let resolvers = config.resolver.nameservers.iter();
    assert_eq!(
        resolvers.map(ToString::to_string).collect::<Vec<_>>(),
        [
            "192.0.2.53:53",
            "127.0.0.1:53",
            "[2001:db8::53]:5353",
            "[::1]:53"
        ]
    );
    assert_eq!(
        (config.admin.admin.len(), config.admin.metrics.len()),
        (0, 1)
    );
    assert_eq!(
        accept("version: 1\nnode: {stateDirectory: \"\"}\n")
            .0
            .node
            .state_directory,
        None
    );
}

#[test]
fn listeners_that_can_be_there_together() {
    for lines in [
        "dns: {listen: [\"0.0.0.0:53\", \"127.0.0.1:53\"]}",
        "dns: {listen: [\"[::]:8053\"]}",
        "dns: {listen: [\"192.0.2.1:8053\"]}",
        "dns: {listen: [\"127.0.0.1:8053\"]}\nadmin: {listen: []}",
        "dns: {listen: [\"127.0.0.1:0\"]}\nmetrics: {listen: [\"0.0.0.0:0\", \"127.0.0.1:0\"]}",
        "metrics: {listen: [\"192.0.2.1:8053\", \"[::1]:8053\"]}",
    ] {
        accept(&format!("version: 1\n{lines}\n"));
    }
}

#[test]
fn what_leaves_the_node_beside_answers() {
    let (config, _) = accept("version: 1\nqueryLog: {file: q.jsonl}\ntelemetry: {}\n");
    let log = config.dns.query_log.unwrap();
    assert_eq!(
        (log.sample.get(), log.prefix_v4, log.prefix_v6),
        (1000, 24, 48)
    );
    let QueryLogTarget::File {
        path,
        max_octets,
        keep,
    } = log.target
    else {
        panic!("a file")
    };
    assert_eq!(path, PathBuf::from("/etc/meridian/q.jsonl"));
    assert_eq!((max_octets, keep), (100 << 20, 5));
    assert!(config.otlp.is_none());
    let (config, _) = accept(
        "version: 1\nqueryLog: {file: \"-\", sample: 1, prefixV4: 0, prefixV6: 128}\ntelemetry: {otlp: {endpoint: \"https://c.example:4318/v1/\", headersFile: h, sample: 0.5}}\n",
    );
    let log = config.dns.query_log.unwrap();
    assert_eq!(log.target, QueryLogTarget::Stderr);
    assert_eq!(
        (log.sample.get(), log.prefix_v4, log.prefix_v6),
        (1, 0, 128)
    );
    let otlp = config.otlp.unwrap();
    assert_eq!(otlp.endpoint, "https://c.example:4318/v1");
    assert_eq!(otlp.headers_file, Some(PathBuf::from("/etc/meridian/h")));
    assert_eq!(otlp.sample, 0.5);
}

#[test]
fn zones() {
    let text = "\
version: 1
zones:
  - name: Svc.Example.
    nameservers: [{name: ns1.svc.example, addresses: [192.0.2.53, \"2001:db8::53\"]}]
    contact: host.master@example.com
    soa: {ttl: 60, refresh: 2h, retry: 5m, expire: 1w}
    nsTtl: 1d
    ttl: 10
    negativeTtl: 0
  - {name: other.example, file: zones/other.zone}
";
    let (config, _) = accept(text);
    let zone = &config.zones[0].spec;
    assert_eq!(zone.apex.to_string(), "svc.example");
    assert_eq!(zone.nameservers[0].addresses.len(), 2);
    assert_eq!(
        zone.contact.as_ref().map(ToString::to_string),
        Some("host\\.master.example.com".to_owned())
    );
    assert_eq!(
        (zone.soa.ttl.seconds(), zone.soa.expire),
        (60, Duration::from_secs(604_800))
    );
    assert_eq!(
        (
            zone.ns_ttl.seconds(),
            zone.ttl.seconds(),
            zone.negative_ttl.seconds()
        ),
        (86_400, 10, 0)
    );
    let other = &config.zones[1];
    assert_eq!(
        other.file.as_deref(),
        Some(Path::new("/etc/meridian/zones/other.zone"))
    );
    assert_eq!(
        (other.spec.ttl.seconds(), other.spec.soa.refresh),
        (30, Duration::from_secs(3600))
    );
}

#[test]
fn clusters_get_places() {
    let text = "\
version: 1
groups: {nordics: [DK, FI, IS, NO, SE]}
clusters:
  - {name: table, provider: aws, region: us-east-1, zones: [us-east-1a], cost: 12.5}
  - {name: country, location: {country: de}}
  - {name: both, provider: aws, region: us-east-1, location: {latitude: 40, longitude: -70}}
  - {name: own, provider: mycloud, region: cellar, location: {latitude: 1.5, longitude: 2, continent: AF}}
  - {name: nowhere}
geoip:
  databases: [GeoLite2-City.mmdb, /var/db/asn.mmdb]
  overrides:
    - {prefix: 10.1.0.0/16, cluster: table}
    - {prefix: 198.51.100.0/24, subdivision: US-CA}
    - {prefix: \"2001:db8::/32\", latitude: 1, longitude: 2}
";
    let (config, warnings) = accept(text);
    let place = |at: usize| &config.clusters[at].1.location;
    assert_eq!(
        place(0).coordinates.map(|point| point.latitude()),
        Some(38.9)
    );
    assert_eq!(place(1).continent, Some(Continent::Europe));
    assert_eq!(
        place(1).coordinates.map(|point| point.latitude()),
        Some(51.0)
    );
    assert_eq!(
        (
            place(2).coordinates.map(|point| point.latitude()),
            place(2).continent
        ),
        (Some(40.0), Some(Continent::NorthAmerica))
    );
    assert_eq!(place(3).continent, Some(Continent::Africa));
    assert!(place(4).is_unknown());
    assert_eq!(config.clusters[0].1.cost_km, 12.5);
    // No service is steered by distance; there is no zone, and nothing else to remark on.
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(
        config.geoip.databases,
        [
            Path::new("/etc/meridian/GeoLite2-City.mmdb"),
            Path::new("/var/db/asn.mmdb")
        ]
    );
    let OverridePlace::Cluster(id, inside) = &config.geoip.overrides[0].place else {
        panic!()
    };
    assert_eq!(
        (id.as_str(), inside.cluster.as_ref(), inside.coordinates),
        ("table", Some(id), place(0).coordinates)
    );
    let OverridePlace::Place(california) = &config.geoip.overrides[1].place else {
        panic!()
    };
    assert_eq!(
        california.country.map(|code| code.to_string()),
        Some("US".to_owned())
    );
    assert!(california.coordinates.is_some());
    let norway = "NO".parse().unwrap();
    assert!(config.groups.contains("nordics", norway));
}

#[test]
fn warnings_name_their_place() {
    for (text, path, part) in [
        (
            with_service(&format!(
                "policy: {{fence: [{{clients: ['*'], clusters: [a]}}]}}, {ENDPOINTS}"
            )),
            "services[0].policy.fence",
            "fenceAnswer",
        ),
        (with_service("ttl: 5"), "services[0]", "no `endpoints`"),
        (
            with_service(ENDPOINTS).replace(
                "{name: b, provider: aws, region: eu-west-1}",
                "{name: b, provider: amazon, region: eu-west-1}",
            ),
            "clusters[1]",
            "`amazon` is no provider with a built-in table; write one of aws, gcp, azure, alibaba, tencent, huawei, oci, digitalocean, hetzner, ovh, scaleway, linode, ibm, or give `location`; did you mean `aws`?",
        ),
        (
            with_service(&format!(
                "policy: {{steer: weighted, weights: {{a: 0, b: 0}}}}, {ENDPOINTS}"
            )),
            "services[0].policy.weights",
            "nobody has a share",
        ),
        (
            with_service(ENDPOINTS).replace(
                "version: 1\n",
                "version: 1\nnode: {location: {latitude: 1, longitude: 1}}\n",
            ),
            "node.location",
            "no effect yet",
        ),
        (
            with_service("endpoints: []"),
            "services[0].endpoints",
            "no endpoint",
        ),
        (
            with_service(&format!(
                "policy: {{weights: {{\"region:x\": 1}}}}, {ENDPOINTS}"
            )),
            "services[0].policy.weights.region:x",
            "matches no cluster",
        ),
        (
            with_service(&format!(
                "policy: {{maps: [{{clusters: [a]}}, {{continents: [EU], clusters: [b]}}]}}, {ENDPOINTS}"
            )),
            "services[0].policy.maps[1]",
            "never reached",
        ),
        (
            with_service(ENDPOINTS).replace("{country: SG}", "{continent: AS}"),
            "clusters[2]",
            "no place",
        ),
        (
            "version: 1\nzones: [{name: a, nameservers: [{name: b, addresses: [192.0.2.1]}]}]\n"
                .to_owned(),
            "zones[0].nameservers[0].addresses",
            "not served",
        ),
    ] {
        let (_, warnings) = accept(&text);
        assert_eq!(warnings.len(), 1, "{text}: {warnings:?}");
        assert_eq!(warnings[0].path, path);
        assert!(warnings[0].message.contains(part), "{warnings:?}");
    }
}

#[test]
fn clusters_keep_their_indices_and_a_refused_file_gives_out_none() {
    let atlas = atlas();
    let surroundings = Surroundings {
        node_name: "x",
        atlas: &atlas,
        lane: Lane::Auto,
    };
    let mut registry = ClusterRegistry::default();
    let mut indices = |text: &str| {
        let parsed = parse_with(text, Path::new("m.yaml"), &mut registry, surroundings);
        parsed
            .map(|(config, _)| {
                config
                    .clusters
                    .iter()
                    .map(|(index, _)| index.0)
                    .collect::<Vec<_>>()
            })
            .unwrap_or_default()
    };
    assert_eq!(
        indices("version: 1\nclusters: [{name: a}, {name: b}]\n"),
        [0, 1]
    );
    assert_eq!(
        indices("version: 1\nclusters: [{name: x}, {name: y, cost: -1}]\n"),
        [0_u16; 0]
    );
    assert_eq!(
        indices("version: 1\nclusters: [{name: c}, {name: b}]\n"),
        [2, 1]
    );
}

#[test]
fn access_of_the_dashboard() {
    let text = "\
version: 1
admin:
  listen: [\"0.0.0.0:8053\"]
  tls: {certificate: tls.crt, key: /keys/tls.key}
  anonymous: none
  tokens:
    - {name: ci, file: ci.token, role: operator}
    - {name: ns2, file: ns2.token, role: peer}
  oidc: {issuer: \"https://login.example.com/x\", audience: meridian, ca: ca.pem, rolesClaim: realm.roles, operator: [sre, \"on call\"]}
  hosts: [Dash.example.com., \"2001:DB8::1\"]
";
    let config = accept(text).0.admin;
    let tls = config.tls.unwrap();
    assert_eq!(tls.certificate, PathBuf::from("/etc/meridian/tls.crt"));
    assert_eq!(tls.key, PathBuf::from("/keys/tls.key"));
    let access = config.access;
    assert_eq!(access.anonymous, Anonymous::None);
    assert_eq!(access.tokens[0].role, Role::Operator);
    assert_eq!(
        access.tokens[1],
        TokenFile {
            name: "ns2".to_owned(),
            path: PathBuf::from("/etc/meridian/ns2.token"),
            role: Role::Peer
        }
    );
    assert_eq!(access.hosts, ["dash.example.com", "2001:db8::1"]);
    let oidc = access.oidc.unwrap();
    assert_eq!(oidc.issuer, "https://login.example.com/x");
    assert_eq!(oidc.operator, ["sre", "on call"]);
    assert!(oidc.viewer.is_empty() && oidc.jwks_file.is_none());
    assert_eq!(oidc.ca, Some(PathBuf::from("/etc/meridian/ca.pem")));
    assert_eq!(oidc.roles_claim, "realm.roles");
}
