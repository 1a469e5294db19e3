//! One probe against every kind of server.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::RootCertStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::servers::{
    GOOD, Server, head, http, https, identity, refusing, reply, serve, serve_at, serve_tls, target,
    tcp,
};
use crate::health::ProbeError;
use crate::model::{Check, HttpCheck, TlsMode};
use crate::prober::probe::probe;
use crate::prober::tls::{Tls, sha256};

/// Long enough for a good probe on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// For probes that are to run into it.
const SHORT: Duration = Duration::from_millis(200);

type Result = std::result::Result<(), ProbeError>;

/// Probes once; again when this machine stood still meanwhile, which is nothing the table is about.
async fn result(address: SocketAddr, check: Check, timeout: Duration) -> Result {
    let target = target(address, check, timeout);
    for _ in 0..5 {
        let begun = Instant::now();
        let result = probe(&target, &Tls::default()).await;
        assert!(begun.elapsed() < timeout + PATIENCE, "{result:?}");
        if result != Err(ProbeError::Local) {
            return result.map(|took| assert!(took <= begun.elapsed()));
        }
    }
    Err(ProbeError::Local)
}

/// Gives the timeout for a probe with this result.
fn patience(expected: Result) -> Duration {
    if expected == Err(ProbeError::Timeout) {
        SHORT
    } else {
        PATIENCE
    }
}

/// Probes a server that answers with fixed octets.
async fn http_result(octets: &'static [u8], expect: &[(u16, u16)]) -> Result {
    let server = serve(move |stream| reply(stream, octets)).await;
    let check = http(server.address.port(), expect);
    result(server.address, Check::Http(check), PATIENCE).await
}

/// What is answered, what is expected, what the probe says.
type Row = (&'static [u8], &'static [(u16, u16)], Result);

#[tokio::test]
async fn status_codes_are_judged_as_configured() {
    const NORMAL: &[(u16, u16)] = &[(200, 399)];
    const MOVED: &[u8] = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\n\r\n";
    let table: &[Row] = &[
        (GOOD, NORMAL, Ok(())),
        (GOOD, &[(204, 204)], Err(ProbeError::Status(200))),
        (GOOD, &[(500, 599), (200, 200)], Ok(())),
        (
            b"HTTP/1.1 503 Busy\r\n\r\n",
            NORMAL,
            Err(ProbeError::Status(503)),
        ),
        (b"HTTP/1.1 503 Busy\r\n\r\n", &[(503, 503)], Ok(())),
        (
            b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n",
            NORMAL,
            Err(ProbeError::Status(404)),
        ),
        (MOVED, &[(200, 299)], Err(ProbeError::Status(302))),
        (MOVED, &[(302, 302)], Ok(())),
        (b"HTTP/1.0 200 OK\r\n\r\nold", NORMAL, Ok(())),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            NORMAL,
            Ok(()),
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\x1f\x8bgarbage",
            NORMAL,
            Ok(()),
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\ncut",
            NORMAL,
            Ok(()),
        ),
        (
            b"SSH-2.0-OpenSSH_9.9\r\n",
            NORMAL,
            Err(ProbeError::Protocol),
        ),
        (b"200 OK\r\n\r\n", NORMAL, Err(ProbeError::Protocol)),
        (
            b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
            NORMAL,
            Err(ProbeError::Protocol),
        ),
        (b"HTTP/1.1 200 OK\r\nhalf", NORMAL, Err(ProbeError::Broken)),
        (b"", NORMAL, Err(ProbeError::Broken)),
    ];
    for (octets, expect, expected) in table {
        let got = http_result(octets, expect).await;
        assert_eq!(got, *expected, "{}", String::from_utf8_lossy(octets));
    }
}

