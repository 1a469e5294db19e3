//! Services of the configuration whose endpoints are host names.
//!
//! They are kept as they are written; what is served has the addresses that the names resolve to. When a target changes, the
//! services that have it are made anew.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::change::Dirty;
use super::federation::{ResolvedTarget, Targets, old_condition};
use super::service::{Extras, Flattened, Origin, Particular, Service};
use super::tables::Inventory;
use crate::model::{
    ClusterIndex, Condition, LowerName, Pools, PoolsBuilder, PoolsError, Rejection, ServiceKey, Ttl,
};

/// Addresses of one target that are served, where there is room; else the next smaller number.
const MAX_ADDRESSES: [usize; 4] = [256, 16, 4, 1];

/// Services with targets, as they are written.
#[derive(Debug, Default)]
pub(super) struct Named {
    declared: BTreeMap<ServiceKey, Service>,
}

impl Named {
    /// Forgets one.
    pub(super) fn forget(&mut self, key: &ServiceKey) {
        self.declared.remove(key);
    }

    /// Lists the host names, some perhaps twice.
    fn targets(&self) -> impl Iterator<Item = &LowerName> {
        self.declared.values().flat_map(targets_of)
    }
}

/// Lists the host names of a service that is kept: of its endpoints, and the one that is answered at an apex.
fn targets_of(service: &Service) -> impl Iterator<Item = &LowerName> {
    let extras = service.extras.as_deref().into_iter();
    let endpoints = extras.flat_map(|extras| &extras.targets);
    let fallback = service.fallback_name();
    let fallback = fallback.filter(|_| service.flattens_fallback());
    endpoints.map(|target| &target.name).chain(fallback)
}

impl Inventory {
    /// Takes services as they are written: all of them. Gives them as they are served.
    pub(super) fn take_named(&mut self, mut services: Vec<Service>) -> Vec<Service> {
        self.named = Named::default();
        for service in &mut services {
            self.take_one_named(service);
        }
        services
    }

    /// Takes one service as it is written, and makes of it what is served.
    pub(super) fn take_one_named(&mut self, service: &mut Service) {
        self.named.forget(&service.key);
        let has_targets = |extras: &Arc<Extras>| !extras.targets.is_empty();
        let is_named = service.extras.as_ref().is_some_and(has_targets);
        if service.origin == Origin::Configuration && (is_named || self.is_at_apex(service)) {
            let declared = service.clone();
            *service = self.resolve(&declared);
            self.named.declared.insert(declared.key.clone(), declared);
        }
    }

    /// Makes those services anew of which a target has changed; `None`: all.
    pub(super) fn renew_named(
        &mut self,
        former: Option<&Targets>,
        dirty: &mut Dirty,
        dropped: &mut Vec<Service>,
    ) {
        let now = Arc::clone(self.federation.all_resolved());
        let has_changed = |service: &&Service| {
            former.is_none_or(|former| {
                let mut targets = targets_of(service);
                targets.any(|name| former.get(name) != now.get(name))
            })
        };
        let changed = self.named.declared.values().filter(has_changed);
        let made: Vec<Service> = changed.map(|declared| self.resolve(declared)).collect();
        dirty.refusals |= !made.is_empty();
        for service in made {
            self.put(service, dirty, dropped);
        }
    }

    /// Lists the host names of endpoints of all services, without doubles: those of the configuration, and of load balancers.
    #[must_use]
    pub fn targets(&self) -> BTreeSet<LowerName> {
        let mut all = self.federation.targets();
        all.extend(self.observed.federation.targets());
        all.extend(self.named.targets().cloned());
        all
    }

    /// Lists the host names of the services of the configuration, without doubles.
    #[must_use]
    pub fn configured_targets(&self) -> BTreeSet<LowerName> {
        self.named.targets().cloned().collect()
    }

    /// Gives what the host name of an endpoint resolves to; `None`: nobody knows yet.
    #[must_use]
    pub fn resolved(&self, target: &LowerName) -> Option<&ResolvedTarget> {
        self.federation.resolved(target)
    }

    /// Lists the targets of the configuration that are not followed.
    pub(super) fn refused_targets(&self) -> impl Iterator<Item = Rejection> {
        self.named.declared.iter().flat_map(move |(key, service)| {
            let names: BTreeSet<&LowerName> = targets_of(service).collect();
            names.into_iter().filter_map(move |name| {
                let fault = self.resolved(name)?.fault.as_ref()?;
                Some(Rejection {
                    source: format!("service {key}"),
                    place: name.to_string(),
                    reason: fault.to_string(),
                })
            })
        })
    }

