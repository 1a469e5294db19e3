//! A Route of any kind: HTTPRoute, GRPCRoute, TLSRoute, TCPRoute, UDPRoute (gateway.networking.k8s.io).

use std::sync::Arc;

use super::fields::{Faults, Field, refused};
use super::names::{name_fault, namespace};
use super::object::Object;
use super::parts::{Backends, Hosts, MAX_HOSTS, common, referred, untrue};
use super::records::{GATEWAYS, Key, Parent, RouteRecord};
use crate::inventory::{ObjectKind, Refused};
use crate::model::LowerName;

/// Parents of one Route, at most; as many as its definition allows.
const MAX_PARENTS: usize = 32;
/// Greatest weight of a backend.
const MAX_WEIGHT: u32 = 1_000_000;

/// Reads a Route.
///
/// # Errors
/// When nothing can be read of it, or none of the hosts that it names: without them it would be for all hosts of its listeners.
pub(super) fn read(kind: ObjectKind, object: &Object<'_>) -> Result<RouteRecord, Refused> {
    let faults = Faults::default();
    let root = Field::open(object, &faults)?;
    let own = namespace(object);
    let hosts = match kind {
        ObjectKind::TcpRoute | ObjectKind::UdpRoute => Vec::new(),
        _ => hosts(&root.at(&["spec", "hostnames"]))?,
    };
    let mut backends = Backends::default();
    for rule in root.at(&["spec", "rules"]).items(MAX_HOSTS) {
        for reference in rule.at(&["backendRefs"]).items(MAX_HOSTS) {
            add_backend(&reference, &own, &mut backends);
        }
    }
    let parents = parents(&root, &own);
    Ok(RouteRecord {
        kind,
        hosts,
        parents,
        backends: backends.into_list(),
        common: common(object, faults),
    })
}

/// Reads the hosts that a Route names; empty where it names none.
fn hosts(list: &Field<'_>) -> Result<Vec<LowerName>, Refused> {
    let mut hosts = Hosts::default();
    for field in list.items(MAX_HOSTS) {
        hosts.add(&field);
    }
    let hosts = hosts.into_list();
    if hosts.is_empty() && list.is_filled() {
        return Err(refused(
            "spec.hostnames",
            "none of them is the name of a host, or a wildcard",
        ));
    }
    Ok(hosts)
}

/// Adds the Service of a reference.
fn add_backend(reference: &Field<'_>, own: &Arc<str>, backends: &mut Backends) {
    let kind = reference.at(&["kind"]);
    let group = reference.at(&["group"]);
    match (group.text_or(""), kind.text_or("Service")) {
        (Some(""), Some("Service")) => {
            // A weight that cannot be read is as none: 1.
            let weight = reference.at(&["weight"]).number(0, MAX_WEIGHT);
            backends.add(reference, own, weight != Some(0));
        }
        (Some(_), Some(_)) => reference.refuse("only Services are counted as backends"),
        _ => {}
    }
}

/// A parent, as a Route asks for it and as a status speaks of it.
#[derive(PartialEq, Eq)]
struct Reference {
    gateway: Key,
    section: Option<Box<str>>,
    port: Option<u16>,
}

/// Reads a reference to a Gateway. One that cannot be read whole is none: without its section it would be one to all listeners.
fn reference(field: &Field<'_>, own: &Arc<str>) -> Option<Reference> {
    let kind = field.at(&["kind"]).text_or("Gateway")?;
    let group = field.at(&["group"]).text_or(GATEWAYS)?;
    if (group, kind) == ("", "Service") {
        // Traffic inside the cluster (GAMMA) enters nowhere.
        return None;
    }
    if (group, kind) != (GATEWAYS, "Gateway") {
        field.refuse("only Gateways are looked at as parents");
        return None;
    }
    let section = field.at(&["sectionName"]).filled();
    let section = section.if_said(|field| field.checked(name_fault))?;
    let port = field.at(&["port"]);
    Some(Reference {
        gateway: referred(field, own, name_fault)?,
        section: section.map(Into::into),
        port: port.if_said(|field| field.number(1, u16::MAX))?,
    })
}

/// Reads the parents that a Route asks for, and what their controllers say of each. Where several speak of one, a yes counts.
fn parents(root: &Field<'_>, own: &Arc<str>) -> Vec<Parent> {
    let statuses = root.at(&["status", "parents"]);
    let mut said: Vec<(Reference, Option<Box<str>>)> = Vec::new();
    for status in statuses.items(MAX_PARENTS) {
        let of = status.at(&["parentRef"]);
        if let Some(reference) = of.wanted().and_then(|of| reference(&of, own)) {
            let unaccepted = untrue(&status.at(&["conditions"]), "Accepted");
            said.push((reference, unaccepted));
        }
    }
    let wanted = root.at(&["spec", "parentRefs"]);
    let wanted = wanted.items(MAX_PARENTS);
    let wanted = wanted.filter_map(|field| reference(&field, own));
    wanted
        .map(|reference| {
            let of_it = said.iter().filter(|(of, _)| *of == reference);
            // None, a yes, comes first.
            let best = of_it.map(|(_, unaccepted)| unaccepted).min();
            let unaccepted = match best {
                Some(unaccepted) => unaccepted.clone(),
                None => Some("nobody says yet that it is `Accepted`".into()),
            };
            Parent {
                gateway: reference.gateway,
                section: reference.section,
                port: reference.port,
                unaccepted,
            }
        })
        .collect()
}
