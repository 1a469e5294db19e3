//! Directories of kubeconfig files: each file is a cluster of its name.
//!
//! Names are all that is read here: what a file says is read, and read again, by whoever follows the cluster.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs};

use super::secret::SecretText;
use crate::model::{ClusterId, Rejection};

/// Most files of one directory that are clusters.
const MAX_FILES: usize = 1000;
/// Most entries that are looked at: a directory that is something else must not cost a second each second.
const MAX_ENTRIES: usize = 10_000;
/// The files that count.
const EXTENSIONS: [&str; 4] = ["yaml", "yml", "kubeconfig", "conf"];

/// Where a kubeconfig stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kubeconfig {
    /// In a file, absolute if its directory is.
    File(PathBuf),
    /// In a Secret.
    Secret {
        /// Which, and its key.
        name: Box<str>,
        /// The kubeconfig.
        text: SecretText,
    },
}

impl fmt::Display for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Secret { name, .. } => f.write_str(name),
        }
    }
}

/// A cluster that was found, and its kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCluster {
    /// The cluster.
    pub id: ClusterId,
    /// Its kubeconfig.
    pub kubeconfig: Kubeconfig,
    /// Annotations of ours beside it; a file has none.
    pub annotations: Arc<BTreeMap<Box<str>, Box<str>>>,
}

/// What one look at a directory, or at Secrets, gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Its clusters by name.
    pub clusters: Vec<FoundCluster>,
    /// What is none, though it looks like it.
    pub refused: Vec<Rejection>,
}

/// Lists the kubeconfig files of a directory. Files that begin with a dot and those of other extensions are not looked at;
/// symbolic links are followed, as mounted Secrets are made of them.
///
/// # Errors
/// Why the directory cannot be read. That is not emptiness.
pub fn list_directory(directory: &Path) -> Result<Listing, String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("cannot read: {error}"))?;
    let mut names = Vec::new();
    for (count, entry) in entries.enumerate() {
        // Half of a directory is no directory.
        let entry = entry.map_err(|error| format!("cannot read: {error}"))?;
        if count >= MAX_ENTRIES {
            return Err(format!("has more than {MAX_ENTRIES} entries"));
        }
        let path = entry.path();
        if is_candidate(&path) {
            names.push(path);
        }
    }
    names.sort();
    Ok(sort_out(names))
}

/// Tells whether a name is one of a kubeconfig file.
fn is_candidate(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let extension = path.extension().unwrap_or_default();
    !name.as_encoded_bytes().starts_with(b".") && EXTENSIONS.iter().any(|known| extension == *known)
}

/// Finds the clusters that sorted files are named after.
fn sort_out(files: Vec<PathBuf>) -> Listing {
    let mut listing = Listing::default();
    let mut seen: BTreeMap<ClusterId, PathBuf> = BTreeMap::new();
    for file in files {
        // A link that leads nowhere is a file that cannot be read now: a cluster all the same.
        let is_other = fs::metadata(&file).is_ok_and(|found| !found.is_file());
        let stem = file.file_stem().unwrap_or_default();
        let id = stem.to_str().map(str::parse::<ClusterId>);
        let why = match id {
            _ if is_other => "is not a file".to_owned(),
            None => "its name is no UTF-8 text, and so no name of a cluster".to_owned(),
            Some(Err(error)) => format!("its name is no name of a cluster: {error}"),
            Some(Ok(id)) => match seen.get(&id) {
                Some(first) => format!("the cluster {id} is that of {} already", first.display()),
                None if listing.clusters.len() >= MAX_FILES => {
                    format!("a directory has at most {MAX_FILES} clusters")
                }
                None => {
                    seen.insert(id.clone(), file.clone());
                    listing.clusters.push(FoundCluster {
                        id,
                        kubeconfig: Kubeconfig::File(file),
                        annotations: Arc::default(),
                    });
                    continue;
                }
            },
        };
        listing.refused.push(Rejection {
            source: file.display().to_string(),
            place: String::new(),
            reason: why,
        });
    }
    listing
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_with_the_names_of_clusters_are_clusters() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [
            "aws-use1.yaml",
            "b.yml",
            "c.d.kubeconfig",
            "e.conf",
            // None of these is looked at.
            "README",
            "notes.txt",
            ".hidden.yaml",
            "x.yaml~",
            "y.yaml.bak",
            ".yaml",
            // These are refused.
            "Bad_Name.yaml",
            "b.yaml.conf.yaml",
            "e.yaml",
        ] {
            fs::write(at(name), "").unwrap();
        }
        fs::create_dir(at("folder.yaml")).unwrap();
        fs::create_dir(at("..2026")).unwrap();
        fs::write(at("..2026/mounted.yaml"), "").unwrap();
        symlink("..2026", at("..data")).unwrap();
        symlink("..data/mounted.yaml", at("mounted.yaml")).unwrap();
        symlink("nowhere", at("broken.yaml")).unwrap();
        let listing = list_directory(folder.path()).unwrap();
        let found: Vec<(&str, &str)> = listing
            .clusters
            .iter()
            .map(|found| {
                let Kubeconfig::File(file) = &found.kubeconfig else {
                    unreachable!("a directory has files")
                };
                let name = file.file_name().unwrap().to_str().unwrap();
                (found.id.as_str(), name)
            })
            .collect();
        assert_eq!(
            found,
            [
                ("aws-use1", "aws-use1.yaml"),
                ("b.yaml.conf", "b.yaml.conf.yaml"),
                ("b", "b.yml"),
                ("broken", "broken.yaml"),
                ("c.d", "c.d.kubeconfig"),
                ("e", "e.conf"),
                ("mounted", "mounted.yaml"),
            ]
        );
        let refused: Vec<String> = listing.refused.iter().map(ToString::to_string).collect();
        let expected = [
            ("Bad_Name.yaml", "no name of a cluster"),
            ("e.yaml", "is that of"),
            ("folder.yaml", "is not a file"),
        ];
        assert_eq!(refused.len(), expected.len(), "{refused:?}");
        for (shown, (name, why)) in refused.iter().zip(expected) {
            assert!(shown.contains(name) && shown.contains(why), "{shown}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_empty() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(list_directory(folder.path()), Ok(Listing::default()));
        let gone = list_directory(&folder.path().join("gone"));
        assert!(gone.unwrap_err().contains("No such file"));
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(list_directory(&file).is_err());
    }

    #[test]
    fn there_is_a_bound() {
        let files = (0..MAX_FILES + 2).map(|at| PathBuf::from(format!("/nowhere/{at:04}.yaml")));
        let listing = sort_out(files.collect());
        assert_eq!(listing.clusters.len(), MAX_FILES);
        assert_eq!(listing.refused.len(), 2);
    }
}
