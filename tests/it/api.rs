//! The API, asked over HTTP: every route, pages, filters, tags, failures, changes, and the stream of events.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::backend::Backend;
use crate::harness::events::Events;
use crate::harness::node::{Node, meridian};
use crate::harness::packages::{CURL, JQ, need};
use crate::harness::raw_http::{Answer, Web};
use crate::harness::{loopback, wait_for};

pub const PATIENCE: Duration = Duration::from_secs(20);

/// Services without a monitor.
const MANY: usize = 60;

/// The section `admin` with a token of each role.
const ADMIN: &str = "tokens: [{name: ops, file: ops.token, role: operator}, {name: eyes, file: eyes.token, role: viewer}], ";

/// A node with many services, and one that is monitored.
pub struct Site {
    pub node: Node,
    pub operator: String,
    pub viewer: String,
    /// Plays the endpoint in `aws-use1`.
    backend: Option<Backend>,
    _steady: Backend,
}

/// Gives a header; empty when there is none.
pub fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.header(name).unwrap_or_default()
}

/// Makes a token; writes the line for it.
fn token(folder: &Path, file: &str) -> String {
    let output = meridian(&["token", "--output", "json"]);
    let fresh: Value = serde_json::from_slice(&output.stdout).unwrap();
    std::fs::write(folder.join(file), fresh["line"].as_str().unwrap()).unwrap();
    fresh["token"].as_str().unwrap().to_owned()
}

