//! Clusters that join and leave by files in directories, while the node runs.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use super::clusters_from::{Directories, Joined, Turn};
use super::reload::Reloader;
use crate::admin::LeavingCluster;
use crate::config::Config;
use crate::controller::{Command, Controller, Event, Kind, Offers, OwnDrain, Weightiness};
use crate::inventory::{Change, ClusterRegistry};
use crate::model::{ClusterId, ClusterIndex, counted};
use crate::source::kubernetes::MemberConfig;
use crate::telemetry::wall_time;
use crate::vantage::safe_after;

/// Most clusters that are told of after one look.
const TOLD: usize = 50;

/// Tells what became of clusters.
pub(super) fn news(turns: &[(ClusterId, Turn)]) -> Vec<Event> {
    let mut events: Vec<Event> = turns.iter().take(TOLD).map(of_turn).collect();
    if let Some(untold) = turns.len().checked_sub(TOLD).filter(|untold| *untold > 0) {
        let clusters = counted(untold, "more cluster");
        let text = format!("{clusters} joined or are leaving; the page Clusters lists them");
        events.push(Event::new(Kind::Source, Weightiness::Warning, text));
    }
    events
}

/// Tells what became of one.
fn of_turn((id, turn): &(ClusterId, Turn)) -> Event {
    let (weight, text) = match turn {
        Turn::Found => (
            Weightiness::Info,
            format!("Cluster {id} was found in a directory of kubeconfigs"),
        ),
        Turn::Leaves => (
            Weightiness::Warning,
            format!("Kubeconfig of cluster {id} is gone: it is leaving, and drained first"),
        ),
        Turn::Returns => (
            Weightiness::Info,
            format!("Kubeconfig of cluster {id} is back: it stays"),
        ),
        Turn::Ends => (
            Weightiness::Info,
            format!("Cluster {id} is no longer leaving: the configuration has it"),
        ),
    };
    of_cluster(id, weight, text)
}

/// Begins an event about a cluster.
fn of_cluster(id: &ClusterId, weight: Weightiness, text: String) -> Event {
    let mut event = Event::new(Kind::Source, weight, text);
    event.clusters.push(id.to_string());
    event
}

/// Tells whether nobody is sent any more to a cluster that is leaving.
fn is_safe(own: &OwnDrain, now: Instant) -> bool {
    remaining(own, now) == Some(Duration::ZERO)
}

/// Gives the time until that is so; `None`: nobody can say.
fn remaining(own: &OwnDrain, now: Instant) -> Option<Duration> {
    let given = own.last_given.filter(|_| own.in_force && own.held == 0)?;
    if own.services == 0 {
        return Some(Duration::ZERO);
    }
    Some(safe_after(own.ttl).saturating_sub(now.saturating_duration_since(given)))
}

impl Reloader {
    /// Looks at the directories, and lets go of clusters that may go.
    pub(super) async fn look_at_directories(&mut self) {
        if self.joining.directories.is_idle() {
            return;
        }
        let directories = &mut self.joining.directories;
        let turns = tokio::task::block_in_place(|| directories.look(wall_time()));
        self.record(news(&turns));
        self.tell_held();
        let gone = self.let_go();
        self.tell_refused();
        if !turns.is_empty() || gone || self.accesses_changed() {
            self.follow_found().await;
        }
        self.show_leaving();
    }

    /// Tells whether somebody is reached in another way than before, without having come or gone.
    fn accesses_changed(&mut self) -> bool {
        let joined = self.joining.directories.join(&mut self.registry);
        joined.kubernetes.members != self.joining.followed
            || joined.observed != self.joining.observed
    }

    /// Tells once of each that is leaving that it is held.
    fn tell_held(&mut self) {
        let drains = self.controller.departures();
        let held = self
            .joining
            .directories
            .leaving()
            .filter_map(|(id, leaving)| {
                let own = drains.get(leaving.drain())?;
                (own.held > 0).then(|| (id.clone(), own.held))
            });
        let held: Vec<(ClusterId, usize)> = held.collect();
        let told = std::mem::take(&mut self.joining.held);
        for (id, count) in &held {
            if !told.contains(id) {
                let services = counted(*count, "service");
                let text = format!(
                    "Cluster {id} is leaving, and held: without it {services} would have no address for some clients"
                );
                self.record([of_cluster(id, Weightiness::Warning, text)]);
            }
        }
        self.joining.held = held.into_iter().map(|(id, _)| id).collect();
    }

