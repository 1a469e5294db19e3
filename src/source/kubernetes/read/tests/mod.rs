//! Objects of every kind as people write them, and what comes of them; hostile ones; any tree whatever.

mod endpoint_slice;
mod gateway;
mod hostile;
mod ingress;
mod node;
mod route;
mod service;
mod trees;

use serde::Deserialize as _;

use super::read;
use crate::inventory::Refused;
use crate::model::LowerName;
use crate::source::kubernetes::{Backend, Common, Event, Ingresses, Key, Object, Record, Watched};

/// Reads YAML into the form that a watch gives.
fn object(yaml: &str) -> Object<'static> {
    let tree: serde_json::Value = serde_saphyr::from_str(yaml).unwrap();
    Object::deserialize(tree).unwrap()
}

/// Reads an object that must be good enough to be kept.
fn applied(watched: Watched, yaml: &str) -> (Key, Record) {
    match read(watched, &object(yaml)) {
        Some(Event::Applied(key, record)) => (key, *record),
        other => panic!("{other:?}"),
    }
}

/// Reads an object that must not be kept; gives its key, and what is wrong.
fn unreadable(watched: Watched, yaml: &str) -> (Key, Refused) {
    match read(watched, &object(yaml)) {
        Some(Event::Unreadable(key, refused)) => (key, refused),
        other => panic!("{other:?}"),
    }
}

/// Makes a key.
fn key(namespace: &str, name: &str) -> Key {
    Key {
        namespace: namespace.into(),
        name: name.into(),
    }
}

/// Makes a backend.
fn backend(namespace: &str, name: &str, is_used: bool) -> Backend {
    Backend {
        service: key(namespace, name),
        is_used,
    }
}

/// Makes what a status says.
fn entries(addresses: &[&str], hostnames: &[&str]) -> Ingresses {
    Ingresses {
        addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        hostnames: hosts(hostnames),
    }
}

/// Makes names.
fn hosts(names: &[&str]) -> Vec<LowerName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// Lists what was refused, with a part of each reason.
#[track_caller]
fn assert_refused(common: &Common, wanted: &[(&str, &str)]) {
    let found = &common.refused;
    let fits = found.len() == wanted.len()
        && found
            .iter()
            .zip(wanted)
            .all(|(one, (what, part))| *one.what == **what && one.reason.contains(part));
    assert!(fits, "{found:#?}");
}
