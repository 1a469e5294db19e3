//! The document, the page made of it, and requests held against it.

use std::collections::BTreeSet;

use axum::extract::FromRequestParts;
use axum::http::Request;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use utoipa::IntoParams;

use super::input::{Asked, Nothing, from_json};
use super::{described, document, limits, page};
use crate::admin::dto::{NewDrain, NewForce, ProblemDetailsDto};
use crate::admin::problem::Problem;
use crate::admin::view::{EventQuery, ExplainQuery, MonitorQuery, Paging, ServiceQuery};

fn finished() -> utoipa::openapi::OpenApi {
    document::complete(described().split_for_parts().1)
}

fn finished_json() -> Value {
    serde_json::to_value(finished()).unwrap()
}

/// Lists every operation: path, method, operation.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    });
    all.collect()
}

/// Calls `look` with every value of a document.
fn walk<'a>(value: &'a Value, look: &mut impl FnMut(&'a str, &'a Value)) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                look(name, member);
                walk(member, look);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, look)),
        _ => {}
    }
}

#[test]
fn every_operation_is_described_in_full() {
    let document = finished_json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["license"]["identifier"], "Apache-2.0");
    assert_eq!(document["servers"][0]["url"], "/");
    let tags: BTreeSet<&str> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].as_str().unwrap())
        .collect();
    let mut ids = BTreeSet::new();
    let all = operations(&document);
    assert_eq!(all.len(), 28);
    for (path, method, operation) in all {
        let at = format!("{method} {path}");
        assert!(path.starts_with("/api/v1/"), "{at}");
        assert!(
            ids.insert(operation["operationId"].as_str().unwrap()),
            "{at}"
        );
        assert!(
            tags.contains(operation["tags"][0].as_str().unwrap()),
            "{at}"
        );
        assert!(
            operation["summary"].as_str().unwrap().ends_with('.'),
            "{at}"
        );
        let responses = operation["responses"].as_object().unwrap();
        let mut wanted = vec!["200", "400", "401", "403", "405", "421", "429", "503"];
        match method {
            "get" => wanted.push("304"),
            _ => wanted.extend(["408", "409", "413", "415", "422"]),
        }
        wanted.extend((method == "post").then_some("201"));
        let lists = ["/api/v1/services", "/api/v1/monitors"];
        let is_of_something = path.contains('{') || lists.contains(&path);
        wanted.extend(is_of_something.then_some("404"));
        wanted.sort_unstable();
        let mut found: Vec<&str> = responses.keys().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, wanted, "{at}");
        for (status, response) in responses {
            if let Some(place) = response["$ref"].as_str() {
                assert!(document.pointer(&place[1..]).is_some(), "{at} {status}");
            } else if status != "304" {
                for (kind, content) in response["content"].as_object().unwrap() {
                    assert!(!content["example"].is_null(), "{at} {status} {kind}");
                }
            }
        }
        // Only reads may be anonymous, and the audit log is no read for all.
        let is_open = operation["security"]
            .as_array()
            .unwrap()
            .contains(&json!({}));
        assert_eq!(
            is_open,
            method == "get" && !path.ends_with("/audit"),
            "{at}"
        );
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let words = parameter["description"].as_str();
            assert!(
                words.is_some_and(|words| !words.is_empty()),
                "{at} {parameter}"
            );
        }
    }
}

#[test]
fn references_lead_somewhere_and_patterns_are_enforced() {
    let document = finished_json();
    let mut patterns = 0;
    walk(&document, &mut |name, value| match (name, value.as_str()) {
        ("$ref", Some(place)) => assert!(document.pointer(&place[1..]).is_some(), "{place}"),
        ("pattern", Some(pattern)) => {
            assert!(
                pattern == limits::WORDS || limits::choices(pattern).is_some(),
                "{pattern}"
            );
            patterns += 1;
        }
        _ => {}
    });
    assert!(patterns >= 4, "{patterns}");
}

