//! Federated services: grants, owners, joins and keys.

mod claims;
mod endpoints;
mod hosts;
mod made;
mod observed;
mod ports;
mod random;
mod spoken;
mod unanswered;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use super::*;
use crate::inventory::{Change, Dirty, Inventory};
use crate::model::{
    Check, Cluster, Condition, FallbackSpec, FenceRule, MonitorSpec, PolicySpec, Steer, Weight,
};

fn name(text: &str) -> LowerName {
    text.parse().unwrap()
}

fn cluster(index: u16, id: &str) -> (ClusterIndex, Arc<Cluster>) {
    let cluster = Cluster::named(id.parse().unwrap());
    (ClusterIndex(index), Arc::new(cluster))
}

fn object(kind: ObjectKind, namespace: &str, name: &str) -> ObjectRef {
    ObjectRef::new(kind, namespace, name)
}

fn shard(object: ObjectRef, hosts: &[&str], addresses: &[&str]) -> Shard {
    Shard {
        hosts: hosts.iter().map(|host| name(host)).collect(),
        addresses: addresses.iter().map(|one| one.parse().unwrap()).collect(),
        ..Shard::blank(object)
    }
}

fn web(hosts: &[&str], addresses: &[&str]) -> Shard {
    shard(object(ObjectKind::Service, "shop", "web"), hosts, addresses)
}

fn zone(grants: Vec<Grant>) -> ZoneRules {
    ZoneRules {
        apex: name("g.example"),
        forms: vec![NameForm::ServiceNamespace],
        federation: None,
        grants,
        private: PrivateAddresses::Clients,
        ttl: Ttl::new(30).unwrap(),
    }
}

fn grant(namespaces: Option<&[&str]>, hostnames: &[&str]) -> Grant {
    Grant {
        clusters: None,
        namespaces: namespaces.map(|all| all.iter().map(|one| (*one).into()).collect()),
        hostnames: hostnames.iter().map(|one| name(one)).collect(),
    }
}

fn rules(grants: Vec<Grant>) -> Arc<FederationRules> {
    Arc::new(FederationRules {
        zones: vec![zone(grants)],
        ..FederationRules::default()
    })
}

/// Three clusters, `a` to `c`, and everything granted to everyone.
fn inventory() -> Inventory {
    with(vec![grant(None, &["*.g.example"])])
}

fn with(grants: Vec<Grant>) -> Inventory {
    let mut inventory = Inventory::default();
    let clusters = [(0, "a"), (1, "b"), (2, "c")].map(|(index, id)| cluster(index, id));
    inventory.apply(Change::Clusters(clusters.into()));
    inventory.apply(Change::Rules(rules(grants)));
    inventory
}

fn offer(inventory: &mut Inventory, cluster: u16, shard: Shard) -> Dirty {
    let change = ShardChange::Upsert(Box::new(shard));
    inventory.apply(Change::of_cluster(ClusterIndex(cluster), vec![change]))
}

fn withdraw(inventory: &mut Inventory, cluster: u16, object: ObjectRef) -> Dirty {
    let change = ShardChange::Remove(object);
    inventory.apply(Change::of_cluster(ClusterIndex(cluster), vec![change]))
}

/// What is answered: for each name its service, and the addresses by cluster. The configuration goes before Kubernetes.
type Answers = BTreeMap<String, (String, BTreeSet<(u16, IpAddr)>)>;

fn answers(inventory: &Inventory) -> Answers {
    let mut all = Answers::new();
    let mut configured = BTreeSet::new();
    let mut services: Vec<_> = inventory.services().collect();
    services.sort_by_key(|(_, service)| service.origin);
    for (_, service) in services {
        let mut addresses = BTreeSet::new();
        for pool in service.pools.iter() {
            for endpoint in pool.v4().chain(pool.v6()) {
                addresses.insert((endpoint.cluster.0, endpoint.address));
            }
        }
        for name in service.names.iter() {
            if service.origin == Origin::Configuration {
                configured.insert(name.to_string());
            } else if configured.contains(&name.to_string()) {
                continue;
            }
            let entry = (service.key.to_string(), addresses.clone());
            assert!(all.insert(name.to_string(), entry).is_none(), "{name}");
        }
    }
    all
}

fn at(inventory: &Inventory, name: &str) -> Option<(String, Vec<String>)> {
    let answers = answers(inventory);
    let (key, addresses) = answers.get(name)?;
    let shown = |(cluster, address): &(u16, IpAddr)| format!("{cluster} {address}");
    Some((key.clone(), addresses.iter().map(shown).collect()))
}

