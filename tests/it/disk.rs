//! FAULTS F10: a disk that is full or read-only costs no answer, and is used again when it has room.
//!
//! The disk is a small tmpfs in a mount namespace of the node's own: it goes with the node.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use meridian::controller::LastGood;
use meridian::model::Verdict;

use crate::harness::backend::Backend;
use crate::harness::client::Ask;
use crate::harness::honest::Honest;
use crate::harness::node::Node;
use crate::harness::{loopback, wait_for};
use crate::samples::{FIVE, FIVE_ZONE, watched};

const PATIENCE: Duration = Duration::from_secs(20);

/// Room on the disk, octets.
const ROOM: usize = 512 << 10;

/// Mounts the disk over the folder of the state and becomes the program; `redirect` is where its output goes.
fn on_small_disk(folder: &Path, redirect: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("mount -t tmpfs -o size={ROOM} tmpfs \"$0\" && exec \"$@\" {redirect}");
    command
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .arg(folder.join("state"))
        .arg(env!("CARGO_BIN_EXE_meridian"));
    command
}

/// Starts a node whose state is on a small disk, and one service of it watched at `live`.
fn start(wrap: crate::harness::node::Wrap, live: &Backend) -> Node {
    let config = format!("{FIVE}{}", watched(live, loopback()));
    Node::start_wrapped(wrap, (loopback(), ""), &config, |folder| {
        std::fs::create_dir(folder.join("state")).unwrap();
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    })
}

fn www() -> Ask {
    Ask::a("www.svc.mesh").from("46.114.0.0/24")
}

/// Fills a disk to its last octet.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    loop {
        match file.write(&[0; 4096]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Puts a configuration with another TTL in force and waits for it.
fn reload(node: &mut Node, ttl: u32) {
    let text = node.config();
    let (head, rest) = text.split_once("    ttl: ").unwrap();
    let rest = rest.split_once('\n').unwrap().1;
    node.write_config(&format!("{head}    ttl: {ttl}\n{rest}"));
    node.process().signal("HUP");
    wait_for("the new TTL", PATIENCE, || {
        (www().udp(node.dns()).ttl() == ttl).then_some(())
    });
}

/// Waits until the state on disk is whole and names this content of the zone file.
fn wait_for_zone(node: &mut Node, zone: &str) {
    let (state, path) = (node.inside("state"), node.folder().join("svc.mesh.zone"));
    wait_for("the zone file's content on disk", PATIENCE, || {
        let last_good = LastGood::at(&state);
        let memory = last_good.read().ok()?;
        let kept = last_good.kept(memory.files.get(&path)?).ok()?;
        (kept == zone.as_bytes()).then_some(())
    });
}

const FAILURES: &str = "meridian_controller_last_good_failures";
const LOST: &str = "meridian_telemetry_log_lines_lost_total";

#[test]
fn a_full_disk_under_state_and_log_changes_no_answer_and_is_used_again() {
    let live = Backend::start(loopback(), 0);
    let mut node = start(|folder| on_small_disk(folder, ">>\"$0/log\" 2>&1"), &live);
    wait_for_zone(&mut node, FIVE_ZONE);
    let honest = Honest::udp(node.dns(), &www());
    let filler = node.inside("state/filler");
    fill(&filler);
    // What is in force changes while there is no room: the configuration, a zone file, a verdict. Log lines still fit into
    // what is left of the log's last page, so this goes on until one is lost.
    let mut ttl = 10;
    wait_for("a log line to be lost", PATIENCE, || {
        ttl += 1;
        reload(&mut node, ttl);
        (node.metric(LOST) > 0.0).then_some(())
    });
    let zone = format!("{FIVE_ZONE}fresh A 192.0.2.77\n; {}\n", "x".repeat(100_000));
    std::fs::write(node.folder().join("svc.mesh.zone"), &zone).unwrap();
    let fresh = Ask::a("fresh.svc.mesh");
    wait_for("the new zone", PATIENCE, || {
        let reply = fresh.udp(node.dns());
        reply.addresses().first().map(ToString::to_string)
    });
    let address = live.address().to_string();
    live.kill();
    wait_for("the dead cluster to be noticed", PATIENCE, || {
        (node.metric("meridian_health_monitors{verdict=\"down\"}") > 1.0).then_some(())
    });
    wait_for("the failure to be shown", PATIENCE, || {
        (node.metric(FAILURES) > 0.0).then_some(())
    });
    assert_eq!(www().udp(node.dns()).ttl(), ttl);
    // Room again: all of it is written, though nothing changes any more.
    std::fs::remove_file(&filler).unwrap();
    wait_for_zone(&mut node, &zone);
    let memory = LastGood::at(&node.inside("state")).read().unwrap();
    let mut verdicts = memory.verdicts.iter();
    assert!(
        verdicts.any(|(target, verdict)| target.contains(&address) && *verdict == Verdict::Down),
        "{memory:?}"
    );
    wait_for("the failure to be over", PATIENCE, || {
        (node.metric(FAILURES) == 0.0).then_some(())
    });
    let log = std::fs::read_to_string(node.inside("state/log")).unwrap();
    assert!(log.contains("Last good state is written again"), "{log}");
    let tally = honest.end();
    tally.assert_percent(99);
    node.process().assert_running();
}

#[test]
fn a_disk_that_becomes_read_only_changes_no_answer_and_is_used_again() {
    let live = Backend::start(loopback(), 0);
    let mut node = start(|folder| on_small_disk(folder, ""), &live);
    wait_for_zone(&mut node, FIVE_ZONE);
    let pid = node.process().id().to_string();
    let state = node.folder().join("state");
    let remount = |how: &str| {
        let output = Command::new("nsenter")
            .args(["--target", &pid, "--mount", "mount", "-o", how])
            .arg(&state)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    remount("remount,ro");
    let honest = Honest::udp(node.dns(), &www());
    let zone = format!("{FIVE_ZONE}fresh A 192.0.2.77\n");
    std::fs::write(node.folder().join("svc.mesh.zone"), &zone).unwrap();
    reload(&mut node, 11);
    wait_for("the failure to be shown", PATIENCE, || {
        (node.metric(FAILURES) > 0.0).then_some(())
    });
    let log = node.process().log();
    assert!(
        log.contains("Last good state could not be written"),
        "{log}"
    );
    remount("remount,rw");
    wait_for_zone(&mut node, &zone);
    honest.end().assert_percent(99);
    node.process().assert_running();
}

#[test]
fn a_log_that_takes_nothing_from_the_start_keeps_nobody_from_serving() {
    let live = Backend::start(loopback(), 0);
    let mut node = start(|folder| on_small_disk(folder, ">/dev/full 2>&1"), &live);
    assert_eq!(www().udp(node.dns()).ttl(), 10);
    reload(&mut node, 11);
    assert!(node.metric(LOST) > 0.0);
    node.process().assert_running();
}
