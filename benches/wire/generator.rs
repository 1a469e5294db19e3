//! The generator: one thread that asks from several sockets without ever waiting, and keeps account of every query.
//!
//! It must be faster than any server, the bare echo too: one message carries up to [`SEGMENTS`] queries, and the kernel cuts
//! them apart (UDP_SEGMENT) before they reach the server's socket. Where the kernel cannot, each goes alone.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::echo::widen;
use super::messages::{BATCH, BATCH_LENGTH, Messages, Senders};
use super::queries::Queries;

/// Sockets that queries come from.
pub(crate) const SOCKETS: usize = 8;
/// Queries outstanding on each socket when as many as possible are asked: 192 together.
pub(crate) const WINDOW: usize = 24;
/// One reply in so many is judged.
pub(crate) const SAMPLE: u64 = 64;
/// Queries in one message.
const SEGMENTS: usize = 32;
/// A reply that takes longer is lost.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often lost queries are looked for.
const SWEEP: Duration = Duration::from_millis(100);
/// A server that says nothing for so long is given up.
const SILENCE: Duration = Duration::from_secs(2);
/// Queries outstanding on one socket that are kept account of; a power of two. Beyond, the oldest are lost.
const SLOTS: usize = 8192;
/// Latencies kept: of the first so many replies.
const LATENCIES: usize = 1 << 22;

/// How fast to ask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// As fast as replies come, [`WINDOW`] outstanding on each socket: the server is never idle.
    Saturated,
    /// So many a second, whatever the server does. Latency counts from the moment when a query was due.
    Rate(f64),
}

/// What a reply must be.
pub(crate) enum Check<'a> {
    /// Anything: the server is an echo.
    Nothing,
    /// NOERROR with an answer.
    Answered,
    /// The same; and one in [`SAMPLE`] is judged: number of the query, octets of the reply.
    Judged(&'a dyn Fn(usize, &[u8]) -> bool),
}

/// What to do.
pub(crate) struct Plan<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) pace: Pace,
    pub(crate) span: Duration,
    pub(crate) check: Check<'a>,
    /// Ends it early.
    pub(crate) stop: &'a AtomicBool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Queries sent.
    pub(crate) sent: u64,
    /// Replies to them.
    pub(crate) replies: u64,
    /// Queries without a reply in time.
    pub(crate) lost: u64,
    /// Replies that were not NOERROR with an answer.
    pub(crate) refused: u64,
    /// Replies judged, and those found wrong.
    pub(crate) judged: u64,
    pub(crate) wrong: u64,
    /// The server fell silent, and the rest was not asked.
    pub(crate) silent: bool,
    /// Nanoseconds from query to reply, sorted.
    latencies: Vec<u32>,
}

impl Tally {
    /// Gives the microseconds that this share of the replies took at most; 0 without replies.
    pub(crate) fn latency_us(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        self.latencies
            .get(at)
            .map_or(0.0, |&nanos| f64::from(nanos) / 1e3)
    }
}

/// Asks for a while, then waits for the replies that are still due.
pub(crate) fn load(plan: &Plan<'_>, queries: &mut Queries) -> Tally {
    let mut generator = Generator::new(plan, queries);
    let span = nanos(plan.span);
    let mut now = 0;
    while now < span && !generator.must_stop(now) {
        for index in 0..SOCKETS {
            generator.receive(index, now);
            generator.ask(index, now);
        }
        generator.sweep(now);
        now = nanos(generator.begun.elapsed());
    }
    let end = now + nanos(PATIENCE);
    while now < end && generator.lanes.iter().any(|lane| lane.outstanding > 0) {
        for index in 0..SOCKETS {
            generator.receive(index, now);
        }
        now = nanos(generator.begun.elapsed());
    }
    let rest: usize = generator.lanes.iter().map(|lane| lane.outstanding).sum();
    generator.tally.lost += rest as u64;
    generator.tally.latencies.sort_unstable();
    generator.tally
}

/// Counts nanoseconds; no run is as long as a u64 of them.
fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// A query that waits for its reply.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// When it was sent or due, nanoseconds.
    since: u64,
    query: u32,
    id: u16,
    waits: bool,
}

