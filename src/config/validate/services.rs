//! `services`: one after the other, compact from the start.

use std::sync::Arc;

use super::interned::{Interned, Seen};
use super::monitor::Hostless;
use super::world::World;
use super::{acme, doubts, endpoints, monitor, policy, read};
use crate::config::faults::Report;
use crate::config::spec::{Fields, Kind, Node, fields, v1};
use crate::inventory::Service;
use crate::model::{
    ClusterId, FallbackSpec, LowerName, MonitorSpec, Names, PolicySpec, ServiceKey, Steer,
};

/// The key of what a refused client gets.
const FENCE_ANSWER: &str = "`fenceAnswer`";

/// Most host names of one service.
const MAX_HOSTNAMES: usize = 1000;

/// The services, and what other sections need to know of all of them.
pub(super) struct Read {
    pub(super) services: Vec<Service>,
    /// One at least is steered by distance.
    pub(super) by_distance: bool,
    /// One at least has a monitor.
    pub(super) any_monitored: bool,
}

/// Reads services and keeps what they must not have in common.
pub(super) struct Services<'s, 't, 'a> {
    world: World<'s, 't, 'a>,
    list: Vec<Service>,
    policies: Interned<Arc<PolicySpec>>,
    monitors: Interned<Option<Arc<MonitorSpec>>>,
    /// What services without keys of their own get.
    default_policy: Option<Arc<PolicySpec>>,
    default_monitor: Option<Arc<MonitorSpec>>,
    any_monitored: bool,
    keys: Seen,
    hostnames: Seen,
}

impl<'s, 't, 'a> Services<'s, 't, 'a> {
    /// Begins; about `expected` services will come.
    pub(super) fn new(world: World<'s, 't, 'a>, expected: usize) -> Self {
        Self {
            world,
            list: Vec::with_capacity(expected),
            policies: Interned::default(),
            monitors: Interned::default(),
            default_policy: None,
            default_monitor: None,
            any_monitored: false,
            keys: Seen::default(),
            hostnames: Seen::default(),
        }
    }

    /// Checks one service and keeps it, unless there is a fault in it.
    pub(super) fn take(&mut self, node: Node<'_, '_>, index: usize, report: &mut Report) {
        let before = report.count();
        let service = self.service(node, index, report);
        if let (Some(service), true) = (service, report.count() == before) {
            self.list.push(service);
        }
    }

    /// Hands over the services.
    pub(super) fn finish(self) -> Read {
        let by_distance = |policy: &Arc<PolicySpec>| policy.steer == Steer::Proximity;
        let any = self
            .policies
            .values()
            .chain(&self.default_policy)
            .any(by_distance);
        Read {
            services: self.list,
            by_distance: any,
            any_monitored: self.any_monitored,
        }
    }

    fn service(
        &mut self,
        node: Node<'_, '_>,
        index: usize,
        report: &mut Report,
    ) -> Option<Service> {
        let before = report.count();
        let fields = fields(node, &v1::SERVICE, report)?;
        let key = self.key(fields, index, report);
        let hostnames = fields
            .get("hostnames")
            .map_or_else(Vec::new, |node| self.hostnames(node, index, report));
        let ttl = fields
            .get("ttl")
            .and_then(|node| read::ttl(node, 1..=86_400, report));
        let policy = self.policy(fields, report);
        let monitor = self.monitor(fields, report);
        let endpoints = endpoints::read(fields, self.world.scope.clusters, report);
        let spec = policy.as_deref();
        check_targets(fields, &hostnames, &endpoints, report);
        let answer = |answer: Option<&Option<FallbackSpec>>| match answer {
            Some(Some(FallbackSpec::Hostname(target))) => Some(target.clone()),
            _ => None,
        };
        let fallback = answer(spec.map(|spec| &spec.fallback));
        let fence_answer = answer(spec.map(|spec| &spec.fence_answer));
        let fallback = fallback.map(|target| (target, "`fallback`"));
        let fence_answer = fence_answer.map(|target| (target, FENCE_ANSWER));
        let cnames: Vec<(LowerName, &str)> = fallback.into_iter().chain(fence_answer).collect();
        if !cnames.is_empty() {
            self.check_cnames(fields, &hostnames, &cnames, report);
        }
        let is_monitored = monitor.is_some();
        self.any_monitored |= is_monitored;
        if let (Some(policy), true) = (&policy, report.count() == before) {
            let whole = doubts::Whole {
                fields,
                endpoints: &endpoints,
                policy,
                is_monitored,
            };
            doubts::of_service(whole, self.world, report);
        }
        Some(Service {
            key: key?,
            origin: crate::inventory::Origin::default(),
            names: hostnames.iter().collect::<Names>(),
            ttl,
            policy: policy?,
            monitor,
            pools: endpoints.pools,
            extras: endpoints.extras,
        })
    }

