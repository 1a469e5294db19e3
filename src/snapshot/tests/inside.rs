//! Targets in our own zones: what a name of ours leads to.

use std::collections::HashMap;

use super::*;
use crate::inventory::{Extras, NamedEndpoint, ResolvedTarget};
use crate::model::Ttl;
use crate::snapshot::Inside;
use crate::zone::NameForms;
use crate::zone::testing::zone_making;

const STATIC: &str = "\
one 60 A 192.0.2.1
one 50 AAAA 2001:db8::1
local A 127.0.0.1
six AAAA 2001:db8::6
alias 20 CNAME one
far 40 CNAME lb.other.
chain CNAME alias
d DNAME e
x.e A 192.0.2.7
round CNAME robin
robin CNAME round
a1 CNAME a2
a2 CNAME a3
a3 CNAME a4
a4 CNAME a5
a5 CNAME a6
a6 CNAME a7
a7 CNAME a8
a8 CNAME a9
a9 CNAME one
cut NS ns.other.
*.wild A 192.0.2.8
to-s CNAME s.y.
";

/// A service at one name of zone y with its own address in cluster 0, unless that is 0, and these targets in cluster 1.
fn with_targets(key: &str, last: u8, targets: &[&str]) -> Service {
    let own: &[u16] = if last == 0 { &[] } else { &[0] };
    let mut service = service(key, &[&format!("{key}.y")], own, None);
    if last > 0 {
        let mut pools = PoolsBuilder::default();
        let address = IpAddr::from([198, 51, 100, last]);
        pools
            .addresses(ClusterIndex(0), Weight(1), None, &[address])
            .unwrap();
        service.pools = pools.build().unwrap();
    }
    let named = |text: &&str| NamedEndpoint {
        cluster: ClusterIndex(1),
        weight: Weight(1),
        clients: None,
        name: name(text),
    };
    service.extras = Some(Arc::new(Extras {
        targets: targets.iter().map(named).collect(),
        ..Extras::default()
    }));
    service
}

fn world(services: Vec<Service>) -> World {
    let mut world = World::new(vec![zone("z", STATIC), zone("y", "")]);
    world.apply(Change::Replace(services));
    assert_eq!(world.publish(), [""; 0]);
    world
}

/// Follows a name. Gives its addresses, those to be used last with a minus before them, then what is asked outside.
fn follow(world: &World, text: &str) -> (String, Inside) {
    let inside = world.snapshot.follow(&name(text)).unwrap();
    let addresses = inside.addresses.iter().map(|(address, is_usable)| {
        let mark = if *is_usable { "" } else { "-" };
        format!("{mark}{address}")
    });
    let outside = inside.outside.iter().map(ToString::to_string);
    let all: Vec<String> = addresses.chain(outside).collect();
    (all.join(" "), inside)
}

#[test]
fn static_names_are_followed_by_our_own_data() {
    let world = world(vec![with_targets("s", 9, &[])]);
    for (text, found, ttl) in [
        ("one.z", "192.0.2.1 2001:db8::1", Some(50)),
        ("six.z", "2001:db8::6", Some(300)),
        ("alias.z", "192.0.2.1 2001:db8::1", Some(20)),
        ("chain.z", "192.0.2.1 2001:db8::1", Some(20)),
        ("far.z", "lb.other", Some(40)),
        ("x.d.z", "192.0.2.7", Some(300)),
        ("q.wild.z", "192.0.2.8", Some(300)),
        // Nobody can be sent there.
        ("local.z", "", Some(300)),
        ("none.z", "", None),
        ("to-s.z", "198.51.100.9", Some(30)),
        // What is handed down is somebody else's.
        ("www.cut.z", "www.cut.z", None),
    ] {
        let (all, inside) = follow(&world, text);
        assert_eq!(all, found, "{text}");
        assert_eq!(inside.ttl, ttl.and_then(Ttl::new), "{text}");
        assert_eq!(inside.fault, None, "{text}");
    }
    let (_, cut) = follow(&world, "www.cut.z");
    assert_eq!(cut.cuts, [name("cut.z")].into());
    assert_eq!(world.snapshot.follow(&name("lb.other")), None);
    for (text, part) in [
        ("round.z", "in a circle: robin.z leads back to round.z"),
        ("a1.z", "more than 8 aliases"),
    ] {
        let (all, inside) = follow(&world, text);
        assert!(inside.fault.unwrap().contains(part), "{text}");
        assert_eq!(all, "");
    }
    assert_eq!(follow(&world, "a2.z").1.fault, None);
}

