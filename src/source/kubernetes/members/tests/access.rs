//! Credentials that change, certificates, proxies, and that nothing secret is shown.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::super::pem::to_base64;
use super::super::status::{KindState, Link};
use super::api::Api;
use super::run::{Run, at, kubeconfig};
use crate::source::kubernetes::records::Watched;

const STALE_AFTER: Duration = Duration::from_secs(15);

fn shown(run: &Run) -> String {
    format!("{:?} {:?}", run.status(), run.member)
}

#[tokio::test]
async fn a_token_that_is_rotated_is_taken_from_its_file() {
    let api = Api::start(36).await;
    api.put("services", "web");
    api.state().token = Some("canary-two".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    // A newline at the end, as editors leave it.
    fs::write(&file, "canary-one\n").unwrap();
    let access = kubeconfig(&folder, &at(&api), "{tokenFile: token}");
    let mut run = Run::start(folder, access, STALE_AFTER);
    run.until("denied", |run| {
        let error = run.status().last_error;
        error.is_some_and(|error| error.starts_with("status 401"))
    })
    .await;
    // It answers: that much is known.
    run.until("contact", |run| run.status().last_contact.is_some())
        .await;
    assert_eq!(run.status().link, Link::Never);
    assert!(!shown(&run).contains("canary"), "{}", shown(&run));

    fs::write(&file, "canary-two\n").unwrap();
    run.until_synced().await;
    run.until_known(Watched::Services, &["web"]).await;

    // While it is watched: the connections stand, the next requests are refused.
    api.state().token = Some("canary-three".to_owned());
    api.cut();
    run.until("refused", |run| {
        matches!(run.kind(Watched::Services).state, KindState::Refused(_))
    })
    .await;
    assert!(!shown(&run).contains("canary"), "{}", shown(&run));
    fs::write(&file, "canary-three").unwrap();
    run.until_synced().await;
    run.never_lost(Watched::Services, &["web"]);
}

#[tokio::test]
async fn a_plugin_is_run_again_when_what_it_gave_is_refused() {
    let api = Api::start(36).await;
    api.put("services", "web");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("given");
    fs::write(&file, "canary-one").unwrap();
    api.state().token = Some("canary-one".to_owned());
    let head = r#"{"apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "#;
    let script = format!("echo '{head}\"'$(cat {})'\"}}}}'", file.display());
    let user = serde_json::json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", script],
    }});
    let access = kubeconfig(&folder, &at(&api), &user.to_string());
    let mut run = Run::start(folder, access, STALE_AFTER);
    run.until_synced().await;
    api.state().token = Some("canary-two".to_owned());
    fs::write(&file, "canary-two").unwrap();
    api.cut();
    run.until("refused", |run| {
        matches!(run.kind(Watched::Services).state, KindState::Refused(_))
    })
    .await;
    run.until_synced().await;
    assert!(!shown(&run).contains("canary"), "{}", shown(&run));
}

#[tokio::test]
async fn a_written_token_stands_in_for_a_file_that_is_not_there() {
    let api = Api::start(36).await;
    api.put("services", "web");
    api.state().token = Some("canary-one".to_owned());
    let user = "{tokenFile: nothing, token: canary-one}";
    let mut run = Run::with(&at(&api), user, STALE_AFTER);
    run.until_synced().await;
    // After a refusal the file is looked for again.
    api.state().token = Some("canary-two".to_owned());
    api.cut();
    let refused = |run: &Run| matches!(run.kind(Watched::Services).state, KindState::Refused(_));
    run.until("refused", refused).await;
    api.state().token = Some("canary-one".to_owned());
    fs::write(run.folder.path().join("nothing"), "canary-three").unwrap();
    run.until("told", |_| {
        let asked = api.asked("/api/v1/services");
        let header = asked.last().and_then(|asked| asked.header("authorization"));
        header == Some("Bearer canary-three")
    })
    .await;
    fs::remove_file(run.folder.path().join("nothing")).unwrap();
    run.until_synced().await;
    run.until("well", |run| run.status().last_error.is_none())
        .await;
    run.never_lost(Watched::Services, &["web"]);
}

#[tokio::test]
async fn a_plugin_does_not_run_with_every_change_of_a_file() {
    let api = Api::start(36).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runs");
    let head = r#"{"apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "a"}}"#;
    let script = format!("date +%s >> {}; echo '{head}'", file.display());
    let user = serde_json::json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", script],
    }});
    let access = kubeconfig(&folder, &at(&api), &user.to_string());
    let mut run = Run::start(folder, access, STALE_AFTER);
    run.until_synced().await;
    let runs = || -> Vec<u64> {
        let runs = fs::read_to_string(&file).unwrap();
        runs.lines().map(|line| line.parse().unwrap()).collect()
    };
    assert_eq!(runs().len(), 1);
    kubeconfig(&run.folder, &at(&api), &user.to_string());
    run.until("run again", |_| runs().len() == 2).await;
    let runs = runs();
    assert!(runs[1] - runs[0] >= 9, "{runs:?}");
}

