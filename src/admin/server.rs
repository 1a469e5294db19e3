//! The listeners and the routes.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{Instrument as _, trace_span, warn};

use super::config::Config;
use super::crowd::{Crowd, Seat};
use super::history::{self, History};
use super::metrics::render;
use crate::controller::ControllerHandle;
use crate::health::MonitorReport;
use crate::lifecycle::{Ready, Supervisor};
use crate::telemetry::{Counters, SPANS};

/// Connections that the kernel holds until they are accepted; it may allow fewer.
const BACKLOG: u32 = 4096;
/// A client that has not sent its headers by then is cut.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// Longest pause of the accept loop after an error such as a lack of descriptors.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Counts of what happened outside the answering path.
#[derive(Debug, Default)]
pub struct Events {
    /// Unix time of the start.
    pub started: AtomicU64,
    /// Unix time at which the configuration in force was put there.
    pub last_load: AtomicU64,
    /// Reloads put in force.
    pub reloads: AtomicU64,
    /// Reloads refused.
    pub reload_failures: AtomicU64,
    /// 1 while the newest configuration file is refused or gone.
    pub reload_failing: AtomicU64,
    /// Databases refused at their last reading.
    pub refused_databases: AtomicU64,
    /// Zone files refused at their last reading.
    pub refused_zones: AtomicU64,
    /// Writes of the last good state that failed in a row.
    pub last_good_failures: Arc<AtomicU64>,
    /// Unix time of the last write of the last good state; 0: none yet.
    pub last_good_written: Arc<AtomicU64>,
    /// Databases and zone files.
    files: Mutex<Arc<[SourceFile]>>,
}

impl Events {
    /// Gives the databases and zone files, as of their last reading.
    #[must_use]
    pub fn files(&self) -> Arc<[SourceFile]> {
        // What it guards is replaced whole.
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&files)
    }

    /// Replaces them.
    pub fn set_files(&self, files: Vec<SourceFile>) {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = files.into();
    }
}

/// What kind of file something is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// A GeoIP database.
    Database,
    /// A master file.
    Zone,
}

impl SourceKind {
    /// Gives the label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Zone => "zone",
        }
    }
}

/// A file that the node reads, as of its last reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// What it is.
    pub kind: SourceKind,
    /// Its path.
    pub name: String,
    /// Unix time of its last modification; 0: it was not there.
    pub modified: u64,
    /// It was refused: what is served is older.
    pub refused: bool,
}

/// Gives what the sockets count beside the workers' counters.
#[derive(Clone)]
pub struct Streams(pub Arc<dyn Fn() -> Vec<(&'static str, u64)> + Send + Sync>);

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Streams")
    }
}

/// What is shown.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Readiness.
    pub ready: Ready,
    /// The counters of every worker.
    pub counters: Arc<[Arc<Counters>]>,
    /// What else the sockets count, by name and labels without the common prefix.
    pub streams: Streams,
    /// Status.
    pub controller: ControllerHandle,
    /// What the monitors say.
    pub reports: watch::Receiver<Arc<Vec<MonitorReport>>>,
    /// What happened.
    pub events: Arc<Events>,
    /// What was counted in the last hour, step by step.
    pub history: Arc<History>,
}

/// Bound listeners.
#[derive(Debug)]
#[must_use]
pub struct Bound {
    admin: Vec<TcpListener>,
    metrics: Vec<TcpListener>,
}

impl Bound {
    /// Binds every listener of the configuration.
    ///
    /// # Errors
    /// With the address that could not be bound.
    pub fn bind(config: &Config) -> Result<Self, (SocketAddr, io::Error)> {
        let mut bound = Self {
            admin: Vec::new(),
            metrics: Vec::new(),
        };
        for &address in &config.admin {
            bound
                .admin
                .push(listen(address).map_err(|error| (address, error))?);
        }
        for &address in &config.metrics {
            bound
                .metrics
                .push(listen(address).map_err(|error| (address, error))?);
        }
        Ok(bound)
    }

    /// Lists the addresses bound, of `admin.listen` first.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.admin
            .iter()
            .chain(&self.metrics)
            .filter_map(|listener| listener.local_addr().ok())
            .collect()
    }

    /// Serves until the token falls.
    pub fn spawn(self, supervisor: &mut Supervisor, sources: &Sources) {
        for listener in self.admin.into_iter().chain(self.metrics) {
            let token = supervisor.token();
            supervisor.spawn("admin", serve(listener, routes(sources.clone()), token));
        }
        let token = supervisor.token();
        supervisor.spawn("history", history::run(sources.clone(), token));
    }
}

/// Opens a listener whose queue holds a flood until each of it was accepted and gave way: what does not fit there waits a
/// second for its next SYN, honest clients too.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Makes the routes.
fn routes(sources: Sources) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route_layer(middleware::from_fn(traced))
        .with_state(sources)
}

/// Answers inside a span: method, route and status, and nothing else of what was asked.
async fn traced(request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or("", MatchedPath::as_str);
    let method = request.method().as_str();
    let span = trace_span!(target: SPANS, "request", http.request.method = method, http.route = path, http.response.status_code = Empty);
    let response = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", response.status().as_u16());
    response
}

/// Says yes once a snapshot is served, and no only at shutdown.
async fn readyz(State(sources): State<Sources>) -> impl IntoResponse {
    if sources.ready.is_ready() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}

/// Shows the counters.
async fn metrics(State(sources): State<Sources>) -> impl IntoResponse {
    let kind: [(HeaderName, &str); 1] = [(
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    )];
    (kind, render(&sources))
}

/// Accepts and serves until the token falls. Accept errors never end the loop, and nobody waits for a place: an idle
/// connection gives way.
async fn serve(listener: TcpListener, routes: Router, token: CancellationToken) {
    let mut crowd = Crowd::default();
    let mut connections = JoinSet::new();
    let mut pause = Duration::ZERO;
    loop {
        // Cancel-safe: all arms only wait.
        let accepted = tokio::select! {
            () = token.cancelled() => break,
            Some(ended) = connections.join_next() => {
                if let Ok(number) = ended {
                    crowd.forget(number);
                }
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, client)) => {
                pause = Duration::ZERO;
                let (routes, token) = (routes.clone(), token.clone());
                let (number, seat) = crowd.enter(client.ip());
                connections.spawn(async move {
                    connection(stream, routes, seat, token).await;
                    number
                });
            }
            Err(error) => {
                if pause.is_zero() {
                    warn!(%error, "Accept failed; backing off");
                }
                pause = (pause * 2).clamp(Duration::from_millis(50), MAX_PAUSE);
                tokio::time::sleep(pause).await;
            }
        }
    }
    // A scrape in progress may finish.
    let _ = tokio::time::timeout(Duration::from_secs(1), async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}

/// Serves one connection.
async fn connection(stream: TcpStream, routes: Router, seat: Seat, token: CancellationToken) {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(16 * 1024);
    let busy = Arc::clone(&seat.busy);
    let routes = TowerToHyperService::new(routes);
    let service = hyper::service::service_fn(move |request| {
        let answering = hyper::service::Service::call(&routes, request);
        let busy = Arc::clone(&busy);
        async move {
            busy.store(true, Ordering::Relaxed);
            let answer = answering.await;
            busy.store(false, Ordering::Relaxed);
            answer
        }
    });
    let serving = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    // Errors of a client's connection are the client's.
    let _ = tokio::select! {
        served = serving.as_mut() => served,
        () = seat.leave.cancelled() => Ok(()),
        () = token.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
}
