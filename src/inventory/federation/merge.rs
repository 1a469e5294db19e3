//! One service out of what several objects offer: name keys by the word of most, shard keys each by its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use super::rules::PrivateAddresses;
use super::shard::{NameKeys, Readiness, Shard};
use crate::inventory::service::{Extras, Particular};
use crate::model::{
    ClusterId, ClusterIndex, Condition, LowerName, MonitorSpec, PolicySpec, Pools, PoolsBuilder,
    Ttl, Weight,
};

/// What a load balancer that is a host name resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedTarget {
    /// Its addresses, those of the last two answers.
    pub addresses: Box<[IpAddr]>,
    /// Addresses that nobody confirmed for long: they are used after all others.
    pub old: Box<[IpAddr]>,
    /// The rest of the TTL of the last answer.
    pub ttl: Ttl,
}

/// All targets by name.
pub(super) type Targets = HashMap<LowerName, ResolvedTarget>;

/// One voice: a shard with its cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Voice<'a> {
    pub(super) cluster: ClusterIndex,
    pub(super) id: &'a ClusterId,
    pub(super) shard: &'a Shard,
    /// Its cluster was not seen for too long.
    pub(super) is_aged: bool,
}

/// Keys of a name about which members do not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyConflict {
    /// The annotation's key.
    pub key: &'static str,
    /// The clusters whose word does not count.
    pub overruled: Vec<ClusterId>,
}

/// Gives what most voices say that say something; of equally many the one that has the first cluster by name. `voices` are in
/// the order of their clusters' names.
fn most<'a, T: PartialEq + 'a>(
    voices: &[Voice<'a>],
    key: (&'static str, impl Fn(&'a NameKeys) -> Option<&'a T>),
    conflicts: &mut Vec<PolicyConflict>,
) -> Option<&'a T> {
    let mut said: Vec<(&T, usize)> = Vec::new();
    for voice in voices {
        let Some(value) = key.1(&voice.shard.keys) else {
            continue;
        };
        match said.iter_mut().find(|(other, _)| *other == value) {
            Some((_, count)) => *count += 1,
            None => said.push((value, 1)),
        }
    }
    // The sort is stable: of equally many the first stays first.
    said.sort_by_key(|(_, count)| Reverse(*count));
    let (winner, _) = *said.first()?;
    if said.len() > 1 {
        let loses =
            |voice: &&Voice<'a>| key.1(&voice.shard.keys).is_some_and(|value| value != winner);
        let overruled = voices.iter().filter(loses);
        conflicts.push(PolicyConflict {
            key: key.0,
            overruled: overruled.map(|voice| voice.id.clone()).collect(),
        });
    }
    Some(winner)
}

/// Makes the policy and the TTL of a name. Fences add up: each of them must allow.
pub(super) fn keys_of(
    base: &PolicySpec,
    voices: &[Voice<'_>],
    conflicts: &mut Vec<PolicyConflict>,
) -> (PolicySpec, Option<Ttl>) {
    let mut policy = base.clone();
    if let Some(steer) = most(voices, ("steer", |keys| keys.steer.as_ref()), conflicts) {
        policy.steer = *steer;
    }
    if let Some(weights) = most(voices, ("weights", |keys| keys.weights.as_ref()), conflicts) {
        policy.weights.clone_from(weights);
    }
    if let Some(tiers) = most(voices, ("tiers", |keys| keys.tiers.as_ref()), conflicts) {
        policy.tiers.clone_from(tiers);
    }
    if let Some(bias) = most(voices, ("bias", |keys| keys.bias.as_ref()), conflicts) {
        policy.bias.clone_from(bias);
    }
    if let Some(maps) = most(voices, ("maps", |keys| keys.maps.as_ref()), conflicts) {
        policy.maps.clone_from(maps);
    }
    let answer = most(
        voices,
        ("fence-answer", |keys| keys.fence_answer.as_ref()),
        conflicts,
    );
    if let Some(answer) = answer {
        policy.fence_answer = Some(answer.clone());
    }
    if let Some(fallback) = most(
        voices,
        ("fallback", |keys| keys.fallback.as_ref()),
        conflicts,
    ) {
        policy.fallback = Some(fallback.clone());
    }
    if let Some(answers) = most(voices, ("answers", |keys| keys.answers.as_ref()), conflicts) {
        policy.answers = *answers;
    }
    if let Some(panic) = most(voices, ("panic", |keys| keys.panic.as_ref()), conflicts) {
        policy.panic = *panic;
    }
    for voice in voices {
        if let Some(fence) = &voice.shard.keys.fence
            && !policy.fences.contains(fence)
        {
            policy.fences.push(fence.clone());
        }
    }
    let ttl = most(voices, ("ttl", |keys| keys.ttl.as_ref()), conflicts);
    (policy, ttl.copied())
}

/// Tells whether ready endpoints scale the shares of a name's clusters. Weights that are listed go before it.
pub(super) fn weighs_endpoints(
    base: bool,
    policy: &PolicySpec,
    voices: &[Voice<'_>],
    conflicts: &mut Vec<PolicyConflict>,
) -> bool {
    let said = most(
        voices,
        ("weights-from", |keys| keys.weighs_endpoints.as_ref()),
        conflicts,
    );
    said.copied().unwrap_or(base) && policy.weights.is_empty()
}

/// The endpoints of a service.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    pub(super) pools: Pools,
    pub(super) monitor: Option<Arc<MonitorSpec>>,
    pub(super) extras: Option<Arc<Extras>>,
    /// The least TTL of the targets in use.
    pub(super) ttl: Option<Ttl>,
}

/// One address of a shard.
#[derive(Debug)]
struct Site<'a> {
    address: IpAddr,
    voice: Voice<'a>,
    condition: Condition,
}

