//! `admin` and `metrics`.

use std::net::{Ipv4Addr, SocketAddr};

use super::dns;
use crate::admin::Config;
use crate::config::faults::Report;
use crate::config::spec::{Node, fields, v1};

/// The port of the dashboard.
const PORT: u16 = 8053;

/// Checks `admin` and `metrics`. `dns` has what is already listened on.
pub(super) fn read(
    admin: Option<Node<'_, '_>>,
    metrics: Option<Node<'_, '_>>,
    dns: &[SocketAddr],
    report: &mut Report,
) -> Config {
    let mut config = Config {
        admin: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))],
        metrics: Vec::new(),
    };
    let admin = admin
        .and_then(|node| fields(node, &v1::ADMIN, report))
        .and_then(|fields| fields.get("listen"));
    if let Some(node) = admin {
        config.admin = dns::listen(node, report);
        for (item, address) in addresses(node) {
            if !address.ip().to_canonical().is_loopback() {
                report.fault(item, format_args!("`{address}` can be reached from other machines; that needs tokens and TLS, which are not supported yet: write a loopback address such as \"127.0.0.1:{PORT}\""));
            }
        }
    }
    let metrics = metrics
        .and_then(|node| fields(node, &v1::METRICS, report))
        .and_then(|fields| fields.get("listen"));
    if let Some(node) = metrics {
        config.metrics = dns::listen(node, report);
    }
    let mut taken: Vec<(SocketAddr, &str)> =
        dns.iter().map(|address| (*address, "dns.listen")).collect();
    for (node, name) in [(admin, "admin.listen"), (metrics, "metrics.listen")] {
        for (item, address) in node.into_iter().flat_map(addresses) {
            let other = taken
                .iter()
                .find(|(other, by)| *other == address && *by != name && address.port() != 0);
            if let Some((_, other)) = other {
                report.fault(item, format_args!("`{address}` is taken by `{other}`"));
            }
            taken.push((address, name));
        }
    }
    config
}

/// Iterates over the readable addresses of a list.
fn addresses<'t, 'a>(node: Node<'t, 'a>) -> impl Iterator<Item = (Node<'t, 'a>, SocketAddr)> {
    node.items()
        .filter_map(|item| Some((item, item.text().parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_is_loopback() {
        let config = read(None, None, &[], &mut Report::default());
        assert!(
            config
                .admin
                .iter()
                .all(|address| address.ip().is_loopback())
        );
        assert!(config.metrics.is_empty());
    }
}
