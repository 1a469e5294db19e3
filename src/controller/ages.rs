//! When each member cluster was seen last, kept over restarts; and which were not for longer than `kubernetes.maxAge`.
//!
//! Not seeing is not down (DESIGN section 2): for age alone nothing is removed. Addresses that neither the API of their cluster
//! nor a probe confirmed for that long are used after all others, until either does again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::folder::{LastGood, LastGoodError, NamedFile, content_hash};
use crate::model::{ClusterId, ClusterIndex, WallTime};

/// The file: far more clusters than there can be.
const FILE: NamedFile = NamedFile {
    name: "seen.json",
    version: 1,
    max: 1 << 20,
};

/// What is known of one member cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Its index.
    pub cluster: ClusterIndex,
    /// Its name.
    pub id: ClusterId,
    /// When its API confirmed last what it offers: now, where it is synced. `None`: not since the start.
    pub seen: Option<WallTime>,
}

/// When member clusters were seen last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ages {
    seen: BTreeMap<ClusterId, WallTime>,
    /// Those that are too old, as they were told last.
    old: BTreeSet<ClusterIndex>,
}

/// The mirror of [`Ages`] on disk: Unix milliseconds by cluster.
#[derive(Debug, Serialize, Deserialize)]
struct SeenDto {
    version: u32,
    seen: BTreeMap<String, u64>,
}

impl Ages {
    /// Looks at all member clusters. Gives those that are too old, where these are others than before.
    ///
    /// Of a cluster that was never seen the age counts from the moment that this was known first: nobody can say more. A clock
    /// that went back makes nothing older.
    pub fn look(
        &mut self,
        sights: &[Sight],
        max_age: Duration,
        now: WallTime,
    ) -> Option<BTreeSet<ClusterIndex>> {
        let ids: BTreeSet<&ClusterId> = sights.iter().map(|sight| &sight.id).collect();
        self.seen.retain(|id, _| ids.contains(id));
        let mut old = BTreeSet::new();
        for sight in sights {
            let held = self.seen.entry(sight.id.clone()).or_insert(now);
            if let Some(seen) = sight.seen {
                *held = seen;
            }
            let age = Duration::from_millis(now.since(*held));
            if age > max_age {
                old.insert(sight.cluster);
            }
        }
        let is_new = old != self.old;
        self.old.clone_from(&old);
        is_new.then_some(old)
    }

    /// Tells whether a cluster was too old at the last look.
    #[must_use]
    pub fn is_old(&self, cluster: ClusterIndex) -> bool {
        self.old.contains(&cluster)
    }

    /// Gives when a cluster was seen last, or, where it never was, when it was known first.
    #[must_use]
    pub fn since(&self, id: &ClusterId) -> Option<WallTime> {
        self.seen.get(id).copied()
    }

    /// Reads what was written last; nothing when nothing ever was.
    ///
    /// # Errors
    /// When the file cannot be read or is torn: go on without it, and say so.
    pub fn read(last_good: &LastGood) -> Result<Self, LastGoodError> {
        let Some(dto) = last_good.read_named::<SeenDto>(&FILE)? else {
            return Ok(Self::default());
        };
        let seen = dto.seen.into_iter();
        let seen = seen.filter_map(|(id, at)| Some((id.parse().ok()?, WallTime(at))));
        Ok(Self {
            seen: seen.collect(),
            old: BTreeSet::new(),
        })
    }

