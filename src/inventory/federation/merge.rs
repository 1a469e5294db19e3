//! One service out of what several objects offer: name keys by the word of most, shard keys each by its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::rules::PrivateAddresses;
use super::shard::{NameKeys, Readiness, Shard};
use crate::inventory::service::{Extras, NamedEndpoint, Particular, proves};
use crate::model::{
    ClusterId, ClusterIndex, Condition, FallbackSpec, LowerName, MonitorSpec, NameRef, PolicySpec,
    Pools, PoolsBuilder, Ttl, Weight,
};

/// What a load balancer that is a host name resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedTarget {
    /// Its addresses, those of the last two answers.
    pub addresses: Box<[IpAddr]>,
    /// Addresses that nobody confirmed for long, or that are not to be used where they were found: they are used after all others.
    pub old: Box<[IpAddr]>,
    /// The rest of the TTL of the last answer; [`Ttl::BRIEF`] where it has ended.
    pub ttl: Ttl,
    /// It lies in our own zones and is followed there: the names outside of them where it goes on. `None`: it is resolved.
    pub inside: Option<Box<[LowerName]>>,
    /// It is known to have no address, rather than nobody knowing any.
    pub is_gone: bool,
    /// Why it is not followed, or a part of it: lower-case, no period.
    pub fault: Option<Box<str>>,
}

impl ResolvedTarget {
    /// Tells whether it has addresses, of whatever age.
    #[must_use]
    pub fn has_any(&self) -> bool {
        !(self.addresses.is_empty() && self.old.is_empty())
    }

    /// Says how its addresses were found.
    #[must_use]
    pub fn words(&self, name: &LowerName) -> String {
        match self.inside {
            Some(_) => format!("followed from {name} in our own zones"),
            None => format!("resolved from {name}"),
        }
    }

    /// Lists its addresses, each with whether it is an old one: not confirmed for long, or not to be used where it was found.
    pub fn all(&self) -> impl Iterator<Item = (IpAddr, bool)> {
        let fresh = self.addresses.iter().map(|address| (*address, false));
        fresh.chain(self.old.iter().map(|address| (*address, true)))
    }
}

/// All targets by name.
pub(in crate::inventory) type Targets = HashMap<LowerName, ResolvedTarget>;

/// What the endpoints of a service are looked at with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Within<'a> {
    pub(super) targets: &'a Targets,
    /// Where private addresses may be answered.
    pub(super) private: PrivateAddresses,
    /// The names of the service.
    pub(super) names: &'a BTreeSet<LowerName>,
}

/// One voice: a shard with its cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Voice<'a> {
    pub(super) cluster: ClusterIndex,
    pub(super) id: &'a ClusterId,
    pub(super) shard: &'a Shard,
    /// Its cluster was not seen for too long.
    pub(super) is_aged: bool,
}

/// Keys of a name of which some word does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyConflict {
    /// The annotation's key, or a field of the object such as `spec.ports`.
    pub key: &'static str,
    /// By whom.
    pub why: Overruled,
    /// The clusters whose word does not count, each once.
    pub overruled: Vec<ClusterId>,
}

/// Who says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overruled {
    /// Most other members.
    ByMost,
    /// The operator, who has a fence: what is answered outside of it is not a tenant's to say.
    ByFence,
    /// The zone, where private addresses may not be answered.
    ByZone,
    /// The room that a name has.
    ByRoom,
}

impl Overruled {
    /// Says it, before the names of the clusters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ByMost => "most members say otherwise than",
            Self::ByFence => "under the operator's fence this is not said by",
            Self::ByZone => "the zone answers no private address, which is said by",
            Self::ByRoom => "a name has no room for all that is said by",
        }
    }
}

