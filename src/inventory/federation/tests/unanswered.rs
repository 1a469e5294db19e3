//! What objects are not answered with, and what of it counts all the same.

use super::*;

#[test]
fn the_fence_of_an_object_that_is_not_served_holds_for_its_names() {
    let fence = vec![FenceRule {
        clients: vec!["country:DE".parse().unwrap()],
        clusters: vec!["country:DE".parse().unwrap()],
    }];
    let fenced = |unserved: Option<&str>| Shard {
        keys: Arc::new(NameKeys {
            fence: Some(fence.clone()),
            ..NameKeys::default()
        }),
        unserved: unserved.map(Into::into),
        ..web(&[], &["192.0.2.1"])
    };
    let held = vec![fence.clone()];
    let mut inventory = inventory();
    offer(&mut inventory, 0, fenced(None));
    offer(&mut inventory, 1, web(&[], &["192.0.2.2"]));
    offer(&mut inventory, 2, web(&[], &["192.0.2.3"]));
    let fences = |inventory: &Inventory| {
        let (_, service) = inventory.services().next().unwrap();
        service.policy.fences.clone()
    };
    assert_eq!(fences(&inventory), held);
    // It cannot be read any more: nobody is sent there, and the name is as closed as before.
    offer(&mut inventory, 0, fenced(Some("its fence was refused")));
    assert_eq!(
        at(&inventory, "web.shop.g.example"),
        found("shop/web", &["1 192.0.2.2", "2 192.0.2.3"])
    );
    assert_eq!(fences(&inventory), held);
    let (_, service) = inventory.services().next().unwrap();
    assert_eq!(
        inventory.federation().left_out(&service.key),
        ["Service shop/web in a is not served: its fence was refused"]
    );
}

#[test]
fn a_private_address_that_nobody_is_answered_with_is_refused_aloud() {
    let mut inventory = inventory();
    offer(&mut inventory, 0, web(&[], &["10.1.2.3", "192.0.2.1"]));
    let private = "private address, answered only to `clients`";
    assert_eq!(
        refusals(&inventory),
        [format!("Service shop/web in a: 10.1.2.3: {private}")]
    );
    let (_, service) = inventory.services().next().unwrap();
    assert_eq!(
        inventory.federation().left_out(&service.key),
        [format!(
            "10.1.2.3 of Service shop/web in a is not answered: {private}"
        )]
    );
    assert_eq!(
        at(&inventory, "web.shop.g.example"),
        found("shop/web", &["0 192.0.2.1"])
    );
    // To `clients` it is answered.
    let for_some = Shard {
        clients: ["10.0.0.0/8".parse().unwrap()].into(),
        ..web(&[], &["10.1.2.3"])
    };
    offer(&mut inventory, 0, for_some.clone());
    assert!(refusals(&inventory).is_empty());
    // What is not served at all, or has no name of ours, is not told twice.
    let unserved = Shard {
        unserved: Some("its fence was refused".into()),
        ..web(&[], &["10.1.2.3"])
    };
    offer(&mut inventory, 0, unserved);
    assert_eq!(refusals(&inventory).len(), 1);
    let rules = |private| {
        Change::Rules(Arc::new(FederationRules {
            zones: vec![ZoneRules {
                private,
                ..zone(vec![grant(None, &["*.g.example"])])
            }],
            ..FederationRules::default()
        }))
    };
    offer(&mut inventory, 0, for_some);
    inventory.apply(rules(PrivateAddresses::None));
    assert_eq!(
        refusals(&inventory),
        ["Service shop/web in a: 10.1.2.3: private address, and a zone of its names answers none"]
    );
    inventory.apply(rules(PrivateAddresses::All));
    offer(&mut inventory, 0, web(&[], &["10.1.2.3"]));
    assert!(refusals(&inventory).is_empty());
}

#[test]
fn private_addresses_behind_a_host_name_are_told_with_it() {
    let mut inventory = inventory();
    let by_name = Shard {
        targets: [name("lb.example.net")].into(),
        ..web(&[], &[])
    };
    offer(&mut inventory, 0, by_name);
    let target = ResolvedTarget {
        addresses: ["10.1.2.3".parse().unwrap(), "192.0.2.1".parse().unwrap()].into(),
        old: Box::default(),
        ttl: Ttl::BRIEF,
        inside: None,
        is_gone: false,
        fault: None,
    };
    let targets = HashMap::from([(name("lb.example.net"), target)]);
    inventory.apply(Change::Targets(Arc::new(targets)));
    assert_eq!(
        refusals(&inventory),
        [
            "Service shop/web in a: lb.example.net: it leads to a private address, answered only to `clients`"
        ]
    );
}
