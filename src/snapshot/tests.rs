//! Building: right of way, sharing, and that a snapshot built step by step is the one built from nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::{Built, Inputs, Settings, Snapshot, build};
use crate::geo::{GeoDb, Override, OverridePlace};
use crate::inventory::{Change, Dirty, Inventory, Service};
use crate::model::{
    Check, Cluster, ClusterIndex, Coordinates, EndpointIndex, EndpointState, Groups, Location,
    LowerName, MonitorSpec, PolicySpec, PoolsBuilder, ServiceIndex, ServiceKey, TcpCheck, Ttl,
    Verdict, Weight,
};
use crate::steering::States;
use crate::zone::{Found, NameTree, Nameserver, SoaTimers, Zone, ZoneFile, ZoneSet, ZoneSpec};

fn name(text: &str) -> LowerName {
    text.parse().unwrap()
}

fn zone(apex: &str, text: &str) -> Arc<Zone> {
    let ttl = |seconds| Ttl::new(seconds).unwrap();
    let spec = ZoneSpec {
        apex: name(apex),
        nameservers: vec![Nameserver {
            name: name("ns.other"),
            addresses: Vec::new(),
        }],
        contact: None,
        soa: SoaTimers {
            ttl: ttl(3600),
            refresh: Duration::from_secs(3600),
            retry: Duration::from_secs(600),
            expire: Duration::from_secs(1_209_600),
        },
        ns_ttl: ttl(3600),
        ttl: ttl(30),
        negative_ttl: ttl(60),
        file: Some(ZoneFile {
            path: "/zones/test.zone".into(),
            text: format!("$TTL 300\n{text}").into_bytes().into(),
            includes: Vec::new(),
        }),
        serial: 7,
    };
    Arc::new(Zone::compile(&spec).unwrap())
}

fn clusters(cost_km: f64) -> Vec<(ClusterIndex, Arc<Cluster>)> {
    (0..4_u16)
        .map(|index| {
            let location = Location {
                coordinates: Coordinates::new(0.0, f64::from(index) * 10.0).ok(),
                ..Location::default()
            };
            let cluster = Cluster {
                id: format!("c{index}").parse().unwrap(),
                location,
                region: None,
                provider: None,
                zones: Vec::new(),
                cost_km: cost_km * f64::from(index),
            };
            (ClusterIndex(index), Arc::new(cluster))
        })
        .collect()
}

/// A service at these names; `clusters` may be empty; a `hostname` makes it a CNAME.
fn service(key: &str, names: &[&str], clusters: &[u16], hostname: Option<&str>) -> Service {
    let mut pools = PoolsBuilder::default();
    for &cluster in clusters {
        let address = IpAddr::from([192, 0, 2, cluster.to_le_bytes()[0]]);
        let cluster = ClusterIndex(cluster);
        match hostname {
            Some(_) => pools.hostname(cluster, Weight(1), None, 0).unwrap(),
            None => pools
                .addresses(cluster, Weight(1), None, &[address])
                .unwrap(),
        }
    }
    let names: Vec<LowerName> = names.iter().map(|text| name(text)).collect();
    let extras = hostname.map(|text| {
        Arc::new(crate::inventory::Extras {
            client_sets: [].into(),
            hostnames: [name(text)].into(),
        })
    });
    Service {
        key: ServiceKey::new("shop", key).unwrap(),
        names: names.iter().collect(),
        ttl: None,
        policy: Arc::default(),
        monitor: None,
        pools: pools.build().unwrap(),
        extras,
    }
}

fn plain(key: &str, names: &[&str]) -> Service {
    service(key, names, &[0, 1], None)
}

/// Everything that goes into a build, and what came out last.
struct World {
    inventory: Inventory,
    zones: Arc<ZoneSet>,
    geo: Arc<GeoDb>,
    groups: Arc<Groups>,
    settings: Arc<Settings>,
    /// All states ever set.
    states: BTreeMap<EndpointIndex, EndpointState>,
    fresh_states: Vec<(EndpointIndex, EndpointState)>,
    dirty: Dirty,
    snapshot: Snapshot,
}

