//! Steered names: a policy decides, its endpoints become records.

use std::net::IpAddr;

use super::ecs;
use super::reply::{ExtendedError, Rcode, Section};
use super::sections::{Link, Next, Solver};
use super::stages::PlaceFrom;
use super::witness::{Decided, Witness};
use crate::model::{
    AreaIndex, ClusterIndex, Endpoint, FallbackSpec, NameRef, Pools, PrefixLen, RecordType,
    ServiceIndex, Ttl, ZoneIndex,
};
use crate::snapshot::{Area, Extras, Flattened, Steered, Steering};
use crate::steering::{
    Ask, Basis, Chosen, ClassId, Classes, ClientView, Decision, Family, Level, Policy, ServiceView,
};
use crate::telemetry::{Count, Counters, Given, Order, PlaceOf};

/// Clusters of one answer that are counted: an answer has 32 addresses at most.
const MAX_CLUSTERS: usize = 32;

/// One steered name on its way into the reply.
pub(super) struct Site<'a, 'n> {
    pub(super) link: Link<'n>,
    pub(super) zone: ZoneIndex,
    pub(super) steered: &'a Steered,
    pub(super) extras: Option<&'a Extras>,
    pub(super) ttl: Ttl,
}

/// A service and its policy.
pub(super) type Parts<'a> = (&'a Steered, Option<&'a Extras>, &'a Steering);

/// Gives what a decision reads of a service.
#[inline(always)]
pub(super) fn view_of<'a>(steered: &'a Steered, extras: Option<&'a Extras>) -> ServiceView<'a> {
    ServiceView {
        pools: &steered.pools,
        client_sets: extras.map_or(&[], |extras| &extras.client_sets),
        hostnames: extras.map_or(&[], |extras| &extras.hostnames),
    }
}

