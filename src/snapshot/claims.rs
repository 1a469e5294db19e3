//! Who has a name: right of way of DESIGN section 7 among static records and services.
//!
//! Zone cut and DNAME first, then static records, then services. Of services that claim one name those of the configuration go
//! before those of Kubernetes objects, and of equals the first by key has it, so that all nodes agree; the others are known, and
//! the next one takes over when it goes away. What stands in the table of names is the outcome; [`Claims`] keeps what did not get
//! its way.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::inputs::Inputs;
use super::names::{Home, NameTable, NamesEdit, SteeredOf};
use super::zone_diff::ZoneDiff;
use crate::inventory::{Former, Origin, Service};
use crate::model::{LowerName, NameRef, Rejection, ServiceIndex, ServiceKey, ZoneIndex};
use crate::zone::{Zone, ZoneSet};

/// Who strives for a name, in the order of right of way: those of the configuration first, then by key.
type Claimants = BTreeMap<(Origin, ServiceKey), ServiceIndex>;

/// Claims that are not, or not alone, in the table of names.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// Names that two services or more may have, with all of them: the first has it.
    contested: BTreeMap<LowerName, Claimants>,
    /// Names that a service may not have, with the reason.
    refused: BTreeMap<ServiceIndex, Vec<(LowerName, Cow<'static, str>)>>,
}

/// A name that a service asks for and does not get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused<'a> {
    /// The service.
    pub service: ServiceIndex,
    /// The name.
    pub name: &'a LowerName,
    /// Why: lower-case, no period.
    pub reason: Cow<'a, str>,
}

impl Claims {
    /// Lists every name that a service asks for and does not get.
    pub(super) fn refused(&self) -> impl Iterator<Item = Refused<'_>> {
        let by_zone = self.refused.iter().flat_map(|(&service, names)| {
            names.iter().map(move |(name, reason)| Refused {
                service,
                name,
                reason: Cow::Borrowed(&**reason),
            })
        });
        let by_others = self
            .contested
            .iter()
            .flat_map(|(name, claimants)| losers(name, claimants));
        by_zone.chain(by_others)
    }
}

/// Lists all claimants but the first.
fn losers<'a>(name: &'a LowerName, claimants: &'a Claimants) -> impl Iterator<Item = Refused<'a>> {
    let winner = claimants.keys().next();
    let losers = claimants.iter().skip(1);
    losers.map(move |((loser, _), &service)| Refused {
        service,
        name,
        reason: winner.map_or(Cow::Borrowed(""), |(origin, winner)| {
            let why = match (origin, loser) {
                (Origin::Configuration, Origin::Configuration) => {
                    "and the first by namespace and name has it"
                }
                (Origin::Configuration, _) => {
                    "and the configuration goes before Kubernetes objects"
                }
                (Origin::Kubernetes | Origin::Observed, _) => "and has it",
            };
            Cow::Owned(format!(
                "HostnameConflict: service {winner} claims this name too, {why}"
            ))
        }),
    })
}

/// Names and claims being changed.
#[derive(Debug)]
pub(super) struct Claiming<'a> {
    inputs: &'a Inputs<'a>,
    names: NamesEdit,
    claims: Arc<Claims>,
    /// Contested names whose claimants changed: their losers are reported.
    touched: BTreeSet<LowerName>,
    /// Wildcards of the operator, static or of a configured service, that came or went: nothing from Kubernetes may hide them.
    wildcards: BTreeSet<LowerName>,
    rejections: Vec<Rejection>,
}

impl<'a> Claiming<'a> {
    /// Begins with names and claims as they stand.
    pub(super) fn new(inputs: &'a Inputs<'a>, names: NamesEdit, claims: Arc<Claims>) -> Self {
        Self {
            inputs,
            names,
            claims,
            touched: BTreeSet::new(),
            wildcards: BTreeSet::new(),
            rejections: Vec::new(),
        }
    }

