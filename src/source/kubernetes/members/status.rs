//! How a member cluster stands: what its tasks note, and what others may know.
//!
//! ```text
//!            first answer, and Services and EndpointSlices listed once
//!   Never ---------------------------------------------------> Synced
//!                                                               |  ^
//!     no answer for `stale_after`, or a needed kind without     v  |  an answer, and both are watched again
//!     a watch for as long, or refused                          Stale
//! ```
//!
//! Nothing of it changes what is served: a cluster that is `Stale` is one that is not seen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::clock::Stamp;
use super::fault::Masks;
use super::kinds::{Subject, WANTED};
use crate::model::{ClusterId, ClusterIndex, Moment, WallTime};
use crate::source::kubernetes::records::Watched;
use crate::source::kubernetes::rules::MemberConfig;
use crate::source::kubernetes::world::Overview;
use crate::source::kubernetes::write_back::WriteBackStatus;

/// Kinds without which a cluster is not synced; the others add to what they say.
const NEEDED: [Watched; 2] = [Watched::Services, Watched::EndpointSlices];

/// How a cluster is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// It was never synced since the start.
    #[default]
    Never,
    /// What is known of it is what it has.
    Synced,
    /// It was synced, and is not seen now.
    Stale {
        /// The last moment that it was seen.
        since: WallTime,
    },
}

/// How one kind is followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KindState {
    /// It is not: nothing was asked yet, or the last request failed and the next waits its turn.
    #[default]
    Waiting,
    /// Its list is being read.
    Listing,
    /// Changes come as they happen.
    Watching,
    /// The server has no such kind, at no version that is read here.
    Unserved,
    /// The server does not let us (401, 403), and why. What is known stands.
    Refused(Box<str>),
}

/// One kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindStatus {
    /// Which.
    pub watched: Watched,
    /// How it is followed.
    pub state: KindState,
    /// At which version.
    pub version: Option<&'static str>,
    /// Objects that are known.
    pub objects: usize,
    /// Objects that are left out because there are too many.
    pub left_out: usize,
    /// Lists that were read to their end since the start: one, and one more for each time that it began anew.
    pub lists: u64,
    /// Requests that failed since the start.
    pub failures: u64,
    /// Why the last one did; `None`: it did not.
    pub error: Option<Box<str>>,
}

/// One member cluster.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    /// Its index.
    pub cluster: ClusterIndex,
    /// Its name.
    pub id: ClusterId,
    /// How it is connected.
    pub link: Link,
    /// When its API server answered last.
    pub last_contact: Option<WallTime>,
    /// The version of its API server, such as `v1.36.2`.
    pub version: Option<Box<str>>,
    /// What an operator should know of the connection, such as a certificate that is not checked.
    pub warnings: Vec<&'static str>,
    /// What is wrong now, in one line of at most 256 octets and without any secret; `None`: nothing.
    pub last_error: Option<String>,
    /// Why its kubeconfig cannot be used as it is now, as plain as `last_error`; `None`: it can. What was read of an earlier one
    /// stays in use.
    pub unusable: Option<String>,
    /// Every kind, in the order of [`Watched`].
    pub kinds: Vec<KindStatus>,
    /// What its objects say.
    pub overview: Arc<Overview>,
    /// How Events are written there.
    pub write_back: WriteBackStatus,
}

/// What is noted of one thing that is followed.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub(super) state: KindState,
    pub(super) version: Option<&'static str>,
    pub(super) objects: usize,
    pub(super) left_out: usize,
    pub(super) lists: u64,
    pub(super) failures: u64,
    pub(super) error: Option<Box<str>>,
    /// The last moment that it was seen as it is.
    live: Option<Stamp>,
}

/// Whether what is known of a kind is what there is.
enum Freshness {
    Fresh,
    Never,
    Old(WallTime),
}

impl Followed {
    /// Notes how it is followed from now on. Tells whether that is new.
    pub(super) fn enter(&mut self, state: KindState, now: Stamp) -> bool {
        let was_live = self.state == KindState::Watching;
        if was_live || state == KindState::Watching {
            self.live = Some(now);
        }
        let is_new = self.state != state;
        self.state = state;
        is_new
    }

    /// Notes that its list was read to its end.
    pub(super) fn listed(&mut self, now: Stamp) {
        self.live = Some(now);
        self.lists += 1;
    }