impl<'a, W: Witness> Solver<'a, '_, W> {
    /// Lets the policy decide and writes what it chose; gives the next name when that is a host name.
    #[inline]
    pub(super) fn steered(
        &mut self,
        link: Link<'_>,
        zone: ZoneIndex,
        service: ServiceIndex,
    ) -> Option<Next> {
        self.steer(link, (zone, service), None)
    }

    /// Lets the policy decide among the clusters of a level first.
    #[cold]
    pub(super) fn leveled(
        &mut self,
        link: Link<'_>,
        (zone, service): (ZoneIndex, ServiceIndex),
        area: AreaIndex,
    ) -> Option<Next> {
        let Some(area) = self.snapshot.area(area) else {
            self.broken();
            return None;
        };
        self.steer(link, (zone, service), Some(area))
    }

    /// Lets the policy decide, among the clusters of an area first where one is given.
    #[inline(always)]
    fn steer(
        &mut self,
        link: Link<'_>,
        (zone, service): (ZoneIndex, ServiceIndex),
        area: Option<&Area>,
    ) -> Option<Next> {
        let snapshot = self.snapshot;
        // What was read ahead belongs to the name that was asked for.
        let ahead = self.ahead.filter(|_| self.links == 0);
        let parts = ahead.map(|ahead| (ahead.steered, ahead.extras, ahead.steering));
        let Some((steered, extras, steering)) = parts.or_else(|| self.parts(service)) else {
            self.broken();
            return None;
        };
        let Steering { policy, classes } = steering;
        let known = ahead.and_then(|ahead| ahead.class);
        let (id, scope) = self.locate(classes, known);
        let Some(class) = classes.get(id) else {
            self.broken();
            return None;
        };
        let family = self.family();
        let ask = Ask {
            service: view_of(steered, extras),
            family,
            client: ClientView {
                sender: self.sender,
                subnet: &self.client.subnet,
                class,
                scope,
                draw: self.draw(policy, (service, family), area),
            },
        };
        let (decision, by) = self.decide((policy, &ask), area, (link.name, zone, extras));
        let parts = (steered, extras, steering);
        let level = area.map(|area| (area, by));
        let site = self.decided((link, zone), (parts, &ask), &decision, level)?;
        if decision.reason.level != Level::Up && self.names_endpoints(&decision) {
            self.counters.note_resort(service);
        }
        match decision.chosen {
            Chosen::Cluster { .. } | Chosen::Everything { .. } if self.wants_addresses() => {
                match &decision.only {
                    Some(endpoint) => self.write_endpoint(&site, endpoint),
                    None => {
                        let endpoints = policy.endpoints(&decision, &ask, snapshot.usable());
                        self.write_endpoints(&site, endpoints);
                    }
                }
                None
            }
            chosen => self.write_other(&site, chosen),
        }
    }

    /// Gives the family that is asked for; types that are not of addresses are decided as A is.
    #[inline(always)]
    pub(super) fn family(&self) -> Family {
        if self.qtype == RecordType::AAAA {
            Family::V6
        } else {
            Family::V4
        }
    }

    /// Takes down what was decided: scope, counters, and the place of the answer.
    #[inline(always)]
    pub(super) fn decided<'n>(
        &mut self,
        (link, zone): (Link<'n>, ZoneIndex),
        (parts, ask): (Parts<'a>, &Ask<'_>),
        decision: &Decision<'_>,
        level: Option<(&Area, Option<usize>)>,
    ) -> Option<Site<'a, 'n>> {
        let (steered, extras, steering) = parts;
        let Some(ttl) = steered.ttl.or_else(|| Some(self.zone(zone)?.ttl())) else {
            self.broken();
            return None;
        };
        let ttl = if decision.brief {
            ttl.min(Ttl::BRIEF)
        } else {
            ttl
        };
        let reads_client = steering.policy.reads_client();
        self.widen_scope(decision.scope.0, reads_client);
        self.count_decision(decision, reads_client);
        self.witness.decided(&Decided {
            steered,
            extras,
            steering,
            ask,
            decision,
            ttl,
            level,
            name: link.name,
            zone,
        });
        Some(Site {
            link,
            zone,
            steered,
            extras,
            ttl,
        })
    }

    /// Reads a service and its policy.
    #[inline]
    pub(super) fn parts(&self, service: ServiceIndex) -> Option<Parts<'a>> {
        let slot = self.snapshot.service(service)?;
        let steering = self.snapshot.steering(slot.policy)?;
        Some((&slot.steered, slot.extras.as_deref(), steering))
    }

    /// Gives the draw of this question. HTTPS and others, asked in turn with A, must not take A's turns.
    #[inline(always)]
    fn draw(
        &mut self,
        policy: &Policy,
        (service, family): (ServiceIndex, Family),
        area: Option<&Area>,
    ) -> u32 {
        if area.is_some() {
            self.draws.scattered()
        } else if policy.draws() && self.wants_addresses() {
            self.draws.of(service, family)
        } else {
            self.draws.rotation()
        }
    }

    /// Lets the policy decide; gives the position of the area's level that did too.
    #[inline(always)]
    fn decide<'p>(
        &self,
        (policy, ask): (&'p Policy, &Ask<'_>),
        area: Option<&Area>,
        (name, zone, extras): (NameRef<'_>, ZoneIndex, Option<&Extras>),
    ) -> (Decision<'p>, Option<usize>) {
        let usable = self.snapshot.usable();
        let (decision, by) = match area {
            None => (policy.select(ask, usable), None),
            Some(area) => {
                let levels = area.steps().iter().map(|step| &*step.clusters);
                let (decision, by) = policy.select_near(ask, levels, usable);
                let is_own = by.is_some_and(|position| area.is_own(position));
                self.counters.bump(if is_own {
                    Count::LevelOwn
                } else {
                    Count::LevelWider
                });
                (decision, by)
            }
        };
        // A host name whose addresses nobody knows is no answer at the apex of a zone, where no CNAME can stand.
        if let Chosen::Fallback(FallbackSpec::Hostname(_)) = decision.chosen
            && extras.is_none_or(|extras| extras.fallback.is_none())
            && self.is_apex(zone, name)
        {
            return (policy.without_fallback(ask, &decision, usable), by);
        }
        (decision, by)
    }

    /// Tells whether a name is the apex of its zone.
    #[cold]
    fn is_apex(&self, zone: ZoneIndex, name: NameRef<'_>) -> bool {
        self.zone(zone)
            .is_some_and(|zone| zone.apex().as_ref() == name)
    }

    /// Gives the client's class and its scope, where they are not `known`.
    #[inline]
    pub(super) fn locate(
        &self,
        classes: &Classes,
        known: Option<(ClassId, PrefixLen)>,
    ) -> (ClassId, PrefixLen) {
        let address = self.client.subnet.address;
        let (id, scope) = known.unwrap_or_else(|| classes.locate(address));
        match address {
            IpAddr::V6(address) if classes.len() > 1 => {
                (id, scope.max(ecs::beside_mapped(address)))
            }
            _ => (id, scope),
        }
    }

    /// Tells whether addresses answer the question: a host name answers every type, so that all of them are steered where a host
    /// name may be the answer.
    pub(super) fn wants_addresses(&self) -> bool {
        matches!(self.qtype, RecordType::A | RecordType::AAAA)
    }

    /// Tells whether the answer names endpoints of ours.
    #[cold]
    pub(super) fn names_endpoints(&self, decision: &Decision<'_>) -> bool {
        match decision.chosen {
            Chosen::Cluster { .. } | Chosen::Everything { .. } => self.wants_addresses(),
            Chosen::Hostname(_) => true,
            _ => false,
        }
    }

    /// Takes a decision's scope into the reply's: of several the longest. IPv4 written as IPv6 has 96 bits more, also where it has
    /// none of its own and the sender was answered.
    #[inline]
    pub(super) fn widen_scope(&mut self, scope: u8, reads_client: bool) {
        if reads_client {
            let scope = match self.client.from {
                PlaceFrom::Ecs => scope,
                PlaceFrom::Sender => 0,
            };
            let scope = scope.saturating_add(self.client.offset);
            self.reply.facts.scope = self.reply.facts.scope.max(scope);
        }
    }

    /// Writes the address record of the one endpoint there is.
    #[inline]
    fn write_endpoint(&mut self, site: &Site<'_, '_>, endpoint: &Endpoint) {
        self.counters.bump_cluster(endpoint.cluster);
        let owner = site.link.owner;
        self.reply
            .must_add_address(owner, site.ttl, &endpoint.address);
    }

    /// Writes address records of endpoints and counts their clusters.
    pub(super) fn write_endpoints(
        &mut self,
        site: &Site<'_, '_>,
        endpoints: impl Iterator<Item = Endpoint>,
    ) {
        let mut clusters = Clusters::new(self.counters);
        let mut addresses = endpoints.map(|endpoint| {
            clusters.count(endpoint.cluster);
            endpoint.address
        });
        let link = site.link;
        let count = self.reply.must_add(Section::Answer, |writer| {
            let count = writer.addresses(link.owner, site.ttl, &mut addresses)?;
            Ok((count, count))
        });
        if count == Some(0) {
            // A decision for endpoints has some; an empty answer must not be kept for long whatever happens.
            self.nothing(site, None);
        }
    }

    /// Writes what is not endpoints.
    pub(super) fn write_other(&mut self, site: &Site<'a, '_>, chosen: Chosen<'_>) -> Option<Next> {
        match chosen {
            Chosen::Hostname(position) => {
                let extras = site.extras;
                let hostname =
                    extras.and_then(|extras| extras.hostnames.get(usize::from(position)));
                if let Some(cluster) = cluster_of(&site.steered.pools, position) {
                    self.counters.bump_cluster(cluster);
                }
                let Some(hostname) = hostname else {
                    self.broken();
                    return None;
                };
                self.hostname(site, hostname.as_ref())
            }
            Chosen::Fallback(spec) | Chosen::FenceAnswer(spec) => self.instead(site, spec),
            Chosen::Denied => {
                self.nothing(site, Some(ExtendedError::Prohibited));
                None
            }
            // Addresses do not answer other types.
            Chosen::Cluster { .. }
            | Chosen::Everything { .. }
            | Chosen::OtherFamily
            | Chosen::Nothing => {
                self.nothing(site, None);
                None
            }
        }
    }

    /// Writes a CNAME to a host name and goes on there. Never at the apex, where it would stand
    /// beside SOA (RFC 1034 section 3.6.2): configuration refuses that, and a resolver must not suffer if it slipped through.
    fn hostname(&mut self, site: &Site<'_, '_>, target: NameRef<'_>) -> Option<Next> {
        if self.is_apex(site.zone, site.link.name) {
            self.nothing(site, None);
            return None;
        }
        self.alias(site.link, target, site.ttl)
    }

    /// Writes `fallback` or `fenceAnswer`.
    fn instead(&mut self, site: &Site<'a, '_>, spec: &FallbackSpec) -> Option<Next> {
        let (addresses, ttl): (&[IpAddr], Ttl) = match spec {
            FallbackSpec::Hostname(name) => match self.flattened(site) {
                Some(flat) => (&flat.addresses, flat.ttl.min(site.ttl)),
                None => return self.hostname(site, name.as_ref()),
            },
            FallbackSpec::Addresses(addresses) => (addresses, site.ttl),
        };
        let qtype = self.qtype;
        let of_family = move |address: &IpAddr| match qtype {
            RecordType::A => address.is_ipv4(),
            RecordType::AAAA => address.is_ipv6(),
            _ => false,
        };
        let mut addresses = addresses.iter().copied().filter(of_family);
        let count = self.reply.must_add(Section::Answer, |writer| {
            let count = writer.addresses(site.link.owner, ttl, &mut addresses)?;
            Ok((count, count))
        });
        if count == Some(0) {
            self.nothing(site, None);
        }
        None
    }

    /// Gives the addresses of a `fallback` that is a host name, at an apex.
    fn flattened(&self, site: &Site<'a, '_>) -> Option<&'a Flattened> {
        let flat = site.extras?.fallback.as_ref()?;
        self.is_apex(site.zone, site.link.name).then_some(flat)
    }

    /// Writes NODATA that depends on the client or the moment: to be asked again soon. To ANY the name exists all the same.
    pub(super) fn nothing(&mut self, site: &Site<'_, '_>, error: Option<ExtendedError>) {
        if self.qtype == RecordType::ANY {
            return self.any(site.link, site.zone);
        }
        self.reply.facts.error = error;
        self.negative(site.zone, Rcode::NoError, Ttl::BRIEF);
    }

    /// Counts what a decision says.
    #[inline]
    pub(super) fn count_decision(&self, decision: &Decision<'_>, reads_client: bool) {
        let place = match self.client.from {
            _ if !reads_client => PlaceOf::Nobody,
            PlaceFrom::Ecs => PlaceOf::Ecs,
            PlaceFrom::Sender => PlaceOf::Sender,
        };
        let given = given(decision);
        let order = order(decision.reason.basis);
        self.counters.bump_decision(place, order, given);
        if decision.reason.tier > 0 && given <= Given::ForcedDown {
            self.counters.bump(Count::LaterTier);
        }
    }
}

