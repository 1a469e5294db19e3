//! One watch: asks as its course says, reads what comes, hands it on.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{ListParams, WatchParams};
use kube::core::Request;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, info, warn};

use super::bearer::Bearer;
use super::course::{Ask, Course, SHORT};
use super::fault::{Fault, FaultKind};
use super::kinds::{Resource, Subject};
use super::known::Known;
use super::member::Member;
use super::pages::{Item, Line, key_of, name_of, read_line, read_object, read_page, version_of};
use super::secrets::SecretList;
use super::server::{Server, bad_request};
use super::status::KindState;
use crate::source::kubernetes::read::read;
use crate::source::kubernetes::records::{Event, GATEWAYS, Key, Watched};

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

/// Where objects go.
#[derive(Debug)]
pub(super) enum Sink {
    /// To the world of the cluster.
    Kind {
        /// Their kind.
        watched: Watched,
        /// Those that are known.
        known: Known,
        /// The way there.
        events: mpsc::Sender<(Watched, Event)>,
    },
    /// Nowhere: definitions of the Gateway API wake up the discovery.
    Definitions,
    /// To who looks for clusters.
    Secrets(SecretList),
}

impl Sink {
    fn subject(&self) -> Subject {
        match self {
            Self::Kind { watched, .. } => Subject::Kind(*watched),
            Self::Definitions => Subject::Definitions,
            Self::Secrets(_) => Subject::Secrets,
        }
    }

    /// Gives the path of the objects, and the selector of their labels where there is one.
    fn scope(&self, resource: Resource) -> (String, Option<&str>) {
        match self {
            Self::Secrets(list) => {
                let (path, selector) = list.scope();
                (path, Some(selector))
            }
            _ => (resource.path(), None),
        }
    }

    /// Turns an object into what is to be handed on.
    fn put(&mut self, item: Item, member: &Member, is_listing: bool) -> Option<Event> {
        match self {
            Self::Kind { watched, known, .. } => {
                let key = match &item {
                    Item::Read(object) => key_of(object)?,
                    Item::Unreadable(key, _) => key.clone(),
                    Item::Nobody => return None,
                };
                if !known.admits(&key) {
                    // At the end of a list it is said in any case.
                    let is_first = known.over() == 1 && !is_listing;
                    return is_first.then_some(Event::LeftOut);
                }
                let event = match item {
                    Item::Read(object) => read_object(read, *watched, &key, object),
                    Item::Unreadable(key, why) => Some(Event::Unreadable(key, why)),
                    Item::Nobody => None,
                };
                match event {
                    Some(event) => {
                        known.insert(key_in(&event).unwrap_or(&key).clone());
                        Some(event)
                    }
                    // It is nobody's here, and may have been somebody's.
                    None => known.remove(&key).then_some(Event::Gone(key)),
                }
            }
            Self::Definitions => {
                let is_ours = match &item {
                    Item::Read(object) => name_of(object).is_some_and(is_of_gateways),
                    Item::Unreadable(key, _) => is_of_gateways(&key.name),
                    Item::Nobody => false,
                };
                if is_ours && !is_listing {
                    member.look.notify_one();
                }
                None
            }
            Self::Secrets(list) => {
                list.put(&item);
                None
            }
        }
    }

    fn delete(&mut self, key: Key, member: &Member) -> Option<Event> {
        match self {
            Self::Kind { known, .. } => {
                // One that was left out may be known from before the start.
                let may_be_known = known.over() > 0;
                (known.remove(&key) || may_be_known).then_some(Event::Gone(key))
            }
            Self::Definitions => {
                if is_of_gateways(&key.name) {
                    member.look.notify_one();
                }
                None
            }
            Self::Secrets(list) => {
                list.delete(&key);
                None
            }
        }
    }

    /// Hands events on; waits while those before them are not taken.
    async fn hand_on(&self, handed: impl IntoIterator<Item = Event>) {
        if let Self::Kind {
            watched, events, ..
        } = self
        {
            for event in handed {
                // Nobody is there to take it only when all is about to end.
                let _ = events.send((*watched, event)).await;
            }
        }
    }

    /// The server has no such kind any more.
    pub(super) async fn unserved(&mut self) {
        if let Self::Kind { known, .. } = self {
            known.clear();
        }
        self.hand_on([Event::Unserved]).await;
    }

    async fn begin_list(&mut self) {
        match self {
            Self::Kind { known, .. } => known.begin_list(),
            Self::Secrets(list) => list.begin_list(),
            Self::Definitions => {}
        }
        self.hand_on([Event::Listing]).await;
    }

    async fn end_list(&mut self) {
        let known = match self {
            Self::Kind { known, .. } => known,
            Self::Secrets(list) => return list.end_list(),
            Self::Definitions => return,
        };
        let gone = known.end_list();
        if known.over() == 0 {
            self.hand_on([Event::Listed]).await;
        } else {
            self.hand_on(gone.into_iter().map(Event::Gone)).await;
            self.hand_on([Event::LeftOut]).await;
        }
    }

    /// Gives how many objects are known, and how many were left out.
    fn counts(&self) -> (usize, usize) {
        match self {
            Self::Kind { known, .. } => (known.len(), known.over()),
            Self::Definitions => (0, 0),
            Self::Secrets(list) => list.counts(),
        }
    }
}

fn key_in(event: &Event) -> Option<&Key> {
    match event {
        Event::Applied(key, _) | Event::Unreadable(key, _) => Some(key),
        _ => None,
    }
}

fn is_of_gateways(name: &str) -> bool {
    let rest = name.strip_suffix(GATEWAYS);
    rest.is_some_and(|rest| rest.ends_with('.'))
}

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
        let request = request.map_err(|_| bad_request())?;
        let server = self.server.clone();
        let turn = server.turn().await;
        let left = self.list_ends.saturating_duration_since(Instant::now());
        let octets = server.get(request, MAX_PAGE, PAGE_TIME.min(left)).await?;
        if is_first {
            self.begin_list().await;
        }
        let mut handed = Vec::new();
        let mut objects = 0;
        let mut each = |item| {
            objects += 1;
            handed.extend(self.sink.put(item, self.member, true));
        };
        let read = read_page(&octets, &mut each);
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
        let request = request.map_err(|_| bad_request())?;
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
            match read_line(&line, lines.masks())? {
                Line::Put(item) => self.put(item, is_listing).await,
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

    async fn put(&mut self, item: Item, is_listing: bool) {
        let version: Option<Box<str>> = match &item {
            Item::Read(object) => version_of(object).map(Into::into),
            _ => None,
        };
        let event = self.sink.put(item, self.member, is_listing);
        self.sink.hand_on(event).await;
        self.seen(version.as_deref(), is_listing);
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
