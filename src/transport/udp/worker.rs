//! The loop: receive a batch, answer it, send it.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ipnet::IpNet;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::warn;

use super::mmsg::{BATCH, Datagram, PacketInfo, Received, Replies, Wait};
use crate::answer::{Draws, Lookup, Outcome, Sender, Transport};
use crate::snapshot::{Snapshot, SnapshotReader};
use crate::telemetry::{Count, Counters, QueryTap};
use crate::transport::backoff::Backoff;
use crate::transport::clock::{now, unix_millis};
use crate::transport::proxy;
use crate::transport::rare::RareDatagram;

/// First wait after a failed receive.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Batches answered after the flag fell, at most: more than a receive buffer of 4 MiB holds. New datagrams must not keep a
/// stopping worker busy.
const DRAIN_BATCHES: usize = 256;

/// What one worker answers with.
pub(in crate::transport) struct Worker {
    /// Where the snapshot is.
    pub(in crate::transport) snapshots: SnapshotReader,
    /// The worker's own counters: nobody else writes them.
    pub(in crate::transport) counters: Arc<Counters>,
    /// Senders that put a PROXY header in front of each datagram.
    pub(in crate::transport) proxies: Arc<[IpNet]>,
    /// The rare lane.
    pub(in crate::transport) rare: mpsc::Sender<RareDatagram>,
    /// Whether replies must name the address that they leave from.
    pub(in crate::transport) info: PacketInfo,
    /// The worker's end of the query log, if there is one.
    pub(in crate::transport) tap: Option<QueryTap>,
}

/// What one worker's thread owns: it lives from batch to batch.
struct Tools {
    draws: Draws,
    tap: Option<QueryTap>,
    /// Batches answered, for choosing one query of each.
    batches: u32,
}

impl Tools {
    /// Chooses the query of a batch of `count` whose client is looked at: each as often as the others, whatever stands there.
    #[inline]
    fn choose(&mut self, count: usize) -> usize {
        self.batches = self.batches.wrapping_add(1);
        // Fibonacci hashing: the upper bits of the product are spread evenly, in no step with any sender's.
        let spread = self.batches.wrapping_mul(0x9e37_79b9) >> 16;
        (spread as usize * count) >> 16
    }
}

impl Worker {
    /// Answers until `stop` is set, then what is queued in the socket.
    pub(in crate::transport) fn run(mut self, socket: &Arc<UdpSocket>, stop: &AtomicBool) {
        let mut tools = Tools {
            draws: Draws::default(),
            tap: self.tap.take(),
            batches: 0,
        };
        let counters = Arc::clone(&self.counters);
        serve((socket, self.info), stop, &counters, |received, replies| {
            self.respond(received, replies, &mut tools, socket);
        });
    }

    /// Answers one batch. The snapshot is taken here and let go here, so that a worker that waits holds none.
    fn respond(
        &self,
        received: &Received,
        replies: &mut Replies,
        tools: &mut Tools,
        socket: &Arc<UdpSocket>,
    ) {
        let guard = self.snapshots.load();
        let snapshot: &Snapshot = &guard;
        // Walks over the whole batch: while one lookup waits for memory, the others are on their way too.
        let mut room: [Option<Lookup<'_>>; BATCH] = [None; BATCH];
        // Most batches of a quiet server are one query.
        let lookups = room.get_mut(..received.len()).unwrap_or_default();
        for (place, datagram) in lookups.iter_mut().zip(received.iter()) {
            self.begin(place, snapshot, &datagram);
        }
        tools.draws.fit(snapshot);
        Lookup::advance(lookups, snapshot);
        let batch = lookups.len();
        let mut tap = tools.tap.take_if(|tap| tap.is_due_within(batch));
        for (place, datagram) in lookups.iter_mut().zip(received.iter()) {
            let Some(lookup) = place else { continue };
            let worker = (&mut tools.draws, &*self.counters);
            let outcome = match &mut tap {
                None => lookup.finish(snapshot, replies.buffer(), worker.0, worker.1),
                Some(tap) => finish_tapped(lookup, snapshot, replies.buffer(), worker, tap),
            };
            match outcome {
                Outcome::Reply(octets) => replies.push(octets, &datagram),
                Outcome::Drop => {}
                Outcome::Rare => self.hand_over(&datagram, socket),
            }
        }
        if tap.is_some() {
            tools.tap = tap;
        }
        if let Some(Some(chosen)) = lookups.get(tools.choose(batch)) {
            chosen.count_client(snapshot, batch as u64, &self.counters);
        }
    }

    /// Begins the lookup of one datagram; its place stays empty when it is not to be looked up.
    #[inline(always)]
    fn begin<'p>(
        &self,
        place: &mut Option<Lookup<'p>>,
        snapshot: &Snapshot,
        datagram: &Datagram<'p>,
    ) {
        let Some((query, address)) = open(datagram, &self.proxies) else {
            self.counters.bump(Count::DroppedProxy);
            return;
        };
        let sender = Sender {
            address,
            transport: Transport::Udp,
        };
        // No resolver sends queries that do not fit our buffer over UDP.
        if datagram.is_whole() {
            Lookup::begin(place, snapshot, query, sender);
        } else {
            *place = Some(Lookup::begin_cut(query, sender));
        }
    }

