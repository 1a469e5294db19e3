//! Endpoints: readiness, checks, private addresses, targets, and what comes and goes.

use super::*;

fn monitor(port: u16) -> Arc<MonitorSpec> {
    Arc::new(MonitorSpec::new(
        Check::connect(port),
        crate::model::Origin::Tenant,
    ))
}

/// The endpoints of the only service: address, monitored port, condition, entry.
fn endpoints(inventory: &Inventory) -> Vec<(String, Option<u16>, Condition, u32)> {
    let (_, service) = inventory.services().next().unwrap();
    let all = service.pools.iter().flat_map(|pool| pool.v4());
    all.map(|endpoint| {
        let (_, _, monitor) = inventory.endpoint(endpoint.state).unwrap();
        let port = monitor.map(|monitor| monitor.check.port());
        let condition = inventory.endpoint_condition(endpoint.state);
        (
            endpoint.address.to_string(),
            port,
            condition,
            endpoint.state.0,
        )
    })
    .collect()
}

#[test]
fn readiness_and_checks_are_each_shards_own() {
    let mut inventory = inventory();
    let one = |cluster: u16, port| Shard {
        monitor: Some(monitor(port)),
        ..web(&["www.g.example"], &[&format!("192.0.2.{cluster}")])
    };
    for (cluster, port) in [(0, 80), (1, 80), (2, 443)] {
        offer(&mut inventory, cluster, one(cluster, port));
    }
    let well = Condition::default();
    let before = endpoints(&inventory);
    let shown =
        |all: &[(String, Option<u16>, Condition, u32)]| -> Vec<(String, Option<u16>, Condition)> {
            all.iter().map(|(a, b, c, _)| (a.clone(), *b, *c)).collect()
        };
    let expected = |second: Condition| {
        [
            ("192.0.2.0".to_owned(), Some(80), well),
            ("192.0.2.1".to_owned(), Some(80), second),
            ("192.0.2.2".to_owned(), Some(443), well),
        ]
    };
    assert_eq!(shown(&before), expected(well));
    let unready = Condition {
        is_unready: true,
        ..well
    };
    let dirty = offer(
        &mut inventory,
        1,
        Shard {
            readiness: Readiness::NotReady("nothing is ready".into()),
            ..one(1, 80)
        },
    );
    let after = endpoints(&inventory);
    assert_eq!(shown(&after), expected(unready));
    // What was known of the old entry holds for the new one; the target is the same.
    assert_eq!(
        dirty
            .moved
            .iter()
            .map(|(a, b)| (a.0, b.0))
            .collect::<Vec<_>>(),
        [(before[1].3, after[1].3)]
    );
    assert_eq!(
        dirty
            .conditioned
            .iter()
            .map(|index| index.0)
            .collect::<Vec<_>>(),
        [after[1].3]
    );
    assert_eq!(
        dirty
            .unwatch
            .iter()
            .map(|index| index.0)
            .collect::<Vec<_>>(),
        [before[1].3]
    );
    inventory.settle();
    let drained = Condition {
        is_withdrawn: true,
        ..well
    };
    offer(
        &mut inventory,
        1,
        Shard {
            is_drained: true,
            ..one(1, 80)
        },
    );
    assert_eq!(shown(&endpoints(&inventory)), expected(drained));
    offer(&mut inventory, 1, one(1, 80));
    assert_eq!(shown(&endpoints(&inventory)), expected(well));
}

