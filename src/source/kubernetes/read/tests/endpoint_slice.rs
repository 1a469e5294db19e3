//! EndpointSlices.

use super::*;
use crate::inventory::Backing;
use crate::source::kubernetes::{AddressType, Port, Protocol, SliceEndpoint, SliceRecord};

/// Reads a slice with these fields beside its metadata.
fn slice(fields: &str) -> Result<SliceRecord, Refused> {
    let yaml = format!(
        "metadata: {{name: cart-x7f, namespace: shop, labels: {{kubernetes.io/service-name: cart}}}}\n{fields}"
    );
    match read(Watched::EndpointSlices, &object(&yaml)) {
        Some(Event::Applied(_, record)) => match *record {
            Record::Slice(record) => Ok(record),
            other => panic!("{other:?}"),
        },
        Some(Event::Unreadable(_, refused)) => Err(refused),
        other => panic!("{other:?}"),
    }
}

#[test]
fn endpoints_are_counted_by_what_they_say_of_themselves() {
    let record = slice(
        "
addressType: IPv4
ports: [{name: web, port: 8080, protocol: TCP}]
endpoints:
- {addresses: [10.1.0.1], conditions: {ready: true, serving: true, terminating: false}, zone: eu-1a, nodeName: n1}
- {addresses: [10.1.0.2], conditions: {ready: false, serving: true, terminating: true}, zone: eu-1a}
- {addresses: [10.1.0.3], conditions: {ready: false, serving: false, terminating: true}, zone: eu-1b}
- {addresses: [10.1.0.4], conditions: {ready: false}, zone: eu-1b}
- {addresses: [10.1.0.5], conditions: {ready: null}, zone: eu-1b}
- {addresses: [10.1.0.6], conditions: {}}
- {addresses: [10.1.0.7], zone: 'no zone!'}
- {addresses: [10.1.0.8], conditions: {serving: false}}
",
    );
    let record = record.unwrap();
    assert_eq!(
        SliceRecord {
            first: Vec::new(),
            ..record.clone()
        },
        SliceRecord {
            service: "cart".into(),
            addresses: AddressType::V4,
            backing: Backing {
                ready: 5,
                serving: 5,
                terminating: 2,
                ..Backing::default()
            },
            endpoints: 8,
            zones: [("eu-1a".into(), 1), ("eu-1b".into(), 1)].into(),
            is_headless: false,
            first: Vec::new(),
            ports: vec![Port {
                name: "web".into(),
                number: 8080,
                protocol: Protocol::Tcp,
            }],
        }
    );
    // Ready ones, then the others.
    let shown: Vec<String> = record.first.iter().map(shown).collect();
    assert_eq!(
        shown,
        [
            "10-1-0-1 10.1.0.1 true",
            "10-1-0-5 10.1.0.5 true",
            "10-1-0-6 10.1.0.6 true",
            "10-1-0-7 10.1.0.7 true",
            "10-1-0-8 10.1.0.8 true",
            "10-1-0-2 10.1.0.2 false",
            "10-1-0-3 10.1.0.3 false",
            "10-1-0-4 10.1.0.4 false",
        ]
    );
}

/// Shows an endpoint as its label, its address and whether it is ready.
fn shown(endpoint: &SliceEndpoint) -> String {
    format!(
        "{} {} {}",
        endpoint.label, endpoint.address, endpoint.is_ready
    )
}

