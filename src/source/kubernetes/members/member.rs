//! One member cluster: the tasks that follow it, and what they share.
//!
//! ```text
//!   access --> client --> server --> discovery --> plan --> watch (one a kind) --> events --> owner of the world --> updates
//!                            '-----> heartbeat --> begin anew ---^
//! ```
//!
//! All of it stands from the member's first day to its last. A client, a version, a token that changes goes down this way and
//! lets what lies behind it begin anew; what is known stays in the world.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::client::keep;
use super::clock::Clock;
use super::course::Course;
use super::discovery::{Discovery, Plan};
use super::heartbeat::beat;
use super::kinds::{Subject, WANTED};
use super::known::{Known, MAX_OBJECTS};
use super::sink::Sink;
use super::status::{Board, KindState};
use super::watch::Watch;
use super::writer::Writer;
use crate::lifecycle::Supervisor;
use crate::model::Chance;
use crate::source::kubernetes::records::{Event, Watched};
use crate::source::kubernetes::rules::{Access, Rules, WriteBack};
use crate::source::kubernetes::write_back::Statements;

/// All watches of a member begin anew within, so that they do not all begin at once.
const SPREAD: Duration = Duration::from_secs(1);
/// Events that wait for the world: a page of them and more. When it is full, the watches wait, and the servers with them.
pub(super) const EVENTS: usize = 1024;

/// What is equal for all members.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    /// How objects are read.
    pub(super) rules: Arc<Rules>,
    /// Without an answer for this long a cluster is stale.
    pub(super) stale_after: Duration,
    /// What is written.
    pub(super) write_back: Option<WriteBack>,
}

/// What the tasks of one member share.
#[derive(Debug)]
pub(super) struct Member {
    /// Where they note how they fare.
    pub(super) board: Arc<Board>,
    /// Their clock.
    pub(super) clock: Clock,
    /// Wakes up the discovery.
    pub(super) look: Notify,
    /// Tells the keeper of the client that its credentials are refused.
    pub(super) denied: Notify,
    settings: watch::Receiver<Settings>,
    anew: watch::Sender<u64>,
    chance: Mutex<Chance>,
}

impl Member {
    /// Makes what they share.
    pub(super) fn new(
        board: Arc<Board>,
        clock: Clock,
        settings: watch::Receiver<Settings>,
        seed: u64,
    ) -> Self {
        Self {
            board,
            clock,
            look: Notify::new(),
            denied: Notify::new(),
            settings,
            anew: watch::Sender::new(0),
            chance: Mutex::new(Chance::new(seed)),
        }
    }

    /// Gives the time after which a cluster without answers is stale.
    pub(super) fn stale_after(&self) -> Duration {
        self.settings.borrow().stale_after
    }

    /// Gives the settings, as they change.
    pub(super) fn settings(&self) -> watch::Receiver<Settings> {
        self.settings.clone()
    }

    /// Lets everything begin anew: the server is back.
    pub(super) fn begin_anew(&self) {
        self.anew
            .send_modify(|times| *times = times.wrapping_add(1));
    }

    /// Tells of it.
    pub(super) fn anew(&self) -> watch::Receiver<u64> {
        self.anew.subscribe()
    }

    /// Gives a chance of one's own.
    pub(super) fn chance(&self) -> Chance {
        let mut chance = self.chance.lock().unwrap_or_else(PoisonError::into_inner);
        Chance::new(chance.seed())
    }
}

/// Spawns the tasks that follow a member. What they see goes to `events`; of the statements, those about this member are said.
pub(super) fn spawn(
    tasks: &mut Supervisor,
    member: &Arc<Member>,
    access: watch::Receiver<Access>,
    events: &mpsc::Sender<(Watched, Event)>,
    statements: watch::Receiver<Statements>,
) {
    let token = tasks.token();
    let (servers, served) = watch::channel(None);
    let plans = std::array::from_fn(|_| watch::Sender::new(Plan::default()));
    for (wanted, plan) in WANTED.iter().zip(&plans) {
        let sink = match wanted.subject {
            Subject::Kind(watched) => Sink::Kind {
                watched,
                known: Known::new(MAX_OBJECTS),
                events: events.clone(),
            },
            // Secrets are wanted of no member.
            Subject::Definitions | Subject::Secrets => Sink::Definitions,
        };
        let tending = tend(member.clone(), wanted.subject, plan.subscribe(), sink);
        tasks.spawn("watch", until(token.clone(), tending));
    }
    let writer = Writer::new(member.clone(), (served.clone(), &plans), statements);
    // Nothing needs it: it may end early.
    tasks.spawn_finite("writer", writer.run(token.clone()));
    let discovery = Discovery::new(member.clone(), plans).run(served.clone());
    tasks.spawn("discovery", until(token.clone(), discovery));
    tasks.spawn(
        "heartbeat",
        until(token.clone(), beat(member.clone(), served)),
    );
    tasks.spawn(
        "client",
        until(token, keep(member.clone(), access, servers)),
    );
}

/// Does something until the token falls.
async fn until(token: CancellationToken, task: impl Future<Output = ()>) {
    token.run_until_cancelled(task).await;
}

/// Does what the plan of one kind says, for as long as it is not dropped.
async fn tend(
    member: Arc<Member>,
    subject: Subject,
    mut plans: watch::Receiver<Plan>,
    mut sink: Sink,
) {
    let mut anew = member.anew();
    let mut chance = member.chance();
    loop {
        let plan = plans.borrow_and_update().clone();
        let (resource, server, may_stream) = match plan {
            Plan::Follow {
                resource,
                server,
                may_stream,
            } => (resource, server, may_stream),
            Plan::Wait | Plan::Unserved => {
                let state = if matches!(plan, Plan::Unserved) {
                    sink.unserved().await;
                    KindState::Unserved
                } else {
                    KindState::Waiting
                };
                let now = member.clock.stamp();
                member.board.follow(subject, |followed| {
                    followed.enter(state, now);
                    followed.error = None;
                    followed.version = None;
                    if followed.state == KindState::Unserved {
                        followed.objects = 0;
                        followed.left_out = 0;
                    }
                });
                if plans.changed().await.is_err() {
                    return;
                }
                continue;
            }
        };
        let course = Course::new(may_stream, Chance::new(chance.seed()));
        let mut watch = Watch::new(&member, server, resource, &mut sink, course);
        watch.spread(|span| chance.part(span));
        anew.mark_unchanged();
        loop {
            // Cancel-safe: a watch that is dropped in its middle has handed on what it counted, and begins with a list.
            tokio::select! {
                never = watch.run() => match never {},
                changed = plans.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                _ = anew.changed() => {}
            }
            sleep(chance.part(SPREAD)).await;
            watch.anew();
        }
    }
}
