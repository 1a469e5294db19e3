//! The provider's public keys (RFC 7517).

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use super::crypto::ALGORITHMS;

/// Most keys taken.
const KEYS: usize = 64;

/// One key that may sign.
#[derive(Clone)]
pub(super) struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    pub(super) key: DecodingKey,
}

/// A set of keys as the provider writes it.
#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

/// Reads a set of keys. Those of other kinds and for other uses are left out.
///
/// # Errors
/// When it is no set, or none of its keys can sign.
pub(super) fn parse(octets: &[u8]) -> Result<Vec<Key>, &'static str> {
    let set: Set = serde_json::from_slice(octets)
        .map_err(|_| "is no JSON Web Key Set: an object with a list `keys` is wanted")?;
    let keys: Vec<Key> = set.keys.into_iter().take(KEYS).filter_map(read).collect();
    if keys.is_empty() {
        return Err("has no key that signs with RS256, PS256, ES256 or EdDSA");
    }
    Ok(keys)
}

/// Reads one key.
fn read(value: Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    let is_for_signatures = matches!(
        jwk.common.public_key_use,
        None | Some(PublicKeyUse::Signature)
    );
    let kind: &[Algorithm] = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => &[Algorithm::RS256, Algorithm::PS256],
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            &[Algorithm::ES256]
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            &[Algorithm::EdDSA]
        }
        // Secrets are no keys to check with here, and other curves are not known.
        _ => return None,
    };
    let algorithms = match jwk.common.key_algorithm {
        None => kind.to_vec(),
        Some(only) => {
            let only = match only {
                KeyAlgorithm::RS256 => Algorithm::RS256,
                KeyAlgorithm::PS256 => Algorithm::PS256,
                KeyAlgorithm::ES256 => Algorithm::ES256,
                KeyAlgorithm::EdDSA => Algorithm::EdDSA,
                _ => return None,
            };
            kind.iter().copied().filter(|one| *one == only).collect()
        }
    };
    debug_assert!(kind.iter().all(|one| ALGORITHMS.contains(one)));
    if !is_for_signatures || algorithms.is_empty() {
        return None;
    }
    Some(Key {
        key: DecodingKey::from_jwk(&jwk).ok()?,
        id: jwk.common.key_id,
        algorithms,
    })
}

/// Finds the key that signed: by its name, or the only one that fits where the token names none.
pub(super) fn find<'k>(keys: &'k [Key], id: Option<&str>, algorithm: Algorithm) -> Option<&'k Key> {
    let mut fitting = keys
        .iter()
        .filter(|key| key.algorithms.contains(&algorithm))
        .filter(|key| id.is_none() || key.id.as_deref() == id);
    let first = fitting.next()?;
    (id.is_some() || fitting.next().is_none()).then_some(first)
}
