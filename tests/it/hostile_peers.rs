//! FAULTS F28 by the door of the nodes: whoever holds the token of a peer may bring drains and forces, and nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::harness::door::{Guarded, REST, plain, refused, token};
use crate::harness::node::Node;
use crate::harness::raw_http::{Answer, Web};
use crate::harness::{loopback, wait_for};

const PATIENCE: Duration = Duration::from_secs(20);
const EXCHANGE: &str = "/api/v1/vantage/exchange";

/// A drain as an honest node passes it on, made now.
fn drain(id: &str) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = now.as_millis() as u64;
    json!({
        "id": id, "intent": "drain", "cluster": "a", "starts": now,
        "created": {"time": now, "actor": "ann", "reason": "kernel update"},
    })
}

/// The same, with one member changed or added.
fn with(place: &str, value: Value) -> Value {
    let mut record = drain("r-1");
    let (parent, name) = place.rsplit_once('/').unwrap();
    record.pointer_mut(parent).unwrap()[name] = value;
    record
}

/// What a node says to another one.
fn word(records: &[Value]) -> Value {
    json!({
        "version": 1, "node": "ns2", "instance": "0", "digest": "", "standing": [], "drains": [],
        "records": records,
    })
}

/// Exchanges as the peer.
fn exchange(door: &Guarded, records: &[Value]) -> Answer {
    let web = Web::new(door.to, "POST", EXCHANGE).bearer(&door.peer.text);
    web.json(&word(records).to_string()).send()
}

/// Counts drains and forces, those that are over too.
fn count(door: &Guarded) -> u64 {
    let total = |path: &str| {
        let answer = door.get(path).bearer(&door.viewer.text).send();
        answer.json()["total"].as_u64().unwrap()
    };
    total("/api/v1/drains") + total("/api/v1/forces")
}

/// Lists what the audit log says of relayed records, oldest first.
fn relayed(to: SocketAddr, operator: &str) -> Vec<Value> {
    let answer = Web::get(to, "/api/v1/audit?limit=500").bearer(operator);
    let page = answer.send().json();
    let items = page["items"].as_array().unwrap().iter().rev();
    let is_relayed = |entry: &&Value| entry["action"].as_str().unwrap().starts_with("relay");
    items.filter(is_relayed).cloned().collect()
}

#[test]
fn only_nodes_exchange_and_nodes_do_nothing_else() {
    let door = Guarded::start("");
    let body = word(&[drain("r-1")]).to_string();
    let post = || Web::new(door.to, "POST", EXCHANGE).json(&body);
    let cookie = door.sign_in(&door.operator.text, "").cookie();
    let own = format!("http://{}", door.to);
    for (web, status) in [
        (post(), 401),
        (post().bearer("mrd_guess"), 401),
        (post().bearer(&door.peer.line), 401),
        (post().bearer(&door.viewer.text), 403),
        (post().bearer(&door.operator.text), 403),
        (post().with("Cookie", &cookie).with("Origin", &own), 403),
        (
            post()
                .bearer(&door.peer.text)
                .with("Origin", "https://evil.example"),
            403,
        ),
        (
            Web::new(door.to, "GET", EXCHANGE).bearer(&door.peer.text),
            405,
        ),
        (
            Web::new(door.to, "POST", EXCHANGE).with("Content-Length", "33554433"),
            413,
        ),
    ] {
        refused(&web.send(), status);
    }
    for path in [
        "/",
        "/drains",
        "/live",
        "/metrics",
        "/api/v1/drains",
        "/api/v1/audit",
        "/api/v1/vantage",
    ] {
        refused(&door.get(path).bearer(&door.peer.text).send(), 403);
    }
    for path in ["/api/v1/drains", "/api/v1/forces"] {
        let body = json!({"target": {"kind": "cluster", "cluster": "a"}, "reason": "x"});
        let web = Web::new(door.to, "POST", path).bearer(&door.peer.text);
        refused(&web.json(&body.to_string()).send(), 403);
    }
    assert_eq!(count(&door), 0);
    let answer = post().bearer(&door.peer.text).send();
    assert_eq!(answer.status, 200, "{answer:?}");
    let said = answer.json();
    assert_eq!(
        (&said["version"], &said["node"], &said["standing"]),
        (&json!(1), &json!("test"), &json!(["r-1"]))
    );
    assert_eq!(count(&door), 1);
}

