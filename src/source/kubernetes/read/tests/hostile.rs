//! What no good server sends: names that are none, lists and texts without end.

use serde_json::{Map, Value, json};

use super::*;

/// Checks that a record is bounded, and that nothing in it steers a terminal.
pub(super) fn assert_bounded(event: &Event) {
    let (key, common) = match event {
        Event::Applied(key, record) => (key, of_record(record)),
        Event::Unreadable(key, refused) => {
            assert!(refused.what.len() <= 256 && refused.reason.len() <= 256);
            (key, None)
        }
        other => panic!("{other:?}"),
    };
    assert!(key.namespace.len() <= 256 && key.name.len() <= 256);
    if let Some(common) = common {
        assert!(common.refused.len() <= 65);
        assert!(common.said.refused.len() <= 66);
        let fits = |one: &Refused| one.what.len() <= 256 && one.reason.len() <= 256;
        assert!(common.refused.iter().all(fits));
    }
    // `Debug` escapes what steers a terminal, so that the texts themselves are looked at.
    for text in texts(event) {
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
}

/// Checks the lists of a record; gives what it has in common with others.
pub(super) fn of_record(record: &Record) -> Option<&Common> {
    let entries = |entries: &Ingresses| {
        assert!(entries.addresses.len() <= 128 && entries.hostnames.len() <= 64);
    };
    match record {
        Record::Service(service) => {
            assert!(service.ports.len() <= 1_000);
            entries(&service.entries);
            Some(&service.common)
        }
        Record::Slice(slice) => {
            assert!(slice.zones.len() <= 64 && slice.service.len() <= 63);
            assert!(slice.zones.keys().all(|zone| zone.len() <= 63));
            None
        }
        Record::Ingress(ingress) => {
            assert!(ingress.hosts.len() <= 1_000 && ingress.backends.len() <= 1_000);
            entries(&ingress.entries);
            Some(&ingress.common)
        }
        Record::Gateway(gateway) => {
            assert!(gateway.listeners.len() <= 64);
            entries(&gateway.entries);
            Some(&gateway.common)
        }
        Record::Route(route) => {
            assert!(route.hosts.len() <= 1_000 && route.backends.len() <= 1_000);
            assert!(route.parents.len() <= 32);
            Some(&route.common)
        }
        Record::Node(node) => {
            let parts = [&node.provider, &node.region, &node.zone];
            assert!(parts.into_iter().flatten().all(|part| part.len() <= 63));
            None
        }
    }
}

/// Lists the texts that may be shown.
fn texts(event: &Event) -> Vec<&str> {
    match event {
        Event::Unreadable(key, refused) => {
            vec![&key.namespace, &key.name, &refused.what, &refused.reason]
        }
        Event::Applied(_, record) => {
            let mut texts: Vec<&str> = match &**record {
                Record::Gateway(gateway) => gateway.unready.iter().map(|text| &**text).collect(),
                Record::Route(route) => {
                    let parents = route.parents.iter();
                    parents
                        .filter_map(|parent| parent.unaccepted.as_deref())
                        .collect()
                }
                _ => Vec::new(),
            };
            if let Some(common) = of_record(record) {
                let refused = common.refused.iter();
                texts.extend(refused.flat_map(|one| [&*one.what, &*one.reason]));
                let refused = common.said.refused.iter();
                texts.extend(refused.flat_map(|one| [&*one.key, &*one.value, &*one.reason]));
            }
            texts
        }
        _ => Vec::new(),
    }
}

/// Makes an object of a kind, with the label that slices need.
pub(super) fn of_tree(name: &str, namespace: &str, tree: Value) -> Object<'static> {
    annotated((name, namespace), tree, &json!({}))
}

/// Makes one with annotations.
pub(super) fn annotated(
    (name, namespace): (&str, &str),
    tree: Value,
    annotations: &Value,
) -> Object<'static> {
    let mut whole = match tree {
        Value::Object(map) => map,
        other => Map::from_iter([("spec".to_owned(), other)]),
    };
    let labels = json!({"kubernetes.io/service-name": "cart"});
    let metadata = json!({
        "name": name, "namespace": namespace, "labels": labels, "annotations": annotations,
    });
    whole.insert("metadata".to_owned(), metadata);
    Object::deserialize(Value::Object(whole)).unwrap()
}

