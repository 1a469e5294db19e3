//! A drain holds for the service that an operator meant, whatever else asks for its name by then.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::harness::client::Ask;
use crate::harness::door::{plain, token};
use crate::harness::node::Node;
use crate::harness::raw_http::Web;
use crate::harness::{loopback, wait_for};
use crate::keys::User;
use crate::kinds::{INGRESS, Pods, ingress, namespace, service, slice};
use crate::node::{CONTINENTS, Member};
use crate::objects::Admin;

const PATIENCE: Duration = Duration::from_secs(20);
const WWW: &str = "www.shop.g.example";
const ENABLED: [(&str, &str); 2] = [
    ("meridian-dns.io/enabled", "true"),
    ("meridian-dns.io/health-check", "endpoints"),
];
const ZONE: &str = "zones: [{name: g.example, ttl: 1, nameservers: [{name: ns.g.example, addresses: [192.0.2.53]}]}]\n";

/// Puts the Service `shop/web` into a cluster.
fn put(admin: &Admin, address: &str) {
    admin.create(namespace("shop")).unwrap();
    let pods = Pods {
        ready: 1,
        ..Pods::default()
    };
    admin.create(slice(("shop", "web"), 1, pods)).unwrap();
    let [enabled, check] = ENABLED;
    let annotations = [enabled, check, ("meridian-dns.io/hostname", WWW)];
    let made = service(("shop", "web"), &annotations, &[address]);
    admin.create(made).unwrap();
}

#[test]
fn a_drained_service_stays_drained_when_another_object_joins_its_name() {
    let clusters = Cluster::start_all(["europe", "america"]);
    let [europe, america] = clusters.each_ref().map(Cluster::admin);
    put(europe, "192.0.2.1");
    put(america, "192.0.2.2");
    let files = clusters.each_ref().map(|one| one.kubeconfig(User::Admin));
    let members = clusters.iter().zip(&files).zip(CONTINENTS);
    let members = members.map(|((cluster, file), continent)| {
        let member = Member {
            name: cluster.name(),
            region: continent.region,
            kubeconfig: Some((file, cluster.name())),
        };
        member.item()
    });
    let members: Value = members.collect();
    let (http, operator) = (SocketAddr::new(loopback(), 8053), token());
    let admin = format!(
        "listen: [\"{http}\"], anonymous: viewer, tokens: [{{name: sre, file: o, role: operator}}]"
    );
    let rest = format!("clusters: {members}\n{ZONE}");
    let node = Node::start_with_admin(plain, &admin, &rest, |folder| {
        fs::write(folder.join("o"), &operator.line).unwrap();
    });
    let address = |last: u8| IpAddr::from([192, 0, 2, last]);
    let ask = || {
        let reply = Ask::a(WWW).from(CONTINENTS[0].clients).udp(node.dns());
        reply.addresses()
    };
    let wait = |what: &str, wanted: &[IpAddr], never: Option<IpAddr>| {
        wait_for(what, PATIENCE, || {
            let found = ask();
            assert!(!never.is_some_and(|never| found.contains(&never)), "{what}");
            (found == wanted).then_some(())
        });
    };
    wait("the nearest cluster", &[address(1)], None);
    let target = json!({"kind": "service", "service": "shop/web", "cluster": "europe"});
    let drain = json!({"target": target, "reason": "the machines are moved"});
    let web = Web::new(http, "POST", "/api/v1/drains").bearer(&operator.text);
    let drain = web.json(&drain.to_string()).send();
    assert_eq!(drain.status, 201, "{drain:?}");
    let id = drain.json()["id"].as_str().unwrap().to_owned();
    wait("the drain", &[address(2)], None);
    // A team begins to move the name to an Ingress, in one of the clusters: from now on the service is that of the host.
    let joined = ingress(("shop", "in"), &ENABLED, &[WWW], "web", &["192.0.2.9"]);
    america.create(joined).unwrap();
    let both = [address(2), address(9)];
    wait("the Ingress", &both, Some(address(1)));
    let shown = |key: &str| Web::get(http, &format!("/api/v1/services/shop/{key}")).send();
    let page = shown("www.shop.g.example.hostname").json();
    assert_eq!(page["drains"][0]["id"], id.as_str(), "{page}");
    let drained = |page: &Value| {
        let endpoints = page["endpoints"].as_array().unwrap().iter();
        let drained = endpoints.filter(|endpoint| endpoint["drained"] == true);
        drained
            .map(|endpoint| endpoint["address"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(drained(&page), ["192.0.2.1"]);
    // It is moved, in the drained cluster too: what was meant was the Service, and not what comes in its place.
    let joined = ingress(("shop", "in"), &ENABLED, &[WWW], "web", &["192.0.2.8"]);
    europe.create(joined).unwrap();
    wait("the Ingress near by", &[address(8)], Some(address(1)));
    for admin in [america, europe] {
        admin.delete(INGRESS, "shop", "in").unwrap();
    }
    wait("the Service alone", &[address(2)], Some(address(1)));
    assert_eq!(drained(&shown("web").json()), ["192.0.2.1"]);
    // The end of it is for all.
    let end = Web::new(http, "DELETE", &format!("/api/v1/drains/{id}?reason=done"));
    let ended = end.bearer(&operator.text).send();
    assert_eq!(ended.status, 200, "{ended:?}");
    wait("the end of the drain", &[address(1)], None);
}
