//! The witness of `explain`: takes down every step.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

use super::Explanation;
use super::read::Read;
use super::words;
use crate::answer::stages::Client;
use crate::answer::witness::{Decided, Witness};
use crate::model::{
    ClientSubnet, ClusterIndex, FallbackSpec, Location, NameRef, PoolRef, RecordType, counted,
};
use crate::snapshot::{Flattened, Snapshot};
use crate::steering::{Ask, Basis, Chosen, Decision, Family, States};
use crate::zone::Lookup;

/// Draws made to show the shares of a policy that draws.
const DRAWS: u32 = 1000;
/// Most host names without an address that are named.
const SAID_TARGETS: usize = 8;

/// Takes down the steps of one answer.
pub(super) struct Recorder<'s> {
    snapshot: &'s Snapshot,
    qtype: RecordType,
    /// Endpoint states are of this moment, not assumed.
    knows_health: bool,
    /// The client to answer for in place of the packet's; `None`: the packet's own.
    pub(super) client: Option<Client>,
    /// The network that is located where there is no such client.
    pub(super) subnet: ClientSubnet,
    steps: Vec<String>,
    cluster: Option<String>,
    /// The name looked up last is one of a port: records of names are made of a decision, and none of addresses.
    makes_srv: bool,
}

impl<'s> Recorder<'s> {
    /// Begins.
    pub(super) fn new(snapshot: &'s Snapshot, qtype: RecordType, knows_health: bool) -> Self {
        Self {
            snapshot,
            qtype,
            knows_health,
            client: None,
            subnet: ClientSubnet::host(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            steps: Vec::new(),
            cluster: None,
            makes_srv: false,
        }
    }

    /// Adds a step.
    pub(super) fn say(&mut self, step: String) {
        self.steps.push(step);
    }

    /// Gives the network that is located.
    fn located(&self) -> ClientSubnet {
        self.client.map_or(self.subnet, |client| client.subnet)
    }

    /// Says how a network is read, where it is not as written: IPv4 inside IPv6.
    pub(super) fn say_written(&mut self, written: ClientSubnet) {
        if let Some(client) = self.client.filter(|client| client.offset > 0) {
            let (subnet, offset) = (client.subnet, client.offset);
            self.say(format!(
                "{written} is {subnet} in IPv6 dress: answered as IPv4, with {offset} bits more of scope"
            ));
        }
    }

    /// Adds what the reply says, and ends.
    pub(super) fn finish(mut self, reply: Read) -> Explanation {
        let rcode = reply.rcode.map_or_else(|| "?".to_owned(), words::rcode);
        let soa = reply
            .authority
            .iter()
            .find(|record| record.rtype == RecordType::SOA);
        // A chain that ends in nothing is negative: what ends first ends the reply (RFC 2308 section 5).
        let ttl = reply
            .answer
            .iter()
            .chain(soa)
            .map(|record| record.ttl)
            .min();
        let count = counted(reply.answer.len(), "record");
        let mut last = format!("Reply: {rcode}, {count}");
        if let Some(ttl) = ttl {
            // Writing to a String cannot fail.
            let _ = write!(last, ", kept for {ttl} s");
        }
        let _ = match reply.scope {
            0 if self.client.is_none() => {
                write!(last, ", for all clients of this resolver (no ECS)")
            }
            0 => write!(last, ", the same for every client (scope 0)"),
            scope => write!(
                last,
                ", the same for all clients that share the first {scope} bits"
            ),
        };
        if let Some(error) = reply.error {
            let _ = write!(last, ", Extended DNS Error {error}");
        }
        self.say(last);
        Explanation {
            steps: self.steps,
            answer: reply.answer.into_iter().map(|record| record.text).collect(),
            rcode,
            scope: reply.scope,
            ttl,
            cluster: self.cluster,
        }
    }

    /// Gives a cluster's name.
    fn name_of(&self, index: ClusterIndex) -> String {
        let cluster = self.snapshot.cluster(index);
        cluster.map_or_else(
            || format!("cluster {index}"),
            |cluster| cluster.id.to_string(),
        )
    }

    /// Says of each cluster how it stands for the client, in the order of use: the ordering that made the client's class.
    fn say_clusters(&mut self, decided: &Decided<'_>) {
        let client = self.located();
        let located = self.snapshot.geo().locate(client);
        let unknown = Location::default();
        let location = located.location.unwrap_or(&unknown);
        let policy = &decided.steering.policy;
        let ranking = policy.ranking(location, client.address);
        let pools = decided.ask.service.pools;
        for (place, ranked) in ranking.clusters.iter().enumerate() {
            let rank = usize::from(ranked.rank);
            let Some(index) = pools.cluster(rank) else {
                continue;
            };
            let endpoints = self.endpoints_in_words(decided.ask, rank);
            let line = words::ranked(&self.name_of(index), place, ranked);
            self.steps.push(format!("{line}, {endpoints}"));
        }
        self.say_targets(decided);
    }

    /// Says of which clusters nothing is known because they are entered by host names only that have no address.
    fn say_targets(&mut self, decided: &Decided<'_>) {
        let pools = decided.ask.service.pools;
        let extras = decided.extras;
        let targets = extras.into_iter().flat_map(|extras| &extras.targets);
        let missing = targets.filter(|target| !pools.clusters().any(|one| one == target.cluster));
        for target in missing.take(SAID_TARGETS) {
            let (cluster, name) = (self.name_of(target.cluster), &target.name);
            let why = if self.knows_health {
                "of which no address is known"
            } else {
                "which only a running node resolves"
            };
            self.steps.push(format!(
                "{cluster} is entered by the host name {name}, {why}"
            ));
        }
    }

    /// Counts the endpoints of one cluster by state.
    fn endpoints_in_words(&self, ask: &Ask<'_>, rank: usize) -> String {
        let (mut all, mut up, mut drained, mut forced, mut doubt, mut hosts) = (0, 0, 0, 0, 0, 0);
        for pool in ask.service.pools.of(rank) {
            hosts += usize::from(pool.hostname().is_some());
            let of_family: Vec<_> = match ask.family {
                Family::V4 => pool.v4().collect(),
                Family::V6 => pool.v6().collect(),
            };
            for endpoint in of_family {
                let state = self.snapshot.usable().state(endpoint.state);
                all += 1;
                up += usize::from(state.is_up());
                drained += usize::from(state.is_drained());
                forced += usize::from(state.is_forced_down());
                doubt += usize::from(state.is_in_doubt());
            }
        }
        if hosts > 0 && all == 0 {
            return "a host name".to_owned();
        }
        let family = match ask.family {
            Family::V4 => words::family(RecordType::A),
            Family::V6 => words::family(RecordType::AAAA),
        };
        let mut text = if self.knows_health {
            format!("{up} of {all} {family} endpoints up")
        } else {
            counted(all, &format!("{family} endpoint"))
        };
        let kept = self.kept_from(ask, rank);
        if kept > 0 {
            let _ = write!(text, ", {kept} of them for other senders (`clients`)");
        }
        for (count, word) in [
            (drained, "drained"),
            (forced, "forced down"),
            (doubt, "in doubt"),
        ] {
            if count > 0 {
                let _ = write!(text, ", {count} {word}");
            }
        }
        text
    }

    /// Counts the endpoints of one cluster that this sender may not have.
    fn kept_from(&self, ask: &Ask<'_>, rank: usize) -> usize {
        let closed = ask
            .service
            .pools
            .of(rank)
            .filter(|pool| !is_open(ask, pool));
        closed
            .map(|pool| match ask.family {
                Family::V4 => pool.v4_count(),
                Family::V6 => pool.v6_count(),
            })
            .sum()
    }

    /// Tells whether an answer of addresses suits the type asked for.
    fn wants_addresses(&self) -> bool {
        matches!(self.qtype, RecordType::A | RecordType::AAAA)
    }

    /// Tells whether what stands in for endpoints has something for the type asked for.
    fn suits(&self, spec: &FallbackSpec) -> bool {
        match spec {
            FallbackSpec::Hostname(_) => true,
            FallbackSpec::Addresses(addresses) => self.has_any(addresses),
        }
    }

    /// Tells whether an address is of the type asked for.
    fn has_any(&self, addresses: &[IpAddr]) -> bool {
        addresses.iter().any(|address| match self.qtype {
            RecordType::A => address.is_ipv4(),
            RecordType::AAAA => address.is_ipv6(),
            _ => false,
        })
    }

    /// Gives the addresses that a `fallback` is answered by: at an apex, where no CNAME can stand.
    fn flattened<'a>(&self, decided: &Decided<'a>) -> Option<&'a Flattened> {
        let flat = decided.extras?.fallback.as_ref()?;
        let zone = self.snapshot.zones().get(decided.zone)?;
        (zone.apex().as_ref() == decided.name).then_some(flat)
    }

    /// Says what was chosen.
    fn say_chosen(&mut self, decided: &Decided<'_>) {
        let pools = &decided.steered.pools;
        let cluster = chosen_cluster(decided.decision, decided.ask);
        self.cluster = cluster.map(|index| self.name_of(index));
        let named = self.cluster.clone().unwrap_or_else(|| "?".to_owned());
        let qtype = self.qtype;
        let (chosen, has_records) = match decided.decision.chosen {
            Chosen::Cluster { .. } | Chosen::Everything { .. }
                if !(self.wants_addresses() || self.makes_srv) =>
            {
                (
                    format!("endpoints, which have addresses only: there is no {qtype} here"),
                    false,
                )
            }
            Chosen::Cluster { .. } => (format!("cluster {named}"), true),
            Chosen::Everything { .. } => {
                let count = counted(pools.cluster_count(), "cluster");
                let among = match decided.level {
                    Some((_, Some(_))) => format!("the level's among {count}"),
                    _ => count,
                };
                (format!("every endpoint of {among}"), true)
            }
            Chosen::Hostname(_) => (
                format!("the host name of cluster {named}, as a CNAME"),
                true,
            ),
            Chosen::Fallback(spec) => match self.flattened(decided) {
                Some(flat) => (
                    "fallback of the policy, by its addresses at the apex".to_owned(),
                    self.has_any(&flat.addresses),
                ),
                None => {
                    let suits = self.makes_srv || self.suits(spec);
                    ("fallback of the policy".to_owned(), suits)
                }
            },
            Chosen::FenceAnswer(spec) => {
                let suits = self.makes_srv || self.suits(spec);
                ("fenceAnswer of the policy".to_owned(), suits)
            }
            Chosen::Denied => (
                "nothing: the fence leaves this client no cluster, and there is no fenceAnswer"
                    .to_owned(),
                false,
            ),
            Chosen::OtherFamily => (
                "no address of this family: the client's cluster has one of the other family"
                    .to_owned(),
                false,
            ),
            Chosen::Nothing => (
                "no address of this family in any cluster open to this client".to_owned(),
                false,
            ),
        };
        let mut line = format!("Chosen: {chosen}");
        if has_records {
            // Writing to a String cannot fail.
            let is_fallback = matches!(decided.decision.chosen, Chosen::Fallback(_));
            let flat = self.flattened(decided).filter(|_| is_fallback);
            let ttl = flat.map_or(decided.ttl, |flat| flat.ttl.min(decided.ttl));
            let _ = write!(line, "; TTL {ttl}");
            if decided.decision.brief {
                line.push_str(", kept short: a monitor is in doubt, or a drain is announced");
            }
        } else {
            line.push_str("; NODATA, kept short");
        }
        self.say(line);
    }

    /// Says what share of queries each cluster gets, where the policy draws.
    fn say_shares(&mut self, decided: &Decided<'_>) {
        let is_drawn = decided.decision.reason.basis != Basis::Named;
        if !(is_drawn && decided.steering.policy.draws()) {
            return;
        }
        let mut shares: BTreeMap<String, u32> = BTreeMap::new();
        for draw in 0..DRAWS {
            let mut ask = *decided.ask;
            ask.client.draw = draw;
            let policy = &decided.steering.policy;
            let decision = policy.select_again(&ask, decided.decision, self.snapshot.usable());
            if let Some(index) = chosen_cluster(&decision, &ask) {
                *shares.entry(self.name_of(index)).or_default() += 1;
            }
        }
        let shares: Vec<String> = shares
            .into_iter()
            .map(|(name, count)| {
                format!("{name} {:.1} %", f64::from(count * 100) / f64::from(DRAWS))
            })
            .collect();
        if !shares.is_empty() {
            self.say(format!(
                "Shares of this client's queries: {}",
                shares.join(", ")
            ));
        }
    }
}

