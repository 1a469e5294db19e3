//! What operators change by the API: again and again, at other times, turned, ended; and what the audit log keeps of it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use crate::api::{PATIENCE, Site, header, problem};
use crate::harness::raw_http::Web;
use crate::harness::wait_for;

#[test]
fn a_drain_can_be_asked_for_and_ended_again_and_again() {
    let site = Site::start("");
    let body = json!({"target": {"kind": "cluster", "cluster": "aws-use1"}, "reason": "upgrade"});
    let first = site.post("/api/v1/drains", &body);
    assert_eq!(first.status, 201, "{first:?}");
    let place = header(&first, "location").to_owned();
    let id = first.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(place, format!("/api/v1/drains/{id}"));
    let again = json!({"target": {"kind": "cluster", "cluster": "aws-use1"}, "reason": "another"});
    let second = site.post("/api/v1/drains", &again);
    assert_eq!(second.status, 200, "{second:?}");
    assert_eq!(header(&second, "location"), "");
    assert_eq!(second.json()["id"], id.as_str());
    assert_eq!(second.json()["created"]["reason"], "upgrade");
    // Other times are another wish: what stands is named, and nothing is taken for granted.
    let other = json!({"target": {"kind": "cluster", "cluster": "aws-use1"}, "reason": "short", "forSeconds": 600});
    let refused = problem(&site.post("/api/v1/drains", &other), 409, None);
    let detail = refused["detail"].as_str().unwrap();
    assert!(
        detail.contains(&id) && detail.contains("end it first"),
        "{detail}"
    );
    assert_eq!(site.read("/api/v1/drains")["total"], 1);
    wait_for("the drain to be in force", PATIENCE, || {
        let cluster = site.read("/api/v1/clusters/aws-use1");
        (cluster["state"] == "drained" && cluster["drain"]["id"] == id.as_str()).then_some(())
    });
    problem(&site.change("DELETE", &place).send(), 422, Some("reason"));
    let empty = site.change("DELETE", &format!("{place}?reason=")).send();
    problem(&empty, 422, Some("reason"));
    let both = site.change("DELETE", &format!("{place}?reason=a"));
    problem(&both.json("{\"reason\":\"b\"}").send(), 400, Some("reason"));
    let ended = site
        .change("DELETE", &format!("{place}?reason=all%20done"))
        .send();
    assert_eq!(ended.status, 200, "{ended:?}");
    assert_eq!(ended.json()["state"], "ended");
    let later = site
        .change("DELETE", &place)
        .json("{\"reason\":\"later\"}")
        .send();
    assert_eq!(later.status, 200, "{later:?}");
    assert_eq!(later.json()["ended"], ended.json()["ended"]);
    assert_eq!(later.json()["ended"]["reason"], "all done");
    let audit = site.change("GET", "/api/v1/audit").send().json();
    let words: BTreeSet<&str> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["actor"].as_str().unwrap())
        .collect();
    assert!(words.contains("ops"), "{audit}");
}

#[test]
fn the_audit_log_tells_what_was_before_and_after() {
    let site = Site::start("");
    let target = json!({"kind": "cluster", "cluster": "gcp-euw1"});
    for verdict in ["down", "up"] {
        let body =
            json!({"target": target, "verdict": verdict, "reason": format!("now {verdict}")});
        assert_eq!(site.post("/api/v1/forces", &body).status, 201);
    }
    let log = site.change("GET", "/api/v1/audit").send().json();
    let entries = log["items"].as_array().unwrap();
    // Newest first: the force down, its end by the other, the force up.
    let told: Vec<(&str, &str, &Value, &Value)> = entries
        .iter()
        .take(3)
        .rev()
        .map(|entry| {
            let word = |name: &str| entry[name].as_str().unwrap();
            let from: IpAddr = word("from").parse().unwrap();
            assert!(word("actor") == "ops" && from.is_loopback(), "{entry}");
            let state = |when: &str| &entry[when]["ended"]["reason"];
            (
                word("action"),
                word("reason"),
                state("before"),
                state("after"),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("force", "now down", &Value::Null, &Value::Null),
            ("unforce", "now up", &Value::Null, &json!("now up")),
            ("force", "now up", &Value::Null, &Value::Null),
        ],
        "{log}"
    );
    assert!(
        entries[2]["before"].is_null() && entries[1]["before"].is_object(),
        "{log}"
    );
}

#[test]
fn a_force_is_ended_by_a_reason_in_a_body() {
    let site = Site::start("");
    let target = json!({"kind": "service", "service": "shop/web", "cluster": "gcp-euw1"});
    let body = json!({"target": target, "verdict": "down", "reason": "corrupt", "forSeconds": 600});
    let first = site.post("/api/v1/forces", &body);
    assert_eq!(first.status, 201, "{first:?}");
    let place = header(&first, "location").to_owned();
    assert_eq!(site.post("/api/v1/forces", &body).status, 200);
    assert_eq!(site.read(&place)["active"], true);
    let ended = site
        .change("DELETE", &place)
        .json("{\"reason\":\"repaired\"}")
        .send();
    assert_eq!(ended.status, 200, "{ended:?}");
    assert_eq!(ended.json()["active"], false);
    assert_eq!(ended.json()["ended"]["reason"], "repaired");
    let unknown = site
        .change("DELETE", &place)
        .json("{\"because\":\"x\"}")
        .send();
    problem(&unknown, 422, Some("because"));
    let text = site.change("DELETE", &place).body("repaired").send();
    problem(&text, 415, None);
}

#[test]
fn the_audit_log_is_for_operators() {
    let site = Site::start("");
    let http = site.node.http();
    for path in ["/audit", "/api/v1/audit"] {
        for part in [false, true] {
            let page = Web::get(http, path).with("Accept", "text/html");
            let page = if part {
                page.with("HX-Request", "true")
            } else {
                page
            };
            // Nobody is signed in: on the node's own machine that is a viewer.
            let nobody = page.clone().send();
            assert!(matches!(nobody.status, 401 | 403), "{path}: {nobody:?}");
            let viewer = page.clone().bearer(&site.viewer).send();
            assert_eq!(viewer.status, 403, "{path}: {viewer:?}");
            let operator = page.bearer(&site.operator).send();
            assert_eq!(operator.status, 200, "{path}: {operator:?}");
        }
    }
}
