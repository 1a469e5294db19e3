//! Names of a federation, of its regions and zones, and of a cluster set: from the labels of Nodes to answers.

use std::net::IpAddr;
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::harness::client::{Ask, Reply};
use crate::harness::wait_for;
use crate::keys::User;
use crate::kinds::{Pods, SERVICE, SLICE, endpoints, namespace, node, object, service, slice};
use crate::node::{CONTINENTS, Meridian};

const PATIENCE: Duration = Duration::from_secs(20);
/// Clients in Germany and in the United States.
const GERMANS: &str = CONTINENTS[0].clients;
const AMERICANS: &str = CONTINENTS[1].clients;

const ZONE: &str = "
zones:
  - name: g.example
    nameservers: [{name: ns.g.example, addresses: [192.0.2.53]}]
    names: [kubefed, clusterset]
    federationName: prod
  - name: set.example
    nameservers: [{name: ns.set.example, addresses: [192.0.2.53]}]
    names: [clusterset]
    privateAddresses: all
kubernetes: {staleAfter: 3s}
";

const ANNOTATIONS: [(&str, &str); 3] = [
    ("meridian-dns.io/enabled", "true"),
    ("meridian-dns.io/clusterset-name", "true"),
    ("meridian-dns.io/health-check", "endpoints"),
];

/// Each cluster with its region and the zones of its Nodes; the configuration says neither.
const PLACES: [(&str, &str, &[&str]); 3] = [
    (
        "west-1",
        "eu-central-1",
        &["eu-central-1a", "eu-central-1b"],
    ),
    ("west-2", "eu-central-1", &["eu-central-1c"]),
    ("east", "us-east-1", &["us-east-1a"]),
];

const READY: Pods = Pods {
    ready: 1,
    unready: 0,
    serving: 0,
    terminating: 0,
};
const UNREADY: Pods = Pods {
    ready: 0,
    unready: 1,
    serving: 0,
    terminating: 0,
};

/// Three clusters with Nodes and the Service shop/web, 192.0.2.1 to 192.0.2.3.
struct World {
    clusters: [Cluster; 3],
    meridian: Meridian,
}

impl World {
    fn begin() -> Self {
        let clusters = Cluster::start_all(PLACES.map(|(name, ..)| name));
        let items: Value = clusters
            .iter()
            .map(|cluster| {
                let file = cluster.kubeconfig(User::Admin);
                json!({"name": cluster.name(), "kubeconfig": {"file": file, "context": cluster.name()}})
            })
            .collect();
        for (at, (cluster, (_, region, zones))) in clusters.iter().zip(PLACES).enumerate() {
            let admin = cluster.admin();
            for zone in zones {
                let labels = [
                    ("topology.kubernetes.io/region", region),
                    ("topology.kubernetes.io/zone", zone),
                ];
                let mut machine = node(&format!("in-{zone}"), &labels, &[]);
                machine["spec"] = json!({"providerID": format!("aws:///{zone}/i-1")});
                admin.create(machine).unwrap();
            }
            admin.create(namespace("shop")).unwrap();
            admin.create(slice(("shop", "web"), 1, READY)).unwrap();
            let address = format!("192.0.2.{}", at + 1);
            let web = service(("shop", "web"), &ANNOTATIONS, &[&address]);
            admin.create(web).unwrap();
        }
        let mut meridian = Meridian::start(&[], ZONE);
        let text = meridian.node().config();
        let text = text.replace("clusters: []", &format!("clusters: {items}"));
        meridian.node().write_config(&text);
        Self { clusters, meridian }
    }

    fn set_pods(&self, cluster: usize, pods: Pods) {
        let patch = json!({"endpoints": endpoints(1, pods)});
        let admin = self.clusters[cluster].admin();
        admin.patch(SLICE, ("shop", "web-1"), &patch).unwrap();
    }

