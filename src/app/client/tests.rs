//! Tests of the client against servers that do what no node does.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::{Ask, Client, Fault, FaultKind, Much, Nodes, first, list};
use crate::app::args::{AccessArgs, ServerArg};

/// A server that gives everybody the same octets, then closes.
struct Server {
    url: String,
    asked: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

/// What a server does when somebody has asked.
enum Then {
    /// Closes.
    Close,
    /// Holds the connection.
    Hold,
}

impl Server {
    /// Serves over plain TCP.
    async fn plain(answer: Vec<u8>, then: Then) -> Self {
        Self::start(answer, then, None).await
    }

    /// Serves over TLS with a certificate of its own.
    async fn tls(answer: Vec<u8>, acceptor: TlsAcceptor) -> Self {
        Self::start(answer, Then::Close, Some(acceptor)).await
    }

    async fn start(answer: Vec<u8>, then: Then, tls: Option<TlsAcceptor>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut held = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                let mut head = [0; 4096];
                match &tls {
                    Some(tls) => {
                        let Ok(mut stream) = tls.accept(stream).await else {
                            continue;
                        };
                        let _ = stream.read(&mut head).await;
                        let _ = stream.write_all(&answer).await;
                        let _ = stream.shutdown().await;
                    }
                    None => {
                        let _ = stream.read(&mut head).await;
                        let _ = stream.write_all(&answer).await;
                        if let Then::Hold = then {
                            held.push(stream);
                        }
                    }
                }
            }
        });
        Self {
            url,
            asked,
            _task: task,
        }
    }
}

/// Makes an answer.
fn answer(status: &str, content_type: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Makes clients of some URLs.
fn nodes(urls: &[&str], token: Option<&Path>, ca: Option<&Path>) -> anyhow::Result<Nodes> {
    let servers: Vec<ServerArg> = urls.iter().map(|url| url.parse().unwrap()).collect();
    let access = AccessArgs {
        token_file: token.map(Path::to_owned),
        ca: ca.map(Path::to_owned),
    };
    Nodes::new(&servers, &access)
}

/// Asks one server for its status.
async fn ask(url: &str) -> Result<Value, FaultKind> {
    let nodes = nodes(&[url], None, None).unwrap();
    let client = nodes.each().first().unwrap();
    let said = client.get::<Value>(&Ask::of(["status"])).await;
    said.map_err(|fault| fault.kind)
}

/// Gives an address where nobody listens.
fn nowhere() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

#[tokio::test]
async fn answers_that_no_node_gives_are_named() {
    let problem = r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"there is no cluster x"}"#;
    let json = "application/problem+json";
    let not_meridian = |status, content_type: &str| FaultKind::NotMeridian {
        status,
        content_type: content_type.to_owned(),
    };
    let cases = [
        (
            answer("200 OK", "text/html; charset=utf-8", "<h1>It works!</h1>"),
            not_meridian(200, "text/html; charset=utf-8"),
        ),
        (
            answer("404 Not Found", "text/plain", "no"),
            not_meridian(404, "text/plain"),
        ),
        (
            answer("404 Not Found", json, problem),
            FaultKind::NotFound("there is no cluster x".to_owned()),
        ),
        (
            answer("401 Unauthorized", json, "{}"),
            FaultKind::Unauthorized {
                had_token: false,
                changes: false,
            },
        ),
        (
            answer("403 Forbidden", json, r#"{"detail":"role \u001b[31mpeer"}"#),
            FaultKind::Forbidden {
                detail: "role \u{fffd}[31mpeer".to_owned(),
                changes: false,
            },
        ),
        (
            answer("500 Internal Server Error", "text/html", "oh"),
            FaultKind::Failing {
                status: 500,
                detail: "Internal Server Error".to_owned(),
            },
        ),
        (
            b"HTTP/1.1 429 Too Many\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n".to_vec(),
            FaultKind::Busy {
                retry_after: Some(7),
            },
        ),
        (
            b"HTTP/1.1 302 Found\r\nlocation: https://elsewhere/\r\ncontent-length: 0\r\n\r\n"
                .to_vec(),
            FaultKind::Redirect("https://elsewhere/".to_owned()),
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
                .to_vec(),
            FaultKind::Cut,
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), FaultKind::NotHttp),
        (Vec::new(), FaultKind::NotHttp),
    ];
    for (answer, kind) in cases {
        let server = Server::plain(answer.clone(), Then::Close).await;
        let said = ask(&server.url).await;
        assert_eq!(said, Err(kind), "{}", String::from_utf8_lossy(&answer));
    }
    let garbage = Server::plain(answer("200 OK", "application/json", "{]"), Then::Close).await;
    let said = ask(&garbage.url).await.unwrap_err();
    assert!(said.to_string().contains("not understood"), "{said}");
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let mut body =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n".to_vec();
    body.resize((32 << 20) + 4096, b' ');
    let server = Server::plain(body, Then::Close).await;
    assert_eq!(ask(&server.url).await, Err(FaultKind::TooLarge));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_answer_is_not_waited_for_long() {
    for begun in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{",
    ] {
        let server = Server::plain(begun.to_vec(), Then::Hold).await;
        let asked = tokio::time::Instant::now();
        assert_eq!(ask(&server.url).await, Err(FaultKind::NoAnswer));
        assert!(asked.elapsed() <= std::time::Duration::from_secs(11));
    }
}

#[tokio::test]
async fn nobody_there() {
    let said = ask(&format!("http://{}", nowhere())).await;
    assert_eq!(said, Err(FaultKind::Refused));
    let words = FaultKind::Refused.to_string();
    assert!(
        words.contains("meridian run") && words.contains("admin.listen"),
        "{words}"
    );
    // A name of the reserved top level (RFC 6761) has no address anywhere.
    let said = ask("http://node.invalid:8053").await;
    assert_eq!(said, Err(FaultKind::NoSuchHost));
}

/// Makes a certificate for a name, and a server's side of it.
fn certified(name: &str) -> (String, TlsAcceptor) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let pem = certificate.pem();
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    (pem, TlsAcceptor::from(Arc::new(config)))
}

