//! Any tree whatever, and good ones with one bad place.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::hostile::{annotated, assert_bounded, of_record, of_tree};
use super::*;

/// Keys that readers look for.
const KEYS: &[&str] = &[
    "spec",
    "status",
    "type",
    "ports",
    "port",
    "name",
    "namespace",
    "protocol",
    "appProtocol",
    "loadBalancer",
    "ingress",
    "ip",
    "hostname",
    "publishNotReadyAddresses",
    "endpoints",
    "conditions",
    "ready",
    "serving",
    "terminating",
    "zone",
    "addressType",
    "rules",
    "host",
    "http",
    "paths",
    "backend",
    "service",
    "resource",
    "defaultBackend",
    "tls",
    "hosts",
    "listeners",
    "addresses",
    "value",
    "attachedRoutes",
    "hostnames",
    "parentRefs",
    "parentRef",
    "parents",
    "group",
    "kind",
    "sectionName",
    "backendRefs",
    "weight",
    "reason",
    "message",
    "providerID",
];

/// Texts that mean something somewhere.
const TEXTS: &[&str] = &[
    "",
    "cart",
    "LoadBalancer",
    "TCP",
    "HTTP",
    "True",
    "False",
    "Accepted",
    "Programmed",
    "Gateway",
    "Service",
    "IPAddress",
    "Hostname",
    "IPv6",
    "192.0.2.1",
    "::ffff:192.0.2.1",
    "224.0.0.1",
    "a.example.com",
    "*.example.com",
    "*",
    "*.",
    ".",
    "a..b",
    "bücher.example.",
    "gce://x",
    "\u{1b}[2J",
    "\u{202e}",
];

/// Leaves of a tree.
fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![Just(0), Just(80), Just(443), Just(65_536), any::<i64>()].prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        proptest::sample::select(TEXTS).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ]
}

/// Trees of any shape, with keys that readers look for.
fn tree() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(6, 64, 6, |inner| {
        let map = proptest::collection::vec((proptest::sample::select(KEYS), inner.clone()), 0..6);
        let map = map.prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)));
        prop_oneof![
            proptest::collection::vec(inner, 0..6).prop_map(Value::from),
            map.prop_map(|map| Value::Object(map.collect())),
        ]
    })
}

/// A tree in which every reader finds something.
fn whole() -> Value {
    let reference = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge", "namespace": "infra", "sectionName": "web", "port": 80});
    let backend =
        json!({"group": "", "kind": "Service", "name": "cart", "namespace": "shop", "weight": 1});
    json!({
        "addressType": "IPv4",
        "endpoints": [{"conditions": {"ready": true, "serving": true, "terminating": false}, "zone": "z"}],
        "spec": {
            "type": "LoadBalancer", "publishNotReadyAddresses": false, "providerID": "gce://x", "hostnames": ["a.example.com"],
            "ports": [{"name": "web", "port": 80, "protocol": "TCP", "appProtocol": "http"}],
            "rules": [{"host": "a.example.com", "http": {"paths": [{"backend": {"service": {"name": "cart"}}}]}, "backendRefs": [backend]}],
            "tls": [{"hosts": ["a.example.com"]}], "defaultBackend": {"service": {"name": "cart"}}, "parentRefs": [reference],
            "listeners": [{"name": "web", "hostname": "*.example.com", "port": 80, "protocol": "HTTP"}],
        },
        "status": {
            "loadBalancer": {"ingress": [{"ip": "192.0.2.1", "hostname": "lb.example.net"}]},
            "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}],
            "conditions": [{"type": "Programmed", "status": "True"}],
            "listeners": [{"name": "web", "attachedRoutes": 1}],
            "parents": [{"parentRef": reference, "conditions": [{"type": "Accepted", "status": "True"}]}],
        },
    })
}

/// Puts another value in the place with this number, counted from the root down.
fn put(tree: &mut Value, at: &mut usize, value: &Value) {
    if *at == 0 {
        *tree = value.clone();
    }
    let Some(rest) = at.checked_sub(1) else {
        *at = usize::MAX;
        return;
    };
    *at = rest;
    match tree {
        Value::Array(list) => list.iter_mut().for_each(|item| put(item, at, value)),
        Value::Object(map) => map.values_mut().for_each(|item| put(item, at, value)),
        _ => {}
    }
}

#[test]
fn the_whole_tree_is_good_for_every_kind() {
    for watched in Watched::ALL {
        let event = read(watched, &of_tree("cart", "shop", whole())).unwrap();
        let Event::Applied(_, record) = event else {
            panic!("{watched:?}: {event:?}")
        };
        if let Some(common) = of_record(&record) {
            assert_refused(common, &[]);
        }
    }
}

proptest! {
    #[test]
    fn any_tree_is_read_or_refused(kind in 0..Watched::ALL.len(), name in "[a-z]{1,3}|.{0,9}", tree in tree(), status in tree()) {
        for tree in [json!({"spec": tree, "status": status}), tree] {
            assert_bounded(&read(Watched::ALL[kind], &of_tree(&name, "shop", tree)).unwrap());
        }
    }

    #[test]
    fn a_good_object_with_one_bad_place_is_read_or_refused(kind in 0..Watched::ALL.len(), at in 0..120_usize, value in tree()) {
        let mut tree = whole();
        put(&mut tree, &mut at.clone(), &value);
        assert_bounded(&read(Watched::ALL[kind], &of_tree("cart", "shop", tree)).unwrap());
    }

    #[test]
    fn any_annotation_is_read_or_refused(key in "[a-z-]{0,12}|.{0,9}", value in ".{0,60}") {
        let annotations = json!({format!("meridian-dns.io/{key}"): value});
        let object = annotated(("cart", "shop"), whole(), &annotations);
        assert_bounded(&read(Watched::Gateways, &object).unwrap());
    }
}
