//! What stands of objects: pure, of what the node knows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::words;
use crate::controller::Withdrawn;
use crate::inventory::{Claim, Inventory, ObjectRef, PolicyConflict, Refused, Service};
use crate::model::{
    ClusterId, ClusterIndex, Endpoint, EndpointState, LowerName, OperatorRecord, RecordId,
    ServiceKey, Target,
};
use crate::snapshot::{ServiceSlot, Snapshot};
use crate::source::kubernetes::annotations::PREFIX;
use crate::source::kubernetes::{Reason, Statement, Told};
use crate::steering::States;

/// What is refused of a Service that no load balancer stands before.
const UNBALANCED: &str = "spec.type";

/// Statements of one reason of one object, at most.
const MAX_EACH: usize = 8;

/// What is known beside the inventory.
pub(super) struct Seen {
    /// What is answered.
    snapshot: Arc<Snapshot>,
    /// Names that are not answered though an object has them: others stand in the way there.
    refused: BTreeMap<LowerName, String>,
    /// What was never seen up.
    never: HashSet<Target>,
    /// What operators drain now.
    drains: Vec<Arc<OperatorRecord>>,
    /// Drains that every node says are safe.
    safe: BTreeSet<RecordId>,
}

impl Seen {
    /// Puts it together.
    pub(super) fn new(
        never: HashSet<Target>,
        snapshot: Arc<Snapshot>,
        (drains, safe): (Vec<Arc<OperatorRecord>>, BTreeSet<RecordId>),
    ) -> Self {
        let refused = snapshot.refused();
        let refused = refused.map(|one| (one.name.clone(), one.reason.into_owned()));
        Self {
            refused: refused.collect(),
            snapshot,
            never,
            drains,
            safe,
        }
    }
}

/// What stands of some objects.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// Statements by cluster.
    pub(super) statements: Vec<(ClusterIndex, Statement)>,
    /// Endpoints that their own objects drain.
    pub(super) withdrawn: Vec<Withdrawn>,
    /// The last object that was looked at; `None`: there are no more.
    pub(super) last: Option<ObjectRef>,
}

/// Says what was refused of the annotations of objects, and which objects are not served that ask for it.
pub(super) fn of_refusals(told: &[Told]) -> impl Iterator<Item = Statement> {
    told.iter().flat_map(|told| {
        let kind = told.watched.served();
        let decisive = decisive(told);
        let said = told.refused.iter().enumerate();
        let said = said.filter(move |(at, refused)| {
            refused.what.starts_with(PREFIX)
                || (Some(*at) == decisive && *refused.what == *UNBALANCED)
        });
        said.take(MAX_EACH).filter_map(move |(at, refused)| {
            let object = ObjectRef {
                kind: kind?,
                namespace: Arc::clone(&told.key.namespace),
                name: Arc::clone(&told.key.name),
            };
            let (what, why) = (&refused.what, &refused.reason);
            let message = match decisive {
                None => words::invalid(what, why),
                Some(decides) if decides == at => words::unserved(what, why),
                Some(_) => words::idle(what, why),
            };
            let reason = if what.starts_with(PREFIX) {
                Reason::InvalidAnnotation
            } else {
                Reason::NotServed
            };
            Some(Statement::new(object, reason, &message))
        })
    })
}

/// Finds what keeps an object from being served: a fence, else what is told last; `None`: it is served.
fn decisive(told: &Told) -> Option<usize> {
    if told.is_served {
        return None;
    }
    let is_fence = |what: &str| what.strip_prefix(PREFIX) == Some("fence");
    let fence = told.refused.iter().position(|one| is_fence(&one.what));
    fence.or_else(|| told.refused.len().checked_sub(1))
}

/// Says what stands of so many objects behind one.
pub(super) fn of_objects(
    inventory: &Inventory,
    (after, count): (Option<&ObjectRef>, usize),
    seen: &Seen,
) -> Piece {
    let mut piece = Piece::default();
    let mut conflicts = HashMap::new();
    for (at, (object, claims)) in inventory.federation().claims(after).enumerate() {
        if at >= count {
            return piece;
        }
        for claim in &claims {
            let Some(cluster) = inventory.cluster(claim.cluster) else {
                continue;
            };
            let one = One {
                inventory,
                seen,
                claim,
                cluster: &cluster.id,
                services: services_of(inventory, claim, seen),
            };
            one.judge(&mut conflicts, &mut piece);
        }
        piece.last = Some(object.clone());
    }
    piece.last = None;
    piece
}