#[tokio::test]
async fn tls_says_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let fine = || answer("200 OK", "application/json", r#"{"a":1}"#);
    let (pem, acceptor) = certified("127.0.0.1");
    let trusted = write("trusted.pem", &pem);
    let (strange, _) = certified("127.0.0.1");
    let strange = write("strange.pem", &strange);
    let (other, other_acceptor) = certified("ns1.example.com");
    let other = write("other.pem", &other);
    let server = Server::tls(fine(), acceptor).await;
    let misnamed = Server::tls(fine(), other_acceptor).await;
    let said = async |url: &str, ca: &Path| {
        let nodes = nodes(&[url], None, Some(ca)).unwrap();
        let client = nodes.each().first().unwrap();
        client.get::<Value>(&Ask::of(["status"])).await
    };
    assert_eq!(said(&server.url, &trusted).await.unwrap()["a"], 1);
    let plain = Server::plain(fine(), Then::Close).await;
    let as_tls = plain.url.replace("http://", "https://");
    let as_plain = server.url.replace("https://", "http://");
    for (url, ca, words) in [
        (&server.url, &strange, "--ca FILE"),
        (&misnamed.url, &other, "another name"),
        (&as_tls, &trusted, "http:// address"),
        (&as_plain, &trusted, "https:// address"),
    ] {
        let fault = said(url, ca).await.unwrap_err().to_string();
        assert!(
            fault.contains(words) && fault.starts_with(url.as_str()),
            "{fault}"
        );
    }
    for (name, text, words) in [
        ("empty.pem", "", "BEGIN CERTIFICATE"),
        ("text.pem", "hello", "BEGIN CERTIFICATE"),
        (
            "broken.pem",
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            "PEM",
        ),
    ] {
        let error = nodes(&[&server.url], None, Some(&write(name, text))).unwrap_err();
        assert!(format!("{error:#}").contains(words), "{name}: {error:#}");
    }
    let missing = nodes(
        &[&server.url],
        None,
        Some(&folder.path().join("nowhere.pem")),
    );
    assert!(format!("{:#}", missing.unwrap_err()).contains("nowhere.pem"));
}

