//! Targets in our own zones: where a host name of ours leads, by our own data and without a question to anybody.
//!
//! Static aliases are followed as a query would follow them. A steered name gives the addresses of its service for everyone, all
//! of them: who asks is not known here. So does a name of a level, where the narrowest of its regions and zones that has anything
//! usable goes first. What another service has only because a target of ours leads there is left out and its targets are followed
//! instead: so an address goes when its owner lets go of it, whatever circle there is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::frozen::Snapshot;
use super::hosts::AtHost;
use super::levels::{Area, AtLevel, Step};
use super::policies::Steering;
use super::services::ServiceSlot;
use crate::inventory::Extras;
use crate::model::{
    AreaIndex, ClusterIndex, EndpointState, LowerName, NameRef, RecordType, ServiceIndex, Ttl,
    ZoneIndex, not_reachable,
};
use crate::steering::States;
use crate::zone::{Lookup, NameTree, Rrset, lookup};

/// Most aliases in a row, as for names outside.
const MAX_ALIASES: usize = 8;
/// Most services in a row.
const MAX_DEPTH: usize = 8;
/// Most services on all ways from one name.
const MAX_SERVICES: usize = 16;
/// Most names on all ways from one name.
const MAX_NAMES: usize = 64;
/// Endpoints and targets of services that cost as much as to look at one service.
const SHARE: usize = 64;
/// Most addresses of one family.
const MAX_ADDRESSES: usize = 64;

/// Where a name in our own zones leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// Addresses, each with whether it is to be used: those of services that are not are for after all others. At most 64 of each
    /// family.
    pub addresses: BTreeMap<IpAddr, bool>,
    /// The least TTL on the ways there.
    pub ttl: Option<Ttl>,
    /// Names outside of our zones, or below a cut, where it goes on.
    pub outside: BTreeSet<LowerName>,
    /// The cuts above those of them that lie in our zones.
    pub cuts: BTreeSet<LowerName>,
    /// Why it is not followed, or a part of it: the first reason, lower-case, no period.
    pub fault: Option<String>,
    /// What it cost: services and names that were looked at, and a small share for each endpoint and target of theirs.
    pub cost: usize,
}

impl Snapshot {
    /// Follows a name; `None`: it lies in no zone of ours. One below a cut is outside of them by itself.
    #[must_use]
    pub fn follow(&self, name: &LowerName) -> Option<Inside> {
        self.zones.find(name.as_ref())?;
        let mut walk = Walk {
            snapshot: self,
            found: Inside::default(),
            path: Vec::new(),
            seen: BTreeSet::new(),
            names: 0,
            parts: 0,
        };
        walk.name(name.clone());
        walk.found.cost = 1 + walk.names + walk.seen.len() + walk.parts / SHARE;
        Some(walk.found)
    }
}

/// One walk from a name.
struct Walk<'s> {
    snapshot: &'s Snapshot,
    found: Inside,
    /// The services between the name and where we are, each with the name that led there.
    path: Vec<(ServiceIndex, LowerName)>,
    /// All that were looked at, each by the levels it was asked at.
    seen: BTreeSet<(ServiceIndex, Option<AreaIndex>)>,
    /// How many names services led to.
    names: usize,
    /// How many endpoints and targets these services have.
    parts: usize,
}

impl<'s> Walk<'s> {
    /// Follows aliases from a name to what stands at their end.
    fn name(&mut self, start: LowerName) {
        let mut chain = vec![start];
        while let Some(name) = chain.last().cloned() {
            let Some(next) = self.step(&name) else {
                return;
            };
            if chain.contains(&next) {
                return self.fail(format!(
                    "its aliases lead in a circle: {name} leads back to {next}"
                ));
            }
            if chain.len() > MAX_ALIASES {
                return self.fail(format!("more than {MAX_ALIASES} aliases in a row"));
            }
            chain.push(next);
        }
    }

