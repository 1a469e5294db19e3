//! Clusters that directories of kubeconfigs and Secrets have (`clustersFrom`): who is found, who is leaving, and of whom nobody knows.
//!
//! ```text
//!          its kubeconfig is there       its kubeconfig is gone, seen twice     its drain is safe, or an operator drops it
//!   nobody -------------------> found -----------------------------> leaving -----------------------------------------> nobody
//!                                 ^          its kubeconfig is back      |
//!                                 '--------------------------------------'
//! ```
//!
//! What cannot be read is not empty: what it had stays found. Where it was never read since the start, those that were served
//! before the start are kept as they were; of Secrets, with the kubeconfigs that they had. So are those of a source that a reload
//! takes out, as long as another one was never read: it may be the same one in other words.

mod kept;
mod seen;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::config::Config;
use crate::controller::{ANNOTATED_ID, content_hash};
use crate::inventory::ClusterRegistry;
use crate::model::{
    Cluster, ClusterId, ClusterIndex, Intent, OperatorRecord, OperatorRecords, OperatorTarget,
    Refusals, Rejection, Said, WallTime,
};
use crate::source::Fingerprint;
use crate::source::kubernetes::annotations::{ClusterRead, read_cluster};
use crate::source::kubernetes::{
    self, Absence, Access, Admit, ClusterSource, FoundCluster, FoundIn, Kubeconfig, Listing,
    MemberConfig, SecretsHandle, Trust,
};
pub(super) use kept::Keeper;
use seen::{Look, Seen};

/// Who says that a cluster is drained that is leaving.
const ACTOR: &str = "meridian";
/// Why.
const REASON: &str = "its kubeconfig is gone";
/// Why, where its annotation keeps it from being followed.
const IGNORED: &str = "its annotation `ignore` says so";
/// Why, of one whose annotation says so.
const ANNOTATED: &str = "its annotation `drain` says so";

/// All clusters with their indices.
pub(super) type ClusterList = Vec<(ClusterIndex, Arc<Cluster>)>;

/// What the configuration file says by itself.
#[derive(Clone, Debug, Default)]
struct Written {
    clusters: ClusterList,
    kubernetes: kubernetes::Config,
}

/// A cluster that is there.
#[derive(Clone, Debug)]
struct Found {
    kubeconfig: Kubeconfig,
    /// The position of its source.
    at: usize,
    /// Nobody is answered with it.
    is_observed: bool,
    /// What its annotations say.
    read: Arc<ClusterRead>,
}

/// A cluster that is leaving.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    /// Since when.
    pub(super) since: WallTime,
    /// Where its kubeconfig stood; `None`: nobody knows any more.
    pub(super) from: Option<String>,
    /// The drain that is in force for it.
    record: OperatorRecord,
}

impl Leaving {
    /// Gives the id of its drain.
    pub(super) fn drain(&self) -> &crate::model::RecordId {
        &self.record.id
    }

    /// Says why it leaves.
    pub(super) fn why(&self) -> &str {
        &self.record.created.reason
    }
}

/// What became of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is there.
    Found,
    /// Its file is gone.
    Leaves,
    /// It is to be ignored.
    Ignored,
    /// Its file is back.
    Returns,
    /// It is a written member now, or was dropped.
    Ends,
}

/// A cluster that is there, for those who show it.
#[derive(Clone, Debug)]
pub(super) struct Joiner {
    /// Its name.
    pub(super) id: ClusterId,
    /// Where its kubeconfig stands.
    pub(super) from: String,
    /// What its annotations say.
    pub(super) read: Arc<ClusterRead>,
}

