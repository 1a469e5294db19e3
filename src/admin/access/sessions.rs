//! Browser sessions: a cookie stands for the token that opened it, and dies with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::tokens::{TokenHash, random};
use crate::admin::identity::Role;

/// Sessions at once. When there are more, the one unused longest ends.
const SESSIONS: usize = 1000;
/// An unused session ends after this.
const IDLE: Duration = Duration::from_secs(3600);
/// A session ends after this, used or not.
const LIFE: Duration = Duration::from_secs(12 * 3600);

/// What a session stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// A token of a file; it is looked up at each request.
    Token(TokenHash),
    /// A bearer token of the identity provider, until it expires.
    Oidc {
        /// What the provider calls them.
        name: Arc<str>,
        /// What they may.
        role: Role,
        /// When the token expires.
        until: Instant,
    },
}

/// One session.
#[derive(Debug)]
struct Session {
    anchor: Anchor,
    begun: Instant,
    used: Instant,
}

impl Session {
    fn is_over(&self, now: Instant) -> bool {
        let is_expired = matches!(self.anchor, Anchor::Oidc { until, .. } if now >= until);
        is_expired || now >= self.used + IDLE || now >= self.begun + LIFE
    }
}

/// All sessions, by the hash of what the cookie holds: what memory shows opens nothing.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_hash: HashMap<TokenHash, Session>,
}

impl Sessions {
    /// Opens a session; gives what the cookie must hold, `None` when the system gives no random bits.
    pub(super) fn open(&mut self, anchor: Anchor, now: Instant) -> Option<String> {
        let secret = random()?;
        self.by_hash.retain(|_, session| !session.is_over(now));
        if self.by_hash.len() >= SESSIONS {
            let unused = self.by_hash.iter().min_by_key(|(_, one)| one.used);
            if let Some(unused) = unused.map(|(hash, _)| *hash) {
                self.by_hash.remove(&unused);
            }
        }
        let session = Session {
            anchor,
            begun: now,
            used: now,
        };
        self.by_hash.insert(TokenHash::of(&secret), session);
        Some(secret)
    }

    /// Finds what a cookie stands for, and notes that it was used.
    pub(super) fn find(&mut self, secret: &str, now: Instant) -> Option<Anchor> {
        let hash = TokenHash::of(secret);
        let session = self.by_hash.get_mut(&hash)?;
        if session.is_over(now) {
            self.by_hash.remove(&hash);
            return None;
        }
        session.used = now;
        Some(session.anchor.clone())
    }

    /// Ends a session.
    pub(super) fn close(&mut self, secret: &str) {
        self.by_hash.remove(&TokenHash::of(secret));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor() -> Anchor {
        Anchor::Token(TokenHash::of("a"))
    }

    #[tokio::test]
    async fn sessions_end_when_unused_when_old_and_when_closed() {
        let (mut sessions, begun) = (Sessions::default(), Instant::now());
        let after = |minutes: u64| begun + Duration::from_secs(minutes * 60);
        let secret = sessions.open(anchor(), begun).unwrap();
        assert_eq!(secret.len(), 64);
        for minute in (0..12 * 60).step_by(59) {
            assert_eq!(sessions.find(&secret, after(minute)), Some(anchor()));
        }
        assert_eq!(sessions.find(&secret, after(12 * 60)), None);
        let secret = sessions.open(anchor(), begun).unwrap();
        assert_eq!(sessions.find(&secret, after(60)), None);
        let secret = sessions.open(anchor(), begun).unwrap();
        sessions.close(&secret);
        assert_eq!(sessions.find(&secret, begun), None);
        assert!(sessions.by_hash.is_empty());
    }

    #[tokio::test]
    async fn a_session_ends_with_the_providers_token() {
        let (mut sessions, begun) = (Sessions::default(), Instant::now());
        let until = begun + Duration::from_secs(300);
        let anchor = Anchor::Oidc {
            name: "a".into(),
            role: Role::Viewer,
            until,
        };
        let secret = sessions.open(anchor, begun).unwrap();
        assert!(sessions.find(&secret, begun).is_some());
        assert_eq!(sessions.find(&secret, until), None);
    }

    #[tokio::test]
    async fn the_one_unused_longest_gives_way() {
        let (mut sessions, begun) = (Sessions::default(), Instant::now());
        let first = sessions.open(anchor(), begun).unwrap();
        let second = sessions.open(anchor(), begun).unwrap();
        let later = begun + Duration::from_secs(1);
        sessions.find(&first, later);
        for _ in 0..SESSIONS - 1 {
            sessions.open(anchor(), later).unwrap();
        }
        assert_eq!(sessions.by_hash.len(), SESSIONS);
        assert!(sessions.find(&first, later).is_some());
        assert!(sessions.find(&second, later).is_none());
    }
}
