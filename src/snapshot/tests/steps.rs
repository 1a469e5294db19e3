//! A snapshot built step by step is the one built from nothing, and what the rules say.

use proptest::prelude::*;

use super::*;

const HOSTS: [&str; 10] = [
    "z", "a.z", "b.z", "a.b.z", "*.b.z", "x.a.b.z", "*.z", "a.y", "q.w", "cut.z",
];

#[derive(Clone, Debug)]
enum Step {
    Upsert(u8, Vec<usize>, Vec<u16>, bool, u8),
    Remove(u8),
    Keep(BTreeSet<u8>),
    Zones(usize),
    Geo(u8),
    Clusters(u8),
    State(u32, bool),
    Publish,
}

fn step() -> impl Strategy<Value = Step> {
    let upsert = (
        0..5_u8,
        prop::collection::vec(0..HOSTS.len(), 0..4),
        prop::collection::btree_set(0..4_u16, 0..3),
        prop::bool::weighted(0.2),
        0..3_u8,
    );
    prop_oneof![
        6 => upsert.prop_map(|(key, names, clusters, is_cname, answers)| {
            Step::Upsert(key, names, clusters.into_iter().collect(), is_cname, answers)
        }),
        2 => (0..5_u8).prop_map(Step::Remove),
        1 => prop::collection::btree_set(0..5_u8, 0..5).prop_map(Step::Keep),
        2 => (0..7_usize).prop_map(Step::Zones),
        1 => (0..2_u8).prop_map(Step::Geo),
        1 => (0..2_u8).prop_map(Step::Clusters),
        2 => (0..6_u32, any::<bool>()).prop_map(|(index, down)| Step::State(index, down)),
        4 => Just(Step::Publish),
    ]
}

/// Sets of zones to change between: records alone, and which zones there are.
fn zone_sets() -> Vec<Arc<ZoneSet>> {
    let y = zone("y", "");
    let records = [
        "",
        "a A 192.0.2.1\nb MX 1 mx.other.",
        "a TXT x\na MX 1 mx.other.\n0 A 192.0.2.1",
        "cut NS ns.other.\nb DNAME other.",
        "0 A 192.0.2.1\ncut NS ns.other.",
    ];
    let mut sets = records
        .map(|text| vec![zone("z", text), Arc::clone(&y)])
        .to_vec();
    sets.push(vec![Arc::clone(&y), zone("z", "a MX 1 mx.other.")]);
    sets.push(vec![zone("z", ""), y, zone("b.z", "x.a CNAME other.")]);
    sets.into_iter()
        .map(|zones| Arc::new(ZoneSet::new(zones)))
        .collect()
}

fn take(world: &mut World, step: &Step, zones: &[Arc<ZoneSet>]) {
    match step {
        Step::Upsert(key, hosts, clusters, is_cname, answers) => {
            let hosts: Vec<&str> = hosts.iter().map(|&at| HOSTS[at]).collect();
            let hostname = is_cname.then_some("lb.other");
            let mut service = service(&key.to_string(), &hosts, clusters, hostname);
            service.policy = Arc::new(PolicySpec {
                answers: *answers,
                ..PolicySpec::default()
            });
            service.monitor = monitored("m", 80).monitor.filter(|_| answers % 2 == 0);
            world.apply(Change::Upsert(service));
        }
        Step::Remove(key) => {
            let key = ServiceKey::new("shop", &key.to_string()).unwrap();
            world.apply(Change::Remove(key));
        }
        Step::Keep(keys) => {
            let all = world.inventory.services().map(|(_, service)| service);
            let kept = all.filter(|s| keys.contains(&s.key.name().parse().unwrap()));
            let kept = kept.cloned().collect();
            world.apply(Change::Replace(kept));
        }
        Step::Zones(at) => world.zones = Arc::clone(&zones[*at]),
        Step::Geo(which) => world.geo = geo(*which),
        Step::Clusters(cost) => world.apply(Change::Clusters(clusters(f64::from(*cost)))),
        Step::State(index, down) => {
            let index = EndpointIndex(*index);
            if world.inventory.endpoint(index).is_some() {
                let verdict = if *down { Verdict::Down } else { Verdict::Up };
                let state = EndpointState::UP.with_verdict(verdict);
                world.fresh_states.push((index, state));
                world.states.insert(index, state);
            }
        }
        Step::Publish => {
            world.publish();
        }
    }
}

