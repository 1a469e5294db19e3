//! From configuration to bound sockets to running workers.
//!
//! Everything is bound before anything is spawned, so that a start fails whole, with the address and a hint. Knows socket
//! options, and which part gets which socket.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::mpsc;
use tracing::warn;

use super::config::Config;
use super::limits::Limits;
use super::listener::{self, Lanes, Service, Streams};
use super::rare::{self, RareLane};
use super::udp::{self, PacketInfo};
use crate::lifecycle::Supervisor;
use crate::snapshot::SnapshotReader;
use crate::telemetry::{Counters, QueryLog};

/// Socket buffers asked for, octets: what comes while a worker is off its core for some milliseconds. The kernel may give
/// less (`net.core.rmem_max`, `net.core.wmem_max`).
const BUFFER_OCTETS: usize = 4 << 20;
/// How long a worker waits in one receive: it sees the stop flag at least this often.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(250);
/// How long a worker waits for a full send buffer before it gives up a batch.
const SEND_TIMEOUT: Duration = Duration::from_millis(250);
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// Ports tried for port 0, where UDP and TCP must get the same one.
const PORT_ATTEMPTS: usize = 32;

/// Why sockets could not be bound or served.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// A port below 1024 without the capability for it: give it to the unit, or run behind a redirect.
    #[error("permission denied binding {address} over {transport}: needs CAP_NET_BIND_SERVICE")]
    Permission {
        /// Where.
        address: SocketAddr,
        /// `UDP` or `TCP`.
        transport: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
    /// Someone else listens there: often systemd-resolved or another name server.
    #[error("cannot bind {address} over {transport}: address in use; see `ss -lnptu`")]
    InUse {
        /// Where.
        address: SocketAddr,
        /// `UDP` or `TCP`.
        transport: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
    /// The machine does not have the address, or not yet: order the unit after `network-online.target`.
    #[error("cannot bind {address} over {transport}: no interface has this address")]
    NoSuchAddress {
        /// Where.
        address: SocketAddr,
        /// `UDP` or `TCP`.
        transport: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
    /// Anything else, an option that the kernel does not know included.
    #[error("cannot bind {address} over {transport}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// `UDP` or `TCP`.
        transport: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
    /// The system gave no thread, or the runtime took no listener.
    #[error("cannot start serving {address}")]
    Spawn {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

impl TransportError {
    /// Tells what a failed bind means.
    fn binding(address: SocketAddr, transport: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Permission {
                address,
                transport,
                source,
            },
            io::ErrorKind::AddrInUse => Self::InUse {
                address,
                transport,
                source,
            },
            io::ErrorKind::AddrNotAvailable => Self::NoSuchAddress {
                address,
                transport,
                source,
            },
            _ => Self::Bind {
                address,
                transport,
                source,
            },
        }
    }
}

/// The sockets of one listen address: all on the same port.
#[derive(Debug)]
struct Listen {
    address: SocketAddr,
    udp: Vec<UdpSocket>,
    tcp: TcpListener,
}

/// Sockets bound, nobody reading yet: what arrives waits.
#[derive(Debug)]
#[must_use]
pub struct Bound {
    listens: Vec<Listen>,
    config: Config,
}

impl Bound {
    /// Binds UDP and TCP on every listen address. Port 0 becomes a free one, the same for both and for all workers.
    ///
    /// # Errors
    /// The first address that cannot be bound; then none is.
    pub fn bind(config: &Config) -> Result<Self, TransportError> {
        let workers = match config.workers {
            0 => cores(),
            workers => workers,
        };
        // Before the first is bound: an address of ours beside our own wildcard is shared with nobody else.
        for address in config.listen.iter().filter(|address| is_shared(**address)) {
            warn!(%address, "Another process answers at this address too; until it ends, each gets a part of the queries");
        }
        let listens = config.listen.iter();
        let listens = listens.map(|&address| listen(address, workers));
        Ok(Self {
            listens: listens.collect::<Result<_, _>>()?,
            config: config.clone(),
        })
    }

    /// Gives the addresses bound, ports resolved, in the order of the configuration.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listens.iter().map(|listen| listen.address).collect()
    }

    /// Starts the workers, the listeners and the rare lane. Must be called inside a tokio runtime. They end when the
    /// supervisor's token falls, within a second.
    ///
    /// # Errors
    /// When the system gives no thread or the runtime no registration; what was started ends with the supervisor.
    pub fn spawn(
        self,
        snapshots: &SnapshotReader,
        supervisor: &mut Supervisor,
    ) -> Result<Running, TransportError> {
        let addresses = self.addresses();
        let proxies: Arc<[_]> = self.config.proxy_protocol.into();
        let mut query_log = self.config.query_log.as_ref().map(QueryLog::new);
        let mut tap = || query_log.as_mut().map(QueryLog::tap);
        let limits = Arc::new(Limits::new(&self.config.tcp));
        let streams = Arc::new(Streams::new(Arc::clone(&limits)));
        let lane = RareLane::new(snapshots.clone());
        let service = Arc::new(Service {
            tcp: self.config.tcp,
            proxies: Arc::clone(&proxies),
            snapshots: snapshots.clone(),
            rare: lane.clone(),
            limits,
            streams: Arc::clone(&streams),
            lanes: Lanes::new(cores(), &mut tap),
        });
        let mut counters: Vec<_> = service.lanes.counters().cloned().collect();
        let (rare, queue) = mpsc::channel(rare::QUEUE);
        counters.push(Arc::default());
        if let Some(own) = counters.last() {
            let task = rare::run(lane, queue, Arc::clone(own), supervisor.token());
            supervisor.spawn("rare", task);
        }
        for (number, listen) in self.listens.into_iter().enumerate() {
            let address = listen.address;
            let failed = |source| TransportError::Spawn { address, source };
            let tcp = tokio::net::TcpListener::from_std(listen.tcp).map_err(failed)?;
            let task = listener::run(tcp, Arc::clone(&service), supervisor.token());
            supervisor.spawn("tcp", task);
            for (index, socket) in listen.udp.into_iter().enumerate() {
                let worker = udp::Worker {
                    snapshots: snapshots.clone(),
                    counters: Arc::default(),
                    proxies: Arc::clone(&proxies),
                    rare: rare.clone(),
                    info: packet_info(address),
                    tap: tap(),
                };
                counters.push(Arc::clone(&worker.counters));
                let name = format!("udp-{number}.{index}");
                udp::spawn(supervisor, name, Arc::new(socket), worker).map_err(failed)?;
            }
        }
        Ok(Running {
            addresses,
            counters,
            streams,
            query_log,
        })
    }
}

/// Workers and listeners that serve. They end with the supervisor's token, not with this handle.
#[derive(Debug)]
#[must_use]
pub struct Running {
    addresses: Vec<SocketAddr>,
    counters: Vec<Arc<Counters>>,
    streams: Arc<Streams>,
    query_log: Option<QueryLog>,
}

impl Running {
    /// Gives the query log, if there is one, to be run: until then its records wait, and those that find no room are dropped.
    pub fn take_query_log(&mut self) -> Option<QueryLog> {
        self.query_log.take()
    }

    /// Gives the addresses served, ports resolved, in the order of the configuration.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Gives the counters of all workers and lanes, to be summed at scrape.
    #[must_use]
    pub fn counters(&self) -> &[Arc<Counters>] {
        &self.counters
    }

    /// Gives the counts of connections.
    #[must_use]
    pub fn streams(&self) -> &Arc<Streams> {
        &self.streams
    }
}

/// Counts the cores that we may use.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Tells whether replies must name their source: only where the kernel could choose another.
fn packet_info(address: SocketAddr) -> PacketInfo {
    if address.ip().is_unspecified() {
        PacketInfo::On
    } else {
        PacketInfo::Off
    }
}

/// Binds all sockets of one address.
fn listen(address: SocketAddr, workers: usize) -> Result<Listen, TransportError> {
    let mut attempts = if address.port() == 0 {
        PORT_ATTEMPTS
    } else {
        1
    };
    loop {
        attempts -= 1;
        match listen_once(address, workers) {
            // The port that UDP got is taken over TCP.
            Err(TransportError::InUse { .. }) if attempts > 0 => {}
            other => return other,
        }
    }
}

/// Binds all sockets of one address, to the port that the first one gets.
fn listen_once(wanted: SocketAddr, workers: usize) -> Result<Listen, TransportError> {
    let udp_failed = |source| TransportError::binding(wanted, "UDP", source);
    let first = bind_udp(wanted).map_err(udp_failed)?;
    let address = first.local_addr().map_err(udp_failed)?;
    let tcp =
        bind_tcp(address).map_err(|source| TransportError::binding(address, "TCP", source))?;
    let mut udp = vec![first];
    for _ in 1..workers {
        udp.push(bind_udp(address).map_err(udp_failed)?);
    }
    Ok(Listen { address, udp, tcp })
}

/// Tells whether sockets of another process are bound to this address and would share it with ours: a server that is about to end,
/// or a second one started by mistake.
fn is_shared(address: SocketAddr) -> bool {
    if address.port() == 0 {
        return false;
    }
    let alone = || {
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())
    };
    alone().is_err_and(|error: io::Error| error.kind() == io::ErrorKind::AddrInUse)
}

/// Binds one UDP socket.
fn bind_udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if address.port() == 0 {
        // With SO_REUSEPORT the kernel would hand out a port that another socket of the same user shares already.
        socket.bind(&address.into())?;
        socket.set_reuse_port(true)?;
    } else {
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
    }
    // Best effort: a smaller buffer loses bursts, nothing else.
    let _ = socket.set_recv_buffer_size(BUFFER_OCTETS);
    let _ = socket.set_send_buffer_size(BUFFER_OCTETS);
    socket.set_read_timeout(Some(RECEIVE_TIMEOUT))?;
    socket.set_write_timeout(Some(SEND_TIMEOUT))?;
    let socket = UdpSocket::from(socket);
    udp::set_options(&socket, packet_info(address))?;
    Ok(socket)
}

/// Binds one TCP listener.
fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // A restart finds connections of the process before in TIME_WAIT, or that process still draining.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
