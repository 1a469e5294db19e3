//! Connecting, and naming what went wrong with a socket.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

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
    let unspecified: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    UdpSocket::bind(unspecified).is_ok_and(|socket| socket.connect(address).is_ok())
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