/// Gives what most clusters say that say something; of equally many the one that has the first cluster by name. A cluster has
/// one vote, that of its first object that says something. `voices` are in the order of their clusters' names and objects.
fn most<'a, T: PartialEq + 'a>(
    voices: &[Voice<'a>],
    key: (&'static str, impl Fn(&'a NameKeys) -> Option<&'a T>),
    conflicts: &mut Vec<PolicyConflict>,
) -> Option<&'a T> {
    let mut said: Vec<(&T, usize)> = Vec::new();
    let mut last = None;
    for voice in voices {
        let Some(value) = key.1(&voice.shard.keys) else {
            continue;
        };
        if last.replace(voice.id) == Some(voice.id) {
            continue;
        }
        match said.iter_mut().find(|(other, _)| *other == value) {
            Some((_, count)) => *count += 1,
            None => said.push((value, 1)),
        }
    }
    // The sort is stable: of equally many the first stays first.
    said.sort_by_key(|(_, count)| Reverse(*count));
    let (winner, _) = *said.first()?;
    let loses = |keys: &'a NameKeys| key.1(keys).is_some_and(|value| value != winner);
    let overruled = clusters_of(voices, loses);
    if !overruled.is_empty() {
        conflicts.push(PolicyConflict {
            key: key.0,
            why: Overruled::ByMost,
            overruled,
        });
    }
    Some(winner)
}

/// Lists the clusters, each once, of which an object says such keys.
fn clusters_of<'a>(voices: &[Voice<'a>], says: impl Fn(&'a NameKeys) -> bool) -> Vec<ClusterId> {
    let saying = voices.iter().filter(|voice| says(&voice.shard.keys));
    let mut clusters: Vec<ClusterId> = saying.map(|voice| voice.id.clone()).collect();
    clusters.dedup();
    clusters
}

