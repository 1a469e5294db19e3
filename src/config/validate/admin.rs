//! `admin` and `metrics`.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{Files, dns, read};
use crate::admin::{AccessConfig, Anonymous, Config, OidcConfig, Role, TlsFiles, TokenFile};
use crate::config::faults::Report;
use crate::config::spec::{Fields, Node, fields, v1};

/// The port of the dashboard.
const PORT: u16 = 8053;
/// The key of the listeners of DNS.
const DNS: &str = "dns.listen";
/// Longest name of a token in octets.
const MAX_NAME: usize = 64;
/// Most tokens, further host names, and values of each role: everything is compared with every request.
const MAX_LISTED: usize = 256;

/// Checks `admin` and `metrics`. `dns` has where DNS is answered, as written and as it holds.
pub(super) fn read(
    (admin, metrics): (Option<Node<'_, '_>>, Option<Node<'_, '_>>),
    (dns_listen, dns): (Option<Node<'_, '_>>, &[SocketAddr]),
    files: &Files,
    report: &mut Report,
) -> Config {
    let mut config = Config {
        admin: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))],
        ..Config::default()
    };
    let admin = admin.and_then(|node| fields(node, &v1::ADMIN, report));
    let listen_admin = admin.and_then(|fields| fields.get("listen"));
    if let Some(fields) = admin {
        config.tls = fields.get("tls").and_then(|node| tls(node, files, report));
        config.access = access(fields, files, report);
    }
    if let Some(node) = listen_admin {
        config.admin = dns::listen(node, report);
        guard(node, admin, report);
    }
    let metrics = metrics
        .and_then(|node| fields(node, &v1::METRICS, report))
        .and_then(|fields| fields.get("listen"));
    if let Some(node) = metrics {
        config.metrics = dns::listen(node, report);
    }
    let takers: Vec<Taker<'_, '_>> = [
        takers(DNS, dns_listen, dns),
        takers("admin.listen", listen_admin, &config.admin),
        takers("metrics.listen", metrics, &config.metrics),
    ]
    .into_iter()
    .flatten()
    .collect();
    check_takers(&takers, report);
    config
}

/// An address with a port, and the key that takes it.
#[derive(Clone, Copy)]
struct Taker<'t, 'a> {
    address: SocketAddr,
    key: &'static str,
    /// Where it is written; `None`: it is the key's default.
    node: Option<Node<'t, 'a>>,
}

impl Taker<'_, '_> {
    /// Tells whether listening at both is refused by the system. DNS shares with itself, and its `::` takes IPv6 alone.
    fn excludes(&self, other: &Self) -> bool {
        let covers = |wide: &Self, narrow: &Self| {
            let is_same_family = wide.address.is_ipv6() == narrow.address.is_ipv6();
            let takes_both = wide.address.is_ipv6() && wide.key != DNS;
            wide.address.ip().is_unspecified() && (is_same_family || takes_both)
        };
        let (one, two) = (self.address, other.address);
        let is_alone = self.key == DNS && other.key == DNS;
        // What one list has twice has a fault already.
        let is_twice = one == two && self.key == other.key;
        !is_alone
            && !is_twice
            && one.port() != 0
            && one.port() == two.port()
            && (one == two || covers(self, other) || covers(other, self))
    }
}

/// Lists what a key takes: what is written, else its default.
fn takers<'t, 'a>(
    key: &'static str,
    written: Option<Node<'t, 'a>>,
    held: &[SocketAddr],
) -> Vec<Taker<'t, 'a>> {
    let of = |address, node| Taker { address, key, node };
    match written {
        Some(node) => addresses(node)
            .map(|(item, address)| of(address, Some(item)))
            .collect(),
        None => held.iter().map(|address| of(*address, None)).collect(),
    }
}

