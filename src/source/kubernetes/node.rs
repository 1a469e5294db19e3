//! A Node (v1): where a cluster is, and nothing else of it.

use super::fields::{Faults, Field};
use super::names::is_label_value;
use super::object::Object;
use super::records::NodeRecord;
use crate::inventory::Refused;
use crate::model::Provider;

/// Labels with the region, the one in use first.
const REGION: [&str; 2] = [
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/region",
];
/// Labels with the zone, the one in use first.
const ZONE: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
];
/// What cloud controllers write before `://` where it is not our word for the cloud.
const SCHEMES: &[(&str, Provider)] = &[
    ("alibabacloud", Provider::Alibaba),
    ("alicloud", Provider::Alibaba),
    ("gce", Provider::Gcp),
    ("hcloud", Provider::Hetzner),
    ("hrobot", Provider::Hetzner),
    ("huaweicloud", Provider::Huawei),
    ("ibmpowervs", Provider::Ibm),
    ("oracle", Provider::Oci),
    ("qcloud", Provider::Tencent),
    ("tencentcloud", Provider::Tencent),
];

/// Reads a Node.
///
/// # Errors
/// When a label or `providerID` is nothing that Kubernetes would have taken.
pub(super) fn read(object: &Object<'_>) -> Result<NodeRecord, Refused> {
    let faults = Faults::default();
    let root = Field::open(object, &faults)?;
    let id = root.at(&["spec", "providerID"]);
    let record = NodeRecord {
        provider: id.text().and_then(provider),
        region: label(object, REGION, &faults),
        zone: label(object, ZONE, &faults),
    };
    faults.into_result()?;
    Ok(record)
}

/// Gives the cloud out of a `providerID` such as `gce://project/zone/name`: in our spelling, else as it is written, in lower
/// case. `None` where it names none.
fn provider(id: &str) -> Option<Box<str>> {
    let (scheme, _) = id.split_once("://")?;
    if !is_label_value(scheme) {
        return None;
    }
    let scheme = scheme.to_ascii_lowercase();
    let known = SCHEMES.iter().find(|(written, _)| *written == scheme);
    Some(
        known
            .map_or(scheme.as_str(), |(_, provider)| provider.as_str())
            .into(),
    )
}

/// Gives the first of two labels that says something.
fn label(object: &Object<'_>, names: [&str; 2], faults: &Faults) -> Option<Box<str>> {
    let labels = &object.meta.labels;
    let said = names
        .into_iter()
        .filter_map(|name| labels.get(name).map(|value| (name, value)))
        .find(|(_, value)| !value.is_empty());
    let (name, value) = said?;
    if !is_label_value(value) {
        faults.note(
            &format!("metadata.labels[{name}]"),
            &format!("`{value}` is no value of a label"),
        );
        return None;
    }
    Some(value.into())
}
