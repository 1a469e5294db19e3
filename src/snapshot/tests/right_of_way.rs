//! Who has a name.

use super::*;

/// Static records of every kind that matters to a claim.
const STATIC: &str = "www A 192.0.2.1\nmail MX 10 mx.other.\ncut NS ns.other.\nold DNAME new.other.\nweb HTTPS 1 . alpn=h2\n";

#[test]
fn right_of_way_at_a_name() {
    let mut world = World::new(vec![zone("z", STATIC), zone("sub.in.z", "")]);
    for (at, is_cname, refused) in [
        ("free.z", false, None),
        ("free.z", true, None),
        ("*.z", false, None),
        ("z", false, None),
        ("z", true, Some("apex")),
        ("mail.z", false, None),
        ("mail.z", true, Some("beside static records")),
        ("www.z", false, Some("HostnameConflict")),
        ("web.z", false, Some("HostnameConflict")),
        ("cut.z", false, Some("HostnameConflict")),
        ("a.cut.z", false, Some("HostnameConflict")),
        ("old.z", false, Some("HostnameConflict")),
        ("a.old.z", false, Some("HostnameConflict")),
        ("a.sub.in.z", false, None),
        ("sub.in.z", false, None),
        ("sub.in.z", true, Some("apex")),
        ("other", false, Some("outside our zones")),
        ("zz", false, Some("outside our zones")),
    ] {
        let hostname = is_cname.then_some("lb.other");
        world.apply(Change::Upsert(service("one", &[at], &[0], hostname)));
        let rejections = world.publish();
        match refused {
            None => {
                assert_eq!(rejections, [""; 0], "{at}");
                assert_eq!(world.holder(at).as_deref(), Some("one"), "{at}");
                let found = world.snapshot.names().find(name(at).as_ref()).unwrap();
                assert_eq!(found.is_cname, is_cname, "{at}");
            }
            Some(reason) => {
                assert_eq!(rejections.len(), 1, "{at}");
                assert!(rejections[0].contains(reason), "{at}: {}", rejections[0]);
                assert!(
                    rejections[0].starts_with("service shop/one: "),
                    "{}",
                    rejections[0]
                );
                assert_eq!(world.holder(at), None, "{at}");
                assert_eq!(world.snapshot.refused().count(), 1, "{at}");
            }
        }
    }
    world.apply(Change::Remove(ServiceKey::new("shop", "one").unwrap()));
    assert_eq!(world.publish(), [""; 0]);
    assert_eq!(world.snapshot.refused().count(), 0);
    assert_eq!(world.snapshot.names().len(), world.scratch().names().len());
}

#[test]
fn the_first_by_key_has_a_name_and_the_next_takes_over() {
    let mut world = World::new(vec![zone("z", "")]);
    for key in ["b", "c", "a"] {
        world.apply(Change::Upsert(plain(key, &["x.z"])));
        world.publish();
    }
    let remove = |world: &mut World, key| {
        world.apply(Change::Remove(ServiceKey::new("shop", key).unwrap()));
        world.publish()
    };
    assert_eq!(world.holder("x.z").as_deref(), Some("a"));
    assert_eq!(world.snapshot.refused().count(), 2);
    let rejections = remove(&mut world, "a");
    assert_eq!(world.holder("x.z").as_deref(), Some("b"));
    assert_eq!(rejections.len(), 1);
    assert!(rejections[0].starts_with("service shop/c: x.z: HostnameConflict: service shop/b"));
    assert_eq!(remove(&mut world, "b"), [""; 0]);
    assert_eq!(world.holder("x.z").as_deref(), Some("c"));
    assert_eq!(world.snapshot.refused().count(), 0);
    remove(&mut world, "c");
    assert!(!world.exists("x.z"));
}

#[test]
fn a_loser_may_be_gone_and_its_index_in_use_in_the_same_build() {
    let mut world = World::new(vec![zone("z", "")]);
    let first = [
        plain("a", &["x.z"]),
        plain("b", &["x.z"]),
        plain("c", &["x.z"]),
    ];
    world.apply(Change::Replace(first.into()));
    world.publish();
    for key in ["a", "b"] {
        world.apply(Change::Remove(ServiceKey::new("shop", key).unwrap()));
    }
    world.apply(Change::Upsert(plain("0", &["y.z"])));
    world.apply(Change::Upsert(plain("1", &["x.z"])));
    world.publish();
    assert_eq!(world.holder("x.z").as_deref(), Some("1"));
    assert_eq!(world.holder("y.z").as_deref(), Some("0"));
    let losers: Vec<ServiceIndex> = world.snapshot.refused().map(|r| r.service).collect();
    let key = ServiceKey::new("shop", "c").unwrap();
    assert_eq!(losers, [world.inventory.find(&key).unwrap()]);
}