    /// Freezes, with what `steered` gives of services, and tells what was refused on the way.
    pub(super) fn seal(
        mut self,
        steered: SteeredOf<'_>,
    ) -> (NameTable, Arc<Claims>, Vec<Rejection>) {
        self.claim_below_wildcards();
        for name in &self.touched {
            let Some(claimants) = self.claims.contested.get(name) else {
                continue;
            };
            for refused in losers(name, claimants) {
                if let Some(service) = self.inputs.inventory.service(refused.service) {
                    let reason = refused.reason.into_owned();
                    self.rejections
                        .push(rejection(&service.key, name.as_ref(), reason));
                }
            }
        }
        (self.names.seal(steered), self.claims, self.rejections)
    }

    // === Zones ===

    /// Puts in all static names of all zones, into an empty table.
    pub(super) fn put_zones(&mut self) {
        let zones: &ZoneSet = self.inputs.zones;
        for (index, zone) in zones.iter() {
            self.put_nodes(index, zone);
        }
        // A zone inside another one exists there too: as a name below which there is something.
        for (index, zone) in zones.iter() {
            let Some((above, parent)) = zone.apex().as_ref().parent().zip(zones.parent(index))
            else {
                continue;
            };
            // Below a cut of the parent nothing exists there: the cut's referral covers it.
            let is_given_away = zones.get(parent).is_some_and(|zone| zone.delegates(above));
            if let Some(home) = home(zones, parent).filter(|_| !is_given_away) {
                self.names.adopt(above, home);
            }
        }
    }

    /// Puts the static names of one zone that had other ones before.
    pub(super) fn change_nodes(&mut self, index: ZoneIndex, diff: &ZoneDiff<'_>) {
        let zones: &ZoneSet = self.inputs.zones;
        let Some(home) = home(zones, index) else {
            return;
        };
        let gone = diff.gone.iter().map(|&name| (name, None));
        let moved = diff.moved.iter().map(|&(name, node)| (name, Some(node)));
        for (name, node) in gone.chain(moved) {
            if zones.find(name) == Some(index) {
                let had = self.is_operators_wildcard(name);
                self.names.change(name, home, |record| record.node = node);
                self.note_wildcard(name, had);
            }
        }
    }

    fn put_nodes(&mut self, index: ZoneIndex, zone: &Zone) {
        let zones: &ZoneSet = self.inputs.zones;
        let Some(home) = home(zones, index) else {
            return;
        };
        for (name, node) in zone.names() {
            // What a longer zone of ours holds is that zone's.
            if zones.find(name) == Some(index) {
                self.names
                    .change(name, home, |record| record.node = Some(node));
            }
        }
    }

    // === Services ===

    /// Takes back the names that a service had.
    pub(super) fn give_back(&mut self, former: &Former) {
        for name in former.names.iter() {
            self.release(former.index, &former.rank, name);
            self.accept(former.index, name);
        }
    }

    /// Claims all names of a service. Nothing happens for names that it has or is known not to get.
    pub(super) fn claim(&mut self, index: ServiceIndex, service: &Service) {
        for name in service.names.iter() {
            self.claim_name(index, service, name);
        }
    }

    /// Has the names that a service holds take up what it is now.
    pub(super) fn refresh(&mut self, index: ServiceIndex, service: &Service) {
        for name in service.names.iter() {
            let record = self.names.get(name);
            let held = record.filter(|record| record.service.is_some_and(|(by, _)| by == index));
            if let Some(record) = held {
                self.names.touch(name, record.zone);
            }
        }
    }

    /// Claims names again for all who have them or would: their zones changed there. All other claims on a name stand in the
    /// table, in a contest, or among the refused.
    pub(super) fn claim_again(&mut self, names: &HashSet<NameRef<'_>, RandomState>) {
        let holders = names.iter().filter_map(|&name| {
            let (index, _) = self.names.get(name)?.service?;
            Some((index, name.to_lower()))
        });
        let mut claims: Vec<(ServiceIndex, LowerName)> = holders.collect();
        for (name, claimants) in &self.claims.contested {
            if names.contains(&name.as_ref()) {
                claims.extend(claimants.values().map(|&index| (index, name.clone())));
            }
        }
        for (&index, refused) in &self.claims.refused {
            let refused = refused
                .iter()
                .filter(|(name, _)| names.contains(&name.as_ref()));
            claims.extend(refused.map(|(name, _)| (index, name.clone())));
        }
        for (index, name) in claims {
            if let Some(service) = self.inputs.inventory.service(index) {
                self.claim_name(index, service, name.as_ref());
            }
        }
    }