#[test]
fn private_addresses_and_targets() {
    let mut inventory = inventory();
    let clients = Shard {
        clients: ["10.0.0.0/8".parse().unwrap()].into(),
        ..web(&[], &["10.1.1.1"])
    };
    offer(
        &mut inventory,
        0,
        web(&[], &["10.0.0.1", "100.64.0.1", "fd00::1", "192.0.2.1"]),
    );
    offer(&mut inventory, 1, clients);
    let target = Shard {
        targets: [name("lb.example.net")].into(),
        ..web(&[], &[])
    };
    offer(&mut inventory, 2, target);
    let seen = |inventory: &Inventory| at(inventory, "web.shop.g.example").unwrap().1;
    assert_eq!(seen(&inventory), ["0 192.0.2.1", "1 10.1.1.1"]);
    let resolved = |last: u8, ttl, is_old| {
        let addresses: Box<[IpAddr]> = [IpAddr::from([192, 0, 2, last])].into();
        let (addresses, old) = if is_old {
            (Box::default(), addresses)
        } else {
            (addresses, Box::default())
        };
        let resolved = ResolvedTarget {
            addresses,
            old,
            ttl: Ttl::new(ttl).unwrap(),
            inside: None,
            is_gone: false,
            fault: None,
        };
        Arc::new(HashMap::from([(name("lb.example.net"), resolved)]))
    };
    inventory.apply(Change::Targets(resolved(77, 20, false)));
    assert_eq!(
        seen(&inventory),
        ["0 192.0.2.1", "1 10.1.1.1", "2 192.0.2.77"]
    );
    let ttl = |inventory: &Inventory| inventory.services().next().unwrap().1.ttl;
    assert_eq!(ttl(&inventory), Ttl::new(20));
    let dirty = inventory.apply(Change::Targets(resolved(77, 300, true)));
    assert!(!dirty.services.is_empty());
    assert_eq!(ttl(&inventory), Ttl::new(30));
    assert!(endpoints(&inventory)[2].2.is_unready);
    let none = ZoneRules {
        private: PrivateAddresses::None,
        ..zone(vec![grant(None, &["*.g.example"])])
    };
    let zones = vec![none];
    inventory.apply(Change::Rules(Arc::new(FederationRules {
        zones,
        ..FederationRules::default()
    })));
    assert_eq!(seen(&inventory), ["0 192.0.2.1", "2 192.0.2.77"]);
}

#[test]
fn what_the_configuration_has_comes_first() {
    let mut inventory = inventory();
    let configured = Service {
        key: ServiceKey::new("shop", "web").unwrap(),
        origin: Origin::Configuration,
        names: [name("www.g.example")].iter().collect(),
        ttl: None,
        policy: Arc::new(PolicySpec::default()),
        monitor: None,
        pools: crate::model::Pools::default(),
        extras: None,
    };
    offer(&mut inventory, 0, web(&["www.g.example"], &["192.0.2.1"]));
    inventory.apply(Change::Replace(vec![configured.clone()]));
    assert_eq!(at(&inventory, "www.g.example"), found("shop/web", &[]));
    // One key for both takes no other name away.
    let other = |last: u8| found("shop/web", &[&format!("0 192.0.2.{last}")]);
    assert_eq!(at(&inventory, "web.shop.g.example"), other(1));
    let key = ServiceKey::new("shop", "web").unwrap();
    assert_eq!(inventory.find_all(&key).count(), 2);
    // Neither a change in the cluster nor another load of the same moves it.
    offer(&mut inventory, 0, web(&["www.g.example"], &["192.0.2.2"]));
    inventory.apply(Change::Replace(vec![configured]));
    assert_eq!(at(&inventory, "www.g.example"), found("shop/web", &[]));
    assert_eq!(at(&inventory, "web.shop.g.example"), other(2));
    inventory.apply(Change::Replace(Vec::new()));
    assert_eq!(
        at(&inventory, "www.g.example"),
        found("shop/web", &["0 192.0.2.2"])
    );
}

#[test]
fn a_fence_that_cannot_be_read_leaves_the_name_without_addresses() {
    let mut inventory = inventory();
    let shard = Shard {
        unserved: Some("bad fence".into()),
        ..web(&[], &["192.0.2.1"])
    };
    offer(&mut inventory, 0, shard);
    assert_eq!(at(&inventory, "web.shop.g.example"), found("shop/web", &[]));
    assert_eq!(
        refusals(&inventory),
        ["Service shop/web in a: it is not served: bad fence"]
    );
}

#[test]
fn a_cluster_that_leaves_the_configuration_takes_its_shards_along() {
    let mut inventory = inventory();
    offer(&mut inventory, 0, web(&[], &["192.0.2.1"]));
    offer(&mut inventory, 1, web(&[], &["192.0.2.2"]));
    inventory.apply(Change::Clusters(vec![cluster(0, "a")]));
    assert_eq!(
        at(&inventory, "web.shop.g.example"),
        found("shop/web", &["0 192.0.2.1"])
    );
    // What comes late from it is not taken.
    offer(&mut inventory, 1, web(&[], &["192.0.2.2"]));
    assert_eq!(
        at(&inventory, "web.shop.g.example"),
        found("shop/web", &["0 192.0.2.1"])
    );
}