#[test]
fn empty_non_terminals_come_and_go_with_services_and_zones() {
    let mut world = World::new(vec![zone("z", ""), zone("c.b.z", "")]);
    world.apply(Change::Upsert(plain("a", &["1.2.3.z", "4.3.z"])));
    world.publish();
    for (at, exists) in [
        ("2.3.z", true),
        ("3.z", true),
        ("1.z", false),
        // There is a zone below.
        ("b.z", true),
        ("a.z", false),
    ] {
        assert_eq!(world.exists(at), exists, "{at}");
    }
    let found = world.snapshot.names().find(name("3.z").as_ref()).unwrap();
    assert_eq!((found.node, found.service), (None, None));
    world.apply(Change::Upsert(plain("a", &["4.3.z"])));
    world.publish();
    assert!(!world.exists("2.3.z") && world.exists("3.z"));
    world.apply(Change::Replace(vec![]));
    world.publish();
    assert!(!world.exists("3.z") && world.exists("b.z"));
}

#[test]
fn a_static_record_takes_a_name_from_a_service_and_gives_it_back() {
    let mut world = World::new(vec![zone("z", ""), zone("y", "")]);
    world.apply(Change::Upsert(plain("a", &["www.z", "www.y"])));
    world.publish();
    let kept = world
        .zones
        .get(crate::model::ZoneIndex(1))
        .map(Arc::clone)
        .unwrap();
    for (text, holder) in [("www A 192.0.2.1", None), ("www MX 1 mx.other.", Some("a"))] {
        world.zones = Arc::new(ZoneSet::new(vec![zone("z", text), Arc::clone(&kept)]));
        let rejections = world.publish();
        assert_eq!(rejections.len(), usize::from(holder.is_none()), "{text}");
        assert_eq!(world.holder("www.z").as_deref(), holder, "{text}");
        assert_eq!(world.holder("www.y").as_deref(), Some("a"), "{text}");
        let found = world.snapshot.names().find(name("www.z").as_ref()).unwrap();
        assert!(found.node.is_some(), "{text}");
    }
    // A zone more: the name belongs to it.
    let zones = vec![zone("z", ""), kept, zone("www.z", "")];
    world.zones = Arc::new(ZoneSet::new(zones));
    world.publish();
    let found = world.snapshot.names().find(name("www.z").as_ref()).unwrap();
    assert_eq!(found.zone, crate::model::ZoneIndex(2));
    assert_eq!(world.holder("www.z").as_deref(), Some("a"));
}

#[test]
fn a_static_record_takes_a_name_from_all_who_strive_for_it() {
    let mut world = World::new(vec![zone("z", "")]);
    for key in ["a", "b", "c"] {
        world.apply(Change::Upsert(plain(key, &["www.z"])));
    }
    world.publish();
    for (text, holder, refused) in [("www A 192.0.2.1", None, 3), ("", Some("a"), 2)] {
        world.zones = Arc::new(ZoneSet::new(vec![zone("z", text)]));
        assert_eq!(world.publish().len(), refused);
        assert_eq!(world.holder("www.z").as_deref(), holder);
        assert_eq!(world.snapshot.refused().count(), refused);
    }
}

#[test]
fn a_service_may_become_a_cname_and_back() {
    let mut world = World::new(vec![zone("z", "mail MX 1 mx.other.")]);
    for hostname in [None, Some("lb.other"), None] {
        let names = ["z", "a.z", "mail.z"];
        world.apply(Change::Upsert(service("one", &names, &[0], hostname)));
        let rejections = world.publish();
        assert_eq!(rejections.len(), if hostname.is_some() { 2 } else { 0 });
        let found = names.map(|at| world.snapshot.names().find(name(at).as_ref()).unwrap());
        let steered = found.map(|found| (found.service.is_some(), found.is_cname));
        match hostname {
            Some(_) => assert_eq!(steered, [(false, false), (true, true), (false, false)]),
            None => assert_eq!(steered, [(true, false); 3]),
        }
    }
}

/// A service that is a CNAME at some moments, for some clients.
fn sometimes(at: &str, fence: bool) -> Service {
    let hostname = Some(FallbackSpec::Hostname(name("cdn.other")));
    let policy = if fence {
        PolicySpec {
            fence_answer: hostname,
            ..PolicySpec::default()
        }
    } else {
        PolicySpec {
            fallback: hostname,
            ..PolicySpec::default()
        }
    };
    Service {
        policy: Arc::new(policy),
        ..plain("one", &[at])
    }
}