#[tokio::test]
async fn a_kubeconfig_that_changes_is_taken_over_and_a_broken_one_is_not() {
    let (first, second) = (Api::start(36).await, Api::start(36).await);
    first.put("services", "web");
    first.put("services", "mail");
    second.put("services", "web");
    let mut run = Run::of(&first);
    run.until_synced().await;
    run.until_known(Watched::Services, &["mail", "web"]).await;

    kubeconfig(&run.folder, "{server: [canary]}", "{}");
    run.until("broken", |run| run.status().last_error.is_some())
        .await;
    assert!(run.status().last_error.unwrap().contains("no kubeconfig"));
    assert!(run.status().unusable.unwrap().contains("no kubeconfig"));
    assert!(!shown(&run).contains("canary"));
    first.put("services", "new");
    run.until_known(Watched::Services, &["mail", "new", "web"])
        .await;

    kubeconfig(&run.folder, &at(&second), "{}");
    run.until_known(Watched::Services, &["web"]).await;
    run.never_lost(Watched::Services, &["web"]);
    run.until("well", |run| run.status().last_error.is_none())
        .await;
    assert_eq!(run.status().unusable, None);
}

#[tokio::test]
async fn access_that_is_configured_anew_leaves_the_old_server_at_once() {
    let (first, second) = (Api::start(36).await, Api::start(36).await);
    first.put("services", "web");
    second.put("services", "web");
    let mut run = Run::of(&first);
    run.until_synced().await;
    let other = tempfile::tempdir().unwrap();
    run.access
        .send_replace(kubeconfig(&other, "{server: 'ftp://x'}", "{}"));
    run.until("left", |run| {
        run.kind(Watched::Services).state == KindState::Waiting
    })
    .await;
    kubeconfig(&other, &at(&second), "{}");
    run.until_watching(Watched::Services).await;
    second.put("services", "new");
    run.until_known(Watched::Services, &["new", "web"]).await;
    run.never_lost(Watched::Services, &["web"]);
}

#[tokio::test]
async fn certificates_are_checked_against_the_authority_and_the_name() {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["api.example".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    let api = Api::start_tls(36, TlsAcceptor::from(Arc::new(config))).await;
    api.put("services", "web");
    let authority = to_base64(certificate.pem().as_bytes()).unwrap();
    let cluster = |name: &str| {
        let address = api.address;
        format!("{{server: 'https://{address}', certificate-authority-data: {authority}{name}}}")
    };
    let mut run = Run::with(&cluster(""), "{}", STALE_AFTER);
    run.until("doubtful", |run| {
        let error = run.status().last_error;
        error.is_some_and(|error| error.contains("certificate"))
    })
    .await;
    assert!(api.state().asked.is_empty());
    kubeconfig(
        &run.folder,
        &cluster(", tls-server-name: api.example"),
        "{}",
    );
    run.until_synced().await;
    run.until_known(Watched::Services, &["web"]).await;
    assert!(run.status().warnings.is_empty());
}

#[tokio::test]
async fn a_proxy_stands_between_and_its_password_is_not_shown() {
    let api = Api::start(36).await;
    api.put("services", "web");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    let (target, mut tasks) = (api.address, JoinSet::new());
    tasks.spawn(async move {
        let mut tunnels = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            tunnels.spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
                let asked = format!("connect {target} http/1.1");
                // `me:canary` in base64.
                let is_known = head.contains("proxy-authorization: basic bwu6y2fuyxj5");
                if !head.starts_with(&asked) || !is_known {
                    let _ = stream.write_all(b"HTTP/1.1 407 No\r\n\r\n").await;
                    return;
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let mut server = TcpStream::connect(target).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    let cluster = |password: &str| {
        let proxied = format!("http://me:{password}@{proxy}");
        format!("{{server: 'http://{target}', proxy-url: '{proxied}'}}")
    };
    let mut run = Run::with(&cluster("wrong-canary"), "{}", STALE_AFTER);
    run.until("turned away", |run| run.status().last_error.is_some())
        .await;
    assert!(!shown(&run).contains("canary"), "{}", shown(&run));
    kubeconfig(&run.folder, &cluster("canary"), "{}");
    run.until_synced().await;
    run.until_known(Watched::Services, &["web"]).await;
    assert!(!shown(&run).contains("canary"), "{}", shown(&run));
}
