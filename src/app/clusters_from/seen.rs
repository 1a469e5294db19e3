//! What was seen of one source of clusters at the last look, and what is gone of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::model::{ClusterId, Rejection, WallTime, counted};
use crate::source::Fingerprint;
use crate::source::kubernetes::{
    FoundCluster, FoundIn, HeldKubeconfig, Kubeconfig, Listing, MassDeletion, SecretsHandle,
    list_directory,
};

/// So many clusters that are gone at once are a mass: one alone is somebody's wish.
const MASS: usize = 2;
/// Clusters that a message names.
const NAMED: usize = 5;

/// One source as it was read last.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// What it had when it could be read; `None`: it never could.
    pub(super) listing: Option<Listing>,
    /// It was read since the start: what it has is not of the disk.
    pub(super) is_read: bool,
    /// Clusters that were not there at the last look: at the next one they are gone.
    missing: BTreeSet<ClusterId>,
    /// Clusters that were gone with many others, since when: they stay for a while.
    held: BTreeMap<ClusterId, WallTime>,
    /// Why it cannot be read now.
    error: Option<String>,
    /// The directory at the last look.
    pub(super) fingerprint: Fingerprint,
    /// The kubeconfigs of its Secrets, as they change.
    pub(super) kubeconfigs: BTreeMap<ClusterId, Arc<HeldKubeconfig>>,
}

/// What a look goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'l> {
    /// Where Secrets are known.
    pub(super) secrets: &'l SecretsHandle,
    /// What is done when many are gone at once.
    pub(super) mass: &'l MassDeletion,
    /// Now.
    pub(super) now: WallTime,
}

impl Seen {
    /// Begins with what was kept on disk.
    pub(super) fn of_disk(listing: Listing) -> Self {
        let mut seen = Self::default();
        seen.follow_kubeconfigs(&listing);
        seen.listing = Some(listing);
        seen
    }

    /// Looks at it once.
    pub(super) fn look(&mut self, place: &FoundIn, look: Look<'_>) {
        match place {
            FoundIn::Directory(path) => {
                self.fingerprint = Fingerprint::of(path);
                match list_directory(path) {
                    Ok(now) => self.take(now, None, look.now),
                    Err(why) => self.stay(Some(why)),
                }
            }
            FoundIn::Secrets(place) => {
                let (listing, error) = look.secrets.look(place);
                match listing {
                    Some(now) => {
                        self.take(Listing::clone(&now), Some(look.mass), look.now);
                        self.error = error;
                    }
                    None => self.stay(error),
                }
            }
        }
    }

    /// It cannot be read: what it had stays.
    fn stay(&mut self, why: Option<String>) {
        self.error = why;
        self.missing.clear();
    }

    /// Takes what it has now. `mass`: what is done when many are gone at once; `None`: they go as one does.
    fn take(&mut self, mut now: Listing, mass: Option<&MassDeletion>, at: WallTime) {
        (self.error, self.is_read) = (None, true);
        let former = self.listing.take().unwrap_or_default();
        let count = former.clusters.len();
        let mut missing = BTreeSet::new();
        let mut gone = Vec::new();
        for found in former.clusters {
            let id = &found.id;
            if now.clusters.iter().any(|one| one.id == *id) {
                self.held.remove(id);
                continue;
            }
            if let (Some(since), Some(mass)) = (self.held.get(id), mass) {
                if mass.hold && at.0.saturating_sub(since.0) < millis(mass.wait) {
                    now.clusters.push(found);
                } else {
                    self.held.remove(id);
                }
            } else if self.missing.contains(id) {
                gone.push(found);
            } else {
                // Whoever replaces one by taking it away first is given one look's time.
                missing.insert(id.clone());
                now.clusters.push(found);
            }
        }
        if mass.is_some_and(|mass| is_mass(gone.len(), count, mass)) {
            self.held
                .extend(gone.iter().map(|found| (found.id.clone(), at)));
            now.clusters.append(&mut gone);
        }
        self.missing = missing;
        self.follow_kubeconfigs(&now);
        self.listing = Some(now);
    }

    /// Hands on what stands in Secrets now to those who follow the clusters.
    fn follow_kubeconfigs(&mut self, listing: &Listing) {
        let mut former = std::mem::take(&mut self.kubeconfigs);
        for FoundCluster { id, kubeconfig, .. } in &listing.clusters {
            let Kubeconfig::Secret { name, text } = kubeconfig else {
                continue;
            };
            let held = former.remove(id).filter(|held| held.name() == &**name);
            let held = match held {
                Some(held) => {
                    held.replace(text);
                    held
                }
                None => HeldKubeconfig::new(name, text.clone()),
            };
            self.kubeconfigs.insert(id.clone(), held);
        }
    }

    /// Gives what is refused of it; `name` is its own.
    pub(super) fn refused(&self, name: &str, mass: &MassDeletion) -> Vec<Rejection> {
        let whole = |reason: String| Rejection {
            source: name.to_owned(),
            place: String::new(),
            reason,
        };
        let mut refused: Vec<Rejection> = self.error.clone().map(whole).into_iter().collect();
        if let Some(since) = self.held.values().max() {
            let until = WallTime(since.0.saturating_add(millis(mass.wait)));
            refused.push(whole(held_in_words(&self.held, until)));
        }
        let of_list = self.listing.iter().flat_map(|listing| &listing.refused);
        refused.extend(of_list.cloned());
        refused
    }
}

/// Tells whether so many of all are a mass.
fn is_mass(gone: usize, all: usize, mass: &MassDeletion) -> bool {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a source has at most some thousand clusters"
    )]
    let share = gone as f64 / all.max(1) as f64;
    mass.hold && gone >= MASS && share >= mass.share
}

/// Says who is held.
fn held_in_words(held: &BTreeMap<ClusterId, WallTime>, until: WallTime) -> String {
    let names: Vec<&str> = held.keys().take(NAMED).map(ClusterId::as_str).collect();
    let more = match held.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let until = i64::try_from(until.0).ok();
    let until = until.and_then(|until| Timestamp::from_millisecond(until).ok());
    let until = until.unwrap_or(Timestamp::MAX);
    format!(
        "{} are gone at once, which is more often a fault than a wish: {}{more} stay until {until:.0}, or until they are back",
        counted(held.len(), "cluster"),
        names.join(", "),
    )
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
