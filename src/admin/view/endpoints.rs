//! The endpoints of one service: what is thought of each, who judges it, and where it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::objects::Provenance;
use super::spoken::Spoken;
use super::{View, words};
use crate::admin::dto::{EndpointDto, ForcedVerdict, HealthState};
use crate::health::{MonitorReport, MonitorTable};
use crate::inventory::Service;
use crate::model::{
    ClusterIndex, EndpointState, Forced, Intent, MonitorSpec, OperatorTarget, Phase, PoolRef,
    Target,
};
use crate::snapshot::{ServiceSlot, Snapshot};
use crate::steering::States;
use crate::telemetry::wall_time;

/// Reports by what was probed.
type Reports<'a> = BTreeMap<&'a Target, MonitorReport<'a>>;

impl View {
    /// Lists the endpoints of a service.
    pub(super) fn endpoints(
        &self,
        (service, provenance, spoken): (&Service, &Provenance, &Spoken),
        slot: &ServiceSlot,
        snapshot: &Snapshot,
    ) -> Vec<EndpointDto> {
        let reports = Arc::clone(&self.reports().borrow());
        let drains = self.drains_in_force();
        let by_target = judged_by(service, &reports);
        let flips = self.last_flips();
        let aged = self.sources_of_node().events.aged();
        let extras = slot.extras.as_deref();
        let mut all = Vec::new();
        for pool in slot.pools.iter() {
            let base = blank(&pool, slot, snapshot);
            if let (Some(at), Some(index)) = (pool.hostname(), pool.host_state()) {
                let name = extras.and_then(|extras| extras.hostnames.get(at));
                let mut dto = base.clone();
                dto.address = name.map_or_else(String::new, ToString::to_string);
                fill(&mut dto, snapshot.usable().state(index), None);
                tell(&mut dto, provenance, (pool.cluster(), None));
                all.push(dto);
            }
            for endpoint in pool.v4().chain(pool.v6()) {
                let address = endpoint.address;
                let report = service
                    .monitor_of(pool.cluster(), address)
                    .and_then(|spec| {
                        let target = target_of(address, spec);
                        by_target.get(&target).copied()
                    });
                let mut dto = base.clone();
                dto.address = address.to_string();
                fill(&mut dto, snapshot.usable().state(endpoint.state), report);
                if is_withdrawn(service, pool.cluster(), address) {
                    // Its state cannot tell: whoever drains, it is drained.
                    let cluster = snapshot.cluster(pool.cluster());
                    dto.drained = cluster.is_some_and(|cluster| {
                        let is_for = |target: &OperatorTarget| {
                            let is_meant = |key| {
                                let meant = spoken.get(key);
                                meant.is_some_and(|meant| meant.has(pool.cluster(), address))
                            };
                            target.is_at(&cluster.id, address)
                                && target.service().is_none_or(is_meant)
                        };
                        drains.iter().any(is_for)
                    });
                    dto.withdrawn = true;
                }
                let state: EndpointState = snapshot.usable().state(endpoint.state);
                let old = aged.iter().find(|aged| aged.cluster == pool.cluster());
                // A probe that may look confirms it as well as the API does.
                let is_probed =
                    service.monitor_of(pool.cluster(), address).is_some() && !state.is_refused();
                if !is_probed && provenance.knows(pool.cluster(), address) {
                    dto.unconfirmed_since = old.map(|old| words::time(old.since));
                }
                tell(&mut dto, provenance, (pool.cluster(), Some(address)));
                dto.last_flip = report
                    .and_then(|report| flips.get(&report.target.address.to_string()))
                    .cloned();
                all.push(dto);
            }
        }
        all
    }

    /// Lists what operators drain now.
    fn drains_in_force(&self) -> Vec<OperatorTarget> {
        let now = wall_time();
        let records = self.vantage().book().records();
        let drains = records
            .standing(now)
            .filter(|record| record.intent == Intent::Drain && record.phase(now) == Phase::Active);
        drains.map(|record| record.target.clone()).collect()
    }

