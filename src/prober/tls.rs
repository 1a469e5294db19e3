//! TLS of `https` probes: the only file that knows certificates.
//!
//! Sessions are never resumed: a resumed session shows no certificate, and one that expired would go unnoticed.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use rustls_native_certs::{CertificateResult, ErrorKind};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing::warn;

use super::connect::{is_shortage, of_io};
use crate::health::ProbeError;
use crate::model::TlsMode;

/// Makes TLS connections of every [`TlsMode`].
#[derive(Debug)]
pub(super) struct Tls {
    provider: Arc<CryptoProvider>,
    /// Of `Verify`: made at the first such probe, which reads the system's trust anchors, and kept while the process lives.
    /// The others wait meanwhile.
    verify: Mutex<Option<Arc<ClientConfig>>>,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            provider: Arc::new(ring::default_provider()),
            verify: Mutex::default(),
        }
    }
}

impl Tls {
    /// Trusts these anchors in place of the system's.
    #[cfg(test)]
    pub(super) fn trusting(anchors: RootCertStore) -> Self {
        let tls = Self::default();
        *tls.verify.lock().unwrap() = Some(tls.with_anchors(anchors));
        tls
    }

    /// Speaks TLS over a connection. `host` is checked and sent as SNI; without it the address is checked and no SNI sent.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Tls`] for handshake, certificate and name; else as [`of_io`].
    pub(super) async fn handshake(
        &self,
        stream: TcpStream,
        mode: TlsMode,
        host: Option<&str>,
        address: SocketAddr,
    ) -> Result<TlsStream<TcpStream>, ProbeError> {
        let name = match host {
            Some(host) => ServerName::try_from(host.to_owned()).map_err(|_| ProbeError::Tls)?,
            None => ServerName::IpAddress(address.ip().into()),
        };
        let config = match mode {
            TlsMode::Verify => self.verifying(rustls_native_certs::load_native_certs)?,
            TlsMode::Skip => self.with_trust(Trust::Anything),
            TlsMode::Pin(digest) => self.with_trust(Trust::Leaf(digest)),
        };
        let connected = TlsConnector::from(config).connect(name, stream).await;
        connected.map_err(|error| of_io(&error))
    }

    /// Gives the configuration with the system's anchors, which `load` reads if it must.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Local`] when this node lacked what it takes to read them. The next probe tries again: anchors that are
    /// missed once must not be missed while the process lives.
    fn verifying(
        &self,
        load: impl FnOnce() -> CertificateResult,
    ) -> Result<Arc<ClientConfig>, ProbeError> {
        // A panic while it was held leaves it as it was.
        let mut held = self.verify.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = &*held {
            return Ok(Arc::clone(config));
        }
        let found = load();
        let lacked = |error: &rustls_native_certs::Error| match &error.kind {
            ErrorKind::Io { inner, .. } => is_shortage(inner),
            _ => false,
        };
        if found.errors.iter().any(lacked) {
            return Err(ProbeError::Local);
        }
        let config = self.with_system_anchors(found);
        *held = Some(Arc::clone(&config));
        Ok(config)
    }

    fn with_system_anchors(&self, found: CertificateResult) -> Arc<ClientConfig> {
        for error in &found.errors {
            warn!(%error, "Some trust anchors of the system cannot be read");
        }
        let mut anchors = RootCertStore::empty();
        let (added, _) = anchors.add_parsable_certificates(found.certs);
        if added == 0 {
            warn!("The system has no trust anchors; every https probe that verifies will fail");
        }
        self.with_anchors(anchors)
    }

    fn with_anchors(&self, anchors: RootCertStore) -> Arc<ClientConfig> {
        finish(
            self.versions()
                .with_root_certificates(anchors)
                .with_no_client_auth(),
        )
    }

    fn with_trust(&self, trust: Trust) -> Arc<ClientConfig> {
        let verifier = Verifier {
            trust,
            provider: Arc::clone(&self.provider),
        };
        finish(
            self.versions()
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
                .with_no_client_auth(),
        )
    }

    fn versions(&self) -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
        ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .expect("ring has suites for TLS 1.2 and 1.3")
    }
}

fn finish(mut config: ClientConfig) -> Arc<ClientConfig> {
    config.resumption = Resumption::disabled();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// What a certificate is trusted for.
#[derive(Clone, Copy, Debug)]
enum Trust {
    /// For being there.
    Anything,
    /// For being this leaf, by SHA-256; the server must have its key.
    Leaf([u8; 32]),
}

/// Checks certificates without anchors.
struct Verifier {
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Verifier").field(&self.trust).finish()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.trust {
            Trust::Anything => Ok(ServerCertVerified::assertion()),
            Trust::Leaf(digest) if sha256(leaf) == Some(digest) => {
                Ok(ServerCertVerified::assertion())
            }
            Trust::Leaf(_) => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.trust {
            Trust::Anything => Ok(HandshakeSignatureValid::assertion()),
            Trust::Leaf(_) => {
                let algorithms = &self.provider.signature_verification_algorithms;
                verify_tls12_signature(message, leaf, signed, algorithms)
            }
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.trust {
            Trust::Anything => Ok(HandshakeSignatureValid::assertion()),
            Trust::Leaf(_) => {
                let algorithms = &self.provider.signature_verification_algorithms;
                verify_tls13_signature(message, leaf, signed, algorithms)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Hashes with the hash of a cipher suite that uses SHA-256, so that the TLS library stays the only crypto.
pub(super) fn sha256(octets: &[u8]) -> Option<[u8; 32]> {
    let suite = ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13()?;
    let digest = suite.common.hash_provider.hash(octets);
    digest.as_ref().try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn sha256_is_sha256() {
        // FIPS 180-2, appendix B.1.
        let digest = sha256(b"abc").unwrap();
        assert_eq!(digest[..4], [0xba, 0x78, 0x16, 0xbf]);
        assert_eq!(digest[28..], [0xf2, 0x00, 0x15, 0xad]);
    }
    #[test]
    fn anchors_missed_for_a_shortage_are_read_at_the_next_probe() {
        // Linux numbers: ENOENT, ENOMEM, EACCES, ENFILE, EMFILE.
        for (code, passes) in [(2, false), (12, true), (13, false), (23, true), (24, true)] {
            let tls = Tls::default();
            let failed = || {
                let mut found = CertificateResult::default();
                found.errors.push(rustls_native_certs::Error {
                    context: "test",
                    kind: ErrorKind::Io {
                        inner: io::Error::from_raw_os_error(code),
                        path: "/etc/ssl".into(),
                    },
                });
                found
            };
            let first = tls.verifying(failed).err();
            assert_eq!(first, passes.then_some(ProbeError::Local), "{code}");
            let again = tls.verifying(|| {
                assert!(passes, "read once");
                CertificateResult::default()
            });
            assert!(again.is_ok());
        }
    }
}
