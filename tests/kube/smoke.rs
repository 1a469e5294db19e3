//! The servers themselves: what other tests rely on.

use std::path::Path;
use std::time::{Duration, Instant};

use kube::api::{DynamicObject, WatchEvent};
use serde_json::json;

use crate::cluster::{Cluster, shared};
use crate::crds::{GATEWAY_API, install};
use crate::harness::wait_for;
use crate::keys::{User, write_kubeconfig};
use crate::kinds::{
    BINDING, CRD, GATEWAY, INGRESS, NAMESPACE, NODE, Pods, ROUTE, SERVICE, SLICE, endpoints,
    gateway, ingress, load_balancer, namespace, node, reading, route, service, slice,
};
use crate::node::{CONTINENTS, Member, Meridian};
use crate::objects::{Admin, Failure, Watch};

/// How long an event may take to come, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long is listened for what must not come.
const SILENCE: Duration = Duration::from_millis(500);

/// Reads the addresses of a load balancer out of a status.
fn addresses(object: &DynamicObject) -> Vec<String> {
    let ingress = &object.data["status"]["loadBalancer"]["ingress"];
    let ingress = ingress.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |one: &serde_json::Value| {
        let address = one["ip"].as_str().or_else(|| one["hostname"].as_str());
        address.expect("an address").to_owned()
    };
    ingress.iter().map(text).collect()
}

/// Waits for a change of an object; gives the object.
fn modified(watch: &mut Watch) -> DynamicObject {
    match watch.next(PATIENCE) {
        Ok(WatchEvent::Modified(object)) => object,
        other => panic!("{other:?}"),
    }
}

/// Gives the resource version from which a watch sees everything that comes.
fn now(admin: &Admin, namespace: &str) -> String {
    let list = admin.list(SERVICE, namespace).unwrap();
    list.metadata.resource_version.expect("a resource version")
}

/// Checks that a request was refused so.
fn refused<T: std::fmt::Debug>(result: Result<T, Failure>, code: u16) {
    match result {
        Err(failure) => assert_eq!(failure.code(), Some(code), "{failure}"),
        Ok(answer) => panic!("not refused: {answer:?}"),
    }
}

#[test]
fn three_clusters_run_at_once_and_know_nothing_of_each_other() {
    let clusters = shared();
    let name = ("three", "web");
    for (at, cluster) in clusters.iter().enumerate() {
        assert!(cluster.admin().is_ready(), "{}", cluster.name());
        let address = format!("192.0.2.{}", at + 1);
        let admin = cluster.admin();
        admin.create(namespace(name.0)).unwrap();
        let made = admin.create(service(name, &[], &[&address])).unwrap();
        assert_eq!(addresses(&made), [address]);
    }
    for (at, cluster) in clusters.iter().enumerate() {
        let found = cluster.admin().get(SERVICE, name.0, name.1).unwrap();
        assert_eq!(addresses(&found), [format!("192.0.2.{}", at + 1)]);
        // One cluster's keys open no other.
        let other = &clusters[(at + 1) % clusters.len()];
        let mut context = other.api().context("strange", User::Admin);
        context.url = cluster.api().url();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        write_kubeconfig(&path, &[context]);
        let strange = Admin::new(&path, "strange").list(NAMESPACE, "");
        assert!(
            matches!(strange, Err(Failure::Broken(_))),
            "an unknown authority: {strange:?}"
        );
        for cost in cluster.costs() {
            println!("{}: {cost:?}", cluster.name());
            assert!((1 << 24..1 << 32).contains(&cost.rss), "{cost:?}");
            assert!(cost.cpu > Duration::ZERO, "{cost:?}");
        }
    }
}

#[test]
fn load_balancers_get_addresses_and_watches_tell_of_it() {
    let admin = shared()[0].admin();
    let name = ("balanced", "web");
    admin.create(namespace(name.0)).unwrap();
    let annotations = [("example.test/ttl", "5")];
    let made = admin.create(service(name, &annotations, &[])).unwrap();
    assert_eq!(addresses(&made), [""; 0]);
    let cluster_ip = made.data["spec"]["clusterIP"].as_str().expect("an address");
    assert!(cluster_ip.starts_with("10.96."), "{cluster_ip}");
    let kept = made.metadata.annotations.as_ref().unwrap();
    assert_eq!(kept["example.test/ttl"], "5");
    let mut watch = admin.watch(SERVICE, name.0, &now(admin, name.0)).unwrap();
    for given in [&["192.0.2.7", "2001:db8::7"][..], &["lb.example.test"], &[]] {
        let begun = Instant::now();
        admin
            .patch_status(SERVICE, name, &load_balancer(given))
            .unwrap();
        assert_eq!(addresses(&modified(&mut watch)), given);
        println!("patch to event: {:?}", begun.elapsed());
    }
    let annotation = json!({"metadata": {"annotations": {"example.test/ttl": null}}});
    admin.patch(SERVICE, name, &annotation).unwrap();
    let changed = modified(&mut watch);
    assert!(changed.metadata.annotations.unwrap_or_default().is_empty());
    admin.delete(SERVICE, name.0, name.1).unwrap();
    let deleted = watch.next(PATIENCE);
    assert!(matches!(deleted, Ok(WatchEvent::Deleted(_))), "{deleted:?}");
    refused(admin.get(SERVICE, name.0, name.1), 404);
}

