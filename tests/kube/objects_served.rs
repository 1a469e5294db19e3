//! Every kind of object that is served, who may claim what, and with which rights.

use std::time::Duration;

use hickory_proto::op::ResponseCode;
use serde_json::json;

use crate::cluster::{Cluster, shared};
use crate::crds::{GATEWAY_API, install};
use crate::harness::wait_for;
use crate::keys::User;
use crate::kinds::{Pods, SERVICE, gateway, ingress, namespace, node, route, service, slice};
use crate::node::{CONTINENTS, Member, Meridian};

const PATIENCE: Duration = Duration::from_secs(20);
/// A kind that appears later is seen within a minute at the latest.
const LATER: Duration = Duration::from_secs(70);
const CLIENTS: &str = CONTINENTS[0].clients;

fn zone(more: &str) -> String {
    format!(
        "zones: [{{name: g.example, nameservers: [{{name: ns.g.example, addresses: [192.0.2.53]}}]{more}}}]\n"
    )
}

/// A node beside one cluster.
fn beside(cluster: &Cluster, user: User, rest: &str) -> Meridian {
    let file = cluster.kubeconfig(user);
    let member = Member {
        name: cluster.name(),
        region: CONTINENTS[0].region,
        kubeconfig: Some((&file, cluster.name())),
    };
    Meridian::start(&[member], rest)
}

const ENDPOINTS: (&str, &str) = ("meridian-dns.io/health-check", "endpoints");
const ENABLED: (&str, &str) = ("meridian-dns.io/enabled", "true");

#[test]
fn ingresses_gateways_and_routes_are_served() {
    let cluster = Cluster::start("europe");
    let admin = cluster.admin();
    let meridian = beside(&cluster, User::Admin, &zone(""));
    admin.create(namespace("front")).unwrap();
    let pods = Pods {
        ready: 1,
        ..Pods::default()
    };
    admin.create(slice(("front", "app"), 1, pods)).unwrap();
    let plain = service(("front", "app"), &[], &["192.0.2.99"]);
    admin.create(plain).unwrap();
    let hosts = ["a.front.g.example", "*.wild.front.g.example"];
    let it = ingress(
        ("front", "in"),
        &[ENABLED, ENDPOINTS],
        &hosts,
        "app",
        &["192.0.2.10"],
    );
    admin.create(it).unwrap();
    meridian.wait_answer("a.front.g.example", CLIENTS, &["192.0.2.10"], PATIENCE);
    meridian.wait_answer("x.wild.front.g.example", CLIENTS, &["192.0.2.10"], PATIENCE);
    // What did not ask is not served.
    let reply = meridian.ask("app.front.g.example", CLIENTS);
    assert_eq!(reply.rcode(), ResponseCode::NXDomain);
    // Gateway API comes to the cluster while the node runs.
    install(admin, &GATEWAY_API);
    let door = gateway(("front", "door"), &["*.front.g.example"], &["192.0.2.20"]);
    admin.create(door).unwrap();
    let mut way = route(
        ("front", "way"),
        &["b.front.g.example", "else.example"],
        "door",
        "app",
    );
    way["metadata"]["annotations"] =
        json!({"meridian-dns.io/enabled": "true", "meridian-dns.io/health-check": "endpoints"});
    admin.create(way).unwrap();
    meridian.wait_answer("b.front.g.example", CLIENTS, &["192.0.2.20"], LATER);
}