    /// Waits until the Service is answered so at a name, the zone's left out.
    fn expect(&self, labels: &str, client: &str, hosts: &[u8]) {
        let addresses: Vec<String> = hosts.iter().map(|host| format!("192.0.2.{host}")).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        let name = format!("{labels}.g.example");
        self.meridian
            .wait_answer(&name, client, &addresses, PATIENCE);
        // The owner is the name that was asked for, and every address its own record there.
        let reply = self.meridian.ask(&name, client);
        let owners = reply.0.answers.iter();
        for owner in owners.map(|record| record.name.to_string()) {
            assert_eq!(owner.trim_end_matches('.'), name);
        }
    }

    fn ask(&mut self, labels: &str, rtype: RecordType) -> Reply {
        let ask = Ask::a(&format!("{labels}.g.example")).of_type(rtype);
        ask.udp(self.meridian.node().dns())
    }

    fn steps(&self, labels: &str) -> String {
        let path = format!("/api/v1/explain?name={labels}.g.example&client={AMERICANS}");
        self.meridian.api(&path)["steps"].to_string()
    }
}

#[test]
fn regions_and_zones_of_a_federation_are_answered_and_a_dead_one_by_the_next_wider() {
    let mut world = World::begin();
    let web = |area: &str| format!("web.shop.prod.svc{area}");
    // The whole federation: the nearest.
    world.expect(&web(""), AMERICANS, &[3]);
    // A level: its own clusters, wherever the client is.
    for client in [GERMANS, AMERICANS] {
        for (area, host) in [
            (".us-east-1", 3),
            (".us-east-1a.us-east-1", 3),
            (".us-east-1a", 3),
            (".eu-central-1a.eu-central-1", 1),
            (".eu-central-1b.eu-central-1", 1),
            (".eu-central-1c.eu-central-1", 2),
            (".eu-central-1c", 2),
            (".EU-Central-1C.eu-central-1", 2),
        ] {
            if area.contains("EU") {
                let reply = world
                    .meridian
                    .ask(&format!("{}.g.example", web(area)), client);
                assert_eq!(reply.addresses(), [IpAddr::from([192, 0, 2, host])]);
            } else {
                world.expect(&web(area), client, &[host]);
            }
        }
        let reply = world
            .meridian
            .ask(&format!("{}.g.example", web(".eu-central-1")), client);
        let [IpAddr::V4(address)] = reply.addresses()[..] else {
            panic!("{reply:?}")
        };
        assert!([1, 2].contains(&address.octets()[3]), "{address}");
    }
    the_names_between_exist_and_others_do_not(&mut world);
    the_cluster_set_is_answered(&mut world);
    the_endpoints_of_a_headless_service_are_answered(&mut world);
    // The API finds the service by the name of a level.
    let found = world
        .meridian
        .api("/api/v1/names/web.shop.prod.svc.us-east-1a.us-east-1.g.example");
    assert_eq!(found["key"], "shop/web");
    assert!(
        world
            .steps(&web(".eu-central-1c.eu-central-1"))
            .contains("zone eu-central-1c of region eu-central-1 decides, as asked")
    );

    // Nothing is ready in the east: its names go on with the whole federation, at the asked owner.
    world.set_pods(2, UNREADY);
    world.set_pods(1, UNREADY);
    for area in [".us-east-1", ".us-east-1a.us-east-1", ".us-east-1a", ""] {
        world.expect(&web(area), AMERICANS, &[1]);
    }
    // A zone with nothing ready: its region.
    world.expect(&web(".eu-central-1c.eu-central-1"), AMERICANS, &[1]);
    let steps = world.steps(&web(".us-east-1a.us-east-1"));
    let wanted = "the whole federation decides; nothing is usable in zone us-east-1a of region us-east-1, nor in region us-east-1";
    assert!(steps.contains(wanted), "{steps}");
    // An API server that nobody hears of changes nothing.
    world.clusters[0].stop();
    wait_for("a cluster to be stale", PATIENCE, || {
        let all = world.meridian.api("/api/v1/clusters");
        let all = all["items"].as_array()?.clone();
        let it = all.into_iter().find(|one| one["name"] == "west-1")?;
        (it["kubernetes"]["link"] == "stale").then_some(())
    });
    world.expect(&web(".eu-central-1a.eu-central-1"), AMERICANS, &[1]);
    world.set_pods(2, READY);
    world.expect(&web(".us-east-1a.us-east-1"), GERMANS, &[3]);
    world.clusters[0].cont();
}

