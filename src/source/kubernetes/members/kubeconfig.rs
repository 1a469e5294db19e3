//! Kubeconfig files: one context of them, with every file that it names read within limits.
//!
//! The operator's own may name other files and programs. One that was found in a directory names neither, but for programs that
//! the operator lists: whoever may write there must not read a file of this node or run a command on it. Proxies are those of
//! `proxy-url`, never those of the environment. kube itself reads none of the files that a kubeconfig names and runs no plugin:
//! it has no limits there. Of a Pod's own service account it reads namespace and authority.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper::Uri;
use kube::config::{AuthInfo, Cluster, Kubeconfig, KubeconfigError};
use secrecy::{ExposeSecret, SecretString};

use super::bearer::Bearer;
use super::fault::{Fault, FaultKind, Masks};
use super::pem::{certificates, to_base64};
use super::plugin::Plugin;
use super::trust;
use crate::source::kubernetes::rules::{Absence, Access, Trust};
use crate::source::kubernetes::secret::HeldKubeconfig;
use crate::source::{Fingerprint, read_bounded};

/// Octets of a kubeconfig file, and of a file of certificates or keys that it names.
const MAX_FILE: u64 = 1 << 20;

/// Said of a cluster whose server is not checked.
pub(super) const UNCHECKED: &str =
    "the server's certificate is not checked (insecure-skip-tls-verify)";
/// Said of a cluster without TLS.
pub(super) const UNENCRYPTED: &str = "the connection is not encrypted (http)";

/// Said of a cluster that is leaving.
const GONE: &str = "it is leaving: its kubeconfig is gone, or says that it is to be ignored";
/// Said of a cluster of which nobody knows whether it is leaving.
const UNSEEN: &str = "where its kubeconfig stands cannot be read";

/// Files that were read, as they were then.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    paths: Vec<(PathBuf, Fingerprint)>,
    /// What was read of a Secret, and its version.
    held: Option<(Arc<HeldKubeconfig>, u64)>,
}

impl Files {
    /// Tells whether one of them was replaced, written or removed.
    pub(super) fn changed(&self) -> bool {
        let held = self.held.as_ref();
        let mut paths = self.paths.iter();
        held.is_some_and(|(held, version)| held.version() != *version)
            || paths.any(|(path, seen)| Fingerprint::of(path) != *seen)
    }

    /// Counts them.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.paths.len()
    }

    /// Reads a file and notes it.
    fn read(&mut self, path: &Path) -> Result<Vec<u8>, Fault> {
        let seen = Fingerprint::of(path);
        let read = read_bounded(path, MAX_FILE);
        let seen = match &read {
            Ok(_) => seen,
            Err(error) => Fingerprint::of_unread(path, error),
        };
        self.paths.push((path.to_owned(), seen));
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
        Access::Secret { kubeconfig, exec } => of_secret(kubeconfig, exec, &mut files),
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
    let folder = file.parent().unwrap_or_else(|| Path::new("/"));
    of_text(
        (&name.to_string(), &text),
        (context, trust),
        Reading { folder, files },
    )
}

/// Takes a kubeconfig of a Secret: it is trusted no further than one of a directory.
fn of_secret(
    held: &Arc<HeldKubeconfig>,
    exec: &Arc<[PathBuf]>,
    files: &mut Files,
) -> Result<Chosen, Fault> {
    let (version, text) = held.text();
    files.held = Some((held.clone(), version));
    let trust = Trust::Data { exec: exec.clone() };
    let folder = Path::new("/");
    let reading = Reading { folder, files };
    of_text((held.name(), text.expose()), (None, &trust), reading)
}

/// Reads the text of a kubeconfig that has a name for people.
fn of_text(
    (name, text): (&str, &str),
    (context, trust): (Option<&str>, &Trust),
    reading: Reading<'_>,
) -> Result<Chosen, Fault> {
    let text = text.trim_start_matches('\u{feff}');
    let parsed = Kubeconfig::from_yaml(text)
        // What the parser says quotes lines of the file, and those may be secrets.
        .map_err(|error| {
            let place = place(&error);
            unusable(&format!("{name}: is no kubeconfig in YAML{place}"))
        })?;
    let of_name = |fault: Fault| unusable(&format!("{name}: {}", fault.text));
    let only = match (trust, &parsed.contexts[..]) {
        (Trust::Data { .. }, [only]) if parsed.current_context.is_none() => Some(only.name.clone()),
        _ => None,
    };
    let (cluster, user) = find(parsed, context.or(only.as_deref())).map_err(of_name)?;
    if let Trust::Data { exec } = trust {
        trust::check(&cluster, &user, exec).map_err(of_name)?;
    }
    reading.put_together(cluster, user)
}

/// Says where the YAML of a kubeconfig ends to make sense, where that is known.
fn place(error: &KubeconfigError) -> String {
    let KubeconfigError::Parse(error) = error else {
        return String::new();
    };
    error.location().map_or_else(String::new, |place| {
        format!(": line {}, column {}", place.line(), place.column())
    })
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
