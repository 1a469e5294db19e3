//! FAULTS F4, F8, F31 with real probes: flapping, a pause of the machine, and ten thousand probes due at once.
//!
//! The same on a fake clock and for many seeds is in `health::tests`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use crate::harness::backend::Backend;
use crate::harness::client::Ask;
use crate::harness::honest::Honest;
use crate::harness::netns::ip;
use crate::harness::node::Node;
use crate::harness::packages::{IP, need};
use crate::harness::{loopback, wait_for};

const PATIENCE: Duration = Duration::from_secs(60);

/// Everything before the services.
const HEAD: &str = "
zones: [{name: svc.mesh, nameservers: [{name: ns1.svc.mesh, addresses: [192.0.2.53]}], contact: hostmaster.svc.mesh}]
clusters:
  - {name: europe, provider: aws, region: eu-central-1}
  - {name: america, provider: aws, region: us-east-1}
";

fn count(node: &Node, verdict: &str) -> f64 {
    node.metric(&format!(
        "meridian_health_monitors{{verdict=\"{verdict}\"}}"
    ))
}

#[test]
fn a_flapping_endpoint_changes_answers_at_most_three_times() {
    const WINDOW: Duration = Duration::from_secs(12);
    let steady = Backend::start(loopback(), 0);
    let port = steady.address().port();
    let flapping = loopback();
    let mut first = Some(Backend::start(flapping, port));
    let node = Node::start(&format!(
        "{HEAD}defaults: {{monitor: {{http: {{path: /, port: {port}}}, interval: 300ms, timeout: 150ms}}}}
services:
  - {{namespace: n, name: s, hostnames: [s.svc.mesh], endpoints: [{{cluster: europe, addresses: [{flapping}]}}, {{cluster: america, addresses: [{}]}}]}}
",
        steady.address().ip()
    ));
    wait_for("both to be up", PATIENCE, || {
        (count(&node, "up") == 2.0).then_some(())
    });
    let ask = Ask::a("s.svc.mesh").from("46.114.0.0/24");
    // 0.2 s there, 0.2 s gone.
    let until = Instant::now() + WINDOW;
    let flaps = std::thread::spawn(move || {
        let mut flaps = 0;
        while Instant::now() < until {
            let backend = first
                .take()
                .unwrap_or_else(|| Backend::start(flapping, port));
            std::thread::sleep(Duration::from_millis(200));
            backend.kill();
            std::thread::sleep(Duration::from_millis(200));
            flaps += 1;
        }
        flaps
    });
    let (mut last, mut changes) = (flapping, 0);
    while Instant::now() < until {
        let address = ask.udp(node.dns()).address();
        changes += usize::from(address != last);
        last = address;
        std::thread::sleep(Duration::from_millis(5));
    }
    let flaps = flaps.join().unwrap();
    println!("{flaps} flaps, {changes} changes");
    assert!(flaps >= 20, "{flaps}");
    assert!(
        (1..=3).contains(&changes),
        "{changes} changes of the answer"
    );
}

/// Writes services with one endpoint each, on loopback addresses of their own that one listener on every address serves.
fn many(count: u32) -> String {
    let service = |at: u32| {
        let address = Ipv4Addr::from(0x7f10_0000 + (std::process::id() % 8) * 0x2_0000 + at + 1);
        format!(
            "  - {{namespace: n, name: s{at}, hostnames: [s{at}.svc.mesh], endpoints: [{{cluster: europe, addresses: [{address}]}}]}}\n"
        )
    };
    (0..count).map(service).collect()
}

/// Listens on every address, with a long queue.
fn everywhere() -> Backend {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    socket.bind(&any.into()).unwrap();
    socket.listen(4096).unwrap();
    Backend::of(socket.into())
}

