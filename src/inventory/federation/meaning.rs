//! What people mean by the key of a service: keys change with what is offered, and what an operator drains does not.
//!
//! An object that asks for a host alone, in all of its clusters, is the service of its own key; as soon as another object joins
//! it there, or one cluster does not ask, the service has the key of the host. So a key means more than the service that
//! stands under it: that of an object means what the object offers wherever it stands, that of a host whatever answers the host.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::names::key_of;
use super::{Federation, ObjectKind, ObjectRef};
use crate::model::{ClusterIndex, LowerName, ServiceKey};

/// How much of a service a key means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    /// All of it.
    Whole,
    /// What one of its objects offers, by cluster and address.
    Part(BTreeSet<(ClusterIndex, IpAddr)>),
}

impl Meant {
    /// Tells whether it is all of another one, or more.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole, _) => true,
            (Self::Part(_), Self::Whole) => false,
            (Self::Part(own), Self::Part(other)) => own.is_superset(other),
        }
    }

    /// Tells whether an endpoint is meant.
    #[must_use]
    pub fn has(&self, cluster: ClusterIndex, address: IpAddr) -> bool {
        match self {
            Self::Whole => true,
            Self::Part(places) => places.contains(&(cluster, address)),
        }
    }
}

/// What a key may stand for beside the service of that key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::inventory) struct Reading {
    /// Objects: one of them at most can be meant, but for names with dots.
    objects: Vec<ObjectRef>,
    /// A host.
    host: Option<LowerName>,
}

impl Reading {
    /// Reads a key. One that was made of a text that is too long stands for nothing else.
    pub(in crate::inventory) fn of(key: &ServiceKey) -> Self {
        let (namespace, text) = (key.namespace(), key.name());
        let of_kind = |kind: ObjectKind| {
            let suffix = format!(".{}", kind.as_str().to_ascii_lowercase());
            let name = match kind {
                ObjectKind::Service => text,
                _ => text.strip_suffix(suffix.as_str())?,
            };
            let object = ObjectRef::new(kind, namespace, name);
            (key_of(&object, None).as_ref() == Some(key)).then_some(object)
        };
        let wildcard = || Some(format!("*.{}", text.strip_suffix(".wildcard")?));
        let host = text.strip_suffix(".hostname").map(ToOwned::to_owned);
        Self {
            objects: ObjectKind::ALL.into_iter().filter_map(of_kind).collect(),
            host: host.or_else(wildcard).and_then(|host| host.parse().ok()),
        }
    }
}

impl Federation {
    /// Lists the services that a key means, its own among them.
    pub(in crate::inventory) fn meant_by(&self, key: &ServiceKey) -> BTreeSet<ServiceKey> {
        let reading = Reading::of(key);
        let objects = reading.objects.iter();
        let held = objects.filter_map(|object| self.objects.get(object));
        let claimed = held.flat_map(|held| held.claims.iter().map(|(name, _)| name));
        let entries = claimed
            .chain(&reading.host)
            .filter_map(|name| self.book.entries.get(name));
        let services = entries.filter_map(|entry| entry.service.as_ref());
        let own = self.services.get_key_value(key).map(|(own, _)| own);
        // A name that another namespace has is that namespace's.
        let services = services.filter(|service| service.namespace() == key.namespace());
        services.chain(own).cloned().collect()
    }

    /// Says how much of one service a key means that reads so; `None`: nothing.
    pub(in crate::inventory) fn meant_of(
        &self,
        service: &ServiceKey,
        reading: &Reading,
    ) -> Option<Meant> {
        let names = self.services.get(service)?;
        let host = reading.host.as_ref();
        if host.is_some_and(|host| names.contains(host)) {
            return Some(Meant::Whole);
        }
        let is_one = |object: &ObjectRef| reading.objects.contains(object);
        let voices = self.voices(service).into_iter();
        let mut voices = voices
            .filter(|voice| is_one(&voice.shard.object))
            .peekable();
        voices.peek()?;
        let places = voices.flat_map(|voice| {
            let shard = voice.shard;
            let targets = shard.targets.iter();
            let resolved = targets.filter_map(|name| self.targets.get(name));
            let resolved = resolved.flat_map(|target| target.addresses.iter().chain(&target.old));
            let addresses = shard.addresses.iter().chain(resolved);
            addresses.map(move |address| (voice.cluster, *address))
        });
        Some(Meant::Part(places.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::key_of_name;
    use super::*;

    #[test]
    fn keys_are_read_back() {
        let long = format!("{}.{}", "a".repeat(63), "b".repeat(63));
        for kind in ObjectKind::ALL {
            for name in ["web", "web.v2", "web.ingress", &long] {
                let object = ObjectRef::new(kind, "shop", name);
                let Some(key) = key_of(&object, None) else {
                    panic!("{object}");
                };
                assert!(Reading::of(&key).objects.contains(&object), "{object}");
            }
        }
        for host in ["www.g.example", "*.g.example", "a.hostname"] {
            let host: LowerName = host.parse().unwrap();
            let key = key_of_name("shop", host.as_ref()).unwrap();
            assert_eq!(Reading::of(&key).host, Some(host));
        }
        // Made of what has no room in a key.
        let host = format!("{long}.{}.{}", "c".repeat(63), "d".repeat(57));
        let host: LowerName = host.parse().unwrap();
        let key = key_of_name("shop", host.as_ref()).unwrap();
        assert_ne!(Reading::of(&key).host, Some(host.clone()), "{key}");
    }
}
