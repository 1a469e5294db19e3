//! FAULTS F26: who may post the dashboard's forms and change things through the API by cookie, as one table; and who may listen.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::door::{Guarded, REST, refused};
use crate::harness::events::Events;
use crate::harness::raw_http::{Answer, Web};

const PATIENCE: Duration = Duration::from_secs(20);
const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

/// What there is to drain and to force.
const SERVED: &str = "clusters:
  - {name: europe, provider: aws, region: eu-central-1}
  - {name: america, provider: aws, region: us-east-1}
  - {name: asia, provider: aws, region: ap-northeast-1}
  - {name: brazil, provider: aws, region: sa-east-1}
services:
  - namespace: shop
    name: web
    hostnames: [www.svc.mesh]
    endpoints:
      - {cluster: europe, addresses: [192.0.2.1]}
      - {cluster: america, addresses: [192.0.2.2]}
      - {cluster: asia, addresses: [192.0.2.3]}
      - {cluster: brazil, addresses: [192.0.2.4]}
";

/// A change, as a page or a program asks for it.
struct Change {
    method: &'static str,
    path: String,
    /// The media type of the body, and the body.
    body: Option<(&'static str, String)>,
    /// The status when it is done.
    done: u16,
}

impl Change {
    /// A form of the dashboard.
    fn form(path: &str, body: &str) -> Self {
        Self {
            method: "POST",
            path: path.to_owned(),
            body: Some((FORM, body.to_owned())),
            done: 303,
        }
    }

    /// A new record, by the API.
    fn post(path: &str, body: &Value) -> Self {
        Self {
            method: "POST",
            path: path.to_owned(),
            body: Some((JSON, body.to_string())),
            done: 201,
        }
    }

    /// The end of a record, by the API.
    fn delete(kind: &str, id: &str) -> Self {
        Self {
            method: "DELETE",
            path: format!("/api/v1/{kind}/{id}?reason=forged"),
            body: None,
            done: 200,
        }
    }

    /// Makes the request as it should be, but for who asks and from where.
    fn web(&self, door: &Guarded) -> Web {
        let kind = self.body.as_ref().map(|(kind, _)| *kind);
        self.web_as(door, kind)
    }

    /// The same with another media type, or none.
    fn web_as(&self, door: &Guarded, kind: Option<&str>) -> Web {
        let mut web = Web::new(door.to, self.method, &self.path);
        if let Some(kind) = kind {
            web = web.with("Content-Type", kind);
        }
        match &self.body {
            Some((_, body)) => web.body(body),
            None => web,
        }
    }
}

/// Makes a record as the operator, by token; gives its id.
fn begin(door: &Guarded, kind: &str, cluster: &str) -> String {
    let mut body = json!({"target": {"kind": "cluster", "cluster": cluster}, "reason": "honest"});
    if kind == "forces" {
        body["verdict"] = json!("up");
    }
    let web = Web::new(door.to, "POST", &format!("/api/v1/{kind}")).bearer(&door.operator.text);
    let answer = web.json(&body.to_string()).send();
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// Lists all records: id, reason, and who ended it.
fn records(door: &Guarded) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for kind in ["drains", "forces"] {
        let path = format!("/api/v1/{kind}?limit=500");
        let page = door.get(&path).bearer(&door.viewer.text).send().json();
        for item in page["items"].as_array().unwrap() {
            let text = |place: &str| item.pointer(place).unwrap().as_str().unwrap().to_owned();
            all.push((text("/id"), text("/created/reason"), item["ended"].clone()));
        }
    }
    all
}

/// Lists every change that a session can make; `ids` are two drains and two forces.
fn changes(ids: &[String; 4]) -> Vec<Change> {
    let [drain, force, other_drain, other_force] = ids;
    let target = json!({"kind": "cluster", "cluster": "asia"});
    vec![
        Change::form("/clusters/europe/drain", "reason=forged"),
        Change::form("/clusters/europe/force", "reason=forged&verdict=down"),
        Change::form("/services/shop/web/drain", "reason=forged"),
        Change::form("/services/shop/web/force", "reason=forged&verdict=down"),
        Change::form(&format!("/drains/{drain}/end"), "reason=forged"),
        Change::form(&format!("/forces/{force}/end"), "reason=forged"),
        Change::post(
            "/api/v1/drains",
            &json!({"target": target, "reason": "forged"}),
        ),
        Change::post(
            "/api/v1/forces",
            &json!({"target": target, "verdict": "down", "reason": "forged"}),
        ),
        Change::delete("drains", other_drain),
        Change::delete("forces", other_force),
    ]
}

/// Names the page that a request comes from.
fn origin(value: &str) -> (&str, &str) {
    ("Origin", value)
}

/// The same, as browsers say it of what they fetch.
fn site(value: &str) -> (&str, &str) {
    ("Sec-Fetch-Site", value)
}

/// Who asks, and from where: headers, and the status that they get.
type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, u16);

