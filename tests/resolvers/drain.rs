//! A drain under load: two nodes, seen through unbound and BIND as they come.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::harness::backend::Backend;
use crate::harness::client::Ask;
use crate::harness::node::Node;
use crate::harness::{loopback, wait_for};
use crate::parent::Parent;
use crate::peers::{Kind, Resolver};

/// The name asked for.
const NAME: &str = "web.svc.mesh";
/// A client nearest to the cluster that is drained.
const GERMANY: &str = "46.114.0.0/24";
/// TTL of the name, seconds.
const TTL: u64 = 4;
/// From the order to the moment it announces, seconds.
const AHEAD: u64 = 14;
/// A record is passed on within a second, or after an exchange that was under way when a node was killed: 4 s, and a second.
const PASSED_ON: Duration = Duration::from_secs(10);
/// Secrets of this test.
const OPERATOR: &str = "mrd_operator-0123456789abcdef0123456789abcdef";
const PEER: &str = "mrd_peer-0123456789abcdef0123456789abcdef";

/// A wire between two nodes that can be cut: nothing comes through any more, and nobody is told.
struct Wire {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
}

impl Wire {
    fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind(SocketAddr::new(loopback(), 0)).unwrap();
        let wire = Self {
            address: listener.local_addr().unwrap(),
            is_cut: Arc::default(),
        };
        let is_cut = Arc::clone(&wire.is_cut);
        spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Ok(onward) = TcpStream::connect(target) else {
                    continue;
                };
                for (mut from, mut to) in [
                    (stream.try_clone().unwrap(), onward.try_clone().unwrap()),
                    (onward, stream),
                ] {
                    let is_cut = Arc::clone(&is_cut);
                    spawn(move || {
                        let mut octets = [0; 4096];
                        while let Ok(length @ 1..) = from.read(&mut octets) {
                            // Swallowed: the other side waits.
                            if is_cut.load(Ordering::Relaxed) {
                                continue;
                            }
                            if to.write_all(&octets[..length]).is_err() {
                                return;
                            }
                        }
                    });
                }
            }
        });
        wire
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }
}

fn config(address: IpAddr, near: SocketAddr, far: SocketAddr) -> String {
    format!(
        "zones:
  - name: svc.mesh
    nameservers: [{{name: ns1.svc.mesh, addresses: [{address}]}}, {{name: ns2.svc.mesh, addresses: [{address}]}}]
    ttl: {TTL}
    negativeTtl: 1
clusters:
  - {{name: europe, provider: aws, region: eu-central-1}}
  - {{name: america, provider: aws, region: us-east-1}}
services:
  - namespace: shop
    name: web
    hostnames: [{NAME}]
    policy: {{maps: [{{clusters: [europe, america]}}]}}
    monitor: {{http: {{path: /, port: {port}}}, interval: 500ms, timeout: 400ms, rise: 1, fall: 2}}
    endpoints: [{{cluster: europe, addresses: [{near}]}}, {{cluster: america, addresses: [{far}]}}]
",
        port = near.port(),
        near = near.ip(),
        far = far.ip(),
    )
}

/// Starts a node and gives it a name, tokens and its peer.
fn join(node: &mut Node, name: &str, peer: SocketAddr) {
    let hash = |token: &str| {
        let octets = digest(&SHA256, token.as_bytes());
        let hex: String = octets.as_ref().iter().map(|o| format!("{o:02x}")).collect();
        format!("sha256:{hex}\n")
    };
    let folder = node.folder().to_owned();
    std::fs::write(folder.join("operator"), hash(OPERATOR)).unwrap();
    std::fs::write(folder.join("peer"), hash(PEER)).unwrap();
    std::fs::write(folder.join("peer.token"), PEER).unwrap();
    let http = node.http();
    let plain = format!("admin: {{listen: [\"{http}\"]}}");
    let admin = format!(
        "admin: {{listen: [\"{http}\"], hosts: [\"*\"], tokens: [{{name: ann, file: operator, role: operator}}, {{name: nodes, file: peer, role: peer}}]}}\n\
         peers: [{{url: \"http://{peer}\", tokenFile: peer.token}}]"
    )
    .replace(", hosts: [\"*\"]", "");
    let text = node.config();
    assert!(text.contains(&plain));
    let text = text
        .replace(&plain, &admin)
        .replace("name: test", &format!("name: {name}"));
    node.kill();
    node.write_config(&text);
    node.spawn();
}

