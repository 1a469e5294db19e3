//! Tokens of a provider: right ones of every algorithm, and every way to forge one.

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaEncoding, RsaKeyPair, RsaPublicKeyComponents,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;

use super::*;

/// Writes octets as unpadded base64url (RFC 4648 section 5).
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

/// The keys of a provider.
struct Provider {
    ec: EcdsaKeyPair,
    ed: Ed25519KeyPair,
    rsa: RsaKeyPair,
}

impl Provider {
    fn new() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let ec = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let ed = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let pem = include_bytes!("../../../../tests/fixtures/oidc-rsa.pem");
        let rsa = PrivatePkcs8KeyDer::from_pem_slice(pem).unwrap();
        Self {
            ec: EcdsaKeyPair::from_pkcs8(algorithm, ec.as_ref(), &random).unwrap(),
            ed: Ed25519KeyPair::from_pkcs8(ed.as_ref()).unwrap(),
            rsa: RsaKeyPair::from_pkcs8(rsa.secret_pkcs8_der()).unwrap(),
        }
    }

    /// Shows the public keys.
    fn set(&self) -> Value {
        let ec = self.ec.public_key().as_ref();
        let rsa: RsaPublicKeyComponents<Vec<u8>> = self.rsa.public().into();
        let rsa = rsa.n;
        let with_zero = [&[0], &rsa[..]].concat();
        json!({"keys": [
            {"kty": "EC", "crv": "P-256", "kid": "ec", "use": "sig", "x": base64(&ec[1..33]), "y": base64(&ec[33..])},
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "alg": "EdDSA", "x": base64(self.ed.public_key().as_ref())},
            {"kty": "RSA", "kid": "rsa", "n": base64(&with_zero), "e": "AQAB"},
            {"kty": "RSA", "kid": "rsa-enc", "use": "enc", "n": base64(&rsa), "e": "AQAB"},
            {"kty": "RSA", "kid": "rs-only", "alg": "RS256", "n": base64(&rsa), "e": "AQAB"},
            {"kty": "oct", "kid": "oct", "k": base64(b"secret")},
            {"kty": "new", "kid": "new"},
            "broken",
        ]})
    }

    fn sign(&self, algorithm: &str, input: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        let rsa = |padding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            self.rsa
                .sign(padding, &random, input, &mut signature)
                .unwrap();
            signature
        };
        match algorithm {
            "ES256" => self.ec.sign(&random, input).unwrap().as_ref().to_vec(),
            "EdDSA" => self.ed.sign(input).as_ref().to_vec(),
            "RS256" => rsa(&RSA_PKCS1_SHA256),
            "PS256" => rsa(&RSA_PSS_SHA256),
            // What a forger makes of a public key that is taken for a secret.
            "HS256" => {
                let key = self.ec.public_key().as_ref();
                let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key);
                ring::hmac::sign(&key, input).as_ref().to_vec()
            }
            _ => Vec::new(),
        }
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| base64(value.to_string().as_bytes());
        let input = format!("{}.{}", part(header), part(claims));
        let algorithm = header["alg"].as_str().unwrap_or_default();
        let signature = self.sign(algorithm, input.as_bytes());
        format!("{input}.{}", base64(&signature))
    }
}

const ISSUER: &str = "https://login.example";

fn oidc(provider: &Provider) -> Oidc {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jwks.json");
    std::fs::write(&path, provider.set().to_string()).unwrap();
    Oidc::new(&OidcConfig {
        issuer: ISSUER.to_owned(),
        audience: "meridian".to_owned(),
        jwks_file: Some(path),
        ca: None,
        roles_claim: "realm.roles".to_owned(),
        viewer: vec!["dev".to_owned()],
        operator: vec!["sre".to_owned(), "on call".to_owned()],
    })
}

/// Claims that are right, changed by what is given.
fn claims(change: Value) -> Value {
    let now = get_current_timestamp();
    let mut claims = json!({
        "iss": ISSUER, "aud": ["other", "meridian"], "exp": now + 300, "nbf": now - 5,
        "sub": "u-1", "realm": {"roles": ["x", "sre"]},
    });
    for (key, value) in change.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(key);
        } else {
            claims[key] = value.clone();
        }
    }
    claims
}

#[test]
fn base64_is_rfc_4648() {
    for (text, encoded) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foobar", "Zm9vYmFy")] {
        assert_eq!(base64(text.as_bytes()), encoded);
    }
}

#[tokio::test]
async fn tokens_of_four_algorithms_hold() {
    let provider = Provider::new();
    let oidc = oidc(&provider);
    for (algorithm, kid) in [
        ("ES256", Some("ec")),
        ("ES256", None),
        ("EdDSA", Some("ed")),
        ("RS256", Some("rsa")),
        ("PS256", Some("rsa")),
        ("RS256", Some("rs-only")),
    ] {
        let mut header = json!({"alg": algorithm, "typ": "at+jwt"});
        if let Some(kid) = kid {
            header["kid"] = json!(kid);
        }
        let token = provider.token(&header, &claims(json!({})));
        let subject = oidc.check(&token).await.unwrap();
        assert_eq!(
            (&*subject.name, subject.role),
            ("u-1", Some(Role::Operator))
        );
        assert!((299..=300).contains(&subject.rest.as_secs()), "{subject:?}");
    }
}