    /// Claims those names of a service again that lie in zones which changed.
    pub(super) fn claim_in(
        &mut self,
        zones: &HashSet<ZoneIndex>,
        index: ServiceIndex,
        service: &Service,
    ) {
        for name in service.names.iter() {
            let zone = self.inputs.zones.find(name);
            if zone.is_some_and(|zone| zones.contains(&zone)) {
                self.claim_name(index, service, name);
            }
        }
    }

    /// Tells whether a service may be answered as a CNAME at a name. At an apex a `fallback` is flattened.
    fn is_cname_at(&self, service: &Service, name: NameRef<'_>) -> bool {
        let is_apex = || {
            let zones: &ZoneSet = self.inputs.zones;
            let zone = zones.find(name).and_then(|index| zones.get(index));
            zone.is_some_and(|zone| zone.apex().as_ref() == name)
        };
        service.may_be_cname() && !(service.flattens_fallback() && is_apex())
    }

    fn claim_name(&mut self, index: ServiceIndex, service: &Service, name: NameRef<'_>) {
        let is_cname = self.is_cname_at(service, name);
        let home = match self.check(service, name, is_cname) {
            Ok(home) => home,
            Err(reason) => {
                self.release(index, &rank(service), name);
                self.refuse(index, &service.key, name, reason);
                return;
            }
        };
        self.accept(index, name);
        let holder = self.names.get(name).and_then(|record| record.service);
        match holder {
            Some(held) if held == (index, is_cname) => {}
            Some((other, _)) if other != index => {
                self.contest(home, name, (index, service), other);
            }
            _ => self.give(home, name, index, is_cname),
        }
    }