    /// Drops those that are leaving and that nobody is sent to any more.
    fn let_go(&mut self) -> bool {
        let (drains, now) = (self.controller.departures(), Instant::now());
        let safe = self.joining.directories.leaving().filter(|(_, leaving)| {
            let own = drains.get(leaving.drain());
            own.is_some_and(|own| is_safe(own, now))
        });
        let safe: Vec<ClusterId> = safe.map(|(id, _)| id.clone()).collect();
        for id in &safe {
            self.joining.directories.drop(id);
            info!(cluster = %id, "Cluster has left: nobody is sent there any more");
            let text = format!("Cluster {id} has left: nobody is sent there any more");
            self.record([of_cluster(id, Weightiness::Info, text)]);
        }
        !safe.is_empty()
    }

    /// Drops a cluster at once, if it is leaving. Tells whether it was.
    pub(super) async fn drop_leaving(&mut self, id: &ClusterId) -> bool {
        if !self.joining.directories.drop(id) {
            return false;
        }
        warn!(cluster = %id, "Cluster was dropped by an operator while it was leaving");
        let text = format!("Cluster {id} was dropped by an operator while it was leaving");
        self.record([of_cluster(id, Weightiness::Warning, text)]);
        self.follow_found().await;
        self.show_leaving();
        true
    }

    /// Puts in force who is followed, and who is drained because it leaves.
    async fn follow_found(&mut self) {
        let drains = self.joining.directories.drains(wall_time());
        let Joined {
            clusters,
            kubernetes,
            observed,
        } = self.joining.directories.join(&mut self.registry);
        self.joining.followed.clone_from(&kubernetes.members);
        self.joining.observed.clone_from(&observed);
        // The drain comes first: from then on nobody new is sent to those that leave.
        for command in [
            Command::Leaving(drains),
            Command::Change(Change::Observed(observed)),
            Command::Change(Change::Clusters(clusters)),
        ] {
            if !self.controller.send(command).await {
                return;
            }
        }
        self.outside.members.set(kubernetes).await;
    }

    /// Shows who is leaving, and how far that is.
    pub(super) fn show_leaving(&self) {
        let (drains, now) = (self.controller.departures(), Instant::now());
        let leaving = self.joining.directories.leaving().map(|(id, leaving)| {
            let own = drains.get(leaving.drain());
            LeavingCluster {
                id: id.clone(),
                since: leaving.since,
                held: own.map_or(0, |own| own.held),
                held_services: own.map_or_else(Vec::new, |own| own.held_services.clone()),
                remaining: own.and_then(|own| remaining(own, now)),
            }
        });
        self.events.set_leaving(leaving.collect());
    }
}

/// Clusters that come from directories, and what is in force of them.
#[derive(Debug, Default)]
pub(super) struct Joining {
    /// The directories.
    pub(super) directories: Directories,
    /// Who is followed.
    pub(super) followed: Vec<MemberConfig>,
    /// Whom nobody is answered with.
    pub(super) observed: BTreeSet<ClusterIndex>,
    /// Of whom it was told that they are leaving and held.
    pub(super) held: BTreeSet<ClusterId>,
}

impl Joining {
    /// Looks at the directories at the start, and puts who is in them, and who was, beside what the configuration has.
    pub(super) fn begin(
        config: &mut Config,
        registry: &mut ClusterRegistry,
        offers: &Offers,
    ) -> Self {
        let (mut directories, now) = (Directories::default(), wall_time());
        directories.adopt(config, now);
        directories.remember(offers.shards.keys(), now);
        let joined = directories.join(registry);
        config.clusters = joined.clusters;
        config.kubernetes = joined.kubernetes;
        Self {
            directories,
            followed: config.kubernetes.members.clone(),
            observed: joined.observed,
            held: BTreeSet::new(),
        }
    }

    /// Lets a controller begin with who is leaving and who is observed.
    pub(super) fn lay(&self, controller: Controller) -> Controller {
        let leaving = self.directories.drains(wall_time());
        controller.with_leaving(leaving, self.observed.clone())
    }
}
