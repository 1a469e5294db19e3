//! The order of clusters for a place: tiers, then maps or distance (DESIGN section 4.2).
//!
//! One function orders for classes, and so for packets, and for `explain`.

use std::net::IpAddr;

use ipnet::IpNet;

use super::classes::{Class, Slot};
use super::decision::Basis;
use super::fence;
use super::maps::UNLISTED;
use super::policy::Policy;
use super::proximity::{Point, biased_km, meters};
use super::selector::{Place, RankSet};
use crate::model::{Location, Steer};

/// Distance of clusters at an unknown place, or from one: after all known distances, tied among themselves.
const UNKNOWN_METERS: f64 = f64::INFINITY;
/// Distance of the cluster that an override puts the client inside: nearer than anything.
const INSIDE_METERS: f64 = -1.0;

/// What one cluster is sorted by for one place. Equal in all but the rank: tied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Key {
    tier: u8,
    /// Position in the map entry that matches; 0 for all where none does.
    position: u8,
    /// Distance with bias and cost.
    meters: f64,
    rank: u8,
}

/// How one cluster stands for one place, for `explain`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The cluster's rank: its position in [`crate::model::Pools::clusters`].
    pub rank: u8,
    /// Whether the fences allow it.
    pub allowed: bool,
    /// Its tier, from 0.
    pub tier: u8,
    /// Its group, from 0, in the order of use; clusters of one group are tied, or drawn from together. `None`: not allowed.
    pub group: Option<u8>,
    /// The weight that the policy lists for it; `None`: the pools' own count.
    pub weight: Option<u16>,
    /// Great-circle distance from the place; `None`: one of the two is not known.
    pub distance_km: Option<f64>,
    /// The distance that counts: with bias and cost.
    pub effective_km: Option<f64>,
}

/// The order of clusters for one place, and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// What ordered the clusters.
    pub basis: Basis,
    /// For each fence the position of the rule that matched; `None`: none did, and all is denied.
    pub fence_rules: Vec<Option<usize>>,
    /// The entry of `maps` that matched.
    pub map: Option<usize>,
    /// Every cluster: those allowed first, in the order of use, then the others by rank.
    pub clusters: Vec<Ranked>,
}

impl Policy {
    /// Tells how the clusters stand for one client, in numbers: the same ordering that made its class. For `explain`; allocates.
    #[must_use]
    pub fn ranking(&self, location: &Location, address: IpAddr) -> Ranking {
        let place = Place {
            location,
            network: Some(IpNet::from(address.to_canonical())),
        };
        let (mut keys, mut slots) = (Vec::new(), Vec::new());
        let basis = self.order(place, &mut keys, &mut slots);
        let from = location.coordinates.map(Point::from);
        let ranked = |rank: u8, tier: u8, group: Option<u8>| {
            let site = self.sites.get(usize::from(rank));
            let distance_km = site
                .and_then(|site| site.point)
                .zip(from)
                .map(|(to, from)| to.distance_km(from));
            let effective =
                |(site, km): (&super::policy::Site, f64)| biased_km(km, site.bias) + site.cost_km;
            Ranked {
                rank,
                allowed: group.is_some(),
                tier,
                group,
                weight: site.and_then(|site| site.weight),
                distance_km,
                effective_km: site.zip(distance_km).map(effective),
            }
        };
        let mut clusters: Vec<Ranked> = slots
            .iter()
            .map(|slot| ranked(slot.rank, slot.tier, Some(slot.group)))
            .collect();
        let denied = (0..=u8::MAX)
            .zip(&self.sites)
            .filter(|(rank, _)| slots.iter().all(|slot| slot.rank != *rank))
            .map(|(rank, site)| ranked(rank, site.tier, None));
        clusters.extend(denied);
        Ranking {
            basis,
            fence_rules: self.fences.iter().map(|fence| fence.rule(place)).collect(),
            map: self.maps.iter().position(|map| map.matches(place)),
            clusters,
        }
    }

    /// Makes the class of one client, without a table. For tests and `explain`; [`super::Classes`] holds the same for packets.
    #[must_use]
    pub fn classify(&self, location: &Location, address: IpAddr) -> Class {
        let place = Place {
            location,
            network: Some(IpNet::from(address.to_canonical())),
        };
        let (mut keys, mut slots) = (Vec::new(), Vec::new());
        let basis = self.order(place, &mut keys, &mut slots);
        self.class(slots.into(), basis)
    }

