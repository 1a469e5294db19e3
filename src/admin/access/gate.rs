//! Who is who: tokens, sessions and the identity provider behind one handle.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::failures::Guesses;
use super::oidc::Oidc;
use super::refusals::Refusals;
use super::sessions::{Anchor, Sessions};
use super::streams::Streams;
use super::tokens::{TokenHash, Tokens, random};
use crate::admin::audit::Audit;
use crate::admin::config::AccessConfig;
use crate::admin::crowd::client;
use crate::admin::identity::{How, Role};
use crate::admin::problem::Problem;
use crate::model::Rejection;

/// How often token files are read anew: a token taken out of its file opens nothing from then on.
const LOOK: Duration = Duration::from_secs(2);

/// Knows who may come in. Cloned handles share all.
#[derive(Clone, Debug)]
pub struct Access {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    policy: RwLock<Arc<Policy>>,
    /// Held while files are read and their content put in force: an older reading never replaces a newer one.
    reading: Mutex<()>,
    sessions: Mutex<Sessions>,
    guesses: Mutex<Guesses>,
    refusals: Mutex<Refusals>,
    streams: Streams,
    audit: Audit,
    /// Differs from start to start.
    start: String,
    requests: AtomicU64,
}

/// What the configuration and the files it names say.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) config: AccessConfig,
    tokens: Tokens,
    oidc: Option<Arc<Oidc>>,
    /// What is wrong with the files.
    rejections: Vec<Rejection>,
}

/// Somebody known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) name: Arc<str>,
    pub(super) role: Role,
    pub(super) how: How,
}