#[test]
fn the_page_shows_every_operation_and_needs_no_script() {
    let document = finished();
    let html = page::render(&document);
    let document = serde_json::to_value(&document).unwrap();
    for (path, method, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(
            html.contains(&format!("<article id=\"{id}\"")),
            "{method} {path}"
        );
    }
    for forbidden in [
        "<script",
        "<style",
        "style=",
        "onclick",
        "src=",
        "http://",
        "https://cdn",
    ] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    let links = html.split("href=\"#").skip(1);
    for name in links.map(|rest| rest.split('"').next().unwrap()) {
        assert!(
            html.contains(&format!("id=\"{name}\"")),
            "#{name} leads nowhere"
        );
    }
    assert!(html.contains("curl -X DELETE -H &#34;Authorization: Bearer $TOKEN&#34;"));
    assert!(
        html.contains("/api/v1/services/shop/web&#34;"),
        "an example's path"
    );
    assert!(
        html.contains("?reason=repaired"),
        "a parameter that must be there"
    );
    assert!(
        html.contains("--json &#39;{&#34;target&#34;"),
        "an example's body"
    );
}

#[test]
fn problems_are_what_the_document_says() {
    let problem = Problem::not_found("no").at("/x").in_field("y");
    let value = serde_json::to_value(&problem).unwrap();
    let read: ProblemDetailsDto = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), value);
}

// === Bodies ===