    fn freshness(&self, now: Moment, stale_after: Duration) -> Freshness {
        match (&self.state, self.live) {
            (KindState::Watching | KindState::Unserved, _) => Freshness::Fresh,
            (_, None) => Freshness::Never,
            (KindState::Refused(_), Some(live)) => Freshness::Old(live.wall),
            (_, Some(live)) if now.since(live.at) < stale_after => Freshness::Fresh,
            (_, Some(live)) => Freshness::Old(live.wall),
        }
    }
}

/// What is noted of one member.
#[derive(Debug)]
struct Notes {
    contact: Option<Stamp>,
    version: Option<Box<str>>,
    warnings: Vec<&'static str>,
    client_error: Option<Box<str>>,
    unusable: Option<Box<str>>,
    beat_error: Option<Box<str>>,
    discovery_error: Option<Box<str>>,
    /// Everything that is wanted, and Secrets behind it.
    followed: [Followed; WANTED.len() + 1],
    overview: Arc<Overview>,
    write_back: WriteBackStatus,
}

/// The notes of one member's tasks.
#[derive(Debug)]
pub(super) struct Board {
    cluster: ClusterIndex,
    id: ClusterId,
    notes: Mutex<Notes>,
    dirty: Arc<Notify>,
}

impl Board {
    /// Starts with nothing but what is held. Whoever waits on `dirty` is told of every note.
    pub(super) fn new(config: &MemberConfig, overview: Overview, dirty: Arc<Notify>) -> Self {
        let notes = Notes {
            contact: None,
            version: None,
            warnings: Vec::new(),
            client_error: None,
            unusable: None,
            beat_error: None,
            discovery_error: None,
            followed: std::array::from_fn(|_| Followed::default()),
            overview: Arc::new(overview),
            write_back: WriteBackStatus::default(),
        };
        Self {
            cluster: config.cluster,
            id: config.id.clone(),
            notes: Mutex::new(notes),
            dirty,
        }
    }

    /// Gives its index.
    pub(super) fn cluster(&self) -> ClusterIndex {
        self.cluster
    }

    /// Gives the name of the cluster.
    pub(super) fn id(&self) -> &ClusterId {
        &self.id
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        // What is held is always whole: every note is one assignment.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note<T>(&self, note: impl FnOnce(&mut Notes) -> T) -> T {
        let noted = note(&mut self.notes());
        self.dirty.notify_one();
        noted
    }

    /// Notes an answer of the server.
    pub(super) fn contact(&self, now: Stamp) {
        self.note(|notes| {
            notes.contact = Some(now);
            notes.beat_error = None;
        });
    }

    /// Notes a heartbeat that was missed.
    pub(super) fn missed(&self, why: Box<str>) {
        self.note(|notes| notes.beat_error = Some(why));
    }

    /// Notes that there is a client, and what an operator should know of it.
    pub(super) fn client(&self, warnings: Vec<&'static str>) {
        self.note(|notes| {
            notes.warnings = warnings;
            notes.client_error = None;
            notes.unusable = None;
        });
    }

    /// Notes what is wrong with the credentials, or that nothing is. Tells whether that is new.
    pub(super) fn client_error(&self, why: Option<Box<str>>) -> bool {
        self.note(|notes| {
            let is_new = notes.client_error != why;
            notes.client_error = why;
            is_new
        })
    }

    /// Notes why the kubeconfig cannot be used, or that it can.
    pub(super) fn kubeconfig(&self, unusable: Option<Box<str>>) {
        self.note(|notes| notes.unusable = unusable);
    }

    /// Notes the version of the server.
    pub(super) fn version(&self, version: Option<Box<str>>) {
        self.note(|notes| notes.version = version);
    }

    /// Notes whether the server said what it has.
    pub(super) fn discovery(&self, error: Option<Box<str>>) {
        self.note(|notes| notes.discovery_error = error);
    }

    /// Notes something of what is followed.
    pub(super) fn follow<T>(&self, subject: Subject, note: impl FnOnce(&mut Followed) -> T) -> T
    where
        T: Default,
    {
        let at = match subject {
            Subject::Kind(kind) => kind as usize,
            Subject::Definitions => Watched::ALL.len(),
            Subject::Secrets => WANTED.len(),
        };
        self.note(|notes| notes.followed.get_mut(at).map(note).unwrap_or_default())
    }

    /// Notes what the objects say.
    pub(super) fn overview(&self, overview: Overview) {
        let overview = Arc::new(overview);
        self.note(|notes| notes.overview = overview);
    }

    /// Notes how Events are written.
    pub(super) fn write_back(&self, status: WriteBackStatus) {
        self.note(|notes| notes.write_back = status);
    }

