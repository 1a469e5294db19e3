//! Whom to trust over https.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Largest file of certificates in octets; the whole of a system's is a fifth of it.
const MAX_BYTES: u64 = 1 << 20;

/// Makes a configuration that trusts the certificates of a file, or the system's.
///
/// # Errors
///
/// When the file cannot be read or holds no certificate, or the system has none.
pub(super) fn config(ca: Option<&Path>) -> anyhow::Result<ClientConfig> {
    let anchors = match ca {
        Some(file) => from_file(file).with_context(|| format!("--ca {}", file.display()))?,
        None => of_system()?,
    };
    Ok(trusting(anchors))
}

/// Makes a configuration that trusts nobody: for clients that speak no TLS.
pub(super) fn nobody() -> ClientConfig {
    trusting(RootCertStore::empty())
}

/// Makes a configuration that trusts these.
fn trusting(anchors: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has suites for TLS 1.2 and 1.3")
        .with_root_certificates(anchors)
        .with_no_client_auth()
}

/// Reads the certificates of a PEM file.
fn from_file(file: &Path) -> anyhow::Result<RootCertStore> {
    let octets = super::files::read_small(file, MAX_BYTES)?;
    let mut anchors = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&octets) {
        anchors
            .add(certificate.context("it is no sound PEM file")?)
            .context("it holds something that is no certificate of an authority")?;
    }
    if anchors.is_empty() {
        bail!("it holds no certificate; PEM is wanted, beginning with -----BEGIN CERTIFICATE-----");
    }
    Ok(anchors)
}

/// Reads the system's certificates.
fn of_system() -> anyhow::Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut anchors = RootCertStore::empty();
    let (added, _) = anchors.add_parsable_certificates(found.certs);
    if added == 0 {
        bail!(
            "the system trusts no certificate authority (Debian: package ca-certificates); name one with --ca FILE"
        );
    }
    Ok(anchors)
}