/// Reads a drain; gives the status and the member complained of.
fn drain(body: &str) -> Result<NewDrain, (u16, Option<String>, String)> {
    from_json(body.as_bytes()).map_err(|problem| {
        let field = problem.field.map(String::from);
        (problem.status, field, problem.detail.into_owned())
    })
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of cases")]
fn bodies_are_refused_with_their_place() {
    let target = r#""target":{"kind":"cluster","cluster":"a"}"#;
    let with = |more: &str| format!("{{{target},{more}}}");
    assert!(drain(&with(r#""reason":"x""#)).is_ok());
    let long = "ä".repeat(500);
    assert!(drain(&with(&format!(r#""reason":"{long}""#))).is_ok());
    let widest = r#""reason":"x","inSeconds":2592000,"forSeconds":31536000"#;
    assert!(drain(&with(widest)).is_ok());
    let cluster = format!(
        r#"{{"target":{{"kind":"cluster","cluster":"{}"}},"reason":"x"}}"#,
        "a".repeat(254)
    );
    for (body, status, field, words) in [
        (String::new(), 400, None, "line 1 column 0"),
        ("{".to_owned(), 400, None, "line 1 column 1"),
        (
            "{\n  \"reason\": }".to_owned(),
            400,
            None,
            "line 2 column 13",
        ),
        ("[]".to_owned(), 422, None, "line 1 column"),
        (with(r#""reason":"x"} {"#), 400, None, "line 1 column"),
        (
            with(r#""reason":"x","more":1"#),
            422,
            Some("more"),
            "line 1 column",
        ),
        (with(r#""reason":7"#), 422, Some("reason"), "line 1 column"),
        (format!("{{{target}}}"), 422, Some("reason"), "missing"),
        (
            r#"{"reason":"x"}"#.to_owned(),
            422,
            Some("target"),
            "missing",
        ),
        (
            r#"{"target":{"cluster":"a"},"reason":"x"}"#.to_owned(),
            422,
            Some("target.kind"),
            "missing",
        ),
        (
            r#"{"target":{"kind":"planet"},"reason":"x"}"#.to_owned(),
            422,
            Some("target.kind"),
            "unknown variant",
        ),
        (
            r#"{"target":{"kind":"cluster","moon":1},"reason":"x"}"#.to_owned(),
            422,
            Some("target.moon"),
            "unknown field",
        ),
        (cluster, 422, Some("target.cluster"), "0 to 253 characters"),
        (
            with(r#""reason":"""#),
            422,
            Some("reason"),
            "1 to 500 characters",
        ),
        (
            with(r#""reason":"  ""#),
            422,
            Some("reason"),
            "more than spaces",
        ),
        (
            with(r#""reason":"a\nb""#),
            422,
            Some("reason"),
            "no control character",
        ),
        (
            with(&format!(r#""reason":"{long}x""#)),
            422,
            Some("reason"),
            "this has 501",
        ),
        (
            with(r#""reason":"x","inSeconds":2592001"#),
            422,
            Some("inSeconds"),
            "0 to 2592000",
        ),
        (
            with(r#""reason":"x","inSeconds":-1"#),
            422,
            Some("inSeconds"),
            "-1",
        ),
        (
            with(r#""reason":"x","forSeconds":0"#),
            422,
            Some("forSeconds"),
            "1 to 31536000",
        ),
        (
            with(r#""reason":"x","forSeconds":31536001"#),
            422,
            Some("forSeconds"),
            "1 to 31536000",
        ),
    ] {
        let (found, place, detail) = drain(&body).expect_err(&body);
        assert_eq!(found, status, "{body}: {detail}");
        assert_eq!(place.as_deref(), field, "{body}: {detail}");
        assert!(detail.contains(words), "{body}: {detail}");
    }
    let force = r#"{"target":{"kind":"cluster","cluster":"a"},"verdict":"sideways","reason":"x"}"#;
    let refused = from_json::<NewForce>(force.as_bytes()).unwrap_err();
    assert_eq!(
        (refused.status, refused.field.as_deref()),
        (422, Some("verdict"))
    );
}

// === Parameters ===

/// Reads a query string; gives what a problem says.
async fn ask<T>(query: &str) -> Result<T, (u16, Option<String>, String)>
where
    T: serde::de::DeserializeOwned + IntoParams,
{
    let request = Request::get(format!("/x?{query}")).body(()).unwrap();
    let (mut parts, ()) = request.into_parts();
    let read = Asked::<T>::from_request_parts(&mut parts, &()).await;
    read.map(|asked| asked.0).map_err(|problem| {
        let field = problem.field.map(String::from);
        (problem.status, field, problem.detail.into_owned())
    })
}

/// Checks that a query is refused for a parameter, with these words.
async fn check<T>(query: &str, field: &str, words: &str)
where
    T: serde::de::DeserializeOwned + IntoParams + std::fmt::Debug,
{
    let (status, place, detail) = ask::<T>(query).await.expect_err(query);
    assert_eq!(status, 400, "{query}: {detail}");
    assert_eq!(place.as_deref(), Some(field), "{query}: {detail}");
    assert!(detail.contains(words), "{query}: {detail}");
}

#[tokio::test]
async fn parameters_are_refused_by_name() {
    check::<Paging>("page=2", "page", "there are `limit`, `cursor`").await;
    check::<Nothing>("limit=2", "limit", "there are no parameters here").await;
    check::<Paging>("limit=0", "limit", "must be 1 to 500").await;
    check::<Paging>("limit=501", "limit", "must be 1 to 500").await;
    check::<Paging>("limit=many", "limit", "invalid digit").await;
    check::<Paging>("limit=", "limit", "").await;
    check::<Paging>("limit=2&limit=3", "limit", "twice").await;
    let long = format!("cursor={}", "x".repeat(1025));
    check::<Paging>(&long, "cursor", "0 to 1024 characters").await;
    check::<ServiceQuery>("state=broken", "state", "unknown variant").await;
    check::<MonitorQuery>("verdict=sideways", "verdict", "one of up, down, unknown").await;
    check::<MonitorQuery>("neverSucceeded=maybe", "neverSucceeded", "").await;
    check::<EventQuery>("severity=loud", "severity", "unknown variant").await;
    let long = format!("search={}", "%C3%A4".repeat(254));
    check::<EventQuery>(&long, "search", "0 to 253 characters").await;
    check::<ExplainQuery>("name=", "name", "1 to 1024 characters").await;
}

#[tokio::test]
async fn parameters_are_read_as_the_document_says() {
    let query: ServiceQuery = ask("search=%20web&state=down&limit=500&cursor=")
        .await
        .unwrap();
    assert_eq!(query.search.as_deref(), Some(" web"));
    assert_eq!(query.limit, Some(500));
    assert_eq!(query.cursor.as_deref(), Some(""));
    let query: ExplainQuery = ask("name=a&type=AAAA").await.unwrap();
    assert_eq!(query.r#type.as_deref(), Some("AAAA"));
    assert!(ask::<Nothing>("").await.is_ok());
}

#[tokio::test]
async fn problems_of_parameters_are_responses() {
    let request = Request::get("/x?y=1").body(()).unwrap();
    let (mut parts, ()) = request.into_parts();
    let refused = Asked::<Nothing>::from_request_parts(&mut parts, &()).await;
    let response = refused.unwrap_err().into_response();
    assert_eq!(response.status(), 400);
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
}