#[test]
fn slices_ingresses_and_nodes_are_served_as_written() {
    let admin = shared()[0].admin();
    let name = ("kinds", "web");
    admin.create(namespace(name.0)).unwrap();
    let mut pods = Pods {
        ready: 3,
        unready: 1,
        serving: 2,
        terminating: 1,
    };
    let counts = |slice: &DynamicObject| {
        let all = slice.data["endpoints"].as_array().expect("endpoints");
        ["ready", "serving", "terminating"].map(|condition| {
            let holds = |one: &&serde_json::Value| one["conditions"][condition] == true;
            all.iter().filter(holds).count()
        })
    };
    let made = admin.create(slice(name, 0, pods)).unwrap();
    assert_eq!(counts(&made), [3, 5, 3]);
    pods = Pods {
        ready: 1,
        ..Pods::default()
    };
    let patch = json!({"endpoints": endpoints(0, pods)});
    let changed = admin.patch(SLICE, (name.0, "web-0"), &patch).unwrap();
    assert_eq!(counts(&changed), [1, 1, 0]);

    let hosts = ["www.svc.mesh", "api.svc.mesh"];
    let made = admin
        .create(ingress(name, &[], &hosts, "web", &["192.0.2.8"]))
        .unwrap();
    assert_eq!(addresses(&made), ["192.0.2.8"]);
    let rules = made.data["spec"]["rules"].as_array().expect("rules");
    assert!(rules.iter().map(|rule| &rule["host"]).eq(&hosts));
    let moved = admin.patch_status(INGRESS, name, &load_balancer(&["lb.example.test"]));
    assert_eq!(addresses(&moved.unwrap()), ["lb.example.test"]);

    let zone = ("topology.kubernetes.io/zone", "eu-central-1a");
    admin
        .create(node("worker-1", &[zone], &["192.0.2.9"]))
        .unwrap();
    let found = admin.get(NODE, "", "worker-1").unwrap();
    assert_eq!(found.metadata.labels.unwrap()[zone.0], zone.1);
    assert_eq!(found.data["status"]["addresses"][0]["address"], "192.0.2.9");
}

#[test]
fn kinds_of_gateway_api_are_served_once_they_are_installed() {
    let admin = shared()[1].admin();
    install(admin, &GATEWAY_API);
    let definition = admin
        .get(CRD, "", "gateways.gateway.networking.k8s.io")
        .unwrap();
    install(admin, &GATEWAY_API);
    let again = admin
        .get(CRD, "", "gateways.gateway.networking.k8s.io")
        .unwrap();
    assert_eq!(
        definition.metadata.generation, again.metadata.generation,
        "a second time changes nothing"
    );
    admin.create(namespace("gateways")).unwrap();
    let (edge, web) = (("gateways", "edge"), ("gateways", "web"));
    let made = admin
        .create(gateway(
            edge,
            &["*.svc.mesh"],
            &["192.0.2.10", "lb.example.test"],
        ))
        .unwrap();
    assert_eq!(made.data["spec"]["listeners"][0]["hostname"], "*.svc.mesh");
    assert_eq!(made.data["status"]["addresses"][1]["type"], "Hostname");
    let status = json!({"addresses": [{"type": "IPAddress", "value": "192.0.2.11"}]});
    let moved = admin.patch_status(GATEWAY, edge, &status).unwrap();
    assert_eq!(moved.data["status"], {
        let mut whole = made.data["status"].clone();
        whole["addresses"] = status["addresses"].clone();
        whole
    });
    let made = admin
        .create(route(web, &["www.svc.mesh"], "edge", "web"))
        .unwrap();
    assert_eq!(made.data["spec"]["hostnames"][0], "www.svc.mesh");
    assert_eq!(
        made.data["status"]["parents"][0]["conditions"][0]["type"],
        "Accepted"
    );
    assert_eq!(admin.count(ROUTE, "gateways").unwrap(), 1);
}