fn refusals(inventory: &Inventory) -> Vec<String> {
    let refusals = inventory.federation().refusals();
    refusals.map(|refusal| refusal.to_string()).collect()
}

fn found(key: &str, addresses: &[&str]) -> Option<(String, Vec<String>)> {
    let addresses = addresses.iter().map(|one| (*one).to_owned());
    Some((key.to_owned(), addresses.collect()))
}

#[test]
fn a_service_of_many_clusters_is_one() {
    let mut inventory = inventory();
    offer(&mut inventory, 0, web(&["www.g.example"], &["192.0.2.1"]));
    offer(
        &mut inventory,
        1,
        web(&["www.g.example"], &["192.0.2.2", "2001:db8::2"]),
    );
    let both = found("shop/web", &["0 192.0.2.1", "1 192.0.2.2", "1 2001:db8::2"]);
    assert_eq!(at(&inventory, "www.g.example"), both);
    assert_eq!(at(&inventory, "web.shop.g.example"), both);
    assert_eq!(inventory.services().count(), 1);
    withdraw(
        &mut inventory,
        0,
        object(ObjectKind::Service, "shop", "web"),
    );
    let rest = found("shop/web", &["1 192.0.2.2", "1 2001:db8::2"]);
    assert_eq!(at(&inventory, "www.g.example"), rest);
    inventory.apply(Change::of_cluster(
        ClusterIndex(1),
        vec![ShardChange::Clear],
    ));
    assert!(answers(&inventory).is_empty());
    assert_eq!(inventory.federation().owners(), []);
}

#[test]
fn a_host_is_answered_where_the_cluster_itself_asks_for_it() {
    let mut inventory = inventory();
    offer(&mut inventory, 0, web(&["www.g.example"], &["192.0.2.1"]));
    let more = web(
        &["www.g.example", "new.g.example", "*.x.g.example"],
        &["192.0.2.2"],
    );
    offer(&mut inventory, 1, more.clone());
    let both = ["0 192.0.2.1", "1 192.0.2.2"];
    assert_eq!(at(&inventory, "www.g.example"), found("shop/web", &both));
    assert_eq!(
        at(&inventory, "new.g.example"),
        found("shop/new.g.example.hostname", &["1 192.0.2.2"])
    );
    assert_eq!(
        at(&inventory, "*.x.g.example"),
        found("shop/x.g.example.wildcard", &["1 192.0.2.2"])
    );
    // The other cluster follows: one service again.
    offer(
        &mut inventory,
        0,
        Shard {
            addresses: ["192.0.2.1".parse().unwrap()].into(),
            ..more
        },
    );
    assert_eq!(at(&inventory, "new.g.example"), found("shop/web", &both));
    assert_eq!(inventory.services().count(), 1);
}

#[test]
fn all_objects_of_the_namespace_that_ask_for_a_host_join() {
    let mut inventory = inventory();
    let ingress = object(ObjectKind::Ingress, "shop", "front");
    let route = object(ObjectKind::HttpRoute, "shop", "front");
    offer(
        &mut inventory,
        0,
        shard(
            ingress.clone(),
            &["a.g.example", "b.g.example"],
            &["192.0.2.1"],
        ),
    );
    offer(
        &mut inventory,
        0,
        shard(route, &["b.g.example"], &["192.0.2.9"]),
    );
    assert_eq!(
        at(&inventory, "a.g.example"),
        found("shop/front.ingress", &["0 192.0.2.1"])
    );
    assert_eq!(
        at(&inventory, "b.g.example"),
        found("shop/b.g.example.hostname", &["0 192.0.2.1", "0 192.0.2.9"])
    );
    // The migration is over.
    let dirty = withdraw(&mut inventory, 0, ingress);
    assert_eq!(
        at(&inventory, "b.g.example"),
        found("shop/front.httproute", &["0 192.0.2.9"])
    );
    assert_eq!(at(&inventory, "a.g.example"), None);
    assert!(dirty.refusals);
}

