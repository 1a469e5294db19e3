//! The commands, as people and scripts use them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::node::meridian;
use crate::harness::packages::{SYSTEMD_ANALYZE, need};
use crate::samples::{FIVE, FIVE_ZONE};

/// Writes a configuration with its zone file into a folder and gives its path.
fn write(folder: &Path, text: &str) -> String {
    std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    let path = folder.join("meridian.yaml");
    std::fs::write(
        &path,
        format!("version: 1\ndns: {{listen: [\"127.0.0.1:5300\"]}}\n{text}"),
    )
    .unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs a command; gives exit code, standard output and standard error.
fn run(args: &[&str]) -> (i32, String, String) {
    let output = meridian(args);
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn help_and_version_and_usage() {
    let (code, text, _) = run(&["--help"]);
    assert_eq!(code, 0);
    for command in [
        "run",
        "check",
        "demo",
        "explain",
        "schema",
        "delegation",
        "completions",
    ] {
        assert!(text.contains(command), "{command}");
        let (code, text, _) = run(&[command, "--help"]);
        assert_eq!(code, 0);
        assert!(text.contains("Usage: meridian"), "{text}");
    }
    let (code, text, _) = run(&["--version"]);
    assert_eq!(
        (code, text.trim()),
        (0, concat!("meridian ", env!("CARGO_PKG_VERSION")))
    );
    let (_, text, _) = run(&["--version", "--verbose"]);
    assert!(
        text.contains("IPFire") && text.contains("CC BY-SA 4.0"),
        "{text}"
    );
    assert_eq!(run(&["frobnicate"]).0, 2);
    assert_eq!(run(&[]).0, 2);
}

#[test]
fn output_to_a_pipe_has_no_colors() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), FIVE);
    for args in [
        &["check", "-c", &path][..],
        &[
            "explain",
            "www.svc.mesh",
            "--client",
            "46.114.0.0/24",
            "-c",
            &path,
        ],
    ] {
        let (_, out, err) = run(args);
        assert!(!out.contains('\x1b') && !err.contains('\x1b'), "{out}{err}");
    }
}

