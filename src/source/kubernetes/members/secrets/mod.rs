//! Secrets that have the kubeconfigs of clusters: those of one namespace that a selector of labels names, watched as kinds of
//! members are. A list that a server was asked for and gave is all that empties anything; a server that is not seen empties nothing.

mod list;
mod object;
mod store;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::client::keep;
use super::clock::Clock;
use super::course::Course;
use super::heartbeat::{beat, reached};
use super::kinds::Resource;
use super::member::{Member, Settings};
use super::server::Server;
use super::sink::Sink;
use super::status::Board;
use super::watch::Watch;
use crate::lifecycle::Supervisor;
use crate::model::{Chance, ClusterIndex};
use crate::source::kubernetes::directory::Listing;
use crate::source::kubernetes::rules::{Config, MemberConfig, SecretsPlace};
use crate::source::kubernetes::world::World;

pub(super) use list::SecretList;

/// The tasks of one place end within.
const END: Duration = Duration::from_secs(5);
/// The kind.
const SECRETS: Resource = Resource {
    group: "",
    version: "v1",
    plural: "secrets",
};

/// What is known of the Secrets of one place; filled by its watch.
#[derive(Debug, Default)]
pub(super) struct Found(Mutex<Option<Arc<Listing>>>);

impl Found {
    /// Puts the whole list in the place of the one before.
    fn publish(&self, listing: Listing) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(Arc::new(listing));
    }

    fn get(&self) -> Option<Arc<Listing>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }
}

/// One place that is watched.
#[derive(Clone, Debug)]
struct Watched {
    place: Arc<SecretsPlace>,
    found: Arc<Found>,
    board: Arc<Board>,
}

/// Reaches what is known of Secrets. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct SecretsHandle {
    wanted: Arc<watch::Sender<Vec<Arc<SecretsPlace>>>>,
    watched: Arc<Mutex<Vec<Watched>>>,
}

impl SecretsHandle {
    /// Says which places are watched from now on.
    pub fn set(&self, places: Vec<Arc<SecretsPlace>>) {
        self.wanted.send_if_modified(|known| {
            let is_new = *known != places;
            *known = places;
            is_new
        });
    }

    /// Gives the clusters of a place as they were listed last since the start, `None`: they never were; and why they are not
    /// seen now.
    #[must_use]
    pub fn look(&self, place: &SecretsPlace) -> (Option<Arc<Listing>>, Option<String>) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let found = watched.iter().find(|one| *one.place == *place);
        match found {
            Some(one) => (one.found.get(), one.board.secrets_error()),
            None => (None, None),
        }
    }

    /// Pretends that a place was listed, for tests of others.
    #[cfg(test)]
    pub fn pretend(&self, place: &Arc<SecretsPlace>, listing: Listing) {
        let found = Arc::new(Found::default());
        found.publish(listing);
        self.forget(&[]);
        let board = Arc::new(board_of(place));
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.push(Watched {
            place: place.clone(),
            found,
            board,
        });
    }

    /// Watches the places that are wanted, as that changes, until the token falls.
    pub async fn run(self, seed: u64, token: CancellationToken) {
        let mut wanted = self.wanted.subscribe();
        let mut chance = Chance::new(seed);
        let mut all = Supervisor::under(&token);
        let (failing, mut failures) = mpsc::channel(1);
        let mut running: Vec<(Arc<SecretsPlace>, CancellationToken)> = Vec::new();
        loop {
            let places = wanted.borrow_and_update().clone();
            running.retain(|(place, token)| {
                let stays = places.contains(place);
                if !stays {
                    token.cancel();
                }
                stays
            });
            self.forget(&places);
            for place in places {
                if !running.iter().any(|(known, _)| *known == place) {
                    let tasks = self.start(&place, chance.seed(), &all.token());
                    running.push((place, tasks.token()));
                    all.spawn_finite("secrets", run_one(tasks, failing.clone()));
                }
            }
            // Cancel-safe: all arms only wait.
            let is_on = tokio::select! {
                // It ends with the token.
                _ = all.run() => false,
                // One that failed takes the process down, as every critical task does.
                _ = failures.recv() => false,
                changed = wanted.changed() => changed.is_ok(),
            };
            if !is_on {
                break;
            }
        }
        all.shut_down(END).await;
    }

    /// Forgets places that are not wanted any more.
    fn forget(&self, places: &[Arc<SecretsPlace>]) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|one| places.contains(&one.place));
    }

    /// Begins to watch a place.
    fn start(&self, place: &Arc<SecretsPlace>, seed: u64, token: &CancellationToken) -> Supervisor {
        let mut tasks = Supervisor::under(token);
        let board = Arc::new(board_of(place));
        let defaults = Config::default();
        let (_, settings) = watch::channel(Settings {
            rules: defaults.rules,
            stale_after: defaults.stale_after,
            write_back: None,
        });
        let member = Member::new(board.clone(), Clock::start(), settings, seed);
        let member = Arc::new(member);
        let found = Arc::new(Found::default());
        let (servers, served) = watch::channel(None);
        let sink = Sink::Secrets(SecretList::new(place.clone(), found.clone()));
        let watching = follow(member.clone(), served.clone(), sink);
        let beating = beat(member.clone(), served);
        let (access, accesses) = watch::channel(place.access.clone());
        let keeping = async move {
            keep(member, accesses, servers).await;
            // It never changes: another one is another place.
            drop(access);
        };
        let token = tasks.token();
        tasks.spawn("watch", until(token.clone(), watching));
        tasks.spawn("heartbeat", until(token.clone(), beating));
        tasks.spawn("client", until(token, keeping));
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.push(Watched {
            place: place.clone(),
            found,
            board,
        });
        tasks
    }
}

/// Makes the notes of a place. They are no member's: nobody else asks for them.
fn board_of(place: &SecretsPlace) -> Board {
    let (id, access) = (place.cluster.clone(), place.access.clone());
    let config = MemberConfig::new(ClusterIndex(0), id, access);
    let overview = World::new(Config::default().rules, Vec::new()).overview();
    Board::new(&config, overview, Arc::default())
}

/// Runs the tasks of one place to their end, and tells when that is a failure.
async fn run_one(mut tasks: Supervisor, failing: mpsc::Sender<()>) {
    let is_well = tasks.run().await;
    tasks.shut_down(END).await;
    if !is_well {
        // One failure is enough to end everything.
        let _ = failing.try_send(());
    }
}

/// Does something until the token falls.
async fn until(token: CancellationToken, task: impl Future<Output = ()>) {
    token.run_until_cancelled(task).await;
}

/// Follows the Secrets for as long as it is not dropped, with whatever client there is.
async fn follow(
    member: Arc<Member>,
    mut servers: watch::Receiver<Option<Arc<Server>>>,
    mut sink: Sink,
) {
    let mut anew = member.anew();
    let mut chance = member.chance();
    loop {
        let Some(server) = reached(&mut servers).await else {
            return;
        };
        let course = Course::new(false, Chance::new(chance.seed()));
        let mut watch = Watch::new(&member, server, SECRETS, &mut sink, course);
        watch.spread(|span| chance.part(span));
        anew.mark_unchanged();
        loop {
            // Cancel-safe: a watch that is dropped in its middle has handed on what it counted, and begins with a list.
            tokio::select! {
                never = watch.run() => match never {},
                changed = servers.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                _ = anew.changed() => watch.anew(),
            }
        }
    }
}