impl World {
    fn new(zones: Vec<Arc<Zone>>) -> Self {
        let mut world = Self {
            inventory: Inventory::default(),
            zones: Arc::new(ZoneSet::new(zones)),
            geo: geo(0),
            groups: Arc::default(),
            settings: Arc::default(),
            states: BTreeMap::new(),
            fresh_states: Vec::new(),
            dirty: Dirty::default(),
            snapshot: Snapshot::default(),
        };
        world.apply(Change::Clusters(clusters(0.0)));
        world
    }

    fn apply(&mut self, change: Change) {
        let dirty = self.inventory.apply(change);
        for index in &dirty.unwatch {
            self.states.remove(index);
            self.fresh_states.retain(|(other, _)| other != index);
        }
        self.dirty.merge(dirty);
    }

    fn build_on(&self, states: &[(EndpointIndex, EndpointState)], last: &Snapshot) -> Built {
        let inputs = Inputs {
            inventory: &self.inventory,
            zones: &self.zones,
            geo: &self.geo,
            groups: &self.groups,
            settings: &self.settings,
            states,
        };
        build(&inputs, &self.dirty, last)
    }

    /// Builds on the last snapshot, publishes, and gives what was refused, as text.
    fn publish(&mut self) -> Vec<String> {
        let built = self.build_on(&self.fresh_states, &self.snapshot);
        self.snapshot = built.snapshot;
        self.dirty = Dirty::default();
        self.fresh_states.clear();
        self.inventory.settle();
        built.rejections.iter().map(ToString::to_string).collect()
    }

    fn scratch(&self) -> Snapshot {
        let states: Vec<_> = self.states.iter().map(|(&i, &s)| (i, s)).collect();
        self.build_on(&states, &Snapshot::default()).snapshot
    }

    /// Gives who has a name, by the last part of the key; `None`: no service.
    fn holder(&self, text: &str) -> Option<String> {
        let found = self.snapshot.names().find(name(text).as_ref())?;
        let service = self.inventory.service(found.service?)?;
        Some(service.key.name().to_owned())
    }

    fn exists(&self, text: &str) -> bool {
        self.snapshot.names().find(name(text).as_ref()).is_some()
    }
}

/// Two geo tables that differ.
fn geo(which: u8) -> Arc<GeoDb> {
    let place = Location {
        coordinates: Coordinates::new(0.0, f64::from(which) * 15.0).ok(),
        ..Location::default()
    };
    let prefix = "192.0.2.0/24".parse().unwrap();
    let place = OverridePlace::Place(place);
    let (db, faults) = GeoDb::compile(&[], &[Override { prefix, place }]);
    assert_eq!(faults, []);
    Arc::new(db)
}

// === Right of way ===

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

// === Sharing ===

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

fn monitored(key: &str, port: u16) -> Service {
    let spec = MonitorSpec {
        check: Check::Tcp(TcpCheck {
            port,
            send: [].into(),
            expect: [].into(),
        }),
        interval: Duration::from_secs(2),
        timeout: Duration::from_secs(1),
        rise: 2,
        fall: 2,
    };
    Service {
        monitor: Some(Arc::new(spec)),
        ..plain(key, &["a.z"])
    }
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

// === Step by step is as from nothing ===

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

/// Compares all that answers can show.
fn check_equal(world: &World, scratch: &Snapshot) {
    let snapshot = &world.snapshot;
    let hosts = HOSTS.map(name);
    let more = ["y", "b.y", "w", ".", "c.z", "x.z", "0.z", "mx.other"].map(name);
    for at in hosts.iter().chain(&more) {
        let found = snapshot.names().find(at.as_ref());
        assert_eq!(found, scratch.names().find(at.as_ref()), "{at}");
        assert_eq!(found, expected(world, at), "{at}");
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
