//! Challenges of certificate authorities: the CNAME of a zone, and `meridian acme` over two nodes, by questions to both.

use std::net::SocketAddr;
use std::process::Output;
use std::time::Duration;

use hickory_proto::rr::RecordType;
use serde_json::{Value, json};

use crate::harness::client::Ask;
use crate::harness::door::{Token, plain, token};
use crate::harness::node::{Node, meridian};
use crate::harness::raw_http::{Answer, Web};
use crate::harness::{loopback, wait_for};

const PATIENCE: Duration = Duration::from_secs(30);
const OWNER: &str = "_acme-challenge.web.svc.mesh";

const REST: &str = r#"
zones: [{name: svc.mesh, nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}], contact: hostmaster.svc.mesh, ttl: 7, file: svc.zone, acme: {cname: "{name}.acme.example.net."}}]
clusters: [{name: a}]
services:
  - {namespace: shop, name: web, hostnames: [web.svc.mesh, "*.wild.svc.mesh", fixed.svc.mesh], endpoints: [{cluster: a, addresses: [192.0.2.1]}]}
"#;
const RECORDS: &str =
    "$TTL 300\nstatic A 192.0.2.9\n_acme-challenge.fixed TXT theirs\ncut NS ns.example.\n";

/// A node with an operator and one peer.
struct Site {
    node: Node,
    to: SocketAddr,
}

/// What both have.
struct Tokens {
    operator: Token,
    viewer: Token,
    peer: Token,
}

impl Site {
    fn start(to: SocketAddr, other: SocketAddr, tokens: &Tokens) -> Self {
        let admin = format!(
            "listen: [\"{to}\"], tokens: [{{name: ops, file: o, role: operator}}, {{name: see, file: v, role: viewer}}, {{name: other, file: p, role: peer}}]"
        );
        let rest = format!("{REST}peers: [{{url: \"http://{other}\", tokenFile: peer.token}}]\n");
        let node = Node::start_with_admin(plain, &admin, &rest, |folder| {
            for (file, text) in [
                ("o", &tokens.operator.line),
                ("v", &tokens.viewer.line),
                ("p", &tokens.peer.line),
                ("peer.token", &tokens.peer.text),
                ("ops.token", &tokens.operator.text),
                ("see.token", &tokens.viewer.text),
            ] {
                std::fs::write(folder.join(file), text).unwrap();
            }
            std::fs::write(folder.join("svc.zone"), RECORDS).unwrap();
        });
        Self { node, to }
    }

    /// Asks for TXT; gives the records' data, sorted, and the TTL of the first.
    fn texts(&self, owner: &str) -> (Vec<String>, Option<u32>) {
        let reply = Ask::a(owner).of_type(RecordType::TXT).udp(self.node.dns());
        let answers = &reply.0.answers;
        let mut data: Vec<String> = answers
            .iter()
            .map(|record| record.data.to_string())
            .collect();
        data.sort();
        (data, answers.first().map(|record| record.ttl))
    }

    fn post(&self, tokens: &Tokens, body: &Value) -> Answer {
        let web = Web::new(self.to, "POST", "/api/v1/acme").bearer(&tokens.operator.text);
        web.json(&body.to_string()).send()
    }
}

/// Runs `meridian acme`.
fn acme(sites: &[&Site], verb: &str, rest: &[&str]) -> (i32, String) {
    let file = sites[0].node.folder().join("ops.token");
    let servers: Vec<String> = sites
        .iter()
        .map(|site| format!("http://{}", site.to))
        .collect();
    let servers = servers.join(",");
    let mut args = vec![
        "acme",
        verb,
        "--server",
        &servers,
        "--token-file",
        file.to_str().unwrap(),
    ];
    args.extend(rest);
    let Output {
        status,
        stdout,
        stderr,
    } = meridian(&args);
    let both = [stdout, stderr].concat();
    (status.code().unwrap(), String::from_utf8(both).unwrap())
}

/// Runs `meridian status`.
fn status(site: &Site, rest: &[&str]) -> (i32, String) {
    let file = site.node.folder().join("see.token");
    let (server, file) = (format!("http://{}", site.to), file.to_str().unwrap());
    let mut args = vec!["status"];
    args.extend(rest);
    args.extend(["--server", &server, "--token-file", file]);
    let output = meridian(&args);
    let both = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(both).unwrap(),
    )
}

fn tokens() -> Tokens {
    Tokens {
        operator: token(),
        viewer: token(),
        peer: token(),
    }
}

