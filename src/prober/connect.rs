//! Connecting, and naming what went wrong with a socket.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use tokio::net::{TcpSocket, TcpStream};
use tracing::debug;

use crate::health::ProbeError;

/// Connects. The socket is closed by a reset, whatever way its probe ends: thousands of probes a second would else leave tens
/// of thousands of ports in TIME_WAIT. What the target sent is read or of no interest by then.
///
/// # Errors
///
/// See [`of_io`].
pub(super) async fn connect(address: SocketAddr) -> Result<TcpStream, ProbeError> {
    let connected = async {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_zero_linger()?;
        // A request is one small write: nothing is gained by waiting for more.
        socket.set_nodelay(true)?;
        socket.connect(address).await
    };
    connected.await.map_err(|error| {
        // The same words come from afar (ICMP) and from this node's own table of routes.
        let unreachable = matches!(
            error.kind(),
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable
        );
        if unreachable && !has_route(address) {
            debug!(%address, %error, "No route to target; probe says nothing");
            return ProbeError::Local;
        }
        of_io(&error)
    })
}

/// Tells whether this node knows a way to an address, without a packet: connecting a UDP socket looks up the route only. "Not
/// seeing is not down": a node without IPv6 must not call every IPv6 endpoint dead.
fn has_route(address: SocketAddr) -> bool {
    open(address.ip()).is_ok_and(|socket| socket.connect(address).is_ok())
}

/// Tells whether an address is one of this node's, without a packet: the way to it begins at itself. `None`: there is no socket
/// to find out with.
pub(super) fn is_here(address: IpAddr) -> Option<bool> {
    // All of 127.0.0.0/8 is here, and the way there begins at 127.0.0.1.
    if address.is_loopback() {
        return Some(true);
    }
    let socket = open(address).ok()?;
    let source = socket.connect((address, ANY_PORT));
    let source = source.and_then(|()| socket.local_addr());
    Some(source.is_ok_and(|source| source.ip() == address))
}

/// A port to look up routes with: no packet goes there.
const ANY_PORT: u16 = 9;

/// Opens a UDP socket of the family of an address.
fn open(address: IpAddr) -> io::Result<UdpSocket> {
    let unspecified: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((unspecified, 0))
}

/// Names an error of a socket.
pub(super) fn of_io(error: &io::Error) -> ProbeError {
    use io::ErrorKind;
    if error
        .get_ref()
        .is_some_and(|inner| inner.is::<rustls::Error>())
    {
        return ProbeError::Tls;
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => ProbeError::Refused,
        ErrorKind::TimedOut => ProbeError::Timeout,
        ErrorKind::AddrNotAvailable
        | ErrorKind::AddrInUse
        | ErrorKind::NetworkDown
        | ErrorKind::OutOfMemory
        | ErrorKind::PermissionDenied => local(error),
        // These have no stable kind of their own.
        _ if error
            .raw_os_error()
            .is_some_and(|code| OF_THIS_NODE.contains(&code)) =>
        {
            local(error)
        }
        _ => ProbeError::Broken,
    }
}

/// Linux: ENFILE and EMFILE (too many open files), EAFNOSUPPORT (no IPv6 here), ENOBUFS.
const OF_THIS_NODE: [i32; 4] = [23, 24, 97, 105];

/// Linux: ENOMEM, ENFILE and EMFILE (too many open files).
const SHORTAGES: [i32; 3] = [12, 23, 24];

/// Tells whether an error says that this node lacks something just now.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    error
        .raw_os_error()
        .is_some_and(|code| SHORTAGES.contains(&code))
}

fn local(error: &io::Error) -> ProbeError {
    debug!(%error, "This node could not probe");
    ProbeError::Local
}

/// Finds the error of a socket behind another error, and names it.
pub(super) fn of_source(error: &(dyn Error + 'static)) -> Option<ProbeError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(of_io(error));
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_this_node_are_not_the_targets() {
        // Linux numbers: EPERM, ENOMEM, EACCES, ENFILE, EMFILE, EPIPE, EAFNOSUPPORT, EADDRINUSE, EADDRNOTAVAIL, ENETDOWN, ENETUNREACH,
        // ECONNRESET, ENOBUFS, ETIMEDOUT, ECONNREFUSED, EHOSTUNREACH.
        let table = [
            (1, ProbeError::Local),
            (12, ProbeError::Local),
            (13, ProbeError::Local),
            (23, ProbeError::Local),
            (24, ProbeError::Local),
            (32, ProbeError::Broken),
            (97, ProbeError::Local),
            (98, ProbeError::Local),
            (99, ProbeError::Local),
            (100, ProbeError::Local),
            (101, ProbeError::Broken),
            (104, ProbeError::Broken),
            (105, ProbeError::Local),
            (110, ProbeError::Timeout),
            (111, ProbeError::Refused),
            (113, ProbeError::Broken),
        ];
        for (code, expected) in table {
            let error = io::Error::from_raw_os_error(code);
            assert_eq!(of_io(&error), expected, "{code}: {error}");
        }
        let tls = io::Error::other(rustls::Error::DecryptError);
        assert_eq!(of_io(&tls), ProbeError::Tls);
        assert_eq!(of_source(&tls), Some(ProbeError::Tls));
        assert_eq!(of_source(&std::fmt::Error), None);
    }

    #[test]
    fn this_node_knows_its_own_addresses() {
        for (address, expected) in [
            ("127.0.0.1", true),
            ("127.1.2.3", true),
            ("::1", true),
            // Documentation addresses are nobody's (RFC 5737, RFC 3849).
            ("192.0.2.1", false),
            ("2001:db8::1", false),
        ] {
            let is_here = is_here(address.parse().unwrap());
            assert_eq!(is_here, Some(expected), "{address}");
        }
        // Whatever address this machine would go out from is one of its own.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        if socket.connect("192.0.2.1:9").is_ok() {
            let source = socket.local_addr().unwrap().ip();
            assert_eq!(is_here(source), Some(true), "{source}");
        }
    }

    #[test]
    fn routes_are_known_without_a_packet() {
        // A link-local address without its link leads nowhere.
        let table = [
            ("127.0.0.1:80", true),
            ("[::1]:80", true),
            ("[fe80::1]:80", false),
        ];
        for (address, expected) in table {
            assert_eq!(has_route(address.parse().unwrap()), expected, "{address}");
        }
    }
}