#[test]
fn a_token_travels_only_where_nobody_listens_in() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "s3cret-t0ken\n").unwrap();
    for (url, goes) in [
        ("http://127.0.0.1:8053", true),
        ("http://[::1]:8053", true),
        ("http://[::ffff:127.0.0.1]:8053", true),
        ("http://localhost:8053", true),
        ("http://192.0.2.1:8053", false),
        ("http://localhost.example.com", false),
        ("http://[2001:db8::1]:8053", false),
    ] {
        let made = nodes(&[url], Some(&file), None);
        assert_eq!(made.is_ok(), goes, "{url}");
        match made {
            Ok(nodes) => assert!(!format!("{nodes:?}").contains("s3cret"), "{url}"),
            Err(error) => {
                let words = format!("{error:#}");
                assert!(
                    words.contains("https://") && !words.contains("s3cret"),
                    "{words}"
                );
            }
        }
        // Without a token anybody may be asked.
        assert!(nodes_alone(url), "{url}");
    }
    for text in ["", "two words", "line\nline", "\u{7f}"] {
        std::fs::write(&file, text).unwrap();
        let words = format!(
            "{:#}",
            nodes(&["http://127.0.0.1"], Some(&file), None).unwrap_err()
        );
        assert!(
            words.contains("one token") && !words.contains("words"),
            "{words}"
        );
    }
    std::fs::write(&file, "x".repeat(20_000)).unwrap();
    assert!(nodes(&["http://127.0.0.1"], Some(&file), None).is_err());
}

/// Tells whether a client can be made without a token.
fn nodes_alone(url: &str) -> bool {
    nodes(&[url], None, None).is_ok()
}

#[tokio::test]
async fn a_token_is_shown_as_bearer() {
    // It answers with the request's head, as JSON.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut task = JoinSet::new();
    task.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let length = stream.read(&mut head).await.unwrap();
        let head = String::from_utf8_lossy(&head[..length]).into_owned();
        let body = serde_json::to_string(&head).unwrap();
        stream
            .write_all(&answer("200 OK", "application/json", &body))
            .await
            .unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "s3cret\n").unwrap();
    let nodes = nodes(&[&url], Some(&file), None).unwrap();
    let client = nodes.each().first().unwrap();
    let head: String = client.get(&Ask::of(["status"])).await.unwrap();
    assert!(head.contains("authorization: Bearer s3cret\r\n"), "{head}");
    assert!(
        head.starts_with("GET /api/v1/status HTTP/1.1\r\n"),
        "{head}"
    );
}

/// Reads the status of the first node that answers.
async fn status_of(nodes: &Nodes) -> (Option<Value>, Option<String>, String) {
    let read = async |client: &Client| client.get::<Value>(&Ask::of(["status"])).await;
    match first(nodes, read).await {
        Ok(found) => (Some(found.value.clone()), found.note(), String::new()),
        Err(error) => (None, None, error.to_string()),
    }
}