#[test]
fn the_label_of_an_endpoint_is_its_host_name_its_pod_or_its_address() {
    let long = "a".repeat(64);
    for (fields, wanted) in [
        (
            "addresses: [10.1.0.1], hostname: web-0, targetRef: {kind: Pod, name: p}",
            "web-0 10.1.0.1",
        ),
        (
            "addresses: [10.1.0.1], targetRef: {kind: Pod, name: web-7f9-x}",
            "web-7f9-x 10.1.0.1",
        ),
        (
            "addresses: [10.1.0.1], hostname: '', targetRef: {kind: Pod, name: p}",
            "p 10.1.0.1",
        ),
        (
            "addresses: [10.1.0.1], hostname: Web, targetRef: {kind: Pod, name: p}",
            "p 10.1.0.1",
        ),
        (
            "addresses: [10.1.0.1], targetRef: {kind: Pod, name: a.b}",
            "10-1-0-1 10.1.0.1",
        ),
        (
            &*format!("addresses: [10.1.0.1], targetRef: {{kind: Pod, name: {long}}}"),
            "10-1-0-1 10.1.0.1",
        ),
        (
            "addresses: [10.1.0.1], targetRef: {kind: VirtualMachine, name: p}",
            "10-1-0-1 10.1.0.1",
        ),
        ("addresses: [10.1.0.1], targetRef: {}", "10-1-0-1 10.1.0.1"),
        // The first address alone means something.
        ("addresses: [10.1.0.1, 10.1.0.2]", "10-1-0-1 10.1.0.1"),
        ("addresses: []", ""),
        ("hostname: web-0", ""),
        ("addresses: [web.example]", ""),
        ("addresses: ['2001:db8::1']", ""),
    ] {
        let record = slice(&format!("addressType: IPv4\nendpoints: [{{{fields}}}]")).unwrap();
        let all: Vec<String> = record.first.iter().map(shown).collect();
        let wanted: Vec<String> = [wanted]
            .iter()
            .filter(|text| !text.is_empty())
            .map(|text| format!("{text} true"))
            .collect();
        assert_eq!(all, wanted, "{fields}");
        assert_eq!(record.backing.ready, 1);
    }
    let six = slice(
        "addressType: IPv6\nendpoints: [{addresses: ['2001:db8::']}, {addresses: [10.1.0.1]}]",
    )
    .unwrap();
    let all: Vec<String> = six.first.iter().map(shown).collect();
    assert_eq!(all, ["2001-db8--0 2001:db8:: true"]);
    let names =
        slice("addressType: FQDN\nendpoints: [{addresses: [10.1.0.1], hostname: a}]").unwrap();
    assert_eq!(names.first, []);
}

#[test]
fn the_first_endpoints_and_ports_of_a_slice_are_kept() {
    let one = |at: usize, is_ready: bool| {
        format!(
            "- {{addresses: [10.{}.{}.1], hostname: h{at:04}, conditions: {{ready: {is_ready}}}}}\n",
            at / 250,
            at % 250
        )
    };
    let many: String = (0..1_000).rev().map(|at| one(at, at % 2 == 0)).collect();
    let record = slice(&format!("endpoints:\n{many}")).unwrap();
    assert_eq!((record.endpoints, record.first.len()), (1_000, 130));
    let labels: Vec<&str> = record.first.iter().map(|one| one.label.as_str()).collect();
    assert_eq!(
        [labels[0], labels[64], labels[65], labels[129]],
        ["h0000", "h0128", "h0001", "h0129"]
    );
    let many: String = (0..200)
        .map(|at| format!("- {{port: {}, name: p{at}}}\n", at + 1))
        .collect();
    let record = slice(&format!(
        "ports:\n- {{port: null, name: all}}\n- {{port: 53, protocol: UDP}}\n{many}"
    ))
    .unwrap();
    assert_eq!(record.ports.len(), 100);
    assert_eq!(
        (&*record.ports[0].name, record.ports[0].protocol),
        ("", Protocol::Udp)
    );
    assert_eq!((&*record.ports[1].name, record.ports[1].number), ("p0", 1));
}

