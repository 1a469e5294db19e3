//! Offers on disk: what is written is read back, and what cannot be read costs nothing else.

mod any;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::controller::command::{Command, ControllerHandle};
use crate::controller::folder::content_hash;
use crate::controller::journal::Journal;
use crate::controller::status::Status;
use crate::inventory::{
    Backing, Change, FederationRules, NameForm, NameKeys, ObjectKind, ObjectRef, PrivateAddresses,
    Readiness, Refused, ShardChange, ZoneRules,
};
use crate::model::{
    Carrier, Check, ClientSelector, Cluster, ClusterIndex, ClusterSelector, FallbackSpec,
    FenceRule, Generation, HttpCheck, MapEntry, MonitorSpec, NamedPort, Origin, StatusRange, Steer,
    TcpCheck, TlsMode, Ttl, Weight,
};

fn read<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

// === Any shard ===

proptest! {
    #[test]
    fn every_key_of_a_shard_is_read_as_it_was_written(shard in any::shard()) {
        let text = serde_json::to_string(&ShardDto::from(&shard)).unwrap();
        let dto: ShardDto = serde_json::from_str(&text).unwrap();
        let kept = Shard { backing: None, refused: Box::default(), ..shard };
        prop_assert_eq!(dto.read(), Some(kept));
    }
}

// === The file ===

fn web(address: u8) -> Shard {
    Shard {
        hosts: [read("www.g.example")].into(),
        addresses: [[192, 0, 2, address].into()].into(),
        targets: [read("lb.example.net")].into(),
        ..Shard::blank(ObjectRef::new(ObjectKind::Service, "shop", "web"))
    }
}

/// Where cluster `a` is.
fn paris() -> ClusterFacts {
    let text = r#"{"provider":"aws","region":"eu-west-3","zones":["eu-west-3a","eu-west-3b"]}"#;
    let dto: FactsDto = serde_json::from_str(text).unwrap();
    dto.read()
}

fn sample() -> Offers {
    let target = |addresses: &[&str], old: &[&str]| {
        let all = |texts: &[&str]| texts.iter().map(|text| read(text)).collect::<Vec<_>>();
        ResolvedTarget {
            addresses: all(addresses).into(),
            old: all(old).into(),
            ttl: Ttl::BRIEF,
            inside: None,
            is_gone: false,
            fault: None,
        }
    };
    Offers {
        owners: vec![(read("www.g.example"), "shop".into())],
        facts: [(read("a"), paris())].into(),
        shards: [(read("a"), vec![Arc::new(web(1))])].into(),
        targets: [
            (
                read("lb.example.net"),
                target(&["198.51.100.1", "2001:db8::1"], &[]),
            ),
            (read("old.example.net"), target(&[], &["198.51.100.2"])),
        ]
        .into(),
    }
}

fn write(last_good: &LastGood, body: &[u8]) {
    let hash = content_hash(body);
    last_good.write_named(&FILE, (&hash, body)).unwrap();
}

#[test]
fn offers_are_read_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let last_good = LastGood::at(folder.path());
    let none = (Offers::default(), 0);
    assert_eq!(Offers::read(&last_good).unwrap(), none);
    write(&last_good, &sample().to_body().unwrap());
    assert_eq!(Offers::read(&last_good).unwrap(), (sample(), 0));
    // One of before targets and places were kept.
    write(&last_good, br#"{"version":1,"owners":[],"shards":{}}"#);
    assert_eq!(Offers::read(&last_good).unwrap(), none);
}

#[test]
fn a_torn_file_is_refused_at_every_length_and_one_of_another_version_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let last_good = LastGood::at(folder.path());
    write(&last_good, &sample().to_body().unwrap());
    let path = folder.path().join("offers.json");
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(Offers::read(&last_good).is_err(), "{length}");
    }
    // Its layout is another one too.
    write(&last_good, br#"{"version":2,"offers":[]}"#);
    let error = Offers::read(&last_good).unwrap_err().to_string();
    assert!(error.ends_with("version 2 is not ours (1)"), "{error}");
}

