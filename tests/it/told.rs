//! What the node tells of where things come from: refusals, a lost peer, drains that became safe. Each once, and where to look.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::door::token;
use crate::harness::node::Node;
use crate::harness::raw_http::Web;
use crate::harness::{loopback, wait_for};
use crate::samples::{FIVE, FIVE_ZONE};

const PATIENCE: Duration = Duration::from_secs(20);
/// How long a drain may take to be safe: a TTL of 1 s and a margin of 5 s, and some.
const SAFE: Duration = Duration::from_secs(60);

/// Reads JSON that must be there.
fn read(node: &Node, path: &str) -> Value {
    let answer = Web::get(node.http(), path).send();
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

/// Lists the events of a kind, oldest first: how severe, and what was said.
fn told(node: &Node, kind: &str) -> Vec<(String, String)> {
    let page = read(node, &format!("/api/v1/events?kind={kind}&limit=500"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = page["items"].as_array().unwrap().iter().rev();
    items
        .map(|event| (text(&event["severity"]), text(&event["text"])))
        .collect()
}

/// Gives the one source of a kind.
fn source(node: &Node, kind: &str) -> Value {
    let page = read(node, "/api/v1/sources");
    let items = page["items"].as_array().unwrap();
    let mut found = items.iter().filter(|source| source["kind"] == kind);
    let one = found
        .next()
        .unwrap_or_else(|| panic!("no {kind} in {page}"));
    assert!(found.next().is_none(), "{page}");
    one.clone()
}

/// Checks that a source is refused at a place, in the API, on the page, in the overview and in an event.
#[track_caller]
fn refused(node: &Node, kind: &str, place: &str, event: &(String, String)) {
    let source = source(node, kind);
    assert_eq!(source["state"], "refused", "{source}");
    let listed = source["refused"].as_array().unwrap();
    assert_eq!(source["refusedCount"], listed.len(), "{source}");
    let spot = listed[0]["place"].as_str().unwrap();
    let reason = listed[0]["reason"].as_str().unwrap();
    assert!(spot.contains(place) && !reason.is_empty(), "{source}");
    let words = format!("{spot}: {reason}");
    assert!(
        event.0 == "warning" && event.1.contains(&words),
        "{event:?}"
    );
    let status = read(node, "/api/v1/status");
    let problems = status["problems"].as_array().unwrap();
    let is_said = |problem: &Value| problem["text"].as_str().unwrap().starts_with(&words);
    assert!(problems.iter().any(is_said), "{words}: {status}");
    let page = Web::get(node.http(), "/sources").send();
    assert!(page.body.contains(spot), "{spot}: {page:?}");
}

/// Breaks the configuration, has it read three times, and gives the place of the fault.
fn break_configuration(node: &mut Node) -> String {
    let bad = node.config().replace("ttl: 10", "ttl: -1");
    let line = bad.lines().position(|line| line.contains("ttl: -1"));
    let place = format!("meridian.yaml:{}:", line.unwrap() + 1);
    node.write_config(&bad);
    for refused in 1..=3 {
        node.process().signal("HUP");
        wait_for("the refusal", PATIENCE, || {
            let failures = node.metric("meridian_config_reload_failures_total");
            (failures >= f64::from(refused)).then_some(())
        });
    }
    place
}

#[test]
fn what_is_refused_and_who_is_lost_is_told_once_and_the_reasons_go_when_it_is_mended() {
    let peer = format!("http://{}:1", loopback());
    let text = format!("{FIVE}peers: [{{url: \"{peer}\"}}]\n");
    let mut node = Node::start_on(loopback(), "", &text, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap()
    });
    let good = node.config();
    let zone = node.folder().join("svc.mesh.zone");
    assert!(told(&node, "refusal").is_empty());

    std::fs::write(&zone, format!("{FIVE_ZONE}\nbad A 1.2.3.4.5\n")).unwrap();
    let line = FIVE_ZONE.lines().count() + 2;
    let first = wait_for("the refused zone file", PATIENCE, || {
        told(&node, "refusal").pop()
    });
    let zone_place = format!("svc.mesh.zone:{line}");
    refused(&node, "zoneFile", &zone_place, &first);

    let place = break_configuration(&mut node);
    let both = told(&node, "refusal");
    assert!(both.len() == 2 && both[0] == first, "{both:?}");
    refused(&node, "configuration", &place, &both[1]);
    assert!(both[1].1.contains("services[0].ttl"), "{both:?}");
    refused(&node, "zoneFile", &zone_place, &first);

    node.write_config(&good);
    std::fs::write(&zone, FIVE_ZONE).unwrap();
    node.process().signal("HUP");
    let all = wait_for("both to be mended", PATIENCE, || {
        let all = told(&node, "refusal");
        (all.len() >= 4).then_some(all)
    });
    assert_eq!(all[..2], both[..], "{all:?}");
    let over = |name: &str| {
        let text = format!("{name} is refused no longer");
        let is_it = |event: &&(String, String)| event.0 == "info" && event.1.ends_with(&text);
        all[2..].iter().filter(is_it).count()
    };
    assert_eq!(
        (all.len(), over("meridian.yaml"), over("svc.mesh.zone")),
        (4, 1, 1),
        "{all:?}"
    );
    for kind in ["configuration", "zoneFile"] {
        let source = source(&node, kind);
        assert_eq!(source["state"], "ok", "{source}");
        assert_eq!(source["refused"], json!([]), "{source}");
        assert_eq!(source["refusedCount"], 0, "{source}");
    }

    // It was asked every second meanwhile.
    let lost = told(&node, "source");
    let [(severity, text)] = &lost[..] else {
        panic!("{lost:?}")
    };
    assert_eq!(severity, "warning");
    assert!(
        text.starts_with(&format!("Peer {peer} cannot be reached: ")),
        "{text}"
    );
    assert_eq!(source(&node, "peer")["state"], "stale");
    let heard = format!("meridian_vantage_peer_heard_timestamp_seconds{{peer=\"{peer}\"}}");
    assert_eq!(node.metric(&heard), 0.0);
}

#[test]
fn a_configuration_file_that_is_gone_is_a_stale_source_and_told_once() {
    let node = Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap()
    });
    let away = node.folder().join("away.yaml");
    std::fs::rename(node.config_path(), &away).unwrap();
    wait_for("the loss to be told", PATIENCE, || {
        (told(&node, "source").len() == 1).then_some(())
    });
    wait_for("the source to be stale", PATIENCE, || {
        (source(&node, "configuration")["state"] == "stale").then_some(())
    });
    std::fs::rename(&away, node.config_path()).unwrap();
    let all = wait_for("its return to be told", PATIENCE, || {
        let all = told(&node, "source");
        (all.len() >= 2).then_some(all)
    });
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all[0].1.contains("meridian.yaml is gone"), "{all:?}");
    assert!(all[1].1.ends_with("meridian.yaml is back"), "{all:?}");
    wait_for("the source to be in order", PATIENCE, || {
        (source(&node, "configuration")["state"] == "ok").then_some(())
    });
    assert!(told(&node, "refusal").is_empty());
}

