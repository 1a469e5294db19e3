//! EndpointSlices.

use super::*;
use crate::inventory::Backing;
use crate::source::kubernetes::{AddressType, SliceRecord};

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
    assert_eq!(
        record,
        Ok(SliceRecord {
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
        })
    );
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