#[test]
fn check_says_ok_or_every_fault_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), FIVE);
    let (code, out, _) = run(&["check", "--config", &path]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("1 zone, 5 clusters, 5 services"), "{out}");
    let spoiled = FIVE
        .replace("ttl: 10", "ttl: soon")
        .replace("cluster: brazil", "cluster: brasil");
    let path = write(folder.path(), &spoiled);
    let (code, out, _) = run(&["check", "--config", &path, "--output", "json"]);
    assert_eq!(code, 1);
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(result["ok"], Value::Bool(false));
    let places: Vec<&str> = result["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|f| f["path"].as_str())
        .collect();
    for place in ["services[0].ttl", "services[0].endpoints[3].cluster"] {
        assert!(places.contains(&place), "{places:?}");
    }
    for finding in result["findings"].as_array().unwrap() {
        assert!(finding["line"].as_u64().unwrap() > 2, "{finding}");
    }
    std::fs::write(
        folder.path().join("svc.mesh.zone"),
        "www A 192.0.2.1\n\n\nbad A x\n",
    )
    .unwrap();
    let path = folder.path().join("meridian.yaml");
    std::fs::write(
        &path,
        std::fs::read_to_string(&path)
            .unwrap()
            .replace("soon", "10")
            .replace("brasil", "brazil"),
    )
    .unwrap();
    let (code, out, _) = run(&["check", "--config", path.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(out.contains("svc.mesh.zone:4: error: "), "{out}");
    // For machines the line is a number, and what cannot be read at all is a finding too.
    let json = |path: &str| -> Value {
        let (code, out, _) = run(&["check", "--config", path, "--output", "json"]);
        assert_eq!(code, 1);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    };
    let result = json(path.to_str().unwrap());
    let lines: Vec<&Value> = result["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["level"] == "error")
        .map(|finding| &finding["line"])
        .collect();
    assert!(lines.contains(&&Value::from(4)), "{result}");
    assert_eq!(result["summary"]["errors"], lines.len());
    std::fs::write(folder.path().join("binary.yaml"), [0xff, 0xfe]).unwrap();
    let binary = folder.path().join("binary.yaml");
    for path in ["/nowhere/meridian.yaml", binary.to_str().unwrap()] {
        let result = json(path);
        assert_eq!(result["findings"][0]["source"], path, "{result}");
        assert_eq!(result["summary"]["errors"], 1, "{result}");
    }
}

#[test]
fn a_child_zone_without_the_cut_in_its_parent_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let child = "  - {name: sub.svc.mesh, nameservers: [{name: ns1.svc.mesh}], contact: hostmaster.svc.mesh}\nclusters:\n  - {name: europe,";
    let path = write(
        folder.path(),
        &FIVE.replace("clusters:\n  - {name: europe,", child),
    );
    let (code, out, _) = run(&["check", "--config", &path]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("sub.svc.mesh"), "{out}");
    let zone = folder.path().join("svc.mesh.zone");
    std::fs::write(&zone, format!("{FIVE_ZONE}\nsub NS ns1\n")).unwrap();
    let (code, out, _) = run(&["check", "--config", &path]);
    assert_eq!(code, 0, "{out}");
}

#[test]
fn explain_says_where_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), FIVE);
    for (client, cluster) in [
        ("46.114.0.0/24", "europe"),
        ("3.80.0.0/16", "america"),
        ("126.0.0.1", "asia"),
    ] {
        let (code, out, err) = run(&[
            "explain",
            "www.svc.mesh",
            "--client",
            client,
            "--config",
            &path,
            "--output",
            "json",
        ]);
        assert_eq!(code, 0, "{err}");
        let explanation: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(explanation["cluster"], cluster, "{out}");
        assert_eq!(explanation["rcode"], "NOERROR");
        assert_eq!(explanation["ttl"], 10);
        assert!(explanation["scope"].as_u64().unwrap() > 0);
        assert!(!explanation["steps"].as_array().unwrap().is_empty());
    }
    let (code, out, _) = run(&[
        "explain",
        "www.svc.mesh",
        "--resolver",
        "3.80.0.1",
        "--config",
        &path,
    ]);
    assert_eq!(code, 0);
    assert!(out.contains("america") && out.contains("km"), "{out}");
    let (_, out, _) = run(&[
        "explain",
        "fenced.svc.mesh",
        "--client",
        "126.0.0.0/16",
        "--config",
        &path,
    ]);
    assert!(out.contains("fence"), "{out}");
    let (code, _, err) = run(&["explain", "www.svc.mesh", "--config", &path]);
    assert_eq!(code, 2);
    assert!(
        err.contains("--client") && err.contains("--resolver"),
        "{err}"
    );
    assert_eq!(
        run(&[
            "explain",
            "www.svc.mesh",
            "--client",
            "nonsense",
            "--config",
            &path
        ])
        .0,
        2
    );
}

#[test]
fn explain_names_the_tier_in_use_before_what_orders_it() {
    let folder = tempfile::tempdir().unwrap();
    let tiers = "    policy: {steer: failover, tiers: [[asia], [europe, america]]}\n    endpoints:";
    let path = write(folder.path(), &FIVE.replacen("    endpoints:", tiers, 1));
    for client in ["46.114.0.0/24", "127.1.0.0/16"] {
        let args = ["explain", "www.svc.mesh", "--client", client, "-c", &path];
        let (code, out, err) = run(&args);
        assert_eq!(code, 0, "{err}");
        let why = out.lines().find(|line| line.contains("Why: "));
        assert!(
            why.unwrap().contains("tier 1 is in use, one cluster"),
            "{out}"
        );
    }
}

#[test]
fn schema_is_json_and_has_only_what_works() {
    let (code, out, _) = run(&["schema"]);
    assert_eq!(code, 0);
    let schema: Value = serde_json::from_str(&out).unwrap();
    let keys = schema["properties"].as_object().expect("properties");
    for key in [
        "version",
        "node",
        "dns",
        "zones",
        "geoip",
        "groups",
        "clusters",
        "clustersFrom",
        "kubernetes",
        "defaults",
        "services",
        "probes",
        "resolver",
        "admin",
        "metrics",
        "peers",
    ] {
        assert!(keys.contains_key(key), "{key}");
    }
    for key in ["quorum", "federation"] {
        assert!(!keys.contains_key(key), "{key} is not built yet");
    }
}

