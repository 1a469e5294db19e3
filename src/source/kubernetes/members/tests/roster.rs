//! Members that come and go with the configuration.

use std::collections::HashMap;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::super::roster::{Members, MembersHandle, Update};
use super::super::status::{Link, MemberStatus};
use super::api::Api;
use super::run::{at, kubeconfig};
use crate::inventory::{Shard, ShardChange};
use crate::model::ClusterIndex;
use crate::source::kubernetes::records::Watched;
use crate::source::kubernetes::rules::{Config, MemberConfig};

const DEADLINE: Duration = Duration::from_secs(60);

fn member(index: u16, name: &str, folder: &TempDir, api: &Api) -> MemberConfig {
    let access = kubeconfig(folder, &at(api), "{}");
    MemberConfig::new(ClusterIndex(index), name.parse().unwrap(), access)
}

fn config(members: &[&MemberConfig]) -> Config {
    Config {
        members: members.iter().copied().cloned().collect(),
        ..Config::default()
    }
}

async fn until(handle: &MembersHandle, done: impl Fn(&[MemberStatus]) -> bool) {
    let mut statuses = handle.watch();
    let waiting = statuses.wait_for(|statuses| done(statuses));
    let waited = timeout(DEADLINE, waiting).await;
    assert!(
        waited.is_ok_and(|waited| waited.is_ok()),
        "{:#?}",
        handle.statuses()
    );
}

fn all_synced(statuses: &[MemberStatus]) -> bool {
    statuses.iter().all(|status| status.link == Link::Synced)
}

#[tokio::test]
async fn members_come_and_go_with_the_configuration() {
    let (first, second) = (Api::start(36).await, Api::start(36).await);
    for api in [&first, &second] {
        api.put("services", "web");
    }
    let folders: [TempDir; 3] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let aws = member(4, "aws", &folders[0], &first);
    let gcp = member(7, "gcp", &folders[1], &second);
    let (updates, mut told) = mpsc::channel(64);
    let (members, handle) = Members::new(config(&[&aws]), HashMap::new(), updates, 1);
    let token = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(members.run(token.clone()));
    until(&handle, |statuses| {
        statuses.len() == 1 && all_synced(statuses)
    })
    .await;

    handle.set(config(&[&gcp, &aws])).await;
    let names = |handle: &MembersHandle| -> Vec<_> {
        let statuses = handle.statuses();
        statuses
            .iter()
            .map(|status| (status.cluster.0, status.id.to_string()))
            .collect()
    };
    assert_eq!(
        names(&handle),
        [(7, "gcp".to_owned()), (4, "aws".to_owned())]
    );
    until(&handle, all_synced).await;

    // The one that stays begins anew where it is now, and keeps what is known.
    let moved = member(4, "aws", &folders[2], &second);
    let asked = second.asked("/api/v1/services").len();
    handle.set(config(&[&moved])).await;
    assert_eq!(names(&handle), [(4, "aws".to_owned())]);
    until(&handle, |statuses| {
        let services = &statuses[0].kinds[Watched::Services as usize];
        all_synced(statuses) && services.lists == 2
    })
    .await;
    assert!(second.asked("/api/v1/services").len() > asked);
    let clears: Vec<_> = std::iter::from_fn(|| told.try_recv().ok())
        .filter_map(|update| match update {
            Update::Shards { cluster, changes } => {
                changes.contains(&ShardChange::Clear).then_some(cluster)
            }
            Update::Facts { .. } => None,
        })
        .collect();
    assert_eq!(clears, [ClusterIndex(7)]);

    // At the end of the process nothing is cleared.
    token.cancel();
    timeout(DEADLINE, tasks.join_all()).await.unwrap();
    while let Some(update) = told.recv().await {
        let Update::Shards { changes, .. } = update else {
            continue;
        };
        assert!(!changes.contains(&ShardChange::Clear));
    }
}

/// Waits for the first shard that is told.
async fn first_shard(told: &mut mpsc::Receiver<Update>) -> Shard {
    let waiting = timeout(DEADLINE, async {
        while let Some(update) = told.recv().await {
            let Update::Shards { changes, .. } = update else {
                continue;
            };
            for change in changes {
                if let ShardChange::Upsert(shard) = change {
                    return Some(*shard);
                }
            }
        }
        None
    });
    waiting.await.ok().flatten().expect("a shard is told")
}

#[tokio::test]
async fn a_cluster_that_was_no_member_at_the_start_is_told_from_its_beginning() {
    let api = Api::start(36).await;
    api.put("services", "web");
    let folder = tempfile::tempdir().unwrap();
    let aws = member(4, "aws", &folder, &api);
    let (updates, mut told) = mpsc::channel(64);
    let (members, _handle) = Members::new(config(&[&aws]), HashMap::new(), updates, 1);
    let mut tasks = JoinSet::new();
    tasks.spawn(members.run(CancellationToken::new()));
    let shard = first_shard(&mut told).await;
    drop((tasks, told));

    // It was a member once: its shards are on disk, and nobody was given them at the start.
    let held = HashMap::from([(aws.id.clone(), vec![shard.clone()])]);
    let (updates, mut told) = mpsc::channel(64);
    let (members, handle) = Members::new(config(&[]), held, updates, 1);
    let mut tasks = JoinSet::new();
    tasks.spawn(members.run(CancellationToken::new()));
    handle.set(config(&[&aws])).await;
    assert_eq!(first_shard(&mut told).await, shard);
}

#[tokio::test]
async fn a_member_without_a_server_is_shown_and_holds_up_no_other() {
    let api = Api::start(36).await;
    let folders: [TempDir; 2] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let gone = Api::start(36).await;
    let dead = member(0, "dead", &folders[0], &gone);
    drop(gone);
    let alive = member(1, "alive", &folders[1], &api);
    let (updates, _told) = mpsc::channel(64);
    let (members, handle) = Members::new(config(&[&dead, &alive]), HashMap::new(), updates, 1);
    let token = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(members.run(token.clone()));
    until(&handle, |statuses| {
        let [dead, alive] = statuses else {
            return false;
        };
        dead.link == Link::Never && dead.last_error.is_some() && alive.link == Link::Synced
    })
    .await;
    let statuses = handle.statuses();
    let error = statuses[0].last_error.as_deref().unwrap();
    assert!(error.contains("refused"), "{error}");
    token.cancel();
    timeout(DEADLINE, tasks.join_all()).await.unwrap();
}

#[tokio::test]
async fn statuses_do_not_come_faster_than_five_times_a_second() {
    let api = Api::start(36).await;
    let folder = tempfile::tempdir().unwrap();
    let aws = member(0, "aws", &folder, &api);
    let (updates, _told) = mpsc::channel(64);
    let (members, handle) = Members::new(config(&[&aws]), HashMap::new(), updates, 1);
    let token = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(members.run(token.clone()));
    let mut statuses = handle.watch();
    until(&handle, |statuses| {
        statuses.len() == 1 && all_synced(statuses)
    })
    .await;
    let begun = Instant::now();
    statuses.mark_unchanged();
    for number in 0..4 {
        api.put("services", &format!("s{number}"));
        timeout(DEADLINE, statuses.changed())
            .await
            .unwrap()
            .unwrap();
    }
    // Three whole pauses lie between four of them.
    assert!(begun.elapsed() >= Duration::from_millis(600));
    token.cancel();
    timeout(DEADLINE, tasks.join_all()).await.unwrap();
}
