//! Which clusters and which clients a selector means.

use std::net::IpAddr;

use crate::model::{ClientSelector, Cluster, ClusterSelector, Groups, Location};

/// A set of ranks, 0..=255.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ranks([u64; 4]);

impl Ranks {
    /// Every rank.
    pub(super) const ALL: Self = Self([u64::MAX; 4]);

    /// Adds a rank.
    pub(super) fn insert(&mut self, rank: u8) {
        if let Some(word) = self.0.get_mut(usize::from(rank / 64)) {
            *word |= 1 << (rank % 64);
        }
    }

    /// Tells whether a rank is in the set.
    pub(super) fn contains(self, rank: u8) -> bool {
        self.0
            .get(usize::from(rank / 64))
            .is_some_and(|word| word & (1 << (rank % 64)) != 0)
    }

    /// Gives what is in both.
    pub(super) fn intersection(self, other: Self) -> Self {
        let mut both = self;
        for (word, more) in both.0.iter_mut().zip(other.0) {
            *word &= more;
        }
        both
    }
}

/// Numbers clusters by their position among those of a service; those beyond 255 cannot occur (`Pools` refuses them).
pub(super) fn ranked<'a>(clusters: &'a [&'a Cluster]) -> impl Iterator<Item = (u8, &'a Cluster)> {
    clusters
        .iter()
        .enumerate()
        .filter_map(|(rank, cluster)| Some((u8::try_from(rank).ok()?, *cluster)))
}

/// Finds the clusters that any of the selectors means.
pub(super) fn ranks_of(
    selectors: &[ClusterSelector],
    clusters: &[&Cluster],
    groups: &Groups,
) -> Ranks {
    let mut ranks = Ranks::default();
    for (rank, cluster) in ranked(clusters) {
        if selectors
            .iter()
            .any(|selector| means_cluster(selector, cluster, groups))
        {
            ranks.insert(rank);
        }
    }
    ranks
}

/// Tells whether a selector means a cluster.
pub(super) fn means_cluster(
    selector: &ClusterSelector,
    cluster: &Cluster,
    groups: &Groups,
) -> bool {
    let location = &cluster.location;
    match selector {
        ClusterSelector::Any => true,
        ClusterSelector::Cluster(id) => *id == cluster.id,
        ClusterSelector::Region(region) => cluster.region.as_ref() == Some(region),
        ClusterSelector::Zone(zone) => cluster.zones.contains(zone),
        ClusterSelector::Provider(provider) => cluster.provider.as_ref() == Some(provider),
        ClusterSelector::Country(country) => location.country == Some(*country),
        ClusterSelector::Subdivision(subdivision) => location.subdivision == Some(*subdivision),
        ClusterSelector::Continent(continent) => location.continent == Some(*continent),
        ClusterSelector::Group(group) => location
            .country
            .is_some_and(|country| groups.contains(group, country)),
    }
}

/// What is known of a client when it is classified: its place, and an address inside the longest of the policy's own
/// prefixes that holds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client<'a> {
    /// Its place.
    pub(super) location: &'a Location,
    /// The network address and length of that prefix.
    pub(super) within: Option<(IpAddr, u8)>,
}

/// Tells whether a selector means a client. `*` never means a client whose place is unknown (DESIGN section 4.1).
pub(super) fn means_client(
    selector: &ClientSelector,
    client: &Client<'_>,
    groups: &Groups,
) -> bool {
    let location = client.location;
    match selector {
        ClientSelector::Any => !location.is_unknown(),
        ClientSelector::Unknown => location.is_unknown(),
        ClientSelector::Continent(continent) => location.continent == Some(*continent),
        ClientSelector::Country(country) => location.country == Some(*country),
        ClientSelector::Subdivision(subdivision) => location.subdivision == Some(*subdivision),
        ClientSelector::Asn(asn) => location.asn == Some(*asn),
        ClientSelector::Prefix(prefix) => client.within.is_some_and(|(address, length)| {
            length >= prefix.prefix_len() && prefix.contains(&address)
        }),
        ClientSelector::Group(group) => location
            .country
            .is_some_and(|country| groups.contains(group, country)),
        ClientSelector::Cluster(id) => location.cluster.as_ref() == Some(id),
    }
}
