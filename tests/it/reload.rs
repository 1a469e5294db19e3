//! Reloads: all or nothing, by signal and by change.

use std::time::Duration;

use hickory_proto::rr::RecordType;

use crate::harness::client::Ask;
use crate::harness::node::{Node, meridian};
use crate::harness::{loopback, wait_for};
use crate::samples::{FIVE, FIVE_ZONE};

const PATIENCE: Duration = Duration::from_secs(10);
/// The gauge of zone files that are refused.
const REFUSED_ZONES: &str = "meridian_source_refused_files{kind=\"zone\"}";
/// A parent with a file and its child.
const FAMILY: &str = "
zones:
  - {name: mesh, nameservers: [{name: ns1.mesh, addresses: [192.0.2.53]}], contact: hostmaster.mesh, file: mesh.zone}
  - {name: svc.mesh, nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}], contact: hostmaster.mesh}
";
/// The parent's file with the cut.
const PARENT: &str = "$TTL 300\nsvc NS ns1.svc\nns1.svc A 192.0.2.53\ntext TXT one\n";

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
    wait_for("both reloads to be counted", PATIENCE, || {
        (node.metric("meridian_config_reloads_total") >= 2.0).then_some(())
    });
    node.await_metric("meridian_config_reload_failing", 0.0);
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
            good.replace("version: 1", "version: 1\nquorum: all"),
            "quorum",
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
        node.await_metric("meridian_config_reload_failing", 1.0);
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
    node.await_metric("meridian_config_reload_failing", 0.0);
}

#[test]
fn what_needs_a_restart_is_refused_by_name() {
    let mut node = start();
    node.write_config(&node.config().replace("workers: 2", "workers: 3"));
    node.process().signal("HUP");
    wait_for("the refusal", PATIENCE, || {
        let log = node.process().log();
        let told = log
            .lines()
            .find(|line| line.contains("dns.workers cannot change"))?;
        assert!(told.contains("meridian.yaml:3:"), "{told}");
        Some(())
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
    assert!(node.metric(REFUSED_ZONES) >= 1.0);
    // A reload of the rest says so too.
    node.write_config(&node.config().replace("192.0.2.1,", "192.0.2.77,"));
    node.process().signal("HUP");
    wait_for("the reload beside it", PATIENCE, || {
        let log = node.process().log();
        let told = log
            .lines()
            .find(|line| line.contains("Configuration is in force"))?;
        assert!(told.contains("refused=1"), "{told}");
        Some(())
    });
    std::fs::write(&path, FIVE_ZONE.replace("text TXT", "other TXT")).unwrap();
    wait_for("the next good file", PATIENCE, || {
        (text(&node) == 0).then_some(())
    });
    node.await_metric(REFUSED_ZONES, 0.0);
}

#[test]
fn included_files_are_read_watched_and_kept_over_a_crash() {
    let including = format!("{FIVE_ZONE}\n$INCLUDE parts/more.zone\n");
    let mut node = Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::create_dir(folder.join("parts")).unwrap();
        std::fs::write(folder.join("svc.mesh.zone"), &including).unwrap();
        let more = "more TXT one\n$INCLUDE parts/deep.zone deep\n";
        std::fs::write(folder.join("parts/more.zone"), more).unwrap();
        std::fs::write(folder.join("parts/deep.zone"), "text TXT one\n").unwrap();
    });
    assert_eq!(texts(&node, "more.svc.mesh"), 1);
    assert_eq!(texts(&node, "text.deep.svc.mesh"), 1);
    let deep = node.folder().join("parts/deep.zone");
    std::fs::write(&deep, "text TXT one\ntext TXT two\n").unwrap();
    wait_for("the included file to be read again", PATIENCE, || {
        (texts(&node, "text.deep.svc.mesh") == 2).then_some(())
    });
    std::fs::write(&deep, "text TXT one\nbad A 1.2.3.4.5\n").unwrap();
    wait_for("the refusal", PATIENCE, || {
        node.process().log().contains("deep.zone:2: ").then_some(())
    });
    assert_eq!(texts(&node, "text.deep.svc.mesh"), 2);
    // The last good content stands in for the broken file.
    node.kill();
    node.spawn();
    assert_eq!(texts(&node, "text.deep.svc.mesh"), 2);
    node.kill();
    std::fs::remove_file(&deep).unwrap();
    node.spawn();
    assert_eq!(texts(&node, "text.deep.svc.mesh"), 2);
    assert_eq!(texts(&node, "more.svc.mesh"), 1);
}

