//! Secrets with kubeconfigs, at a server that is played: it lists them, tells of changes, and goes away.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::harness::node::Node;
use crate::harness::objects::{kubeconfig, next_target, send};
use crate::harness::raw_http::Web;
use crate::harness::{loopback, wait_for};

const PATIENCE: Duration = Duration::from_secs(30);
const REFUSED: &str = "meridian_source_refused_files{kind=\"secrets\"}";
/// In every kubeconfig.
const CANARY: &str = "c4n4ryt0ken";

const REST: &str = "
zones: [{name: g.example, nameservers: [{name: ns.g.example, addresses: [192.0.2.53]}]}]
clusters: [{name: written, kubeconfig: {file: written.yaml}}]
clustersFrom: [{secrets: {kubeconfig: {file: hub.yaml}, namespace: m, selector: team=dns}}]
";

/// Secrets by name, as they were at each version, the first one first; `None`: it is over.
type Secrets = Option<Vec<BTreeMap<String, Value>>>;

#[derive(Default)]
struct Shared {
    secrets: Mutex<Secrets>,
    changed: Condvar,
    paths: Mutex<Vec<String>>,
}

/// An API server that has Secrets and nothing else.
struct Hub {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Hub {
    fn start(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        *shared.secrets.lock().unwrap() = Some(vec![BTreeMap::new()]);
        let told = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if told.secrets.lock().unwrap().is_none() {
                    return;
                }
                let told = Arc::clone(&told);
                std::thread::spawn(move || serve(stream.ok()?, &told));
            }
        });
        Self { address, shared }
    }

    /// Has these kubeconfigs from now on, each in a Secret of its own.
    fn hold(&self, secrets: &[(&str, &str)]) {
        let made = secrets.iter().map(|(name, text)| {
            let object = json!({
                "metadata": {
                    "name": name, "namespace": "m",
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                    "annotations": {
                        "meridian-dns.io/country": "ZA",
                        "meridian-dns.io/ingress": "192.0.2.1",
                        "kubectl.kubernetes.io/last-applied-configuration": CANARY,
                    },
                },
                "data": {"kubeconfig": BASE64.encode(text.as_bytes())},
            });
            ((*name).to_owned(), object)
        });
        if let Some(history) = self.shared.secrets.lock().unwrap().as_mut() {
            history.push(made.collect());
        }
        self.shared.changed.notify_all();
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        *self.shared.secrets.lock().unwrap() = None;
        self.shared.changed.notify_all();
        // The listener looks at it with the next connection.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

/// Answers the requests of one connection.
fn serve(mut stream: TcpStream, shared: &Shared) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let target = next_target(&mut reader)?;
        shared.paths.lock().unwrap().push(target.clone());
        let history = shared.secrets.lock().unwrap().clone()?;
        if target.contains("watch=") {
            let from = target.split_once("resourceVersion=");
            let from = from.and_then(|(_, rest)| rest.split('&').next()?.parse().ok());
            return watch(&mut stream, from.unwrap_or(history.len()), shared);
        }
        let version = history.len();
        let now = history.last().into_iter().flat_map(BTreeMap::values);
        let items: Vec<Value> = now.map(|object| versioned(object, version)).collect();
        let metadata = json!({"resourceVersion": version.to_string()});
        let list = json!({"kind": "SecretList", "metadata": metadata, "items": items});
        send(&mut stream, "200 OK", &list)?;
    }
}

/// Gives an object a version.
fn versioned(object: &Value, version: usize) -> Value {
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = version.to_string().into();
    object
}

/// Tells of changes since a version until it is over.
fn watch(stream: &mut TcpStream, mut told: usize, shared: &Shared) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()?;
    loop {
        let held = shared.secrets.lock().unwrap();
        let same = |secrets: &mut Secrets| secrets.as_ref().is_some_and(|all| all.len() <= told);
        let history = shared.changed.wait_while(held, same).unwrap().clone()?;
        for (version, pair) in (2..).zip(history.windows(2)).skip(told.max(1) - 1) {
            let [known, now] = pair else { return None };
            let gone = known.iter().filter(|(name, _)| !now.contains_key(*name));
            let gone = gone.map(|(_, object)| ("DELETED", object));
            let put = now
                .iter()
                .filter(|(name, object)| known.get(*name) != Some(object));
            let put = put.map(|(_, object)| ("MODIFIED", object));
            for (kind, object) in gone.chain(put) {
                let object = versioned(object, version);
                writeln!(stream, "{}", json!({"type": kind, "object": object})).ok()?;
            }
        }
        told = history.len();
    }
}

/// A kubeconfig of a server that nobody listens at.
fn nobody() -> String {
    kubeconfig("https://127.0.0.1:9").replace("reader", CANARY)
}

fn clusters(node: &Node) -> Vec<Value> {
    let all = Web::get(node.http(), "/api/v1/clusters").send().json();
    all["items"].as_array().cloned().unwrap_or_default()
}

fn await_names(node: &Node, wanted: &[&str]) {
    wait_for(&format!("{wanted:?}"), PATIENCE, || {
        let all = clusters(node);
        let names = all.iter().filter_map(|one| one["name"].as_str());
        names.eq(wanted.iter().copied()).then_some(())
    });
}

