//! An EndpointSlice (discovery.k8s.io/v1), counted, with its first endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::fields::{Faults, Field};
use super::names::{is_label_value, label_fault};
use super::object::Object;
use super::records::{AddressType, Port, SliceEndpoint, SliceRecord};
use super::service::protocol;
use crate::inventory::{Backing, Refused};
use crate::model::HostLabel;

/// The label with the Service that a slice belongs to.
const SERVICE: &str = "kubernetes.io/service-name";
/// The label with the cluster that a slice was imported from.
const SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";
/// The label that Kubernetes gives to slices of Services without an address of their own.
const HEADLESS: &str = "service.kubernetes.io/headless";
/// Zones of one slice that are counted apart.
const MAX_ZONES: usize = 64;
/// Ready endpoints of one slice that are kept with their addresses, and others: one more than one cluster answers of a Service, so that
/// it is seen where there are more.
const MAX_FIRST: usize = 65;
/// Ports of one slice that are kept: as many as it may have.
const MAX_PORTS: usize = 100;
/// Octets of the name of a port that is kept.
const MAX_PORT_NAME: usize = 63;

/// Gives a label's value; `None` where it is absent or empty.
fn label<'a>(object: &'a Object<'_>, name: &str) -> Option<&'a str> {
    let value = object.meta.labels.get(name)?;
    Some(value).filter(|value| !value.is_empty())
}

/// Tells whether an object has a label, whatever its value.
fn has_label(object: &Object<'_>, name: &str) -> bool {
    object.meta.labels.get(name).is_some()
}

/// Tells whether a slice is about a Service of this cluster.
pub(super) fn is_local(object: &Object<'_>) -> bool {
    label(object, SERVICE).is_some() && label(object, SOURCE_CLUSTER).is_none()
}

/// Reads a slice. All endpoints are counted, however many; the first by their labels are kept with their addresses.
///
/// An endpoint that does not say whether it is ready is; one that does not say whether it serves does when it is ready. A zone
/// that is no value of a label, or beyond the first 64, has no count of its own. An endpoint whose address is none is counted and
/// not kept.
///
/// # Errors
/// At the first thing that cannot be read: a slice that is counted in part would be a wrong count.
pub(super) fn read(object: &Object<'_>) -> Result<SliceRecord, Refused> {
    let faults = Faults::default();
    let root = Field::open(object, &faults)?;
    let service = label(object, SERVICE).unwrap_or_default();
    if let Some(why) = label_fault(service) {
        faults.note(&format!("metadata.labels[{SERVICE}]"), &why);
    }
    let kind = root.at(&["addressType"]);
    let addresses = match kind.text_or("IPv4") {
        Some("IPv4") | None => AddressType::V4,
        Some("IPv6") => AddressType::V6,
        Some("FQDN") => AddressType::Name,
        Some(other) => {
            kind.refuse(&format!(
                "`IPv4`, `IPv6` or `FQDN` is wanted, and not `{other}`"
            ));
            AddressType::V4
        }
    };
    let mut backing = Backing::default();
    let mut zones = BTreeMap::new();
    let mut endpoints = 0;
    let mut first = First::default();
    for endpoint in root.at(&["endpoints"]).items(usize::MAX) {
        let said = |key: &'static [&'static str]| endpoint.at(key).flag();
        let is_ready = said(&["conditions", "ready"]).unwrap_or(true);
        let is_serving = said(&["conditions", "serving"]).unwrap_or(is_ready);
        let is_terminating = said(&["conditions", "terminating"]).unwrap_or(false);
        count(&mut endpoints, true);
        count(&mut backing.ready, is_ready);
        count(&mut backing.serving, is_serving);
        count(&mut backing.terminating, is_terminating);
        let zone = endpoint.at(&["zone"]).text();
        if let Some(zone) = zone.filter(|zone| is_ready && is_label_value(zone))
            && (zones.len() < MAX_ZONES || zones.contains_key(zone))
        {
            count(zones.entry(zone.into()).or_default(), true);
        }
        if let Some(address) = address(&endpoint, addresses) {
            first.take(SliceEndpoint {
                label: label_of(&endpoint, address),
                address,
                is_ready,
            });
        }
    }
    let ports = root.at(&["ports"]);
    let ports = ports.items(usize::MAX).filter_map(|field| port(&field));
    let ports = ports.take(MAX_PORTS).collect();
    faults.into_result()?;
    Ok(SliceRecord {
        service: service.into(),
        addresses,
        backing,
        endpoints,
        zones,
        is_headless: has_label(object, HEADLESS),
        first: first.ready.into_iter().chain(first.others).collect(),
        ports,
    })
}

/// The first endpoints of a slice.
#[derive(Default)]
struct First {
    ready: BTreeSet<SliceEndpoint>,
    others: BTreeSet<SliceEndpoint>,
}

impl First {
    /// Takes one in its place, as long as there is room before it.
    fn take(&mut self, endpoint: SliceEndpoint) {
        let set = if endpoint.is_ready {
            &mut self.ready
        } else {
            &mut self.others
        };
        set.insert(endpoint);
        if set.len() > MAX_FIRST {
            set.pop_last();
        }
    }
}

/// Reads the address of an endpoint. What stands behind the first means nothing (discovery.k8s.io/v1).
fn address(endpoint: &Field<'_>, addresses: AddressType) -> Option<IpAddr> {
    let list = endpoint.at(&["addresses"]);
    let first = list.items(usize::MAX).next();
    let text = first.and_then(|first| first.text())?;
    match addresses {
        AddressType::V4 => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        AddressType::V6 => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        AddressType::Name => None,
    }
}

/// Gives the label of an endpoint: its host name, else the name of its Pod, else made of its address. What is no label is passed
/// over.
fn label_of(endpoint: &Field<'_>, address: IpAddr) -> HostLabel {
    let own = endpoint.at(&["hostname"]).text();
    let pod = || {
        let is_pod = endpoint.at(&["targetRef", "kind"]).text() == Some("Pod");
        let name = endpoint.at(&["targetRef", "name"]).text();
        name.filter(|_| is_pod)?.parse().ok()
    };
    own.and_then(|own| own.parse().ok())
        .or_else(pod)
        .unwrap_or_else(|| HostLabel::of_address(address))
}

/// Reads a port. One without a number stands for all, and is none.
fn port(field: &Field<'_>) -> Option<Port> {
    let name = field.at(&["name"]).text_or("")?;
    let number = field.at(&["port"]).number(1, u16::MAX)?;
    (name.len() <= MAX_PORT_NAME).then(|| Port {
        name: name.into(),
        number,
        protocol: protocol(field),
    })
}

/// Counts one more, or not.
fn count(number: &mut u32, it_is: bool) {
    *number = number.saturating_add(it_is.into());
}
