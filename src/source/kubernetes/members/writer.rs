//! Says in one member cluster what stands of its objects, while this node is the one who does.
//!
//! One request at a time. What the server does to them changes nothing else: this task has a connection of its own in the pool of
//! the member's client, and nobody waits for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::discovery::Plan;
use super::fault::{Fault, FaultKind, Masks};
use super::kinds::{Resource, WANTED};
use super::member::{Member, Settings};
use super::server::Server;
use super::wording::{LEASE, Outcome, ask_for, give_back, write};
use crate::inventory::ObjectKind;
use crate::model::{Chance, Moment};
use crate::source::kubernetes::records::Watched;
use crate::source::kubernetes::rules::WriteBack;
use crate::source::kubernetes::write_back::{
    Ask, Election, Ledger, Next, Statement, Statements, WriteBackStatus,
};

/// All requests for one statement are, so that the Lease is renewed in time.
const ALL_WITHIN: Duration = Duration::from_secs(4);
/// After a failure nothing is written for so long, doubled with each in a row up to the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// What is wrong is said in the log once in so long: some may work, and some not.
const TELL: Duration = Duration::from_secs(600);
/// Nodes do not ask for the Lease in step.
const JITTER: Duration = Duration::from_millis(500);

/// Why [`Writer::serve`] returned.
#[derive(PartialEq, Eq)]
enum End {
    /// There are other settings, or another client.
    Changed,
    /// This is the end.
    Token,
}

/// Writes in one member.
pub(super) struct Writer {
    member: Arc<Member>,
    servers: watch::Receiver<Option<Arc<Server>>>,
    plans: [watch::Receiver<Plan>; WANTED.len()],
    settings: watch::Receiver<Settings>,
    statements: watch::Receiver<Statements>,
    election: Election,
    ledger: Ledger,
    status: WriteBackStatus,
    shown: WriteBackStatus,
    chance: Chance,
    /// The next look at the Lease is so much later than it could be.
    jitter: Duration,
    /// Nothing is written before.
    paused: Moment,
    failures: u32,
    /// When it was said last that something is wrong.
    told: Option<Moment>,
}

impl Writer {
    /// Makes it: of the statements it says those that are about this member.
    pub(super) fn new(
        member: Arc<Member>,
        (servers, plans): (
            watch::Receiver<Option<Arc<Server>>>,
            &[watch::Sender<Plan>; WANTED.len()],
        ),
        statements: watch::Receiver<Statements>,
    ) -> Self {
        let mut chance = member.chance();
        let settings = member.settings();
        let node = settings.borrow().write_back.as_ref().map(name_of);
        Self {
            servers,
            plans: plans.each_ref().map(watch::Sender::subscribe),
            statements,
            election: Election::new(&identity(node, &mut chance)),
            ledger: Ledger::default(),
            status: WriteBackStatus::default(),
            shown: WriteBackStatus::default(),
            jitter: Duration::ZERO,
            paused: Moment::default(),
            failures: 0,
            told: None,
            settings,
            chance,
            member,
        }
    }

    /// Writes until the token falls, then gives the Lease back.
    pub(super) async fn run(mut self, token: CancellationToken) {
        loop {
            let wanted = self.settings.borrow_and_update().write_back.clone();
            let server = self.servers.borrow_and_update().clone();
            self.status.wanted = wanted.is_some();
            let end = match (&wanted, &server) {
                (Some(wanted), Some(server)) => self.serve(wanted, server, &token).await,
                _ => self.rest(&token).await,
            };
            let is_wanted = self.settings.borrow().write_back == wanted;
            if let (Some(wanted), Some(server)) = (&wanted, &server)
                && (end == End::Token || !is_wanted)
            {
                self.give_back(wanted, server).await;
            }
            if end == End::Token {
                return;
            }
            if is_wanted {
                // It is another cluster perhaps: who has the Lease is read anew.
                let now = self.member.clock.now();
                self.election.reset(now);
                self.settle(now);
            } else {
                self.forget();
            }
        }
    }

    /// Waits until there is something to do, or an end.
    async fn rest(&mut self, token: &CancellationToken) -> End {
        self.show(self.member.clock.now());
        // Cancel-safe: all arms only wait.
        let changed = tokio::select! {
            () = token.cancelled() => return End::Token,
            changed = self.settings.changed() => changed,
            changed = self.servers.changed() => changed,
        };
        changed.map_or(End::Token, |()| End::Changed)
    }

