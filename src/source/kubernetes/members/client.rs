//! Keeps the client of one member: makes it of what the configuration names, and anew when that changes.
//!
//! Files are looked at every second. What cannot be used after a change leaves the client that there is in force: a file that is
//! being written must not cost a connection that works.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

use super::bearer::Bearer;
use super::clock::timestamp;
use super::fault::{Fault, FaultKind};
use super::kubeconfig::{Chosen, Credential, Files, choose};
use super::member::Member;
use super::notice::Notice;
use super::pem::to_base64;
use super::plugin::{Credentials, Plugin};
use super::server::Server;
use crate::model::Moment;
use crate::source::Fingerprint;
use crate::source::kubernetes::rules::Access;

/// From look to look at the files.
const EVERY: Duration = Duration::from_secs(1);
/// A file of a token is read again after so long, whether it seems to have changed or not.
const REREAD: Duration = Duration::from_secs(60);
/// What failed is tried again after so long, and no plugin runs more often, whatever changes.
const RETRY: Duration = Duration::from_secs(10);
/// What a plugin gave is renewed so long before its end.
const AHEAD: SignedDuration = SignedDuration::from_secs(60);

/// The end of time.
const NEVER: Moment = Moment(Duration::MAX);

/// Keeps a client for as long as it is not dropped, of whatever access is configured.
pub(super) async fn keep(
    member: Arc<Member>,
    mut access: watch::Receiver<Access>,
    servers: watch::Sender<Option<Arc<Server>>>,
) {
    loop {
        let wanted = access.borrow_and_update().clone();
        let mut keeper = Keeper {
            member: &member,
            access: wanted,
            servers: &servers,
            made: None,
            files: Files::default(),
            retry: Moment::default(),
            ran: None,
        };
        // Cancel-safe: a plugin that runs is killed, all else is taken up by the next keeper.
        tokio::select! {
            never = keeper.run() => match never {},
            changed = access.changed() => if changed.is_err() {
                return;
            },
        }
        // The client is one of another access: perhaps of another cluster.
        servers.send_replace(None);
    }
}

/// Where the next credentials come from.
#[derive(Debug)]
enum Renewal {
    /// They stay.
    Never,
    /// A file of a token.
    File {
        path: PathBuf,
        seen: Fingerprint,
        read: Moment,
        /// What counts where it cannot be read.
        written: Option<Bearer>,
    },
    /// A plugin.
    Plugin {
        plugin: Box<Plugin>,
        expires: Option<Timestamp>,
        /// It gave a certificate, which takes a new client.
        has_identity: bool,
    },
}

/// Why there is no client.
enum Failed {
    /// The kubeconfig cannot be used.
    Kubeconfig(Fault),
    /// The program that it names gives nothing that can be used.
    Plugin(Fault),
}

/// A client and what keeps it going.
struct Made {
    bearer: watch::Sender<Option<Bearer>>,
    renewal: Renewal,
}

struct Keeper<'k> {
    member: &'k Member,
    access: Access,
    servers: &'k watch::Sender<Option<Arc<Server>>>,
    made: Option<Made>,
    files: Files,
    /// When to make it again.
    retry: Moment,
    /// When a plugin ran last.
    ran: Option<Moment>,
}

