//! The last good state: a restart answers as before.

use std::time::{Duration, Instant};

use hickory_proto::rr::RecordType;

use crate::harness::backend::Backend;
use crate::harness::client::Ask;
use crate::harness::node::{Node, meridian};
use crate::harness::process::Process;
use crate::harness::{loopback, wait_for};
use crate::samples::{FIVE, FIVE_ZONE};

const PATIENCE: Duration = Duration::from_secs(10);
/// The gauge of failed writes.
const FAILURES: &str = "meridian_controller_last_good_failures";

/// Waits until the state on disk satisfies.
fn wait_for_state(node: &Node, what: &str, holds: impl Fn(&str) -> bool) {
    wait_for(what, PATIENCE, || {
        let state = std::fs::read_to_string(node.folder().join("state/state.json")).ok()?;
        holds(&state).then_some(())
    });
}

#[test]
fn a_crash_keeps_zone_serial_and_files_even_when_they_are_gone() {
    let mut node = Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    });
    wait_for_state(&node, "the zone file to be kept", |state| {
        state.contains("svc.mesh.zone")
    });
    let before = serial(&node);
    node.kill();
    std::fs::remove_file(node.folder().join("svc.mesh.zone")).unwrap();
    node.spawn();
    assert_eq!(serial(&node), before);
    let text = Ask::a("text.svc.mesh")
        .of_type(RecordType::TXT)
        .udp(node.dns());
    assert_eq!(text.0.answers.len(), 1);
    // A changed configuration has a greater serial.
    node.write_config(&node.config().replace("ttl: 10", "ttl: 11"));
    node.process().signal("HUP");
    wait_for("a greater serial", PATIENCE, || {
        (serial(&node) > before).then_some(())
    });
}

/// The client of the database that is gone after the crash: for the embedded one it is nowhere.
const PLACED: &str = "198.51.100.0/24";

/// Gives the dead address of a name of its own.
fn dead_of(at: u32) -> String {
    let [.., high, low] = at.to_be_bytes();
    format!("127.200.{high}.{low}")
}

#[test]
fn ten_thousand_names_answer_within_a_second_of_a_crash_and_the_dead_stay_dead() {
    let backend = Backend::start(loopback(), 0);
    let (live, port) = (backend.address().ip(), backend.address().port());
    let mut config = format!(
        "zones: [{{name: svc.mesh, nameservers: [{{name: ns1.svc.mesh, addresses: [192.0.2.53]}}], contact: hostmaster.svc.mesh, file: svc.mesh.zone}}]
geoip: {{databases: [geo.mmdb]}}
clusters:
  - {{name: europe, provider: aws, region: eu-central-1}}
  - {{name: america, provider: aws, region: us-east-1}}
defaults: {{monitor: {{http: {{path: /, port: {port}}}, interval: 10s, timeout: 400ms}}}}
services:
  - {{namespace: n, name: geo, hostnames: [geo.svc.mesh], monitor: none, endpoints: [{{cluster: europe, addresses: [192.0.2.1]}}, {{cluster: america, addresses: [192.0.2.2]}}]}}
"
    );
    for at in 0..10_000 {
        let dead = dead_of(at);
        config.push_str(&format!(
            "  - {{namespace: n, name: s{at}, hostnames: [s{at}.svc.mesh], endpoints: [{{cluster: europe, addresses: [{dead}]}}, {{cluster: america, addresses: [{live}]}}]}}\n"
        ));
    }
    let mut node = Node::start_on(loopback(), "", &config, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), "text 300 TXT here\n").unwrap();
        let octets = crate::geoip::database(PLACED, "DE");
        std::fs::write(folder.join("geo.mmdb"), octets).unwrap();
    });
    wait_for_state(&node, "all verdicts to be written", |state| {
        state.matches("http 127.200.").count() == 10_000 && state.contains("geo.mmdb")
    });
    node.kill();
    for file in ["svc.mesh.zone", "geo.mmdb"] {
        std::fs::remove_file(node.folder().join(file)).unwrap();
    }
    let server = node.dns();
    let begun = Instant::now();
    let starting = std::thread::spawn(move || {
        node.spawn();
        node
    });
    // The very first answer after the crash is right already, and so are all others.
    let address = wait_for_first(server, PATIENCE);
    assert_eq!(address, live);
    let took = begun.elapsed();
    println!("first answer {took:?} after the crash");
    assert!(took < Duration::from_secs(1), "{took:?}");
    for at in (0..10_000).step_by(97) {
        let ask = Ask::a(&format!("s{at}.svc.mesh")).from("46.114.0.0/24");
        assert_eq!(ask.udp(server).address(), live, "s{at}");
    }
    let geo = Ask::a("geo.svc.mesh").from(PLACED).udp(server);
    assert_eq!(geo.address().to_string(), "192.0.2.1");
    let text = Ask::a("text.svc.mesh").of_type(RecordType::TXT).udp(server);
    assert_eq!(text.0.answers.len(), 1);
    drop(starting.join().unwrap());
}

