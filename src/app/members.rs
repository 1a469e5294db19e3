//! Member clusters: what they say goes to the controller, what load balancers are called to the resolver, and what stands is
//! kept on disk.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::ages::Aging;
use super::output::in_one;
use super::targets::Following;
use crate::admin::Events;
use crate::config::{Config, ZoneSource};
use crate::controller::{Command, ControllerHandle, Held, LastGood, Offers, OffersKeeper};
use crate::inventory::{Change, ResolvedTarget, Shard};
use crate::lifecycle::Supervisor;
use crate::model::{ClusterId, LowerName};
use crate::resolving::{RememberedTarget, Targets, TargetsConfig, TargetsHandle};
use crate::snapshot::SnapshotReader;
use crate::source::kubernetes::{self, Link, MemberStatus, Members, MembersHandle, Update};

/// Updates of members on their way to the controller.
const UPDATES: usize = 256;

/// Where reloads go that concern member clusters.
#[derive(Clone, Debug)]
pub(super) struct Outside {
    pub(super) members: MembersHandle,
    targets: TargetsHandle,
    /// Something is to be said in members.
    writes_back: Arc<watch::Sender<bool>>,
    max_age: Arc<watch::Sender<Duration>>,
}

/// What the outside begins with.
pub(super) struct Beginning {
    kubernetes: kubernetes::Config,
    resolver: TargetsConfig,
    /// What stood before the start.
    offers: Offers,
    /// How long ago its clusters were seen.
    aging: Aging,
    /// Where it is kept.
    last_good: Option<LastGood>,
}

impl Beginning {
    /// Takes what a configuration says, and what stood before the start.
    pub(super) fn of(config: &Config, offers: Offers, last_good: Option<LastGood>) -> Self {
        Self {
            kubernetes: config.kubernetes.clone(),
            resolver: config.resolver.clone(),
            offers,
            aging: Aging::recall(last_good.clone()),
            last_good,
        }
    }

    /// Gives what is held of the clusters that are still members.
    pub(super) fn held(&mut self) -> Held {
        let kubernetes = &self.kubernetes;
        let aged = self.aging.begin(&kubernetes.members, kubernetes.max_age);
        let members = self.kubernetes.members.iter();
        let shards = members.filter_map(|member| {
            let shards = self.offers.shards.get(&member.id)?;
            let shards = shards.iter().map(|shard| Shard::clone(shard));
            Some((member.cluster, shards.collect()))
        });
        let facts = kubernetes.members.iter().filter_map(|member| {
            let facts = self.offers.facts.get(&member.id)?;
            Some((member.cluster, facts.clone()))
        });
        Held {
            owners: self.offers.owners.clone(),
            facts: facts.collect(),
            shards: shards.collect(),
            aged,
        }
    }

    /// Gives where load balancers were that are host names. It goes to the controller before what is held, so that no answer goes
    /// out without it; the resolver's table takes its place.
    pub(super) fn targets(&self) -> Change {
        let targets = self.offers.targets.iter();
        let targets = targets.map(|(name, target)| (name.clone(), target.clone()));
        Change::Targets(Arc::new(targets.collect()))
    }
}

/// Gives what the resolver begins with.
fn remembered(
    targets: &BTreeMap<LowerName, ResolvedTarget>,
) -> HashMap<LowerName, RememberedTarget> {
    let remembered = |target: &ResolvedTarget| RememberedTarget {
        addresses: target.addresses.clone(),
        old: target.old.clone(),
    };
    let targets = targets.iter();
    targets
        .map(|(name, target)| (name.clone(), remembered(target)))
        .collect()
}

/// Reads what stood before the start. What cannot be read is reported and done without.
pub(super) fn recall(last_good: Option<&LastGood>) -> Offers {
    let Some(last_good) = last_good else {
        return <_>::default();
    };
    match Offers::read(last_good) {
        Ok((offers, lost)) => {
            if lost > 0 {
                warn!(
                    lost,
                    "Some offers of member clusters on disk cannot be read; their clusters say them again. The file is put aside"
                );
            }
            offers
        }
        Err(error) => {
            let error = in_one(&error);
            warn!(%error, "Offers of member clusters on disk are not usable; beginning without them. The file stays until a cluster is synced, and is then put aside");
            Offers::default()
        }
    }
}

