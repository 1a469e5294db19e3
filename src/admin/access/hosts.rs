//! By which names a browser may call: what keeps a stranger's page from speaking through its visitor (DNS rebinding, CSRF).

use std::net::{IpAddr, SocketAddr};

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use crate::admin::tls::Certificates;

/// The connection that a request came over; an extension of every request.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Surface {
    /// Who connected.
    pub(in crate::admin) from: IpAddr,
    /// Where they connected to.
    pub(in crate::admin) local: SocketAddr,
    /// The listener is bound to a loopback address.
    pub(in crate::admin) is_loopback: bool,
    /// What TLS shows; `None`: no TLS.
    pub(in crate::admin) tls: Option<Certificates>,
}

/// A host as `Host` and `Origin` write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostPort<'a> {
    /// Name or address, without brackets and without the dot at its end.
    name: &'a str,
    port: Option<u16>,
}

impl<'a> HostPort<'a> {
    /// Reads `name`, `name:port`, `address:port` and `[address]:port`; no user, no path.
    fn parse(text: &'a str) -> Option<Self> {
        let (name, rest) = if let Some(inside) = text.strip_prefix('[') {
            let (name, rest) = inside.split_once(']')?;
            name.parse::<std::net::Ipv6Addr>().ok()?;
            (name, rest)
        } else {
            text.split_at(text.find(':').unwrap_or(text.len()))
        };
        let port = match rest.strip_prefix(':') {
            Some(digits) => Some(digits.parse().ok()?),
            None if rest.is_empty() => None,
            None => return None,
        };
        let fits = |octet: u8| octet.is_ascii_alphanumeric() || b"-._:".contains(&octet);
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_name = !name.is_empty() && name.len() <= 253 && name.bytes().all(fits);
        is_name.then_some(Self { name, port })
    }

    /// Gives the address, if it is one.
    fn address(&self) -> Option<IpAddr> {
        self.name
            .parse::<IpAddr>()
            .ok()
            .map(|address| address.to_canonical())
    }

    /// Tells whether it names this machine alone.
    pub(super) fn is_loopback(&self) -> bool {
        self.name.eq_ignore_ascii_case("localhost")
            || self.address().is_some_and(|address| address.is_loopback())
    }

    /// Tells whether both name the same place, when a port left out is `default`.
    fn is_same(&self, other: &Self, default: u16) -> bool {
        self.name.eq_ignore_ascii_case(other.name)
            && self.port.unwrap_or(default) == other.port.unwrap_or(default)
    }
}

/// Finds the host that a request is for: `Host`, and the target where it has one too. `None` when there is none, or more than
/// one.
pub(super) fn host(request: &Parts) -> Option<HostPort<'_>> {
    let mut written = request.headers.get_all(header::HOST).iter();
    let host = HostPort::parse(written.next()?.to_str().ok()?)?;
    let target = match request.uri.authority() {
        Some(authority) => HostPort::parse(authority.as_str())?,
        None => host.clone(),
    };
    (written.next().is_none() && target == host).then_some(host)
}

/// Tells whether the dashboard may be called by this name. The port does not matter: it may have been forwarded.
pub(super) fn is_ours(host: &HostPort<'_>, surface: &Surface, hosts: &[String]) -> bool {
    let local = surface.local.ip().to_canonical();
    // Only browsers on this machine get here by a loopback address, whatever a name resolves to elsewhere.
    let is_loopback = local.is_loopback() && host.is_loopback();
    let is_local = host.address() == Some(local);
    let is_listed = hosts.iter().any(|ours| {
        ours.eq_ignore_ascii_case(host.name)
            || host
                .address()
                .is_some_and(|address| ours.parse() == Ok(address))
    });
    let is_certified = || {
        let certificates = surface.tls.as_ref();
        certificates.is_some_and(|certificates| certificates.cover(host.name))
    };
    is_loopback || is_local || is_listed || is_certified()
}

