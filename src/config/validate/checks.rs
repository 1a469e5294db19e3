//! `defaults.monitor` for Kubernetes services: the checks of those whose annotations say nothing.
//!
//! Annotations and monitors of this file say much the same, not quite: what the ones cannot say is told, not dropped.

use std::time::Duration;

use super::monitor::MonitorKeys;
use crate::config::faults::Report;
use crate::config::spec::Node;
use crate::model::{Check, HttpCheck, MonitorSpec, TcpCheck};
use crate::source::kubernetes::annotations::{CheckKind, Checks, PortRef};

/// Shortest timeout that an annotation may say.
const MIN_TIMEOUT: Duration = Duration::from_millis(10);

/// Turns `defaults.monitor`, written at `node`, into what objects begin with. `least` is the shortest interval allowed.
pub(super) fn of(
    keys: &MonitorKeys,
    node: Option<Node<'_, '_>>,
    least: Duration,
    report: &mut Report,
) -> Checks {
    let mut checks = match (&keys.check, node) {
        (Some(Some(Check::Http(check))), Some(node)) => http(check, node),
        (Some(Some(Check::Tcp(check))), Some(node)) => tcp(check, node, report),
        (Some(None), _) => Checks {
            kind: Some(CheckKind::None),
            ..Checks::default()
        },
        _ => Checks::default(),
    };
    // With a probe they were checked before; an object may bring one.
    let has_probe = matches!(keys.check, Some(Some(_)));
    if let Some(node) = node.filter(|_| !has_probe) {
        let _ = keys.times(node, report);
    }
    checks.interval = keys.interval;
    // The limit holds for the built-in interval too.
    if keys.interval.unwrap_or(MonitorSpec::INTERVAL) < least {
        checks.interval = Some(least);
        if let Some(node) = node.and_then(|node| value(node, "interval")) {
            report.warn(
                node,
                format_args!("Kubernetes services are probed every {least:?}, which `kubernetes.limits.interval.min` says"),
            );
        }
    }
    checks.timeout = keys.timeout.map(|timeout| timeout.max(MIN_TIMEOUT));
    if let Some(node) = node.and_then(|node| value(node, "timeout"))
        && checks.timeout != keys.timeout
    {
        report.warn(
            node,
            format_args!("probes of Kubernetes services have {MIN_TIMEOUT:?} at least"),
        );
    }
    (checks.rise, checks.fall) = (keys.rise, keys.fall);
    checks
}

/// Gives the value of a key of a map.
fn value<'t, 'a>(map: Node<'t, 'a>, name: &str) -> Option<Node<'t, 'a>> {
    let mut entries = map.entries();
    entries.find_map(|(key, value)| (key.text() == name).then_some(value))
}

/// Takes what was written of an HTTP check: port and host of the others are those of each object.
fn http(check: &HttpCheck, node: Node<'_, '_>) -> Checks {
    let (kind, key) = match check.tls {
        None => (CheckKind::Http, "http"),
        Some(_) => (CheckKind::Https, "https"),
    };
    let map = value(node, key);
    let says = |name: &str| map.is_some_and(|map| value(map, name).is_some());
    Checks {
        kind: Some(kind),
        port: says("port").then_some(PortRef::Number(check.port)),
        path: says("path").then(|| check.path.clone()),
        host: check.host.clone(),
        head: says("method").then_some(check.head),
        expect: says("expect").then(|| check.expect.clone()),
        tls: check.tls.filter(|_| says("tls")),
        ..Checks::default()
    }
}

/// Takes a TCP check, which is a connection and no talk here.
fn tcp(check: &TcpCheck, node: Node<'_, '_>, report: &mut Report) -> Checks {
    let map = value(node, "tcp");
    for name in ["send", "expect"] {
        if let Some(node) = map.and_then(|map| value(map, name)) {
            report.warn(
                node,
                format_args!("`{name}` does not apply to Kubernetes services: they are probed by a connection alone"),
            );
        }
    }
    Checks {
        kind: Some(CheckKind::Tcp),
        port: Some(PortRef::Number(check.port)),
        ..Checks::default()
    }
}
