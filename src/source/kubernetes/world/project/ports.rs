//! Ports of a Service that have names in cluster sets.

use std::collections::BTreeSet;
use std::num::NonZeroU16;

use super::notes::Notes;
use crate::inventory::NameKeys;
use crate::model::{Carrier, NamedPort, PortName};
use crate::source::kubernetes::{Port, Protocol, Record};

/// Named ports of one Service, at most.
const MAX_PORTS: usize = 64;
/// Where they stand.
const FIELD: &str = "spec.ports";

/// Lists the named ports of a Service that is in cluster sets: none of anything else, and none of ports without a name.
pub(super) fn named_ports(record: &Record, keys: &NameKeys, notes: &mut Notes) -> Box<[NamedPort]> {
    let Record::Service(service) = record else {
        return Box::default();
    };
    if keys.in_cluster_set != Some(true) {
        return Box::default();
    }
    let mut seen = BTreeSet::new();
    let mut ports = Vec::new();
    for port in service.ports.iter().filter(|port| !port.name.is_empty()) {
        let name: PortName = match port.name.parse() {
            Ok(name) => name,
            Err(error) => {
                let name = &port.name;
                notes.field(FIELD, format_args!("no SRV is made of `{name}`: {error}"));
                continue;
            }
        };
        let Some((carrier, number)) = carrier(port.protocol).zip(NonZeroU16::new(port.number))
        else {
            continue;
        };
        if !seen.insert((name.clone(), carrier)) {
            continue;
        }
        if ports.len() >= MAX_PORTS {
            let reason = format_args!("SRV are made of the first {MAX_PORTS} named ports alone");
            notes.field(FIELD, reason);
            break;
        }
        ports.push(NamedPort {
            name,
            carrier,
            number,
        });
    }
    ports.into()
}

/// Gives a port that has a name fit for the DNS; `None`: it has none.
pub(super) fn named(port: &Port) -> Option<NamedPort> {
    Some(NamedPort {
        name: port.name.parse().ok()?,
        carrier: carrier(port.protocol)?,
        number: NonZeroU16::new(port.number)?,
    })
}

/// Gives what carries a protocol; `None`: nothing that names of ports know.
fn carrier(protocol: Protocol) -> Option<Carrier> {
    match protocol {
        Protocol::Tcp | Protocol::Http | Protocol::Tls => Some(Carrier::Tcp),
        Protocol::Udp => Some(Carrier::Udp),
        Protocol::Sctp => Some(Carrier::Sctp),
        Protocol::Other => None,
    }
}
