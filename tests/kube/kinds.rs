//! Objects as their owners write them, and states as their controllers do.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use crate::keys::User;

/// API version and kind.
pub type Kind<'a> = (&'a str, &'a str);

pub const NAMESPACE: Kind<'static> = ("v1", "Namespace");
pub const SECRET: Kind<'static> = ("v1", "Secret");
pub const ACCOUNT: Kind<'static> = ("v1", "ServiceAccount");
pub const NODE: Kind<'static> = ("v1", "Node");
pub const SERVICE: Kind<'static> = ("v1", "Service");
pub const SLICE: Kind<'static> = ("discovery.k8s.io/v1", "EndpointSlice");
pub const INGRESS: Kind<'static> = ("networking.k8s.io/v1", "Ingress");
pub const GATEWAY: Kind<'static> = ("gateway.networking.k8s.io/v1", "Gateway");
pub const ROUTE: Kind<'static> = ("gateway.networking.k8s.io/v1", "HTTPRoute");
pub const CRD: Kind<'static> = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
pub const ROLE: Kind<'static> = ("rbac.authorization.k8s.io/v1", "ClusterRole");
pub const BINDING: Kind<'static> = ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding");

/// Begins an object.
pub fn object((api_version, kind): Kind<'_>, namespace: &str, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name},
    });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

/// Names and values as a map.
fn map(pairs: &[(&str, &str)]) -> Value {
    let pairs = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// A namespace.
pub fn namespace(name: &str) -> Value {
    object(NAMESPACE, "", name)
}

/// The `status` of a Service or an Ingress: addresses, host names or none that its controller has given it.
pub fn load_balancer(addresses: &[&str]) -> Value {
    let ingress: Vec<Value> = addresses
        .iter()
        .map(|address| match address.parse::<IpAddr>() {
            Ok(_) => json!({"ip": address}),
            Err(_) => json!({"hostname": address}),
        })
        .collect();
    json!({"loadBalancer": {"ingress": ingress}})
}

/// A Service of type LoadBalancer on ports 80 and 443, with annotations, that has its addresses already.
///
/// It has no node ports: there are only 2,768 in a cluster, and taking one is slow.
pub fn service(
    (namespace, name): (&str, &str),
    annotations: &[(&str, &str)],
    addresses: &[&str],
) -> Value {
    let mut service = object(SERVICE, namespace, name);
    service["metadata"]["annotations"] = map(annotations);
    service["spec"] = json!({
        "type": "LoadBalancer",
        "allocateLoadBalancerNodePorts": false,
        "selector": {"app": name},
        "ports": [
            {"name": "http", "port": 80, "targetPort": 8080},
            {"name": "https", "port": 443, "targetPort": 8443},
        ],
    });
    service["status"] = load_balancer(addresses);
    service
}

/// How many pods of each condition an EndpointSlice has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pods {
    /// Ready and serving.
    pub ready: u8,
    /// Neither ready nor serving, such as those that still start.
    pub unready: u8,
    /// Terminating, and serving to the end.
    pub serving: u8,
    /// Terminating, and serving no more.
    pub terminating: u8,
}

/// An EndpointSlice of a Service, `-N` behind its name, with pods of 10.244.0.0/16.
pub fn slice((namespace, service): (&str, &str), number: u8, pods: Pods) -> Value {
    let mut slice = object(SLICE, namespace, &format!("{service}-{number}"));
    slice["metadata"]["labels"] = map(&[
        ("kubernetes.io/service-name", service),
        (
            "endpointslice.kubernetes.io/managed-by",
            "endpointslice-controller.k8s.io",
        ),
    ]);
    slice["addressType"] = json!("IPv4");
    slice["ports"] = json!([{"name": "http", "port": 8080}, {"name": "https", "port": 8443}]);
    slice["endpoints"] = endpoints(number, pods);
    slice
}

