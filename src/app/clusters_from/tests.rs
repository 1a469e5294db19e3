//! Files that come and go, directories that cannot be read, and who is admitted.

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
