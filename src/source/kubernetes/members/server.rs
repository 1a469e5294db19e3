//! One API server: requests with credentials, and answers within limits.
//!
//! A body is read up to its limit and no further, a watch line by line. Redirects are not followed, nothing is decompressed,
//! no request is repeated here.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use kube::client::{Body, ClientBuilder};
use kube::core::Status;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::timeout;

use super::bearer::Bearer;
use super::fault::{Fault, FaultKind, Masks};
use crate::source::kubernetes::object::Envelope;

/// Until a connection stands, TLS and proxy included.
const CONNECT: Duration = Duration::from_secs(5);
/// A request that is not taken off our hands for so long is given up.
const WRITE: Duration = Duration::from_secs(10);
/// Octets of a refusal that are read for its reason.
const MAX_REFUSAL: usize = 64 * 1024;
/// How long that may take.
const REFUSAL: Duration = Duration::from_secs(2);
/// Large bodies of one member that may be in memory at a time.
const LARGE_AT_ONCE: usize = 3;
/// Octets that say how long a frame is.
const LENGTH: usize = 4;
/// Octets of a body that is not large.
pub(super) const SMALL: usize = 1 << 20;
/// What we call ourselves.
const AGENT: &str = concat!("meridian/", env!("CARGO_PKG_VERSION"));

/// An API server and the credentials for it.
pub(super) struct Server {
    client: kube::Client,
    /// Of heartbeats alone: what holds up others must not hold up them.
    beats: kube::Client,
    bearer: watch::Receiver<Option<Bearer>>,
    masks: Masks,
    large: Semaphore,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}

impl Server {
    /// Makes the clients. `bearer` may change at any time; the next request has the new one.
    ///
    /// # Errors
    /// When certificates or keys cannot be used.
    pub(super) fn new(
        config: &kube::Config,
        bearer: watch::Receiver<Option<Bearer>>,
        masks: Masks,
    ) -> Result<Self, Fault> {
        let mut config = config.clone();
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = None;
        config.write_timeout = Some(WRITE);
        config.default_retry = false;
        let client = || match ClientBuilder::try_from(config.clone()) {
            Ok(builder) => Ok(builder.build()),
            Err(error) => {
                let fault = Fault::of_connection(&error, &masks);
                Err(Fault::new(FaultKind::Unusable, &fault.text))
            }
        };
        Ok(Self {
            client: client()?,
            beats: client()?,
            bearer,
            masks,
            large: Semaphore::new(LARGE_AT_ONCE),
        })
    }

    /// Tells of other credentials, as they come.
    pub(super) fn bearer(&self) -> watch::Receiver<Option<Bearer>> {
        self.bearer.clone()
    }

    /// Sends a request and gives the answer's head: JSON or protobuf, with a status of success.
    ///
    /// # Errors
    /// For every other answer, and when there is none `within` the time.
    pub(super) async fn open(
        &self,
        request: Request<Vec<u8>>,
        within: Duration,
    ) -> Result<Reply, Fault> {
        let is_asked = request.headers().get(ACCEPT) == Some(&Form::ACCEPT);
        let (response, masks) = self.send(&self.client, request, within).await?;
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE);
        let form = Form::of(kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default());
        let reply = Reply {
            body: response.into_body(),
            masks,
            // What is no JSON says nothing of a reason.
            form: form.unwrap_or(Form::Json),
        };
        if !status.is_success() {
            return Err(reply.refusal(status).await);
        }
        match form {
            Some(Form::Json) => Ok(reply),
            // Whoever did not ask cannot read it, and would take it for an empty list.
            Some(Form::Protobuf) if is_asked => Ok(reply),
            Some(Form::Protobuf) | None => {
                Err(Fault::new(FaultKind::Malformed, "the answer is no JSON"))
            }
        }
    }

    /// Sends a request and gives the whole body, JSON of at most `max` octets, `within` the time.
    ///
    /// # Errors
    /// As [`Self::open`] has them, and for a body that is too large.
    pub(super) async fn get(
        &self,
        request: Request<Vec<u8>>,
        max: usize,
        within: Duration,
    ) -> Result<Bytes, Fault> {
        let (_, octets) = self.list(request, max, within).await?;
        Ok(octets)
    }

    /// As [`Self::get`], in either form.
    ///
    /// # Errors
    /// As [`Self::get`] has them.
    pub(super) async fn list(
        &self,
        request: Request<Vec<u8>>,
        max: usize,
        within: Duration,
    ) -> Result<(Form, Bytes), Fault> {
        let got = timeout(within, async {
            let reply = self.open(request, within).await?;
            let form = reply.form;
            Ok((form, reply.whole(max).await?))
        });
        got.await.unwrap_or_else(|_| Err(late(within)))
    }

    /// Waits for its turn to have a large body in memory. The turn lasts until what is returned is dropped.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.large.acquire().await.ok()
    }

    /// Sends a heartbeat to a path and gives the status of the answer, whatever it is.
    ///
    /// # Errors
    /// When there is no answer `within` the time.
    pub(super) async fn beat(&self, path: &str, within: Duration) -> Result<StatusCode, Fault> {
        let beat = timeout(within, async {
            let request = Request::get(path)
                .body(Vec::new())
                .map_err(|_| bad_request())?;
            let (response, masks) = self.send(&self.beats, request, within).await?;
            let status = response.status();
            // Read to its end, so that the connection can be used again.
            let body = response.into_body();
            let form = Form::Json;
            Reply { body, masks, form }.whole(SMALL).await?;
            Ok(status)
        });
        beat.await.unwrap_or_else(|_| Err(late(within)))
    }

    async fn send(
        &self,
        client: &kube::Client,
        mut request: Request<Vec<u8>>,
        within: Duration,
    ) -> Result<(Response<Body>, Masks), Fault> {
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if !headers.contains_key(ACCEPT) {
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        }
        let bearer = self.bearer.borrow().clone();
        let masks = match bearer {
            Some(bearer) => {
                headers.insert(AUTHORIZATION, bearer.header());
                self.masks.with(bearer.secret())
            }
            None => self.masks.clone(),
        };
        match timeout(within, client.send(request.map(Body::from))).await {
            Ok(Ok(response)) => Ok((response, masks)),
            Ok(Err(error)) => Err(Fault::of_connection(&error, &masks)),
            Err(_) => Err(late(within)),
        }
    }
}