/// Writes what is served: `checked` is monitored on these addresses.
fn config(first: &Backend, second: &Backend) -> String {
    let port = first.address().port();
    let mut text = format!(
        "
zones: [{{name: svc.example.com, nameservers: [{{name: ns1.svc.example.com, addresses: [192.0.2.53]}}], contact: hostmaster.svc.example.com, names: [kubefed, \"{{service}}.{{namespace}}\"], federationName: prod}}]
clusters:
  - {{name: aws-use1, provider: aws, region: us-east-1}}
  - {{name: gcp-euw1, provider: gcp, region: europe-west1}}
services:
  - namespace: shop
    name: web
    hostnames: [www.svc.example.com]
    monitor: {{http: {{path: /, port: {port}}}, interval: 500ms, timeout: 250ms, rise: 1}}
    endpoints: [{{cluster: aws-use1, addresses: [{}]}}, {{cluster: gcp-euw1, addresses: [{}]}}]
",
        first.address().ip(),
        second.address().ip(),
    );
    for at in 0..MANY {
        let cluster = ["aws-use1", "gcp-euw1"][at % 2];
        let _ = writeln!(
            text,
            "  - {{namespace: many, name: s{at:03}, hostnames: [s{at:03}.svc.example.com], monitor: {{none: {{}}}}, endpoints: [{{cluster: {cluster}, addresses: [192.0.2.{}]}}]}}",
            at + 1
        );
    }
    text
}

impl Site {
    /// Starts one; `admin` is put into the section of that name.
    pub fn start(admin: &str) -> Self {
        let steady = Backend::start(loopback(), 0);
        let backend = Backend::start(loopback(), steady.address().port());
        let (mut operator, mut viewer) = (String::new(), String::new());
        let text = config(&backend, &steady);
        let node = Node::start_admin(&format!("{ADMIN}{admin}"), &text, |folder| {
            operator = token(folder, "ops.token");
            viewer = token(folder, "eyes.token");
        });
        let site = Self {
            node,
            operator,
            viewer,
            backend: Some(backend),
            _steady: steady,
        };
        wait_for("both endpoints to be up", PATIENCE, || {
            let service = site.read("/api/v1/services/shop/web");
            (service["counts"]["up"] == 2).then_some(())
        });
        site
    }

    /// Asks by GET with the viewer's token.
    fn get(&self, path: &str) -> Answer {
        Web::get(self.node.http(), path).bearer(&self.viewer).send()
    }

    /// As above, for JSON that must be there.
    pub fn read(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// Makes a request with the operator's token.
    pub fn change(&self, method: &str, path: &str) -> Web {
        Web::new(self.node.http(), method, path).bearer(&self.operator)
    }

    /// Posts a body as the operator.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.change("POST", path).json(&body.to_string()).send()
    }
}

/// Every path that is read, and what must be in the answer.
const READS: &[(&str, &str)] = &[
    ("/api/v1/status", "/node/name"),
    ("/api/v1/status/traffic", "/stepSeconds"),
    ("/api/v1/clusters", "/items/1/name"),
    ("/api/v1/clusters/aws-use1", "/location/latitude"),
    ("/api/v1/services", "/items/49/key"),
    ("/api/v1/services/shop/web", "/endpoints/1/address"),
    ("/api/v1/names/www.svc.example.com", "/key"),
    ("/api/v1/names/WWW.svc.Example.com.", "/key"),
    ("/api/v1/monitors", "/items/0/target"),
    ("/api/v1/events", "/items/0/text"),
    ("/api/v1/drains", "/total"),
    ("/api/v1/forces", "/total"),
    ("/api/v1/vantage", "/total"),
    ("/api/v1/zones", "/items/0/serial"),
    ("/api/v1/sources", "/items/0/kind"),
    (
        "/api/v1/explain?name=www.svc.example.com&client=198.51.100.0/24",
        "/steps/0/text",
    ),
    (
        "/api/v1/explain?name=www.svc.example.com&type=aaaa&resolver=198.51.100.1",
        "/rcode",
    ),
];

#[test]
fn every_read_answers_with_a_tag() {
    let site = Site::start("");
    for (path, pointer) in READS {
        let answer = site.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_eq!(
            header(&answer, "content-type"),
            "application/json",
            "{path}"
        );
        assert_eq!(header(&answer, "cache-control"), "no-cache", "{path}");
        assert!(
            answer.json().pointer(pointer).is_some(),
            "{path}: {answer:?}"
        );
        let tag = header(&answer, "etag");
        assert!(tag.starts_with('"') && tag.len() == 34, "{path}: {tag}");
        // What changes by itself is held against itself again until it stood still for a moment.
        wait_for(path, PATIENCE, || {
            let tag = header(&site.get(path), "etag").to_owned();
            let again = Web::get(site.node.http(), path).bearer(&site.viewer);
            let again = again.with("If-None-Match", &tag).send();
            assert!(!header(&again, "etag").is_empty(), "{path}: {again:?}");
            assert_eq!(
                again.status == 304,
                again.body.is_empty(),
                "{path}: {again:?}"
            );
            (again.status == 304 && header(&again, "etag") == tag).then_some(())
        });
        let head = Web::new(site.node.http(), "HEAD", path).bearer(&site.viewer);
        let head = head.send();
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
        assert!(!header(&head, "etag").is_empty(), "{path}");
    }
    let zone = site.read("/api/v1/zones/SVC.example.com.");
    assert_eq!(zone["name"], "svc.example.com");
    assert_eq!(
        zone["nameForms"],
        json!(["kubefed", "{service}.{namespace}"])
    );
    assert_eq!(zone["federationName"], "prod");
    assert!(zone["delegation"]["wanted"].is_array(), "{zone}");
}

#[test]
fn pages_give_each_item_once_and_filters_hold() {
    let site = Site::start("");
    let through = |filter: &str, limit: usize| {
        let (mut keys, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let page = site.read(&format!("/api/v1/services?limit={limit}{filter}{cursor}"));
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= limit);
            keys.extend(
                items
                    .iter()
                    .map(|item| item["key"].as_str().unwrap().to_owned()),
            );
            pages += 1;
            let Some(next) = page["next"].as_str() else {
                assert_eq!(page["total"], keys.len());
                return (keys, pages);
            };
            assert_eq!(items.len(), limit);
            cursor = format!("&cursor={next}");
        }
    };
    let (all, pages) = through("", 7);
    assert_eq!(pages, (MANY + 1).div_ceil(7));
    assert_eq!(all.len(), MANY + 1);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), MANY + 1);
    assert!(all.is_sorted(), "{all:?}");
    for limit in [1, 61, 500] {
        assert_eq!(through("", limit).0, all, "{limit}");
    }
    assert_eq!(through("&namespace=shop", 5).0, ["shop/web"]);
    assert_eq!(through("&search=S00", 5).0.len(), 10);
    assert_eq!(through("&cluster=gcp-euw1", 9).0.len(), MANY / 2 + 1);
    assert_eq!(through("&state=up", 9).0, ["shop/web"]);
    assert_eq!(through("&state=unknown&namespace=many", 9).0.len(), MANY);
    assert!(through("&search=nowhere", 9).0.is_empty());
    let monitors = site.read("/api/v1/monitors?verdict=up&neverSucceeded=false");
    assert_eq!(monitors["total"], 2);
    let monitors = site.read("/api/v1/monitors?cluster=gcp-euw1");
    assert_eq!(monitors["total"], 1, "{monitors}");
    assert_eq!(monitors["items"][0]["clusters"], json!(["gcp-euw1"]));
    let events = site.read("/api/v1/events?kind=publish&severity=info&limit=1");
    assert!(events["total"].as_u64().unwrap() >= 1, "{events}");
    assert_eq!(events["items"].as_array().unwrap().len(), 1);
}

/// Checks that an answer is a problem; gives it.
#[track_caller]
pub fn problem(answer: &Answer, status: u16, field: Option<&str>) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(header(answer, "content-type"), "application/problem+json");
    let problem = answer.json();
    assert_eq!(problem["status"], status, "{answer:?}");
    assert!(!problem["title"].as_str().unwrap().is_empty(), "{answer:?}");
    assert_eq!(problem["field"].as_str(), field, "{answer:?}");
    problem
}

