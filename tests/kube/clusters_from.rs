//! The story goes on: a fourth cluster joins by a file in a directory, and leaves by its removal.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hickory_proto::op::ResponseCode;
use serde_json::{Value, json};

use crate::cluster::{Cluster, shared};
use crate::harness::client::Ask;
use crate::harness::door::{Token, plain, token};
use crate::harness::loopback;
use crate::harness::node::{Node, meridian};
use crate::harness::raw_http::Web;
use crate::harness::wait_for;
use crate::keys::User;
use crate::kinds::{
    NAMESPACE, NODE, Pods, SERVICE, SLICE, endpoints, load_balancer, namespace, node, service,
    slice,
};
use crate::node::CONTINENTS;
use crate::objects::Admin;
use crate::watchman::Watchman;

/// How long a change may take where no number is asked for, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How long a cluster may take from its file to its answers.
pub const JOINED: Duration = Duration::from_secs(3);

/// The zone, with short TTLs: leaving waits for them.
const REST: &str = "
zones: [{name: g.example, nameservers: [{name: ns.g.example, addresses: [192.0.2.53]}]}]
kubernetes: {staleAfter: 3s}
";

const WWW: &str = "www.joining.g.example";
/// A name that only the fourth cluster has.
const LONE: &str = "lone.joining.g.example";

/// Clients in South Africa.
pub const AFRICANS: &str = "196.25.0.0/24";

/// Makes a Service with ready endpoints.
fn put_service(admin: &Admin, name: &str, host: &str, address: &str) {
    put_service_in(admin, ("joining", name), host, address);
}

/// Makes one in a namespace.
pub fn put_service_in(admin: &Admin, key: (&str, &str), host: &str, address: &str) {
    if admin.get(NAMESPACE, "", key.0).is_err() {
        admin.create(namespace(key.0)).unwrap();
    }
    let annotations = [
        ("meridian-dns.io/hostname", host),
        ("meridian-dns.io/health-check", "endpoints"),
        ("meridian-dns.io/ttl", "1"),
    ];
    let pods = Pods {
        ready: 2,
        ..Pods::default()
    };
    admin.create(slice(key, 1, pods)).unwrap();
    let made = service(key, &annotations, &[address]);
    admin.create(made).unwrap();
}

/// A node that looks into directories, and somebody who may change something.
pub struct Site {
    pub node: Node,
    http: SocketAddr,
    operator: Token,
}

impl Site {
    /// Starts one beside these clusters; `sources` is `clustersFrom`.
    pub fn start(clusters: &[&Cluster], sources: &Value) -> Self {
        let members = CONTINENTS.iter().filter_map(|continent| {
            let cluster = clusters
                .iter()
                .find(|cluster| cluster.name() == continent.cluster)?;
            Some(json!({
                "name": continent.cluster, "provider": "aws", "region": continent.region,
                "kubeconfig": {"file": cluster.kubeconfig(User::Admin)},
            }))
        });
        let members: Value = members.collect();
        let http = SocketAddr::new(loopback(), 8053);
        let operator = token();
        let admin = format!(
            "listen: [\"{http}\"], anonymous: viewer, tokens: [{{name: sre, file: o, role: operator}}]"
        );
        let rest = format!("clusters: {members}\nclustersFrom: {sources}\n{REST}");
        let node = Node::start_with_admin(plain, &admin, &rest, |folder| {
            fs::write(folder.join("o"), &operator.line).unwrap();
            for directory in ["clusters.d", "watched.d"] {
                fs::create_dir(folder.join(directory)).unwrap();
            }
        });
        Self {
            node,
            http,
            operator,
        }
    }

    fn directory(&self) -> PathBuf {
        self.node.folder().join("clusters.d")
    }

