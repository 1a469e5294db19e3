//! What member clusters offer, on disk: a restart answers as before, and what cannot be read is not lost.

use std::fs;
use std::path::Path;
use std::time::Duration;

use meridian::controller::content_hash;
use serde_json::{Value, json};

use crate::harness::client::Ask;
use crate::harness::door::{plain, token};
use crate::harness::node::{Node, meridian};
use crate::harness::objects::{Objects, kubeconfig};
use crate::harness::process::Process;
use crate::harness::raw_http::Web;
use crate::harness::{loopback, wait_for};

const PATIENCE: Duration = Duration::from_secs(20);

/// Configures a node with one member cluster, `member`.
fn config() -> String {
    let resolver = loopback();
    format!(
        "
zones: [{{name: g.example, nameservers: [{{name: ns.g.example, addresses: [192.0.2.53]}}]}}]
clusters: [{{name: member, location: {{country: FR}}, kubeconfig: {{file: member.yaml}}}}]
resolver: {{nameservers: [\"{resolver}\"]}}
"
    )
}

/// Writes what a node kept, and who its member cluster is.
fn prepare(folder: &Path, offers: &str, kubeconfig: &str) {
    fs::write(folder.join("member.yaml"), kubeconfig).unwrap();
    fs::create_dir(folder.join("state")).unwrap();
    fs::write(folder.join("state/offers.json"), offers).unwrap();
}

/// Writes what a node keeps of one Service, which says this beside its name.
fn kept(said: &Value, targets: &Value) -> String {
    let mut shard = json!({
        "kind": "Service", "namespace": "shop", "name": "web", "weight": 1, "hosts": ["www.shop.g.example"]
    });
    let more = said.as_object().unwrap().clone();
    shard.as_object_mut().unwrap().extend(more);
    kept_all(&[shard], targets)
}

/// Writes what a node keeps of these objects.
fn kept_all(shards: &[Value], targets: &Value) -> String {
    let body = json!({
        "version": 1, "owners": [["www.shop.g.example", "shop"]], "shards": {"member": shards}, "targets": targets
    });
    let body = body.to_string();
    format!("{}\n{body}", content_hash(body.as_bytes()))
}

/// Leads to where nobody listens.
fn nobody() -> String {
    kubeconfig(&format!("http://{}:1", loopback()))
}

#[test]
fn load_balancers_that_are_host_names_have_their_addresses_after_a_restart_without_anybody() {
    let offers = kept(
        &json!({"targets": ["lb.example.net"]}),
        &json!({"lb.example.net": {"addresses": ["192.0.2.1", "2001:db8::1"]}}),
    );
    let mut node = Node::start_on(loopback(), "", &config(), |folder| {
        prepare(folder, &offers, &nobody());
    });
    let address: std::net::IpAddr = [192, 0, 2, 1].into();
    let ask = |node: &Node| Ask::a("www.shop.g.example").udp(node.dns()).addresses();
    assert_eq!(ask(&node), [address], "the first answer");
    // The resolver does not answer: that takes nothing.
    let log = |node: &mut Node| Process::log(node.process());
    wait_for("the resolver to be missed", PATIENCE, || {
        let log = log(&mut node);
        log.contains("its last addresses stay").then_some(())
    });
    assert_eq!(ask(&node), [address], "without the resolver");
    // They are kept on: a second restart has them too.
    let path = node.folder().join("state/offers.json");
    wait_for("the offers to be written", PATIENCE, || {
        let text = fs::read_to_string(&path).ok()?;
        (text != offers && text.contains("lb.example.net")).then_some(())
    });
    node.kill();
    node.spawn();
    assert_eq!(ask(&node), [address], "the second start");
}

#[test]
fn offers_that_cannot_be_read_stay_until_there_is_something_to_write() {
    let unread = "of a newer version";
    let mut node = Node::start_on(loopback(), "", &config(), |folder| {
        prepare(folder, unread, &nobody());
    });
    let state = node.folder().join("state");
    let read = |name: &str| fs::read_to_string(state.join(name)).unwrap_or_default();
    wait_for("the member to be missed", PATIENCE, || {
        let problems = node.get("/api/v1/status")?;
        problems.contains("was never synced").then_some(())
    });
    assert_eq!(read("offers.json"), unread);
    node.kill();
    // Now its server answers.
    let objects = Objects::start(loopback());
    fs::write(node.folder().join("member.yaml"), objects.kubeconfig()).unwrap();
    node.spawn();
    wait_for("the offers to be written", PATIENCE, || {
        read("offers.json").contains("\"shards\"").then_some(())
    });
    assert_eq!(read("offers.json.unusable"), unread);
}

#[test]
fn what_nobody_confirmed_for_long_says_since_when() {
    let said = json!({"addresses": ["192.0.2.1"]});
    let offers = kept(&said, &json!({}));
    // Seen last long before the oldest age that `maxAge` may have.
    let seen = json!({"version": 1, "seen": {"member": 1_700_000_000_000_u64}}).to_string();
    let seen = format!("{}\n{seen}", content_hash(seen.as_bytes()));
    let node = Node::start_on(loopback(), "", &config(), |folder| {
        prepare(folder, &offers, &nobody());
        fs::write(folder.join("state/seen.json"), seen).unwrap();
    });
    let read = |path: &str| Web::get(node.http(), path).send().json();
    let since = json!("2023-11-14T22:13:20.000Z");
    let endpoint = wait_for("the endpoint to be unconfirmed", PATIENCE, || {
        let endpoint = read("/api/v1/services/shop/web")["endpoints"][0].clone();
        (!endpoint["unconfirmedSince"].is_null()).then_some(endpoint)
    });
    assert_eq!(endpoint["unconfirmedSince"], since);
    let reason = endpoint["reason"].as_str().unwrap();
    assert!(
        reason.contains("nor a probe confirmed it since 2023"),
        "{reason}"
    );
    let member = read("/api/v1/clusters/member")["kubernetes"].clone();
    assert_eq!(member["unconfirmedSince"], since);
    let problems = read("/api/v1/status")["problems"].to_string();
    assert!(
        problems.contains("unconfirmed for longer than"),
        "{problems}"
    );
    let server = format!("http://{}", node.http());
    for (args, words) in [
        (&["services", "shop/web"][..], "confirmed it since 2023"),
        (&["services", "shop/web", "--output", "wide"], "UNCONFIRMED"),
        (&["clusters"], "unconfirmed for long"),
        (&["clusters", "member"], "Unconfirmed"),
    ] {
        let output = meridian(&[&["status"], args, &["--server", &server]].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(words), "{args:?}: {said}");
    }
    for path in ["/services/shop/web", "/clusters/member"] {
        let page = Web::get(node.http(), path).send().body.to_lowercase();
        assert!(page.contains("confirmed since"), "{path}: {page}");
    }
    // It is the last that the name has, and is answered.
    let reply = Ask::a("www.shop.g.example").udp(node.dns());
    assert_eq!(reply.addresses(), [std::net::IpAddr::from([192, 0, 2, 1])]);
}

#[test]
fn an_address_that_is_drained_by_its_object_and_by_an_operator_shows_both() {
    let said = json!({"addresses": ["192.0.2.1"], "drained": true});
    let offers = kept(&said, &json!({}));
    let (operator, to) = (token(), std::net::SocketAddr::new(loopback(), 8053));
    let admin = format!("listen: [\"{to}\"], tokens: [{{name: ops, file: o, role: operator}}]");
    let _node = Node::start_with_admin(plain, &admin, &config(), |folder| {
        prepare(folder, &offers, &nobody());
        fs::write(folder.join("o"), &operator.line).unwrap();
    });
    let shown = || {
        let web = Web::get(to, "/api/v1/services/shop/web").bearer(&operator.text);
        let endpoint = web.send().json()["endpoints"][0].clone();
        [endpoint["drained"].clone(), endpoint["withdrawn"].clone()]
    };
    assert_eq!(shown(), [json!(false), json!(true)]);
    let drain = json!({"target": {"kind": "cluster", "cluster": "member"}, "reason": "upgrade"});
    let web = Web::new(to, "POST", "/api/v1/drains").bearer(&operator.text);
    let answer = web.json(&drain.to_string()).send();
    assert_eq!(answer.status, 201, "{answer:?}");
    wait_for("the drain to be shown", PATIENCE, || {
        (shown() == [json!(true), json!(true)]).then_some(())
    });
}

#[test]
fn a_drained_service_stays_drained_when_another_object_joins_its_name_meanwhile() {
    let object = |kind: &str, name: &str, address: &str| {
        json!({
            "kind": kind, "namespace": "shop", "name": name, "weight": 1,
            "hosts": ["www.shop.g.example"], "addresses": [address]
        })
    };
    let web = object("Service", "web", "192.0.2.1");
    let alone = kept_all(std::slice::from_ref(&web), &json!({}));
    let (operator, to) = (token(), std::net::SocketAddr::new(loopback(), 8053));
    let admin = format!("listen: [\"{to}\"], tokens: [{{name: ops, file: o, role: operator}}]");
    let mut node = Node::start_with_admin(plain, &admin, &config(), |folder| {
        prepare(folder, &alone, &nobody());
        fs::write(folder.join("o"), &operator.line).unwrap();
    });
    let ask = |node: &Node| Ask::a("www.shop.g.example").udp(node.dns()).addresses();
    let address = |last: u8| std::net::IpAddr::from([192, 0, 2, last]);
    let target = json!({"kind": "service", "service": "shop/web"});
    let drain = json!({"target": target, "reason": "moved to an Ingress"});
    let post = Web::new(to, "POST", "/api/v1/drains").bearer(&operator.text);
    let answer = post.json(&drain.to_string()).send();
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.json()["id"].clone();
    // The last one of a name is served all the same.
    assert_eq!(ask(&node), [address(1)]);
    node.kill();
    // The service is that of the host from now on, and the Service a part of it.
    let both = kept_all(&[web, object("Ingress", "in", "192.0.2.9")], &json!({}));
    fs::write(node.folder().join("state/offers.json"), both).unwrap();
    node.spawn();
    assert_eq!(ask(&node), [address(9)], "the first answer");
    let page = Web::get(to, "/api/v1/services/shop/www.shop.g.example.hostname");
    let page = page.bearer(&operator.text).send().json();
    assert_eq!(page["drains"][0]["id"], id, "{page}");
    let endpoints = page["endpoints"].as_array().unwrap();
    let drained: Vec<&Value> = endpoints
        .iter()
        .filter(|endpoint| endpoint["drained"] == true)
        .map(|endpoint| &endpoint["address"])
        .collect();
    assert_eq!(drained, ["192.0.2.1"]);
}
