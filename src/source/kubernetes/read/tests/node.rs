//! Nodes.

use super::*;
use crate::source::kubernetes::NodeRecord;

/// Reads a Node with these labels and this identity.
fn node(labels: &str, id: &str) -> Result<NodeRecord, Refused> {
    let yaml = format!("{{metadata: {{name: n1.example, labels: {{{labels}}}}}, spec: {{{id}}}}}");
    match read(Watched::Nodes, &object(&yaml)) {
        Some(Event::Applied(of, record)) => {
            assert_eq!(of, key("", "n1.example"));
            match *record {
                Record::Node(record) => Ok(record),
                other => panic!("{other:?}"),
            }
        }
        Some(Event::Unreadable(_, refused)) => Err(refused),
        other => panic!("{other:?}"),
    }
}

/// Makes a record.
fn record(provider: Option<&str>, region: Option<&str>, zone: Option<&str>) -> NodeRecord {
    NodeRecord {
        provider: provider.map(Into::into),
        region: region.map(Into::into),
        zone: zone.map(Into::into),
    }
}

#[test]
fn labels_of_today_come_before_those_of_old() {
    let new = "topology.kubernetes.io/region: eu-west-1, topology.kubernetes.io/zone: eu-west-1a";
    let old = "failure-domain.beta.kubernetes.io/region: old-1, failure-domain.beta.kubernetes.io/zone: old-1b";
    let empty = "topology.kubernetes.io/region: '', topology.kubernetes.io/zone: ''";
    for (labels, region, zone) in [
        (new.to_owned(), Some("eu-west-1"), Some("eu-west-1a")),
        (old.to_owned(), Some("old-1"), Some("old-1b")),
        (
            format!("{old}, {new}"),
            Some("eu-west-1"),
            Some("eu-west-1a"),
        ),
        (format!("{empty}, {old}"), Some("old-1"), Some("old-1b")),
        (empty.to_owned(), None, None),
        (String::new(), None, None),
    ] {
        assert_eq!(
            node(&labels, ""),
            Ok(record(None, region, zone)),
            "{labels}"
        );
    }
}

#[test]
fn clouds_have_our_names() {
    for (id, provider) in [
        ("aws:///eu-west-1a/i-0abc", Some("aws")),
        ("gce://project/europe-west1-b/name", Some("gcp")),
        ("azure:///subscriptions/x", Some("azure")),
        ("alicloud://cn-hangzhou.i-x", Some("alibaba")),
        ("qcloud:///100003/ins-x", Some("tencent")),
        ("huaweicloud:///x", Some("huawei")),
        ("oci://ocid1.instance", Some("oci")),
        ("digitalocean://7", Some("digitalocean")),
        ("hcloud://7", Some("hetzner")),
        ("hrobot://7", Some("hetzner")),
        ("scaleway://instance/fr-par-1/x", Some("scaleway")),
        ("linode://7", Some("linode")),
        ("ibm://account///cluster/node", Some("ibm")),
        ("OpenStack:///x", Some("openstack")),
        ("kind://docker/a/b", Some("kind")),
        ("://x", None),
        ("i-0abc", None),
        ("", None),
        ("a b://x", None),
    ] {
        let found = node("", &format!("providerID: '{id}'"));
        assert_eq!(found, Ok(record(provider, None, None)), "{id}");
    }
    assert_eq!(node("", "providerID: null"), Ok(NodeRecord::default()));
}

#[test]
fn what_no_server_would_have_taken_is_refused() {
    let refused = node("", "providerID: [aws]").unwrap_err();
    assert_eq!(&*refused.what, "spec.providerID");
    for value in ["a b", "-a", "a-", "\\u001b[2J", "ü", &"x".repeat(64)] {
        let refused = node(&format!("topology.kubernetes.io/zone: \"{value}\""), "").unwrap_err();
        assert_eq!(
            &*refused.what,
            "metadata.labels[topology.kubernetes.io/zone]"
        );
        assert!(!refused.reason.contains('\u{1b}'), "{refused:?}");
    }
}
