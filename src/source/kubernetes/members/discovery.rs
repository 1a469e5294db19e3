//! Asks a server what it has, again and again, and tells each watch.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Request;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

use super::backoff::Backoff;
use super::fault::{Fault, FaultKind, Masks};
use super::kinds::{Resource, Said, Serving, Standing, WANTED, presumed, version_path};
use super::member::Member;
use super::notice::Notice;
use super::server::{SMALL, Server, bad_request};
use crate::model::Chance;

/// From look to look, where new kinds are told of as they come.
const EVERY: Duration = Duration::from_secs(300);
/// From look to look, where they are not.
const UNTOLD: Duration = Duration::from_secs(60);
/// From a notice to the look.
const NOTICED: Duration = Duration::from_millis(300);
/// From look to look after that: a kind is defined before it is served.
const EAGER: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(10),
];
/// Between two looks, however many notices come.
const APART: Duration = Duration::from_secs(2);
/// Until an absence is asked for once more.
const CONFIRM: Duration = Duration::from_millis(5100);
/// An answer comes within.
const WITHIN: Duration = Duration::from_secs(10);
/// Octets of an answer.
const MAX_ANSWER: usize = 4 * SMALL;
/// The first minor version whose servers are asked for a list as a stream.
const STREAMS: u32 = 32;

/// What a watch is to do.
#[derive(Clone, Debug, Default)]
pub(super) enum Plan {
    /// Wait: nothing is known yet.
    #[default]
    Wait,
    /// There is no such kind.
    Unserved,
    /// Follow it.
    Follow {
        /// The kind at a version.
        resource: Resource,
        /// The server.
        server: Arc<Server>,
        /// Its list may be asked for as a stream.
        may_stream: bool,
    },
}

impl Plan {
    /// Tells whether two plans are the same thing to do.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Wait, Self::Wait) | (Self::Unserved, Self::Unserved) => true,
            (
                Self::Follow {
                    resource, server, ..
                },
                Self::Follow {
                    resource: other_resource,
                    server: other_server,
                    ..
                },
            ) => resource == other_resource && Arc::ptr_eq(server, other_server),
            _ => false,
        }
    }
}

/// The answer of `/version`, as far as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    #[serde(default)]
    major: String,
    #[serde(default)]
    minor: String,
    #[serde(default)]
    git_version: String,
}

impl Version {
    /// Tells whether lists may be asked for as streams. Clouds write minor versions as `32+`.
    fn may_stream(&self) -> bool {
        let minor: String = self
            .minor
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let minor: u32 = minor.parse().unwrap_or(0);
        self.major == "1" && minor >= STREAMS
    }

    fn shown(&self) -> Option<Box<str>> {
        let shown = Masks::default().said(&self.git_version);
        let shown = shown.get(..shown.floor_char_boundary(64))?;
        (!shown.is_empty()).then(|| shown.into())
    }
}

/// When to look next.
#[derive(Debug)]
struct Schedule {
    backoff: Backoff,
    /// Looks after a notice that are still to come.
    eager: usize,
    chance: Chance,
}

impl Schedule {
    fn new(chance: Chance) -> Self {
        Self {
            backoff: Backoff::default(),
            eager: 0,
            chance,
        }
    }

    /// Takes a notice: it is looked several times.
    fn noticed(&mut self) {
        self.eager = EAGER.len();
    }

    /// Gives the wait after a look that told something. `again`: an absence has to be confirmed. `is_told`: new kinds are told of.
    fn looked(&mut self, again: bool, is_told: bool) -> Duration {
        self.backoff = Backoff::default();
        if let Some(wait) = EAGER.iter().rev().nth(self.eager.wrapping_sub(1)) {
            self.eager -= 1;
            return *wait;
        }
        match (again, is_told) {
            (true, _) => CONFIRM,
            (false, true) => EVERY,
            (false, false) => UNTOLD,
        }
    }

    /// Gives the wait after a look that failed.
    fn failed(&mut self) -> Duration {
        self.backoff.failed(&mut self.chance)
    }
}

/// The way to each watch.
pub(super) type Plans = [watch::Sender<Plan>; WANTED.len()];

/// Asks, and remembers.
pub(super) struct Discovery {
    member: Arc<Member>,
    plans: Plans,
    standings: [Standing; WANTED.len()],
    is_failing: bool,
}

impl Discovery {
    /// Starts with nothing known.
    pub(super) fn new(member: Arc<Member>, plans: Plans) -> Self {
        Self {
            member,
            plans,
            standings: std::array::from_fn(|_| Standing::default()),
            is_failing: false,
        }
    }