#[test]
fn a_namespace_has_only_what_it_was_granted() {
    let mut inventory = with(Vec::new());
    let hosts = [
        "x.shop.g.example",
        "shop.g.example",
        "x.other.g.example",
        "www.h.example",
    ];
    offer(&mut inventory, 0, web(&hosts, &["192.0.2.1"]));
    let names: Vec<String> = answers(&inventory).into_keys().collect();
    assert_eq!(names, ["web.shop.g.example", "x.shop.g.example"]);
    assert_eq!(
        refusals(&inventory),
        [
            "Service shop/web in a: shop.g.example: without `grants` a namespace has the names below {namespace}.<zone> alone",
            "Service shop/web in a: x.other.g.example: without `grants` a namespace has the names below {namespace}.<zone> alone",
            "Service shop/web in a: www.h.example: it lies outside our zones",
        ]
    );
    let of_a = Grant {
        clusters: Some(["a".parse().unwrap()].into()),
        ..grant(Some(&["shop"]), &["www.g.example", "*.x.g.example"])
    };
    inventory.apply(Change::Rules(rules(vec![of_a])));
    let hosts = [
        "www.g.example",
        "a.b.x.g.example",
        "*.x.g.example",
        "x.g.example",
    ];
    for cluster in [0, 1] {
        offer(&mut inventory, cluster, web(&hosts, &["192.0.2.1"]));
    }
    let answers = answers(&inventory);
    let names: Vec<&String> = answers.keys().collect();
    assert_eq!(names, ["*.x.g.example", "a.b.x.g.example", "www.g.example"]);
    let clusters = answers
        .values()
        .flat_map(|(_, all)| all)
        .map(|(cluster, _)| *cluster);
    assert!(clusters.clone().all(|cluster| cluster == 0));
}

#[test]
fn whoever_had_a_name_keeps_it() {
    let mut inventory = inventory();
    let other = |host: &[&str]| {
        shard(
            object(ObjectKind::Ingress, "attic", "x"),
            host,
            &["192.0.2.66"],
        )
    };
    offer(&mut inventory, 1, web(&["www.g.example"], &["192.0.2.1"]));
    offer(&mut inventory, 0, other(&["www.g.example"]));
    let owners = found("shop/web", &["1 192.0.2.1"]);
    assert_eq!(at(&inventory, "www.g.example"), owners);
    assert_eq!(
        refusals(&inventory),
        ["Ingress attic/x in a: www.g.example: HostnameConflict: namespace shop has this name"]
    );
    // After a restart the other one comes first: who had it is known.
    let owners = inventory.federation().owners();
    let mut again = self::inventory();
    again.apply(Change::Owners(owners.clone()));
    offer(&mut again, 0, other(&["www.g.example"]));
    assert_eq!(at(&again, "www.g.example").unwrap().0, "attic/x.ingress");
    offer(&mut again, 1, web(&["www.g.example"], &["192.0.2.1"]));
    assert_eq!(at(&again, "www.g.example").unwrap().0, "shop/web");
    let mut again = self::inventory();
    again.apply(Change::Owners(owners));
    let both = vec![
        ShardChange::Upsert(Box::new(other(&["www.g.example"]))),
        ShardChange::Upsert(Box::new(web(&["www.g.example"], &["192.0.2.1"]))),
    ];
    again.apply(Change::of_cluster(ClusterIndex(1), both.clone()));
    assert_eq!(at(&again, "www.g.example").unwrap().0, "shop/web");
    // Whoever does not claim it again has lost it.
    let mut lost = self::inventory();
    lost.apply(Change::Owners(again.federation().owners()));
    offer(&mut lost, 0, other(&["www.g.example"]));
    lost.apply(Change::Owners(Vec::new()));
    offer(&mut lost, 1, web(&["www.g.example"], &["192.0.2.1"]));
    assert_eq!(at(&lost, "www.g.example").unwrap().0, "attic/x.ingress");
    // Nobody had it: the first by the alphabet, whatever came first.
    let mut fresh = self::inventory();
    fresh.apply(Change::of_cluster(
        ClusterIndex(1),
        both.into_iter().rev().collect(),
    ));
    assert_eq!(at(&fresh, "www.g.example").unwrap().0, "attic/x.ingress");
    // It goes away: the other one takes over.
    withdraw(
        &mut inventory,
        1,
        object(ObjectKind::Service, "shop", "web"),
    );
    assert_eq!(
        at(&inventory, "www.g.example"),
        found("attic/x.ingress", &["0 192.0.2.66"])
    );
}

