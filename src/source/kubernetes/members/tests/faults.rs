//! Servers that go wrong, and how nothing of what is known is lost to it.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::super::status::{KindState, Link};
use super::api::{Api, Asked, Script, object};
use super::run::{Run, at};
use crate::source::kubernetes::records::{Event, Watched};

const SERVICES: &str = "/api/v1/services";

fn is_list(asked: &Asked) -> bool {
    asked.path == SERVICES && !asked.is_watch()
}

fn is_plain_watch(asked: &Asked) -> bool {
    asked.path == SERVICES && asked.is_watch() && !asked.is_stream()
}

fn is_stream(asked: &Asked) -> bool {
    asked.path == SERVICES && asked.is_stream()
}

/// A server with two Services and a slice, without streams, and a member that is synced with it.
async fn synced() -> (Api, Run) {
    let api = Api::start(30).await;
    api.put("services", "web");
    api.put("services", "mail");
    api.put("endpointslices", "web-1");
    let mut run = Run::of(&api);
    run.until_synced().await;
    run.until_known(Watched::Services, &["mail", "web"]).await;
    (api, run)
}

#[tokio::test]
async fn a_cluster_is_listed_and_watched() {
    let (api, mut run) = synced().await;
    assert_eq!(run.status().version.as_deref(), Some("v1.30.0"));
    assert_eq!(run.status().warnings.len(), 1, "it is not encrypted");
    api.put("services", "new");
    run.until_known(Watched::Services, &["mail", "new", "web"])
        .await;
    api.delete("services", "mail");
    run.until_known(Watched::Services, &["new", "web"]).await;
    api.put("services", "new");
    run.until("changed", |run| {
        let applied = |(_, event): &&(Watched, Event)| matches!(event, Event::Applied(key, _) if &*key.name == "new");
        run.seen.iter().filter(applied).count() == 2
    })
    .await;
    let services = run.kind(Watched::Services);
    assert_eq!((services.objects, services.lists), (2, 1));
    assert_eq!((services.failures, services.version), (0, Some("v1")));

    let asked = api.asked(SERVICES);
    assert!(asked.iter().all(|asked| !asked.is_stream()));
    assert!(asked[0].query.contains("limit=500"), "{asked:?}");
    let agent = concat!("meridian/", env!("CARGO_PKG_VERSION"));
    for asked in &api.state().asked {
        assert_eq!(asked.header("user-agent"), Some(agent));
        assert_eq!(asked.header("authorization"), None);
    }
}

#[tokio::test]
async fn a_newer_server_is_asked_for_a_stream() {
    let api = Api::start(36).await;
    api.put("services", "web");
    let mut run = Run::of(&api);
    run.until_synced().await;
    run.until_known(Watched::Services, &["web"]).await;
    api.put("services", "new");
    run.until_known(Watched::Services, &["new", "web"]).await;
    // The stream ends; what follows begins at its last version.
    api.cut();
    api.put("services", "newer");
    run.until_known(Watched::Services, &["new", "newer", "web"])
        .await;
    let asked = api.asked(SERVICES);
    assert!(
        asked[0].is_stream() && asked.iter().all(Asked::is_watch),
        "{asked:?}"
    );
    assert_eq!(run.kind(Watched::Services).lists, 1);
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let api = Api::start(30).await;
    for number in 0..1200 {
        api.put("services", &format!("s{number:04}"));
    }
    let mut run = Run::of(&api);
    run.until("all", |run| run.known(Watched::Services).len() == 1200)
        .await;
    let lists = api.asked(SERVICES).into_iter().filter(is_list).count();
    assert_eq!(lists, 3);
    assert_eq!(run.kind(Watched::Services).objects, 1200);
}

#[tokio::test]
async fn a_version_that_is_gone_is_listed_anew_and_nothing_is_lost() {
    let one = |as_status| async move {
        let (api, mut run) = synced().await;
        api.state().gone_as_status = as_status;
        // While nobody watches, one goes and one comes, and how is forgotten.
        api.stall(true);
        api.cut();
        api.delete("services", "mail");
        api.put("services", "new");
        api.compact();
        api.stall(false);
        run.until_known(Watched::Services, &["new", "web"]).await;
        run.never_lost(Watched::Services, &["web"]);
        run.until("listed anew", |run| run.kind(Watched::Services).lists == 2)
            .await;
        run.until_watching(Watched::Services).await;
        assert_eq!(run.kind(Watched::Services).failures, 0, "{as_status}");
        assert_eq!(run.status().link, Link::Synced);
    };
    let all: JoinSet<()> = [true, false].into_iter().map(one).collect();
    all.join_all().await;
}

