//! What the log says of names that have nothing up.

use std::time::Duration;

use crate::harness::backend::Backend;
use crate::harness::node::Node;
use crate::harness::{loopback, wait_for};
use crate::samples::two_clusters;

const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until the log has a line with all of these parts, in this order.
fn wait_for_line(node: &mut Node, parts: [&str; 3]) {
    wait_for(parts[1], PATIENCE, || {
        let log = node.process().log();
        lines(&log, parts).next().is_some().then_some(())
    });
}

/// Gives the lines of a log that have all of these parts, in this order.
fn lines<'a>(log: &'a str, parts: [&'a str; 3]) -> impl Iterator<Item = &'a str> {
    log.lines().filter(move |line| {
        let after = |rest: Option<&'a str>, part: &str| Some(rest?.split_once(part)?.1);
        parts.into_iter().fold(Some(*line), after).is_some()
    })
}

#[test]
fn a_service_with_nothing_up_and_its_recovery_are_told_once_each() {
    let alone = Backend::start(loopback(), 0);
    let (first, port) = (alone.address().ip(), alone.address().port());
    let other = Backend::start(loopback(), port);
    let second = other.address().ip();
    let mut node = Node::start(&format!(
        "{}  - {{namespace: n, name: alone, hostnames: [a.svc.mesh, b.svc.mesh, c.svc.mesh, d.svc.mesh], endpoints: [{{cluster: europe, addresses: [{first}]}}]}}
  - {{namespace: n, name: both, hostnames: [both.svc.mesh], endpoints: [{{cluster: europe, addresses: [{first}]}}, {{cluster: america, addresses: [{second}]}}]}}
",
        two_clusters(port)
    ));
    wait_for("both to be up", PATIENCE, || {
        (node.metric("meridian_health_monitors{verdict=\"up\"}") == 2.0).then_some(())
    });
    let (dark, light) = (
        "Service has nothing up; its last resorts are answered",
        "Service has an endpoint that is up again",
    );
    let names = "service=n/alone names=a.svc.mesh, b.svc.mesh, c.svc.mesh and 1 more";
    assert!(!node.process().log().contains(dark));
    alone.kill();
    wait_for_line(&mut node, [" WARN ", dark, names]);
    // It has another: its loss is no matter of either.
    other.kill();
    wait_for_line(
        &mut node,
        [" WARN ", dark, "service=n/both names=both.svc.mesh"],
    );
    let _alone = Backend::start(first, port);
    wait_for_line(
        &mut node,
        [" INFO ", light, "service=n/both names=both.svc.mesh"],
    );
    wait_for_line(&mut node, [" INFO ", light, names]);
    let _other = Backend::start(second, port);
    wait_for("both to be up again", PATIENCE, || {
        let log = node.process().log();
        (lines(&log, ["Verdict flipped", "before=down", "verdict=up"]).count() == 2).then_some(())
    });
    let log = node.process().log();
    for message in [dark, light] {
        for service in ["service=n/alone ", "service=n/both "] {
            let told = lines(&log, ["", message, service]).count();
            assert_eq!(told, 1, "{message} {service}\n{log}");
        }
    }
    assert!(
        log.find("service=n/alone names=") < log.find("service=n/both names="),
        "{log}"
    );
}
