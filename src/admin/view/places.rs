//! What the clients of each country get now, and what share of the answers that makes for each cluster.

use std::net::{IpAddr, Ipv4Addr};

use crate::admin::dto::PlaceShareDto;
use crate::geo::{Country, countries, country};
use crate::model::{CountryCode, EndpointState, Location};
use crate::snapshot::{ServiceSlot, Snapshot, Steering};
use crate::steering::{Ranked, States};

/// Countries that a page shows, those with the most clients first.
const SHOWN: usize = 60;

/// What [`shares`] gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shares {
    /// By country: those whose clients asked in the last minutes, most first; else all, by code.
    pub(super) places: Vec<PlaceShareDto>,
    /// The share of answers of each cluster, by rank; adds up to 1, or is all 0.
    pub(super) by_rank: Vec<f64>,
}

/// Works out who gets what: for each country a client in the middle of its population.
pub(super) fn shares(
    snapshot: &Snapshot,
    slot: &ServiceSlot,
    clients: &[(Option<CountryCode>, u64)],
) -> Shares {
    let Some(steering) = snapshot.steering(slot.policy) else {
        return Shares::default();
    };
    let mut asked: Vec<(&Country, f64)> = clients
        .iter()
        .filter(|(_, count)| *count > 0)
        .filter_map(|(code, count)| Some((country((*code)?)?, float(*count))))
        .collect();
    if asked.is_empty() {
        asked = countries().iter().map(|country| (country, 1.0)).collect();
    }
    let mut by_rank = vec![0.0; slot.pools.cluster_count()];
    let mut places = Vec::new();
    for (at, (country, clients)) in asked.into_iter().enumerate() {
        let parts = parts(snapshot, slot, steering, country);
        if at < SHOWN || clients <= 1.0 {
            let first = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1));
            let cluster = first
                .and_then(|(rank, _)| snapshot.cluster(slot.pools.cluster(usize::from(*rank))?));
            places.push(PlaceShareDto {
                country: country.code.to_string(),
                cluster: cluster.map(|cluster| cluster.id.to_string()),
            });
        }
        for (rank, part) in parts {
            if let Some(cell) = by_rank.get_mut(usize::from(rank)) {
                *cell += part * clients;
            }
        }
    }
    let sum: f64 = by_rank.iter().sum();
    if sum > 0.0 {
        for cell in &mut by_rank {
            *cell /= sum;
        }
    }
    Shares { places, by_rank }
}

/// Gives the clusters that clients of a country get, by rank, with their parts of 1.
fn parts(
    snapshot: &Snapshot,
    slot: &ServiceSlot,
    steering: &Steering,
    country: &Country,
) -> Vec<(u8, f64)> {
    let location = Location {
        coordinates: Some(country.center),
        continent: Some(country.continent),
        country: Some(country.code),
        ..Location::default()
    };
    // No client has this address: prefixes of fences and maps are for those who do.
    let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let ranking = steering.policy.ranking(&location, nobody);
    let allowed: Vec<&Ranked> = ranking.clusters.iter().filter(|one| one.allowed).collect();
    let levels: [fn(EndpointState) -> bool; 4] = [
        EndpointState::is_usable,
        EndpointState::is_up,
        |state| !state.is_forced_down(),
        |_| true,
    ];
    for level in levels {
        let has = |one: &Ranked| {
            let mut states = slot
                .pools
                .of(usize::from(one.rank))
                .filter(|pool| pool.clients().is_none())
                .flat_map(|pool| pool.states());
            states.any(|index| level(snapshot.usable().state(index)))
        };
        // In the order of use: a tier, and in it a group, is left only when it has nothing.
        let found = allowed
            .iter()
            .find(|one| has(one) && weight(slot, one) > 0.0);
        let found = found.or_else(|| allowed.iter().find(|one| has(one)));
        let Some(first) = found else {
            continue;
        };
        let group = allowed
            .iter()
            .filter(|one| one.tier == first.tier && one.group == first.group && has(one));
        let weighed: Vec<(u8, f64)> = group.map(|one| (one.rank, weight(slot, one))).collect();
        let sum: f64 = weighed.iter().map(|(_, weight)| weight).sum();
        return if sum > 0.0 {
            weighed
                .into_iter()
                .map(|(rank, weight)| (rank, weight / sum))
                .collect()
        } else {
            vec![(first.rank, 1.0)]
        };
    }
    Vec::new()
}

/// Gives a cluster's weight: listed by the policy, or that of its pools.
fn weight(slot: &ServiceSlot, one: &Ranked) -> f64 {
    let pools = slot.pools.of(usize::from(one.rank));
    let own = || pools.map(|pool| f64::from(pool.weight().0)).sum();
    one.weight.map_or_else(own, f64::from)
}

/// Makes a number of it that can be divided; counts of minutes are far below 2^32.
fn float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
