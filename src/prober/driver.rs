//! The loop between the fleet and the sockets.
//!
//! It owns the fleet and the clock: a [`Moment`] is the monotonic time since the prober was made, so that steps of the wall
//! clock change nothing. Probes run as tasks of a set of its own; everything that ended by one wake-up is observed together, and
//! its flips leave in one batch. A target is held up to the guard when its probe is to start, and no sooner: what is allowed may
//! have changed while its order waited.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, trace, warn};

use super::config::Config;
use super::connect::is_here;
use super::guard::Guard;
use super::handle::{COMMANDS, Command, ProberHandle};
use super::lanes::{LaneKey, Lanes, key};
use super::probe::probe;
use super::tls::Tls;
use crate::health::{Fleet, Flip, MonitorId, MonitorTable, Observation, ProbeError, ProbeOrder};
use crate::model::{Moment, Verdict};

/// Batches that wait for the controller. When full, flips gather here into one larger batch.
const BATCHES: usize = 16;

/// Flips that gather here before results are left unread: probing pauses rather than grow without bound while the controller
/// takes nothing. Commands are still taken, so that a controller that waits to give one is not locked out.
const GATHERED: usize = 65_536;

/// The first flips leave at once, later ones gather for so long: a thousand targets that fail together make a few batches.
const PACE: Duration = Duration::from_millis(1);

/// How often reports are renewed while results come in.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// After flips reports are renewed at once, unless renewing would take more than one part in so many of the time.
const REPORT_SHARE: u32 = 20;

/// Checks of one batch that are warned of one by one.
const WARNED: usize = 20;

/// Rounds in which orders are taken from the fleet before results and commands are looked at again.
const ROUNDS: usize = 8;

/// A warning that could come with every probe comes once in this time.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Probes that start so late are worth a warning.
const LATE: Duration = Duration::from_secs(5);

/// What a probe's task gives back.
type Ended = Result<(task::Id, Result<Duration, ProbeError>), JoinError>;

/// Probes what it is told to, until stopped.
#[derive(Debug)]
pub struct Prober {
    fleet: Fleet,
    guard: Guard,
    lanes: Lanes,
    tls: Arc<Tls>,
    started: Instant,
    probes: JoinSet<Result<Duration, ProbeError>>,
    running: HashMap<task::Id, (MonitorId, LaneKey)>,
    commands: mpsc::Receiver<Command>,
    flips: mpsc::Sender<Vec<Flip>>,
    gathered: Vec<Flip>,
    /// When the last batch left.
    sent: Instant,
    board: Board,
    late: Quiet,
    tenants_late: Quiet,
    local: Quiet,
}

/// Why the loop woke up.
enum Wake {
    Stop,
    Time,
    Told(Command),
    Ended(Ended),
    /// A batch of flips could leave, and did.
    Sent,
}

impl Prober {
    /// Makes a prober that watches nothing yet, its handle, and the channel its flips come out of: batches, never empty, in the
    /// order they happened. `own` is where this node listens: no target of tenants. `seed` spreads the probes.
    #[must_use]
    pub fn new(
        config: &Config,
        own: &[SocketAddr],
        seed: u64,
    ) -> (Self, ProberHandle, mpsc::Receiver<Vec<Flip>>) {
        let (commands, told) = mpsc::channel(COMMANDS);
        let (flips, batches) = mpsc::channel(BATCHES);
        let (reports, read) = watch::channel(Arc::default());
        let started = Instant::now();
        let prober = Self {
            fleet: Fleet::new(seed),
            guard: Guard::new(&config.allow, own),
            lanes: Lanes::new(config),
            tls: Arc::default(),
            started,
            probes: JoinSet::new(),
            running: HashMap::new(),
            commands: told,
            flips,
            gathered: Vec::new(),
            sent: started,
            board: Board::new(reports, started),
            late: Quiet::default(),
            tenants_late: Quiet::default(),
            local: Quiet::default(),
        };
        let handle = ProberHandle {
            commands,
            reports: read,
        };
        (prober, handle, batches)
    }

    /// Probes until the token falls or nobody takes flips any more; probes out are then dropped.
    pub async fn run(mut self, token: CancellationToken) {
        loop {
            self.board.renew_if_due(&self.fleet);
            self.start_due();
            match self.wake(&token).await {
                Wake::Stop => return,
                Wake::Time | Wake::Sent => {}
                Wake::Told(command) => self.obey(command),
                Wake::Ended(ended) => self.finish(ended),
            }
            self.catch_up();
            if !self.gathered.is_empty() {
                // Probes whose results are there run first: what fails together leaves together.
                task::yield_now().await;
                self.catch_up();
                self.send();
            }
        }
    }

