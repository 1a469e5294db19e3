//! Member clusters that nobody has seen for long: their age is followed, kept on disk, and told to the controller.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::output::in_one;
use crate::admin::{AgedCluster, Events};
use crate::controller::{
    Ages, Command, ControllerHandle, Event, Kind, LastGood, Sight, Weightiness,
};
use crate::inventory::Change;
use crate::model::{ClusterIndex, WallTime};
use crate::source::kubernetes::{Link, MemberConfig, MemberStatus, MembersHandle};
use crate::telemetry::wall_time;

/// How often ages are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often they are written: after a crash a cluster may look so much older, of a day.
const WRITE: Duration = Duration::from_secs(60);

/// The ages of a node's member clusters.
pub(super) struct Aging {
    ages: Ages,
    last_good: Option<LastGood>,
}

impl Aging {
    /// Reads what is known from before the start. What cannot be read is reported and done without.
    pub(super) fn recall(last_good: Option<LastGood>) -> Self {
        let read = last_good.as_ref().map(Ages::read);
        let ages = match read {
            None => Ages::default(),
            Some(Ok(ages)) => ages,
            Some(Err(error)) => {
                let error = in_one(&error);
                warn!(%error, "Ages of member clusters on disk are not usable; counting from now");
                Ages::default()
            }
        };
        Self { ages, last_good }
    }

    /// Gives the clusters that are too old at the start.
    pub(super) fn begin(
        &mut self,
        members: &[MemberConfig],
        max_age: Duration,
    ) -> BTreeSet<ClusterIndex> {
        let sights: Vec<Sight> = members
            .iter()
            .map(|member| Sight {
                cluster: member.cluster,
                id: member.id.clone(),
                seen: None,
            })
            .collect();
        let old = self.ages.look(&sights, max_age, wall_time());
        old.unwrap_or_default()
    }

    /// Follows them until the token falls, then writes once more.
    pub(super) async fn run(
        mut self,
        members: MembersHandle,
        max_age: watch::Receiver<Duration>,
        (controller, events, token): (ControllerHandle, Arc<Events>, CancellationToken),
    ) {
        let mut written = Instant::now();
        loop {
            // Cancel-safe: both arms only wait.
            tokio::select! {
                () = token.cancelled() => {
                    self.write().await;
                    return;
                }
                () = tokio::time::sleep(LOOK) => {}
            }
            let (statuses, now) = (members.statuses(), wall_time());
            let sights: Vec<Sight> = statuses.iter().map(|status| sight(status, now)).collect();
            let limit = *max_age.borrow();
            let old = self.ages.look(&sights, limit, now);
            self.show(&statuses, &events);
            if let Some(old) = old {
                tell(&statuses, &old, limit, &controller);
                if !controller.send(Command::Change(Change::Aged(old))).await {
                    return;
                }
            }
            if written.elapsed() >= WRITE {
                written = Instant::now();
                self.write().await;
            }
        }
    }

    /// Shows which are too old, and since when.
    fn show(&self, statuses: &[MemberStatus], events: &Events) {
        let old = statuses
            .iter()
            .filter(|status| self.ages.is_old(status.cluster));
        let aged = old.filter_map(|status| {
            Some(AgedCluster {
                cluster: status.cluster,
                since: self.ages.since(&status.id)?,
            })
        });
        let aged: Vec<AgedCluster> = aged.collect();
        if *events.aged() != *aged {
            events.set_aged(aged);
        }
    }

    /// Writes them, where the disk works.
    async fn write(&self) {
        let Some(last_good) = self.last_good.clone() else {
            return;
        };
        let ages = self.ages.clone();
        let writing = tokio::task::spawn_blocking(move || ages.write(&last_good));
        // It can only fail by a panic, which ends the process.
        if let Ok(Err(error)) = writing.await {
            let error = in_one(&error);
            warn!(%error, "Ages of member clusters could not be written; serving goes on");
        }
    }
}

/// Says when a member was seen last.
fn sight(status: &MemberStatus, now: WallTime) -> Sight {
    Sight {
        cluster: status.cluster,
        id: status.id.clone(),
        seen: match status.link {
            Link::Never => None,
            Link::Synced => Some(now),
            Link::Stale { since } => Some(since),
        },
    }
}

/// Logs and records which clusters are too old now.
fn tell(
    statuses: &[MemberStatus],
    old: &BTreeSet<ClusterIndex>,
    limit: Duration,
    controller: &ControllerHandle,
) {
    let names = statuses
        .iter()
        .filter(|status| old.contains(&status.cluster));
    let names: Vec<String> = names.map(|status| status.id.to_string()).collect();
    let hours = limit.as_secs() / 3600;
    let (weight, text) = if names.is_empty() {
        info!("Every member cluster was seen within maxAge again");
        let text = "Every member cluster was seen within `maxAge` again".to_owned();
        (Weightiness::Info, text)
    } else {
        let clusters = names.join(", ");
        warn!(%clusters, hours, "Not seen for longer than maxAge; addresses there that no probe confirms are used after all others");
        let text = format!(
            "Not seen for longer than `maxAge`: {clusters}; addresses there that no probe confirms are used after all others"
        );
        (Weightiness::Warning, text)
    };
    let mut event = Event::new(Kind::Source, weight, text);
    event.clusters = names;
    controller.journal().record(event, wall_time());
}