    /// Tells where a name belongs, or why no service may have it.
    fn check(
        &self,
        service: &Service,
        name: NameRef<'_>,
        is_cname: bool,
    ) -> Result<Home, Cow<'static, str>> {
        let zones: &ZoneSet = self.inputs.zones;
        let zone = zones
            .find(name)
            .and_then(|index| zones.get(index).zip(Some(index)));
        let Some((zone, index)) = zone else {
            return Err("the name lies outside our zones".into());
        };
        if let Some(reason) = zone.conflict(name) {
            return Err(format!("HostnameConflict: {reason}").into());
        }
        if service.origin != Origin::Configuration
            && let Some(wildcard) = self.hidden_wildcard(name, zone.apex().as_ref())
        {
            let reason = format!("HostnameConflict: it would hide {wildcard} of the operator");
            return Err(reason.into());
        }
        let apex_octets = zone.apex().as_wire().len();
        if is_cname && name.as_wire().len() == apex_octets {
            return Err(alias_conflict(service, "at a zone's apex"));
        }
        let has_node = || {
            self.names
                .get(name)
                .is_some_and(|record| record.node.is_some())
        };
        if is_cname && has_node() {
            return Err(alias_conflict(service, "beside static records"));
        }
        Ok(Home {
            zone: index,
            apex_octets,
        })
    }

    /// Puts a service at a name.
    fn give(&mut self, home: Home, name: NameRef<'_>, index: ServiceIndex, is_cname: bool) {
        self.seat(home, name, Some((index, is_cname)));
    }

    /// Puts a service at a name, or takes the last one away.
    fn seat(&mut self, home: Home, name: NameRef<'_>, service: Option<(ServiceIndex, bool)>) {
        let had = self.is_operators_wildcard(name);
        self.names
            .change(name, home, |record| record.service = service);
        self.note_wildcard(name, had);
    }

    // === Wildcards of the operator ===

    /// Tells whether a name is a wildcard that stands in a zone's file, or that a configured service has.
    fn is_operators_wildcard(&self, name: NameRef<'_>) -> bool {
        let is_configured = |(index, _)| {
            let service = self.inputs.inventory.service(index);
            service.is_some_and(|service| service.origin == Origin::Configuration)
        };
        name.is_wildcard()
            && self.names.get(name).is_some_and(|record| {
                record.node.is_some() || record.service.is_some_and(is_configured)
            })
    }

    fn note_wildcard(&mut self, name: NameRef<'_>, had: bool) {
        if name.is_wildcard() && self.is_operators_wildcard(name) != had {
            self.wildcards.insert(name.to_lower());
        }
    }

    /// Finds the wildcard of the operator that a name would hide, itself or by an empty non-terminal (RFC 4592 section 2.2.2).
    fn hidden_wildcard(&self, name: NameRef<'_>, apex: NameRef<'_>) -> Option<LowerName> {
        let mut above = name.parent()?;
        if name.is_wildcard() {
            above = above.parent()?;
        }
        let above = std::iter::successors(Some(above), |above| above.parent());
        above
            .take_while(|above| above.is_at_or_below(apex))
            .filter_map(|above| above.to_lower().prepend(b"*").ok())
            .find(|wildcard| self.is_operators_wildcard(wildcard.as_ref()))
    }

    /// Claims names from Kubernetes again below the wildcards that came or went.
    fn claim_below_wildcards(&mut self) {
        let wildcards = std::mem::take(&mut self.wildcards);
        let tops = wildcards.iter().filter_map(|name| name.as_ref().parent());
        let tops: HashSet<NameRef<'_>, RandomState> = tops.collect();
        if tops.is_empty() {
            return;
        }
        let services = self.inputs.inventory.services();
        for (index, service) in services.filter(|(_, one)| one.origin != Origin::Configuration) {
            for name in service.names.iter() {
                let mut above = std::iter::successors(name.parent(), |above| above.parent());
                if above.any(|above| tops.contains(&above)) {
                    self.claim_name(index, service, name);
                }
            }
        }
    }

    /// Lets two services or more strive for a name that `other` has.
    fn contest(
        &mut self,
        home: Home,
        name: NameRef<'_>,
        (index, service): (ServiceIndex, &Service),
        other: ServiceIndex,
    ) {
        let owned = name.to_lower();
        let known = self.claims.contested.get(&owned);
        if known.and_then(|claimants| claimants.get(&rank(service))) == Some(&index) {
            return;
        }
        let contested = &mut Arc::make_mut(&mut self.claims).contested;
        let claimants = contested.entry(owned.clone()).or_default();
        if let Some(other_service) = self.inputs.inventory.service(other) {
            claimants.insert(rank(other_service), other);
        }
        claimants.insert(rank(service), index);
        if claimants.values().next() == Some(&index) {
            let is_cname = self.is_cname_at(service, name);
            self.give(home, name, index, is_cname);
        }
        self.touched.insert(owned);
    }

    /// Takes a service's claim on a name back, if it has one. The next claimant takes over.
    fn release(&mut self, index: ServiceIndex, rank: &(Origin, ServiceKey), name: NameRef<'_>) {
        let mut next = None;
        if !self.claims.contested.is_empty() {
            next = self.withdraw(index, rank, name.to_lower());
        }
        let holder = self.names.get(name).and_then(|record| record.service);
        if holder.is_none_or(|(holder, _)| holder != index) {
            return;
        }
        let zones: &ZoneSet = self.inputs.zones;
        if let Some(home) = zones.find(name).and_then(|zone| home(zones, zone)) {
            self.seat(home, name, next);
            // Its index may stand for another service by now.
            if rank.0 == Origin::Configuration && name.is_wildcard() {
                self.wildcards.insert(name.to_lower());
            }
        }
    }

    /// Takes a claim out of a contest, if there is one. Gives the first of those that remain, and whether it is a CNAME.
    fn withdraw(
        &mut self,
        index: ServiceIndex,
        rank: &(Origin, ServiceKey),
        name: LowerName,
    ) -> Option<(ServiceIndex, bool)> {
        let claimants = self.claims.contested.get(&name)?;
        if claimants.get(rank) != Some(&index) {
            return None;
        }
        let contested = &mut Arc::make_mut(&mut self.claims).contested;
        let claimants = contested.get_mut(&name)?;
        claimants.remove(rank);
        let next = claimants.values().next().copied();
        if claimants.len() < 2 {
            contested.remove(&name);
        }
        let is_cname = |index| {
            let service = self.inputs.inventory.service(index);
            service.is_some_and(|service| self.is_cname_at(service, name.as_ref()))
        };
        let next = next.map(|index| (index, is_cname(index)));
        self.touched.insert(name);
        next
    }

    /// Notes that a service may not have a name, and reports it unless it was known.
    fn refuse(
        &mut self,
        index: ServiceIndex,
        key: &ServiceKey,
        name: NameRef<'_>,
        reason: Cow<'static, str>,
    ) {
        let owned = name.to_lower();
        let known = self.claims.refused.get(&index);
        let known = known.and_then(|names| names.iter().find(|(other, _)| *other == owned));
        if known.is_some_and(|(_, known)| *known == reason) {
            return;
        }
        self.rejections
            .push(rejection(key, name, reason.clone().into_owned()));
        let refused = &mut Arc::make_mut(&mut self.claims).refused;
        let names = refused.entry(index).or_default();
        names.retain(|(other, _)| *other != owned);
        names.push((owned, reason));
    }

    /// Forgets that a service might not have a name.
    fn accept(&mut self, index: ServiceIndex, name: NameRef<'_>) {
        let known = self.claims.refused.get(&index);
        if !known.is_some_and(|names| names.iter().any(|(other, _)| other.as_ref() == name)) {
            return;
        }
        let refused = &mut Arc::make_mut(&mut self.claims).refused;
        if let Some(names) = refused.get_mut(&index) {
            names.retain(|(other, _)| other.as_ref() != name);
            if names.is_empty() {
                refused.remove(&index);
            }
        }
    }
}