#[test]
fn changes_by_cookie_are_made_by_operators_on_pages_of_ours_alone() {
    let door = Guarded::serving("", &format!("{REST}{SERVED}"));
    let begun = |kind, cluster| begin(&door, kind, cluster);
    let ids = [
        begun("drains", "america"),
        begun("forces", "america"),
        begun("drains", "brazil"),
        begun("forces", "brazil"),
    ];
    let changes = changes(&ids);
    let before = records(&door);
    assert_eq!(before.len(), 4, "{before:?}");
    let viewer = door.sign_in(&door.viewer.text, "").cookie();
    let operator = door.sign_in(&door.operator.text, "").cookie();
    let (name, _) = operator.split_once('=').unwrap();
    let forged = format!("{name}={}", "0".repeat(64));
    let own = format!("http://{}", door.to);
    let (port, host) = (
        format!("http://{}:1", door.to.ip()),
        format!("http://localhost:{}", door.to.port()),
    );
    let bearer = format!("Bearer {}", door.operator.text);
    let (evil, cookie) = ("https://evil.example", ("Cookie", operator.as_str()));
    let cases: Vec<Case<'_>> = vec![
        ("nobody", vec![origin(&own)], 401),
        ("nobody, from elsewhere", vec![origin(evil)], 403),
        (
            "a forged cookie",
            vec![("Cookie", forged.as_str()), origin(&own)],
            401,
        ),
        (
            "a viewer",
            vec![("Cookie", viewer.as_str()), origin(&own)],
            403,
        ),
        (
            "a viewer, from elsewhere",
            vec![("Cookie", viewer.as_str()), origin(evil)],
            403,
        ),
        ("another site", vec![cookie, origin(evil)], 403),
        ("no site", vec![cookie, origin("null")], 403),
        ("another port", vec![cookie, origin(&port)], 403),
        ("another name", vec![cookie, origin(&host)], 403),
        ("two origins", vec![cookie, origin(&own), origin(evil)], 403),
        (
            "another site, as fetched",
            vec![cookie, site("cross-site")],
            403,
        ),
        (
            "a sister site, as fetched",
            vec![cookie, site("same-site")],
            403,
        ),
        ("typed by hand", vec![cookie, site("none")], 403),
        ("from nowhere", vec![cookie], 403),
        (
            "a token, from elsewhere",
            vec![("Authorization", bearer.as_str()), origin(evil)],
            403,
        ),
    ];
    for (who, headers, status) in &cases {
        for change in &changes {
            let add = |web: Web, (name, value): &(&str, &str)| web.with(name, value);
            let answer = headers.iter().fold(change.web(&door), add).send();
            assert_eq!(answer.status, *status, "{who}, {}: {answer:?}", change.path);
            refused(&answer, *status);
        }
        assert_eq!(records(&door), before, "{who}");
    }
    wrong_bodies(&door, &changes, &operator);
    assert_eq!(records(&door), before, "bodies of other types");
    for change in changes.iter().filter(|change| change.done == 303) {
        // To look at a form does nothing, whatever it is filled with.
        let get = door.get(&format!("{}?reason=forged", change.path));
        let answer = get.with("Cookie", &operator).send();
        assert_eq!(answer.status, 200, "{}: {answer:?}", change.path);
    }
    assert_eq!(records(&door), before, "forms looked at");
    // And the same requests, as our pages send them, are taken.
    for change in &changes {
        let web = change.web(&door).with("Cookie", &operator);
        let answer = web.with("Origin", &own).send();
        assert_eq!(answer.status, change.done, "{}: {answer:?}", change.path);
    }
    let after = records(&door);
    let made = after.iter().filter(|(_, reason, _)| reason == "forged");
    assert_eq!((after.len(), made.count()), (10, 6), "{after:?}");
    for (id, reason, ended) in &after {
        assert_eq!(ended.is_null(), reason == "forged", "{id}: {ended}");
        assert_eq!(ids.contains(id), reason == "honest", "{id}");
    }
}

/// Sends bodies that a page of another site can have a browser send, and bodies of the wrong type: all in the operator's name.
fn wrong_bodies(door: &Guarded, changes: &[Change], operator: &str) {
    let own = format!("http://{}", door.to);
    let send = |change: &Change, kind: Option<&str>| -> Answer {
        let web = change.web_as(door, kind).with("Cookie", operator);
        web.with("Origin", &own).send()
    };
    for change in changes {
        for kind in [
            "text/plain",
            "multipart/form-data; boundary=a",
            "application/xml",
        ] {
            refused(&send(change, Some(kind)), 415);
        }
        let Some((right, _)) = &change.body else {
            continue;
        };
        refused(&send(change, None), 415);
        let other = if *right == FORM { JSON } else { FORM };
        let answer = send(change, Some(other));
        assert_eq!(answer.status, 415, "{} {other}: {answer:?}", change.path);
    }
}

#[test]
fn pages_of_other_sites_hear_nothing() {
    let door = Guarded::serving("", &format!("{REST}{SERVED}"));
    let operator = door.sign_in(&door.operator.text, "").cookie();
    let own = format!("http://{}", door.to);
    begin(&door, "drains", "america");
    for path in ["/live", "/api/v1/events"] {
        let listen = || door.get(path).with("Accept", "text/event-stream");
        refused(&listen().send(), 401);
        refused(&listen().with("Origin", &own).send(), 401);
        refused(&listen().bearer(&door.peer.text).send(), 403);
        for (name, value) in [
            ("Origin", "https://evil.example"),
            ("Origin", "null"),
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
        ] {
            let stream = listen().with(name, value);
            refused(&stream.clone().with("Cookie", &operator).send(), 403);
            refused(&stream.bearer(&door.viewer.text).send(), 403);
        }
        // A page of ours hears: of the drain, and on `/live` that nothing else happens.
        let web = door.get(path).with("Cookie", &operator);
        let web = web.with("Origin", &own).with("Last-Event-ID", "0");
        assert!(Events::open(web).next(PATIENCE).is_some(), "{path}");
    }
}
