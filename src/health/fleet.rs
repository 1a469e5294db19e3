//! All monitors of this node.

use std::time::Duration;

use crate::model::{EndpointIndex, Moment, Target, Verdict};

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
    /// The connection broke off, or the network was unreachable.
    Broken,
    /// TLS failed: certificate, name or handshake.
    Tls,
    /// HTTP with a code that is not expected.
    Status(u16),
    /// Something answered, but not as expected.
    Protocol,
    /// This node could not even try (no descriptor, no port): judged as nothing.
    Local,
}

/// The result of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Whose.
    pub monitor: MonitorId,
    /// How long it took, or why it failed.
    pub result: Result<Duration, ProbeError>,
}

/// What changed for steering: the verdict, or whether it is in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flip {
    /// Whose.
    pub monitor: MonitorId,
    /// The verdict from now on.
    pub verdict: Verdict,
    /// The verdict before: equal when only the doubt changed.
    pub before: Verdict,
    /// Checks went against the verdict, not enough of them to flip it.
    pub in_doubt: bool,
    /// The endpoints it speaks for.
    pub endpoints: Vec<EndpointIndex>,
}

/// What is known of one monitor, for status and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorReport {
    /// What it probes.
    pub target: Target,
    /// Its verdict.
    pub verdict: Verdict,
    /// Checks went against the verdict.
    pub in_doubt: bool,
    /// The last result, if any.
    pub last: Option<Result<Duration, ProbeError>>,
    /// It never succeeded since its first round: a wrong check must not hide.
    pub never_succeeded: bool,
    /// How many endpoints it speaks for.
    pub endpoints: usize,
}

/// All monitors. Deterministic: equal calls give equal results.
#[derive(Debug, Default)]
pub struct Fleet {
    todo: (),
}

impl Fleet {
    /// Makes an empty fleet; `seed` spreads first probes and jitter.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let _ = seed;
        todo!()
    }

    /// Adds and takes away endpoints. Equal targets share one monitor, whose verdict the newcomer takes over at once (such
    /// flips are returned). An endpoint added again moves to its new target.
    pub fn change(
        &mut self,
        watch: Vec<(EndpointIndex, Target)>,
        unwatch: &[EndpointIndex],
        now: Moment,
    ) -> Vec<Flip> {
        let _ = (watch, unwatch, now);
        todo!()
    }

    /// Sets verdicts remembered from before a restart, for targets never observed yet. Unknown targets are ignored.
    pub fn restore(&mut self, verdicts: &[(Target, Verdict)]) -> Vec<Flip> {
        let _ = verdicts;
        todo!()
    }

    /// Gives at most `limit` probes that are due; each stays out until observed.
    pub fn due(&mut self, now: Moment, limit: usize) -> Vec<ProbeOrder> {
        let _ = (now, limit);
        todo!()
    }

    /// Tells when the next probe is due; `None`: nothing to probe.
    #[must_use]
    pub fn next_due(&self) -> Option<Moment> {
        todo!()
    }

    /// Takes the result of a probe. A first failure has the target probed again at once.
    pub fn observe(&mut self, observation: Observation, now: Moment) -> Option<Flip> {
        let _ = (observation, now);
        todo!()
    }

    /// Reports on every monitor.
    pub fn table(&self) -> impl Iterator<Item = MonitorReport> {
        std::iter::empty()
    }
}