#[test]
fn nobody_hides_the_wildcard_of_another() {
    let mut inventory = inventory();
    offer(
        &mut inventory,
        0,
        web(&["early.x.g.example"], &["192.0.2.1"]),
    );
    let wild = object(ObjectKind::Ingress, "wild", "w");
    offer(
        &mut inventory,
        0,
        shard(wild.clone(), &["*.x.g.example"], &["192.0.2.2"]),
    );
    let late = [
        "early.x.g.example",
        "late.x.g.example",
        "a.b.x.g.example",
        "*.c.x.g.example",
        "y.g.example",
    ];
    offer(&mut inventory, 0, web(&late, &["192.0.2.1"]));
    let own = ["mine.x.g.example"];
    offer(
        &mut inventory,
        0,
        shard(
            object(ObjectKind::Ingress, "wild", "o"),
            &own,
            &["192.0.2.3"],
        ),
    );
    let names: Vec<String> = answers(&inventory).into_keys().collect();
    let before = [
        "*.x.g.example",
        "early.x.g.example",
        "mine.x.g.example",
        "web.shop.g.example",
        "y.g.example",
    ];
    assert_eq!(names, before);
    let hidden = refusals(&inventory);
    assert_eq!(hidden.len(), 3, "{hidden:?}");
    assert!(
        hidden
            .iter()
            .all(|text| text.contains("it would hide *.x.g.example, which namespace wild has"))
    );
    withdraw(&mut inventory, 0, wild);
    let names: Vec<String> = answers(&inventory).into_keys().collect();
    assert_eq!(names.len(), 7, "{names:?}");
    assert!(refusals(&inventory).is_empty());
}

#[test]
fn a_wildcard_that_passes_to_another_no_longer_hides_his_own_names() {
    let mut inventory = inventory();
    let service = |namespace| object(ObjectKind::Service, namespace, "x");
    for namespace in ["one", "two"] {
        let shard = shard(service(namespace), &["*.g.example"], &["192.0.2.1"]);
        offer(&mut inventory, 0, shard);
    }
    assert_eq!(at(&inventory, "x.two.g.example"), None);
    withdraw(&mut inventory, 0, service("one"));
    assert_eq!(
        at(&inventory, "x.two.g.example"),
        found("two/x", &["0 192.0.2.1"])
    );
}

#[test]
fn keys_of_a_name_are_by_the_word_of_most() {
    let mut inventory = inventory();
    let says = |cluster: u16, keys: NameKeys| Shard {
        keys: Arc::new(keys),
        ..web(&["www.g.example"], &[&format!("192.0.2.{cluster}")])
    };
    let fence = |clusters: &str| {
        vec![FenceRule {
            clients: vec!["*".parse().unwrap()],
            clusters: vec![clusters.parse().unwrap()],
        }]
    };
    let keys = |ttl, steer, of: &str| NameKeys {
        ttl: Ttl::new(ttl),
        steer,
        fence: Some(fence(of)),
        ..NameKeys::default()
    };
    offer(
        &mut inventory,
        0,
        says(0, keys(60, Some(Steer::Weighted), "a")),
    );
    offer(&mut inventory, 1, says(1, keys(10, Some(Steer::All), "b")));
    offer(&mut inventory, 2, says(2, keys(10, None, "b")));
    let (_, service) = inventory.services().next().unwrap();
    assert_eq!(service.ttl, Ttl::new(10));
    // One each: the first cluster by name.
    assert_eq!(service.policy.steer, Steer::Weighted);
    assert_eq!(service.policy.fences, [fence("a"), fence("b")]);
    assert_eq!(
        refusals(&inventory),
        [
            "service shop/web: steer: PolicyConflict: most members say otherwise than b",
            "service shop/web: ttl: PolicyConflict: most members say otherwise than a",
        ]
    );
}

#[test]
fn a_cluster_has_one_vote_whatever_it_has_of_objects() {
    let mut inventory = inventory();
    let says = |cluster: u16, at: usize, ttl| Shard {
        keys: Arc::new(NameKeys {
            ttl: Ttl::new(ttl),
            ..NameKeys::default()
        }),
        ..shard(
            object(ObjectKind::Ingress, "shop", &format!("i{at}")),
            &["www.g.example"],
            &[&format!("192.0.2.{cluster}")],
        )
    };
    for at in 0..9 {
        offer(&mut inventory, 0, says(0, at, 86_400));
    }
    offer(&mut inventory, 1, says(1, 0, 10));
    offer(&mut inventory, 2, says(2, 0, 10));
    let (_, service) = inventory.services().next().unwrap();
    assert_eq!(service.ttl, Ttl::new(10));
    assert_eq!(
        refusals(&inventory),
        [
            "service shop/www.g.example.hostname: ttl: PolicyConflict: most members say otherwise than a"
        ]
    );
}

