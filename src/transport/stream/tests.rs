//! Streams against a client in the same task set: paused time, no sockets.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{DuplexStream, ReadBuf, duplex};
use tokio::task::JoinHandle;

use super::*;
use crate::transport::limits::Limits;

/// A stream that counts the writes that reach it.
struct Counting {
    inner: DuplexStream,
    writes: Arc<AtomicUsize>,
}

impl AsyncRead for Counting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for Counting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, octets);
        if written.is_ready() {
            self.writes.fetch_add(1, Ordering::Relaxed);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// A stream being served, seen from its client.
struct Served {
    client: DuplexStream,
    ending: JoinHandle<Ending>,
    stop: CancellationToken,
    limits: Arc<Limits>,
    writes: Arc<AtomicUsize>,
}

const TCP: TcpLimits = TcpLimits {
    connections: 1,
    per_client: 1,
    idle: Duration::from_secs(10),
    write: Duration::from_secs(5),
};

/// Answers with the octets of the message in reverse; a message that begins with `!` gets no reply, one with `+` a
/// thousand octets, one with `~` takes its time.
fn reverse(message: &[u8], reply: &mut Vec<u8>, turn: Turn) -> Answered {
    match message.first() {
        Some(b'!') => {}
        Some(b'+') => reply.extend([7; 1000]),
        Some(b'~') if turn == Turn::First => return Answered::Later,
        _ => reply.extend(message.iter().rev()),
    }
    Answered::Done
}

/// Serves one end of a pipe that holds `room` octets each way.
#[expect(clippy::disallowed_methods, reason = "a test has no supervisor")]
fn start(room: usize) -> Served {
    let (client, server) = duplex(room);
    let writes = Arc::<AtomicUsize>::default();
    let mut server = Counting {
        inner: server,
        writes: Arc::clone(&writes),
    };
    let limits = Arc::new(Limits::new(&TCP));
    let (mut permit, _) = limits.admit(None).expect("room");
    let stop = CancellationToken::new();
    let token = stop.clone();
    let ending =
        tokio::spawn(async move { serve(&mut server, &TCP, &mut permit, &token, reverse).await });
    Served {
        client,
        ending,
        stop,
        limits,
        writes,
    }
}

/// Frames messages.
fn framed<'a>(messages: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let frame = |message: &'a [u8]| {
        let length = u16::try_from(message.len()).expect("short").to_be_bytes();
        [&length, message].concat()
    };
    messages.into_iter().flat_map(frame).collect()
}

