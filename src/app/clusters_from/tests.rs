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
        self.refused_with(&[])
    }

    /// Beside it, clusters whose kubeconfigs cannot be used, and why.
    fn refused_with(&self, unusable: &[(&str, &str)]) -> String {
        let folder = self.folder.path().display();
        let unusable = unusable.iter().map(|(id, why)| {
            let id: ClusterId = id.parse().unwrap();
            (id, why.replace("DIR", &folder.to_string()))
        });
        let unusable: Vec<(ClusterId, String)> = unusable.collect();
        let unusable = unusable.iter().map(|(id, why)| (id, why.as_str()));
        let refused = self.directories.refused(&unusable.collect());
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
    assert_eq!(site.directories.drop(&a), Some(Absence::Gone));
    assert_eq!(site.directories.drop(&a), None);
    // Who is there is not dropped.
    assert_eq!(site.directories.drop(&"b".parse().unwrap()), None);
    assert_eq!(site.look(), []);
    assert_eq!(site.members(), ["b two/b.yaml 1"]);
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_refused_with_its_source() {
    let mut site = Site::start();
    site.put("one/a.yaml");
    site.put("one/Bad.yaml");
    site.put("two/b.yaml");
    site.configure("[]", BOTH);
    let unusable = [
        ("a", "DIR/one/a.yaml: is no kubeconfig in YAML"),
        ("b", "server: must be an http or https URL"),
        // Of one that is nowhere it is no word.
        ("c", "c.yaml: is no kubeconfig in YAML"),
    ];
    let refused = site.refused_with(&unusable);
    let parts: Vec<&str> = refused.split("; ").collect();
    let [name, garbage, server] = parts[..] else {
        panic!("{refused}")
    };
    assert!(name.starts_with("/one/Bad.yaml: its name is no name"));
    assert_eq!(garbage, "/one/a.yaml: is no kubeconfig in YAML");
    assert_eq!(server, "/two/b.yaml: server: must be an http or https URL");
    // It counts with its own source.
    let id: ClusterId = "b".parse().unwrap();
    let of_b = site.directories.refused(&[(&id, "why")].into());
    let two = site.folder.path().join("two").display().to_string();
    assert_eq!(of_b[&two].count(), 1);
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
fn who_is_kept_because_nobody_knows_may_be_dropped_and_found_again() {
    let ids: Vec<ClusterId> = ["a", "b"].map(|id| id.parse().unwrap()).into();
    let mut site = Site::start();
    fs::remove_dir(site.folder.path().join("two")).unwrap();
    site.configure("[]", BOTH);
    assert_eq!(site.directories.remember(ids.iter(), NOW), []);
    assert_eq!(site.members(), ["a Absent(Unseen)", "b Absent(Unseen)"]);
    assert_eq!(site.directories.drop(&ids[0]), Some(Absence::Unseen));
    assert_eq!(site.directories.drop(&ids[0]), None);
    // It stays away, whatever is read and reloaded meanwhile.
    assert_eq!(site.look(), []);
    assert_eq!(site.configure("[]", BOTH), []);
    assert_eq!(site.members(), ["b Absent(Unseen)"]);
    // Where it is after all, it is found as a new one; the other one only returns.
    fs::create_dir(site.folder.path().join("two")).unwrap();
    site.put("two/a.yaml");
    site.put("two/b.yaml");
    assert_eq!(site.look(), [("a".to_owned(), Turn::Found)]);
    assert_eq!(site.members(), ["a two/a.yaml 1", "b two/b.yaml 1"]);
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
        assert!(site.directories.drop(&"a".parse().unwrap()).is_some());
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

const SECRETS: &str = "[{secrets: {inCluster: true, namespace: m}}]";

/// A cluster of a Secret: its name, its kubeconfig and its annotations.
type Row<'r> = (&'r str, &'r str, &'r [(&'r str, &'r str)]);

/// What Secrets have.
fn listing(rows: &[Row<'_>]) -> Listing {
    let found = |(id, text, annotations): &Row<'_>| FoundCluster {
        id: id.parse().unwrap(),
        kubeconfig: Kubeconfig::Secret {
            name: format!("Secret m/{id}, key kubeconfig").into(),
            text: (*text).to_owned().into(),
        },
        annotations: Arc::new(
            annotations
                .iter()
                .map(|(key, value)| (format!("meridian-dns.io/{key}").into(), (*value).into()))
                .collect(),
        ),
    };
    Listing {
        clusters: rows.iter().map(found).collect(),
        refused: Vec::new(),
    }
}

impl Site {
    /// Pretends that the Secrets of the only place are these.
    fn hold(&self, rows: &[Row<'_>]) {
        let sources = &self.directories.written.kubernetes.sources;
        let FoundIn::Secrets(place) = &sources[0].place else {
            panic!("{sources:?}");
        };
        self.directories.secrets.pretend(place, listing(rows));
    }

    fn access(&mut self, name: &str) -> Access {
        let joined = self.directories.join(&mut self.registry);
        let mut members = joined.kubernetes.members.into_iter();
        members.find(|one| one.id.as_str() == name).unwrap().access
    }
}

#[test]
fn clusters_of_secrets_come_and_go_as_those_of_files_do() {
    let mut site = Site::start();
    assert_eq!(site.configure("[]", SECRETS), []);
    // Nobody has listed them yet: that is no emptiness.
    let ids: Vec<ClusterId> = vec!["a".parse().unwrap()];
    assert_eq!(site.directories.remember(ids.iter(), NOW), []);
    assert_eq!(site.members(), ["a Absent(Unseen)"]);
    site.hold(&[("a", "one", &[]), ("b", "two", &[])]);
    assert_eq!(site.look(), [("b".to_owned(), Turn::Found)]);
    let (before, other) = (site.access("a"), site.access("b"));
    let Access::Secret { kubeconfig, .. } = &before else {
        panic!("{before:?}");
    };
    assert_eq!(kubeconfig.name(), "Secret m/a, key kubeconfig");
    // Another token is no other access: whoever follows the cluster takes it up by himself.
    site.hold(&[("a", "three", &[]), ("b", "two", &[])]);
    assert_eq!(site.look(), []);
    assert!(site.access("a") == before && site.access("b") == other);
    // One goes, and is given a look's time.
    site.hold(&[("b", "two", &[])]);
    assert_eq!(site.look(), []);
    assert_eq!(site.look(), [("a".to_owned(), Turn::Leaves)]);
    site.hold(&[("b", "two", &[]), ("a", "four", &[])]);
    assert_eq!(site.look(), [("a".to_owned(), Turn::Returns)]);
    assert_ne!(site.access("a"), before, "it begins anew");
    // One that the configuration has is refused by its place.
    site.configure("[{name: b, kubeconfig: {file: own}}]", SECRETS);
    let refused = site.refused();
    assert!(
        refused.contains("Secret m/b, key kubeconfig: the cluster b has a kubeconfig of its own"),
        "{refused}"
    );
    assert!(!format!("{:?}", site.directories).contains("four"));
}

#[test]
fn many_that_are_gone_at_once_stay_for_a_while() {
    let mut site = Site::start();
    site.configure("[]", SECRETS);
    let all: [Row<'_>; 3] = [("a", "", &[]), ("b", "", &[]), ("c", "", &[])];
    site.hold(&all);
    site.look();
    site.hold(&[]);
    for _ in 0..3 {
        assert_eq!(site.look(), []);
    }
    let refused = site.refused();
    assert!(
        refused.contains("3 clusters are gone at once") && refused.contains("a, b, c stay until"),
        "{refused}"
    );
    // They are back: nothing was.
    site.hold(&all);
    assert_eq!(site.look(), []);
    assert_eq!(site.refused(), "");
    site.hold(&all[..1]);
    site.look();
    assert_eq!(site.look(), []);
    assert!(site.refused().contains("2 clusters are gone at once"));
    // Gone still, they leave, drained.
    let late = WallTime(NOW.0 + 300_000);
    let turns = named(site.directories.look(late));
    let leaves = ["b", "c"].map(|id| (id.to_owned(), Turn::Leaves));
    assert_eq!(turns, leaves);
    assert_eq!(site.directories.drains(late).len(), 2);
    // Where that is not wanted they leave at once.
    let mut site = Site::start();
    let released = format!("{SECRETS}\nkubernetes: {{massDeletion: {{action: release}}}}");
    site.configure("[]", &released);
    site.hold(&all);
    site.look();
    site.hold(&[]);
    site.look();
    assert_eq!(site.look().len(), 3);
}

#[test]
fn what_was_kept_of_secrets_is_followed_before_anybody_lists_them() {
    let mut site = Site::start();
    site.configure("[]", SECRETS);
    site.hold(&[("a", "one", &[("region", "r")])]);
    site.look();
    let kept: BTreeMap<String, Listing> = site.directories.to_keep().into_iter().collect();
    assert_eq!(kept.len(), 1);
    let ids: Vec<ClusterId> = ["a", "b"].map(|id| id.parse().unwrap()).into();
    let mut site = Site::start();
    site.directories = Directories::of_disk(kept);
    site.configure("[]", SECRETS);
    assert_eq!(site.directories.remember(ids.iter(), NOW), []);
    assert!(matches!(site.access("a"), Access::Secret { .. }));
    assert_eq!(site.access("b"), Access::Absent(Absence::Unseen));
    assert!(!site.directories.to_keep().is_empty());
    // It is listed, and neither is there.
    site.hold(&[]);
    assert_eq!(site.look(), [("b".to_owned(), Turn::Leaves)]);
    assert_eq!(site.look(), [("a".to_owned(), Turn::Leaves)]);
    assert!(site.directories.to_keep().is_empty());
    // What the configuration does not look for is not kept.
    site.configure("[]", "[]");
    assert!(site.directories.to_keep().is_empty());
}

#[test]
fn annotations_place_weigh_drain_and_ignore() {
    let mut site = Site::start();
    site.configure(
        "[{name: a, cost: 7, provider: aws, region: eu-west-1}]",
        SECRETS,
    );
    let cloud: &[(&str, &str)] = &[
        ("region", "af-south-1"),
        ("geo-tag", "south"),
        ("cluster-weight", "5"),
        ("drain", "1970-01-01T00:16:40Z/1s"),
        ("capacity", "5"),
    ];
    site.hold(&[("a", "", cloud), ("b", "", &[("ignore", "true")])]);
    site.look();
    let joined = site.directories.join(&mut site.registry);
    let [(_, cluster)] = &joined.clusters[..] else {
        panic!("{:?}", joined.clusters);
    };
    assert_eq!(cluster.location.country.unwrap().as_str(), "ZA");
    assert_eq!((&*cluster.tags[0], cluster.cost_km), ("south", 7.0));
    assert_eq!(joined.kubernetes.members[0].weight.0, 5);
    let refused = site.refused();
    assert_eq!(
        refused,
        "Secret m/a, key kubeconfig: meridian-dns.io/capacity: `5`: not supported yet"
    );
    // The window is NOW, and a second of it.
    let drains = site.directories.drains(NOW);
    let drain = drains.iter().next().unwrap();
    assert_eq!(&*drain.created.reason, "its annotation `drain` says so");
    assert_eq!(drain.target.to_string(), "cluster a");
    // Who is noted as drained is who has a drain, to the millisecond: what ends after that is found by the next look.
    let directories = site.directories.clone();
    let mut joining = crate::app::joining::Joining {
        directories,
        ..Default::default()
    };
    for (after, count) in [(0, 1), (999, 1), (1000, 0)] {
        let now = WallTime(NOW.0 + after);
        assert_eq!(joining.drains_at(now).len(), count);
        assert_eq!(joining.drained.len(), count);
    }
    // One that is told to be ignored leaves first, as any other.
    site.hold(&[("a", "", &[("ignore", "true")])]);
    assert_eq!(site.look(), [("a".to_owned(), Turn::Ignored)]);
    let (_, leaving) = site.directories.leaving().next().unwrap();
    assert_eq!(leaving.why(), "its annotation `ignore` says so");
    assert_eq!(leaving.from.as_deref(), Some("Secret m/a, key kubeconfig"));
    assert_eq!(site.directories.drains(NOW).len(), 1);
}

#[test]
fn a_source_in_other_words_drains_nobody_before_it_was_read() {
    let said: &[(&str, &str)] = &[
        ("region", "af-south-1"),
        ("provider", "aws"),
        ("cluster-weight", "5"),
        ("drain", "true"),
    ];
    let all: [Row<'_>; 2] = [("a", "one", said), ("b", "two", &[])];
    let mut site = Site::start();
    site.configure("[]", SECRETS);
    site.hold(&all);
    assert_eq!(site.look().len(), 2);
    // Another selector, and then another namespace before anybody has listed the first.
    for words in ["namespace: m, selector: c=d", "namespace: n"] {
        let sources = format!("[{{secrets: {{inCluster: true, {words}}}}}]");
        assert_eq!(site.configure("[]", &sources), []);
        assert_eq!(site.look(), []);
        assert_eq!(site.members(), ["a Absent(Unseen)", "b Absent(Unseen)"]);
        // What was said of them holds on.
        let joined = site.directories.join(&mut site.registry);
        assert_eq!(joined.kubernetes.members[0].weight.0, 5);
        let country = joined.clusters[0].1.location.country;
        assert_eq!(country.unwrap().as_str(), "ZA");
        let drains = site.directories.drains(NOW);
        let drain = drains.iter().next().unwrap();
        assert_eq!(drain.target.to_string(), "cluster a");
        assert_eq!(drains.len(), 1);
    }
    site.hold(&all[..1]);
    assert_eq!(site.look(), [("b".to_owned(), Turn::Leaves)]);
    assert!(matches!(site.access("a"), Access::Secret { .. }));
    assert_eq!(site.look(), []);

    // Secrets in the place of a directory; the other one, which is read, changes nothing.
    let mut site = Site::start();
    site.put("one/a.yaml");
    site.put("one/b.yaml");
    site.configure("[]", BOTH);
    let instead = "[{secrets: {inCluster: true, namespace: m}}, {directory: two}]";
    assert_eq!(site.configure("[]", instead), []);
    assert_eq!(site.look(), []);
    assert_eq!(site.members(), ["a Absent(Unseen)", "b Absent(Unseen)"]);
    // It is back before they were read.
    assert_eq!(site.configure("[]", BOTH), []);
    assert_eq!(site.members(), ["a one/a.yaml 0", "b one/b.yaml 0"]);
    site.configure("[]", instead);
    site.hold(&all[1..]);
    assert_eq!(site.look(), [("a".to_owned(), Turn::Leaves)]);
    // All were read: one that is taken out lets go at once.
    let turns = site.configure("[]", "[{directory: two}]");
    assert_eq!(turns, [("b".to_owned(), Turn::Leaves)]);
    // Who was only observed has nobody to be kept for.
    let mut site = Site::start();
    site.put("one/a.yaml");
    site.configure("[]", "[{directory: one, admit: observe}]");
    assert_eq!(site.configure("[]", SECRETS), []);
    assert_eq!(site.members(), Vec::<String>::new());
}
