//! A Service (v1).

use super::fields::{Faults, Field};
use super::names::label_fault;
use super::object::Object;
use super::parts::{common, entries};
use super::records::{Port, Protocol, ServiceRecord};
use crate::inventory::Refused;

/// Ports of one Service, at most.
const MAX_PORTS: usize = 1_000;
/// Values of `appProtocol` that are HTTP in clear text (KEP-3726, and what implementations took before it).
const HTTP: &[&str] = &[
    "http",
    "http2",
    "h2c",
    "kubernetes.io/h2c",
    "kubernetes.io/ws",
];
/// Values of `appProtocol` that begin with a handshake of TLS.
const TLS: &[&str] = &["https", "tls", "kubernetes.io/wss"];

/// Reads a Service.
///
/// `externalIPs` are passed over: they are what somebody wishes, not where traffic enters. So is `ipMode`: how a cluster's own
/// packets go makes no difference to those from outside.
///
/// # Errors
/// When nothing can be read of it.
pub(super) fn read(object: &Object<'_>) -> Result<ServiceRecord, Refused> {
    let faults = Faults::default();
    let root = Field::open(object, &faults)?;
    let is_load_balancer = root.at(&["spec", "type"]).text() == Some("LoadBalancer");
    let is_headless = root.at(&["spec", "clusterIP"]).text() == Some("None");
    let ports = root.at(&["spec", "ports"]);
    let ports = ports.items(MAX_PORTS).filter_map(|field| port(&field));
    let ports = ports.collect();
    let entries = entries(&root.at(&["status", "loadBalancer", "ingress"]));
    let publishes_not_ready = root.at(&["spec", "publishNotReadyAddresses"]).flag();
    Ok(ServiceRecord {
        is_load_balancer,
        is_headless,
        ports,
        entries,
        publishes_not_ready: publishes_not_ready.unwrap_or(false),
        common: common(object, faults),
    })
}

/// Reads a port. One whose number cannot be read is none.
fn port(field: &Field<'_>) -> Option<Port> {
    let number = field.at(&["port"]).wanted()?.number(1, u16::MAX)?;
    let name = field.at(&["name"]).filled().checked(label_fault);
    Some(Port {
        name: name.unwrap_or_default().into(),
        number,
        protocol: protocol(field),
    })
}

/// Reads what a port speaks.
pub(super) fn protocol(port: &Field<'_>) -> Protocol {
    let over = port.at(&["appProtocol"]).text().unwrap_or_default();
    let is_one_of = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(over));
    match port.at(&["protocol"]).text_or("TCP") {
        Some("TCP") if is_one_of(HTTP) => Protocol::Http,
        Some("TCP") if is_one_of(TLS) => Protocol::Tls,
        Some("TCP") => Protocol::Tcp,
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        _ => Protocol::Other,
    }
}
