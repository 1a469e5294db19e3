//! Routes.

use super::*;
use crate::inventory::ObjectKind;
use crate::source::kubernetes::{Parent, RouteRecord};

/// The kinds, and whether they have hosts.
const ROUTES: [(Watched, ObjectKind, bool); 5] = [
    (Watched::HttpRoutes, ObjectKind::HttpRoute, true),
    (Watched::GrpcRoutes, ObjectKind::GrpcRoute, true),
    (Watched::TlsRoutes, ObjectKind::TlsRoute, true),
    (Watched::TcpRoutes, ObjectKind::TcpRoute, false),
    (Watched::UdpRoutes, ObjectKind::UdpRoute, false),
];

/// Writes a Route with these fields beside its metadata.
fn yaml(fields: &str) -> String {
    format!("metadata: {{name: cart, namespace: shop}}\n{fields}")
}

/// Reads a Route of a kind.
fn route_of(watched: Watched, fields: &str) -> RouteRecord {
    match applied(watched, &yaml(fields)) {
        (_, Record::Route(record)) => record,
        other => panic!("{other:?}"),
    }
}

/// Reads an HTTPRoute.
fn route(fields: &str) -> RouteRecord {
    route_of(Watched::HttpRoutes, fields)
}

/// Makes a parent.
fn parent(gateway: Key, part: (Option<&str>, Option<u16>), unaccepted: Option<&str>) -> Parent {
    Parent {
        gateway,
        section: part.0.map(Into::into),
        port: part.1,
        unaccepted: unaccepted.map(Into::into),
    }
}

const FIELDS: &str = r#"
spec:
  parentRefs: [{name: edge, namespace: infra, sectionName: secure}]
  hostnames: [Cart.example.com, "*.cart.example.com.", cart.example.com]
  rules:
  - backendRefs:
    - {name: cart, port: 80, weight: 90}
    - {name: canary, port: 80, weight: 0}
    - {name: legacy, namespace: old, port: 80, kind: Service, group: ""}
  - matches: [{path: {type: PathPrefix, value: /x}}]
    backendRefs: [{name: cart, port: 80, weight: 0}]
  - filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]
status:
  parents:
  - parentRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge, namespace: infra, sectionName: secure}
    controllerName: example.org/controller
    conditions: [{type: Accepted, status: "True"}, {type: ResolvedRefs, status: "False", reason: BackendNotFound}]
"#;

#[test]
fn every_kind_of_route() {
    for (watched, kind, has_hosts) in ROUTES {
        let record = route_of(watched, FIELDS);
        assert_eq!(record.kind, kind);
        let named = hosts(&["cart.example.com", "*.cart.example.com"]);
        assert_eq!(record.hosts, if has_hosts { named } else { vec![] });
        assert_eq!(
            record.parents,
            [parent(key("infra", "edge"), (Some("secure"), None), None)]
        );
        assert_eq!(
            record.backends,
            [
                backend("old", "legacy", true),
                backend("shop", "canary", false),
                backend("shop", "cart", true),
            ]
        );
        assert_refused(&record.common, &[]);
    }
}

#[test]
fn parents_are_matched_with_what_is_said_of_them() {
    let record = route(
        r#"
spec:
  parentRefs:
  - {name: edge}
  - {name: edge, namespace: infra}
  - {name: edge, namespace: infra, port: 443}
  - {name: edge, namespace: infra, sectionName: web, port: 80}
  - {name: two}
  - {name: none}
  - {name: cart, kind: Service, group: ""}
status:
  parents:
  - {parentRef: {name: edge, namespace: shop}, conditions: [{type: Accepted, status: "True"}]}
  - {parentRef: {name: edge, namespace: infra}, conditions: [{type: Accepted, status: "False", reason: NotAllowedByListeners}]}
  - {parentRef: {name: edge, namespace: infra, sectionName: web, port: 80}, conditions: [{type: Accepted, status: "True"}]}
  - {parentRef: {name: edge, namespace: infra, sectionName: web}, conditions: []}
  - {parentRef: {name: two}, controllerName: example.org/a, conditions: [{type: Accepted, status: "False", reason: NotMine}]}
  - {parentRef: {name: two}, controllerName: example.org/b, conditions: [{type: Accepted, status: "True"}]}
"#,
    );
    let unsaid = Some("nobody says yet that it is `Accepted`");
    assert_eq!(
        record.parents,
        [
            parent(key("shop", "edge"), (None, None), None),
            parent(
                key("infra", "edge"),
                (None, None),
                Some("`Accepted` is `False`: NotAllowedByListeners")
            ),
            parent(key("infra", "edge"), (None, Some(443)), unsaid),
            parent(key("infra", "edge"), (Some("web"), Some(80)), None),
            parent(key("shop", "two"), (None, None), None),
            parent(key("shop", "none"), (None, None), unsaid),
        ]
    );
    assert_refused(&record.common, &[]);
}