/// Says why a service that may be a CNAME cannot have a name (RFC 1034 section 3.6.2, RFC 2181 section 10.1).
fn alias_conflict(service: &Service, place: &str) -> Cow<'static, str> {
    let what = if service.is_cname() {
        "an endpoint"
    } else {
        "a fallback or fenceAnswer"
    };
    format!(
        "HostnameConflict: {what} that is a host name is answered as CNAME, which cannot stand {place}"
    )
    .into()
}

/// Gives a service's place in the order of right of way.
fn rank(service: &Service) -> (Origin, ServiceKey) {
    (service.origin, service.key.clone())
}

/// Gives where names of a zone are put.
fn home(zones: &ZoneSet, zone: ZoneIndex) -> Option<Home> {
    let apex_octets = zones.get(zone)?.apex().as_wire().len();
    Some(Home { zone, apex_octets })
}

fn rejection(key: &ServiceKey, name: NameRef<'_>, reason: String) -> Rejection {
    Rejection {
        source: format!("service {key}"),
        place: name.to_string(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loser_is_told_why_the_other_has_the_name() {
        use Origin::{Configuration, Kubernetes};
        let name: LowerName = "www.g.example".parse().unwrap();
        for (winner, loser, why) in [
            (
                Configuration,
                Configuration,
                "and the first by namespace and name has it",
            ),
            (
                Configuration,
                Kubernetes,
                "and the configuration goes before Kubernetes objects",
            ),
            (Kubernetes, Kubernetes, "and has it"),
        ] {
            let key = |name| ServiceKey::new("shop", name).unwrap();
            // A configured service has the name whatever it is called.
            let names = if winner == loser {
                ["a", "b"]
            } else {
                ["b", "a"]
            };
            let claimants = [
                ((winner, key(names[0])), ServiceIndex(1)),
                ((loser, key(names[1])), ServiceIndex(2)),
            ];
            let claimants = claimants.into_iter().collect();
            let refused: Vec<_> = losers(&name, &claimants).collect();
            let [refused] = &refused[..] else {
                panic!("{refused:?}");
            };
            assert_eq!(refused.service, ServiceIndex(2));
            assert!(refused.reason.ends_with(why), "{refused:?}");
        }
    }
}