#[test]
fn a_tenant_takes_nothing_from_another() {
    let cluster = &shared()[0];
    let admin = cluster.admin();
    let meridian = beside(cluster, User::Admin, &zone(""));
    for name in ["victim", "thief"] {
        admin.create(namespace(name)).unwrap();
        let pods = Pods {
            ready: 1,
            ..Pods::default()
        };
        admin.create(slice((name, "web"), 1, pods)).unwrap();
    }
    let hosts = ("meridian-dns.io/hostname", "pay.victim.g.example");
    admin
        .create(service(
            ("victim", "web"),
            &[hosts, ENDPOINTS],
            &["192.0.2.1"],
        ))
        .unwrap();
    meridian.wait_answer("pay.victim.g.example", CLIENTS, &["192.0.2.1"], PATIENCE);
    let stolen = (
        "meridian-dns.io/hostname",
        "PAY.victim.g.example., *.victim.g.example, g.example, *.g.example, other.example, mine.thief.g.example",
    );
    let bad = ("meridian-dns.io/weight", "-1");
    admin
        .create(service(
            ("thief", "web"),
            &[stolen, bad, ENDPOINTS],
            &["192.0.2.66"],
        ))
        .unwrap();
    meridian.wait_answer("mine.thief.g.example", CLIENTS, &["192.0.2.66"], PATIENCE);
    let reply = meridian.ask("pay.victim.g.example", CLIENTS);
    assert_eq!(
        reply.addresses(),
        ["192.0.2.1".parse::<std::net::IpAddr>().unwrap()]
    );
    for name in ["x.victim.g.example", "x.g.example", "other.example"] {
        assert!(meridian.ask(name, CLIENTS).addresses().is_empty(), "{name}");
    }
    admin.delete_all(SERVICE, "thief").unwrap();
    wait_for("the thief to be gone", PATIENCE, || {
        let reply = meridian.ask("mine.thief.g.example", CLIENTS);
        (reply.rcode() == ResponseCode::NXDomain).then_some(())
    });
    admin.delete_all(SERVICE, "victim").unwrap();
}

#[test]
fn the_place_of_a_cluster_is_read_from_its_nodes() {
    let cluster = Cluster::start("somewhere");
    let admin = cluster.admin();
    let file = cluster.kubeconfig(User::Admin);
    let config = serde_json::to_string(&json!([{
        "name": "somewhere",
        "kubeconfig": {"file": file, "context": "somewhere"},
    }]));
    let mut meridian = Meridian::start(&[], &zone(""));
    let text = meridian.node().config();
    let text = text.replace("clusters: []", &format!("clusters: {}", config.unwrap()));
    meridian.node().write_config(&text);
    let labels = [
        ("topology.kubernetes.io/region", "ap-northeast-1"),
        ("topology.kubernetes.io/zone", "ap-northeast-1a"),
    ];
    let mut machine = node("one", &labels, &[]);
    machine["spec"] = json!({"providerID": "aws:///ap-northeast-1a/i-1"});
    admin.create(machine).unwrap();
    wait_for("the place of the cluster", PATIENCE, || {
        let all = meridian.api("/api/v1/clusters");
        let it = all["items"].as_array()?.first()?.clone();
        (it["country"] == "JP" && it["region"] == "ap-northeast-1").then_some(())
    });
}

#[test]
fn the_rights_of_the_manifest_are_enough_and_no_others_are_needed() {
    let cluster = Cluster::start("europe");
    let admin = cluster.admin();
    install(admin, &GATEWAY_API);
    // The manifest, but for whom: the harness has its own user.
    let text = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes/reader.yaml"),
    );
    let mut made = 0;
    for document in text.unwrap().split("\n---\n") {
        let mut object: serde_json::Value = serde_saphyr::from_str(document).unwrap();
        if object["kind"] == "ClusterRoleBinding" {
            object["subjects"] = json!([{
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Group",
                "name": User::Reader.group(),
            }]);
        }
        admin.apply(&object).unwrap();
        made += 1;
    }
    assert_eq!(made, 4);
    let meridian = beside(&cluster, User::Reader, &zone(""));
    admin.create(namespace("shop")).unwrap();
    let pods = Pods {
        ready: 1,
        ..Pods::default()
    };
    admin.create(slice(("shop", "web"), 1, pods)).unwrap();
    admin
        .create(service(
            ("shop", "web"),
            &[ENABLED, ENDPOINTS],
            &["192.0.2.1"],
        ))
        .unwrap();
    meridian.wait_answer("web.shop.g.example", CLIENTS, &["192.0.2.1"], PATIENCE);
    let all = meridian.api("/api/v1/clusters");
    assert!(!all.to_string().contains("forbidden"), "{all}");
}
