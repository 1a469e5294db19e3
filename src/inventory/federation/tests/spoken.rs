//! What operators say of a service holds for what they mean, whatever key that has by then.

use std::collections::HashSet;

use super::*;
use crate::inventory::Isolation;

/// Has operators speak of these services, all of one namespace.
fn speak(inventory: &mut Inventory, keys: &[&str]) {
    let services = keys.iter().map(|key| ServiceKey::new("shop", key).unwrap());
    inventory.isolate(Isolation {
        services: services.collect(),
        addresses: HashSet::new(),
    });
}

/// Lists the endpoints that are spoken of: service, cluster, last octet of the address.
fn spoken(inventory: &Inventory) -> Vec<String> {
    let mut all = Vec::new();
    for (_, service) in inventory.services() {
        for pool in service.pools.iter() {
            for endpoint in pool.v4() {
                let place = (endpoint.cluster, endpoint.address);
                let keys = inventory.spoken_of(endpoint.state).iter();
                let meant = keys.filter(|(_, meant)| meant.has(place.0, place.1));
                let (key, address) = (service.key.name(), endpoint.address.to_string());
                let (_, last) = address.rsplit_once('.').unwrap();
                all.extend(meant.map(|_| format!("{key} {}:{last}", endpoint.cluster.0)));
            }
        }
    }
    all.sort();
    all
}

fn ingress(hosts: &[&str], address: &str) -> Shard {
    shard(object(ObjectKind::Ingress, "shop", "in"), hosts, &[address])
}

const HOST: &str = "www.g.example";

#[test]
fn an_object_that_others_join_is_meant_with_what_it_offers() {
    let mut inventory = inventory();
    offer(&mut inventory, 0, web(&[HOST], &["192.0.2.1"]));
    offer(&mut inventory, 1, web(&[HOST], &["192.0.2.2"]));
    speak(&mut inventory, &["web"]);
    assert_eq!(spoken(&inventory), ["web 0:1", "web 1:2"]);
    // Another one joins at one of its names, which has a service of its own from now on.
    offer(&mut inventory, 0, ingress(&[HOST], "192.0.2.9"));
    let joined = [
        "web 0:1",
        "web 1:2",
        "www.g.example.hostname 0:1",
        "www.g.example.hostname 1:2",
    ];
    assert_eq!(spoken(&inventory), joined);
    // An address that comes later is meant too.
    offer(&mut inventory, 1, web(&[HOST], &["192.0.2.2", "192.0.2.3"]));
    assert_eq!(spoken(&inventory).len(), 6);
    offer(&mut inventory, 1, web(&[HOST], &["192.0.2.2"]));
    assert_eq!(spoken(&inventory), joined);
    // One that both offer is meant: whoever stops the one stops it for both.
    offer(&mut inventory, 0, ingress(&[HOST], "192.0.2.1"));
    assert_eq!(spoken(&inventory), joined);
    let gone = object(ObjectKind::Ingress, "shop", "in");
    withdraw(&mut inventory, 0, gone);
    assert_eq!(spoken(&inventory), ["web 0:1", "web 1:2"]);
    speak(&mut inventory, &[]);
    assert_eq!(spoken(&inventory), [""; 0]);
}

#[test]
fn an_object_that_does_not_ask_everywhere_is_meant_where_it_does() {
    let mut inventory = inventory();
    offer(&mut inventory, 0, web(&[HOST], &["192.0.2.1"]));
    speak(&mut inventory, &["web"]);
    offer(&mut inventory, 1, web(&[], &["192.0.2.2"]));
    let expected = ["web 0:1", "web 1:2", "www.g.example.hostname 0:1"];
    assert_eq!(spoken(&inventory), expected);
    // Said of the same state at once, the same is meant.
    speak(&mut inventory, &[]);
    speak(&mut inventory, &["web"]);
    assert_eq!(spoken(&inventory), expected);
}

#[test]
fn a_host_is_meant_whoever_answers_it_as_long_as_it_is_the_namespaces() {
    let mut inventory = inventory();
    offer(&mut inventory, 0, web(&[HOST], &["192.0.2.1"]));
    offer(&mut inventory, 0, ingress(&[HOST], "192.0.2.9"));
    speak(&mut inventory, &["www.g.example.hostname"]);
    let host = ["www.g.example.hostname 0:1", "www.g.example.hostname 0:9"];
    assert_eq!(spoken(&inventory), host);
    withdraw(&mut inventory, 0, object(ObjectKind::Ingress, "shop", "in"));
    assert_eq!(spoken(&inventory), ["web 0:1"]);
    // The name passes to another tenant: the operator did not mean that one.
    let other = object(ObjectKind::Service, "attic", "other");
    offer(&mut inventory, 0, shard(other, &[HOST], &["192.0.2.7"]));
    assert_eq!(spoken(&inventory), ["web 0:1"]);
    offer(&mut inventory, 0, web(&[], &["192.0.2.1"]));
    assert_eq!(spoken(&inventory), [""; 0]);
    let key = ServiceKey::new("shop", "www.g.example.hostname").unwrap();
    assert_eq!(inventory.find_meant(&key), []);
}

#[test]
fn a_change_behind_the_same_endpoints_is_seen() {
    let mut inventory = inventory();
    speak(&mut inventory, &["web", "in.ingress"]);
    let other = object(ObjectKind::Service, "shop", "other");
    offer(&mut inventory, 0, shard(other, &[HOST], &["192.0.2.5"]));
    offer(&mut inventory, 0, ingress(&[HOST], "192.0.2.1"));
    let host = ["www.g.example.hostname 0:1"];
    assert_eq!(spoken(&inventory), host);
    // The Service asks for the host with the Ingress's address, and the Ingress goes: the service is as it was.
    offer(&mut inventory, 0, web(&[HOST], &["192.0.2.1"]));
    withdraw(&mut inventory, 0, object(ObjectKind::Ingress, "shop", "in"));
    assert_eq!(spoken(&inventory), ["web 0:1", host[0]]);
    offer(&mut inventory, 0, web(&[], &["192.0.2.1"]));
    offer(&mut inventory, 0, ingress(&[HOST], "192.0.2.1"));
    speak(&mut inventory, &["web"]);
    assert_eq!(spoken(&inventory), ["web 0:1"]);
}

#[test]
fn what_is_observed_is_meant_before_anybody_is_answered_with_it() {
    let mut inventory = inventory();
    inventory.apply(Change::Observed([ClusterIndex(1)].into()));
    offer(&mut inventory, 1, web(&[HOST], &["192.0.2.2"]));
    speak(&mut inventory, &["web"]);
    assert_eq!(spoken(&inventory), ["web@observed 1:2"]);
    let key = ServiceKey::new("shop", "web").unwrap();
    assert_eq!(inventory.find_meant(&key).len(), 1);
    inventory.apply(Change::Observed(BTreeSet::new()));
    assert_eq!(spoken(&inventory), ["web 1:2"]);
}