    pub fn api(&self, path: &str) -> Value {
        let answer = Web::get(self.http, path).send();
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// A cluster as the API lists it.
    pub fn cluster(&self, name: &str) -> Option<Value> {
        let all = self.api("/api/v1/clusters");
        let all = all["items"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|one| one["name"] == name)
    }

    pub fn expect(&self, name: &str, client: &str, address: &str) {
        let wanted: IpAddr = address.parse().unwrap();
        let mut last = Vec::new();
        wait_for(
            &format!("{name} for {client} to be {address}"),
            PATIENCE,
            || {
                last = Ask::a(name).from(client).udp(self.node.dns()).addresses();
                (last == [wanted]).then_some(())
            },
        );
    }

    /// The events so far, as one text.
    pub fn events(&self) -> String {
        self.api("/api/v1/events?limit=200").to_string()
    }
}

/// Puts a file in its place as careful people do: no half of it is ever read.
fn put(from: &Path, to: &Path) {
    let draft = to.with_extension("draft");
    fs::copy(from, &draft).unwrap();
    fs::rename(&draft, to).unwrap();
}

/// Starts the fourth cluster, with a node in South Africa.
pub fn africa() -> Cluster {
    let cluster = Cluster::start("africa");
    let labels = [("topology.kubernetes.io/region", "af-south-1")];
    let mut machine = node("one", &labels, &[]);
    machine["spec"] = json!({"providerID": "aws:///af-south-1a/i-1"});
    cluster.admin().create(machine).unwrap();
    assert!(cluster.admin().get(NODE, "", "one").is_ok());
    cluster
}

#[test]
fn a_fourth_cluster_joins_by_a_file_and_leaves_by_its_removal() {
    let three = shared();
    for (at, cluster) in three.iter().enumerate() {
        put_service(cluster.admin(), "web", WWW, &format!("192.0.2.{}", at + 11));
    }
    let africa = africa();
    put_service(africa.admin(), "web", WWW, "192.0.2.14");
    let site = Site::start(&three.each_ref(), &json!([{"directory": "clusters.d"}]));
    site.expect(WWW, AFRICANS, "192.0.2.11");
    let watchman = Watchman::post(site.node.dns(), &[WWW], &[AFRICANS]);
    let kubeconfig = africa.kubeconfig(User::Admin);
    let file = site.directory().join("africa.yaml");

    // It joins.
    let begun = Instant::now();
    put(&kubeconfig, &file);
    site.expect(WWW, AFRICANS, "192.0.2.14");
    let took = begun.elapsed();
    println!("answered {took:?} after the kubeconfig was dropped");
    assert!(took < JOINED, "{took:?}");
    let joined = site.cluster("africa").unwrap();
    assert_eq!(joined["country"], "ZA", "{joined}");
    assert_eq!(joined["leaving"], Value::Null);

    // One that wants to run a program is refused by name, and loses nothing else.
    let text = fs::read_to_string(&kubeconfig).unwrap();
    let mut hostile: Value = serde_json::from_str(&text).unwrap();
    let ran = site.node.folder().join("ran");
    hostile["users"][0]["user"] = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/touch", "args": [ran],
    }});
    fs::write(site.directory().join("hostile.yaml"), hostile.to_string()).unwrap();
    fs::write(site.directory().join("Bad_Name.yaml"), &text).unwrap();
    wait_for("the refusal of exec", PATIENCE, || {
        let refused = site.cluster("hostile")?;
        let why = refused["kubernetes"]["lastError"].as_str()?.to_owned();
        (why.contains("exec:") && why.contains("hostile.yaml")).then_some(())
    });
    wait_for("the refusal of a name", PATIENCE, || {
        let sources = site.api("/api/v1/sources").to_string();
        (sources.contains("Bad_Name.yaml") && sources.contains("no name of a cluster"))
            .then_some(())
    });
    assert!(!ran.exists(), "nothing was run");
    site.node
        .await_metric("meridian_source_refused_files{kind=\"directory\"}", 1.0);
    fs::remove_file(site.directory().join("hostile.yaml")).unwrap();
    fs::remove_file(site.directory().join("Bad_Name.yaml")).unwrap();
    wait_for("the hostile one to be gone", PATIENCE, || {
        site.cluster("hostile").is_none().then_some(())
    });

    // The directory is gone: that is no emptiness.
    let aside = site.node.folder().join("aside");
    fs::rename(site.directory(), &aside).unwrap();
    site.node
        .await_metric("meridian_source_refused_files{kind=\"directory\"}", 1.0);
    let admin = africa.admin();
    let patch = load_balancer(&["192.0.2.15"]);
    admin
        .patch_status(SERVICE, ("joining", "web"), &patch)
        .unwrap();
    site.expect(WWW, AFRICANS, "192.0.2.15");
    assert_eq!(site.cluster("africa").unwrap()["leaving"], Value::Null);
    fs::rename(&aside, site.directory()).unwrap();
    site.node
        .await_metric("meridian_source_refused_files{kind=\"directory\"}", 0.0);

    // It leaves, and comes back before it is gone.
    fs::remove_file(&file).unwrap();
    let begun = Instant::now();
    site.expect(WWW, AFRICANS, "192.0.2.11");
    println!("answers moved on {:?} after the removal", begun.elapsed());
    let leaving = site.cluster("africa").unwrap();
    assert!(leaving["leaving"]["since"].is_string(), "{leaving}");
    assert_eq!(leaving["state"], "drained");
    let patch = load_balancer(&["192.0.2.16"]);
    admin
        .patch_status(SERVICE, ("joining", "web"), &patch)
        .unwrap();
    put(&kubeconfig, &file);
    site.expect(WWW, AFRICANS, "192.0.2.16");
    assert_eq!(site.cluster("africa").unwrap()["leaving"], Value::Null);

    // It leaves for good.
    fs::remove_file(&file).unwrap();
    let begun = Instant::now();
    site.expect(WWW, AFRICANS, "192.0.2.11");
    wait_for("the cluster to be gone", PATIENCE, || {
        site.cluster("africa").is_none().then_some(())
    });
    println!("gone {:?} after the removal", begun.elapsed());
    site.expect(WWW, AFRICANS, "192.0.2.11");
    let events = site.events();
    for part in [
        "was found by its kubeconfig",
        "is leaving",
        "is back",
        "has left",
    ] {
        assert!(events.contains(part), "{part}: {events}");
    }
    watchman.relieve();
    for cluster in three {
        cluster.admin().delete_all(SERVICE, "joining").unwrap();
    }
}