#[test]
fn what_is_no_name_goes_no_further() {
    let long = "x".repeat(64);
    let longer = "x".repeat(254);
    let longest = "x".repeat(100_000);
    for (watched, namespace, name, what) in [
        (Watched::Services, "", "cart", "metadata.namespace"),
        (Watched::Services, "a.b", "cart", "metadata.namespace"),
        (Watched::Services, "Shop", "cart", "metadata.namespace"),
        (Watched::Services, "shop/x", "cart", "metadata.namespace"),
        (Watched::Services, &long, "cart", "metadata.namespace"),
        (Watched::Services, &longest, "cart", "metadata.namespace"),
        (Watched::Services, "shop", "", "metadata.name"),
        (Watched::Services, "shop", "a.b", "metadata.name"),
        (Watched::Services, "shop", &long, "metadata.name"),
        (Watched::Services, "shop", "\u{1b}[2J", "metadata.name"),
        (Watched::Services, "shop", "a\u{202e}b", "metadata.name"),
        (Watched::Ingresses, "shop", "a..b", "metadata.name"),
        (Watched::Ingresses, "shop", ".a", "metadata.name"),
        (Watched::Ingresses, "shop", "-a", "metadata.name"),
        (Watched::Ingresses, "shop", "a-", "metadata.name"),
        (Watched::Ingresses, "shop", "a_b", "metadata.name"),
        (Watched::Ingresses, "shop", "ü", "metadata.name"),
        (Watched::Gateways, "shop", &longer, "metadata.name"),
        (Watched::HttpRoutes, "shop", &longest, "metadata.name"),
        (Watched::EndpointSlices, "shop", "\n", "metadata.name"),
        (Watched::Nodes, "", "N1", "metadata.name"),
    ] {
        let event = read(watched, &of_tree(name, namespace, json!({}))).unwrap();
        assert_bounded(&event);
        let Event::Unreadable(_, refused) = event else {
            panic!("{namespace}/{name} is taken")
        };
        assert_eq!(&*refused.what, what, "{namespace}/{name}");
    }
    // Those of other kinds may have dots, and Nodes are in no namespace.
    for (watched, namespace, name, of) in [
        (
            Watched::Ingresses,
            "shop",
            "a.b-c.1",
            key("shop", "a.b-c.1"),
        ),
        (
            Watched::Nodes,
            "Any Thing",
            "n1.example",
            key("", "n1.example"),
        ),
    ] {
        match read(watched, &of_tree(name, namespace, json!({}))) {
            Some(Event::Applied(found, _)) => assert_eq!(found, of),
            other => panic!("{other:?}"),
        }
    }
    // Nothing is written at all.
    let bare = Object::deserialize(json!({})).unwrap();
    for watched in Watched::ALL {
        match read(watched, &bare) {
            None => assert_eq!(watched, Watched::EndpointSlices),
            Some(event) => assert!(matches!(event, Event::Unreadable(..))),
        }
    }
}

/// Makes a list of so many things.
fn many(count: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..count).map(item).collect()
}

/// Items of every list of [`endless`].
const MANY: usize = 3_000;

/// Makes a tree whose lists are all too long but that of its rules.
fn endless() -> Value {
    let named =
        |prefix: &'static str| many(MANY, move |at| json!({"name": format!("{prefix}{at}")}));
    let backend = |at| json!({"backend": {"service": {"name": format!("s{at}")}}});
    let host = |at| json!(format!("h{at}.example.com"));
    let listener = |at| json!({"name": format!("l{at}"), "port": 80, "protocol": "HTTP", "attachedRoutes": at});
    let address = |at: usize| format!("10.0.{}.{}", at / 250, at % 250);
    let parent = |at| json!({"parentRef": {"name": format!("g{at}")}, "conditions": []});
    let rule = json!({"http": {"paths": many(MANY, backend)}, "backendRefs": named("s")});
    let listeners = many(MANY, listener);
    json!({
        "spec": {
            "type": "LoadBalancer",
            "ports": many(MANY, |at| json!({"port": at + 1})),
            "rules": [rule, rule],
            "hostnames": many(MANY, host),
            "parentRefs": named("g"),
            "listeners": listeners,
        },
        "status": {
            "loadBalancer": {"ingress": many(MANY, |at| json!({"ip": address(at), "hostname": host(at)}))},
            "addresses": many(MANY, |at| json!({"value": address(at)})),
            "listeners": listeners,
            "conditions": many(MANY, |_| json!({"type": "Accepted", "status": "False"})),
            "parents": many(MANY, parent),
        },
    })
}

#[test]
fn lists_without_end_are_cut_and_that_is_told() {
    let tree = endless();
    for watched in Watched::ALL {
        let event = read(watched, &of_tree("cart", "shop", tree.clone())).unwrap();
        assert_bounded(&event);
        let Event::Applied(_, record) = event else {
            panic!("{watched:?}")
        };
        // What is kept of each list, and which lists are told to be too long.
        let entries = |of: &Ingresses| (of.addresses.len(), of.hostnames.len());
        let cut: &[&str] = match &*record {
            Record::Service(service) => {
                assert_eq!(
                    (service.ports.len(), entries(&service.entries)),
                    (1_000, (64, 64))
                );
                &["spec.ports", "status.loadBalancer.ingress"]
            }
            Record::Ingress(ingress) => {
                assert_eq!(
                    (ingress.backends.len(), entries(&ingress.entries)),
                    (1_000, (64, 64))
                );
                &["spec.rules[0].http.paths", "status.loadBalancer.ingress"]
            }
            Record::Gateway(gateway) => {
                assert_eq!(
                    (gateway.listeners.len(), entries(&gateway.entries)),
                    (64, (64, 0))
                );
                assert_eq!(gateway.listeners[63].attached, 63);
                &[
                    "spec.listeners",
                    "status.listeners",
                    "status.addresses",
                    "status.conditions",
                ]
            }
            Record::Route(route) => {
                assert_eq!((route.parents.len(), route.backends.len()), (32, 1_000));
                &[
                    "spec.rules[1].backendRefs",
                    "spec.parentRefs",
                    "status.parents",
                ]
            }
            Record::Slice(_) | Record::Node(_) => &[],
        };
        let common = of_record(&record);
        let refused = common.map(|common| &*common.refused).unwrap_or_default();
        for what in cut {
            let one = refused.iter().find(|one| *one.what == **what).unwrap();
            assert!(one.reason.contains("3000 items"), "{one:?}");
        }
    }
}

