//! Requests: parameters and bodies, refused with their place where they are not what the document says.

use std::collections::BTreeMap;
use std::error::Error as _;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::{IntoParams, ToSchema};

use super::limits::breach;
use crate::admin::problem::Problem;

/// The parameters of a query string. One that the document does not have, or has twice, is refused.
#[derive(Clone, Debug)]
pub(super) struct Asked<T>(pub(super) T);

/// The parameters of a path.
#[derive(Clone, Debug)]
pub(super) struct Place<T>(pub(super) T);

/// A body of JSON.
#[derive(Clone, Debug)]
pub(super) struct Sent<T>(pub(super) T);

/// No parameters at all.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
pub(super) struct Nothing {}

impl IntoParams for Nothing {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        Vec::new()
    }
}

impl<S: Sync, T: DeserializeOwned + IntoParams> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let known = T::into_params(|| Some(ParameterIn::Query));
        let given = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|error| Problem::bad_request(error.body_text()))?;
        let given: Vec<_> = given
            .0
            .iter()
            .map(|(name, text)| (&**name, &**text))
            .collect();
        check(&known, &given)?;
        let read = Query::<T>::try_from_uri(&parts.uri);
        read.map(|query| Self(query.0))
            .map_err(|error| refused_parameter(&error.body_text()))
    }
}

impl<S: Send + Sync, T: DeserializeOwned + IntoParams + Send> FromRequestParts<S> for Place<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let known = T::into_params(|| Some(ParameterIn::Path));
        let raw = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|error| Problem::bad_request(error.body_text()))?;
        let given: Vec<_> = raw.iter().collect();
        check(&known, &given)?;
        let read = Path::<T>::from_request_parts(parts, state).await;
        read.map(|path| Self(path.0))
            .map_err(|error| Problem::bad_request(error.body_text()))
    }
}

/// Holds parameters against the document.
fn check(known: &[Parameter], given: &[(&str, &str)]) -> Result<(), Problem> {
    let mut seen = BTreeMap::new();
    for (name, text) in given {
        let Some(parameter) = known.iter().find(|parameter| parameter.name == *name) else {
            return Err(unknown_parameter(name, known));
        };
        if seen.insert(name, ()).is_some() {
            return Err(Problem::bad_request(format!("`{name}` is given twice")).in_field(*name));
        }
        let schema = serde_json::to_value(&parameter.schema).unwrap_or_default();
        if let Some(breach) = breach(&schema, &|_| None, &read(&schema, text)) {
            return Err(Problem::bad_request(format!("`{name}` {}", breach.why)).in_field(*name));
        }
    }
    Ok(())
}

/// Reads a parameter as what its schema says it is; what cannot be read is left to its reader to refuse.
fn read(schema: &Value, text: &str) -> Value {
    let is_number = schema.get("type").and_then(Value::as_str) == Some("integer");
    match text.parse::<u64>() {
        Ok(number) if is_number => Value::from(number),
        _ if is_number => Value::Null,
        _ => Value::from(text),
    }
}

/// Says that a parameter is none, and which ones are.
fn unknown_parameter(name: &str, known: &[Parameter]) -> Problem {
    let names: Vec<String> = known
        .iter()
        .map(|parameter| format!("`{}`", parameter.name))
        .collect();
    let there = match names.as_slice() {
        [] => "there are no parameters here".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    Problem::bad_request(format!("unknown parameter `{name}`; {there}")).in_field(name)
}

/// Says why a parameter could not be read. The words are those of the reader, after the name.
fn refused_parameter(words: &str) -> Problem {
    let words = words
        .strip_prefix("Failed to deserialize query string: ")
        .unwrap_or(words);
    match words.split_once(": ") {
        Some((name, why)) => Problem::bad_request(format!("`{name}`: {why}")).in_field(name),
        None => Problem::bad_request(words.to_owned()),
    }
}

impl<S: Send + Sync, T: DeserializeOwned + ToSchema> FromRequest<S> for Sent<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            let detail = "the body must be JSON: send `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let body = Bytes::from_request(request, state).await.map_err(|error| {
            let detail = format!("the body could not be taken: {}", error.body_text());
            Problem::new(error.status(), detail)
        })?;
        from_json(&body).map(Self)
    }
}

/// Reads a body.
///
/// # Errors
/// 400 with line and column where it is no JSON; 422 with the member where it is not the JSON wanted.
pub(super) fn from_json<T: DeserializeOwned + ToSchema>(body: &[u8]) -> Result<T, Problem> {
    let value = Json::<T>::from_bytes(body)
        .map_err(|error| refused_body(&error))?
        .0;
    let mut named = Vec::new();
    T::schemas(&mut named);
    let named: BTreeMap<String, Value> = named
        .into_iter()
        .map(|(name, schema)| (name, serde_json::to_value(schema).unwrap_or_default()))
        .collect();
    let schema = serde_json::to_value(T::schema()).unwrap_or_default();
    // It was read once, so that it can be read again.
    let plain: Value = serde_json::from_slice(body).unwrap_or_default();
    match breach(&schema, &|name| named.get(name), &plain) {
        None => Ok(value),
        Some(breach) => Err(unfit(&breach.field, &breach.why)),
    }
}

/// Says that a member of a body is not as it must be.
pub(super) fn unfit(field: &str, why: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("`{field}` {why}")).in_field(field)
}

/// Says why a body could not be read, with line and column.
fn refused_body(error: &JsonRejection) -> Problem {
    // The reader's own words are one below axum's, with the path of the member before them.
    let words = error
        .source()
        .map_or_else(|| error.body_text(), ToString::to_string);
    if !matches!(error, JsonRejection::JsonDataError(_)) {
        let words = words.strip_prefix(".: ").unwrap_or(&words);
        return Problem::bad_request(format!("the body is no JSON: {words}"));
    }
    let (path, why) = words.split_once(": ").unwrap_or((".", &words));
    let (path, why) = if why.is_empty() || path.contains(' ') {
        (".", words.as_str())
    } else {
        (path, why)
    };
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, why.to_owned());
    match field(path, why) {
        Some(field) => problem.in_field(field),
        None => problem,
    }
}

/// Names the member that a reader complains of: the path, and the missing or unknown member in it.
fn field(path: &str, why: &str) -> Option<String> {
    let quoted = ["missing field `", "unknown field `"]
        .iter()
        .find_map(|start| why.strip_prefix(start)?.split('`').next());
    match (path, quoted) {
        (".", None) => None,
        (".", Some(name)) => Some(name.to_owned()),
        (path, None) => Some(path.to_owned()),
        // The path of an unknown member ends with it, that of a missing one does not.
        (path, Some(name)) if path == name || path.ends_with(&format!(".{name}")) => {
            Some(path.to_owned())
        }
        (path, Some(name)) => Some(format!("{path}.{name}")),
    }
}

/// Tells whether a body says that it is JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}
