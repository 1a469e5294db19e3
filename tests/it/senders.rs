//! Who asks: a node that sees one address, or a few private ones, in the place of all says so, and no other does.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use hickory_proto::op::Message;
use serde_json::Value;

use crate::harness::client::{Ask, PATIENCE, Reply, exchange_udp, read_framed};
use crate::harness::honest::framed;
use crate::harness::netns::Site;
use crate::harness::node::{Node, meridian};
use crate::harness::raw_http::Web;
use crate::harness::{loopback, wait_for};

/// Queries of each node: a worker keeps 256 until the next sample is taken, and a judgment needs 200.
pub const QUERIES: u32 = 300;
const ENOUGH: f64 = 200.0;
/// Samples are taken every 5 seconds.
const TAKEN: Duration = Duration::from_secs(15);
const TRANSLATED: &str = "meridian_answer_senders_translated";
const SAMPLED: &str = "meridian_answer_senders_sampled";
const TITLE: &str = "Most senders look translated";

const REST: &str = "
zones: [{name: svc.mesh, nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}], contact: h.svc.mesh}]
clusters:
  - {name: europe, provider: aws, region: eu-central-1}
  - {name: america, provider: aws, region: us-east-1}
services:
  - namespace: shop
    name: web
    hostnames: [www.svc.mesh]
    endpoints: [{cluster: europe, addresses: [192.0.2.1]}, {cluster: america, addresses: [192.0.2.2]}]
";

/// A query of a client with a network of its own: what a resolver of many sends.
fn query(number: u32) -> Vec<u8> {
    let [_, _, high, low] = number.to_be_bytes();
    let ask = Ask::a("www.svc.mesh").from(&format!("46.{high}.{low}.0/24"));
    ask.message().to_vec().unwrap()
}

/// Puts a PROXY header (version 2, UDP over IPv4) in front of a query.
pub fn proxied(source: Ipv4Addr, query: &[u8]) -> Vec<u8> {
    let mut octets = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c".to_vec();
    octets.extend(source.octets());
    octets.extend([127, 0, 0, 1]);
    octets.extend([0x30, 0x39, 0, 53]);
    octets.extend(query);
    octets
}

/// Sends and waits for the reply, so that each query is a batch of its own.
pub fn ask(socket: &UdpSocket, node: SocketAddr, octets: &[u8]) {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(octets, node).unwrap();
    let mut reply = [0; 1500];
    socket.recv_from(&mut reply).expect("a reply");
}

/// A node behind a proxy.
fn behind_proxy(rest: &str) -> Node {
    let dns = "proxyProtocol: {from: [127.0.0.0/8]}, ";
    Node::start_on(loopback(), dns, &format!("{REST}{rest}"), |_| ())
}

/// Has the proxy send, each query from the address that `source` gives it.
fn send_proxied(node: &Node, source: impl Fn(u32) -> [u8; 4]) {
    let socket = UdpSocket::bind((loopback(), 0)).unwrap();
    for number in 0..QUERIES {
        let octets = proxied(source(number).into(), &query(number));
        ask(&socket, node.dns(), &octets);
    }
    wait_sampled(node);
}

/// Waits until enough of the queries were looked at.
fn wait_sampled(node: &Node) {
    wait_for("senders to be sampled", TAKEN, || {
        (node.metric(SAMPLED) >= ENOUGH).then_some(())
    });
}

/// Gives the problem of translated senders, if the node has it.
fn problem(node: &Node) -> Option<Value> {
    let status = Web::get(node.http(), "/api/v1/status").send().json();
    let problems = status["problems"].as_array().unwrap();
    let mut found = problems.iter().filter(|problem| problem["title"] == TITLE);
    found.next().cloned()
}

#[track_caller]
fn assert_quiet(node: &Node) {
    assert_eq!(node.metric(TRANSLATED), 0.0);
    assert_eq!(problem(node), None);
}

#[test]
fn the_sender_in_a_proxy_header_decides_the_answer_over_both_transports() {
    let node = behind_proxy("");
    let query = Ask::a("www.svc.mesh").message().to_vec().unwrap();
    for (sender, wanted) in [
        ([46, 114, 0, 1], [192, 0, 2, 1]),
        ([3, 80, 0, 1], [192, 0, 2, 2]),
    ] {
        let wanted = IpAddr::from(wanted);
        let octets = proxied(sender.into(), &query);
        let reply = exchange_udp(node.dns(), &octets, PATIENCE).expect("a reply");
        assert_eq!(Reply(Message::from_vec(&reply).unwrap()).address(), wanted);
        // Over TCP the header stands once, before the first length.
        let mut header = proxied(sender.into(), b"");
        header[13] = 0x11;
        let mut stream = TcpStream::connect(node.dns()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&header).unwrap();
        for _ in 0..2 {
            stream.write_all(&framed(&query)).unwrap();
            let reply = read_framed(&mut stream).unwrap();
            assert_eq!(Reply(Message::from_vec(&reply).unwrap()).address(), wanted);
        }
    }
}

