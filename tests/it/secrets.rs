//! FAULTS F23: a canary in every secret that the configuration names, and everything that a node says searched for them.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use serde_json::json;

use crate::access_tls::{certify, chatty, der, write};
use crate::harness::door::{Token, token};
use crate::harness::node::{Node, meridian};
use crate::harness::raw_http::{Answer, Web};
use crate::harness::{loopback, wait_for};
use crate::samples::{FIVE, FIVE_ZONE};

const PATIENCE: Duration = Duration::from_secs(20);
/// The token for a peer that is not there.
const LOST_PEER: &str = "mrd_c4n4ryl0stpeer";
/// In the headers for the collector.
const COLLECTOR: &str = "c4n4ryc0llect0r";

/// What is read through the API.
const READS: &[&str] = &[
    "/api/v1/status",
    "/api/v1/status/traffic",
    "/api/v1/clusters",
    "/api/v1/clusters/europe",
    "/api/v1/services",
    "/api/v1/services/shop/web",
    "/api/v1/names/www.svc.mesh",
    "/api/v1/monitors",
    "/api/v1/events?limit=500",
    "/api/v1/drains",
    "/api/v1/forces",
    "/api/v1/acme",
    "/api/v1/vantage",
    "/api/v1/zones",
    "/api/v1/zones/svc.mesh",
    "/api/v1/sources",
    "/api/v1/audit?limit=500",
    "/api/v1/explain?name=www.svc.mesh&client=198.51.100.0/24",
    "/api/openapi.json",
    "/metrics",
    "/traffic.json",
    "/readyz",
];

/// What people look at.
const PAGES: &[&str] = &[
    "/",
    "/clusters",
    "/clusters/europe",
    "/clusters/europe/drain",
    "/services",
    "/services/shop/web",
    "/services/shop/web/force",
    "/monitors",
    "/events",
    "/explain",
    "/explain?name=www.svc.mesh&client=198.51.100.0/24",
    "/zones",
    "/zones/svc.mesh",
    "/sources",
    "/drains",
    "/audit",
    "/login",
    "/api/",
];

