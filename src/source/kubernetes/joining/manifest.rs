//! The objects that a node's rights are made of: those of `deploy/kubernetes/reader.yaml`, those of `event-writer.yaml` where
//! Events are written back, and nothing else.

use std::fmt;

use serde_json::{Value, json};

/// The only source of the rights to read.
const READER: &str = include_str!("../../../../deploy/kubernetes/reader.yaml");
/// The only source of the rights to write Events.
const WRITER: &str = include_str!("../../../../deploy/kubernetes/event-writer.yaml");
/// The namespace that is written there.
const WRITTEN: &str = "meridian";
/// Characters of a namespace (RFC 1123 label).
const MAX_NAMESPACE: usize = 63;
/// Characters between documents.
const BETWEEN: &str = "\n---\n";

/// The name of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(Box<str>);

impl Namespace {
    /// Gives the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether it is the one that the manifests are written for.
    fn is_written(&self) -> bool {
        &*self.0 == WRITTEN
    }
}

impl std::str::FromStr for Namespace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_label = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit();
        let is_good = (1..=MAX_NAMESPACE).contains(&text.len())
            && text.bytes().all(|octet| is_label(octet) || octet == b'-')
            && !text.starts_with('-')
            && !text.ends_with('-');
        if is_good {
            Ok(Self(text.into()))
        } else {
            Err(format!(
                "`{}` is no namespace; write one such as meridian",
                text.escape_debug()
            ))
        }
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where the API has objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    /// The kind, as Kubernetes spells it.
    pub(super) kind: &'static str,
    /// Its group and version, as paths have them.
    prefix: &'static str,
    /// Its name in paths and in rights.
    pub(super) plural: &'static str,
    /// It lies in a namespace.
    is_namespaced: bool,
}

/// The kinds that are made.
const RESOURCES: [Resource; 7] = [
    Resource {
        kind: "Namespace",
        prefix: "/api/v1",
        plural: "namespaces",
        is_namespaced: false,
    },
    Resource {
        kind: "ServiceAccount",
        prefix: "/api/v1",
        plural: "serviceaccounts",
        is_namespaced: true,
    },
    Resource {
        kind: "Secret",
        prefix: "/api/v1",
        plural: "secrets",
        is_namespaced: true,
    },
    Resource {
        kind: "ClusterRole",
        prefix: "/apis/rbac.authorization.k8s.io/v1",
        plural: "clusterroles",
        is_namespaced: false,
    },
    Resource {
        kind: "ClusterRoleBinding",
        prefix: "/apis/rbac.authorization.k8s.io/v1",
        plural: "clusterrolebindings",
        is_namespaced: false,
    },
    Resource {
        kind: "Role",
        prefix: "/apis/rbac.authorization.k8s.io/v1",
        plural: "roles",
        is_namespaced: true,
    },
    Resource {
        kind: "RoleBinding",
        prefix: "/apis/rbac.authorization.k8s.io/v1",
        plural: "rolebindings",
        is_namespaced: true,
    },
];

/// One object to be made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object {
    /// The whole of it.
    pub(super) value: Value,
    /// Where the API has its kind.
    pub(super) resource: Resource,
    /// Its name.
    pub(super) name: String,
    /// Its namespace.
    pub(super) namespace: Option<String>,
}

impl Object {
    /// Takes an object as it is written; `None`: of a kind that is not made here, or without a name.
    fn of(value: Value) -> Option<Self> {
        let kind = value.get("kind")?.as_str()?;
        let resource = RESOURCES.into_iter().find(|known| known.kind == kind)?;
        let metadata = value.get("metadata")?;
        let name = metadata.get("name")?.as_str()?.to_owned();
        let namespace = metadata.get("namespace").and_then(Value::as_str);
        let namespace = namespace.map(str::to_owned);
        (namespace.is_some() == resource.is_namespaced).then_some(Self {
            value,
            resource,
            name,
            namespace,
        })
    }

    /// Gives its path in the API.
    pub(super) fn path(&self) -> String {
        let Resource { prefix, plural, .. } = self.resource;
        match &self.namespace {
            Some(namespace) => format!("{prefix}/namespaces/{namespace}/{plural}/{}", self.name),
            None => format!("{prefix}/{plural}/{}", self.name),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.resource.kind, self.name),
            None => write!(f, "{} {}", self.resource.kind, self.name),
        }
    }
}

