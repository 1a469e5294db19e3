//! The requests of the writer: the Lease, Events, and the UIDs of objects.

use std::time::Duration;

use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use super::clock::timestamp;
use super::fault::{Fault, FaultKind};
use super::kinds::{Resource, version_path};
use super::server::{SMALL, Server, bad_request};
use crate::inventory::ObjectRef;
use crate::source::kubernetes::write_back::{
    Ask, EVENTS, LEASES, Lease, Statement, event, event_name, lease, read_count, read_lease, series,
};

/// The name of the Lease in every member.
pub(super) const LEASE: &str = "meridian-events";
/// A request is answered within.
const WITHIN: Duration = Duration::from_secs(3);
/// The Lease is given back within.
const GIVE_BACK: Duration = Duration::from_secs(1);
/// Octets of a UID that is believed.
const MAX_UID: usize = 64;

/// What came of a statement.
pub(super) enum Outcome {
    /// It was said, so often by now.
    Said(u32),
    /// Another said it, so often.
    Found(u32),
    /// The Event that was to be counted up is there no more.
    Lost,
    /// The object is there no more, or its kind.
    Gone,
}

/// Gives the path of the Lease, or of all of its namespace.
fn lease_path(namespace: &str, is_one: bool) -> String {
    let all = format!("{LEASES}/namespaces/{namespace}/leases");
    if is_one {
        format!("{all}/{LEASE}")
    } else {
        all
    }
}

/// Makes a request with a body.
fn request(method: Method, path: &str, body: &Value) -> Result<Request<Vec<u8>>, Fault> {
    let kind = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, HeaderValue::from_static(kind))
        .body(body.to_string().into_bytes())
        .map_err(|_| bad_request())
}

/// Asks for the Lease.
pub(super) async fn ask_for(
    server: &Server,
    namespace: &str,
    ask: &Ask,
    me: &str,
) -> Result<Lease, Fault> {
    let ours = |before: Option<&Lease>| lease((namespace, LEASE), me, before, timestamp());
    let request = match ask {
        Ask::Read => Request::get(lease_path(namespace, true))
            .body(Vec::new())
            .map_err(|_| bad_request()),
        Ask::Create => request(Method::POST, &lease_path(namespace, false), &ours(None)),
        Ask::Take(before) | Ask::Renew(before) => request(
            Method::PUT,
            &lease_path(namespace, true),
            &ours(Some(before)),
        ),
    };
    let octets = server.get(request?, SMALL, WITHIN).await?;
    read_lease(&octets).ok_or_else(|| Fault::new(FaultKind::Malformed, "the answer is no Lease"))
}

/// Gives the Lease back: it is nobody's.
///
/// # Errors
/// When the server does not take it.
pub(super) async fn give_back(server: &Server, namespace: &str, held: &Lease) -> Result<(), Fault> {
    let body = lease((namespace, LEASE), "", Some(held), timestamp());
    let request = request(Method::PUT, &lease_path(namespace, true), &body)?;
    server.get(request, SMALL, GIVE_BACK).await.map(drop)
}

/// Writes the Event of a statement, or counts it up.
pub(super) async fn write(
    server: &Server,
    (statement, count): (&Statement, u32),
    resource: Option<Resource>,
    node: &str,
) -> Result<Outcome, Fault> {
    let Some(resource) = resource.filter(|_| is_named(&statement.object)) else {
        return Ok(Outcome::Gone);
    };
    let Some(uid) = uid_of(server, &statement.object, resource).await? else {
        return Ok(Outcome::Gone);
    };
    let all = format!("{EVENTS}/namespaces/{}/events", statement.object.namespace);
    let one = format!("{all}/{}", event_name(statement, &uid));
    if count == 0 {
        let version = version_of(resource);
        let event = event(statement, (&version, &uid), node, timestamp());
        let request = request(Method::POST, &all, &event)?;
        match server.get(request, SMALL, WITHIN).await {
            Ok(_) => return Ok(Outcome::Said(1)),
            Err(fault) if fault.kind == FaultKind::Answered(409) => {}
            Err(fault) => return Err(fault),
        }
    }
    let next = count.saturating_add(1);
    // Nothing is changed where it is only asked how often it was said.
    let patch = if count == 0 {
        json!({})
    } else {
        series(next, timestamp())
    };
    let patch = request(Method::PATCH, &one, &patch)?;
    match server.get(patch, SMALL, WITHIN).await {
        Ok(_) if count > 0 => Ok(Outcome::Said(next)),
        Ok(octets) => Ok(Outcome::Found(read_count(&octets).unwrap_or(1))),
        Err(fault) if fault.kind == FaultKind::Missing => Ok(Outcome::Lost),
        Err(fault) => Err(fault),
    }
}

/// Tells whether an object has a name that a path can have. What cannot be read has none, perhaps.
fn is_named(object: &ObjectRef) -> bool {
    let is_plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b'.');
    let is_name =
        |name: &str| !name.starts_with('.') && !name.is_empty() && name.bytes().all(is_plain);
    is_name(&object.namespace) && is_name(&object.name)
}

/// PartialObjectMetadata, as far as it is read.
#[derive(Deserialize)]
struct Partial {
    metadata: PartialMetadata,
}

#[derive(Deserialize)]
struct PartialMetadata {
    uid: String,
}

/// Asks for the UID of an object: `kubectl describe` shows Events of that alone. `None`: there is no such object.
async fn uid_of(
    server: &Server,
    object: &ObjectRef,
    resource: Resource,
) -> Result<Option<String>, Fault> {
    let path = format!(
        "{}/namespaces/{}/{}/{}",
        version_path(resource.group, resource.version),
        object.namespace,
        resource.plural,
        object.name
    );
    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    let request = Request::get(path)
        .header(ACCEPT, HeaderValue::from_static(metadata))
        .body(Vec::new())
        .map_err(|_| bad_request())?;
    let octets = match server.get(request, SMALL, WITHIN).await {
        Err(fault) if fault.kind == FaultKind::Missing => return Ok(None),
        answer => answer?,
    };
    let read: Result<Partial, _> = serde_json::from_slice(&octets);
    let uid = read.ok().map(|read| read.metadata.uid);
    let is_plain = |uid: &String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (1..=MAX_UID).contains(&uid.len()) && uid.chars().all(is_plain)
    };
    let malformed = || Fault::new(FaultKind::Malformed, "the object has no UID");
    uid.filter(is_plain).map(Some).ok_or_else(malformed)
}

/// Names the version of a kind as objects do.
fn version_of(resource: Resource) -> String {
    if resource.group.is_empty() {
        resource.version.to_owned()
    } else {
        format!("{}/{}", resource.group, resource.version)
    }
}