/// Every key of the contract, with some value. What does not work is refused; nothing else is wrong with it but its files.
const CONTRACT: &str = r#"
version: 1
node: {name: n1, location: {latitude: 50.1, longitude: 8.7}, stateDirectory: ""}
dns:
  listen: ["127.0.0.1:5300"]
  tls: {listen: []}
  https: {listen: []}
  quic: {listen: []}
  workers: 0
  identity: n1
  ecs: {trust: all}
  proxyProtocol: {from: []}
  tcp: {connections: 4096, perClient: 64, idle: 10s, write: 5s}
  cookies: {secretFile: cookie}
  rateLimit: {responsesPerSecond: 0}
zones:
  - name: svc.mesh
    nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}, {name: ns2.svc.mesh, addresses: [192.0.2.54]}]
    contact: hostmaster.svc.mesh
    soa: {ttl: 3600, refresh: 1h, retry: 10m, expire: 2w}
    nsTtl: 3600
    ttl: 30
    negativeTtl: 30
    names: ["{service}.{namespace}", kubefed, clusterset]
    federationName: prod
    grants: [{clusters: ["*"], namespaces: [shop], hostnames: ["*.shop.svc.mesh"]}]
    privateAddresses: clients
    fence: []
    acme: {cname: "{name}.acme.example.net."}
    dnssec: {keys: keys/}
    primaries: []
    transfer: []
geoip: {databases: [], overrides: [{prefix: 10.1.0.0/16, cluster: a}, {prefix: 198.51.100.0/24, country: DE}]}
groups: {nordics: [DK, FI]}
clusters:
  - {name: a, region: us-east-1, provider: aws, zones: [us-east-1a], cost: 0}
  - {name: b, location: {latitude: 38.9, longitude: -77.4, country: US, continent: NA}}
clustersFrom: []
federation: []
kubernetes:
  {optIn: true, class: meridian, writeBack: none, compat: [], staleAfter: 15s, maxAge: 24h,
   massDeletion: {action: hold, share: 0.5, atLeast: 10, for: 5m},
   limits: {ttl: {min: 1s}, interval: {min: 500ms}, monitorsPerNamespace: 200}}
defaults: {policy: {steer: proximity, weightsFrom: endpoints}, monitor: {}}
services:
  - namespace: shop
    name: web
    hostnames: [www.svc.mesh]
    ttl: 10
    policy:
      {steer: proximity, tiers: [[a, b]], failback: auto, weights: {a: 80, b: 20}, bias: {a: 20},
       maps: [{continents: [EU], countries: [DE], subdivisions: [US-CA], asns: [64496], prefixes: [192.0.2.0/24], groups: [nordics], clusters: [b]}],
       fence: [{clients: ["group:EU-27"], clusters: [a]}], fenceAnswer: {addresses: [192.0.2.9]}, spill: {high: 0.8, low: 0.6},
       affinity: none, panic: 0, answers: 8, alternates: 0, fallback: {addresses: [192.0.2.8]}, shift: []}
    monitor: {http: {path: /healthz, port: 80, host: www.svc.mesh, expect: [200]}, interval: 2s, timeout: 1s, rise: 2, fall: 2}
    endpoints:
      - {cluster: a, addresses: [192.0.2.10, "2001:db8::10"], weight: 1, capacity: 100}
      - {cluster: b, addresses: [10.9.8.7], clients: [10.0.0.0/8]}
      - {cluster: b, hostname: lb.example.net}
probes: {allow: [], perTarget: 5, concurrency: 512, references: []}
resolver: {nameservers: []}
admin: {listen: ["127.0.0.1:8053"], anonymous: viewer, tokens: [{name: ci, file: ci.token, role: operator}]}
metrics: {listen: []}
peers: [{url: "https://ns2.example.com:8053", tokenFile: peer.token}]
quorum: majority
"#;