/// RFC 8020: what a name stands below exists; a region or a service that nobody has does not.
fn the_names_between_exist_and_others_do_not(world: &mut World) {
    for labels in [
        "eu-central-1",
        "svc.eu-central-1",
        "shop.prod.svc.eu-central-1",
        "eu-central-1a.eu-central-1",
        "prod.svc.eu-central-1a.eu-central-1",
        "shop.prod.svc",
        "web.shop.prod.svc.eu-central-1",
    ] {
        let reply = world.ask(labels, RecordType::TXT);
        assert_eq!(reply.rcode(), ResponseCode::NoError, "{labels}");
        assert!(reply.0.answers.is_empty(), "{labels}");
    }
    for labels in [
        "mars",
        "web.shop.prod.svc.mars",
        "web.shop.prod.svc.mars.eu-central-1",
        "web.shop.prod.svc.us-east-1a.eu-central-1",
        "other.shop.prod.svc.eu-central-1",
        "pod-1.web.shop.prod.svc.eu-central-1",
        "web.shop.stage.svc.eu-central-1",
    ] {
        let reply = world.ask(labels, RecordType::A);
        assert_eq!(reply.rcode(), ResponseCode::NXDomain, "{labels}");
    }
}

/// KEP-1645: the name of the set by policy, its named ports, the version, and no name of a single cluster.
fn the_cluster_set_is_answered(world: &mut World) {
    world.expect("web.shop.svc", AMERICANS, &[3]);
    let version = world.ask("dns-version", RecordType::TXT);
    let records: Vec<String> = version.0.answers.iter().map(ToString::to_string).collect();
    assert_eq!(records, ["dns-version.g.example. 28800 IN TXT 1.0.0"]);
    for labels in ["east.web.shop.svc", "_http._udp.web.shop.svc"] {
        let reply = world.ask(labels, RecordType::A);
        assert_eq!(reply.rcode(), ResponseCode::NXDomain, "{labels}");
    }
    for (port, number) in [("_http", 80), ("_https", 443)] {
        let name = format!("{port}._tcp.web.shop.svc");
        let reply = world.ask(&name, RecordType::SRV);
        let records: Vec<String> = reply.0.answers.iter().map(ToString::to_string).collect();
        let wanted = format!("{name}.g.example. 30 IN SRV 0 0 {number} web.shop.svc.g.example.");
        assert_eq!(records, [wanted]);
    }
    // RFC 8020: names of ports lie below.
    for labels in ["_tcp.web.shop.svc", "_http._tcp.web.shop.svc"] {
        let reply = world.ask(labels, RecordType::A);
        assert_eq!(reply.rcode(), ResponseCode::NoError, "{labels}");
        assert!(reply.0.answers.is_empty(), "{labels}");
    }
}

/// The Service shop/db, which has no address of its own.
fn headless() -> Value {
    let mut service = object(SERVICE, "shop", "db");
    service["metadata"]["annotations"] = json!({
        "meridian-dns.io/enabled": "true",
        "meridian-dns.io/clusterset-name": "true",
    });
    service["spec"] = json!({
        "clusterIP": "None",
        "selector": {"app": "db"},
        "ports": [{"name": "sql", "port": 5432, "targetPort": 15432}],
    });
    service
}

/// Its EndpointSlice with these endpoints.
fn slice_of_headless(endpoints: &Value) -> Value {
    let mut slice = slice(("shop", "db"), 1, READY);
    slice["metadata"]["labels"]["service.kubernetes.io/headless"] = json!("");
    slice["ports"] = json!([{"name": "sql", "port": 15432}]);
    slice["endpoints"] = endpoints.clone();
    slice
}

