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

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::config::{self, Defaults};

    const NOW: WallTime = WallTime(1_000_000);

    /// A folder with a configuration of two directories, `one` and `two`, and a registry.
    struct Site {
        folder: TempDir,
        registry: ClusterRegistry,
        directories: Directories,
    }

    impl Site {
        fn start() -> Self {
            let folder = tempfile::tempdir().unwrap();
            for name in ["one", "two"] {
                fs::create_dir(folder.path().join(name)).unwrap();
            }
            Self {
                folder,
                registry: ClusterRegistry::default(),
                directories: Directories::default(),
            }
        }

        fn configure(&mut self, clusters: &str, sources: &str) -> Vec<(String, Turn)> {
            let text = format!("version: 1\nclusters: {clusters}\nclustersFrom: {sources}\n");
            let defaults = Defaults {
                node_name: "n".to_owned(),
            };
            let path = self.folder.path().join("m.yaml");
            let parsed = config::parse(&text, &path, &mut self.registry, &defaults);
            let (config, _) = parsed.unwrap();
            named(self.directories.adopt(&config, NOW))
        }

        fn put(&self, name: &str) {
            fs::write(self.folder.path().join(name), "").unwrap();
        }

        fn remove(&self, name: &str) {
            fs::remove_file(self.folder.path().join(name)).unwrap();
        }

        fn look(&mut self) -> Vec<(String, Turn)> {
            named(self.directories.look(NOW))
        }

        /// All members with how they are reached, in short.
        fn members(&mut self) -> Vec<String> {
            let joined = self.directories.join(&mut self.registry);
            for member in &joined.kubernetes.members {
                let cluster = joined.clusters.iter().find(|(_, one)| one.id == member.id);
                assert_eq!(cluster.map(|(index, _)| *index), Some(member.cluster));
            }
            let members = joined.kubernetes.members.iter();
            members
                .map(|member| match &member.access {
                    Access::Kubeconfig { file, trust, .. } => {
                        let file = file.strip_prefix(self.folder.path()).unwrap().display();
                        let listed = match trust {
                            Trust::Whole => "trusted".to_owned(),
                            Trust::Data { exec } => exec.len().to_string(),
                        };
                        format!("{} {file} {listed}", member.id)
                    }
                    access => format!("{} {access:?}", member.id),
                })
                .collect()
        }

        fn refused(&self) -> String {
            let refused = self.directories.refused();
            let all = refused.values().flat_map(|refused| refused.kept().to_vec());
            let all: Vec<String> = all.map(|one| one.to_string()).collect();
            all.join("; ")
                .replace(self.folder.path().to_str().unwrap(), "")
        }
    }

    fn named(turns: Vec<(ClusterId, Turn)>) -> Vec<(String, Turn)> {
        let turns = turns.into_iter();
        turns.map(|(id, turn)| (id.to_string(), turn)).collect()
    }

    const BOTH: &str = "[{directory: one}, {directory: two, exec: [/bin/aws]}]";

    #[test]
    fn files_come_and_go_and_come_back() {
        let mut site = Site::start();
        site.put("one/a.yaml");
        site.put("two/b.yaml");
        let turns = site.configure("[]", BOTH);
        assert_eq!(
            turns,
            [("a".to_owned(), Turn::Found), ("b".to_owned(), Turn::Found)]
        );
        assert_eq!(site.members(), ["a one/a.yaml 0", "b two/b.yaml 1"]);
        assert_eq!(site.look(), []);
        // A look without the file is none yet: it may be put back in a moment.
        site.remove("one/a.yaml");
        assert_eq!(site.look(), []);
        site.put("one/a.conf");
        assert_eq!(site.look(), []);
        assert_eq!(site.members(), ["a one/a.conf 0", "b two/b.yaml 1"]);
        site.remove("one/a.conf");
        assert_eq!(site.look(), []);
        assert_eq!(site.look(), [("a".to_owned(), Turn::Leaves)]);
        assert_eq!(site.look(), []);
        assert_eq!(site.members(), ["b two/b.yaml 1", "a Absent(Gone)"]);
        let drains = site.directories.drains(NOW);
        let drain = drains.iter().next().unwrap();
        assert_eq!(drain.target.to_string(), "cluster a");
        assert_eq!(&*drain.created.reason, "its kubeconfig is gone");
        // It moves to the other directory.
        site.put("two/a.yaml");
        assert_eq!(site.look(), [("a".to_owned(), Turn::Returns)]);
        assert_eq!(site.members(), ["a two/a.yaml 1", "b two/b.yaml 1"]);
        assert_eq!(site.directories.drains(NOW).len(), 0);
        // Dropped, it is nobody.
        site.remove("two/a.yaml");
        site.look();
        site.look();
        let a = "a".parse().unwrap();
        assert!(site.directories.drop(&a) && !site.directories.drop(&a));
        assert_eq!(site.look(), []);
        assert_eq!(site.members(), ["b two/b.yaml 1"]);
    }

    #[test]
    fn a_directory_that_cannot_be_read_is_not_empty() {
        let mut site = Site::start();
        site.put("one/a.yaml");
        site.configure("[]", BOTH);
        let (there, aside) = (site.folder.path().join("one"), site.folder.path().join("x"));
        fs::rename(&there, &aside).unwrap();
        for _ in 0..3 {
            assert_eq!(site.look(), []);
        }
        assert_eq!(site.members(), ["a one/a.yaml 0"]);
        assert!(
            site.refused().starts_with("/one: cannot read"),
            "{}",
            site.refused()
        );
        fs::rename(&aside, &there).unwrap();
        assert_eq!(site.look(), []);
        assert_eq!(site.refused(), "");
        // Without the directory in the configuration they leave at once: that was an operator's word.
        let turns = site.configure("[]", "[{directory: two}]");
        assert_eq!(turns, [("a".to_owned(), Turn::Leaves)]);
    }

    #[test]
    fn what_was_served_before_the_start_is_leaving_or_not_known() {
        let ids: Vec<ClusterId> = ["a", "b", "c"].map(|id| id.parse().unwrap()).into();
        let mut site = Site::start();
        site.put("one/b.yaml");
        fs::remove_dir(site.folder.path().join("two")).unwrap();
        site.configure("[{name: c, kubeconfig: {file: c.yaml}}]", BOTH);
        let turns = site.directories.remember(ids.iter(), NOW);
        assert_eq!(turns, []);
        let seen = ["c c.yaml trusted", "b one/b.yaml 0", "a Absent(Unseen)"];
        assert_eq!(site.members(), seen);
        assert_eq!(site.directories.drains(NOW).len(), 0);
        // Now it can be read, and has none of it.
        fs::create_dir(site.folder.path().join("two")).unwrap();
        assert_eq!(site.look(), [("a".to_owned(), Turn::Leaves)]);
        assert_eq!(site.members()[2], "a Absent(Gone)");
        // Nobody looks for clusters: as today.
        let mut site = Site::start();
        site.configure("[]", "[]");
        assert_eq!(site.directories.remember(ids.iter(), NOW), []);
        assert_eq!(site.members(), Vec::<String>::new());
        assert!(site.directories.is_idle());
    }

    #[test]
    fn who_is_observed_is_admitted_by_an_entry_or_another_directory_and_leaves_to_be_observed() {
        let mut site = Site::start();
        site.put("one/a.yaml");
        site.put("one/b.yaml");
        let sources = "[{directory: one, admit: observe}, {directory: two}]";
        let mut step = |what: &dyn Fn(&mut Site) -> Vec<(String, Turn)>| {
            let turns = what(&mut site);
            let joined = site.directories.join(&mut site.registry);
            let names = joined.clusters.iter();
            let observed = names.filter(|(index, _)| joined.observed.contains(index));
            let observed: Vec<String> = observed.map(|(_, one)| one.id.to_string()).collect();
            let turns: Vec<String> = turns
                .iter()
                .map(|(id, turn)| format!("{id} {turn:?}"))
                .collect();
            (turns.join(", "), observed.join(" "))
        };
        let text = |turns: &str, observed: &str| (turns.to_owned(), observed.to_owned());
        assert_eq!(
            step(&|site| site.configure("[]", sources)),
            text("a Found, b Found", "a b")
        );
        // An operator names it.
        assert_eq!(
            step(&|site| site.configure("[{name: a}]", sources)),
            text("", "b")
        );
        // No longer: it was served, and leaves first.
        assert_eq!(
            step(&|site| site.configure("[]", sources)),
            text("a Leaves", "b")
        );
        assert_eq!(step(&Site::look), text("", "b"));
        let drop = |site: &mut Site| {
            assert!(site.directories.drop(&"a".parse().unwrap()));
            site.look()
        };
        assert_eq!(step(&drop), text("a Found", "a b"));
        // It is moved.
        let rename = |from: &'static str, to: &'static str| {
            move |site: &mut Site| {
                let folder = site.folder.path();
                fs::rename(folder.join(from), folder.join(to)).unwrap();
                [site.look(), site.look()].concat()
            }
        };
        assert_eq!(step(&rename("one/b.yaml", "two/b.yaml")), text("", "a"));
        assert_eq!(
            step(&rename("two/b.yaml", "one/b.yaml")),
            text("b Leaves", "a")
        );
        assert_eq!(
            step(&rename("one/b.yaml", "two/b.yaml")),
            text("b Returns", "a")
        );
        // Who was only observed goes at once.
        let remove = |site: &mut Site| {
            site.remove("one/a.yaml");
            [site.look(), site.look()].concat()
        };
        assert_eq!(step(&remove), text("", ""));
    }

    #[test]
    fn who_is_written_has_the_last_word() {
        let mut site = Site::start();
        for file in ["one/a.yaml", "one/b.yaml", "two/b.yaml", "one/No.yaml"] {
            site.put(file);
        }
        let written = "[{name: a, kubeconfig: {file: own}}, {name: b, cost: 7}]";
        site.configure(written, BOTH);
        assert_eq!(site.members(), ["a own trusted", "b one/b.yaml 0"]);
        let joined = site.directories.join(&mut site.registry);
        let costs: Vec<f64> = joined.clusters.iter().map(|(_, one)| one.cost_km).collect();
        assert_eq!(costs, [0.0, 7.0]);
        let refused = site.refused();
        for part in [
            "/one/a.yaml: the cluster a has a kubeconfig of its own",
            "/two/b.yaml: the cluster b is that of /one/b.yaml already",
            "/one/No.yaml: its name is no name of a cluster",
        ] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        // It is written without a kubeconfig of its own now, and then with one while it leaves.
        assert_eq!(site.configure("[]", BOTH), [("a".to_owned(), Turn::Found)]);
        site.remove("one/a.yaml");
        site.look();
        assert_eq!(site.look(), [("a".to_owned(), Turn::Leaves)]);
        let turns = site.configure(written, BOTH);
        assert_eq!(turns, [("a".to_owned(), Turn::Ends)]);
        assert_eq!(site.members()[0], "a own trusted");
    }
}
