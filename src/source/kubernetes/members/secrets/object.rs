//! One Secret: which clusters it has, and what is said of them. Pure.
//!
//! What is not asked for is not kept: neither other keys nor annotations of others, which may hold the whole Secret once more.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use serde_json::{Map, Value};

use crate::model::ClusterId;
use crate::source::kubernetes::annotations::PREFIX;
use crate::source::kubernetes::rules::SecretsPlace;
use crate::source::kubernetes::secret::SecretText;

/// Octets of a kubeconfig, as of a file.
const MAX_OCTETS: usize = 1 << 20;
/// Annotations of ours that are kept of one Secret; each has at most [`MAX_VALUE`] octets.
const MAX_ANNOTATIONS: usize = 64;
/// Octets of a value that are kept. More are too many for every key.
const MAX_VALUE: usize = 16 * 1024 + 1;

/// Octets that a key counts for beside what it says: what is kept of it, and what may be refused of it.
const OF_KEY: usize = 256;

/// Annotations of ours.
pub(super) type Annotations = Arc<BTreeMap<Box<str>, Box<str>>>;

/// What a Secret says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Secret {
    /// When it was made, as the server writes it. Of two that have one cluster the older one counts.
    pub(super) created: Box<str>,
    /// What is said of its clusters.
    pub(super) annotations: Annotations,
    /// Its clusters, by key.
    pub(super) entries: BTreeMap<Box<str>, Entry>,
}

/// One key of a Secret.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// The cluster, or why its name is none.
    pub(super) id: Result<ClusterId, String>,
    /// The kubeconfig.
    pub(super) text: Option<SecretText>,
    /// Why what stands there now cannot be used.
    pub(super) why: Option<String>,
}

impl Secret {
    /// Counts the octets that it takes.
    pub(super) fn octets(&self) -> usize {
        let entries = self.entries.iter().map(|(key, entry)| {
            let id = match &entry.id {
                Ok(id) => id.as_str().len(),
                Err(why) => why.len(),
            };
            let text = entry.text.as_ref().map_or(0, |text| text.expose().len());
            let why = entry.why.as_ref().map_or(0, String::len);
            OF_KEY + key.len() + id + text + why
        });
        let annotations = self.annotations.iter();
        let annotations = annotations.map(|(key, value)| key.len() + value.len());
        self.created.len() + entries.sum::<usize>() + annotations.sum::<usize>()
    }
}

/// Tells whether it is another Secret of a cluster than the one that is looked for: Cluster API gives several of them the label with
/// the cluster's name, and one of them the key.
pub(super) fn is_of_others(object: &Value, place: &SecretsPlace) -> bool {
    let Some(key) = place.key.as_deref().filter(|_| place.name_label.is_some()) else {
        return false;
    };
    let data = object.get("data").and_then(Value::as_object);
    data.is_none_or(|data| !data.contains_key(key))
}

/// Reads a Secret.
pub(super) fn read(object: &Value, place: &SecretsPlace) -> Secret {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let map = |path: &str| object.pointer(path).and_then(Value::as_object);
    let name = text("/metadata/name").unwrap_or_default();
    let none = Map::new();
    let data = map("/data").unwrap_or(&none);
    let entry = |id: &str, value: Option<&Value>, key: &str| {
        let (text, why) = match kubeconfig(value, key) {
            Ok(text) => (Some(text), None),
            Err(why) => (None, Some(why)),
        };
        let id = id.parse::<ClusterId>();
        let id = id.map_err(|why| format!("its name is no name of a cluster: {why}"));
        Entry { id, text, why }
    };
    let entries = match &place.key {
        Some(key) => {
            let named = place.name_label.as_deref().map(|label| {
                let labels = map("/metadata/labels");
                let named = labels.and_then(|labels| labels.get(label));
                named.and_then(Value::as_str).unwrap_or_default()
            });
            let id = named.unwrap_or(name);
            BTreeMap::from([(key.clone(), entry(id, data.get(&**key), key))])
        }
        None => {
            let keys = data.iter();
            keys.map(|(key, value)| (key.as_str().into(), entry(key, Some(value), key)))
                .collect()
        }
    };
    let annotations = map("/metadata/annotations").unwrap_or(&none).iter();
    let ours = annotations.filter(|(key, _)| key.starts_with(PREFIX));
    let ours = ours.take(MAX_ANNOTATIONS).filter_map(|(key, value)| {
        let value = value.as_str()?;
        let end = value.floor_char_boundary(MAX_VALUE);
        Some((key.as_str().into(), value.get(..end)?.into()))
    });
    Secret {
        created: text("/metadata/creationTimestamp")
            .unwrap_or_default()
            .into(),
        annotations: Arc::new(ours.collect()),
        entries,
    }
}

