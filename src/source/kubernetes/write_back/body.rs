//! Events and Leases as they are written, and as far as they are read.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::election::{DURATION, Lease};
use super::statement::Statement;
use crate::source::kubernetes::annotations::PREFIX;

/// Where Events are.
pub(in crate::source::kubernetes) const EVENTS: &str = "/apis/events.k8s.io/v1";
/// Where Leases are.
pub(in crate::source::kubernetes) const LEASES: &str = "/apis/coordination.k8s.io/v1";
/// Octets of the object's name in the name of an Event: with the hash behind it no more than 253.
const MAX_NAME: usize = 200;
/// Octets of `reportingInstance` that a server takes.
const MAX_INSTANCE: usize = 128;

/// Names the Event of a statement about the object that has this UID: the same on every node, and another for an object of the
/// same name that comes later.
pub(in crate::source::kubernetes) fn event_name(statement: &Statement, uid: &str) -> String {
    let parts = [
        statement.object.kind.as_str(),
        uid,
        statement.reason.as_str(),
        statement.message(),
    ];
    // FNV-1a, with an octet between that no part has.
    let octets = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    let hash = octets.fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| {
        (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
    });
    let name = &*statement.object.name;
    let name = name.get(..name.floor_char_boundary(MAX_NAME));
    let name = name.unwrap_or_default().trim_end_matches(['.', '-']);
    format!("{name}.{hash:016x}")
}

/// Makes the Event of a statement (events.k8s.io/v1). `version`: that of the object's kind, such as `networking.k8s.io/v1`;
/// `node`: who says it.
pub(in crate::source::kubernetes) fn event(
    statement: &Statement,
    (version, uid): (&str, &str),
    node: &str,
    now: Timestamp,
) -> Value {
    let object = &statement.object;
    let node = node.get(..node.floor_char_boundary(MAX_INSTANCE));
    let kind = if statement.reason.is_warning() {
        "Warning"
    } else {
        "Normal"
    };
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": event_name(statement, uid), "namespace": &*object.namespace},
        "eventTime": micros(now),
        "reportingController": format!("{PREFIX}meridian"),
        "reportingInstance": node,
        "action": statement.reason.action(),
        "reason": statement.reason.as_str(),
        "regarding": {
            "apiVersion": version,
            "kind": object.kind.as_str(),
            "namespace": &*object.namespace,
            "name": &*object.name,
            "uid": uid,
        },
        "note": statement.message(),
        "type": kind,
    })
}

/// Makes the patch that counts an Event up. All else of it cannot be changed.
pub(in crate::source::kubernetes) fn series(count: u32, now: Timestamp) -> Value {
    json!({"series": {"count": count.max(2), "lastObservedTime": micros(now)}})
}

/// Makes a Lease that is `me`'s, or nobody's when that is empty, out of the one before.
pub(in crate::source::kubernetes) fn lease(
    (namespace, name): (&str, &str),
    me: &str,
    before: Option<&Lease>,
    now: Timestamp,
) -> Value {
    let now = micros(now);
    let is_same = before.is_some_and(|before| *before.holder == *me);
    let passed = u32::from(before.is_some() && !is_same && !me.is_empty());
    let transitions = before.map_or(0, |before| before.transitions.saturating_add(passed));
    let acquired = before.filter(|_| is_same);
    let acquired = acquired.and_then(|before| before.acquired.as_deref());
    // Given back, it is good for a second more, as client-go writes it.
    let seconds = if me.is_empty() { 1 } else { DURATION.as_secs() };
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "resourceVersion": before.map(|before| &*before.version),
        },
        "spec": {
            "holderIdentity": me,
            "leaseDurationSeconds": seconds,
            "acquireTime": acquired.unwrap_or(&now),
            "renewTime": now,
            "leaseTransitions": transitions,
        },
    })
}

/// Writes a moment as `MicroTime`.
fn micros(now: Timestamp) -> String {
    format!("{now:.6}")
}

#[derive(Deserialize)]
struct LeaseObject {
    metadata: Metadata,
    #[serde(default)]
    spec: LeaseSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    holder_identity: Option<Box<str>>,
    lease_duration_seconds: Option<i64>,
    lease_transitions: Option<i64>,
    acquire_time: Option<Box<str>>,
}

/// Reads a Lease; `None`: it is none.
pub(in crate::source::kubernetes) fn read_lease(octets: &[u8]) -> Option<Lease> {
    let read: LeaseObject = serde_json::from_slice(octets).ok()?;
    let number = |number: Option<i64>| u32::try_from(number.unwrap_or(0)).unwrap_or(0);
    let spec = read.spec;
    Some(Lease {
        version: read.metadata.resource_version,
        holder: spec.holder_identity.unwrap_or_default(),
        duration: Duration::from_secs(number(spec.lease_duration_seconds).into()),
        transitions: number(spec.lease_transitions),
        acquired: spec.acquire_time,
    })
}

#[derive(Deserialize)]
struct EventObject {
    series: Option<Series>,
}

#[derive(Deserialize)]
struct Series {
    #[serde(default)]
    count: i64,
}

/// Reads how often an Event was said; `None`: it is none.
pub(in crate::source::kubernetes) fn read_count(octets: &[u8]) -> Option<u32> {
    let read: EventObject = serde_json::from_slice(octets).ok()?;
    let count = read.series.map_or(1, |series| series.count);
    Some(u32::try_from(count).unwrap_or(1).max(1))
}