#[test]
fn drains_that_become_safe_are_told_of_once_each() {
    let operator = token();
    let admin = "tokens: [{name: ops, file: ops.token, role: operator}], ";
    let text = FIVE
        .replace("    file: svc.mesh.zone\n", "    ttl: 1\n")
        .replace("ttl: 10\n", "ttl: 1\n");
    let node = Node::start_admin(admin, &text, |folder| {
        std::fs::write(folder.join("ops.token"), &operator.line).unwrap()
    });
    let safe = || -> Vec<String> {
        let texts = told(&node, "drain").into_iter().map(|(_, text)| text);
        texts.filter(|text| text.contains("safe to stop")).collect()
    };
    let mut expected = Vec::new();
    // The second takes its time: the first is looked at again and again meanwhile.
    for cluster in ["brazil", "africa"] {
        let body = json!({"target": {"kind": "cluster", "cluster": cluster}, "reason": "upgrade"});
        let drain = Web::new(node.http(), "POST", "/api/v1/drains").bearer(&operator.text);
        let answer = drain.json(&body.to_string()).send();
        assert_eq!(answer.status, 201, "{answer:?}");
        assert_eq!(safe(), expected);
        expected.push(format!("Drain of cluster {cluster}: safe to stop"));
        wait_for("the drain to be safe", SAFE, || {
            (safe().len() == expected.len()).then_some(())
        });
        assert_eq!(safe(), expected);
        let about = read(
            &node,
            &format!("/api/v1/events?kind=drain&cluster={cluster}"),
        );
        assert_eq!(about["items"][0]["text"], expected[expected.len() - 1]);
    }
}
