//! `check`: every fault at once, each with its place, and quickly.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::node::meridian;
use crate::samples::FIVE;

/// Writes a configuration and gives its path.
fn write(folder: &Path, text: &str) -> String {
    let path = folder.join("meridian.yaml");
    let head = "version: 1\ndns: {listen: [\"127.0.0.1:5300\"]}\n";
    std::fs::write(&path, format!("{head}{text}")).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Checks and gives the exit code and the findings.
fn findings(path: &str) -> (i32, Vec<Value>) {
    let output = meridian(&["check", "--config", path, "--output", "json"]);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = result["findings"].as_array().unwrap().clone();
    (output.status.code().unwrap(), findings)
}

/// A claim to a static name, a missing database and a name server that is doubtful.
fn faulty() -> String {
    let thief = "
  - namespace: thief
    name: web
    hostnames: [static.other.mesh]
    endpoints: [{cluster: europe, addresses: [192.0.2.66]}]
geoip: {databases: [missing.mmdb]}
";
    let doubtful = "nameservers: [{name: ns.other.mesh, addresses: [192.0.2.54]}, ";
    let other = "  - {name: other.mesh, nameservers: [{name: ns.mesh}], contact: hostmaster.mesh, file: other.zone}\nclusters:\n";
    let zones = FIVE.replace("nameservers: [", doubtful);
    format!("{}{thief}", zones.replace("clusters:\n", other))
}

/// Line of a text in the file, from 1.
fn line_of(path: &str, text: &str) -> u64 {
    let whole = std::fs::read_to_string(path).unwrap();
    let at = whole.lines().position(|line| line.contains(text)).unwrap();
    at as u64 + 1
}

#[test]
fn faults_of_all_stages_are_reported_at_once_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let zone = folder.path().join("svc.mesh.zone");
    std::fs::write(&zone, "$TTL 300\nbad A x\n").unwrap();
    let other = folder.path().join("other.zone");
    std::fs::write(other, "$TTL 300\nstatic A 192.0.2.9\n").unwrap();
    let path = write(folder.path(), &faulty());
    let (code, found) = findings(&path);
    assert_eq!(code, 1);
    let one = |place: &str| {
        let finding = found.iter().find(|finding| finding["path"] == place);
        finding.unwrap_or_else(|| panic!("{place} is not in {found:#?}"))
    };
    let database = one("geoip.databases[0]");
    assert_eq!(database["line"], line_of(&path, "missing.mmdb"));
    assert!(database["message"].to_string().contains("missing.mmdb"));
    let claim = one("services[5].hostnames[0]");
    assert_eq!(claim["line"], line_of(&path, "static.other.mesh"));
    assert!(claim["message"].to_string().contains("HostnameConflict"));
    let file = found.iter().find(|finding| {
        let source = finding["source"].as_str().unwrap();
        source.ends_with("svc.mesh.zone") && finding["line"] == 2
    });
    let from = &file.unwrap_or_else(|| panic!("{found:#?}"))["from"];
    assert_eq!(from["path"], "zones[0].file");
    assert_eq!(from["line"], line_of(&path, "file: svc.mesh.zone"));
    assert!(found.iter().any(|finding| finding["level"] == "warning"));
    // The same with a fault of the configuration itself.
    let path = write(folder.path(), &faulty().replace("ttl: 10", "ttl: soon"));
    let (code, found) = findings(&path);
    assert_eq!(code, 1);
    for place in [
        "services[0].ttl",
        "services[5].hostnames[0]",
        "geoip.databases[0]",
    ] {
        assert!(
            found.iter().any(|finding| finding["path"] == place),
            "{place} is not in {found:#?}"
        );
    }
    let says = |text: &str| {
        found
            .iter()
            .any(|finding| finding.to_string().contains(text))
    };
    assert!(says("\"line\":2") && says("svc.mesh.zone"), "{found:#?}");
    assert!(
        found.iter().any(|finding| finding["level"] == "warning"),
        "{found:#?}"
    );
}

#[test]
fn a_thousand_zones_of_a_hundred_records_load_in_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = "zones:\n".to_owned();
    for zone in 0..1000 {
        let mut records = "$TTL 300\n".to_owned();
        for at in 0..100 {
            records.push_str(&format!("host{at} A 192.0.2.{at}\n"));
        }
        std::fs::write(folder.path().join(format!("{zone}.zone")), records).unwrap();
        config.push_str(&format!("  - {{name: z{zone}.mesh, nameservers: [{{name: ns1.z{zone}.mesh, addresses: [192.0.2.53]}}], contact: hostmaster.mesh, file: {zone}.zone}}\n"));
    }
    let path = write(folder.path(), &config);
    let begun = Instant::now();
    let (code, found) = findings(&path);
    let took = begun.elapsed();
    assert_eq!((code, found.len()), (0, 0), "{found:#?}");
    println!("a thousand zones with a hundred records each: {took:?}");
    // A program without optimizations takes longer, on a busy machine too.
    let bound = if cfg!(debug_assertions) { 5 } else { 1 };
    assert!(took < Duration::from_secs(bound), "{took:?}");
}

#[test]
fn a_slip_in_the_log_level_is_a_usage_error() {
    for (level, right) in [
        ("infoo", "info"),
        ("bogus===", "debug"),
        ("nowhere=debug", "meridian"),
        ("meridian::transprot=debug", "transport"),
        ("meridian=loud", "trace"),
    ] {
        let output = meridian(&["--log-level", level, "schema"]);
        assert_eq!(output.status.code(), Some(2), "{level}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(right), "{level}: {said}");
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_meridian"))
            .env("MERIDIAN_LOG", level)
            .arg("schema")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "MERIDIAN_LOG={level}");
    }
    for level in [
        "WARNING",
        "warn",
        "Info",
        "off",
        "info,meridian::transport=debug",
        "",
    ] {
        let output = meridian(&["--log-level", level, "schema"]);
        assert_eq!(output.status.code(), Some(0), "{level}");
    }
}
