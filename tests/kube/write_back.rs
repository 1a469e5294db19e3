//! Events on the objects that they concern, by one node at a time, with the rights of the manifests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::harness::door::{Token, token};
use crate::harness::node::Node;
use crate::harness::raw_http::Web;
use crate::harness::{loopback, wait_for};
use crate::keys::User;
use crate::kinds::{INGRESS, Pods, SERVICE, endpoints, ingress, namespace, service, slice};
use crate::node::{CONTINENTS, Member, Meridian};
use crate::objects::Admin;

const PATIENCE: Duration = Duration::from_secs(30);
/// The time of the Lease, a look at it, and what a busy machine needs.
const TAKEOVER: Duration = Duration::from_secs(40);
const CLIENTS: &str = CONTINENTS[0].clients;
const EVENT: (&str, &str) = ("events.k8s.io/v1", "Event");
const LEASE: (&str, &str) = ("coordination.k8s.io/v1", "Lease");
const ENDPOINTS: (&str, &str) = ("meridian-dns.io/health-check", "endpoints");
const ENABLED: (&str, &str) = ("meridian-dns.io/enabled", "true");
const WWW: &str = "www.shop.g.example";

const ZONE: &str = "
zones:
  - name: g.example
    nameservers: [{name: ns.g.example, addresses: [192.0.2.53]}]
    grants: [{namespaces: [\"*\"], hostnames: [\"*.g.example\"]}]
";

/// Applies a manifest of `deploy/kubernetes`, for the harness's own user.
fn apply(admin: &Admin, file: &str) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes");
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    for document in text.split("\n---\n") {
        let mut object: Value = serde_saphyr::from_str(document).unwrap();
        if !object["subjects"].is_null() {
            object["subjects"] = json!([{
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Group",
                "name": User::Reader.group(),
            }]);
        }
        admin.apply(&object).unwrap();
    }
}

/// A node beside clusters, with the rights that were given.
fn beside(clusters: &[&Cluster], rest: &str) -> Meridian {
    with_members(clusters, |members| Meridian::start(members, rest))
}

/// Hands the clusters on as members, with the rights that were given.
fn with_members<T>(clusters: &[&Cluster], start: impl FnOnce(&[Member<'_>]) -> T) -> T {
    let files: Vec<_> = clusters
        .iter()
        .map(|cluster| cluster.kubeconfig(User::Reader))
        .collect();
    let all = clusters.iter().zip(&files).zip(CONTINENTS);
    let members: Vec<Member<'_>> = all
        .map(|((cluster, file), continent)| Member {
            name: cluster.name(),
            region: continent.region,
            kubeconfig: Some((file, cluster.name())),
        })
        .collect();
    start(&members)
}

/// Two nodes, each the other's peer, and who may drain.
struct Peers {
    nodes: [Meridian; 2],
    to: [SocketAddr; 2],
    operator: Token,
}

impl Peers {
    fn start(clusters: &[&Cluster], rest: &str) -> Self {
        let to = [(); 2].map(|()| SocketAddr::new(loopback(), 8053));
        let (operator, peer) = (token(), token());
        let node = |own: SocketAddr, other: SocketAddr| {
            let admin = format!(
                "listen: [\"{own}\"], anonymous: viewer, tokens: [{{name: sre, file: o, role: operator}}, {{name: other, file: p, role: peer}}]"
            );
            let rest =
                format!("{rest}peers: [{{url: \"http://{other}\", tokenFile: peer.token}}]\n");
            with_members(clusters, |members| {
                Meridian::start_with_admin(members, (&admin, &rest), |folder| {
                    std::fs::write(folder.join("o"), &operator.line).unwrap();
                    std::fs::write(folder.join("p"), &peer.line).unwrap();
                    std::fs::write(folder.join("peer.token"), &peer.text).unwrap();
                })
            })
        };
        let nodes = [node(to[0], to[1]), node(to[1], to[0])];
        Self {
            nodes,
            to,
            operator,
        }
    }

    /// Drains a cluster by the first node; gives the id.
    fn drain(&self, cluster: &str) -> String {
        let body = json!({"target": {"kind": "cluster", "cluster": cluster}, "reason": "upgrade"});
        let web = Web::new(self.to[0], "POST", "/api/v1/drains").bearer(&self.operator.text);
        let answer = web.json(&body.to_string()).send();
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Ends a drain.
    fn undrain(&self, id: &str) {
        let path = format!("/api/v1/drains/{id}?reason=done");
        let web = Web::new(self.to[0], "DELETE", &path).bearer(&self.operator.text);
        assert_eq!(web.send().status, 200);
    }

    /// What the first node says of a drain.
    fn look(&self, id: &str) -> Value {
        let path = format!("/api/v1/drains/{id}");
        Web::get(self.to[0], &path).send().json()
    }
}

/// A Service with an EndpointSlice.
fn put(admin: &Admin, (space, name): (&str, &str), annotations: &[(&str, &str)], address: &str) {
    let pods = Pods {
        ready: 1,
        ..Pods::default()
    };
    admin.create(slice((space, name), 1, pods)).unwrap();
    let annotations = [&[ENDPOINTS, ENABLED], annotations].concat();
    admin
        .create(service((space, name), &annotations, &[address]))
        .unwrap();
}

/// An Event, as far as it is looked at: reason, object, message.
type Said = (String, String, String);

/// Controllers inside an API server, which say something of Services that are younger than their last look.
const OF_THE_SERVER: [&str; 2] = [
    "ipallocator-repair-controller",
    "portallocator-repair-controller",
];

/// All Events of a namespace but those of the server itself, each with how often it was said.
fn events(admin: &Admin, space: &str) -> Vec<(Said, u64)> {
    let list = admin.list(EVENT, space).unwrap();
    let event = |data: &Value| {
        let text = |at: &Value| at.as_str().unwrap_or_default().to_owned();
        assert_eq!(data["reportingController"], "meridian-dns.io/meridian");
        assert_eq!(data["reportingInstance"], "test");
        let said = (
            text(&data["reason"]),
            text(&data["regarding"]["name"]),
            text(&data["note"]),
        );
        (said, data["series"]["count"].as_u64().unwrap_or(1))
    };
    let is_theirs = |data: &&Value| {
        let by = data["reportingController"].as_str();
        by.is_none_or(|by| !OF_THE_SERVER.contains(&by))
    };
    let all = list.items.iter().map(|item| &item.data);
    all.filter(is_theirs).map(event).collect()
}

/// Waits for an Event whose message has some words, and gives it.
fn wait_said(admin: &Admin, space: &str, (reason, name, words): (&str, &str, &str)) -> String {
    let what = format!("{reason} on {space}/{name} with `{words}`");
    let begun = Instant::now();
    let found = wait_for(&what, PATIENCE, || {
        let all = events(admin, space);
        let mut all = all.into_iter().map(|(said, _)| said);
        let is_it = |said: &Said| said.0 == reason && said.1 == name && said.2.contains(words);
        all.find(is_it)
    });
    println!("{what}: {:?}", begun.elapsed());
    found.2
}

/// Checks that there are no twins, and that each was said once.
fn assert_once(admin: &Admin, space: &str) {
    let mut counts: BTreeMap<Said, u64> = BTreeMap::new();
    for (said, count) in events(admin, space) {
        *counts.entry(said).or_default() += count;
    }
    for (said, count) in counts {
        assert_eq!(count, 1, "{said:?}");
    }
}

/// Reads a figure of a member; 0 until it is shown.
fn figure(node: &mut Meridian, name: &str, labels: &str) -> f64 {
    let node: &mut Node = node.node();
    let text = node.get("/metrics").expect("metrics");
    let begin = format!("meridian_write_back_{name}{{{labels}}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&begin));
    value.map_or(0.0, |value| value.parse().unwrap())
}

/// Says which of two nodes writes in a cluster, once one does; never both.
fn wait_leader(nodes: &mut [Meridian; 2], cluster: &str) -> usize {
    let labels = format!("cluster=\"{cluster}\"");
    wait_for("somebody to write", TAKEOVER, || {
        let leads = nodes
            .each_mut()
            .map(|node| figure(node, "leader", &labels) > 0.0);
        assert!(leads != [true, true]);
        leads.iter().position(|leads| *leads)
    })
}

#[test]
fn every_reason_is_said_once_though_two_nodes_run() {
    let clusters = Cluster::start_all(["europe", "america"]);
    let [europe, america] = clusters.each_ref().map(Cluster::admin);
    for admin in [america, europe] {
        apply(admin, "reader.yaml");
        apply(admin, "event-writer.yaml");
        for name in ["shop", "thief", "dead"] {
            admin.create(namespace(name)).unwrap();
        }
    }
    let rest = format!("{ZONE}kubernetes: {{writeBack: events}}\n");
    let all = clusters.each_ref();
    let mut nodes = [beside(&all, &rest), beside(&all, &rest)];
    let writer = wait_leader(&mut nodes, "europe");
    let host = ("meridian-dns.io/hostname", WWW);
    let ttl = |seconds| ("meridian-dns.io/ttl", seconds);
    put(america, ("shop", "web"), &[host, ttl("2")], "192.0.2.1");
    put(europe, ("shop", "web"), &[host, ttl("3")], "192.0.2.2");
    nodes[0].wait_answer(WWW, CLIENTS, &["192.0.2.2"], PATIENCE);
    let published = wait_said(america, "shop", ("Published", "web", "192.0.2.1"));
    assert!(published.contains(WWW), "{published}");
    assert!(published.contains("web.shop.g.example"), "{published}");
    wait_said(europe, "shop", ("Published", "web", "192.0.2.2"));
    // Of two that disagree the first by name is heard.
    wait_said(
        europe,
        "shop",
        ("PolicyConflict", "web", "meridian-dns.io/ttl"),
    );
    // A part of it is refused; the rest counts.
    let bad = ("meridian-dns.io/weight", "-1");
    put(europe, ("shop", "bad"), &[bad], "192.0.2.3");
    wait_said(
        europe,
        "shop",
        ("InvalidAnnotation", "bad", "meridian-dns.io/weight"),
    );
    wait_said(europe, "shop", ("Published", "bad", "192.0.2.3"));
    // A target that leads back to the object itself: what is its own stays, and nobody is asked.
    let ring = ("meridian-dns.io/target", "ring.shop.g.example,192.0.2.8");
    put(europe, ("shop", "ring"), &[ring], "192.0.2.9");
    wait_said(europe, "shop", ("TargetRefused", "ring", "in a circle"));
    // An address that nobody is answered with.
    put(europe, ("shop", "inner"), &[], "10.1.2.3");
    wait_said(
        europe,
        "shop",
        (
            "TargetRefused",
            "inner",
            "10.1.2.3 is not answered: private address",
        ),
    );
    nodes[0].wait_answer("ring.shop.g.example", CLIENTS, &["192.0.2.8"], PATIENCE);
    // A host that another namespace has.
    put(europe, ("thief", "web"), &[host], "192.0.2.66");
    wait_said(
        europe,
        "thief",
        ("HostnameConflict", "web", "namespace shop"),
    );
    // Nothing is ready anywhere.
    put(europe, ("dead", "web"), &[], "192.0.2.4");
    wait_said(europe, "dead", ("Published", "web", "192.0.2.4"));
    let unready = Pods {
        unready: 1,
        ..Pods::default()
    };
    let patch = json!({"endpoints": endpoints(1, unready)});
    europe
        .patch(crate::kinds::SLICE, ("dead", "web-1"), &patch)
        .unwrap();
    wait_said(
        europe,
        "dead",
        ("NoHealthyCluster", "web", "web.dead.g.example"),
    );
    // A check that never succeeds: nobody answers at this address.
    let tcp = [("meridian-dns.io/health-check", "tcp"), ENABLED];
    europe
        .create(service(("dead", "deaf"), &tcp, &["192.0.2.5"]))
        .unwrap();
    wait_said(
        europe,
        "dead",
        ("MonitorNeverSucceeded", "deaf", "192.0.2.5"),
    );
    // An object drains itself, and may be stopped when the last answer has left every cache.
    let drain = json!({"metadata": {"annotations": {"meridian-dns.io/drain": "true"}}});
    america.patch(SERVICE, ("shop", "web"), &drain).unwrap();
    wait_said(america, "shop", ("Draining", "web", "192.0.2.1"));
    wait_said(america, "shop", ("SafeToStop", "web", "192.0.2.1"));
    for (admin, space) in [
        (america, "shop"),
        (europe, "shop"),
        (europe, "thief"),
        (europe, "dead"),
    ] {
        assert_once(admin, space);
    }
    // Only one of them wrote in each cluster.
    assert_eq!(wait_leader(&mut nodes, "europe"), writer);
    let other = figure(&mut nodes[1 - writer], "events_total", "cluster=\"europe\"");
    assert!(other < 1.0, "{other} by the one that does not write");
    let lease = europe.get(LEASE, "meridian", "meridian-events").unwrap();
    assert_eq!(lease.data["spec"]["leaseTransitions"], 0);

    // The writer crashes: the other writes on, and no twins.
    let before = events(europe, "shop").len();
    let crashed = Instant::now();
    nodes[writer].node().kill();
    put(europe, ("shop", "late"), &[bad], "192.0.2.7");
    wait_for("the other to write", TAKEOVER, || {
        let labels = "cluster=\"europe\"";
        (figure(&mut nodes[1 - writer], "leader", labels) > 0.0).then_some(())
    });
    println!("taken over after {:?}", crashed.elapsed());
    wait_said(
        europe,
        "shop",
        ("InvalidAnnotation", "late", "meridian-dns.io/weight"),
    );
    wait_said(europe, "shop", ("Published", "late", "192.0.2.7"));
    // All that stands was said once more by then, and found.
    wait_for("nothing to wait", PATIENCE, || {
        let labels = "cluster=\"europe\"";
        (figure(&mut nodes[1 - writer], "waiting", labels) < 1.0).then_some(())
    });
    assert_eq!(events(europe, "shop").len(), before + 2);
    for space in ["shop", "thief", "dead"] {
        assert_once(europe, space);
    }
    let lease = europe.get(LEASE, "meridian", "meridian-events").unwrap();
    assert_eq!(lease.data["spec"]["leaseTransitions"], 1);
    // At its end it gives the Lease back.
    let process = nodes[1 - writer].node().take_process();
    process.terminate(PATIENCE);
    let lease = europe.get(LEASE, "meridian", "meridian-events").unwrap();
    assert_eq!(lease.data["spec"]["holderIdentity"], "");
}

#[test]
fn a_drain_is_told_on_its_objects_and_safe_only_by_the_word_of_every_node() {
    let clusters = Cluster::start_all(["europe", "america"]);
    let [europe, america] = clusters.each_ref().map(Cluster::admin);
    for admin in [america, europe] {
        apply(admin, "reader.yaml");
        apply(admin, "event-writer.yaml");
        admin.create(namespace("shop")).unwrap();
    }
    let host = ("meridian-dns.io/hostname", WWW);
    let ttl = ("meridian-dns.io/ttl", "1");
    put(america, ("shop", "web"), &[host, ttl], "192.0.2.1");
    put(europe, ("shop", "web"), &[host, ttl], "192.0.2.2");
    let rest = format!("{ZONE}kubernetes: {{writeBack: events}}\n");
    let mut peers = Peers::start(&clusters.each_ref(), &rest);
    for node in &peers.nodes {
        node.wait_answer(WWW, CLIENTS, &["192.0.2.2"], PATIENCE);
    }
    wait_said(europe, "shop", ("Published", "web", "192.0.2.2"));
    wait_said(america, "shop", ("Published", "web", "192.0.2.1"));

    // By an operator: told where the drained object is, and not elsewhere.
    let id = peers.drain("europe");
    let said = wait_said(europe, "shop", ("Draining", "web", "192.0.2.2"));
    assert!(said.starts_with("Drained by an operator"), "{said}");
    assert!(!said.contains("upgrade") && !said.contains("sre"), "{said}");
    for node in &peers.nodes {
        node.wait_answer(WWW, CLIENTS, &["192.0.2.1"], PATIENCE);
    }
    wait_said(europe, "shop", ("SafeToStop", "web", "192.0.2.2"));
    wait_for("the API to say the same", PATIENCE, || {
        (peers.look(&id)["safeToStop"] == true).then_some(())
    });
    let told = events(america, "shop");
    assert!(
        told.iter().all(|(said, _)| said.0 == "Published"),
        "{told:?}"
    );
    peers.undrain(&id);
    peers.nodes[0].wait_answer(WWW, CLIENTS, &["192.0.2.2"], PATIENCE);

    // A node that is gone holds it back, whatever the other one knows; it comes back, and it is safe.
    peers.nodes[1].node().kill();
    let id = peers.drain("america");
    wait_for("the Event by whoever writes then", TAKEOVER, || {
        let all = events(america, "shop");
        let mut all = all.iter().map(|(said, _)| said);
        all.any(|said| said.0 == "Draining").then_some(())
    });
    let drain = wait_for("this node to have let go", PATIENCE, || {
        let drain = peers.look(&id);
        let own = &drain["nodes"][0];
        (own["remainingSeconds"] == 0.0).then_some(drain)
    });
    assert_eq!(drain["safeToStop"], false, "{drain}");
    // Whatever stands is said before what comes later. It is in both, or the drain would be held for it.
    put(europe, ("shop", "late"), &[ttl], "192.0.2.6");
    wait_said(europe, "shop", ("Published", "late", "192.0.2.6"));
    put(america, ("shop", "late"), &[ttl], "192.0.2.5");
    wait_said(america, "shop", ("Published", "late", "192.0.2.5"));
    let told = events(america, "shop");
    let is_safe = |said: &Said| said.0 == "SafeToStop";
    assert!(!told.iter().any(|(said, _)| is_safe(said)), "{told:?}");
    peers.nodes[1].node().spawn();
    wait_said(america, "shop", ("SafeToStop", "web", "192.0.2.1"));
    assert_eq!(peers.look(&id)["nodes"][1]["inForce"], true);
    peers.undrain(&id);

    // By its own word, over both nodes too.
    put(america, ("shop", "api"), &[ttl], "192.0.2.3");
    put(europe, ("shop", "api"), &[ttl], "192.0.2.4");
    wait_said(europe, "shop", ("Published", "api", "192.0.2.4"));
    let drain = json!({"metadata": {"annotations": {"meridian-dns.io/drain": "true"}}});
    europe.patch(SERVICE, ("shop", "api"), &drain).unwrap();
    let said = wait_said(europe, "shop", ("Draining", "api", "192.0.2.4"));
    assert!(said.starts_with("Drained by its own word"), "{said}");
    wait_said(europe, "shop", ("SafeToStop", "api", "192.0.2.4"));
    assert!(
        !events(america, "shop")
            .iter()
            .any(|(said, _)| said.1 == "api" && is_safe(said))
    );
}

#[test]
fn without_the_rights_it_says_so_and_serves() {
    let cluster = Cluster::start("europe");
    let admin = cluster.admin();
    apply(admin, "reader.yaml");
    admin.create(namespace("shop")).unwrap();
    let rest = format!("{ZONE}kubernetes: {{writeBack: events}}\n");
    let mut node = beside(&[&cluster], &rest);
    put(
        admin,
        ("shop", "web"),
        &[("meridian-dns.io/hostname", WWW)],
        "192.0.2.1",
    );
    node.wait_answer(WWW, CLIENTS, &["192.0.2.1"], PATIENCE);
    let labels = "cluster=\"europe\",reason=\"forbidden\"";
    wait_for("the refusal to be counted", PATIENCE, || {
        (figure(&mut node, "failures_total", labels) >= 1.0).then_some(())
    });
    wait_for("the refusal to be shown", PATIENCE, || {
        let all = node.api("/api/v1/clusters").to_string();
        all.contains("meridian-events").then_some(())
    });
    let told = node.log().matches("Events cannot be written").count();
    assert_eq!(told, 1, "{}", node.log());
    assert!(events(admin, "shop").is_empty());
    // The rights come, and with them the Events; a look is a minute away at most.
    let failures = figure(&mut node, "failures_total", labels);
    assert!(failures < 5.0, "{failures} refusals in a moment");
}

#[test]
fn nothing_is_written_unless_it_is_wanted() {
    let cluster = Cluster::start("europe");
    let admin = cluster.admin();
    apply(admin, "reader.yaml");
    apply(admin, "event-writer.yaml");
    admin.create(namespace("shop")).unwrap();
    let mut node = beside(&[&cluster], ZONE);
    let bad = ("meridian-dns.io/weight", "-1");
    put(admin, ("shop", "web"), &[bad], "192.0.2.1");
    let name = "web.shop.g.example";
    node.wait_answer(name, CLIENTS, &["192.0.2.1"], PATIENCE);
    assert!(admin.get(LEASE, "meridian", "meridian-events").is_err());
    // A reload turns it on, and off again.
    let plain = node.node().config();
    node.node()
        .write_config(&format!("{plain}\nkubernetes: {{writeBack: events}}\n"));
    wait_said(admin, "shop", ("InvalidAnnotation", "web", "weight"));
    wait_said(admin, "shop", ("Published", "web", name));
    node.node().write_config(&plain);
    wait_for("the Lease to be given back", PATIENCE, || {
        let lease = admin.get(LEASE, "meridian", "meridian-events").unwrap();
        (lease.data["spec"]["holderIdentity"] == "").then_some(())
    });
    let before = events(admin, "shop").len();
    put(admin, ("shop", "other"), &[bad], "192.0.2.2");
    node.wait_answer("other.shop.g.example", CLIENTS, &["192.0.2.2"], PATIENCE);
    assert_eq!(events(admin, "shop").len(), before);
}

#[test]
fn names_beyond_those_of_a_namespace_are_refused_with_an_event() {
    let clusters = Cluster::start_all(["europe"]);
    let admin = clusters[0].admin();
    apply(admin, "reader.yaml");
    apply(admin, "event-writer.yaml");
    for name in ["bulk", "shop"] {
        admin.create(namespace(name)).unwrap();
    }
    put(admin, ("bulk", "app"), &[], "192.0.2.1");
    put(admin, ("shop", "web"), &[], "192.0.2.2");
    let host = |n: usize, at: usize| format!("h{n}.x{at:02}.bulk.g.example");
    let made = (0..11).map(|at| {
        let hosts: Vec<String> = (0..1_000).map(|n| host(n, at)).collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let name = format!("in-{at:02}");
        let annotations = [ENDPOINTS, ENABLED];
        ingress(("bulk", &name), &annotations, &hosts, "app", &["192.0.2.3"])
    });
    admin.create_all(made);
    let rest = format!("{ZONE}kubernetes: {{writeBack: events}}\n");
    let mut node = beside(&[&clusters[0]], &rest);
    node.wait_answer(&host(999, 9), CLIENTS, &["192.0.2.3"], PATIENCE);
    let beyond = "namespace bulk has its 10000 host names in this cluster already: 1000 of this object's are beyond them";
    wait_said(admin, "bulk", ("InvalidAnnotation", "in-10", beyond));
    assert!(node.ask(&host(0, 10), CLIENTS).addresses().is_empty());
    node.wait_answer("web.shop.g.example", CLIENTS, &["192.0.2.2"], PATIENCE);
    let metrics = node.node().get("/metrics").expect("metrics");
    assert!(metrics.contains("meridian_member_refused_objects{cluster=\"europe\"} 1\n"));
    // There is room when others make some.
    admin.delete(INGRESS, "bulk", "in-03").unwrap();
    node.wait_answer(&host(0, 10), CLIENTS, &["192.0.2.3"], PATIENCE);
}