#[test]
fn a_parent_that_cannot_be_read_whole_is_none() {
    let record = route(
        r#"
spec:
  parentRefs:
  - {name: edge, sectionName: 7}
  - {name: edge, sectionName: "Bad Name"}
  - {name: edge, port: 0}
  - {name: edge, port: 70000}
  - {name: edge, namespace: "*"}
  - {name: "../edge"}
  - {namespace: infra}
  - {name: edge, kind: ListenerSet}
  - {name: edge, kind: Gateway, group: networking.istio.io}
  - {name: edge, kind: 7}
  - null
  - {name: edge, sectionName: "", port: null}
"#,
    );
    let unsaid = Some("nobody says yet that it is `Accepted`");
    assert_eq!(
        record.parents,
        [parent(key("shop", "edge"), (None, None), unsaid)]
    );
    assert_refused(
        &record.common,
        &[
            (
                "spec.parentRefs[0].sectionName",
                "a text is wanted, and not 7",
            ),
            ("spec.parentRefs[1].sectionName", "and not `Bad Name`"),
            ("spec.parentRefs[2].port", "and not 0"),
            ("spec.parentRefs[3].port", "and not 70000"),
            ("spec.parentRefs[4].namespace", "and not `*`"),
            ("spec.parentRefs[5].name", "and not `../edge`"),
            ("spec.parentRefs[6].name", "it is missing"),
            ("spec.parentRefs[7]", "only Gateways are looked at"),
            ("spec.parentRefs[8]", "only Gateways are looked at"),
            ("spec.parentRefs[9].kind", "a text is wanted, and not 7"),
            ("spec.parentRefs[10]", "it is null"),
        ],
    );
}

#[test]
fn backends_have_weights_and_are_services() {
    let record = route(
        r#"
spec:
  rules:
  - backendRefs:
    - {name: a, weight: -1}
    - {name: b, weight: 1000001}
    - {name: c, weight: "0"}
    - {name: d, weight: null}
    - {name: e, weight: 1000000}
    - {name: f, kind: ServiceImport, group: multicluster.x-k8s.io}
    - {name: g, group: 7}
    - {name: h.example}
    - {weight: 1}
    - 7
  - backendRefs: none
  - 7
"#,
    );
    let used = ["a", "b", "c", "d", "e"].map(|name| backend("shop", name, true));
    assert_eq!(record.backends, used);
    assert_refused(
        &record.common,
        &[
            (
                "spec.rules[0].backendRefs[0].weight",
                "from 0 to 1000000 is wanted, and not -1",
            ),
            ("spec.rules[0].backendRefs[1].weight", "and not 1000001"),
            ("spec.rules[0].backendRefs[2].weight", "and not a text"),
            ("spec.rules[0].backendRefs[5]", "only Services are counted"),
            ("spec.rules[0].backendRefs[6].group", "a text is wanted"),
            ("spec.rules[0].backendRefs[7].name", "and not `h.example`"),
            ("spec.rules[0].backendRefs[8].name", "it is missing"),
            (
                "spec.rules[0].backendRefs[9]",
                "an object is wanted, and not 7",
            ),
            (
                "spec.rules[1].backendRefs",
                "a list is wanted, and not a text",
            ),
            ("spec.rules[2]", "an object is wanted, and not 7"),
        ],
    );
}

#[test]
fn hosts_that_cannot_be_read_never_mean_all_hosts() {
    // No hosts: those of the listeners.
    for fields in ["", "spec: {hostnames: []}", "spec: {hostnames: null}"] {
        assert!(route(fields).hosts.is_empty());
    }
    let record = route("spec: {hostnames: ['a b', ok.example.com, 7]}");
    assert_eq!(record.hosts, hosts(&["ok.example.com"]));
    assert_refused(
        &record.common,
        &[
            ("spec.hostnames[0]", "a host name has letters"),
            ("spec.hostnames[2]", "a text is wanted, and not 7"),
        ],
    );
    for written in ["['a b']", "[null]", "['']", "['*']", "{a: b}", "7", "text"] {
        let fields = format!("spec: {{hostnames: {written}}}");
        let (_, refused) = unreadable(Watched::HttpRoutes, &yaml(&fields));
        assert_eq!(&*refused.what, "spec.hostnames", "{written}");
        // TCPRoutes have none, whatever is written.
        assert!(route_of(Watched::TcpRoutes, &fields).hosts.is_empty());
    }
}