#[test]
fn challenges_are_set_on_all_nodes_survive_a_crash_and_are_cleared() {
    let tokens = tokens();
    let to = [(); 2].map(|()| SocketAddr::new(loopback(), 8053));
    let first = Site::start(to[0], to[1], &tokens);
    let mut second = Site::start(to[1], to[0], &tokens);
    let cname = vec!["web.acme.example.net.".to_owned()];
    for site in [&first, &second] {
        assert_eq!(site.texts(OWNER), (cname.clone(), Some(7)));
        assert_eq!(
            site.texts("_acme-challenge.wild.svc.mesh").0,
            ["wild.acme.example.net."]
        );
    }
    // Set by one node for both, then a second one beside it.
    let (code, said) = acme(&[&first, &second], "set", &["web.svc.mesh", "one-1"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("served by 2/2 nodes"), "{said}");
    for site in [&first, &second] {
        // It was said to be served, so it is: no waiting.
        assert_eq!(site.texts(OWNER), (vec!["one-1".to_owned()], Some(5)));
    }
    let (code, said) = acme(&[&second], "set", &["WEB.svc.mesh.", "two_2"]);
    assert_eq!(code, 0, "{said}");
    let both = vec!["one-1".to_owned(), "two_2".to_owned()];
    for site in [&first, &second] {
        assert_eq!(site.texts(OWNER).0, both);
        assert_eq!(
            site.texts("_acme-challenge.wild.svc.mesh").0,
            ["wild.acme.example.net."]
        );
        assert_eq!(
            Ask::a("web.svc.mesh").udp(site.node.dns()).address(),
            std::net::IpAddr::from([192, 0, 2, 1])
        );
    }
    // A crash loses nothing; meanwhile the other one is named.
    second.node.kill();
    let (code, said) = acme(
        &[&first],
        "set",
        &["web.svc.mesh", "three", "--timeout", "4s"],
    );
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("partial 1/2") && said.contains("missing: "),
        "{said}"
    );
    let figure = |site: &Site, state: &str| {
        let name = format!("meridian_vantage_challenges{{state=\"{state}\"}}");
        site.node.metric(&name)
    };
    wait_for("the other one to be missed", PATIENCE, || {
        (figure(&first, "partial") == 3.0 && figure(&first, "served") == 0.0).then_some(())
    });
    let see = tokens.viewer.text.as_str();
    wait_for("challenges that are late to be a problem", PATIENCE, || {
        let status = Web::get(first.to, "/api/v1/status").bearer(see).send();
        let problems = status.json()["problems"].to_string();
        problems
            .contains("3 challenges not served everywhere")
            .then_some(())
    });
    let (code, said) = status(&first, &["challenges"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(said.matches("served by 1/2 nodes").count(), 3, "{said}");
    let (_, said) = status(&first, &[]);
    assert_eq!(said.matches("\nChallenge  ").count(), 3, "{said}");
    let page = Web::get(first.to, "/drains").bearer(see).send().body;
    assert!(
        page.contains(OWNER) && page.contains("does not serve it"),
        "{page}"
    );
    second.node.spawn();
    let three = vec!["one-1".to_owned(), "three".to_owned(), "two_2".to_owned()];
    assert_eq!(second.texts(OWNER).0[0], "one-1");
    wait_for("the third on both", PATIENCE, || {
        (first.texts(OWNER).0 == three && second.texts(OWNER).0 == three).then_some(())
    });
    wait_for("all to be served", PATIENCE, || {
        (figure(&first, "partial") == 0.0 && figure(&first, "served") == 3.0).then_some(())
    });
    let (_, said) = status(&first, &["challenges"]);
    assert_eq!(said.matches("served by every node").count(), 3, "{said}");
    for done in ["one-1", "two_2", "three"] {
        let (code, said) = acme(&[&first, &second], "clear", &["web.svc.mesh", done]);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("cleared on 2/2 nodes"), "{said}");
        for site in [&first, &second] {
            assert!(!site.texts(OWNER).0.contains(&done.to_owned()));
        }
    }
    for site in [&first, &second] {
        assert_eq!(site.texts(OWNER), (cname.clone(), Some(7)));
    }
    let (code, said) = acme(&[&first], "clear", &["web.svc.mesh", "one-1"]);
    assert_eq!(
        (code, said.contains("nothing to clear")),
        (0, true),
        "{said}"
    );
    assert_eq!(figure(&first, "served") + figure(&first, "partial"), 0.0);
    let (_, said) = status(&first, &["challenges"]);
    assert!(said.contains("no challenges"), "{said}");
    let (_, said) = status(&first, &["challenges", "--all"]);
    assert_eq!(said.matches("over").count(), 3, "{said}");
    // Who did what is written down, on both.
    let audit = |site: &Site| {
        let answer = Web::get(site.to, "/api/v1/audit?limit=500").bearer(&tokens.operator.text);
        answer.send().json().to_string()
    };
    assert!(audit(&first).contains("acme set") && audit(&first).contains("acme clear"));
    assert!(audit(&second).contains("relay acme set"));
}

#[test]
fn hostile_names_and_tokens_are_refused() {
    let tokens = tokens();
    let at = SocketAddr::new(loopback(), 8053);
    // Nobody is there: a challenge stays partial, and names who is missing.
    let nobody = SocketAddr::new(loopback(), 9);
    let site = Site::start(at, nobody, &tokens);
    let body = |name: &str, token: &str| json!({"name": name, "token": token, "reason": "x"});
    let long = "a".repeat(64);
    for (name, why) in [
        ("", "name"),
        (".", "host"),
        ("other.example", "none of our zones"),
        ("static.svc.mesh", "no steered name"),
        ("none.svc.mesh", "no steered name"),
        ("svc.mesh", "no steered name"),
        ("x.cut.svc.mesh", "delegated"),
        ("a..svc.mesh", "label"),
        ("a b.svc.mesh", "host name"),
        ("web.svc.mesh\n", "host name"),
        ("*.*.wild.svc.mesh", "`*`"),
        ("a.*.wild.svc.mesh", "`*`"),
        (&format!("{long}.svc.mesh"), "63"),
        ("\u{e9}.svc.mesh", "punycode"),
        ("../../etc/passwd", "label"),
    ] {
        let answer = site.post(&tokens, &body(name, "good"));
        assert_eq!(answer.status, 422, "{name:?}: {answer:?}");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(
            detail.contains(why) && !detail.contains('\n'),
            "{name:?}: {detail}"
        );
    }
    for token in [
        "",
        "a=",
        "a b",
        "a\"b",
        "\u{1b}[2J",
        "a\nb",
        "\u{e9}",
        &"a".repeat(256),
    ] {
        let answer = site.post(&tokens, &body("web.svc.mesh", token));
        assert_eq!(answer.status, 422, "{token:?}: {answer:?}");
    }
    let fixed = site.post(&tokens, &body("fixed.svc.mesh", "good"));
    assert_eq!(fixed.status, 409, "{fixed:?}");
    let viewer = Web::new(site.to, "POST", "/api/v1/acme").bearer(&tokens.viewer.text);
    let refused = viewer
        .json(&body("web.svc.mesh", "good").to_string())
        .send();
    assert_eq!(refused.status, 403, "{refused:?}");
    let list = Web::get(site.to, "/api/v1/acme")
        .bearer(&tokens.viewer.text)
        .send();
    assert_eq!(list.json()["total"], 0);
    // Eight, and no ninth; again is no other.
    for at in 0..8 {
        let name = ["web.svc.mesh", "Web.Svc.Mesh."][at % 2];
        let answer = site.post(&tokens, &body(name, &format!("t{at}")));
        assert_eq!(answer.status, 201, "{answer:?}");
        let challenge = answer.json();
        assert_eq!(
            (&challenge["expected"], &challenge["owner"]),
            (&json!(2), &json!(OWNER))
        );
        assert!(
            challenge["missing"]
                .to_string()
                .contains(&nobody.to_string()),
            "{challenge}"
        );
    }
    assert_eq!(site.post(&tokens, &body("web.svc.mesh", "t8")).status, 409);
    assert_eq!(site.post(&tokens, &body("web.svc.mesh", "t0")).status, 200);
    for name in ["*.wild.svc.mesh", "x.wild.svc.mesh"] {
        assert_eq!(site.post(&tokens, &body(name, "w")).status, 201, "{name}");
    }
    wait_for("all eight", PATIENCE, || {
        (site.texts(OWNER).0.len() == 8).then_some(())
    });
    for owner in [
        "_acme-challenge.wild.svc.mesh",
        "_acme-challenge.x.wild.svc.mesh",
    ] {
        wait_for(owner, PATIENCE, || {
            (site.texts(owner).0 == ["w"]).then_some(())
        });
    }
    assert_eq!(site.texts("_acme-challenge.fixed.svc.mesh").0, ["theirs"]);
    // A wildcard goes on, with the name that is proved too.
    for name in ["x.wild", "y.wild"] {
        let reply = Ask::a(&format!("{name}.svc.mesh")).udp(site.node.dns());
        assert_eq!(reply.address(), std::net::IpAddr::from([192, 0, 2, 1]));
    }
}