#[test]
fn each_zone_has_its_own_rule_of_private_addresses() {
    let mut inventory = inventory();
    let inside = ZoneRules {
        apex: name("corp.example"),
        private: PrivateAddresses::All,
        ..zone(Vec::new())
    };
    let rules = |zones| {
        Change::Rules(Arc::new(FederationRules {
            zones,
            ..FederationRules::default()
        }))
    };
    let outside = || zone(vec![grant(None, &["*.g.example"])]);
    inventory.apply(rules(vec![outside(), inside.clone()]));
    offer(&mut inventory, 0, web(&[], &["10.0.0.1", "192.0.2.1"]));
    assert_eq!(
        at(&inventory, "web.shop.g.example"),
        found("shop/web", &["0 192.0.2.1"])
    );
    assert_eq!(
        at(&inventory, "web.shop.corp.example"),
        found("shop/web.private-all", &["0 10.0.0.1", "0 192.0.2.1"])
    );
    // Where all zones have one rule, a service has one key.
    inventory.apply(rules(vec![inside]));
    assert_eq!(
        at(&inventory, "web.shop.corp.example"),
        found("shop/web", &["0 10.0.0.1", "0 192.0.2.1"])
    );
    assert_eq!(inventory.services().count(), 1);
}

#[test]
fn too_many_objects_of_one_cluster_take_no_other_clusters_place() {
    let mut inventory = inventory();
    let object = |at: usize| object(ObjectKind::Ingress, "shop", &format!("i{at}"));
    let hosts = ["www.g.example"];
    let of_a = |at: usize| Shard {
        clients: [format!("198.51.{}.{}/32", at / 256, at % 256)
            .parse()
            .unwrap()]
        .into(),
        ..shard(object(at), &hosts, &["192.0.2.1"])
    };
    let changes = (0..300).map(|at| ShardChange::Upsert(Box::new(of_a(at))));
    inventory.apply(Change::of_cluster(ClusterIndex(0), changes.collect()));
    offer(&mut inventory, 1, shard(object(7), &hosts, &["192.0.2.2"]));
    let (_, addresses) = at(&inventory, "www.g.example").unwrap();
    assert_eq!(addresses, ["0 192.0.2.1", "1 192.0.2.2"]);
    let told = refusals(&inventory);
    assert_eq!(
        told,
        ["service shop/www.g.example.hostname: too many objects for one service: 51 are left out"]
    );
    // And of addresses.
    let far = |at: usize| {
        let all: Vec<String> = (0..64)
            .map(|last| format!("2001:db8::{at:x}:{last:x}"))
            .collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        ShardChange::Upsert(Box::new(shard(object(at), &hosts, &all)))
    };
    inventory.apply(Change::of_cluster(
        ClusterIndex(0),
        (0..2000).map(far).collect(),
    ));
    let (_, addresses) = at(&inventory, "www.g.example").unwrap();
    assert_eq!(addresses.last().map(String::as_str), Some("1 192.0.2.2"));
    assert!(refusals(&inventory)[0].contains("1351 are left out"));
}

#[test]
fn a_namespace_has_so_many_targets_and_only_for_names_that_it_may_have() {
    let mut inventory = with(Vec::new());
    let targets = |namespace: &str, at: usize| {
        let names = (0..64).map(|last| name(&format!("t{at}-{last}.{namespace}.example")));
        Shard {
            targets: names.collect(),
            ..shard(
                object(ObjectKind::Service, namespace, &format!("s{at}")),
                &[],
                &[],
            )
        }
    };
    for at in 0..40 {
        offer(&mut inventory, 0, targets("greedy", at));
    }
    offer(&mut inventory, 0, targets("shop", 0));
    let barred = Shard {
        hosts: [name("www.elsewhere.example")].into(),
        targets: [name("lb.barred.example")].into(),
        ..shard(object(ObjectKind::Ingress, "shop", "x"), &[], &[])
    };
    offer(&mut inventory, 0, barred);
    let all = inventory.federation().targets();
    let of = |namespace: &str| {
        let all = all.iter().map(ToString::to_string);
        all.filter(|name| name.contains(namespace)).count()
    };
    assert_eq!((of("greedy"), of("shop"), of("barred")), (2000, 64, 0));
}

