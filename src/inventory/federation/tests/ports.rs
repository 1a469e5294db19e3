//! Names of ports in a cluster set.

use super::*;
use crate::inventory::{Extras, NameKeys, PortNames};
use crate::model::NamedPort;

/// A zone with names of both kinds, and one with those of a cluster set alone.
fn zones() -> Vec<ZoneRules> {
    let set = ZoneRules {
        apex: name("set.example"),
        forms: vec![NameForm::ClusterSet],
        ..zone(vec![grant(None, &["*.set.example"])])
    };
    let both = ZoneRules {
        forms: vec![NameForm::ServiceNamespace, NameForm::ClusterSet],
        ..zone(vec![grant(None, &["*.g.example"])])
    };
    vec![both, set]
}

fn world() -> Inventory {
    let mut inventory = with(Vec::new());
    inventory.apply(Change::Rules(Arc::new(FederationRules {
        zones: zones(),
        ..FederationRules::default()
    })));
    inventory
}

/// Reads ports such as `web _tcp 80`.
fn ports(texts: &[&str]) -> Box<[NamedPort]> {
    let read = |text: &&str| {
        let parts: Vec<&str> = text.split(' ').collect();
        NamedPort {
            name: parts[0].parse().unwrap(),
            carrier: crate::model::Carrier::from_label(parts[1].as_bytes()).unwrap(),
            number: parts[2].parse().unwrap(),
        }
    };
    texts.iter().map(read).collect()
}

/// The Service shop/web in a cluster set, with these ports.
fn exported(texts: &[&str]) -> Shard {
    Shard {
        keys: Arc::new(NameKeys {
            in_cluster_set: Some(true),
            ..NameKeys::default()
        }),
        ports: ports(texts),
        ..web(&[], &["192.0.2.1"])
    }
}

fn names_of_ports(inventory: &Inventory) -> Vec<PortNames> {
    let services = inventory.services();
    let extras = services.filter_map(|(_, service)| service.extras.as_deref());
    let mut all: Vec<PortNames> = extras.filter_map(|extras| extras.ports.clone()).collect();
    all.sort_by(|a, b| a.owners.cmp(&b.owners));
    all
}

/// Shows the ports below a name.
fn below(inventory: &Inventory, owner: &str) -> Vec<String> {
    let all = names_of_ports(inventory).into_iter();
    let all = all.filter(|names| names.are_below(name(owner).as_ref()));
    let shown =
        |port: &NamedPort| format!("{} {} {}", port.name, port.carrier.label(), port.number);
    all.flat_map(|names| names.ports.iter().map(shown).collect::<Vec<_>>())
        .collect()
}

const NAME: &str = "web.shop.svc.g.example";

#[test]
fn ports_of_all_clusters_are_below_each_name_of_a_cluster_set_and_no_other() {
    let mut inventory = world();
    offer(&mut inventory, 0, exported(&["web _tcp 80"]));
    offer(
        &mut inventory,
        1,
        exported(&["dns _udp 53", "dns _tcp 53", "web _tcp 80"]),
    );
    offer(&mut inventory, 2, exported(&[]));
    let wanted = ["dns _tcp 53", "dns _udp 53", "web _tcp 80"];
    assert_eq!(below(&inventory, NAME), wanted);
    assert_eq!(below(&inventory, "web.shop.svc.set.example"), wanted);
    assert_eq!(below(&inventory, "web.shop.g.example"), [""; 0]);
    assert_eq!(refusals(&inventory), [""; 0]);
    // Addresses are asked for as if there were none.
    let (_, service) = inventory.services().next().unwrap();
    let extras = service.extras.as_deref();
    assert!(extras.is_some_and(Extras::is_about_names));
    // They go with what has them.
    offer(&mut inventory, 1, exported(&[]));
    assert_eq!(below(&inventory, NAME), ["web _tcp 80"]);
    offer(&mut inventory, 0, exported(&[]));
    assert_eq!(names_of_ports(&inventory), []);
    let (_, service) = inventory.services().next().unwrap();
    assert_eq!(service.extras, None);
}

#[test]
fn of_two_numbers_that_of_most_counts_and_of_equally_many_that_of_the_first_cluster() {
    let mut inventory = world();
    offer(
        &mut inventory,
        1,
        exported(&["web _tcp 81", "web _udp 443"]),
    );
    offer(&mut inventory, 0, exported(&["web _tcp 80"]));
    assert_eq!(below(&inventory, NAME), ["web _tcp 80", "web _udp 443"]);
    let told = |clusters: &str| {
        format!(
            "service shop/web: spec.ports: PolicyConflict: most members say otherwise than {clusters}"
        )
    };
    assert_eq!(refusals(&inventory), [told("b")]);
    offer(&mut inventory, 2, exported(&["web _tcp 81"]));
    assert_eq!(below(&inventory, NAME), ["web _tcp 81", "web _udp 443"]);
    assert_eq!(refusals(&inventory), [told("a")]);
    // What is not served says nothing.
    let barred = Shard {
        unserved: Some("its fence was refused".into()),
        ..exported(&["web _tcp 81"])
    };
    offer(&mut inventory, 2, barred);
    assert_eq!(below(&inventory, NAME), ["web _tcp 80", "web _udp 443"]);
}

#[test]
fn a_name_has_room_for_so_many_ports_those_of_the_first_clusters() {
    let mut inventory = world();
    let many = |from: u16, count: u16| {
        let texts: Vec<String> = (from..from + count)
            .map(|at| format!("p{at:03} _tcp {at}"))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        exported(&texts)
    };
    offer(&mut inventory, 1, many(1, 40));
    offer(&mut inventory, 0, many(101, 40));
    let all = below(&inventory, NAME);
    assert_eq!(all.len(), 64);
    let of_first = all.iter().filter(|port| port.starts_with("p1"));
    assert_eq!(of_first.count(), 40);
    assert_eq!(
        refusals(&inventory),
        [
            "service shop/web: spec.ports: PolicyConflict: a name has no room for all that is said by b"
        ]
    );
    // What it knows is no more than one cluster says, and so told no more.
    offer(&mut inventory, 1, many(101, 40));
    assert_eq!(below(&inventory, NAME).len(), 40);
    assert_eq!(refusals(&inventory), [""; 0]);
}

#[test]
fn only_the_service_that_a_name_is_made_of_says_its_ports() {
    let mut inventory = world();
    // Another Service asks for the name as a host, with ports of its own.
    let other = Shard {
        object: object(ObjectKind::Service, "shop", "other"),
        hosts: [name(NAME)].into(),
        ..exported(&["odd _tcp 1"])
    };
    offer(&mut inventory, 0, other);
    assert_eq!(below(&inventory, NAME), [""; 0]);
    let own = "other.shop.svc.g.example";
    assert_eq!(below(&inventory, own), ["odd _tcp 1"]);
    offer(&mut inventory, 1, exported(&["web _tcp 80"]));
    assert_eq!(below(&inventory, NAME), ["web _tcp 80"]);
    assert_eq!(below(&inventory, own), ["odd _tcp 1"]);
}

#[test]
fn clusters_that_are_observed_answer_no_port() {
    let mut inventory = world();
    inventory.apply(Change::Observed([ClusterIndex(0)].into()));
    offer(&mut inventory, 0, exported(&["web _tcp 80"]));
    assert_eq!(names_of_ports(&inventory), []);
    offer(&mut inventory, 1, exported(&["dns _udp 53"]));
    assert_eq!(below(&inventory, NAME), ["dns _udp 53"]);
}
