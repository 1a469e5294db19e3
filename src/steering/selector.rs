//! Selectors made ready: whom a rule is for, and which clusters it names.
//!
//! Groups are resolved to their countries once. Shared by fences, maps, tiers, weights and bias.

use ipnet::IpNet;

use crate::model::{
    ClientSelector, Cluster, ClusterSelector, CountryCode, Groups, Location, Weight,
};

/// The most clusters of one service: ranks are one octet (as in [`crate::model::Pools`]).
pub(super) const MAX_CLUSTERS: usize = 255;

/// A client as selectors see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// What is known of its place.
    pub(super) location: &'a Location,
    /// A network that holds the client and that no prefix selector of the policy divides; `None`: outside all of them.
    pub(super) network: Option<IpNet>,
}

impl Place<'_> {
    /// Tells whether nothing is known that a place is made of. An AS number alone is no place.
    fn is_unknown(&self) -> bool {
        let Location {
            coordinates,
            continent,
            country,
            subdivision,
            asn: _,
            cluster,
        } = self.location;
        coordinates.is_none()
            && continent.is_none()
            && country.is_none()
            && subdivision.is_none()
            && cluster.is_none()
    }
}

/// Gives the country of a place; a subdivision implies its country.
fn country_of(location: &Location) -> Option<CountryCode> {
    location.country.or_else(|| {
        location
            .subdivision
            .map(|subdivision| subdivision.country())
    })
}

/// One client selector, its group resolved.
#[derive(Clone, Debug)]
enum Client {
    /// Anything but a group, as written.
    Plain(ClientSelector),
    /// The countries of a group; empty for a group nobody defined.
    Countries(Box<[CountryCode]>),
}

impl Client {
    /// Tells whether a client is meant.
    fn matches(&self, place: Place<'_>) -> bool {
        let location = place.location;
        match self {
            Self::Countries(countries) => {
                country_of(location).is_some_and(|country| countries.contains(&country))
            }
            Self::Plain(selector) => match selector {
                ClientSelector::Any => !place.is_unknown(),
                ClientSelector::Unknown => place.is_unknown(),
                ClientSelector::Continent(continent) => location.continent == Some(*continent),
                ClientSelector::Country(country) => country_of(location) == Some(*country),
                ClientSelector::Subdivision(part) => location.subdivision == Some(*part),
                ClientSelector::Asn(number) => location.asn == Some(*number),
                ClientSelector::Prefix(prefix) => place
                    .network
                    .is_some_and(|network| prefix.contains(&network)),
                ClientSelector::Cluster(id) => location.cluster.as_ref() == Some(id),
                // Resolved by `Clients::compile`.
                ClientSelector::Group(_) => false,
            },
        }
    }
}

/// The left side of a rule: a client matches when any of these does.
#[derive(Clone, Debug)]
pub(super) struct Clients(Box<[Client]>);

impl Clients {
    /// Resolves groups.
    pub(super) fn compile(selectors: &[ClientSelector], groups: &Groups) -> Self {
        let client = |selector: &ClientSelector| match selector {
            ClientSelector::Group(name) => Client::Countries(
                groups
                    .0
                    .get(name)
                    .map_or_else(Box::default, |countries| countries.as_slice().into()),
            ),
            plain => Client::Plain(plain.clone()),
        };
        Self(selectors.iter().map(client).collect())
    }

    /// Tells whether no selector was written.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether a client is meant by any of them.
    pub(super) fn matches(&self, place: Place<'_>) -> bool {
        self.0.iter().any(|client| client.matches(place))
    }

    /// Iterates over the prefixes named.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = IpNet> {
        self.0.iter().filter_map(|client| match client {
            Client::Plain(ClientSelector::Prefix(prefix)) => Some(prefix.trunc()),
            _ => None,
        })
    }
}

/// Tells whether a selector names a cluster.
pub(super) fn names(selector: &ClusterSelector, cluster: &Cluster, groups: &Groups) -> bool {
    let location = &cluster.location;
    match selector {
        ClusterSelector::Any => true,
        ClusterSelector::Cluster(id) => cluster.id == *id,
        ClusterSelector::Tag(tag) => cluster.tags.contains(tag),
        // One that nobody resolved may be any of the three; see `resolved`.
        ClusterSelector::Word(word) => {
            cluster.id.as_str() == &**word
                || cluster.tags.contains(word)
                || cluster.region.as_ref() == Some(word)
        }
        ClusterSelector::Region(region) => cluster.region.as_ref() == Some(region),
        ClusterSelector::Zone(zone) => cluster.zones.contains(zone),
        ClusterSelector::Provider(provider) => cluster.provider.as_ref() == Some(provider),
        ClusterSelector::Country(country) => country_of(location) == Some(*country),
        ClusterSelector::Subdivision(part) => location.subdivision == Some(*part),
        ClusterSelector::Continent(continent) => location.continent == Some(*continent),
        ClusterSelector::Group(group) => {
            country_of(location).is_some_and(|country| groups.contains(group, country))
        }
    }
}

/// Gives the position of the first selector that names a cluster, at most 254.
pub(super) fn position(
    selectors: &[ClusterSelector],
    cluster: &Cluster,
    groups: &Groups,
) -> Option<u8> {
    selectors
        .iter()
        .position(|selector| names(selector, cluster, groups))
        .map(|at| u8::try_from(at).unwrap_or(u8::MAX).min(u8::MAX - 1))
}

/// Gives the value beside the first selector that names a cluster.
fn value_of<T: Copy>(
    pairs: &[(ClusterSelector, T)],
    cluster: &Cluster,
    groups: &Groups,
) -> Option<T> {
    pairs
        .iter()
        .find(|(selector, _)| names(selector, cluster, groups))
        .map(|(_, value)| *value)
}

/// Gives a cluster's bias, -99..=99; 0 where no selector names it.
pub(super) fn bias_of(pairs: &[(ClusterSelector, i8)], cluster: &Cluster, groups: &Groups) -> i8 {
    value_of(pairs, cluster, groups).unwrap_or(0).clamp(-99, 99)
}

/// Gives the weight that the policy lists for a cluster: 0 where no selector names it, `None` where no weights are listed.
pub(super) fn weight_of(
    pairs: &[(ClusterSelector, Weight)],
    cluster: &Cluster,
    groups: &Groups,
) -> Option<u16> {
    if pairs.is_empty() {
        return None;
    }
    Some(value_of(pairs, cluster, groups).map_or(0, |weight| weight.0))
}

/// A set of ranks, 0..=255.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RankSet([u64; 4]);

impl RankSet {
    /// Every rank.
    pub(super) const ALL: Self = Self([u64::MAX; 4]);

    /// Adds a rank.
    pub(super) fn insert(&mut self, rank: u8) {
        if let Some(word) = self.0.get_mut(usize::from(rank >> 6)) {
            *word |= 1 << (rank & 63);
        }
    }

    /// Tells whether a rank is in it.
    pub(super) fn contains(&self, rank: u8) -> bool {
        self.0
            .get(usize::from(rank >> 6))
            .is_some_and(|word| word & (1 << (rank & 63)) != 0)
    }

    /// Keeps what is in both.
    pub(super) fn intersect(self, other: Self) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Self([a & e, b & f, c & g, d & h])
    }
}

/// Iterates over clusters with their ranks.
pub(super) fn ranked<'c>(clusters: &[&'c Cluster]) -> impl Iterator<Item = (u8, &'c Cluster)> {
    (0..=u8::MAX)
        .zip(clusters.iter().copied())
        .take(MAX_CLUSTERS)
}