    /// Forgets who writes and what was said.
    fn forget(&mut self) {
        let node = self.settings.borrow().write_back.as_ref().map(name_of);
        self.election = Election::new(&identity(node, &mut self.chance));
        self.ledger = Ledger::default();
        self.paused = Moment::default();
        self.failures = 0;
        self.status.error = None;
    }

    /// Writes by one client, as one configuration wants it.
    async fn serve(
        &mut self,
        wanted: &WriteBack,
        server: &Server,
        token: &CancellationToken,
    ) -> End {
        self.statements.mark_changed();
        loop {
            let now = self.member.clock.now();
            self.take(now);
            self.settle(now);
            let wake = match self.next(now) {
                Step::Elect => {
                    let electing = self.elect(wanted, server);
                    if token.run_until_cancelled(electing).await.is_none() {
                        return End::Token;
                    }
                    continue;
                }
                Step::Say(statement, count) => {
                    let saying = self.say((&statement, count), wanted, server);
                    if token.run_until_cancelled(saying).await.is_none() {
                        return End::Token;
                    }
                    continue;
                }
                Step::Wait(wake) => wake,
            };
            self.show(now);
            // Cancel-safe: all arms only wait.
            let changed = tokio::select! {
                () = token.cancelled() => return End::Token,
                changed = self.settings.changed() => changed.map(|()| true),
                changed = self.servers.changed() => changed.map(|()| true),
                changed = self.statements.changed() => {
                    self.statements.mark_changed();
                    changed.map(|()| false)
                }
                () = sleep(wake.since(now)) => Ok(false),
            };
            match changed {
                Ok(false) => {}
                Ok(true) => return End::Changed,
                Err(_) => return End::Token,
            }
        }
    }

    /// Takes what stands, if that is new.
    fn take(&mut self, now: Moment) {
        if self.statements.has_changed().unwrap_or(false) {
            let all = self.statements.borrow_and_update().clone();
            let own = all.get(&self.member.board.cluster());
            self.ledger.take(own.map_or(&[][..], Vec::as_slice), now);
        }
    }

    /// Notices that this node became the one who writes, or is not any more.
    fn settle(&mut self, now: Moment) {
        let leads = self.election.leads(now).is_some();
        if leads == self.status.leads {
            return;
        }
        self.status.leads = leads;
        let cluster = self.member.board.id();
        if leads {
            self.ledger.lead(now);
            info!(%cluster, "This node writes Events in a cluster");
        } else {
            self.ledger.follow();
            info!(%cluster, "This node writes no Events in a cluster any more");
        }
    }

    /// Decides what to do.
    fn next(&mut self, now: Moment) -> Step {
        let due = self.election.due().after(self.jitter);
        if due <= now {
            return Step::Elect;
        }
        if self.election.leads(now).is_none() {
            return Step::Wait(due);
        }
        if now < self.paused {
            return Step::Wait(due.min(self.paused));
        }
        match self.ledger.next(now) {
            Next::Say(statement, count) => Step::Say(statement, count),
            Next::At(at) => Step::Wait(due.min(at)),
            Next::Never => Step::Wait(due),
        }
    }

    /// Shows how it fares.
    fn show(&mut self, now: Moment) {
        self.status.leads = self.election.leads(now).is_some();
        self.status.waiting = self.ledger.waiting();
        self.status.left_out = self.ledger.left_out();
        if self.status != self.shown {
            self.shown = self.status.clone();
            self.member.board.write_back(self.status.clone());
        }
    }

    // === The Lease ===

    /// Asks for the Lease: how it stands, or to have it.
    async fn elect(&mut self, wanted: &WriteBack, server: &Server) {
        self.jitter = self.chance.part(JITTER);
        let asked = self.member.clock.now();
        let ask = self.election.ask(asked);
        let answer = ask_for(server, &wanted.namespace, &ask, self.election.me()).await;
        let now = self.member.clock.now();
        match (answer, &ask) {
            (Ok(lease), Ask::Read) => {
                self.election.read(Some(lease), now);
                // Another has it, and that is all that is wanted.
                if self.failures == 0 && self.election.due() > now {
                    self.status.error = None;
                }
            }
            (Ok(lease), _) => {
                self.election.granted(lease, asked);
                // What Events say of rights they say themselves.
                if self.failures == 0 {
                    self.status.error = None;
                }
            }
            (Err(fault), ask) => match (fault.kind, ask) {
                (FaultKind::Missing, Ask::Read) => self.election.read(None, now),
                (FaultKind::Answered(409), _)
                | (FaultKind::Missing, Ask::Take(_) | Ask::Renew(_)) => {
                    self.election.conflicted(now);
                }
                (kind, _) => {
                    // Other credentials may come at once (401); rights are given by people.
                    let is_refused = matches!(kind, FaultKind::Forbidden | FaultKind::Missing);
                    if is_refused {
                        self.election.refused(now);
                    } else {
                        self.election.failed(now);
                    }
                    let what = format!("Lease {}/{LEASE}", wanted.namespace);
                    self.tell(&what, &fault);
                }
            },
        }
    }