/// Gives the cluster that a decision names, if one.
fn chosen_cluster(decision: &Decision<'_>, ask: &Ask<'_>) -> Option<ClusterIndex> {
    let pools = ask.service.pools;
    match decision.chosen {
        Chosen::Cluster { rank, .. } => pools.cluster(usize::from(rank)),
        Chosen::Hostname(at) => pools
            .iter()
            .find(|pool| pool.hostname() == Some(usize::from(at)))
            .map(|pool| pool.cluster()),
        _ => None,
    }
}

/// Tells whether a sender may be given a pool: by packet source, as steering does.
fn is_open(ask: &Ask<'_>, pool: &PoolRef<'_>) -> bool {
    pool.clients().is_none_or(|at| {
        let set = ask.service.client_sets.get(at);
        set.is_some_and(|set| set.iter().any(|net| net.contains(ask.client.sender)))
    })
}

impl Witness for Recorder<'_> {
    fn client(&self) -> Option<Client> {
        self.client
    }

    fn looked_up(&mut self, name: NameRef<'_>, lookup: &Lookup<'_>) {
        self.makes_srv = matches!(lookup, Lookup::Port { .. });
        let step = words::lookup(self.snapshot, name, lookup);
        self.say(step);
    }

    fn decided(&mut self, decided: &Decided<'_>) {
        let geo = self.snapshot.geo();
        let place = words::place(&geo.locate(self.located()), geo.databases().len());
        self.say(place);
        self.say_clusters(decided);
        if !self.knows_health {
            self.say("Health is not looked at: every endpoint counts as up".to_owned());
        }
        if let Some((area, by)) = decided.level {
            self.say(words::level(area, by));
        }
        self.say(words::reason(decided));
        self.say_shares(decided);
        self.say_chosen(decided);
    }
}