#[test]
fn users_may_do_what_their_group_may() {
    let server = shared()[2].api();
    for user in User::ALL {
        let client = server.client(user);
        match user {
            User::Admin | User::Certificate => {
                assert!(client.count(SERVICE, "").unwrap() >= 1, "{user:?}");
            }
            User::Viewer | User::Reader => refused(client.list(SERVICE, ""), 403),
        }
    }
    let (admin, reader) = (server.admin(), server.client(User::Reader));
    for object in reading("services", User::Reader, "", &["services"]) {
        admin.create(object).unwrap();
    }
    wait_for("the right to read", PATIENCE, || {
        reader.list(SERVICE, "").ok()
    });
    refused(reader.list(SLICE, ""), 403);
    refused(reader.create(namespace("forbidden")), 403);
    refused(server.client(User::Viewer).list(SERVICE, ""), 403);
    let mut watch = reader.watch(SERVICE, "", &now(&reader, "")).unwrap();
    admin.delete(BINDING, "", "services").unwrap();
    wait_for("the loss of it", PATIENCE, || {
        matches!(reader.list(SERVICE, ""), Err(failure) if failure.code() == Some(403))
            .then_some(())
    });
    // What is open stays open.
    admin.create(namespace("users")).unwrap();
    admin.create(service(("users", "web"), &[], &[])).unwrap();
    wait_for("the Service on the open watch", PATIENCE, || {
        match watch.next(PATIENCE).unwrap() {
            WatchEvent::Added(object) => (object.metadata.namespace? == "users").then_some(()),
            _ => None,
        }
    });
}

#[test]
fn one_file_may_have_many_contexts_onto_one_server() {
    let clusters = shared();
    let names: Vec<String> = (0..20).map(|at| format!("member-{at}")).collect();
    let mut contexts: Vec<_> = names
        .iter()
        .map(|name| clusters[0].api().context(name, User::Admin))
        .collect();
    contexts.push(clusters[1].api().context("elsewhere", User::Admin));
    contexts.push(clusters[0].api().context("viewer", User::Viewer));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    write_kubeconfig(&path, &contexts);
    clusters[0].admin().create(namespace("contexts")).unwrap();
    for name in &names {
        Admin::new(&path, name)
            .get(NAMESPACE, "", "contexts")
            .unwrap();
    }
    let elsewhere = Admin::new(&path, "elsewhere").get(NAMESPACE, "", "contexts");
    refused(elsewhere, 404);
    refused(Admin::new(&path, "viewer").list(NAMESPACE, ""), 403);
    // What a node is told leads there too.
    let kubeconfig = clusters[0].kubeconfig(User::Admin);
    let member = Member {
        name: "a",
        region: "eu-central-1",
        kubeconfig: Some((&kubeconfig, clusters[0].name())),
    };
    let item = member.item();
    let text = |key: &str| item["kubeconfig"][key].as_str().unwrap();
    let told = Admin::new(Path::new(text("file")), text("context"));
    told.get(NAMESPACE, "", "contexts").unwrap();
}

#[test]
fn a_crowd_of_objects_is_made_at_once() {
    const COUNT: usize = 250;
    let admin = shared()[1].admin();
    admin.create(namespace("crowd")).unwrap();
    let names: Vec<String> = (0..COUNT).map(|at| format!("web-{at}")).collect();
    let pods = Pods {
        ready: 3,
        ..Pods::default()
    };
    let services = names
        .iter()
        .map(|name| service(("crowd", name), &[], &["192.0.2.12"]));
    let slices = names.iter().map(|name| slice(("crowd", name), 0, pods));
    let took = admin.create_all(services.chain(slices));
    println!("{COUNT} Services with status and as many EndpointSlices: {took:?}");
    for kind in [SERVICE, SLICE] {
        assert_eq!(admin.count(kind, "crowd").unwrap(), COUNT);
    }
    let all = admin.list(SERVICE, "crowd").unwrap();
    assert!(all.iter().all(|one| addresses(one) == ["192.0.2.12"]));
    admin.delete_all(SERVICE, "crowd").unwrap();
    assert_eq!(admin.count(SERVICE, "crowd").unwrap(), 0);
    assert_eq!(admin.count(SLICE, "crowd").unwrap(), COUNT);
}

