//! The dashboard's TLS, an identity provider asked over HTTPS, and FAULTS F23: no secret leaves.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use crate::harness::door::{REST, token};
use crate::harness::jwt::Provider;
use crate::harness::node::{Node, meridian};
use crate::harness::raw_http::{Answer, Web};
use crate::harness::{loopback, wait_for};

const PATIENCE: Duration = Duration::from_secs(10);
/// Where every secret of the test has it.
const CANARY: &str = "c4n4ry5ecret";

/// The program, telling all it can.
pub fn chatty(_: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meridian"));
    command.args(["--log-level", "trace"]);
    command
}

/// Makes a certificate.
pub fn certify(names: &[&str]) -> CertifiedKey<KeyPair> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    generate_simple_self_signed(names).unwrap()
}

/// Writes certificate and key into a folder.
pub fn write(folder: &Path, made: &CertifiedKey<KeyPair>) {
    std::fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
}

/// Gives the certificate as TLS clients have it.
pub fn der(made: &CertifiedKey<KeyPair>) -> CertificateDer<'static> {
    made.cert.der().clone()
}

#[test]
fn tls_with_certificates_that_change_and_cookies_that_stay_inside() {
    let to = SocketAddr::new(loopback(), 8053);
    let own = to.ip().to_string();
    let names = ["dash.example.com", own.as_str()];
    let (first, second) = (certify(&names), certify(&names));
    let operator = token();
    let admin = format!(
        "listen: [\"{to}\"], anonymous: none, tls: {{certificate: tls.crt, key: tls.key}}, tokens: [{{name: sre, file: o, role: operator}}]"
    );
    let mut node = Node::start_with_admin(chatty, &admin, REST, |folder| {
        write(folder, &first);
        std::fs::write(folder.join("o"), &operator.line).unwrap();
    });
    let get = |made: &CertifiedKey<KeyPair>| -> Option<Answer> {
        let web = Web::get(to, "/metrics").bearer(&operator.text);
        web.send_over_tls(&own, &der(made))
    };
    let answer = get(&first).unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("strict-transport-security"),
        Some("max-age=31536000")
    );
    assert!(
        Web::get(to, "/metrics").try_send().is_none(),
        "no answer without TLS"
    );
    // The certificate's names are the dashboard's.
    let by_name = |name: &str| {
        let web = Web::get(to, "/metrics")
            .bearer(&operator.text)
            .host(Some(name));
        web.send_over_tls("dash.example.com", &der(&first))
            .unwrap()
            .status
    };
    assert_eq!(
        (by_name("dash.example.com:8053"), by_name("evil.example")),
        (200, 421)
    );
    let login = |origin: &str| {
        let form = format!("token={}", operator.text);
        let web = Web::new(to, "POST", "/login").with("Origin", origin);
        let web = web.with("Content-Type", "application/x-www-form-urlencoded");
        web.body(&form).send_over_tls(&own, &der(&first)).unwrap()
    };
    assert_eq!(login(&format!("http://{to}")).status, 403);
    let answer = login(&format!("https://{to}"));
    let set = answer.header("set-cookie").unwrap();
    assert!(
        set.starts_with("__Host-meridian-8053=") && set.contains("; Secure"),
        "{set}"
    );
    // Half a change leaves the former in force; the whole one comes soon.
    std::fs::write(node.folder().join("tls.crt"), second.cert.pem()).unwrap();
    wait_for("the refusal", PATIENCE, || {
        let log = node.process().log();
        log.contains("belongs to another certificate").then_some(())
    });
    assert_eq!(get(&first).unwrap().status, 200);
    std::fs::write(
        node.folder().join("tls.key"),
        second.signing_key.serialize_pem(),
    )
    .unwrap();
    wait_for("the new certificate", PATIENCE, || get(&second));
    assert!(get(&first).is_none());
    // Whoever never finishes a handshake is cut.
    let begun = Instant::now();
    let mut silent = Web::get(to, "/").connect();
    silent.write_all(&[22, 3, 1]).unwrap();
    let _ = silent.read_to_end(&mut Vec::new());
    assert!(begun.elapsed() < PATIENCE);
}

