//! Services.

use super::*;
use crate::source::kubernetes::{Port, Protocol, ServiceRecord};

/// Reads a Service.
fn service(yaml: &str) -> ServiceRecord {
    match applied(Watched::Services, yaml) {
        (_, Record::Service(record)) => record,
        other => panic!("{other:?}"),
    }
}

/// Makes a port.
fn port(name: &str, number: u16, protocol: Protocol) -> Port {
    Port {
        name: name.into(),
        number,
        protocol,
    }
}

#[test]
fn a_load_balancer() {
    let yaml = r#"
apiVersion: v1
kind: Service
metadata:
  name: cart
  namespace: shop
  annotations:
    meridian-dns.io/hostname: cart.example.com
    meridian-dns.io/weight: "7"
    meridian-dns.io/ttl: soon
    kubernetes.io/whatever: "7"
spec:
  type: LoadBalancer
  clusterIP: 10.96.3.4
  externalIPs: [203.0.113.9]
  ports:
  - {name: web, port: 80, targetPort: 8080, nodePort: 30080, appProtocol: http}
  - {name: secure, port: 443, protocol: TCP, appProtocol: HTTPS}
  - {name: live, port: 8443, appProtocol: kubernetes.io/wss}
  - {name: rpc, port: 9000, appProtocol: kubernetes.io/h2c}
  - {name: db, port: 5432, appProtocol: example.org/odd}
  - {name: dns, port: 53, protocol: UDP, appProtocol: http}
  - {port: 36412, protocol: SCTP}
status:
  loadBalancer:
    ingress:
    - {ip: 192.0.2.10, ipMode: VIP}
    - {ip: "2001:DB8::a", ipMode: Proxy, ports: [{port: 80, protocol: TCP}]}
    - {hostname: LB-1.eu.example.net.}
    - {ip: 192.0.2.10, hostname: lb-1.eu.example.net}
    - {ip: 10.1.2.3}
"#;
    let (key_of_it, _) = applied(Watched::Services, yaml);
    assert_eq!(key_of_it, key("shop", "cart"));
    let record = service(yaml);
    assert_eq!(
        record.common.said.said.hostnames,
        Some(hosts(&["cart.example.com"]))
    );
    assert_eq!(record.common.said.said.weight.unwrap().0, 7);
    assert_eq!(record.common.said.refused.len(), 1);
    assert_refused(&record.common, &[]);
    assert!(!record.is_headless);
    assert!(record.is_load_balancer && !record.publishes_not_ready && !record.common.is_deleting);
    assert_eq!(
        record.ports,
        [
            port("web", 80, Protocol::Http),
            port("secure", 443, Protocol::Tls),
            port("live", 8443, Protocol::Tls),
            port("rpc", 9000, Protocol::Http),
            port("db", 5432, Protocol::Tcp),
            port("dns", 53, Protocol::Udp),
            port("", 36412, Protocol::Sctp),
        ]
    );
    assert_eq!(
        record.entries,
        entries(
            &["192.0.2.10", "2001:db8::a", "10.1.2.3"],
            &["lb-1.eu.example.net"]
        )
    );
}

#[test]
fn one_without_a_load_balancer_is_kept_for_those_that_send_traffic_to_it() {
    let record = service(
        "
metadata: {name: db-0, namespace: shop, deletionTimestamp: '2026-11-20T09:00:00Z'}
spec: {clusterIP: None, publishNotReadyAddresses: true, ports: [{port: 5432}]}
status: {loadBalancer: {}}
",
    );
    assert!(record.is_headless);
    assert!(!record.is_load_balancer && record.publishes_not_ready && record.common.is_deleting);
    assert_eq!(record.ports, [port("", 5432, Protocol::Tcp)]);
    assert_eq!(record.entries, Ingresses::default());
    assert_refused(&record.common, &[]);
}

#[test]
fn nothing_at_all_and_null_are_nothing() {
    for yaml in [
        "metadata: {name: a, namespace: b}",
        "{metadata: {name: a, namespace: b}, spec: null, status: null}",
        "{metadata: {name: a, namespace: b, annotations: null, labels: null}, spec: {type: null, ports: null, publishNotReadyAddresses: null}, status: {loadBalancer: null}}",
        "{metadata: {name: a, namespace: b}, spec: {ports: []}, status: {loadBalancer: {ingress: null}}}",
    ] {
        let record = service(yaml);
        assert_refused(&record.common, &[]);
        assert!(!record.is_load_balancer && record.ports.is_empty());
        assert_eq!(record.entries, Ingresses::default());
    }
}

#[test]
fn ports_that_are_wrong_are_named_and_the_rest_counts() {
    let record = service(
        r#"
metadata: {name: cart, namespace: shop}
spec:
  type: 7
  publishNotReadyAddresses: "yes"
  ports:
  - {name: zero, port: 0}
  - {name: big, port: 70000}
  - {name: text, port: "80"}
  - {name: minus, port: -1}
  - {name: half, port: 80.5}
  - {name: none}
  - {name: Loud, port: 80}
  - {name: "nul\0", port: 81, protocol: [TCP]}
  - null
  - 82
  - {name: good, port: 83}
"#,
    );
    assert_refused(
        &record.common,
        &[
            ("spec.type", "a text is wanted, and not 7"),
            ("spec.ports[0].port", "from 1 to 65535 is wanted, and not 0"),
            ("spec.ports[1].port", "and not 70000"),
            ("spec.ports[2].port", "and not a text"),
            ("spec.ports[3].port", "and not -1"),
            ("spec.ports[4].port", "and not 80.5"),
            ("spec.ports[5].port", "it is missing"),
            ("spec.ports[6].name", "and not `Loud`"),
            ("spec.ports[7].name", "and not `nul\\u{0}`"),
            ("spec.ports[7].protocol", "a text is wanted, and not a list"),
            ("spec.ports[8]", "it is null"),
            ("spec.ports[9]", "an object is wanted, and not 82"),
            (
                "spec.publishNotReadyAddresses",
                "`true` or `false` is wanted",
            ),
        ],
    );
    assert!(!record.is_load_balancer && !record.publishes_not_ready);
    assert_eq!(
        record.ports,
        [
            port("", 80, Protocol::Tcp),
            port("", 81, Protocol::Other),
            port("good", 83, Protocol::Tcp),
        ]
    );
}