/// Reads the kubeconfig under a key.
fn kubeconfig(value: Option<&Value>, key: &str) -> Result<SecretText, String> {
    let value = value.ok_or_else(|| format!("has no key `{key}`"))?;
    // What is wrong with it may quote it.
    let octets: Result<ByteString, _> = serde_json::from_value(value.clone());
    let ByteString(octets) = octets.map_err(|_| "is no base64".to_owned())?;
    if octets.len() > MAX_OCTETS {
        return Err(format!("larger than {MAX_OCTETS} octets"));
    }
    let text = String::from_utf8(octets).map_err(|_| "is no UTF-8 text".to_owned())?;
    if text.trim().is_empty() {
        return Err("is empty".to_owned());
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::source::kubernetes::rules::Access;

    fn place(key: Option<&str>, label: Option<&str>) -> SecretsPlace {
        SecretsPlace {
            server: "cluster hub".into(),
            cluster: "hub".parse().unwrap(),
            access: Access::InCluster,
            namespace: "meridian".into(),
            selector: "a=b".into(),
            key: key.map(Into::into),
            name_label: label.map(Into::into),
        }
    }

    /// Reads a Secret called `africa`, and gives each key with its cluster and what it holds.
    fn entries(data: &Value, place: &SecretsPlace) -> Vec<String> {
        let object =
            json!({"metadata": {"name": "africa", "labels": {"l": "named"}}, "data": data});
        let secret = read(&object, place);
        let all = secret.entries.iter().map(|(key, entry)| {
            let id = match &entry.id {
                Ok(id) => id.to_string(),
                Err(why) => why.clone(),
            };
            let text = entry.text.as_ref().map(SecretText::expose);
            let why = entry.why.as_deref();
            format!("{key} {id} {}", text.or(why).unwrap_or_default())
        });
        all.collect()
    }

    #[test]
    fn a_cluster_has_the_name_of_its_secret_its_label_or_its_key() {
        let data = json!({"kubeconfig": "YQ==", "us1": "Yg=="});
        let of_key = entries(&data, &place(Some("kubeconfig"), None));
        assert_eq!(of_key, ["kubeconfig africa a"]);
        let of_label = entries(&data, &place(Some("us1"), Some("l")));
        assert_eq!(of_label, ["us1 named b"]);
        let all = entries(&data, &place(None, None));
        assert_eq!(all, ["kubeconfig kubeconfig a", "us1 us1 b"]);
        let nameless = entries(&data, &place(Some("us1"), Some("other")));
        assert!(nameless[0].contains("no name of a cluster"), "{nameless:?}");
    }

    #[test]
    fn what_is_no_kubeconfig_is_told_without_what_it_is() {
        let large = data_encoding::BASE64.encode(&vec![b'x'; MAX_OCTETS + 1]);
        for (value, why) in [
            (json!("!canary!"), "is no base64"),
            (json!(7), "is no base64"),
            (json!({"canary": 1}), "is no base64"),
            (json!("//4A"), "is no UTF-8 text"),
            (json!("IA=="), "is empty"),
            (json!(""), "is empty"),
            (json!(large), "larger than 1048576 octets"),
        ] {
            let found = entries(
                &json!({"kubeconfig": value}),
                &place(Some("kubeconfig"), None),
            );
            assert_eq!(found, [format!("kubeconfig africa {why}")]);
        }
        let place = place(Some("kubeconfig"), None);
        let missing = entries(&json!({}), &place);
        assert_eq!(missing, ["kubeconfig africa has no key `kubeconfig`"]);
        assert_eq!(read(&json!(7), &place).annotations.len(), 0);
    }

    #[test]
    fn of_annotations_ours_alone_are_kept() {
        let object = json!({"metadata": {"name": "a", "annotations": {
            "meridian-dns.io/region": "r",
            "meridian-dns.io/zone": "x".repeat(50_000),
            "kubectl.kubernetes.io/last-applied-configuration": "canary",
        }}});
        let read = read(&object, &place(None, None));
        assert_eq!(read.annotations.len(), 2);
        assert_eq!(read.annotations["meridian-dns.io/zone"].len(), MAX_VALUE);
        assert_eq!(&*read.annotations["meridian-dns.io/region"], "r");
    }
}