/// What a node's rights are made of in one member.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Manifest {
    /// In the order in which they can be made.
    pub(super) objects: Vec<Object>,
    /// The service account among them.
    pub(super) account: Object,
    /// The namespace of all that has one.
    pub(super) namespace: Namespace,
}

impl Manifest {
    /// Gives the objects for a namespace. With another than the one that is written, what has no namespace gets its name behind
    /// its own: two of them in one cluster must not take the rights of each other. `writes_back`: with the rights to write Events.
    pub(super) fn of(namespace: &Namespace, writes_back: bool) -> Self {
        let mut objects = documents(READER);
        if writes_back {
            objects.extend(documents(WRITER));
        }
        if !namespace.is_written() {
            for object in &mut objects {
                *object = moved(object.value.clone(), namespace);
            }
        }
        let account = objects
            .iter()
            .find(|object| object.resource.kind == "ServiceAccount")
            .cloned()
            .expect("reader.yaml has a service account; a test reads it");
        Self {
            objects,
            account,
            namespace: namespace.clone(),
        }
    }

    /// Gives the Secret that the token controller of a cluster fills with a token without an end.
    pub(super) fn secret(&self) -> Object {
        let account = &self.account.name;
        let annotations = json!({"kubernetes.io/service-account.name": account});
        let value = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": format!("{account}-token"),
                "namespace": self.namespace.as_str(),
                "annotations": annotations,
            },
            "type": "kubernetes.io/service-account-token",
        });
        Object::of(value).expect("it has a kind that is known, a name and a namespace")
    }

    /// Gives what may be done by these rights: verb, group and resource of all, with namespace and name where they are limited.
    pub(super) fn rights(&self) -> Vec<Right> {
        let rules = self.objects.iter().flat_map(|object| {
            let rules = object.value.get("rules").and_then(Value::as_array);
            let rules = rules.into_iter().flatten();
            rules.map(move |rule| (rule, object.namespace.as_ref()))
        });
        let mut rights = Vec::new();
        for (rule, namespace) in rules {
            let name = rule.pointer("/resourceNames/0").and_then(Value::as_str);
            let list = |key: &str| {
                let list = rule.get(key).and_then(Value::as_array).into_iter();
                list.flatten().filter_map(Value::as_str)
            };
            for group in list("apiGroups") {
                for resource in list("resources") {
                    rights.extend(list("verbs").map(|verb| Right {
                        group: group.to_owned(),
                        resource: resource.to_owned(),
                        verb: verb.to_owned(),
                        namespace: namespace.cloned(),
                        name: name.map(str::to_owned),
                    }));
                }
            }
        }
        rights
    }
}

/// One thing that may be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Right {
    /// The API group; empty: the first one.
    pub(super) group: String,
    /// What, in the plural.
    pub(super) resource: String,
    /// What may be done with it.
    pub(super) verb: String,
    /// Where; `None`: everywhere.
    pub(super) namespace: Option<String>,
    /// With which; `None`: with any.
    pub(super) name: Option<String>,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{} {}{dot}{}", self.verb, self.resource, self.group)
    }
}

/// Reads a manifest as it is written.
fn documents(manifest: &str) -> Vec<Object> {
    let texts = manifest.split(BETWEEN);
    let read = texts.filter_map(|text| serde_saphyr::from_str::<Value>(text).ok());
    read.filter_map(Object::of).collect()
}

