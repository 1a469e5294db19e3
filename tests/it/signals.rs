//! Signals at the wrong moment.

use std::process::Command;
use std::time::Duration;

use crate::harness::client::Ask;
use crate::harness::node::Node;
use crate::harness::process::Process;
use crate::harness::wait_for;
use crate::samples::{FIVE, FIVE_ZONE};

const PATIENCE: Duration = Duration::from_secs(20);

/// Makes a configuration whose reading takes a while.
fn large() -> String {
    let mut config = FIVE
        .replace("    file: svc.mesh.zone\n", "")
        .replace("    endpoints: []\n", "");
    for at in 0..100_000 {
        config.push_str(&format!(
            "  - {{namespace: n, name: s{at}, hostnames: [s{at}.svc.mesh], endpoints: [{{cluster: europe, addresses: [192.0.2.1]}}, {{cluster: america, addresses: [192.0.2.2]}}]}}\n"
        ));
    }
    config
}

/// Tells how many octets a process has read so far.
fn octets_read(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let read = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    read.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn a_hangup_while_loading_does_not_end_the_start() {
    let mut node = Node::start(&large());
    node.kill();
    let size = node.config().len() as u64;
    let mut command = Command::new(env!("CARGO_BIN_EXE_meridian"));
    command.arg("run").arg("--config").arg(node.config_path());
    let mut process = Process::start("again", node.folder(), &mut command);
    wait_for("the configuration to be read", PATIENCE, || {
        (octets_read(process.id()) >= size).then_some(())
    });
    process.signal("HUP");
    wait_for("readyz", PATIENCE, || {
        process.assert_running();
        node.get("/readyz")
            .filter(|answer| answer.starts_with("HTTP/1.1 200"))
    });
}

#[test]
fn a_doubled_sigterm_is_one_wish() {
    let mut node = Node::start_on(crate::harness::loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    });
    let process = node.take_process();
    // As `timeout` does: to the process, then to its group.
    process.signal("TERM");
    let status = process.terminate(PATIENCE);
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_node_that_stops_says_so_before_it_stops_answering() {
    let mut node = Node::start_on(crate::harness::loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    });
    // A machine that stands still may hide the half second.
    let seen = (0..3).any(|_| {
        let process = node.take_process();
        process.signal("TERM");
        let mut answered = false;
        while let Some(answer) = node.get("/readyz").filter(|answer| !answer.is_empty()) {
            if answer.starts_with("HTTP/1.1 503") {
                let www = Ask::a("www.svc.mesh").from("46.114.0.0/24");
                let reply = www.try_udp(node.dns(), Duration::from_secs(1));
                answered = reply.is_some_and(|reply| !reply.addresses().is_empty());
                break;
            }
        }
        assert_eq!(process.end(PATIENCE).0.code(), Some(0));
        if !answered {
            node.spawn();
        }
        answered
    });
    assert!(seen);
}

#[test]
fn a_second_process_at_the_same_address_is_told() {
    let put = |folder: &std::path::Path| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    };
    let first = Node::start_on(crate::harness::loopback(), "", FIVE, put);
    let mut second = Node::start_on(crate::harness::loopback(), "", FIVE, put);
    let told = "Another process answers at this address too";
    assert!(!second.process().log().contains(told));
    assert!(second.take_process().terminate(PATIENCE).success());
    let own = format!("listen: [\"{}\"]", second.dns());
    let shared = format!("listen: [\"{}\"]", first.dns());
    second.write_config(&second.config().replacen(&own, &shared, 1));
    second.spawn();
    assert!(second.process().log().contains(told));
    // A wildcard of its own beside it is no other process.
    assert!(second.take_process().terminate(PATIENCE).success());
    let free = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let ip = first.dns().ip();
    let both = format!("listen: [\"0.0.0.0:{port}\", \"{ip}:{port}\"]");
    second.write_config(&second.config().replacen(&shared, &both, 1));
    second.spawn();
    let log = second.process().log();
    assert_eq!(log.matches(told).count(), 1, "{log}");
}

#[test]
fn a_node_with_everything_down_is_ready_and_answers() {
    let dead = crate::harness::loopback();
    let (head, _) = FIVE.split_once("services:").unwrap();
    let head = head.replace("    file: svc.mesh.zone\n", "");
    let node = Node::start(&format!(
        "{head}defaults: {{monitor: {{tcp: {{port: 1}}, interval: 500ms, timeout: 250ms}}}}
services:
  - {{namespace: shop, name: web, hostnames: [www.svc.mesh], endpoints: [{{cluster: europe, addresses: [{dead}]}}]}}
"
    ));
    wait_for("everything to be down", PATIENCE, || {
        (node.metric("meridian_health_monitors{verdict=\"down\"}") > 0.0).then_some(())
    });
    for path in ["/livez", "/readyz"] {
        let answer = node.get(path).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    assert_eq!(Ask::a("www.svc.mesh").udp(node.dns()).address(), dead);
}