/// Finds a place such as `zones[].fence` in the schema.
fn place<'s>(schema: &'s Value, path: &str) -> Option<&'s Value> {
    path.split('.').try_fold(schema, |at, key| {
        let name = key.trim_end_matches("[]");
        let found = at.get("properties")?.get(name)?;
        if name == key {
            Some(found)
        } else {
            found.get("items")
        }
    })
}

#[test]
fn every_key_of_the_contract_works_or_is_refused_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("contract.yaml");
    std::fs::write(&path, CONTRACT).unwrap();
    let (_, out, err) = run(&["check", "--config", path.to_str().unwrap()]);
    let text = format!("{out}{err}");
    assert!(!text.contains("unknown key"), "{text}");
    let errors = text.lines().filter(|line| line.contains(": error: "));
    let refused: Vec<&str> = errors
        .filter(|line| line.contains("is not supported yet"))
        .filter_map(|line| line.split(": ").nth(2))
        .collect();
    let wanted = [
        "dns.tls",
        "dns.https",
        "dns.quic",
        "dns.cookies",
        "dns.rateLimit",
        "zones[0].fence",
        "zones[0].dnssec",
        "zones[0].primaries",
        "zones[0].transfer",
        "federation",
        "services[0].policy.spill",
        "services[0].policy.shift",
        "services[0].endpoints[0].capacity",
        "probes.references",
        "quorum",
    ];
    assert_eq!(refused, wanted, "{text}");
    let (_, out, _) = run(&["schema"]);
    let schema: Value = serde_json::from_str(&out).unwrap();
    for path in wanted.map(|path| path.replace("[0]", "[]")) {
        assert!(place(&schema, &path).is_none(), "{path} is in the schema");
        // Its neighbors are.
        let neighbor = match path.rsplit_once('.') {
            Some(("dns", _)) => "dns.ecs.trust",
            Some(("zones[]", _)) => "zones[].acme.cname",
            Some(("services[].policy", _)) => "services[].policy.fence[].clients",
            Some(("services[].endpoints[]", _)) => "services[].endpoints[].weight",
            Some(("probes", _)) => "probes.perTarget",
            _ => "peers[].url",
        };
        assert!(place(&schema, neighbor).is_some(), "{neighbor}");
    }
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, _) = run(&["completions", shell]);
        assert_eq!(code, 0);
        assert!(out.contains("delegation"), "{shell}");
    }
}

#[test]
fn delegation_prints_what_the_parent_needs() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), FIVE);
    let (code, out, _) = run(&["delegation", "svc.mesh", "--offline", "--config", &path]);
    assert_eq!(code, 0);
    for record in [
        "svc.mesh. 3600 IN NS ns1.svc.mesh.",
        "ns1.svc.mesh. 3600 IN A 192.0.2.53",
        "ns1.svc.mesh. 3600 IN AAAA 2001:db8::53",
    ] {
        assert!(
            out.lines().any(|line| line == record),
            "{record} is not in\n{out}"
        );
    }
    assert_eq!(
        run(&["delegation", "other.mesh", "--offline", "--config", &path]).0,
        1
    );
}

#[test]
fn samples_load_without_a_fault() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("config");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            let (code, out, err) = run(&["check", "--config", path.to_str().unwrap()]);
            assert_eq!(code, 0, "{}: {out}{err}", path.display());
            count += 1;
        }
    }
    assert!(count >= 2, "{count} samples");
}

#[test]
fn the_systemd_unit_is_sound() {
    need(&[SYSTEMD_ANALYZE]);
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/systemd/meridian.service"),
    )
    .unwrap();
    // What `run` survives, a missing database with a last good content say, must not keep the unit from starting.
    assert!(!text.contains("\nExecStartPre="), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("meridian.service");
    // The program is not installed here: its path is replaced by the one under test.
    std::fs::write(
        &unit,
        text.replace("/usr/local/bin/meridian", env!("CARGO_BIN_EXE_meridian")),
    )
    .unwrap();
    let output = std::process::Command::new(SYSTEMD_ANALYZE.0)
        .arg("verify")
        .arg("--man=no")
        .arg(&unit)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("meridian.service:"), "{said}");
}
