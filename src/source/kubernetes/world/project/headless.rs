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
/// Slices whose ports are looked at, at most.
const MAX_SLICES: usize = 64;
/// Addresses that nobody can reach, as many as are told.
const MAX_UNREACHABLE: usize = 8;
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
    let Gathered { all, unreachable } =
        gathered(view.behind.kept(&key), service.publishes_not_ready);
    for address in unreachable {
        if let Some(why) = not_reachable(address.to_canonical()) {
            notes.field(FIELD, format_args!("{address} {why}"));
        }
    }
    if all.len() > MAX_ENDPOINTS {
        let reason = format_args!("the first {MAX_ENDPOINTS} endpoints by their names alone count");
        notes.field(FIELD, reason);
    }
    let first = all.into_iter().take(MAX_ENDPOINTS);
    first
        .map(|((label, address), ports)| HeadlessEndpoint {
            label: label.clone(),
            address,
            ports,
        })
        .collect()
}

/// Lists the ports of the EndpointSlices of a Service, those of the first slices by name: slices of one Service seldom differ.
pub(super) fn ports<'a>(view: &View<'a>, object: &ObjectRef) -> impl Iterator<Item = &'a Port> {
    let kept = view.behind.kept(&key_of(object)).take(MAX_SLICES);
    kept.flat_map(|kept| &kept.ports)
}

/// What several slices say of endpoints.
#[derive(Default)]
struct Gathered<'a> {
    /// The first by label and address, one more than count.
    all: BTreeMap<(&'a HostLabel, IpAddr), Arc<[NamedPort]>>,
    /// Addresses that nobody can reach, the first few.
    unreachable: BTreeSet<IpAddr>,
}

/// Puts together what several slices say of one endpoint.
fn gathered<'a>(slices: impl Iterator<Item = &'a Kept>, takes_all: bool) -> Gathered<'a> {
    let mut gathered = Gathered::default();
    for slice in slices {
        let ports: BTreeSet<NamedPort> = slice.ports.iter().filter_map(named).collect();
        let ports: Arc<[NamedPort]> = once_each(ports.into_iter());
        let endpoints = slice.endpoints.iter();
        for endpoint in endpoints.filter(|endpoint| takes_all || endpoint.is_ready) {
            if not_reachable(endpoint.address.to_canonical()).is_some() {
                gathered.unreachable.insert(endpoint.address);
                if gathered.unreachable.len() > MAX_UNREACHABLE {
                    gathered.unreachable.pop_last();
                }
                continue;
            }
            let held = gathered.all.entry((&endpoint.label, endpoint.address));
            held.and_modify(|held| {
                if **held != *ports {
                    let both: BTreeSet<NamedPort> = held.iter().chain(&*ports).cloned().collect();
                    *held = once_each(both.into_iter());
                }
            })
            .or_insert_with(|| Arc::clone(&ports));
            // What is behind so many is behind them whatever comes.
            if gathered.all.len() > MAX_ENDPOINTS + 1 {
                gathered.all.pop_last();
            }
        }
    }
    gathered
}

/// Takes each name once for each carrier, of several numbers the least.
fn once_each(ports: impl Iterator<Item = NamedPort>) -> Arc<[NamedPort]> {
    let mut ports: Vec<NamedPort> = ports.collect();
    ports.dedup_by(|a, b| (&a.name, a.carrier) == (&b.name, b.carrier));
    ports.truncate(MAX_PORTS);
    ports.into()
}
