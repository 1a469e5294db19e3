//! An HTTPS client whose only crypto is ring.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, crypto::ring};

/// Until a connection stands.
const CONNECT: Duration = Duration::from_secs(3);

/// Why no client can be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The file of trusted certificates has none that can be read.
    #[error("no certificate in PEM form can be read from it")]
    NoCertificate,
    /// The system lacks something.
    #[error("no HTTPS client can be made")]
    Client(#[source] reqwest::Error),
    /// TLS is set up wrong.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

/// Makes a client for HTTPS and, where the caller allows it, HTTP. `ca` is PEM text: trusted in place of the system's anchors.
/// Redirects are not followed, proxies of the environment not used. `whole` bounds a request from its beginning to its end.
///
/// # Errors
/// When `ca` has no certificate, or the system lacks something.
pub fn https_client(ca: Option<&[u8]>, whole: Duration) -> Result<reqwest::Client, ClientError> {
    let mut anchors = RootCertStore::empty();
    match ca {
        Some(pem) => {
            let read = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
            let (added, _) = anchors.add_parsable_certificates(read);
            if added == 0 {
                return Err(ClientError::NoCertificate);
            }
        }
        None => {
            anchors.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(ClientError::Tls)?
        .with_root_certificates(anchors)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT)
        .timeout(whole)
        .user_agent(concat!("meridian/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(ClientError::Client)
}
