//! Clusters that directories of kubeconfigs have (`clustersFrom`): who is found, who is leaving, and of whom nobody knows.
//!
//! ```text
//!            its file is there            its file is gone, seen twice          its drain is safe, or an operator drops it
//!   nobody -------------------> found -----------------------------> leaving -----------------------------------------> nobody
//!                                 ^            its file is back          |
//!                                 '--------------------------------------'
//! ```
//!
//! A directory that cannot be read is not empty: what it had stays found. Where it was never read since the start, those that
//! were served before the start are kept as they were.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Config;
use crate::inventory::ClusterRegistry;
use crate::model::{
    Cluster, ClusterId, ClusterIndex, Intent, Location, OperatorRecord, OperatorRecords,
    OperatorTarget, Refusals, Rejection, Said, WallTime,
};
use crate::source::Fingerprint;
use crate::source::kubernetes::{
    self, Absence, Access, Admit, ClusterDirectory, FoundCluster, Listing, MemberConfig, Trust,
    list_directory,
};

/// Who says that a cluster is drained that is leaving.
const ACTOR: &str = "meridian";
/// Why.
const REASON: &str = "its kubeconfig is gone";

/// All clusters with their indices.
pub(super) type ClusterList = Vec<(ClusterIndex, Arc<Cluster>)>;

/// What the configuration file says by itself.
#[derive(Clone, Debug, Default)]
struct Written {
    clusters: ClusterList,
    kubernetes: kubernetes::Config,
}

/// One directory as it was read last.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// What it had when it could be read; `None`: it never could.
    listing: Option<Listing>,
    /// Clusters that were not there at the last look: at the next one they are gone.
    missing: BTreeSet<ClusterId>,
    /// Why it cannot be read now.
    error: Option<String>,
    /// The directory at the last look.
    fingerprint: Fingerprint,
}

/// A cluster that is there.
#[derive(Clone, Debug)]
struct Found {
    file: PathBuf,
    /// The position of its directory.
    at: usize,
    /// Nobody is answered with it.
    is_observed: bool,
}

/// A cluster that is leaving.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    /// Since when.
    pub(super) since: WallTime,
    /// The drain that is in force for it.
    record: OperatorRecord,
}

impl Leaving {
    /// Gives the id of its drain.
    pub(super) fn drain(&self) -> &crate::model::RecordId {
        &self.record.id
    }
}

/// What became of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is there.
    Found,
    /// Its file is gone.
    Leaves,
    /// Its file is back.
    Returns,
    /// It is a written member now, or was dropped.
    Ends,
}

/// All directories, and the clusters that they have and had.
#[derive(Clone, Debug, Default)]
pub(super) struct Directories {
    written: Written,
    seen: BTreeMap<PathBuf, Seen>,
    /// Those that are there.
    found: BTreeMap<ClusterId, Found>,
    leaving: BTreeMap<ClusterId, Leaving>,
    /// Served before the start, and not all directories were read since.
    unseen: BTreeSet<ClusterId>,
    /// Files that are not followed, by directory.
    refused: BTreeMap<String, Vec<Rejection>>,
}

/// What is followed from now on.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    /// All clusters, those of the configuration included.
    pub(super) clusters: ClusterList,
    /// All members.
    pub(super) kubernetes: kubernetes::Config,
    /// Those of them that nobody is answered with.
    pub(super) observed: BTreeSet<ClusterIndex>,
}

impl Directories {
    /// Takes up another configuration, and looks at its directories. Tells what became of whom.
    pub(super) fn adopt(&mut self, config: &Config, now: WallTime) -> Vec<(ClusterId, Turn)> {
        self.written = Written {
            clusters: config.clusters.clone(),
            kubernetes: config.kubernetes.clone(),
        };
        let directories = &self.written.kubernetes.directories;
        self.seen
            .retain(|path, _| directories.iter().any(|one| one.path == *path));
        self.look(now)
    }

