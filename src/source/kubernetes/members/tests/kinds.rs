//! Kinds that come, change and go.

use super::super::status::KindState;
use super::api::{Api, Script};
use super::run::Run;
use crate::source::kubernetes::records::{Event, Watched};

const GROUP: &str = "gateway.networking.k8s.io";
const DEFINITION: &str = "gateways.gateway.networking.k8s.io";

#[tokio::test]
async fn a_kind_that_comes_is_watched_at_once_and_one_that_goes_is_told() {
    let api = Api::start(36).await;
    let mut run = Run::of(&api);
    run.until_synced().await;
    let is_unserved = |run: &Run| run.kind(Watched::Gateways).state == KindState::Unserved;
    run.until("unserved", is_unserved).await;
    let unserved = (Watched::Gateways, Event::Unserved);
    run.until("told", |run| run.seen.contains(&unserved)).await;

    api.state()
        .served
        .insert((GROUP, "v1beta1"), vec!["gateways"]);
    api.put("gateways", "public");
    api.put("customresourcedefinitions", DEFINITION);
    run.until_known(Watched::Gateways, &["public"]).await;
    assert_eq!(run.kind(Watched::Gateways).version, Some("v1beta1"));

    // A better version of it is served too.
    api.state().served.insert((GROUP, "v1"), vec!["gateways"]);
    api.put("customresourcedefinitions", DEFINITION);
    run.until("at v1", |run| {
        run.kind(Watched::Gateways).version == Some("v1")
    })
    .await;
    run.until_watching(Watched::Gateways).await;
    run.never_lost(Watched::Gateways, &["public"]);

    api.state().served.retain(|(group, _), _| *group != GROUP);
    api.delete("customresourcedefinitions", DEFINITION);
    api.cut();
    run.until("unserved", is_unserved).await;
    run.until_known(Watched::Gateways, &[]).await;
    assert_eq!(run.kind(Watched::Gateways).objects, 0);
}

#[tokio::test]
async fn a_kind_that_is_missing_for_a_moment_is_not_gone() {
    let api = Api::start(30).await;
    api.put("services", "web");
    let mut run = Run::of(&api);
    run.until_synced().await;
    run.until_known(Watched::Services, &["web"]).await;
    let looks = api.asked("/apis").len();
    // It is there, but who stands before the server does not know it.
    let missing = Script::Answer(404, "text/plain", "404 page not found".to_owned());
    api.script(|asked| asked.path == "/api/v1/services", missing);
    api.cut();
    run.until("missed", |run| run.kind(Watched::Services).failures == 1)
        .await;
    run.until("looked at", |_| api.asked("/apis").len() > looks)
        .await;
    run.until_watching(Watched::Services).await;
    run.never_lost(Watched::Services, &["web"]);
    let told = (Watched::Services, Event::Unserved);
    assert!(!run.seen.contains(&told));
}

#[tokio::test]
async fn where_nobody_may_ask_what_there_is_the_built_in_kinds_are_followed() {
    let api = Api::start(36).await;
    api.put("services", "web");
    for _ in 0..100 {
        let forbidden = Script::Answer(403, "application/json", "{}".to_owned());
        api.script(|asked| asked.path == "/apis", forbidden);
    }
    let mut run = Run::of(&api);
    run.until_synced().await;
    run.until_known(Watched::Services, &["web"]).await;
    assert_eq!(run.kind(Watched::Gateways).state, KindState::Waiting);
    assert_eq!(run.status().last_error.as_deref(), Some("status 403"));
}
