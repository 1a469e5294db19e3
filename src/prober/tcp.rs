//! `tcp`: a connection, with optional talk.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::connect::{connect, of_io};
use crate::health::ProbeError;
use crate::model::TcpCheck;

/// How much of a reply is searched: greetings and status lines come first.
const SEARCHED: usize = 4096;

/// Connects, sends, and waits for what is expected. Gives the moment of success.
///
/// # Errors
///
/// [`ProbeError::Protocol`] when something else came, [`ProbeError::Broken`] when nothing did before the end; else as
/// [`connect`].
pub(super) async fn probe(address: SocketAddr, check: &TcpCheck) -> Result<Instant, ProbeError> {
    let mut stream = connect(address).await?;
    if !check.send.is_empty() {
        let sent = stream.write_all(&check.send).await;
        sent.map_err(|error| of_io(&error))?;
    }
    if !check.expect.is_empty() {
        await_words(&mut stream, &check.expect).await?;
    }
    Ok(Instant::now())
}

/// Reads until `words` are among the first octets.
async fn await_words(stream: &mut TcpStream, words: &[u8]) -> Result<(), ProbeError> {
    let mut heard = Vec::with_capacity(512);
    let mut limited = stream.take(SEARCHED as u64);
    loop {
        // Words may lie across two reads: look again at the end of what was searched before.
        let searched = heard.len().saturating_sub(words.len() - 1);
        let read = limited.read_buf(&mut heard).await;
        match read.map_err(|error| of_io(&error))? {
            0 if heard.is_empty() => return Err(ProbeError::Broken),
            0 => return Err(ProbeError::Protocol),
            _ => {}
        }
        let fresh = heard.get(searched..).unwrap_or_default();
        if fresh.windows(words.len()).any(|window| window == words) {
            return Ok(());
        }
    }
}