fn late(within: Duration) -> Fault {
    let text = format!("no answer within {} s", within.as_secs());
    Fault::new(FaultKind::Unreachable, &text)
}

/// What is said of a request that no path can be made for.
pub(super) fn bad_request() -> Fault {
    Fault::new(FaultKind::Unusable, "the request cannot be written")
}

/// What an answer is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON; a watch has an event on each line.
    Json,
    /// The protobuf of Kubernetes; a watch has four octets with its length before each event.
    Protobuf,
}

/// The protobuf of Kubernetes.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

impl Form {
    /// Asks for protobuf, and for JSON where there is none.
    pub(super) const ACCEPT: HeaderValue =
        HeaderValue::from_static("application/vnd.kubernetes.protobuf,application/json");

    /// Tells what a list is written in, by how it begins.
    pub(super) fn of_list(octets: &[u8]) -> Self {
        if Envelope::open(octets).is_ok() {
            Self::Protobuf
        } else {
            Self::Json
        }
    }

    /// Tells what a content type says; `None`: it can be read by nobody.
    fn of(kind: &str) -> Option<Self> {
        match kind {
            _ if kind.starts_with("application/json") => Some(Self::Json),
            _ if kind.starts_with(PROTOBUF) => Some(Self::Protobuf),
            _ => None,
        }
    }
}

/// A body, read as it comes.
pub(super) struct Reply {
    body: Body,
    form: Form,
    /// What must not be shown of it.
    pub(super) masks: Masks,
}

impl Reply {
    /// Reads it to its end.
    async fn whole(mut self, max: usize) -> Result<Bytes, Fault> {
        let too_large = || Fault::new(FaultKind::TooLarge, &format!("more than {max} octets"));
        let announced = self.body.size_hint().lower();
        if usize::try_from(announced).map_or(true, |announced| announced > max) {
            return Err(too_large());
        }
        let mut octets = BytesMut::new();
        while let Some(data) = self.next().await? {
            octets.extend_from_slice(&data);
            if octets.len() > max {
                return Err(too_large());
            }
        }
        Ok(octets.freeze())
    }

    /// Waits for the next octets; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(Fault::of_connection(&error, &self.masks)),
                // Trailers say nothing.
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Reads the reason of a refusal, if there is one.
    async fn refusal(self, status: StatusCode) -> Fault {
        let (masks, form) = (self.masks.clone(), self.form);
        let read = timeout(REFUSAL, self.whole(MAX_REFUSAL)).await;
        let said = match (&read, form) {
            (Ok(Ok(octets)), Form::Json) => serde_json::from_slice::<Status>(octets)
                .ok()
                .map(|said| said.message),
            (Ok(Ok(octets)), Form::Protobuf) => {
                let said = Envelope::open(octets).ok().and_then(Envelope::status);
                said.map(|(_, text)| text.to_owned())
            }
            _ => None,
        };
        Fault::of_status(status.as_u16(), &said.unwrap_or_default(), &masks)
    }

    /// Reads it event by event, each of at most `max` octets.
    pub(super) fn lines(self, max: usize) -> Lines {
        Lines {
            reply: self,
            buffer: BytesMut::new(),
            searched: 0,
            max,
        }
    }
}

/// Events of a body, one on each line, or in each frame.
pub(super) struct Lines {
    reply: Reply,
    buffer: BytesMut,
    /// Octets of the buffer that have no end of a line.
    searched: usize,
    max: usize,
}