    /// Looks for as long as it is not dropped.
    pub(super) async fn run(mut self, mut servers: watch::Receiver<Option<Arc<Server>>>) {
        let mut anew = self.member.anew();
        let mut schedule = Schedule::new(self.member.chance());
        let mut notice = Notice::default();
        loop {
            let server = servers.borrow_and_update().clone();
            let Some(server) = server else {
                self.forget();
                if servers.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let wait = match self.look(&server).await {
                Ok(again) => schedule.looked(again, self.member.board.follows_definitions()),
                Err(_) => schedule.failed(),
            };
            // Not right after a look.
            let noticed = async {
                sleep(APART).await;
                notice.wait(&self.member.look, NOTICED).await;
            };
            // Cancel-safe: all arms only wait, and a notice that is waited on is kept.
            tokio::select! {
                () = sleep(wait) => {}
                _ = anew.changed() => schedule.backoff = Backoff::default(),
                () = noticed => schedule.noticed(),
                changed = servers.changed() => if changed.is_err() {
                    return;
                },
            }
        }
    }

    /// There is no server any more: what it had says nothing of the next.
    fn forget(&mut self) {
        self.standings = std::array::from_fn(|_| Standing::default());
        for plan in &self.plans {
            tell(plan, Plan::Wait);
        }
    }

    /// Looks once. Tells whether an absence has to be confirmed.
    async fn look(&mut self, server: &Arc<Server>) -> Result<bool, Fault> {
        let version = read_version(server).await;
        let (said, fault) = ask(server).await;
        let is_forbidden = matches!(&fault, Some(fault) if fault.kind == FaultKind::Forbidden);
        let now = self.member.clock.now();
        let may_stream = version.as_ref().is_some_and(Version::may_stream);
        let mut again = false;
        for ((wanted, standing), plan) in WANTED.iter().zip(&mut self.standings).zip(&self.plans) {
            let serving = said
                .as_ref()
                .map_or(Serving::Unknown, |said| said.judge(wanted));
            again |= standing.take(serving, now);
            if is_forbidden && standing.serving == Serving::Unknown {
                standing.take(presumed(wanted), now);
            }
            let next = match standing.serving {
                Serving::Unknown => continue,
                Serving::Unserved => Plan::Unserved,
                Serving::Served(resource) => Plan::Follow {
                    resource,
                    server: server.clone(),
                    may_stream,
                },
            };
            if tell(plan, next) {
                let (cluster, kind) = (self.member.board.id(), wanted.plural);
                match standing.serving {
                    Serving::Served(Resource { version, .. }) => {
                        info!(%cluster, kind, version, "Following a kind");
                    }
                    _ => info!(%cluster, kind, "The server has no such kind"),
                }
            }
        }
        if let Some(version) = version {
            self.member.board.version(version.shown());
        }
        self.note(fault.as_ref());
        match fault {
            Some(fault) if !is_forbidden => Err(fault),
            _ => Ok(again),
        }
    }

    /// Notes what is wrong, and logs what is new of it.
    fn note(&mut self, fault: Option<&Fault>) {
        let text = fault.map(|fault| fault.text.clone());
        self.member.board.discovery(text);
        let cluster = self.member.board.id();
        match fault {
            Some(Fault { text: error, kind }) => {
                if *kind == FaultKind::Unauthorized {
                    self.member.denied.notify_one();
                }
                if !self.is_failing {
                    warn!(%cluster, %error, "Cannot ask which kinds there are; keeping those that are known");
                }
            }
            None if self.is_failing => info!(%cluster, "Kinds can be asked for again"),
            None => {}
        }
        self.is_failing = fault.is_some();
    }
}

/// Tells a watch what it is to do, if that is something else than before. Tells whether it is.
fn tell(plan: &watch::Sender<Plan>, next: Plan) -> bool {
    plan.send_if_modified(|plan| {
        let is_new = !plan.is(&next);
        if is_new {
            *plan = next;
        }
        is_new
    })
}

async fn get(server: &Server, path: &str) -> Result<Bytes, Fault> {
    let request = Request::get(path).body(Vec::new());
    let request = request.map_err(|_| bad_request())?;
    server.get(request, MAX_ANSWER, WITHIN).await
}

/// Asks for the version; a server that does not say it is asked for nothing that is new.
async fn read_version(server: &Server) -> Option<Version> {
    let octets = get(server, "/version").await.ok()?;
    serde_json::from_slice(&octets).ok()
}

/// Asks for the groups and for what the versions have that are read here; gives what was said, and what went wrong.
async fn ask(server: &Server) -> (Option<Said>, Option<Fault>) {
    let malformed = || Fault::new(FaultKind::Malformed, "the answer is no list of kinds");
    let mut said = match get(server, "/apis").await {
        Ok(octets) => match Said::of_groups(&octets) {
            Some(said) => said,
            None => return (None, Some(malformed())),
        },
        Err(fault) => return (None, Some(fault)),
    };
    let mut fault = None;
    for (group, version) in said.versions() {
        match get(server, &version_path(group, version)).await {
            Ok(octets) if said.take_resources(group, version, &octets) => {}
            Ok(_) => fault = Some(malformed()),
            Err(other) => fault = Some(other),
        }
    }
    (Some(said), fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_asked_of_servers_that_have_them() {
        for (major, minor, may) in [
            ("1", "31", false),
            ("1", "32", true),
            ("1", "36+", true),
            ("1", "", false),
            ("2", "40", false),
            ("", "", false),
        ] {
            let version = Version {
                major: major.to_owned(),
                minor: minor.to_owned(),
                git_version: String::new(),
            };
            assert_eq!(version.may_stream(), may, "{major}.{minor}");
        }
        let version = |git: &str| Version {
            major: String::new(),
            minor: String::new(),
            git_version: git.to_owned(),
        };
        assert_eq!(version("").shown(), None);
        assert_eq!(version("v1.36.2\n").shown().as_deref(), Some("v1.36.2"));
        assert_eq!(version(&"v".repeat(99)).shown().unwrap().len(), 64);
    }

    #[test]
    fn looks_are_rare_and_eager_after_a_notice() {
        let mut schedule = Schedule::new(Chance::new(1));
        assert_eq!(schedule.looked(false, true), EVERY);
        assert_eq!(schedule.looked(false, false), UNTOLD);
        assert_eq!(schedule.looked(true, true), CONFIRM);
        schedule.noticed();
        for wait in EAGER {
            assert_eq!(schedule.looked(false, true), wait);
        }
        assert_eq!(schedule.looked(false, true), EVERY);
        for (nth, longest) in [2, 4, 8, 16, 30, 30].into_iter().enumerate() {
            let wait = schedule.failed().as_secs_f64();
            assert!((1.0..=f64::from(longest)).contains(&wait), "{nth}: {wait}");
        }
        schedule.looked(false, true);
        assert!(schedule.failed() <= Duration::from_secs(2));
    }
}
