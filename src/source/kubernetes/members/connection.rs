//! A connection for one job: made once of a kubeconfig, of the same parts that members are followed with, and kept by nobody.
//!
//! For commands that a person waits for. What members need beyond that, new tokens and changed files, it does not know.

use std::time::Duration;

use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::watch;

use super::fault::{Fault, FaultKind};
use super::kubeconfig::{Chosen, Credential, choose};
use super::pem::to_base64;
use super::server::{SMALL, Server, bad_request};
use crate::source::kubernetes::rules::Access;
use crate::source::kubernetes::secret::SecretText;

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(10);
/// Characters of base64 in a line of PEM (RFC 7468 s2).
const PEM_LINE: usize = 64;

/// What is done with a path of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source::kubernetes) enum Verb {
    /// It is read.
    Get,
    /// It is made so, on the server's side.
    Apply,
    /// Something is made below it.
    Create,
    /// It is deleted.
    Delete,
}

impl Verb {
    /// Gives the verb as RBAC has it.
    pub(in crate::source::kubernetes) fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Apply => "patch",
            Self::Create => "create",
            Self::Delete => "delete",
        }
    }

    /// Gives the method, and the type of what is sent with it.
    fn method(self) -> (Method, &'static str) {
        match self {
            Self::Get => (Method::GET, "application/json"),
            // JSON is YAML.
            Self::Apply => (Method::PATCH, "application/apply-patch+yaml"),
            Self::Create => (Method::POST, "application/json"),
            Self::Delete => (Method::DELETE, "application/json"),
        }
    }
}

/// Where a server is, and how it is known again: what a kubeconfig says of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::source::kubernetes) struct Endpoint {
    /// Its URL, without a slash at the end.
    pub(in crate::source::kubernetes) url: String,
    /// Certificates to trust: PEM, in base64 around that. `None`: those of the system.
    pub(in crate::source::kubernetes) authority: Option<String>,
    /// The name that its certificate has.
    pub(in crate::source::kubernetes) tls_server_name: Option<String>,
    /// The proxy before it; may hold a password.
    pub(in crate::source::kubernetes) proxy_url: Option<SecretText>,
    /// Its certificate is not checked.
    pub(in crate::source::kubernetes) is_unchecked: bool,
}

/// A server with credentials for it.
#[derive(Debug)]
pub(in crate::source::kubernetes) struct Connection {
    server: Server,
    endpoint: Endpoint,
    warnings: Vec<&'static str>,
}

impl Connection {
    /// Makes one; a plugin of the kubeconfig runs. Nothing is asked of the server yet.
    ///
    /// # Errors
    /// When a file, a credential or the plugin cannot be used.
    pub(in crate::source::kubernetes) async fn open(access: &Access) -> Result<Self, Fault> {
        let Chosen {
            mut config,
            credential,
            secrets,
            warnings,
        } = chosen(access).await?;
        let endpoint = endpoint(&config);
        let bearer = match credential {
            Credential::None => None,
            Credential::Fixed(bearer) | Credential::File { bearer, .. } => Some(bearer),
            Credential::Plugin(plugin) => {
                let got = plugin.run().await?;
                if let Some((certificate, key)) = got.identity {
                    let key = to_base64(key.expose_secret().as_bytes());
                    config.auth_info.client_certificate_data = to_base64(certificate.as_bytes());
                    config.auth_info.client_key_data = key.map(SecretString::from);
                }
                got.bearer
            }
        };
        // Nobody brings another token: the sender may fall.
        let (_, bearer) = watch::channel(bearer);
        Ok(Self {
            server: Server::new(&config, bearer, secrets)?,
            endpoint,
            warnings,
        })
    }

    /// Reads where a kubeconfig leads to, and asks nobody.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(in crate::source::kubernetes) async fn leads_to(
        access: &Access,
    ) -> Result<Endpoint, Fault> {
        Ok(endpoint(&chosen(access).await?.config))
    }

    /// Where the server is.
    pub(in crate::source::kubernetes) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What an operator should know of the connection.
    pub(in crate::source::kubernetes) fn warnings(&self) -> &[&'static str] {
        &self.warnings
    }

    /// Asks for a path, and gives the JSON of the answer.
    ///
    /// # Errors
    /// For every answer that is no success, and when there is none within 10 s.
    pub(in crate::source::kubernetes) async fn ask(
        &self,
        verb: Verb,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Fault> {
        let (method, kind) = verb.method();
        let body = body.map(|body| body.to_string().into_bytes());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, kind)
            .body(body.unwrap_or_default())
            .map_err(|_| bad_request())?;
        let answer = self.server.get(request, SMALL, ANSWER).await?;
        serde_json::from_slice(&answer)
            .map_err(|_| Fault::new(FaultKind::Malformed, "the answer is no JSON"))
    }
}

/// Reads the kubeconfig; a folder on the network may block for long.
async fn chosen(access: &Access) -> Result<Chosen, Fault> {
    let access = access.clone();
    let choosing = tokio::task::spawn_blocking(move || choose(&access).1);
    choosing
        .await
        .unwrap_or_else(|_| Err(Fault::new(FaultKind::Unusable, "cannot be read")))
}

/// Takes out of a configuration what says where the server is.
fn endpoint(config: &kube::Config) -> Endpoint {
    let authority = config.root_cert.as_ref().and_then(|all| {
        let pem: Option<String> = all.iter().map(|der| pem(der)).collect();
        to_base64(pem?.as_bytes())
    });
    let proxy = config.proxy_url.as_ref().map(ToString::to_string);
    Endpoint {
        url: config.cluster_url.to_string().trim_end_matches('/').into(),
        authority,
        tls_server_name: config.tls_server_name.clone(),
        proxy_url: proxy.map(|proxy| SecretText::from(proxy.trim_end_matches('/').to_owned())),
        is_unchecked: config.accept_invalid_certs,
    }
}

/// Writes a certificate in PEM form (RFC 7468).
fn pem(der: &[u8]) -> Option<String> {
    let base64 = to_base64(der)?;
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(PEM_LINE));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text.push_str("-----END CERTIFICATE-----\n");
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn where_a_kubeconfig_leads_to_is_kept_whole() {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        let file = folder.path().join("admin");
        let text = "
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
clusters: [{name: a, cluster: {server: 'https://192.0.2.1:6443/k8s/', certificate-authority: ca.pem, tls-server-name: a.example,
  proxy-url: 'http://me:canary@192.0.2.2:3128'}}]
users: [{name: a, user: {token: canary}}]";
        fs::write(&file, text).unwrap();
        let access = Access::Kubeconfig {
            file,
            context: None,
            trust: crate::source::kubernetes::Trust::Whole,
        };
        let endpoint = Connection::leads_to(&access).await.unwrap();
        assert_eq!(endpoint.url, "https://192.0.2.1:6443/k8s");
        assert_eq!(endpoint.tls_server_name.as_deref(), Some("a.example"));
        assert!(!format!("{endpoint:?}").contains("canary"));
        let proxy = endpoint.proxy_url.as_ref().unwrap();
        assert_eq!(proxy.expose(), "http://me:canary@192.0.2.2:3128");
        // The reference is the library that made the certificate.
        let pem = certificate.pem().replace("\r\n", "\n");
        assert_eq!(endpoint.authority, to_base64(pem.as_bytes()));
        let connection = Connection::open(&access).await.unwrap();
        assert_eq!(connection.endpoint(), &endpoint);
        assert!(!format!("{connection:?}").contains("canary"));
    }
}