/// Refuses listeners that cannot be there together.
fn check_takers(takers: &[Taker<'_, '_>], report: &mut Report) {
    for (at, later) in takers.iter().enumerate() {
        let mut earlier = takers.iter().take(at);
        let Some(other) = earlier.find(|other| later.excludes(other)) else {
            continue;
        };
        // A default has no place: what is written beside it has.
        let (here, there) = match later.node {
            Some(_) => (later, other),
            None => (other, later),
        };
        let Some(node) = here.node else { continue };
        let default = if there.node.is_some() {
            ""
        } else {
            "the default of "
        };
        report.fault(
            node,
            format_args!(
                "`{}`: {default}`{}` takes `{}`; write another port or address",
                here.address, there.key, there.address
            ),
        );
    }
}

/// Refuses listeners that other machines reach without what keeps strangers out. What is written with a fault counts as
/// there: it has that fault already.
fn guard(listen: Node<'_, '_>, admin: Option<Fields<'_, '_>>, report: &mut Report) {
    let get = |name| admin.and_then(|fields| fields.get(name));
    let has_tls = get("tls").is_some();
    let has_tokens = get("tokens").is_some_and(|node| node.items().next().is_some());
    let missing = match (has_tls, has_tokens || get("oidc").is_some()) {
        (true, true) => return,
        (true, false) => "`admin.tokens` or `admin.oidc`",
        (false, true) => "`admin.tls`",
        (false, false) => "`admin.tls`, and `admin.tokens` or `admin.oidc`",
    };
    for (item, address) in addresses(listen) {
        if !address.ip().to_canonical().is_loopback() {
            report.fault(item, format_args!("`{address}` can be reached from other machines, which needs {missing}; or write a loopback address such as \"127.0.0.1:{PORT}\""));
        }
    }
}

/// Checks `admin.tls`.
fn tls(node: Node<'_, '_>, files: &Files, report: &mut Report) -> Option<TlsFiles> {
    let fields = fields(node, &v1::ADMIN_TLS, report)?;
    let mut path = |name| fields.get(name).and_then(|node| files.path(node, report));
    let (certificate, key) = (path("certificate"), path("key"));
    Some(TlsFiles {
        certificate: certificate?,
        key: key?,
    })
}

/// Checks who may do what.
fn access(fields: Fields<'_, '_>, files: &Files, report: &mut Report) -> AccessConfig {
    let anonymous = fields
        .get("anonymous")
        .and_then(|node| read::word(node, v1::ANONYMOUS, report));
    AccessConfig {
        anonymous: match anonymous {
            Some("none") => Anonymous::None,
            _ => Anonymous::Viewer,
        },
        tokens: fields
            .get("tokens")
            .map_or_else(Vec::new, |node| tokens(node, files, report)),
        oidc: fields
            .get("oidc")
            .and_then(|node| oidc(node, files, report)),
        hosts: fields
            .get("hosts")
            .map_or_else(Vec::new, |node| bounded(node, report, host)),
    }
}

/// Reads a list that is not too long.
fn bounded<'t, 'a, T>(
    node: Node<'t, 'a>,
    report: &mut Report,
    read: impl FnMut(Node<'t, 'a>, &mut Report) -> Option<T>,
) -> Vec<T> {
    if node.items().count() > MAX_LISTED {
        report.fault(node, format_args!("more than {MAX_LISTED} are listed"));
    }
    read::list(node, report, read)
}

/// Reads a name that browsers may call the dashboard by.
fn host(node: Node<'_, '_>, report: &mut Report) -> Option<String> {
    let text = read::text(node, report)?;
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_string());
    }
    let name = read::hostname(node, report)?;
    Some(name.to_string().trim_end_matches('.').to_owned())
}

