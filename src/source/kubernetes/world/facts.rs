//! Where a cluster is, by its Nodes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::kind::{Kind, Phase};
use crate::geo::region;
use crate::inventory::{ClusterFacts, Refused};
use crate::model::{Provider, counted};
use crate::source::kubernetes::{Event, Key, NodeRecord, Record};

/// Most zones of one cluster: each is a name at every federated service, and a cluster says as many as it likes.
pub(super) const MAX_ZONES: usize = 256;

/// All Nodes of a cluster.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    kind: Kind<NodeRecord>,
    /// How many Nodes say so. No count is 0.
    places: BTreeMap<NodeRecord, usize>,
}

impl Nodes {
    /// Tells how far they are read.
    pub(super) fn phase(&self) -> Phase {
        self.kind.phase()
    }

    /// Counts the Nodes.
    pub(super) fn len(&self) -> usize {
        self.kind.len()
    }

    /// Lists those whose last version cannot be read.
    pub(super) fn unreadable(&self) -> &BTreeMap<Key, Refused> {
        self.kind.unreadable()
    }

    /// Takes what the watch saw. Nodes that nobody shows any more stay where they were: a cluster does not move.
    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Listing => self.kind.begin(),
            Event::Applied(key, record) => {
                if let Record::Node(node) = *record {
                    *self.places.entry(node.clone()).or_default() += 1;
                    let former = self.kind.put(key, node);
                    self.forget(former);
                }
            }
            Event::Unreadable(key, why) => self.kind.put_unreadable(key, why),
            Event::Gone(key) => {
                let former = self.kind.remove(&key);
                self.forget(former);
            }
            Event::Listed => {
                for (_, former) in self.kind.end() {
                    self.forget(former);
                }
            }
            Event::LeftOut => self.kind.leave_out(),
            Event::Unserved => self.kind.leave(),
        }
    }

    /// Takes a former Node out of the counts.
    fn forget(&mut self, former: Option<NodeRecord>) {
        let Some(former) = former else {
            return;
        };
        if let Some(count) = self.places.get_mut(&former) {
            *count -= 1;
            if *count == 0 {
                self.places.remove(&former);
            }
        }
    }

    /// Says where the cluster is: where most Nodes are that name a region, else a provider. Of equally many the first in the
    /// order of the alphabet. `None`: no Node is known, or not all of a first list: the first Nodes of it may stand elsewhere.
    pub(super) fn facts(&self) -> Option<ClusterFacts> {
        let all: usize = self.places.values().sum();
        // A list that leaves Nodes out is all there is to go by.
        let is_read = self.kind.phase() != Phase::Awaited || self.kind.is_partial();
        if all == 0 || !is_read {
            return None;
        }
        let mut votes: BTreeMap<(Option<&str>, Option<&str>), usize> = BTreeMap::new();
        for (node, count) in &self.places {
            let place = (node.provider.as_deref(), node.region.as_deref());
            *votes.entry(place).or_default() += count;
        }
        let votes = votes.into_iter().min_by_key(|((provider, region), count)| {
            let says = (region.is_some(), region.is_some() || provider.is_some());
            Reverse((says, *count))
        });
        let ((provider, name), voters) = votes?;
        let is_there = |node: &&NodeRecord| {
            (node.provider.as_deref(), node.region.as_deref()) == (provider, name)
        };
        let zones = self.places.keys().filter(is_there);
        let zones: BTreeSet<&str> = zones.filter_map(|node| node.zone.as_deref()).collect();
        let known = provider.zip(name);
        let known = known.and_then(|(provider, name)| {
            let provider: Provider = provider.parse().ok()?;
            region(provider, name)
        });
        let says_nothing = provider.is_none() && name.is_none();
        let mut evidence = if says_nothing {
            format!("nothing on {}", counted(all, "node"))
        } else {
            format!("labels of {voters} of {}", counted(all, "node"))
        };
        if zones.len() > MAX_ZONES {
            let more = format!(", with the first {MAX_ZONES} of {} zones", zones.len());
            evidence.push_str(&more);
        }
        Some(ClusterFacts {
            provider: provider.map(Into::into),
            region: name.map(Into::into),
            zones: zones.into_iter().take(MAX_ZONES).map(Into::into).collect(),
            location: known
                .map(|region| region.location.clone())
                .unwrap_or_default(),
            evidence: evidence.into(),
        })
    }
}
