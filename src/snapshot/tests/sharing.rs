//! What a change shares with the snapshot before.

use super::*;

#[test]
fn a_new_serial_or_address_leaves_names_as_they_are() {
    let mut world = World::new(vec![zone("z", "www A 192.0.2.1\ncut NS ns.other.")]);
    world.apply(Change::Upsert(plain("a", &["a.z", "www.z"])));
    assert_eq!(world.publish().len(), 1);
    let before = world.snapshot.clone();
    let zones = vec![zone("z", "www A 192.0.2.2\ncut NS ns2.other.")];
    world.zones = Arc::new(ZoneSet::new(zones));
    assert_eq!(world.publish(), [""; 0]);
    assert!(before.names.is_shared_with(&world.snapshot.names));
    assert!(Arc::ptr_eq(&world.zones, &world.snapshot.zones));
}

#[test]
fn a_flip_shares_all_but_a_chunk_of_states() {
    let mut world = World::new(vec![zone("z", "")]);
    world.apply(Change::Upsert(monitored("a", 80)));
    world.publish();
    let before = world.snapshot.clone();
    let down = EndpointState::UP.with_verdict(Verdict::Down);
    world.fresh_states = vec![(EndpointIndex(1), down)];
    world.publish();
    let states = [0, 1].map(|index| world.snapshot.usable().state(EndpointIndex(index)));
    assert_eq!(states, [EndpointState::UP, down]);
    assert!(before.names.is_shared_with(&world.snapshot.names));
    let service =
        |snapshot: &Snapshot| std::ptr::from_ref(snapshot.service(ServiceIndex(0)).unwrap()).addr();
    assert_eq!(service(&before), service(&world.snapshot));
    assert_eq!(world.snapshot.generation(), before.generation().next());
}

#[test]
fn an_index_used_again_begins_as_up() {
    let mut world = World::new(vec![zone("z", "")]);
    world.apply(Change::Upsert(monitored("a", 80)));
    world.publish();
    let down = EndpointState::UP.with_verdict(Verdict::Down);
    world.fresh_states = vec![(EndpointIndex(0), down), (EndpointIndex(1), down)];
    world.publish();
    world.apply(Change::Upsert(monitored("a", 81)));
    world.publish();
    world.apply(Change::Upsert(monitored("a", 82)));
    assert_eq!(world.inventory.endpoint_count(), 4);
    world.publish();
    for index in 0..4 {
        let state = world.snapshot.usable().state(EndpointIndex(index));
        assert_eq!(state, EndpointState::UP, "{index}");
    }
}

#[test]
fn equal_policies_are_compiled_once_and_unused_ones_dropped() {
    let mut world = World::new(vec![zone("z", "")]);
    let with = |key: &str, answers, clusters: &[u16]| Service {
        policy: Arc::new(PolicySpec {
            answers,
            ..PolicySpec::default()
        }),
        ..service(key, &[], clusters, None)
    };
    for (key, answers, clusters) in [
        ("a", 1, &[0, 1][..]),
        ("b", 1, &[0, 1]),
        ("c", 2, &[0, 1]),
        ("d", 1, &[0, 2]),
    ] {
        world.apply(Change::Upsert(with(key, answers, clusters)));
        world.publish();
    }
    let memory = world.snapshot.memory();
    assert_eq!((memory.policies, memory.class_tables), (3, 2));
    let policy = |world: &World, index| {
        let slot = world.snapshot.service(ServiceIndex(index)).unwrap();
        slot.policy
    };
    assert_eq!(policy(&world, 0), policy(&world, 1));
    for answers in 1..32 {
        for panic in 0..10 {
            let mut service = with("d", answers, &[0, 2]);
            Arc::make_mut(&mut service.policy).panic = f64::from(panic) / 10.0;
            world.apply(Change::Upsert(service));
            world.publish();
            assert!(world.snapshot.steering(policy(&world, 3)).is_some());
        }
    }
    assert!(world.snapshot.memory().policies < 40);
    world.apply(Change::Clusters(clusters(1.0)));
    world.publish();
    assert_eq!(world.snapshot.memory().policies, 3);
    for index in 0..4 {
        assert!(world.snapshot.steering(policy(&world, index)).is_some());
    }
}

#[test]
fn classes_are_shared_by_policies_that_say_the_same_of_every_place() {
    let spec = |change: &dyn Fn(&mut PolicySpec)| {
        let mut spec = PolicySpec::default();
        change(&mut spec);
        spec
    };
    let all = || vec![ClusterSelector::Any];
    let anyone = || vec![ClientSelector::Any];
    let addresses = || FallbackSpec::Addresses(vec![[192, 0, 2, 1].into()]);
    let alike = [
        spec(&|spec| spec.answers = 1),
        spec(&|spec| spec.panic = 0.5),
        spec(&|spec| spec.fallback = Some(addresses())),
        spec(&|spec| spec.fence_answer = Some(addresses())),
    ];
    let apart = [
        spec(&|spec| spec.steer = Steer::Weighted),
        spec(&|spec| spec.tiers = vec![all()]),
        spec(&|spec| spec.weights = vec![(ClusterSelector::Any, Weight(2))]),
        spec(&|spec| spec.bias = vec![(ClusterSelector::Any, 5)]),
        spec(&|spec| {
            spec.maps = vec![MapEntry {
                clients: anyone(),
                clusters: all(),
            }];
        }),
        spec(&|spec| {
            spec.fences = vec![vec![FenceRule {
                clients: anyone(),
                clusters: all(),
            }]];
        }),
    ];
    for (others, tables) in [(&alike[..], 1), (&apart[..], 2)] {
        for other in others {
            let mut world = World::new(vec![zone("z", "")]);
            for (key, policy) in [("a", PolicySpec::default()), ("b", other.clone())] {
                let policy = Arc::new(policy);
                let service = plain(key, &[]);
                world.apply(Change::Upsert(Service { policy, ..service }));
            }
            world.publish();
            let memory = world.snapshot.memory();
            assert_eq!(
                (memory.policies, memory.class_tables),
                (2, tables),
                "{other:?}"
            );
        }
    }
}
