//! Objects in both forms that servers have: JSON and protobuf come to the same.

use meridian::source::kubernetes::{Event, Watched, read_list};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::kinds::{INGRESS, NODE, SERVICE, SLICE, namespace, object};

/// Where the objects of the tests are.
const SHOP: &str = "shop";

/// An object with fields of its own, a label, annotations that are read, and one that is not.
fn with(kind: (&str, &str), namespace: &str, name: &str, fields: &Value) -> Value {
    let mut object = object(kind, namespace, name);
    object["metadata"]["labels"] = json!({
        "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": "eu-west-1a",
        "kubernetes.io/service-name": "web",
    });
    object["metadata"]["annotations"] = json!({
        "meridian-dns.io/hostname": "web.g.example, köln.g.example",
        "meridian-dns.io/ttl": "nonsense",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    });
    let fields = fields.as_object().unwrap().clone();
    object.as_object_mut().unwrap().extend(fields);
    object
}

fn services() -> Vec<Value> {
    let ports = json!([
        {"name": "http", "port": 80, "appProtocol": "http"},
        {"name": "https", "port": 443, "appProtocol": "kubernetes.io/wss"},
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "sip", "port": 5060, "protocol": "SCTP"},
    ]);
    let one = [json!({"port": 65535, "protocol": "TCP"})];
    let entries = json!([{"ip": "192.0.2.1"}, {"ip": "2001:db8::1", "ipMode": "VIP"}, {"hostname": "lb.example.net"}]);
    vec![
        with(
            SERVICE,
            SHOP,
            "web",
            &json!({
                "spec": {"type": "LoadBalancer", "ports": ports, "allocateLoadBalancerNodePorts": false},
                "status": {"loadBalancer": {"ingress": entries}},
            }),
        ),
        with(
            SERVICE,
            SHOP,
            "headless",
            &json!({
                "spec": {"clusterIP": "None", "ports": one, "publishNotReadyAddresses": true},
            }),
        ),
        with(
            SERVICE,
            SHOP,
            "away",
            &json!({
                "spec": {"type": "ExternalName", "externalName": "a.example.net"},
            }),
        ),
    ]
}

fn slices() -> Vec<Value> {
    let endpoints = json!([
        {"addresses": ["10.0.0.1"]},
        {"addresses": ["10.0.0.2"], "conditions": {"ready": true}, "zone": "eu-west-1a", "hostname": "db-0",
            "targetRef": {"kind": "Pod", "name": "db-0", "namespace": SHOP}},
        {"addresses": ["10.0.0.3"], "conditions": {"ready": false, "serving": true, "terminating": true}, "zone": "eu-west-1b"},
        {"addresses": ["10.0.0.4"], "conditions": {"ready": false}},
    ]);
    let ports = json!([{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": ""}]);
    vec![
        with(
            SLICE,
            SHOP,
            "web-1",
            &json!({"addressType": "IPv4", "endpoints": endpoints, "ports": ports}),
        ),
        with(
            SLICE,
            SHOP,
            "web-2",
            &json!({"addressType": "IPv6", "endpoints": [{"addresses": ["2001:db8::2"]}]}),
        ),
        with(
            SLICE,
            SHOP,
            "web-3",
            &json!({"addressType": "FQDN", "endpoints": []}),
        ),
    ]
}

fn ingresses() -> Vec<Value> {
    let service = |name: &str| json!({"service": {"name": name, "port": {"number": 80}}});
    let resource =
        json!({"resource": {"apiGroup": "k8s.example.com", "kind": "Bucket", "name": "b"}});
    let path = |path: &str, backend: &Value| json!({"path": path, "pathType": "Prefix", "backend": backend});
    let rules = json!([
        {"host": "a.g.example", "http": {"paths": [path("/", &service("web")), path("/b", &service("api"))]}},
        {"host": "*.b.g.example", "http": {"paths": [path("/", &resource)]}},
        {"http": {"paths": [path("/all", &service("web"))]}},
        {"host": "c.g.example"},
    ]);
    vec![
        with(
            INGRESS,
            SHOP,
            "full",
            &json!({
                "spec": {"defaultBackend": service("fall"), "rules": rules, "tls": [{"hosts": ["a.g.example"], "secretName": "s"}]},
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}, {"hostname": "lb.example.net"}]}},
            }),
        ),
        with(
            INGRESS,
            SHOP,
            "tls",
            &json!({
                "spec": {"defaultBackend": resource, "tls": [{"hosts": ["x.g.example", "y.g.example"]}]},
            }),
        ),
    ]
}

fn nodes() -> Vec<Value> {
    vec![
        with(
            NODE,
            "",
            "one",
            &json!({"spec": {"providerID": "aws:///eu-west-1a/i-0", "podCIDR": "10.1.0.0/24"}}),
        ),
        with(NODE, "", "bare", &json!({})),
    ]
}

#[test]
fn objects_are_the_same_as_json_and_as_protobuf() {
    let cluster = Cluster::start("europe");
    let admin = cluster.admin();
    admin.create(namespace(SHOP)).unwrap();
    for (watched, path, objects) in [
        (
            Watched::Services,
            "/api/v1/namespaces/shop/services",
            services(),
        ),
        (
            Watched::EndpointSlices,
            "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices",
            slices(),
        ),
        (
            Watched::Ingresses,
            "/apis/networking.k8s.io/v1/namespaces/shop/ingresses",
            ingresses(),
        ),
        (Watched::Nodes, "/api/v1/nodes", nodes()),
    ] {
        let wanted = objects.len();
        admin.create_all(objects);
        let json = admin.octets(path, "application/json");
        let protobuf = admin.octets(path, "application/vnd.kubernetes.protobuf");
        assert_eq!((json.first(), &protobuf[..4]), (Some(&b'{'), &b"k8s\0"[..]));
        let (from_json, from_protobuf) = (read_list(watched, &json), read_list(watched, &protobuf));
        let applied = from_json.as_ref().unwrap().iter();
        let applied = applied.filter(|event| matches!(event, Event::Applied(..)));
        assert_eq!(applied.count(), wanted, "{watched:?}");
        assert_eq!(from_json, from_protobuf, "{watched:?}");
    }
    // What is refused is told in protobuf too.
    let missing = admin.octets(
        "/api/v1/nodes/nobody",
        "application/vnd.kubernetes.protobuf",
    );
    assert!(read_list(Watched::Nodes, &missing).is_err());
}
