//! `dns`: the sockets' part and the part of answering.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::read;
use crate::config::faults::Report;
use crate::config::spec::{Kind, Node, fields, v1};
use crate::snapshot::{EcsTrust, Settings};
use crate::transport;

/// The port of DNS.
const PORT: u16 = 53;
/// Longest NSID in octets.
const MAX_IDENTITY: usize = 128;
/// Bounds of `idle` and `write`. The unit of edns-tcp-keepalive (RFC 7828) is the least.
const TIMES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3600);

/// Checks `dns`.
pub(super) fn read(
    node: Option<Node<'_, '_>>,
    report: &mut Report,
) -> (transport::Config, Settings) {
    let any = [
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ];
    let mut config = transport::Config {
        listen: any.map(|ip| SocketAddr::new(ip, PORT)).to_vec(),
        ..transport::Config::default()
    };
    let mut settings = Settings::default();
    let Some(fields) = node.and_then(|node| fields(node, &v1::DNS, report)) else {
        return (config, settings);
    };
    if let Some(node) = fields.get("listen") {
        config.listen = listen(node, report);
        if node.kind() == Kind::List && node.items().next().is_none() {
            report.fault(
                node,
                "at least one address is needed, such as \"0.0.0.0:53\"",
            );
        }
    }
    if let Some(workers) = fields
        .get("workers")
        .and_then(|node| read::integer(node, 0..=1024_u16, report))
    {
        config.workers = usize::from(workers);
    }
    if let Some(identity) = fields
        .get("identity")
        .and_then(|node| identity(node, report))
    {
        settings.identity = identity;
    }
    if let Some(trust) = fields.get("ecs").and_then(|node| ecs(node, report)) {
        settings.ecs_trust = trust;
    }
    if let Some(proxy) = fields
        .get("proxyProtocol")
        .and_then(|node| crate::config::spec::fields(node, &v1::PROXY, report))
    {
        config.proxy_protocol = proxy
            .get("from")
            .map_or_else(Vec::new, |node| read::prefixes(node, report));
    }
    if let Some(node) = fields.get("tcp") {
        tcp(node, &mut config.tcp, report);
    }
    let keepalive = config.tcp.idle.as_millis() / 100;
    settings.keepalive = u16::try_from(keepalive).unwrap_or(u16::MAX);
    (config, settings)
}

/// Checks addresses to listen on: none twice, but for those whose port the system chooses.
pub(super) fn listen(node: Node<'_, '_>, report: &mut Report) -> Vec<SocketAddr> {
    let mut seen = HashSet::new();
    read::list(node, report, |item, report| {
        let address = read::socket(item, report)?;
        if address.port() != 0 && !seen.insert(address) {
            report.fault(item, format_args!("`{address}` is listed twice"));
        }
        Some(address)
    })
}

/// Checks `identity`.
fn identity(node: Node<'_, '_>, report: &mut Report) -> Option<Box<[u8]>> {
    let text = read::text(node, report)?;
    if text.len() > MAX_IDENTITY || !text.bytes().all(|octet| matches!(octet, b' '..=b'~')) {
        report.fault(
            node,
            format_args!("at most {MAX_IDENTITY} printable ASCII characters are wanted"),
        );
        return None;
    }
    Some(text.as_bytes().into())
}

/// Checks `ecs`.
fn ecs(node: Node<'_, '_>, report: &mut Report) -> Option<EcsTrust> {
    let trust = fields(node, &v1::ECS, report)?.get("trust")?;
    if trust.kind() == Kind::List {
        return Some(EcsTrust::From(read::prefixes(trust, report)));
    }
    match trust.text() {
        "all" => Some(EcsTrust::All),
        "none" => Some(EcsTrust::None),
        text => {
            report.fault(
                trust,
                format_args!("`{text}`: all, none, or a list of prefixes of resolvers is wanted"),
            );
            None
        }
    }
}

/// Checks `tcp`.
fn tcp(node: Node<'_, '_>, limits: &mut transport::TcpLimits, report: &mut Report) {
    let Some(fields) = fields(node, &v1::TCP, report) else {
        return;
    };
    let count = |name: &str, report: &mut Report| {
        let value = fields
            .get(name)
            .and_then(|node| read::integer(node, 1..=1_000_000_i64, report))?;
        usize::try_from(value).ok()
    };
    limits.connections = count("connections", report).unwrap_or(limits.connections);
    // A client may have no more than there are at all: a small total alone is no fault.
    limits.per_client = limits.per_client.min(limits.connections);
    limits.per_client = count("perClient", report).unwrap_or(limits.per_client);
    if limits.per_client > limits.connections {
        let place = fields.get("perClient").unwrap_or(node);
        report.fault(
            place,
            format_args!("more than `connections`, which is {}", limits.connections),
        );
    }
    let time = |name: &str, report: &mut Report| {
        fields
            .get(name)
            .and_then(|node| read::duration(node, TIMES, report))
    };
    limits.idle = time("idle", report).unwrap_or(limits.idle);
    limits.write = time("write", report).unwrap_or(limits.write);
}
