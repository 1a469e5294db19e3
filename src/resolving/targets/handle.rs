//! How other tasks say what is to be resolved, and read what is known.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::own::OwnZones;
use super::table::Table;
use crate::model::{LowerName, Moment};

/// `resolver` of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetsConfig {
    /// Resolvers to ask, in order; none: the system's. They must resolve what is asked, not only what they serve.
    pub nameservers: Vec<SocketAddr>,
}

/// What is wanted. The last word counts; words between may be missed.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) names: Arc<BTreeSet<LowerName>>,
    pub(super) own: OwnZones,
    pub(super) config: TargetsConfig,
}

/// Says what is to be resolved. After the task has ended, words are dropped and the table stays as it was.
#[derive(Clone, Debug)]
pub struct TargetsHandle {
    pub(super) wanted: watch::Sender<Wanted>,
    pub(super) table: watch::Receiver<Arc<Table>>,
    pub(super) started: Instant,
}

impl TargetsHandle {
    /// Sets which names are to be resolved, at most 65,536: all of them, every time. What is left out is forgotten. `cuts` are
    /// those of our zones above any of the names: these are not ours to answer.
    pub fn want(&self, names: BTreeSet<LowerName>, cuts: BTreeSet<LowerName>) {
        self.wanted.send_if_modified(|wanted| {
            let changed = *wanted.names != names || *wanted.own.cuts != cuts;
            if changed {
                wanted.names = Arc::new(names);
                wanted.own.cuts = Arc::new(cuts);
            }
            changed
        });
    }

    /// Sets the apexes of our own zones. Targets in one are [`TargetState::Own`](super::TargetState::Own) and never
    /// asked for; an alias that leads there from outside is a failure. Either would be a question to ourselves, whose answer
    /// waits for the answer.
    pub fn own(&self, apexes: Vec<LowerName>) {
        self.wanted.send_if_modified(|wanted| {
            let changed = *wanted.own.apexes != *apexes;
            if changed {
                wanted.own.apexes = apexes.into();
            }
            changed
        });
    }

    /// Sets whom to ask from now on.
    pub fn configure(&self, config: TargetsConfig) {
        self.wanted.send_if_modified(|wanted| {
            let changed = wanted.config != config;
            if changed {
                wanted.config = config;
            }
            changed
        });
    }

    /// Gives what is known: renewed at once, then at most every 100 ms.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<Table>> {
        self.table.clone()
    }

    /// Gives the moment by the clock of the table.
    #[must_use]
    pub fn now(&self) -> Moment {
        Moment(self.started.elapsed())
    }
}