/// The source of Secrets.
fn source(node: &Node) -> Value {
    let all = Web::get(node.http(), "/api/v1/sources").send().json();
    let all = all["items"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|one| one["kind"] == "secrets");
    found.expect("a source of Secrets")
}

fn await_refusal(node: &Node, part: &str) {
    wait_for(part, PATIENCE, || {
        source(node)["refused"]
            .to_string()
            .contains(part)
            .then_some(())
    });
}

#[test]
fn clusters_of_secrets_outlive_their_server_and_a_restart() {
    let hub = Hub::start(SocketAddr::new(loopback(), 0));
    let address = hub.address;
    let mut node = Node::start_on(loopback(), "", REST, |folder| {
        let text = kubeconfig(&format!("http://{address}"));
        fs::write(folder.join("hub.yaml"), text).unwrap();
    });
    await_names(&node, &["written"]);
    let text = nobody();
    hub.hold(&[
        ("a", &text),
        ("b", &text),
        ("c", &text),
        ("written", &text),
        ("bad", "\u{0}c4n4ryt0ken: ["),
        ("Bad", &text),
    ]);
    await_names(&node, &["a", "b", "bad", "c", "written"]);
    node.await_metric(REFUSED, 1.0);
    for part in [
        "Secret m/written, key kubeconfig: the cluster written has a kubeconfig of its own",
        "no name of a cluster",
    ] {
        let (place, reason) = part.split_once(": ").unwrap_or(("Secret m/Bad", part));
        await_refusal(&node, place);
        await_refusal(&node, reason);
    }
    await_refusal(&node, "not supported yet");
    // What stands in a Secret is refused as well, and what is wrong with an annotation names its Secret.
    await_refusal(&node, "is no kubeconfig in YAML");
    await_refusal(&node, "Secret m/a, key kubeconfig: meridian-dns.io/ingress");
    let all = clusters(&node);
    let a = &all[0];
    assert_eq!(a["from"], "Secret m/a, key kubeconfig");
    assert_eq!(a["country"], "ZA");
    assert_eq!(
        a["evidence"][0]["from"],
        "annotation meridian-dns.io/country"
    );
    let written = all.iter().find(|one| one["name"] == "written").unwrap();
    assert_eq!(written["from"], "configuration");
    // It asks for no more than its Role gives.
    let paths = hub.shared.paths.lock().unwrap().clone();
    for path in &paths {
        let is_list = path.starts_with("/api/v1/namespaces/m/secrets?");
        assert!(
            is_list && path.contains("labelSelector=team%3Ddns") || path == "/livez",
            "{path}"
        );
    }

    // Half of them are gone at once: they stay for a while, and that is told.
    hub.hold(&[("a", &text), ("written", &text)]);
    await_refusal(&node, "are gone at once");
    await_names(&node, &["a", "b", "bad", "c", "written"]);
    let bad = "\u{0}c4n4ryt0ken: [";
    let mut back = vec![
        ("a", &*text),
        ("b", &text),
        ("c", &text),
        ("written", &text),
    ];
    back.push(("bad", bad));
    hub.hold(&back);
    wait_for("all to be back", PATIENCE, || {
        let refused = source(&node)["refused"].to_string();
        (!refused.contains("are gone at once")).then_some(())
    });
    // One alone leaves, and has nobody to be drained.
    back.pop();
    hub.hold(&back);
    await_names(&node, &["a", "b", "c", "written"]);

    // The server is gone. That changes nothing, over a restart neither.
    drop(hub);
    await_refusal(&node, "onnect");
    node.kill();
    let kept = node.folder().join("state/kubeconfigs.json");
    let mode = fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    node.spawn();
    await_names(&node, &["a", "b", "c", "written"]);
    assert_eq!(clusters(&node)[0]["from"], "Secret m/a, key kubeconfig");

    // Nothing that it says has what is secret.
    let mut said = node.process().log();
    for path in [
        "/api/v1/status",
        "/api/v1/clusters",
        "/api/v1/clusters/a",
        "/api/v1/sources",
        "/api/v1/events?limit=500",
        "/metrics",
        "/clusters/a",
        "/sources",
        "/events",
    ] {
        said += &node.get(path).unwrap_or_else(|| panic!("{path}"));
    }
    assert!(!said.contains(CANARY) && !said.contains(&BASE64.encode(CANARY.as_bytes())[..12]));

    // It is back with one alone, and then nobody looks for Secrets any more.
    let hub = Hub::start(address);
    hub.hold(&[("a", &text), ("b", &text), ("written", &text)]);
    await_names(&node, &["a", "b", "written"]);
    let (before, _) = REST.split_once("clustersFrom").unwrap();
    let config = node.config();
    let (head, _) = config.split_once("\nzones:").unwrap();
    node.write_config(&format!("{head}{before}"));
    await_names(&node, &["written"]);
    wait_for("no kubeconfig on the disk", PATIENCE, || {
        let text = fs::read_to_string(&kept).unwrap();
        (!text.contains(CANARY)).then_some(())
    });
}
