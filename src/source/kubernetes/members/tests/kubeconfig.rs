//! Kubeconfigs: what is chosen of them, and what is refused.

use std::fs;

use k8s_openapi::ByteString;
use serde_json::Value;
use tempfile::TempDir;

use crate::source::kubernetes::members::kubeconfig::{Credential, UNCHECKED, UNENCRYPTED, choose};
use crate::source::kubernetes::rules::{Access, Trust};
use crate::source::kubernetes::secret::{HeldKubeconfig, SecretText};

/// A folder with a kubeconfig that has this cluster and this user.
fn written(cluster: &str, user: &str) -> (TempDir, Access) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n\
         clusters: [{{name: c, cluster: {cluster}}}, {{name: other, cluster: {{server: 'https://192.0.2.2'}}}}]\n\
         users: [{{name: u, user: {user}}}]\n\
         contexts:\n- {{name: here, context: {{cluster: c, user: u}}}}\n- {{name: there, context: {{cluster: other}}}}\n\
         - {{name: nowhere, context: {{cluster: none}}}}\n- {{name: nobody, context: {{cluster: c, user: none}}}}\n"
    );
    fs::write(&file, text).unwrap();
    let access = Access::Kubeconfig {
        file,
        context: None,
        trust: Trust::Whole,
    };
    (folder, access)
}

fn at(access: &Access, context: &str) -> Access {
    let Access::Kubeconfig { file, .. } = access else {
        unreachable!("only files are written")
    };
    Access::Kubeconfig {
        file: file.clone(),
        context: Some(context.into()),
        trust: Trust::Whole,
    }
}

fn fault(cluster: &str, user: &str) -> String {
    let (_folder, access) = written(cluster, user);
    choose(&access).1.unwrap_err().text.into()
}

const SERVER: &str = "{server: 'https://192.0.2.1:6443/k8s/clusters/c-1'}";

#[test]
fn a_context_is_found_by_name_or_is_the_current_one() {
    let (_folder, access) = written(SERVER, "{token: abc}");
    let chosen = choose(&access).1.unwrap();
    assert_eq!(
        chosen.config.cluster_url,
        "https://192.0.2.1:6443/k8s/clusters/c-1"
    );
    assert!(matches!(chosen.credential, Credential::Fixed(bearer) if bearer.secret() == "abc"));
    assert!(chosen.config.auth_info.token.is_none());
    assert_eq!(chosen.config.proxy_url, None);

    let there = choose(&at(&access, "there")).1.unwrap();
    assert_eq!(there.config.cluster_url, "https://192.0.2.2/");
    assert!(matches!(there.credential, Credential::None));
    for (context, why) in [
        ("missing", "no context missing"),
        ("nowhere", "no cluster none"),
        ("nobody", "no user none"),
    ] {
        let fault = choose(&at(&access, context)).1.unwrap_err();
        assert!(fault.text.contains(why), "{}", fault.text);
    }
}

#[test]
fn files_that_are_named_are_read_and_watched() {
    let user = "{client-certificate: c.pem, client-key: k.pem, tokenFile: token, token: written}";
    let cluster = "{server: 'https://192.0.2.1', certificate-authority: ca.pem, tls-server-name: api.example}";
    let (folder, access) = written(cluster, user);
    let (files, missing) = choose(&access);
    assert!(missing.unwrap_err().text.contains("ca.pem"));
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    for name in ["ca.pem", "c.pem"] {
        fs::write(folder.path().join(name), certificate.pem()).unwrap();
    }
    assert!(files.changed());
    fs::write(folder.path().join("k.pem"), key.serialize_pem()).unwrap();

    // Without the file of the token, the one that is written counts.
    let (files, chosen) = choose(&access);
    assert!(!files.changed());
    let chosen = chosen.unwrap();
    assert!(
        matches!(&chosen.credential, Credential::File { bearer, .. } if bearer.secret() == "written")
    );
    let root = chosen.config.root_cert.unwrap();
    assert_eq!(root, [certificate.der().to_vec()]);
    assert_eq!(
        chosen.config.tls_server_name.as_deref(),
        Some("api.example")
    );
    let ByteString(pem) = serde_json::from_value(Value::String(
        chosen.config.auth_info.client_certificate_data.unwrap(),
    ))
    .unwrap();
    assert_eq!(pem, certificate.pem().as_bytes());

    fs::write(folder.path().join("token"), "of-file\n").unwrap();
    assert!(!files.changed(), "the token is watched by others");
    let chosen = choose(&access).1.unwrap();
    assert!(
        matches!(chosen.credential, Credential::File { bearer, .. } if bearer.secret() == "of-file")
    );
    fs::write(folder.path().join("c.pem"), "other").unwrap();
    assert!(files.changed());
}

#[test]
fn doubtful_connections_are_told() {
    let chosen = |cluster: &str| {
        let (_folder, access) = written(cluster, "{}");
        choose(&access).1.unwrap()
    };
    assert!(chosen(SERVER).warnings.is_empty());
    assert_eq!(
        chosen("{server: 'http://127.0.0.1:1'}").warnings,
        [UNENCRYPTED]
    );
    let skipping = chosen("{server: 'https://192.0.2.1', insecure-skip-tls-verify: true}");
    assert_eq!(skipping.warnings, [UNCHECKED]);
    assert!(skipping.config.accept_invalid_certs);
    let proxied =
        chosen("{server: 'https://192.0.2.1', proxy-url: 'socks5://me:canary@192.0.2.9:1080'}");
    assert_eq!(
        proxied.config.proxy_url.as_ref().unwrap().port_u16(),
        Some(1080)
    );
    assert!(!format!("{proxied:?}").contains("canary"));
    assert_eq!(&*proxied.secrets.said("me:canary, canary"), "***, ***");
}

