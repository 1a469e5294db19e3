//! Nodes that are each other's peers over HTTPS, and those that are refused.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use rcgen::{CertifiedKey, KeyPair};
use serde_json::{Value, json};

use crate::access_tls::{certify, der, write};
use crate::harness::client::Ask;
use crate::harness::door::{Token, plain, token};
use crate::harness::node::{Node, meridian};
use crate::harness::raw_http::Web;
use crate::harness::{loopback, wait_for};

const PATIENCE: Duration = Duration::from_secs(20);

/// What all nodes serve.
const REST: &str = "
zones: [{name: svc.mesh, nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}], contact: hostmaster.svc.mesh, ttl: 1}]
clusters:
  - {name: europe, provider: aws, region: eu-central-1}
  - {name: america, provider: aws, region: us-east-1}
services:
  - {namespace: shop, name: web, hostnames: [web.svc.mesh], endpoints: [{cluster: europe, addresses: [192.0.2.1]}, {cluster: america, addresses: [192.0.2.2]}]}
";

/// A node whose dashboard is there over HTTPS only, on some addresses.
struct Face {
    to: Vec<SocketAddr>,
    made: CertifiedKey<KeyPair>,
}

impl Face {
    /// Makes the certificate for so many addresses.
    fn new(count: usize) -> Self {
        let to: Vec<SocketAddr> = (0..count)
            .map(|_| SocketAddr::new(loopback(), 8053))
            .collect();
        let names: Vec<String> = to.iter().map(|to| to.ip().to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let made = certify(&names);
        Self { to, made }
    }

    /// Sends a request over TLS with this certificate.
    fn send(&self, web: &Web) -> Value {
        let name = self.to[0].ip().to_string();
        let answer = web.send_over_tls(&name, &der(&self.made)).unwrap();
        assert!([200, 201].contains(&answer.status), "{answer:?}");
        answer.json()
    }
}

/// Tokens of each role.
struct Tokens {
    operator: Token,
    viewer: Token,
    peer: Token,
}

/// Starts a node with a peer.
fn start(own: &Face, other: &Face, tokens: &Tokens) -> Node {
    let listen: Vec<String> = own.to.iter().map(|to| format!("\"{to}\"")).collect();
    let admin = format!(
        "listen: [{}], tls: {{certificate: tls.crt, key: tls.key}}, tokens: [{{name: sre, file: o, role: operator}}, {{name: dev, file: v, role: viewer}}, {{name: ns2, file: p, role: peer}}]",
        listen.join(", ")
    );
    let peers = format!(
        "peers: [{{url: \"https://{}\", ca: other.crt, tokenFile: peer.token}}]\n",
        other.to[0]
    );
    Node::start_with_admin(plain, &admin, &format!("{REST}{peers}"), |folder| {
        write(folder, &own.made);
        let all = [
            ("o", &tokens.operator.line),
            ("v", &tokens.viewer.line),
            ("p", &tokens.peer.line),
            ("peer.token", &tokens.peer.text),
            ("other.crt", &other.made.cert.pem()),
        ];
        put(folder, &all);
    })
}

/// Writes files.
fn put(folder: &Path, files: &[(&str, &String)]) {
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

/// Gives what a client in Germany gets.
fn given(node: &Node) -> String {
    let ask = Ask::a("web.svc.mesh").from("46.114.0.0/24");
    ask.udp(node.dns()).address().to_string()
}

#[test]
fn a_drain_passes_over_https_and_every_refusal_is_named() {
    let tokens = Tokens {
        operator: token(),
        viewer: token(),
        peer: token(),
    };
    let (first, second) = (Face::new(4), Face::new(1));
    let asked = start(&first, &second, &tokens);
    let other = start(&second, &first, &tokens);
    assert_eq!([given(&asked), given(&other)], ["192.0.2.1", "192.0.2.1"]);
    let plain_text = Web::get(first.to[0], "/api/v1/vantage").try_send();
    assert!(plain_text.is_none_or(|answer| answer.status >= 400));
    let drain = json!({"target": {"kind": "cluster", "cluster": "europe"}, "reason": "new kernel"});
    let post = Web::new(first.to[0], "POST", "/api/v1/drains").bearer(&tokens.operator.text);
    first.send(&post.json(&drain.to_string()));
    wait_for("the drain on the other node", PATIENCE, || {
        (given(&other) == "192.0.2.2").then_some(())
    });
    // Its word comes back the same way.
    wait_for("the word of both nodes", PATIENCE, || {
        let get = Web::get(first.to[0], "/api/v1/drains").bearer(&tokens.viewer.text);
        let drains = first.send(&get);
        let nodes = drains["items"][0]["nodes"].as_array()?;
        let all = nodes.iter().all(|node| node["inForce"] == true);
        (nodes.len() == 2 && all).then_some(())
    });
    for (face, peer) in [(&first, &second), (&second, &first)] {
        wait_for("both in step", PATIENCE, || {
            let get = Web::get(face.to[0], "/api/v1/vantage").bearer(&tokens.viewer.text);
            let peers = face.send(&get);
            let item = &peers["items"][0];
            assert_eq!(item["url"], format!("https://{}", peer.to[0]));
            (item["reachable"] == true && item["inStep"] == true).then_some(())
        });
    }
    // A third node asks the first on three of its addresses, each time with something wrong.
    let refusals = [
        (first.to[1], "invalid peer certificate"),
        (first.to[2], "it does not know our token (401)"),
        (first.to[3], "our token has no role `peer` there (403)"),
    ];
    let lone = start_refused(&first, &second, &tokens);
    let url = format!("http://{}", lone.http());
    let mut named = BTreeSet::new();
    wait_for("every refusal", PATIENCE, || {
        let output = meridian(&["status", "peers", "-o", "json", "--server", &url]);
        let list: Value = serde_json::from_slice(&output.stdout).ok()?;
        for peer in list["items"].as_array()? {
            assert_eq!([&peer["reachable"], &peer["inStep"]], [false, false]);
            let error = peer["error"].as_str().unwrap_or_default();
            named.insert((peer["url"].as_str()?.to_owned(), error.to_owned()));
        }
        let is_named = |(to, words): &(SocketAddr, &str)| {
            let url = format!("https://{to}");
            let mut errors = named.iter().filter(|(of, _)| *of == url);
            errors.any(|(_, error)| error.contains(words))
        };
        refusals.iter().all(is_named).then_some(())
    });
    // Whoever is refused learns nothing, and answers on.
    assert_eq!(given(&lone), "192.0.2.1");
    let drains = Web::get(lone.http(), "/api/v1/drains").send().json();
    assert_eq!(drains["total"], 0, "{drains}");
}

/// Starts a node that trusts the wrong certificate, shows a token that nobody knows, and one of another role.
fn start_refused(first: &Face, second: &Face, tokens: &Tokens) -> Node {
    let peers = [
        (first.to[1], "wrong.crt", "peer.token"),
        (first.to[2], "right.crt", "strange.token"),
        (first.to[3], "right.crt", "viewer.token"),
    ];
    let peers = peers
        .map(|(to, ca, token)| format!("{{url: \"https://{to}\", ca: {ca}, tokenFile: {token}}}"));
    let rest = format!("{REST}peers: [{}]\n", peers.join(", "));
    Node::start_admin("", &rest, |folder| {
        let all = [
            ("wrong.crt", &second.made.cert.pem()),
            ("right.crt", &first.made.cert.pem()),
            ("peer.token", &tokens.peer.text),
            ("viewer.token", &tokens.viewer.text),
            ("strange.token", &token().text),
        ];
        put(folder, &all);
    })
}
