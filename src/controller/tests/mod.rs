//! The controller as a whole, driven through its channels.

mod drained;
mod proven;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::last_good::Memory;
use super::*;
use crate::health::{Flip, MonitorId};
use crate::inventory::{self, Change, ClusterFacts, Service};
use crate::model::{
    Check, Cluster, ClusterIndex, EndpointIndex, MonitorSpec, Origin, PolicySpec, PoolsBuilder,
    ServiceKey, Target, Verdict, Weight,
};
use crate::snapshot::SnapshotCell;
use crate::steering::States;

/// A service with one endpoint in cluster `a`.
fn service(name: &str, last: u8, monitor: Option<u16>) -> Service {
    let mut pools = PoolsBuilder::default();
    let address = [192, 0, 2, last].into();
    pools
        .addresses(ClusterIndex(0), Weight(1), None, &[address])
        .unwrap();
    Service {
        key: ServiceKey::new("shop", name).unwrap(),
        origin: inventory::Origin::default(),
        names: std::iter::empty().collect(),
        ttl: None,
        policy: Arc::new(PolicySpec::default()),
        monitor: monitor.map(spec),
        pools: pools.build().unwrap(),
        extras: None,
    }
}

fn spec(port: u16) -> Arc<MonitorSpec> {
    Arc::new(MonitorSpec::new(Check::connect(port), Origin::Operator))
}

fn load(services: Vec<Service>) -> Load {
    let cluster = Cluster::named("a".parse().unwrap());
    Load {
        clusters: vec![(ClusterIndex(0), Arc::new(cluster))],
        services,
        zones: Arc::default(),
        geo: Arc::default(),
        groups: Arc::default(),
        settings: Arc::default(),
        federation: Arc::default(),
        held: Held::default(),
    }
}

fn flip(endpoint: EndpointIndex, last: u8, verdict: Verdict) -> Vec<Flip> {
    vec![Flip {
        monitor: MonitorId(0),
        verdict,
        before: Verdict::Up,
        in_doubt: false,
        refused: None,
        endpoints: vec![endpoint],
        target: Target {
            address: ([192, 0, 2, last], 80).into(),
            spec: spec(80),
        },
        observed: true,
        reason: None,
    }]
}

/// A controller that runs, and its other ends.
struct Running {
    cell: Arc<SnapshotCell>,
    handle: ControllerHandle,
    flips: mpsc::Sender<Vec<Flip>>,
    monitors: mpsc::Receiver<MonitorChange>,
}

impl Running {
    /// Gives the one endpoint that is watched from now on.
    async fn watched(&mut self) -> EndpointIndex {
        let change = self.monitors.recv().await.unwrap();
        let [(endpoint, _)] = &change.watch[..] else {
            panic!("{change:?}");
        };
        *endpoint
    }

    /// Gives the entry of the one endpoint of a service.
    async fn entry_of(&self, name: &str) -> EndpointIndex {
        let key = ServiceKey::new("shop", name).unwrap();
        let find = move |inventory: &inventory::Inventory| {
            let service = inventory.service(inventory.find(&key)?)?;
            let pool = service.pools.iter().next()?;
            pool.v4().next().map(|endpoint| endpoint.state)
        };
        self.handle.read(find).await.flatten().unwrap()
    }

    /// Waits until an entry is Up or not.
    async fn until(&self, endpoint: EndpointIndex, is_usable: bool) {
        let mut status = self.handle.watch_status();
        let holds = |_: &Arc<Status>| self.is_usable(endpoint) == is_usable;
        let waiting = status.wait_for(holds);
        let waited = tokio::time::timeout(Duration::from_secs(10), waiting).await;
        waited.expect("a publish").expect("a controller");
    }

    fn is_usable(&self, endpoint: EndpointIndex) -> bool {
        let snapshot = self.cell.reader().load_owned();
        snapshot.usable().state(endpoint).is_usable()
    }
}