/// Most addresses of one shard that are served.
const MAX_ADDRESSES: usize = 64;
/// And where that is too much for one service.
const FEW_ADDRESSES: usize = 4;

/// Packs what the voices offer.
pub(super) fn endpoints_of(
    voices: &[Voice<'_>],
    targets: &Targets,
    private: PrivateAddresses,
    by_endpoints: bool,
) -> Endpoints {
    let weights = weights_of(voices, by_endpoints);
    let pack = |max| pack((voices, &weights), (targets, private), max);
    pack(MAX_ADDRESSES)
        .or_else(|| pack(FEW_ADDRESSES))
        .unwrap_or_default()
}

/// Gives the weight of each voice: its own, and `by_endpoints` times its ready endpoints. Products that are too large are scaled
/// down together, so that their shares stay; none becomes 0 by it. Where a cluster does not count its endpoints, none is scaled:
/// what is counted cannot be held against what is not.
fn weights_of(voices: &[Voice<'_>], by_endpoints: bool) -> Vec<Weight> {
    let own = || voices.iter().map(|voice| voice.shard.weight).collect();
    if !by_endpoints {
        return own();
    }
    let product = |voice: &Voice<'_>| {
        let backing = voice.shard.backing?;
        Some(u64::from(voice.shard.weight.0) * u64::from(backing.ready))
    };
    let Some(products) = voices.iter().map(product).collect::<Option<Vec<u64>>>() else {
        return own();
    };
    let most = u64::from(u16::MAX);
    let largest = products.iter().copied().max().unwrap_or(0).max(most);
    let scale = |product: u64| {
        let scaled = (product.saturating_mul(most) / largest).max(u64::from(product > 0));
        Weight(u16::try_from(scaled).unwrap_or(u16::MAX))
    };
    products.into_iter().map(scale).collect()
}

/// Packs at most so many addresses of each shard; `None`: they are too many.
fn pack(
    (voices, weights): (&[Voice<'_>], &[Weight]),
    (targets, private): (&Targets, PrivateAddresses),
    max: usize,
) -> Option<Endpoints> {
    let mut builder = PoolsBuilder::default();
    let mut client_sets: Vec<Box<[ipnet::IpNet]>> = Vec::new();
    let mut ttl: Option<Ttl> = None;
    let mut all: BTreeMap<(ClusterIndex, IpAddr), Vec<Site<'_>>> = BTreeMap::new();
    for (voice, weight) in voices.iter().zip(weights) {
        if voice.shard.unserved.is_some() {
            continue;
        }
        let (sites, own_ttl) = sites_of(*voice, targets, private);
        ttl = ttl.into_iter().chain(own_ttl).min();
        let clients = &voice.shard.clients;
        let set = (!clients.is_empty()).then(|| {
            let known = client_sets.iter().position(|set| set == clients);
            known.unwrap_or_else(|| {
                client_sets.push(clients.clone());
                client_sets.len() - 1
            })
        });
        let mut fresh = Vec::new();
        for site in sites.into_iter().take(max) {
            let held = all.entry((voice.cluster, site.address)).or_default();
            let is_known = |other: &Site<'_>| other.voice.shard.clients == *clients;
            if !held.iter().any(is_known) {
                fresh.push(site.address);
            }
            held.push(site);
        }
        if !fresh.is_empty() {
            builder
                .addresses(voice.cluster, *weight, set, &fresh)
                .ok()?;
        }
    }
    let pools = builder.build().ok()?;
    let monitor = common_monitor(&all);
    let particulars = particulars(all, monitor.as_ref());
    let has_extras = !(client_sets.is_empty() && particulars.is_empty());
    let extras = has_extras.then(|| {
        Arc::new(Extras {
            client_sets: client_sets.into(),
            hostnames: Box::default(),
            particulars,
        })
    });
    Some(Endpoints {
        pools,
        monitor,
        extras,
        ttl,
    })
}

/// Lists the addresses of one shard, those of its targets too, and the least TTL of these.
fn sites_of<'a>(
    voice: Voice<'a>,
    targets: &Targets,
    private: PrivateAddresses,
) -> (Vec<Site<'a>>, Option<Ttl>) {
    let shard = voice.shard;
    // Of what nobody sees any more, what is not probed is sure to nobody.
    let is_unconfirmed = voice.is_aged && shard.monitor.is_none();
    let is_unready = shard.readiness != Readiness::Ready || is_unconfirmed;
    let resolved = shard.targets.iter().filter_map(|name| targets.get(name));
    let resolved: Vec<&ResolvedTarget> = resolved.collect();
    let ttl = resolved.iter().map(|target| target.ttl).min();
    let own = shard.addresses.iter().map(|address| (*address, false));
    let others = resolved.iter().flat_map(|target| {
        let fresh = target.addresses.iter().map(|address| (*address, false));
        fresh.chain(target.old.iter().map(|address| (*address, true)))
    });
    let may = |address: &IpAddr| match private {
        PrivateAddresses::All => true,
        PrivateAddresses::Clients => !shard.clients.is_empty() || !is_private(*address),
        PrivateAddresses::None => !is_private(*address),
    };
    let site = |(address, is_old)| Site {
        address,
        voice,
        condition: Condition {
            is_unready: is_unready || is_old,
            is_withdrawn: shard.is_drained,
        },
    };
    let sites = own.chain(others).filter(|(address, _)| may(address));
    (sites.map(site).collect(), ttl)
}

/// Tells whether an address is one that networks use inside: RFC 1918, RFC 6598, RFC 4193.
#[must_use]
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            address.is_private() || (first == 100 && second & 0xc0 == 64)
        }
        IpAddr::V6(address) => address.is_unique_local(),
    }
}