    /// Tells whether a service has a host name as `fallback` at the apex of a zone.
    fn is_at_apex(&self, service: &Service) -> bool {
        let mut names = service.names.iter();
        service.flattens_fallback() && names.any(|name| self.federation.is_apex(name))
    }

    /// Makes what is served of a service as it is written.
    fn resolve(&self, declared: &Service) -> Service {
        let targets = self.federation.all_resolved();
        let packed = MAX_ADDRESSES
            .into_iter()
            .find_map(|most| pack(declared, targets, most).ok());
        let Some(Packed {
            pools,
            mut extras,
            ttl,
        }) = packed
        else {
            return declared.clone();
        };
        let mut policy = Arc::clone(&declared.policy);
        if let Some(name) = declared
            .fallback_name()
            .filter(|_| self.is_at_apex(declared))
        {
            extras.fallback = targets
                .get(name)
                .filter(|known| known.has_any())
                .map(|known| flattened(known, declared.policy.max_answers()));
            let is_only_there = declared
                .names
                .iter()
                .all(|name| self.federation.is_apex(name));
            if extras.fallback.is_none() && is_only_there {
                // Without an address of it the next resort has one: nobody gets an empty answer.
                Arc::make_mut(&mut policy).fallback = None;
            }
        }
        let own = || self.federation.zone_ttl(declared.names.iter());
        let ttl = match ttl {
            Some(ttl) => Some(declared.ttl.or_else(own).map_or(ttl, |own| own.min(ttl))),
            None => declared.ttl,
        };
        Service {
            ttl,
            policy,
            pools,
            extras: Some(Arc::new(extras)),
            ..declared.clone()
        }
    }
}

/// Gives at most so many addresses of each family of a host name: those to be used; others only where there is none of these.
fn flattened(known: &ResolvedTarget, most: usize) -> Flattened {
    let of_family = |is_v4: bool| {
        let is_it = move |address: &&IpAddr| address.is_ipv4() == is_v4;
        let has_fresh = known.addresses.iter().any(|one| is_it(&one));
        let all = if has_fresh {
            &known.addresses
        } else {
            &known.old
        };
        all.iter().filter(is_it).take(most).copied()
    };
    Flattened {
        addresses: of_family(true).chain(of_family(false)).collect(),
        ttl: known.ttl,
    }
}

/// A service with the addresses of its targets.
struct Packed {
    pools: Pools,
    extras: Extras,
    /// The least TTL of its targets.
    ttl: Option<Ttl>,
}

/// What is known of one address of a cluster.
#[derive(Clone, Copy)]
struct Found {
    /// It is written as an address, or a target outside of our zones has it.
    is_own: bool,
    condition: Condition,
}