/// Asks until the first answer comes.
fn wait_for_first(server: std::net::SocketAddr, patience: Duration) -> std::net::IpAddr {
    wait_for("the first answer", patience, || {
        let reply = Ask::a("s5000.svc.mesh")
            .from("46.114.0.0/24")
            .try_udp(server, Duration::from_millis(20))?;
        reply.addresses().first().copied()
    })
}

#[test]
fn a_torn_state_is_ignored_with_a_warning() {
    let mut node = Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    });
    wait_for_state(&node, "the state", |state| !state.is_empty());
    node.kill();
    let path = node.folder().join("state/state.json");
    let octets = std::fs::read(&path).unwrap();
    let torn = &octets[..octets.len() / 2];
    std::fs::write(&path, torn).unwrap();
    let unread = |node: &Node| {
        let metrics = node.get("/metrics").unwrap();
        let rows = metrics
            .lines()
            .filter(|line| line.starts_with("meridian_disk_unread_files"));
        let rows = rows.filter(|line| line.ends_with(" 1"));
        rows.map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    node.spawn();
    assert!(
        node.process()
            .log()
            .contains("Last good state is not usable")
    );
    // It is told, and kept when the first state is written over it.
    assert_eq!(
        unread(&node),
        ["meridian_disk_unread_files{file=\"state.json\"} 1"]
    );
    let told = |path: &str| node.get(path).unwrap();
    for place in ["/api/v1/events", "/api/v1/sources"] {
        let told = told(place);
        assert!(told.contains("state.json cannot be read: checksum does not match"));
    }
    let aside = path.with_extension("json.unusable");
    wait_for("the state to be put aside", PATIENCE, || {
        (std::fs::read(&aside).ok()? == torn).then_some(())
    });
    wait_for("a state of our own", PATIENCE, || {
        let state = std::fs::read_to_string(&path).ok()?;
        state.contains("svc.mesh.zone").then_some(())
    });
    node.kill();
    node.spawn();
    assert_eq!(unread(&node), [""; 0], "the next start");
    assert_eq!(std::fs::read(&aside).unwrap(), torn);
    assert_eq!(
        Ask::a("www.svc.mesh")
            .from("46.114.0.0/24")
            .udp(node.dns())
            .address()
            .to_string(),
        "192.0.2.1"
    );
}

#[test]
fn a_content_gone_bad_is_ignored_with_a_warning_and_written_anew() {
    let mut node = Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    });
    wait_for_state(&node, "the zone file to be kept", |state| {
        state.contains("svc.mesh.zone")
    });
    node.kill();
    let blobs = std::fs::read_dir(node.folder().join("state/blobs")).unwrap();
    let paths: Vec<_> = blobs.flatten().map(|entry| entry.path()).collect();
    assert_eq!(paths.len(), 1);
    // One octet, the length as before.
    let bad = FIVE_ZONE.replacen("mail", "mall", 1);
    std::fs::write(&paths[0], bad).unwrap();
    // Without the file there is nothing left to serve, and the log says why.
    let zone = node.folder().join("svc.mesh.zone");
    std::fs::rename(&zone, node.folder().join("away")).unwrap();
    let refused = meridian_run(&node);
    assert!(
        refused.contains("Last good content is not usable"),
        "{refused}"
    );
    // With the file all is well, and what is kept is mended.
    std::fs::rename(node.folder().join("away"), &zone).unwrap();
    node.spawn();
    wait_for("the content to be written anew", PATIENCE, || {
        let kept = std::fs::read_to_string(&paths[0]).ok()?;
        (kept == FIVE_ZONE).then_some(())
    });
}

/// Runs the program to its end, which must be an error; gives what it said.
fn meridian_run(node: &Node) -> String {
    let config = node.config_path();
    let output = meridian(&["run", "--config", &config.display().to_string()]);
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_folder_that_cannot_be_made_is_made_later() {
    // A file where the folder should be, as when a disk is not mounted yet.
    let mut node = Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
        std::fs::write(folder.join("state"), "").unwrap();
    });
    wait_for("the failure to be counted", PATIENCE, || {
        (node.metric(FAILURES) >= 1.0).then_some(())
    });
    assert_eq!(
        Ask::a("www.svc.mesh")
            .from("46.114.0.0/24")
            .udp(node.dns())
            .address()
            .to_string(),
        "192.0.2.1"
    );
    wait_for("the warning", PATIENCE, || {
        let log = node.process().log();
        log.contains("Last good state could not be written")
            .then_some(())
    });
    std::fs::remove_file(node.folder().join("state")).unwrap();
    wait_for_state(&node, "the zone file to be kept", |state| {
        state.contains("svc.mesh.zone")
    });
}

/// Gives the hash under which octets are kept.
fn hash(octets: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, octets);
    digest
        .as_ref()
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect()
}