/// Gives the label of what ordered the clusters.
#[inline]
pub(super) fn order(basis: Basis) -> Order {
    match basis {
        Basis::Fixed | Basis::Named => Order::Fixed,
        Basis::Map(_) => Order::Map,
        Basis::Distance => Order::Distance,
        Basis::Inside => Order::Inside,
        Basis::UnknownPlace => Order::UnknownPlace,
        Basis::Weight => Order::Weight,
        Basis::Turn => Order::Turn,
        Basis::Everything => Order::Everything,
    }
}

/// Gives the label of what a decision gives.
#[inline]
pub(super) fn given(decision: &Decision<'_>) -> Given {
    match decision.chosen {
        Chosen::Cluster { .. } | Chosen::Everything { .. } | Chosen::Hostname(_) => {
            match decision.reason.level {
                Level::Up => Given::Up,
                Level::Panic => Given::Panic,
                Level::Drained => Given::Drained,
                Level::AsIfUp => Given::AsIfUp,
                Level::ForcedDown => Given::ForcedDown,
            }
        }
        Chosen::Fallback(_) => Given::Fallback,
        Chosen::FenceAnswer(_) => Given::FenceAnswer,
        Chosen::Denied => Given::FenceDenied,
        Chosen::OtherFamily => Given::OtherFamily,
        Chosen::Nothing => Given::Nothing,
    }
}