#[tokio::test]
async fn the_request_is_what_is_configured() {
    let (heads, mut seen) = mpsc::channel(8);
    let server = serve(move |mut stream| {
        let heads = heads.clone();
        async move {
            heads.send(head(&mut stream).await).await.unwrap();
            let _ = stream.write_all(GOOD).await;
        }
    })
    .await;
    let plain = http(server.address.port(), &[(200, 200)]);
    let named = HttpCheck {
        head: true,
        host: Some("www.example.com".into()),
        ..plain.clone()
    };
    let agent = format!("user-agent: meridian/{}\r\n", env!("CARGO_PKG_VERSION"));
    let of_address = format!("host: {}\r\n", server.address);
    let literal = HttpCheck {
        host: Some("2001:db8::1".into()),
        ..plain.clone()
    };
    let table = [
        (
            literal,
            "GET /healthz?deep=1 HTTP/1.1\r\n",
            "host: [2001:db8::1]\r\n",
        ),
        (
            plain,
            "GET /healthz?deep=1 HTTP/1.1\r\n",
            of_address.as_str(),
        ),
        (
            named,
            "HEAD /healthz?deep=1 HTTP/1.1\r\n",
            "host: www.example.com\r\n",
        ),
    ];
    for (check, line, host) in table {
        assert_eq!(
            result(server.address, Check::Http(check), PATIENCE).await,
            Ok(())
        );
        let head = seen.recv().await.unwrap();
        assert!(head.starts_with(line), "{head}");
        for field in [host, &agent, "connection: close\r\n"] {
            assert!(head.contains(field), "{field} in {head}");
        }
    }
    // What could smuggle a second request, or speak of another machine to a proxy, is never sent.
    for (path, host) in [
        ("/a\r\nx: y", None),
        ("/a\nx: y", None),
        ("/a b", None),
        ("/\u{1}", None),
        ("/", Some("a\r\nx: y")),
        ("/", Some("a\nx: y")),
        ("/", Some("a\0b")),
        ("/", Some("a b")),
        ("/", Some("a\tb")),
        ("/", Some("a/b")),
        ("/", Some("user@a")),
        ("/", Some("")),
        ("no slash", None),
        ("", None),
        ("*", None),
        ("http://169.254.169.254/", None),
        ("file:///etc/passwd", None),
    ] {
        let check = HttpCheck {
            path: path.into(),
            host: host.map(Into::into),
            ..http(server.address.port(), &[(200, 200)])
        };
        let got = result(server.address, Check::Http(check), PATIENCE).await;
        assert_eq!(got, Err(ProbeError::Protocol), "{path:?} {host:?}");
    }
    assert!(seen.try_recv().is_err());
}

#[tokio::test]
async fn redirects_lead_nowhere() {
    let reached = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reached);
    let elsewhere = serve(move |stream| {
        count.fetch_add(1, Ordering::SeqCst);
        reply(stream, GOOD)
    })
    .await;
    let check = |server: &Server, expect| Check::Http(http(server.address.port(), expect));
    for (code, judged) in [
        (301, Ok(())),
        (302, Ok(())),
        (303, Ok(())),
        (307, Ok(())),
        (308, Ok(())),
        (300, Ok(())),
        (201, Err(ProbeError::Status(201))),
    ] {
        let location = format!(
            "HTTP/1.1 {code} Go\r\nlocation: http://{0}/\r\nrefresh: 0; url=http://{0}/\r\ncontent-length: 0\r\n\r\n",
            elsewhere.address
        );
        let server = serve(move |stream| {
            let location = location.clone();
            async move { reply(stream, location.as_bytes()).await }
        })
        .await;
        let got = result(server.address, check(&server, &[(300, 399)]), PATIENCE).await;
        assert_eq!(got, judged, "{code}");
    }
    assert_eq!(reached.load(Ordering::SeqCst), 0);
    // It can be reached: the probe that asks it is the only one that does.
    let direct = result(
        elsewhere.address,
        check(&elsewhere, &[(200, 200)]),
        PATIENCE,
    )
    .await;
    assert_eq!((direct, reached.load(Ordering::SeqCst)), (Ok(()), 1));
}

