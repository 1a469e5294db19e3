//! One connection: TLS, HTTP/1.1, and how long everything may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::access::{Place, Surface, is_stream};
use super::crowd::Seat;
use super::deadline::{Deadlined, Impatient};
use super::tls::Acceptor;

/// A client that has not sent its headers by then is cut; the clock runs between two requests as well. A dashboard fetches
/// every five seconds and a bit when nothing happens, and finds its connection still there.
const HEADER_TIME: Duration = Duration::from_secs(8);
/// An answer that is not made by then is cut, but for streams of events.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Octets of a request's head, at most.
const MAX_HEAD: usize = 16 * 1024;
/// Headers of a request, at most.
const MAX_HEADERS: usize = 64;

/// What one connection is served with.
pub(super) struct Connection {
    /// The routes of its listener.
    pub(super) routes: Router,
    /// Its place among all of the listener.
    pub(super) seat: Seat,
    /// Who, and where.
    pub(super) surface: Surface,
    /// Falls at the end.
    pub(super) token: CancellationToken,
}

impl Connection {
    /// Serves it to its end. Errors of a client's connection are the client's.
    pub(super) async fn serve(self, stream: TcpStream, tls: Option<Acceptor>) {
        let Some(tls) = tls else {
            return self.speak(stream).await;
        };
        // Cancel-safe: a handshake given up is a connection closed.
        let accepted = tokio::select! {
            accepted = tls.accept(stream) => accepted,
            () = self.seat.leave.cancelled() => return,
            () = self.token.cancelled() => return,
        };
        if let Ok(stream) = accepted {
            self.speak(stream).await;
        }
    }

    /// Speaks HTTP/1.1.
    async fn speak(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send) {
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD);
        let routes = TowerToHyperService::new(self.routes);
        let (seat, surface) = (self.seat.clone(), self.surface);
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(surface.clone());
            let answering = hyper::service::Service::call(&routes, request);
            let busy = Held::new(&seat.busy);
            let seat = seat.clone();
            async move {
                let answer = answering.await;
                answer.map(|response| watched(response, busy, &seat))
            }
        });
        let io = TokioIo::new(Impatient::new(stream));
        let serving = builder.serve_connection(io, service);
        tokio::pin!(serving);
        let _ = tokio::select! {
            served = serving.as_mut() => served,
            () = self.seat.leave.cancelled() => Ok(()),
            () = self.token.cancelled() => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
    }
}

/// A flag that is up while this is held.
#[derive(Debug)]
struct Held(Arc<AtomicBool>);

impl Held {
    fn new(flag: &Arc<AtomicBool>) -> Self {
        flag.store(true, Ordering::Relaxed);
        Self(Arc::clone(flag))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// What goes with an answer until it was made to its end.
struct Watch {
    /// The connection is busy.
    _busy: Held,
    /// The connection streams.
    _streams: Option<Held>,
    /// Its place among the streams of the node.
    _place: Option<Arc<Place>>,
}

/// A body with what goes with it.
struct Watched {
    inner: Body,
    _watch: Watch,
}

/// Puts an answer under the clock, and its connection among those that stream if it does.
fn watched(mut response: Response<Body>, busy: Held, seat: &Seat) -> Response<Body> {
    let is_stream = is_stream(response.headers());
    let watch = Watch {
        _busy: busy,
        _streams: is_stream.then(|| Held::new(&seat.streams)),
        _place: response.extensions_mut().remove::<Arc<Place>>(),
    };
    response.map(|inner| {
        let inner = if is_stream || inner.is_end_stream() {
            inner
        } else {
            Body::new(Deadlined::new(ANSWER_TIME).0.around(inner))
        };
        Body::new(Watched {
            inner,
            _watch: watch,
        })
    })
}

impl HttpBody for Watched {
    type Data = bytes::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<bytes::Bytes>, axum::Error>>> {
        std::pin::Pin::new(&mut self.get_mut().inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.inner.size_hint()
    }
}