#[test]
fn services_are_followed_with_their_states_and_tiers() {
    let mut two = service("two", &["two.y"], &[0, 1], None);
    two.policy = Arc::new(PolicySpec {
        tiers: vec![
            vec![ClusterSelector::Cluster("c0".parse().unwrap())],
            vec![ClusterSelector::Cluster("c1".parse().unwrap())],
        ],
        ..PolicySpec::default()
    });
    two.monitor = Some(Arc::new(MonitorSpec::new(
        Check::connect(80),
        Origin::Operator,
    )));
    two.ttl = Ttl::new(7);
    let mut world = world(vec![two]);
    assert_eq!(follow(&world, "two.y").0, "192.0.2.0 -192.0.2.1");
    let slot = world.snapshot.service(ServiceIndex(0)).unwrap();
    let first = slot.pools.iter().next().unwrap().states().next().unwrap();
    let down = EndpointState::UP.with_verdict(Verdict::Down);
    world.fresh_states.push((first, down));
    world.publish();
    let (all, inside) = follow(&world, "two.y");
    assert_eq!(
        (all.as_str(), inside.ttl),
        ("-192.0.2.0 192.0.2.1", Ttl::new(7))
    );
}

#[test]
fn a_fence_is_not_gone_round() {
    let mut fenced = with_targets("f", 1, &[]);
    let rule = FenceRule {
        clients: vec![ClientSelector::Any],
        clusters: vec![ClusterSelector::Any],
    };
    fenced.policy = Arc::new(PolicySpec {
        fences: vec![vec![rule]],
        ..PolicySpec::default()
    });
    let world = world(vec![fenced, with_targets("s", 2, &["f.y"])]);
    let (all, inside) = follow(&world, "s.y");
    assert_eq!(all, "198.51.100.2");
    assert!(inside.fault.unwrap().contains("f.y is behind a fence"));
}

/// What is in force of services after targets were followed until nothing changes.
fn settled(world: &mut World, names: &[&str]) -> usize {
    let mut sent = HashMap::new();
    for round in 0..20 {
        let resolve = |text: &&str| {
            let inside = world.snapshot.follow(&name(text))?;
            let pick = |wanted: bool| {
                let all = inside.addresses.iter();
                let picked = all.filter(|(_, is_usable)| **is_usable == wanted);
                picked.map(|(address, _)| *address).collect()
            };
            let target = ResolvedTarget {
                addresses: pick(true),
                old: pick(false),
                ttl: inside.ttl.unwrap_or(Ttl::BRIEF),
                inside: Some(Box::default()),
                is_gone: false,
                fault: inside.fault.as_deref().map(Into::into),
            };
            Some((name(text), target))
        };
        let now: HashMap<LowerName, ResolvedTarget> = names.iter().filter_map(resolve).collect();
        if now == sent {
            return round;
        }
        sent = now;
        world.apply(Change::Targets(Arc::new(sent.clone())));
        world.publish();
    }
    panic!("it never settles");
}

/// The addresses of a service, sorted.
fn addresses(world: &World, key: &str) -> Vec<String> {
    let key = ServiceKey::new("shop", key).unwrap();
    let index = world.inventory.find(&key).unwrap();
    let pools = &world.snapshot.service(index).unwrap().pools;
    let all = pools.iter().flat_map(|pool| pool.v4().collect::<Vec<_>>());
    let mut all: Vec<String> = all.map(|endpoint| endpoint.address.to_string()).collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn circles_are_refused_and_leave_each_its_own() {
    let mut world = world(vec![
        with_targets("a", 1, &["b.y"]),
        with_targets("b", 2, &["c.y"]),
        with_targets("c", 3, &["one.z"]),
    ]);
    let names = ["a.y", "b.y", "c.y", "one.z"];
    settled(&mut world, &names);
    let all = ["192.0.2.1", "198.51.100.1", "198.51.100.2", "198.51.100.3"];
    assert_eq!(addresses(&world, "a"), all);
    assert_eq!(addresses(&world, "c"), ["192.0.2.1", "198.51.100.3"]);
    assert_eq!(world.inventory.refusals().count(), 0);
    // A later configuration makes a circle of it.
    world.apply(Change::Upsert(with_targets("c", 3, &["a.y"])));
    world.publish();
    settled(&mut world, &names);
    let told: Vec<String> = world
        .inventory
        .refusals()
        .map(|one| one.to_string())
        .collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("b.y to c.y to a.y to b.y"), "{told:?}");
    for key in ["a", "b", "c"] {
        assert_eq!(addresses(&world, key), all[1..], "{key}");
    }
    // What its owner lets go of goes everywhere, though the circle stands.
    world.apply(Change::Upsert(with_targets("b", 0, &["c.y"])));
    world.publish();
    settled(&mut world, &names);
    for key in ["a", "b", "c"] {
        assert_eq!(addresses(&world, key), [all[1], all[3]], "{key}");
    }
    // And it ends.
    world.apply(Change::Upsert(with_targets("c", 3, &[])));
    world.publish();
    settled(&mut world, &names);
    assert_eq!(world.inventory.refusals().count(), 0);
    assert_eq!(addresses(&world, "c"), [all[3]]);
    assert_eq!(addresses(&world, "b"), [all[3]]);
}

