//! The loop between the targets and the resolvers: it has the clock and the tasks.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use super::flatten::{Flattened, RememberedTarget, TargetQuestion};
use super::handle::{TargetsConfig, TargetsHandle, Wanted};
use super::known::Outcome;
use super::own::OwnZones;
use super::servers::Servers;
use super::table::{Resolution, Table, TargetState};
use crate::model::{LowerName, Moment};
use crate::resolving::ask::system_resolvers;

/// The table is renewed at once, then at most this often: many targets change together.
const PACE: Duration = Duration::from_millis(100);

/// How often the system's list of resolvers is read again, while none are configured.
const REREAD_EVERY: Duration = Duration::from_secs(30);

/// Lines of targets that change, in [`LINES_IN`]: a resolver that is gone makes one for every target.
const LINES: u32 = 20;

/// The time that [`LINES`] count for.
const LINES_IN: Duration = Duration::from_secs(60);

/// What the task of a question gives back.
type Ended = Result<(task::Id, Outcome), JoinError>;

/// Resolves what is wanted, until stopped.
#[derive(Debug)]
pub struct Targets {
    flattened: Flattened,
    wanted: watch::Receiver<Wanted>,
    table: watch::Sender<Arc<Table>>,
    started: Instant,
    servers: Arc<Servers>,
    /// Whom `servers` asks.
    addresses: Vec<SocketAddr>,
    own: OwnZones,
    config: TargetsConfig,
    reread: Instant,
    asking: JoinSet<Outcome>,
    out: HashMap<task::Id, TargetQuestion>,
    changed: bool,
    published: Option<Instant>,
    lines: Lines,
}

/// Why the loop woke up.
enum Wake {
    Stop,
    Time,
    Told,
    Ended(Ended),
}

impl Targets {
    /// Makes one that resolves nothing yet, and its handle. `seed` spreads the questions. Spawn [`Self::run`] as a task.
    #[must_use]
    pub fn new(config: &TargetsConfig, seed: u64) -> (Self, TargetsHandle) {
        let said = Wanted {
            config: config.clone(),
            ..Wanted::default()
        };
        let (wanted, told) = watch::channel(said);
        let (table, read) = watch::channel(Arc::default());
        let started = Instant::now();
        let targets = Self {
            flattened: Flattened::new(seed),
            wanted: told,
            table,
            started,
            servers: Arc::default(),
            addresses: Vec::new(),
            own: OwnZones::default(),
            config: config.clone(),
            reread: started,
            asking: JoinSet::new(),
            out: HashMap::new(),
            changed: false,
            published: None,
            lines: Lines::default(),
        };
        let handle = TargetsHandle {
            wanted,
            table: read,
            started,
        };
        (targets, handle)
    }

    /// Lets it begin with what was known before the start: names have those addresses until an answer comes, for an hour at most.
    #[must_use]
    pub fn remembering(mut self, remembered: HashMap<LowerName, RememberedTarget>) -> Self {
        self.flattened.remember(remembered);
        self
    }

    /// Resolves until the token falls; questions out are then dropped.
    pub async fn run(mut self, token: CancellationToken) {
        self.obey();
        self.find_servers().await;
        loop {
            self.start_due();
            self.publish_if_due();
            match self.wake(&token).await {
                Wake::Stop => return,
                Wake::Time => {}
                Wake::Told => {
                    if self.obey() {
                        self.find_servers().await;
                    }
                }
                Wake::Ended(ended) => self.finish(ended),
            }
            while let Some(ended) = self.asking.try_join_next_with_id() {
                self.finish(ended);
            }
            if self.reread_at().is_some_and(|at| at <= Instant::now()) {
                self.find_servers().await;
            }
        }
    }

