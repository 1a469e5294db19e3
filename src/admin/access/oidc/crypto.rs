//! Signatures of bearer tokens, checked by ring: RS256, PS256, ES256 and EdDSA. Nothing is signed here, and there is no HMAC: a
//! key that everybody may know is no secret.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};

/// What may sign.
pub(super) const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::RS256,
    Algorithm::PS256,
    Algorithm::ES256,
    Algorithm::EdDSA,
];

/// Of the whole process; there is no other user of the library.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| Err(ErrorKind::InvalidKeyFormat.into()),
        rsa_pub_components_from_public_key: |_| Err(ErrorKind::InvalidKeyFormat.into()),
        ec_pub_components_from_private_key: |_, _| Err(ErrorKind::InvalidKeyFormat.into()),
        ed_pub_components_from_private_key: |_, _| Err(ErrorKind::InvalidKeyFormat.into()),
        compute_digest: |_, _| Err(ErrorKind::InvalidKeyFormat.into()),
    },
};

/// Makes ring what the library uses. May be called again.
pub(super) fn install() {
    // It fails only where it is installed already.
    let _ = PROVIDER.install_default();
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if !ALGORITHMS.contains(algorithm) || algorithm.family() != key.family() {
        return Err(ErrorKind::UnsupportedAlgorithm.into());
    }
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        key: key.clone(),
    }))
}

/// Checks signatures of one algorithm by one key.
struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let rsa = |parameters: &RsaParameters| match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                // Some providers write a zero before the number; ring wants none.
                let (n, e) = (bare(n), bare(e));
                RsaPublicKeyComponents { n, e }
                    .verify(parameters, message, signature)
                    .map_err(|_| Error::new())
            }
            DecodingKeyKind::SecretOrDer(_) => Err(Error::new()),
        };
        let octets = || self.key.try_get_as_bytes().map_err(|_| Error::new());
        match self.algorithm {
            Algorithm::RS256 => rsa(&RSA_PKCS1_2048_8192_SHA256),
            Algorithm::PS256 => rsa(&RSA_PSS_2048_8192_SHA256),
            Algorithm::ES256 => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, octets()?)
                .verify(message, signature)
                .map_err(|_| Error::new()),
            Algorithm::EdDSA => UnparsedPublicKey::new(&ED25519, octets()?)
                .verify(message, signature)
                .map_err(|_| Error::new()),
            _ => Err(Error::new()),
        }
    }
}

/// Leaves out zeros before a number.
fn bare(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|octet| **octet == 0).count();
    number.get(zeros..).unwrap_or_default()
}
