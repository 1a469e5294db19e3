//! Certificates and keys in the forms that kubeconfig files have them in.

use k8s_openapi::ByteString;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;

use super::fault::Fault;
use super::kubeconfig::unusable;

/// Writes octets in the form that kubeconfig files have them in.
pub(super) fn to_base64(octets: &[u8]) -> Option<String> {
    match serde_json::to_value(ByteString(octets.to_vec())) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Reads certificates in PEM form, in base64 around that, to DER.
pub(super) fn certificates(base64: &str) -> Result<Vec<Vec<u8>>, Fault> {
    let bad = || unusable("certificate-authority: has no certificate in PEM form");
    let ByteString(pem) =
        serde_json::from_value(Value::String(base64.to_owned())).map_err(|_| bad())?;
    let read = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok);
    let read: Vec<Vec<u8>> = read.map(|certificate| certificate.to_vec()).collect();
    if read.is_empty() {
        Err(bad())
    } else {
        Ok(read)
    }
}