impl Lines {
    /// Waits for the next event; `None` at the end of the body. One that was cut off there is none.
    ///
    /// # Errors
    /// When the connection breaks, and for an event that is too long: nothing can be read after either.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            let whole = match self.reply.form {
                Form::Json => self.line()?,
                Form::Protobuf => self.frame()?,
            };
            if whole.is_some() {
                return Ok(whole);
            }
            match self.reply.next().await? {
                Some(data) => self.buffer.extend_from_slice(&data),
                None => return Ok(None),
            }
        }
    }

    /// Takes a line, its end left out, if one is there.
    fn line(&mut self) -> Result<Option<Bytes>, Fault> {
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(found) = memchr::memchr(b'\n', unsearched) else {
            self.searched = self.buffer.len();
            return if self.searched > self.max {
                Err(self.too_long())
            } else {
                Ok(None)
            };
        };
        let mut line = self.buffer.split_to(self.searched + found + 1);
        line.truncate(line.len() - 1);
        self.searched = 0;
        if line.len() > self.max {
            return Err(self.too_long());
        }
        Ok(Some(line.freeze()))
    }

    /// Takes a frame, its length left out, if one is there.
    fn frame(&mut self) -> Result<Option<Bytes>, Fault> {
        let Some((length, rest)) = self.buffer.split_first_chunk::<LENGTH>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if length > self.max {
            return Err(self.too_long());
        }
        if rest.len() < length {
            return Ok(None);
        }
        let mut frame = self.buffer.split_to(LENGTH + length);
        Ok(Some(frame.split_off(LENGTH).freeze()))
    }

    /// Tells what they are written in.
    pub(super) fn form(&self) -> Form {
        self.reply.form
    }

    /// What must not be shown of it.
    pub(super) fn masks(&self) -> &Masks {
        &self.reply.masks
    }

    fn too_long(&self) -> Fault {
        let text = format!("an event of more than {} octets", self.max);
        Fault::new(FaultKind::TooLong, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(octets: impl Into<Vec<u8>>) -> Reply {
        Reply {
            body: Body::from(octets.into()),
            masks: Masks::default(),
            form: Form::Json,
        }
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        assert_eq!(&*reply("12345").whole(5).await.unwrap(), b"12345");
        let fault = reply("123456").whole(5).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::TooLarge);
        assert_eq!(&*fault.text, "more than 5 octets");
    }

    #[tokio::test]
    async fn lines_are_told_apart_and_a_cut_one_is_none() {
        let mut lines = reply("one\n\nthree\ncut").lines(5);
        for line in ["one", "", "three"] {
            assert_eq!(lines.next().await.unwrap().unwrap(), line);
        }
        assert_eq!(lines.next().await, Ok(None));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_refused_with_and_without_its_end() {
        for text in ["ok\n123456\n", "ok\n123456"] {
            let mut lines = reply(text).lines(5);
            assert_eq!(lines.next().await.unwrap().unwrap(), "ok");
            assert_eq!(lines.next().await.unwrap_err().kind, FaultKind::TooLong);
        }
    }

    #[tokio::test]
    async fn frames_are_told_apart_by_their_lengths() {
        let frames = |octets: &[u8]| {
            let mut reply = reply(octets);
            reply.form = Form::Protobuf;
            reply.lines(5)
        };
        let mut good = frames(b"\0\0\0\x03one\0\0\0\0\0\0\0\x05three\0\0\0\x02c");
        for frame in ["one", "", "three"] {
            assert_eq!(good.next().await.unwrap().unwrap(), frame);
        }
        assert_eq!(good.next().await, Ok(None));
        for long in [&b"\0\0\0\x06123456"[..], b"\xff\xff\xff\xff"] {
            let fault = frames(long).next().await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::TooLong);
        }
    }

    #[test]
    fn what_an_answer_is_written_in_is_told_by_its_type() {
        for (kind, form) in [
            ("application/json", Some(Form::Json)),
            ("application/json;stream=watch", Some(Form::Json)),
            ("application/vnd.kubernetes.protobuf", Some(Form::Protobuf)),
            (
                "application/vnd.kubernetes.protobuf;stream=watch",
                Some(Form::Protobuf),
            ),
            ("text/html", None),
            ("", None),
        ] {
            assert_eq!(Form::of(kind), form, "{kind}");
        }
    }

    #[tokio::test]
    async fn a_refusal_has_its_reason() {
        for (body, text) in [
            (
                r#"{"kind": "Status", "message": "no rights", "code": 403}"#,
                "status 403: no rights",
            ),
            ("<html>", "status 403"),
            ("", "status 403"),
        ] {
            let fault = reply(body).refusal(StatusCode::FORBIDDEN).await;
            assert_eq!(fault.kind, FaultKind::Forbidden);
            assert_eq!(&*fault.text, text);
        }
    }
}
