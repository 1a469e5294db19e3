//! Asking the provider for its keys: OpenID Connect Discovery 1.0 over HTTPS, small and in time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;

use crate::admin::config::OidcConfig;
use crate::source::read_bounded;

/// Largest answer in octets.
const MAX_ANSWER: usize = 256 << 10;
/// Largest file of authorities in octets.
const MAX_CA: u64 = 1 << 20;
/// Longest time for one answer.
const TIME: Duration = Duration::from_secs(5);

/// What discovery says of a provider.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

/// Asks for the keys. Errors are words for the log: what, and why not.
pub(super) async fn keys(config: &OidcConfig) -> Result<Vec<u8>, String> {
    let client = client(config.ca.as_deref()).await?;
    let place = format!(
        "{}/.well-known/openid-configuration",
        config.issuer.trim_end_matches('/')
    );
    let metadata = get(&client, &place).await?;
    let metadata: Metadata = serde_json::from_slice(&metadata)
        .map_err(|_| format!("{place}: no `issuer` and `jwks_uri` in it"))?;
    if metadata.issuer != config.issuer {
        return Err(format!("{place}: names another issuer"));
    }
    get(&client, &metadata.jwks_uri).await
}

/// Makes a client that trusts whom the configuration says, and follows nobody elsewhere.
async fn client(ca: Option<&Path>) -> Result<Client, String> {
    let ca = ca.map(Path::to_owned);
    // Reading the system's authorities takes a while.
    let roots = tokio::task::spawn_blocking(move || roots(ca.as_deref()));
    let roots = roots.await.map_err(|error| error.to_string())??;
    let tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .https_only(true)
        .redirect(Policy::none())
        .no_proxy()
        .timeout(TIME)
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| error.to_string())
}

/// Reads the authorities of a file, or the system's.
fn roots(ca: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let added = match ca {
        Some(path) => {
            let octets = read_bounded(path, MAX_CA)
                .map_err(|error| format!("{}: {}", path.display(), error.reason()))?;
            let certificates: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(&octets)
                .collect::<Result<_, _>>()
                .map_err(|_| format!("{}: its PEM is broken", path.display()))?;
            roots.add_parsable_certificates(certificates).0
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs).0
        }
    };
    if added == 0 {
        let place = ca.map_or_else(
            || "the system".to_owned(),
            |path| path.display().to_string(),
        );
        return Err(format!("{place}: no certificate of an authority"));
    }
    Ok(roots)
}

/// Gets one document.
async fn get(client: &Client, place: &str) -> Result<Vec<u8>, String> {
    let refuse = |why: &str| format!("{place}: {why}");
    let url = Url::parse(place).map_err(|_| refuse("is no URL"))?;
    let failed = |error: reqwest::Error| {
        // The chain has the reason; the URL stands before it already.
        let error = error.without_url();
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| {
            error.source()
        });
        let causes: Vec<String> = causes.map(ToString::to_string).collect();
        refuse(&causes.join(": "))
    };
    let mut response = client.get(url).send().await.map_err(failed)?;
    if !response.status().is_success() {
        return Err(refuse(&format!("answers {}", response.status())));
    }
    let mut octets = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if octets.len() + chunk.len() > MAX_ANSWER {
            return Err(refuse(&format!("more than {MAX_ANSWER} octets")));
        }
        octets.extend_from_slice(&chunk);
    }
    Ok(octets)
}
