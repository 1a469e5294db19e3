//! Kubeconfig files: one context of them, with every file that it names read within limits.
//!
//! The operator's own may name other files and programs. One that was found in a directory names neither, but for programs that
//! the operator lists: whoever may write there must not read a file of this node or run a command on it. Proxies are those of
//! `proxy-url`, never those of the environment. kube itself reads none of the files that a kubeconfig names and runs no plugin:
//! it has no limits there. Of a Pod's own service account it reads namespace and authority.

use std::fmt;
use std::path::{Path, PathBuf};

use hyper::Uri;
use kube::config::{AuthInfo, Cluster, Kubeconfig};
use secrecy::{ExposeSecret, SecretString};

use super::bearer::Bearer;
use super::fault::{Fault, FaultKind, Masks};
use super::pem::{certificates, to_base64};
use super::plugin::Plugin;
use super::trust;
use crate::source::kubernetes::rules::{Absence, Access, Trust};
use crate::source::{Fingerprint, read_bounded};

/// Octets of a kubeconfig file, and of a file of certificates or keys that it names.
const MAX_FILE: u64 = 1 << 20;

/// Said of a cluster whose server is not checked.
const UNCHECKED: &str = "the server's certificate is not checked (insecure-skip-tls-verify)";
/// Said of a cluster without TLS.
const UNENCRYPTED: &str = "the connection is not encrypted (http)";

/// Said of a cluster that is leaving.
const GONE: &str = "its kubeconfig is gone, so it is leaving";
/// Said of a cluster of which nobody knows whether it is leaving.
const UNSEEN: &str = "the directory of its kubeconfig cannot be read";

/// Files that were read, as they were then.
#[derive(Clone, Debug, Default)]
pub(super) struct Files(Vec<(PathBuf, Fingerprint)>);

impl Files {
    /// Tells whether one of them was replaced, written or removed.
    pub(super) fn changed(&self) -> bool {
        self.0
            .iter()
            .any(|(path, seen)| Fingerprint::of(path) != *seen)
    }

    /// Counts them.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Reads a file and notes it.
    fn read(&mut self, path: &Path) -> Result<Vec<u8>, Fault> {
        let seen = Fingerprint::of(path);
        let read = read_bounded(path, MAX_FILE);
        let seen = match &read {
            Ok(_) => seen,
            Err(error) => Fingerprint::of_unread(path, error),
        };
        self.0.push((path.to_owned(), seen));
        read.map_err(|error| unusable(&format!("{}: {}", path.display(), error.reason())))
    }
}

/// Where the token comes from.
#[derive(Clone, Debug)]
pub(super) enum Credential {
    /// There is none: a certificate, a password, or nothing at all.
    None,
    /// It is written in the kubeconfig.
    Fixed(Bearer),
    /// It is in a file, which others write again and again.
    File {
        /// The file.
        path: PathBuf,
        /// The file as it was read.
        seen: Fingerprint,
        /// What it held.
        bearer: Bearer,
        /// What the kubeconfig says beside it: it counts where the file cannot be read.
        written: Option<Bearer>,
    },
    /// A program prints it, or a certificate.
    Plugin(Box<Plugin>),
}

/// How a server is reached, as far as that can be told without asking anybody.
pub(super) struct Chosen {
    /// Server, certificates, proxy. Neither token nor plugin: those are not kube's.
    pub(super) config: kube::Config,
    /// Where the token comes from.
    pub(super) credential: Credential,
    /// What must not be shown: passwords of server and proxy.
    pub(super) secrets: Masks,
    /// What an operator should know of it.
    pub(super) warnings: Vec<&'static str>,
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What kube shows of its own has the password of a proxy in it.
        write!(f, "Chosen({})", self.config.cluster_url)
    }
}

/// Reads what is needed to reach a server; blocks. The files that were read come in any case, so that a change of them is seen.
pub(super) fn choose(access: &Access) -> (Files, Result<Chosen, Fault>) {
    let mut files = Files::default();
    let chosen = match access {
        Access::Kubeconfig {
            file,
            context,
            trust,
        } => of_file(file, (context.as_deref(), trust), &mut files),
        Access::InCluster => in_cluster(),
        Access::Absent(Absence::Gone) => Err(unusable(GONE)),
        Access::Absent(Absence::Unseen) => Err(unusable(UNSEEN)),
    };
    (files, chosen)
}

pub(super) fn unusable(why: &str) -> Fault {
    Fault::new(FaultKind::Unusable, why)
}

