//! How other tasks talk to the prober.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::config::Config;
use crate::health::MonitorTable;
use crate::model::{EndpointIndex, Target, Verdict};

/// Commands that wait for the prober. When full, the caller waits: the prober takes commands whatever else it waits for, so
/// that is the time of a few changes.
pub(super) const COMMANDS: usize = 64;

/// What the prober is told.
#[derive(Debug)]
pub(super) enum Command {
    /// What [`crate::health::Fleet::change`] takes, and then what [`crate::health::Fleet::restore`] does.
    Change(
        Vec<(EndpointIndex, Target)>,
        Vec<EndpointIndex>,
        Vec<(Target, Verdict)>,
    ),
    /// New limits.
    Configure(Config),
}

/// Tells the prober what to watch. After the prober has ended, commands are dropped.
#[derive(Clone, Debug)]
pub struct ProberHandle {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) reports: watch::Receiver<Arc<MonitorTable>>,
}

impl ProberHandle {
    /// Adds and takes away endpoints, `unwatch` first. An endpoint added again moves to its new target. Flips that follow at
    /// once (a newcomer to a judged target) come through the channel of flips like all others. `recalled` are verdicts from
    /// before a restart, for targets without a verdict yet; those not watched are ignored. No report has the targets without them.
    pub async fn change(
        &self,
        watch: Vec<(EndpointIndex, Target)>,
        unwatch: Vec<EndpointIndex>,
        recalled: Vec<(Target, Verdict)>,
    ) {
        self.tell(Command::Change(watch, unwatch, recalled)).await;
    }

    /// Gives the reports of all monitors: renewed once a second while anything is observed, and after flips at once, as long
    /// as that takes no more than a twentieth of the time.
    #[must_use]
    pub fn reports(&self) -> watch::Receiver<Arc<MonitorTable>> {
        self.reports.clone()
    }

    /// Sets new limits. Probes out go on; a lower limit holds as they end.
    pub async fn configure(&self, config: Config) {
        self.tell(Command::Configure(config)).await;
    }

    async fn tell(&self, command: Command) {
        // The prober is gone only when the node goes down.
        let _ = self.commands.send(command).await;
    }
}
