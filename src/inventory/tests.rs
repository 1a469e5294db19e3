//! The inventory against a simple model, over lists of operations.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;

use super::{Change, Dirty, Inventory, Service};
use crate::model::{
    Check, Cluster, ClusterIndex, EndpointIndex, Location, LowerName, MonitorSpec, Origin,
    PolicySpec, PoolsBuilder, ServiceIndex, ServiceKey, Ttl, Weight,
};

/// A service as a test writes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Written {
    name: u8,
    hosts: Vec<u8>,
    ttl: Option<u32>,
    /// The port checked; no two allocations alike.
    monitor: Option<u16>,
    /// Cluster, last octet of the address.
    endpoints: Vec<(u16, u8)>,
    answers: u8,
}

fn written() -> impl Strategy<Value = Written> {
    (
        0..6_u8,
        prop::collection::vec(0..6_u8, 0..3),
        prop::option::of(1..3_u32),
        prop::option::of(80..82_u16),
        prop::collection::vec((0..3_u16, 0..4_u8), 0..4),
        0..3_u8,
    )
        .prop_map(|(name, hosts, ttl, monitor, endpoints, answers)| Written {
            name,
            hosts,
            ttl,
            monitor,
            endpoints,
            answers,
        })
}

fn key(name: u8) -> ServiceKey {
    ServiceKey::new("shop", &format!("svc-{name}")).unwrap()
}

fn address(last: u8) -> IpAddr {
    if last.is_multiple_of(2) {
        [192, 0, 2, last].into()
    } else {
        [0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)].into()
    }
}

fn spec(port: u16) -> MonitorSpec {
    MonitorSpec::new(Check::connect(port), Origin::Operator)
}

fn service(written: &Written) -> Service {
    let mut pools = PoolsBuilder::default();
    for &(cluster, last) in &written.endpoints {
        pools
            .addresses(ClusterIndex(cluster), Weight(1), None, &[address(last)])
            .unwrap();
    }
    let hosts: Vec<LowerName> = written
        .hosts
        .iter()
        .map(|host| format!("h{host}.example").parse().unwrap())
        .collect();
    Service {
        key: key(written.name),
        origin: crate::inventory::Origin::default(),
        names: hosts.iter().collect(),
        ttl: written.ttl.and_then(Ttl::new),
        policy: Arc::new(PolicySpec {
            answers: written.answers,
            ..PolicySpec::default()
        }),
        monitor: written.monitor.map(spec).map(Arc::new),
        pools: pools.build().unwrap(),
        extras: None,
    }
}

#[derive(Clone, Debug)]
enum Step {
    Replace(Vec<Written>),
    Upsert(Written),
    Remove(u8),
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => prop::collection::vec(written(), 0..6).prop_map(Step::Replace),
        4 => written().prop_map(Step::Upsert),
        2 => (0..6_u8).prop_map(Step::Remove),
        1 => Just(Step::Settle),
    ]
}

/// What stands for one entry of the table of states: cluster, address, port checked.
type Point = (u16, IpAddr, Option<u16>);

fn points(written: &Written) -> Vec<Point> {
    written
        .endpoints
        .iter()
        .map(|&(cluster, last)| (cluster, address(last), written.monitor))
        .collect()
}

/// The inventory beside what it must hold.
#[derive(Default)]
struct Pair {
    inventory: Inventory,
    model: BTreeMap<u8, Written>,
    /// What `watch` and `unwatch` add up to.
    watched: HashMap<EndpointIndex, Point>,
    /// Gone since the last settle.
    parked: HashSet<EndpointIndex>,
}

impl Pair {
    fn take(&mut self, step: &Step) {
        let before = self.model.clone();
        let indices: HashMap<u8, ServiceIndex> = before
            .keys()
            .map(|&name| (name, self.inventory.find(&key(name)).unwrap()))
            .collect();
        let change = match step {
            Step::Replace(all) => {
                self.model = all.iter().map(|w| (w.name, w.clone())).collect();
                Change::Replace(all.iter().map(service).collect())
            }
            Step::Upsert(one) => {
                self.model.insert(one.name, one.clone());
                Change::Upsert(service(one))
            }
            Step::Remove(name) => {
                self.model.remove(name);
                Change::Remove(key(*name))
            }
            Step::Settle => {
                self.inventory.settle();
                self.parked.clear();
                return;
            }
        };
        let dirty = self.inventory.apply(change);
        self.check_services(&before, &indices, &dirty, step);
        self.check_watch(&dirty, step);
        self.check_held();
    }