#[test]
fn one_address_in_the_place_of_all_is_told_everywhere() {
    let node = behind_proxy("");
    assert_quiet(&node);
    send_proxied(&node, |_| [10, 1, 2, 3]);
    assert_eq!(node.metric(TRANSLATED), 1.0);
    let busiest = "meridian_answer_senders_ratio{of=\"busiest\"}";
    assert_eq!(node.metric(busiest), 1.0);
    let told = problem(&node).expect("the problem");
    let text = told["text"].as_str().unwrap();
    for words in [
        "100 % of 2",
        "one private address in 10.1.2.0/24",
        "All of them had a Client Subnet",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let status = Web::get(node.http(), "/api/v1/status").send().json();
    assert_eq!(status["senders"]["translated"], "oneAddress");
    assert_eq!(status["senders"]["busiestNetwork"], "10.1.2.0/24");
    let server = format!("http://{}", node.http());
    let output = meridian(&["status", "--server", &server]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(TITLE), "{said}");
    assert!(said.contains("1 address in a sample of 2"), "{said}");
    let page = Web::get(node.http(), "/").send().body;
    assert!(page.contains(TITLE), "{page}");
}

#[test]
fn a_few_private_addresses_are_told_unless_it_is_known_where_they_are() {
    let zones = |number: u32| [10, (number % 3) as u8, 2, 3];
    let node = behind_proxy("");
    send_proxied(&node, zones);
    assert_eq!(node.metric(TRANSLATED), 1.0);
    let text = problem(&node).unwrap()["text"].to_string();
    assert!(text.contains("a few (3 in all)"), "{text}");
    // The operator's own resolvers.
    let placed = behind_proxy("geoip: {overrides: [{prefix: 10.0.0.0/8, cluster: europe}]}\n");
    send_proxied(&placed, zones);
    assert_quiet(&placed);
}

#[test]
fn many_senders_are_not_told_whatever_their_addresses() {
    let public = behind_proxy("");
    send_proxied(&public, |number| [198, 51, 100, (number % 200) as u8]);
    assert_quiet(&public);
    let private = behind_proxy("");
    send_proxied(&private, |number| [10, 1, 2, (number % 100) as u8]);
    assert_quiet(&private);
    assert_eq!(
        private.metric("meridian_answer_senders_ratio{of=\"private\"}"),
        1.0
    );
}

#[test]
fn the_machine_itself_is_no_sender_to_judge_by() {
    let node = Node::start(REST);
    let IpAddr::V4(first) = loopback() else {
        panic!("an address of another family")
    };
    // One address first, then many.
    for number in 0..2 * QUERIES {
        let spread = number.saturating_sub(QUERIES) % 100;
        let address = Ipv4Addr::from_bits(first.to_bits() ^ (spread << 8));
        let socket = UdpSocket::bind((address, 0)).unwrap();
        ask(&socket, node.dns(), &query(number));
    }
    let counted = "meridian_answer_senders_total{address=\"loopback\"}";
    node.await_metric(counted, f64::from(2 * QUERIES));
    // Rates and senders are taken together.
    wait_for("a step to be taken", TAKEN, || {
        let status = Web::get(node.http(), "/api/v1/status").send().json();
        let rate = status["rates"]["queriesPerSecond"].as_f64().unwrap();
        (rate > 0.0).then_some(())
    });
    assert_eq!(node.metric(SAMPLED), 0.0);
    assert_quiet(&node);
}

#[test]
fn packets_from_one_address_are_told_and_packets_from_many_are_not() {
    const HOSTS: u8 = 30;
    let site = Site::new(HOSTS);
    let start = || Node::start_on(site.gateway(), "", REST, |_| ());
    let node = start();
    let one = site.socket(0);
    for number in 0..QUERIES {
        ask(&one, node.dns(), &query(number));
    }
    wait_sampled(&node);
    assert_eq!(node.metric(TRANSLATED), 1.0);
    let text = problem(&node).unwrap()["text"].to_string();
    assert!(text.contains("one private address in 10.214."), "{text}");
    drop(node);
    let node = start();
    let all: Vec<UdpSocket> = (0..HOSTS).map(|host| site.socket(host)).collect();
    for number in 0..QUERIES {
        let socket = &all[number as usize % all.len()];
        ask(socket, node.dns(), &query(number));
    }
    wait_sampled(&node);
    assert_quiet(&node);
}
