//! What one object comes to: its shard, or why it has none. Pure: the records of one moment in, a shard out.

mod attached;
mod drain;
mod entries;
mod groups;
mod headless;
mod hosts;
mod monitor;
mod notes;
mod ports;
mod readiness;
mod said;

use std::sync::Arc;

use jiff::Timestamp;

use super::behind::Behind;
use super::objects::Objects;
use crate::inventory::{NameKeys, ObjectRef, Readiness, Refused, Shard};
use crate::model::{MonitorSpec, Steer, Weight};
use crate::source::kubernetes::annotations::{CheckKind, MinReady};
use crate::source::kubernetes::{Common, Record, Rules};

use attached::Attached;
use entries::Entries;
use monitor::{Ports, Saying};
use notes::Notes;
pub(super) use notes::{refused, refused_key};
use said::Words;

#[cfg(test)]
pub(super) use hosts::intersection;

/// The most addresses of one answer that an object may ask for.
const MAX_ANSWERS: u8 = 32;

/// What a projection reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    /// The rules.
    pub(super) rules: &'a Rules,
    /// What multiplies weights.
    pub(super) weight: Weight,
    /// The objects of the cluster.
    pub(super) objects: &'a Objects,
    /// What stands behind its Services.
    pub(super) behind: &'a Behind,
    /// The shard that was given last.
    pub(super) given: Option<&'a Shard>,
    /// The wall time.
    pub(super) now: Timestamp,
}

/// What an object comes to.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It cannot be told yet: what was given last stands.
    Stands(Option<Refused>),
    /// It is not served, and why, if people should know.
    Nothing(Option<Refused>),
    /// It is served.
    Serves(Box<Projected>),
}

/// A shard before it is compared with others.
#[derive(Debug)]
pub(super) struct Projected {
    /// The shard. Its monitor is not set, and its keys are the default.
    pub(super) shard: Shard,
    /// What it says of its names.
    pub(super) keys: NameKeys,
    /// The monitor that it asks for.
    pub(super) monitor: Option<MonitorSpec>,
    /// When it looks different by itself.
    pub(super) edge: Option<Timestamp>,
}

/// Projects one object.
pub(super) fn project(view: &View<'_>, object: &ObjectRef, record: &Record) -> Outcome {
    let Some(common) = common(record) else {
        return Outcome::Nothing(None);
    };
    let attached = match Attached::all(view, record) {
        Ok(attached) => attached,
        Err(why) => {
            let is_new = view.given.is_none();
            return Outcome::Stands(is_new.then(|| refused("spec.parentRefs", why)));
        }
    };
    let words = Words::of(common, &attached);
    if let Err(why) = words.serving(record, view.given.is_some(), view.rules) {
        return Outcome::Nothing(why);
    }
    let mut notes = Notes::of(common);
    let hosts = hosts::hosts((record, &words, &attached), view.given, &mut notes);
    let what = (record, common, &words);
    let headless = words
        .headless(record)
        .map(|service| headless::endpoints(view, (object, service), &mut notes));
    let entries = match &headless {
        Some(endpoints) => Entries::of_endpoints(common, endpoints, view.now),
        None => Entries::of(what, &attached, (view.given, view.now), &mut notes),
    };
    let saying = Saying {
        checks: &words.said.checks,
        own: &words.own.said.checks,
        host: hosts.iter().find(|host| !host.as_ref().is_wildcard()),
        is_headless: headless.is_some(),
    };
    let mut ports = Ports::of(record, &attached);
    if headless.is_some() {
        ports = ports.or_those_of(headless::ports(view, object));
    }
    let monitor = monitor::monitor(view, saying, &ports, &mut notes);
    let wanted = words.said.min_ready.unwrap_or(MinReady::Count(1));
    let (behind, backing) = readiness::behind(view, (object, record), wanted);
    let is_judged = monitor::kind(&words.said.checks, view.rules) != Some(CheckKind::None);
    let readiness = readiness(&entries, behind, is_judged);
    let (fence, unserved) = match words.fence(&attached, &view.rules.groups, &mut notes) {
        Ok(fence) => (fence, None),
        Err(why) => said::last_fence(view.given, &why),
    };
    let mut keys = said::name_keys(&words.said, fence, view.rules, &mut notes);
    if headless.is_some() {
        // Of such a Service everybody gets every endpoint, where nothing else is said (KEP-1645).
        keys.steer.get_or_insert(Steer::All);
        keys.answers.get_or_insert(MAX_ANSWERS);
    }
    let named_ports = ports::named_ports(record, &keys, &mut notes);
    let shard = Shard {
        object: object.clone(),
        hosts,
        addresses: entries.addresses.into(),
        targets: entries.targets.into(),
        weight: words.said.weight.unwrap_or_default().times(view.weight),
        clients: words.said.clients.clone().unwrap_or_default().into(),
        monitor: None,
        readiness,
        is_drained: entries.is_drained,
        backing,
        keys: Arc::default(),
        ports: named_ports,
        headless,
        unserved,
        refused: notes.into_refused().into(),
    };
    Outcome::Serves(Box::new(Projected {
        shard,
        keys,
        monitor,
        edge: entries.edge,
    }))
}

/// Gives what all kinds that may be served have.
pub(super) fn common(record: &Record) -> Option<&Common> {
    match record {
        Record::Service(service) => Some(&service.common),
        Record::Ingress(ingress) => Some(&ingress.common),
        Record::Gateway(gateway) => Some(&gateway.common),
        Record::Route(route) => Some(&route.common),
        Record::Slice(_) | Record::Node(_) => None,
    }
}

/// Puts together what stands in the way of traffic: what is nearest to the client is said. `is_judged`: readiness counts; an
/// address that is not sure counts in any case.
fn readiness(entries: &Entries, behind: Result<(), Box<str>>, is_judged: bool) -> Readiness {
    let unready = entries.unready.clone().filter(|_| is_judged);
    let behind = behind.err().filter(|_| is_judged);
    let why = unready
        .or_else(|| entries.missing.map(Into::into))
        .or(behind);
    why.map_or(Readiness::Ready, Readiness::NotReady)
}