/// Reads a kubeconfig.
fn of_file(
    file: &Path,
    (context, trust): (Option<&str>, &Trust),
    files: &mut Files,
) -> Result<Chosen, Fault> {
    let name = file.display();
    let octets = files.read(file)?;
    let text =
        String::from_utf8(octets).map_err(|_| unusable(&format!("{name}: is no UTF-8 text")))?;
    let text = text.trim_start_matches('\u{feff}');
    let parsed = Kubeconfig::from_yaml(text)
        // What the parser says quotes lines of the file, and those may be secrets.
        .map_err(|_| unusable(&format!("{name}: is no kubeconfig in YAML")))?;
    let of_name = |fault: Fault| unusable(&format!("{name}: {}", fault.text));
    let only = match (trust, &parsed.contexts[..]) {
        (Trust::Data { .. }, [only]) if parsed.current_context.is_none() => Some(only.name.clone()),
        _ => None,
    };
    let (cluster, user) = find(parsed, context.or(only.as_deref())).map_err(of_name)?;
    if let Trust::Data { exec } = trust {
        trust::check(&cluster, &user, exec).map_err(of_name)?;
    }
    let folder = file.parent().unwrap_or_else(|| Path::new("/"));
    Reading { folder, files }.put_together(cluster, user)
}

/// Finds the cluster and the user of a context.
fn find(parsed: Kubeconfig, context: Option<&str>) -> Result<(Cluster, AuthInfo), Fault> {
    let named = context
        .map(str::to_owned)
        .or(parsed.current_context)
        .filter(|name| !name.is_empty())
        .ok_or_else(|| unusable("has no current-context; name a context"))?;
    let context = parsed
        .contexts
        .into_iter()
        .find(|context| context.name == named)
        .and_then(|found| found.context)
        .ok_or_else(|| unusable(&format!("has no context {named}")))?;
    let cluster = parsed
        .clusters
        .into_iter()
        .find(|cluster| cluster.name == context.cluster)
        .and_then(|found| found.cluster)
        .ok_or_else(|| unusable(&format!("has no cluster {}", context.cluster)))?;
    let user = match context.user.filter(|user| !user.is_empty()) {
        Some(name) => parsed
            .auth_infos
            .into_iter()
            .find(|user| user.name == name)
            .and_then(|found| found.auth_info)
            .ok_or_else(|| unusable(&format!("has no user {name}")))?,
        None => AuthInfo::default(),
    };
    Ok((cluster, user))
}

/// Reading of what a kubeconfig names.
struct Reading<'r> {
    folder: &'r Path,
    files: &'r mut Files,
}

