//! One watch: asks as its course says, reads what comes, hands it on.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::ACCEPT;
use kube::api::{ListParams, WatchParams};
use kube::core::Request;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, info, warn};

use super::bearer::Bearer;
use super::course::{Ask, Course, SHORT};
use super::fault::{Fault, FaultKind};
use super::kinds::Resource;
use super::member::Member;
use super::pages::{Line, read_line, read_page};
use super::raw::Raw;
use super::server::{Form, Server, bad_request};
use super::sink::Sink;
use super::status::KindState;
use crate::source::kubernetes::object::Schema;

/// Octets of a page.
const MAX_PAGE: usize = 64 << 20;
/// Octets of an event.
const MAX_LINE: usize = 4 << 20;
/// An event with more octets waits for its turn: what is read of it takes many times its octets in memory.
const LARGE_LINE: usize = 256 << 10;
/// A page comes within.
const PAGE_TIME: Duration = Duration::from_secs(60);
/// A list comes within, all its pages together.
const LIST_TIME: Duration = Duration::from_secs(300);
/// The head of a watch's answer comes within.
const HEAD_TIME: Duration = Duration::from_secs(15);
/// A stream's list that stands still for so long does not come to its end.
const STREAM_PAUSE: Duration = Duration::from_secs(15);
/// A watch that is silent for so long may have broken unseen: servers send a bookmark every minute or two.
const SILENCE: Duration = Duration::from_secs(150);
/// A server ends a watch after so many seconds, plus a part of a minute, so that not all end together.
const LIFE: u32 = 230;
const LIFE_SPREAD: Duration = Duration::from_secs(40);
/// One that it did not end is ended here so much later.
const GRACE: Duration = Duration::from_secs(15);

/// What is said of watches that end again and again as soon as they begin.
const TOO_SOON: &str = "the server ends the watch as soon as it begins";

/// A kind at a version of a server, followed.
pub(super) struct Watch<'w> {
    member: &'w Member,
    server: Arc<Server>,
    bearer: watch::Receiver<Option<Bearer>>,
    resource: Resource,
    sink: &'w mut Sink,
    course: Course,
    /// When the list that is being read must be complete.
    list_ends: Instant,
    /// How long a watch may live.
    life: u32,
    /// Watches end as soon as they begin: one that goes on must show that it lasts.
    is_doubted: bool,
}

impl<'w> Watch<'w> {
    /// Begins to follow.
    pub(super) fn new(
        member: &'w Member,
        server: Arc<Server>,
        resource: Resource,
        sink: &'w mut Sink,
        course: Course,
    ) -> Self {
        Self {
            bearer: server.bearer(),
            member,
            server,
            resource,
            sink,
            course,
            list_ends: Instant::now(),
            life: LIFE,
            is_doubted: false,
        }
    }

    /// Lets a watch live for up to so much longer than it must.
    pub(super) fn spread(&mut self, spread: impl FnOnce(Duration) -> Duration) {
        let more = spread(LIFE_SPREAD).as_secs();
        self.life = LIFE + u32::try_from(more).unwrap_or(0);
    }

    /// Begins anew with a list.
    pub(super) fn anew(&mut self) {
        self.course.anew(self.member.clock.now());
    }

    /// Follows until it is dropped, which may be at any moment.
    pub(super) async fn run(&mut self) -> Infallible {
        loop {
            self.pause().await;
            self.bearer.mark_unchanged();
            let ask = self.course.ask();
            self.course.begin(self.member.clock.now());
            let done = match ask {
                Ask::Page { rest, limit } => self.page(rest, limit).await,
                Ask::Stream => self.follow(None).await,
                Ask::Watch { from } => self.follow(Some(&from)).await,
            };
            if let Err(fault) = done {
                self.failed(fault);
            }
        }
    }

    /// Waits for the next request's turn; other credentials may bring it forward.
    async fn pause(&mut self) {
        loop {
            let wait = self.course.wait(self.member.clock.now());
            if wait.is_zero() {
                return;
            }
            // Cancel-safe: both arms only wait.
            tokio::select! {
                () = sleep(wait) => {}
                changed = self.bearer.changed() => match changed {
                    Ok(()) => self.course.hurry(self.member.clock.now()),
                    // This server has no successor of its credentials any more.
                    Err(_) => sleep(wait).await,
                },
            }
        }
    }

