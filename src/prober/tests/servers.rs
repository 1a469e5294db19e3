//! Servers that misbehave, each on a loopback port of its own, gone when dropped.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::model::{Check, HttpCheck, MonitorSpec, Origin, StatusRange, Target, TcpCheck, TlsMode};

/// A reply that every check should like.
pub(super) const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A listening server; dropped, it stops at once and its connections with it.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    _tasks: JoinSet<()>,
}

/// Serves every connection with `handle`, on an address that the system chooses the port of.
pub(super) async fn serve_at<F, T>(address: SocketAddr, handle: F) -> Server
where
    F: Fn(TcpStream) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(handle(stream));
            while connections.try_join_next().is_some() {}
        }
    });
    Server {
        address,
        _tasks: tasks,
    }
}

pub(super) async fn serve<F, T>(handle: F) -> Server
where
    F: Fn(TcpStream) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    serve_at((Ipv4Addr::LOCALHOST, 0).into(), handle).await
}

/// Reads a request's head; what ends early gives what there was.
pub(super) async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(octet) => head.push(octet),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// Reads a request and answers with fixed octets.
pub(super) async fn reply(mut stream: impl AsyncRead + AsyncWrite + Unpin, octets: &[u8]) {
    head(&mut stream).await;
    let _ = stream.write_all(octets).await;
    let _ = stream.shutdown().await;
}

/// A certificate with its key.
pub(super) struct Identity {
    pub(super) leaf: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

/// Makes a self-signed certificate for a name or address; `expired` in 2020.
pub(super) fn identity(name: &str, expired: bool) -> Identity {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    if expired {
        params.not_before = rcgen::date_time_ymd(2019, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    }
    Identity {
        leaf: params.self_signed(&key).unwrap().der().clone(),
        key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
    }
}

/// Serves `GOOD` over TLS.
pub(super) async fn serve_tls(identity: &Identity) -> Server {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.leaf.clone()], identity.key.clone_key())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    serve(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                reply(stream, GOOD).await;
            }
        }
    })
    .await
}

/// A monitor that is quick to judge: interval 100 ms, rise and fall 2.
pub(super) fn target(address: SocketAddr, check: Check, timeout: Duration) -> Target {
    Target {
        address,
        spec: Arc::new(MonitorSpec {
            check,
            interval: Duration::from_millis(100).max(timeout),
            timeout,
            rise: 2,
            fall: 2,
            origin: Origin::Operator,
        }),
    }
}

/// The same on a tenant's word.
pub(super) fn tenants(target: &Target) -> Target {
    Target {
        address: target.address,
        spec: Arc::new(MonitorSpec {
            origin: Origin::Tenant,
            ..MonitorSpec::clone(&target.spec)
        }),
    }
}

pub(super) fn tcp(port: u16, send: &[u8], expect: &[u8]) -> Check {
    Check::Tcp(TcpCheck {
        port,
        send: send.into(),
        expect: expect.into(),
    })
}

pub(super) fn http(port: u16, expect: &[(u16, u16)]) -> HttpCheck {
    let range = |&(first, last): &(u16, u16)| StatusRange { first, last };
    HttpCheck {
        tls: None,
        port,
        path: "/healthz?deep=1".into(),
        host: None,
        head: false,
        expect: expect.iter().map(range).collect(),
    }
}

pub(super) fn https(port: u16, mode: TlsMode, host: Option<&str>) -> HttpCheck {
    HttpCheck {
        tls: Some(mode),
        host: host.map(Into::into),
        ..http(port, &[(200, 399)])
    }
}

/// An address that refuses: nothing of ours listens on this port in 127/8, and the number tells them apart.
pub(super) fn refusing(number: u16) -> SocketAddr {
    let [high, low] = number.to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 77, high, low)), 9)
}