impl Reading<'_> {
    fn put_together(mut self, mut cluster: Cluster, user: AuthInfo) -> Result<Chosen, Fault> {
        let server = cluster.server.as_deref().unwrap_or_default();
        let mut config = kube::Config::new(server_url(server)?);
        let mut secrets = Vec::new();
        let mut warnings = Vec::new();
        if config.cluster_url.scheme_str() == Some("http") {
            warnings.push(UNENCRYPTED);
        }
        if cluster.insecure_skip_tls_verify == Some(true) {
            config.accept_invalid_certs = true;
            warnings.push(UNCHECKED);
        }
        let authority = self.data(
            cluster.certificate_authority_data.take(),
            cluster.certificate_authority.take(),
        )?;
        if let Some(authority) = &authority {
            config.root_cert = Some(certificates(authority)?);
        }
        cluster.certificate_authority_data = authority;
        config.tls_server_name = cluster
            .tls_server_name
            .clone()
            .filter(|name| !name.is_empty());
        if let Some(proxy) = cluster
            .proxy_url
            .as_deref()
            .filter(|proxy| !proxy.is_empty())
        {
            config.proxy_url = Some(proxy_url(proxy, &mut secrets)?);
        }
        let credential = self.credential(&user, &cluster)?;
        if user.password.is_some() && !matches!(credential, Credential::None) {
            let why = "a user has a password or a token, not both";
            return Err(unusable(why));
        }
        config.auth_info = self.identity(user, &mut secrets)?;
        Ok(Chosen {
            config,
            credential,
            secrets: Masks::new(secrets),
            warnings,
        })
    }

    /// Gives what is written as base64, else the file in base64.
    fn data(
        &mut self,
        data: Option<String>,
        file: Option<String>,
    ) -> Result<Option<String>, Fault> {
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            return Ok(Some(data.split_ascii_whitespace().collect()));
        }
        let Some(file) = file.filter(|file| !file.is_empty()) else {
            return Ok(None);
        };
        let octets = self.files.read(&self.folder.join(file))?;
        Ok(to_base64(&octets))
    }

    /// Finds where the token comes from. A file goes before a written token, as it does for others.
    fn credential(&mut self, user: &AuthInfo, cluster: &Cluster) -> Result<Credential, Fault> {
        if user.auth_provider.is_some() {
            return Err(unusable("auth-provider is not supported, exec is"));
        }
        let written = user.token.as_ref().map(ExposeSecret::expose_secret);
        let written = written.filter(|token| !token.is_empty());
        if let Some(file) = user.token_file.as_deref().filter(|file| !file.is_empty()) {
            let path = self.folder.join(file);
            let seen = Fingerprint::of(&path);
            let written = written.map(Bearer::new).transpose()?;
            let bearer = match (Bearer::read(&path), &written) {
                (Ok(bearer), _) => bearer,
                (Err(_), Some(written)) => written.clone(),
                (Err(fault), None) => return Err(fault),
            };
            return Ok(Credential::File {
                path,
                seen,
                bearer,
                written,
            });
        }
        if let Some(token) = written {
            return Bearer::new(token).map(Credential::Fixed);
        }
        match &user.exec {
            Some(exec) => {
                let plugin = Plugin::of(exec, cluster, self.folder)?;
                Ok(Credential::Plugin(Box::new(plugin)))
            }
            None => Ok(Credential::None),
        }
    }

    /// Keeps what kube may know of the user: password, certificate and who is impersonated.
    fn identity(&mut self, user: AuthInfo, secrets: &mut Vec<String>) -> Result<AuthInfo, Fault> {
        let certificate = self.data(user.client_certificate_data, user.client_certificate)?;
        let key = user
            .client_key_data
            .map(|key| key.expose_secret().to_owned());
        let key = self.data(key, user.client_key)?;
        if certificate.is_some() != key.is_some() {
            return Err(unusable(
                "a client certificate needs its key, and a key its certificate",
            ));
        }
        if let Some(password) = &user.password {
            secrets.push(password.expose_secret().to_owned());
        }
        Ok(AuthInfo {
            username: user.username,
            password: user.password,
            client_certificate_data: certificate,
            client_key_data: key.map(SecretString::from),
            impersonate: user.impersonate,
            impersonate_uid: user.impersonate_uid,
            impersonate_groups: user.impersonate_groups,
            impersonate_user_extra: user.impersonate_user_extra,
            ..AuthInfo::default()
        })
    }
}

/// Reads the URL of a server.
fn server_url(text: &str) -> Result<Uri, Fault> {
    let bad = || unusable("server: must be an http or https URL");
    let url: Uri = text.parse().map_err(|_| bad())?;
    if !matches!(url.scheme_str(), Some("http" | "https")) {
        return Err(bad());
    }
    match url.authority() {
        Some(authority) if !authority.as_str().contains('@') => Ok(url),
        Some(_) => Err(unusable(
            "server: user and password have no place in its URL",
        )),
        None => Err(bad()),
    }
}

/// Reads the URL of a proxy; what it has of a user and a password is a secret.
fn proxy_url(text: &str, secrets: &mut Vec<String>) -> Result<Uri, Fault> {
    let bad = || unusable("proxy-url: must be an http, https or socks5 URL");
    let url: Uri = text.parse().map_err(|_| bad())?;
    if !matches!(url.scheme_str(), Some("http" | "https" | "socks5")) {
        return Err(bad());
    }
    let authority = url.authority().ok_or_else(bad)?;
    if let Some((user, _)) = authority.as_str().rsplit_once('@') {
        secrets.push(user.to_owned());
        secrets.extend(
            user.split_once(':')
                .map(|(_, password)| password.to_owned()),
        );
    }
    Ok(url)
}

/// Takes the service account of the pod that this runs in.
fn in_cluster() -> Result<Chosen, Fault> {
    let mut config = kube::Config::incluster()
        .map_err(|error| unusable(&format!("service account of the pod: {error}")))?;
    let path = config.auth_info.token_file.take().map(PathBuf::from);
    let path = path.ok_or_else(|| unusable("service account of the pod: has no token"))?;
    let seen = Fingerprint::of(&path);
    let bearer = Bearer::read(&path)?;
    Ok(Chosen {
        config,
        credential: Credential::File {
            path,
            seen,
            bearer,
            written: None,
        },
        secrets: Masks::default(),
        warnings: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use k8s_openapi::ByteString;
    use serde_json::Value;
    use tempfile::TempDir;

    use super::*;

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
        let user =
            "{client-certificate: c.pem, client-key: k.pem, tokenFile: token, token: written}";
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
}