/// A key that says where clients are sent.
type Elsewhere = (&'static str, fn(&NameKeys) -> Option<&FallbackSpec>);

/// Gives where clients are sent whom nothing else answers, by the word of most tenants: inside the operator's fence only, which
/// an answer of its own would go round, and no private address where the zone has none.
fn elsewhere<'a>(
    (key, says): Elsewhere,
    (base, private): (&PolicySpec, PrivateAddresses),
    voices: &[Voice<'a>],
    conflicts: &mut Vec<PolicyConflict>,
) -> Option<FallbackSpec> {
    let refuse = |why| PolicyConflict {
        key,
        why,
        overruled: clusters_of(voices, |keys| says(keys).is_some()),
    };
    let said = most(voices, (key, says), conflicts)?;
    if !base.fences.is_empty() {
        conflicts.push(refuse(Overruled::ByFence));
        return None;
    }
    let mut said = said.clone();
    if private != PrivateAddresses::All
        && let FallbackSpec::Addresses(addresses) = &mut said
    {
        let before = addresses.len();
        addresses.retain(|address| !is_private(*address));
        if addresses.len() < before {
            conflicts.push(refuse(Overruled::ByZone));
        }
        if addresses.is_empty() {
            return None;
        }
    }
    Some(said)
}

/// Makes the policy and the TTL of a name. Fences add up: each of them must allow. `private` is what its zones allow.
pub(super) fn keys_of(
    (base, private): (&PolicySpec, PrivateAddresses),
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
    let fence_answer: Elsewhere = ("fence-answer", |keys| keys.fence_answer.as_ref());
    if let Some(answer) = elsewhere(fence_answer, (base, private), voices, conflicts) {
        policy.fence_answer = Some(answer);
    }
    let fallback: Elsewhere = ("fallback", |keys| keys.fallback.as_ref());
    if let Some(fallback) = elsewhere(fallback, (base, private), voices, conflicts) {
        policy.fallback = Some(fallback);
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
    /// Objects for which a service has no room.
    pub(super) left_out: usize,
}

/// One address of a shard.
#[derive(Debug)]
struct Site<'a> {
    address: IpAddr,
    voice: Voice<'a>,
    condition: Condition,
    /// A target in our own zones leads there.
    is_inside: bool,
}

/// Most addresses of one shard that are served.
const MAX_ADDRESSES: usize = 64;
/// And where that is too much for one service.
const FEW_ADDRESSES: usize = 4;
/// So many shards of so few addresses always fit (64 KiB, at most 12 + 4 * 20 octets each).
const MAX_SHARDS: usize = 650;
/// Sets of clients, and clusters, that always fit.
const MAX_SETS: usize = 250;

/// Packs what the voices offer.
pub(super) fn endpoints_of(
    voices: &[Voice<'_>],
    within: Within<'_>,
    by_endpoints: bool,
) -> Endpoints {
    let pack = |voices: &[Voice<'_>], max| {
        let weights = weights_of(voices, by_endpoints);
        pack((voices, &weights), within, max)
    };
    let whole = pack(voices, MAX_ADDRESSES).or_else(|| pack(voices, FEW_ADDRESSES));
    whole.unwrap_or_else(|| {
        let fitting = fitting(voices);
        let some = pack(&fitting, FEW_ADDRESSES).unwrap_or_default();
        Endpoints {
            left_out: voices.len() - fitting.len(),
            ..some
        }
    })
}

/// Leaves out what one service has no room for. Each cluster's first objects stay, those that are for everyone before those with
/// `clients`: many objects of one cluster take no other cluster's place.
fn fitting<'a>(voices: &[Voice<'a>]) -> Vec<Voice<'a>> {
    let mut turns: HashMap<(ClusterIndex, bool), usize> = HashMap::new();
    let mut order: Vec<(bool, usize, usize)> = Vec::with_capacity(voices.len());
    for (at, voice) in voices.iter().enumerate() {
        let has_clients = !voice.shard.clients.is_empty();
        let turn = turns.entry((voice.cluster, has_clients)).or_default();
        order.push((has_clients, *turn, at));
        *turn += 1;
    }
    order.sort_unstable();
    let (mut sets, mut clusters) = (HashSet::new(), HashSet::new());
    let mut taken = Vec::new();
    for (_, _, at) in order {
        let Some(voice) = voices.get(at).filter(|_| taken.len() < MAX_SHARDS) else {
            continue;
        };
        let set = &voice.shard.clients;
        let has_room = (sets.len() < MAX_SETS || sets.contains(set))
            && (clusters.len() < MAX_SETS || clusters.contains(&voice.cluster));
        if has_room {
            sets.insert(set);
            clusters.insert(voice.cluster);
            taken.push(at);
        }
    }
    taken.sort_unstable();
    let taken = taken.into_iter();
    taken.filter_map(|at| voices.get(at).copied()).collect()
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
    within: Within<'_>,
    max: usize,
) -> Option<Endpoints> {
    let mut builder = PoolsBuilder::default();
    let mut client_sets: Vec<Box<[ipnet::IpNet]>> = Vec::new();
    let mut places: HashMap<&[ipnet::IpNet], usize> = HashMap::new();
    let mut named = Vec::new();
    let mut ttl: Option<Ttl> = None;
    let mut all: BTreeMap<(ClusterIndex, IpAddr), Vec<Site<'_>>> = BTreeMap::new();
    let own = own_addresses(voices, within.targets);
    for (voice, weight) in voices.iter().zip(weights) {
        if voice.shard.unserved.is_some() {
            continue;
        }
        let (mut sites, own_ttl) = sites_of(*voice, within);
        sites.retain(|site| !(site.is_inside && own.contains(&site.address)));
        ttl = ttl.into_iter().chain(own_ttl).min();
        let clients = &voice.shard.clients;
        let set = (!clients.is_empty()).then(|| {
            *places.entry(clients).or_insert_with(|| {
                client_sets.push(clients.clone());
                client_sets.len() - 1
            })
        });
        named.extend(voice.shard.targets.iter().map(|name| NamedEndpoint {
            cluster: voice.cluster,
            weight: *weight,
            clients: set,
            name: name.clone(),
        }));
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
    let inside = all.iter().filter_map(|(place, sites)| {
        let is_inside = sites.iter().all(|site| site.is_inside);
        is_inside.then_some(*place)
    });
    let inside = inside.collect();
    let particulars = particulars(all, monitor.as_ref());
    let has_extras = !(client_sets.is_empty() && particulars.is_empty() && named.is_empty());
    let extras = has_extras.then(|| {
        Arc::new(Extras {
            client_sets: client_sets.into(),
            hostnames: Box::default(),
            targets: named.into(),
            inside,
            particulars,
            fallback: None,
            ports: None,
            hosts: None,
        })
    });
    Some(Endpoints {
        pools,
        monitor,
        extras,
        ttl,
        left_out: 0,
    })
}

/// Lists the addresses that no target in our own zones gives: they do not come back by a circle as those of another cluster.
fn own_addresses(voices: &[Voice<'_>], targets: &Targets) -> BTreeSet<IpAddr> {
    let follows = |name: &LowerName| targets.get(name).is_some_and(|one| one.inside.is_some());
    let shards = voices.iter().map(|voice| voice.shard);
    if !shards
        .clone()
        .any(|shard| shard.targets.iter().any(follows))
    {
        return BTreeSet::new();
    }
    let of_shard = |shard: &Shard| -> Vec<IpAddr> {
        let resolved = shard.targets.iter().filter_map(|name| targets.get(name));
        let resolved = resolved.filter(|one| one.inside.is_none());
        let resolved = resolved.flat_map(ResolvedTarget::all);
        let own = shard.addresses.iter().copied();
        own.chain(resolved.map(|(address, _)| address)).collect()
    };
    let served = shards.filter(|shard| shard.unserved.is_none());
    served.flat_map(of_shard).collect()
}

/// Lists the addresses of one shard, those of its targets too, and the least TTL of these.
fn sites_of<'a>(voice: Voice<'a>, within: Within<'_>) -> (Vec<Site<'a>>, Option<Ttl>) {
    let shard = voice.shard;
    // Of what nobody sees any more, what is not probed is sure to nobody.
    let is_unconfirmed = voice.is_aged && shard.monitor.is_none();
    let well = Condition {
        is_unready: shard.readiness != Readiness::Ready || is_unconfirmed,
        is_withdrawn: shard.is_drained,
        is_unproven: false,
    };
    let site = |address, condition, is_inside| Site {
        address,
        voice,
        condition,
        is_inside,
    };
    let own = shard.addresses.iter();
    let mut sites: Vec<Site<'a>> = own.map(|address| site(*address, well, false)).collect();
    let mut ttl = None;
    for name in &shard.targets {
        let Some(target) = within.targets.get(name) else {
            continue;
        };
        // A target without addresses has no TTL.
        ttl = ttl
            .into_iter()
            .chain(target.has_any().then_some(target.ttl))
            .min();
        let monitor = shard.monitor.as_deref();
        let old = old_condition(well, monitor, (name, target), || {
            within.names.iter().map(LowerName::as_ref)
        });
        sites.extend(target.all().map(|(address, is_old)| {
            let condition = if is_old { old } else { well };
            site(address, condition, target.inside.is_some())
        }));
    }
    sites.retain(|site| match within.private {
        PrivateAddresses::All => true,
        PrivateAddresses::Clients => !shard.clients.is_empty() || !is_private(site.address),
        PrivateAddresses::None => !is_private(site.address),
    });
    (sites, ttl)
}

/// Gives what is thought of the old addresses of a target: they come after all others, unless a monitor passes that proves them.
/// Of a name of ours they are not old but down or drained there, which no probe from elsewhere outweighs.
pub(in crate::inventory) fn old_condition<'n, N: Iterator<Item = NameRef<'n>>>(
    well: Condition,
    monitor: Option<&MonitorSpec>,
    (name, target): (&LowerName, &ResolvedTarget),
    names: impl FnOnce() -> N,
) -> Condition {
    let is_proof = |monitor: &MonitorSpec| proves(monitor, name, names());
    let may_be_proven = !well.is_unready && target.inside.is_none();
    let is_unproven = may_be_proven && monitor.is_some_and(is_proof);
    Condition {
        is_unready: !is_unproven,
        is_unproven,
        ..well
    }
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
        let is_unsure = all(|condition| condition.is_unready || condition.is_unproven);
        // The monitor that judges must be the one that proves.
        let is_proven_here = sites.first()?.condition.is_unproven;
        let is_unproven = is_unsure && is_proven_here;
        let condition = Condition {
            is_unready: is_unsure && !is_unproven,
            is_withdrawn: all(|condition| condition.is_withdrawn),
            is_unproven,
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
