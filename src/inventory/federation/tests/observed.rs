//! Clusters that are observed.

use super::*;

/// Clusters `a` to `c`, of which `b` is observed.
fn observing() -> Inventory {
    let mut inventory = inventory();
    inventory.apply(Change::Observed([ClusterIndex(1)].into()));
    inventory
}

/// Has a cluster offer a Service of the namespace `shop`.
fn serve(inventory: &mut Inventory, cluster: u16, service: &str, host: &str) -> Dirty {
    let object = object(ObjectKind::Service, "shop", service);
    let address = format!("192.0.2.{}", cluster + 1);
    offer(inventory, cluster, shard(object, &[host], &[&address]))
}

/// All services: key, hosts without the names that zones make, and clusters of the pools.
fn services(inventory: &Inventory) -> Vec<String> {
    let show = |service: &Service| {
        let names = service.names.iter().map(|name| name.to_string());
        let names: Vec<String> = names.filter(|name| !name.contains(".shop.g.")).collect();
        let clusters: Vec<u16> = service.pools.clusters().map(|index| index.0).collect();
        format!("{} {} {clusters:?}", service.key, names.join(" "))
    };
    let mut all: Vec<String> = inventory.services().map(|(_, one)| show(one)).collect();
    all.sort();
    all
}

#[test]
fn what_is_observed_is_watched_and_touches_nobody_else() {
    let mut inventory = observing();
    serve(&mut inventory, 0, "web", "www.g.example");
    let before = services(&inventory);
    let dirty = serve(&mut inventory, 1, "web", "www.g.example");
    assert_eq!(dirty.services.len(), 1, "one is new, and none is changed");
    let mut after = services(&inventory);
    assert_eq!(after.pop().unwrap(), "shop/web@observed  [1]");
    assert_eq!(after, before);
    // A name that nobody else has is there; one below a wildcard that is served is not.
    serve(&mut inventory, 1, "new", "new.g.example");
    let with_name = "shop/new@observed new.g.example [1]".to_owned();
    let without = "shop/new@observed  [1]".to_owned();
    assert!(
        services(&inventory).contains(&with_name),
        "{:?}",
        services(&inventory)
    );
    serve(&mut inventory, 0, "all", "*.g.example");
    assert!(services(&inventory).contains(&without));
    let clear = vec![ShardChange::Clear];
    inventory.apply(Change::of_cluster(ClusterIndex(0), clear));
    let left = [
        "shop/new@observed new.g.example [1]",
        "shop/web@observed www.g.example [1]",
    ];
    assert_eq!(services(&inventory), left);
    for (_, shadow) in inventory.services() {
        assert_eq!(shadow.policy.fences, [Vec::new()], "nobody is let in");
        assert_eq!(shadow.origin, Origin::Observed);
    }
    assert!(inventory.observes(ClusterIndex(1)) && !inventory.observes(ClusterIndex(0)));
    assert_eq!(inventory.federation().all().count(), 0);
}

#[test]
fn who_is_admitted_is_as_if_it_had_never_been_observed() {
    let mut turned = observing();
    let mut plain = inventory();
    for inventory in [&mut turned, &mut plain] {
        serve(inventory, 0, "web", "www.g.example");
        serve(inventory, 1, "web", "www.g.example");
        serve(inventory, 1, "new", "new.g.example");
    }
    assert_ne!(services(&turned), services(&plain));
    turned.apply(Change::Observed(BTreeSet::new()));
    assert_eq!(services(&turned), services(&plain));
    turned.apply(Change::Observed([ClusterIndex(1)].into()));
    plain.apply(Change::Observed([ClusterIndex(1)].into()));
    assert_eq!(services(&turned), services(&plain));
    assert_eq!(services(&turned).len(), 3);
    turned.apply(Change::of_cluster(
        ClusterIndex(1),
        vec![ShardChange::Clear],
    ));
    assert_eq!(services(&turned), ["shop/web www.g.example [0]"]);
}
