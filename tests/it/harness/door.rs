//! A node whose dashboard has a guarded door, and those who stand before it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::node::{Node, meridian};
use super::raw_http::{Answer, Web};
use super::{loopback, wait_for};

/// A revoked token must open nothing after this; a little more for a busy machine.
pub const REVOKED: Duration = Duration::from_secs(7);

/// The least that is served beside `admin`.
pub const REST: &str = "zones: [{name: svc.mesh, nameservers: [{name: ns1.example}]}]\n";

/// A fresh token with its line.
pub struct Token {
    pub text: String,
    pub line: String,
}

/// Asks the program for a token.
pub fn token() -> Token {
    let output = meridian(&["token", "--output", "json"]);
    assert!(output.status.success());
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |key: &str| made[key].as_str().unwrap().to_owned();
    Token {
        text: text("token"),
        line: text("line"),
    }
}

/// The program as it is.
pub fn plain(_: &Path) -> Command {
    Command::new(env!("CARGO_BIN_EXE_meridian"))
}

/// A node whose dashboard lets nobody in without a token of three roles.
pub struct Guarded {
    pub node: Node,
    pub to: SocketAddr,
    pub viewer: Token,
    pub operator: Token,
    pub peer: Token,
}

impl Guarded {
    /// Starts one; `more` is put into `admin`.
    pub fn start(more: &str) -> Self {
        Self::serving(more, REST)
    }

    /// Starts one that serves something; `more` is put into `admin`.
    pub fn serving(more: &str, rest: &str) -> Self {
        let to = SocketAddr::new(loopback(), 8053);
        let (viewer, operator, peer) = (token(), token(), token());
        let admin = format!(
            "listen: [\"{to}\"], anonymous: none, tokens: [{{name: dev, file: v, role: viewer}}, {{name: sre, file: o, role: operator}}, {{name: ns2, file: p, role: peer}}]{more}"
        );
        let node = Node::start_with_admin(plain, &admin, rest, |folder| {
            for (file, token) in [("v", &viewer), ("o", &operator), ("p", &peer)] {
                std::fs::write(folder.join(file), &token.line).unwrap();
            }
        });
        Self {
            node,
            to,
            viewer,
            operator,
            peer,
        }
    }

    pub fn get(&self, path: &str) -> Web {
        Web::get(self.to, path)
    }

    /// Writes a token file.
    pub fn write(&self, file: &str, text: &str) {
        std::fs::write(self.node.folder().join(file), text).unwrap();
    }

    /// Signs in; gives the answer.
    pub fn sign_in(&self, token: &str, next: &str) -> Answer {
        let body = format!("token={token}&next={next}");
        Web::form(self.to, "/login", &body).send()
    }

    /// Waits until a request is answered so.
    pub fn wait(&self, what: &str, status: u16, web: impl Fn() -> Web) {
        wait_for(what, REVOKED, || {
            (web().send().status == status).then_some(())
        });
    }
}

/// Checks a refusal: problem details, with this status.
pub fn refused(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{answer:?}");
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("application/problem+json"), "{answer:?}");
    let problem: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(problem["status"], status);
    assert!(problem["title"].is_string() && problem["type"] == "about:blank");
}