#[test]
fn a_missing_certificate_keeps_dns_up_and_check_names_it() {
    let to = SocketAddr::new(loopback(), 8053);
    let admin = format!(
        "listen: [\"{to}\"], tls: {{certificate: tls.crt, key: tls.key}}, tokens: [{{name: sre, file: o, role: operator}}]"
    );
    let node = Node::start_with_admin(chatty, &admin, REST, |folder| {
        std::fs::write(folder.join("o"), "mrd_plain\n").unwrap();
    });
    let config = node.config_path();
    let output = meridian(&["check", "--config", config.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success());
    assert!(text.contains("tls.crt: cannot be read"), "{text}");
    assert!(
        text.contains("o:1") && text.contains("meridian token"),
        "{text}"
    );
    assert!(!text.contains("mrd_plain"), "{text}");
    let made = certify(&[&to.ip().to_string()]);
    write(node.folder(), &made);
    wait_for("the certificate", PATIENCE, || {
        let web = Web::get(to, "/livez");
        web.send_over_tls(&to.ip().to_string(), &der(&made))
    });
}

/// Serves discovery and keys over HTTPS; counts the answers with keys.
fn serve(
    listener: TcpListener,
    made: &CertifiedKey<KeyPair>,
    pages: [(&'static str, String); 2],
) -> Arc<AtomicUsize> {
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![der(made)], key)
        .unwrap();
    let config = Arc::new(config);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let mut request = [0; 2048];
            let Ok(length) = stream.read(&mut request) else {
                continue;
            };
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let page = pages
                .iter()
                .find(|(path, _)| request.starts_with(&format!("GET {path} ")));
            let (status, body) = page.map_or(("404 Not Found", ""), |(_, body)| ("200 OK", body));
            if request.contains("/keys ") {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    count
}

#[test]
fn a_providers_keys_are_fetched_over_https_and_rarely() {
    let listener = TcpListener::bind((loopback(), 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let made = certify(&[&address.ip().to_string()]);
    let provider = Provider::new(&format!("https://{address}"));
    let discovery =
        json!({"issuer": provider.issuer, "jwks_uri": format!("https://{address}/keys")});
    let pages = [
        ("/.well-known/openid-configuration", discovery.to_string()),
        ("/keys", provider.set()),
    ];
    let fetched = serve(listener, &made, pages);
    let to = SocketAddr::new(loopback(), 8053);
    let admin = format!(
        "listen: [\"{to}\"], anonymous: none, oidc: {{issuer: \"{}\", audience: meridian, ca: ca.pem, operator: [sre]}}",
        provider.issuer
    );
    let node = Node::start_with_admin(chatty, &admin, REST, |folder| {
        std::fs::write(folder.join("ca.pem"), made.cert.pem()).unwrap();
    });
    let right = provider.right(&provider.claims("sre"));
    wait_for("the keys", PATIENCE, || {
        (Web::get(to, "/metrics").bearer(&right).send().status == 200).then_some(())
    });
    for number in 0..20 {
        let header = json!({"alg": "ES256", "kid": format!("unknown-{number}")});
        let token = provider.token(&header, &provider.claims("sre"));
        assert_eq!(Web::get(to, "/metrics").bearer(&token).send().status, 401);
    }
    assert_eq!(
        fetched.load(Ordering::Relaxed),
        1,
        "unknown keys ask nobody so soon"
    );
    drop(node);
}

#[test]
fn no_secret_leaves() {
    let to = SocketAddr::new(loopback(), 8053);
    let own = to.ip().to_string();
    let (made, operator, provider) = (
        certify(&[&own]),
        token(),
        Provider::new("https://login.example"),
    );
    let admin = format!(
        "listen: [\"{to}\"], tls: {{certificate: tls.crt, key: tls.key}}, tokens: [{{name: sre, file: o, role: operator}}, {{name: bad, file: b, role: viewer}}, {{name: huge, file: h, role: viewer}}], oidc: {{issuer: \"https://login.example\", audience: meridian, jwksFile: jwks.json, operator: [sre]}}"
    );
    let mut node = Node::start_with_admin(chatty, &admin, REST, |folder| {
        write(folder, &made);
        std::fs::write(folder.join("o"), &operator.line).unwrap();
        std::fs::write(folder.join("b"), format!("{CANARY}\nsha256:{CANARY}\n")).unwrap();
        std::fs::write(folder.join("h"), CANARY.repeat(5000)).unwrap();
        std::fs::write(folder.join("jwks.json"), provider.set()).unwrap();
    });
    let mut claims = provider.claims("sre");
    claims["secret"] = json!(CANARY);
    let jwt = provider.right(&claims);
    let forged = format!("{}.{CANARY}", jwt.rsplit_once('.').unwrap().0);
    let form = |body: &str| {
        let web = Web::new(to, "POST", "/login").with("Origin", &format!("https://{to}"));
        let web = web.with("Content-Type", "application/x-www-form-urlencoded");
        web.body(body)
    };
    let mut seen = String::new();
    let mut cookies = Vec::new();
    for web in [
        Web::get(to, "/metrics").bearer(&operator.text),
        Web::get(to, "/metrics").bearer(CANARY),
        Web::get(to, "/metrics").bearer(&jwt),
        Web::get(to, "/metrics").bearer(&forged),
        Web::get(to, "/metrics").with("Authorization", CANARY),
        Web::get(to, "/metrics").with("Cookie", &format!("__Host-meridian-8053={CANARY}")),
        Web::new(to, "POST", "/metrics").bearer(&forged),
        Web::new(to, "POST", &format!("/login?token={CANARY}"))
            .with("Origin", &format!("https://{to}")),
        form(&format!("token={CANARY}")),
        form(&format!("token={CANARY}")).with("Accept", "text/html"),
        form(&format!("token={CANARY}&token={CANARY}")),
        form(CANARY),
        form(&format!("token={}", operator.text)),
        form(&format!("token={jwt}")),
    ] {
        let answer = web.send_over_tls(&own, &der(&made)).unwrap();
        // The cookie is the session's own; the head shows it to the one who signed in and to nobody else.
        if answer.header("set-cookie").is_some() {
            cookies.push(answer.cookie().split_once('=').unwrap().1.to_owned());
        }
        let head = answer
            .head
            .lines()
            .filter(|line| !line.starts_with("set-cookie"));
        seen.push_str(&head.collect::<Vec<_>>().join("\n"));
        seen.push_str(&answer.body);
    }
    assert_eq!(cookies.len(), 2);
    // What they made is on disk before it is searched; a broken certificate is told of too.
    std::fs::write(
        node.folder().join("tls.key"),
        format!("-----BEGIN {CANARY}\n{CANARY}"),
    )
    .unwrap();
    std::fs::write(node.folder().join("b"), format!("{CANARY}{CANARY}\n")).unwrap();
    wait_for("the broken key to be refused", PATIENCE, || {
        let log = node.process().log();
        log.contains("New certificate of the dashboard is refused")
            .then_some(())
    });
    let audit = node.folder().join("state/audit.jsonl");
    wait_for("two logins in the audit log", PATIENCE, || {
        let text = std::fs::read_to_string(&audit).unwrap_or_default();
        (text.matches("\"login\"").count() >= 2).then_some(())
    });
    seen.push_str(&node.get("/metrics").unwrap());
    let log = node.process().log();
    assert!(log.contains("Token file is refused"), "{log}");
    seen.push_str(&log);
    let check = meridian(&["check", "--config", node.config_path().to_str().unwrap()]);
    seen.push_str(&String::from_utf8_lossy(&check.stdout));
    for entry in std::fs::read_dir(node.folder().join("state")).unwrap() {
        let octets = std::fs::read(entry.unwrap().path()).unwrap_or_default();
        seen.push_str(&String::from_utf8_lossy(&octets));
    }
    let key = made.signing_key.serialize_pem();
    let hash = operator.line.strip_prefix("sha256:").unwrap();
    let (signed, signature) = jwt.rsplit_once('.').unwrap();
    let secrets = [
        CANARY,
        &operator.text,
        hash,
        key.lines().nth(1).unwrap(),
        signed,
        signature,
    ];
    let all = secrets
        .into_iter()
        .chain(cookies.iter().map(String::as_str));
    for secret in all {
        if let Some(at) = seen.find(secret) {
            panic!("a secret is shown: …{}…", &seen[at.saturating_sub(200)..at]);
        }
    }
}