#[test]
fn an_only_cluster_that_leaves_is_held_over_a_restart_until_an_operator_drops_it() {
    let africa = africa();
    put_service(africa.admin(), "lone", LONE, "192.0.2.24");
    let mut site = Site::start(&[], &json!([{"directory": "clusters.d"}]));
    let file = site.directory().join("africa.yaml");
    put(&africa.kubeconfig(User::Admin), &file);
    site.expect(LONE, AFRICANS, "192.0.2.24");
    let offers = site.node.folder().join("state/offers.json");
    wait_for("the offers on disk", PATIENCE, || {
        let text = fs::read_to_string(&offers).ok()?;
        text.contains("192.0.2.24").then_some(())
    });
    let drop = |site: &Site| {
        let path = "/api/v1/clusters/africa?reason=closed";
        let web = Web::new(site.http, "DELETE", path);
        web.bearer(&site.operator.text).send()
    };
    assert_eq!(drop(&site).status, 409, "it is not leaving");
    let watchman = Watchman::post(site.node.dns(), &[LONE], &[AFRICANS]);
    fs::remove_file(&file).unwrap();
    let held = |site: &Site| {
        let held = site.cluster("africa")?;
        let services = held["leaving"]["heldServices"].as_array()?.clone();
        (services == ["joining/lone"]).then_some(held)
    };
    wait_for("it to be held", PATIENCE, || held(&site));
    // Longer than TTL and margin.
    let begun = Instant::now();
    wait_for("time to pass", PATIENCE, || {
        (begun.elapsed() > Duration::from_secs(8)).then_some(())
    });
    assert!(held(&site).is_some());
    watchman.relieve();
    let problems = site.api("/api/v1/status")["problems"].to_string();
    assert!(problems.contains("Cluster africa is held"), "{problems}");

    // Over a restart too, and while the directory cannot be read it is not even drained.
    site.node.kill();
    let aside = site.node.folder().join("aside");
    fs::rename(site.directory(), &aside).unwrap();
    site.node.spawn();
    site.expect(LONE, AFRICANS, "192.0.2.24");
    assert_eq!(site.cluster("africa").unwrap()["leaving"], Value::Null);
    fs::rename(&aside, site.directory()).unwrap();
    wait_for("it to be held again", PATIENCE, || held(&site));
    site.expect(LONE, AFRICANS, "192.0.2.24");

    // By the command: without `--force` it says what holds the cluster, and changes nothing.
    let secret = site.node.folder().join("secret");
    fs::write(&secret, &site.operator.text).unwrap();
    let leave = |more: &[&str]| {
        let server = format!("http://{}", site.http);
        let secret = secret.to_str().unwrap();
        let directory = site.directory();
        let mut args = vec!["cluster", "leave", "africa", "--server", &server];
        args.extend(["--directory", directory.to_str().unwrap()]);
        args.extend(["--token-file", secret]);
        args.extend(more);
        meridian(&args)
    };
    let waited = leave(&["--timeout", "1s"]);
    let said = String::from_utf8_lossy(&waited.stderr).into_owned();
    assert_eq!(waited.status.code(), Some(3), "{said}");
    let holds = "holds it, for services that have nothing else: joining/lone";
    assert!(said.contains(holds), "{said}");
    let forced = leave(&["--force"]);
    assert!(forced.status.success(), "{forced:?}");
    // What is shown follows the next publish.
    wait_for("it to be gone", PATIENCE, || {
        site.cluster("africa").is_none().then_some(())
    });
    wait_for("its name to be gone", PATIENCE, || {
        let reply = Ask::a(LONE).from(AFRICANS).udp(site.node.dns());
        reply.addresses().is_empty().then_some(())
    });
    assert_eq!(drop(&site).status, 404);
    let audit = Web::get(site.http, "/api/v1/audit").bearer(&site.operator.text);
    let audit = audit.send().json().to_string();
    assert!(
        audit.contains("\"drop\"") && audit.contains("cluster leave --force"),
        "{audit}"
    );
}

