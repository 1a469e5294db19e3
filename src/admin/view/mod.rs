//! What is shown, made of what the node knows: the one place that turns status, snapshot, reports and journal into what the API
//! says. The dashboard shows the same.

mod audit;
mod catalog;
mod challenges;
mod clusters;
mod delegations;
mod empty;
mod endpoints;
mod events;
mod explain;
mod leaving;
mod members;
mod monitors;
mod objects;
mod operate;
mod places;
mod policies;
mod query;
mod relay;
mod safe;
mod senders;
mod services;
mod sources;
mod spoken;
mod status;
mod words;
mod zones;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::audit::Audit;
use super::dto::EventDto;
use super::history::HistoryView;
use super::identity::Identity;
use super::sources::Sources;
use crate::controller::{ControllerHandle, World};
use crate::health::MonitorTable;
use crate::model::ClusterIndex;
use crate::snapshot::{Snapshot, SnapshotReader};
use crate::vantage::Vantage;
pub(super) use catalog::LOOK;
use catalog::{Library, Look};
use delegations::Delegations;

pub(super) use events::{Wanted, said};
pub(super) use members::{held_deletions, refused_objects};
pub use query::{EventQuery, ExplainQuery, MonitorQuery, Paging, ServiceQuery};
pub use relay::note_fetched;

/// Seconds of one step of the history.
const STEP_SECONDS: u32 = 5;
/// Events that a slow listener may lag behind.
const LAG: usize = 1024;
/// How often what nobody looks at is let go.
const SWEEP: Duration = Duration::from_secs(30);
/// How often drains are looked at: are they safe to stop?
const DRAINS: Duration = Duration::from_secs(1);

/// Who changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The name of the token or of the bearer's subject.
    pub name: String,
    /// Its role.
    pub role: String,
    /// From where.
    pub from: std::net::IpAddr,
    /// The request's number, for the audit log.
    pub request: String,
}

impl From<&Identity> for Actor {
    fn from(identity: &Identity) -> Self {
        Self {
            name: identity.name.to_string(),
            role: identity.role.word().to_owned(),
            from: identity.from,
            request: identity.request.to_string(),
        }
    }
}

/// Why something could not be shown or done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// There is none of this name.
    #[error("there is no {0}")]
    NotFound(String),
    /// What was asked makes no sense; the words say what would.
    #[error("{0}")]
    Invalid(String),
    /// It stands against what is there.
    #[error("{0}")]
    Conflict(String),
    /// The node is going down.
    #[error("the node is going down")]
    Gone,
}

/// Reads what the node knows. Cheap to clone.
#[derive(Clone, Debug)]
pub struct View(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sources: Sources,
    reader: SnapshotReader,
    vantage: Vantage,
    /// The path of the configuration file, as it was given.
    configuration: String,
    library: Library,
    delegations: Delegations,
    /// Taken by whoever does them.
    jobs: Mutex<Option<delegations::Jobs>>,
    /// Events as the API says them, for all who listen.
    live: broadcast::Sender<EventDto>,
}

impl View {
    /// Makes the view of a node.
    #[must_use]
    pub fn new(
        sources: Sources,
        reader: SnapshotReader,
        vantage: Vantage,
        configuration: String,
    ) -> Self {
        let (delegations, jobs) = Delegations::new();
        Self(Arc::new(Inner {
            sources,
            reader,
            vantage,
            configuration,
            library: Library::default(),
            delegations,
            jobs: Mutex::new(Some(jobs)),
            live: broadcast::channel(LAG).0,
        }))
    }

    /// Passes events on to those who listen, says which drains are safe to stop, lets go of what nobody looks at, and looks
    /// delegations up, until the token falls.
    pub async fn run(self, token: CancellationToken) {
        let jobs = self.0.jobs.lock().map_or(None, |mut jobs| jobs.take());
        let lookups = async {
            if let Some(jobs) = jobs {
                jobs.run(token.clone()).await;
            }
        };
        tokio::join!(self.pass_on(token.clone()), lookups);
    }

    /// Passes events on, says which drains are safe to stop, and lets go of what nobody looks at.
    async fn pass_on(&self, token: CancellationToken) {
        let mut events = self.controller().journal().subscribe();
        let mut sweep = tokio::time::interval(SWEEP);
        let mut drains = tokio::time::interval(DRAINS);
        let mut told = safe::Told::default();
        loop {
            // Cancel-safe: all arms only wait.
            tokio::select! {
                () = token.cancelled() => return,
                _ = sweep.tick() => self.0.library.sweep().await,
                _ = drains.tick() => self.tell_safe(&mut told).await,
                event = events.recv() => match event {
                    // Nobody may listen.
                    Ok(event) => drop(self.0.live.send(words::event(&event))),
                    // Who listens finds the gap in the numbers, and what is missing in the ring.
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return,
                },
            }
        }
    }

    /// Gives this node among its peers.
    pub(super) fn vantage(&self) -> &Vantage {
        &self.0.vantage
    }

    /// Gives a receiver that sees each publish.
    #[must_use]
    pub fn publishes(&self) -> watch::Receiver<Arc<crate::controller::Status>> {
        self.controller().watch_status()
    }

    /// Gives what the node offers to those who look.
    pub(super) fn sources_of_node(&self) -> &Sources {
        &self.0.sources
    }

    fn controller(&self) -> &ControllerHandle {
        &self.0.sources.controller
    }

    fn reports(&self) -> &watch::Receiver<Arc<MonitorTable>> {
        &self.0.sources.reports
    }

    fn audit_log(&self) -> &Audit {
        &self.0.sources.audit
    }

    fn history(&self) -> Arc<HistoryView> {
        self.0.sources.history.view()
    }

    fn configuration_path(&self) -> String {
        self.0.configuration.clone()
    }

    /// Gives the snapshot in force. Held for a page only: drains wait for those that are held.
    fn snapshot(&self) -> Arc<Snapshot> {
        self.0.reader.load_owned()
    }

    /// Looks at all that exists.
    async fn look(&self) -> Option<Look> {
        self.0.library.look(self.controller(), &self.0.reader).await
    }
}

/// Makes a number of a count.
fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Rounds a rate to three digits behind the point.
fn rounded(rate: f32) -> f64 {
    (f64::from(rate) * 1000.0).round() / 1000.0
}

/// Finds the cluster that a list is asked for, if one is.
fn find_cluster(world: &World, name: Option<&str>) -> Result<Option<ClusterIndex>, ViewError> {
    let Some(name) = name else {
        return Ok(None);
    };
    let mut clusters = world.clusters.iter();
    match clusters.find(|(_, cluster)| cluster.id.as_str() == name) {
        Some((index, _)) => Ok(Some(*index)),
        None => {
            let shown = words::shorten(name);
            Err(ViewError::NotFound(format!("cluster {shown}")))
        }
    }
}

/// Reads a cursor that is a position.
fn offset(paging: &Paging) -> Result<usize, ViewError> {
    let at = paging.cursor.as_deref().map(str::parse::<usize>);
    at.transpose()
        .map(Option::unwrap_or_default)
        .map_err(|_| bad_cursor())
}

/// Gives the cursor of the next page; `None` on the last.
fn next(from: usize, paging: &Paging, total: usize) -> Option<String> {
    let next = from.saturating_add(paging.limit());
    (next < total).then(|| next.to_string())
}

/// Says that a cursor is none.
fn bad_cursor() -> ViewError {
    ViewError::Invalid("cursor: use `next` of the page before".to_owned())
}
