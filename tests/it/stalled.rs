//! A reader of the log that stalls with its pipe open costs log lines, and nothing else.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::harness::backend::Backend;
use crate::harness::client::Ask;
use crate::harness::honest::Honest;
use crate::harness::node::Node;
use crate::harness::process::Process;
use crate::harness::{loopback, wait_for};
use crate::samples::{FIVE, FIVE_ZONE, watched};

const PATIENCE: Duration = Duration::from_secs(20);
/// A stop takes the grace of half a second, what tasks need, and at most a second for the log.
const STOP: Duration = Duration::from_secs(4);

const LOST: &str = "meridian_telemetry_log_lines_lost_total";

/// Becomes the program with its log in a pipe that is open for reading too, so that nobody has to read it: a write waits
/// instead of failing.
fn into_pipe(folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec \"$@\" 2<>\"$0/pipe\""])
        .arg(folder)
        .arg(env!("CARGO_BIN_EXE_meridian"))
        // Each probe and each publish is a line.
        .env("MERIDIAN_LOG", "trace");
    command
}

/// Makes the pipe in the node's folder.
fn make_pipe(folder: &Path) {
    let status = Command::new("mkfifo").arg(folder.join("pipe")).status();
    assert!(status.unwrap().success());
}

/// Opens the pipe without ever waiting for it.
fn open_pipe(folder: &Path) -> File {
    // `O_NONBLOCK`: the pipe is filled and emptied by tests that must not wait for it.
    let nonblocking = libc::O_NONBLOCK;
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true);
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, nonblocking)
        .open(folder.join("pipe"))
        .unwrap()
}

/// Fills the pipe to its last octet, as lines of a stalled log do.
fn fill(pipe: &mut File) {
    for size in [4096, 1] {
        loop {
            match pipe.write(&vec![b'.'; size]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Takes what is in the pipe now.
fn empty(pipe: &mut File) -> String {
    let mut octets = Vec::new();
    match pipe.read_to_end(&mut octets) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        other => panic!("{other:?}"),
    }
    String::from_utf8_lossy(&octets).into_owned()
}

/// A service in two clusters, both watched, and forty more whose probes only make lines.
fn config(near: &Backend, far: IpAddr) -> String {
    let address = near.address().ip();
    let mut text = format!("{FIVE}{}", watched(near, far));
    for at in 0..40 {
        text.push_str(&format!(
            "  - namespace: shop
    name: noise{at}
    hostnames: [noise{at}.svc.mesh]
    monitor: {{tcp: {{port: {}}}, interval: 100ms, timeout: 100ms}}
    endpoints: [{{cluster: europe, addresses: [{address}]}}]
",
            10_000 + at
        ));
    }
    text
}

/// Starts a node with its log in a pipe.
fn start(near: &Backend, far: &Backend) -> Node {
    let config = config(near, far.address().ip());
    Node::start_wrapped(into_pipe, (loopback(), ""), &config, |folder| {
        make_pipe(folder);
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    })
}

/// Waits until nothing more goes into the pipe nor the queue before it.
fn wait_for_loss(node: &Node) {
    wait_for("log lines to be lost", PATIENCE, || {
        (node.metric(LOST) > 0.0).then_some(())
    });
}

#[test]
fn a_log_nobody_reads_holds_up_no_answer_no_verdict_no_reload_and_no_stop() {
    let near = Backend::start(loopback(), 0);
    let far = Backend::start(loopback(), near.address().port());
    let mut node = start(&near, &far);
    let (first, second) = (near.address().ip(), far.address().ip());
    let watched = Ask::a("watched.svc.mesh").from("46.114.0.0/24");
    wait_for("the near cluster to be answered", PATIENCE, || {
        (watched.udp(node.dns()).address() == first).then_some(())
    });
    fill(&mut open_pipe(node.folder()));
    let www = Ask::a("www.svc.mesh").from("46.114.0.0/24");
    let honest = Honest::udp(node.dns(), &www);
    // Two flips and two reloads, each with lines of its own: who waits for the log in one is not there for the next.
    let port = near.address().port();
    near.kill();
    wait_for("the dead cluster to be noticed", PATIENCE, || {
        (watched.udp(node.dns()).address() == second).then_some(())
    });
    let _again = Backend::start(first, port);
    wait_for("its return to be noticed", PATIENCE, || {
        (watched.udp(node.dns()).address() == first).then_some(())
    });
    for ttl in [11, 12] {
        let text = node.config();
        let (head, rest) = text.split_once("    ttl: ").unwrap();
        let rest = rest.split_once('\n').unwrap().1;
        node.write_config(&format!("{head}    ttl: {ttl}\n{rest}"));
        node.process().signal("HUP");
        wait_for("the new TTL", PATIENCE, || {
            (www.udp(node.dns()).ttl() == ttl).then_some(())
        });
    }
    wait_for_loss(&node);
    honest.end().assert_percent(99);
    let status = node.take_process().terminate(STOP);
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_reader_that_reads_again_gets_whole_lines_to_the_last() {
    let near = Backend::start(loopback(), 0);
    let far = Backend::start(loopback(), near.address().port());
    let mut node = start(&near, &far);
    let mut pipe = open_pipe(node.folder());
    fill(&mut pipe);
    wait_for_loss(&node);
    // There is no room for details when the stop is told, but there is for news.
    let process = node.take_process();
    process.signal("TERM");
    let mut text = String::new();
    wait_for("the line of the stop", PATIENCE, || {
        text.push_str(&empty(&mut pipe));
        text.contains("Stopping\n").then_some(())
    });
    let (status, _) = process.end(STOP);
    text.push_str(&empty(&mut pipe));
    assert_eq!(status.code(), Some(0));
    // What this test filled in has no line end. What follows it are whole lines, which begin with a time.
    let (_, rest) = text.rsplit_once("....").unwrap();
    let (_, lines) = rest.split_once('\n').unwrap();
    for line in lines.lines() {
        assert!(line.starts_with("20"), "{line}");
    }
    assert!(lines.ends_with('\n'), "{lines}");
}

#[test]
fn lines_before_an_exit_with_an_error_are_written_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("meridian.yaml");
    let text = format!(
        "version: 1\nnode: {{stateDirectory: /proc/nowhere}}\ndns: {{listen: [\"192.0.2.53:53\"]}}\n{}",
        FIVE.replace("    file: svc.mesh.zone\n", "")
    );
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_meridian"));
    command.arg("run").arg("--config").arg(&path);
    let process = Process::start("second", folder.path(), &mut command);
    let (status, log) = process.end(PATIENCE);
    assert_eq!(status.code(), Some(1), "{log}");
    let before = log.find("State directory cannot be used").expect(&log);
    let last = log.find("error: cannot listen for DNS").expect(&log);
    assert!(before < last, "{log}");
}
