//! Bare words of policies: each is a cluster, a tag or a region, and which of them hangs on what clusters there are.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::model::{Cluster, ClusterId, ClusterSelector, PolicySpec};

/// What the bare words of all policies may be: gathered once from all clusters that are known, whether a service has them or not.
#[derive(Clone, Debug, Default)]
pub struct Words {
    clusters: HashSet<ClusterId>,
    tags: HashSet<Box<str>>,
}

impl Words {
    /// Gathers names and tags.
    #[must_use]
    pub fn of<'c>(clusters: impl Iterator<Item = &'c Cluster>) -> Self {
        let mut words = Self::default();
        for cluster in clusters {
            words.clusters.insert(cluster.id.clone());
            words.tags.extend(cluster.tags.iter().cloned());
        }
        words
    }

    /// Says what a word is: a cluster of this name; where there is none, a tag that a cluster has; where there is none, a region.
    fn meaning(&self, word: &str) -> ClusterSelector {
        match self.clusters.get(word) {
            Some(id) => ClusterSelector::Cluster(id.clone()),
            None if self.tags.contains(word) => ClusterSelector::Tag(word.into()),
            None => ClusterSelector::Region(word.into()),
        }
    }
}

/// Puts in place of each bare word what it is. `words` is asked for where there are any.
#[must_use]
pub fn resolved<'s, 'w>(
    spec: &'s PolicySpec,
    words: impl FnOnce() -> &'w Words,
) -> Cow<'s, PolicySpec> {
    let has_word = selectors(spec).any(|one| matches!(one, ClusterSelector::Word(_)));
    if !has_word {
        return Cow::Borrowed(spec);
    }
    let (words, mut spec) = (words(), spec.clone());
    for selector in selectors_mut(&mut spec) {
        if let ClusterSelector::Word(word) = selector {
            *selector = words.meaning(word);
        }
    }
    Cow::Owned(spec)
}

/// Lists all selectors of clusters.
fn selectors(spec: &PolicySpec) -> impl Iterator<Item = &ClusterSelector> {
    let tiers = spec.tiers.iter().flatten();
    let weights = spec.weights.iter().map(|(selector, _)| selector);
    let bias = spec.bias.iter().map(|(selector, _)| selector);
    let maps = spec.maps.iter().flat_map(|entry| &entry.clusters);
    let fences = spec.fences.iter().flatten();
    let fences = fences.flat_map(|rule| &rule.clusters);
    tiers.chain(weights).chain(bias).chain(maps).chain(fences)
}

/// Lists them to be changed.
fn selectors_mut(spec: &mut PolicySpec) -> impl Iterator<Item = &mut ClusterSelector> {
    let tiers = spec.tiers.iter_mut().flatten();
    let weights = spec.weights.iter_mut().map(|(selector, _)| selector);
    let bias = spec.bias.iter_mut().map(|(selector, _)| selector);
    let maps = spec.maps.iter_mut().flat_map(|entry| &mut entry.clusters);
    let fences = spec.fences.iter_mut().flatten();
    let fences = fences.flat_map(|rule| &mut rule.clusters);
    tiers.chain(weights).chain(bias).chain(maps).chain(fences)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::model::{FenceRule, MapEntry, Weight};

    fn cluster(name: &str, region: &str, tags: &[&str]) -> Cluster {
        Cluster {
            region: Some(region.into()),
            tags: tags.iter().map(|tag| (*tag).into()).collect(),
            ..Cluster::named(name.parse().unwrap())
        }
    }

    #[test]
    fn a_word_is_a_cluster_then_a_tag_then_a_region_wherever_it_stands() {
        let clusters = [
            cluster("eu", "eu-west-1", &["us"]),
            cluster("b", "eu", &["eu", "EU"]),
            cluster("c", "us", &["gold"]),
        ];
        for (word, is) in [
            ("eu", "cluster:eu"),
            ("EU", "tag:EU"),
            ("us", "tag:us"),
            ("gold", "tag:gold"),
            ("eu-west-1", "region:eu-west-1"),
            ("nobody", "region:nobody"),
            ("GEO-EU", "continent:EU"),
            ("*", "*"),
            ("tag:eu", "tag:eu"),
        ] {
            let one = || word.parse::<ClusterSelector>().unwrap();
            let clusters_of = || vec![one()];
            let spec = PolicySpec {
                tiers: vec![clusters_of()],
                weights: vec![(one(), Weight(1))],
                bias: vec![(one(), 1)],
                maps: vec![MapEntry {
                    clients: Vec::new(),
                    clusters: clusters_of(),
                }],
                fences: vec![vec![FenceRule {
                    clients: Vec::new(),
                    clusters: clusters_of(),
                }]],
                ..PolicySpec::default()
            };
            let words = Words::of(clusters.iter());
            let asked = Cell::new(false);
            let look = || {
                asked.set(true);
                &words
            };
            let resolved = resolved(&spec, look);
            // Policies without a word cost nothing of the kind.
            assert_eq!(
                asked.get(),
                matches!(one(), ClusterSelector::Word(_)),
                "{word}"
            );
            let all: Vec<String> = selectors(&resolved).map(ToString::to_string).collect();
            assert_eq!(all, [is; 5], "{word}");
        }
    }
}
