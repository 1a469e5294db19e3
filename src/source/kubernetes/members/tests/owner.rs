//! The owner of a world: how soon it tells what changed, and how often.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize as _;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::super::clock::Clock;
use super::super::member::{EVENTS, Member, Settings};
use super::super::owner::Owner;
use super::super::roster::Update;
use super::super::status::Board;
use super::api::object;
use crate::inventory::ShardChange;
use crate::model::{ClusterIndex, Weight};
use crate::source::kubernetes::object::Object;
use crate::source::kubernetes::read::read;
use crate::source::kubernetes::records::{Event, Key, NodeRecord, Record, Watched};
use crate::source::kubernetes::rules::{Access, MemberConfig, Rules};
use crate::source::kubernetes::world::World;

/// Paused time goes on by itself where nothing else happens: this is no wait.
const DEADLINE: Duration = Duration::from_secs(10);

/// An owner that runs.
struct Owned {
    events: mpsc::Sender<(Watched, Event)>,
    updates: mpsc::Receiver<Update>,
    settings: watch::Sender<Settings>,
    weight: watch::Sender<Weight>,
    _tasks: JoinSet<()>,
}

fn own() -> Owned {
    let id = "here".parse().unwrap();
    let config = MemberConfig::new(ClusterIndex(5), id, Access::InCluster);
    let rules = Arc::<Rules>::default();
    let world = World::new(rules.clone(), Vec::new());
    let board = Board::new(&config, world.overview(), Arc::default());
    let settings = watch::Sender::new(Settings {
        rules,
        stale_after: Duration::from_secs(15),
        write_back: None,
    });
    let member = Member::new(Arc::new(board), Clock::start(), settings.subscribe(), 1);
    let (events, receiver) = mpsc::channel(EVENTS);
    let (sender, updates) = mpsc::channel(EVENTS);
    let weight = watch::Sender::new(Weight::default());
    let owner = Owner {
        cluster: config.cluster,
        world,
        events: receiver,
        updates: sender,
        weight: weight.subscribe(),
        member: Arc::new(member),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(owner.run());
    Owned {
        events,
        updates,
        settings,
        weight,
        _tasks: tasks,
    }
}

impl Owned {
    async fn see(&self, event: Event) {
        self.events.send((Watched::Services, event)).await.unwrap();
    }

    async fn see_node(&self, event: Event) {
        self.events.send((Watched::Nodes, event)).await.unwrap();
    }

    /// Lets every list be complete and empty, but for that of Services.
    async fn read_others(&self) {
        for watched in Watched::ALL {
            if ![Watched::Services, Watched::Nodes].contains(&watched) {
                let event = (watched, Event::Unserved);
                self.events.send(event).await.unwrap();
            }
        }
    }

    async fn see_service(&self, name: &str) {
        let object = object("services", name, 1);
        let event = read(Watched::Services, &Object::deserialize(object).unwrap()).unwrap();
        self.see(event).await;
    }

    /// Waits for the next update, and gives the names that are new or gone.
    async fn told(&mut self) -> Vec<String> {
        let told = timeout(DEADLINE, self.updates.recv()).await;
        let Ok(Some(Update::Shards { cluster, changes })) = told else {
            panic!("nothing is told of shards: {told:?}");
        };
        assert_eq!(cluster, ClusterIndex(5));
        let name = |change: &ShardChange| match change {
            ShardChange::Upsert(shard) => shard.object.name.to_string(),
            ShardChange::Remove(object) => format!("-{}", object.name),
            ShardChange::Clear => "clear".to_owned(),
        };
        changes.iter().map(name).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_change_is_told_at_once_and_a_burst_in_a_few_batches() {
    let mut owned = own();
    owned.read_others().await;
    sleep(Duration::from_secs(1)).await;
    owned.see(Event::Listing).await;
    owned.see(Event::Listed).await;
    sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    owned.see_service("web").await;
    assert_eq!(owned.told().await, ["web"]);
    assert!(
        begun.elapsed() <= Duration::from_millis(1),
        "{:?}",
        begun.elapsed()
    );

    // A millisecond between any two of a hundred.
    let events = owned.events.clone();
    let begun = Instant::now();
    let mut moments = Vec::new();
    let mut names = Vec::new();
    let mut bursting = JoinSet::new();
    bursting.spawn(async move {
        for number in 0..100 {
            let object = object("services", &format!("s{number:02}"), 1);
            let object = Object::deserialize(object).unwrap();
            let event = read(Watched::Services, &object).unwrap();
            events.send((Watched::Services, event)).await.unwrap();
            sleep(Duration::from_millis(1)).await;
        }
    });
    while names.len() < 100 {
        names.extend(owned.told().await);
        moments.push(begun.elapsed());
    }
    for two in moments.windows(2) {
        assert!(two[1] - two[0] >= Duration::from_millis(5), "{moments:?}");
    }
    assert!((15..=21).contains(&moments.len()), "{moments:?}");
    assert!(*moments.last().unwrap() <= Duration::from_millis(110));
}

#[tokio::test(start_paused = true)]
async fn the_first_lists_are_told_in_one_piece() {
    let mut owned = own();
    let begun = Instant::now();
    owned.see(Event::Listing).await;
    for name in ["a", "b", "c"] {
        owned.see_service(name).await;
        sleep(Duration::from_millis(200)).await;
    }
    owned.see(Event::Listed).await;
    sleep(Duration::from_millis(200)).await;
    owned.read_others().await;
    assert_eq!(owned.told().await, ["a", "b", "c"]);
    assert!(begun.elapsed() <= Duration::from_millis(801));
    // From then on all is told at once.
    let begun = Instant::now();
    owned.see_service("d").await;
    assert_eq!(owned.told().await, ["d"]);
    assert!(begun.elapsed() <= Duration::from_millis(6));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_come_holds_up_no_other_for_long() {
    let mut owned = own();
    owned.see(Event::Listing).await;
    owned.see_service("web").await;
    owned.see(Event::Listed).await;
    let begun = Instant::now();
    assert_eq!(owned.told().await, ["web"]);
    let took = begun.elapsed();
    assert!(took <= Duration::from_millis(251), "{took:?}");

    // Nor does a cluster that says something all the time.
    let mut owned = own();
    let events = owned.events.clone();
    owned.see(Event::Listing).await;
    owned.see_service("web").await;
    owned.see(Event::Listed).await;
    let begun = Instant::now();
    let mut talking = JoinSet::new();
    talking.spawn(async move {
        loop {
            events.send((Watched::Nodes, Event::Listing)).await.unwrap();
            sleep(Duration::from_millis(100)).await;
        }
    });
    assert_eq!(owned.told().await, ["web"]);
    let took = begun.elapsed();
    assert!(took <= Duration::from_millis(5001), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn where_a_cluster_is_is_told_at_once_and_then_every_few_seconds() {
    let mut owned = own();
    owned.read_others().await;
    owned.see(Event::Listing).await;
    owned.see(Event::Listed).await;
    let applied = |zone: &str| {
        let record = Record::Node(NodeRecord {
            provider: None,
            region: Some("r".into()),
            zone: Some(zone.into()),
        });
        let key = Key {
            namespace: "".into(),
            name: "n".into(),
        };
        Event::Applied(key, Box::new(record))
    };
    owned.see_node(Event::Listing).await;
    owned.see_node(applied("first")).await;
    owned.see_node(Event::Listed).await;
    let begun = Instant::now();
    let told = async |owned: &mut Owned| {
        let told = timeout(DEADLINE * 2, owned.updates.recv()).await;
        let Ok(Some(Update::Facts { facts, .. })) = told else {
            panic!("nothing is told of the place: {told:?}");
        };
        (begun.elapsed(), facts.zones[0].to_string())
    };
    let (at, zone) = told(&mut owned).await;
    assert!(at <= Duration::from_millis(5), "{at:?}");
    assert_eq!(zone, "first");
    // A label that somebody turns for ever: each turn is as much work as a new cluster.
    let events = owned.events.clone();
    let turns = (0..200).map(|turn| applied(&format!("z{turn}")));
    let turns: Vec<Event> = turns.collect();
    let mut turning = JoinSet::new();
    turning.spawn(async move {
        for event in turns {
            events.send((Watched::Nodes, event)).await.unwrap();
            sleep(Duration::from_millis(100)).await;
        }
    });
    let mut last = at;
    loop {
        let (at, zone) = told(&mut owned).await;
        assert!(at - last >= Duration::from_secs(5), "{last:?} {at:?}");
        last = at;
        if zone == "z199" {
            break;
        }
    }
    // Nor does it hold up what is served.
    assert!(last <= Duration::from_secs(26), "{last:?}");
    owned.see_node(applied("then")).await;
    owned.see(Event::Listing).await;
    owned.see_service("web").await;
    owned.see(Event::Listed).await;
    let before = Instant::now();
    assert_eq!(owned.told().await, ["web"]);
    assert!(before.elapsed() <= Duration::from_millis(5));
    assert_eq!(told(&mut owned).await.1, "then");
}

#[tokio::test(start_paused = true)]
async fn other_rules_reach_the_world() {
    let mut owned = own();
    owned.read_others().await;
    owned.see(Event::Listing).await;
    owned.see_service("web").await;
    owned.see(Event::Listed).await;
    assert_eq!(owned.told().await, ["web"]);
    let rules = Rules {
        class: "other".into(),
        ..Rules::default()
    };
    owned
        .settings
        .send_modify(|settings| settings.rules = Arc::new(rules));
    assert_eq!(owned.told().await, ["-web"]);
}

#[tokio::test(start_paused = true)]
async fn a_weight_of_the_cluster_multiplies_those_of_its_objects() {
    let mut owned = own();
    owned.read_others().await;
    owned.see(Event::Listing).await;
    owned.see_service("web").await;
    owned.see(Event::Listed).await;
    let weight = async |owned: &mut Owned| {
        let told = timeout(DEADLINE, owned.updates.recv()).await;
        let Ok(Some(Update::Shards { changes, .. })) = told else {
            panic!("nothing is told of shards: {told:?}");
        };
        let [ShardChange::Upsert(shard)] = &*changes else {
            panic!("{changes:?}");
        };
        shard.weight
    };
    assert_eq!(weight(&mut owned).await, Weight(1));
    owned.weight.send_replace(Weight(7));
    assert_eq!(weight(&mut owned).await, Weight(7));
    owned.weight.send_replace(Weight(0));
    assert_eq!(weight(&mut owned).await, Weight(0));
    assert_eq!(Weight(60_000).times(Weight(2)), Weight(u16::MAX));
}