/// Gives the monitor that most addresses have.
fn common_monitor(
    all: &BTreeMap<(ClusterIndex, IpAddr), Vec<Site<'_>>>,
) -> Option<Arc<MonitorSpec>> {
    let mut counts: Vec<(Option<&Arc<MonitorSpec>>, usize)> = Vec::new();
    for site in all.values().filter_map(|sites| sites.first()) {
        let monitor = site.voice.shard.monitor.as_ref();
        match counts.iter_mut().find(|(other, _)| *other == monitor) {
            Some((_, count)) => *count += 1,
            None => counts.push((monitor, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| Reverse(*count));
    counts.first()?.0.cloned()
}

/// Lists the addresses that are not as the service says. Of several objects at one address one that is well is enough.
fn particulars(
    all: BTreeMap<(ClusterIndex, IpAddr), Vec<Site<'_>>>,
    common: Option<&Arc<MonitorSpec>>,
) -> Box<[Particular]> {
    let particular = |((cluster, address), sites): ((ClusterIndex, IpAddr), Vec<Site<'_>>)| {
        let monitor = sites.first()?.voice.shard.monitor.as_ref();
        let all = |is: fn(&Condition) -> bool| sites.iter().all(|site| is(&site.condition));
        let condition = Condition {
            is_unready: all(|condition| condition.is_unready),
            is_withdrawn: all(|condition| condition.is_withdrawn),
        };
        if monitor == common && condition == Condition::default() {
            return None;
        }
        Some(Particular {
            cluster,
            address,
            monitor: monitor.cloned(),
            condition,
        })
    };
    all.into_iter().filter_map(particular).collect()
}
