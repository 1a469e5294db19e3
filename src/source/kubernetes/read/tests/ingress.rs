//! Ingresses.

use super::*;
use crate::source::kubernetes::IngressRecord;

/// Reads an Ingress with these fields beside its metadata.
fn ingress(fields: &str) -> IngressRecord {
    let yaml = format!("metadata: {{name: front, namespace: shop}}\n{fields}");
    match applied(Watched::Ingresses, &yaml) {
        (_, Record::Ingress(record)) => record,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rules_backends_and_status() {
    let record = ingress(
        r#"
spec:
  ingressClassName: nginx
  defaultBackend: {service: {name: fallback, port: {number: 80}}}
  tls: [{hosts: ["*.example.com"], secretName: wild}]
  rules:
  - host: Shop.Example.com
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}
      - {path: /api, pathType: Prefix, backend: {service: {name: api, port: {number: 80}}}}
      - {path: /img, pathType: Prefix, backend: {resource: {apiGroup: example.org, kind: Bucket, name: img}}}
  - host: "*.shop.example.com"
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
  - host: shop.example.com
  - host: ""
    http: {paths: []}
  - http: null
status:
  loadBalancer:
    ingress: [{ip: 198.51.100.4}, {hostname: elb.example.net, ports: [{port: 443, protocol: TCP}]}]
"#,
    );
    assert_eq!(
        record.hosts,
        hosts(&["shop.example.com", "*.shop.example.com"])
    );
    assert!(record.has_tls);
    assert_eq!(
        record.backends,
        [
            backend("shop", "api", true),
            backend("shop", "fallback", true),
            backend("shop", "web", true),
        ]
    );
    assert_eq!(
        record.entries,
        entries(&["198.51.100.4"], &["elb.example.net"])
    );
    assert_refused(
        &record.common,
        &[(
            "spec.rules[0].http.paths[2].backend.resource",
            "only Services",
        )],
    );
}

#[test]
fn the_hosts_of_certificates_count_only_where_no_rule_names_one() {
    let tls = "tls: [{hosts: [a.example.com, '*.b.example.com']}, {secretName: x}]";
    let own = hosts(&["a.example.com", "*.b.example.com"]);
    for (rules, wanted) in [
        ("", own.clone()),
        ("rules: [{http: {paths: []}}, {host: ''}]", own),
        ("rules: [{host: c.example.com}]", hosts(&["c.example.com"])),
        // One that is refused was named all the same.
        ("rules: [{host: 'c d'}]", vec![]),
        ("rules: [{host: 7}]", vec![]),
    ] {
        let record = ingress(&format!("spec:\n  {tls}\n  {rules}"));
        assert_eq!(record.hosts, wanted, "{rules}");
        assert!(record.has_tls);
    }
    assert!(!ingress("spec: {tls: []}").has_tls);
}

#[test]
fn hosts_are_read_by_the_rules_of_annotations() {
    let record = ingress(
        r#"
spec:
  rules:
  - {host: "bücher.example."}
  - {host: "*.BÜCHER.example"}
  - {host: xn--bcher-kva.example}
  - {host: "*"}
  - {host: "*."}
  - {host: "."}
  - {host: a.*.example}
  - {host: "-a.example"}
  - {host: "a\\.b.example"}
  - {host: "a\u200bb.example"}
  - {host: "a\nb.example"}
  - {host: [a.example]}
  - {host: "a b.example"}
"#,
    );
    assert_eq!(
        record.hosts,
        hosts(&["xn--bcher-kva.example", "*.xn--bcher-kva.example"])
    );
    let of = |number: usize| format!("spec.rules[{number}].host");
    let odd = [
        (of(3), "the root is no host"),
        (of(4), "the root is no host"),
        (of(5), "the root is no host"),
        (of(6), "`*` may only be"),
        (of(7), "a label neither begins nor ends with `-`"),
        (of(8), "`a\\.b.example` is no host name"),
        (of(9), "nobody sees"),
        (of(10), "`a\\nb.example`: a host name has"),
        (of(11), "a text is wanted, and not a list"),
        (of(12), "a host name has letters"),
    ];
    let odd: Vec<(&str, &str)> = odd
        .iter()
        .map(|(what, part)| (what.as_str(), *part))
        .collect();
    assert_refused(&record.common, &odd);
}

#[test]
fn what_is_wrong_below_a_rule_leaves_the_others() {
    let record = ingress(
        r#"
spec:
  defaultBackend: fallback
  tls: {hosts: [a.example.com]}
  rules:
  - {host: a.example.com, http: {paths: {}}}
  - {host: b.example.com, http: {paths: [{backend: {service: {name: "Web"}}}, {backend: {service: {port: {number: 80}}}}]}}
  - {host: c.example.com, http: {paths: [{backend: {service: [web]}}, {backend: {service: {name: web}}}]}}
"#,
    );
    assert_eq!(
        record.hosts,
        hosts(&["a.example.com", "b.example.com", "c.example.com"])
    );
    assert_eq!(record.backends, [backend("shop", "web", true)]);
    assert!(!record.has_tls);
    assert_refused(
        &record.common,
        &[
            ("spec.defaultBackend", "an object is wanted, and not a text"),
            (
                "spec.rules[0].http.paths",
                "a list is wanted, and not an object",
            ),
            (
                "spec.rules[1].http.paths[0].backend.service.name",
                "and not `Web`",
            ),
            (
                "spec.rules[1].http.paths[1].backend.service.name",
                "it is missing",
            ),
            (
                "spec.rules[2].http.paths[0].backend.service",
                "an object is wanted",
            ),
            ("spec.tls", "a list is wanted, and not an object"),
        ],
    );
}
