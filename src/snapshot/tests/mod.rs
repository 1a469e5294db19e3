//! Building: right of way, sharing, and that a snapshot built step by step is the one built from nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::{Built, Challenges, Inputs, Settings, Snapshot, Steered, build};
use crate::geo::{GeoDb, Override, OverridePlace};
use crate::inventory::{Change, Dirty, Inventory, Service};
use crate::model::{
    Check, ClientSelector, Cluster, ClusterIndex, ClusterSelector, Coordinates, EndpointIndex,
    EndpointState, FallbackSpec, FenceRule, Groups, Location, LowerName, MapEntry, MonitorSpec,
    Origin, PolicySpec, PoolsBuilder, ServiceIndex, ServiceKey, Steer, Verdict, Weight,
};
use crate::steering::States;
use crate::zone::testing::{name, zone};
use crate::zone::{Found, NameTree, Zone, ZoneSet};

mod hosts;
mod inside;
mod levels;
mod ports;
mod right_of_way;
mod sharing;
mod steps;

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
                tags: Vec::new(),
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
            particulars: Box::default(),
            hostnames: [name(text)].into(),
            ..crate::inventory::Extras::default()
        })
    });
    Service {
        key: ServiceKey::new("shop", key).unwrap(),
        origin: crate::inventory::Origin::default(),
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

/// A service of two endpoints that a monitor on this port judges.
fn monitored(key: &str, port: u16) -> Service {
    let spec = MonitorSpec::new(Check::connect(port), Origin::Operator);
    Service {
        monitor: Some(Arc::new(spec)),
        ..plain(key, &["a.z"])
    }
}

/// Everything that goes into a build, and what came out last.
struct World {
    inventory: Inventory,
    zones: Arc<ZoneSet>,
    geo: Arc<GeoDb>,
    groups: Arc<Groups>,
    settings: Arc<Settings>,
    challenges: Arc<Challenges>,
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
            challenges: Arc::default(),
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
            challenges: &self.challenges,
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