/// A node with every secret that there can be, which is a peer of its own.
struct Keeper {
    node: Node,
    to: SocketAddr,
    own: String,
    certificate: CertificateDer<'static>,
    operator: Token,
    /// What must not be seen, by its name.
    secrets: Vec<(&'static str, String)>,
}

impl Keeper {
    fn start() -> Self {
        let (to, dead) = (SocketAddr::new(loopback(), 8053), loopback());
        let own = to.ip().to_string();
        let made = certify(&[&own]);
        let (viewer, operator, peer) = (token(), token(), token());
        let admin = format!(
            "listen: [\"{to}\"], anonymous: none, tls: {{certificate: tls.crt, key: tls.key}}, tokens: [{{name: dev, file: v, role: viewer}}, {{name: sre, file: o, role: operator}}, {{name: ns2, file: p, role: peer}}]"
        );
        let rest = format!(
            "{FIVE}peers: [{{url: \"https://{to}\", tokenFile: own.token, ca: tls.crt}}, {{url: \"http://{dead}:1\", tokenFile: lost.token}}]
telemetry: {{otlp: {{endpoint: \"http://{dead}:2\", headersFile: headers}}}}
"
        );
        let node = Node::start_with_admin(chatty, &admin, &rest, |folder| {
            write(folder, &made);
            let headers = format!("Authorization: Bearer {COLLECTOR}\nX-Key: {COLLECTOR}\n");
            for (file, text) in [
                ("v", &*viewer.line),
                ("o", &operator.line),
                ("p", &peer.line),
                ("own.token", &peer.text),
                ("lost.token", LOST_PEER),
                ("headers", &headers),
                ("svc.mesh.zone", FIVE_ZONE),
            ] {
                std::fs::write(folder.join(file), text).unwrap();
            }
        });
        let key = made.signing_key.serialize_pem();
        let mut secrets = vec![
            ("the lost peer's token", LOST_PEER.to_owned()),
            ("the collector's header", COLLECTOR.to_owned()),
            (
                "the key's first line",
                key.lines().nth(1).unwrap().to_owned(),
            ),
            (
                "the key's second line",
                key.lines().nth(2).unwrap().to_owned(),
            ),
        ];
        for token in [&viewer, &operator, &peer] {
            let hash = token.line.trim().strip_prefix("sha256:").unwrap();
            secrets.push(("a token", token.text.clone()));
            secrets.push(("the hash of a token", hash.to_owned()));
        }
        Self {
            node,
            to,
            own,
            certificate: der(&made),
            operator,
            secrets,
        }
    }

    /// Sends a request.
    fn send(&self, web: &Web) -> Answer {
        let answer = web.send_over_tls(&self.own, &self.certificate);
        answer.unwrap_or_else(|| panic!("no answer to {}", web.text()))
    }

    /// Asks for a path as the operator.
    fn get(&self, path: &str) -> Web {
        Web::get(self.to, path).bearer(&self.operator.text)
    }

    /// Does what leaves traces: a drain, a session, and requests that are refused.
    fn act(&mut self) {
        let body = json!({"target": {"kind": "cluster", "cluster": "asia"}, "reason": "upgrade"});
        let post = Web::new(self.to, "POST", "/api/v1/drains").bearer(&self.operator.text);
        assert_eq!(self.send(&post.json(&body.to_string())).status, 201);
        let form = |token: &str| {
            let web = Web::new(self.to, "POST", "/login");
            let web = web.with("Origin", &format!("https://{}", self.to));
            let web = web.with("Content-Type", "application/x-www-form-urlencoded");
            self.send(&web.body(&format!("token={token}")))
        };
        assert_eq!(form(LOST_PEER).status, 401);
        let answer = form(&self.operator.text);
        assert_eq!(answer.status, 303, "{answer:?}");
        let cookie = answer.cookie();
        let (_, session) = cookie.split_once('=').unwrap();
        self.secrets.push(("a session", session.to_owned()));
        let page = Web::get(self.to, "/").with("Cookie", &cookie);
        assert_eq!(self.send(&page).status, 200);
        let lost = Web::new(self.to, "POST", "/api/v1/drains").bearer(LOST_PEER);
        assert_eq!(self.send(&lost).status, 401);
    }

    /// Runs `meridian status` against it; gives what it writes.
    fn status(&self, of: &[&str]) -> String {
        let folder = self.node.folder();
        let file = folder.join("operator.token");
        std::fs::write(&file, &self.operator.text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_meridian"))
            .arg("status")
            .args(of)
            .args([
                "--output",
                "json",
                "--server",
                &format!("https://{}", self.to),
            ])
            .arg("--token-file")
            .arg(file)
            .arg("--ca")
            .arg(folder.join("tls.crt"))
            .env_remove("MERIDIAN_CONFIG")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(text.starts_with(['{', '[']), "{text}{error}");
        text + &error
    }

    /// Panics where a secret is in a text.
    fn search(&self, place: &str, text: &str) {
        for (what, secret) in &self.secrets {
            assert!(!secret.is_empty() && !place.contains(secret), "{what}");
            if let Some(at) = text.find(secret.as_str()) {
                let start = text.floor_char_boundary(at.saturating_sub(200));
                panic!("{what} is shown by {place}: …{}…", &text[start..at]);
            }
        }
    }
}

#[test]
fn nothing_that_a_node_says_has_a_secret_in_it() {
    let mut keeper = Keeper::start();
    // The secrets are in use before anything is searched: the peers are asked, the collector too.
    wait_for("the node as its own peer", PATIENCE, || {
        let peers = keeper.send(&keeper.get("/api/v1/vantage")).json();
        let is = |at: usize, reachable: bool| peers["items"][at]["reachable"] == reachable;
        (is(0, true) && is(1, false) && peers["items"][1]["error"].is_string()).then_some(())
    });
    keeper.act();
    wait_for("traces that cannot be sent", PATIENCE, || {
        let log = keeper.node.process().log();
        log.contains("Traces could not be sent").then_some(())
    });
    for (paths, accept) in [(READS, "*/*"), (PAGES, "text/html")] {
        for path in paths {
            let answer = keeper.send(&keeper.get(path).with("Accept", accept));
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            keeper.search(path, &answer.head);
            keeper.search(path, &answer.body);
        }
    }
    for path in [
        "/nothing",
        "/api/v1/nothing",
        "/own.token",
        "/state/audit.jsonl",
    ] {
        let answer = keeper.send(&keeper.get(path));
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        keeper.search(path, &answer.body);
    }
    for (path, word) in [("/live", "data:"), ("/api/v1/events", "data:")] {
        let web = keeper.get(path).with("Accept", "text/event-stream");
        let web = web.with("Last-Event-ID", "0");
        let heard = web.hear_over_tls((&keeper.own, word), &keeper.certificate);
        keeper.search(
            path,
            &heard.unwrap_or_else(|| panic!("nothing from {path}")),
        );
    }
    keeper.search("the open metrics", &keeper.node.get("/metrics").unwrap());
    for of in [&[][..], &["sources"], &["peers"], &["audit"], &["events"]] {
        keeper.search("`meridian status`", &keeper.status(of));
    }
    let check = meridian(&[
        "check",
        "--config",
        keeper.node.config_path().to_str().unwrap(),
    ]);
    keeper.search("`meridian check`", &String::from_utf8_lossy(&check.stdout));
    keeper.search("`meridian check`", &String::from_utf8_lossy(&check.stderr));
    // What is on disk, once what was done is there.
    let state = keeper.node.folder().join("state");
    wait_for("the login in the audit log", PATIENCE, || {
        let text = std::fs::read_to_string(state.join("audit.jsonl")).ok()?;
        text.contains("\"login\"").then_some(())
    });
    for entry in std::fs::read_dir(&state).unwrap() {
        let path = entry.unwrap().path();
        let octets = std::fs::read(&path).unwrap_or_default();
        keeper.search("the state", &String::from_utf8_lossy(&octets));
    }
    let log = keeper.node.process().log();
    assert!(log.contains("TRACE"), "all that can be told is told");
    keeper.search("the log", &log);
}