#[test]
fn failures_are_problems() {
    let site = Site::start("anonymous: none, ");
    for (path, status, field) in [
        ("/api/v1/nothing", 404, None),
        ("/api/v2/status", 404, None),
        ("/api/v1/status/", 404, None),
        ("/api/v1/clusters/mars", 404, None),
        ("/api/v1/services/shop/nothing", 404, None),
        ("/api/v1/names/other.example.org", 404, None),
        ("/api/v1/zones/example.org", 404, None),
        ("/api/v1/drains/none", 404, None),
        ("/api/v1/forces/none", 404, None),
        ("/api/v1/clusters/%ff", 400, None),
        ("/api/v1/status?verbose=1", 400, Some("verbose")),
        ("/api/v1/services?limit=501", 400, Some("limit")),
        ("/api/v1/services?state=broken", 400, Some("state")),
        ("/api/v1/services?cursor=%21", 400, None),
        ("/api/v1/events?cursor=x", 400, None),
        ("/api/v1/monitors?cursor=%21", 400, None),
        ("/api/v1/drains?cursor=%21", 400, None),
        ("/api/v1/forces?cursor=%21", 400, None),
        ("/api/v1/monitors?cluster=nowhere", 404, None),
        ("/api/v1/monitors?verdict=sideways", 400, Some("verdict")),
        ("/api/v1/explain?client=192.0.2.1", 400, Some("name")),
        ("/api/v1/explain?name=www.svc.example.com", 400, None),
        ("/api/v1/explain?name=a..b&client=192.0.2.1", 400, None),
        ("/api/v1/audit", 403, None),
    ] {
        problem(&site.get(path), status, field);
    }
    let cursor = site.change("GET", "/api/v1/audit?cursor=%21").send();
    problem(&cursor, 400, None);
    let unknown = problem(&site.get("/api/v1/drains?page=2"), 400, Some("page"));
    let detail = unknown["detail"].as_str().unwrap();
    assert!(detail.contains("`limit`, `cursor`"), "{detail}");
    for (method, path, allow) in [
        ("PUT", "/api/v1/status", "GET,HEAD"),
        ("DELETE", "/api/v1/drains", "GET,HEAD,POST"),
        ("PATCH", "/api/v1/drains/x", "GET,HEAD,DELETE"),
        ("POST", "/api/openapi.json", "GET,HEAD"),
    ] {
        let answer = site.change(method, path).send();
        problem(&answer, 405, None);
        assert_eq!(header(&answer, "allow"), allow, "{method} {path}");
    }
}

