//! The document as a page for people: made once, without a script, of the very document that programs read.

use askama::Template;
use axum::Router;
use axum::body::Bytes;
use axum::response::{Redirect, Response};
use axum::routing::get;
use serde_json::Value;
use utoipa::openapi::OpenApi;

use super::output::Held;

/// How the page looks.
const STYLE: &str = include_str!("page.css");

/// The methods of a path, in the order shown.
const METHODS: [&str; 3] = ["get", "post", "delete"];

/// The page.
#[derive(Debug, Template)]
#[template(path = "page.html", config = "src/admin/api/askama.toml")]
struct Page<'a> {
    title: &'a str,
    version: &'a str,
    words: &'a str,
    groups: Vec<Group<'a>>,
    schemas: Vec<Schema<'a>>,
}

/// The operations of a tag.
#[derive(Debug)]
struct Group<'a> {
    name: &'a str,
    words: &'a str,
    operations: Vec<Operation<'a>>,
}

/// An operation.
#[derive(Debug)]
struct Operation<'a> {
    id: &'a str,
    method: String,
    path: &'a str,
    summary: &'a str,
    words: Vec<&'a str>,
    parameters: Vec<Member<'a>>,
    body: Option<Content<'a>>,
    responses: Vec<Answer<'a>>,
    curl: String,
}

/// A parameter, or a member of a schema.
#[derive(Debug)]
struct Member<'a> {
    name: &'a str,
    place: &'a str,
    required: bool,
    shape: Shape<'a>,
    words: &'a str,
}

/// What something is, in words around the name of a schema.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shape<'a> {
    before: String,
    name: Option<&'a str>,
    after: String,
}

/// A body of some kind.
#[derive(Debug)]
struct Content<'a> {
    kind: &'a str,
    words: &'a str,
    shape: Shape<'a>,
    example: Option<String>,
}

/// A response.
#[derive(Debug)]
struct Answer<'a> {
    status: &'a str,
    words: &'a str,
    contents: Vec<Content<'a>>,
}

/// A schema.
#[derive(Debug)]
struct Schema<'a> {
    name: &'a str,
    words: &'a str,
    values: Option<String>,
    members: Vec<Member<'a>>,
}

/// Serves the page and how it looks.
pub(super) fn routes(document: &OpenApi) -> Router {
    let page = Bytes::from(render(document));
    let serve = async move |held: Held| -> Response {
        held.or_send("text/html; charset=utf-8", page.clone())
    };
    let style = async |held: Held| -> Response { held.or_send("text/css; charset=utf-8", STYLE) };
    Router::new()
        .route("/api", get(async || Redirect::permanent("/api/")))
        .route("/api/", get(serve))
        .route("/api/page.css", get(style))
}

/// Makes the page.
pub(super) fn render(document: &OpenApi) -> String {
    // What is a document can be written, and what was read can be shown.
    let document = serde_json::to_value(document).unwrap_or_default();
    let page = Page {
        title: text(&document, "/info/title"),
        version: text(&document, "/info/version"),
        words: text(&document, "/info/description"),
        groups: groups(&document),
        schemas: schemas(&document),
    };
    page.render().unwrap_or_default()
}

/// Reads a text; empty where there is none.
fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// Lists what a place holds.
fn items<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.into_iter().flatten()
}

/// Lists what a place holds by name.
fn entries<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let found = value.pointer(pointer).and_then(Value::as_object);
    let all = found.into_iter().flatten();
    all.map(|(name, value)| (name.as_str(), value))
}

/// Cuts a text at its backticks: what is code, and what is not.
fn spans(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let parts = text.split('`').enumerate();
    parts.map(|(at, part)| (at % 2 == 1, part))
}

fn groups(document: &Value) -> Vec<Group<'_>> {
    let group = |tag| {
        let name = text(tag, "/name");
        let operations = entries(document, "/paths").flat_map(|(path, item)| {
            METHODS.iter().filter_map(move |method| {
                let found = item.get(method)?;
                let is_ours = items(found, "/tags").any(|tag| tag.as_str() == Some(name));
                is_ours.then(|| operation(document, path, method, found))
            })
        });
        Group {
            name,
            words: text(tag, "/description"),
            operations: operations.collect(),
        }
    };
    items(document, "/tags").map(group).collect()
}