#[test]
fn what_cannot_be_used_is_refused_with_its_reason() {
    for (cluster, user, why) in [
        ("{server: ''}", "{}", "server"),
        ("{server: 'ftp://192.0.2.1'}", "{}", "server"),
        (
            "{server: 'https://me:canary@192.0.2.1'}",
            "{}",
            "user and password",
        ),
        (
            "{server: 'https://192.0.2.1', proxy-url: 'ftp://canary'}",
            "{}",
            "proxy-url",
        ),
        (
            "{server: 'https://192.0.2.1', certificate-authority-data: 'Y2FuYXJ5'}",
            "{}",
            "PEM",
        ),
        (
            "{server: 'https://192.0.2.1', certificate-authority-data: '!canary!'}",
            "{}",
            "PEM",
        ),
        (
            SERVER,
            "{client-certificate-data: 'Y2FuYXJ5'}",
            "needs its key",
        ),
        (SERVER, "{tokenFile: missing}", "missing"),
        (
            SERVER,
            "{token: a, username: b, password: canary}",
            "not both",
        ),
        (SERVER, "{token: 'canary canary'}", "none that can be sent"),
        (SERVER, "{auth-provider: {name: gcp}}", "auth-provider"),
        (SERVER, "{exec: {command: x}}", "apiVersion"),
        (SERVER, "{token: [canary]}", "YAML"),
        (SERVER, "{token: {canary", "YAML"),
    ] {
        let fault = fault(cluster, user);
        assert!(fault.contains(why), "{cluster} {user}: {fault}");
        assert!(!fault.contains("canary"), "{fault}");
    }
}

#[test]
fn a_file_that_is_too_large_or_no_text_is_refused() {
    let (folder, access) = written(SERVER, "{}");
    let file = folder.path().join("kubeconfig");
    fs::write(&file, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(choose(&access).1.unwrap_err().text.contains("larger than"));
    fs::write(&file, b"\xff\xfe\x00").unwrap();
    assert!(choose(&access).1.unwrap_err().text.contains("UTF-8"));
    fs::write(&file, "").unwrap();
    assert!(choose(&access).1.unwrap_err().text.contains("context"));
}

#[test]
fn nothing_secret_is_shown_by_debug() {
    let user = "{username: me, password: canary-1, client-certificate-data: YQ==, client-key-data: Y2FuYXJ5}";
    let (_folder, access) = written(SERVER, user);
    let chosen = choose(&access).1.unwrap();
    assert_eq!(&*chosen.secrets.said("it is canary-1"), "it is ***");
    let shown = format!("{chosen:?} {:?}", chosen.config.auth_info);
    assert!(
        !shown.contains("canary") && !shown.contains("Y2FuYXJ5"),
        "{shown}"
    );
}

/// A kubeconfig of a Secret, with this user and this proxy.
fn held(user: &str, cluster: &str) -> (std::sync::Arc<HeldKubeconfig>, String) {
    let text = format!(
        "clusters: [{{name: c, cluster: {cluster}}}]\nusers: [{{name: u, user: {user}}}]\n\
         contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n"
    );
    let held = HeldKubeconfig::new("Secret m/africa, key k", SecretText::from(text.clone()));
    (held, text)
}

fn of_secret(kubeconfig: &std::sync::Arc<HeldKubeconfig>) -> Access {
    Access::Secret {
        kubeconfig: kubeconfig.clone(),
        exec: std::sync::Arc::default(),
    }
}

#[test]
fn a_kubeconfig_of_a_secret_is_followed_as_a_file_is() {
    let (held, text) = held("{token: canary-1}", SERVER);
    let (files, chosen) = choose(&of_secret(&held));
    let chosen = chosen.unwrap();
    let Credential::Fixed(bearer) = chosen.credential else {
        panic!("a token is written")
    };
    assert_eq!((bearer.secret(), files.count()), ("canary-1", 0));
    assert!(!files.changed());
    held.replace(&SecretText::from(text.clone()));
    assert!(!files.changed());
    held.replace(&SecretText::from(text.replace("canary-1", "canary-2")));
    assert!(files.changed());
    let shown = format!("{:?} {files:?}", of_secret(&held));
    assert!(!shown.contains("canary"), "{shown}");
}

#[test]
fn a_kubeconfig_of_a_secret_names_no_file_and_runs_nothing() {
    for (user, cluster, why) in [
        (
            "{tokenFile: /etc/shadow}",
            SERVER,
            "tokenFile: a kubeconfig that was found",
        ),
        (
            "{client-key: /etc/shadow, client-certificate-data: YQ==}",
            SERVER,
            "client-key: ",
        ),
        (
            "{auth-provider: {name: gcp}}",
            SERVER,
            "auth-provider: a kubeconfig that was found",
        ),
        (
            "{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/touch, env: [{name: A, value: canary}]}}",
            SERVER,
            "exec: a kubeconfig that was found",
        ),
        (
            "{token: [canary]}",
            SERVER,
            "is no kubeconfig in YAML: line ",
        ),
        (
            "{}",
            "{server: 'https://192.0.2.1', certificate-authority: /etc/shadow}",
            "certificate-authority: a kubeconfig",
        ),
    ] {
        let (held, _) = held(user, cluster);
        let (files, chosen) = choose(&of_secret(&held));
        let fault = chosen.unwrap_err().text;
        let place = "Secret m/africa, key k: ";
        assert!(fault.starts_with(place) && fault.contains(why), "{fault}");
        assert!(!fault.contains("canary"), "{fault}");
        assert_eq!(files.count(), 0, "no file is opened");
    }
}