/// A service that an object is part of.
struct Part<'a> {
    service: &'a Service,
    slot: &'a ServiceSlot,
    /// The names that it answers for the object.
    names: Vec<&'a LowerName>,
}

/// Lists the services that answer the names of an object.
fn services_of<'a>(inventory: &'a Inventory, claim: &Claim<'a>, seen: &'a Seen) -> Vec<Part<'a>> {
    let mut by_key: BTreeMap<&ServiceKey, Vec<&LowerName>> = BTreeMap::new();
    for (name, key) in &claim.names {
        if !seen.refused.contains_key(*name) {
            by_key.entry(key).or_default().push(name);
        }
    }
    let parts = by_key.into_iter().filter_map(|(key, names)| {
        let index = inventory.find(key)?;
        Some(Part {
            service: inventory.service(index)?,
            slot: seen.snapshot.service(index)?,
            names,
        })
    });
    parts.collect()
}

/// An object of one cluster.
struct One<'a> {
    inventory: &'a Inventory,
    seen: &'a Seen,
    claim: &'a Claim<'a>,
    cluster: &'a ClusterId,
    services: Vec<Part<'a>>,
}

impl One<'_> {
    /// Says all that stands of it.
    fn judge(&self, conflicts: &mut HashMap<ServiceKey, Vec<PolicyConflict>>, piece: &mut Piece) {
        let mut say = |reason, message: &str| {
            let statement = Statement::new(self.claim.object.clone(), reason, message);
            piece.statements.push((self.claim.cluster, statement));
        };
        for (name, reason) in self.hostname_conflicts().take(MAX_EACH) {
            say(Reason::HostnameConflict, &words::hostname(&name, &reason));
        }
        if self.claim.shard.unserved.is_some() {
            return;
        }
        for part in &self.services {
            let key = &part.service.key;
            let federation = self.inventory.federation();
            let found = conflicts.entry(key.clone());
            let found = found.or_insert_with(|| federation.conflicts(key));
            let own = found
                .iter()
                .filter(|one| one.overruled.contains(self.cluster));
            for conflict in own.take(MAX_EACH) {
                let message = words::policy(conflict, &name_of(part));
                say(Reason::PolicyConflict, &message);
            }
        }
        for (name, fault) in self.refused_targets().take(MAX_EACH) {
            say(Reason::TargetRefused, &words::target(name, fault));
        }
        for part in self.unanswered() {
            let message = words::unanswered(&part.what, &part.reason);
            say(Reason::TargetRefused, &message);
        }
        let down = self.services.iter().filter(|part| self.is_down(part));
        for part in down.take(MAX_EACH) {
            say(Reason::NoHealthyCluster, &words::unhealthy(&name_of(part)));
        }
        let entries = self.entries();
        let sites = self.sites();
        let never = self.never_succeeded(&sites);
        if !never.is_empty() {
            say(Reason::MonitorNeverSucceeded, &words::never(&never));
        }
        let names = self.published(&sites);
        if !names.is_empty() {
            say(Reason::Published, &words::published(&names, &entries));
        }
        if entries.is_empty() {
            return;
        }
        if self.claim.shard.is_drained {
            say(Reason::Draining, &words::draining(&entries));
            let withdrawn = self.withdrawn(&sites);
            if self.is_safe(&withdrawn) {
                say(Reason::SafeToStop, &words::safe(&entries));
            }
            piece.withdrawn.extend(withdrawn);
        } else if let Some(drained) = self.drained_by_operators(&sites) {
            // In its own words where that is all it has: what its host names resolve to changes.
            let entries = if drained.addresses.len() == sites.len() {
                entries
            } else {
                drained.addresses.iter().map(ToString::to_string).collect()
            };
            let message = words::drained_by_operator(&entries, &drained.names);
            say(Reason::Draining, &message);
            if drained.are_safe {
                say(Reason::SafeToStop, &words::safe(&entries));
            }
        }
    }

    /// Lists the names that it does not have, with the reason.
    fn hostname_conflicts(&self) -> impl Iterator<Item = (String, String)> {
        let refused = self.claim.refused.iter();
        let refused = refused.map(|(name, reason)| (name.to_string(), reason.to_string()));
        let hidden = self.claim.names.iter().filter_map(|(name, _)| {
            let reason = self.seen.refused.get(*name)?;
            Some((name.to_string(), reason.clone()))
        });
        refused.chain(hidden)
    }

    /// Lists its private addresses that are not answered, with the reason.
    fn unanswered(&self) -> Vec<Refused> {
        let federation = self.inventory.federation();
        federation.unanswered(self.claim.cluster, self.claim.shard)
    }

    /// Lists where its traffic enters, as it says itself: what its host names resolve to changes all the time. Addresses that are
    /// answered at none of its names are left out.
    fn entries(&self) -> Vec<String> {
        let shard = self.claim.shard;
        let federation = self.inventory.federation();
        let addresses = federation.answered(self.claim.cluster, shard);
        let targets = shard.targets.iter().map(ToString::to_string);
        let addresses = addresses.map(|address| address.to_string());
        addresses.chain(targets).collect()
    }

    /// Lists its host names that are not followed, or not wholly, with the reason.
    fn refused_targets(&self) -> impl Iterator<Item = (&LowerName, &str)> {
        let targets = self.claim.shard.targets.iter();
        targets.filter_map(|name| {
            let fault = self.inventory.resolved(name)?.fault.as_deref()?;
            Some((name, fault))
        })
    }

    /// Lists its addresses, those of its host names too.
    fn sites(&self) -> BTreeSet<IpAddr> {
        let shard = self.claim.shard;
        let federation = self.inventory.federation();
        let resolved = shard.targets.iter();
        let resolved = resolved.filter_map(|target| federation.resolved(target));
        let resolved = resolved.flat_map(|target| target.addresses.iter().chain(&target.old));
        shard.addresses.iter().chain(resolved).copied().collect()
    }

    /// Lists the endpoints of a service that are its.
    fn endpoints<'p>(
        &'p self,
        part: &'p Part<'_>,
        sites: &'p BTreeSet<IpAddr>,
    ) -> impl Iterator<Item = Endpoint> + 'p {
        let pools = part.slot.pools.iter();
        let pools = pools.filter(|pool| pool.cluster() == self.claim.cluster);
        let all = pools.flat_map(|pool| pool.v4().chain(pool.v6()));
        all.filter(|endpoint| sites.contains(&endpoint.address))
    }

    /// Lists the names that are answered with its addresses.
    fn published(&self, sites: &BTreeSet<IpAddr>) -> Vec<String> {
        let parts = self.services.iter();
        let parts = parts.filter(|part| self.endpoints(part, sites).next().is_some());
        let names = parts.flat_map(|part| part.names.iter().map(ToString::to_string));
        names.collect()
    }

    /// Tells whether no endpoint of a service is healthy.
    fn is_down(&self, part: &Part<'_>) -> bool {
        let table = self.seen.snapshot.usable();
        let states = part.slot.pools.iter().flat_map(|pool| pool.states());
        let mut states = states.map(|index| -> EndpointState { table.state(index) });
        let is_empty = part.slot.pools.endpoint_count() == 0;
        !is_empty && !states.any(EndpointState::is_up)
    }

    /// Lists what is probed of it and never succeeded.
    fn never_succeeded(&self, sites: &BTreeSet<IpAddr>) -> Vec<String> {
        if self.seen.never.is_empty() {
            return Vec::new();
        }
        let mut found = BTreeSet::new();
        for part in &self.services {
            for endpoint in self.endpoints(part, sites) {
                let spec = part
                    .service
                    .monitor_of(self.claim.cluster, endpoint.address);
                let target = spec.map(|spec| Target {
                    address: (endpoint.address, spec.check.port()).into(),
                    spec: Arc::clone(spec),
                });
                let target = target.filter(|target| self.seen.never.contains(target));
                found.extend(target.map(|target| target.address));
            }
        }
        found.iter().map(ToString::to_string).collect()
    }

    /// Lists the endpoints that it drains, where it alone decides.
    fn withdrawn(&self, sites: &BTreeSet<IpAddr>) -> Vec<Withdrawn> {
        let mut all = Vec::new();
        for part in &self.services {
            for endpoint in self.endpoints(part, sites) {
                all.push(Withdrawn {
                    cluster: self.cluster.clone(),
                    service: part.service.key.clone(),
                    address: endpoint.address,
                });
            }
        }
        all
    }

    /// Lists what operators drain of it, as far as this node answers by that; `None`: nothing.
    fn drained_by_operators(&self, sites: &BTreeSet<IpAddr>) -> Option<Drained> {
        if self.seen.drains.is_empty() {
            return None;
        }
        let table = self.seen.snapshot.usable();
        let (mut addresses, mut names) = (BTreeSet::new(), BTreeSet::new());
        // Where another service of the object gives it on, or where it is not known that nobody has it.
        let (mut given, mut unsafe_ones) = (BTreeSet::new(), BTreeSet::new());
        for part in &self.services {
            for endpoint in self.endpoints(part, sites) {
                let address = endpoint.address;
                let state: EndpointState = table.state(endpoint.state);
                let drains = self.seen.drains.iter();
                let mut drains = drains
                    .filter(|record| {
                        let target = &record.target;
                        let is_meant = || {
                            target.service().is_none_or(|key| {
                                let meant = self.inventory.meant(key, part.service);
                                meant.is_some_and(|meant| meant.has(endpoint.cluster, address))
                            })
                        };
                        // Most are not drained at all.
                        state.is_drained() && target.is_at(self.cluster, address) && is_meant()
                    })
                    .peekable();
                if drains.peek().is_some() {
                    addresses.insert(address);
                    names.extend(part.names.iter().map(ToString::to_string));
                } else {
                    given.insert(address);
                }
                if !drains.any(|record| self.seen.safe.contains(&record.id)) {
                    unsafe_ones.insert(address);
                }
            }
        }
        let are_safe = addresses.is_disjoint(&unsafe_ones);
        if addresses.is_disjoint(&given) {
            names.clear();
        }
        (!addresses.is_empty()).then_some(Drained {
            addresses,
            names: names.into_iter().collect(),
            are_safe,
        })
    }

    /// Tells whether all of these are safe to stop: none is given because another object has it too.
    fn is_safe(&self, withdrawn: &[Withdrawn]) -> bool {
        let is_over = |one: &Withdrawn| one.id().is_some_and(|id| self.seen.safe.contains(&id));
        let table = self.seen.snapshot.usable();
        let sites = self.sites();
        let mut endpoints = self
            .services
            .iter()
            .flat_map(|part| self.endpoints(part, &sites));
        let are_drained = endpoints.all(|endpoint| {
            let state: EndpointState = table.state(endpoint.state);
            state.is_drained()
        });
        !withdrawn.is_empty() && are_drained && withdrawn.iter().all(is_over)
    }
}