/// Serves a connection in one of the ways that cost a careless client time or memory.
async fn misbehave(mut stream: TcpStream, way: &'static str, written: Arc<AtomicUsize>) {
    let mut write = async |octets: &[u8]| {
        let result = stream.write_all(octets).await;
        written.fetch_add(octets.len(), Ordering::Relaxed);
        result
    };
    match way {
        "hangs" => std::future::pending().await,
        "resets" => stream.set_zero_linger().unwrap(),
        "closes" => {}
        "one octet a while" => {
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            for octet in GOOD.iter().cycle() {
                ticks.tick().await;
                if write(&[*octet]).await.is_err() {
                    return;
                }
            }
        }
        "endless body" => {
            let _ = write(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while write(&[b'x'; 65_536]).await.is_ok() {}
        }
        "huge header" => {
            let _ = write(b"HTTP/1.1 200 OK\r\nx: ").await;
            for _ in 0..1600 {
                if write(&[b'x'; 65_536]).await.is_err() {
                    return;
                }
            }
        }
        "many headers" => {
            let _ = write(b"HTTP/1.1 200 OK\r\n").await;
            while write(b"x: y\r\n").await.is_ok() {}
        }
        "endless 100s" => while write(b"HTTP/1.1 100 Continue\r\n\r\n").await.is_ok() {},
        _ => panic!("{way}"),
    }
}

/// What loopback sockets may swallow before their writer notices that nobody reads.
const SOCKET_BUFFERS: usize = 16 << 20;

#[tokio::test]
async fn misbehaving_servers_cost_a_bounded_time_and_memory() {
    let table = [
        ("hangs", Err(ProbeError::Timeout)),
        ("resets", Err(ProbeError::Broken)),
        ("closes", Err(ProbeError::Broken)),
        ("one octet a while", Err(ProbeError::Timeout)),
        ("endless body", Ok(())),
        ("huge header", Err(ProbeError::Protocol)),
        ("many headers", Err(ProbeError::Protocol)),
        ("endless 100s", Err(ProbeError::Timeout)),
    ];
    for (way, expected) in table {
        let written = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&written);
        let server = serve(move |stream| misbehave(stream, way, Arc::clone(&count))).await;
        let check = Check::Http(http(server.address.port(), &[(200, 399)]));
        let got = result(server.address, check, patience(expected)).await;
        assert_eq!(got, expected, "{way}");
        if way == "huge header" || way == "endless body" {
            let octets = written.load(Ordering::Relaxed);
            assert!(octets < SOCKET_BUFFERS, "{way}: {octets} octets were taken");
        }
    }
}

#[tokio::test]
async fn refused_is_refused() {
    for check in [tcp(9, b"", b""), Check::Http(http(9, &[(200, 200)]))] {
        assert_eq!(
            result(refusing(1), check, PATIENCE).await,
            Err(ProbeError::Refused)
        );
    }
}

#[tokio::test]
async fn both_families_and_their_names_for_themselves() {
    for address in [
        (Ipv6Addr::LOCALHOST, 0).into(),
        SocketAddr::from(([127, 0, 0, 9], 0)),
    ] {
        let server = serve_at(address, |stream| reply(stream, GOOD)).await;
        let port = server.address.port();
        for check in [tcp(port, b"", b""), Check::Http(http(port, &[(200, 200)]))] {
            assert_eq!(
                result(server.address, check, PATIENCE).await,
                Ok(()),
                "{address}"
            );
        }
    }
}

/// Greets, then answers every octet with the same one.
async fn echo(mut stream: TcpStream) {
    let _ = stream.write_all(b"220 rea").await;
    let _ = stream.flush().await;
    let _ = stream.write_all(b"dy\r\n").await;
    let (mut read, mut write) = stream.split();
    let _ = tokio::io::copy(&mut read, &mut write).await;
}

/// Sends `count` times `x`, then `end`, then the end.
async fn babble(mut stream: TcpStream, count: usize) {
    let _ = stream.write_all(&vec![b'x'; count]).await;
    let _ = stream.write_all(b"end").await;
    let mut rest = Vec::new();
    let _ = stream.shutdown().await;
    let _ = stream.read_to_end(&mut rest).await;
}

/// A name, whom to talk to, what is sent, what is expected, what the probe says.
type Talk<'a> = (&'a str, &'a Server, &'a [u8], &'a [u8], Result);

#[tokio::test]
async fn tcp_talks() {
    let echo = serve(echo).await;
    let just_so = serve(|stream| babble(stream, 4093)).await;
    let too_far = serve(|stream| babble(stream, 4094)).await;
    let silent = serve(|stream| async move { drop(stream) }).await;
    let table: [Talk<'_>; 9] = [
        ("greeting", &echo, b"", b"220 ready", Ok(())),
        ("talk", &echo, b"ruok\n", b"ruok", Ok(())),
        ("send only", &echo, b"ruok\n", b"", Ok(())),
        ("never said", &echo, b"", b"imok", Err(ProbeError::Timeout)),
        ("last octet", &just_so, b"", b"xend", Ok(())),
        (
            "beyond 4096",
            &too_far,
            b"",
            b"end",
            Err(ProbeError::Protocol),
        ),
        (
            "longer than 4096",
            &too_far,
            b"",
            &[b'x'; 5000],
            Err(ProbeError::Protocol),
        ),
        (
            "other words",
            &just_so,
            b"",
            b"imok",
            Err(ProbeError::Protocol),
        ),
        ("nothing", &silent, b"", b"imok", Err(ProbeError::Broken)),
    ];
    for (name, server, send, expect, expected) in table {
        let check = tcp(server.address.port(), send, expect);
        assert_eq!(
            result(server.address, check, patience(expected)).await,
            expected,
            "{name}"
        );
    }
}