/// Sends `octets` in the pieces given, closes our half, and gives all that comes back and how it ended.
async fn exchange(served: Served, pieces: impl IntoIterator<Item = &[u8]>) -> (Vec<u8>, Ending) {
    let (mut reader, mut writer) = tokio::io::split(served.client);
    let mut replies = Vec::new();
    let send = async {
        for piece in pieces {
            if writer.write_all(piece).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
        let _ = writer.shutdown().await;
    };
    let (_, read) = tokio::join!(send, reader.read_to_end(&mut replies));
    read.expect("reads to the end");
    (replies, served.ending.await.expect("no panic"))
}

#[tokio::test(start_paused = true)]
async fn messages_split_at_any_octet_are_the_same_messages() {
    let sent = framed([&b"first"[..], b"x", b"third message"]);
    let expected = framed([&b"tsrif"[..], b"x", b"egassem driht"]);
    for at in 0..=sent.len() {
        let (head, tail) = sent.split_at(at);
        let (replies, ending) = exchange(start(4096), [head, tail]).await;
        assert_eq!(
            (replies, ending),
            (expected.clone(), Ending::Orderly),
            "at {at}"
        );
    }
    let (replies, _) = exchange(start(4096), sent.chunks(1)).await;
    assert_eq!(replies, expected);
}

#[tokio::test(start_paused = true)]
async fn what_arrives_together_leaves_together() {
    let message = b"some query or other".as_slice();
    let sent = framed(std::iter::repeat_n(message, 1000));
    let served = start(1 << 20);
    let writes = Arc::clone(&served.writes);
    let (replies, _) = exchange(served, [&sent[..]]).await;
    assert_eq!(replies.len(), sent.len());
    let writes = writes.load(Ordering::Relaxed);
    assert!(writes <= sent.len() / CHUNK_OCTETS + 2, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn many_long_replies_are_written_as_they_come() {
    let sent = framed(std::iter::repeat_n(&b"+"[..], 2000));
    let (replies, ending) = exchange(start(1 << 12), [&sent[..]]).await;
    assert_eq!((replies.len(), ending), (2000 * 1002, Ending::Orderly));
}

#[tokio::test(start_paused = true)]
async fn the_longest_message_is_taken() {
    let long: Vec<u8> = (0..MESSAGE_OCTETS)
        .map(|at| u8::try_from(at % 251).expect("small"))
        .collect();
    let expected: Vec<u8> = long.iter().rev().copied().collect();
    let sent = framed([&long[..], b"short", &long]);
    let (replies, _) = exchange(start(1000), [&sent[..]]).await;
    assert_eq!(replies, framed([&expected[..], b"trohs", &expected]));
}

#[tokio::test(start_paused = true)]
async fn a_message_without_octets_ends_the_stream() {
    let sent = framed([&b"before"[..], b"", b"after"]);
    let (replies, ending) = exchange(start(4096), [&sent[..]]).await;
    assert_eq!(
        (replies, ending),
        (framed([&b"erofeb"[..]]), Ending::Orderly)
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_without_reply_is_passed_over() {
    let sent = framed([&b"!"[..], b"ab", b"!!", b"cd"]);
    let (replies, _) = exchange(start(4096), [&sent[..]]).await;
    assert_eq!(replies, framed([&b"ba"[..], b"dc"]));
}

#[tokio::test(start_paused = true)]
async fn rfc7766_6_2_1_1_what_takes_its_time_is_answered_after_what_came_behind() {
    let sent = framed([&b"~slow"[..], b"ab", b"~slower", b"cd"]);
    let (replies, ending) = exchange(start(4096), [&sent[..]]).await;
    let expected = framed([&b"ba"[..], b"dc", b"wols~", b"rewols~"]);
    assert_eq!((replies, ending), (expected, Ending::Orderly));
    // What comes alone is answered at once, and what comes later after it.
    let (first, second) = (framed([&b"~slow"[..]]), framed([&b"ab"[..]]));
    let (replies, _) = exchange(start(4096), [&first[..], &second[..]]).await;
    assert_eq!(replies.len(), first.len() + second.len());
}

#[tokio::test(start_paused = true)]
async fn a_message_cut_off_by_the_client_is_forgotten() {
    let sent = framed([&b"whole"[..], b"half"]);
    let (replies, ending) = exchange(start(4096), [&sent[..sent.len() - 2]]).await;
    assert_eq!(
        (replies, ending),
        (framed([&b"elohw"[..]]), Ending::Orderly)
    );
}

/// Waits for the end and tells how it came, and when.
async fn end(ending: JoinHandle<Ending>, since: Instant) -> (Ending, Duration) {
    let ending = ending.await.expect("no panic");
    (ending, since.elapsed())
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_is_closed_after_its_time() {
    let start_time = Instant::now();
    let mut served = start(4096);
    // Not even messages that get no reply make a client less idle.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let query = framed([&b"query"[..]]);
    served.client.write_all(&query).await.expect("open");
    let mut reply = [0; 7];
    served.client.read_exact(&mut reply).await.expect("a reply");
    tokio::time::sleep(Duration::from_secs(6)).await;
    let none = framed([&b"!"[..]]);
    served.client.write_all(&none).await.expect("open");
    let (ending, after) = end(served.ending, start_time).await;
    assert_eq!((ending, after.as_secs()), (Ending::Orderly, 14));
}

#[tokio::test(start_paused = true)]
async fn a_query_that_trickles_in_is_cut() {
    let start_time = Instant::now();
    let served = start(4096);
    let (_reader, mut writer) = tokio::io::split(served.client);
    let sent = framed([&[b'x'; 300][..]]);
    let trickle = async {
        for octet in sent.chunks(1) {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if writer.write_all(octet).await.is_err() {
                break;
            }
        }
    };
    let ((ending, after), ()) = tokio::join!(end(served.ending, start_time), trickle);
    // The first octet came after one second.
    assert_eq!((ending, after.as_secs()), (Ending::Abrupt, 6));
}

#[tokio::test(start_paused = true)]
async fn each_query_of_a_pipeline_has_its_own_time() {
    let start_time = Instant::now();
    let mut served = start(4096);
    // Every four seconds the end of one query and the start of the next: never idle, never late.
    let sent = framed(std::iter::repeat_n(&b"abcd"[..], 6));
    for piece in sent.chunks(6).map(|frame| frame.split_at(3)) {
        served.client.write_all(piece.0).await.expect("open");
        tokio::time::sleep(Duration::from_secs(4)).await;
        served.client.write_all(piece.1).await.expect("open");
        let mut reply = [0; 6];
        served.client.read_exact(&mut reply).await.expect("a reply");
        assert_eq!(&reply, b"\0\x04dcba");
    }
    assert_eq!(start_time.elapsed().as_secs(), 24);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_cut() {
    let start_time = Instant::now();
    let mut served = start(1024);
    let sent = framed(std::iter::repeat_n(&b"+"[..], 10));
    served.client.write_all(&sent).await.expect("fits");
    let (ending, after) = end(served.ending, start_time).await;
    assert_eq!((ending, after.as_secs()), (Ending::Abrupt, 5));
}

#[tokio::test(start_paused = true)]
async fn tokens_end_a_stream() {
    let start_time = Instant::now();
    let served = start(4096);
    served.stop.cancel();
    let (ending, after) = end(served.ending, start_time).await;
    assert_eq!((ending, after.as_secs()), (Ending::Orderly, 0));

    let served = start(4096);
    // Another connection needs the room.
    let _permit = served.limits.admit(None).expect("makes room");
    let (ending, after) = end(served.ending, start_time).await;
    assert_eq!((ending, after.as_secs()), (Ending::Abrupt, 0));

    // Also one that waits for its client to read.
    let mut served = start(1024);
    let sent = framed(std::iter::repeat_n(&b"+"[..], 10));
    served.client.write_all(&sent).await.expect("fits");
    tokio::task::yield_now().await;
    let _permit = served.limits.admit(None).expect("makes room");
    let (ending, after) = end(served.ending, start_time).await;
    assert_eq!((ending, after.as_secs()), (Ending::Abrupt, 0));
}

#[test]
fn an_announcement_alone_takes_no_memory() {
    let mut input = Input::default();
    input.octets.extend([0xff, 0xff]);
    input.make_room();
    assert!(input.octets.capacity() <= 2 * CHUNK_OCTETS);
    // As octets come the room doubles, up to one message.
    let mut steps = 0;
    while input.octets.len() < MESSAGE_OCTETS + LENGTH_OCTETS {
        assert!(input.octets.capacity() <= 2 * input.octets.len() + CHUNK_OCTETS);
        input.octets.resize(input.octets.capacity(), 1);
        input.make_room();
        steps += 1;
    }
    assert_eq!(input.octets.capacity(), MESSAGE_OCTETS + LENGTH_OCTETS);
    assert!(steps < 10, "{steps} steps");
    input.octets.clear();
    input.make_room();
    assert!(input.octets.capacity() <= KEPT_OCTETS);
}

proptest! {
    /// However messages are cut into pieces, the replies are those to the messages.
    #[test]
    fn any_pieces_make_the_same_messages(
        mut messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..80), 0..20),
        cuts in proptest::collection::vec(1usize..50, 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let mut expected = Vec::new();
        // Which of those that take their time arrive together is another test's matter.
        for message in &mut messages {
            if message.first() == Some(&b'~') {
                message[0] = b'-';
            }
        }
        let sent = framed(messages.iter().map(Vec::as_slice));
        for message in &messages {
            let mut reply = Vec::new();
            reverse(message, &mut reply, Turn::Last);
            if !reply.is_empty() {
                expected.extend(framed([&reply[..]]));
            }
        }
        let mut pieces = Vec::new();
        let (mut rest, mut cuts) = (&sent[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at((*cuts.next().expect("a cycle")).min(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        let (replies, _) = runtime.block_on(async { exchange(start(1 << 16), pieces).await });
        prop_assert_eq!(replies, expected);
    }
}