    /// Takes what stands at a name; gives the next one where that is an alias.
    fn step(&mut self, name: &LowerName) -> Option<LowerName> {
        match self.look_up(name, RecordType::A) {
            Lookup::NotOurs => {
                self.found.outside.insert(name.clone());
                None
            }
            Lookup::Referral { owner_labels, .. } => {
                self.found.outside.insert(name.clone());
                let cut = last_labels(name.as_ref(), owner_labels);
                self.found.cuts.insert(cut.to_lower());
                None
            }
            Lookup::Cname { rrset, .. } => {
                self.shorten(rrset.ttl());
                let target = rrset.iter().next()?.target()?;
                Some(target.to_lower())
            }
            Lookup::Dname {
                rrset,
                owner_labels,
                ..
            } => {
                self.shorten(rrset.ttl());
                let target = rrset.iter().next()?.target()?;
                let next = renamed(name.as_ref(), owner_labels, target);
                if next.is_none() {
                    self.fail(format!("{name} grows too long below its DNAME"));
                }
                next
            }
            Lookup::Steered { zone, service, .. } => {
                self.service(name, zone, (service, None));
                None
            }
            Lookup::Rrset { rrset, .. } => {
                self.records(rrset);
                self.other_family(name);
                None
            }
            found => {
                match self.level(name, &found) {
                    Some((zone, service, area)) => self.service(name, zone, (service, Some(area))),
                    None => {
                        self.endpoint(name, &found);
                        self.other_family(name);
                    }
                }
                None
            }
        }
    }

    /// Refuses the name of one endpoint of a service: it goes with its Pod.
    fn endpoint(&mut self, name: &LowerName, found: &Lookup<'_>) {
        if let Lookup::NxDomain { zone } = found
            && let Some(AtHost::Endpoints { .. }) = self.snapshot.at_host(*zone, name.as_ref())
        {
            self.fail(format!(
                "{name} is the name of an endpoint, which comes and goes"
            ));
        }
    }

    /// Says which service a name stands for, and at which level, where nothing stands; `None`: it is of no level.
    fn level(
        &self,
        name: &LowerName,
        found: &Lookup<'_>,
    ) -> Option<(ZoneIndex, ServiceIndex, AreaIndex)> {
        let snapshot = self.snapshot;
        let zone = match found {
            Lookup::NxDomain { zone } | Lookup::NoData { zone } => *zone,
            _ => return None,
        };
        // Without an empty non-terminal NODATA comes of a wildcard.
        let is_wild = matches!(found, Lookup::NoData { .. })
            && snapshot
                .names
                .find(name.as_ref())
                .is_none_or(|exact| !exact.is_empty_non_terminal());
        if is_wild || !snapshot.has_levels() {
            return None;
        }
        match snapshot.at_level(zone, name.as_ref())? {
            AtLevel::Service { service, area, .. } => Some((zone, service, area)),
            AtLevel::Between => None,
        }
    }

    /// Takes static addresses of IPv6 beside, or without, those of IPv4.
    fn other_family(&mut self, name: &LowerName) {
        if let Lookup::Rrset { rrset, .. } = self.look_up(name, RecordType::AAAA) {
            self.records(rrset);
        }
    }