    /// Gives when each target flipped last, since the start.
    fn last_flips(&self) -> BTreeMap<String, String> {
        let mut flips = BTreeMap::new();
        for event in self.controller().journal().all() {
            if let (crate::controller::Kind::Flip, Some(target)) = (event.kind, &event.target) {
                flips.insert(target.clone(), words::time(event.time));
            }
        }
        flips
    }
}

/// Tells whether the object of an address drains it itself.
fn is_withdrawn(service: &Service, cluster: ClusterIndex, address: IpAddr) -> bool {
    let extras = service.extras.as_deref();
    let own = extras.and_then(|extras| extras.particular(cluster, address));
    own.is_some_and(|own| own.condition.is_withdrawn)
}

/// Finds what the monitors of a service say.
fn judged_by<'a>(service: &Service, reports: &'a MonitorTable) -> Reports<'a> {
    let extras = service.extras.as_deref();
    let particulars = extras.into_iter().flat_map(|extras| &extras.particulars);
    let own = particulars.filter_map(|particular| particular.monitor.as_ref());
    let specs: BTreeSet<&Arc<MonitorSpec>> = service.monitor.iter().chain(own).collect();
    if specs.is_empty() {
        return Reports::new();
    }
    let judged = reports
        .iter()
        .filter(|report| specs.contains(&report.target.spec));
    judged.map(|report| (report.target, report)).collect()
}

/// Begins an endpoint of a pool.
fn blank(pool: &PoolRef<'_>, slot: &ServiceSlot, snapshot: &Snapshot) -> EndpointDto {
    let cluster = snapshot.cluster(pool.cluster());
    EndpointDto {
        cluster: cluster.map_or_else(String::new, |cluster| cluster.id.to_string()),
        address: String::new(),
        weight: pool.weight().0,
        state: HealthState::Unknown,
        reason: None,
        unconfirmed_since: None,
        from: String::new(),
        verdict: "unknown".to_owned(),
        in_doubt: false,
        drained: false,
        withdrawn: false,
        forced: None,
        clients: clients_of(pool, slot),
        monitor: None,
        last: None,
        last_flip: None,
    }
}

/// Gives what one endpoint is probed by.
fn target_of(address: IpAddr, spec: &Arc<MonitorSpec>) -> Target {
    Target {
        address: (address, spec.check.port()).into(),
        spec: Arc::clone(spec),
    }
}

/// Shows what is thought of an endpoint.
fn fill(dto: &mut EndpointDto, state: EndpointState, report: Option<MonitorReport<'_>>) {
    dto.state = words::state(state, report.is_some());
    dto.drained = state.is_drained();
    dto.forced = match state.forced() {
        Forced::No => None,
        Forced::Up => Some(ForcedVerdict::Up),
        Forced::Down => Some(ForcedVerdict::Down),
    };
    if let Some(report) = report {
        dto.verdict = report.verdict.to_string();
        dto.in_doubt = report.in_doubt;
        dto.monitor = Some(words::monitor_id(report.target));
        dto.last = report.last.map(words::probe);
    }
}

/// Says where an endpoint comes from, and why its cluster keeps it from taking traffic.
fn tell(
    dto: &mut EndpointDto,
    provenance: &Provenance,
    (cluster, address): (ClusterIndex, Option<IpAddr>),
) {
    dto.from = provenance.from(cluster, address);
    let unconfirmed = dto.unconfirmed_since.as_deref();
    dto.reason = match dto.state {
        HealthState::Unready => Some(match unconfirmed {
            Some(since) => format!("neither its cluster nor a probe confirmed it since {since}"),
            None => provenance.unready(cluster, address),
        }),
        HealthState::Drained if dto.withdrawn => Some(provenance.withdrawn(cluster, address)),
        _ => None,
    };
}

/// Lists the prefixes of senders that a pool is for.
fn clients_of(pool: &PoolRef<'_>, slot: &ServiceSlot) -> Vec<String> {
    let extras = slot.extras.as_deref();
    let set = pool.clients().and_then(|at| extras?.client_sets.get(at));
    set.map_or_else(Vec::new, |set| {
        set.iter().map(ToString::to_string).collect()
    })
}
