//! Parts that objects of several kinds have.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::annotations;
use super::fields::{Faults, Field};
use super::names::label_fault;
use super::object::Object;
use super::records::{Backend, Common, Ingresses, Key};
use super::words::shown;
use crate::model::{LowerName, not_unicast};

/// Host names of one object, at most. Rules of an Ingress or a Route, and paths or backends of one rule, neither are more.
pub(super) const MAX_HOSTS: usize = 1_000;
/// Services that one object sends traffic to, at most.
const MAX_BACKENDS: usize = 1_000;
/// Entries of one status that say where traffic enters, at most.
const MAX_ENTRIES: usize = 64;
/// Conditions of one status that are looked at.
const MAX_CONDITIONS: usize = 64;
/// Octets of a host name, at most. A name has 255; an international one is written with more.
const MAX_HOST: usize = 1_024;

/// Reads what all kinds have that may be served.
pub(super) fn common(object: &Object<'_>, faults: Faults) -> Common {
    Common {
        said: annotations::read(object.meta.annotations.iter()),
        refused: faults.into_list(),
        is_deleting: object.meta.is_deleting,
    }
}

// === Hosts ===

/// Reads a name by the rules of annotations.
fn host_by(
    field: &Field<'_>,
    read: impl Fn(&str) -> Result<LowerName, String>,
) -> Option<LowerName> {
    let text = field.text()?;
    let name = if text.len() > MAX_HOST {
        Err(format!("a host name has at most {MAX_HOST} octets"))
    } else {
        read(text)
    };
    name.map_err(|why| field.refuse(&why)).ok()
}

/// Reads the name of a host whose leftmost label may be `*`.
pub(super) fn host(field: &Field<'_>) -> Option<LowerName> {
    host_by(field, annotations::hostname_or_wildcard)
}

/// Hosts that an object asks for, each once, in their order.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    seen: BTreeSet<LowerName>,
    list: Vec<LowerName>,
}

impl Hosts {
    /// Reads one more, as long as there is room.
    pub(super) fn add(&mut self, field: &Field<'_>) {
        let Some(name) = host(field) else { return };
        if self.seen.contains(&name) {
            return;
        }
        if self.list.len() >= MAX_HOSTS {
            field.refuse(&format!("an object has at most {MAX_HOSTS} host names"));
            return;
        }
        self.seen.insert(name.clone());
        self.list.push(name);
    }

    /// Gives them.
    pub(super) fn into_list(self) -> Vec<LowerName> {
        self.list
    }
}

// === Ingresses ===

/// Reads where traffic enters: the entries of a load balancer's status.
pub(super) fn entries(list: &Field<'_>) -> Ingresses {
    let mut out = Ingresses::default();
    for entry in list.items(MAX_ENTRIES) {
        let ip = entry.at(&["ip"]).filled();
        let hostname = entry.at(&["hostname"]).filled();
        if !ip.is_filled() && !hostname.is_filled() {
            entry.refuse("neither `ip` nor `hostname` is said");
        }
        enter_by_address(&ip, &mut out);
        enter_by_name(&hostname, &mut out);
    }
    out
}

/// Reads where traffic enters: the addresses of a Gateway's status.
pub(super) fn addresses(list: &Field<'_>) -> Ingresses {
    let mut out = Ingresses::default();
    for entry in list.items(MAX_ENTRIES) {
        let kind = entry.at(&["type"]);
        let Some(value) = entry.at(&["value"]).wanted() else {
            continue;
        };
        match kind.text_or("IPAddress") {
            Some("IPAddress") => enter_by_address(&value, &mut out),
            Some("Hostname") => enter_by_name(&value, &mut out),
            Some(other) => {
                kind.refuse(&format!(
                    "`IPAddress` or `Hostname` is wanted, and not `{other}`"
                ));
            }
            None => {}
        }
    }
    out
}

/// Takes an address.
fn enter_by_address(field: &Field<'_>, out: &mut Ingresses) {
    let Some(text) = field.text() else { return };
    match text.parse() {
        Ok(address) => enter(field, address, out),
        Err(_) => field.refuse(&format!("`{text}` is no address")),
    }
}

/// Takes a host name. Some controllers write an address there.
fn enter_by_name(field: &Field<'_>, out: &mut Ingresses) {
    if let Some(address) = field.text().and_then(|text| text.parse().ok()) {
        enter(field, address, out);
    } else if let Some(name) = host_by(field, annotations::hostname)
        && !out.hostnames.contains(&name)
    {
        out.hostnames.push(name);
    }
}

/// Takes an address that a machine can have. IPv4 in IPv6 dress is IPv4.
fn enter(field: &Field<'_>, address: IpAddr, out: &mut Ingresses) {
    let address = address.to_canonical();
    match not_unicast(address) {
        Some(why) => field.refuse(&format!("`{address}` {why}")),
        None if out.addresses.contains(&address) => {}
        None => out.addresses.push(address),
    }
}

// === Conditions ===

/// Tells why a condition is not true: what its controller says of it, fit to be shown. `None`: it is true.
pub(super) fn untrue(conditions: &Field<'_>, kind: &str) -> Option<Box<str>> {
    let said = conditions.items(MAX_CONDITIONS).find_map(|condition| {
        match condition.at(&["type"]).text() {
            Some(text) if text == kind => Some(words(&condition, kind)),
            _ => None,
        }
    });
    said.unwrap_or_else(|| Some(format!("nobody says yet that it is `{kind}`").into()))
}

/// Gives a condition's words; `None`: it is true.
fn words(condition: &Field<'_>, kind: &str) -> Option<Box<str>> {
    let part = |keys: &'static [&'static str]| condition.at(keys).filled().text();
    let status = part(&["status"]).unwrap_or("Unknown");
    if status == "True" {
        return None;
    }
    let said = [part(&["reason"]), part(&["message"])];
    let said: Vec<&str> = said.into_iter().flatten().collect();
    let words = match said.as_slice() {
        [] => format!("`{kind}` is `{status}`"),
        said => format!("`{kind}` is `{status}`: {}", said.join(": ")),
    };
    Some(shown(words.trim_end_matches('.')).into())
}

// === Backends ===

/// Services that an object sends traffic to, each once, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Backends(BTreeMap<Key, bool>);

impl Backends {
    /// Adds the Service of a reference, `name` and perhaps `namespace` below `reference`, as long as there is room. One that is
    /// named twice is used when either is.
    pub(super) fn add(&mut self, reference: &Field<'_>, own: &Arc<str>, is_used: bool) {
        let Some(service) = referred(reference, own, label_fault) else {
            return;
        };
        if let Some(used) = self.0.get_mut(&service) {
            *used |= is_used;
        } else if self.0.len() < MAX_BACKENDS {
            self.0.insert(service, is_used);
        } else {
            reference.refuse(&format!("an object has at most {MAX_BACKENDS} Services"));
        }
    }

    /// Gives them.
    pub(super) fn into_list(self) -> Vec<Backend> {
        let all = self.0.into_iter();
        all.map(|(service, is_used)| Backend { service, is_used })
            .collect()
    }
}

/// Reads which object a reference means: `name`, and `namespace` where it is not the own.
pub(super) fn referred(
    reference: &Field<'_>,
    own: &Arc<str>,
    fault: impl Fn(&str) -> Option<String>,
) -> Option<Key> {
    let namespace = reference.at(&["namespace"]);
    let namespace = namespace.if_said(|field| field.checked(label_fault))?;
    let name = reference.at(&["name"]).wanted()?.checked(fault)?;
    Some(Key {
        namespace: namespace.map_or_else(|| own.clone(), Into::into),
        name: name.into(),
    })
}
