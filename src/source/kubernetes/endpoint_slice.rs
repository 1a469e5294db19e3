//! An EndpointSlice (discovery.k8s.io/v1), counted.

use std::collections::BTreeMap;

use super::fields::{Faults, Field};
use super::names::{is_label_value, label_fault};
use super::object::Object;
use super::records::{AddressType, SliceRecord};
use crate::inventory::{Backing, Refused};

/// The label with the Service that a slice belongs to.
const SERVICE: &str = "kubernetes.io/service-name";
/// The label with the cluster that a slice was imported from.
const SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";
/// Zones of one slice that are counted apart.
const MAX_ZONES: usize = 64;

/// Gives a label's value; `None` where it is absent or empty.
fn label<'a>(object: &'a Object<'_>, name: &str) -> Option<&'a str> {
    let value = object.meta.labels.get(name)?;
    Some(value).filter(|value| !value.is_empty())
}

/// Tells whether a slice is about a Service of this cluster.
pub(super) fn is_local(object: &Object<'_>) -> bool {
    label(object, SERVICE).is_some() && label(object, SOURCE_CLUSTER).is_none()
}

/// Reads a slice. All endpoints are counted, however many.
///
/// An endpoint that does not say whether it is ready is; one that does not say whether it serves does when it is ready. A zone
/// that is no value of a label, or beyond the first 64, has no count of its own.
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
    }
    faults.into_result()?;
    Ok(SliceRecord {
        service: service.into(),
        addresses,
        backing,
        endpoints,
        zones,
    })
}

/// Counts one more, or not.
fn count(number: &mut u32, it_is: bool) {
    *number = number.saturating_add(it_is.into());
}