    /// Tells whether new kinds are told of as they come.
    pub(super) fn follows_definitions(&self) -> bool {
        let notes = self.notes();
        let definitions = notes.followed.get(Watched::ALL.len());
        definitions.is_some_and(|followed| followed.state == KindState::Watching)
    }

    /// Says what is wrong with the watch of Secrets, in one line without any secret; `None`: nothing.
    pub(super) fn secrets_error(&self) -> Option<String> {
        let notes = self.notes();
        let watch = notes.followed.last().and_then(|one| one.error.as_ref());
        let errors = [&notes.client_error, &notes.beat_error]
            .into_iter()
            .flatten();
        errors.chain(watch).next().map(ToString::to_string)
    }

    /// Says how the cluster is connected.
    pub(super) fn link(&self, now: Moment, stale_after: Duration) -> Link {
        self.notes().link(now, stale_after)
    }

    /// Says all of it.
    pub(super) fn status(&self, now: Moment, stale_after: Duration) -> MemberStatus {
        let notes = self.notes();
        let kind = |(followed, watched): (&Followed, Watched)| KindStatus {
            watched,
            state: followed.state.clone(),
            version: followed.version,
            objects: followed.objects,
            left_out: followed.left_out,
            lists: followed.lists,
            failures: followed.failures,
            error: followed.error.clone(),
        };
        MemberStatus {
            cluster: self.cluster,
            id: self.id.clone(),
            link: notes.link(now, stale_after),
            last_contact: notes.contact.map(|contact| contact.wall),
            version: notes.version.clone(),
            warnings: notes.warnings.clone(),
            last_error: notes.last_error(),
            unusable: notes.unusable.as_deref().map(ToOwned::to_owned),
            kinds: notes.followed.iter().zip(Watched::ALL).map(kind).collect(),
            overview: notes.overview.clone(),
            write_back: notes.write_back.clone(),
        }
    }
}

impl Notes {
    fn link(&self, now: Moment, stale_after: Duration) -> Link {
        let Some(contact) = self.contact else {
            return Link::Never;
        };
        let mut oldest = None;
        for needed in NEEDED {
            let Some(followed) = self.followed.get(needed as usize) else {
                continue;
            };
            match followed.freshness(now, stale_after) {
                Freshness::Fresh => {}
                Freshness::Never => return Link::Never,
                Freshness::Old(since) => {
                    oldest = Some(oldest.map_or(since, |other: WallTime| other.min(since)));
                }
            }
        }
        if now.since(contact.at) >= stale_after {
            let since = contact.wall;
            let since = oldest.map_or(since, |oldest: WallTime| oldest.min(since));
            return Link::Stale { since };
        }
        oldest.map_or(Link::Synced, |since| Link::Stale { since })
    }

