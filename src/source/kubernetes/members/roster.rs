//! All member clusters: who is followed, as the configuration says, and how each stands.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::clock::Clock;
use super::member::{EVENTS, Member, Settings, spawn};
use super::owner::Owner;
use super::status::{Board, Link, MemberStatus};
use crate::inventory::{ClusterFacts, Shard, ShardChange};
use crate::lifecycle::Supervisor;
use crate::model::{Chance, ClusterId, ClusterIndex, Weight};
use crate::source::kubernetes::rules::{Access, Config, MemberConfig};
use crate::source::kubernetes::world::World;
use crate::source::kubernetes::write_back::Statements;

/// Between two statuses.
const PAUSE: Duration = Duration::from_millis(200);
/// Nobody notes that time passes: it is looked so often whether a cluster is stale by now.
const LOOK: Duration = Duration::from_millis(250);
/// The tasks of a member that goes end within.
const END: Duration = Duration::from_secs(5);
/// Configurations that wait; whoever hands in another waits too.
const COMMANDS: usize = 4;

/// What the watches tell.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// Shards of a cluster changed.
    Shards {
        /// The cluster.
        cluster: ClusterIndex,
        /// What changed, in its order.
        changes: Vec<ShardChange>,
    },
    /// Its place is known, or another.
    Facts {
        /// The cluster.
        cluster: ClusterIndex,
        /// Where it is.
        facts: ClusterFacts,
    },
}

/// A configuration to take over, and whom to tell that it was.
type Command = (Config, oneshot::Sender<()>);

/// Follows all members.
#[derive(Debug)]
pub struct Members {
    config: Config,
    held: HashMap<ClusterId, Vec<Shard>>,
    updates: mpsc::Sender<Update>,
    chance: Chance,
    clock: Clock,
    dirty: Arc<Notify>,
    settings: watch::Sender<Settings>,
    statuses: watch::Sender<Arc<Vec<MemberStatus>>>,
    commands: mpsc::Receiver<Command>,
    statements: watch::Receiver<Statements>,
}

/// Reaches the members that are followed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MembersHandle {
    commands: mpsc::Sender<Command>,
    statuses: watch::Receiver<Arc<Vec<MemberStatus>>>,
    statements: Arc<watch::Sender<Statements>>,
}

impl MembersHandle {
    /// Hands in all that stands of objects: it is said in their clusters, where that is wanted. It replaces what stood before.
    pub fn say(&self, statements: Statements) {
        self.statements.send_replace(statements);
    }

    /// Takes over another configuration; returns when it is in force.
    ///
    /// New members are followed, those that are gone are not any more ([`ShardChange::Clear`]). One whose access changed begins
    /// anew; what is known of it stays until it is seen otherwise. New rules are applied to all.
    pub async fn set(&self, config: Config) {
        let (told, taken) = oneshot::channel();
        if self.commands.send((config, told)).await.is_ok() {
            // It fails only when the members end, and then nothing is in force.
            let _ = taken.await;
        }
    }

    /// Gives how all members stand, in the order of the configuration.
    #[must_use]
    pub fn statuses(&self) -> Arc<Vec<MemberStatus>> {
        self.statuses.borrow().clone()
    }

    /// Tells of it as it changes, at most every 200 ms.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<Vec<MemberStatus>>> {
        self.statuses.clone()
    }
}

/// A member that is followed.
struct Followed {
    cluster: ClusterIndex,
    board: Arc<Board>,
    access: watch::Sender<Access>,
    weight: watch::Sender<Weight>,
    token: CancellationToken,
    ended: oneshot::Receiver<()>,
    link: Link,
}

impl Members {
    /// Makes them, and the way to reach them. Nothing is asked before [`Self::run`].
    ///
    /// `held` has the shards of the last good state, by cluster; `updates` takes what changes; `seed` spreads retries. What is
    /// held of others than members counts for nothing: nobody has it, so a member that comes later is told from its beginning.
    #[must_use]
    pub fn new(
        config: Config,
        mut held: HashMap<ClusterId, Vec<Shard>>,
        updates: mpsc::Sender<Update>,
        seed: u64,
    ) -> (Self, MembersHandle) {
        let (commands, receiver) = mpsc::channel(COMMANDS);
        let (statuses, shown) = watch::channel(Arc::default());
        let (saying, statements) = watch::channel(Statements::default());
        held.retain(|id, _| config.members.iter().any(|member| member.id == *id));
        let members = Self {
            settings: watch::Sender::new(settings_of(&config)),
            config,
            held,
            updates,
            chance: Chance::new(seed),
            clock: Clock::start(),
            dirty: Arc::default(),
            statuses,
            commands: receiver,
            statements,
        };
        let handle = MembersHandle {
            commands,
            statuses: shown,
            statements: Arc::new(saying),
        };
        (members, handle)
    }

    /// Follows the members until the token falls, or one of their tasks failed.
    pub async fn run(mut self, token: CancellationToken) {
        let mut tasks = Supervisor::under(&token);
        let (failing, mut failures) = mpsc::channel(1);
        let mut running = Running {
            tasks: &mut tasks,
            failing,
            followed: HashMap::new(),
        };
        self.adopt(&mut running).await;
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut published = self.publish(&mut running.followed);
        let mut is_dirty = false;
        loop {
            // Cancel-safe: a command that is received is carried out, all other arms only wait.
            tokio::select! {
                () = token.cancelled() => break,
                Some(()) = failures.recv() => break,
                Some((config, taken)) = self.commands.recv() => {
                    self.config = config;
                    self.adopt(&mut running).await;
                    published = self.publish(&mut running.followed);
                    // Who does not wait for it need not be told.
                    let _ = taken.send(());
                }
                () = self.dirty.notified(), if !is_dirty => is_dirty = true,
                () = sleep_until(published + PAUSE), if is_dirty => {
                    is_dirty = false;
                    published = self.publish(&mut running.followed);
                }
                _ = look.tick() => is_dirty |= self.has_other_links(&running.followed),
            }
        }
        tasks.shut_down(END).await;
    }

