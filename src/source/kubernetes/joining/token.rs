//! Tokens of the service account: one without an end, which the cluster's token controller writes, or one with an end.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::entry::Token;
use super::error::{JoinError, refused};
use super::manifest::{Manifest, Object};
use crate::source::kubernetes::members::{Connection, FaultKind, Verb};

/// How long the token controller may take. It needs a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(10);
/// From look to look.
const EVERY: Duration = Duration::from_millis(250);
/// Looks between two words about it: one every 2 s.
const LOOKS_A_WORD: u32 = 8;

/// How long a token holds, as the server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// For so long, from when it was given.
    pub span: Duration,
    /// The moment of its end, in the server's words.
    pub until: String,
}

/// Waits until the token controller has filled a Secret. `tell` is told of the wait.
pub(super) async fn filled(
    admin: &Connection,
    secret: &Object,
    tell: &mut impl FnMut(&str),
) -> Result<Token, JoinError> {
    let path = secret.path();
    let mut looks = 0;
    loop {
        let found = admin.ask(Verb::Get, &path, None).await;
        let found =
            found.map_err(|fault| refused(&admin.endpoint().url, Verb::Get, secret, &fault))?;
        if let Some(token) = token_of(&found) {
            return Ok(token);
        }
        if looks * EVERY >= PATIENCE {
            return Err(JoinError::Server {
                server: admin.endpoint().url.clone(),
                why: format!(
                    "{secret} has no token after {} s: does the cluster's token controller run? A token with an end needs none: \
                     give --expires 8760h",
                    PATIENCE.as_secs()
                ),
            });
        }
        if looks % LOOKS_A_WORD == 0 {
            tell(&format!("waiting for the cluster to fill {secret}"));
        }
        looks += 1;
        sleep(EVERY).await;
    }
}

/// Takes the token out of a Secret; `None`: there is none yet.
fn token_of(secret: &Value) -> Option<Token> {
    let written = secret.pointer("/data/token")?.clone();
    let k8s_openapi::ByteString(octets) = serde_json::from_value(written).ok()?;
    Token::new(std::str::from_utf8(&octets).ok()?)
}

/// Asks for a token with an end (TokenRequest).
pub(super) async fn requested(
    admin: &Connection,
    manifest: &Manifest,
    span: Duration,
) -> Result<(Token, Granted), JoinError> {
    let account = &manifest.account;
    let server = || admin.endpoint().url.clone();
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": span.as_secs()},
    });
    let path = format!("{}/token", account.path());
    let answer = admin.ask(Verb::Create, &path, Some(&body)).await;
    let answer = answer.map_err(|fault| match fault.kind {
        FaultKind::Answered(422) => JoinError::Server {
            server: server(),
            why: format!("--expires is refused ({})", fault.text),
        },
        _ => refused(&server(), Verb::Create, account, &fault),
    })?;
    granted(&answer).ok_or_else(|| JoinError::Server {
        server: server(),
        why: format!("the answer to the request for a token of {account} has none"),
    })
}

/// Reads an answered TokenRequest. Its `spec` says what was granted, which may be less than was asked for.
fn granted(answer: &Value) -> Option<(Token, Granted)> {
    let token = Token::new(answer.pointer("/status/token")?.as_str()?)?;
    let span = Duration::from_secs(answer.pointer("/spec/expirationSeconds")?.as_u64()?);
    let until = answer.pointer("/status/expirationTimestamp")?.as_str()?;
    let until = until.chars().take(40).collect();
    Some((token, Granted { span, until }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_in_what_servers_say() {
        for (secret, found) in [
            (json!({"data": {"token": "YWJj"}}), Token::new("abc")),
            (json!({"data": {"token": ""}}), None),
            (json!({"data": {"token": "!"}}), None),
            (json!({"data": {"token": 1}}), None),
            (json!({"data": {"ca.crt": "YWJj"}}), None),
            (json!({}), None),
        ] {
            assert_eq!(token_of(&secret), found, "{secret}");
        }
        let answer = json!({
            "spec": {"expirationSeconds": 3600},
            "status": {"token": "abc", "expirationTimestamp": "2026-11-22T07:00:00Z"},
        });
        let (token, until) = granted(&answer).unwrap();
        assert_eq!(Some(token), Token::new("abc"));
        assert_eq!(until.span, Duration::from_secs(3600));
        assert_eq!(until.until, "2026-11-22T07:00:00Z");
        for part in ["spec", "status"] {
            let mut broken = answer.clone();
            broken[part] = json!({});
            assert_eq!(granted(&broken), None, "without {part}");
        }
    }
}
