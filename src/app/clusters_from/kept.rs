//! Clusters of Secrets on disk: who is watched after a start, though the API server that has the Secrets is not there.
//!
//! The file has kubeconfigs as the Secrets have them, and nobody else may read it (0600). What is found in a directory is not in
//! it: the directory is on disk itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::controller::LastGood;
use crate::model::ClusterId;
use crate::source::kubernetes::{FoundCluster, Kubeconfig, Listing, SecretText};

/// Version of the layout.
const VERSION: u32 = 1;

/// What is kept, by the name of the source. It is not shown: it has secrets.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
struct KeptDto {
    version: u32,
    sources: BTreeMap<String, Vec<ClusterDto>>,
}

/// A cluster.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClusterDto {
    id: String,
    secret: Box<str>,
    kubeconfig: String,
    annotations: BTreeMap<Box<str>, Box<str>>,
}

/// Keeps the clusters of Secrets.
#[derive(Debug, Default)]
pub(in crate::app) struct Keeper {
    last_good: Option<LastGood>,
    /// What was written last; `None`: nothing was written or read yet.
    written: Option<Vec<(String, Listing)>>,
    /// The last write failed, and that was told.
    is_failing: bool,
}

impl Keeper {
    /// Reads what was kept, by source. What cannot be read is told and done without.
    pub(in crate::app) fn open(last_good: Option<LastGood>) -> (Self, BTreeMap<String, Listing>) {
        let mut keeper = Self {
            last_good,
            ..Self::default()
        };
        let Some(last_good) = &keeper.last_good else {
            return (keeper, BTreeMap::new());
        };
        let read: Option<KeptDto> = last_good.read_kubeconfigs().unwrap_or_else(|error| {
            let error = super::super::output::in_one(&error);
            warn!(%error, "Clusters of Secrets on disk are not usable; they come with their Secrets");
            None
        });
        let sources = read.unwrap_or_default().sources.into_iter();
        let listings: BTreeMap<String, Listing> = sources
            .map(|(name, clusters)| (name, listing_of(clusters)))
            .collect();
        let written = listings.iter();
        keeper.written = Some(
            written
                .map(|(name, listing)| (name.clone(), listing.clone()))
                .collect(),
        );
        (keeper, listings)
    }

    /// Writes what there is now, where that is another; blocks.
    pub(in crate::app) fn keep(&mut self, now: Vec<(String, Listing)>) {
        let Some(last_good) = &self.last_good else {
            return;
        };
        let is_nothing = now.is_empty() && self.written.as_ref().is_none_or(Vec::is_empty);
        if is_nothing || self.written.as_ref() == Some(&now) {
            return;
        }
        let sources = now.iter().map(|(name, listing)| {
            let clusters = listing.clusters.iter().filter_map(dto_of);
            (name.clone(), clusters.collect())
        });
        let dto = KeptDto {
            version: VERSION,
            sources: sources.collect(),
        };
        match last_good.write_kubeconfigs(&dto) {
            Ok(()) => {
                self.written = Some(now);
                self.is_failing = false;
            }
            Err(error) if !self.is_failing => {
                let error = super::super::output::in_one(&error);
                warn!(%error, "Clusters of Secrets could not be written; after a restart they come with their Secrets");
                self.is_failing = true;
            }
            Err(_) => {}
        }
    }
}

fn listing_of(clusters: Vec<ClusterDto>) -> Listing {
    let clusters = clusters.into_iter().filter_map(|dto| {
        Some(FoundCluster {
            id: dto.id.parse::<ClusterId>().ok()?,
            kubeconfig: Kubeconfig::Secret {
                name: dto.secret,
                text: SecretText::from(dto.kubeconfig),
            },
            annotations: Arc::new(dto.annotations),
        })
    });
    Listing {
        clusters: clusters.collect(),
        refused: Vec::new(),
    }
}

fn dto_of(found: &FoundCluster) -> Option<ClusterDto> {
    let Kubeconfig::Secret { name, text } = &found.kubeconfig else {
        return None;
    };
    Some(ClusterDto {
        id: found.id.to_string(),
        secret: name.clone(),
        kubeconfig: text.expose().to_owned(),
        annotations: BTreeMap::clone(&found.annotations),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn listing(text: &str) -> Listing {
        listing_of(vec![ClusterDto {
            id: "africa".to_owned(),
            secret: "Secret m/africa, key kubeconfig".into(),
            kubeconfig: text.to_owned(),
            annotations: BTreeMap::from([("meridian-dns.io/region".into(), "r".into())]),
        }])
    }

    #[test]
    fn what_is_kept_is_read_again_and_by_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Keeper::open(Some(LastGood::at(folder.path())));
        let (mut keeper, held) = open();
        assert!(held.is_empty());
        keeper.keep(Vec::new());
        let file = folder.path().join("kubeconfigs.json");
        assert!(!file.exists(), "who has no Secrets needs no file");
        keeper.keep(vec![("a".to_owned(), listing("canary"))]);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(keeper);
        let (mut keeper, held) = open();
        assert_eq!(held, BTreeMap::from([("a".to_owned(), listing("canary"))]));
        assert!(!format!("{keeper:?}").contains("canary"));
        // What is not looked for any more is not kept.
        keeper.keep(Vec::new());
        assert!(!fs::read_to_string(&file).unwrap().contains("canary"));
        // A torn file is none.
        fs::write(&file, "canary").unwrap();
        drop(keeper);
        assert!(open().1.is_empty());
        assert!(Keeper::open(None).1.is_empty());
    }
}