#[test]
fn long_ways_end() {
    let mut services: Vec<Service> = (1..12_u8)
        .map(|at| with_targets(&format!("s{at}"), at, &[&format!("s{}.y", at + 1)]))
        .collect();
    services.push(with_targets("s12", 12, &[]));
    let world = world(services);
    let (all, inside) = follow(&world, "s1.y");
    assert_eq!(all.split(' ').count(), 8);
    assert!(inside.fault.unwrap().contains("more than 8 services"));
    assert_eq!(follow(&world, "s5.y").1.fault, None);
}

#[test]
fn wide_ways_end_and_say_what_they_cost() {
    let leading_to = |count: usize| -> Vec<String> {
        let all = (0..count).map(|at| format!("q{at}.wild.z"));
        all.collect()
    };
    let (few, many) = (leading_to(64), leading_to(2000));
    let few: Vec<&str> = few.iter().map(String::as_str).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let world = world(vec![
        with_targets("few", 1, &few),
        with_targets("many", 2, &many),
        with_targets("s", 3, &["few.y", "many.y"]),
    ]);
    let (all, inside) = follow(&world, "few.y");
    assert_eq!(
        (all.as_str(), inside.fault),
        ("192.0.2.8 198.51.100.1", None)
    );
    // Itself, its service, 64 names, and 65 endpoints and targets.
    assert_eq!(inside.cost, 1 + 1 + 64 + 1);
    for (text, wanted, cost) in [
        ("many.y", "192.0.2.8 198.51.100.2", 1 + 1 + 64 + 2001 / 64),
        (
            "s.y",
            "192.0.2.8 198.51.100.1 198.51.100.3",
            1 + 2 + 64 + (65 + 3) / 64,
        ),
    ] {
        let (all, inside) = follow(&world, text);
        assert_eq!(all, wanted);
        let fault = inside.fault.unwrap();
        assert_eq!(fault, "more than 64 names on all ways from it");
        assert_eq!(inside.cost, cost, "{text}");
    }
    assert_eq!(follow(&world, "one.z").1.cost, 1);
}

/// A world whose zone `z` makes names of federations: zone `a` of region `eu` is cluster 0, `b` of it cluster 1, region `us` 2.
fn leveled(services: Vec<Service>) -> World {
    let forms = NameForms {
        kubefed: true,
        ..NameForms::default()
    };
    let mut world = World::new(vec![zone_making("z", forms), zone("y", "")]);
    let places = [("eu", "a"), ("eu", "b"), ("us", "c")];
    let clusters = (0..).zip(places).map(|(index, (region, zone))| {
        let id: String = format!("c{index}");
        let cluster = Cluster {
            region: Some(region.into()),
            zones: vec![zone.into()],
            ..Cluster::named(id.parse().unwrap())
        };
        (ClusterIndex(index), Arc::new(cluster))
    });
    world.apply(Change::Clusters(clusters.collect()));
    world.apply(Change::Replace(services));
    assert_eq!(world.publish(), [""; 0]);
    world
}

