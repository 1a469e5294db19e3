//! Bodies that must end in time, and connections whose other end must read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// What was sent must be on its way within this, or the connection is cut.
const WRITE_TIME: Duration = Duration::from_secs(10);

/// Makes a body that must end in time.
#[derive(Debug)]
pub(super) struct Deadlined {
    sleep: Pin<Box<Sleep>>,
    late: Late,
}

/// Tells whether a body came too late.
#[derive(Clone, Debug, Default)]
pub(super) struct Late(Arc<AtomicBool>);

impl Late {
    /// Tells whether it did.
    pub(super) fn has_passed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Deadlined {
    /// Starts the clock.
    pub(super) fn new(time: Duration) -> (Self, Late) {
        let late = Late::default();
        let deadlined = Self {
            sleep: Box::pin(tokio::time::sleep(time)),
            late: late.clone(),
        };
        (deadlined, late)
    }

    /// Puts a body under the clock.
    pub(super) fn around(self, inner: Body) -> DeadlinedBody {
        DeadlinedBody { clock: self, inner }
    }
}

/// A body under a clock: it fails when the time is over.
#[derive(Debug)]
pub(super) struct DeadlinedBody {
    clock: Deadlined,
    inner: Body,
}

impl HttpBody for DeadlinedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(context) {
            return Poll::Ready(frame);
        }
        ready!(this.clock.sleep.as_mut().poll(context));
        this.clock.late.0.store(true, Ordering::Relaxed);
        let error = io::Error::from(io::ErrorKind::TimedOut);
        Poll::Ready(Some(Err(axum::Error::new(error))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A connection that fails when the other end takes nothing for [`WRITE_TIME`].
///
/// The clock runs from the first octet handed over until all were passed on, so whoever reads in drops is cut too.
#[derive(Debug)]
pub(super) struct Impatient<S> {
    inner: S,
    clock: Option<Pin<Box<Sleep>>>,
}

impl<S> Impatient<S> {
    /// Watches a connection.
    pub(super) fn new(inner: S) -> Self {
        Self { inner, clock: None }
    }

    /// Starts the clock unless it runs; fails when it has run out.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let clock = self
            .clock
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + WRITE_TIME)));
        match clock.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check(context)?;
        Pin::new(&mut this.inner).poll_write(context, octets)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check(context)?;
        Pin::new(&mut this.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.inner).poll_flush(context) {
            Poll::Ready(flushed) => {
                this.clock = None;
                Poll::Ready(flushed)
            }
            Poll::Pending => {
                this.check(context)?;
                Poll::Pending
            }
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.inner).poll_shutdown(context) {
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => {
                this.check(context)?;
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stops_is_cut_and_one_that_reads_is_not() {
        let (ours, theirs) = tokio::io::duplex(16);
        let mut ours = Impatient::new(ours);
        let begun = Instant::now();
        let error = ours.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), WRITE_TIME.as_secs());
        drop(theirs);
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut ours = Impatient::new(ours);
        for _ in 0..10 {
            let mut buffer = [0; 8];
            ours.write_all(&[1; 8]).await.unwrap();
            ours.flush().await.unwrap();
            tokio::io::AsyncReadExt::read_exact(&mut theirs, &mut buffer)
                .await
                .unwrap();
            tokio::time::advance(WRITE_TIME).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_in_drops_is_cut() {
        let (ours, mut theirs) = tokio::io::duplex(1);
        let mut ours = Impatient::new(ours);
        let reading = async {
            let mut octet = [0];
            while tokio::io::AsyncReadExt::read_exact(&mut theirs, &mut octet)
                .await
                .is_ok()
            {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let writing = async { ours.write_all(&[0; 1000]).await.unwrap_err().kind() };
        tokio::select! {
            () = reading => panic!("all was read"),
            kind = writing => assert_eq!(kind, io::ErrorKind::TimedOut),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_given_up() {
        let (clock, late) = Deadlined::new(Duration::from_secs(5));
        let never = Body::from_stream(futures_util::stream::pending::<io::Result<Bytes>>());
        assert!(
            axum::body::to_bytes(Body::new(clock.around(never)), 10)
                .await
                .is_err()
        );
        assert!(late.has_passed());
        let (clock, late) = Deadlined::new(Duration::from_secs(5));
        let body = Body::new(clock.around(Body::from("here")));
        assert_eq!(&axum::body::to_bytes(body, 10).await.unwrap()[..], b"here");
        assert!(!late.has_passed());
    }
}