#[test]
fn ten_thousand_probes_due_at_once_make_nobody_down() {
    let backend = everywhere();
    let mut node = Node::start(&format!(
        "{HEAD}defaults: {{monitor: {{http: {{path: /, port: {}}}, interval: 20s, timeout: 2s, fall: 1}}}}\nservices:\n{}",
        backend.address().port(),
        many(10_000)
    ));
    let begun = Instant::now();
    let honest = Honest::udp(node.dns(), &Ask::a("s9999.svc.mesh").from("46.114.0.0/24"));
    wait_for("all to be up", PATIENCE, || {
        assert_eq!(count(&node, "down"), 0.0);
        (count(&node, "up") == 10_000.0).then_some(())
    });
    let took = begun.elapsed();
    let answered = honest_end(honest);
    println!(
        "10,000 probes in {took:?} after readiness, {answered} honest questions answered meanwhile"
    );
    // From Unknown to Up each, and nothing else in between.
    node.await_metric("meridian_health_flips_total", 10_000.0);
    node.process().assert_running();
}

/// Ends an honest client and checks what it saw.
fn honest_end(honest: Honest) -> usize {
    let tally = honest.end();
    assert!(tally.answered * 100 >= tally.asked * 99, "{tally:?}");
    tally.answered
}

#[test]
fn a_pause_of_five_seconds_makes_no_storm_and_nobody_down() {
    const MONITORS: u32 = 200;
    const INTERVAL: u64 = 1000;
    let backend = everywhere();
    let mut node = Node::start(&format!(
        "{HEAD}defaults: {{monitor: {{http: {{path: /, port: {}}}, interval: {INTERVAL}ms, timeout: 900ms, fall: 1}}}}\nservices:\n{}",
        backend.address().port(),
        many(MONITORS)
    ));
    wait_for("all to be up", PATIENCE, || {
        (count(&node, "up") == f64::from(MONITORS)).then_some(())
    });
    node.process().signal("STOP");
    let resume = Instant::now() + Duration::from_secs(5);
    let before = wait_for("the pause to end", PATIENCE, || {
        (Instant::now() >= resume).then(|| backend.requests())
    });
    node.process().signal("CONT");
    let resumed = Instant::now();
    let ask = Ask::a("s1.svc.mesh").from("46.114.0.0/24");
    assert_eq!(ask.udp(node.dns()).addresses().len(), 1);
    // Two intervals: one probe each at once, and then at most one each interval.
    let requests = wait_for("two intervals", PATIENCE, || {
        assert_eq!(count(&node, "down"), 0.0);
        (resumed.elapsed() >= Duration::from_millis(2 * INTERVAL))
            .then(|| backend.requests() - before)
    });
    let elapsed = resumed.elapsed().as_millis() / u128::from(INTERVAL);
    // Probes start up to 13 % sooner than the interval, and the first waits for a random part of one.
    let most = u64::from(MONITORS) * (u64::try_from(elapsed).unwrap() * 5 / 4 + 2);
    println!(
        "{requests} probes in {:?} after the pause, at most {most}",
        resumed.elapsed()
    );
    assert!(
        (u64::from(MONITORS)..=most).contains(&requests),
        "{requests} of {most}"
    );
    let log = node.process().log();
    assert!(!log.contains("verdict=down"), "{log}");
    node.process().assert_running();
}

/// A route that leads nowhere, while this lives.
struct NoRoute(String);

impl NoRoute {
    fn to(prefix: String) -> Self {
        need(&[IP]);
        ip(&["route", "add", "unreachable", &prefix]);
        Self(prefix)
    }
}

impl Drop for NoRoute {
    fn drop(&mut self) {
        ip(&["route", "del", "unreachable", &self.0]);
    }
}

#[test]
fn a_target_that_this_node_has_no_way_to_is_not_judged() {
    let net = std::process::id() % 250;
    let _route = NoRoute::to(format!("10.215.{net}.0/24"));
    let mut node = Node::start(&format!(
        "{HEAD}defaults: {{monitor: {{http: {{path: /, port: 80}}, interval: 100ms, timeout: 100ms, fall: 1}}}}
services:
  - {{namespace: n, name: s, hostnames: [s.svc.mesh], endpoints: [{{cluster: europe, addresses: [10.215.{net}.1]}}]}}
"
    ));
    wait_for("a probe that could not be made", PATIENCE, || {
        let log = node.process().log();
        log.contains("This node could not probe").then_some(())
    });
    assert_eq!((count(&node, "unknown"), count(&node, "down")), (1.0, 0.0));
}