#[test]
fn hostile_records_are_refused() {
    let mut door = Guarded::start("");
    let far = u64::MAX;
    let said = |time: u64, reason: &str| json!({"time": time, "actor": "bob", "reason": reason});
    for record in [
        with("/created/reason", json!("a\nlevel=error forged")),
        with("/created/reason", json!("a\r\nforged")),
        with("/created/reason", json!("\u{1b}[2Jforged")),
        with("/created/reason", json!("\u{9b}2Jforged")),
        with("/created/reason", json!("a\0b")),
        with("/created/reason", json!("")),
        with("/created/reason", json!(" \u{2003} ")),
        with("/created/reason", json!("x".repeat(501))),
        with("/created/reason", Value::Null),
        with("/created/actor", json!("ann\nforged")),
        with("/created/actor", json!("\u{1b}]0;forged\u{7}")),
        with("/created/actor", json!("")),
        with("/created/actor", json!("x".repeat(501))),
        with("/created/time", json!(far)),
        with("/created/time", json!(-1)),
        with("/created/time", json!(1e30)),
        with("/starts", json!(far)),
        with("/starts", json!(1)),
        with("/expires", json!(far)),
        with("/expires", json!(1)),
        with("/ended", said(far, "done")),
        with("/ended", said(1, "a\nforged")),
        with("/ended", said(1, "")),
        with("/id", json!("a\nforged")),
        with("/id", json!("")),
        with("/id", json!("x".repeat(65))),
        with("/cluster", json!("a\nforged")),
        with("/cluster", Value::Null),
        with("/service", json!("shop\u{1b}/web")),
        with("/address", json!("192.0.2.1\n")),
        with("/intent", json!("sideways\nforged")),
    ] {
        let answer = exchange(&door, std::slice::from_ref(&record));
        assert_eq!(answer.status, 400, "{record}: {answer:?}");
        refused(&answer, 400);
        assert_eq!(count(&door), 0, "{record}");
    }
    let many: Vec<Value> = (0..=10_000).map(|at| drain(&format!("r-{at}"))).collect();
    refused(&exchange(&door, &many), 400);
    let mut other = word(&[drain("r-1")]);
    other["version"] = json!(2);
    for body in [other.to_string(), "[]".to_owned(), "{".to_owned()] {
        let web = Web::new(door.to, "POST", EXCHANGE).bearer(&door.peer.text);
        refused(&web.json(&body).send(), 400);
    }
    assert_eq!(count(&door), 0);
    assert!(relayed(door.to, &door.operator.text).is_empty());
    // One bad record costs the others nothing.
    let bad = with("/created/reason", json!("\u{1b}[2Jforged"));
    let answer = exchange(&door, &[bad, drain("r-2")]);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["standing"], json!(["r-2"]));
    assert_eq!(count(&door), 1);
    wait_for("the refusals in the log", PATIENCE, || {
        let log = door.node.process().log();
        (log.matches("Records of a peer are refused").count() > 20).then_some(())
    });
    let log = door.node.process().log();
    assert!(!log.contains('\u{1b}') && !log.contains('\u{9b}'), "{log}");
    let forged = log.lines().find(|line| line.contains("forged"));
    assert!(
        forged.is_none_or(|line| line.contains("Records of a peer")),
        "{forged:?}"
    );
}

