//! What goes between the fleet, the prober and the controller.

use std::fmt;
use std::time::Duration;

use crate::model::{EndpointIndex, Target, Verdict};

/// A monitor's number; reused after it is gone, never while one of its probes is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonitorId(pub u32);

/// Asks the prober for one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeOrder {
    /// Whose.
    pub monitor: MonitorId,
    /// What to probe.
    pub target: Target,
}

/// Why a probe failed: a closed set, for reports and labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeError {
    /// Nothing came in time.
    Timeout,
    /// The connection was refused.
    Refused,
    /// The connection broke off, or something on the way called the target unreachable.
    Broken,
    /// TLS failed: certificate, name or handshake.
    Tls,
    /// HTTP with a code that is not expected.
    Status(u16),
    /// Something answered, but not as expected; or the check itself cannot be sent.
    Protocol,
    /// This node could not even try (no descriptor, no port, no route, stalled itself): judged as nothing.
    Local,
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("timeout"),
            Self::Refused => f.write_str("connection refused"),
            Self::Broken => f.write_str("connection broken"),
            Self::Tls => f.write_str("TLS failed"),
            Self::Status(code) => write!(f, "HTTP status {code}"),
            Self::Protocol => f.write_str("unexpected reply"),
            Self::Local => f.write_str("this node could not probe"),
        }
    }
}

/// Why a target may not be probed: a closed set, for reports and labels. Where several fit, the first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// This node itself listens there.
    Own,
    /// A cloud hands out credentials and names of machines there.
    Metadata,
    /// This machine.
    Loopback,
    /// This machine's neighbors.
    LinkLocal,
    /// No machine's; Linux takes it for this one.
    Unspecified,
    /// A group of machines.
    Multicast,
    /// Nobody's, broadcast among it.
    Reserved,
    /// Somebody's own network.
    Private,
}

impl Refusal {
    /// All of them, in their order.
    pub const ALL: [Self; 8] = [
        Self::Own,
        Self::Metadata,
        Self::Loopback,
        Self::LinkLocal,
        Self::Unspecified,
        Self::Multicast,
        Self::Reserved,
        Self::Private,
    ];

    /// Gives its label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Metadata => "metadata",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link_local",
            Self::Unspecified => "unspecified",
            Self::Multicast => "multicast",
            Self::Reserved => "reserved",
            Self::Private => "private",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "listener of this node",
            Self::Metadata => "metadata service of a cloud",
            Self::Loopback => "loopback address",
            Self::LinkLocal => "link-local address",
            Self::Unspecified => "unspecified address",
            Self::Multicast => "multicast address",
            Self::Reserved => "reserved address",
            Self::Private => "private address",
        })
    }
}

/// The result of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Whose.
    pub monitor: MonitorId,
    /// How long it took, or why it failed.
    pub result: Result<Duration, ProbeError>,
}

/// What changed: the verdict, whether it is in doubt, or whether the target may be probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flip {
    /// Whose.
    pub monitor: MonitorId,
    /// The verdict from now on.
    pub verdict: Verdict,
    /// The verdict before: equal when only the doubt changed.
    pub before: Verdict,
    /// Checks went against the verdict, not enough of them to flip it. Unknown is answered as Up: failures speak against it.
    pub in_doubt: bool,
    /// Why the target may not be probed; the verdict is Unknown then.
    pub refused: Option<Refusal>,
    /// The endpoints it speaks for, never empty.
    pub endpoints: Vec<EndpointIndex>,
    /// What is probed.
    pub target: Target,
    /// A probe brought it about; else endpoints took over a verdict that was there already, or the target was refused.
    pub observed: bool,
    /// Why the last probe failed, if it did.
    pub reason: Option<ProbeError>,
}

/// What is known of one monitor, for status and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorReport<'a> {
    /// What it probes.
    pub target: &'a Target,
    /// Its verdict.
    pub verdict: Verdict,
    /// Checks went against the verdict.
    pub in_doubt: bool,
    /// Why the target may not be probed; the verdict is Unknown then.
    pub refused: Option<Refusal>,
    /// The last result, if any, to the microsecond.
    pub last: Option<Result<Duration, ProbeError>>,
    /// It never succeeded since its first round: a wrong check must not hide.
    pub never_succeeded: bool,
    /// The first of the endpoints it speaks for: they share an address, and nearly always a cluster.
    pub endpoint: EndpointIndex,
    /// How many endpoints it speaks for.
    pub endpoints: usize,
}