/// The `endpoints` of an EndpointSlice, to patch it with.
pub fn endpoints(number: u8, pods: Pods) -> Value {
    // Ready, serving, terminating.
    let groups = [
        (pods.ready, (true, true, false)),
        (pods.unready, (false, false, false)),
        (pods.serving, (false, true, true)),
        (pods.terminating, (false, false, true)),
    ];
    let conditions = groups
        .iter()
        .flat_map(|(count, conditions)| (0..*count).map(move |_| conditions));
    conditions
        .enumerate()
        .map(|(at, (ready, serving, terminating))| {
            json!({
                "addresses": [format!("10.244.{number}.{}", at + 1)],
                "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
            })
        })
        .collect()
}

/// An Ingress for hosts, all to one Service, that has its addresses already.
pub fn ingress(
    (namespace, name): (&str, &str),
    annotations: &[(&str, &str)],
    hosts: &[&str],
    service: &str,
    addresses: &[&str],
) -> Value {
    let backend = json!({"service": {"name": service, "port": {"number": 80}}});
    let rules: Vec<Value> = hosts
        .iter()
        .map(|host| {
            let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
            json!({"host": host, "http": {"paths": [path]}})
        })
        .collect();
    let mut ingress = object(INGRESS, namespace, name);
    ingress["metadata"]["annotations"] = map(annotations);
    ingress["spec"] = json!({"rules": rules});
    ingress["status"] = load_balancer(addresses);
    ingress
}

/// A Node that is ready, with labels and addresses as seen from outside.
pub fn node(name: &str, labels: &[(&str, &str)], addresses: &[&str]) -> Value {
    let addresses: Vec<Value> = addresses
        .iter()
        .map(|address| json!({"type": "ExternalIP", "address": address}))
        .collect();
    let mut node = object(NODE, "", name);
    node["metadata"]["labels"] = map(labels);
    node["status"] = json!({
        "addresses": addresses,
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    node
}

/// A Gateway with a listener for each host, that has its addresses already. See `crds`.
pub fn gateway((namespace, name): (&str, &str), hosts: &[&str], addresses: &[&str]) -> Value {
    let listeners: Vec<Value> = hosts
        .iter()
        .enumerate()
        .map(|(at, host)| {
            json!({"name": format!("listener-{at}"), "hostname": host, "port": 80, "protocol": "HTTP"})
        })
        .collect();
    let addresses: Vec<Value> = addresses
        .iter()
        .map(|address| match address.parse::<IpAddr>() {
            Ok(_) => json!({"type": "IPAddress", "value": address}),
            Err(_) => json!({"type": "Hostname", "value": address}),
        })
        .collect();
    let mut gateway = object(GATEWAY, namespace, name);
    gateway["spec"] = json!({"gatewayClassName": "tests", "listeners": listeners});
    gateway["status"] = json!({
        "addresses": addresses,
        "conditions": [{"type": "Programmed", "status": "True"}],
    });
    gateway
}

/// An HTTPRoute for hosts, through one Gateway of its namespace to one Service, that is accepted already. See `crds`.
pub fn route(
    (namespace, name): (&str, &str),
    hosts: &[&str],
    gateway: &str,
    service: &str,
) -> Value {
    let mut route = object(ROUTE, namespace, name);
    route["spec"] = json!({
        "parentRefs": [{"name": gateway}],
        "hostnames": hosts,
        "rules": [{"backendRefs": [{"name": service, "port": 80}]}],
    });
    route["status"] = json!({"parents": [{
        "parentRef": {"name": gateway},
        "controllerName": "meridian.test/controller",
        "conditions": [{"type": "Accepted", "status": "True"}],
    }]});
    route
}

/// A role to look at kinds of a group, by their plural names, and its binding to a user's group.
pub fn reading(name: &str, user: User, group: &str, plurals: &[&str]) -> [Value; 2] {
    let (api_group, _) = ROLE.0.split_once('/').unwrap();
    let mut role = object(ROLE, "", name);
    role["rules"] =
        json!([{"apiGroups": [group], "resources": plurals, "verbs": ["get", "list", "watch"]}]);
    let mut binding = object(BINDING, "", name);
    binding["roleRef"] = json!({"apiGroup": api_group, "kind": ROLE.1, "name": name});
    binding["subjects"] = json!([{"apiGroup": api_group, "kind": "Group", "name": user.group()}]);
    [role, binding]
}