/// Finds the cluster that a host name leads to.
pub(super) fn cluster_of(pools: &Pools, hostname: u8) -> Option<ClusterIndex> {
    let mut pools = pools.iter();
    pools
        .find(|pool| pool.hostname() == Some(usize::from(hostname)))
        .map(|pool| pool.cluster())
}

/// Counts the distinct clusters of one answer, as its endpoints go by.
struct Clusters<'c> {
    counters: &'c Counters,
    last: Option<ClusterIndex>,
    /// Those before the last, for answers with several.
    before: [u16; MAX_CLUSTERS],
    count: usize,
}

impl<'c> Clusters<'c> {
    /// Begins an answer.
    #[inline]
    fn new(counters: &'c Counters) -> Self {
        Self {
            counters,
            last: None,
            before: [0; MAX_CLUSTERS],
            count: 0,
        }
    }

    /// Takes the cluster of one endpoint.
    #[inline]
    fn count(&mut self, cluster: ClusterIndex) {
        if self.last == Some(cluster) {
            return;
        }
        if let Some(last) = self.last {
            if let Some(slot) = self.before.get_mut(self.count) {
                *slot = last.0;
                self.count += 1;
            }
            let mut before = self.before.iter().take(self.count);
            if before.any(|&known| known == cluster.0) {
                return;
            }
        }
        self.last = Some(cluster);
        self.counters.bump_cluster(cluster);
    }
}
