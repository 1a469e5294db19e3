//! A slow, obvious decision, written from DESIGN section 4 alone, for tests to compare with: lists in place of bits, one filter
//! after the other, no class, no early exit.

use std::net::IpAddr;

use super::world::Entry;
use crate::model::{
    ClientSelector, Cluster, ClusterSelector, EndpointState, Groups, Location, PolicySpec, Steer,
};
use crate::steering::{Family, Level};

/// What a policy is asked about.
pub(super) struct Question<'a> {
    pub(super) spec: &'a PolicySpec,
    pub(super) groups: &'a Groups,
    /// By rank.
    pub(super) clusters: &'a [Cluster],
    pub(super) entries: &'a [Entry],
    pub(super) client_sets: &'a [Box<[ipnet::IpNet]>],
    pub(super) state: &'a dyn Fn(IpAddr) -> EndpointState,
    pub(super) sender: IpAddr,
    pub(super) address: IpAddr,
    pub(super) location: &'a Location,
    pub(super) family: Family,
}

/// What may come out.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    Cluster(u8, Level),
    Everything(Level),
    Hostname(u8),
    OtherFamily,
    Fallback,
    Refused,
    Nothing,
}

/// One address, or one host name.
#[derive(Clone, Copy)]
struct Item {
    rank: u8,
    /// `None`: a host name.
    address: Option<IpAddr>,
    hostname: Option<usize>,
    state: EndpointState,
    idle: bool,
    entry_weight: u16,
}