#[test]
fn rfc2181_10_1_a_fallback_host_name_stands_alone() {
    for fence in [false, true] {
        let mut world = World::new(vec![zone("z", STATIC)]);
        for (at, refused) in [
            ("free.z", None),
            ("mail.z", Some("beside static")),
            // A fallback alone is flattened there.
            ("z", fence.then_some("apex")),
        ] {
            world.apply(Change::Upsert(sometimes(at, fence)));
            let rejections = world.publish();
            assert_eq!(world.holder(at).is_some(), refused.is_none(), "{at}");
            match refused {
                None => assert_eq!(rejections, [""; 0], "{at}"),
                Some(reason) => {
                    assert_eq!(rejections.len(), 1, "{at}");
                    let start = format!(
                        "service shop/one: {at}: HostnameConflict: a fallback or fenceAnswer that is a host name"
                    );
                    assert!(rejections[0].starts_with(&start), "{}", rejections[0]);
                    assert!(rejections[0].contains(reason), "{}", rejections[0]);
                }
            }
        }
        // The other way round: records come to where the service is, and go again.
        world.apply(Change::Upsert(sometimes("free.z", fence)));
        world.publish();
        assert_eq!(world.holder("free.z").as_deref(), Some("one"));
        world.zones = Arc::new(ZoneSet::new(vec![zone(
            "z",
            &format!("{STATIC}free TXT x\n"),
        )]));
        assert_eq!(world.publish().len(), 1);
        assert_eq!(world.holder("free.z"), None);
        world.zones = Arc::new(ZoneSet::new(vec![zone("z", STATIC)]));
        assert_eq!(world.publish(), [""; 0]);
        assert_eq!(world.holder("free.z").as_deref(), Some("one"));
        // With addresses instead it may stand beside other types.
        world.apply(Change::Upsert(plain("one", &["mail.z"])));
        assert_eq!(world.publish(), [""; 0]);
        assert_eq!(world.holder("mail.z").as_deref(), Some("one"));
    }
}

/// What a parent gives away does not exist in it, though a zone far below is served.
#[test]
fn rfc1034_4_2_1_names_between_a_cut_and_a_zone_below_do_not_exist() {
    let zones = |text: &str| vec![zone("z", text), zone("t.u.s.z", "")];
    let mut world = World::new(zones("s NS ns.other.\n"));
    world.publish();
    let exists = |world: &World| ["s.z", "u.s.z", "t.u.s.z"].map(|name| world.exists(name));
    assert_eq!(exists(&world), [true, false, true]);
    // A cut right at the child's apex makes them empty non-terminals, and back.
    for (text, expected) in [
        ("t.u.s NS ns.other.\n", [true; 3]),
        ("s NS ns.other.\n", [true, false, true]),
        ("u.s NS ns.other.\n", [true; 3]),
    ] {
        world.zones = Arc::new(ZoneSet::new(zones(text)));
        world.publish();
        assert_eq!(exists(&world), expected, "{text}");
        assert_eq!(world.snapshot.names().len(), world.scratch().names().len());
    }
}

#[test]
fn nothing_from_kubernetes_hides_a_wildcard_of_the_operator() {
    let of_kubernetes = |key: &str, names: &[&str]| Service {
        origin: crate::inventory::Origin::Kubernetes,
        ..plain(key, names)
    };
    let refused = |world: &World| -> Vec<String> {
        let refused = world.snapshot.refused();
        let mut names: Vec<String> = refused.map(|refused| refused.name.to_string()).collect();
        names.sort();
        names
    };
    let zones = |text| Arc::new(ZoneSet::new(vec![zone("z", text), zone("c.z", "")]));
    let mut world = World::new(vec![zone("z", ""), zone("c.z", "")]);
    let names = ["a.b.z", "d.z", "*.e.b.z", "a.b.c.z", "b.z"];
    world.apply(Change::Upsert(of_kubernetes("k", &names)));
    assert_eq!(world.publish(), [""; 0]);
    // A configured service: it comes, its index is used by another, it is gone.
    world.apply(Change::Upsert(plain("wild", &["*.b.z"])));
    let rejections = world.publish();
    assert_eq!(rejections.len(), 2);
    assert!(rejections[0].contains("it would hide *.b.z of the operator"));
    assert_eq!(refused(&world), ["*.e.b.z", "a.b.z"]);
    assert_eq!(world.holder("d.z").as_deref(), Some("k"));
    let key = ServiceKey::new("shop", "wild").unwrap();
    world.apply(Change::Remove(key.clone()));
    world.apply(Change::Upsert(of_kubernetes("l", &["x.b.z"])));
    assert_eq!(world.publish(), [""; 0]);
    assert_eq!(refused(&world), [""; 0]);
    assert_eq!(world.holder("*.e.b.z").as_deref(), Some("k"));
    // A static one.
    world.zones = zones("* TXT static\n");
    world.publish();
    assert_eq!(refused(&world), ["*.e.b.z", "a.b.z", "b.z", "d.z", "x.b.z"]);
    assert_eq!(world.holder("a.b.c.z").as_deref(), Some("k"));
    world.zones = zones("");
    world.publish();
    assert_eq!(refused(&world), [""; 0]);
    // From nothing it is the same, whoever has the first index.
    world.apply(Change::Upsert(plain("wild", &["*.b.z"])));
    world.publish();
    assert_eq!(world.scratch().refused().count(), 3);
    assert_eq!(refused(&world).len(), 3);
}
