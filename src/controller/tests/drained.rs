//! Drains in force before anything is: what operators said counts from the first publish on, and for whoever comes later.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::last_good::Memory;
use super::super::*;
use crate::inventory::{Change, Service};
use crate::model::{
    Cluster, ClusterIndex, EndpointIndex, Intent, OperatorRecord, OperatorRecords, OperatorTarget,
    PolicySpec, PoolsBuilder, Said, ServiceKey, WallTime, Weight,
};
use crate::snapshot::{Snapshot, SnapshotCell};
use crate::steering::States;

/// One service in two clusters, `a` and `b`.
fn load() -> Load {
    let cluster = |(index, name): (u16, &str)| {
        let cluster = Cluster::named(name.parse().unwrap());
        (ClusterIndex(index), Arc::new(cluster))
    };
    let mut pools = PoolsBuilder::default();
    for (index, last) in [(0, 1), (1, 2)] {
        let address = [192, 0, 2, last].into();
        pools
            .addresses(ClusterIndex(index), Weight(1), None, &[address])
            .unwrap();
    }
    let service = Service {
        key: ServiceKey::new("shop", "web").unwrap(),
        origin: crate::inventory::Origin::default(),
        names: std::iter::empty().collect(),
        ttl: None,
        policy: Arc::new(PolicySpec::default()),
        monitor: None,
        pools: pools.build().unwrap(),
        extras: None,
    };
    Load {
        clusters: [(0, "a"), (1, "b")].map(cluster).into(),
        ..super::load(vec![service])
    }
}

/// A drain of `a`.
fn records() -> OperatorRecords {
    records_of("1")
}

/// That drain under another id.
fn records_of(id: &str) -> OperatorRecords {
    let mut records = OperatorRecords::default();
    let record = OperatorRecord {
        id: id.parse().unwrap(),
        target: OperatorTarget::Cluster("a".parse().unwrap()),
        intent: Intent::Drain,
        created: Said {
            time: WallTime(1),
            actor: "ann".into(),
            reason: "upgrade".into(),
        },
        starts: WallTime(1),
        expires: None,
        ended: None,
    };
    assert!(records.merge(record, WallTime(2)));
    records
}

/// A controller's cell and channels, and the ends that others have.
fn begin() -> (Arc<SnapshotCell>, Channels, impl Sized) {
    let (to_flips, flips) = mpsc::channel(1);
    let (monitors, of_monitors) = mpsc::channel(1);
    let channels = Channels {
        flips,
        monitors,
        workers: Workers::default(),
        journal: Journal::default(),
    };
    (Arc::default(), channels, (to_flips, of_monitors))
}

/// Which entries are drained, by cluster.
fn drained(snapshot: &Snapshot, world: &World) -> Vec<(u16, bool)> {
    let drained = |at| snapshot.usable().state(at).is_drained();
    entries(world)
        .map(|(at, cluster)| (cluster.0, drained(at)))
        .collect()
}

/// Lists the entries of endpoints, a few at most.
fn entries(world: &World) -> impl Iterator<Item = (EndpointIndex, ClusterIndex)> {
    let entries = (0..9).map(EndpointIndex);
    entries.filter_map(|at| Some((at, world.cluster_of(at)?)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_first_configuration_is_published_with_what_operators_said_before() {
    let (cell, channels, _ends) = begin();
    let before = cell.reader().load_owned().generation();
    let (controller, handle) = Controller::new(Arc::clone(&cell), channels, &Memory::default());
    let token = CancellationToken::new();
    let running = controller.with_operators(records()).run(token.clone());
    let asking = async {
        assert_eq!(handle.load(load()).await, Some(Vec::new()));
        let snapshot = cell.reader().load_owned();
        assert_eq!(snapshot.generation().0, before.0 + 1);
        let status = handle.status();
        assert_eq!(drained(&snapshot, &status.world), [(0, true), (1, false)]);
        let known = handle.drains();
        assert!(known.values().all(|own| own.in_force) && known.len() == 1);
        token.cancel();
    };
    tokio::join!(Box::pin(running), asking);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_comes_into_a_drained_cluster_is_drained_whoever_judges_it() {
    let (cell, channels, _ends) = begin();
    let (controller, handle) = Controller::new(Arc::clone(&cell), channels, &Memory::default());
    let token = CancellationToken::new();
    let running = controller.with_operators(records()).run(token.clone());
    let asking = async {
        let mut first = load();
        let late = first.services.pop().unwrap();
        assert_eq!(handle.load(first).await, Some(Vec::new()));
        // Nobody judges its endpoints, and none of its clusters had one before.
        assert!(handle.send(Command::Change(Change::Upsert(late))).await);
        let mut status = handle.watch_status();
        let shown = status
            .wait_for(|status| entries(&status.world).count() == 2)
            .await
            .map(|status| Arc::clone(&status.world))
            .unwrap();
        let snapshot = cell.reader().load_owned();
        assert_eq!(drained(&snapshot, &shown), [(0, true), (1, false)]);
        token.cancel();
    };
    tokio::join!(Box::pin(running), asking);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_annotations_drain_is_drained_and_waited_for_by_nobody() {
    for (id, waited) in [("leaving-1", 1), ("annotated-1", 0)] {
        let (cell, channels, _ends) = begin();
        let (controller, handle) = Controller::new(Arc::clone(&cell), channels, &Memory::default());
        let token = CancellationToken::new();
        let controller = controller.with_leaving(records_of(id), BTreeSet::new());
        let running = controller.run(token.clone());
        let asking = async {
            assert_eq!(handle.load(load()).await, Some(Vec::new()));
            let snapshot = cell.reader().load_owned();
            let world = &handle.status().world;
            assert_eq!(drained(&snapshot, world), [(0, true), (1, false)], "{id}");
            assert_eq!(handle.departures().len(), waited, "{id}");
            token.cancel();
        };
        tokio::join!(Box::pin(running), asking);
    }
}
