//! Member clusters: what they say goes to the controller, what load balancers are called to the resolver, and what stands is
//! kept on disk.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::ages::Aging;
use super::output::in_one;
use crate::config::{Config, ZoneSource};
use crate::controller::{Command, ControllerHandle, Held, LastGood, Offers, OffersKeeper};
use crate::inventory::{Change, ResolvedTarget, Shard};
use crate::lifecycle::Supervisor;
use crate::model::{ClusterId, LowerName, Moment, Ttl};
use crate::resolving::{Resolution, Table, Targets, TargetsConfig, TargetsHandle};
use crate::source::kubernetes::{self, Members, MembersHandle, Update};

/// Updates of members on their way to the controller.
const UPDATES: usize = 256;
/// How often the names of load balancers are looked through at most.
const LOOK: Duration = Duration::from_millis(200);

/// Where reloads go that concern member clusters.
#[derive(Clone, Debug)]
pub(super) struct Outside {
    pub(super) members: MembersHandle,
    targets: TargetsHandle,
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
    /// Takes what a configuration says, and reads what stood before the start.
    pub(super) fn of(config: &Config, last_good: Option<LastGood>) -> Self {
        Self {
            kubernetes: config.kubernetes.clone(),
            resolver: config.resolver.clone(),
            offers: recall(last_good.as_ref()),
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
        Held {
            owners: self.offers.owners.clone(),
            shards: shards.collect(),
            aged,
        }
    }
}

/// Reads what stood before the start. What cannot be read is reported and done without.
fn recall(last_good: Option<&LastGood>) -> Offers {
    let Some(last_good) = last_good else {
        return Offers::default();
    };
    match Offers::read(last_good) {
        Ok((offers, 0)) => offers,
        Ok((offers, lost)) => {
            warn!(
                lost,
                "Some offers of member clusters on disk cannot be read; their clusters say them again"
            );
            offers
        }
        Err(error) => {
            let error = in_one(&error);
            warn!(%error, "Offers of member clusters on disk are not usable; beginning without them");
            Offers::default()
        }
    }
}

/// Starts watching, resolving and keeping.
pub(super) fn start(
    beginning: Beginning,
    zones: &[ZoneSource],
    controller: &ControllerHandle,
    seed: u64,
    supervisor: &mut Supervisor,
) -> Outside {
    let shards = beginning.offers.shards.into_iter();
    let held: HashMap<ClusterId, Vec<Shard>> = shards
        .map(|(cluster, shards)| {
            let shards = shards.iter().map(|shard| Shard::clone(shard));
            (cluster, shards.collect())
        })
        .collect();
    let (sender, updates) = mpsc::channel(UPDATES);
    let max_age = watch::Sender::new(beginning.kubernetes.max_age);
    let (members, handle) = Members::new(beginning.kubernetes, held, sender, seed);
    let ends = (controller.clone(), supervisor.token());
    let aging = beginning.aging;
    supervisor.spawn("ages", aging.run(handle.clone(), max_age.subscribe(), ends));
    supervisor.spawn("members", members.run(supervisor.token()));
    let token = supervisor.token();
    supervisor.spawn("offers", hand_on(updates, controller.clone(), token));
    let (targets, targets_handle) = Targets::new(&beginning.resolver, seed);
    supervisor.spawn("targets", targets.run(supervisor.token()));
    let following = follow(
        targets_handle.clone(),
        controller.clone(),
        supervisor.token(),
    );
    supervisor.spawn("target names", following);
    if let Some(last_good) = beginning.last_good {
        let keeper = OffersKeeper {
            last_good,
            controller: controller.clone(),
        };
        supervisor.spawn("offers keeper", keeper.run(supervisor.token()));
    }
    let outside = Outside {
        members: handle,
        targets: targets_handle,
        max_age: Arc::new(max_age),
    };
    outside.own(zones);
    outside
}

impl Outside {
    /// Takes a configuration that is in force.
    pub(super) async fn set(
        &self,
        kubernetes: kubernetes::Config,
        resolver: TargetsConfig,
        zones: &[ZoneSource],
    ) {
        self.max_age.send_replace(kubernetes.max_age);
        self.members.set(kubernetes).await;
        self.targets.configure(resolver);
        self.own(zones);
    }

    /// Says which zones are ours: nobody is asked for names in them.
    fn own(&self, zones: &[ZoneSource]) {
        let apexes = zones.iter().map(|zone| zone.spec.apex.clone());
        self.targets.own(apexes.collect());
    }
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
            Some(Update::Shards { cluster, changes }) => Change::Shards(cluster, changes),
            Some(Update::Facts { cluster, facts }) => Change::Facts(cluster, facts),
            None => return,
        };
        if !controller.send(Command::Change(change)).await {
            return;
        }
    }
}

/// Has the names of load balancers resolved that shards have, and hands what they resolve to to the controller.
async fn follow(targets: TargetsHandle, controller: ControllerHandle, token: CancellationToken) {
    let mut status = controller.watch_status();
    let mut table = targets.watch();
    let mut seen = None;
    let mut known = Known::default();
    loop {
        let inventory = status.borrow_and_update().inventory;
        if seen != Some(inventory) {
            seen = Some(inventory);
            let names = controller.read(|inventory| inventory.federation().targets());
            let Some(names) = names.await else {
                return;
            };
            targets.want(names);
        }
        // Cancel-safe: all arms only wait.
        tokio::select! {
            () = token.cancelled() => return,
            changed = table.changed() => {
                if changed.is_err() {
                    return;
                }
                let now = known.renew(&table.borrow_and_update(), &targets);
                if !controller.send(Command::Change(Change::Targets(now))).await {
                    return;
                }
            }
            changed = status.changed() => {
                if changed.is_err() {
                    return;
                }
                tokio::select! {
                    () = token.cancelled() => return,
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        }
    }
}

/// The table as the inventory takes it. What did not change is handed on as it was: the rest of its TTL too, so that no service is
/// made anew because a second has passed.
#[derive(Debug, Default)]
struct Known(HashMap<LowerName, (Arc<Resolution>, ResolvedTarget)>);

impl Known {
    /// Takes a new table.
    fn renew(
        &mut self,
        table: &Table,
        targets: &TargetsHandle,
    ) -> Arc<HashMap<LowerName, ResolvedTarget>> {
        let now = targets.now();
        let entries = table.iter().map(|(name, resolution)| {
            let held = self.0.get(name);
            let held = held.filter(|(held, _)| Arc::ptr_eq(held, resolution));
            let resolved = held.map_or_else(|| resolved(resolution, now), |(_, same)| same.clone());
            (name.clone(), (Arc::clone(resolution), resolved))
        });
        self.0 = entries.collect();
        let entries = self.0.iter();
        let entries = entries.map(|(name, (_, resolved))| (name.clone(), resolved.clone()));
        Arc::new(entries.collect())
    }
}

/// Gives what is known of one target.
fn resolved(known: &Resolution, now: Moment) -> ResolvedTarget {
    let rest = known.expires.map_or(Duration::ZERO, |end| end.since(now));
    let seconds = u32::try_from(rest.as_secs()).unwrap_or(u32::MAX);
    ResolvedTarget {
        addresses: known.addresses.clone(),
        old: known.old.clone(),
        // What nobody confirmed in time is asked for again soon.
        ttl: Ttl::new(seconds.max(1)).unwrap_or(Ttl::MAX),
    }
}