#[test]
fn an_ingress_has_a_thousand_hosts_at_most() {
    let names = many(MANY, |at| json!(format!("h{at}.example.com")));
    let rules = many(MANY, |at| json!({"host": names[at]}));
    for spec in [
        json!({"rules": rules}),
        json!({"tls": [{"hosts": names}, {"hosts": names}]}),
    ] {
        let tree = json!({"spec": spec});
        let event = read(Watched::Ingresses, &of_tree("cart", "shop", tree)).unwrap();
        assert_bounded(&event);
        let Event::Applied(_, record) = event else {
            panic!("unreadable")
        };
        let Record::Ingress(ingress) = *record else {
            panic!("no Ingress")
        };
        assert_eq!(ingress.hosts.len(), 1_000);
        assert!(ingress.common.refused[0].reason.contains("3000 items"));
    }
}

#[test]
fn hosts_and_services_over_many_rules_are_bounded_together() {
    let paths = |rule: usize| {
        many(
            600,
            |at| json!({"backend": {"service": {"name": format!("s{rule}-{at}")}}}),
        )
    };
    let refs = |rule: usize| many(600, |at| json!({"name": format!("s{rule}-{at}")}));
    let hosts =
        |part: usize| json!({"hosts": many(600, |at| json!(format!("h{at}.p{part}.example.com")))});
    let rules = many(
        2,
        |rule| json!({"http": {"paths": paths(rule)}, "backendRefs": refs(rule)}),
    );
    let tree = json!({"spec": {"rules": rules, "tls": many(2, hosts)}});
    for watched in [Watched::Ingresses, Watched::HttpRoutes] {
        let event = read(watched, &of_tree("cart", "shop", tree.clone())).unwrap();
        assert_bounded(&event);
        let Event::Applied(_, record) = event else {
            panic!("unreadable")
        };
        let (backends, hosts, common) = match *record {
            Record::Ingress(ingress) => {
                (ingress.backends.len(), ingress.hosts.len(), ingress.common)
            }
            Record::Route(route) => (route.backends.len(), 1_000, route.common),
            other => panic!("{other:?}"),
        };
        assert_eq!((backends, hosts), (1_000, 1_000));
        let first = &common.refused[0];
        assert!(first.reason.contains("at most 1000 Services"), "{first:?}");
        // Two hundred of each kind are too many; the last one tells how many more there were.
        let last = common.refused.last().unwrap();
        let more = if watched == Watched::Ingresses {
            336
        } else {
            136
        };
        assert_eq!(
            (&*last.what, &*last.reason),
            ("object", &*format!("{more} more faults were met"))
        );
    }
}

#[test]
fn a_text_without_end_is_cut() {
    let long = "x".repeat(1_000_000);
    let marks = "ü".repeat(100_000);
    for text in [&long, &marks] {
        let tree = json!({
            "spec": {
                "type": text, "hostnames": ["a.example.com", text], "rules": [{"host": text}], "providerID": text,
                "ports": [{"name": text, "port": 80, "protocol": text, "appProtocol": text}],
                "listeners": [{"name": text, "port": 1, "protocol": text}, {"name": "a", "hostname": text, "port": 1, "protocol": text}],
                "parentRefs": [{"name": text}, {"name": "a", "kind": text}],
            },
            "status": {
                "loadBalancer": {"ingress": [{"ip": text}, {"hostname": text}]}, "addresses": [{"type": text, "value": text}],
                "conditions": [{"type": "Programmed", "status": text, "message": text}],
            },
        });
        for watched in Watched::ALL {
            assert_bounded(&read(watched, &of_tree("cart", "shop", tree.clone())).unwrap());
        }
    }
}

#[test]
fn annotations_without_end_are_bounded() {
    let long = "\u{7}".repeat(10_000);
    let odd = (0..100).map(|at| (format!("meridian-dns.io/{at}{long}"), long.as_str().into()));
    let fence = ("meridian-dns.io/fence".to_owned(), "x".into());
    let annotations = Value::Object(odd.chain([fence]).collect());
    let object = annotated(("cart", "shop"), json!({}), &annotations);
    let event = read(Watched::Services, &object).unwrap();
    assert_bounded(&event);
    let Event::Applied(_, record) = event else {
        panic!("unreadable")
    };
    let said = &of_record(&record).unwrap().said;
    assert!(said.is_fence_refused && said.refused.len() == 65);
    for one in &said.refused {
        assert!(one.key.len() <= 256 && one.value.len() <= 256 && one.reason.len() <= 256);
    }
}
