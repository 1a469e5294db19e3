//! `peers`.

use std::net::IpAddr;

use super::{Files, read};
use crate::config::faults::Report;
use crate::config::spec::{Node, fields, v1};
use crate::vantage::{Config, Peer};

/// Most peers: each is asked every second.
const MAX_PEERS: usize = 64;

/// Checks `peers`.
pub(super) fn read(
    list: Option<Node<'_, '_>>,
    node_name: &str,
    files: &Files,
    report: &mut Report,
) -> Config {
    let mut peers: Vec<Peer> = Vec::new();
    if let Some(list) = list {
        for (peer, node) in read::list(list, report, |item, report| peer(item, files, report)) {
            if peers.iter().any(|other| other.url == peer.url) {
                report.fault(node, format_args!("`{}` is listed twice", peer.url));
            } else if peers.len() == MAX_PEERS {
                report.fault(
                    node,
                    format_args!("more than {MAX_PEERS} peers: each is asked every second"),
                );
                break;
            } else {
                peers.push(peer);
            }
        }
    }
    Config {
        node: node_name.to_owned(),
        peers,
    }
}

/// Checks one entry. Gives it with the place of its URL.
fn peer<'t, 'a>(
    item: Node<'t, 'a>,
    files: &Files,
    report: &mut Report,
) -> Option<(Peer, Node<'t, 'a>)> {
    let fields = fields(item, &v1::PEER, report)?;
    let mut path = |key| fields.get(key).and_then(|node| files.path(node, report));
    let (token_file, ca) = (path("tokenFile"), path("ca"));
    let node = fields.get("url")?;
    let peer = Peer {
        url: url(node, report)?,
        token_file,
        ca,
    };
    Some((peer, node))
}

/// Checks one URL: scheme, host and port, no path. Clear text is for loopback only.
fn url(node: Node<'_, '_>, report: &mut Report) -> Option<String> {
    let text = read::text(node, report)?;
    let example = "write its admin listener, such as \"https://ns2.example.com:8053\"";
    let Some((scheme, rest)) = text.split_once("://") else {
        report.fault(node, format_args!("`{text}` is no URL; {example}"));
        return None;
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    if authority.is_empty() || !authority.bytes().all(plain) {
        report.fault(
            node,
            format_args!("`{text}` has more than scheme, host and port, or less; {example}"),
        );
        return None;
    }
    match scheme {
        "https" => {}
        "http" if is_loopback(authority) => {}
        "http" => {
            report.fault(
                node,
                format_args!("`{text}` would send the token in clear text; {example}"),
            );
            return None;
        }
        _ => {
            report.fault(
                node,
                format_args!("`{scheme}` is no scheme for a peer; {example}"),
            );
            return None;
        }
    }
    Some(format!("{scheme}://{authority}"))
}

/// Tells whether host and port are on this machine.
fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(host, _)| host),
        None => authority
            .split_once(':')
            .map_or(authority, |(host, _)| host),
    };
    host == "localhost"
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clear_text_is_for_this_machine() {
        for (authority, local) in [
            ("127.0.0.1:8053", true),
            ("[::1]:8053", true),
            ("localhost", true),
            ("ns2.example.com:8053", false),
            ("192.0.2.1", false),
            ("[2001:db8::1]", false),
            ("127.0.0.1.example.com", false),
        ] {
            assert_eq!(is_loopback(authority), local, "{authority}");
        }
    }
}
