//! What leaves the node beside answers: the query log, and traces for a collector.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::harness::client::Ask;
use crate::harness::node::Node;
use crate::harness::{loopback, wait_for};
use crate::samples::{FIVE, FIVE_ZONE};

const PATIENCE: Duration = Duration::from_secs(15);

/// Starts a node with more keys.
fn start(keys: &str) -> Node {
    Node::start_on(loopback(), "", &format!("{FIVE}{keys}"), |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
        std::fs::write(
            folder.join("headers"),
            "Authorization: Bearer very-secret\n",
        )
        .unwrap();
    })
}

/// Reads the lines of a log.
fn lines(node: &Node, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(node.folder().join(file)).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn queries_are_logged_with_their_clients_cut() {
    let node = start("queryLog: {file: q.jsonl, sample: 1}\n");
    Ask::a("www.svc.mesh").from("46.114.7.0/24").udp(node.dns());
    Ask::a("www.svc.mesh")
        .from("2a02:8109:1234:5678::/64")
        .tcp(node.dns());
    Ask::a("nothing.svc.mesh").udp(node.dns());
    let logged = wait_for("three lines", PATIENCE, || {
        Some(lines(&node, "q.jsonl")).filter(|lines| lines.len() >= 3)
    });
    assert_eq!(logged.len(), 3);
    let find = |key: &str, value: &str| logged.iter().find(|line| line[key] == value).unwrap();
    let first = find("client", "46.114.7.0/24");
    for (key, value) in [
        ("name", "www.svc.mesh"),
        ("type", "A"),
        ("transport", "udp"),
        ("rcode", "NOERROR"),
        ("zone", "svc.mesh"),
        ("cluster", "europe"),
        ("reason", "up"),
        ("order", "distance"),
    ] {
        assert_eq!(first[key], value, "{key}: {first}");
    }
    assert_eq!(first["ttl"], 10);
    assert!(first["scope"].as_u64().unwrap() > 0);
    assert!(first["time"].as_str().unwrap().ends_with('Z'));
    let second = find("transport", "tcp");
    assert_eq!(second["client"], "2a02:8109:1234::/48");
    let third = find("name", "nothing.svc.mesh");
    assert_eq!(third["rcode"], "NXDOMAIN");
    assert_eq!(
        (&third["cluster"], &third["ttl"]),
        (&Value::Null, &Value::Null)
    );
    // The sender's own address is cut as well.
    assert!(
        third["client"].as_str().unwrap().ends_with(".0/24"),
        "{third}"
    );
}

#[test]
fn one_of_so_many_is_logged_and_files_rotate() {
    let node = start("queryLog: {file: q.jsonl, sample: 10, maxBytes: 65536, keep: 1}\n");
    for _ in 0..500 {
        Ask::a("www.svc.mesh").udp(node.dns());
    }
    wait_for("fifty lines", PATIENCE, || {
        (lines(&node, "q.jsonl").len() >= 49).then_some(())
    });
    assert!(lines(&node, "q.jsonl").len() <= 51);
    for _ in 0..4000 {
        Ask::a("www.svc.mesh").udp(node.dns());
    }
    wait_for("a file put aside", PATIENCE, || {
        node.folder().join("q.jsonl.1").exists().then_some(())
    });
    let length = node.folder().join("q.jsonl.1").metadata().unwrap().len();
    assert!(length <= 65_536 && !node.folder().join("q.jsonl.2").exists());
}

/// A collector: keeps what it gets, says 200.
struct Collector {
    address: SocketAddr,
    got: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind((loopback(), 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&got);
        // It ends with the test process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || {
                    let mut buffer = [0; 65_536];
                    while let Ok(octets @ 1..) = stream.read(&mut buffer) {
                        kept.lock().unwrap().extend_from_slice(&buffer[..octets]);
                        // Each request is small: it comes in one piece or two, and a reply too many is not read.
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                    }
                });
            }
        });
        Self { address, got }
    }

    /// Tells whether some octets came.
    fn has(&self, text: &str) -> bool {
        let got = self.got.lock().unwrap();
        got.windows(text.len())
            .any(|octets| octets == text.as_bytes())
    }
}

#[test]
fn a_reload_leaves_a_publish_span_at_the_collector() {
    let collector = Collector::start();
    let address = collector.address;
    let mut node = start(&format!(
        "telemetry: {{otlp: {{endpoint: \"http://{address}\", headersFile: headers}}}}\n"
    ));
    wait_for("spans of the start", PATIENCE, || {
        (collector.has("publish") && collector.has("/v1/traces")).then_some(())
    });
    collector.got.lock().unwrap().clear();
    // Another configuration has another serial, which is kept.
    node.write_config(&node.config().replace("ttl: 10", "ttl: 11"));
    for name in ["reload", "publish", "write_last_good", "/metrics"] {
        wait_for(name, PATIENCE, || {
            node.metric("meridian_ready");
            collector.has(name).then_some(())
        });
    }
    assert!(collector.has("very-secret"), "the header is sent");
    let log = node.process().log();
    assert!(
        !log.contains("very-secret") && !log.contains("publish"),
        "{log}"
    );
    assert_eq!(node.metric("meridian_telemetry_spans_lost_total"), 0.0);
}

#[test]
fn a_collector_that_never_answers_holds_nothing_up() {
    let listener = TcpListener::bind((loopback(), 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let mut node = start(&format!(
        "telemetry: {{otlp: {{endpoint: \"http://{address}\"}}}}\n"
    ));
    for _ in 0..20 {
        let reply = Ask::a("www.svc.mesh").from("46.114.0.0/24").udp(node.dns());
        assert_eq!(reply.ttl(), 10);
    }
    wait_for("lost spans", PATIENCE, || {
        (node.metric("meridian_telemetry_spans_lost_total") > 0.0).then_some(())
    });
    let log = node.process().log();
    assert_eq!(log.matches("Traces could not be sent").count(), 1, "{log}");
    assert!(
        node.take_process()
            .terminate(Duration::from_secs(5))
            .success()
    );
}
