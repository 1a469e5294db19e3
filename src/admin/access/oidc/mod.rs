//! Bearer tokens of an OpenID Connect provider: JSON Web Tokens, checked by the provider's public keys.

mod crypto;
mod fetch;
mod keys;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header, get_current_timestamp};
use serde_json::{Map, Value};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::admin::config::OidcConfig;
use crate::admin::identity::Role;
use crate::source::read_bounded;
use keys::Key;

/// Keys are asked for anew after this.
const FRESH: Duration = Duration::from_secs(3600);
/// The provider is asked at most so often, whatever tokens name.
const PAUSE: Duration = Duration::from_secs(60);
/// Clocks may differ by so many seconds.
const LEEWAY: u64 = 30;
/// Largest file of keys in octets.
const MAX_FILE: u64 = 256 << 10;
/// Longest name in octets.
const MAX_NAME: usize = 128;

/// Whom a token speaks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    /// What the provider calls them, and its number for them.
    pub(super) name: Arc<str>,
    /// What they may; `None`: the claim has no value that the configuration knows.
    pub(super) role: Option<Role>,
    /// For how long the token holds.
    pub(super) rest: Duration,
}

/// Checks tokens of one provider.
pub(super) struct Oidc {
    config: OidcConfig,
    validation: Validation,
    keys: Mutex<Held>,
    /// When the provider was last asked. Held while it is.
    asked: tokio::sync::Mutex<Option<Instant>>,
}

/// The keys in force.
#[derive(Default)]
struct Held {
    keys: Arc<[Key]>,
    /// What they were made of.
    octets: Vec<u8>,
    /// What was last wrong, and was said.
    problem: Option<String>,
}

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Oidc").field(&self.config.issuer).finish()
    }
}

impl Oidc {
    /// Begins without keys, but for those of a file.
    pub(super) fn new(config: &OidcConfig) -> Self {
        crypto::install();
        let mut validation = Validation::new(crypto::ALGORITHMS[0]);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        validation.set_issuer(&[&config.issuer]);
        validation.set_audience(&[&config.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        let oidc = Self {
            config: config.clone(),
            validation,
            keys: Mutex::default(),
            asked: tokio::sync::Mutex::default(),
        };
        oidc.look();
        oidc
    }

    /// Tells whether it was made of this.
    pub(super) fn is_of(&self, config: &OidcConfig) -> bool {
        self.config == *config
    }

    /// Reads the file of keys anew, if there is one.
    pub(super) fn look(&self) {
        if let Some(path) = &self.config.jwks_file {
            let read = read_bounded(path, MAX_FILE);
            let octets = read.map_err(|error| format!("{}: {}", path.display(), error.reason()));
            self.put(octets);
        }
    }

    /// Asks the provider for its keys, if it was not asked for so long.
    pub(super) async fn refresh(&self, least: Duration) {
        if self.config.jwks_file.is_some() {
            return;
        }
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|asked| asked.elapsed() < least) {
            return;
        }
        *asked = Some(Instant::now());
        self.put(fetch::keys(&self.config).await);
    }

    /// Keeps the keys fresh: asks early as long as there are none.
    pub(super) async fn keep_fresh(&self) {
        let least = if self.held(|held| held.problem.is_none() && !held.keys.is_empty()) {
            FRESH
        } else {
            PAUSE
        };
        self.refresh(least).await;
    }

    fn held<T>(&self, read: impl FnOnce(&mut Held) -> T) -> T {
        // Every change leaves it whole.
        let mut held = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        read(&mut held)
    }

    /// Puts keys in force; the former ones stay when these are broken.
    fn put(&self, octets: Result<Vec<u8>, String>) {
        let issuer = &self.config.issuer;
        self.held(|held| {
            let read = octets.and_then(|octets| {
                if octets == held.octets {
                    return Ok(None);
                }
                let keys = keys::parse(&octets).map_err(|why| format!("the set of keys {why}"))?;
                Ok(Some((keys, octets)))
            });
            match read {
                Ok(None) => held.problem = None,
                Ok(Some((keys, octets))) => {
                    info!(
                        issuer,
                        keys = keys.len(),
                        "Keys of the identity provider are in force"
                    );
                    *held = Held {
                        keys: keys.into(),
                        octets,
                        problem: None,
                    };
                }
                Err(problem) if held.problem.as_ref() != Some(&problem) => {
                    warn!(
                        issuer,
                        problem,
                        kept = held.keys.len(),
                        "Keys of the identity provider cannot be had; the former ones stay in force"
                    );
                    held.problem = Some(problem);
                }
                Err(_) => {}
            }
        });
    }

    /// Checks a token. The provider is asked for a key that is not known yet, if it was not asked just now.
    ///
    /// # Errors
    /// Says what is wrong with it, and nothing of what it holds.
    pub(super) async fn check(&self, token: &str) -> Result<Subject, &'static str> {
        let header = decode_header(token).map_err(|error| why(error.kind()))?;
        let is_known = crypto::ALGORITHMS.contains(&header.alg);
        if !is_known || header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
            return Err("the token is signed in a way that is not accepted");
        }
        let find = || {
            let keys = self.held(|held| Arc::clone(&held.keys));
            keys::find(&keys, header.kid.as_deref(), header.alg).map(|key| key.key.clone())
        };
        let key = match find() {
            Some(key) => key,
            None => {
                self.refresh(PAUSE).await;
                find().ok_or("the token names a key that the provider does not show")?
            }
        };
        let mut validation = self.validation.clone();
        validation.algorithms = vec![header.alg];
        let claims = decode::<Map<String, Value>>(token, &key, &validation)
            .map_err(|error| why(error.kind()))?
            .claims;
        // The library takes one of several issuers too.
        if claims.get("iss").and_then(Value::as_str) != Some(&self.config.issuer) {
            return Err(why(&ErrorKind::InvalidIssuer));
        }
        let expiry = claims
            .get("exp")
            .and_then(Value::as_f64)
            .unwrap_or_default();
        let expiry = Duration::try_from_secs_f64(expiry).unwrap_or_default();
        Ok(Subject {
            name: name(&claims),
            role: self.role(&claims),
            rest: expiry.saturating_sub(Duration::from_secs(get_current_timestamp())),
        })
    }

    /// Finds the highest role that a token's claim gives.
    fn role(&self, claims: &Map<String, Value>) -> Option<Role> {
        let values = find_claim(claims, &self.config.roles_claim)?;
        let values: Vec<&str> = match values {
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
            Value::String(values) => std::iter::once(values.as_str())
                .chain(values.split(' '))
                .collect(),
            _ => return None,
        };
        let has = |wanted: &[String]| wanted.iter().any(|one| values.contains(&one.as_str()));
        if has(&self.config.operator) {
            Some(Role::Operator)
        } else {
            has(&self.config.viewer).then_some(Role::Viewer)
        }
    }
}