/// Asks the API of a node.
fn api(node: &Node, method: &str, path: &str, body: &str) -> (u16, Value) {
    let http = node.http();
    let mut stream = TcpStream::connect(http).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {http}\r\nAuthorization: Bearer {OPERATOR}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (
        status,
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{text}")),
    )
}

/// What clients saw: when, through whom, and whether it was the drained cluster.
type Seen = Arc<Mutex<Vec<(Instant, &'static str, bool)>>>;

/// Clients that ask all the time, until they are told to stop.
struct Load {
    seen: Seen,
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(targets: &[(&'static str, SocketAddr, bool)], drained: IpAddr) -> Self {
        let load = Self {
            seen: Arc::default(),
            stop: Arc::default(),
            clients: Vec::new(),
        };
        let client = |(who, server, recursive): &(&'static str, SocketAddr, bool)| {
            let (who, server, recursive) = (*who, *server, *recursive);
            let (seen, stop) = (Arc::clone(&load.seen), Arc::clone(&load.stop));
            spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let ask = Ask::a(NAME).from(GERMANY);
                    let ask = if recursive { ask.recursive() } else { ask };
                    if let Some(reply) = ask.try_udp(server, Duration::from_secs(1)) {
                        let is_drained = reply.addresses().contains(&drained);
                        seen.lock().unwrap().push((Instant::now(), who, is_drained));
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
            })
        };
        let clients = targets.iter().map(client).collect();
        Self { clients, ..load }
    }

    /// Gives the last moment at which somebody was sent to the drained cluster, and counts answers since `from` by who gave them.
    fn last(&self, who: &str) -> (Option<Instant>, usize) {
        let seen = self.seen.lock().unwrap();
        let own = seen.iter().filter(|(_, through, _)| *through == who);
        let drained = own.clone().filter(|(_, _, is_drained)| *is_drained);
        (drained.map(|(at, _, _)| *at).max(), own.count())
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().unwrap();
        }
    }
}

fn drain_of(node: &Node, id: &str) -> Value {
    let (status, drain) = api(node, "GET", &format!("/api/v1/drains/{id}"), "");
    assert_eq!(status, 200, "{drain}");
    drain
}

#[test]
fn a_drain_is_safe_when_every_cache_has_let_go_and_never_without_a_node() {
    let _machine = crate::alone();
    let near = Backend::start(loopback(), 18_090);
    let far = Backend::start(loopback(), 18_090);
    let addresses = [loopback(), loopback()];
    let rest = |address| config(address, near.address(), far.address());
    let mut first = Node::start_on(addresses[0], "", &rest(addresses[0]), |_| ());
    let mut second = Node::start_on(addresses[1], "", &rest(addresses[1]), |_| ());
    let wires = [Wire::to(first.http()), Wire::to(second.http())];
    join(&mut first, "first", wires[1].address);
    join(&mut second, "second", wires[0].address);
    let parent = Parent::start(addresses);
    let unbound = Resolver::start(Kind::PlainUnbound, &parent);
    let bind = Resolver::start(Kind::Bind, &parent);
    let targets = [
        ("first", first.dns(), false),
        ("second", second.dns(), false),
        ("unbound", unbound.server(), true),
        ("BIND", bind.server(), true),
    ];
    let drained = near.address().ip();
    let load = Load::start(&targets, drained);
    for (who, _, _) in &targets {
        wait_for(who, Duration::from_secs(10), || load.last(who).0);
    }
    // Announced: at the moment named no client is sent there any more, caches included.
    let order = format!(
        "{{\"target\": {{\"kind\": \"cluster\", \"cluster\": \"europe\"}}, \"reason\": \"new kernel\", \"inSeconds\": {AHEAD}}}"
    );
    let moment = Instant::now() + Duration::from_secs(AHEAD);
    let (status, drain) = api(&first, "POST", "/api/v1/drains", &order);
    assert_eq!(status, 201, "{drain}");
    assert_eq!(drain["state"], "announced");
    let id = drain["id"].as_str().unwrap().to_owned();
    let (status, again) = api(&first, "POST", "/api/v1/drains", &order);
    assert_eq!((status, again["id"].as_str()), (200, Some(id.as_str())));
    wait_for("the other to have it", PASSED_ON, || {
        (drain_of(&first, &id)["acknowledged"] == 2).then_some(())
    });
    let safe = wait_for("safe to stop", Duration::from_secs(60), || {
        let words = [drain_of(&first, &id), drain_of(&second, &id)];
        words
            .iter()
            .any(|word| word["safeToStop"] == true)
            .then(Instant::now)
    });
    for (who, _, _) in &targets {
        let (last, count) = load.last(who);
        let last = last.unwrap();
        assert!(count > 1000, "{who} was asked {count} times only");
        assert!(
            last < moment,
            "{who} sent a client there {:?} after the moment",
            last - moment
        );
        let quiet = safe - last;
        println!("{who}: {count} answers, quiet for {quiet:?} when it was safe");
        assert!(quiet > Duration::from_secs(TTL), "{who}: {quiet:?}");
    }
    // And back.
    let end = format!("/api/v1/drains/{id}?reason=done");
    assert_eq!(api(&second, "DELETE", &end, "").0, 200);
    for (who, _, _) in &targets {
        let since = Instant::now();
        wait_for(who, Duration::from_secs(20), || {
            load.last(who).0.filter(|last| *last > since)
        });
    }
    // A node that is cut off in the middle is named, and it is never said.
    let order = order.replace(&format!(", \"inSeconds\": {AHEAD}"), "");
    let (status, drain) = api(&first, "POST", "/api/v1/drains", &order);
    assert_eq!(status, 201, "{drain}");
    let id = drain["id"].as_str().unwrap().to_owned();
    wait_for("both to have it", PASSED_ON, || {
        (drain_of(&first, &id)["acknowledged"] == 2).then_some(())
    });
    for wire in &wires {
        wire.cut();
    }
    let named = wait_for("the node to be named", Duration::from_secs(30), || {
        let word = drain_of(&first, &id);
        assert_eq!(word["safeToStop"], false, "{word}");
        let waiting = word["waitingFor"].to_string();
        let is_alone = word["nodes"][0]["remainingSeconds"] == 0.0;
        (waiting.contains("second") && is_alone).then_some(waiting)
    });
    println!("{named}");
    let until = Instant::now() + Duration::from_secs(2 * (TTL + 5));
    while Instant::now() < until {
        for node in [&first, &second] {
            let word = drain_of(node, &id);
            assert_eq!(word["safeToStop"], false, "{word}");
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    // What is said while it is cut off stays partial.
    let order = order.replace("\"europe\"", "\"america\"");
    let (status, late) = api(&first, "POST", "/api/v1/drains", &order);
    assert_eq!(status, 201, "{late}");
    let late = late["id"].as_str().unwrap().to_owned();
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        let word = drain_of(&first, &late);
        let (known, wanted) = (&word["acknowledged"], &word["expected"]);
        assert_eq!((known, wanted), (&1.into(), &2.into()), "{word}");
        assert_eq!(word["safeToStop"], false, "{word}");
        std::thread::sleep(Duration::from_millis(200));
    }
    load.end();
}
