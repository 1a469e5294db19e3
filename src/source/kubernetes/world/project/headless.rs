//! Endpoints of a Service without an address of its own that is in cluster sets: they are all there is of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::View;
use super::notes::Notes;
use super::ports::named;
use crate::inventory::ObjectRef;
use crate::model::{HeadlessEndpoint, HostLabel, NamedPort, not_reachable};
use crate::source::kubernetes::world::behind::{Kept, Sight};
use crate::source::kubernetes::world::objects::key_of;
use crate::source::kubernetes::{Port, ServiceRecord};

/// Endpoints of one Service in one cluster, at most: as many as answers have room for.
const MAX_ENDPOINTS: usize = 64;
/// Named ports of one endpoint, at most.
const MAX_PORTS: usize = 64;
/// Where they stand.
const FIELD: &str = "endpoints";

/// Lists the ready endpoints of a Service, all of them where unready ones are published; as long as EndpointSlices are not read,
/// those of last.
pub(super) fn endpoints(
    view: &View<'_>,
    (object, service): (&ObjectRef, &ServiceRecord),
    notes: &mut Notes,
) -> Box<[HeadlessEndpoint]> {
    let key = key_of(object);
    if !matches!(view.behind.of(&key), Sight::Known(_)) {
        let former = view.given.and_then(|given| given.headless.clone());
        return former.unwrap_or_default();
    }
    let all = gathered(view.behind.kept(&key), service.publishes_not_ready);
    let mut listed = Vec::new();
    for ((label, address), ports) in all {
        if let Some(why) = not_reachable(address.to_canonical()) {
            notes.field(FIELD, format_args!("{address} {why}"));
        } else if listed.len() < MAX_ENDPOINTS {
            listed.push(HeadlessEndpoint {
                label: label.clone(),
                address,
                ports,
            });
        } else {
            let reason =
                format_args!("the first {MAX_ENDPOINTS} endpoints by their names alone count");
            notes.field(FIELD, reason);
            break;
        }
    }
    listed.into()
}

/// Lists the ports of the EndpointSlices of a Service.
pub(super) fn ports<'a>(view: &View<'a>, object: &ObjectRef) -> impl Iterator<Item = &'a Port> {
    let kept = view.behind.kept(&key_of(object));
    kept.flat_map(|kept| &kept.ports)
}

/// Puts together what several slices say of one endpoint.
fn gathered<'a>(
    slices: impl Iterator<Item = &'a Kept>,
    takes_all: bool,
) -> BTreeMap<(&'a HostLabel, IpAddr), Arc<[NamedPort]>> {
    let mut all: BTreeMap<(&HostLabel, IpAddr), Arc<[NamedPort]>> = BTreeMap::new();
    for slice in slices {
        let ports: BTreeSet<NamedPort> = slice.ports.iter().filter_map(named).collect();
        let ports: Arc<[NamedPort]> = once_each(ports.into_iter());
        let endpoints = slice.endpoints.iter();
        for endpoint in endpoints.filter(|endpoint| takes_all || endpoint.is_ready) {
            let held = all.entry((&endpoint.label, endpoint.address));
            held.and_modify(|held| {
                if **held != *ports {
                    let both: BTreeSet<NamedPort> = held.iter().chain(&*ports).cloned().collect();
                    *held = once_each(both.into_iter());
                }
            })
            .or_insert_with(|| Arc::clone(&ports));
        }
    }
    all
}

/// Takes each name once for each carrier, of several numbers the least.
fn once_each(ports: impl Iterator<Item = NamedPort>) -> Arc<[NamedPort]> {
    let mut ports: Vec<NamedPort> = ports.collect();
    ports.dedup_by(|a, b| (&a.name, a.carrier) == (&b.name, b.carrier));
    ports.truncate(MAX_PORTS);
    ports.into()
}