/// Gives the number of strings at a name of the parent.
fn texts(node: &Node, name: &str) -> usize {
    let reply = Ask::a(name).of_type(RecordType::TXT).udp(node.dns());
    reply.0.answers.len()
}

#[test]
fn a_parents_file_that_loses_the_cut_is_refused_live_and_over_a_restart() {
    let mut node = Node::start_on(loopback(), "", FAMILY, |folder| {
        std::fs::write(folder.join("mesh.zone"), PARENT).unwrap()
    });
    assert_eq!(texts(&node, "text.mesh"), 1);
    let state = node.folder().join("state/state.json");
    wait_for("the file to be kept", PATIENCE, || {
        let state = std::fs::read_to_string(&state).ok()?;
        state.contains("mesh.zone").then_some(())
    });
    let path = node.folder().join("mesh.zone");
    let without = "$TTL 300\nother TXT two\n";
    std::fs::write(&path, without).unwrap();
    node.await_metric(REFUSED_ZONES, 1.0);
    let log = node.process().log();
    assert!(
        log.contains("svc.mesh is served as a zone of its own"),
        "{log}"
    );
    assert_eq!(
        (texts(&node, "text.mesh"), texts(&node, "other.mesh")),
        (1, 0)
    );
    // A restart finds the same fault and goes on with the last good octets.
    node.kill();
    node.spawn();
    assert_eq!(
        (texts(&node, "text.mesh"), texts(&node, "other.mesh")),
        (1, 0)
    );
    node.await_metric(REFUSED_ZONES, 1.0);
    std::fs::write(&path, format!("{PARENT}{without}")).unwrap();
    wait_for("the next good file", PATIENCE, || {
        (texts(&node, "other.mesh") == 1).then_some(())
    });
    node.await_metric(REFUSED_ZONES, 0.0);
    // Without any last good octets it is a fault of the configuration.
    node.kill();
    std::fs::write(&path, without).unwrap();
    std::fs::remove_dir_all(node.folder().join("state")).unwrap();
    let run = meridian(&["run", "--config", node.config_path().to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(1));
}

#[test]
fn a_reload_with_a_claim_that_check_refuses_is_refused_too() {
    let mut node = start();
    let good = node.config();
    let thief = "
  - namespace: thief
    name: web
    hostnames: [static.svc.mesh]
    endpoints: [{cluster: europe, addresses: [192.0.2.66]}]
";
    let bad = format!("{}{thief}", good.replace("192.0.2.1,", "192.0.2.77,"));
    node.write_config(&bad);
    node.process().signal("HUP");
    wait_for("the refusal", PATIENCE, || {
        (node.metric("meridian_config_reload_failing") == 1.0).then_some(())
    });
    assert_eq!(www(&node), "192.0.2.1");
    let log = node.process().log();
    assert!(log.contains("HostnameConflict"), "{log}");
    assert!(log.contains("services[5].hostnames[0]"), "{log}");
    let check = meridian(&["check", "--config", node.config_path().to_str().unwrap()]);
    assert_eq!(check.status.code(), Some(1));
    // A start with the same file serves the rest: a restart must never be worse than going on.
    node.kill();
    node.spawn();
    assert_eq!(www(&node), "192.0.2.77");
    node.await_metric("meridian_inventory_rejections", 1.0);
    node.write_config(&good);
    node.process().signal("HUP");
    wait_for("the good file", PATIENCE, || {
        (www(&node) == "192.0.2.1").then_some(())
    });
    node.await_metric("meridian_config_reload_failing", 0.0);
}

#[test]
fn a_configuration_file_that_is_gone_is_noticed_and_said_once() {
    let mut node = start();
    let away = node.folder().join("away.yaml");
    std::fs::rename(node.config_path(), &away).unwrap();
    wait_for("the loss to be noticed", PATIENCE, || {
        (node.metric("meridian_config_reload_failing") == 1.0).then_some(())
    });
    assert_eq!(www(&node), "192.0.2.1");
    std::fs::rename(&away, node.config_path()).unwrap();
    wait_for("its return", PATIENCE, || {
        (node.metric("meridian_config_reload_failing") == 0.0).then_some(())
    });
    assert_eq!(node.process().log().matches("file is gone").count(), 1);
}