#[tokio::test]
async fn forged_tokens_open_nothing() {
    let (provider, other) = (Provider::new(), Provider::new());
    let oidc = oidc(&provider);
    let right = claims(json!({}));
    let way = "signed in a way";
    for (header, why) in [
        (json!({"alg": "none"}), "cannot be read"),
        (json!({"alg": "None", "kid": "ec"}), "cannot be read"),
        (json!({"kid": "ec"}), "cannot be read"),
        (json!({"alg": "HS256", "kid": "ec"}), way),
        (json!({"alg": "HS256", "kid": "oct"}), way),
        (json!({"alg": "RS512", "kid": "rsa"}), way),
        (json!({"alg": "ES256", "kid": "ec", "crit": ["exp"]}), way),
        (json!({"alg": "ES256", "kid": "rsa"}), "does not show"),
        (json!({"alg": "RS256", "kid": "rsa-enc"}), "does not show"),
        (json!({"alg": "PS256", "kid": "rs-only"}), "does not show"),
        (json!({"alg": "ES256", "kid": "unknown"}), "does not show"),
        // Two keys fit, and it does not say which.
        (json!({"alg": "RS256"}), "does not show"),
    ] {
        let token = provider.token(&header, &right);
        let refused = oidc.check(&token).await.unwrap_err();
        assert!(refused.contains(why), "{header}: {refused}");
    }
    let header = json!({"alg": "ES256", "kid": "ec"});
    let forged = other.token(&header, &right);
    assert_eq!(
        oidc.check(&forged).await,
        Err("the token's signature is wrong")
    );
    let header = json!({"alg": "ES256", "kid": "ec", "jwk": other.set()["keys"][0]});
    let forged = other.token(&header, &right);
    assert_eq!(
        oidc.check(&forged).await,
        Err("the token's signature is wrong")
    );
    for broken in ["", "..", "a.b.c", "a.b", "{}.{}.{}", "ä.ö.ü"] {
        assert!(oidc.check(broken).await.is_err(), "{broken}");
    }
}

#[tokio::test]
async fn wrong_claims_open_nothing() {
    let provider = Provider::new();
    let oidc = oidc(&provider);
    let header = json!({"alg": "EdDSA", "kid": "ed"});
    let now = get_current_timestamp();
    for (change, why) in [
        (json!({"exp": now - 60}), "expired"),
        (json!({"exp": null}), "lacks"),
        (json!({"exp": "tomorrow"}), "lacks"),
        (json!({"nbf": now + 60}), "not hold yet"),
        (json!({"iss": "https://evil.example"}), "another issuer"),
        (
            json!({"iss": [ISSUER, "https://evil.example"]}),
            "another issuer",
        ),
        (json!({"iss": format!("{ISSUER}/")}), "another issuer"),
        (json!({"iss": null}), "lacks"),
        (json!({"aud": "other"}), "somebody else"),
        (json!({"aud": null}), "lacks"),
    ] {
        let token = provider.token(&header, &claims(change.clone()));
        let refused = oidc.check(&token).await.unwrap_err();
        assert!(refused.contains(why), "{change}: {refused}");
    }
}

#[tokio::test]
async fn roles_and_names_come_from_claims() {
    let provider = Provider::new();
    let oidc = oidc(&provider);
    let header = json!({"alg": "EdDSA", "kid": "ed"});
    for (change, name, role) in [
        (
            json!({"realm": {"roles": "dev"}}),
            "u-1",
            Some(Role::Viewer),
        ),
        (
            json!({"realm": {"roles": "a dev"}}),
            "u-1",
            Some(Role::Viewer),
        ),
        (
            json!({"realm": {"roles": "on call"}}),
            "u-1",
            Some(Role::Operator),
        ),
        (
            json!({"realm": {"roles": ["dev", "sre"]}}),
            "u-1",
            Some(Role::Operator),
        ),
        (
            json!({"realm": null, "realm.roles": ["dev"]}),
            "u-1",
            Some(Role::Viewer),
        ),
        (json!({"realm": {"roles": ["SRE", "peer"]}}), "u-1", None),
        (json!({"realm": {"roles": {"sre": true}}}), "u-1", None),
        (
            json!({"realm": null, "preferred_username": "ann"}),
            "ann (u-1)",
            None,
        ),
        (
            json!({"realm": null, "email": "a@b.example\n\u{7}"}),
            "a@b.example (u-1)",
            None,
        ),
        (
            json!({"realm": null, "sub": "ä".repeat(200)}),
            &"ä".repeat(32),
            None,
        ),
    ] {
        let token = provider.token(&header, &claims(change));
        let subject = oidc.check(&token).await.unwrap();
        assert_eq!((&*subject.name, subject.role), (name, role));
    }
}

#[test]
fn sets_of_keys_are_read_in_parts() {
    assert_eq!(
        keys::parse(Provider::new().set().to_string().as_bytes())
            .unwrap()
            .len(),
        4
    );
    for (set, why) in [
        ("", "no JSON Web Key Set"),
        ("[]", "no JSON Web Key Set"),
        ("{\"keys\": []}", "no key that signs"),
        (
            "{\"keys\": [{\"kty\": \"oct\", \"k\": \"AAAA\"}]}",
            "no key that signs",
        ),
    ] {
        let refused = keys::parse(set.as_bytes()).err().unwrap();
        assert!(refused.contains(why), "{set}: {refused}");
    }
}

#[test]
fn broken_keys_leave_the_former_in_force() {
    let oidc = oidc(&Provider::new());
    let count = || oidc.held(|held| held.keys.len());
    assert_eq!(count(), 4);
    oidc.put(Ok(b"{}".to_vec()));
    oidc.put(Err("gone".to_owned()));
    assert_eq!(count(), 4);
}
