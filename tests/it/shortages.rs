//! FAULTS F15: without descriptors, threads or memory the node answers over UDP, judges nobody wrongly, and recovers.

use std::io::{ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hickory_proto::rr::RecordType;

use crate::harness::backend::Backend;
use crate::harness::client::{Ask, exchange_tcp};
use crate::harness::honest::{Honest, connect_from, framed};
use crate::harness::node::Node;
use crate::harness::{loopback, loopback_network, wait_for};
use crate::samples::{FIVE, FIVE_ZONE, two_clusters};

const PATIENCE: Duration = Duration::from_secs(20);

/// Sets one soft limit of a running process.
fn limit(node: &mut Node, resource: &str, value: u64) {
    limit_through(Command::new("prlimit"), node, resource, value);
}

/// As above; `prlimit` is the command, or one that becomes it.
fn limit_through(mut prlimit: Command, node: &mut Node, resource: &str, value: u64) {
    let status = prlimit
        .args(["--pid", &node.process().id().to_string()])
        .arg(format!("--{resource}={value}:"))
        .status()
        .unwrap();
    assert!(status.success(), "{resource}={value}");
}

/// Reads a number out of `/proc/<pid>/status`.
fn status(node: &mut Node, key: &str) -> u64 {
    let path = format!("/proc/{}/status", node.process().id());
    let text = std::fs::read_to_string(path).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .unwrap();
    let number = line.trim_start_matches(':').split_whitespace().next();
    number.unwrap().parse().unwrap()
}

/// One service in two clusters, both watched; clients of `ask` get the first while it lives.
fn watched(near: &Backend, far: IpAddr) -> String {
    format!(
        "{}  - {{namespace: n, name: s, hostnames: [s.svc.mesh], endpoints: [{{cluster: europe, addresses: [{near}]}}, {{cluster: america, addresses: [{far}]}}]}}
",
        two_clusters(near.address().port()),
        near = near.address().ip(),
    )
}

fn ask() -> Ask {
    Ask::a("s.svc.mesh").from("46.114.0.0/24")
}

/// Waits until all monitors say Up.
fn wait_for_up(node: &Node, count: f64) {
    wait_for("all to be up", PATIENCE, || {
        (node.metric("meridian_health_monitors{verdict=\"up\"}") == count).then_some(())
    });
}

fn answer(node: &Node) -> IpAddr {
    ask().udp(node.dns()).address()
}

#[test]
fn without_descriptors_nobody_is_judged_down_and_tcp_and_prober_return() {
    let near = Backend::start(loopback(), 0);
    let far = Backend::start(loopback(), near.address().port());
    let mut node = Node::start(&watched(&near, far.address().ip()));
    wait_for_up(&node, 2.0);
    let (first, second) = (near.address().ip(), far.address().ip());
    assert_eq!(answer(&node), first);
    let honest = Honest::udp(node.dns(), &ask());
    limit(&mut node, "nofile", 10);
    // Accepting fails too.
    let waiting: Vec<TcpStream> = (0..20)
        .filter_map(|_| TcpStream::connect_timeout(&node.dns(), Duration::from_secs(1)).ok())
        .collect();
    wait_for("a probe that could not be made", PATIENCE, || {
        let log = node.process().log();
        log.contains("This node could not probe").then_some(())
    });
    wait_for("an accept that failed", PATIENCE, || {
        let log = node.process().log();
        log.contains("Accepting over TCP failed").then_some(())
    });
    // A reload that cannot even read its file.
    let text = node.config();
    node.write_config(&text.replace("name: s, ", "name: s, ttl: 7, "));
    node.process().signal("HUP");
    wait_for("a reload to fail", PATIENCE, || {
        let log = node.process().log();
        log.contains("Configuration is refused").then_some(())
    });
    // Ten intervals without a probe: who was up stays so. The backend dies meanwhile and nobody sees it.
    let port = near.address().port();
    near.kill();
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        assert_eq!(answer(&node), first);
    }
    let log = node.process().log();
    assert!(
        !log.contains("Verdict flipped") || !log.contains("verdict=down"),
        "{log}"
    );
    drop(waiting);
    limit(&mut node, "nofile", 1024);
    wait_for("the prober to see the dead one", PATIENCE, || {
        (answer(&node) == second).then_some(())
    });
    wait_for("the reload to be made up for", PATIENCE, || {
        (ask().udp(node.dns()).ttl() == 7).then_some(())
    });
    let server = node.dns();
    let packet = ask().message().to_vec().unwrap();
    wait_for("TCP to return", PATIENCE, || {
        exchange_tcp(server, &packet).ok()
    });
    let _again = Backend::start(first, port);
    wait_for("the prober to see it alive again", PATIENCE, || {
        (answer(&node) == first).then_some(())
    });
    let failures = node.metric("meridian_transport_tcp_accept_failures_total");
    assert!((1.0..100.0).contains(&failures), "{failures}: it backs off");
    honest.end().assert_percent(99);
    node.process().assert_running();
}

