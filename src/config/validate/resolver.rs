//! `resolver`.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::read;
use crate::config::faults::Report;
use crate::config::spec::{Node, fields, v1};
use crate::model::not_unicast;
use crate::resolving::TargetsConfig;

/// The port of DNS.
const PORT: u16 = 53;

/// Most resolvers: a question goes to each in turn until one answers.
const MAX_SERVERS: usize = 8;

/// Checks `resolver`. `listen` are our own addresses: who asks itself waits for its own answer.
pub(super) fn read(
    node: Option<Node<'_, '_>>,
    listen: &[SocketAddr],
    report: &mut Report,
) -> TargetsConfig {
    let list = node
        .and_then(|node| fields(node, &v1::RESOLVER, report))
        .and_then(|fields| fields.get("nameservers"));
    let Some(list) = list else {
        return TargetsConfig::default();
    };
    let mut seen = HashSet::new();
    let nameservers = read::list(list, report, |item, report| {
        let server = server(item, report)?;
        if is_ours(server, listen) {
            report.fault(
                item,
                format_args!("`dns.listen` has `{server}`: this node would ask itself"),
            );
            return None;
        }
        if !seen.insert(server) {
            report.fault(item, format_args!("`{server}` is listed twice"));
        } else if seen.len() == MAX_SERVERS + 1 {
            report.fault(
                item,
                format_args!(
                    "more than {MAX_SERVERS} resolvers: they are asked one after the other"
                ),
            );
        }
        Some(server)
    });
    TargetsConfig { nameservers }
}

/// Reads an address, with a port or for port 53.
fn server(node: Node<'_, '_>, report: &mut Report) -> Option<SocketAddr> {
    let text = read::text(node, report)?;
    let server = match text.parse::<IpAddr>() {
        Ok(address) => Some((address, PORT).into()),
        Err(_) => text.parse::<SocketAddr>().ok(),
    };
    let Some(server) = server.filter(|server| server.port() != 0) else {
        report.fault(
            node,
            format_args!("`{text}` is no address of a server; write one such as 192.0.2.53, \"192.0.2.53:5353\" or \"[2001:db8::53]:53\""),
        );
        return None;
    };
    let ip = server.ip();
    match not_unicast(ip) {
        Some(why) => {
            report.fault(node, format_args!("`{ip}` {why}"));
            None
        }
        None => Some(server),
    }
}

/// Tells whether we listen there ourselves, as far as that shows.
fn is_ours(server: SocketAddr, listen: &[SocketAddr]) -> bool {
    let here = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    listen.iter().any(|ours| {
        let is_on_all = ours.ip().is_unspecified() && ours.is_ipv4() == server.is_ipv4();
        *ours == server || is_on_all && ours.port() == server.port() && here.contains(&server.ip())
    })
}
