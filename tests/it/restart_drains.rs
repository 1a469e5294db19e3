//! Drains and forces over a restart: in force before the first answer, from the disk or from a peer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hickory_proto::op::Message;
use serde_json::{Value, json};

use crate::harness::client::{Ask, Reply};
use crate::harness::door::{Token, plain, token};
use crate::harness::node::Node;
use crate::harness::process::Process;
use crate::harness::raw_http::Web;
use crate::harness::{loopback, wait_for};

const PATIENCE: Duration = Duration::from_secs(60);

/// Services beside those that are asked for: so many that a publish takes a while.
const CROWD: u32 = 20_000;

/// Names that are asked for, each with two addresses. A client in Germany gets the first while nobody says otherwise.
const NAMES: [(&str, [u8; 2]); 3] = [("web", [1, 2]), ("forced", [21, 22]), ("timed", [31, 32])];

/// Pause between two rounds of questions.
const PACE: Duration = Duration::from_millis(1);
/// Answers of which none may be wrong.
const ENOUGH: usize = 1000;

/// Starts of a node, until it reached its peer in time: a machine that is too busy for half a second is no fault.
const STARTS: usize = 5;

/// Gives an address of the services that are asked for.
fn address(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

/// Asks for a name as a client in Germany.
fn ask(name: &str) -> Ask {
    Ask::a(&format!("{name}.svc.mesh")).from("46.114.0.0/24")
}

/// Writes what is served.
fn services() -> String {
    let mut text = String::from(
        "
zones: [{name: svc.mesh, nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}], contact: hostmaster.svc.mesh, ttl: 1}]
clusters:
  - {name: europe, provider: aws, region: eu-central-1}
  - {name: america, provider: aws, region: us-east-1}
  - {name: brazil, provider: aws, region: sa-east-1}
services:
",
    );
    let mut add = |(namespace, name): (&str, &str), clusters: [&str; 2], addresses: [IpAddr; 2]| {
        let _ = writeln!(
            text,
            "  - {{namespace: {namespace}, name: {name}, hostnames: [{name}.svc.mesh], endpoints: [{{cluster: {}, addresses: [{}]}}, {{cluster: {}, addresses: [{}]}}]}}",
            clusters[0], addresses[0], clusters[1], addresses[1]
        );
    };
    for (name, lasts) in NAMES {
        let clusters = match name {
            "web" => ["europe", "america"],
            _ => ["america", "brazil"],
        };
        add(("shop", name), clusters, lasts.map(address));
    }
    for at in 0..CROWD {
        // 198.18.0.0/15 is nobody's (RFC 2544).
        let own = |half: u32| IpAddr::from(Ipv4Addr::from(0xc612_0000 + half * 0x1_0000 + at));
        let name = format!("s{at}");
        add(("crowd", &name), ["europe", "america"], [own(0), own(1)]);
    }
    text
}

/// A node with an operator, and perhaps a peer.
struct Site {
    node: Node,
    to: SocketAddr,
    operator: Token,
}

impl Site {
    /// Starts one whose admin listener is here. The peer, if any, shows the same token as this node.
    fn start(to: SocketAddr, peer: Option<(SocketAddr, &Token)>) -> Self {
        let operator = token();
        let (mut tokens, mut rest) = (String::new(), services());
        if let Some((address, _)) = peer {
            tokens.push_str(", {name: other, file: p, role: peer}");
            rest.push_str(&format!(
                "peers: [{{url: \"http://{address}\", tokenFile: peer.token}}]\n"
            ));
        }
        let admin =
            format!("listen: [\"{to}\"], tokens: [{{name: ops, file: o, role: operator}}{tokens}]");
        let node = Node::start_with_admin(plain, &admin, &rest, |folder| {
            std::fs::write(folder.join("o"), &operator.line).unwrap();
            if let Some((_, token)) = peer {
                std::fs::write(folder.join("p"), &token.line).unwrap();
                std::fs::write(folder.join("peer.token"), &token.text).unwrap();
            }
        });
        Self { node, to, operator }
    }

    /// Makes a record, which must be new.
    fn post(&self, path: &str, body: &Value) {
        let web = Web::new(self.to, "POST", path).bearer(&self.operator.text);
        let answer = web.json(&body.to_string()).send();
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    /// Reads a list of the API.
    fn list(&self, path: &str) -> Value {
        let answer = Web::get(self.to, path).bearer(&self.operator.text).send();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Waits until the names are answered with these.
    fn wait_for_answers(&self, wanted: [u8; 3]) {
        let wanted = wanted.map(address);
        wait_for("what operators say", PATIENCE, || {
            let given = NAMES.map(|(name, _)| ask(name).udp(self.node.dns()).address());
            (given == wanted).then_some(())
        });
    }

    /// Starts it again in its folder. Gives the process, and its drains and forces as they are shown when it is ready first.
    fn start_again(&self, name: &str) -> (Process, Value, Value) {
        let mut command = plain(self.node.folder());
        command.arg("run").arg("--config");
        command.arg(self.node.config_path());
        let mut process = Process::start(name, self.node.folder(), &mut command);
        wait_for("readyz", PATIENCE, || {
            process.assert_running();
            let answer = self.node.get("/readyz")?;
            answer.starts_with("HTTP/1.1 200").then_some(())
        });
        let (drains, forces) = (self.list("/api/v1/drains"), self.list("/api/v1/forces"));
        (process, drains, forces)
    }
}

/// Addresses in answers, with the number of answers.
type Seen = BTreeMap<IpAddr, usize>;

/// A client that asks for all names again and again, whether anybody is there or not.
struct Flood {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    thread: JoinHandle<()>,
}

impl Flood {
    fn start(server: SocketAddr) -> Self {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.connect(server).unwrap();
        socket.set_nonblocking(true).unwrap();
        let packets = NAMES.map(|(name, _)| ask(name).message().to_vec().unwrap());
        let (stop, seen) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Seen>>::default());
        let (stopped, noted) = (Arc::clone(&stop), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while !stopped.load(Ordering::Relaxed) {
                for packet in &packets {
                    // Nobody is there between two starts.
                    let _ = socket.send(packet);
                }
                std::thread::sleep(PACE);
                while let Ok(length) = socket.recv(&mut buffer) {
                    let reply = Reply(Message::from_vec(&buffer[..length]).unwrap());
                    let mut seen = noted.lock().unwrap();
                    *seen.entry(reply.address()).or_default() += 1;
                }
            }
        });
        Self { stop, seen, thread }
    }

