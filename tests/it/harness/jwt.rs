//! An identity provider of the test's: one key, and tokens signed with it or otherwise.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

/// The provider's key.
pub struct Provider {
    key: EcdsaKeyPair,
    pub issuer: String,
}

/// Writes octets as unpadded base64url.
fn base64(octets: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for three in octets.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=three.len()].copy_from_slice(three);
        let bits = u32::from_be_bytes(bits);
        for at in 0..=three.len() {
            out.push(char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]));
        }
    }
    out
}

impl Provider {
    /// Makes a key.
    pub fn new(issuer: &str) -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self {
            key: EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).unwrap(),
            issuer: issuer.to_owned(),
        }
    }

    /// Shows the public key.
    pub fn set(&self) -> String {
        let key = self.key.public_key().as_ref();
        let key = json!({"kty": "EC", "crv": "P-256", "kid": "one", "x": base64(&key[1..33]), "y": base64(&key[33..])});
        json!({"keys": [key]}).to_string()
    }

    /// Makes claims of somebody with a role.
    pub fn claims(&self, role: &str) -> Value {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        json!({"iss": self.issuer, "aud": "meridian", "exp": now + 600, "sub": "ann", "roles": [role]})
    }

    /// Signs as the header says: ES256, HS256 with the public key, or not at all.
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| base64(value.to_string().as_bytes());
        let input = format!("{}.{}", part(header), part(claims));
        let signature = match header["alg"].as_str() {
            Some("ES256") => {
                let signature = self.key.sign(&SystemRandom::new(), input.as_bytes());
                signature.unwrap().as_ref().to_vec()
            }
            Some("HS256") => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.public_key().as_ref());
                hmac::sign(&key, input.as_bytes()).as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{input}.{}", base64(&signature))
    }

    /// Signs what is right.
    pub fn right(&self, claims: &Value) -> String {
        self.token(&json!({"alg": "ES256", "kid": "one"}), claims)
    }
}
