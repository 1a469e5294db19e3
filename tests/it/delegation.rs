//! `delegation` for name servers outside the zone, whose addresses are not the parent's to give.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::rdata::{A, NS};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use serde_json::{Value, json};

use crate::harness::loopback;
use crate::harness::node::{Node, meridian};

/// The rest of the world at one address: a resolver, and the server of the zone `mesh`.
struct World {
    address: IpAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl World {
    /// Starts it. The parent delegates `svc.mesh` with `glue`; the resolver knows the `hosts`.
    fn start(
        names: &'static [&'static str],
        glue: &'static [&'static str],
        hosts: Vec<(&'static str, IpAddr)>,
    ) -> Self {
        let address = loopback();
        let socket = UdpSocket::bind((address, 53)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 1500];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else {
                    continue;
                };
                let query = Message::from_vec(&buffer[..length]).unwrap();
                let question = query.queries[0].clone();
                let name = question.name().to_ascii();
                let host = hosts.iter().find(|(host, _)| *host == name);
                let mut reply = Message::query();
                reply.metadata = query.metadata;
                reply.metadata.message_type = MessageType::Response;
                match (name.as_str(), question.query_type(), host) {
                    ("mesh.", RecordType::NS, _) => reply.answers = vec![ns("mesh.", "ns.mesh.")],
                    ("ns.mesh.", RecordType::A, _) => reply.answers = vec![a("ns.mesh.", address)],
                    ("svc.mesh.", RecordType::NS, _) => {
                        reply.authorities =
                            names.iter().map(|ns_of| ns("svc.mesh.", ns_of)).collect();
                        reply.additionals = glue.iter().map(|name| a(name, SERVED)).collect();
                    }
                    (_, RecordType::A, Some((_, address))) => {
                        reply.answers = vec![a(&name, *address)]
                    }
                    (_, RecordType::AAAA, Some(_)) | ("ns.mesh.", _, _) => {}
                    _ => reply.metadata.response_code = ResponseCode::NXDomain,
                }
                reply.add_query(question);
                socket.send_to(&reply.to_vec().unwrap(), from).unwrap();
            }
        });
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(!matches!(ended, Some(Err(_))) || std::thread::panicking());
    }
}

/// What the parent's glue says.
const SERVED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 77));

fn ns(owner: &str, target: &str) -> Record {
    let target = RData::NS(NS(Name::from_ascii(target).unwrap()));
    Record::from_rdata(Name::from_ascii(owner).unwrap(), 60, target)
}

fn a(owner: &str, address: IpAddr) -> Record {
    let IpAddr::V4(address) = address else {
        panic!("{address} is no IPv4 address");
    };
    Record::from_rdata(Name::from_ascii(owner).unwrap(), 60, RData::A(A(address)))
}

/// A node that serves `svc.mesh`; `nameservers` is the list in its configuration.
fn start(nameservers: &str) -> Node {
    Node::start(&format!(
        "zones: [{{name: svc.mesh, nameservers: [{nameservers}], contact: hostmaster.example.net}}]\n"
    ))
}

/// Runs the command against a world; gives its exit code and its result.
fn check(node: &Node, world: &World) -> (i32, Value) {
    let (path, resolver) = (node.config_path(), SocketAddr::new(world.address, 53));
    let output = meridian(&[
        "delegation",
        "svc.mesh",
        "--config",
        path.to_str().unwrap(),
        "--resolver",
        &resolver.to_string(),
        "--output",
        "json",
    ]);
    let result = serde_json::from_slice(&output.stdout);
    let result = result.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code().unwrap(), result)
}

#[test]
fn servers_outside_the_zone_need_no_glue_and_are_asked_where_the_resolver_says() {
    let node = start("{name: ns1.example.net}, {name: ns2.example.net}");
    let names = &["ns1.example.net.", "ns2.example.net."];
    let at = node.dns().ip();
    let hosts = vec![("ns1.example.net.", at), ("ns2.example.net.", at)];
    // Whatever the parent adds about names that are not its own is nobody's business.
    for glue in [&[][..], &["ns1.example.net."]] {
        let world = World::start(names, glue, hosts.clone());
        let (code, result) = check(&node, &world);
        assert_eq!((code, &result["problems"]), (0, &json!([])), "{result}");
        let records = [
            "svc.mesh. 3600 IN NS ns1.example.net.",
            "svc.mesh. 3600 IN NS ns2.example.net.",
        ];
        assert_eq!(result["records"], json!(records));
        let nodes = result["nodes"].as_array().unwrap();
        assert_eq!(nodes.len(), 2, "{result}");
        for node in nodes {
            assert_eq!(node["address"], json!(at), "{result}");
            assert!(node["serial"].is_u64(), "{result}");
        }
    }
}

#[test]
fn a_server_outside_the_zone_without_an_address_is_a_problem_and_so_is_one_that_the_parent_lacks() {
    let node = start("{name: ns1.example.net}, {name: ns2.example.net}");
    let at = node.dns().ip();
    let world = World::start(&["ns1.example.net."], &[], vec![("ns1.example.net.", at)]);
    let (code, result) = check(&node, &world);
    assert_eq!(code, 1, "{result}");
    let resolver = SocketAddr::new(world.address, 53);
    let problems = [
        "the parent does not name ns2.example.net".to_owned(),
        format!(
            "ns2.example.net: the resolver {resolver} knows no address of it, so it was not asked"
        ),
    ];
    assert_eq!(result["problems"], json!(problems));
    assert_eq!(result["nodes"].as_array().unwrap().len(), 1, "{result}");
}

#[test]
fn glue_is_expected_for_servers_inside_the_zone_only() {
    let address = loopback();
    let config = format!(
        "zones: [{{name: svc.mesh, nameservers: [{{name: ns1.svc.mesh, addresses: [{address}]}}, {{name: ns2.example.net}}], contact: hostmaster.example.net}}]\n"
    );
    let node = Node::start_on(address, "", &config, |_| ());
    let names = &["ns1.svc.mesh.", "ns2.example.net."];
    let world = World::start(names, &[], vec![("ns2.example.net.", address)]);
    let (code, result) = check(&node, &world);
    assert_eq!(code, 1, "{result}");
    let problem = format!("the parent has no glue {address} for ns1.svc.mesh");
    assert_eq!(result["problems"], json!([problem]));
    let stale = World::start(names, names, vec![("ns2.example.net.", address)]);
    let (_, result) = check(&node, &stale);
    let stale = format!("the parent has stale glue {SERVED} for ns1.svc.mesh");
    assert_eq!(result["problems"], json!([problem, stale]));
}
