//! Five small HTTP servers that play clusters.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// A cluster of the demo.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cluster {
    /// Its name.
    pub(super) name: &'static str,
    /// The provider in the built-in table of regions.
    pub(super) provider: &'static str,
    /// The region there.
    pub(super) region: &'static str,
    /// Where people know it to be.
    pub(super) place: &'static str,
    /// The loopback address it answers on.
    pub(super) address: Ipv4Addr,
}

/// One on each of five continents, each at another provider.
pub(super) const CLUSTERS: [Cluster; 5] = [
    Cluster {
        name: "aws-use1",
        provider: "aws",
        region: "us-east-1",
        place: "Virginia",
        address: Ipv4Addr::new(127, 0, 53, 1),
    },
    Cluster {
        name: "gcp-euw3",
        provider: "gcp",
        region: "europe-west3",
        place: "Frankfurt",
        address: Ipv4Addr::new(127, 0, 53, 2),
    },
    Cluster {
        name: "azure-sea",
        provider: "azure",
        region: "southeastasia",
        place: "Singapore",
        address: Ipv4Addr::new(127, 0, 53, 3),
    },
    Cluster {
        name: "oci-gru",
        provider: "oci",
        region: "sa-saopaulo-1",
        place: "São Paulo",
        address: Ipv4Addr::new(127, 0, 53, 4),
    },
    Cluster {
        name: "aws-afs1",
        provider: "aws",
        region: "af-south-1",
        place: "Cape Town",
        address: Ipv4Addr::new(127, 0, 53, 5),
    },
];

/// The running servers, in the order of [`CLUSTERS`].
#[derive(Debug)]
pub(super) struct Backends {
    port: u16,
    servers: Vec<Option<JoinHandle<()>>>,
}

impl Backends {
    /// Starts all five on one port that is free on every address.
    pub(super) async fn start() -> io::Result<Self> {
        let mut last = io::Error::other("no port is free on all addresses");
        for _ in 0..20 {
            match Self::bind_all().await {
                Ok((port, listeners)) => {
                    let servers = listeners
                        .into_iter()
                        .map(|listener| Some(spawn(listener)))
                        .collect();
                    return Ok(Self { port, servers });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Binds every address on the port that the first one got.
    async fn bind_all() -> io::Result<(u16, Vec<TcpListener>)> {
        let mut port = 0;
        let mut listeners = Vec::new();
        for cluster in CLUSTERS {
            let listener = TcpListener::bind(SocketAddr::from((cluster.address, port))).await?;
            port = listener.local_addr()?.port();
            listeners.push(listener);
        }
        Ok((port, listeners))
    }

    /// Gives the port that all answer on.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Stops one, connections included: from then on they are refused.
    pub(super) async fn kill(&mut self, at: usize) {
        if let Some(server) = self.servers.get_mut(at).and_then(Option::take) {
            server.abort();
            // An aborted task ends with an error that says so.
            let _ = server.await;
        }
    }

    /// Starts one again.
    pub(super) async fn revive(&mut self, at: usize) -> io::Result<()> {
        let (Some(cluster), Some(slot)) = (CLUSTERS.get(at), self.servers.get_mut(at)) else {
            return Ok(());
        };
        *slot = Some(spawn(
            TcpListener::bind(SocketAddr::from((cluster.address, self.port))).await?,
        ));
        Ok(())
    }

    /// Stops all.
    pub(super) async fn stop(mut self) {
        for at in 0..self.servers.len() {
            self.kill(at).await;
        }
    }
}

/// Serves until aborted.
#[expect(
    clippy::disallowed_methods,
    reason = "a stand-in for another machine: it must die alone, unlike our own tasks"
)]
fn spawn(listener: TcpListener) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            // Cancel-safe: accepting and joining lose nothing.
            tokio::select! {
                accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                    connections.spawn(answer(stream));
                },
                Some(_) = connections.join_next() => {}
            }
        }
    })
}

/// Says 200 to one request. Errors are the client's.
async fn answer(mut stream: TcpStream) {
    let mut head = [0; 1024];
    let _ = stream.read(&mut head).await;
    let _ = stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n")
        .await;
}
