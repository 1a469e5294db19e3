//! The owner of one cluster's world: takes what the watches see, tells what changed.
//!
//! The first lists are told in one piece: told as they come, each page would make services of every mixture of clusters, and each
//! mixture has its own table of who is near. Who has a list that does not come is waited for no longer than others stop to say
//! something. Then a change is told at once, and at most one batch in 5 ms: as the controller publishes. Where the cluster is,
//! every 5 s at most: it changes all that is compiled of places, and nobody may have that done all the time by turning a label.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::clock::timestamp;
use super::member::Member;
use super::roster::Update;
use crate::inventory::ClusterFacts;
use crate::model::{ClusterIndex, Weight};
use crate::source::kubernetes::records::{Event, Watched};
use crate::source::kubernetes::world::World;

/// The first lists are told though one is missing when nothing came for so long,
const SILENCE: Duration = Duration::from_millis(250);
/// and after so long in any case.
const FIRST: Duration = Duration::from_secs(5);
/// Between two batches.
const PAUSE: Duration = Duration::from_millis(5);
/// Between two words on where the cluster is. Clusters do not move.
const FACTS: Duration = Duration::from_secs(5);
/// Between two overviews: they are for people.
const OVERVIEW: Duration = Duration::from_millis(200);
/// The world is asked again after so long, in case that the wall clock was set.
const ASLEEP: Duration = Duration::from_secs(60);
/// Events taken at a time.
const BATCH: usize = 256;

/// Owns the world of a cluster.
pub(super) struct Owner {
    /// Its cluster.
    pub(super) cluster: ClusterIndex,
    /// What is known of it.
    pub(super) world: World,
    /// What the watches see.
    pub(super) events: mpsc::Receiver<(Watched, Event)>,
    /// Where changes go.
    pub(super) updates: mpsc::Sender<Update>,
    /// What multiplies the weights of its endpoints, as it changes.
    pub(super) weight: watch::Receiver<Weight>,
    /// What is shared.
    pub(super) member: Arc<Member>,
}

/// What was told of where the cluster is.
#[derive(Default)]
struct ToldFacts {
    last: Option<ClusterFacts>,
    at: Option<Instant>,
    /// There is another word, which has to wait until then.
    due: Option<Instant>,
}

/// How far the first lists are.
#[derive(Clone, Copy)]
enum First {
    /// Nothing was seen yet.
    Awaited,
    /// They come, since that moment.
    Coming(Instant),
    /// They were told.
    Told,
}

impl First {
    /// Something was seen now: gives when to tell it, if that waits.
    fn put_off(&mut self, now: Instant, is_read: bool) -> Option<Instant> {
        let begun = match *self {
            Self::Awaited => now,
            Self::Coming(begun) => begun,
            Self::Told => return None,
        };
        *self = Self::Coming(begun);
        let until = (now + SILENCE).min(begun + FIRST);
        Some(if is_read { now } else { until })
    }

    /// Notes that what was seen is told.
    fn told(&mut self) {
        if matches!(self, Self::Coming(_)) {
            *self = Self::Told;
        }
    }
}

impl Owner {
    /// Owns it for as long as this is not dropped.
    pub(super) async fn run(mut self) {
        let mut settings = self.member.settings();
        let mut batch = Vec::with_capacity(BATCH);
        let mut facts = ToldFacts::default();
        let mut told = Instant::now();
        let mut shown = told;
        let mut first = First::Awaited;
        // What is due at the start is told at once.
        let mut changed = Some(told);
        loop {
            let due = facts.due.map(|due| due.max(told + PAUSE));
            let wake = changed.into_iter().chain(due).min();
            let wake = wake.unwrap_or_else(|| Instant::now() + self.asleep());
            let is_unshown = shown < told;
            // Cancel-safe: what is received is taken, all other arms only wait.
            tokio::select! {
                count = self.events.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        return;
                    }
                    for (watched, event) in batch.drain(..) {
                        self.world.apply(watched, event);
                    }
                    let first = first.put_off(Instant::now(), self.world.is_read());
                    changed = first.or(changed).or_else(|| Some(Instant::now().max(told + PAUSE)));
                }
                changed_settings = settings.changed() => {
                    if changed_settings.is_err() {
                        return;
                    }
                    let rules = settings.borrow_and_update().rules.clone();
                    self.world.set_rules(rules);
                    changed = changed.or_else(|| Some(Instant::now().max(told + PAUSE)));
                }
                changed_weight = self.weight.changed() => {
                    if changed_weight.is_err() {
                        return;
                    }
                    let weight = *self.weight.borrow_and_update();
                    self.world.set_weight(weight);
                    changed = changed.or_else(|| Some(Instant::now().max(told + PAUSE)));
                }
                () = sleep_until(wake) => {
                    changed = None;
                    first.told();
                    self.tell(&mut facts).await;
                    told = Instant::now();
                }
                () = sleep_until(shown + OVERVIEW), if is_unshown => {
                    self.member.board.overview(self.world.overview());
                    shown = Instant::now();
                }
            }
        }
    }

    /// Gives the time until something changes by itself.
    fn asleep(&self) -> Duration {
        let Some(due) = self.world.due() else {
            return ASLEEP;
        };
        let wait = due.duration_since(timestamp());
        Duration::try_from(wait).map_or(PAUSE, |wait| wait.clamp(PAUSE, ASLEEP))
    }

    /// Tells what changed; waits while what was told before is not taken.
    async fn tell(&mut self, facts: &mut ToldFacts) {
        let cluster = self.cluster;
        let changes = self.world.take(timestamp());
        if !changes.is_empty() {
            // Nobody is there to take it only when all is about to end.
            let _ = self.updates.send(Update::Shards { cluster, changes }).await;
        }
        facts.due = None;
        let Some(new) = self.world.facts() else {
            return;
        };
        if facts.last.as_ref() == Some(&new) {
            return;
        }
        let (now, due) = (Instant::now(), facts.at.map(|at| at + FACTS));
        facts.due = due.filter(|due| now < *due);
        if facts.due.is_none() {
            facts.last = Some(new.clone());
            facts.at = Some(now);
            let facts = new;
            let _ = self.updates.send(Update::Facts { cluster, facts }).await;
        }
    }
}
