//! Names of endpoints.

use super::*;
use crate::inventory::{Extras, HostNames, HostsOf};
use crate::model::HeadlessEndpoint;
use crate::snapshot::AtHost;
use crate::zone::NameForms;
use crate::zone::testing::zone_making;

/// A service at two names, the first of them in a cluster set, with endpoints `label address` by cluster.
fn headless(clusters: &[(u16, &str, &[&str])]) -> Service {
    let names = ["web.shop.svc.z", "web.shop.z"];
    let of_cluster = |(index, label, texts): &(u16, &str, &[&str])| HostsOf {
        cluster: ClusterIndex(*index),
        label: label.parse().ok(),
        endpoints: texts
            .iter()
            .map(|text| {
                let (label, address) = text.split_once(' ').unwrap();
                HeadlessEndpoint {
                    label: label.parse().unwrap(),
                    address: address.parse().unwrap(),
                    ports: Arc::default(),
                }
            })
            .collect(),
    };
    let hosts = HostNames {
        owners: [name(names[0])].into(),
        clusters: clusters.iter().map(of_cluster).collect(),
    };
    Service {
        extras: Some(Arc::new(Extras {
            hosts: Some(hosts),
            ..Extras::default()
        })),
        ..plain("web", &names)
    }
}

/// Asks the snapshot: cluster and addresses, `-` where names lie below, "" where nothing is.
fn standing(world: &World, text: &str) -> String {
    let wanted = name(text);
    let zone = world.zones.find(wanted.as_ref());
    match zone.and_then(|zone| world.snapshot.at_host(zone, wanted.as_ref())) {
        None => String::new(),
        Some(AtHost::Between) => "-".to_owned(),
        Some(AtHost::Endpoints {
            service,
            is_cname,
            cluster,
            endpoints,
        }) => {
            assert_eq!(world.inventory.service(service).unwrap().key.name(), "web");
            assert!(!is_cname);
            let addresses = endpoints.iter().map(|one| one.address.to_string());
            format!("{cluster} {}", addresses.collect::<Vec<_>>().join(" "))
        }
    }
}

fn forms(cluster_set: bool) -> NameForms {
    NameForms {
        cluster_set,
        ..NameForms::default()
    }
}

const CLUSTERS: &[(u16, &str, &[&str])] = &[
    (
        0,
        "c0",
        &["web-0 10.0.0.1", "web-0 2001:db8::1", "web-1 10.0.0.2"],
    ),
    (1, "c1", &["web-0 10.1.0.1"]),
    (2, "c2", &[]),
    (3, "c.3", &["web-0 10.3.0.1"]),
];

#[test]
fn names_of_endpoints_are_those_below_their_cluster_and_owner_and_no_others() {
    let mut world = World::new(vec![zone_making("z", forms(true)), zone("deep.z", "")]);
    world.apply(Change::Replace(vec![headless(CLUSTERS)]));
    assert_eq!(world.publish(), Vec::<String>::new());
    let held = world.snapshot.names().len();
    for (text, wanted) in [
        ("web-0.c0.web.shop.svc.z", "0 10.0.0.1 2001:db8::1"),
        ("web-1.c0.web.shop.svc.z", "0 10.0.0.2"),
        ("web-0.c1.web.shop.svc.z", "1 10.1.0.1"),
        ("c0.web.shop.svc.z", "-"),
        ("c1.web.shop.svc.z", "-"),
        // No endpoint, no such cluster, and one whose name is no label.
        ("c2.web.shop.svc.z", ""),
        ("web-0.c2.web.shop.svc.z", ""),
        ("c.3.web.shop.svc.z", ""),
        ("web-0.c.3.web.shop.svc.z", ""),
        ("c9.web.shop.svc.z", ""),
        ("web-1.c1.web.shop.svc.z", ""),
        ("web.c0.web.shop.svc.z", ""),
        ("x.web-0.c0.web.shop.svc.z", ""),
        ("web-0.web.shop.svc.z", ""),
        ("web-0.c0.web.shop.z", ""),
        ("c0.web.shop.z", ""),
        ("web-0.c0.new.shop.svc.z", ""),
        ("web-0.c0.web.shop.svc.deep.z", ""),
        ("web.shop.svc.z", ""),
        ("z", ""),
    ] {
        assert_eq!(standing(&world, text), wanted, "{text}");
    }
    // They come and go with what is said, and are no names of the table.
    world.apply(Change::Upsert(headless(&CLUSTERS[1..])));
    world.publish();
    assert_eq!(standing(&world, "c0.web.shop.svc.z"), "");
    assert_eq!(standing(&world, "web-0.c1.web.shop.svc.z"), "1 10.1.0.1");
    assert_eq!(world.snapshot.names().len(), held);
}

#[test]
fn a_target_that_is_the_name_of_an_endpoint_is_not_followed() {
    let mut world = World::new(vec![zone_making("z", forms(true))]);
    world.apply(Change::Replace(vec![headless(CLUSTERS)]));
    world.publish();
    for (text, wanted) in [
        (
            "web-0.c0.web.shop.svc.z",
            Some("web-0.c0.web.shop.svc.z is the name of an endpoint, which comes and goes"),
        ),
        ("web-9.c0.web.shop.svc.z", None),
        ("c0.web.shop.svc.z", None),
        ("web.shop.svc.z", None),
    ] {
        let inside = world.snapshot.follow(&name(text)).unwrap();
        assert_eq!(inside.fault.as_deref(), wanted, "{text}");
    }
}

#[test]
fn a_zone_that_is_of_no_cluster_set_has_none() {
    let mut world = World::new(vec![zone_making("z", forms(false))]);
    world.apply(Change::Replace(vec![headless(CLUSTERS)]));
    world.publish();
    assert_eq!(standing(&world, "web-0.c0.web.shop.svc.z"), "");
}

#[test]
fn what_a_query_reads_of_a_headless_service_stands_beside_its_name() {
    let mut world = World::new(vec![zone_making("z", forms(true))]);
    world.apply(Change::Replace(vec![headless(CLUSTERS)]));
    world.publish();
    let names = world.snapshot.names();
    let wanted = name("web.shop.svc.z");
    let hash = names.hash(wanted.as_ref());
    let candidate = names.candidate(hash, wanted.as_wire().len());
    let (_, steered) = names.confirm(hash, candidate, wanted.as_ref()).unwrap();
    assert!(steered.is_some());
}
