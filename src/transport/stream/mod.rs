//! One stream of queries: two-octet framing (RFC 1035 section 4.2.2), deadlines, back-pressure.
//!
//! Generic over the stream, so that TLS fits under it too. Queries may be pipelined, and replies to what arrived together leave in
//! one write. A message that takes its time is answered after those behind it, out of order (RFC 7766 section 6.2.1.1); the others
//! are answered where they stand. Nothing is read while a reply waits to be taken. What a client may cost: one buffer that grows
//! as octets come, up to one message; one of replies, up to three times [`FLUSH_OCTETS`]; and time, by three deadlines: idle since its last reply, a query since its first octet, and a write.
//! Knows nothing of DNS but the length. Called by the listener.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::config::TcpLimits;
use super::limits::Permit;

/// Longest message, octets: what two octets can say.
pub(super) const MESSAGE_OCTETS: usize = 65535;
/// Octets of the length in front of each message.
const LENGTH_OCTETS: usize = 2;
/// Room to read into, octets: some dozens of queries.
const CHUNK_OCTETS: usize = 2048;
/// Replies are written when there are this many octets of them, though more queries wait.
const FLUSH_OCTETS: usize = 65536;
/// A buffer grown beyond this is given back when it is empty.
const KEPT_OCTETS: usize = 8192;

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The client closed or was idle, or we stop: close as usual.
    Orderly,
    /// The client was too slow, broke off or had to make room: what was not taken is thrown away.
    Abrupt,
}

/// Which time a message is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The first time. Others may wait behind it.
    First,
    /// Once more, after all that arrived with it.
    Last,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// The reply is appended, or there is none.
    Done,
    /// It takes its time: it is to be shown once more when those behind it are answered. Means nothing at its last turn.
    Later,
}

/// Answers queries until the client closes, a deadline passes, or one of the tokens (`stop`, the permit's) falls.
///
/// `answer` appends the reply to a message, or nothing: such a message is passed over. Its replies at the last turn are no longer
/// than their messages. A message without octets ends the
/// stream, for who sends it speaks something else. A client that closed its half gets what it asked for. After `stop`
/// nothing more is read; the replies in progress still leave.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    limits: &TcpLimits,
    permit: &mut Permit,
    stop: &CancellationToken,
    mut answer: impl FnMut(&[u8], &mut Vec<u8>, Turn) -> Answered,
) -> Ending {
    let cut = permit.cut().clone();
    let mut input = Input::default();
    let mut replies = Vec::new();
    let mut idle_until = Instant::now() + limits.idle;
    loop {
        let deadline = input.due.unwrap_or(idle_until);
        input.make_room();
        // Cancel-safe: all arms only wait, and `read_buf` has read nothing when dropped.
        let read = tokio::select! {
            () = stop.cancelled() => return close(stream, limits).await,
            () = cut.cancelled() => return Ending::Abrupt,
            () = sleep_until(deadline) => match input.due {
                None => return close(stream, limits).await,
                Some(_) => return Ending::Abrupt,
            },
            read = stream.read_buf(&mut input.octets) => read,
        };
        match read {
            Ok(0) => return close(stream, limits).await,
            Ok(_) => {}
            Err(_) => return Ending::Abrupt,
        }
        let arrived = Instant::now();
        loop {
            let step = input.answer_whole(&mut replies, &mut answer);
            if !replies.is_empty() {
                let sent = tokio::select! {
                    () = cut.cancelled() => return Ending::Abrupt,
                    sent = send(stream, &mut replies, limits) => sent,
                };
                if sent.is_err() {
                    return Ending::Abrupt;
                }
                permit.used();
                idle_until = Instant::now() + limits.idle;
            }
            match step {
                Step::Flush => {}
                Step::Read => break,
                Step::Close => return close(stream, limits).await,
            }
        }
        input.note_arrival(arrived + limits.write);
    }
}

/// Writes all replies and forgets them.
///
/// # Errors
/// The stream's own, and that of a client that does not take them in time.
async fn send<S: AsyncWrite + Unpin>(
    stream: &mut S,
    replies: &mut Vec<u8>,
    limits: &TcpLimits,
) -> io::Result<()> {
    timeout(limits.write, async {
        stream.write_all(replies).await?;
        stream.flush().await
    })
    .await??;
    replies.clear();
    replies.shrink_to(KEPT_OCTETS);
    Ok(())
}