#[test]
fn what_nobody_sees_and_nobody_probes_is_used_after_all_others() {
    let mut inventory = inventory();
    let one = |cluster: u16, monitor| Shard {
        monitor,
        ..web(&["www.g.example"], &[&format!("192.0.2.{cluster}")])
    };
    offer(&mut inventory, 0, one(0, Some(monitor(80))));
    offer(&mut inventory, 1, one(1, None));
    offer(&mut inventory, 2, one(2, None));
    let unready = |inventory: &Inventory| -> Vec<bool> {
        let all = endpoints(inventory);
        all.iter()
            .map(|(_, _, condition, _)| condition.is_unready)
            .collect()
    };
    let aged = |all: &[u16]| Change::Aged(all.iter().copied().map(ClusterIndex).collect());
    assert_eq!(unready(&inventory), [false, false, false]);
    // Probes go on judging the first.
    let dirty = inventory.apply(aged(&[0, 1]));
    assert_eq!(unready(&inventory), [false, true, false]);
    assert_eq!(dirty.services.len(), 1);
    assert!(dirty.former.is_empty() && dirty.removed.is_empty());
    assert!(inventory.apply(aged(&[0, 1])).is_empty());
    inventory.apply(aged(&[0]));
    assert_eq!(unready(&inventory), [false, false, false]);
    inventory.apply(aged(&[2]));
    assert_eq!(unready(&inventory), [false, false, true]);
    let all = endpoints(&inventory);
    let known: Vec<bool> = all
        .iter()
        .map(|(_, _, _, index)| inventory.is_aged(crate::model::EndpointIndex(*index)))
        .collect();
    assert_eq!(known, [false, false, true]);
}

/// The weights of the only service, by cluster.
fn weights(inventory: &Inventory) -> Vec<u16> {
    let (_, service) = inventory.services().next().unwrap();
    service.pools.iter().map(|pool| pool.weight().0).collect()
}

#[test]
fn ready_endpoints_scale_shares_where_that_is_said() {
    let one = |cluster: u16, (weight, ready): (u16, Option<u32>), said: Option<bool>| Shard {
        weight: Weight(weight),
        backing: ready.map(|ready| Backing {
            ready,
            ..Backing::default()
        }),
        keys: Arc::new(NameKeys {
            weighs_endpoints: said,
            ..NameKeys::default()
        }),
        ..web(&["www.g.example"], &[&format!("192.0.2.{cluster}")])
    };
    let most = u32::from(u16::MAX);
    for (said, offers, wanted) in [
        (None, [(1, Some(3)), (2, Some(5)), (1, Some(7))], [1, 2, 1]),
        (
            Some(false),
            [(1, Some(3)), (2, Some(5)), (1, Some(7))],
            [1, 2, 1],
        ),
        (
            Some(true),
            [(1, Some(3)), (2, Some(5)), (1, Some(7))],
            [3, 10, 7],
        ),
        (
            Some(true),
            [(1, Some(0)), (0, Some(5)), (1, Some(7))],
            [0, 0, 7],
        ),
        // One that does not count: none is scaled.
        (
            Some(true),
            [(1, Some(3)), (2, None), (1, Some(7))],
            [1, 2, 1],
        ),
        // Too large together: the shares stay, and nobody loses all of it.
        (
            Some(true),
            [(1, Some(1)), (2, Some(most)), (1, Some(most))],
            [1, u16::MAX, 32_767],
        ),
        (
            Some(true),
            [(u16::MAX, Some(u32::MAX)), (1, Some(1)), (1, Some(0))],
            [u16::MAX, 1, 0],
        ),
    ] {
        let mut inventory = inventory();
        for (cluster, own) in (0..).zip(offers) {
            offer(&mut inventory, cluster, one(cluster, own, said));
        }
        assert_eq!(weights(&inventory), wanted, "{said:?} {offers:?}");
    }
    // A changed count is one service whose shares changed: its names, policy and entries stay.
    let mut inventory = inventory();
    for cluster in 0..3 {
        offer(
            &mut inventory,
            cluster,
            one(cluster, (1, Some(4)), Some(true)),
        );
    }
    inventory.settle();
    let policy = |inventory: &Inventory| Arc::clone(&inventory.services().next().unwrap().1.policy);
    let (before, entries) = (policy(&inventory), endpoints(&inventory));
    let dirty = offer(&mut inventory, 1, one(1, (1, Some(5)), Some(true)));
    assert_eq!(weights(&inventory), [4, 5, 4]);
    assert_eq!(dirty.services.len(), 1);
    let untouched = Dirty {
        services: dirty.services.clone(),
        refusals: dirty.refusals,
        ..Dirty::default()
    };
    assert_eq!(dirty, untouched);
    assert_eq!(
        (policy(&inventory), endpoints(&inventory)),
        (before, entries)
    );
    // The same count again is nothing.
    let again = offer(&mut inventory, 1, one(1, (1, Some(5)), Some(true)));
    assert!(again.services.is_empty());
}