/// Tells whether a request says it comes from a page of ours; `None` when it says nothing of where it comes from.
///
/// On a listener without TLS `https` is accepted too: that is a proxy on this machine.
pub(super) fn is_same_origin(
    headers: &HeaderMap,
    host: &HostPort<'_>,
    surface: &Surface,
) -> Option<bool> {
    let origins: Vec<_> = headers.get_all(header::ORIGIN).iter().collect();
    let [origin] = origins[..] else {
        if !origins.is_empty() {
            return Some(false);
        }
        let site = headers.get("sec-fetch-site")?;
        // `none` is a person who typed the address, which sends no form.
        return Some(site == "same-origin");
    };
    let origin = origin.to_str().unwrap_or_default();
    let (rest, port) = match origin.split_once("://") {
        Some(("https", rest)) => (rest, 443),
        Some(("http", rest)) if surface.tls.is_none() => (rest, 80),
        _ => return Some(false),
    };
    let origin = HostPort::parse(rest);
    Some(origin.is_some_and(|origin| origin.is_same(host, port)))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn surface(local: &str) -> Surface {
        let local: SocketAddr = local.parse().unwrap();
        Surface {
            from: local.ip(),
            local,
            is_loopback: local.ip().is_loopback(),
            tls: None,
        }
    }

    fn is_ours_by(host: &str, local: &str) -> bool {
        let hosts = ["dash.example.com".to_owned(), "2001:db8::7".to_owned()];
        HostPort::parse(host).is_some_and(|host| is_ours(&host, &surface(local), &hosts))
    }

    #[test]
    fn hosts_are_own_addresses_listed_names_and_localhost() {
        for (host, local, ours) in [
            ("127.0.0.1:8053", "127.0.0.1:8053", true),
            ("127.0.0.1", "127.0.0.1:8053", true),
            ("localhost:1234", "127.0.0.1:8053", true),
            ("LOCALHOST.", "127.0.0.1:8053", true),
            ("[::1]:8053", "[::1]:8053", true),
            ("[2001:db8::7]", "127.0.0.1:8053", true),
            ("[2001:0db8::0007]:1", "127.0.0.1:8053", true),
            ("Dash.example.com:443", "127.0.0.1:8053", true),
            ("192.0.2.1:8053", "192.0.2.1:8053", true),
            ("localhost:8053", "192.0.2.1:8053", false),
            ("127.0.0.1:8053", "192.0.2.1:8053", false),
            ("192.0.2.2:8053", "192.0.2.1:8053", false),
            ("evil.example:8053", "127.0.0.1:8053", false),
            ("localhost.evil.example", "127.0.0.1:8053", false),
            ("127.0.0.1.evil.example", "127.0.0.1:8053", false),
            ("dash.example.com.evil.example", "127.0.0.1:8053", false),
            ("user@localhost", "127.0.0.1:8053", false),
            ("localhost:x", "127.0.0.1:8053", false),
            ("localhost:65536", "127.0.0.1:8053", false),
            ("localhost/", "127.0.0.1:8053", false),
            ("[::1", "[::1]:8053", false),
            ("[localhost]", "[::1]:8053", false),
            ("", "127.0.0.1:8053", false),
        ] {
            assert_eq!(is_ours_by(host, local), ours, "{host} at {local}");
        }
    }

    #[test]
    fn a_request_is_for_one_host() {
        let request = |target: &str, hosts: &[&str]| {
            let mut builder = Request::builder().uri(target);
            for host in hosts {
                builder = builder.header(header::HOST, *host);
            }
            host(&builder.body(()).unwrap().into_parts().0).is_some()
        };
        assert!(request("/", &["localhost"]));
        assert!(request("http://localhost/", &["localhost"]));
        assert!(!request("/", &[]));
        assert!(!request("/", &["localhost", "localhost"]));
        assert!(!request("http://evil.example/", &["localhost"]));
    }

    #[test]
    fn origins() {
        let same = |pairs: &[(&'static str, &str)], host: &str| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().unwrap());
            }
            let host = HostPort::parse(host).unwrap();
            is_same_origin(&headers, &host, &surface("127.0.0.1:8053"))
        };
        for (origin, host, result) in [
            ("http://localhost:8053", "localhost:8053", true),
            ("http://localhost", "localhost:80", true),
            ("https://dash.example.com", "dash.example.com:443", true),
            ("https://dash.example.com", "dash.example.com", true),
            ("http://localhost:8054", "localhost:8053", false),
            ("http://127.0.0.1:8053", "localhost:8053", false),
            ("http://evil.example", "localhost:8053", false),
            (
                "http://localhost:8053.evil.example",
                "localhost:8053",
                false,
            ),
            ("http://evil@localhost:8053", "localhost:8053", false),
            ("ftp://localhost:8053", "localhost:8053", false),
            ("null", "localhost:8053", false),
            ("", "localhost:8053", false),
        ] {
            assert_eq!(same(&[("origin", origin)], host), Some(result), "{origin}");
        }
        assert_eq!(same(&[], "localhost"), None);
        for (site, result) in [("same-origin", true), ("same-site", false), ("none", false)] {
            assert_eq!(same(&[("sec-fetch-site", site)], "localhost"), Some(result));
        }
        let two = [
            ("origin", "http://localhost"),
            ("origin", "http://localhost"),
        ];
        assert_eq!(same(&two, "localhost"), Some(false));
    }
}
