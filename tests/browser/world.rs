//! A small world: five clusters on five continents, each a real server or two, and clients that ask.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::chrome::Chrome;
use crate::harness::backend::Backend;
use crate::harness::client::Ask;
use crate::harness::node::Node;
use crate::harness::{loopback, wait_for};

/// The operator's token, and the hash that the node knows.
pub const OPERATOR: (&str, &str) = (
    "operator-of-the-tests",
    "fb836e7e37222389bde7445213f5c8761fe1f8ad084d3a94247251df29b05be9",
);
/// A viewer's.
pub const VIEWER: (&str, &str) = (
    "viewer-of-the-tests",
    "a33b0c2fb6cd38cf823ead10a13739d487c57f9cb8d5425fcc6ebfa35485302c",
);
/// The port of all backends.
const PORT: u16 = 18_090;
/// Cluster, provider and region.
const CLUSTERS: [(&str, &str, &str); 5] = [
    ("frankfurt", "aws", "eu-central-1"),
    ("virginia", "aws", "us-east-1"),
    ("singapore", "aws", "ap-southeast-1"),
    ("saopaulo", "aws", "sa-east-1"),
    ("capetown", "aws", "af-south-1"),
];
/// Clients in Germany, the United States, Japan, Brazil and South Africa.
const CLIENTS: [&str; 5] = [
    "46.114.0.0/24",
    "8.8.8.0/24",
    "133.11.0.0/24",
    "200.147.3.0/24",
    "196.25.1.0/24",
];

/// Writes services in frankfurt and virginia, as list items of a configuration. Nobody listens where they are.
pub fn many_services(count: usize, monitor: &str) -> String {
    let mut text = String::new();
    for at in 0..count {
        let (namespace, host) = (at / 1000, at % 250 + 1);
        writeln!(
            text,
            "  - {{namespace: n{namespace}, name: s{at}, hostnames: [s{at}.svc.mesh], monitor: {monitor}, endpoints: [{{cluster: frankfurt, addresses: [127.30.0.{host}]}}, {{cluster: virginia, addresses: [127.30.1.{host}]}}]}}",
        )
        .unwrap();
    }
    text
}

/// An expression: what the page says has these words.
pub fn says(words: &str) -> String {
    format!("document.querySelector('main').textContent.includes('{words}')")
}

/// A node, its backends, and clients.
pub struct World {
    pub node: Node,
    backends: Vec<Option<Backend>>,
    stop: Arc<AtomicBool>,
    clients: Option<JoinHandle<()>>,
}

impl World {
    /// Starts it; `more` is put into the configuration as it is: services as list items, then further keys.
    pub fn start(more: &str) -> Self {
        let backends: Vec<Backend> = CLUSTERS
            .iter()
            .map(|_| Backend::start(loopback(), PORT))
            .collect();
        let addresses: Vec<IpAddr> = backends.iter().map(|one| one.address().ip()).collect();
        let mut node = Node::start_on(loopback(), "", &config(&addresses, more), |folder| {
            for (name, (_, hash)) in [("operator", OPERATOR), ("viewer", VIEWER)] {
                std::fs::write(
                    folder.join(format!("{name}.token")),
                    format!("sha256:{hash}\n"),
                )
                .unwrap();
            }
            std::fs::write(folder.join("peer.token"), "peer-of-the-tests\n").unwrap();
        });
        // The harness writes the listener; the tokens stand beside it.
        let admin = format!("admin: {{listen: [\"{}\"]", node.http());
        let tokens = "tokens: [{name: ann, file: operator.token, role: operator}, {name: vic, file: viewer.token, role: viewer}]";
        let written = node.config();
        assert!(written.contains(&admin), "{written}");
        node.kill();
        node.write_config(&written.replace(&admin, &format!("{admin}, {tokens}")));
        node.spawn();
        let stop = Arc::new(AtomicBool::new(false));
        let clients = clients(node.dns(), Arc::clone(&stop));
        Self {
            node,
            backends: backends.into_iter().map(Some).collect(),
            stop,
            clients: Some(clients),
        }
    }

    /// Gives the URL of a page.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.node.http())
    }

    /// Stops the server of a cluster, by its place in the list.
    pub fn kill(&mut self, cluster: usize) {
        self.backends[cluster]
            .take()
            .expect("a running backend")
            .kill();
    }

    /// Starts it again at the same place.
    pub fn revive(&mut self, cluster: usize, address: SocketAddr) {
        self.backends[cluster] = Some(Backend::start(address.ip(), address.port()));
    }

    /// Gives where the server of a cluster is.
    pub fn backend(&self, cluster: usize) -> SocketAddr {
        self.backends[cluster]
            .as_ref()
            .expect("a running backend")
            .address()
    }

    /// Waits until monitors have judged, and the charts have something to show.
    pub fn settle(&self) {
        wait_for("verdicts and a first step", Duration::from_secs(20), || {
            let status = self.node.get("/api/v1/status")?;
            let traffic = self.node.get("/api/v1/status/traffic")?;
            let judged = status.contains("\"services\":{\"up\":3") || status.contains("\"up\":3,");
            let asked = traffic.contains("\"DE\":");
            (judged && asked).then_some(())
        });
    }

    /// Signs the browser in.
    pub fn sign_in(&self, chrome: &Chrome, (token, _): (&str, &str)) {
        chrome.open(&self.url("/login?next=/clusters"));
        chrome.fill("input[name=token]", token);
        chrome.click_text("Sign in");
        chrome.wait("location.pathname === '/clusters'");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(clients) = self.clients.take() {
            let _ = clients.join();
        }
    }
}

/// Asks from everywhere, at an even pace.
fn clients(server: SocketAddr, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for at in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
            // Everybody asks for everything, Germany most often.
            let from = at % (CLIENTS.len() + 2);
            let client = CLIENTS[from.saturating_sub(2)];
            let name = ["www.svc.mesh", "api.svc.mesh", "nothing.svc.mesh"][at / 7 % 3];
            let _ = Ask::a(name)
                .from(client)
                .try_udp(server, Duration::from_secs(1));
            std::thread::sleep(Duration::from_millis(10));
        }
    })
}

/// Writes the configuration: `www` everywhere, `api` in two clusters, `alone` in one, and what else is wished.
fn config(addresses: &[IpAddr], more: &str) -> String {
    let mut text = String::from(
        "zones:
  - name: svc.mesh
    nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}]
    contact: hostmaster.svc.mesh
    ttl: 2
    negativeTtl: 2
clusters:
",
    );
    for (name, provider, region) in CLUSTERS {
        writeln!(
            text,
            "  - {{name: {name}, provider: {provider}, region: {region}}}"
        )
        .unwrap();
    }
    let monitor = format!(
        "{{http: {{path: /, port: {PORT}}}, interval: 500ms, timeout: 400ms, rise: 1, fall: 2}}"
    );
    writeln!(text, "defaults:\n  monitor: {monitor}\nservices:").unwrap();
    for (name, clusters) in [("web", 0..5), ("api", 0..2), ("alone", 4..5)] {
        let host = if name == "web" { "www" } else { name };
        writeln!(text, "  - namespace: shop\n    name: {name}\n    hostnames: [{host}.svc.mesh]\n    endpoints:").unwrap();
        for at in clusters {
            writeln!(
                text,
                "      - {{cluster: {}, addresses: [{}]}}",
                CLUSTERS[at].0, addresses[at]
            )
            .unwrap();
        }
    }
    text.push_str(more);
    text
}