/// All sources of clusters, and the clusters that they have and had.
#[derive(Clone, Debug, Default)]
pub(super) struct Directories {
    written: Written,
    /// What is known of Secrets.
    secrets: SecretsHandle,
    /// By the name of the source.
    seen: BTreeMap<String, Seen>,
    /// Those that are there.
    found: BTreeMap<ClusterId, Found>,
    leaving: BTreeMap<ClusterId, Leaving>,
    /// Served before the start or by a source that is named no more, and not all sources were read since; with what their
    /// annotations said last.
    unseen: BTreeMap<ClusterId, Arc<ClusterRead>>,
    /// Those whose own word is that they are not followed.
    ignored: BTreeSet<ClusterId>,
    /// Kubeconfigs that are not followed, by source.
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
    /// Begins with what was kept of Secrets before the start, by source.
    pub(super) fn of_disk(kept: BTreeMap<String, Listing>) -> Self {
        let seen = kept.into_iter();
        Self {
            seen: seen
                .map(|(name, listing)| (name, Seen::of_disk(listing)))
                .collect(),
            ..Self::default()
        }
    }

    /// Gives what is known of Secrets.
    pub(super) fn secrets(&self) -> &SecretsHandle {
        &self.secrets
    }

    /// Has the Secrets watched that the configuration in force names.
    pub(super) fn watch_secrets(&self) {
        let sources = self.written.kubernetes.sources.iter();
        let places = sources.filter_map(|source| match &source.place {
            FoundIn::Secrets(place) => Some(Arc::clone(place)),
            FoundIn::Directory(_) => None,
        });
        self.secrets.set(places.collect());
    }

    /// Takes up another configuration, and looks at its sources. Tells what became of whom.
    pub(super) fn adopt(&mut self, config: &Config, now: WallTime) -> Vec<(ClusterId, Turn)> {
        let sources = config.kubernetes.sources.iter();
        let names: BTreeSet<String> = sources.map(|one| one.place.to_string()).collect();
        let written = Written {
            clusters: config.clusters.clone(),
            kubernetes: config.kubernetes.clone(),
        };
        let former = std::mem::replace(&mut self.written, written);
        let is_named = |one: &Found| {
            let source = former.kubernetes.sources.get(one.at);
            source.is_some_and(|source| names.contains(&source.place.to_string()))
        };
        // Another source may have them: nobody knows before all were read.
        let served = self.found.iter().filter(|(_, one)| !one.is_observed);
        let homeless = served.filter(|(_, one)| !is_named(one));
        let homeless = homeless.map(|(id, one)| (id.clone(), Arc::clone(&one.read)));
        self.unseen.extend(homeless);
        self.seen.retain(|name, _| names.contains(name));
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
        self.unseen = ids.map(|id| (id.clone(), Arc::default())).collect();
        self.sort_out(now)
    }

    /// Tells whether there is nothing to look at.
    pub(super) fn is_idle(&self) -> bool {
        self.written.kubernetes.sources.is_empty() && self.leaving.is_empty()
    }

    /// Looks at all sources. Tells what became of whom.
    pub(super) fn look(&mut self, now: WallTime) -> Vec<(ClusterId, Turn)> {
        let Self {
            written, secrets, ..
        } = self;
        let look = Look {
            secrets,
            mass: &written.kubernetes.rules.mass_deletion,
            now,
        };
        for source in &written.kubernetes.sources {
            let seen = self.seen.entry(source.place.to_string()).or_default();
            seen.look(&source.place, look);
        }
        self.sort_out(now)
    }

    /// Finds who is there, and who is not any more.
    fn sort_out(&mut self, now: WallTime) -> Vec<(ClusterId, Turn)> {
        let mut found = self.find();
        // Who was served leaves first, and is observed after that.
        let was_served = |id: &ClusterId| {
            let was_found = self.found.get(id).is_some_and(|former| !former.is_observed);
            was_found || self.leaving.contains_key(id) || self.unseen.contains_key(id)
        };
        found.retain(|id, one| !one.is_observed || !was_served(id));
        let former = std::mem::replace(&mut self.found, found);
        let unseen = self.unseen.clone();
        let mut turns = self.find_leaving(&former, now);
        for id in self.found.keys() {
            if self.leaving.remove(id).is_some() {
                turns.push((id.clone(), Turn::Returns));
            } else if !former.contains_key(id) && !unseen.contains_key(id) {
                turns.push((id.clone(), Turn::Found));
            }
        }
        let found = &self.found;
        self.unseen.retain(|id, _| !found.contains_key(id));
        turns
    }