/// KEP-1645: every ready endpoint of all clusters, each by a name of its own, and SRV that lead to these.
fn the_endpoints_of_a_headless_service_are_answered(world: &mut World) {
    let stateful = |second: bool| {
        json!([
            {"addresses": ["10.244.1.1"], "hostname": "db-0", "conditions": {"ready": true}},
            {"addresses": ["10.244.1.2"], "hostname": "db-1", "conditions": {"ready": second}},
            {"addresses": ["10.244.1.3"], "hostname": "db-2", "conditions": {"ready": false}},
        ])
    };
    let of_pod = json!([{
        "addresses": ["10.244.3.1"],
        "targetRef": {"kind": "Pod", "namespace": "shop", "name": "db-x7f"},
        "conditions": {"ready": true},
    }]);
    // Here the slice comes first, there the Service.
    let (west, east) = (world.clusters[0].admin(), world.clusters[2].admin());
    west.create(slice_of_headless(&stateful(true))).unwrap();
    west.create(headless()).unwrap();
    east.create(headless()).unwrap();
    east.create(slice_of_headless(&of_pod)).unwrap();
    let name = |labels: &str| format!("{labels}db.shop.svc.set.example");
    let expect = |world: &World, labels: &str, addresses: &[&str]| {
        for client in [GERMANS, AMERICANS] {
            let name = name(labels);
            let meridian = &world.meridian;
            meridian.wait_answer(&name, client, addresses, PATIENCE);
        }
    };
    expect(world, "", &["10.244.1.1", "10.244.1.2", "10.244.3.1"]);
    expect(world, "db-0.west-1.", &["10.244.1.1"]);
    expect(world, "db-1.WEST-1.", &["10.244.1.2"]);
    expect(world, "db-x7f.east.", &["10.244.3.1"]);
    let mut ask = |labels: &str, rtype| {
        let reply = Ask::a(&name(labels))
            .of_type(rtype)
            .udp(world.meridian.node().dns());
        let records = reply.0.answers.iter().map(ToString::to_string);
        let mut records: Vec<String> = records.collect();
        records.sort();
        (reply.rcode(), records)
    };
    let (_, records) = ask("_sql._tcp.", RecordType::SRV);
    let wanted = ["db-0.west-1", "db-1.west-1", "db-x7f.east"].map(|target| {
        format!(
            "_sql._tcp.db.shop.svc.set.example. 30 IN SRV 0 0 15432 {target}.db.shop.svc.set.example."
        )
    });
    assert_eq!(records, wanted);
    for (labels, code) in [
        ("west-1.", ResponseCode::NoError),
        ("west-2.", ResponseCode::NXDomain),
        ("db-2.west-1.", ResponseCode::NXDomain),
        ("db-0.east.", ResponseCode::NXDomain),
    ] {
        assert_eq!(ask(labels, RecordType::A), (code, vec![]), "{labels}");
    }
    let found = world
        .meridian
        .api("/api/v1/names/db-0.west-1.db.shop.svc.set.example");
    let key = found["key"].as_str().unwrap();
    assert!(key.starts_with("shop/db"), "{key}");
    // The other zone answers no private address, and the name is there all the same.
    let reply = Ask::a("db.shop.svc.g.example").udp(world.meridian.node().dns());
    assert_eq!(
        (reply.rcode(), reply.addresses()),
        (ResponseCode::NoError, vec![])
    );

    // What is not ready any more is not answered; without any the name stays.
    let patch = json!({"endpoints": stateful(false)});
    west.patch(SLICE, ("shop", "db-1"), &patch).unwrap();
    expect(world, "", &["10.244.1.1", "10.244.3.1"]);
    west.delete(SLICE, "shop", "db-1").unwrap();
    east.delete(SLICE, "shop", "db-1").unwrap();
    expect(world, "", &[]);
    for (labels, code) in [
        ("", ResponseCode::NoError),
        ("west-1.", ResponseCode::NXDomain),
        ("db-0.west-1.", ResponseCode::NXDomain),
        ("_sql._tcp.", ResponseCode::NoError),
    ] {
        let reply = Ask::a(&name(labels)).udp(world.meridian.node().dns());
        assert_eq!(reply.rcode(), code, "{labels}");
    }
}