#[test]
fn what_goes_round_a_fence_is_the_operators_word() {
    let address = |text: &str| Some(FallbackSpec::Addresses(vec![text.parse().unwrap()]));
    let says = |text| Shard {
        keys: Arc::new(NameKeys {
            fallback: address(text),
            fence_answer: address(text),
            ..NameKeys::default()
        }),
        ..web(&[], &["192.0.2.1"])
    };
    let policy = |inventory: &Inventory| {
        let (_, service) = inventory.services().next().unwrap();
        let policy = &service.policy;
        (policy.fallback.clone(), policy.fence_answer.clone())
    };
    let mut inventory = inventory();
    offer(&mut inventory, 0, says("203.0.113.1"));
    let said = (address("203.0.113.1"), address("203.0.113.1"));
    assert_eq!(policy(&inventory), said);
    assert!(refusals(&inventory).is_empty());
    offer(&mut inventory, 0, says("10.0.0.1"));
    assert_eq!(policy(&inventory), (None, None));
    assert_eq!(
        refusals(&inventory),
        [
            "service shop/web: fence-answer: PolicyConflict: the zone answers no private address, which is said by a",
            "service shop/web: fallback: PolicyConflict: the zone answers no private address, which is said by a",
        ]
    );
    let fenced = FederationRules {
        base: Arc::new(PolicySpec {
            fences: vec![vec![FenceRule {
                clients: vec!["*".parse().unwrap()],
                clusters: vec!["*".parse().unwrap()],
            }]],
            fallback: address("198.51.100.1"),
            ..PolicySpec::default()
        }),
        zones: vec![zone(vec![grant(None, &["*.g.example"])])],
        ..FederationRules::default()
    };
    inventory.apply(Change::Rules(Arc::new(fenced)));
    offer(&mut inventory, 0, says("203.0.113.1"));
    assert_eq!(policy(&inventory), (address("198.51.100.1"), None));
    assert_eq!(
        refusals(&inventory),
        [
            "service shop/web: fence-answer: PolicyConflict: under the operator's fence this is not said by a",
            "service shop/web: fallback: PolicyConflict: under the operator's fence this is not said by a",
        ]
    );
}

#[test]
fn a_wildcard_reaches_into_no_other_zone() {
    let mut inventory = inventory();
    let child = ZoneRules {
        apex: name("child.g.example"),
        ..zone(Vec::new())
    };
    let zones = vec![zone(vec![grant(None, &["*.g.example"])]), child];
    inventory.apply(Change::Rules(Arc::new(FederationRules {
        zones,
        ..FederationRules::default()
    })));
    let wild = object(ObjectKind::Ingress, "wild", "w");
    offer(
        &mut inventory,
        0,
        shard(wild, &["*.g.example"], &["192.0.2.2"]),
    );
    offer(&mut inventory, 0, web(&[], &["192.0.2.1"]));
    let names: Vec<String> = answers(&inventory).into_keys().collect();
    assert_eq!(names, ["*.g.example", "web.shop.child.g.example"]);
}

#[test]
fn nested_wildcards_are_settled_from_above_in_any_order() {
    let mut inventory = inventory();
    let one = |last, hosts: &[&str]| {
        let name = format!("o{last}");
        let object = object(ObjectKind::Ingress, "one", &name);
        ShardChange::Upsert(Box::new(shard(
            object,
            hosts,
            &[&format!("192.0.2.{last}")],
        )))
    };
    let two = object(ObjectKind::Ingress, "two", "t");
    let two = ShardChange::Upsert(Box::new(shard(two, &["*.q.g.example"], &["192.0.2.9"])));
    let steps = [one(1, &["*.g.example"]), two, one(3, &["*.a.q.g.example"])];
    for step in steps.clone() {
        inventory.apply(Change::of_cluster(ClusterIndex(0), vec![step]));
    }
    let mut again = self::inventory();
    again.apply(Change::Owners(inventory.federation().owners()));
    again.apply(Change::of_cluster(ClusterIndex(0), steps.into()));
    assert_eq!(answers(&again), answers(&inventory));
    let names: Vec<String> = answers(&again).into_keys().collect();
    assert_eq!(names, ["*.a.q.g.example", "*.g.example"]);
    assert_eq!(refusals(&again), refusals(&inventory));
}