    /// Dirty says exactly what differs.
    fn check_services(
        &self,
        before: &BTreeMap<u8, Written>,
        indices: &HashMap<u8, ServiceIndex>,
        dirty: &Dirty,
        step: &Step,
    ) {
        let changed: BTreeSet<u8> = self
            .model
            .iter()
            .filter(|(name, written)| before.get(name) != Some(written))
            .map(|(&name, _)| name)
            .collect();
        let said: BTreeSet<u8> = dirty
            .services
            .iter()
            .map(|&index| self.inventory.service(index).unwrap().key.name())
            .map(|name| name.trim_start_matches("svc-").parse().unwrap())
            .collect();
        // A list that names one key twice may change it and change it back.
        let twice = matches!(step, Step::Replace(all) if all.len() > self.model.len());
        assert!(if twice {
            said.is_superset(&changed)
        } else {
            said == changed
        });
        let gone: BTreeSet<ServiceIndex> = before
            .keys()
            .filter(|name| !self.model.contains_key(name))
            .map(|name| indices[name])
            .collect();
        assert_eq!(dirty.removed.iter().copied().collect::<BTreeSet<_>>(), gone);
        for (name, old) in before {
            let renamed = self
                .model
                .get(name)
                .is_none_or(|new| new.hosts != old.hosts);
            let former = dirty
                .former
                .iter()
                .find(|former| former.rank.1 == key(*name));
            assert!(twice || former.is_some() == renamed);
            if let Some(former) = former {
                assert_eq!(
                    (former.index, &former.names),
                    (indices[name], &service(old).names)
                );
            }
        }
    }

    /// What is watched is what the services name, and no index has two meanings between two settles.
    fn check_watch(&mut self, dirty: &Dirty, step: &Step) {
        for (index, target) in &dirty.watch {
            assert!(
                !self.parked.contains(index),
                "{index} is used again too early"
            );
            let (cluster, address, spec) = self.inventory.endpoint(*index).unwrap();
            assert_eq!((target.address.ip(), Some(&target.spec)), (address, spec));
            let point = (cluster.0, address, Some(target.address.port()));
            assert_eq!(self.watched.insert(*index, point), None);
        }
        for index in &dirty.unwatch {
            // A list that names one key twice may take up an endpoint and drop it at once.
            let was_watched = self.watched.remove(index).is_some();
            assert!(was_watched || matches!(step, Step::Replace(_)));
            assert!(self.parked.insert(*index));
        }
        let needed: HashSet<Point> = self
            .model
            .values()
            .filter(|written| written.monitor.is_some())
            .flat_map(points)
            .collect();
        assert_eq!(
            self.watched.values().copied().collect::<HashSet<_>>(),
            needed
        );
        assert_eq!(self.watched.len(), needed.len());
    }

    /// Every service is as written, and equal points have equal states.
    fn check_held(&self) {
        let held: BTreeSet<String> = self
            .inventory
            .services()
            .map(|(_, service)| service.key.to_string())
            .collect();
        let names: BTreeSet<String> = self
            .model
            .keys()
            .map(|&name| key(name).to_string())
            .collect();
        assert_eq!(held, names);
        let mut states: HashMap<Point, EndpointIndex> = HashMap::new();
        for written in self.model.values() {
            let index = self.inventory.find(&key(written.name)).unwrap();
            let held = self.inventory.service(index).unwrap();
            assert!(held.is_same(&service(written)));
            for pool in held.pools.iter() {
                for endpoint in pool.v4().chain(pool.v6()) {
                    assert!(endpoint.state.get() < self.inventory.endpoint_count());
                    let mut point = (endpoint.cluster.0, endpoint.address, written.monitor);
                    if point.2.is_none() {
                        point.1 = IpAddr::from([0; 4]);
                    } else {
                        assert_eq!(self.watched.get(&endpoint.state), Some(&point));
                    }
                    assert_eq!(
                        *states.entry(point).or_insert(endpoint.state),
                        endpoint.state
                    );
                }
            }
        }
        let distinct: HashSet<EndpointIndex> = states.values().copied().collect();
        assert_eq!(distinct.len(), states.len());
    }
}

proptest! {
    #[test]
    fn the_inventory_agrees_with_a_map(steps in prop::collection::vec(step(), 0..60)) {
        let mut pair = Pair::default();
        for step in &steps {
            pair.take(step);
        }
        let all: Vec<Service> = pair.model.values().map(service).collect();
        prop_assert!(pair.inventory.apply(Change::Replace(all)).is_empty());
    }
}