/// Says who must have a name, straight from the rules.
fn rightful(world: &World, at: &LowerName) -> Option<(ServiceIndex, bool)> {
    let index = world.zones.find(at.as_ref())?;
    let zone = world.zones.get(index)?;
    let is_apex = zone.apex() == at;
    let has_node = zone.names().any(|(name, _)| name == at.as_ref());
    if zone.conflict(at.as_ref()).is_some() {
        return None;
    }
    world
        .inventory
        .services()
        .filter(|(_, service)| service.names.iter().any(|name| name == at.as_ref()))
        .filter(|(_, service)| !(service.is_cname() && (is_apex || has_node)))
        .min_by_key(|(_, service)| service.key.clone())
        .map(|(index, service)| (index, service.is_cname()))
}

/// Says all that a lookup of a name must find, straight from the rules.
fn expected(world: &World, at: &LowerName) -> Option<Found> {
    let index = world.zones.find(at.as_ref())?;
    let zone = world.zones.get(index)?;
    let node = zone.names().find(|(name, _)| *name == at.as_ref());
    let service = rightful(world, at);
    let is_below = |name: &LowerName| name.as_ref().is_at_or_below(at.as_ref());
    let statics = world.zones.iter().flat_map(|(_, zone)| zone.names());
    let exists = statics
        .map(|(name, _)| name.to_lower())
        .any(|name| is_below(&name))
        || HOSTS
            .map(name)
            .iter()
            .any(|host| is_below(host) && rightful(world, host).is_some());
    exists.then(|| Found {
        zone: index,
        node: node.map(|(_, node)| node),
        service: service.map(|(index, _)| index),
        is_cname: service.is_some_and(|(_, is_cname)| is_cname),
    })
}

/// Gives what stands beside a name of its service.
fn beside(snapshot: &Snapshot, name: &LowerName) -> Option<Steered> {
    let names = snapshot.names();
    let hash = names.hash(name.as_ref());
    let candidate = names.candidate(hash, name.as_wire().len());
    let (_, steered) = names.confirm(hash, candidate, name.as_ref())?;
    steered.cloned()
}

/// Compares all that answers can show.
fn check_equal(world: &World, scratch: &Snapshot) {
    let snapshot = &world.snapshot;
    let hosts = HOSTS.map(name);
    let more = ["y", "b.y", "w", ".", "c.z", "x.z", "0.z", "mx.other"].map(name);
    for at in hosts.iter().chain(&more) {
        let found = snapshot.names().find(at.as_ref());
        assert_eq!(found, scratch.names().find(at.as_ref()), "{at}");
        assert_eq!(found, expected(world, at), "{at}");
        assert_eq!(
            beside(snapshot, at),
            found.and_then(|found| snapshot.services.steered(found.service?)),
            "{at}"
        );
    }
    assert_eq!(snapshot.names().len(), scratch.names().len());
    assert_eq!(
        snapshot.services().count(),
        world.inventory.services().count()
    );
    for (index, service) in world.inventory.services() {
        let slots = [snapshot, scratch].map(|snapshot| {
            let slot = snapshot.service(index).unwrap();
            let steering = snapshot.steering(slot.policy).unwrap();
            (
                &slot.pools,
                slot.ttl,
                &slot.extras,
                format!("{:?}", steering.policy),
            )
        });
        assert_eq!(slots[0], slots[1]);
        assert_eq!(slots[0].0, &service.pools);
    }
    let refused = [snapshot, scratch].map(|snapshot| {
        let all = snapshot.refused();
        all.map(|r| (r.service, r.name.clone(), r.reason.into_owned()))
            .collect::<BTreeSet<_>>()
    });
    assert_eq!(refused[0], refused[1]);
    for index in (0..8).map(EndpointIndex) {
        assert_eq!(
            snapshot.usable().state(index),
            scratch.usable().state(index)
        );
    }
    for index in (0..5).map(ClusterIndex) {
        assert_eq!(snapshot.cluster(index), world.inventory.cluster(index));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn built_in_steps_is_as_built_at_once(steps in prop::collection::vec(step(), 0..40)) {
        let zones = zone_sets();
        let mut world = World::new(vec![]);
        world.zones = Arc::clone(&zones[0]);
        for step in &steps {
            take(&mut world, step, &zones);
            if matches!(step, Step::Publish) {
                check_equal(&world, &world.scratch());
            }
        }
        world.publish();
        check_equal(&world, &world.scratch());
    }
}