#[test]
fn bodies_are_refused_with_their_place() {
    let site = Site::start("");
    let fits = json!({"target": {"kind": "cluster", "cluster": "aws-use1"}, "reason": "x"});
    let fits = fits.to_string();
    let post = || site.change("POST", "/api/v1/drains");
    let broken = problem(&post().json("{\n \"target\": }").send(), 400, None);
    let detail = broken["detail"].as_str().unwrap();
    assert!(detail.contains("line 2 column 12"), "{detail}");
    problem(&post().body(&fits).send(), 415, None);
    let as_text = post().with("Content-Type", "text/plain").body(&fits).send();
    problem(&as_text, 415, None);
    let huge = fits.replace("\"x\"", &format!("\"{}\"", "x".repeat(17 * 1024)));
    problem(&post().json(&huge).send(), 413, None);
    for (path, body, field) in [
        ("drains", json!({"reason": "x"}), "target"),
        (
            "drains",
            json!({"target": {"kind": "cluster"}, "reason": "x"}),
            "target.cluster",
        ),
        (
            "drains",
            json!({"target": {"kind": "cluster", "cluster": "aws-use1"}, "reason": "a\nb"}),
            "reason",
        ),
        (
            "forces",
            json!({"target": {"kind": "service", "service": "shop/web"}, "verdict": "up", "reason": ""}),
            "reason",
        ),
        (
            "forces",
            json!({"target": {"kind": "service", "service": "shop/web"}, "reason": "x"}),
            "verdict",
        ),
    ] {
        problem(
            &site.post(&format!("/api/v1/{path}"), &body),
            422,
            Some(field),
        );
    }
    let nowhere = json!({"target": {"kind": "cluster", "cluster": "mars"}, "reason": "x"});
    let missing = problem(&site.post("/api/v1/drains", &nowhere), 422, None);
    assert!(
        missing["detail"].as_str().unwrap().contains("mars"),
        "{missing}"
    );
    assert_eq!(site.read("/api/v1/drains")["total"], 0);
    assert_eq!(site.read("/api/v1/forces")["total"], 0);
}

#[test]
fn only_operators_change_and_nobody_without_a_token_reads() {
    let site = Site::start("anonymous: none, ");
    let http = site.node.http();
    let body = json!({"target": {"kind": "cluster", "cluster": "aws-use1"}, "reason": "x"});
    for (path, _) in READS {
        let refused = Web::get(http, path).send();
        problem(&refused, 401, None);
        assert!(
            header(&refused, "www-authenticate").starts_with("Bearer"),
            "{path}"
        );
    }
    let post = Web::new(http, "POST", "/api/v1/drains").json(&body.to_string());
    problem(&post.send(), 401, None);
    problem(&post.clone().bearer("mrd_wrong").send(), 401, None);
    problem(&post.bearer(&site.viewer).send(), 403, None);
    let end = Web::new(http, "DELETE", "/api/v1/drains/x?reason=x").bearer(&site.viewer);
    problem(&end.send(), 403, None);
    assert_eq!(site.read("/api/v1/drains")["total"], 0);
    // The reference says nothing of what there is, and is open.
    for path in ["/api/openapi.json", "/api/", "/api/page.css"] {
        assert_eq!(Web::get(http, path).send().status, 200, "{path}");
    }
    let moved = Web::get(http, "/api").send();
    assert_eq!((moved.status, header(&moved, "location")), (308, "/api/"));
}