#[test]
fn a_name_of_a_level_leads_to_the_clusters_that_would_answer_there_before_all_others() {
    let mut web = service("web", &["web.shop.p.svc.z"], &[0, 1, 2], None);
    web.policy = Arc::new(PolicySpec {
        tiers: vec![
            vec![ClusterSelector::Cluster("c2".parse().unwrap())],
            vec![ClusterSelector::Any],
        ],
        ..PolicySpec::default()
    });
    web.monitor = Some(Arc::new(MonitorSpec::new(
        Check::connect(80),
        Origin::Operator,
    )));
    let level = "web.shop.p.svc.a.eu.z";
    let both = ["web.shop.p.svc.b.eu.z", level];
    let mut world = leveled(vec![
        web,
        with_targets("s", 9, &[level]),
        with_targets("both", 8, &both),
    ]);
    let check = |world: &World, table: &[(&str, &str)]| {
        for (text, wanted) in table {
            let (all, inside) = follow(world, text);
            assert_eq!((all.as_str(), inside.fault), (*wanted, None), "{text}");
        }
    };
    check(
        &world,
        &[
            ("web.shop.p.svc.z", "-192.0.2.0 -192.0.2.1 192.0.2.2"),
            (level, "192.0.2.0 -192.0.2.1 -192.0.2.2"),
            ("web.shop.p.svc.eu.z", "192.0.2.0 192.0.2.1 -192.0.2.2"),
            ("web.shop.p.svc.c.z", "-192.0.2.0 -192.0.2.1 192.0.2.2"),
            ("s.y", "192.0.2.0 -192.0.2.1 -192.0.2.2 198.51.100.9"),
            // A service may be asked at several levels.
            ("both.y", "192.0.2.0 192.0.2.1 -192.0.2.2 198.51.100.8"),
            ("svc.eu.z", ""),
            ("web.shop.p.svc.mars.z", ""),
        ],
    );
    let web = world
        .snapshot
        .names()
        .find(name("web.shop.p.svc.z").as_ref());
    let web = world.snapshot.service(web.unwrap().service.unwrap());
    let pools = web.unwrap().pools.clone();
    let states: Vec<_> = pools.iter().flat_map(|pool| pool.states()).collect();
    let down = EndpointState::UP.with_verdict(Verdict::Down);
    // Where nothing of the zone is up it is the region, and where nothing of that is, all clusters.
    world.fresh_states.push((states[0], down));
    world.publish();
    check(&world, &[(level, "-192.0.2.0 192.0.2.1 -192.0.2.2")]);
    world.fresh_states.push((states[1], down));
    world.publish();
    check(&world, &[(level, "-192.0.2.0 -192.0.2.1 192.0.2.2")]);
}

#[test]
fn a_name_of_a_level_of_a_service_that_leads_on_is_told_and_not_followed() {
    let federated = |key: &str, last: u8, target: &str| Service {
        names: [name(&format!("{key}.shop.p.svc.z"))].iter().collect(),
        ..with_targets(key, last, &[target])
    };
    let level = |key: &str| format!("{key}.shop.p.svc.eu.z");
    let world = leveled(vec![
        federated("on", 1, "s.y"),
        // Its own level: not even once around.
        federated("self", 2, &level("self")),
        // What is resolved outside is among its own addresses.
        federated("out", 3, "lb.other"),
        with_targets("s", 9, &[]),
    ]);
    for text in [level("on"), level("self")] {
        let (all, inside) = follow(&world, &text);
        let wanted = format!(
            "{text} is a name of a level, region eu, of a service that leads to other names of ours"
        );
        assert_eq!((all, inside.fault), (String::new(), Some(wanted)));
    }
    let (all, inside) = follow(&world, &level("out"));
    assert_eq!((all.as_str(), inside.fault), ("198.51.100.3", None));
}

#[test]
fn what_is_for_some_senders_is_not_followed() {
    let mut some = with_targets("some", 1, &[]);
    let mut pools = PoolsBuilder::default();
    for (clients, last) in [(None, 1), (Some(0), 2)] {
        let address = IpAddr::from([198, 51, 100, last]);
        pools
            .addresses(ClusterIndex(0), Weight(1), clients, &[address])
            .unwrap();
    }
    some.pools = pools.build().unwrap();
    some.extras = Some(Arc::new(Extras {
        client_sets: [["10.0.0.0/8".parse().unwrap()].into()].into(),
        ..Extras::default()
    }));
    let world = world(vec![some]);
    assert_eq!(follow(&world, "some.y").0, "198.51.100.1");
}
