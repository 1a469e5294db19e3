//! What leaves the node beside answers: the query log and traces; and what is told of member clusters.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::member_news::of_members;
use super::output::in_one;
use crate::controller::{ControllerHandle, Journal, Weightiness, World};
use crate::lifecycle::Supervisor;
use crate::source::kubernetes::MemberStatus;
use crate::telemetry::{Naming, OtlpConfig, QueryNames, Traces, wall_time};
use crate::transport::Running;

/// Starts the task that writes the query log, if there is one.
pub(super) fn log_queries(
    running: &mut Running,
    controller: &ControllerHandle,
    supervisor: &mut Supervisor,
) {
    if let Some(log) = running.take_query_log() {
        let token = supervisor.token();
        supervisor.spawn("query-log", log.run(naming(controller.clone()), token));
    }
}

/// Gives names to clusters and zones, as of the last publish that changed any.
fn naming(controller: ControllerHandle) -> Naming {
    let mut held: Option<(Arc<World>, Arc<QueryNames>)> = None;
    Box::new(move || {
        let world = Arc::clone(&controller.status().world);
        if let Some((of, names)) = &held
            && Arc::ptr_eq(of, &world)
        {
            return Arc::clone(names);
        }
        let clusters = world.clusters.iter();
        let names = Arc::new(QueryNames {
            clusters: clusters
                .map(|(index, cluster)| (*index, cluster.id.to_string()))
                .collect(),
            zones: world.zones.iter().map(|(apex, _)| apex.clone()).collect(),
        });
        held = Some((world, Arc::clone(&names)));
        names
    })
}

/// Starts to send traces, if they are wanted. What stands in the way is told, and nothing more: answers need no collector.
pub(super) fn send_traces(config: Option<&OtlpConfig>, node: &str, supervisor: &mut Supervisor) {
    let Some(config) = config else { return };
    match Traces::start(config, node) {
        Ok(traces) => {
            let token = supervisor.token();
            supervisor.spawn("traces", traces.run(token));
        }
        Err(error) => {
            warn!(
                error = in_one(&error),
                "Traces are not sent; serving goes on"
            );
        }
    }
}

/// How all member clusters stand.
type Members = Arc<Vec<MemberStatus>>;

/// Starts the task that records what changes of member clusters.
pub(super) fn tell_members(
    members: &watch::Receiver<Members>,
    controller: &ControllerHandle,
    supervisor: &mut Supervisor,
) {
    let (journal, token) = (controller.journal().clone(), supervisor.token());
    // Without members it ends at once.
    supervisor.spawn_finite("member-news", record(members.clone(), journal, token));
}

/// Records what changes of member clusters, until the token falls or nobody tells any more.
async fn record(mut members: watch::Receiver<Members>, journal: Journal, token: CancellationToken) {
    let mut before = Members::default();
    loop {
        let now = Arc::clone(&members.borrow_and_update());
        for event in of_members(&before, &now) {
            // What else there is to say the watches log themselves.
            if event.weight == Weightiness::Critical {
                warn!(clusters = ?event.clusters, "{}", event.text);
            }
            journal.record(event, wall_time());
        }
        before = now;
        // Cancel-safe: both arms only wait.
        tokio::select! {
            () = token.cancelled() => return,
            changed = members.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ClusterIndex, WallTime};
    use crate::source::kubernetes::{Link, Overview, WriteBackStatus};

    fn member(link: Link) -> Members {
        Arc::new(vec![MemberStatus {
            cluster: ClusterIndex(0),
            id: "aws".parse().unwrap(),
            link,
            last_contact: None,
            version: None,
            warnings: Vec::new(),
            last_error: None,
            kinds: Vec::new(),
            overview: Arc::new(Overview {
                kinds: Vec::new(),
                shards: 1,
                held: None,
                told: Vec::new(),
                untold: 0,
            }),
            unusable: None,
            write_back: WriteBackStatus::default(),
        }])
    }

    #[tokio::test]
    async fn changes_of_members_are_recorded_until_nobody_tells() {
        let (sender, members) = watch::channel(member(Link::Synced));
        let journal = Journal::default();
        let mut live = journal.subscribe();
        let recording = record(members, journal.clone(), CancellationToken::new());
        let telling = async {
            let first = live.recv().await.unwrap();
            assert_eq!(first.text, "Member cluster aws is synced: 1 object served");
            let since = WallTime(7);
            sender.send_replace(member(Link::Stale { since }));
            assert!(live.recv().await.unwrap().text.contains("is stale"));
            drop(sender);
        };
        tokio::join!(recording, telling);
        assert_eq!(journal.all().len(), 2);
    }
}