/// One socket and its account.
struct Lane {
    socket: UdpSocket,
    slots: Vec<Slot>,
    next_id: u16,
    outstanding: usize,
}

impl Lane {
    /// Opens a socket; gives the queries that one message may carry beside it.
    fn open(address: SocketAddr, length: usize) -> (Self, usize) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.connect(address).expect("a loopback address");
        widen(&socket);
        let length = libc::c_int::try_from(length).expect("queries are short");
        // SAFETY: the option is an int, which outlives the call, given with its true length.
        let failed = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_UDP,
                libc::UDP_SEGMENT,
                (&raw const length).cast(),
                size_of_val(&length) as libc::socklen_t,
            )
        };
        let lane = Self {
            socket,
            slots: vec![Slot::default(); SLOTS],
            next_id: 0,
            outstanding: 0,
        };
        (lane, if failed == 0 { SEGMENTS } else { 1 })
    }

    /// Enters a query and gives its id; true when an older one had to be given up for it.
    fn enter(&mut self, query: usize, since: u64) -> (u16, bool) {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let slot = &mut self.slots[usize::from(id) % SLOTS];
        let lost = slot.waits;
        *slot = Slot {
            since,
            query: query as u32,
            id,
            waits: true,
        };
        self.outstanding += usize::from(!lost);
        (id, lost)
    }

    /// Takes the query that a reply belongs to off the account.
    fn settle(&mut self, reply: &[u8]) -> Option<Slot> {
        let id = u16::from_be_bytes(*reply.first_chunk()?);
        let slot = &mut self.slots[usize::from(id) % SLOTS];
        let known = slot.waits && slot.id == id && reply.len() >= 12;
        known.then(|| {
            slot.waits = false;
            self.outstanding -= 1;
            *slot
        })
    }
}

/// The generator at work.
struct Generator<'a> {
    plan: &'a Plan<'a>,
    queries: &'a mut Queries,
    next_query: usize,
    lanes: Vec<Lane>,
    received: Messages,
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    segments: usize,
    /// The socket whose turn it is, when asking at a rate.
    turn: usize,
    swept: u64,
    progress: u64,
    begun: Instant,
    tally: Tally,
}

impl<'a> Generator<'a> {
    /// Opens the sockets; the clock starts.
    fn new(plan: &'a Plan<'a>, queries: &'a mut Queries) -> Self {
        let length = queries.length();
        let opened = (0..SOCKETS).map(|_| Lane::open(plan.address, length));
        let (lanes, segments): (Vec<_>, Vec<_>) = opened.unzip();
        // SAFETY: all zeros is a valid value of both.
        let (header, vector) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        Self {
            plan,
            queries,
            next_query: 0,
            lanes,
            received: Messages::new(Senders::Known),
            headers: vec![header; BATCH],
            vectors: vec![vector; BATCH],
            segments: segments.into_iter().min().unwrap_or(1),
            turn: 0,
            swept: 0,
            progress: 0,
            begun: Instant::now(),
            tally: Tally {
                latencies: Vec::with_capacity(LATENCIES),
                ..Tally::default()
            },
        }
    }

    /// Tells whether to end early: told so, or the server fell silent.
    fn must_stop(&mut self, now: u64) -> bool {
        let waiting = self.tally.sent > self.tally.replies;
        self.tally.silent = waiting && now - self.progress > nanos(SILENCE);
        self.tally.silent || self.plan.stop.load(Ordering::Relaxed)
    }

    /// Asks as much on a socket as is due now.
    fn ask(&mut self, index: usize, now: u64) {
        match self.plan.pace {
            Pace::Saturated => {
                let free = WINDOW - self.lanes[index].outstanding.min(WINDOW);
                // Half a window at once: a message a reply would make the generator the slower side.
                if free * 2 >= WINDOW {
                    self.send(index, free, |_| now);
                }
            }
            Pace::Rate(rate) if index == self.turn => {
                let due = (now as f64 * rate / 1e9) as u64;
                let count = due.saturating_sub(self.tally.sent).min(BATCH as u64);
                let when = |number: u64| ((number + 1) as f64 / rate * 1e9) as u64;
                self.turn = (index + 1) % SOCKETS;
                self.send(index, count as usize, when);
            }
            Pace::Rate(_) => {}
        }
    }

