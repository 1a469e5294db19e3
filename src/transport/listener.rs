//! The TCP listener: accepts, admits, and hands each connection to [`stream::serve`].
//!
//! Knows limits, the PROXY header and what a connection answers with. An accept that fails never ends the loop: without
//! descriptors it waits, doubling, and cuts the connection that has been useless for longest; UDP goes on. Called by the
//! parent's `Bound::spawn`.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::backoff::Backoff;
use super::clock::unix_millis;
use super::config::TcpLimits;
use super::limits::{Limits, Permit, Pressure, Refusal};
use super::proxy;
use super::rare::RareLane;
use super::stream::{self, Answered, Ending, MESSAGE_OCTETS, Turn};
use crate::answer::{Draws, Lookup, Outcome, Sender, Transport};
use crate::snapshot::SnapshotReader;
use crate::telemetry::{Count, Counters, QueryTap};

/// First wait after a failed accept.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// How long connections may go on after the token fell, to finish the reply in progress.
const GRACE: Duration = Duration::from_millis(700);

/// What the listeners may be asked: counted over all of them.
#[derive(Debug)]
pub struct Streams {
    limits: Arc<Limits>,
    accepted: AtomicU64,
    refused_client: AtomicU64,
    refused_prefix: AtomicU64,
    refused_proxy: AtomicU64,
    evicted: AtomicU64,
    cut: AtomicU64,
    failed: AtomicU64,
}

