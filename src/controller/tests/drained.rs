//! Drains in force before anything is: what operators said counts from the first publish on, and for whoever comes later.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::command::Held;
use super::super::last_good::Memory;
use super::super::*;
use crate::inventory::{Change, Service};
use crate::model::{
    Cluster, ClusterIndex, EndpointIndex, Intent, OperatorRecord, OperatorRecords, OperatorTarget,
    PolicySpec, PoolsBuilder, Said, ServiceKey, WallTime, Weight,
};
use crate::snapshot::SnapshotCell;
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
        services: vec![service],
        zones: Arc::default(),
        geo: Arc::default(),
        groups: Arc::default(),
        settings: Arc::default(),
        federation: Arc::default(),
        held: Held::default(),
    }
}

/// A drain of `a`.
fn records() -> OperatorRecords {
    let mut records = OperatorRecords::default();
    let record = OperatorRecord {
        id: "1".parse().unwrap(),
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

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_first_configuration_is_published_with_what_operators_said_before() {
    let cell = Arc::<SnapshotCell>::default();
    let (_flips, flips) = mpsc::channel(1);
    let (monitors, _monitors) = mpsc::channel(1);
    let channels = Channels {
        flips,
        monitors,
        workers: Workers::default(),
        journal: Journal::default(),
    };
    let before = cell.reader().load_owned().generation();
    let (controller, handle) = Controller::new(Arc::clone(&cell), channels, &Memory::default());
    let token = CancellationToken::new();
    let running = controller.with_operators(records()).run(token.clone());
    let asking = async {
        assert_eq!(handle.load(load()).await, Some(Vec::new()));
        let snapshot = cell.reader().load_owned();
        assert_eq!(snapshot.generation().0, before.0 + 1);
        let status = handle.status();
        let clusters = status.world.endpoint_clusters.iter().flatten();
        let drained: Vec<(u16, bool)> = (0..)
            .map(EndpointIndex)
            .zip(clusters)
            .map(|(at, cluster)| (cluster.0, snapshot.usable().state(at).is_drained()))
            .collect();
        assert_eq!(drained, [(0, true), (1, false)]);
        let known = handle.drains();
        assert!(known.values().all(|own| own.in_force) && known.len() == 1);
        token.cancel();
    };
    tokio::join!(Box::pin(running), asking);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_comes_into_a_drained_cluster_is_drained_whoever_judges_it() {
    let cell = Arc::<SnapshotCell>::default();
    let (_flips, flips) = mpsc::channel(1);
    let (monitors, _monitors) = mpsc::channel(1);
    let channels = Channels {
        flips,
        monitors,
        workers: Workers::default(),
        journal: Journal::default(),
    };
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
            .wait_for(|status| status.world.endpoint_clusters.iter().flatten().count() == 2)
            .await
            .map(|status| status.world.endpoint_clusters.clone())
            .unwrap();
        let snapshot = cell.reader().load_owned();
        let drained: Vec<(u16, bool)> = (0..)
            .map(EndpointIndex)
            .zip(shown.iter().flatten())
            .map(|(at, cluster)| (cluster.0, snapshot.usable().state(at).is_drained()))
            .collect();
        assert_eq!(drained, [(0, true), (1, false)]);
        token.cancel();
    };
    tokio::join!(Box::pin(running), asking);
}