    /// Sends the next `count` queries; `since` gives the moment that a query's latency counts from, by its number.
    fn send(&mut self, index: usize, count: usize, since: impl Fn(u64) -> u64) {
        let lane = &mut self.lanes[index];
        for vector in &mut self.vectors[..count] {
            let query = self.next_query;
            self.next_query = (query + 1) % self.queries.count();
            let (id, lost) = lane.enter(query, since(self.tally.sent));
            self.tally.lost += u64::from(lost);
            self.tally.sent += 1;
            let packet = self.queries.packet_mut(query);
            packet[..2].copy_from_slice(&id.to_be_bytes());
            vector.iov_base = packet.as_mut_ptr().cast();
            vector.iov_len = packet.len();
        }
        let mut messages = 0;
        for segments in self.vectors[..count].chunks_mut(self.segments) {
            let header = &mut self.headers[messages].msg_hdr;
            header.msg_iov = segments.as_mut_ptr();
            header.msg_iovlen = segments.len();
            messages += 1;
        }
        let mut done = 0;
        while done < messages {
            // SAFETY: the headers from `done` on point to vectors set above, and those to queries, which outlive the call.
            let sent = unsafe {
                let rest = self.headers.as_mut_ptr().add(done);
                let left = (messages - done) as libc::c_uint;
                libc::sendmmsg(lane.socket.as_raw_fd(), rest, left, 0)
            };
            // A message that the kernel does not take is skipped; its queries will be found lost.
            done += usize::try_from(sent).unwrap_or(0).max(1);
        }
    }

    /// Takes the replies that a socket holds.
    fn receive(&mut self, index: usize, now: u64) {
        let lane = &mut self.lanes[index];
        if lane.outstanding == 0 {
            return;
        }
        // SAFETY: the headers point to buffers that `received` owns; the socket is connected, so no address is asked for.
        let count = unsafe {
            libc::recvmmsg(
                lane.socket.as_raw_fd(),
                self.received.headers.as_mut_ptr(),
                BATCH_LENGTH,
                libc::MSG_DONTWAIT,
                null_mut(),
            )
        };
        let Ok(count @ 1..) = usize::try_from(count) else {
            return;
        };
        self.progress = now;
        let read = nanos(self.begun.elapsed());
        let tally = &mut self.tally;
        for (header, buffer) in self.received.headers[..count]
            .iter()
            .zip(&self.received.buffers)
        {
            let reply = &buffer[..header.msg_len as usize];
            let Some(slot) = lane.settle(reply) else {
                continue;
            };
            tally.replies += 1;
            if tally.latencies.len() < LATENCIES {
                let latency = read.saturating_sub(slot.since);
                tally.latencies.push(latency.min(u32::MAX.into()) as u32);
            }
            judge(&self.plan.check, tally, slot.query as usize, reply);
        }
    }

    /// Gives up queries that wait for too long.
    fn sweep(&mut self, now: u64) {
        if now < self.swept + nanos(SWEEP) {
            return;
        }
        self.swept = now;
        for lane in &mut self.lanes {
            for slot in &mut lane.slots {
                if slot.waits && slot.since + nanos(PATIENCE) < now {
                    slot.waits = false;
                    lane.outstanding -= 1;
                    self.tally.lost += 1;
                }
            }
        }
    }
}

/// Looks at one reply.
fn judge(check: &Check<'_>, tally: &mut Tally, query: usize, reply: &[u8]) {
    if matches!(check, Check::Nothing) {
        return;
    }
    // RCODE, and the number of answer records (RFC 1035 section 4.1.1).
    tally.refused += u64::from(reply[3] & 15 != 0 || reply[6..8] == [0, 0]);
    if let Check::Judged(judge) = check
        && tally.replies.is_multiple_of(SAMPLE)
    {
        tally.judged += 1;
        tally.wrong += u64::from(!judge(query, reply));
    }
}
