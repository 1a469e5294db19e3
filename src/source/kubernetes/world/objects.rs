//! The objects that may be served, kind by kind.

use std::collections::BTreeMap;

use super::kind::{Kind, Phase};
use crate::inventory::{ObjectKind, ObjectRef};
use crate::source::kubernetes::annotations::compat::Compat;
use crate::source::kubernetes::{GatewayRecord, Key, Record, ServiceRecord};

/// All objects that may be served.
#[derive(Debug, Default)]
pub(super) struct Objects {
    kinds: BTreeMap<ObjectKind, Kind<Box<Record>>>,
}

impl Objects {
    /// Gives one kind, to change it.
    pub(super) fn kind_mut(&mut self, kind: ObjectKind) -> &mut Kind<Box<Record>> {
        self.kinds.entry(kind).or_default()
    }

    /// Gives one kind; `None`: nobody has asked for it yet.
    pub(super) fn kind(&self, kind: ObjectKind) -> Option<&Kind<Box<Record>>> {
        self.kinds.get(&kind)
    }

    /// Lets the annotations of other programs count, in place of those that did.
    pub(super) fn lay(&mut self, compat: &Compat) {
        let records = self.kinds.values_mut().flat_map(Kind::records_mut);
        records.for_each(|record| lay(record, compat));
    }

    /// Tells how far a kind is read.
    pub(super) fn phase(&self, kind: ObjectKind) -> Phase {
        self.kind(kind).map_or(Phase::Awaited, Kind::phase)
    }

    /// Gives an object, if it could ever be read.
    pub(super) fn get(&self, object: &ObjectRef) -> Option<&Record> {
        let record = self.kind(object.kind)?.get(&key_of(object))?;
        Some(record)
    }

    /// Tells whether an object that is not there is gone, and not only unseen.
    pub(super) fn is_gone(&self, object: &ObjectRef) -> bool {
        let kind = self.kind(object.kind);
        kind.is_some_and(|kind| kind.is_gone(&key_of(object)))
    }

    /// Tells whether an object is there, readable or not.
    pub(super) fn has(&self, object: &ObjectRef) -> bool {
        self.kind(object.kind)
            .is_some_and(|kind| kind.has(&key_of(object)))
    }

    /// Finds a Service.
    pub(super) fn service(&self, key: &Key) -> Option<&ServiceRecord> {
        match &**self.kind(ObjectKind::Service)?.get(key)? {
            Record::Service(service) => Some(service),
            _ => None,
        }
    }

    /// Finds a Gateway.
    pub(super) fn gateway(&self, key: &Key) -> Option<&GatewayRecord> {
        match &**self.kind(ObjectKind::Gateway)?.get(key)? {
            Record::Gateway(gateway) => Some(gateway),
            _ => None,
        }
    }

    /// Lists all objects of some kinds.
    pub(super) fn all(&self, kinds: &[ObjectKind]) -> impl Iterator<Item = ObjectRef> {
        kinds.iter().flat_map(move |kind| {
            let known = self.kind(*kind).into_iter().flat_map(Kind::keys);
            known.map(|key| object_of(*kind, key))
        })
    }
}

/// Lets the annotations of other programs count for one object.
pub(super) fn lay(record: &mut Record, compat: &Compat) {
    let common = match record {
        Record::Service(service) => &mut service.common,
        Record::Ingress(ingress) => &mut ingress.common,
        Record::Gateway(gateway) => &mut gateway.common,
        Record::Route(route) => &mut route.common,
        Record::Slice(_) | Record::Node(_) => return,
    };
    common.said.lay(compat);
}

/// The kinds that are attached to Gateways.
pub(super) const ROUTES: [ObjectKind; 5] = [
    ObjectKind::HttpRoute,
    ObjectKind::GrpcRoute,
    ObjectKind::TlsRoute,
    ObjectKind::TcpRoute,
    ObjectKind::UdpRoute,
];

/// Names an object.
pub(super) fn object_of(kind: ObjectKind, key: &Key) -> ObjectRef {
    ObjectRef {
        kind,
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}

/// Gives an object's namespace and name.
pub(super) fn key_of(object: &ObjectRef) -> Key {
    Key {
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    }
}

/// Gives the kind of what a record is about; `None`: it is not served.
pub(super) fn kind_of_record(record: &Record) -> Option<ObjectKind> {
    match record {
        Record::Service(_) => Some(ObjectKind::Service),
        Record::Ingress(_) => Some(ObjectKind::Ingress),
        Record::Gateway(_) => Some(ObjectKind::Gateway),
        Record::Route(route) => Some(route.kind),
        Record::Slice(_) | Record::Node(_) => None,
    }
}
