//! Names of endpoints in a cluster set.

use super::*;
use crate::inventory::{Extras, HostNames, NameKeys};
use crate::model::HeadlessEndpoint;

/// A zone of a cluster set that answers private addresses, and one that has other names too.
fn world() -> Inventory {
    let mut inventory = with(Vec::new());
    let set = ZoneRules {
        apex: name("set.example"),
        forms: vec![NameForm::ClusterSet],
        private: PrivateAddresses::All,
        ..zone(vec![grant(None, &["*.set.example"])])
    };
    let other = ZoneRules {
        private: PrivateAddresses::All,
        ..zone(vec![grant(None, &["*.g.example"])])
    };
    inventory.apply(Change::Rules(Arc::new(FederationRules {
        zones: vec![other, set],
        ..FederationRules::default()
    })));
    inventory
}

/// The headless Service shop/web with endpoints written `label address`.
fn headless(texts: &[&str]) -> Shard {
    let read = |text: &&str| {
        let (label, address) = text.split_once(' ').unwrap();
        HeadlessEndpoint {
            label: label.parse().unwrap(),
            address: address.parse().unwrap(),
            ports: Arc::default(),
        }
    };
    let endpoints: Vec<HeadlessEndpoint> = texts.iter().map(read).collect();
    Shard {
        addresses: endpoints.iter().map(|one| one.address).collect(),
        headless: Some(endpoints.into()),
        keys: Arc::new(NameKeys {
            in_cluster_set: Some(true),
            steer: Some(Steer::All),
            ..NameKeys::default()
        }),
        ..web(&[], &[])
    }
}

fn hosts(inventory: &Inventory) -> Option<HostNames> {
    let services = inventory.services();
    let mut extras = services.filter_map(|(_, service)| service.extras.as_deref());
    extras.find_map(|extras| extras.hosts.clone())
}

/// Shows the endpoints that have names as `label.cluster address`.
fn shown(inventory: &Inventory) -> Vec<String> {
    let hosts = hosts(inventory);
    let clusters = hosts.iter().flat_map(|hosts| &hosts.clusters);
    let of_cluster = clusters.flat_map(|of| {
        let label = of.label.as_ref().map_or("?", |label| label.as_str());
        let all = of.endpoints.iter();
        all.map(move |one| format!("{}.{label} {}", one.label, one.address))
    });
    of_cluster.collect()
}

const NAME: &str = "web.shop.svc.set.example";

#[test]
fn endpoints_of_all_clusters_have_names_below_those_of_cluster_sets_and_are_its_addresses() {
    let mut inventory = world();
    offer(
        &mut inventory,
        1,
        headless(&["web-0 10.1.0.1", "web-1 10.1.0.2"]),
    );
    offer(&mut inventory, 0, headless(&["web-0 10.2.0.1"]));
    offer(&mut inventory, 2, headless(&[]));
    assert_eq!(
        shown(&inventory),
        ["web-0.a 10.2.0.1", "web-0.b 10.1.0.1", "web-1.b 10.1.0.2"]
    );
    let owners = hosts(&inventory).unwrap().owners;
    assert_eq!(*owners, [name(NAME)]);
    let (service, addresses) = &answers(&inventory)[NAME];
    assert_eq!((&**service, addresses.len()), ("shop/web", 3));
    // Questions for addresses have nothing to read of it.
    let (_, service) = inventory.services().next().unwrap();
    assert_eq!(service.policy.steer, Steer::All);
    assert!(
        service
            .extras
            .as_deref()
            .is_some_and(Extras::is_about_names)
    );
    // The name stays when the last endpoint goes, and the endpoints go with what has them.
    offer(&mut inventory, 1, headless(&[]));
    withdraw(
        &mut inventory,
        0,
        object(ObjectKind::Service, "shop", "web"),
    );
    assert_eq!(shown(&inventory), [""; 0]);
    assert!(answers(&inventory)[NAME].1.is_empty());
    offer(&mut inventory, 1, web(&[NAME], &["192.0.2.1"]));
    offer(&mut inventory, 2, web(&[NAME], &["192.0.2.2"]));
    assert_eq!(hosts(&inventory), None);
}

#[test]
fn endpoints_are_found_by_label_and_cluster() {
    let mut inventory = world();
    offer(
        &mut inventory,
        0,
        headless(&["a 10.0.0.1", "b 10.0.0.2", "b 10.0.0.3", "c 10.0.0.4"]),
    );
    offer(&mut inventory, 1, headless(&[]));
    let hosts = hosts(&inventory).unwrap();
    for (label, wanted) in [("a", 1), ("b", 2), ("c", 1), ("d", 0), ("", 0), ("B", 0)] {
        let of = hosts.find(b"a").unwrap();
        assert_eq!(of.labeled(label.as_bytes()).len(), wanted, "{label}");
    }
    // A cluster without endpoints has no name there.
    assert!(hosts.find(b"b").is_none() && hosts.of(ClusterIndex(1)).is_some());
    assert!(hosts.find(b"x").is_none() && hosts.of(ClusterIndex(2)).is_none());
}

#[test]
fn a_cluster_whose_name_is_no_label_has_no_names_for_its_endpoints() {
    let mut inventory = world();
    inventory.apply(Change::Clusters(vec![cluster(0, "a.b")]));
    offer(&mut inventory, 0, headless(&["web-0 10.1.0.1"]));
    assert_eq!(shown(&inventory), ["web-0.? 10.1.0.1"]);
    assert!(hosts(&inventory).unwrap().find(b"a.b").is_none());
    assert_eq!(answers(&inventory)[NAME].1.len(), 1);
}

#[test]
fn who_is_not_served_or_only_observed_has_no_names_for_its_endpoints() {
    let mut inventory = world();
    let barred = Shard {
        unserved: Some("its fence was refused".into()),
        ..headless(&["web-0 10.1.0.1"])
    };
    offer(&mut inventory, 0, barred);
    assert_eq!(hosts(&inventory), None);
    inventory.apply(Change::Observed([ClusterIndex(1)].into()));
    offer(&mut inventory, 1, headless(&["web-0 10.1.0.2"]));
    assert_eq!(hosts(&inventory), None);
}

#[test]
fn only_the_service_that_a_name_is_made_of_says_its_endpoints() {
    let mut inventory = world();
    let other = Shard {
        object: object(ObjectKind::Service, "shop", "other"),
        hosts: [name(NAME)].into(),
        ..headless(&["other-0 10.1.0.9"])
    };
    offer(&mut inventory, 0, other);
    let hosts = hosts(&inventory).unwrap();
    assert_eq!(*hosts.owners, [name("other.shop.svc.set.example")]);
}