/// Starts watching, resolving and keeping.
pub(super) fn start(
    beginning: Beginning,
    zones: &[ZoneSource],
    (controller, reader, events): (&ControllerHandle, SnapshotReader, &Arc<Events>),
    seed: u64,
    supervisor: &mut Supervisor,
) -> Outside {
    let shards = beginning.offers.shards.iter();
    let held: HashMap<ClusterId, Vec<Shard>> = shards
        .map(|(cluster, shards)| {
            let shards = shards.iter().map(|shard| Shard::clone(shard));
            (cluster.clone(), shards.collect())
        })
        .collect();
    let writes_back = beginning.kubernetes.write_back.is_some();
    let has_members = !beginning.kubernetes.members.is_empty();
    let (sender, updates) = mpsc::channel(UPDATES);
    let max_age = watch::Sender::new(beginning.kubernetes.max_age);
    let (members, handle) = Members::new(beginning.kubernetes, held, sender, seed);
    let ends = (controller.clone(), Arc::clone(events), supervisor.token());
    let aging = beginning.aging;
    supervisor.spawn("ages", aging.run(handle.clone(), max_age.subscribe(), ends));
    supervisor.spawn("members", members.run(supervisor.token()));
    let token = supervisor.token();
    supervisor.spawn("offers", hand_on(updates, controller.clone(), token));
    let (targets, targets_handle) = Targets::new(&beginning.resolver, seed);
    // First of all: no question goes out before it is known which names are ours.
    own(&targets_handle, zones);
    let targets = targets.remembering(remembered(&beginning.offers.targets));
    supervisor.spawn("targets", targets.run(supervisor.token()));
    let handles = (controller.clone(), targets_handle.clone());
    let following = Following::new(handles, reader, Arc::clone(events), &beginning.offers);
    supervisor.spawn("target names", following.run(supervisor.token()));
    if let Some(last_good) = beginning.last_good {
        let keeper = OffersKeeper {
            last_good,
            controller: controller.clone(),
            failures: Arc::clone(&events.offers_failures),
            fault: events.offers_fault.clone(),
        };
        let members = has_members.then(|| handle.watch());
        let keeping = keep(keeper, members, supervisor.token());
        supervisor.spawn("offers keeper", keeping);
    }
    Outside {
        members: handle,
        targets: targets_handle,
        writes_back: Arc::new(watch::Sender::new(writes_back)),
        max_age: Arc::new(max_age),
    }
}

/// Says which zones are ours: nobody is asked for names in them.
fn own(targets: &TargetsHandle, zones: &[ZoneSource]) {
    let apexes = zones.iter().map(|zone| zone.spec.apex.clone());
    targets.own(apexes.collect());
}

impl Outside {
    /// Takes a configuration that is in force.
    pub(super) async fn set(
        &self,
        kubernetes: kubernetes::Config,
        resolver: TargetsConfig,
        zones: &[ZoneSource],
    ) {
        let writes_back = kubernetes.write_back.is_some();
        self.max_age.send_replace(kubernetes.max_age);
        self.members.set(kubernetes).await;
        self.writes_back.send_replace(writes_back);
        self.targets.configure(resolver);
        own(&self.targets, zones);
    }

    /// Tells whether something is to be said in members, as that changes.
    pub(super) fn writes_back(&self) -> watch::Receiver<bool> {
        self.writes_back.subscribe()
    }
}

/// Keeps offers on disk. What could not be read there is not written over before there is something to write: a member is synced,
/// or there are no `members`.
async fn keep(
    keeper: OffersKeeper,
    members: Option<watch::Receiver<Arc<Vec<MemberStatus>>>>,
    token: CancellationToken,
) {
    if let Some(mut members) = members.filter(|_| Offers::are_unread(&keeper.last_good)) {
        let is_synced = |members: &Arc<Vec<MemberStatus>>| {
            members.iter().any(|member| member.link == Link::Synced)
        };
        // Cancel-safe: both arms only wait. It fails only when the members end.
        tokio::select! {
            () = token.cancelled() => return,
            synced = members.wait_for(is_synced) => if synced.is_err() {
                return;
            },
        }
    }
    keeper.run(token).await;
}

/// Hands what members say to the controller.
async fn hand_on(
    mut updates: mpsc::Receiver<Update>,
    controller: ControllerHandle,
    token: CancellationToken,
) {
    loop {
        // Cancel-safe: both arms only wait.
        let update = tokio::select! {
            () = token.cancelled() => return,
            update = updates.recv() => update,
        };
        let change = match update {
            Some(Update::Shards { cluster, changes }) => Change::of_cluster(cluster, changes),
            Some(Update::Facts { cluster, facts }) => Change::Facts(cluster, facts),
            None => return,
        };
        if !controller.send(Command::Change(change)).await {
            return;
        }
    }
}