    /// Checks namespace and name.
    fn key(
        &mut self,
        fields: Fields<'_, '_>,
        index: usize,
        report: &mut Report,
    ) -> Option<ServiceKey> {
        let (namespace, name) = (fields.get("namespace"), fields.get("name"));
        let first = namespace.and_then(|node| read::text(node, report));
        let second = name.and_then(|node| read::text(node, report));
        if let (Some(first), Some(second)) = (first, second)
            && let Ok(key) = ServiceKey::new(first, second)
        {
            if let (Some(other), Some(node)) =
                (self.keys.note(key.as_str().as_bytes(), index), name)
            {
                report.fault(
                    node,
                    format_args!(
                        "the service `{key}` is written twice, first as services[{other}]"
                    ),
                );
            }
            return Some(key);
        }
        for (node, text) in [namespace.zip(first), name.zip(second)]
            .into_iter()
            .flatten()
        {
            if let Err(error) = text.parse::<ClusterId>() {
                report.fault(node, format_args!("`{text}`: {error}"));
            }
        }
        None
    }

    /// Checks the host names.
    fn hostnames(
        &mut self,
        node: Node<'_, '_>,
        index: usize,
        report: &mut Report,
    ) -> Vec<LowerName> {
        let count = node.items().count();
        if node.kind() == Kind::List && (count == 0 || count > MAX_HOSTNAMES) {
            report.fault(
                node,
                format_args!("1 to {MAX_HOSTNAMES} host names are wanted"),
            );
        }
        read::list(node, report, |item, report| {
            let name = read::hostname_or_wildcard(item, report)?;
            if !self.world.zones.hold(name.as_ref()) {
                let zones = if report.is_full() {
                    String::new()
                } else {
                    self.world.zones.names()
                };
                report.fault(
                    item,
                    format_args!("`{name}` lies in none of our `zones` ({zones})"),
                );
            }
            if let Some((target, apex)) = self.world.zones.acme_of(name.as_ref()) {
                let zone = (target, apex.as_ref());
                acme::warn_of_long((item, name.as_ref()), zone, report);
            }
            match self.hostnames.note(name.as_wire(), index) {
                None => {}
                Some(other) if usize::try_from(other) == Ok(index) => {
                    report.fault(item, format_args!("`{name}` is listed twice"));
                }
                Some(other) => report.fault(
                    item,
                    format_args!(
                        "`{name}` is also a hostname of services[{other}]; a name has one service"
                    ),
                ),
            }
            Some(name)
        })
    }

    /// Gives the policy: the same for all services that write the same.
    fn policy(&mut self, fields: Fields<'_, '_>, report: &mut Report) -> Option<Arc<PolicySpec>> {
        let World {
            scope,
            policy: defaults,
            ..
        } = self.world;
        let Some(node) = fields.get("policy") else {
            if self.default_policy.is_none() {
                self.default_policy = defaults.clone().finish(fields.node, report).map(Arc::new);
            }
            return self.default_policy.clone();
        };
        self.policies.get(node, || {
            let keys = policy::read(node, Some(defaults), scope, report)?;
            keys.over(defaults).finish(node, report).map(Arc::new)
        })
    }

    /// Gives the monitor: the same for all services that write the same; `None`: nobody judges.
    fn monitor(&mut self, fields: Fields<'_, '_>, report: &mut Report) -> Option<Arc<MonitorSpec>> {
        let defaults = self.world.monitor;
        let Some(node) = fields.get("monitor") else {
            if self.default_monitor.is_none() && defaults.has_check() {
                self.default_monitor = defaults.clone().finish(fields.node, report).map(Arc::new);
            }
            return self.default_monitor.clone();
        };
        let monitor = self.monitors.get(node, || {
            let before = report.count();
            let monitor = monitor::read(node, Hostless::Address, report)?
                .over(defaults)
                .finish(node, report);
            (report.count() == before).then(|| monitor.map(Arc::new))
        });
        monitor.flatten()
    }

    /// Refuses CNAMEs that cannot stand: at the apex beside SOA and NS (RFC 1034 section 3.6.2), where a `fallback` alone is
    /// answered by its addresses, or to their own owner.
    fn check_cnames(
        &self,
        fields: Fields<'_, '_>,
        owners: &[LowerName],
        cnames: &[(LowerName, &str)],
        report: &mut Report,
    ) {
        let Some(node) = fields.get("hostnames") else {
            return;
        };
        for name in owners {
            let is_apex = self.world.zones.has_apex(name.as_ref());
            let fenced = cnames.iter().find(|(_, what)| *what == FENCE_ANSWER);
            if let (true, Some((_, what))) = (is_apex, fenced) {
                report.fault(node, format_args!("`{name}` is the apex of a zone, where a host name ({what}) cannot be answered: use addresses"));
            }
            if let Some((_, what)) = cnames.iter().find(|(target, _)| target == name) {
                report.fault(
                    node,
                    format_args!("`{name}` would be a CNAME to itself ({what})"),
                );
            }
        }
    }
}

/// Refuses endpoints that are host names of the service itself: they lead in a circle.
fn check_targets(
    fields: Fields<'_, '_>,
    owners: &[LowerName],
    endpoints: &endpoints::Endpoints,
    report: &mut Report,
) {
    let Some(node) = fields.get("endpoints") else {
        return;
    };
    let mut targets = endpoints.targets().iter();
    if let Some(target) = targets.find(|target| owners.contains(&target.name)) {
        report.fault(
            node,
            format_args!(
                "the host name `{}` is one of this service itself, which leads in a circle",
                target.name
            ),
        );
    }
}
