//! The listeners.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::access::Surface;
use super::config::Config;
use super::connection::Connection;
use super::crowd::Crowd;
use super::routes::{all, metrics_alone};
use super::sampler;
use super::sources::Sources;
use super::tls::{Acceptor, Certificates};
use super::view::View;
use crate::lifecycle::Supervisor;

/// Connections that the kernel holds until they are accepted; it may allow fewer.
const BACKLOG: u32 = 4096;
/// Longest pause of the accept loop after an error such as a lack of descriptors.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Bound listeners.
#[derive(Debug)]
#[must_use]
pub struct Bound {
    admin: Vec<TcpListener>,
    metrics: Vec<TcpListener>,
    /// What the listeners of `admin` show; `None`: they speak no TLS.
    certificates: Option<Certificates>,
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
            certificates: config.tls.as_ref().map(Certificates::open),
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
    pub fn spawn(self, supervisor: &mut Supervisor, sources: &Sources, view: &View) {
        for listener in self.admin {
            let door = Door {
                listener,
                tls: self.certificates.as_ref().map(Certificates::acceptor),
                routes: all(sources, view),
            };
            supervisor.spawn("admin", door.serve(supervisor.token()));
        }
        let token = supervisor.token();
        supervisor.spawn("history", sampler::run(sources.clone(), token));
        for listener in self.metrics {
            let door = Door {
                listener,
                tls: None,
                routes: metrics_alone(sources, view),
            };
            supervisor.spawn("metrics", door.serve(supervisor.token()));
        }
        if let Some(certificates) = self.certificates {
            supervisor.spawn("certificates", certificates.watch(supervisor.token()));
        }
        let (access, token) = (sources.access.clone(), supervisor.token());
        supervisor.spawn("access", access.watch(token));
        let (access, token) = (sources.access.clone(), supervisor.token());
        supervisor.spawn("keys", access.keep_keys(token));
        supervisor.spawn("view", view.clone().run(supervisor.token()));
        let (audit, token) = (sources.audit.clone(), supervisor.token());
        supervisor.spawn("audit", audit.run(token));
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

/// One listener, with what it serves.
struct Door {
    listener: TcpListener,
    tls: Option<Acceptor>,
    routes: Router,
}

impl Door {
    /// Accepts and serves until the token falls. Accept errors never end the loop, and nobody waits for a place: an idle
    /// connection gives way.
    async fn serve(self, token: CancellationToken) {
        let is_loopback = self
            .listener
            .local_addr()
            .is_ok_and(|local| local.ip().to_canonical().is_loopback());
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
                accepted = self.listener.accept() => accepted,
            };
            let accepted =
                accepted.and_then(|(stream, client)| Ok((stream.local_addr()?, stream, client)));
            match accepted {
                Ok((local, stream, client)) => {
                    pause = Duration::ZERO;
                    let from = client.ip().to_canonical();
                    let (number, seat) = crowd.enter(from);
                    let tls = self.tls.clone();
                    let connection = Connection {
                        routes: self.routes.clone(),
                        seat,
                        surface: Surface {
                            from,
                            local,
                            is_loopback,
                            tls: tls.as_ref().map(|tls| tls.certificates.clone()),
                        },
                        token: token.clone(),
                    };
                    connections.spawn(async move {
                        connection.serve(stream, tls).await;
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
}

#[cfg(test)]
mod tests {
    use axum::http::header;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::admin::access::{Access, Viewer, guard};
    use crate::admin::audit::Audit;
    use crate::admin::config::AccessConfig;

    /// Serves streams that never say a word, and a page.
    async fn start(tasks: &mut JoinSet<()>) -> SocketAddr {
        let access = Access::new(&AccessConfig::default(), Audit::open(None));
        let stream = |_: Viewer| async {
            let silence = futures_util::stream::pending::<io::Result<bytes::Bytes>>();
            let kind = [(header::CONTENT_TYPE, "text/event-stream")];
            (kind, axum::body::Body::from_stream(silence))
        };
        let routes = Router::new()
            .route("/events", get(stream))
            .route("/page", get(|_: Viewer| async { "page" }))
            .layer(from_fn_with_state(access, guard));
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let door = Door {
            listener,
            tls: None,
            routes,
        };
        tasks.spawn(door.serve(CancellationToken::new()));
        address
    }

    /// Asks from an address; gives the connection and the first octets of the answer.
    async fn ask(to: SocketAddr, from: [u8; 4], path: &str) -> (TcpStream, String) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from((from, 0))).unwrap();
        let mut stream = socket.connect(to).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {to}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        (stream, String::from_utf8(answer.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn streams_are_bounded_and_keep_no_page_out() {
        let mut tasks = JoinSet::new();
        let to = start(&mut tasks).await;
        let mut held = Vec::new();
        for from in [[127, 0, 0, 1], [127, 0, 0, 2]] {
            for _ in 0..128 {
                let (stream, answer) = ask(to, from, "/events").await;
                assert_eq!(answer, "HTTP/1.1 200");
                held.push(stream);
            }
            let (_, answer) = ask(to, from, "/events").await;
            assert_eq!(answer, "HTTP/1.1 503");
            assert_eq!(ask(to, from, "/page").await.1, "HTTP/1.1 200");
        }
        let other = [127, 0, 0, 3];
        assert_eq!(ask(to, other, "/events").await.1, "HTTP/1.1 503");
        assert_eq!(ask(to, other, "/page").await.1, "HTTP/1.1 200");
        // None of them gave way; one that goes makes room.
        drop(held.pop());
        let begun = tokio::time::Instant::now();
        while ask(to, other, "/events").await.1 != "HTTP/1.1 200" {
            assert!(begun.elapsed() < Duration::from_secs(5));
        }
        for stream in &held {
            let mut buffer = [0; 4096];
            let _ = stream.try_read(&mut buffer);
            let error = stream.try_read(&mut buffer).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        }
    }
}