impl Keeper<'_> {
    async fn run(&mut self) -> Infallible {
        let mut is_denied = false;
        // Refusals come in swarms.
        let mut refusal = Notice::default();
        loop {
            let now = self.member.clock.now();
            // One that has just run would run again.
            let may_run = self.ran.is_none_or(|ran| now.since(ran) >= RETRY);
            if may_run && (now >= self.retry || self.has_changed().await) {
                self.make().await;
            } else {
                self.renew(is_denied).await;
            }
            // Cancel-safe: both arms only wait, and a refusal (401) that is waited on is kept.
            is_denied = tokio::select! {
                () = sleep(EVERY) => false,
                () = refusal.wait(&self.member.denied, EVERY / 10) => true,
            };
        }
    }

    async fn has_changed(&self) -> bool {
        let files = self.files.clone();
        // A folder on the network may block for long.
        let looking = tokio::task::spawn_blocking(move || files.changed());
        looking.await.unwrap_or(false)
    }

    /// Makes a client.
    async fn make(&mut self) {
        let now = self.member.clock.now();
        let access = self.access.clone();
        let Ok((files, chosen)) = tokio::task::spawn_blocking(move || choose(&access)).await else {
            return;
        };
        self.files = files;
        let made = match chosen {
            Ok(chosen) => self.put_together(chosen).await,
            Err(fault) => Err(Failed::Kubeconfig(fault)),
        };
        match made {
            Ok(made) => {
                self.retry = NEVER;
                self.made = Some(made);
                info!(cluster = %self.member.board.id(), "Credentials of a cluster are in use");
            }
            Err(failed) => {
                self.retry = now.after(RETRY);
                let (fault, unusable) = match &failed {
                    Failed::Kubeconfig(fault) => (fault, Some(fault.text.clone())),
                    Failed::Plugin(fault) => (fault, None),
                };
                self.member.board.kubeconfig(unusable);
                self.tell(fault);
            }
        }
    }

    async fn put_together(&mut self, chosen: Chosen) -> Result<Made, Failed> {
        let Chosen {
            mut config,
            credential,
            secrets,
            warnings,
        } = chosen;
        let now = self.member.clock.now();
        let (bearer, renewal) = match credential {
            Credential::None => (None, Renewal::Never),
            Credential::Fixed(bearer) => (Some(bearer), Renewal::Never),
            Credential::File {
                path,
                seen,
                bearer,
                written,
            } => {
                let renewal = Renewal::File {
                    path,
                    seen,
                    read: now,
                    written,
                };
                (Some(bearer), renewal)
            }
            Credential::Plugin(plugin) => {
                self.ran = Some(now);
                let got = plugin.run().await.map_err(Failed::Plugin)?;
                let has_identity = got.identity.is_some();
                if let Some((certificate, key)) = got.identity {
                    let key = to_base64(key.expose_secret().as_bytes());
                    config.auth_info.client_certificate_data = to_base64(certificate.as_bytes());
                    config.auth_info.client_key_data = key.map(SecretString::from);
                }
                let renewal = Renewal::Plugin {
                    plugin,
                    expires: got.expires,
                    has_identity,
                };
                (got.bearer, renewal)
            }
        };
        let (bearer, receiver) = watch::channel(bearer);
        let server = Server::new(&config, receiver, secrets).map_err(Failed::Kubeconfig)?;
        self.member.board.client(warnings);
        self.servers.send_replace(Some(Arc::new(server)));
        Ok(Made { bearer, renewal })
    }

    /// Renews the credentials, if it is time; `is_denied`: the server does not take those that there are.
    async fn renew(&mut self, is_denied: bool) {
        let now = self.member.clock.now();
        let Some(made) = &mut self.made else { return };
        let renewed = match &mut made.renewal {
            Renewal::Never => return,
            Renewal::File {
                path,
                seen,
                read,
                written,
            } => {
                let known = *seen;
                let is_old = is_denied || now.since(*read) >= REREAD;
                let looked = look_at_token(path.clone(), known, is_old).await;
                let Some((looked_at, bearer)) = looked else {
                    return;
                };
                *seen = looked_at;
                *read = now;
                match (bearer, written) {
                    (Err(_), Some(written)) => Ok(written.clone()),
                    (bearer, _) => bearer,
                }
            }
            Renewal::Plugin {
                plugin,
                expires,
                has_identity,
            } => {
                let ends = expires.is_some_and(|expires| timestamp() + AHEAD >= expires);
                let is_early = self.ran.is_some_and(|ran| now.since(ran) < RETRY);
                if !(ends || is_denied) || is_early {
                    return;
                }
                if *has_identity {
                    // Made anew with the next look, by running the plugin there.
                    self.retry = now;
                    return;
                }
                self.ran = Some(now);
                plugin.run().await.and_then(|got| {
                    *expires = got.expires;
                    token_of(got)
                })
            }
        };
        match renewed {
            Ok(bearer) => {
                made.bearer.send_if_modified(|known| {
                    let is_new = known.as_ref() != Some(&bearer);
                    *known = Some(bearer);
                    is_new
                });
                if self.retry == NEVER {
                    self.member.board.client_error(None);
                }
            }
            Err(fault) => self.tell(&fault),
        }
    }

    /// Says what is wrong, once.
    fn tell(&self, fault: &Fault) {
        let (cluster, error) = (self.member.board.id(), &fault.text);
        if self.member.board.client_error(Some(fault.text.clone())) {
            warn!(%cluster, %error, "Credentials of a cluster cannot be used");
        }
    }
}

/// Reads a file of a token, if it is time or it seems to have changed.
async fn look_at_token(
    path: PathBuf,
    known: Fingerprint,
    is_old: bool,
) -> Option<(Fingerprint, Result<Bearer, Fault>)> {
    let looking = tokio::task::spawn_blocking(move || {
        let seen = Fingerprint::of(&path);
        (is_old || seen != known).then(|| (seen, Bearer::read(&path)))
    });
    looking.await.ok().flatten()
}

fn token_of(got: Credentials) -> Result<Bearer, Fault> {
    got.bearer
        .ok_or_else(|| Fault::new(FaultKind::Unusable, "the plugin gives no token any more"))
}