#[test]
fn what_cannot_be_read_is_left_out_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let last_good = LastGood::at(folder.path());
    let good = r#"{"kind":"Service","namespace":"shop","name":"web","weight":1}"#;
    let body = format!(
        r#"{{"version":1,
            "owners":[["www.g.example","shop"],["a..b","shop"]],
            "shards":{{"a":[{good},{{"kind":"Gatehouse","namespace":"n","name":"m","weight":1}},
                {{"kind":"Service","namespace":"n","name":"m","weight":1,"hosts":["a..b"]}},
                {{"kind":"Service","namespace":"n","name":"m","weight":1,"ports":[["web","_dccp",80]]}},
                {{"kind":"Service","namespace":"n","name":"m","weight":1,"ports":[["a.b","_tcp",80]]}},
                {{"kind":"Service","namespace":"n","name":"m","weight":1,"keys":{{"fence":[[["Mars"],[]]]}}}}],
                "NO CLUSTER":[{good},{good}]}},
            "targets":{{"a..b":{{}},"lb.example.net":{{"addresses":["192.0.2.1"]}}}},
            "facts":{{"NO CLUSTER":{{}},"a":{{"region":"no-such-region"}}}}}}"#
    );
    write(&last_good, body.as_bytes());
    let (offers, lost) = Offers::read(&last_good).unwrap();
    assert_eq!(lost, 1 + 5 + 2 + 1 + 1);
    let facts: Vec<_> = offers.facts.values().collect();
    assert_eq!(facts.len(), 1);
    assert_eq!(facts[0].region.as_deref(), Some("no-such-region"));
    assert!(facts[0].location.is_unknown());
    assert_eq!((offers.owners.len(), offers.targets.len()), (1, 1));
    assert_eq!(offers.shards.len(), 1);
    assert_eq!(offers.shards[&read::<ClusterId>("a")].len(), 1);
}

#[test]
fn more_than_would_be_read_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let last_good = LastGood::at(folder.path());
    let body = sample().to_body().unwrap();
    write(&last_good, &body);
    let path = folder.path().join("offers.json");
    let whole = fs::read(&path).unwrap();
    let size = whole.len() as u64;
    let file = |max| NamedFile { max, ..FILE };
    let hash = content_hash(&body);
    for (max, fits) in [(size, true), (size - 1, false)] {
        let wrote = last_good.write_named(&file(max), (&hash, &body));
        assert_eq!(wrote.is_ok(), fits, "{wrote:?}");
        let read = last_good.read_named::<OffersDto>(&file(max));
        assert_eq!(read.is_ok(), fits);
    }
    assert_eq!(fs::read(&path).unwrap(), whole, "the former stays");
}

// === The keeper ===

/// A controller that only answers what it is asked, with this inventory.
struct Stand {
    folder: tempfile::TempDir,
    inventory: Inventory,
    commands: mpsc::Receiver<Command>,
    status: watch::Sender<Arc<Status>>,
    failures: Arc<AtomicU64>,
    handle: ControllerHandle,
}

impl Stand {
    fn new() -> Self {
        let (sender, commands) = mpsc::channel(1);
        let (status, watched) = watch::channel(Arc::default());
        let handle = ControllerHandle {
            commands: sender,
            status: watched,
            drains: watch::channel(Arc::default()).1,
            departures: watch::channel(Arc::default()).1,
            journal: Journal::default(),
        };
        let mut inventory = Inventory::default();
        let cluster = Cluster::named(read("a"));
        inventory.apply(Change::Clusters(vec![(ClusterIndex(0), Arc::new(cluster))]));
        Self {
            folder: tempfile::tempdir().unwrap(),
            inventory,
            commands,
            status,
            failures: Arc::default(),
            handle,
        }
    }

    fn last_good(&self) -> LastGood {
        LastGood::at(self.folder.path())
    }

    fn keeper(&self) -> OffersKeeper {
        OffersKeeper {
            last_good: self.last_good(),
            controller: self.handle.clone(),
            failures: Arc::clone(&self.failures),
            fault: crate::disk::WriteFault::default(),
        }
    }

    /// Puts another shard in.
    fn offer(&mut self, address: u8) {
        let shard = ShardChange::Upsert(Box::new(web(address)));
        self.inventory
            .apply(Change::of_cluster(ClusterIndex(0), vec![shard]));
        self.status.send_modify(|status| {
            Arc::make_mut(status).inventory = Generation(u64::from(address));
        });
    }

    /// Says where the cluster is.
    fn tell(&mut self, facts: ClusterFacts, generation: u64) {
        self.inventory.apply(Change::Facts(ClusterIndex(0), facts));
        self.status.send_modify(|status| {
            Arc::make_mut(status).inventory = Generation(generation);
        });
    }

    /// Answers the next who asks.
    async fn answer(&mut self) {
        match self.commands.recv().await {
            Some(Command::Read(read)) => read(&self.inventory),
            other => panic!("{other:?}"),
        }
    }

    fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// The address that the file has.
    fn on_disk(&self) -> Option<std::net::IpAddr> {
        // Without its lock, which the keeper has.
        let (offers, _) = Offers::read(&self.last_good()).ok()?;
        let shards = offers.shards.into_values().next()?;
        shards.first()?.addresses.first().copied()
    }
}