impl Question<'_> {
    /// Gives every acceptable outcome with its share: several where a draw or a tie decides.
    pub(super) fn outcomes(&self) -> Vec<(Outcome, u32)> {
        let allowed: Vec<u8> = self.ranks().filter(|&rank| self.is_allowed(rank)).collect();
        if allowed.is_empty() && !self.clusters.is_empty() {
            return vec![(Outcome::Refused, 1)];
        }
        let items = self.items(&allowed);
        let any_up = items.iter().any(|item| item.state.is_up());
        let first: (Level, fn(EndpointState) -> bool) = if self.panics(&items) {
            (Level::Panic, |state| {
                !state.is_forced_down() && !state.is_drained()
            })
        } else {
            (Level::Up, EndpointState::is_usable)
        };
        for (level, is) in [first, (Level::Drained, EndpointState::is_up)] {
            if let Some(outcomes) = self.on(level, is, &allowed, &items) {
                return outcomes;
            }
        }
        // The other family's question has an answer of its own: the owner must not be a CNAME to one of them.
        let any_first = items.iter().any(|item| first.1(item.state));
        if self.spec.fallback.is_some() && !any_up && !any_first {
            return vec![(Outcome::Fallback, 1)];
        }
        let as_if_up = |state: EndpointState| !state.is_forced_down();
        self.on(Level::AsIfUp, as_if_up, &allowed, &items)
            .or_else(|| self.on(Level::ForcedDown, |_| true, &allowed, &items))
            .unwrap_or_else(|| {
                let all: Vec<u8> = self.ranks().collect();
                let outcome = if !items.is_empty() {
                    Outcome::OtherFamily
                } else if self.items(&all).is_empty() {
                    Outcome::Nothing
                } else {
                    Outcome::Refused
                };
                vec![(outcome, 1)]
            })
    }

    /// Gives what the first of these levels decides that has something up and of a weight above 0, and its position; else what all
    /// clusters do.
    pub(super) fn near(&self, levels: &[Vec<u8>]) -> (Vec<(Outcome, u32)>, Option<usize>) {
        let allowed: Vec<u8> = self.ranks().filter(|&rank| self.is_allowed(rank)).collect();
        let panics = self.panics(&self.items(&allowed));
        for (position, level) in levels.iter().enumerate() {
            let here: Vec<u8> = allowed
                .iter()
                .copied()
                .filter(|rank| level.contains(rank))
                .collect();
            let mut items = self.items(&here);
            items.retain(|item| !item.idle);
            let outcomes = if panics {
                let is = |state: EndpointState| !state.is_forced_down() && !state.is_drained();
                self.on(Level::Panic, is, &here, &items)
            } else {
                self.on(Level::Up, EndpointState::is_usable, &here, &items)
            };
            if let Some(outcomes) = outcomes {
                return (outcomes, Some(position));
            }
        }
        (self.outcomes(), None)
    }

    /// Gives the addresses that may be answered with at a level of some clusters, none of weight 0, in the order written.
    pub(super) fn addresses_near(&self, outcome: &Outcome, level: &[u8]) -> Vec<IpAddr> {
        let allowed = self.ranks().filter(|&rank| self.is_allowed(rank));
        let here: Vec<u8> = allowed.filter(|rank| level.contains(rank)).collect();
        let mut items = self.items(&here);
        items.retain(|item| !item.idle);
        self.addresses_of(outcome, items)
    }

    /// Gives the addresses of some clusters that may be answered with at a level, in the order written.
    pub(super) fn addresses(&self, outcome: &Outcome) -> Vec<IpAddr> {
        let allowed: Vec<u8> = self.ranks().filter(|&rank| self.is_allowed(rank)).collect();
        self.addresses_of(outcome, self.items(&allowed))
    }

    fn addresses_of(&self, outcome: &Outcome, items: Vec<Item>) -> Vec<IpAddr> {
        let (ranks, level): (Vec<u8>, Level) = match *outcome {
            Outcome::Cluster(rank, level) => (vec![rank], level),
            Outcome::Everything(level) => (self.ranks().collect(), level),
            _ => return Vec::new(),
        };
        let of_family = |item: &&Item| {
            item.address
                .is_some_and(|address| address.is_ipv4() == (self.family == Family::V4))
        };
        let usable: Vec<Item> = items
            .iter()
            .filter(|item| ranks.contains(&item.rank))
            .filter(of_family)
            .filter(|item| match level {
                Level::Up => item.state.is_usable(),
                Level::Panic => !item.state.is_forced_down() && !item.state.is_drained(),
                Level::Drained => item.state.is_up(),
                Level::AsIfUp => !item.state.is_forced_down(),
                Level::ForcedDown => true,
            })
            .copied()
            .collect();
        let wanted = |item: &&Item| match outcome {
            // Everything of the first tier, and of weight 0 only where nothing else is.
            Outcome::Everything(_) => {
                let place =
                    |item: &Item| (self.tier(item.rank), item.idle, self.position(item.rank));
                Some(place(item)) == usable.iter().map(place).min()
            }
            _ => true,
        };
        let picked: Vec<Item> = usable.iter().filter(wanted).copied().collect();
        let shines = |item: &&Item| {
            let busy = |other: &Item| other.rank == item.rank && other.entry_weight > 0;
            item.entry_weight > 0 || !picked.iter().any(busy)
        };
        picked
            .iter()
            .filter(shines)
            .filter_map(|item| item.address)
            .take(self.spec.max_answers())
            .collect()
    }

    fn ranks(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).zip(self.clusters).map(|(rank, _)| rank)
    }

    /// What the client may have of some clusters, in the order written.
    fn items(&self, ranks: &[u8]) -> Vec<Item> {
        let mut items = Vec::new();
        for &rank in ranks {
            let zero = self.listed_weight(rank) == Some(0);
            for entry in self
                .entries
                .iter()
                .filter(|entry| entry.cluster == usize::from(rank))
            {
                if !self.may_have(entry) {
                    continue;
                }
                let item = |address: Option<IpAddr>| Item {
                    rank,
                    address,
                    hostname: entry.hostname,
                    state: address.map_or(EndpointState::UP, |address| (self.state)(address)),
                    idle: zero || entry.weight == 0,
                    entry_weight: entry.weight,
                };
                if entry.hostname.is_some() {
                    items.push(item(None));
                }
                // Per pool IPv4 comes first.
                let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) = entry
                    .addresses
                    .iter()
                    .partition(|address| address.is_ipv4());
                items.extend(v4.into_iter().chain(v6).map(|address| item(Some(address))));
            }
        }
        items
    }

    fn may_have(&self, entry: &Entry) -> bool {
        entry.clients.is_none_or(|at| {
            self.client_sets[at]
                .iter()
                .any(|net| net.contains(&self.sender))
        })
    }

    fn panics(&self, items: &[Item]) -> bool {
        let judged: Vec<&Item> = items
            .iter()
            .filter(|item| item.address.is_some() && !item.state.is_drained())
            .collect();
        let usable = judged.iter().filter(|item| item.state.is_usable()).count();
        !judged.is_empty() && (usable as f64) < judged.len() as f64 * self.spec.panic
    }

    /// Walks the tiers with what passes `is`.
    fn on(
        &self,
        level: Level,
        is: impl Fn(EndpointState) -> bool,
        allowed: &[u8],
        items: &[Item],
    ) -> Option<Vec<(Outcome, u32)>> {
        let counts = |item: &&Item| {
            is(item.state)
                && (self.family == Family::V6 || item.address.is_none_or(|a| a.is_ipv4()))
        };
        let mut tiers: Vec<usize> = allowed.iter().map(|&rank| self.tier(rank)).collect();
        tiers.sort_unstable();
        tiers.dedup();
        for tier in tiers {
            let here: Vec<Item> = items
                .iter()
                .filter(|item| self.tier(item.rank) == tier)
                .filter(counts)
                .copied()
                .collect();
            let busy: Vec<Item> = here.iter().filter(|item| !item.idle).copied().collect();
            let all_idle = busy.is_empty();
            let usable = if all_idle { here } else { busy };
            let Some(first) = usable
                .iter()
                .map(|item| self.standing(item.rank))
                .min_by(|a, b| a.partial_cmp(b).unwrap())
            else {
                continue;
            };
            let mut ranks: Vec<u8> = usable
                .iter()
                .map(|item| item.rank)
                .filter(|&rank| self.standing(rank) == first)
                .collect();
            ranks.dedup();
            return Some(self.among(level, &ranks, &usable, all_idle));
        }
        None
    }

    /// Says what comes of clusters used alike.
    fn among(
        &self,
        level: Level,
        ranks: &[u8],
        usable: &[Item],
        all_idle: bool,
    ) -> Vec<(Outcome, u32)> {
        let has = |rank: u8| {
            usable.iter().any(|item| {
                let family = |a: IpAddr| a.is_ipv4() == (self.family == Family::V4);
                item.rank == rank && item.address.is_none_or(family)
            })
        };
        let weight = |rank: u8| {
            if all_idle || self.spec.steer == Steer::RoundRobin {
                1
            } else {
                self.weight(rank)
            }
        };
        let cluster = |rank: u8| {
            let of = |item: &&Item| item.rank == rank && item.hostname.is_some();
            let named: Vec<&Item> = usable.iter().filter(of).collect();
            let first = named
                .iter()
                .find(|item| item.entry_weight > 0)
                .or_else(|| named.first());
            match first.and_then(|item| item.hostname) {
                Some(at) => Outcome::Hostname(u8::try_from(at).unwrap()),
                None => Outcome::Cluster(rank, level),
            }
        };
        let with: Vec<u8> = ranks.iter().copied().filter(|&rank| has(rank)).collect();
        match self.spec.steer {
            Steer::Proximity => ranks
                .iter()
                .map(|&rank| {
                    (
                        if has(rank) {
                            cluster(rank)
                        } else {
                            Outcome::OtherFamily
                        },
                        weight(rank),
                    )
                })
                .collect(),
            _ if with.is_empty() => vec![(Outcome::OtherFamily, 1)],
            Steer::All if matches!(cluster(with[0]), Outcome::Cluster(..)) => {
                vec![(Outcome::Everything(level), 1)]
            }
            // Host names cannot stand side by side: they take turns.
            Steer::All => with.iter().map(|&rank| (cluster(rank), 1)).collect(),
            Steer::Weighted | Steer::RoundRobin => with
                .iter()
                .map(|&rank| (cluster(rank), weight(rank)))
                .collect(),
        }
    }

    fn weight(&self, rank: u8) -> u32 {
        let own = self
            .entries
            .iter()
            .filter(|entry| entry.cluster == usize::from(rank) && self.may_have(entry))
            .map(|entry| u32::from(entry.weight))
            .sum();
        self.listed_weight(rank).map_or(own, u32::from)
    }

    fn listed_weight(&self, rank: u8) -> Option<u16> {
        let weights = &self.spec.weights;
        let found = weights
            .iter()
            .find(|(selector, _)| self.is_named(selector, rank));
        (!weights.is_empty()).then(|| found.map_or(0, |(_, weight)| weight.0))
    }

    fn tier(&self, rank: u8) -> usize {
        let tiers = &self.spec.tiers;
        let named =
            |tier: &Vec<ClusterSelector>| tier.iter().any(|selector| self.is_named(selector, rank));
        tiers.iter().position(named).unwrap_or(tiers.len())
    }

    /// Position in the map entry that matches the client.
    fn position(&self, rank: u8) -> usize {
        let entry = self.spec.maps.iter().find(|entry| {
            entry.clients.is_empty() || entry.clients.iter().any(|client| self.is_client(client))
        });
        let Some(entry) = entry else { return 0 };
        let position = entry
            .clusters
            .iter()
            .position(|selector| self.is_named(selector, rank));
        match self.spec.steer {
            Steer::Proximity => position.unwrap_or(usize::MAX),
            _ => position.map_or(1, |_| 0),
        }
    }

    /// What clusters of one tier are ordered by.
    fn standing(&self, rank: u8) -> (usize, f64) {
        let distance = if self.spec.steer == Steer::Proximity {
            self.distance(rank)
        } else {
            0.0
        };
        (self.position(rank), distance)
    }

    /// Meters; by Vincenty's formula for a sphere.
    fn distance(&self, rank: u8) -> f64 {
        let cluster = &self.clusters[usize::from(rank)];
        if self.location.cluster.as_ref() == Some(&cluster.id) {
            return -1.0;
        }
        let (Some(from), Some(to)) = (self.location.coordinates, cluster.location.coordinates)
        else {
            return f64::MAX;
        };
        let (a, b) = (from.latitude().to_radians(), to.latitude().to_radians());
        let turn = (to.longitude() - from.longitude()).to_radians();
        let x = b.cos() * turn.sin();
        let y = a.cos() * b.sin() - a.sin() * b.cos() * turn.cos();
        let cosine = a.sin() * b.sin() + a.cos() * b.cos() * turn.cos();
        let km = 6371.0088 * x.hypot(y).atan2(cosine);
        let biases = &self.spec.bias;
        let bias = biases
            .iter()
            .find(|(selector, _)| self.is_named(selector, rank));
        let biased = match bias.map_or(0, |(_, bias)| *bias) {
            bias @ 0.. => km * (1.0 - f64::from(bias) / 100.0),
            bias => km / (1.0 + f64::from(bias) / 100.0),
        };
        ((biased + cluster.cost_km) * 1000.0).round()
    }

    fn is_allowed(&self, rank: u8) -> bool {
        self.spec.fences.iter().all(|fence| {
            let rule = fence
                .iter()
                .find(|rule| rule.clients.iter().any(|client| self.is_client(client)));
            rule.is_some_and(|rule| {
                rule.clusters
                    .iter()
                    .any(|selector| self.is_named(selector, rank))
            })
        })
    }

    fn is_client(&self, selector: &ClientSelector) -> bool {
        let place = self.location;
        let unknown = Location {
            asn: None,
            ..place.clone()
        } == Location::default();
        match selector {
            ClientSelector::Any => !unknown,
            ClientSelector::Unknown => unknown,
            ClientSelector::Continent(continent) => place.continent == Some(*continent),
            ClientSelector::Country(country) => place.country == Some(*country),
            ClientSelector::Subdivision(part) => place.subdivision == Some(*part),
            ClientSelector::Asn(asn) => place.asn == Some(*asn),
            ClientSelector::Prefix(prefix) => prefix.contains(&self.address),
            ClientSelector::Group(group) => place
                .country
                .is_some_and(|c| self.groups.contains(group, c)),
            ClientSelector::Cluster(id) => place.cluster.as_ref() == Some(id),
        }
    }

    fn is_named(&self, selector: &ClusterSelector, rank: u8) -> bool {
        let cluster = &self.clusters[usize::from(rank)];
        let place = &cluster.location;
        match selector {
            ClusterSelector::Any => true,
            ClusterSelector::Cluster(id) => cluster.id == *id,
            ClusterSelector::Tag(tag) => cluster.tags.iter().any(|other| other == tag),
            ClusterSelector::Word(word) => {
                let is_its = |other: &str| *other == **word;
                is_its(cluster.id.as_str())
                    || cluster.tags.iter().any(|tag| is_its(tag))
                    || cluster.region.as_deref().is_some_and(is_its)
            }
            ClusterSelector::Region(region) => cluster.region.as_deref() == Some(region),
            ClusterSelector::Zone(zone) => cluster.zones.iter().any(|other| other == zone),
            ClusterSelector::Provider(provider) => cluster.provider.as_deref() == Some(provider),
            ClusterSelector::Country(country) => place.country == Some(*country),
            ClusterSelector::Subdivision(part) => place.subdivision == Some(*part),
            ClusterSelector::Continent(continent) => place.continent == Some(*continent),
            ClusterSelector::Group(group) => place
                .country
                .is_some_and(|c| self.groups.contains(group, c)),
        }
    }
}
