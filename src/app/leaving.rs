//! Clusters that join and leave by files in directories and by Secrets, while the node runs.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use super::clusters_from::Joined;
use super::joining::{Joining, news, of_cluster};
use super::reload::Reloader;
use crate::admin::{JoinedCluster, LeavingCluster};
use crate::controller::{Command, OwnDrain, Weightiness};
use crate::inventory::Change;
use crate::model::{ClusterId, counted};
use crate::source::kubernetes::Absence;
use crate::telemetry::wall_time;
use crate::vantage::safe_after;

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
    /// Looks at directories and Secrets, and lets go of clusters that may go.
    pub(super) async fn look_at_directories(&mut self) {
        if self.joining.directories.is_idle() {
            // Nobody looks for Secrets any more: none are kept.
            tokio::task::block_in_place(|| self.joining.keeper.lock().keep(Vec::new()));
            return;
        }
        let Joining {
            directories,
            keeper,
            ..
        } = &mut self.joining;
        let turns = tokio::task::block_in_place(|| {
            let turns = directories.look(wall_time());
            keeper.lock().keep(directories.to_keep());
            turns
        });
        self.record(news(&turns));
        self.tell_held();
        let gone = self.let_go();
        self.tell_refused();
        if !turns.is_empty() || gone || self.has_changed() {
            self.follow_found().await;
        }
        self.show_leaving();
    }

    /// Tells whether somebody is reached in another way than before, or is another place, without having come or gone.
    fn has_changed(&mut self) -> bool {
        let drained = self.joining.drained_now();
        let Joined {
            clusters,
            kubernetes,
            observed,
        } = self.joining.directories.join(&mut self.registry);
        kubernetes.members != self.joining.followed
            || clusters != self.joining.clusters
            || observed != self.joining.observed
            || drained != self.joining.drained
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

    /// Drops a cluster at once, if it is leaving, or if nobody knows where its kubeconfig stands. Tells whether that was so.
    pub(super) async fn drop_absent(&mut self, id: &ClusterId) -> bool {
        let why = match self.joining.directories.drop(id) {
            Some(Absence::Gone) => "while it was leaving",
            Some(Absence::Unseen) => "while nobody could tell whether it was still there",
            None => return false,
        };
        warn!(cluster = %id, why, "Cluster was dropped by an operator");
        let text = format!("Cluster {id} was dropped by an operator {why}");
        self.record([of_cluster(id, Weightiness::Warning, text)]);
        self.follow_found().await;
        self.show_leaving();
        true
    }

    /// Puts in force who is followed, and who is drained because it leaves.
    async fn follow_found(&mut self) {
        let drains = self.joining.drains_at(wall_time());
        let Joined {
            clusters,
            kubernetes,
            observed,
        } = self.joining.directories.join(&mut self.registry);
        self.joining.clusters.clone_from(&clusters);
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
                from: leaving.from.clone(),
                why: leaving.why().to_owned(),
                held: own.map_or(0, |own| own.held),
                held_services: own.map_or_else(Vec::new, |own| own.held_services.clone()),
                remaining: own.and_then(|own| remaining(own, now)),
            }
        });
        self.events.set_leaving(leaving.collect());
        let now = wall_time();
        let directories = &self.joining.directories;
        let drained: BTreeSet<&ClusterId> = directories.drained(now).collect();
        let joined = directories.joiners().into_iter().map(|one| JoinedCluster {
            is_drained: drained.contains(&one.id),
            id: one.id,
            from: one.from,
            read: one.read,
        });
        self.events.set_joined(joined.collect());
    }
}