/// Runs a program as a user of this test's own, for a limit of threads counts per user and root has none.
fn as_a_user_of_its_own(program: &str) -> Command {
    let user = (200_000 + std::process::id() % 100_000).to_string();
    // What makes the folders and the low ports of root's tests its own.
    let rights = "+net_bind_service,+dac_override";
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .args(["--inh-caps", rights, "--ambient-caps", rights])
        .arg(program);
    command
}

#[test]
fn without_threads_flips_and_reloads_go_on() {
    let near = Backend::start(loopback(), 0);
    let far = Backend::start(loopback(), near.address().port());
    let config = watched(&near, far.address().ip());
    let wrap = |_: &Path| as_a_user_of_its_own(env!("CARGO_BIN_EXE_meridian"));
    let mut node = Node::start_wrapped(wrap, (loopback(), ""), &config, |_| ());
    wait_for_up(&node, 2.0);
    limit_through(as_a_user_of_its_own("prlimit"), &mut node, "nproc", 1);
    let honest = (
        Honest::udp(node.dns(), &ask()),
        Honest::tcp(node.dns(), &ask()),
    );
    // Longer than the runtime keeps idle threads by default (10 s): what it lets go now would not come back.
    let threads = status(&mut node, "Threads");
    let until = Instant::now() + Duration::from_secs(11);
    wait_for("eleven seconds of service", PATIENCE, || {
        (Instant::now() >= until).then_some(())
    });
    assert_eq!(status(&mut node, "Threads"), threads);
    let second = far.address().ip();
    near.kill();
    wait_for("the dead cluster to be noticed", PATIENCE, || {
        (answer(&node) == second).then_some(())
    });
    let text = node.config();
    node.write_config(&text.replace("name: s, ", "name: s, ttl: 7, "));
    node.process().signal("HUP");
    wait_for("the new TTL", PATIENCE, || {
        (ask().udp(node.dns()).ttl() == 7).then_some(())
    });
    honest.0.end().assert_percent(99);
    honest.1.end().assert_percent(99);
    node.process().assert_running();
}

#[test]
fn under_a_limit_of_memory_rlimit_data_the_worst_connections_are_survived() {
    // What the limits of TCP allow: 128 connections that hold all they can (a message, and replies to more).
    let dns = "tcp: {connections: 128, perClient: 16, idle: 2s, write: 2s}, ";
    let mut node = Node::start_on(loopback(), dns, FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    });
    let data = status(&mut node, "VmData") << 10;
    // 128 times 64 KiB of query and 192 KiB of replies, and half as much again for what the allocator loses.
    limit(&mut node, "data", data + (48 << 20));
    let www = Ask::a("www.svc.mesh").from("46.114.0.0/24");
    let honest = Honest::udp(node.dns(), &www);
    let server = node.dns();
    greed(server);
    honest.end().assert_percent(99);
    node.process().assert_running();
    wait_for("TCP to return", PATIENCE, || {
        exchange_tcp(server, &www.message().to_vec().unwrap()).ok()
    });
}

/// Sends floods of questions with long answers and reads nothing, then half of the longest message; 400 connections from
/// networks of their own.
fn greed(server: SocketAddr) {
    let question = Ask::a("big.svc.mesh").of_type(RecordType::TXT);
    let long = framed(&question.message().to_vec().unwrap()).repeat(2000);
    let mut half = vec![0xff; 50_000];
    half[1] = 0xfe;
    let networks: Vec<IpAddr> = (0..25).map(|_| loopback_network()).collect();
    let mut open = Vec::new();
    for turn in 0..400 {
        // The node may close any of them at any time.
        let Ok(mut stream) = connect_from(networks[turn % networks.len()], server) else {
            continue;
        };
        stream.set_nonblocking(true).unwrap();
        let greedy = if (turn / networks.len()).is_multiple_of(2) {
            &long
        } else {
            &half
        };
        let _ = stream.write(greedy);
        open.push(stream);
    }
    // Until all of them were cut. They find out by writing, for reading would help.
    wait_for("the greedy to be cut", PATIENCE, || {
        open.retain_mut(|stream| match stream.write(&[0]) {
            Err(error) => error.kind() == ErrorKind::WouldBlock,
            Ok(_) => true,
        });
        open.is_empty().then_some(())
    });
}
