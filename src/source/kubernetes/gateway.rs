//! A Gateway (gateway.networking.k8s.io).

use std::collections::BTreeMap;

use super::fields::{Faults, Field};
use super::names::name_fault;
use super::object::Object;
use super::parts::{addresses, common, host, untrue};
use super::records::{GatewayRecord, Listener, Port, Protocol};
use crate::inventory::Refused;

/// Listeners of one Gateway, at most; as many as its definition allows.
const MAX_LISTENERS: usize = 64;

/// Reads a Gateway. A listener that cannot be read whole is none: without its host it would be one for all hosts.
///
/// # Errors
/// When nothing can be read of it.
pub(super) fn read(object: &Object<'_>) -> Result<GatewayRecord, Refused> {
    let faults = Faults::default();
    let root = Field::open(object, &faults)?;
    let statuses = root.at(&["status", "listeners"]);
    let mut attached = BTreeMap::new();
    for status in statuses.items(MAX_LISTENERS) {
        let name = status.at(&["name"]).text();
        let routes = status.at(&["attachedRoutes"]).number(0, u32::MAX);
        if let (Some(name), Some(routes)) = (name, routes) {
            attached.insert(name.to_owned(), routes);
        }
    }
    let listeners = root.at(&["spec", "listeners"]);
    let listeners = listeners.items(MAX_LISTENERS).filter_map(|field| {
        let mut listener = listener(&field)?;
        listener.attached = attached.get(&*listener.name).copied().unwrap_or(0);
        Some(listener)
    });
    let listeners = listeners.collect();
    let unready = untrue(&root.at(&["status", "conditions"]), "Programmed");
    let entries = addresses(&root.at(&["status", "addresses"]));
    Ok(GatewayRecord {
        listeners,
        unready,
        entries,
        common: common(object, faults),
    })
}

/// Reads a listener, to which nothing is attached yet. Its port has its name: annotations may call it by that.
fn listener(field: &Field<'_>) -> Option<Listener> {
    let name = field.at(&["name"]).wanted()?.checked(name_fault)?;
    let host = field.at(&["hostname"]).filled().if_said(host)?;
    let number = field.at(&["port"]).wanted()?.number(1, u16::MAX)?;
    let protocol = match field.at(&["protocol"]).wanted()?.text()? {
        "HTTP" => Protocol::Http,
        "HTTPS" | "TLS" => Protocol::Tls,
        "TCP" => Protocol::Tcp,
        "UDP" => Protocol::Udp,
        _ => Protocol::Other,
    };
    Some(Listener {
        name: name.into(),
        host,
        port: Port {
            name: name.into(),
            number,
            protocol,
        },
        attached: 0,
    })
}