/// Checks `admin.tokens`.
fn tokens(node: Node<'_, '_>, files: &Files, report: &mut Report) -> Vec<TokenFile> {
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    bounded(node, report, |item, report| {
        let fields = fields(item, &v1::TOKEN, report)?;
        let name = fields.get("name").and_then(|node| token_name(node, report));
        let file = fields.get("file");
        let path = file.and_then(|node| files.path(node, report));
        let role = fields
            .get("role")
            .and_then(|node| read::word(node, v1::ROLES, report));
        let (name, path) = (name?, path?);
        if !names.insert(name.clone()) {
            report.fault(item, format_args!("there are two tokens `{name}`; put a second hash into the file to change a token without a gap"));
        }
        if !paths.insert(path.clone()) {
            report.fault(file?, "another token has this file already");
        }
        Some(TokenFile {
            name,
            path,
            role: match role? {
                "operator" => Role::Operator,
                "peer" => Role::Peer,
                _ => Role::Viewer,
            },
        })
    })
}

/// Reads the name of a token.
fn token_name(node: Node<'_, '_>, report: &mut Report) -> Option<String> {
    let name = read::label(node, report)?;
    if name.len() > MAX_NAME {
        report.fault(node, format_args!("longer than {MAX_NAME} characters"));
        return None;
    }
    Some(name.to_owned())
}

/// Checks `admin.oidc`.
fn oidc(node: Node<'_, '_>, files: &Files, report: &mut Report) -> Option<OidcConfig> {
    let fields = fields(node, &v1::OIDC, report)?;
    let issuer = fields.get("issuer").and_then(|node| issuer(node, report));
    let audience = fields
        .get("audience")
        .and_then(|node| read::label(node, report));
    let mut path = |name| fields.get(name).and_then(|node| files.path(node, report));
    let (jwks_file, ca) = (path("jwksFile"), path("ca"));
    let roles_claim = match fields.get("rolesClaim") {
        Some(node) => read::label(node, report),
        None => Some("roles"),
    };
    let mut values = |name| {
        let read = |node| bounded(node, report, |item, report| value(item, report));
        fields.get(name).map_or_else(Vec::new, read)
    };
    let (viewer, operator) = (values("viewer"), values("operator"));
    if fields.get("viewer").is_none() && fields.get("operator").is_none() {
        report.fault(
            node,
            "`viewer` and `operator` say nothing, so nobody would have a role: list values of the claim, such as `operator: [sre]`",
        );
    }
    if let (Some(_), Some(node)) = (&jwks_file, fields.get("ca")) {
        report.warn(node, "has no effect beside `jwksFile`: nobody is asked");
    }
    Some(OidcConfig {
        issuer: issuer?,
        audience: audience?.to_owned(),
        jwks_file,
        ca,
        roles_claim: roles_claim?.to_owned(),
        viewer,
        operator,
    })
}

/// Reads a value of a claim: groups may have spaces in their names.
fn value(node: Node<'_, '_>, report: &mut Report) -> Option<String> {
    let text = read::text(node, report)?;
    if text.is_empty() || text.len() > 253 || text.chars().any(char::is_control) {
        report.fault(node, "1 to 253 printable characters are wanted");
        return None;
    }
    Some(text.to_owned())
}

/// Reads the URL of a provider.
fn issuer(node: Node<'_, '_>, report: &mut Report) -> Option<String> {
    let text = read::label(node, report)?;
    let host = text.strip_prefix("https://").unwrap_or_default();
    let has_host = !host.is_empty() && !host.starts_with(['/', ':']);
    if !has_host || text.contains(['?', '#', '@', '\\']) {
        report.fault(
            node,
            format_args!("`{text}`: a URL such as https://login.example.com is wanted, without `?`, `#` and `@`"),
        );
        return None;
    }
    Some(text.to_owned())
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
        let files = Files::new(std::path::Path::new("/etc/meridian/meridian.yaml"));
        let config = read((None, None), (None, &[]), &files, &mut Report::default());
        assert!(
            config
                .admin
                .iter()
                .all(|address| address.ip().is_loopback())
        );
        assert!(config.metrics.is_empty() && config.tls.is_none());
        assert_eq!(config.access, AccessConfig::default());
        assert_eq!(config.access.anonymous, Anonymous::Viewer);
    }
}