/// Reads entries of a load balancer's status, one by one, and gives the one fault of each with what it is about.
fn entry(yaml: &str) -> (Ingresses, Option<(String, String)>) {
    let record = service(&format!(
        "metadata: {{name: a, namespace: b}}\nstatus: {{loadBalancer: {{ingress: [{yaml}]}}}}"
    ));
    let mut refused = record.common.refused.into_iter();
    let one = refused
        .next()
        .map(|one| (one.what.into(), one.reason.into()));
    assert_eq!(refused.next(), None, "{yaml}");
    (record.entries, one)
}

#[test]
fn an_entry_that_no_machine_has_is_refused() {
    for (yaml, field, part) in [
        ("{ip: 0.0.0.0}", ".ip", "is the unspecified address"),
        ("{ip: '::'}", ".ip", "is the unspecified address"),
        (
            "{ip: '::ffff:0.0.0.0'}",
            ".ip",
            "is the unspecified address",
        ),
        ("{ip: 224.0.0.5}", ".ip", "is a multicast address"),
        ("{ip: 'ff02::1'}", ".ip", "is a multicast address"),
        ("{ip: 255.255.255.255}", ".ip", "is the broadcast address"),
        ("{ip: 192.0.2.300}", ".ip", "`192.0.2.300` is no address"),
        ("{ip: 'fe80::1%eth0'}", ".ip", "is no address"),
        ("{ip: lb.example.net}", ".ip", "is no address"),
        ("{ip: 7}", ".ip", "a text is wanted, and not 7"),
        ("{ip: true}", ".ip", "a text is wanted, and not a yes or no"),
        (
            "{hostname: '*.example.net'}",
            ".hostname",
            "`*` may only be",
        ),
        ("{hostname: '*.'}", ".hostname", "`*` may only be"),
        ("{hostname: '.'}", ".hostname", "the root is no host"),
        (
            "{hostname: a..example.net}",
            ".hostname",
            "a label must not be empty",
        ),
        (
            "{hostname: \"a\\u001b[2Jb.example.net\"}",
            ".hostname",
            "`a\\u{1b}[2Jb.example.net`: a host name has letters",
        ),
        (
            "{hostname: '0.0.0.0'}",
            ".hostname",
            "is the unspecified address",
        ),
        ("{}", "", "neither `ip` nor `hostname` is said"),
        (
            "{ip: '', hostname: ''}",
            "",
            "neither `ip` nor `hostname` is said",
        ),
        ("null", "", "it is null"),
        ("text", "", "an object is wanted, and not a text"),
    ] {
        let (entries, refused) = entry(yaml);
        let (what, reason) = refused.unwrap();
        assert_eq!(
            what,
            format!("status.loadBalancer.ingress[0]{field}"),
            "{yaml}"
        );
        assert!(reason.contains(part), "{yaml}: {reason}");
        assert_eq!(entries, Ingresses::default(), "{yaml}");
        // It stands in no other's way.
        let yaml = format!("{{ip: 192.0.2.9}}, {yaml}, {{hostname: lb.example.net}}");
        let beside = super::entries(&["192.0.2.9"], &["lb.example.net"]);
        assert_eq!(entry(&yaml).0, beside, "{yaml}");
    }
}

#[test]
fn an_entry_may_be_written_in_another_way() {
    for (yaml, addresses, hostnames) in [
        ("{ip: '::ffff:192.0.2.7'}", &["192.0.2.7"][..], &[][..]),
        ("{ip: '2001:DB8:0::1'}", &["2001:db8::1"], &[]),
        ("{hostname: '192.0.2.8'}", &["192.0.2.8"], &[]),
        (
            "{hostname: BÜCHER.example.}",
            &[],
            &["xn--bcher-kva.example"],
        ),
        ("{ip: null, hostname: a_b.example}", &[], &["a_b.example"]),
    ] {
        assert_eq!(entry(yaml), (entries(addresses, hostnames), None), "{yaml}");
    }
}

#[test]
fn what_has_no_spec_to_read_leaves_what_was_known() {
    for (part, what, reason) in [
        ("spec: 7", "spec", "an object is wanted, and not 7"),
        ("spec: [a]", "spec", "an object is wanted, and not a list"),
        (
            "status: down",
            "status",
            "an object is wanted, and not a text",
        ),
    ] {
        let yaml = format!("metadata: {{name: cart, namespace: shop}}\n{part}");
        let (key_of_it, refused) = unreadable(Watched::Services, &yaml);
        assert_eq!(key_of_it, key("shop", "cart"));
        assert_eq!((&*refused.what, &*refused.reason), (what, reason));
    }
}