    /// Reads a page of the list.
    async fn page(&mut self, rest: Option<Box<str>>, limit: u32) -> Result<(), Fault> {
        let mut parameters = ListParams::default().limit(limit);
        let is_first = rest.is_none();
        if let Some(rest) = rest {
            parameters = parameters.continue_token(&rest);
        } else {
            self.list_ends = Instant::now() + LIST_TIME;
        }
        let (path, selector) = self.sink.scope(self.resource);
        if let Some(selector) = selector {
            parameters = parameters.labels(selector);
        }
        let request = Request::new(path);
        let request = match self.sink {
            Sink::Kind { .. } | Sink::Secrets(_) => request.list(&parameters),
            Sink::Definitions => request.list_metadata(&parameters),
        };
        let mut request = request.map_err(|_| bad_request())?;
        let schema = self.ask_for(&mut request);
        let server = self.server.clone();
        let turn = server.turn().await;
        let left = self.list_ends.saturating_duration_since(Instant::now());
        let (form, octets) = server.list(request, MAX_PAGE, PAGE_TIME.min(left)).await?;
        if is_first {
            self.begin_list().await;
        }
        let mut handed = Vec::new();
        let mut objects = 0;
        let mut each = |raw: Raw<'_>| {
            objects += 1;
            let (event, _) = self.sink.put(raw, self.member, (schema, true));
            handed.extend(event);
        };
        let read = read_page(form, &octets, &mut each);
        drop((octets, turn));
        self.sink.hand_on(handed).await;
        let page = read?;
        if self.course.page(objects, page.rest, page.version) {
            self.end_list().await;
        } else {
            self.count();
        }
        Ok(())
    }

    /// Asks for protobuf where there may be some, and tells how it is written.
    fn ask_for(&self, request: &mut hyper::Request<Vec<u8>>) -> Option<Schema> {
        let schema = self.sink.schema(self.resource);
        if schema.is_some() {
            request.headers_mut().insert(ACCEPT, Form::ACCEPT);
        }
        schema
    }

    /// Watches from a version on; without one, reads the list as a stream first.
    async fn follow(&mut self, from: Option<&str>) -> Result<(), Fault> {
        let begun = Instant::now();
        let mut is_listing = from.is_none();
        let (path, selector) = self.sink.scope(self.resource);
        let parameters = WatchParams {
            timeout: Some(self.life),
            send_initial_events: is_listing,
            label_selector: selector.map(ToOwned::to_owned),
            ..WatchParams::default()
        };
        let request = Request::new(path);
        let from = from.unwrap_or_default();
        let request = match self.sink {
            Sink::Kind { .. } | Sink::Secrets(_) => request.watch(&parameters, from),
            Sink::Definitions => request.watch_metadata(&parameters, from),
        };
        let mut request = request.map_err(|_| bad_request())?;
        let schema = self.ask_for(&mut request);
        let reply = self.server.open(request, HEAD_TIME).await?;
        if is_listing {
            self.list_ends = begun + LIST_TIME;
            self.begin_list().await;
        } else {
            self.enter(KindState::Watching);
        }
        let mut lines = reply.lines(MAX_LINE);
        let server = self.server.clone();
        let ends = begun + Duration::from_secs(self.life.into()) + GRACE;
        loop {
            let now = Instant::now();
            let until = if is_listing {
                self.list_ends.min(now + STREAM_PAUSE)
            } else {
                ends.min(now + SILENCE)
            };
            let line = match timeout_at(until, lines.next()).await {
                Ok(Ok(Some(line))) => line,
                Ok(Err(fault)) => return Err(fault),
                Err(_) if is_listing => {
                    let text = "the list did not come to its end";
                    return Err(Fault::new(FaultKind::Unfinished, text));
                }
                // The server ended it, or it is silent.
                Ok(Ok(None)) | Err(_) => return self.closed(is_listing),
            };
            let _turn = if line.len() > LARGE_LINE {
                server.turn().await
            } else {
                None
            };
            match read_line(lines.form(), &line, lines.masks())? {
                Line::Put(raw) => self.put(raw, (schema, is_listing)).await,
                Line::Delete { key, version } => {
                    let event = key.and_then(|key| self.sink.delete(key, self.member));
                    self.sink.hand_on(event).await;
                    self.seen(version.as_deref(), is_listing);
                }
                Line::Bookmark { version, ends_list } if is_listing && ends_list => {
                    is_listing = false;
                    self.course.streamed(version);
                    self.end_list().await;
                    self.enter(KindState::Watching);
                }
                Line::Bookmark { version, .. } => self.seen(Some(&version), is_listing),
                Line::Unknown => {}
            }
        }
    }

    async fn put(&mut self, raw: Raw<'_>, how: (Option<Schema>, bool)) {
        let (event, version) = self.sink.put(raw, self.member, how);
        self.sink.hand_on(event).await;
        self.seen(version.as_deref(), how.1);
    }

    /// Notes what was handed on: only then may the version go forward.
    fn seen(&mut self, version: Option<&str>, is_listing: bool) {
        if !is_listing {
            self.course.seen(version.unwrap_or_default());
            if self.is_doubted && self.course.is_lasting(self.member.clock.now()) {
                self.is_well();
            }
        }
        self.count();
    }

    async fn begin_list(&mut self) {
        self.enter(KindState::Listing);
        self.sink.begin_list().await;
    }

    async fn end_list(&mut self) {
        self.sink.end_list().await;
        let now = self.member.clock.stamp();
        let lists = self.member.board.follow(self.sink.subject(), |followed| {
            followed.listed(now);
            followed.lists
        });
        self.count();
        if let Sink::Definitions = self.sink
            && lists > 1
        {
            // Something may have come or gone while nobody looked.
            self.member.look.notify_one();
        }
    }

    fn closed(&mut self, is_listing: bool) -> Result<(), Fault> {
        if is_listing {
            let text = "the list broke off";
            return Err(Fault::new(FaultKind::Unfinished, text));
        }
        let now = self.member.clock.now();
        let short = self.course.closed(now);
        if short > 0 {
            // It waits for its turn, and nothing is seen meanwhile.
            self.ended_too_soon(short);
        }
        let (_, left_out) = self.sink.counts();
        if left_out > 0 && short == 0 {
            // There may be room by now for what was left out.
            self.course.anew(now);
        }
        Ok(())
    }

    fn count(&self) {
        let (objects, left_out) = self.sink.counts();
        self.member.board.follow(self.sink.subject(), |followed| {
            followed.objects = objects;
            followed.left_out = left_out;
        });
    }

    /// Notes how the kind is followed, and that nothing is wrong.
    fn enter(&mut self, state: KindState) {
        let now = self.member.clock.stamp();
        let is_well = state == KindState::Watching && self.course.is_lasting(now.at);
        self.member.board.follow(self.sink.subject(), |followed| {
            followed.version = Some(self.resource.version);
            followed.enter(state, now);
        });
        if is_well {
            self.is_well();
        }
    }

    /// Notes that nothing is wrong any more.
    fn is_well(&mut self) {
        self.is_doubted = false;
        let is_back = self.member.board.follow(self.sink.subject(), |followed| {
            followed.error.take().is_some()
        });
        if is_back {
            let (cluster, kind) = (self.member.board.id(), self.resource.plural);
            info!(%cluster, kind, "Watch works again");
        }
    }

    /// Notes a watch that the server ended as soon as it had begun, the how manieth in a row.
    fn ended_too_soon(&mut self, short: u32) {
        let now = self.member.clock.stamp();
        let is_failure = short >= SHORT;
        self.is_doubted = is_failure;
        let is_new = self.member.board.follow(self.sink.subject(), |followed| {
            followed.enter(KindState::Waiting, now);
            let is_new = is_failure && followed.error.is_none();
            if is_failure {
                followed.failures += 1;
                followed.error = Some(TOO_SOON.into());
            }
            is_new
        });
        if is_new {
            let (cluster, kind) = (self.member.board.id(), self.resource.plural);
            warn!(%cluster, kind, error = TOO_SOON, "Watch failed; keeping what is known");
        }
    }

    fn failed(&mut self, fault: Fault) {
        let now = self.member.clock.stamp();
        let is_failure = self.course.failed(fault.kind, now.at);
        match fault.kind {
            FaultKind::Unauthorized => self.member.denied.notify_one(),
            FaultKind::Missing => self.member.look.notify_one(),
            _ => {}
        }
        let state = match fault.kind {
            _ if !is_failure => KindState::Listing,
            FaultKind::Unauthorized | FaultKind::Forbidden => {
                KindState::Refused(fault.text.clone())
            }
            _ => KindState::Waiting,
        };
        let is_new = self.member.board.follow(self.sink.subject(), |followed| {
            followed.enter(state, now);
            let is_new = is_failure && followed.error.is_none();
            if is_failure {
                followed.failures += 1;
                followed.error = Some(fault.text.clone());
            }
            is_new
        });
        let (cluster, kind, error) = (self.member.board.id(), self.resource.plural, &fault.text);
        if is_new {
            warn!(%cluster, kind, %error, "Watch failed; keeping what is known");
        } else {
            debug!(%cluster, kind, %error, "Request of a watch failed");
        }
    }
}