    /// Makes a class of its slots.
    pub(super) fn class(&self, slots: Box<[Slot]>, basis: Basis) -> Class {
        let tied = slots
            .iter()
            .zip(slots.iter().skip(1))
            .any(|(one, next)| one.group == next.group);
        let lead = slots.first().copied().filter(|first| {
            let next = slots.get(1);
            next.is_none_or(|next| next.group != first.group)
        });
        Class {
            slots,
            lead,
            basis,
            sliced: tied && self.steer == Steer::Proximity,
        }
    }

    /// Orders the allowed clusters for a place into `slots`; `keys` is scratch.
    pub(super) fn order(
        &self,
        place: Place<'_>,
        keys: &mut Vec<Key>,
        slots: &mut Vec<Slot>,
    ) -> Basis {
        let allowed = fence::allowed(&self.fences, place);
        let map = self.maps.iter().position(|map| map.matches(place));
        self.collect_keys(place, allowed, map, keys);
        keys.sort_unstable_by(|a, b| {
            (a.tier, a.position)
                .cmp(&(b.tier, b.position))
                .then(a.meters.total_cmp(&b.meters))
                .then(a.rank.cmp(&b.rank))
        });
        slots.clear();
        let (mut group, mut last) = (0_u8, None::<Key>);
        for key in &*keys {
            let tied = |last: Key| {
                Key {
                    rank: key.rank,
                    ..last
                } == *key
            };
            if last.is_some_and(|last| !tied(last)) {
                group = group.saturating_add(1);
            }
            last = Some(*key);
            slots.push(Slot {
                rank: key.rank,
                tier: key.tier,
                group,
            });
        }
        self.basis(place, keys, map)
    }

    /// Fills `keys` with what each allowed cluster is sorted by.
    fn collect_keys(
        &self,
        place: Place<'_>,
        allowed: RankSet,
        map: Option<usize>,
        keys: &mut Vec<Key>,
    ) {
        let map = map.and_then(|at| self.maps.get(at));
        let by_distance = self.steer == Steer::Proximity;
        let from = place
            .location
            .coordinates
            .filter(|_| by_distance)
            .map(Point::from);
        keys.clear();
        for (rank, site) in (0..=u8::MAX).zip(&self.sites) {
            if !allowed.contains(rank) {
                continue;
            }
            let position = map.map_or(0, |map| map.position(rank));
            let inside = place.location.cluster.as_ref() == Some(&site.id);
            let distance = || {
                let (from, to) = from.zip(site.point)?;
                Some(meters(to.distance_km(from), site.bias, site.cost_km))
            };
            keys.push(Key {
                tier: site.tier,
                // What is drawn from knows no order: an entry only says which clusters come before the rest.
                position: if by_distance || position == UNLISTED {
                    position
                } else {
                    0
                },
                meters: if !by_distance {
                    0.0
                } else if inside {
                    INSIDE_METERS
                } else {
                    distance().unwrap_or(UNKNOWN_METERS)
                },
                rank,
            });
        }
    }

    /// Tells what the order came from.
    fn basis(&self, place: Place<'_>, keys: &[Key], map: Option<usize>) -> Basis {
        if keys.len() <= 1 {
            return Basis::Fixed;
        }
        match self.steer {
            Steer::Weighted => return Basis::Weight,
            Steer::RoundRobin => return Basis::Turn,
            Steer::All => return Basis::Everything,
            Steer::Proximity => {}
        }
        if let Some(at) = map {
            return Basis::Map(u8::try_from(at).unwrap_or(u8::MAX));
        }
        #[expect(clippy::float_cmp, reason = "a mark, never computed")]
        let is = |meters: f64| move |key: &Key| key.meters == meters;
        if keys.iter().any(is(INSIDE_METERS)) {
            Basis::Inside
        } else if place.location.coordinates.is_none() {
            Basis::UnknownPlace
        } else if keys.iter().all(is(UNKNOWN_METERS)) {
            Basis::Weight
        } else {
            Basis::Distance
        }
    }
}