/// Moves an object into another namespace.
fn moved(mut value: Value, namespace: &Namespace) -> Object {
    let put = |at: Option<&mut Value>| {
        if let Some(at) = at {
            *at = json!(namespace.as_str());
        }
    };
    let behind = |at: Option<&mut Value>| {
        if let Some(at) = at {
            *at = json!(format!("{}-{namespace}", at.as_str().unwrap_or_default()));
        }
    };
    if value.get("kind").is_some_and(|kind| kind == "Namespace") {
        put(value.pointer_mut("/metadata/name"));
    } else if value.pointer("/metadata/namespace").is_some() {
        put(value.pointer_mut("/metadata/namespace"));
    } else {
        behind(value.pointer_mut("/metadata/name"));
        behind(value.pointer_mut("/roleRef/name"));
    }
    let subjects = value.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        put(subject.get_mut("namespace"));
    }
    Object::of(value).expect("it was one before, and only names have changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(namespace: &str) -> Manifest {
        Manifest::of(&namespace.parse().unwrap(), false)
    }

    #[test]
    fn every_document_of_the_manifest_is_an_object() {
        let kinds = READER.lines().filter(|line| line.starts_with("kind: "));
        let manifest = manifest("meridian");
        assert_eq!(manifest.objects.len(), kinds.count());
        let names: Vec<String> = manifest.objects.iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            [
                "Namespace meridian",
                "ServiceAccount meridian/meridian-reader",
                "ClusterRole meridian-reader",
                "ClusterRoleBinding meridian-reader",
            ]
        );
        assert_eq!(
            manifest.account.path(),
            "/api/v1/namespaces/meridian/serviceaccounts/meridian-reader"
        );
        let secret = manifest.secret();
        assert_eq!(secret.to_string(), "Secret meridian/meridian-reader-token");
    }

    #[test]
    fn another_namespace_is_written_wherever_the_first_one_was() {
        let manifest = manifest("dns");
        let names: Vec<String> = manifest.objects.iter().map(Object::path).collect();
        assert_eq!(
            names,
            [
                "/api/v1/namespaces/dns",
                "/api/v1/namespaces/dns/serviceaccounts/meridian-reader",
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/meridian-reader-dns",
                "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/meridian-reader-dns",
            ]
        );
        let binding = &manifest.objects[3].value;
        assert_eq!(binding["roleRef"]["name"], "meridian-reader-dns");
        assert_eq!(binding["subjects"][0]["namespace"], "dns");
        assert_eq!(manifest.secret().namespace.as_deref(), Some("dns"));
        let whole: String = manifest
            .objects
            .iter()
            .map(|object| object.value.to_string())
            .collect();
        assert!(!whole.contains("\"meridian\""), "{whole}");
    }

    #[test]
    fn the_rights_to_write_events_come_on_top_where_they_are_wanted() {
        let kinds = WRITER.lines().filter(|line| line.starts_with("kind: "));
        let reader = manifest("dns");
        let both = Manifest::of(&"dns".parse().unwrap(), true);
        let more = &both.objects[reader.objects.len()..];
        assert_eq!(more.len(), kinds.count());
        let paths: Vec<String> = more.iter().map(Object::path).collect();
        let group = "/apis/rbac.authorization.k8s.io/v1";
        assert_eq!(
            paths,
            [
                format!("{group}/clusterroles/meridian-event-writer-dns"),
                format!("{group}/clusterrolebindings/meridian-event-writer-dns"),
                format!("{group}/namespaces/dns/roles/meridian-event-writer"),
                format!("{group}/namespaces/dns/rolebindings/meridian-event-writer"),
            ]
        );
        assert_eq!(
            more[1].value["roleRef"]["name"],
            "meridian-event-writer-dns"
        );
        assert_eq!(more[3].value["roleRef"]["name"], "meridian-event-writer");
        for binding in [1, 3] {
            assert_eq!(more[binding].value["subjects"][0]["namespace"], "dns");
        }
        let rights = both.rights().split_off(reader.rights().len());
        let words: Vec<String> = rights
            .iter()
            .map(|right| format!("{right} {:?} {:?}", right.namespace, right.name))
            .collect();
        assert_eq!(
            words,
            [
                "create events.events.k8s.io None None",
                "patch events.events.k8s.io None None",
                "get leases.coordination.k8s.io Some(\"dns\") Some(\"meridian-events\")",
                "update leases.coordination.k8s.io Some(\"dns\") Some(\"meridian-events\")",
                "create leases.coordination.k8s.io Some(\"dns\") None",
            ]
        );
    }

    #[test]
    fn the_rights_are_to_read_and_no_secret_is_among_them() {
        let rights = manifest("meridian").rights();
        assert_eq!(rights.len(), 33);
        let words: Vec<String> = rights.iter().map(ToString::to_string).collect();
        for right in [
            "list services",
            "watch endpointslices.discovery.k8s.io",
            "get nodes",
        ] {
            assert!(words.iter().any(|word| word == right), "{right}: {words:?}");
        }
        for right in &rights {
            assert!(["get", "list", "watch"].contains(&&*right.verb), "{right}");
            assert_ne!(right.resource, "secrets");
        }
    }

    #[test]
    fn namespaces_are_labels() {
        for good in ["meridian", "a", "kube-system", "0"] {
            assert!(good.parse::<Namespace>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a/b", "ä", &"a".repeat(64)] {
            assert!(bad.parse::<Namespace>().is_err(), "{bad}");
        }
    }
}
