//! Kinds that a cluster has only when somebody installs them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::wait_for;
use crate::kinds::{CRD, GATEWAY, Kind, ROUTE};
use crate::objects::Admin;

/// How long the server may take to serve a new kind.
const SERVED: Duration = Duration::from_secs(20);

/// The kinds of Gateway API that are read. Only what a server needs to serve them; what stands in the objects is not checked.
pub const GATEWAY_API: [(Kind<'static>, &str); 2] = [(GATEWAY, "gateways"), (ROUTE, "httproutes")];

/// Makes the definition of a kind with namespaces and a status, by its plural name.
pub fn definition((api_version, kind): Kind<'_>, plural: &str) -> Value {
    let (group, version) = api_version.split_once('/').expect("a group");
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": CRD.0,
        "kind": CRD.1,
        "metadata": {
            "name": format!("{plural}.{group}"),
            // Groups of the Kubernetes community want to know who allowed it.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
            }],
        },
    })
}

/// Installs kinds and waits until they are served. Those that are there stay as they are.
pub fn install(admin: &Admin, kinds: &[(Kind<'_>, &str)]) {
    for (kind, plural) in kinds {
        admin.apply(&definition(*kind, plural)).unwrap();
    }
    for (kind, _) in kinds {
        wait_for("a kind that is served", SERVED, || {
            admin.count(*kind, "").ok()
        });
    }
}