#[test]
fn kubernetes_marks_slices_of_services_without_an_address() {
    for (label, wanted) in [
        ("service.kubernetes.io/headless: ''", true),
        ("app: x", false),
    ] {
        let yaml = format!(
            "metadata: {{name: x, namespace: shop, labels: {{kubernetes.io/service-name: cart, {label}}}}}"
        );
        let Some(Event::Applied(_, record)) = read(Watched::EndpointSlices, &object(&yaml)) else {
            panic!("{yaml}");
        };
        assert!(
            matches!(*record, Record::Slice(slice) if slice.is_headless == wanted),
            "{label}"
        );
    }
}

#[test]
fn slices_of_both_families_are_told_apart() {
    for (fields, addresses) in [
        ("addressType: IPv6", AddressType::V6),
        ("addressType: FQDN", AddressType::Name),
        ("addressType: null", AddressType::V4),
        ("{}", AddressType::V4),
    ] {
        let fields = if fields == "{}" { "" } else { fields };
        let record = slice(fields).unwrap();
        assert_eq!(
            (record.addresses, record.backing),
            (addresses, Backing::default())
        );
    }
}

#[test]
fn slices_of_nobody_are_none() {
    for labels in [
        "",
        "labels: null",
        "labels: {}",
        "labels: {kubernetes.io/service-name: ''}",
        "labels: {kubernetes.io/service-name: cart, multicluster.kubernetes.io/source-cluster: us1}",
        "labels: {multicluster.kubernetes.io/service-name: cart}",
    ] {
        let yaml = format!("metadata:\n  name: x\n  namespace: shop\n  {labels}");
        assert_eq!(
            read(Watched::EndpointSlices, &object(&yaml)),
            None,
            "{labels}"
        );
    }
    let own = "metadata: {name: x, namespace: shop, labels: {kubernetes.io/service-name: cart, multicluster.kubernetes.io/source-cluster: ''}}";
    assert!(matches!(
        read(Watched::EndpointSlices, &object(own)),
        Some(Event::Applied(..))
    ));
}

#[test]
fn a_slice_that_would_be_counted_wrong_is_not_counted() {
    for (fields, what, part) in [
        ("endpoints: 7", "endpoints", "a list is wanted, and not 7"),
        ("endpoints: [{}, null]", "endpoints[1]", "it is null"),
        (
            "endpoints: [[]]",
            "endpoints[0]",
            "an object is wanted, and not a list",
        ),
        (
            "endpoints: [{conditions: up}]",
            "endpoints[0].conditions",
            "an object is wanted",
        ),
        (
            "endpoints: [{conditions: {ready: 'true'}}]",
            "endpoints[0].conditions.ready",
            "`true` or `false` is wanted, and not a text",
        ),
        (
            "endpoints: [{zone: 7}]",
            "endpoints[0].zone",
            "a text is wanted",
        ),
        ("addressType: IPX", "addressType", "and not `IPX`"),
        (
            "addressType: {}",
            "addressType",
            "a text is wanted, and not an object",
        ),
    ] {
        let refused = slice(fields).unwrap_err();
        assert_eq!(&*refused.what, what);
        assert!(refused.reason.contains(part), "{refused:?}");
    }
    let yaml = "metadata: {name: x, namespace: shop, labels: {kubernetes.io/service-name: 'a.b'}}";
    let (_, refused) = unreadable(Watched::EndpointSlices, yaml);
    assert_eq!(
        &*refused.what,
        "metadata.labels[kubernetes.io/service-name]"
    );
}

#[test]
fn all_endpoints_count_and_the_zones_are_bounded() {
    let many: String = (0..5_000)
        .map(|number| format!("- {{zone: z{number}}}\n"))
        .collect();
    let record = slice(&format!("endpoints:\n{many}")).unwrap();
    assert_eq!(
        (record.backing.ready, record.backing.serving),
        (5_000, 5_000)
    );
    assert_eq!(record.zones.len(), 64);
    // A zone that is known goes on being counted.
    let again = slice(&format!("endpoints:\n{many}- {{zone: z0}}\n")).unwrap();
    assert_eq!(again.zones.get("z0"), Some(&2));
}