    /// Gives the Lease back, so that nobody has to wait for its end.
    async fn give_back(&mut self, wanted: &WriteBack, server: &Server) {
        let now = self.member.clock.now();
        let leads = self.election.leads(now).is_some();
        let held = self.election.held().filter(|_| leads);
        if let Some(held) = held.cloned() {
            // If it is lost, the others wait for its end.
            let _ = give_back(server, &wanted.namespace, &held).await;
        }
        self.election.reset(now);
        self.settle(now);
    }

    // === Events ===

    /// Says something.
    async fn say(
        &mut self,
        (statement, count): (&Arc<Statement>, u32),
        wanted: &WriteBack,
        server: &Server,
    ) {
        let begun = self.member.clock.now();
        let until = self.election.leads(begun).unwrap_or(begun);
        let within = ALL_WITHIN.min(until.since(begun));
        let resource = self.resource(statement.object.kind);
        let writing = write(server, (statement, count), resource, &wanted.node);
        let outcome = timeout(within, writing).await;
        let outcome = outcome.unwrap_or_else(|_| {
            let text = format!("no answer within {} s", within.as_secs());
            Err(Fault::new(FaultKind::Unreachable, &text))
        });
        let now = self.member.clock.now();
        if outcome.is_ok() {
            self.failures = 0;
            self.status.error = None;
        }
        match outcome {
            Ok(Outcome::Said(count)) => {
                self.status.written += 1;
                self.ledger.said(statement, (count, false), now);
                let (object, reason) = (&statement.object, statement.reason.as_str());
                debug!(cluster = %self.member.board.id(), %object, reason, "Event written");
            }
            Ok(Outcome::Found(count)) => self.ledger.said(statement, (count, true), now),
            Ok(Outcome::Lost) => self.ledger.lost(statement),
            Ok(Outcome::Gone) => self.ledger.failed(statement, now),
            Err(fault) => {
                self.ledger.failed(statement, now);
                let (first, longest) = PAUSE;
                let pause = first * (1 << self.failures.min(6));
                self.failures = self.failures.saturating_add(1);
                self.paused = now.after(pause.min(longest));
                let what = format!("Event in namespace {}", statement.object.namespace);
                self.tell(&what, &fault);
            }
        }
    }

    /// Gives the kind of an object as the server has it.
    fn resource(&self, kind: ObjectKind) -> Option<Resource> {
        let plan = self.plans.get(Watched::of(kind) as usize)?.borrow();
        match &*plan {
            Plan::Follow { resource, .. } => Some(*resource),
            Plan::Wait | Plan::Unserved => None,
        }
    }

    /// Notes what went wrong, and says it once in a while.
    fn tell(&mut self, what: &str, fault: &Fault) {
        let count = match fault.kind {
            FaultKind::Unauthorized | FaultKind::Forbidden => &mut self.status.forbidden,
            FaultKind::Unreachable => &mut self.status.unreachable,
            _ => &mut self.status.refused,
        };
        *count += 1;
        if fault.kind == FaultKind::Unauthorized {
            self.member.denied.notify_one();
        }
        let error = Masks::default().said(&format!("{what} cannot be written: {}", fault.text));
        // That it is not reached its heartbeat says.
        let now = self.member.clock.now();
        let is_new = self.told.is_none_or(|told| now.since(told) >= TELL);
        if is_new && fault.kind != FaultKind::Unreachable {
            self.told = Some(now);
            let cluster = self.member.board.id();
            warn!(%cluster, %error, "Events cannot be written in a cluster; nothing else needs them");
        }
        self.status.error = Some(error);
    }
}

/// What to do.
enum Step {
    /// Ask for the Lease.
    Elect,
    /// Say this, which was said so often before.
    Say(Arc<Statement>, u32),
    /// Nothing before.
    Wait(Moment),
}

/// Gives the name of the node.
fn name_of(wanted: &WriteBack) -> Box<str> {
    wanted.node.clone()
}

/// Makes a name that no other start of any node has.
fn identity(node: Option<Box<str>>, chance: &mut Chance) -> String {
    let node = node.unwrap_or_default();
    let mut shown = node.to_string();
    shown.truncate(shown.floor_char_boundary(128));
    format!("{shown}_{:016x}", chance.seed())
}
