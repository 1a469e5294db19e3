//! The names that an object asks for.

use std::collections::HashSet;

use super::attached::Attached;
use super::notes::{Notes, is_refused};
use super::said::Words;
use crate::inventory::Shard;
use crate::model::LowerName;
use crate::source::kubernetes::{Record, RouteRecord};

/// Names of one object, at most.
const MAX_HOSTS: usize = 1_000;

/// Lists the names of an object: those of its annotation, then those of its fields, without doubles.
///
/// Names that cannot be told now stay as they were given last, for a name is not to vanish by a slip: of a `hostname` that
/// was refused, and of a Route that no Gateway accepts any more (of these only what the Route itself still asks for).
pub(super) fn hosts(
    (record, words, attached): (&Record, &Words<'_>, &[Attached<'_>]),
    given: Option<&Shard>,
    notes: &mut Notes,
) -> Box<[LowerName]> {
    let mut list = List::default();
    list.extend(words.own.said.hostnames.iter().flatten());
    let former = given.map(|given| &*given.hosts).unwrap_or_default();
    if is_refused(words.own, "hostname") {
        list.extend(former);
    }
    match record {
        Record::Ingress(ingress) => list.extend(&ingress.hosts),
        Record::Gateway(gateway) => {
            let hosts = gateway.listeners.iter();
            list.extend(hosts.filter_map(|listener| listener.host.as_ref()));
        }
        Record::Route(route) if attached.iter().any(|parent| parent.accepting().is_some()) => {
            of_route(route, attached, &mut list);
        }
        Record::Route(route) => {
            let is_asked = |host: &&LowerName| {
                let mut own = route.hosts.iter();
                route.hosts.is_empty() || own.any(|own| intersection(own, host) == Some(*host))
            };
            list.extend(former.iter().filter(is_asked));
        }
        Record::Service(_) | Record::Slice(_) | Record::Node(_) => {}
    }
    if list.more > 0 {
        let reason = format_args!(
            "{} of its host names are beyond {MAX_HOSTS}, the most allowed",
            list.more
        );
        notes.field("hosts", reason);
    }
    list.hosts.into_iter().cloned().collect()
}

/// Names without doubles, in their order.
#[derive(Default)]
struct List<'a> {
    hosts: Vec<&'a LowerName>,
    seen: HashSet<&'a LowerName>,
    /// Names beyond the most allowed.
    more: usize,
}

impl<'a> List<'a> {
    fn extend(&mut self, hosts: impl IntoIterator<Item = &'a LowerName>) {
        for host in hosts {
            if !self.seen.insert(host) {
                continue;
            }
            if self.hosts.len() < MAX_HOSTS {
                self.hosts.push(host);
            } else {
                self.more += 1;
            }
        }
    }
}

/// Lists what the hosts of a Route and those of the listeners that accept it have in common. A side without hosts asks for
/// those of the other.
fn of_route<'a>(route: &'a RouteRecord, attached: &[Attached<'a>], list: &mut List<'a>) {
    let listeners = || {
        attached
            .iter()
            .flat_map(|parent| parent.listeners(route.kind))
    };
    if route.hosts.is_empty() {
        list.extend(listeners().filter_map(|listener| listener.host.as_ref()));
    }
    for host in &route.hosts {
        list.extend(listeners().filter_map(|listener| match &listener.host {
            Some(other) => intersection(host, other),
            None => Some(host),
        }));
    }
}

/// Gives the narrower of two hosts if the other one holds it (Gateway API, `HTTPRouteSpec.hostnames`): a wildcard stands for
/// one label or more.
pub(in crate::source::kubernetes::world) fn intersection<'a>(
    a: &'a LowerName,
    b: &'a LowerName,
) -> Option<&'a LowerName> {
    if a == b || covers(a, b) {
        Some(b)
    } else {
        covers(b, a).then_some(a)
    }
}

/// Tells whether a wildcard holds a name, or a narrower wildcard.
fn covers(wildcard: &LowerName, name: &LowerName) -> bool {
    let below = wildcard.as_ref().parent();
    wildcard.as_ref().is_wildcard()
        && below.is_some_and(|below| name.as_ref().is_at_or_below(below) && name.as_ref() != below)
}