    /// Waits for enough answers; gives what was in all of them.
    fn end(self) -> Seen {
        wait_for("enough answers", PATIENCE, || {
            assert!(!self.thread.is_finished(), "an answer without one address");
            let count: usize = self.seen.lock().unwrap().values().sum();
            (count >= ENOUGH).then_some(())
        });
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.seen.lock().unwrap().clone()
    }
}

/// Checks that these addresses were given, and no other.
fn check_given(seen: &Seen, wanted: [u8; 3]) {
    let given: Vec<IpAddr> = seen.keys().copied().collect();
    assert_eq!(given, wanted.map(address), "{seen:?}");
}

/// Checks that the drain of the cluster is in force on the node that was asked.
fn check_in_force(drains: &Value) {
    let drains = drains["items"].as_array().unwrap();
    let drain = drains
        .iter()
        .find(|drain| drain["target"]["cluster"] == "europe")
        .unwrap_or_else(|| panic!("no drain of the cluster in {drains:?}"));
    assert_ne!(drain["state"], "ended", "{drain}");
    let mut nodes = drain["nodes"].as_array().unwrap().iter();
    let own = nodes.find(|node| node["own"] == true).unwrap();
    assert_eq!(own["inForce"], true, "{drain}");
}

/// A drain of the cluster that `web` is answered with.
fn drain_of_europe() -> Value {
    json!({"target": {"kind": "cluster", "cluster": "europe"}, "reason": "new kernel"})
}

/// A force of the address that `forced` is answered with.
fn force_in_america() -> Value {
    let target = json!({"kind": "endpoint", "cluster": "america", "address": address(21)});
    json!({"target": target, "verdict": "down", "reason": "loses packets"})
}

#[test]
fn what_operators_said_holds_from_the_first_answer_after_a_kill() {
    let mut site = Site::start(SocketAddr::new(loopback(), 8053), None);
    site.wait_for_answers([1, 21, 31]);
    site.post("/api/v1/drains", &drain_of_europe());
    site.post("/api/v1/forces", &force_in_america());
    site.wait_for_answers([2, 22, 31]);
    let short = json!({"kind": "service", "service": "shop/timed", "cluster": "america"});
    let short = json!({"target": short, "reason": "a moment", "forSeconds": 2});
    site.post("/api/v1/drains", &short);
    let ends = Instant::now() + Duration::from_millis(2500);
    site.node.kill();
    wait_for("the end of the short drain", PATIENCE, || {
        (Instant::now() >= ends).then_some(())
    });
    let flood = Flood::start(site.node.dns());
    let (_process, drains, forces) = site.start_again("again");
    check_given(&flood.end(), [2, 22, 31]);
    check_in_force(&drains);
    let drains = drains["items"].as_array().unwrap();
    let short = drains
        .iter()
        .find(|drain| drain["target"]["service"] == "shop/timed");
    assert_eq!(short.unwrap()["state"], "ended", "{drains:?}");
    assert_eq!(forces["total"], 1, "{forces}");
    assert_eq!(forces["items"][0]["active"], true, "{forces}");
}

#[test]
fn a_node_without_its_state_obeys_its_peer_from_the_first_answer() {
    let shared = token();
    let to = [(); 2].map(|()| SocketAddr::new(loopback(), 8053));
    let asked = Site::start(to[0], Some((to[1], &shared)));
    let mut site = Site::start(to[1], Some((to[0], &shared)));
    asked.post("/api/v1/drains", &drain_of_europe());
    asked.post("/api/v1/forces", &force_in_america());
    site.wait_for_answers([2, 22, 31]);
    let mut running = site.node.take_process();
    for start in 0..STARTS {
        running.kill();
        let state = site.node.folder().join("state");
        assert!(state.join("operators.json").exists());
        std::fs::remove_dir_all(&state).unwrap();
        let flood = Flood::start(site.node.dns());
        let (process, drains, forces) = site.start_again(&format!("start-{start}"));
        let seen = flood.end();
        // A start waits half a second for its peers, and says whom it could not ask.
        if !process.log().contains("Not every peer could be asked") {
            check_given(&seen, [2, 22, 31]);
            check_in_force(&drains);
            assert_eq!(forces["items"][0]["active"], true, "{forces}");
            return;
        }
        // It has them by now, or soon: the next start begins like the first.
        site.wait_for_answers([2, 22, 31]);
        running = process;
    }
    panic!("the peer did not answer within half a second, {STARTS} times");
}