    /// Waits for whatever comes first.
    async fn wake(&mut self, token: &CancellationToken) -> Wake {
        let (timer, leave) = (self.next_moment(), self.leave_at());
        let sleep = async {
            match timer {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        // Cancel-safe: each arm only waits and takes one item at its end; a reserved place that is not used is given back.
        tokio::select! {
            biased;
            () = token.cancelled() => Wake::Stop,
            Some(command) = self.commands.recv() => Wake::Told(command),
            place = self.flips.reserve(), if leave.is_some_and(|at| at <= Instant::now()) => match place {
                Ok(place) => {
                    place.send(std::mem::take(&mut self.gathered));
                    self.sent = Instant::now();
                    Wake::Sent
                }
                Err(_) => Wake::Stop,
            },
            Some(ended) = self.probes.join_next_with_id(), if self.gathered.len() < GATHERED => {
                Wake::Ended(ended)
            }
            () = sleep => Wake::Time,
        }
    }

    /// Tells when the flips gathered may leave; `None` when there are none.
    fn leave_at(&self) -> Option<Instant> {
        (!self.gathered.is_empty()).then(|| self.sent + PACE)
    }

    /// Gives the next moment something is to do without being told: a probe, a report, or a batch that waits for its time.
    fn next_moment(&self) -> Option<Instant> {
        let probe = self.fleet.next_due().filter(|_| self.lanes.room() > 0);
        let probe = probe.map(|moment| self.started + moment.0);
        let now = Instant::now();
        let leave = self.leave_at().filter(|at| *at > now);
        let others = self.board.next().into_iter().chain(leave);
        probe.into_iter().chain(others).min()
    }

    /// Takes all that is there already, without waiting.
    fn catch_up(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            self.obey(command);
        }
        while self.gathered.len() < GATHERED {
            let Some(ended) = self.probes.try_join_next_with_id() else {
                return;
            };
            self.finish(ended);
        }
    }

    /// Sends the flips gathered, if it is time and there is a place; else they wait for both in [`Self::wake`].
    fn send(&mut self) {
        let now = Instant::now();
        if self.leave_at().is_none_or(|at| at > now) {
            return;
        }
        if let Ok(place) = self.flips.try_reserve() {
            place.send(std::mem::take(&mut self.gathered));
            self.sent = now;
        }
    }

    fn now(&self) -> Moment {
        Moment(self.started.elapsed())
    }

    fn obey(&mut self, command: Command) {
        let flips = match command {
            Command::Change(watch, unwatch, recalled) => {
                let mut flips = self.fleet.change(watch, &unwatch, self.now());
                flips.extend(self.fleet.restore(&recalled));
                self.board.note(true);
                flips
            }
            Command::Configure(config) => {
                let now = self.now();
                self.lanes.configure(&config, now);
                self.guard.allow(&config.allow);
                // What the guard says of a target may have changed: it is told at once.
                let guard = &self.guard;
                self.fleet
                    .hurry(now, |target, why| guard.refuse(target, is_here) != why);
                Vec::new()
            }
        };
        self.gather(flips);
    }

    /// Starts the probes that are due, as far as limits and guard allow.
    fn start_due(&mut self) {
        let now = self.now();
        self.take_due(now);
        let mut flips = Vec::new();
        while let Some(ProbeOrder { monitor, target }) = self.lanes.start() {
            let key = key(&target);
            if let Some(why) = self.guard.refuse(&target, is_here) {
                self.lanes.leave(key, now);
                flips.extend(self.fleet.refuse(monitor, why, now));
                continue;
            }
            let tls = Arc::clone(&self.tls);
            let started = self.probes.spawn(async move { probe(&target, &tls).await });
            self.running.insert(started.id(), (monitor, key));
        }
        for flip in flips.iter().take(WARNED) {
            if let Some(why) = flip.refused {
                let target = flip.target.address;
                warn!(%target, %why, "Target of a tenant is refused: it is not probed, and taken as up");
            }
        }
        if flips.len() > WARNED {
            let more = flips.len() - WARNED;
            warn!(more, "More targets of tenants are refused");
        }
        self.gather(flips);
        let waited = self.lanes.tenants_wait_since();
        let waited = waited.map_or(Duration::ZERO, |since| now.since(since));
        if waited > LATE && self.tenants_late.may_speak() {
            warn!(
                late = ?waited,
                "Probes of tenants start late; raise probes.concurrency or their intervals"
            );
        }
    }

    /// Takes the orders that are due from the fleet, as many as there is room for.
    fn take_due(&mut self, now: Moment) {
        let late = self
            .fleet
            .next_due()
            .map_or(Duration::ZERO, |due| now.since(due));
        for _ in 0..ROUNDS {
            let room = self.lanes.room();
            if room == 0 {
                if late > LATE && self.late.may_speak() {
                    warn!(
                        ?late,
                        "Probes start late; raise probes.concurrency or the intervals"
                    );
                }
                return;
            }
            let orders = self.fleet.due(now, room);
            if orders.is_empty() {
                return;
            }
            for order in orders {
                self.lanes.enter(order, now);
            }
        }
    }

    /// Hands the result of a probe to the fleet.
    fn finish(&mut self, ended: Ended) {
        let (id, result) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                error!(%error, "A probe's task failed; taken as no evidence");
                (error.id(), Err(ProbeError::Local))
            }
        };
        let Some((monitor, key)) = self.running.remove(&id) else {
            return;
        };
        let now = self.now();
        self.lanes.leave(key, now);
        trace!(monitor = monitor.0, ?result, "Observed");
        if result == Err(ProbeError::Local) && self.local.may_speak() {
            warn!(address = %key.0, "This node could not probe (descriptors, ports, route or a stall); verdicts stay");
        }
        let flip = self.fleet.observe(Observation { monitor, result }, now);
        self.board.note(false);
        self.gather(flip);
    }

    fn gather(&mut self, flips: impl IntoIterator<Item = Flip>) {
        let from = self.gathered.len();
        self.gathered.extend(flips);
        let fresh = self.gathered.get(from..).unwrap_or_default();
        if !fresh.is_empty() {
            self.board.note(true);
        }
        let flipped = fresh.iter().filter(|flip| flip.verdict != flip.before);
        for flip in flipped.take(WARNED) {
            self.warn_if_never_succeeded(flip);
        }
    }

    /// Warns of a check that may be wrong: it must not hide as "all Down is all Up". Flips themselves are the controller's to
    /// tell, who knows whose they are.
    fn warn_if_never_succeeded(&self, flip: &Flip) {
        let Some(report) = self.fleet.report(flip.monitor) else {
            return;
        };
        if let Some(error) = flip.reason
            && flip.observed
            && flip.verdict == Verdict::Down
            && report.never_succeeded
        {
            let target = report.target.address;
            warn!(%target, %error, "MonitorNeverSucceeded: every check since its first failed; is the check right?");
        }
    }
}