/// Finds a claim by its whole name, else by the names between the dots.
fn find_claim<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c Value> {
    claims.get(name).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        let inside = rest.split('.');
        inside.fold(claims.get(first), |value, key| value?.get(key))
    })
}

/// Names whom a token speaks for: a name that people know may be chosen by them, the subject is the provider's word.
fn name(claims: &Map<String, Value>) -> Arc<str> {
    let text = |claim| claims.get(claim).and_then(Value::as_str).map(clean);
    let subject = text("sub").unwrap_or_else(|| "without subject".to_owned());
    let known = text("preferred_username").or_else(|| text("email"));
    match known {
        Some(known) if known != subject => format!("{known} ({subject})").into(),
        _ => subject.into(),
    }
}

/// Cuts a text and leaves control characters out.
fn clean(text: &str) -> String {
    let printable: String = text.chars().filter(|one| !one.is_control()).collect();
    let end = printable.floor_char_boundary(MAX_NAME / 2);
    printable.get(..end).unwrap_or_default().to_owned()
}

/// Says what is wrong with a token.
fn why(error: &ErrorKind) -> &'static str {
    match error {
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token does not hold yet",
        ErrorKind::InvalidIssuer => "the token is of another issuer",
        ErrorKind::InvalidAudience => "the token is for somebody else",
        ErrorKind::InvalidSignature => "the token's signature is wrong",
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) => {
            "the token lacks one of exp, iss and aud, or has it wrong"
        }
        ErrorKind::InvalidAlgorithm
        | ErrorKind::InvalidAlgorithmName
        | ErrorKind::UnsupportedAlgorithm
        | ErrorKind::MissingAlgorithm => "the token is signed in a way that is not accepted",
        _ => "the token cannot be read",
    }
}

#[cfg(test)]
mod tests;