#[test]
fn a_cluster_that_is_observed_is_in_no_answer_until_it_is_admitted() {
    let africa = africa();
    let europe = &shared()[0];
    let (observed, alone) = ("www.observed.g.example", "alone.observed.g.example");
    let put_service = |admin: &Admin, name: &str, host: &str, address: &str| {
        put_service_in(admin, ("observed", name), host, address);
    };
    put_service(europe.admin(), "web", observed, "192.0.2.31");
    put_service(africa.admin(), "web", observed, "192.0.2.34");
    put_service(africa.admin(), "alone", alone, "192.0.2.35");
    let sources = json!([
        {"directory": "clusters.d"}, {"directory": "watched.d", "admit": "observe"},
    ]);
    let site = Site::start(&[europe], &sources);
    site.expect(observed, AFRICANS, "192.0.2.31");
    let watched = site.node.folder().join("watched.d/africa.yaml");
    put(&africa.kubeconfig(User::Admin), &watched);
    let is_known = |admitted: bool| {
        wait_for("the cluster to be synced", PATIENCE, || {
            let it = site.cluster("africa")?;
            let is_so = it["kubernetes"]["link"] == "synced" && it["admitted"] == admitted;
            (is_so && it["services"] == 2).then_some(())
        });
    };
    is_known(false);
    // Its name is there, and has no address; and nobody is sent to it.
    let reply = Ask::a(alone).from(AFRICANS).udp(site.node.dns());
    assert_eq!(reply.rcode(), ResponseCode::NoError);
    assert_eq!(reply.addresses(), Vec::<IpAddr>::new());
    site.expect(observed, AFRICANS, "192.0.2.31");
    let shown = site.api("/api/v1/services/observed/alone@observed");
    assert_eq!(shown["objects"][0]["cluster"], "africa", "{shown}");
    // Not even as a last resort.
    let admin = europe.admin();
    let none = json!({"endpoints": endpoints(1, Pods::default())});
    admin.patch(SLICE, ("observed", "web-1"), &none).unwrap();
    wait_for("Europe to be unready", PATIENCE, || {
        let service = site.api("/api/v1/services/observed/web").to_string();
        service.contains("unready").then_some(())
    });
    site.expect(observed, AFRICANS, "192.0.2.31");

    // It is admitted by moving the file.
    let served = site.directory().join("africa.yaml");
    fs::rename(&watched, &served).unwrap();
    site.expect(observed, AFRICANS, "192.0.2.34");
    site.expect(alone, AFRICANS, "192.0.2.35");
    is_known(true);
    let ready = Pods {
        ready: 2,
        ..Pods::default()
    };
    let ready = json!({"endpoints": endpoints(1, ready)});
    admin.patch(SLICE, ("observed", "web-1"), &ready).unwrap();

    // The way back is a leaving: who has nothing else is held.
    fs::rename(&served, &watched).unwrap();
    site.expect(observed, AFRICANS, "192.0.2.31");
    site.expect(alone, AFRICANS, "192.0.2.35");
    wait_for("it to be held", PATIENCE, || {
        let it = site.cluster("africa")?;
        (it["leaving"]["heldServices"] == json!(["observed/alone"])).then_some(())
    });
    site.expect(alone, AFRICANS, "192.0.2.35");
    admin.delete_all(SERVICE, "observed").unwrap();
}
