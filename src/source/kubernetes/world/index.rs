//! Who depends on whom, so that an event touches only the objects that it concerns.

use std::collections::{BTreeMap, BTreeSet};

use crate::inventory::ObjectRef;
use crate::source::kubernetes::{Backend, Key, Parent, Record};

/// Objects by what they read of others.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Service -> Ingresses and Routes that send traffic there. No set is empty.
    by_service: BTreeMap<Key, BTreeSet<ObjectRef>>,
    /// Gateway -> Routes that ask for it. No set is empty.
    by_gateway: BTreeMap<Key, BTreeSet<ObjectRef>>,
}

impl Index {
    /// Takes what an object reads.
    pub(super) fn link(&mut self, object: &ObjectRef, record: &Record) {
        for backend in backends(record) {
            let service = backend.service.clone();
            let objects = self.by_service.entry(service).or_default();
            objects.insert(object.clone());
        }
        for parent in parents(record) {
            let gateway = parent.gateway.clone();
            let objects = self.by_gateway.entry(gateway).or_default();
            objects.insert(object.clone());
        }
    }

    /// Takes away what [`Index::link`] of the same record brought.
    pub(super) fn unlink(&mut self, object: &ObjectRef, record: &Record) {
        for backend in backends(record) {
            forget(&mut self.by_service, &backend.service, object);
        }
        for parent in parents(record) {
            forget(&mut self.by_gateway, &parent.gateway, object);
        }
    }

    /// Lists the Ingresses and Routes that send traffic to a Service.
    pub(super) fn of_service(&self, service: &Key) -> impl Iterator<Item = &ObjectRef> {
        self.by_service.get(service).into_iter().flatten()
    }

    /// Lists the Routes that ask for a Gateway.
    pub(super) fn of_gateway(&self, gateway: &Key) -> impl Iterator<Item = &ObjectRef> {
        self.by_gateway.get(gateway).into_iter().flatten()
    }
}

/// Takes an object out of a set, and an empty set out of the map.
fn forget(map: &mut BTreeMap<Key, BTreeSet<ObjectRef>>, key: &Key, object: &ObjectRef) {
    if let Some(objects) = map.get_mut(key) {
        objects.remove(object);
        if objects.is_empty() {
            map.remove(key);
        }
    }
}

/// Lists the Services that an object sends traffic to.
pub(super) fn backends(record: &Record) -> &[Backend] {
    match record {
        Record::Ingress(ingress) => &ingress.backends,
        Record::Route(route) => &route.backends,
        Record::Service(_) | Record::Slice(_) | Record::Gateway(_) | Record::Node(_) => &[],
    }
}

/// Lists the Gateways that an object asks for.
pub(super) fn parents(record: &Record) -> &[Parent] {
    match record {
        Record::Route(route) => &route.parents,
        Record::Service(_)
        | Record::Slice(_)
        | Record::Ingress(_)
        | Record::Gateway(_)
        | Record::Node(_) => &[],
    }
}