#[tokio::test]
async fn an_answer_that_is_no_list_does_not_empty_anything() {
    let one = |script| async move {
        let (api, mut run) = synced().await;
        api.script(is_list, script);
        api.compact();
        api.cut();
        run.until("failed", |run| run.kind(Watched::Services).failures == 1)
            .await;
        assert!(run.status().last_error.unwrap().starts_with("services: "));
        assert_eq!(run.kind(Watched::Services).objects, 2);
        run.until_watching(Watched::Services).await;
        assert_eq!(run.status().last_error, None);
        run.never_lost(Watched::Services, &["mail", "web"]);
    };
    let json = |status, body: &str| Script::Answer(status, "application/json", body.to_owned());
    let scripts = [
        Script::Answer(200, "text/html", "<html>log in</html>".to_owned()),
        json(200, "{}"),
        json(200, r#"{"kind": "TestList", "items": [{"metad"#),
        Script::Cut(r#"{"kind": "TestList", "items": []"#.to_owned()),
        json(500, r#"{"message": "etcd is away"}"#),
    ];
    let all: JoinSet<()> = scripts.into_iter().map(one).collect();
    all.join_all().await;
}

#[tokio::test]
async fn one_object_that_is_wrong_spoils_no_other() {
    let api = Api::start(30).await;
    let wrong = json!({"metadata": {"name": "wrong", "creationTimestamp": 7}});
    let items = json!([7, wrong, {"metadata": {}}, object("services", "web", 5)]);
    let list = json!({"kind": "ServiceList", "metadata": {"resourceVersion": "9"}, "items": items});
    api.script(
        is_list,
        Script::Answer(200, "application/json", list.to_string()),
    );
    let event = |kind: &str, object: &serde_json::Value| json!({"type": kind, "object": object});
    let lines = format!(
        "{}\n{}\n{}\n",
        event("NOVELTY", &json!({"metadata": {"name": "no"}})),
        event("MODIFIED", &wrong),
        event("ADDED", &object("services", "mail", 11)),
    );
    api.script(is_plain_watch, Script::Lines(lines));
    let mut run = Run::of(&api);
    run.until_known(Watched::Services, &["mail", "web", "wrong"])
        .await;
    let unreadable = |(_, event): &&(Watched, Event)| matches!(event, Event::Unreadable(..));
    assert_eq!(run.seen.iter().filter(unreadable).count(), 2);
    // The connection broke; the watch goes on from the last version that was handed on.
    run.until("again", |_| api.asked(SERVICES).len() > 2).await;
    assert!(api.asked(SERVICES)[2].query.contains("resourceVersion=11"));
}

#[tokio::test]
async fn an_event_that_is_cut_off_comes_again() {
    let (api, mut run) = synced().await;
    let event = json!({"type": "ADDED", "object": object("services", "new", 500)});
    let half = event.to_string()[..90].to_owned();
    api.script(is_plain_watch, Script::Lines(half));
    api.cut();
    run.until("cut", |run| run.kind(Watched::Services).failures == 1)
        .await;
    api.put("services", "new");
    run.until_known(Watched::Services, &["mail", "new", "web"])
        .await;
    assert_eq!(run.kind(Watched::Services).lists, 1);
}

#[tokio::test]
async fn an_event_of_200_megabytes_is_not_read() {
    let (api, mut run) = synced().await;
    api.script(is_plain_watch, Script::Flood);
    api.cut();
    run.until("listed anew", |run| run.kind(Watched::Services).lists == 2)
        .await;
    run.until_watching(Watched::Services).await;
    // Four are taken, and the buffers of two sockets hold some more.
    let flooded = api.state().flooded >> 20;
    assert!((4..40).contains(&flooded), "{flooded} MiB");
    run.never_lost(Watched::Services, &["mail", "web"]);
    assert_eq!(run.kind(Watched::Services).failures, 1);
}

#[tokio::test]
async fn a_server_that_turns_streams_down_is_asked_for_pages_for_good() {
    let api = Api::start(36).await;
    api.put("services", "web");
    let refusal = r#"{"message": "etcd: too old for streams"}"#.to_owned();
    api.script(is_stream, Script::Answer(500, "application/json", refusal));
    let mut run = Run::of(&api);
    run.until_synced().await;
    run.until_known(Watched::Services, &["web"]).await;
    assert_eq!(run.kind(Watched::Services).failures, 0);
    api.compact();
    api.cut();
    run.until("listed anew", |run| run.kind(Watched::Services).lists == 2)
        .await;
    let asked = api.asked(SERVICES);
    assert_eq!(
        asked.iter().filter(|asked| is_stream(asked)).count(),
        1,
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_refusal_is_no_emptiness() {
    let (api, mut run) = synced().await;
    let refusal = r#"{"message": "services is forbidden"}"#.to_owned();
    api.script(is_list, Script::Answer(403, "application/json", refusal));
    api.compact();
    api.cut();
    let reason = "status 403: services is forbidden";
    let is_refused =
        |run: &Run| run.kind(Watched::Services).state == KindState::Refused(reason.into());
    run.until("refused", is_refused).await;
    assert!(matches!(run.status().link, Link::Stale { .. }));
    run.never_lost(Watched::Services, &["mail", "web"]);
    assert_eq!(run.kind(Watched::Services).objects, 2);
}

#[tokio::test]
async fn failures_are_not_repeated_faster_than_once_a_second() {
    let (api, mut run) = synced().await;
    for _ in 0..100 {
        let down = Script::Answer(500, "application/json", "{}".to_owned());
        api.script(|asked| asked.path == SERVICES, down);
    }
    let begun = Instant::now();
    api.cut();
    run.until("failed often", |run| {
        run.kind(Watched::Services).failures == 3
    })
    .await;
    // From the cut on: three that failed, with two waits of a second at least between them.
    assert!(begun.elapsed() >= Duration::from_secs(2));
    let asked = api.asked(SERVICES);
    let after: Vec<_> = asked.iter().filter(|asked| asked.at >= begun).collect();
    for three in after.windows(3) {
        assert!(
            three[2].at - three[0].at >= Duration::from_secs(1),
            "{three:?}"
        );
    }
    run.never_lost(Watched::Services, &["mail", "web"]);
}

#[tokio::test]
async fn a_server_that_stalls_makes_the_cluster_stale_in_time_and_loses_nothing() {
    let api = Api::start(36).await;
    api.put("services", "web");
    api.put("endpointslices", "web-1");
    let mut run = Run::with(&at(&api), "{}", Duration::from_secs(1));
    run.until_synced().await;
    run.until_known(Watched::Services, &["web"]).await;
    let stalled = Instant::now();
    api.stall(true);
    let is_stale = |run: &Run| matches!(run.status().link, Link::Stale { .. });
    run.until("stale", is_stale).await;
    assert!(
        stalled.elapsed() < Duration::from_secs(4),
        "{:?}",
        stalled.elapsed()
    );
    // The connections stay open and silent; a change is seen only because all begins anew.
    api.put("services", "new");
    let lists = run.kind(Watched::Services).lists;
    let asked = api.asked(SERVICES).len();
    run.until("missed", |run| run.status().last_error.is_some())
        .await;
    api.stall(false);
    run.until_synced().await;
    run.until("listed anew", |run| {
        run.kind(Watched::Services).lists > lists
    })
    .await;
    run.until_known(Watched::Services, &["new", "web"]).await;
    assert!(api.asked(SERVICES).len() > asked);
    run.never_lost(Watched::Services, &["web"]);
    run.never_lost(Watched::EndpointSlices, &["web-1"]);
}

#[tokio::test]
async fn a_server_that_was_never_there_is_followed_as_soon_as_it_is() {
    let api = Api::start(36).await;
    api.put("services", "web");
    api.stall(true);
    let mut run = Run::with(&at(&api), "{}", Duration::from_secs(1));
    run.until("missed", |run| run.status().last_error.is_some())
        .await;
    assert_eq!(run.status().link, Link::Never);
    api.stall(false);
    run.until_synced().await;
    run.until_known(Watched::Services, &["web"]).await;
}