/// Locks what every change leaves whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Access {
    /// Reads the token files. What is wrong with them is logged, and opens nothing.
    #[must_use]
    pub fn new(config: &AccessConfig, audit: Audit) -> Self {
        let policy = Policy {
            config: AccessConfig::default(),
            tokens: Tokens::default(),
            oidc: None,
            rejections: Vec::new(),
        };
        let access = Self {
            inner: Arc::new(Inner {
                policy: RwLock::new(Arc::new(policy)),
                reading: Mutex::default(),
                sessions: Mutex::default(),
                guesses: Mutex::default(),
                refusals: Mutex::default(),
                streams: Streams::default(),
                audit,
                start: random().map_or_else(String::new, |mut text| {
                    text.truncate(8);
                    text
                }),
                requests: AtomicU64::default(),
            }),
        };
        access.read(Some(config));
        access
    }

    /// Puts another configuration in force. Sessions whose tokens it still knows go on.
    pub fn configure(&self, config: &AccessConfig) {
        self.read(Some(config));
    }

    /// Gives the log of what was done.
    pub(in crate::admin) fn audit(&self) -> &Audit {
        &self.inner.audit
    }

    pub(super) fn policy(&self) -> Arc<Policy> {
        let policy = self.inner.policy.read();
        Arc::clone(&policy.unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn streams(&self) -> &Streams {
        &self.inner.streams
    }

    pub(super) fn refusals(&self) -> MutexGuard<'_, Refusals> {
        lock(&self.inner.refusals)
    }

    /// Reads the files of the configuration in force, or of another one that takes its place.
    fn read(&self, config: Option<&AccessConfig>) {
        let _reading = lock(&self.inner.reading);
        let former = self.policy();
        let config = config.unwrap_or(&former.config);
        let (tokens, rejections) = Tokens::read(&config.tokens, &former.tokens);
        for rejection in &rejections {
            if !former.rejections.contains(rejection) {
                warn!(
                    rejection = rejection.located(),
                    "Token file is refused, or a line of it"
                );
            }
        }
        let kept = former.oidc.as_ref();
        let oidc = config.oidc.as_ref().map(|oidc| {
            let same = kept.filter(|kept| kept.is_of(oidc));
            same.map_or_else(|| Arc::new(Oidc::new(oidc)), Arc::clone)
        });
        if let Some(oidc) = &oidc {
            oidc.look();
        }
        if tokens == former.tokens && rejections == former.rejections && *config == former.config {
            return;
        }
        if tokens != former.tokens {
            info!(tokens = tokens.count(), "Tokens are in force");
        }
        let policy = Policy {
            config: config.clone(),
            tokens,
            oidc,
            rejections,
        };
        let mut held = self
            .inner
            .policy
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *held = Arc::new(policy);
    }

    /// Reads the files anew until the token falls.
    pub async fn watch(self, token: CancellationToken) {
        let mut looks = tokio::time::interval(LOOK);
        loop {
            // Cancel-safe: both arms only wait.
            tokio::select! {
                () = token.cancelled() => return,
                _ = looks.tick() => {}
            }
            let access = self.clone();
            // Reading never panics; should it, the next look does better.
            let _ = tokio::task::spawn_blocking(move || access.read(None)).await;
        }
    }

    /// Keeps the keys of the identity provider fresh until the token falls.
    pub async fn keep_keys(self, token: CancellationToken) {
        let mut looks = tokio::time::interval(LOOK);
        loop {
            // Cancel-safe: both arms only wait.
            tokio::select! {
                () = token.cancelled() => return,
                _ = looks.tick() => {}
            }
            let oidc = self.policy().oidc.clone();
            if let Some(oidc) = oidc {
                // Cancel-safe: an answer that comes too late is not needed.
                tokio::select! {
                    () = token.cancelled() => return,
                    () = oidc.keep_fresh() => {}
                }
            }
        }
    }

    /// Lists what is wrong with the token files.
    #[must_use]
    pub fn rejections(&self) -> Vec<Rejection> {
        self.policy().rejections.clone()
    }

    /// Names the next request.
    pub(super) fn next_request(&self) -> Arc<str> {
        let number = self.inner.requests.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.inner.start).into()
    }

    /// Finds out who presents a token. Those who guessed too often must wait, whatever they present.
    pub(super) async fn by_token(
        &self,
        presented: &str,
        from: IpAddr,
    ) -> Result<(Known, Anchor), Problem> {
        let client = client(from);
        let wait = lock(&self.inner.guesses).wait(client, Instant::now());
        if let Some(wait) = wait {
            let detail = "too many failed attempts from this address; wait, then try again";
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, detail);
            return Err(problem.retry_after(wait.as_secs() + 1));
        }
        let policy = self.policy();
        let hash = TokenHash::of(presented);
        if let Some(held) = policy.tokens.find(&hash) {
            let known = Known {
                name: Arc::clone(&held.name),
                role: held.role,
                how: How::Token,
            };
            return Ok((known, Anchor::Token(hash)));
        }
        let why = match &policy.oidc {
            Some(oidc) if presented.split('.').count() == 3 => match oidc.check(presented).await {
                Ok(subject) => return of_subject(subject),
                Err(why) => why,
            },
            _ => "the token opens nothing",
        };
        let must_wait = lock(&self.inner.guesses).note(client, Instant::now());
        if must_wait {
            warn!(%client, "Too many failed authentications; none is looked at for a minute");
        }
        Err(invalid_token(why))
    }

    /// Opens a session for a token; gives whose it is, and what its cookie must hold.
    ///
    /// # Errors
    /// When the token opens nothing, when it was guessed at too often, and when there are no random numbers.
    pub(in crate::admin) async fn sign_in(
        &self,
        token: &str,
        from: IpAddr,
    ) -> Result<(Arc<str>, Role, String), Problem> {
        let (known, anchor) = self.by_token(token, from).await?;
        let opened = lock(&self.inner.sessions).open(anchor, Instant::now());
        let secret = opened.ok_or_else(|| {
            let detail = "the system gives no random numbers";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
        })?;
        Ok((known.name, known.role, secret))
    }

    /// Ends a session.
    pub(in crate::admin) fn close_session(&self, secret: &str) {
        lock(&self.inner.sessions).close(secret);
    }

    /// Finds out whose session it is. It has the role that its token has now, and ends with it.
    pub(super) fn by_session(&self, secret: &str) -> Option<Known> {
        let anchor = lock(&self.inner.sessions).find(secret, Instant::now())?;
        let policy = self.policy();
        let (name, role) = match anchor {
            Anchor::Token(hash) => {
                let Some(held) = policy.tokens.find(&hash) else {
                    self.close_session(secret);
                    return None;
                };
                (Arc::clone(&held.name), held.role)
            }
            // A provider that is no longer trusted vouches for nobody.
            Anchor::Oidc { .. } if policy.oidc.is_none() => return None,
            Anchor::Oidc { name, role, .. } => (name, role),
        };
        Some(Known {
            name,
            role,
            how: How::Session,
        })
    }
}

/// Takes whom the identity provider vouches for.
fn of_subject(subject: super::oidc::Subject) -> Result<(Known, Anchor), Problem> {
    let Some(role) = subject.role else {
        let detail = format!(
            "`{}` has no role here: the token's claim has none of the values that `admin.oidc` lists",
            subject.name
        );
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    };
    let anchor = Anchor::Oidc {
        name: Arc::clone(&subject.name),
        role,
        // Longer than any session lives makes no difference, and cannot overflow.
        until: Instant::now() + subject.rest.min(Duration::from_secs(86_400)),
    };
    let known = Known {
        name: subject.name,
        role,
        how: How::Oidc,
    };
    Ok((known, anchor))
}

/// Refuses a token.
pub(super) fn invalid_token(why: &'static str) -> Problem {
    let challenge = HeaderValue::from_static("Bearer realm=\"meridian\", error=\"invalid_token\"");
    Problem::new(StatusCode::UNAUTHORIZED, why).with(header::WWW_AUTHENTICATE, challenge)
}

/// Lists what is wrong with the token files of a configuration.
#[must_use]
pub(in crate::admin) fn refused(config: &AccessConfig) -> Vec<Rejection> {
    Tokens::read(&config.tokens, &Tokens::default()).1
}