#[tokio::test(start_paused = true)]
async fn writes_that_fail_are_counted_and_tried_again() {
    let mut stand = Stand::new();
    stand.offer(1);
    let token = CancellationToken::new();
    // A folder where the temporary file should be.
    let hurdle = stand.path("offers.tmp");
    let keeper = stand.keeper();
    fs::create_dir(&hurdle).unwrap();
    let running = keeper.run(token.clone());
    let told = async {
        stand.answer().await;
        // Nothing changed, and it asks again.
        stand.answer().await;
        assert_eq!((stand.failures(), stand.on_disk()), (1, None));
        fs::remove_dir(&hurdle).unwrap();
        // The next question comes after a change alone, and after the write.
        stand.offer(2);
        stand.answer().await;
        assert_eq!(stand.failures(), 0);
        assert_eq!(stand.on_disk(), Some([192, 0, 2, 1].into()));
        token.cancel();
    };
    tokio::join!(running, told);
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_read_is_put_aside_once() {
    let mut stand = Stand::new();
    fs::write(stand.path("offers.json"), "of a newer version").unwrap();
    stand.offer(1);
    let token = CancellationToken::new();
    let keeper = stand.keeper();
    assert!(Offers::read(&keeper.last_good).is_err() && Offers::are_unread(&keeper.last_good));
    let running = keeper.run(token.clone());
    let told = async {
        for address in 2..5 {
            stand.answer().await;
            stand.offer(address);
        }
        token.cancel();
    };
    tokio::join!(running, told);
    assert!(stand.on_disk().is_some());
    let aside = fs::read(stand.path("offers.json.unusable")).unwrap();
    assert_eq!(aside, b"of a newer version");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_places_alone_is_written() {
    let mut stand = Stand::new();
    stand.offer(1);
    let token = CancellationToken::new();
    let keeper = stand.keeper();
    let running = keeper.run(token.clone());
    let told = async {
        stand.answer().await;
        stand.tell(paris(), 2);
        stand.answer().await;
        // Asked again: the write before is done.
        stand.tell(ClusterFacts::default(), 3);
        stand.answer().await;
        let (offers, _) = Offers::read(&stand.last_good()).unwrap();
        assert_eq!(offers.facts, [(read("a"), paris())].into());
        assert!(!paris().location.is_unknown());
        token.cancel();
    };
    tokio::join!(running, told);
}

#[test]
fn an_inventory_is_taken_as_it_is_held_before_the_next_start() {
    let mut stand = Stand::new();
    // A name is resolved for whoever may have a name.
    let zone = ZoneRules {
        apex: read("svc.example"),
        forms: vec![NameForm::ServiceNamespace],
        federation: None,
        grants: Vec::new(),
        private: PrivateAddresses::default(),
        ttl: Ttl::new(30).unwrap(),
    };
    stand
        .inventory
        .apply(Change::Rules(Arc::new(FederationRules {
            zones: vec![zone],
            ..FederationRules::default()
        })));
    stand.offer(1);
    let resolved = |addresses: &[u8]| ResolvedTarget {
        addresses: addresses
            .iter()
            .map(|at| [198, 51, 100, *at].into())
            .collect(),
        old: Box::default(),
        ttl: Ttl::new(60).unwrap(),
        inside: None,
        is_gone: false,
        fault: None,
    };
    let targets = [
        (read("lb.example.net"), resolved(&[1, 2])),
        // Nobody uses it.
        (read("other.example.net"), resolved(&[3])),
    ];
    stand
        .inventory
        .apply(Change::Targets(Arc::new(targets.into())));
    let offers = Offers::of(&stand.inventory);
    let targets: Vec<String> = offers.targets.keys().map(ToString::to_string).collect();
    assert_eq!(targets, ["lb.example.net"]);
    let target = offers.targets.values().next().unwrap();
    assert_eq!(target.addresses, resolved(&[1, 2]).addresses);
    // One of ours is kept with where it goes on outside.
    let inside = ResolvedTarget {
        inside: Some([read("other.example.net")].into()),
        fault: Some("a part of it leads in a circle".into()),
        ..resolved(&[3])
    };
    let all = [
        (read("lb.example.net"), inside),
        (read("other.example.net"), resolved(&[3])),
    ];
    stand.inventory.apply(Change::Targets(Arc::new(all.into())));
    let offers = Offers::of(&stand.inventory);
    assert_eq!(offers.targets.len(), 2);
    let dto: OffersDto = serde_json::from_slice(&offers.to_body().unwrap()).unwrap();
    let (back, lost) = Offers::from_dto(dto);
    assert_eq!((&back.targets, lost), (&offers.targets, 0));
    let kept = &back.targets[&read::<LowerName>("lb.example.net")];
    assert!(kept.fault.is_none() && kept.inside.is_some());
    // What is not known is not written.
    stand.inventory.apply(Change::Targets(Arc::default()));
    assert!(Offers::of(&stand.inventory).targets.is_empty());
}