    /// Writes them, whole or not at all. Blocks on the disk. A node without member clusters needs no file.
    ///
    /// # Errors
    /// When the disk is full or read-only: the former file stays.
    pub fn write(&self, last_good: &LastGood) -> Result<(), LastGoodError> {
        if self.seen.is_empty() && !last_good.has_named(&FILE) {
            return Ok(());
        }
        let seen = self.seen.iter();
        let dto = SeenDto {
            version: FILE.version,
            seen: seen.map(|(id, at)| (id.to_string(), at.0)).collect(),
        };
        let body = serde_json::to_vec(&dto);
        let body = body.map_err(|error| last_good.unusable(&FILE, error.to_string()))?;
        last_good.write_named(&FILE, (&content_hash(&body), &body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn hours(count: u64) -> WallTime {
        WallTime(1_000 + count * 3_600_000)
    }

    fn sight(index: u16, seen: Option<WallTime>) -> Sight {
        Sight {
            cluster: ClusterIndex(index),
            id: format!("c{index}").parse().unwrap(),
            seen,
        }
    }

    fn set(indices: &[u16]) -> BTreeSet<ClusterIndex> {
        indices.iter().copied().map(ClusterIndex).collect()
    }

    #[test]
    fn a_cluster_grows_old_while_it_is_not_seen_and_is_young_again_at_once() {
        let mut ages = Ages::default();
        let stale = Some(hours(1));
        assert!(!ages.is_old(ClusterIndex(0)) && ages.since(&sight(0, None).id).is_none());
        for (now, sights, wanted) in [
            (1, [sight(0, Some(hours(1))), sight(1, None)], None),
            (24, [sight(0, stale), sight(1, None)], None),
            // A day exactly is not longer than a day.
            (25, [sight(0, stale), sight(1, Some(hours(25)))], None),
            (
                26,
                [sight(0, stale), sight(1, Some(hours(26)))],
                Some(set(&[0])),
            ),
            (27, [sight(0, stale), sight(1, Some(hours(26)))], None),
            (
                51,
                [sight(0, stale), sight(1, Some(hours(26)))],
                Some(set(&[0, 1])),
            ),
            // The clock goes back: nothing is older for it, and nothing younger than it was seen.
            (
                20,
                [sight(0, stale), sight(1, Some(hours(26)))],
                Some(set(&[])),
            ),
            (
                52,
                [sight(0, stale), sight(1, Some(hours(26)))],
                Some(set(&[0, 1])),
            ),
            (
                53,
                [sight(0, Some(hours(53))), sight(1, Some(hours(26)))],
                Some(set(&[1])),
            ),
        ] {
            assert_eq!(ages.look(&sights, DAY, hours(now)), wanted, "at {now}");
            assert_eq!(ages.since(&sights[0].id), sights[0].seen, "at {now}");
            let is_old = wanted.is_some_and(|wanted| wanted.contains(&ClusterIndex(0)));
            assert!(!is_old || ages.is_old(ClusterIndex(0)), "at {now}");
        }
        assert_eq!(ages.look(&[], DAY, hours(53)), Some(set(&[])));
    }

    #[test]
    fn a_cluster_never_seen_counts_from_when_it_was_known() {
        let mut ages = Ages::default();
        let never = [sight(3, None)];
        assert_eq!(ages.look(&never, DAY, hours(5)), None);
        assert_eq!(ages.look(&never, DAY, hours(29)), None);
        assert_eq!(ages.look(&never, DAY, hours(30)), Some(set(&[3])));
        // A longer patience makes it young, a shorter one old.
        assert_eq!(ages.look(&never, DAY * 2, hours(30)), Some(set(&[])));
        assert_eq!(ages.look(&never, DAY / 2, hours(30)), Some(set(&[3])));
    }

    #[test]
    fn a_restart_makes_nothing_younger() {
        let folder = tempfile::tempdir().unwrap();
        let last_good = LastGood::at(folder.path());
        assert_eq!(Ages::read(&last_good).unwrap(), Ages::default());
        let mut ages = Ages::default();
        ages.write(&last_good).unwrap();
        assert!(!last_good.has_named(&FILE));
        assert_eq!(ages.look(&[sight(0, Some(hours(1)))], DAY, hours(1)), None);
        ages.write(&last_good).unwrap();
        for _ in 0..2 {
            let mut again = Ages::read(&last_good).unwrap();
            assert_eq!(again.look(&[sight(0, None)], DAY, hours(20)), None);
            again.write(&last_good).unwrap();
        }
        let mut again = Ages::read(&last_good).unwrap();
        assert_eq!(
            again.look(&[sight(0, None)], DAY, hours(26)),
            Some(set(&[0]))
        );
        let other = b"{\"version\": 9, \"seen\": {}}";
        last_good
            .write_named(&FILE, (&content_hash(other), other))
            .unwrap();
        assert!(Ages::read(&last_good).is_err());
        again.write(&last_good).unwrap();
        let aside = std::fs::read(folder.path().join("seen.json.unusable")).unwrap();
        assert!(aside.ends_with(other));
    }
}