// === Board ===

/// Where reports are put up.
#[derive(Debug)]
struct Board {
    reports: watch::Sender<Arc<MonitorTable>>,
    renewed: Instant,
    /// How long the last renewal took.
    took: Duration,
    changed: bool,
    flipped: bool,
}

impl Board {
    fn new(reports: watch::Sender<Arc<MonitorTable>>, now: Instant) -> Self {
        Self {
            reports,
            renewed: now,
            took: Duration::ZERO,
            changed: false,
            flipped: false,
        }
    }

    /// Notes that something was observed, or that a verdict or the set of monitors changed.
    fn note(&mut self, flipped: bool) {
        self.changed = true;
        self.flipped |= flipped;
    }

    /// Tells when to renew; `None` while nothing changed.
    fn next(&self) -> Option<Instant> {
        let rest = self.took * REPORT_SHARE;
        let pause = if self.flipped {
            rest
        } else {
            rest.max(REPORT_EVERY)
        };
        self.changed.then(|| self.renewed + pause)
    }

    fn renew_if_due(&mut self, fleet: &Fleet) {
        let begun = Instant::now();
        if self.next().is_none_or(|next| next > begun) {
            return;
        }
        self.reports.send_replace(Arc::new(fleet.table()));
        self.renewed = Instant::now();
        self.took = self.renewed - begun;
        (self.changed, self.flipped) = (false, false);
    }
}

// === Quiet ===

/// Lets a warning through once in a while.
#[derive(Debug, Default)]
struct Quiet {
    spoke: Option<Instant>,
}

impl Quiet {
    fn may_speak(&mut self) -> bool {
        let may = self.spoke.is_none_or(|spoke| spoke.elapsed() >= WARN_EVERY);
        if may {
            self.spoke = Some(Instant::now());
        }
        may
    }
}