fn plain(name: u8, monitor: Option<u16>, endpoints: &[(u16, u8)]) -> Written {
    Written {
        name,
        hosts: vec![name],
        ttl: None,
        monitor,
        endpoints: endpoints.to_vec(),
        answers: 0,
    }
}

#[test]
fn an_ingress_shared_by_many_is_one_entry() {
    let mut inventory = Inventory::default();
    let mut watched = 0;
    for name in 0..200 {
        let dirty = inventory.apply(Change::Upsert(service(&plain(name, Some(80), &[(0, 2)]))));
        watched += dirty.watch.len();
    }
    assert_eq!((watched, inventory.endpoint_count()), (1, 1));
    for name in 0..199 {
        let dirty = inventory.apply(Change::Remove(key(name)));
        assert_eq!(dirty.unwatch, []);
    }
    let dirty = inventory.apply(Change::Remove(key(199)));
    assert_eq!(dirty.unwatch, [EndpointIndex(0)]);
}

#[test]
fn unmonitored_endpoints_cost_one_entry_a_cluster() {
    let mut inventory = Inventory::default();
    for name in 0..200 {
        let endpoints = [(0, name), (1, name), (2, name)];
        let dirty = inventory.apply(Change::Upsert(service(&plain(name, None, &endpoints))));
        assert_eq!(dirty.watch, []);
    }
    assert_eq!(inventory.endpoint_count(), 3);
}

#[test]
fn an_endpoint_that_moves_to_another_service_goes_on_being_watched() {
    let mut inventory = Inventory::default();
    let first = [
        service(&plain(1, Some(80), &[(0, 2)])),
        service(&plain(2, Some(80), &[])),
    ];
    inventory.apply(Change::Replace(first.into()));
    let second = [
        service(&plain(1, Some(80), &[])),
        service(&plain(2, Some(80), &[(0, 2)])),
    ];
    let dirty = inventory.apply(Change::Replace(second.into()));
    assert_eq!((dirty.watch, dirty.unwatch), (vec![], vec![]));
    assert_eq!(dirty.services.len(), 2);
}

#[test]
fn states_are_written_in_place() {
    let mut inventory = Inventory::default();
    let service = service(&plain(1, Some(80), &[(0, 2)]));
    let octets = service.pools.as_bytes().as_ptr().addr();
    inventory.apply(Change::Upsert(service));
    let held = inventory.service(ServiceIndex(0)).unwrap();
    assert_eq!(held.pools.as_bytes().as_ptr().addr(), octets);
}

#[test]
fn clusters_are_compared_with_what_is_held() {
    let cluster = |name: &str, cost_km| {
        Arc::new(Cluster {
            id: name.parse().unwrap(),
            location: Location::default(),
            region: None,
            provider: None,
            zones: Vec::new(),
            tags: Vec::new(),
            cost_km,
        })
    };
    let list = |cost| {
        vec![
            (ClusterIndex(3), cluster("a", cost)),
            (ClusterIndex(1), cluster("b", 0.0)),
        ]
    };
    let mut inventory = Inventory::default();
    for (clusters, changed) in [
        (list(0.0), true),
        (list(0.0), false),
        (list(1.0), true),
        (list(1.0)[..1].to_vec(), true),
        (vec![], true),
        (vec![], false),
    ] {
        let count = clusters.len();
        let dirty = inventory.apply(Change::Clusters(clusters));
        assert_eq!((dirty.clusters, dirty.is_empty()), (changed, !changed));
        assert_eq!(inventory.clusters().count(), count);
    }
    assert_eq!(inventory.cluster(ClusterIndex(3)), None);
}

#[test]
fn merged_changes_name_the_last_meaning_of_an_endpoint() {
    let mut inventory = Inventory::default();
    let mut merged = Dirty::default();
    for written in [
        plain(1, Some(80), &[(0, 2), (0, 3)]),
        plain(1, Some(80), &[(0, 3)]),
        plain(1, Some(81), &[(0, 3)]),
    ] {
        merged.merge(inventory.apply(Change::Upsert(service(&written))));
    }
    let watched: Vec<u16> = merged
        .watch
        .iter()
        .map(|(_, target)| target.address.port())
        .collect();
    assert_eq!(watched, [81]);
    assert_eq!(merged.unwatch.len(), 2);
    assert_eq!(merged.services, [ServiceIndex(0); 3]);
}
