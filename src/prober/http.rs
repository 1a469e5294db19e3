//! `http` and `https`: one request over a connection of our own; the only file that knows hyper's client.
//!
//! Redirects are not followed, nothing is decompressed, no body is kept. A head may have 100 fields and 32 KiB.

use std::convert::Infallible;
use std::net::{Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONNECTION, HOST, USER_AGENT};
use hyper::http::uri::Authority;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::connect::{connect, of_source};
use super::tls::Tls;
use crate::health::ProbeError;
use crate::model::{HttpCheck, StatusRange};

/// The largest head, with room for cookies and policies; 512 probes at once hold 16 MiB at most.
const HEAD_OCTETS: usize = 32 * 1024;

/// The most fields of a head.
const HEAD_FIELDS: usize = 100;

/// How much of a body is read and thrown away, so that a server with a short one is not cut off in the middle of it.
const BODY_OCTETS: usize = 16 * 1024;

/// How long that may take; the probe has succeeded by then.
const BODY_TIME: Duration = Duration::from_millis(100);

/// What we call ourselves.
const AGENT: &str = concat!("meridian/", env!("CARGO_PKG_VERSION"));

/// Sends the request and judges the head of the reply. Gives the moment the head was there.
///
/// # Errors
///
/// [`ProbeError::Status`] for a code that is not expected, [`ProbeError::Protocol`] for what is not HTTP, a head that is too
/// large, or a path or host that cannot be sent; else as [`connect`] and [`Tls::handshake`].
pub(super) async fn probe(
    address: SocketAddr,
    check: &HttpCheck,
    tls: &Tls,
    deadline: Instant,
) -> Result<Instant, ProbeError> {
    let request = request(address, check).ok_or(ProbeError::Protocol)?;
    let stream = connect(address).await?;
    let Some(mode) = check.tls else {
        return exchange(stream, request, check, deadline).await;
    };
    let host = match &check.host {
        Some(host) => Some(name_of(host).ok_or(ProbeError::Protocol)?),
        None => None,
    };
    let stream = tls
        .handshake(stream, mode, host.as_deref(), address)
        .await?;
    exchange(stream, request, check, deadline).await
}

/// Writes the request; `None` when path or host hold what cannot be sent. The path is one: another form of target would speak
/// of another machine to a proxy.
fn request(address: SocketAddr, check: &HttpCheck) -> Option<Request<Empty<Bytes>>> {
    if !check.path.starts_with('/') {
        return None;
    }
    let method = if check.head {
        Method::HEAD
    } else {
        Method::GET
    };
    let request = Request::builder()
        .method(method)
        .uri(&*check.path)
        .header(USER_AGENT, AGENT)
        .header(ACCEPT, "*/*")
        .header(CONNECTION, "close");
    let request = match &check.host {
        Some(host) => request.header(HOST, authority(host)?.as_str()),
        None => request.header(HOST, address.to_string()),
    };
    request.body(Empty::new()).ok()
}

/// Reads a host: a name or an address, perhaps with a port. An IPv6 address alone gets the brackets that the header wants
/// (RFC 9110 s7.2, RFC 3986 s3.2.2).
fn authority(host: &str) -> Option<Authority> {
    let read = if host.parse::<Ipv6Addr>().is_ok() {
        format!("[{host}]").parse()
    } else {
        host.parse()
    };
    let authority: Authority = read.ok()?;
    (!authority.as_str().contains('@')).then_some(authority)
}

/// Gives the name of a host, its port left out.
fn name_of(host: &str) -> Option<String> {
    let authority = authority(host)?;
    let name = authority.host();
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    Some(bare.unwrap_or(name).to_owned())
}

/// Sends a request over a connection and judges the reply.
async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    request: Request<Empty<Bytes>>,
    check: &HttpCheck,
    deadline: Instant,
) -> Result<Instant, ProbeError> {
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_OCTETS)
        .max_headers(HEAD_FIELDS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| of_hyper(&error))?;
    // The connection's own result says nothing that the reply does not: when it ends, what waits for the reply is told.
    let mut connection = pin!(async {
        let _ = connection.await;
        std::future::pending::<Infallible>().await
    });
    // Cancel-safe: the connection is polled on below, and a reply that is not awaited any more is not wanted.
    let reply = tokio::select! {
        reply = sender.send_request(request) => reply.map_err(|error| of_hyper(&error))?,
        never = &mut connection => match never {},
    };
    judge(reply.status(), check)?;
    let ended = Instant::now();
    let rest = discard(reply.into_body());
    let limit = deadline.min(ended + BODY_TIME);
    // Cancel-safe: nothing of it is used.
    tokio::select! {
        () = rest => {}
        () = tokio::time::sleep_until(limit) => {}
        never = &mut connection => match never {},
    }
    Ok(ended)
}

fn judge(status: StatusCode, check: &HttpCheck) -> Result<(), ProbeError> {
    let code = status.as_u16();
    let expected = |range: &StatusRange| (range.first..=range.last).contains(&code);
    if check.expect.iter().any(expected) {
        Ok(())
    } else {
        Err(ProbeError::Status(code))
    }
}

/// Reads a short body to its end and gives up on a long one.
async fn discard(mut body: Incoming) {
    let mut octets = 0;
    while let Some(Ok(frame)) = body.frame().await {
        octets += frame.data_ref().map_or(0, Bytes::len);
        if octets > BODY_OCTETS {
            return;
        }
    }
}

fn of_hyper(error: &hyper::Error) -> ProbeError {
    if error.is_parse() || error.is_user() {
        return ProbeError::Protocol;
    }
    of_source(error).unwrap_or(ProbeError::Broken)
}