    /// Gives the first thing that is wrong; what is wrong with the connection comes before what follows from it.
    fn last_error(&self) -> Option<String> {
        let errors = [&self.client_error, &self.beat_error, &self.discovery_error];
        let first = errors.into_iter().flatten().next().map(ToString::to_string);
        let first = first.or_else(|| {
            let mut followed = self.followed.iter().zip(&WANTED);
            followed.find_map(|(followed, wanted)| {
                let why = match (&followed.error, followed.left_out) {
                    (Some(error), _) => error.to_string(),
                    (None, 0) => return None,
                    (None, count) => format!("too many objects, {count} are left out"),
                };
                let is_kind = wanted.subject != Subject::Definitions;
                is_kind.then(|| {
                    Masks::default()
                        .said(&format!("{}: {why}", wanted.plural))
                        .into()
                })
            })
        });
        let unwritten = self.write_back.error.as_deref();
        first.or_else(|| unwritten.map(ToOwned::to_owned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::kubernetes::rules::{Access, Rules};
    use crate::source::kubernetes::world::World;

    const STALE_AFTER: Duration = Duration::from_secs(15);

    fn board() -> Board {
        let id = "aws".parse().unwrap();
        let config = MemberConfig::new(ClusterIndex(3), id, Access::InCluster);
        let overview = World::new(Arc::new(Rules::default()), Vec::new()).overview();
        Board::new(&config, overview, Arc::default())
    }

    /// A second, on both clocks; the wall clock is 1000 s ahead.
    fn at(second: u64) -> Stamp {
        Stamp {
            at: Moment(Duration::from_secs(second)),
            wall: WallTime((1000 + second) * 1000),
        }
    }

    fn enter(board: &Board, kind: Watched, state: KindState, second: u64) {
        board.follow(Subject::Kind(kind), |followed| {
            followed.enter(state, at(second))
        });
    }

    fn link(board: &Board, second: u64) -> Link {
        board.link(at(second).at, STALE_AFTER)
    }

    fn stale(second: u64) -> Link {
        Link::Stale {
            since: at(second).wall,
        }
    }

    /// A board that is synced since second 2.
    fn synced() -> Board {
        let board = board();
        board.contact(at(1));
        for kind in NEEDED {
            enter(&board, kind, KindState::Watching, 2);
        }
        board
    }

    #[test]
    fn synced_needs_an_answer_and_both_lists() {
        let board = board();
        assert_eq!(link(&board, 0), Link::Never);
        board.contact(at(1));
        enter(&board, Watched::Services, KindState::Watching, 2);
        assert_eq!(link(&board, 2), Link::Never);
        enter(
            &board,
            Watched::EndpointSlices,
            KindState::Refused("no".into()),
            2,
        );
        assert_eq!(link(&board, 2), Link::Never);
        enter(&board, Watched::EndpointSlices, KindState::Listing, 3);
        assert_eq!(link(&board, 3), Link::Never);
        enter(&board, Watched::EndpointSlices, KindState::Watching, 4);
        assert_eq!(link(&board, 4), Link::Synced);
    }

    #[test]
    fn without_answers_it_is_stale_in_time_and_synced_again_with_the_next() {
        let board = synced();
        assert_eq!(link(&board, 15), Link::Synced);
        assert_eq!(link(&board, 16), stale(1));
        board.contact(at(100));
        assert_eq!(link(&board, 100), Link::Synced);
        // What was never synced is not stale either.
        let board = self::board();
        board.contact(at(1));
        assert_eq!(link(&board, 99), Link::Never);
    }

    #[test]
    fn a_needed_kind_without_a_watch_makes_it_stale_too() {
        let board = synced();
        enter(&board, Watched::Services, KindState::Waiting, 10);
        for (second, expected) in [(24, Link::Synced), (25, stale(10))] {
            board.contact(at(second));
            assert_eq!(link(&board, second), expected, "{second}");
        }
        enter(&board, Watched::Services, KindState::Listing, 26);
        assert_eq!(link(&board, 26), stale(10));
        enter(&board, Watched::Services, KindState::Watching, 27);
        assert_eq!(link(&board, 27), Link::Synced);
        enter(
            &board,
            Watched::EndpointSlices,
            KindState::Refused("no".into()),
            28,
        );
        assert_eq!(link(&board, 28), stale(28));
        enter(&board, Watched::EndpointSlices, KindState::Unserved, 29);
        assert_eq!(link(&board, 29), Link::Synced);
        enter(
            &board,
            Watched::Ingresses,
            KindState::Refused("no".into()),
            30,
        );
        assert_eq!(link(&board, 30), Link::Synced);
    }

    #[test]
    fn what_is_wrong_is_said_from_the_root() {
        let board = synced();
        let last_error = || board.status(at(3).at, STALE_AFTER).last_error;
        assert_eq!(last_error(), None);
        board.follow(Subject::Definitions, |followed| {
            followed.error = Some("status 403".into());
        });
        assert_eq!(
            last_error(),
            None,
            "new kinds are then looked for more often"
        );
        board.follow(Subject::Kind(Watched::Nodes), |nodes| nodes.left_out = 7);
        let left_out = "nodes: too many objects, 7 are left out";
        assert_eq!(last_error().as_deref(), Some(left_out));
        board.follow(Subject::Kind(Watched::Gateways), |gateways| {
            gateways.error = Some("x".repeat(256).into());
        });
        let said = last_error().unwrap();
        assert!(
            said.starts_with("gateways: xxx") && said.len() == 256,
            "{said}"
        );
        board.missed("no answer".into());
        assert_eq!(last_error().as_deref(), Some("no answer"));
        board.client_error(Some("no file".into()));
        assert_eq!(last_error().as_deref(), Some("no file"));
        board.client_error(None);
        board.contact(at(4));
        assert!(last_error().unwrap().starts_with("gateways"));
    }

    #[test]
    fn the_status_has_every_kind() {
        let board = synced();
        let status = board.status(at(3).at, STALE_AFTER);
        assert_eq!(
            (status.cluster, status.id.as_str()),
            (ClusterIndex(3), "aws")
        );
        let kinds: Vec<_> = status.kinds.iter().map(|kind| kind.watched).collect();
        assert_eq!(kinds, Watched::ALL);
        assert_eq!(status.last_contact, Some(at(1).wall));
    }
}