fn operation<'a>(
    document: &'a Value,
    path: &'a str,
    method: &str,
    operation: &'a Value,
) -> Operation<'a> {
    let parameters = items(operation, "/parameters").map(|parameter| Member {
        name: text(parameter, "/name"),
        place: text(parameter, "/in"),
        required: parameter.get("required").and_then(Value::as_bool) == Some(true),
        shape: shape(parameter.get("schema").unwrap_or(&Value::Null)),
        words: text(parameter, "/description"),
    });
    let body = operation.get("requestBody").and_then(|body| {
        let content = contents(body).next()?;
        Some(Content {
            words: text(body, "/description"),
            ..content
        })
    });
    let responses = entries(operation, "/responses").map(|(status, response)| {
        // What all operations share is a problem: the page says once what those look like.
        let is_shared = response.get("$ref").is_some();
        let response = resolve(document, response);
        let contents = contents(response).filter(|_| !is_shared);
        Answer {
            status,
            words: text(response, "/description"),
            contents: contents.collect(),
        }
    });
    Operation {
        id: text(operation, "/operationId"),
        method: method.to_uppercase(),
        path,
        summary: text(operation, "/summary"),
        words: text(operation, "/description")
            .split("\n\n")
            .filter(|words| !words.is_empty())
            .collect(),
        parameters: parameters.collect(),
        body,
        responses: responses.collect(),
        curl: curl(path, method, operation),
    }
}

/// Follows a reference, if it is one.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let place = value.get("$ref").and_then(Value::as_str);
    let place = place.and_then(|place| document.pointer(place.strip_prefix('#')?));
    place.unwrap_or(value)
}

/// Lists the kinds of bodies that something has.
fn contents(value: &Value) -> impl Iterator<Item = Content<'_>> {
    entries(value, "/content").map(|(kind, content)| Content {
        kind,
        words: "",
        shape: shape(content.get("schema").unwrap_or(&Value::Null)),
        example: content.get("example").map(|example| match example {
            Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        }),
    })
}

/// Writes the command that does it. Members of paths and what must be asked are taken from their examples.
fn curl(path: &str, method: &str, operation: &Value) -> String {
    let mut place = path.to_owned();
    let mut asked = Vec::new();
    for parameter in items(operation, "/parameters") {
        let name = text(parameter, "/name");
        let example = text(parameter, "/example");
        let is_required = parameter.get("required").and_then(Value::as_bool) == Some(true);
        match (text(parameter, "/in"), example) {
            ("path", "") => {}
            ("path", example) => place = place.replace(&format!("{{{name}}}"), example),
            ("query", example) if is_required => asked.push(format!("{name}={example}")),
            _ => {}
        }
    }
    if !asked.is_empty() {
        place = format!("{place}?{}", asked.join("&"));
    }
    let method = match method {
        "get" | "post" => String::new(),
        other => format!(" -X {}", other.to_uppercase()),
    };
    let body = operation.pointer("/requestBody/content/application~1json/example");
    let body = body.map_or_else(String::new, |body| format!(" \\\n  --json '{body}'"));
    format!("curl{method} -H \"Authorization: Bearer $TOKEN\" \"$MERIDIAN_SERVER{place}\"{body}")
}

fn schemas(document: &Value) -> Vec<Schema<'_>> {
    entries(document, "/components/schemas")
        .map(|(name, schema)| schema_of(name, schema))
        .collect()
}

fn schema_of<'a>(name: &'a str, schema: &'a Value) -> Schema<'a> {
    let required: Vec<&str> = items(schema, "/required")
        .filter_map(Value::as_str)
        .collect();
    let members = entries(schema, "/properties").map(|(name, member)| Member {
        name,
        place: "",
        required: required.contains(&name),
        shape: shape(member),
        words: text(member, "/description"),
    });
    let values: Vec<&str> = items(schema, "/enum").filter_map(Value::as_str).collect();
    Schema {
        name,
        words: text(schema, "/description"),
        values: (!values.is_empty()).then(|| values.join(", ")),
        members: members.collect(),
    }
}

/// Says what a schema is.
fn shape(schema: &Value) -> Shape<'_> {
    if let Some(place) = schema.get("$ref").and_then(Value::as_str) {
        return Shape {
            name: place.rsplit('/').next(),
            ..Shape::default()
        };
    }
    if let Some(inner) = items(schema, "/oneOf").find(|shape| shape.get("$ref").is_some()) {
        let inner = shape(inner);
        return Shape {
            after: format!("{} or null", inner.after),
            ..inner
        };
    }
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => vec!["anything"],
    };
    if let Some(inner) = schema.get("items") {
        let inner = shape(inner);
        let before = format!("list of {}", inner.before);
        return Shape { before, ..inner };
    }
    let map = schema.get("additionalProperties");
    if let Some(inner) = map.filter(|inner| inner.is_object()) {
        let inner = shape(inner);
        let before = format!("by name: {}", inner.before);
        return Shape { before, ..inner };
    }
    Shape {
        before: format!("{}{}", kinds.join(" or "), limits(schema)),
        ..Shape::default()
    }
}

/// Says how large something may be.
fn limits(schema: &Value) -> String {
    let number = |name: &str| schema.get(name).map(ToString::to_string);
    let range = |least: Option<String>, most: Option<String>| match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    };
    let size = range(number("minLength"), number("maxLength"));
    let size = size.map(|size| format!("{size} characters"));
    let value = range(number("minimum"), number("maximum"));
    let found: Vec<String> = [size, value].into_iter().flatten().collect();
    match found.as_slice() {
        [] => String::new(),
        all => format!(", {}", all.join(", ")),
    }
}