    /// Notes clusters that were served before the start: those that are neither written nor found are leaving.
    pub(super) fn remember<'i>(
        &mut self,
        ids: impl Iterator<Item = &'i ClusterId>,
        now: WallTime,
    ) -> Vec<(ClusterId, Turn)> {
        if self.is_idle() {
            return Vec::new();
        }
        self.unseen = ids.cloned().collect();
        self.sort_out(now)
    }

    /// Tells whether there is nothing to look at.
    pub(super) fn is_idle(&self) -> bool {
        self.written.kubernetes.directories.is_empty() && self.leaving.is_empty()
    }

    /// Looks at all directories. Tells what became of whom.
    pub(super) fn look(&mut self, now: WallTime) -> Vec<(ClusterId, Turn)> {
        for directory in &self.written.kubernetes.directories {
            let seen = self.seen.entry(directory.path.clone()).or_default();
            seen.look(&directory.path);
        }
        self.sort_out(now)
    }

    /// Finds who is there, and who is not any more.
    fn sort_out(&mut self, now: WallTime) -> Vec<(ClusterId, Turn)> {
        let mut found: BTreeMap<ClusterId, Found> = BTreeMap::new();
        self.refused.clear();
        let written: BTreeSet<&ClusterId> = self
            .written
            .clusters
            .iter()
            .map(|(_, one)| &one.id)
            .collect();
        let members = &self.written.kubernetes.members;
        let directories = &self.written.kubernetes.directories;
        for (at, directory) in directories.iter().enumerate() {
            let path = &directory.path;
            let Some(seen) = self.seen.get(path) else {
                continue;
            };
            let refused = self.refused.entry(path.display().to_string()).or_default();
            refused.extend(seen.error.as_ref().map(|why| rejection(path, why.clone())));
            let listing = seen.listing.as_ref();
            refused.extend(
                listing
                    .into_iter()
                    .flat_map(|listing| listing.refused.clone()),
            );
            for FoundCluster { id, file } in listing.into_iter().flat_map(|list| &list.clusters) {
                let why = if members.iter().any(|member| member.id == *id) {
                    format!("the cluster {id} has a kubeconfig of its own in the configuration")
                } else if let Some(Found { file, .. }) = found.get(id) {
                    format!("the cluster {id} is that of {} already", file.display())
                } else {
                    let one = Found {
                        file: file.clone(),
                        at,
                        is_observed: directory.admit == Admit::Observe && !written.contains(id),
                    };
                    found.insert(id.clone(), one);
                    continue;
                };
                refused.push(rejection(file, why));
            }
        }
        self.refused.retain(|_, refused| !refused.is_empty());
        // Who was served leaves first, and is observed after that.
        let was_served = |id: &ClusterId| {
            let was_found = self.found.get(id).is_some_and(|former| !former.is_observed);
            was_found || self.leaving.contains_key(id) || self.unseen.contains(id)
        };
        found.retain(|id, one| !one.is_observed || !was_served(id));
        let former = std::mem::replace(&mut self.found, found);
        let mut turns = self.find_leaving(&former, now);
        for id in self.found.keys() {
            if self.leaving.remove(id).is_some() {
                turns.push((id.clone(), Turn::Returns));
            } else if !former.contains_key(id) && !self.unseen.remove(id) {
                turns.push((id.clone(), Turn::Found));
            }
        }
        let found = &self.found;
        self.unseen.retain(|id| !found.contains_key(id));
        turns
    }

    /// Finds those that are leaving from now on, and ends the leaving of those that are written now.
    fn find_leaving(
        &mut self,
        former: &BTreeMap<ClusterId, Found>,
        now: WallTime,
    ) -> Vec<(ClusterId, Turn)> {
        let mut turns = Vec::new();
        let members = &self.written.kubernetes.members;
        let is_written = |id: &ClusterId| members.iter().any(|member| member.id == *id);
        self.unseen.retain(|id| !is_written(id));
        let all_read = self.seen.values().all(|seen| seen.listing.is_some());
        let unseen = if all_read {
            std::mem::take(&mut self.unseen)
        } else {
            BTreeSet::new()
        };
        // Who was only observed has nobody to be drained.
        let served = former.iter().filter(|(_, one)| !one.is_observed);
        for id in served.map(|(id, _)| id).chain(&unseen) {
            if self.found.contains_key(id) || is_written(id) || self.leaving.contains_key(id) {
                continue;
            }
            if let Some(record) = drain_of(id, now) {
                let leaving = Leaving { since: now, record };
                self.leaving.insert(id.clone(), leaving);
                turns.push((id.clone(), Turn::Leaves));
            }
        }
        self.leaving.retain(|id, _| {
            let ends = is_written(id);
            if ends {
                turns.push((id.clone(), Turn::Ends));
            }
            !ends
        });
        turns
    }

    /// Drops a cluster that is leaving. Tells whether it was.
    pub(super) fn drop(&mut self, id: &ClusterId) -> bool {
        self.leaving.remove(id).is_some()
    }

    /// Lists the clusters that are leaving.
    pub(super) fn leaving(&self) -> impl Iterator<Item = (&ClusterId, &Leaving)> {
        self.leaving.iter()
    }

    /// Gives the drains of clusters that are leaving.
    pub(super) fn drains(&self, now: WallTime) -> OperatorRecords {
        let mut records = OperatorRecords::default();
        for leaving in self.leaving.values() {
            records.merge(leaving.record.clone(), now);
        }
        records
    }

    /// Gives why directories and their files are refused, by directory.
    pub(super) fn refused(&self) -> BTreeMap<String, Refusals> {
        let refused = self.refused.iter();
        refused
            .map(|(name, refused)| (name.clone(), refused.iter().cloned().collect()))
            .collect()
    }

    /// Lists the directories with their fingerprints.
    pub(super) fn seen(&self) -> impl Iterator<Item = (&Path, Fingerprint)> {
        let seen = self.seen.iter();
        seen.map(|(path, seen)| (path.as_path(), seen.fingerprint))
    }

    /// Puts those that were found, and those that are leaving, beside what is written.
    pub(super) fn join(&mut self, registry: &mut ClusterRegistry) -> Joined {
        let Written {
            mut clusters,
            mut kubernetes,
        } = self.written.clone();
        let written: BTreeMap<ClusterId, ClusterIndex> = clusters
            .iter()
            .map(|(index, cluster)| (cluster.id.clone(), *index))
            .collect();
        let mut observed = BTreeSet::new();
        for (id, access, path) in self.accesses() {
            let index = written.get(&id).copied().or_else(|| {
                let index = registry.index_of(&id)?;
                clusters.push((index, Arc::new(unplaced(&id))));
                Some(index)
            });
            match index {
                Some(cluster) => {
                    if self.found.get(&id).is_some_and(|one| one.is_observed) {
                        observed.insert(cluster);
                    }
                    kubernetes.members.push(MemberConfig {
                        cluster,
                        id,
                        access,
                    });
                }
                None => {
                    let why = "too many clusters: at most 65,535 names in the life of the process";
                    let refused = self.refused.entry(path.display().to_string()).or_default();
                    refused.push(rejection(Path::new(id.as_str()), why.to_owned()));
                }
            }
        }
        Joined {
            clusters,
            kubernetes,
            observed,
        }
    }

    /// Lists how those are reached that are not written, with their directories.
    fn accesses(&self) -> Vec<(ClusterId, Access, PathBuf)> {
        let directories = &self.written.kubernetes.directories;
        let found = self
            .found
            .iter()
            .filter_map(|(id, Found { file, at, .. })| {
                let directory: &ClusterDirectory = directories.get(*at)?;
                let access = Access::Kubeconfig {
                    file: file.clone(),
                    context: None,
                    trust: Trust::Data {
                        exec: Arc::clone(&directory.exec),
                    },
                };
                Some((id.clone(), access, directory.path.clone()))
            });
        let absent =
            |absence| move |id: &ClusterId| (id.clone(), Access::Absent(absence), PathBuf::new());
        let leaving = self.leaving.keys().map(absent(Absence::Gone));
        let unseen = self.unseen.iter().map(absent(Absence::Unseen));
        found.chain(leaving).chain(unseen).collect()
    }
}