#[tokio::test]
async fn certificates_are_judged_as_configured() {
    const FAILS: Result = Err(ProbeError::Tls);
    let good = identity("www.example.com", false);
    let by_address = identity("127.0.0.1", false);
    let expired = identity("www.example.com", true);
    let mut anchors = RootCertStore::empty();
    for identity in [&good, &by_address, &expired] {
        anchors.add(identity.leaf.clone()).unwrap();
    }
    let trusting = Tls::trusting(anchors);
    let system = Tls::default();
    let pin = |octets| TlsMode::Pin(sha256(octets).unwrap());
    let www = Some("www.example.com");
    let table = [
        ("trusted", &trusting, &good, TlsMode::Verify, www, Ok(())),
        (
            "with port",
            &trusting,
            &good,
            TlsMode::Verify,
            Some("www.example.com:8443"),
            Ok(()),
        ),
        (
            "other name",
            &trusting,
            &good,
            TlsMode::Verify,
            Some("example.com"),
            FAILS,
        ),
        (
            "name for address",
            &trusting,
            &good,
            TlsMode::Verify,
            None,
            FAILS,
        ),
        (
            "address",
            &trusting,
            &by_address,
            TlsMode::Verify,
            None,
            Ok(()),
        ),
        ("expired", &trusting, &expired, TlsMode::Verify, www, FAILS),
        ("self-signed", &system, &good, TlsMode::Verify, www, FAILS),
        ("skip", &system, &good, TlsMode::Skip, www, Ok(())),
        (
            "skip, expired",
            &system,
            &expired,
            TlsMode::Skip,
            None,
            Ok(()),
        ),
        ("pin", &system, &good, pin(&good.leaf), None, Ok(())),
        (
            "pin, expired",
            &system,
            &expired,
            pin(&expired.leaf),
            None,
            Ok(()),
        ),
        ("other pin", &system, &good, pin(&expired.leaf), www, FAILS),
    ];
    for (name, tls, identity, mode, host, expected) in table {
        let server = serve_tls(identity).await;
        let check = https(server.address.port(), mode, host);
        let target = target(server.address, Check::Http(check), PATIENCE);
        let got = probe(&target, tls).await.map(|_| ());
        assert_eq!(got, expected, "{name}");
    }
}

#[tokio::test]
async fn what_is_not_tls_fails_as_what_it_is() {
    let plain = serve(|stream| reply(stream, GOOD)).await;
    let closing = serve(|stream| async move { drop(stream) }).await;
    let hanging = serve(|stream| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let speaking = serve(|mut stream: TcpStream| async move {
        let _ = stream.write_all(GOOD).await;
        let _ = stream.read_u8().await;
    })
    .await;
    let table = [
        ("clear text", &speaking, Err(ProbeError::Tls)),
        ("closing", &closing, Err(ProbeError::Broken)),
        ("hanging", &hanging, Err(ProbeError::Timeout)),
        ("waiting for a request", &plain, Err(ProbeError::Timeout)),
    ];
    for (name, server, expected) in table {
        let check = https(server.address.port(), TlsMode::Skip, None);
        let got = result(server.address, Check::Http(check), patience(expected)).await;
        assert_eq!(got, expected, "{name}");
    }
}

#[tokio::test]
async fn what_fails_while_this_node_stands_still_is_no_evidence() {
    // Servers that lose their patience with us: they close, or say so. Nothing else runs meanwhile: there is one thread, and
    // it stands still.
    for last_words in [&b""[..], b"HTTP/1.1 408 Request Timeout\r\n\r\n"] {
        let server = serve(move |mut stream: TcpStream| async move {
            head(&mut stream).await;
            std::thread::sleep(SHORT + Duration::from_millis(400));
            let _ = stream.write_all(last_words).await;
        })
        .await;
        let check = http(server.address.port(), &[(200, 200)]);
        let target = target(server.address, Check::Http(check), SHORT);
        let result = probe(&target, &Tls::default()).await;
        assert_eq!(result.err(), Some(ProbeError::Local), "{last_words:?}");
    }
}