#[tokio::test]
async fn the_next_is_asked_when_one_is_out_of_reach_but_not_when_it_says_no() {
    let gone = format!("http://{}", nowhere());
    let fine = Server::plain(answer("200 OK", "application/json", "1"), Then::Close).await;
    let failing = Server::plain(answer("503 Unavailable", "text/plain", "no"), Then::Close).await;
    let no = r#"{"detail":"there is no such thing"}"#;
    let definite = Server::plain(
        answer("404 Not Found", "application/problem+json", no),
        Then::Close,
    )
    .await;
    let all = nodes(&[&gone, &failing.url, &fine.url], None, None).unwrap();
    let (value, note, _) = status_of(&all).await;
    let note = note.unwrap();
    assert_eq!(value, Some(Value::from(1)));
    for words in [&gone, &failing.url, &fine.url, "refused", "503"] {
        assert!(note.contains(words), "{note}");
    }
    // The first answers: nothing is to be said.
    let (_, note, _) = status_of(&nodes(&[&fine.url, &gone], None, None).unwrap()).await;
    assert_eq!(note, None);
    let before = fine.asked.load(Ordering::Relaxed);
    let (value, _, error) =
        status_of(&nodes(&[&definite.url, &fine.url], None, None).unwrap()).await;
    assert_eq!(value, None);
    assert!(error.contains("no such thing"), "{error}");
    assert_eq!(fine.asked.load(Ordering::Relaxed), before, "asked in vain");
    let (_, _, error) = status_of(&nodes(&[&gone, &failing.url], None, None).unwrap()).await;
    assert_eq!(error.lines().count(), 2, "{error}");
    // The same node twice is one.
    assert_eq!(nodes(&[&gone, &gone], None, None).unwrap().each().len(), 1);
}

#[tokio::test]
async fn pages_that_never_end_are_not_read_for_ever() {
    let read = async |body: &str, much| {
        let server = Server::plain(answer("200 OK", "application/json", body), Then::Close).await;
        let nodes = nodes(&[&server.url], None, None).unwrap();
        let client = nodes.each().first().unwrap();
        let page = list::<u32>(client, &Ask::of(["services"]), much).await;
        (page.unwrap(), server.asked.load(Ordering::Relaxed))
    };
    let (page, asked) = read(r#"{"items":[],"total":9,"next":"x"}"#, Much::UpTo(100)).await;
    assert_eq!((page.items.len(), asked), (0, 1));
    let (page, asked) = read(r#"{"items":[1,2],"total":9,"next":"x"}"#, Much::UpTo(5)).await;
    assert_eq!((page.items, asked), (vec![1, 2, 1, 2, 1], 3));
    let (page, asked) = read(r#"{"items":[1,2],"total":2}"#, Much::UpTo(5)).await;
    assert_eq!((page.items, asked), (vec![1, 2], 1));
    let (page, _) = read(r#"{"items":[1,2,3],"total":3}"#, Much::Whole).await;
    assert_eq!((page.items, page.total), (vec![1, 2, 3], 3));
}

#[test]
fn every_refusal_says_what_to_do() {
    let unauthorized = |had_token, changes| FaultKind::Unauthorized { had_token, changes };
    let forbidden = |changes| FaultKind::Forbidden {
        detail: "role viewer".to_owned(),
        changes,
    };
    for (kind, words) in [
        (
            unauthorized(false, false),
            &["wants a token", "viewer", "meridian token", "--token-file"][..],
        ),
        (
            unauthorized(true, true),
            &["does not know", "operator", "admin.tokens"],
        ),
        (
            forbidden(true),
            &["role operator is needed", "(role viewer)", "meridian token"],
        ),
        (forbidden(false), &["role viewer is needed"]),
        (FaultKind::NoConnection, &["3 s", "firewall"]),
        (FaultKind::NoAnswer, &["10 s"]),
        (FaultKind::NoSuchHost, &["name right"]),
        (FaultKind::TooLarge, &["--limit"]),
        (
            FaultKind::Busy {
                retry_after: Some(3),
            },
            &["3 s"],
        ),
        (
            FaultKind::Redirect("https://x".to_owned()),
            &["https://x", "not followed"],
        ),
    ] {
        let fault = Fault {
            server: "http://n".to_owned(),
            kind,
        };
        let said = fault.to_string();
        assert!(said.starts_with("http://n: "), "{said}");
        for word in words {
            assert!(said.contains(word), "`{word}` is not in `{said}`");
        }
    }
}