impl Streams {
    /// Starts at zero.
    pub(super) fn new(limits: Arc<Limits>) -> Self {
        Self {
            limits,
            accepted: AtomicU64::new(0),
            refused_client: AtomicU64::new(0),
            refused_prefix: AtomicU64::new(0),
            refused_proxy: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            cut: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// Counts the connections open now.
    #[must_use]
    pub fn open(&self) -> usize {
        self.limits.open()
    }

    /// Gives the counters as (name and labels without the common prefix, count), as [`Count::metric`] has them.
    #[must_use]
    pub fn totals(&self) -> [(&'static str, u64); 7] {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("tcp_connections_total", get(&self.accepted)),
            (
                "tcp_refused_total{reason=\"client\"}",
                get(&self.refused_client),
            ),
            (
                "tcp_refused_total{reason=\"prefix\"}",
                get(&self.refused_prefix),
            ),
            (
                "tcp_refused_total{reason=\"proxy_header\"}",
                get(&self.refused_proxy),
            ),
            ("tcp_evicted_total", get(&self.evicted)),
            ("tcp_cut_total", get(&self.cut)),
            ("tcp_accept_failures_total", get(&self.failed)),
        ]
    }

    /// Counts a connection that its client's share does not allow.
    fn count_refusal(&self, refusal: Refusal) {
        let count = match refusal {
            Refusal::Client => &self.refused_client,
            Refusal::Prefix => &self.refused_prefix,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a few connections share to answer with: draws must go on from one connection to the next, and counters have one
/// writer at a time. The lock is held while one query is answered, microseconds, and never across an await.
#[derive(Debug)]
struct Lane {
    tools: Mutex<Tools>,
    counters: Arc<Counters>,
}

/// The part of a lane behind its lock.
#[derive(Debug)]
struct Tools {
    draws: Draws,
    reply: Box<[u8]>,
    tap: Option<QueryTap>,
}

/// What all listeners share.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) tcp: TcpLimits,
    pub(super) proxies: Arc<[IpNet]>,
    pub(super) snapshots: SnapshotReader,
    pub(super) rare: RareLane,
    pub(super) limits: Arc<Limits>,
    pub(super) streams: Arc<Streams>,
    pub(super) lanes: Lanes,
}

/// The lanes, and whose turn it is.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Box<[Lane]>,
    next: AtomicUsize,
}

impl Lanes {
    /// Makes as many lanes as threads can use at once.
    pub(super) fn new(count: usize, mut tap: impl FnMut() -> Option<QueryTap>) -> Self {
        let mut lane = |_| Lane {
            tools: Mutex::new(Tools {
                draws: Draws::default(),
                reply: vec![0; MESSAGE_OCTETS].into(),
                tap: tap(),
            }),
            counters: Arc::default(),
        };
        Self {
            lanes: (0..count.max(1)).map(&mut lane).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// Iterates over the counters.
    pub(super) fn counters(&self) -> impl Iterator<Item = &Arc<Counters>> {
        self.lanes.iter().map(|lane| &lane.counters)
    }

    /// Gives a lane for a new connection, in turn.
    fn assign(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed) % self.lanes.len()
    }
}

/// A connection admitted.
struct Arrival {
    stream: TcpStream,
    peer: SocketAddr,
    permit: Permit,
    /// Whether a PROXY header comes first.
    proxied: bool,
}

/// Accepts connections until the token falls, then gives those that are open a little time.
pub(super) async fn run(listener: TcpListener, service: Arc<Service>, token: CancellationToken) {
    let mut connections = JoinSet::new();
    let mut backoff = Backoff::new(FIRST_PAUSE);
    let mut paused_until = None;
    loop {
        // Cancel-safe: all arms only wait; `accept` has taken nothing when dropped, and the pause is a point in time.
        let accepted = tokio::select! {
            () = token.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, paused_until) => accepted,
        };
        paused_until = None;
        match accepted {
            Ok((stream, peer)) => {
                backoff.succeeded();
                service.welcome(stream, peer, &mut connections, &token);
            }
            // The client was gone before we came.
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                let now = Instant::now();
                let pause = backoff.failed(now);
                paused_until = Some(now + pause.wait);
                service.streams.failed.fetch_add(1, Ordering::Relaxed);
                if service.limits.evict() {
                    service.streams.evicted.fetch_add(1, Ordering::Relaxed);
                }
                if pause.log {
                    warn!(%error, "Accepting over TCP failed; trying again");
                }
            }
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    // Whoever is not done in time goes with the set.
    let _ = timeout(GRACE, all).await;
}

/// Accepts the next connection, not before the pause is over.
async fn accept(
    listener: &TcpListener,
    paused_until: Option<Instant>,
) -> std::io::Result<(TcpStream, SocketAddr)> {
    if let Some(until) = paused_until {
        sleep_until(until).await;
    }
    listener.accept().await
}

/// Tells whether an accept failed for the connection it took, not for us (accept(2) hands on network errors).
fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionAborted
            | Kind::ConnectionReset
            | Kind::ConnectionRefused
            | Kind::NetworkDown
            | Kind::NetworkUnreachable
            | Kind::HostUnreachable
            | Kind::PermissionDenied
            | Kind::Interrupted
            | Kind::TimedOut
    )
}

impl Service {
    /// Admits a connection and serves it, or closes it at once.
    fn welcome(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        connections: &mut JoinSet<()>,
        token: &CancellationToken,
    ) {
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let proxied = proxy::is_trusted(&self.proxies, peer.ip());
        match self.limits.admit((!proxied).then_some(peer.ip())) {
            Ok((permit, pressure)) => {
                self.streams.accepted.fetch_add(1, Ordering::Relaxed);
                if pressure == Pressure::Evicted {
                    self.streams.evicted.fetch_add(1, Ordering::Relaxed);
                }
                let arrival = Arrival {
                    stream,
                    peer,
                    permit,
                    proxied,
                };
                let (service, stop) = (Arc::clone(self), token.clone());
                connections.spawn(async move { service.attend(arrival, stop).await });
            }
            Err(refusal) => {
                self.streams.count_refusal(refusal);
                discard(&stream);
            }
        }
    }

    /// Serves one connection to its end.
    async fn attend(&self, mut arrival: Arrival, stop: CancellationToken) {
        // Replies leave when they are written: each write is all there is. A stream without it still works.
        let _ = arrival.stream.set_nodelay(true);
        let Some(sender) = self.identify(&mut arrival, &stop).await else {
            discard(&arrival.stream);
            return;
        };
        let lane = self.lanes.assign();
        let Arrival { stream, permit, .. } = &mut arrival;
        let ending = stream::serve(stream, &self.tcp, permit, &stop, |query, reply, turn| {
            self.answer(lane, sender, (query, turn), reply)
        })
        .await;
        if ending == Ending::Abrupt {
            self.streams.cut.fetch_add(1, Ordering::Relaxed);
            discard(&arrival.stream);
        }
    }

    /// Says who asks: the peer, or whom the PROXY header names. `None` when the header is malformed or late, or its client
    /// has its share of connections.
    async fn identify(
        &self,
        arrival: &mut Arrival,
        stop: &CancellationToken,
    ) -> Option<SocketAddr> {
        if !arrival.proxied {
            return Some(arrival.peer);
        }
        let cut = arrival.permit.cut().clone();
        // Cancel-safe: two arms only wait, and when they win the half-read connection is dropped.
        let read = tokio::select! {
            () = stop.cancelled() => return None,
            () = cut.cancelled() => return None,
            read = timeout(self.tcp.write, proxy::read(&mut arrival.stream)) => read,
        };
        let Ok(Ok(source)) = read else {
            self.streams.refused_proxy.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        // The proxy's own checks are counted against the whole only.
        let Some(source) = source else {
            return Some(arrival.peer);
        };
        match arrival.permit.claim(source.ip()) {
            Ok(()) => Some(source),
            Err(refusal) => {
                self.streams.count_refusal(refusal);
                None
            }
        }
    }

    /// Appends the reply to one query, or nothing; other opcodes have to wait for their last turn.
    fn answer(
        &self,
        lane: usize,
        sender: SocketAddr,
        (query, turn): (&[u8], Turn),
        reply: &mut Vec<u8>,
    ) -> Answered {
        let Some(lane) = self.lanes.lanes.get(lane) else {
            return Answered::Done;
        };
        let transport = Transport::Tcp;
        if turn == Turn::Last {
            lane.counters.bump(Count::Rare);
            let octets = self.rare.reply(query, sender, transport);
            reply.extend_from_slice(&octets.unwrap_or_default());
            return Answered::Done;
        }
        let snapshot = self.snapshots.load();
        // A panic in between leaves draws and counters whole: each step of theirs is one store.
        let mut tools = lane.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let Tools {
            draws,
            reply: buffer,
            tap,
        } = &mut *tools;
        draws.fit(&snapshot);
        let address: IpAddr = sender.ip();
        let mut place = None;
        let lookup = Lookup::begin(&mut place, &snapshot, query, Sender { address, transport });
        let outcome = match tap.take_if(|tap| tap.take_turn()) {
            Some(due) => {
                let tap = &*tap.insert(due);
                let worker = (draws, &*lane.counters);
                lookup.finish_logged(&snapshot, buffer, worker, (tap, unix_millis()))
            }
            None => lookup.finish(&snapshot, buffer, draws, &lane.counters),
        };
        lookup.count_client(&snapshot, 1, &lane.counters);
        match outcome {
            Outcome::Reply(octets) => {
                reply.extend_from_slice(buffer.get(..octets).unwrap_or_default());
                Answered::Done
            }
            Outcome::Drop => Answered::Done,
            // That lane takes its time: not with the lock that others wait for, nor before the queries behind it.
            Outcome::Rare => Answered::Later,
        }
    }
}

/// Makes the close that follows throw away what the client did not take, and tell it so (RST). Otherwise the kernel would
/// keep the octets, and keep trying, for minutes.
fn discard(stream: &TcpStream) {
    // A socket that is gone already needs nothing.
    let _ = stream.set_zero_linger();
}