    /// Finds who is there, and notes what is refused.
    fn find(&mut self) -> BTreeMap<ClusterId, Found> {
        let mut found: BTreeMap<ClusterId, Found> = BTreeMap::new();
        let Written {
            clusters,
            kubernetes,
        } = &self.written;
        let written: BTreeSet<&ClusterId> = clusters.iter().map(|(_, one)| &one.id).collect();
        self.refused.clear();
        self.ignored.clear();
        for (at, source) in kubernetes.sources.iter().enumerate() {
            let name = source.place.to_string();
            let Some(seen) = self.seen.get(&name) else {
                continue;
            };
            let mut refused = seen.refused(&name, &kubernetes.rules.mass_deletion);
            let listed = seen.listing.iter().flat_map(|listing| &listing.clusters);
            for one in listed {
                let FoundCluster { id, kubeconfig, .. } = one;
                let annotations = one.annotations.iter();
                let read = read_cluster(annotations.map(|(key, value)| (&**key, &**value)));
                refused.extend(read.refused.iter().map(|why| Rejection {
                    source: kubeconfig.to_string(),
                    place: why.key.to_string(),
                    reason: format!("`{}`: {}", why.value, why.reason),
                }));
                let why = if kubernetes.members.iter().any(|member| member.id == *id) {
                    format!("the cluster {id} has a kubeconfig of its own in the configuration")
                } else if let Some(Found { kubeconfig, .. }) = found.get(id) {
                    format!("the cluster {id} is that of {kubeconfig} already")
                } else if read.said.ignore {
                    // That is its own word, and no fault.
                    self.ignored.insert(id.clone());
                    continue;
                } else {
                    let one = Found {
                        kubeconfig: kubeconfig.clone(),
                        at,
                        is_observed: source.admit == Admit::Observe && !written.contains(id),
                        read: Arc::new(read),
                    };
                    found.insert(id.clone(), one);
                    continue;
                };
                refused.push(rejection(kubeconfig, why));
            }
            if !refused.is_empty() {
                self.refused.insert(name, refused);
            }
        }
        found
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
        self.unseen.retain(|id, _| !is_written(id));
        let all_read = self.seen.values().all(|seen| seen.is_read);
        let unseen = if all_read {
            std::mem::take(&mut self.unseen)
        } else {
            BTreeMap::new()
        };
        // Who was only observed has nobody to be drained.
        let served = former.iter().filter(|(_, one)| !one.is_observed);
        for id in served.map(|(id, _)| id).chain(unseen.keys()) {
            let is_there = self.found.contains_key(id) || is_written(id);
            if is_there || self.leaving.contains_key(id) || self.unseen.contains_key(id) {
                continue;
            }
            let (turn, why) = if self.ignored.contains(id) {
                (Turn::Ignored, IGNORED)
            } else {
                (Turn::Leaves, REASON)
            };
            if let Some(record) = drain_of(id, fresh_id(), (now, why)) {
                let leaving = Leaving {
                    since: now,
                    from: former.get(id).map(|one| one.kubeconfig.to_string()),
                    record,
                };
                self.leaving.insert(id.clone(), leaving);
                turns.push((id.clone(), turn));
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

    /// Drops a cluster that has no kubeconfig now: one that is leaving, or one of which nobody knows. Tells which of them it was.
    pub(super) fn drop(&mut self, id: &ClusterId) -> Option<Absence> {
        let left = self.leaving.remove(id).map(|_| Absence::Gone);
        left.or_else(|| self.unseen.remove(id).map(|_| Absence::Unseen))
    }

    /// Lists the clusters that are leaving.
    pub(super) fn leaving(&self) -> impl Iterator<Item = (&ClusterId, &Leaving)> {
        self.leaving.iter()
    }

    /// Gives the drains of clusters that are leaving, and of those whose annotations say so now.
    pub(super) fn drains(&self, now: WallTime) -> OperatorRecords {
        let mut records = OperatorRecords::default();
        for leaving in self.leaving.values() {
            records.merge(leaving.record.clone(), now);
        }
        for id in self.drained(now) {
            // The same on every look: what is known of it goes on.
            let hash = content_hash(id.as_str().as_bytes());
            let name = format!("{ANNOTATED_ID}{}", hash.get(..32).unwrap_or_default());
            let record = drain_of(id, name, (WallTime(0), ANNOTATED));
            if let Some(record) = record {
                records.merge(record, now);
            }
        }
        records
    }

    /// Lists the clusters that are drained by their annotations now.
    pub(super) fn drained(&self, now: WallTime) -> impl Iterator<Item = &ClusterId> {
        let millis = i64::try_from(now.0).unwrap_or(i64::MAX);
        let now = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
        let found = self.found.iter().map(|(id, one)| (id, &one.read));
        found
            .chain(&self.unseen)
            .filter(move |(_, read)| read.said.is_drained(now))
            .map(|(id, _)| id)
    }

    /// Lists the clusters that are there, with where they are from.
    pub(super) fn joiners(&self) -> Vec<Joiner> {
        let found = self.found.iter();
        found
            .map(|(id, one)| Joiner {
                id: id.clone(),
                from: one.kubeconfig.to_string(),
                read: Arc::clone(&one.read),
            })
            .collect()
    }

    /// Gives what is to be kept of Secrets on disk, by source.
    pub(super) fn to_keep(&self) -> Vec<(String, Listing)> {
        let seen = self.seen.iter().filter_map(|(name, seen)| {
            let clusters = seen.listing.as_ref()?.clusters.iter();
            let secret = |one: &&FoundCluster| matches!(one.kubeconfig, Kubeconfig::Secret { .. });
            let clusters: Vec<FoundCluster> = clusters.filter(secret).cloned().collect();
            let listing = Listing {
                clusters,
                refused: Vec::new(),
            };
            (!listing.clusters.is_empty()).then(|| (name.clone(), listing))
        });
        seen.collect()
    }

    /// Gives why sources and their kubeconfigs are refused, by source. `unusable`: why those who follow the clusters cannot use
    /// their kubeconfigs.
    pub(super) fn refused(
        &self,
        unusable: &BTreeMap<&ClusterId, &str>,
    ) -> BTreeMap<String, Refusals> {
        let mut all: BTreeMap<&str, Vec<Rejection>> = BTreeMap::new();
        for (name, refused) in &self.refused {
            all.insert(name, refused.clone());
        }
        let names: Vec<String> = self.places().collect();
        for (id, why) in unusable {
            let Some(one) = self.found.get(*id) else {
                continue;
            };
            let kubeconfig = one.kubeconfig.to_string();
            let Some(name) = names.get(one.at) else {
                continue;
            };
            // It begins with the place, which stands apart here.
            let rest = why.strip_prefix(&*kubeconfig);
            let why = rest.and_then(|rest| rest.strip_prefix(": ")).unwrap_or(why);
            let refused = all.entry(name).or_default();
            refused.push(rejection(kubeconfig, why.to_owned()));
        }
        let all = all.into_iter();
        all.map(|(name, refused)| (name.to_owned(), refused.into_iter().collect()))
            .collect()
    }

    /// Lists the names of the sources.
    fn places(&self) -> impl Iterator<Item = String> {
        let sources = self.written.kubernetes.sources.iter();
        sources.map(|source| source.place.to_string())
    }

    /// Lists the sources with their names, and the directories with their fingerprints.
    pub(super) fn seen(&self) -> impl Iterator<Item = (String, Option<Fingerprint>)> {
        let sources = self.written.kubernetes.sources.iter();
        sources.map(|source| {
            let name = source.place.to_string();
            let seen = self.seen.get(&name);
            let fingerprint = match source.place {
                FoundIn::Directory(_) => {
                    Some(seen.map_or_else(<_>::default, |seen| seen.fingerprint))
                }
                FoundIn::Secrets(_) => None,
            };
            (name, fingerprint)
        })
    }

    /// Tells whether the Secrets of a source were listed since the start.
    pub(super) fn is_read(&self, name: &str) -> bool {
        self.seen.get(name).is_some_and(|seen| seen.is_read)
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
        for (id, access, source) in self.accesses() {
            let index = written.get(&id).copied().or_else(|| {
                let index = registry.index_of(&id)?;
                clusters.push((index, Arc::new(Cluster::named(id.clone()))));
                Some(index)
            });
            let Some(cluster) = index else {
                let why = "too many clusters: at most 65,535 names in the life of the process";
                let refused = self.refused.entry(source).or_default();
                refused.push(rejection(&id, why.to_owned()));
                continue;
            };
            let mut member = MemberConfig::new(cluster, id, access);
            let found = self.found.get(&member.id);
            if found.is_some_and(|one| one.is_observed) {
                observed.insert(cluster);
            }
            let read = found.map(|one| &one.read);
            if let Some(read) = read.or_else(|| self.unseen.get(&member.id)) {
                let said = &read.said;
                member.weight = said.weight.unwrap_or_default();
                let mut all = clusters.iter_mut();
                if !read.counted.is_empty()
                    && let Some((_, known)) = all.find(|(index, _)| *index == cluster)
                {
                    *known = Arc::new(said.over(known));
                }
            }
            kubernetes.members.push(member);
        }
        Joined {
            clusters,
            kubernetes,
            observed,
        }
    }

    /// Lists how those are reached that are not written, with their sources.
    fn accesses(&self) -> Vec<(ClusterId, Access, String)> {
        let sources = &self.written.kubernetes.sources;
        let found = self.found.iter().filter_map(|(id, one)| {
            let source: &ClusterSource = sources.get(one.at)?;
            let name = source.place.to_string();
            let exec = Arc::clone(&source.exec);
            let access = match &one.kubeconfig {
                Kubeconfig::File(file) => Access::Kubeconfig {
                    file: file.clone(),
                    context: None,
                    trust: Trust::Data { exec },
                },
                Kubeconfig::Secret { .. } => Access::Secret {
                    kubeconfig: self.seen.get(&name)?.kubeconfigs.get(id)?.clone(),
                    exec,
                },
            };
            Some((id.clone(), access, name))
        });
        let absent =
            |absence| move |id: &ClusterId| (id.clone(), Access::Absent(absence), String::new());
        let leaving = self.leaving.keys().map(absent(Absence::Gone));
        let unseen = self.unseen.keys().map(absent(Absence::Unseen));
        found.chain(leaving).chain(unseen).collect()
    }
}

/// Makes the id of a leaving. No two have one: what is known of an earlier one says nothing of this one.
fn fresh_id() -> String {
    use std::hash::{BuildHasher, Hasher};
    let number = std::collections::hash_map::RandomState::new().build_hasher();
    format!("leaving-{:016x}", number.finish())
}

/// Makes the drain of a cluster, from a moment on, for a reason.
fn drain_of(
    id: &ClusterId,
    record: String,
    (now, why): (WallTime, &str),
) -> Option<OperatorRecord> {
    Some(OperatorRecord {
        id: record.parse().ok()?,
        target: OperatorTarget::Cluster(id.clone()),
        intent: Intent::Drain,
        created: Said {
            time: now,
            actor: ACTOR.into(),
            reason: why.into(),
        },
        starts: now,
        expires: None,
        ended: None,
    })
}

/// Refuses something as a whole.
fn rejection(source: impl ToString, reason: String) -> Rejection {
    Rejection {
        source: source.to_string(),
        place: String::new(),
        reason,
    }
}
