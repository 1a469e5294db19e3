//! A member that is followed, without the world behind it: what the watches hand on is looked at here.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::super::clock::Clock;
use super::super::member::{EVENTS, Member, Settings, spawn};
use super::super::status::{Board, KindState, KindStatus, Link, MemberStatus};
use super::api::Api;
use crate::lifecycle::Supervisor;
use crate::model::ClusterIndex;
use crate::source::kubernetes::records::{Event, Watched};
use crate::source::kubernetes::rules::{Access, MemberConfig, Rules, Trust};
use crate::source::kubernetes::world::World;
use crate::source::kubernetes::write_back::Statements;

/// Every wait of a test ends by then, on a machine that does much else too.
const DEADLINE: Duration = Duration::from_secs(60);

/// A member that is followed.
pub(super) struct Run {
    pub(super) member: Arc<Member>,
    pub(super) folder: TempDir,
    /// What was handed on so far.
    pub(super) seen: Vec<(Watched, Event)>,
    /// What whoever took all of it knows.
    folds: HashMap<Watched, Fold>,
    pub(super) access: watch::Sender<Access>,
    stale_after: Duration,
    events: mpsc::Receiver<(Watched, Event)>,
    dirty: Arc<Notify>,
    _settings: watch::Sender<Settings>,
    _tasks: Supervisor,
}

/// Names as they are known after events.
#[derive(Clone, Default)]
struct Fold {
    known: BTreeSet<String>,
    listed: Option<BTreeSet<String>>,
}

impl Fold {
    fn take(&mut self, event: &Event) {
        match event {
            Event::Listing => self.listed = Some(BTreeSet::new()),
            Event::Applied(key, _) | Event::Unreadable(key, _) => {
                let name = key.name.to_string();
                self.known.insert(name.clone());
                if let Some(listed) = &mut self.listed {
                    listed.insert(name);
                }
            }
            Event::Gone(key) => {
                self.known.remove(&*key.name);
            }
            Event::Listed => self.known = self.listed.take().expect("a list began"),
            Event::LeftOut => self.listed = None,
            Event::Unserved => self.known.clear(),
        }
    }
}

/// Writes a kubeconfig for a server.
pub(super) fn kubeconfig(folder: &TempDir, cluster: &str, user: &str) -> Access {
    let file = folder.path().join("kubeconfig");
    // Put in place whole, as careful people do it: no half of it is ever read.
    let draft = folder.path().join("draft");
    let text = format!(
        "current-context: x\nclusters: [{{name: x, cluster: {cluster}}}]\nusers: [{{name: x, user: {user}}}]\n\
         contexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n"
    );
    fs::write(&draft, text).unwrap();
    fs::rename(&draft, &file).unwrap();
    Access::Kubeconfig {
        file,
        context: None,
        trust: Trust::Whole,
    }
}

/// Says where a server is, as kubeconfig files do.
pub(super) fn at(api: &Api) -> String {
    format!("{{server: 'http://{}'}}", api.address)
}

impl Run {
    /// Follows a server without credentials.
    pub(super) fn of(api: &Api) -> Self {
        Self::with(&at(api), "{}", Duration::from_secs(15))
    }

    /// Follows a server.
    pub(super) fn with(cluster: &str, user: &str, stale_after: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let access = kubeconfig(&folder, cluster, user);
        Self::start(folder, access, stale_after)
    }

    pub(super) fn start(folder: TempDir, access: Access, stale_after: Duration) -> Self {
        let id = "here".parse().unwrap();
        let config = MemberConfig::new(ClusterIndex(0), id, access);
        let overview = World::new(Arc::new(Rules::default()), Vec::new()).overview();
        let dirty: Arc<Notify> = Arc::default();
        let board = Arc::new(Board::new(&config, overview, dirty.clone()));
        let settings = watch::Sender::new(Settings {
            rules: Arc::default(),
            stale_after,
            write_back: None,
        });
        let member = Member::new(board, Clock::start(), settings.subscribe(), 7);
        let member = Arc::new(member);
        let access = watch::Sender::new(config.access);
        let (sender, events) = mpsc::channel(EVENTS);
        let mut tasks = Supervisor::under(&CancellationToken::new());
        let (_, statements) = watch::channel(Statements::default());
        spawn(&mut tasks, &member, access.subscribe(), &sender, statements);
        Self {
            member,
            folder,
            seen: Vec::new(),
            folds: HashMap::new(),
            access,
            stale_after,
            events,
            dirty,
            _settings: settings,
            _tasks: tasks,
        }
    }

    pub(super) fn status(&self) -> MemberStatus {
        let now = self.member.clock.now();
        self.member.board.status(now, self.stale_after)
    }

    pub(super) fn kind(&self, watched: Watched) -> KindStatus {
        self.status().kinds[watched as usize].clone()
    }

    /// Waits until something is so.
    pub(super) async fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let all = async {
            while !done(self) {
                // Time passes without anybody noting it, too.
                let tick = tokio::time::sleep(Duration::from_millis(20));
                let mut taken = Vec::new();
                tokio::select! {
                    _ = self.events.recv_many(&mut taken, EVENTS) => {}
                    () = self.dirty.notified() => {}
                    () = tick => {}
                }
                for (watched, event) in &taken {
                    self.folds.entry(*watched).or_default().take(event);
                }
                self.seen.append(&mut taken);
            }
        };
        if timeout(DEADLINE, all).await.is_err() {
            panic!("not {what}: {:#?}", self.status());
        }
    }

    pub(super) async fn until_synced(&mut self) {
        self.until("synced", |run| run.status().link == Link::Synced)
            .await;
    }

    pub(super) async fn until_watching(&mut self, watched: Watched) {
        let is_watching = |run: &Self| run.kind(watched).state == KindState::Watching;
        self.until("watching", is_watching).await;
    }

    /// Waits until exactly these objects are known.
    pub(super) async fn until_known(&mut self, watched: Watched, names: &[&str]) {
        let names: BTreeSet<_> = names.iter().copied().map(str::to_owned).collect();
        self.until(&format!("{names:?}"), |run| run.known(watched) == names)
            .await;
    }

    /// Gives the names that whoever takes all events knows.
    pub(super) fn known(&self, watched: Watched) -> BTreeSet<String> {
        let fold = self.folds.get(&watched);
        fold.map_or_else(BTreeSet::new, |fold| fold.known.clone())
    }

    /// Gives the names that were known after each event.
    fn steps(&self, watched: Watched) -> Vec<BTreeSet<String>> {
        let mut fold = Fold::default();
        let events = self.seen.iter().filter(|(kind, _)| *kind == watched);
        let step = |(_, event): &(Watched, Event)| {
            fold.take(event);
            fold.known.clone()
        };
        events.map(step).collect()
    }

    /// Fails when one of these objects was gone for a moment since it was first known.
    pub(super) fn never_lost(&self, watched: Watched, names: &[&str]) {
        let steps = self.steps(watched);
        let has_all = |step: &BTreeSet<String>| names.iter().all(|name| step.contains(*name));
        let first = steps.iter().position(has_all).expect("all were known");
        let lost = steps[first..].iter().position(|step| !has_all(step));
        assert_eq!(lost, None, "{:?}", self.seen);
    }
}
