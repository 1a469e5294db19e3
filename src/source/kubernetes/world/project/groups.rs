//! Groups of countries that annotations name. One that nobody defined matches nobody: what names it is refused, where that is known.

use super::notes::Notes;
use crate::inventory::NameKeys;
use crate::model::{ClientSelector, ClusterSelector, FenceRule, Groups};

/// Says which group of a fence is not there.
pub(super) fn missing(fence: &[FenceRule], groups: &Groups) -> Option<String> {
    let clients = of_clients(fence.iter().flat_map(|rule| &rule.clients));
    let clusters = of_clusters(fence.iter().flat_map(|rule| &rule.clusters));
    first(clients.chain(clusters), groups)
}

/// Takes away the keys that name a group which is not there, but for the fence. Each is refused for itself.
pub(super) fn without_missing(keys: &mut NameKeys, groups: &Groups, notes: &mut Notes) {
    if let Some(maps) = &keys.maps {
        let clients = of_clients(maps.iter().flat_map(|entry| &entry.clients));
        let clusters = of_clusters(maps.iter().flat_map(|entry| &entry.clusters));
        if let Some(why) = first(clients.chain(clusters), groups) {
            notes.key("maps", why);
            keys.maps = None;
        }
    }
    if let Some(tiers) = &keys.tiers
        && let Some(why) = first(of_clusters(tiers.iter().flatten()), groups)
    {
        notes.key("tiers", why);
        keys.tiers = None;
    }
    if let Some(weights) = &keys.weights
        && let Some(why) = first(of_clusters(weights.iter().map(|(of, _)| of)), groups)
    {
        notes.key("weights", why);
        keys.weights = None;
    }
    if let Some(bias) = &keys.bias
        && let Some(why) = first(of_clusters(bias.iter().map(|(of, _)| of)), groups)
    {
        notes.key("bias", why);
        keys.bias = None;
    }
}

/// Lists the groups that selectors of clients name.
fn of_clients<'a>(
    selectors: impl Iterator<Item = &'a ClientSelector>,
) -> impl Iterator<Item = &'a str> {
    selectors.filter_map(|selector| match selector {
        ClientSelector::Group(group) => Some(&**group),
        _ => None,
    })
}

/// Lists the groups that selectors of clusters name.
fn of_clusters<'a>(
    selectors: impl Iterator<Item = &'a ClusterSelector>,
) -> impl Iterator<Item = &'a str> {
    selectors.filter_map(|selector| match selector {
        ClusterSelector::Group(group) => Some(&**group),
        _ => None,
    })
}

/// Says of the first group that is not there which ones there are.
fn first<'a>(mut named: impl Iterator<Item = &'a str>, groups: &Groups) -> Option<String> {
    named.find_map(|group| groups.missing(group))
}
