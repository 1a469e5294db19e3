//! What an API server says of Services, and nothing else: enough for a node to list them and to lose them all at once.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// Services that it has at first.
const SERVICES: usize = 20;

/// What it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// All Services.
    #[default]
    Full,
    /// None any more.
    Empty,
    /// It is over.
    Ended,
}

/// Tells of the phase as it changes.
#[derive(Debug, Default)]
struct Shared {
    phase: Mutex<Phase>,
    changed: Condvar,
}

impl Shared {
    fn phase(&self) -> Phase {
        *self.phase.lock().unwrap()
    }

    fn enter(&self, phase: Phase) {
        *self.phase.lock().unwrap() = phase;
        self.changed.notify_all();
    }

    /// Waits for another phase, and gives it.
    fn after(&self, phase: Phase) -> Phase {
        let held = self.phase.lock().unwrap();
        let other = self.changed.wait_while(held, |now| *now == phase);
        *other.unwrap()
    }
}

/// Serves until it falls.
#[derive(Debug)]
pub struct Objects {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Objects {
    /// Starts on an address. Every Service is one of ours; the first has an annotation that cannot be read, the last an address
    /// that may not be probed.
    pub fn start(address: IpAddr) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        let told = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if told.phase() == Phase::Ended {
                    return;
                }
                let told = Arc::clone(&told);
                std::thread::spawn(move || serve(stream.ok()?, &told));
            }
        });
        Self { address, shared }
    }

    /// Writes a kubeconfig that leads here.
    pub fn kubeconfig(&self) -> String {
        kubeconfig(&format!("http://{}", self.address))
    }

    /// Loses all Services. Watches end, and what came before is forgotten.
    pub fn lose_all(&self) {
        self.shared.enter(Phase::Empty);
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        self.shared.enter(Phase::Ended);
        // The listener looks at it with the next connection.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

/// Writes a kubeconfig that leads to a server.
pub fn kubeconfig(server: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": server}}],
        "users": [{"name": "reader", "user": {"token": "reader"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "reader"}}]
    });
    config.to_string()
}

/// Answers the requests of one connection.
fn serve(mut stream: TcpStream, shared: &Shared) -> Option<()> {
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let target = next_target(&mut reader)?;
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        if query
            .split('&')
            .any(|pair| pair == "watch=true" || pair == "watch=1")
        {
            return watch(&mut stream, query, shared);
        }
        let (status, body) = answer(path, shared.phase());
        send(&mut stream, status, &body)?;
    }
}

/// Reads one request without a body, and gives its target; `None`: there is none any more.
pub fn next_target(reader: &mut impl BufRead) -> Option<String> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    }
    first.split(' ').nth(1).map(ToOwned::to_owned)
}

/// Sends a reply whose body is JSON.
pub fn send(stream: &mut TcpStream, status: &str, body: &Value) -> Option<()> {
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .ok()
}

/// Holds a watch open without an event, up to the loss; then its version is gone.
fn watch(stream: &mut TcpStream, query: &str, shared: &Shared) -> Option<()> {
    let phase = shared.phase();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()?;
    let mut pairs = query.split('&');
    let from = pairs.find_map(|pair| pair.strip_prefix("resourceVersion="));
    let is_current = from == Some(version(phase));
    if is_current && shared.after(phase) == Phase::Ended {
        return None;
    }
    let gone =
        json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}});
    stream.write_all(format!("{gone}\n").as_bytes()).ok()
}

/// Gives the version of what it has.
fn version(phase: Phase) -> &'static str {
    if phase == Phase::Full { "1" } else { "2" }
}

/// Gives what a path has.
fn answer(path: &str, phase: Phase) -> (&'static str, Value) {
    let is_empty = phase != Phase::Full;
    let verbs = ["get", "list", "watch"];
    let resources = |name: &str, group: &str| {
        let resource = json!({"name": name, "namespaced": true, "verbs": verbs});
        json!({"kind": "APIResourceList", "groupVersion": group, "resources": [resource]})
    };
    let list = |items: Vec<Value>| json!({"kind": "List", "metadata": {"resourceVersion": version(phase)}, "items": items});
    let body = match path {
        "/livez" | "/readyz" => json!("ok"),
        "/version" => json!({"major": "1", "minor": "29", "gitVersion": "v1.29.0"}),
        "/apis" => {
            let version = json!({"groupVersion": "discovery.k8s.io/v1", "version": "v1"});
            let group = json!({"name": "discovery.k8s.io", "versions": [version]});
            json!({"kind": "APIGroupList", "groups": [group]})
        }
        "/api/v1" => resources("services", "v1"),
        "/apis/discovery.k8s.io/v1" => resources("endpointslices", "discovery.k8s.io/v1"),
        "/apis/discovery.k8s.io/v1/endpointslices" => list(Vec::new()),
        "/api/v1/services" if is_empty => list(Vec::new()),
        "/api/v1/services" => list((0..SERVICES).map(service).collect()),
        _ => {
            let status = json!({"kind": "Status", "code": 404, "reason": "NotFound"});
            return ("404 Not Found", status);
        }
    };
    ("200 OK", body)
}

/// Makes a Service of ours.
fn service(at: usize) -> Value {
    let ttl = if at == 0 { "soon" } else { "30" };
    // A cloud's own service of metadata has this address, which is no private one.
    let address = if at + 1 == SERVICES {
        "168.63.129.16".to_owned()
    } else {
        format!("192.0.2.{}", at + 1)
    };
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": format!("web-{at}"), "namespace": "shop", "resourceVersion": "1", "uid": format!("u-{at}"),
            "annotations": {"meridian-dns.io/enabled": "true", "meridian-dns.io/ttl": ttl}
        },
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]},
        "status": {"loadBalancer": {"ingress": [{"ip": address}]}}
    })
}