    /// Waits for whatever comes first.
    async fn wake(&mut self, token: &CancellationToken) -> Wake {
        let due = self.flattened.next_due().map(|due| self.started + due.0);
        let next = [due, self.publish_at(), self.reread_at()];
        let next = next.into_iter().flatten().min();
        let sleep = async {
            match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        // Cancel-safe: each arm only waits and takes one item at its end.
        tokio::select! {
            biased;
            () = token.cancelled() => Wake::Stop,
            Ok(()) = self.wanted.changed() => Wake::Told,
            Some(ended) = self.asking.join_next_with_id() => Wake::Ended(ended),
            () = sleep => Wake::Time,
        }
    }

    fn now(&self) -> Moment {
        Moment(self.started.elapsed())
    }

    /// Takes the last word on what is wanted. Tells whether others are to be asked.
    fn obey(&mut self) -> bool {
        let Wanted { names, own, config } = self.wanted.borrow_and_update().clone();
        self.changed |= self.flattened.want(&names, &own, self.now());
        self.own = own;
        std::mem::replace(&mut self.config, config) != self.config
    }

    /// Looks whom to ask, and asks them from now on; those asked before too, if they are the same.
    async fn find_servers(&mut self) {
        let addresses = if self.config.nameservers.is_empty() {
            self.reread = Instant::now();
            // A list that cannot be read, or is just being written, changes nothing.
            let found = task::spawn_blocking(system_resolvers).await;
            match found.ok().flatten() {
                Some(found) if !found.is_empty() => found,
                _ => return,
            }
        } else {
            self.config.nameservers.clone()
        };
        if addresses != self.addresses {
            info!(resolvers = ?addresses, "Resolvers of load balancers that are host names");
            self.servers = Arc::new(Servers::new(&addresses));
            self.addresses = addresses;
        }
    }

    /// Tells when to read the system's list again; `None`: resolvers are configured.
    fn reread_at(&self) -> Option<Instant> {
        let is_system = self.config.nameservers.is_empty();
        is_system.then(|| self.reread + REREAD_EVERY)
    }

    /// Asks what is due.
    fn start_due(&mut self) {
        for question in self.flattened.due(self.now()) {
            let (servers, own) = (Arc::clone(&self.servers), self.own.clone());
            let (name, family) = (question.name.clone(), question.family);
            let asking = async move { servers.look_up(&name, family, &own).await };
            let asked = self.asking.spawn(asking);
            self.out.insert(asked.id(), question);
        }
    }

    /// Takes what became of a question.
    fn finish(&mut self, ended: Ended) {
        let (id, outcome) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                error!(%error, "The task of a question failed; taken as no answer");
                (error.id(), Outcome::Failed("not asked".into()))
            }
        };
        let Some(question) = self.out.remove(&id) else {
            return;
        };
        let before = self.flattened.resolution(&question.name).cloned();
        debug!(name = %question.name, family = question.family.record_type(), ?outcome, "Asked");
        let now = self.now();
        if !self.flattened.answered(&question, outcome, now) {
            return;
        }
        self.changed = true;
        let after = self.flattened.resolution(&question.name);
        if let (Some(before), Some(after)) = (before, after) {
            self.lines.tell(&question.name, &before, after);
        }
    }

    /// Tells when to renew the table; `None` while nothing changed.
    fn publish_at(&self) -> Option<Instant> {
        let at = self
            .published
            .map_or(self.started, |published| published + PACE);
        self.changed.then_some(at)
    }

    fn publish_if_due(&mut self) {
        let now = Instant::now();
        if self.publish_at().is_some_and(|at| at <= now) {
            self.table.send_replace(self.flattened.table());
            self.changed = false;
            self.published = Some(now);
        }
    }
}

// === Lines ===

/// Lets some lines of the log through, and counts the others.
#[derive(Debug, Default)]
struct Lines {
    since: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl Lines {
    /// Logs that a target's state changed, or that something went wrong for the first time.
    fn tell(&mut self, name: &LowerName, before: &Resolution, after: &Resolution) {
        let is_new = std::mem::discriminant(&before.state) != std::mem::discriminant(&after.state);
        let is_first_fault = before.error.is_none() && after.error.is_some();
        if !(is_new || is_first_fault) || !self.may_write() {
            return;
        }
        let (addresses, error) = (&after.addresses, after.error.as_deref().unwrap_or_default());
        match after.state {
            TargetState::Own => {}
            TargetState::Unresolved => {
                warn!(%name, error, "Load balancer's host name has no address yet");
            }
            TargetState::Fresh if error.is_empty() => {
                info!(%name, ?addresses, "Load balancer's host name is resolved");
            }
            TargetState::Fresh => {
                warn!(%name, ?addresses, error, "Load balancer's host name is resolved in part");
            }
            TargetState::Failing { .. } => {
                warn!(%name, ?addresses, error, "Load balancer's host name cannot be resolved; its last addresses stay");
            }
            TargetState::Expired { .. } => {
                warn!(%name, old = ?after.old, error, "Load balancer's host name was not resolved for an hour; its last addresses come after all others");
            }
            TargetState::Gone => {
                warn!(%name, error, "Load balancer's host name has no address any more");
            }
        }
    }

    fn may_write(&mut self) -> bool {
        let now = Instant::now();
        if self.since.is_none_or(|since| now - since >= LINES_IN) {
            if self.left_out > 0 {
                let left_out = self.left_out;
                warn!(
                    left_out,
                    "More load balancers' host names changed than are told one by one"
                );
            }
            (self.since, self.written, self.left_out) = (Some(now), 0, 0);
        }
        if self.written == LINES {
            self.left_out += 1;
            return false;
        }
        self.written += 1;
        true
    }
}