/// Closes our half.
async fn close<S: AsyncWrite + Unpin>(stream: &mut S, limits: &TcpLimits) -> Ending {
    match timeout(limits.write, stream.shutdown()).await {
        Ok(Ok(())) => Ending::Orderly,
        _ => Ending::Abrupt,
    }
}

/// What to do after the whole messages were answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Write what there is, then go on answering.
    Flush,
    /// Read on.
    Read,
    /// The stream is not DNS.
    Close,
}

/// Octets that came and were not answered yet.
#[derive(Debug, Default)]
struct Input {
    octets: Vec<u8>,
    /// When the message that has begun must be whole; `None` when none has.
    due: Option<Instant>,
    /// Whether a message was taken out since the last arrival.
    advanced: bool,
}

impl Input {
    /// Makes room for the next read: a chunk, or the rest of a long message, but never more than came already. So who
    /// announces 64 KiB must send them to make us hold them.
    fn make_room(&mut self) {
        let held = self.octets.len();
        if held == 0 {
            self.octets.shrink_to(KEPT_OCTETS);
        }
        let missing = match self.octets.first_chunk() {
            Some(&length) => {
                (LENGTH_OCTETS + usize::from(u16::from_be_bytes(length))).saturating_sub(held)
            }
            None => CHUNK_OCTETS,
        };
        if self.octets.capacity() - held < missing.min(CHUNK_OCTETS) {
            self.octets
                .reserve_exact(missing.clamp(CHUNK_OCTETS, held.max(CHUNK_OCTETS)));
        }
    }

    /// Answers every whole message, until [`FLUSH_OCTETS`] of replies are there; then those that were put off.
    fn answer_whole(
        &mut self,
        replies: &mut Vec<u8>,
        answer: &mut impl FnMut(&[u8], &mut Vec<u8>, Turn) -> Answered,
    ) -> Step {
        let mut used = 0;
        // Where messages begin that were put off. Few ever are.
        let mut later = Vec::new();
        let step = loop {
            match split(self.octets.get(used..).unwrap_or_default()) {
                None => break Step::Read,
                Some([]) => break Step::Close,
                Some(message) => {
                    if append(message, replies, Turn::First, answer) == Answered::Later {
                        later.push(used);
                    }
                    used += LENGTH_OCTETS + message.len();
                }
            }
            if replies.len() >= FLUSH_OCTETS {
                break Step::Flush;
            }
        };
        for start in later {
            if let Some(message) = split(self.octets.get(start..).unwrap_or_default()) {
                append(message, replies, Turn::Last, answer);
            }
        }
        self.advanced |= used > 0;
        self.octets.drain(..used);
        step
    }

    /// Sets the deadline of the message that the last read began, if it began one; of one begun earlier it stands.
    fn note_arrival(&mut self, due: Instant) {
        self.due = match self.due {
            _ if self.octets.is_empty() => None,
            Some(earlier) if !self.advanced => Some(earlier),
            _ => Some(due),
        };
        self.advanced = false;
    }
}

/// Takes the first message off; `None` when it is not whole.
fn split(octets: &[u8]) -> Option<&[u8]> {
    let (&length, rest) = octets.split_first_chunk()?;
    rest.get(..usize::from(u16::from_be_bytes(length)))
}

/// Appends the framed reply to one message, or nothing.
fn append(
    message: &[u8],
    replies: &mut Vec<u8>,
    turn: Turn,
    answer: &mut impl FnMut(&[u8], &mut Vec<u8>, Turn) -> Answered,
) -> Answered {
    let start = replies.len();
    replies.extend_from_slice(&[0; LENGTH_OCTETS]);
    let body = replies.len();
    let answered = answer(message, replies, turn);
    let length = u16::try_from(replies.len() - body).unwrap_or(0);
    match replies
        .get_mut(start..)
        .and_then(|reply| reply.first_chunk_mut())
    {
        Some(place) if length > 0 => *place = length.to_be_bytes(),
        _ => replies.truncate(start),
    }
    answered
}

#[cfg(test)]
mod tests;