/// What operators drain of an object.
struct Drained {
    /// Its addresses that some service does not give any more.
    addresses: BTreeSet<IpAddr>,
    /// For which names, where others of the object are answered with them on; empty: for all.
    names: Vec<String>,
    /// Nobody has any of them any more, by any service.
    are_safe: bool,
}

/// Names a service by what it answers.
fn name_of(part: &Part<'_>) -> String {
    let names: Vec<String> = part.names.iter().map(ToString::to_string).collect();
    words::list(&names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::kubernetes::{Key, Watched};

    fn told(watched: Watched, whats: &[&str]) -> Told {
        let refused = |what: &&str| Refused {
            what: (*what).into(),
            reason: "it is none".into(),
        };
        Told {
            watched,
            key: Key {
                namespace: "shop".into(),
                name: "web".into(),
            },
            is_served: true,
            refused: whats.iter().map(refused).collect(),
        }
    }

    fn messages(told: &[Told]) -> Vec<String> {
        let all = of_refusals(told);
        let text = |one: Statement| format!("{}: {}", one.object, one.message());
        all.map(text).collect()
    }

    #[test]
    fn what_is_refused_of_annotations_is_said_and_nothing_else() {
        let all = [
            told(
                Watched::Services,
                &[
                    "meridian-dns.io/weight",
                    "status.loadBalancer.ingress[0].ip",
                ],
            ),
            told(Watched::Nodes, &["meridian-dns.io/weight"]),
            told(Watched::HttpRoutes, &["meridian-dns.io/"]),
        ];
        assert_eq!(
            messages(&all),
            [
                "Service shop/web: meridian-dns.io/weight: it is none; the rest counts",
                "HTTPRoute shop/web: it is none; the rest counts",
            ]
        );
        // What is not served has nothing that counts, and that is said once.
        let unserved = |whats: &[&str]| Told {
            is_served: false,
            ..told(Watched::Services, whats)
        };
        assert_eq!(
            messages(&[
                unserved(&["meridian-dns.io/weight", "meridian-dns.io/fence"]),
                unserved(&["spec.type"]),
                unserved(&["metadata"]),
            ]),
            [
                "Service shop/web: meridian-dns.io/weight: it is none",
                "Service shop/web: meridian-dns.io/fence: it is none; the object is not served",
                "Service shop/web: spec.type: it is none; the object is not served",
            ]
        );
        let many = told(Watched::Services, &["meridian-dns.io/x"; 64]);
        assert_eq!(messages(&[many]).len(), MAX_EACH);
    }
}