    /// Puts a message of another opcode into the rare lane's queue. Full: it is dropped and counted; such senders retry.
    #[cold]
    fn hand_over(&self, datagram: &Datagram<'_>, socket: &Arc<UdpSocket>) {
        let Some((query, address)) = open(datagram, &self.proxies) else {
            return;
        };
        let port = datagram.sender().map_or(0, |sender| sender.port());
        let handed = self.rare.try_send(RareDatagram {
            query: query.into(),
            sender: (address, port).into(),
            path: datagram.path(),
            socket: Arc::clone(socket),
        });
        if handed.is_err() {
            self.counters.bump(Count::DroppedRare);
        }
    }
}

/// Finishes a query of a batch of which some are logged.
#[cold]
fn finish_tapped<'a>(
    lookup: &mut Lookup<'a>,
    snapshot: &'a Snapshot,
    out: &mut [u8],
    worker: (&mut Draws, &Counters),
    tap: &mut QueryTap,
) -> Outcome {
    if tap.take_turn() {
        lookup.finish_logged(snapshot, out, worker, (tap, unix_millis()))
    } else {
        lookup.finish(snapshot, out, worker.0, worker.1)
    }
}

/// Takes a datagram apart: the message, and who asks. `None` when a PROXY header is due and there is none that can be read,
/// or the sender's address is of no family we know.
#[inline(always)]
fn open<'p>(datagram: &Datagram<'p>, proxies: &[IpNet]) -> Option<(&'p [u8], IpAddr)> {
    let sender = datagram.sender_address()?;
    if proxies.is_empty() || !proxy::is_trusted(proxies, sender) {
        return Some((datagram.octets(), sender));
    }
    open_proxied(datagram, sender)
}

/// Takes a datagram of a proxy apart.
#[inline(never)]
fn open_proxied<'p>(datagram: &Datagram<'p>, sender: IpAddr) -> Option<(&'p [u8], IpAddr)> {
    let header = proxy::parse(datagram.octets()).ok()?;
    let query = datagram.octets().get(header.octets..)?;
    Some((query, header.source.map_or(sender, |source| source.ip())))
}

/// Receives, lets `respond` fill in the replies, sends; until `stop` is set, then until the socket is empty.
///
/// Nothing that the kernel says ends the loop: a failed receive waits a little and tries again, a refused reply is counted.
pub(super) fn serve(
    (socket, info): (&UdpSocket, PacketInfo),
    stop: &AtomicBool,
    counters: &Counters,
    mut respond: impl FnMut(&Received, &mut Replies),
) {
    let mut received = Received::new(info);
    let mut replies = Replies::new();
    let mut backoff = Backoff::new(FIRST_PAUSE);
    let mut turn = |received: &mut Received, wait| {
        let count = received.receive(socket, wait)?;
        let begun = now();
        respond(received, &mut replies);
        let dropped = replies.send(socket);
        // Whoever is in a batch waits for all of it.
        counters.batches().observe(begun.elapsed(), count as u64);
        if dropped > 0 {
            counters.add(Count::DroppedSend, dropped as u64);
        }
        Ok(count)
    };
    while !stop.load(Ordering::Relaxed) {
        match turn(&mut received, Wait::ForOne) {
            Ok(_) => backoff.succeeded(),
            // The socket's receive timeout, so that the flag is seen; or a signal.
            Err(error) if is_quiet(&error) => {}
            Err(error) => {
                let pause = backoff.failed(Instant::now());
                if pause.log {
                    warn!(%error, "Receiving over UDP failed; trying again");
                }
                std::thread::sleep(pause.wait);
            }
        }
    }
    for _ in 0..DRAIN_BATCHES {
        if !matches!(turn(&mut received, Wait::No), Ok(1..)) {
            break;
        }
    }
}

/// Tells whether an error only says that nothing came.
fn is_quiet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