#[test]
fn the_audit_log_has_what_a_peer_brought() {
    let door = Guarded::start("");
    let from = loopback();
    let bring = |record: &Value| {
        let web = Web::new(door.to, "POST", EXCHANGE).bearer(&door.peer.text);
        let body = word(std::slice::from_ref(record)).to_string();
        let answer = web.from(from).json(&body).send();
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    let mut record = drain("r-1");
    bring(&record);
    let entries = relayed(door.to, &door.operator.text);
    assert_eq!(entries.len(), 1, "{entries:?}");
    let entry = &entries[0];
    for (name, value) in [
        ("action", "relay drain"),
        ("actor", "ns2"),
        ("role", "peer"),
        ("from", from.to_string().as_str()),
        ("target", "cluster a"),
        ("reason", "kernel update"),
        ("outcome", "done"),
    ] {
        assert_eq!(entry[name], value, "{name}: {entry}");
    }
    assert!(entry["before"].is_null(), "{entry}");
    assert_eq!(entry["after"]["created"]["actor"], "ann");
    // What is known already is no news.
    bring(&record);
    assert_eq!(relayed(door.to, &door.operator.text).len(), 1);
    record["ended"] = record["created"].clone();
    record["ended"]["actor"] = json!("bob");
    record["ended"]["reason"] = json!("repaired");
    bring(&record);
    bring(&record);
    let mut force = drain("r-2");
    force["intent"] = json!("forceDown");
    bring(&force);
    let entries = relayed(door.to, &door.operator.text);
    let told: Vec<(&str, &str)> = entries
        .iter()
        .map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap();
            (text("action"), text("reason"))
        })
        .collect();
    assert_eq!(
        told,
        [
            ("relay drain", "kernel update"),
            ("relay undrain", "repaired"),
            ("relay force", "kernel update"),
        ]
    );
    assert!(entries[1]["before"]["ended"].is_null(), "{}", entries[1]);
    assert_eq!(entries[1]["after"]["ended"]["actor"], "bob");
    let path = door.node.folder().join("state/audit.jsonl");
    wait_for("three entries on disk", PATIENCE, || {
        let text = std::fs::read_to_string(&path).ok()?;
        (text.matches("\"relay ").count() == 3).then_some(())
    });
}

/// Plays a node that is asked for its records, and says always the same; counts the answers.
fn play(listener: TcpListener, said: String) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if answer(&stream, &said).is_some() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    count
}

/// Reads one request, and answers it.
fn answer(stream: &TcpStream, said: &str) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{said}",
        said.len()
    )
    .ok()
}

#[test]
fn what_is_fetched_from_a_peer_is_checked_and_noted_too() {
    let listener = TcpListener::bind((loopback(), 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut bad = with("/created/reason", json!("a\nforged"));
    bad["id"] = json!("r-0");
    let mut said = word(&[bad, drain("r-1")]);
    said["node"] = json!("ns2\n\u{1b}[2J");
    let asked = play(listener, said.to_string());
    let to = SocketAddr::new(loopback(), 8053);
    let operator = token();
    let admin = format!(
        "listen: [\"{to}\"], anonymous: none, tokens: [{{name: sre, file: o, role: operator}}]"
    );
    let rest = format!("{REST}peers: [{{url: \"{url}\"}}]\n");
    let mut node = Node::start_with_admin(plain, &admin, &rest, |folder| {
        std::fs::write(folder.join("o"), &operator.line).unwrap();
    });
    let entries = wait_for("the entry", PATIENCE, || {
        Some(relayed(to, &operator.text)).filter(|entries| !entries.is_empty())
    });
    for (name, value) in [
        ("action", "relay drain"),
        ("actor", &*url),
        ("role", "peer"),
        ("from", ""),
        ("target", "cluster a"),
        ("reason", "kernel update"),
    ] {
        assert_eq!(entries[0][name], value, "{name}: {entries:?}");
    }
    let before = asked.load(Ordering::Relaxed);
    wait_for("further exchanges", PATIENCE, || {
        (asked.load(Ordering::Relaxed) >= before + 3).then_some(())
    });
    assert_eq!(relayed(to, &operator.text).len(), 1, "said once");
    let drains = Web::get(to, "/api/v1/drains").bearer(&operator.text);
    let drains = drains.send().json();
    assert_eq!(drains["total"], 1, "{drains}");
    assert_eq!(drains["items"][0]["id"], "r-1");
    let peers = Web::get(to, "/api/v1/vantage").bearer(&operator.text);
    assert_eq!(peers.send().json()["items"][0]["name"], "ns2[2J");
    wait_for("the refusal in the log", PATIENCE, || {
        let log = node.process().log();
        log.contains("Records of a peer are refused").then_some(())
    });
    let log = node.process().log();
    assert!(
        !log.contains('\u{1b}') && !log.contains("\nforged"),
        "{log}"
    );
}