#[test]
fn a_stopped_server_says_nothing_until_it_goes_on() {
    let mut cluster = Cluster::start("stopped");
    let admin = cluster.admin().clone();
    let name = ("default", "web");
    admin.create(service(name, &[], &[])).unwrap();
    let mut watch = admin.watch(SERVICE, name.0, &now(&admin, name.0)).unwrap();
    cluster.stop();
    let asked = admin.within(SILENCE).get(SERVICE, name.0, name.1);
    assert!(matches!(asked, Err(Failure::Silent)), "{asked:?}");
    assert!(!admin.is_ready());
    let seen = watch.next(SILENCE);
    assert!(matches!(seen, Err(Failure::Silent)), "{seen:?}");
    cluster.cont();
    wait_for("an answer", PATIENCE, || admin.is_ready().then_some(()));
    admin
        .patch_status(SERVICE, name, &load_balancer(&["192.0.2.13"]))
        .unwrap();
    assert_eq!(addresses(&modified(&mut watch)), ["192.0.2.13"]);
    // Nothing is left of it.
    let pids = cluster.pids();
    let running = || pids.map(|pid| Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(running(), [true, true]);
    drop(cluster);
    assert_eq!(running(), [false, false]);
}

#[test]
fn a_killed_server_comes_back_and_has_forgotten_what_was_compacted() {
    let mut cluster = Cluster::start("killed");
    let admin = cluster.admin().clone();
    let name = ("default", "web");
    admin.create(service(name, &[], &[])).unwrap();
    let old = now(&admin, name.0);
    let mut watch = admin.watch(SERVICE, name.0, &old).unwrap();
    let second = cluster.second_api();
    assert_ne!(second.url(), cluster.api().url());
    let other = second.admin();
    let change = |address: &str| other.patch_status(SERVICE, name, &load_balancer(&[address]));
    change("192.0.2.14").unwrap();
    assert_eq!(addresses(&modified(&mut watch)), ["192.0.2.14"]);
    cluster.kill9_api();
    let ended = watch.next(PATIENCE);
    assert!(matches!(ended, Err(Failure::Broken(_))), "{ended:?}");
    let asked = admin.get(SERVICE, name.0, name.1);
    assert!(matches!(asked, Err(Failure::Broken(_))), "{asked:?}");
    // Before a compaction the old state can still be had.
    let before = other.list_exactly(SERVICE, name.0, &old).unwrap();
    let web = before
        .iter()
        .find(|one| one.metadata.name.as_deref() == Some("web"));
    assert_eq!(addresses(web.expect("the Service")), [""; 0]);
    for last in 15..20 {
        change(&format!("192.0.2.{last}")).unwrap();
    }
    let revision = cluster.compact();
    let old_revision: u64 = old.parse().unwrap();
    assert!(revision > old_revision, "{revision} {old_revision}");
    drop(second);
    cluster.restart_api();
    let found = admin.get(SERVICE, name.0, name.1).unwrap();
    assert_eq!(addresses(&found), ["192.0.2.19"]);
    let stale = admin.watch(SERVICE, name.0, &old);
    refused(stale.and_then(|mut watch| watch.next(PATIENCE)), 410);
    refused(admin.list_exactly(SERVICE, name.0, &old), 410);
    let mut watch = admin.watch(SERVICE, name.0, &now(&admin, name.0)).unwrap();
    admin
        .patch_status(SERVICE, name, &load_balancer(&["192.0.2.20"]))
        .unwrap();
    assert_eq!(addresses(&modified(&mut watch)), ["192.0.2.20"]);
}

#[test]
fn a_node_answers_with_the_nearest_cluster() {
    let members = CONTINENTS.map(|continent| Member {
        name: continent.cluster,
        region: continent.region,
        kubeconfig: None,
    });
    let rest = "
zones: [{name: svc.mesh, nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}], contact: hostmaster.svc.mesh}]
services:
  - namespace: shop
    name: web
    hostnames: [www.svc.mesh]
    endpoints:
      - {cluster: europe, addresses: [192.0.2.1]}
      - {cluster: america, addresses: [192.0.2.2]}
      - {cluster: asia, addresses: [192.0.2.3]}
";
    let mut meridian = Meridian::start(&members, rest);
    for (at, continent) in CONTINENTS.iter().enumerate() {
        let nearest = format!("192.0.2.{}", at + 1);
        meridian.wait_answer("www.svc.mesh", continent.clients, &[&nearest], PATIENCE);
        let reply = meridian.ask("www.svc.mesh", continent.clients);
        assert!(reply.scope().is_some_and(|scope| scope > 0), "{reply:?}");
    }
    let clusters = meridian.api("/api/v1/clusters").to_string();
    for continent in CONTINENTS {
        assert!(clusters.contains(continent.cluster), "{clusters}");
    }
    let pid = meridian.node().process().id();
    assert!(Path::new(&format!("/proc/{pid}")).exists());
    assert!(meridian.log().contains("Serving"), "{}", meridian.log());
}