impl Seen {
    /// Looks at it once.
    fn look(&mut self, path: &Path) {
        self.fingerprint = Fingerprint::of(path);
        let mut now = match list_directory(path) {
            Ok(now) => now,
            Err(why) => {
                // What it had stays.
                self.error = Some(why);
                self.missing.clear();
                return;
            }
        };
        self.error = None;
        let former = self.listing.take().unwrap_or_default();
        let mut missing = BTreeSet::new();
        for found in former.clusters {
            if now.clusters.iter().any(|one| one.id == found.id) {
                continue;
            }
            // Whoever replaces a file by taking it away first is given one look's time.
            if !self.missing.contains(&found.id) {
                missing.insert(found.id.clone());
                now.clusters.push(found);
            }
        }
        self.missing = missing;
        self.listing = Some(now);
    }
}

/// Makes the drain of a cluster that is leaving.
fn drain_of(id: &ClusterId, now: WallTime) -> Option<OperatorRecord> {
    use std::hash::{BuildHasher, Hasher};
    // No two leavings have one id: what is known of an earlier one says nothing of this one.
    let number = std::collections::hash_map::RandomState::new().build_hasher();
    let number = number.finish();
    Some(OperatorRecord {
        id: format!("leaving-{number:016x}").parse().ok()?,
        target: OperatorTarget::Cluster(id.clone()),
        intent: Intent::Drain,
        created: Said {
            time: now,
            actor: ACTOR.into(),
            reason: REASON.into(),
        },
        starts: now,
        expires: None,
        ended: None,
    })
}

/// Makes a cluster of which nothing is known but its name; its Nodes tell the rest.
fn unplaced(id: &ClusterId) -> Cluster {
    Cluster {
        id: id.clone(),
        location: Location::default(),
        region: None,
        provider: None,
        zones: Vec::new(),
        cost_km: 0.0,
    }
}

/// Refuses a file or a directory as a whole.
fn rejection(path: &Path, reason: String) -> Rejection {
    Rejection {
        source: path.display().to_string(),
        place: String::new(),
        reason,
    }
}