/// Runs a controller while a test speaks with it.
async fn run<F: Future<Output = ()>>(test: impl FnOnce(Running) -> F) {
    let cell = Arc::<SnapshotCell>::default();
    let (flips, received) = mpsc::channel(4);
    let (monitors, changes) = mpsc::channel(16);
    let channels = Channels {
        flips: received,
        monitors,
        workers: Workers::default(),
        journal: Journal::default(),
    };
    let (controller, handle) = Controller::new(Arc::clone(&cell), channels, &Memory::default());
    let token = CancellationToken::new();
    let running = controller.run(token.clone());
    let testing = async {
        test(Running {
            cell,
            handle,
            flips,
            monitors: changes,
        })
        .await;
        token.cancel();
    };
    tokio::join!(Box::pin(running), testing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_flip_in_flight_does_not_hit_who_took_the_entry() {
    run(async |mut all: Running| {
        all.handle
            .load(load(vec![service("old", 1, Some(80))]))
            .await;
        let freed = all.watched().await;
        all.flips.send(flip(freed, 1, Verdict::Down)).await.unwrap();
        all.until(freed, false).await;
        // It goes, and a service that nobody monitors takes its place. The prober does not know yet.
        let live = service("live", 3, Some(80));
        all.handle.load(load(vec![live.clone()])).await;
        let watched = all.watched().await;
        all.handle
            .load(load(vec![live, service("new", 2, None)]))
            .await;
        assert_eq!(all.entry_of("new").await, freed);
        assert!(all.is_usable(freed));
        all.flips.send(flip(freed, 1, Verdict::Down)).await.unwrap();
        // Flips are taken in their order: this one shows that the other was.
        all.flips
            .send(flip(watched, 3, Verdict::Down))
            .await
            .unwrap();
        all.until(watched, false).await;
        assert!(all.is_usable(freed));
        assert_eq!(all.handle.status().flips, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_flip_of_an_entry_that_goes_in_the_same_publish_leaves_nothing() {
    run(async |mut all: Running| {
        all.handle
            .load(load(vec![service("old", 1, Some(80))]))
            .await;
        let freed = all.watched().await;
        // Between two publishes the flip comes first, then the change that takes the endpoint away.
        let (flips, commands) = (all.flips.clone(), all.handle.commands.clone());
        let (told, done) = tokio::sync::oneshot::channel();
        let both = move |_: &inventory::Inventory| {
            flips.try_send(flip(freed, 1, Verdict::Down)).unwrap();
            let load = Box::new(load(Vec::new()));
            commands.try_send(Command::Load(load, told)).unwrap();
        };
        all.handle.read(both).await.unwrap();
        done.await.unwrap();
        all.handle.load(load(vec![service("new", 2, None)])).await;
        assert_eq!(all.entry_of("new").await, freed);
        assert!(all.is_usable(freed));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn places_of_before_the_start_are_known_at_the_first_publish_and_new_ones_are_told() {
    run(async |all: Running| {
        let facts = |region: &str| ClusterFacts {
            region: Some(region.into()),
            zones: vec![format!("{region}a").into()],
            ..ClusterFacts::default()
        };
        let place = async || {
            let find = |inventory: &inventory::Inventory| {
                let cluster = inventory.cluster(ClusterIndex(0)).unwrap();
                (cluster.region.clone(), cluster.zones.clone())
            };
            let (region, zones) = all.handle.read(find).await.unwrap();
            format!("{} {}", region.unwrap(), zones.join(" "))
        };
        let held = Held {
            facts: vec![(ClusterIndex(0), facts("eu-west-3"))],
            ..Held::default()
        };
        all.handle
            .load(Load {
                held,
                ..load(Vec::new())
            })
            .await;
        assert_eq!(place().await, "eu-west-3 eu-west-3a");
        // A reload keeps them, and what Nodes say now is written.
        all.handle.load(load(Vec::new())).await;
        assert_eq!(place().await, "eu-west-3 eu-west-3a");
        let mut status = all.handle.watch_status();
        let before = status.borrow_and_update().inventory;
        let change = Change::Facts(ClusterIndex(0), facts("us-east-1"));
        assert!(all.handle.send(Command::Change(change)).await);
        let waiting = status.wait_for(|status| status.inventory != before);
        let waited = tokio::time::timeout(Duration::from_secs(10), waiting).await;
        waited.expect("a publish").expect("a controller");
        assert_eq!(place().await, "us-east-1 us-east-1a");
    })
    .await;
}