/// Packs its addresses and at most so many of each target.
fn pack(declared: &Service, targets: &Targets, most: usize) -> Result<Packed, PoolsError> {
    let extras = declared.extras.as_deref().cloned().unwrap_or_default();
    let mut builder = PoolsBuilder::default();
    // Which clients have which address already, and what is known of it whoever has it.
    let mut given: BTreeSet<(ClusterIndex, Option<usize>, IpAddr)> = BTreeSet::new();
    let mut found: BTreeMap<(ClusterIndex, IpAddr), Found> = BTreeMap::new();
    // What is its own does not come back by a circle as an address of another cluster.
    let mut own: BTreeSet<IpAddr> = BTreeSet::new();
    for pool in declared.pools.iter() {
        let (cluster, weight, clients) = (pool.cluster(), pool.weight(), pool.clients());
        if let Some(at) = pool.hostname() {
            builder.hostname(cluster, weight, clients, at)?;
            continue;
        }
        let all = pool.v4().chain(pool.v6());
        let all: Vec<IpAddr> = all.map(|endpoint| endpoint.address).collect();
        for &address in &all {
            given.insert((cluster, clients, address));
            let well = Found {
                is_own: true,
                condition: Condition::default(),
            };
            found.insert((cluster, address), well);
            own.insert(address);
        }
        builder.addresses(cluster, weight, clients, &all)?;
    }
    let known = extras.targets.iter().filter_map(|target| {
        let resolved = targets.get(&target.name).filter(|one| one.has_any())?;
        Some((target, resolved))
    });
    let (outside, inside): (Vec<_>, Vec<_>) =
        known.partition(|(_, resolved)| resolved.inside.is_none());
    let mut ttl = None;
    for (target, resolved) in outside.into_iter().chain(inside) {
        ttl = ttl.into_iter().chain([resolved.ttl]).min();
        let monitor = declared.monitor.as_deref();
        let of_target = (&target.name, resolved);
        let old = old_condition(Condition::default(), monitor, of_target, || {
            declared.names.iter()
        });
        let mut fresh = Vec::new();
        for (address, is_old) in resolved.all().take(most) {
            if resolved.inside.is_none() {
                own.insert(address);
            } else if own.contains(&address) {
                continue;
            }
            if given.insert((target.cluster, target.clients, address)) {
                fresh.push(address);
            }
            let condition = if is_old { old } else { Condition::default() };
            let is_own = resolved.inside.is_none();
            let held = found.entry((target.cluster, address));
            let held = held.or_insert(Found { is_own, condition });
            // Of several targets at one address one that has it now is enough.
            held.condition = held.condition.min(condition);
        }
        if !fresh.is_empty() {
            builder.addresses(target.cluster, target.weight, target.clients, &fresh)?;
        }
    }
    let inside = found.iter().filter(|(_, found)| !found.is_own);
    let inside = inside.map(|(place, _)| *place).collect();
    let unsure = found
        .iter()
        .filter(|(_, found)| found.condition != Condition::default());
    let particulars = unsure.map(|((cluster, address), found)| Particular {
        cluster: *cluster,
        address: *address,
        monitor: declared.monitor.clone(),
        condition: found.condition,
    });
    let particulars = particulars.collect();
    Ok(Packed {
        pools: builder.build()?,
        extras: Extras {
            inside,
            particulars,
            ..extras
        },
        ttl,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::inventory::{Change, FederationRules, NamedEndpoint, PrivateAddresses, ZoneRules};
    use crate::model::{
        Check, Cluster, HttpCheck, MonitorSpec, Origin as Word, PolicySpec, StatusRange, TlsMode,
        Weight,
    };

    const LB: &str = "lb.example.net";

    fn name(text: &str) -> LowerName {
        text.parse().unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// A check over TLS.
    fn https(tls: TlsMode, host: Option<&str>) -> MonitorSpec {
        let check = HttpCheck {
            tls: Some(tls),
            port: 443,
            path: "/".into(),
            host: host.map(Into::into),
            head: false,
            expect: vec![StatusRange {
                first: 200,
                last: 399,
            }],
        };
        MonitorSpec::new(Check::Http(check), Word::Operator)
    }

    /// An address in cluster 0, and two host names in clusters 0 and 1.
    fn declared(monitor: Option<MonitorSpec>) -> Service {
        let mut builder = PoolsBuilder::default();
        let own = [ip("192.0.2.1")];
        builder
            .addresses(ClusterIndex(0), Weight(2), None, &own)
            .unwrap();
        let target = |cluster, text| NamedEndpoint {
            cluster: ClusterIndex(cluster),
            weight: Weight(5),
            clients: None,
            name: name(text),
        };
        let names = [name("*.www.svc.example"), name("svc.example")];
        Service {
            key: ServiceKey::new("shop", "web").unwrap(),
            origin: Origin::Configuration,
            names: names.iter().collect(),
            ttl: None,
            policy: Arc::new(PolicySpec::default()),
            monitor: monitor.map(Arc::new),
            pools: builder.build().unwrap(),
            extras: Some(Arc::new(Extras {
                targets: [target(0, LB), target(1, "in.svc.example")].into(),
                ..Extras::default()
            })),
        }
    }

    fn resolved(addresses: &[&str], old: &[&str], ttl: u32) -> ResolvedTarget {
        ResolvedTarget {
            addresses: addresses.iter().map(|text| ip(text)).collect(),
            old: old.iter().map(|text| ip(text)).collect(),
            ttl: Ttl::new(ttl).unwrap(),
            inside: None,
            is_gone: false,
            fault: None,
        }
    }

    fn inventory(service: Service) -> Inventory {
        let mut inventory = Inventory::default();
        let clusters = [0, 1].map(|index| {
            let cluster = Cluster::named(format!("c{index}").parse().unwrap());
            (ClusterIndex(index), Arc::new(cluster))
        });
        inventory.apply(Change::Clusters(clusters.into()));
        let zone = ZoneRules {
            apex: name("svc.example"),
            forms: Vec::new(),
            grants: Vec::new(),
            private: PrivateAddresses::None,
            federation: None,
            ttl: Ttl::new(30).unwrap(),
        };
        inventory.apply(Change::Rules(Arc::new(FederationRules {
            zones: vec![zone],
            ..FederationRules::default()
        })));
        inventory.apply(Change::Replace(vec![service]));
        inventory
    }

    fn targets(all: &[(&str, ResolvedTarget)]) -> Change {
        let all = all
            .iter()
            .map(|(text, target)| (name(text), target.clone()));
        Change::Targets(Arc::new(all.collect::<HashMap<_, _>>()))
    }

    /// What is served: cluster, weight and address of each endpoint.
    fn served(inventory: &Inventory) -> Vec<String> {
        let (_, service) = inventory.services().next().unwrap();
        let pools = service.pools.iter().flat_map(|pool| {
            let all: Vec<_> = pool.v4().chain(pool.v6()).collect();
            let text = move |one: crate::model::Endpoint| {
                format!("{} {} {}", pool.cluster().0, pool.weight().0, one.address)
            };
            all.into_iter().map(text).collect::<Vec<_>>()
        });
        pools.collect()
    }

    fn ttl(inventory: &Inventory) -> Option<u32> {
        let (_, service) = inventory.services().next().unwrap();
        service.ttl.map(Ttl::seconds)
    }

    #[test]
    fn host_names_become_their_addresses_and_follow_them() {
        let mut inventory = inventory(declared(None));
        assert_eq!(
            inventory.targets(),
            [name("in.svc.example"), name(LB)].into()
        );
        assert_eq!(inventory.configured_targets(), inventory.targets());
        assert_eq!(served(&inventory), ["0 2 192.0.2.1"]);
        assert_eq!(ttl(&inventory), None);
        let mut inside = resolved(&["10.0.0.7", "192.0.2.7", "192.0.2.8"], &[], 90);
        inside.inside = Some(Box::default());
        let at_lb = resolved(&["192.0.2.1", "192.0.2.8", "2001:db8::8"], &[], 60);
        let dirty = inventory.apply(targets(&[(LB, at_lb), ("in.svc.example", inside.clone())]));
        assert_eq!(dirty.services.len(), 1);
        // What is written stays as it is; the operator's private addresses are served; what is its own does not come back.
        assert_eq!(
            served(&inventory),
            [
                "0 2 192.0.2.1",
                "0 5 192.0.2.8",
                "0 5 2001:db8::8",
                "1 5 10.0.0.7",
                "1 5 192.0.2.7",
            ]
        );
        assert_eq!(ttl(&inventory), Some(30));
        let (_, service) = inventory.services().next().unwrap();
        let extras = service.extras.as_deref().unwrap();
        assert!(extras.is_inside(ClusterIndex(1), ip("192.0.2.7")));
        assert!(!extras.is_inside(ClusterIndex(0), ip("192.0.2.8")));
        // Nothing new is nothing to do; a shorter TTL is.
        let shorter = |ttl| targets(&[(LB, resolved(&["192.0.2.9"], &[], ttl))]);
        assert!(!inventory.apply(shorter(20)).is_empty());
        assert!(inventory.apply(shorter(20)).is_empty());
        assert_eq!(ttl(&inventory), Some(20));
        assert_eq!(served(&inventory), ["0 2 192.0.2.1", "0 5 192.0.2.9"]);
        // One that has no address any more shortens nothing.
        inventory.apply(targets(&[(LB, resolved(&[], &[], 1))]));
        assert_eq!(served(&inventory), ["0 2 192.0.2.1"]);
        assert_eq!(ttl(&inventory), None);
        // The same configuration again, and then without it.
        inventory.apply(shorter(20));
        let dirty = inventory.apply(Change::Replace(vec![declared(None)]));
        assert!(dirty.is_empty(), "{dirty:?}");
        inventory.apply(Change::Replace(Vec::new()));
        assert!(inventory.targets().is_empty());
    }

    #[test]
    fn old_addresses_need_a_proof_of_the_right_name() {
        for (monitor, can_be_proven) in [
            (None, false),
            (
                Some(MonitorSpec::new(Check::connect(443), Word::Operator)),
                false,
            ),
            (Some(https(TlsMode::Verify, Some(LB))), true),
            (Some(https(TlsMode::Verify, Some("svc.example"))), true),
            (
                Some(https(TlsMode::Verify, Some("a.www.svc.example"))),
                true,
            ),
            (Some(https(TlsMode::Pin([0; 32]), Some(LB))), true),
            (Some(https(TlsMode::Verify, Some("cdn.example.org"))), false),
            (Some(https(TlsMode::Verify, None)), false),
            (Some(https(TlsMode::Skip, Some(LB))), false),
        ] {
            let shown = format!("{monitor:?}");
            let mut inventory = inventory(declared(monitor));
            let old = ["192.0.2.1", "192.0.2.9"];
            inventory.apply(targets(&[(LB, resolved(&[], &old, 5))]));
            let (_, service) = inventory.services().next().unwrap();
            let extras = service.extras.as_deref().unwrap();
            // What is written needs none.
            let [particular] = &extras.particulars[..] else {
                panic!("{shown}: {extras:?}")
            };
            assert_eq!(particular.address, ip("192.0.2.9"));
            let wanted = Condition {
                is_unready: !can_be_proven,
                is_unproven: can_be_proven,
                is_withdrawn: false,
            };
            assert_eq!(particular.condition, wanted, "{shown}");
            // What is down or drained at a name of ours is not proven from elsewhere.
            let mut inside = resolved(&[], &["192.0.2.9"], 5);
            inside.inside = Some(Box::default());
            inventory.apply(targets(&[(LB, inside)]));
            let (_, service) = inventory.services().next().unwrap();
            let particulars = &service.extras.as_deref().unwrap().particulars;
            assert!(particulars[0].condition.is_unready && !particulars[0].condition.is_unproven);
        }
    }

    #[test]
    fn a_fallback_at_the_apex_is_its_addresses_and_none_without() {
        let at = |text: &str| Service {
            names: [name(text)].iter().collect(),
            policy: Arc::new(PolicySpec {
                fallback: Some(crate::model::FallbackSpec::Hostname(name(LB))),
                answers: 2,
                ..PolicySpec::default()
            }),
            extras: None,
            ..declared(None)
        };
        // Elsewhere it is a CNAME, and nobody resolves it.
        let elsewhere = inventory(at("www.svc.example"));
        assert!(elsewhere.targets().is_empty());
        let (_, service) = elsewhere.services().next().unwrap();
        assert!(service.policy.fallback.is_some() && service.extras.is_none());
        let mut inventory = inventory(at("svc.example"));
        assert_eq!(inventory.targets(), [name(LB)].into());
        let (_, service) = inventory.services().next().unwrap();
        assert!(service.policy.fallback.is_none());
        let flat = |inventory: &Inventory| -> Vec<String> {
            let (_, service) = inventory.services().next().unwrap();
            assert!(service.policy.fallback.is_some());
            let extras = service.extras.as_deref().unwrap();
            let all = extras.fallback.as_ref().unwrap().addresses.iter();
            all.map(ToString::to_string).collect()
        };
        let fresh = ["192.0.2.8", "2001:db8::8", "192.0.2.7", "192.0.2.6"];
        for (fresh, old, given) in [
            // What is old, down or drained is for where a family has nothing else.
            (&fresh[..1], &["192.0.2.9"][..], &fresh[..1]),
            (
                &fresh[..1],
                &["192.0.2.9", "2001:db8::9"],
                &["192.0.2.8", "2001:db8::9"],
            ),
            (&[], &["192.0.2.9"], &["192.0.2.9"]),
            // The policy says how many.
            (
                &fresh,
                &["192.0.2.9"],
                &["192.0.2.8", "192.0.2.7", "2001:db8::8"],
            ),
        ] {
            inventory.apply(targets(&[(LB, resolved(fresh, old, 20))]));
            assert_eq!(flat(&inventory), given);
        }
        // It is no endpoint, and does not shorten what is answered of these.
        assert_eq!(
            (served(&inventory), ttl(&inventory)),
            (vec!["0 2 192.0.2.1".to_owned()], None)
        );
    }

    #[test]
    fn a_target_that_is_not_followed_is_told() {
        let mut inventory = inventory(declared(None));
        let mut circle = resolved(&[], &[], 5);
        circle.fault = Some("targets lead in a circle".into());
        inventory.apply(targets(&[("in.svc.example", circle)]));
        let told: Vec<String> = inventory.refusals().map(|one| one.to_string()).collect();
        assert_eq!(told.len(), 1);
        for part in ["service shop/web", "in.svc.example", "circle"] {
            assert!(told[0].contains(part), "{told:?}");
        }
    }
}
