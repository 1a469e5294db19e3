//! Datagrams: a thread per core and listen address, each with a socket of its own.
//!
//! This part knows threads and batches. It hands octets to `answer` and knows nothing of their meaning but the PROXY header
//! in front and the header of the reply to a datagram too long to take. Called by the parent's `Bound::spawn`.

mod mmsg;
mod worker;

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::lifecycle::Supervisor;

pub(super) use mmsg::{PacketInfo, Path, set_options};
pub(super) use worker::Worker;

/// Starts one worker: a thread, and a task that stands for it at the supervisor.
///
/// The task ends, and takes the process down, when the thread does; and it stops the thread when the token falls or the
/// task itself is dropped.
///
/// # Errors
/// When the system gives no thread.
pub(super) fn spawn(
    supervisor: &mut Supervisor,
    name: String,
    socket: Arc<UdpSocket>,
    worker: Worker,
) -> io::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let guard = StopOnDrop(Arc::clone(&stop));
    let (alive, ended) = oneshot::channel();
    std::thread::Builder::new().name(name).spawn(move || {
        let _alive: oneshot::Sender<()> = alive;
        worker.run(&socket, &stop);
    })?;
    supervisor.spawn("udp", stand_for(guard, ended, supervisor.token()));
    Ok(())
}

/// Waits for the token, then for the thread; or for the thread alone.
async fn stand_for(guard: StopOnDrop, mut ended: oneshot::Receiver<()>, token: CancellationToken) {
    // Cancel-safe: both arms only wait.
    tokio::select! {
        () = token.cancelled() => {}
        _ = &mut ended => return,
    }
    drop(guard);
    // Nothing is ever sent: an error says that the thread dropped its end.
    let _ = ended.await;
}

/// Tells a thread to stop when nobody stands for it any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