    /// Asks our zones, as a query would.
    fn look_up(&self, name: &LowerName, rtype: RecordType) -> Lookup<'s> {
        let (names, name) = (&self.snapshot.names, name.as_ref());
        lookup(names, &self.snapshot.zones, name, rtype, names.find(name))
    }

    /// Takes static addresses.
    fn records(&mut self, rrset: &Rrset) {
        self.shorten(rrset.ttl());
        for rdata in rrset.iter() {
            let wire = rdata.wire();
            let v4 = wire
                .try_into()
                .map(|octets: [u8; 4]| Ipv4Addr::from(octets).into());
            let v6 = || {
                wire.try_into()
                    .map(|octets: [u8; 16]| Ipv6Addr::from(octets).into())
            };
            if let Ok(address) = v4.or_else(|_| v6()) {
                self.address(address, true);
            }
        }
    }

    /// Takes the addresses of a service for everyone, and follows its host names. At a level there must be none of ours: which of
    /// their addresses are of the level is not known here.
    fn service(
        &mut self,
        name: &LowerName,
        zone: ZoneIndex,
        (service, area): (ServiceIndex, Option<AreaIndex>),
    ) {
        if let Some(at) = self.path.iter().position(|(known, _)| *known == service) {
            let names = self.path.iter().skip(at).map(|(_, name)| name.to_string());
            let names: Vec<String> = names.chain([name.to_string()]).collect();
            return self.fail(format!("targets lead in a circle: {}", names.join(" to ")));
        }
        if self.seen.contains(&(service, area)) {
            return;
        }
        if self.path.len() >= MAX_DEPTH || self.seen.len() >= MAX_SERVICES {
            return self.fail(format!(
                "more than {MAX_DEPTH} services in a row, or {MAX_SERVICES} in all"
            ));
        }
        self.seen.insert((service, area));
        let snapshot = self.snapshot;
        let Some(slot) = snapshot.service(service) else {
            return;
        };
        let Some(steering) = snapshot.steering(slot.policy) else {
            return;
        };
        if steering.policy.is_fenced() {
            return self.fail(format!(
                "{name} is behind a fence, which whoever follows it would go round"
            ));
        }
        let ttl = slot.ttl.or_else(|| Some(snapshot.zones.get(zone)?.ttl()));
        if let Some(ttl) = ttl {
            self.shorten(ttl);
        }
        let area = area.and_then(|area| snapshot.area(area));
        if let Some(area) = area.filter(|_| self.leads_on(slot)) {
            return self.fail(format!(
                "{name} is a name of a level, {}, of a service that leads to other names of ours",
                area.what()
            ));
        }
        self.endpoints(slot, steering, area);
        let Some(extras) = slot.extras.as_deref() else {
            return;
        };
        self.path.push((service, name.clone()));
        self.parts += extras.hostnames.len() + extras.targets.len();
        let targets: BTreeSet<&LowerName> = targets_for_all(extras).collect();
        // The addresses of those outside are among the service's own.
        let is_inside = |name: &LowerName| snapshot.zones.find(name.as_ref()).is_some();
        for hostname in &extras.hostnames {
            if !self.onward(hostname) {
                break;
            }
        }
        for target in targets {
            if is_inside(target) && !self.is_cut_off(target) && !self.onward(target) {
                break;
            }
        }
        self.path.pop();
    }

    /// Tells whether a service leads to names that are followed for their addresses.
    fn leads_on(&self, slot: &ServiceSlot) -> bool {
        slot.extras.as_deref().is_some_and(|extras| {
            let is_inside = |name: &LowerName| self.snapshot.zones.find(name.as_ref()).is_some();
            let mut targets = targets_for_all(extras);
            !extras.hostnames.is_empty()
                || targets.any(|name| is_inside(name) && !self.is_cut_off(name))
        })
    }

    /// Follows a name that a service leads to; false: there are too many.
    fn onward(&mut self, name: &LowerName) -> bool {
        if self.names >= MAX_NAMES {
            self.fail(format!("more than {MAX_NAMES} names on all ways from it"));
            return false;
        }
        self.names += 1;
        self.name(name.clone());
        true
    }

    /// Tells whether a name in our zones lies below a cut.
    fn is_cut_off(&self, name: &LowerName) -> bool {
        matches!(self.look_up(name, RecordType::A), Lookup::Referral { .. })
    }

    /// Takes the endpoints of a service that are for everyone: to be used are those of the first tier that has any usable, at a level
    /// among the clusters of its first step that has any.
    fn endpoints(&mut self, slot: &ServiceSlot, steering: &Steering, area: Option<&Area>) {
        let (policy, table) = (&steering.policy, &self.snapshot.usable);
        let extras = slot.extras.as_deref();
        let mut all = Vec::new();
        for rank in 0..slot.pools.cluster_count() {
            // A service has at most 255 clusters.
            let place = u8::try_from(rank).unwrap_or(u8::MAX);
            for pool in slot.pools.of(rank).filter(|pool| pool.clients().is_none()) {
                let has_share = pool.weight().0 > 0 && !policy.is_idle(place);
                for endpoint in pool.v4().chain(pool.v6()) {
                    self.parts += 1;
                    if extras
                        .is_some_and(|extras| extras.is_inside(endpoint.cluster, endpoint.address))
                    {
                        continue;
                    }
                    let state: EndpointState = table.state(endpoint.state);
                    let is_usable = has_share && state.is_usable();
                    let at = (policy.tier(place), endpoint.cluster);
                    all.push((endpoint.address, at, is_usable));
                }
            }
        }
        let usable = || all.iter().filter(|(.., is_usable)| *is_usable);
        let usable = || usable().map(|(_, at, _)| *at);
        let is_in =
            |step: &Step, cluster: ClusterIndex| step.clusters.binary_search(&cluster).is_ok();
        let mut steps = area.into_iter().flat_map(Area::steps);
        let step = steps.find(|step| usable().any(|(_, cluster)| is_in(step, cluster)));
        let is_near = |cluster| step.is_none_or(|step| is_in(step, cluster));
        let near = usable().filter(|(_, cluster)| is_near(*cluster));
        let first = near.map(|(tier, _)| tier).min();
        let is_first = |(tier, cluster)| Some(tier) == first && is_near(cluster);
        let mut all: Vec<(IpAddr, bool)> = all
            .iter()
            .map(|(address, at, is_usable)| (*address, *is_usable && is_first(*at)))
            .collect();
        // Where there is no room for all, those to be used have it.
        all.sort_by_key(|(_, is_usable)| !is_usable);
        for (address, is_usable) in all {
            self.address(address, is_usable);
        }
    }

    /// Takes one address; one that is to be used anywhere is to be used.
    fn address(&mut self, address: IpAddr, is_usable: bool) {
        if not_reachable(address).is_some() {
            return;
        }
        let all = &mut self.found.addresses;
        let of_family = all.keys().filter(|one| one.is_ipv4() == address.is_ipv4());
        if all.contains_key(&address) || of_family.count() < MAX_ADDRESSES {
            *all.entry(address).or_default() |= is_usable;
        }
    }

    fn shorten(&mut self, ttl: Ttl) {
        self.found.ttl = self.found.ttl.into_iter().chain([ttl]).min();
    }

    /// Notes why a part is not followed.
    fn fail(&mut self, why: String) {
        self.found.fault.get_or_insert(why);
    }
}

/// Lists the host names that a service leads everyone to by their addresses.
fn targets_for_all(extras: &Extras) -> impl Iterator<Item = &LowerName> {
    let targets = extras.targets.iter();
    let targets = targets.filter(|target| target.clients.is_none());
    targets.map(|target| &target.name)
}

/// Gives that many last labels of a name.
fn last_labels(name: NameRef<'_>, labels: usize) -> NameRef<'_> {
    let above = name.label_count().saturating_sub(labels);
    let mut ancestors = std::iter::successors(Some(name), |name| name.parent());
    ancestors.nth(above).unwrap_or(NameRef::ROOT)
}

/// Puts the target of a DNAME in the place of its owner; `None`: the name would be too long (RFC 6672 section 2.2).
fn renamed(name: NameRef<'_>, owner_labels: usize, target: NameRef<'_>) -> Option<LowerName> {
    let owner = last_labels(name, owner_labels);
    let front = name.as_wire().len() - owner.as_wire().len();
    let wire = [name.as_wire().get(..front)?, target.as_wire()].concat();
    NameRef::from_wire(&wire).ok().map(NameRef::to_lower)
}
