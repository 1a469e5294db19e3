//! Configured checks and what they are aimed at.

use std::net::SocketAddr;
use std::time::Duration;

/// A range of HTTP status codes, both ends included, 100..=599.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatusRange {
    /// Lowest code.
    pub first: u16,
    /// Highest code.
    pub last: u16,
}

/// How far the certificate of an `https` target is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsMode {
    /// Chain and name are checked against the system's trust anchors.
    #[default]
    Verify,
    /// Nothing is checked.
    Skip,
    /// The leaf certificate has this SHA-256; nothing else is checked.
    Pin([u8; 32]),
}

/// An HTTP or HTTPS check.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpCheck {
    /// `None` for clear text.
    pub tls: Option<TlsMode>,
    /// The port.
    pub port: u16,
    /// Path and query, begins with `/`, at most 1024 printable ASCII characters.
    pub path: Box<str>,
    /// The Host header and SNI; `None`: the target's address, without SNI.
    pub host: Option<Box<str>>,
    /// `HEAD` instead of `GET`.
    pub head: bool,
    /// The codes that mean success; never empty.
    pub expect: Vec<StatusRange>,
}

/// A TCP connect, with optional talk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TcpCheck {
    /// The port.
    pub port: u16,
    /// What is sent after the connection stands; may be empty.
    pub send: Box<[u8]>,
    /// What must come back within the first 4096 octets, anywhere in them; empty: the connection is enough.
    pub expect: Box<[u8]>,
}

/// What a probe does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// `http` and `https`.
    Http(HttpCheck),
    /// `tcp`.
    Tcp(TcpCheck),
}

impl Check {
    /// A TCP connect, and no talk.
    #[must_use]
    pub fn connect(port: u16) -> Self {
        Self::Tcp(TcpCheck {
            port,
            send: Box::default(),
            expect: Box::default(),
        })
    }

    /// Gives the port it connects to.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            Self::Http(check) => check.port,
            Self::Tcp(check) => check.port,
        }
    }
}

/// On whose word a target is probed. Equal checks of one address on different words are two targets, each with a verdict of its
/// own: no tenant's check speaks for an operator's endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The configuration file names the address: it is trusted.
    #[default]
    Operator,
    /// A Kubernetes object names the address, whoever wrote the check: it is hostile until the prober's guard let it through.
    Tenant,
}

/// A monitor as configured: what is checked, how often, and how many checks in a row flip the verdict.
///
/// `Option<MonitorSpec>` says `none` with `None`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonitorSpec {
    /// What a probe does.
    pub check: Check,
    /// From the start of one probe to the start of the next, 100 ms..=1 h; default 2 s.
    pub interval: Duration,
    /// A probe that takes longer has failed; at most the interval; default 1 s.
    pub timeout: Duration,
    /// Successes in a row that make it Up, 1..=20; default 2.
    pub rise: u8,
    /// Failures in a row that make it Down, 1..=20; default 2.
    pub fall: u8,
    /// On whose word.
    pub origin: Origin,
}

impl MonitorSpec {
    /// [`Self::interval`] where nobody says it.
    pub const INTERVAL: Duration = Duration::from_secs(2);
    /// [`Self::timeout`] where nobody says it.
    pub const TIMEOUT: Duration = Duration::from_secs(1);
    /// [`Self::rise`] and [`Self::fall`] where nobody says them.
    pub const COUNT: u8 = 2;

    /// Makes one with the times and counts that are usual.
    #[must_use]
    pub fn new(check: Check, origin: Origin) -> Self {
        Self {
            check,
            interval: Self::INTERVAL,
            timeout: Self::TIMEOUT,
            rise: Self::COUNT,
            fall: Self::COUNT,
            origin,
        }
    }
}

/// What one probe is aimed at: equal targets share one probe.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Address and port.
    pub address: SocketAddr,
    /// The check and its times.
    pub spec: std::sync::Arc<MonitorSpec>,
}