    /// Follows whom the configuration names, and nobody else.
    async fn adopt(&mut self, running: &mut Running<'_>) {
        let settings = settings_of(&self.config);
        self.settings.send_if_modified(|known| {
            let is_new = *known != settings;
            *known = settings;
            is_new
        });
        let members = self.config.members.clone();
        let named: HashSet<_> = members.iter().map(|new| (&new.id, new.cluster)).collect();
        let is_gone =
            |id: &ClusterId, followed: &Followed| !named.contains(&(id, followed.cluster));
        let gone = running.followed.iter();
        let gone = gone.filter(|(id, followed)| is_gone(id, followed));
        let gone: Vec<_> = gone.map(|(id, _)| id.clone()).collect();
        for id in gone {
            if let Some(followed) = running.followed.remove(&id) {
                self.end(&id, followed).await;
            }
        }
        for member in members {
            match running.followed.get(&member.id) {
                Some(followed) => {
                    followed.access.send_if_modified(|known| {
                        let is_new = *known != member.access;
                        *known = member.access;
                        is_new
                    });
                    followed.weight.send_if_modified(|known| {
                        std::mem::replace(known, member.weight) != member.weight
                    });
                }
                None => self.start(member, running),
            }
        }
    }

    /// Begins to follow a member.
    fn start(&mut self, config: MemberConfig, running: &mut Running<'_>) {
        let held = self.held.remove(&config.id).unwrap_or_default();
        let mut world = World::new(self.config.rules.clone(), held);
        world.set_weight(config.weight);
        let board = Board::new(&config, world.overview(), self.dirty.clone());
        let board = Arc::new(board);
        let settings = self.settings.subscribe();
        let member = Member::new(board.clone(), self.clock, settings, self.chance.seed());
        let member = Arc::new(member);
        let (sender, events) = mpsc::channel(EVENTS);
        let access = watch::Sender::new(config.access);
        let weight = watch::Sender::new(config.weight);
        let token = running.tasks.token();
        let mut tasks = Supervisor::under(&token);
        let token = tasks.token();
        let statements = self.statements.clone();
        spawn(&mut tasks, &member, access.subscribe(), &sender, statements);
        let owner = Owner {
            cluster: config.cluster,
            world,
            events,
            updates: self.updates.clone(),
            weight: weight.subscribe(),
            member,
        };
        let owning = token.clone();
        tasks.spawn("world", async move {
            owning.run_until_cancelled(owner.run()).await;
        });
        let (ending, ended) = oneshot::channel();
        let failing = running.failing.clone();
        running.tasks.spawn_finite("member", async move {
            let is_well = tasks.run().await;
            tasks.shut_down(END).await;
            if !is_well {
                // One failure is enough to end everything.
                let _ = failing.try_send(());
            }
            let _ = ending.send(());
        });
        let cluster = config.cluster;
        info!(cluster = %config.id, "Following a cluster");
        let followed = Followed {
            cluster,
            board,
            access,
            weight,
            token,
            ended,
            link: Link::Never,
        };
        running.followed.insert(config.id, followed);
    }

    /// Follows a member no longer: when the last of its tasks has ended, its shards are cleared.
    async fn end(&self, id: &ClusterId, followed: Followed) {
        followed.token.cancel();
        // It fails only when its tasks were dropped: they have ended too then.
        let _ = followed.ended.await;
        let cluster = followed.cluster;
        let changes = vec![ShardChange::Clear];
        // Nobody is there to take it only when all is about to end.
        let _ = self.updates.send(Update::Shards { cluster, changes }).await;
        info!(cluster = %id, "No longer following a cluster");
    }

    /// Tells whether a link is another than was published.
    fn has_other_links(&self, all: &HashMap<ClusterId, Followed>) -> bool {
        let (now, stale_after) = (self.clock.now(), self.config.stale_after);
        all.values()
            .any(|followed| followed.board.link(now, stale_after) != followed.link)
    }

    /// Publishes how all members stand. Gives the moment.
    fn publish(&self, all: &mut HashMap<ClusterId, Followed>) -> Instant {
        let (now, stale_after) = (self.clock.now(), self.config.stale_after);
        let mut statuses = Vec::with_capacity(all.len());
        for member in &self.config.members {
            let Some(followed) = all.get_mut(&member.id) else {
                continue;
            };
            let status = followed.board.status(now, stale_after);
            tell(&status, followed.link);
            followed.link = status.link;
            statuses.push(status);
        }
        self.statuses.send_replace(Arc::new(statuses));
        Instant::now()
    }
}

/// What runs while they are followed.
struct Running<'r> {
    tasks: &'r mut Supervisor,
    failing: mpsc::Sender<()>,
    followed: HashMap<ClusterId, Followed>,
}

fn settings_of(config: &Config) -> Settings {
    Settings {
        rules: config.rules.clone(),
        stale_after: config.stale_after,
        write_back: config.write_back.clone(),
    }
}

/// Logs how a link changed.
fn tell(status: &MemberStatus, before: Link) {
    let cluster = &status.id;
    match (before, status.link) {
        (Link::Synced | Link::Never, Link::Stale { .. }) => {
            let error = status.last_error.as_deref().unwrap_or("no answer");
            warn!(%cluster, error, "Cluster is not seen any more; keeping what is known");
        }
        (Link::Never | Link::Stale { .. }, Link::Synced) => info!(%cluster, "Cluster is synced"),
        _ => {}
    }
}