#[test]
fn a_stream_tells_of_a_flip_at_once_and_is_taken_up_where_it_broke_off() {
    let mut site = Site::start("");
    let web = |path: &str| Web::get(site.node.http(), path).bearer(&site.viewer);
    let mut stream = Events::open(web("/api/v1/events"));
    let mut flips = Events::open(web("/api/v1/events?kind=flip&cluster=aws-use1"));
    let newest = site.read("/api/v1/events?limit=1")["items"][0]["id"].clone();
    let newest = newest.as_u64().unwrap();
    let begun = Instant::now();
    site.backend.take().unwrap().kill();
    let flip = flips.next(PATIENCE).expect("a flip");
    let took = begun.elapsed();
    println!("told of after {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    let data: Value = serde_json::from_str(&flip.data).unwrap();
    assert_eq!(
        (data["kind"].as_str(), data["cluster"].as_str()),
        (Some("flip"), Some("aws-use1"))
    );
    assert_eq!(data["id"].to_string(), flip.id);
    // The whole stream has it too, in order, from the very next number.
    let mut expected = newest + 1;
    loop {
        let sent = stream.next(PATIENCE).expect("an event");
        if sent.id.parse::<u64>().unwrap() <= newest {
            continue;
        }
        assert_eq!(
            (sent.id.as_str(), sent.event.as_str()),
            (expected.to_string().as_str(), "")
        );
        expected += 1;
        if sent.id == flip.id {
            break;
        }
    }
    // Broken off before the flip and taken up again: exactly what came since.
    drop(stream);
    let mut again = Events::open(web("/api/v1/events").with("Last-Event-ID", &newest.to_string()));
    for id in newest + 1..expected {
        assert_eq!(again.next(PATIENCE).expect("an event").id, id.to_string());
    }
    // A number of a former life.
    let mut future = Events::open(web("/api/v1/events").with("Last-Event-ID", "99999999"));
    assert_eq!(future.next(PATIENCE).expect("a word").event, "lagged");
    let page = web("/api/v1/events?limit=5")
        .with("Accept", "text/event-stream")
        .send();
    problem(&page, 400, None);
    let number = web("/api/v1/events").with("Last-Event-ID", "x").send();
    problem(&number, 400, Some("Last-Event-ID"));
}

#[test]
fn the_commands_of_the_document_run() {
    need(&[CURL, JQ]);
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/api.md"));
    let text = text.unwrap();
    let commands: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("$ "))
        .collect();
    let begins = commands
        .iter()
        .position(|command| command.contains("/api/v1/"));
    let (made, asked) = commands.split_at(begins.unwrap());
    assert!(asked.len() >= 15, "{asked:?}");
    let mut operator = String::new();
    let first = Backend::start(loopback(), 0);
    let second = Backend::start(loopback(), first.address().port());
    let admin = "tokens: [{name: ci, file: ci.token, role: operator}], ";
    let node = Node::start_admin(admin, &config(&first, &second), |folder| {
        operator = shell(folder, &[made, &["printf %s \"$TOKEN\""]].concat(), &[]);
    });
    let server = format!("http://{}", node.http());
    let variables = [("TOKEN", operator.as_str()), ("MERIDIAN_SERVER", &server)];
    let said = shell(node.folder(), asked, &variables);
    for word in [
        "\"aws-use1\"",
        "\"shop/web\"",
        "304\n",
        "id: 1",
        "\"state\"",
        "\"reason\":\"upgraded\"",
        "must be 1 to 500",
    ] {
        assert!(said.contains(word), "no {word} in\n{said}");
    }
}

/// Runs commands one after the other in one shell, and gives what they say. None may fail.
fn shell(folder: &Path, commands: &[&str], variables: &[(&str, &str)]) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_meridian")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .arg("-euc")
        .arg(commands.join("\n"))
        .current_dir(folder)
        .envs(variables.iter().copied())
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}\n{}",
        commands.join("\n"),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
