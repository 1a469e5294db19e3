//! Secrets of clusters, watched at a server that fails.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::run::{at, kubeconfig};
use crate::source::kubernetes::members::SecretsHandle;
use crate::source::kubernetes::rules::SecretsPlace;

/// Every wait of a test ends by then, on a machine that does much else too.
const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until the clusters of a place are these, and something is wrong or nothing.
async fn expect(handle: &SecretsHandle, place: &SecretsPlace, wanted: &[&str], is_wrong: bool) {
    let mut last = None;
    let found = timeout(DEADLINE, async {
        loop {
            let (listing, error) = handle.look(place);
            let names = listing.map(|listing| {
                let clusters = listing.clusters.iter();
                clusters.map(|one| one.id.to_string()).collect::<Vec<_>>()
            });
            let is_so = names.as_deref().is_some_and(|names| names == wanted);
            if is_so && error.is_some() == is_wrong {
                return;
            }
            last = Some((names, error));
            sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(found.await.is_ok(), "{wanted:?} {is_wrong}: {last:?}");
}

#[tokio::test]
async fn secrets_are_listed_and_followed_and_stay_while_nobody_answers() {
    let api = Api::start(36).await;
    let served = |api: &Api| {
        let mut state = api.state();
        let kinds = state.served.get_mut(&("", "v1")).unwrap();
        kinds.push("secrets");
    };
    served(&api);
    for name in ["a", "b"] {
        api.put("secrets", name);
    }
    let folder = tempfile::tempdir().unwrap();
    let place = Arc::new(SecretsPlace {
        server: "cluster hub".into(),
        cluster: "hub".parse().unwrap(),
        access: kubeconfig(&folder, &at(&api), "{}"),
        namespace: "m".into(),
        selector: "x=y".into(),
        key: Some("kubeconfig".into()),
        name_label: None,
    });
    let (handle, token) = (SecretsHandle::default(), CancellationToken::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(handle.clone().run(1, token.clone()));
    assert_eq!(handle.look(&place), (None, None));
    handle.set(vec![place.clone()]);
    expect(&handle, &place, &["a", "b"], false).await;
    api.put("secrets", "c");
    expect(&handle, &place, &["a", "b", "c"], false).await;
    api.delete("secrets", "b");
    expect(&handle, &place, &["a", "c"], false).await;
    // No more is asked for than the Role gives, and nothing but what the selector names.
    let asked = api.state().asked.clone();
    for one in &asked {
        let is_secrets = one.path == "/api/v1/namespaces/m/secrets";
        assert!(is_secrets || one.path == "/livez", "{one:?}");
        assert!(
            !is_secrets || one.query.contains("labelSelector=x%3Dy"),
            "{one:?}"
        );
    }
    // A server that does not answer has not lost anything.
    api.stall(true);
    expect(&handle, &place, &["a", "c"], true).await;
    api.stall(false);
    api.put("secrets", "d");
    expect(&handle, &place, &["a", "c", "d"], false).await;
    // Who is not wanted any more is not known any more.
    handle.set(Vec::new());
    let forgotten = timeout(DEADLINE, async {
        while handle.look(&place) != (None, None) {
            sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(forgotten.await.is_ok());
    token.cancel();
    assert!(timeout(DEADLINE, tasks.join_all()).await.is_ok());
}
