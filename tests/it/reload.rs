//! Reloads: all or nothing, by signal and by change.

use std::time::Duration;

use hickory_proto::rr::RecordType;

use crate::harness::client::Ask;
use crate::harness::node::{Node, meridian};
use crate::harness::{loopback, wait_for};
use crate::samples::{FIVE, FIVE_ZONE};

const PATIENCE: Duration = Duration::from_secs(10);

fn start() -> Node {
    Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap()
    })
}

/// Asks for www as somebody in Germany.
fn www(node: &Node) -> String {
    Ask::a("www.svc.mesh")
        .from("46.114.0.0/24")
        .udp(node.dns())
        .address()
        .to_string()
}

#[test]
fn a_good_file_is_put_in_force_by_sighup_and_by_change() {
    let mut node = start();
    assert_eq!(www(&node), "192.0.2.1");
    node.write_config(&node.config().replace("192.0.2.1,", "192.0.2.77,"));
    node.process().signal("HUP");
    wait_for("the reload by signal", PATIENCE, || {
        (www(&node) == "192.0.2.77").then_some(())
    });
    node.write_config(&node.config().replace("192.0.2.77,", "192.0.2.78,"));
    wait_for("the reload by change", PATIENCE, || {
        (www(&node) == "192.0.2.78").then_some(())
    });
    assert!(node.metric("meridian_config_reloads_total") >= 2.0);
    assert_eq!(node.metric("meridian_config_reload_failing"), 0.0);
}

#[test]
fn a_bad_file_changes_nothing_and_says_so() {
    let mut node = start();
    let good = node.config();
    for (bad, place) in [
        (good.replace("ttl: 10", "ttl: -1"), "services[0].ttl"),
        (
            good.replace("cluster: africa", "cluster: atlantis"),
            "services[0].endpoints[4].cluster",
        ),
        (good.replace("contact:", "kontakt:"), "zones[0].kontakt"),
        (
            good.replace("version: 1", "version: 1\npeers: [{url: \"https://a\"}]"),
            "peers",
        ),
        (
            good.replace("192.0.2.2,", "999.0.2.2,"),
            "services[0].endpoints[1].addresses[0]",
        ),
        ("services: [".to_owned(), ""),
        (String::new(), ""),
    ] {
        let failures = node.metric("meridian_config_reload_failures_total");
        node.write_config(&bad);
        node.process().signal("HUP");
        wait_for("the refusal", PATIENCE, || {
            (node.metric("meridian_config_reload_failures_total") > failures).then_some(())
        });
        assert_eq!(www(&node), "192.0.2.1");
        assert_eq!(node.metric("meridian_config_reload_failing"), 1.0);
        assert!(
            node.process().log().contains(place),
            "{place} is not in the log"
        );
        let check = meridian(&["check", "--config", node.config_path().to_str().unwrap()]);
        assert_eq!(check.status.code(), Some(1), "{place}");
        let said = String::from_utf8_lossy(&check.stdout).into_owned()
            + &String::from_utf8_lossy(&check.stderr);
        assert!(said.contains(place), "{place} is not in:\n{said}");
    }
    node.write_config(&good.replace("192.0.2.1,", "192.0.2.77,"));
    node.process().signal("HUP");
    wait_for("the next good reload", PATIENCE, || {
        (www(&node) == "192.0.2.77").then_some(())
    });
    assert_eq!(node.metric("meridian_config_reload_failing"), 0.0);
}

#[test]
fn what_needs_a_restart_is_refused_by_name() {
    let mut node = start();
    node.write_config(&node.config().replace("workers: 2", "workers: 3"));
    node.process().signal("HUP");
    wait_for("the refusal", PATIENCE, || {
        node.process()
            .log()
            .contains("dns.workers cannot change")
            .then_some(())
    });
}

#[test]
fn a_broken_zone_file_keeps_its_former_state() {
    let mut node = start();
    let text = |node: &Node| {
        Ask::a("text.svc.mesh")
            .of_type(RecordType::TXT)
            .udp(node.dns())
            .0
            .answers
            .len()
    };
    assert_eq!(text(&node), 1);
    let path = node.folder().join("svc.mesh.zone");
    std::fs::write(&path, format!("{FIVE_ZONE}\nbad A 1.2.3.4.5\n")).unwrap();
    let line = FIVE_ZONE.lines().count() + 2;
    wait_for("the refusal", PATIENCE, || {
        let log = node.process().log();
        log.contains(&format!("svc.mesh.zone:{line}: "))
            .then_some(())
    });
    assert_eq!(text(&node), 1);
    assert!(node.metric("meridian_source_refused_files") >= 1.0);
    std::fs::write(&path, FIVE_ZONE.replace("text TXT", "other TXT")).unwrap();
    wait_for("the next good file", PATIENCE, || {
        (text(&node) == 0).then_some(())
    });
    assert_eq!(node.metric("meridian_source_refused_files"), 0.0);
}