#[test]
fn what_could_not_be_kept_is_kept_once_the_disk_takes_it() {
    // Folders stand where the temporary files go: nothing can be written there, state and zone file alike.
    let blob = format!("state/blobs/{}.tmp", hash(FIVE_ZONE.as_bytes()));
    let in_the_way = ["state/state.tmp", &blob];
    let mut node = Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
        for path in in_the_way {
            std::fs::create_dir_all(folder.join(path)).unwrap();
        }
    });
    wait_for("the failures to be counted", PATIENCE, || {
        (node.metric(FAILURES) >= 1.0).then_some(())
    });
    let log = node.process().log();
    assert!(log.contains("os error 21"), "the reason is not in\n{log}");
    for path in in_the_way {
        std::fs::remove_dir(node.folder().join(path)).unwrap();
    }
    wait_for_state(&node, "the zone file to be kept", |state| {
        state.contains("svc.mesh.zone")
    });
    wait_for("the end of failing", PATIENCE, || {
        (node.metric(FAILURES) == 0.0).then_some(())
    });
}

#[test]
fn two_nodes_never_share_a_state_directory() {
    let put = |folder: &std::path::Path| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    };
    let mut first = Node::start_on(loopback(), "", FIVE, put);
    let mut second = Node::start_on(loopback(), "", FIVE, put);
    let process = second.take_process();
    assert!(process.terminate(PATIENCE).success());
    let shared = first.folder().join("state").display().to_string();
    let config = second.config();
    second.write_config(&config.replace(
        "stateDirectory: state",
        &format!("stateDirectory: {shared}"),
    ));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_meridian"));
    command.arg("run").arg("--config").arg(second.config_path());
    let process = Process::start("refused", second.folder(), &mut command);
    let (status, log) = process.end(PATIENCE);
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(
        log.contains(&shared) && log.contains("another node"),
        "{log}"
    );
    // The lock dies with its owner, however that dies.
    first.kill();
    second.spawn();
}

/// Asks for the serial served.
fn serial(node: &Node) -> u32 {
    let reply = Ask::a("svc.mesh").of_type(RecordType::SOA).udp(node.dns());
    match &reply.0.answers[0].data {
        hickory_proto::rr::RData::SOA(soa) => soa.serial,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rfc1982_the_serial_moves_with_the_zone_file_live_and_over_a_restart() {
    let mut node = Node::start_on(loopback(), "", FIVE, |folder| {
        std::fs::write(folder.join("svc.mesh.zone"), FIVE_ZONE).unwrap();
    });
    let path = node.folder().join("svc.mesh.zone");
    let first = serial(&node);
    std::fs::write(&path, FIVE_ZONE.replace("\"two\"", "\"three\"")).unwrap();
    let second = wait_for("a greater serial", PATIENCE, || {
        Some(serial(&node)).filter(|serial| *serial != first)
    });
    assert!(
        second.wrapping_sub(first) < 1 << 31,
        "{first} then {second}"
    );
    wait_for_state(&node, "the serial to be kept", |state| {
        state.contains(&second.to_string())
    });
    // The same content has the same serial, whatever asks for a reload.
    node.process().signal("HUP");
    wait_for("the reload", PATIENCE, || {
        (node.metric("meridian_config_reloads_total") >= 1.0).then_some(())
    });
    assert_eq!(serial(&node), second);
    node.kill();
    node.spawn();
    assert_eq!(serial(&node), second);
    // Edited while nobody looked.
    node.kill();
    std::fs::write(&path, FIVE_ZONE.replace("\"two\"", "\"four\"")).unwrap();
    node.spawn();
    let third = serial(&node);
    assert_ne!(third, second);
    assert!(
        third.wrapping_sub(second) < 1 << 31,
        "{second} then {third}"
    );
}

#[test]
fn rfc1982_health_never_touches_the_serial() {
    let backend = Backend::start(loopback(), 0);
    let (live, port) = (backend.address().ip(), backend.address().port());
    let dead = loopback();
    let config = format!(
        "zones: [{{name: svc.mesh, nameservers: [{{name: ns1.svc.mesh, addresses: [192.0.2.53]}}], contact: hostmaster.svc.mesh}}]
clusters:
  - {{name: europe, provider: aws, region: eu-central-1}}
  - {{name: america, provider: aws, region: us-east-1}}
defaults: {{monitor: {{http: {{path: /, port: {port}}}, interval: 500ms, timeout: 400ms}}}}
services:
  - {{namespace: n, name: web, hostnames: [www.svc.mesh], endpoints: [{{cluster: europe, addresses: [{dead}]}}, {{cluster: america, addresses: [{live}]}}]}}
"
    );
    let mut node = Node::start(&config);
    let before = serial(&node);
    let flipped = |node: &Node| {
        let reply = Ask::a("www.svc.mesh")
            .from("46.114.0.0/24")
            .try_udp(node.dns(), Duration::from_millis(20))?;
        (reply.address() == live).then_some(())
    };
    wait_for("the flip", PATIENCE, || flipped(&node));
    assert_eq!(serial(&node), before);
    wait_for_state(&node, "the verdict to be written", |state| {
        state.contains(&format!("http {dead}"))
    });
    node.kill();
    node.spawn();
    assert_eq!(serial(&node), before);
}
