//! The marks of services that operators speak of, and the keys that they do it by.

use std::collections::HashMap;

use super::apart::Isolation;
use super::federation::{Meant, Reading};
use super::service::{Origin, Service};
use crate::model::ServiceKey;

/// What is spoken of.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    pub(super) isolation: Isolation,
    /// Its keys by namespace, as they read.
    by_namespace: HashMap<Box<str>, Vec<(ServiceKey, Reading)>>,
    /// What tells the entries of a service that is spoken of from those of others. No mark is used again.
    marks: HashMap<(Origin, ServiceKey), u32>,
    /// The keys that mean a service, with how much of it, by its mark.
    keys: HashMap<u32, Vec<(ServiceKey, Meant)>>,
    last_mark: u32,
}

impl Spoken {
    /// Takes what is spoken of from now on.
    pub(super) fn set(&mut self, isolation: Isolation) {
        self.by_namespace.clear();
        for key in &isolation.services {
            let of_namespace = self.by_namespace.entry(key.namespace().into());
            let keys = of_namespace.or_default();
            keys.push((key.clone(), Reading::of(key)));
        }
        self.isolation = isolation;
    }

    /// Tells whether nobody speaks of any service, nor did.
    pub(super) fn is_empty(&self) -> bool {
        self.by_namespace.is_empty() && self.marks.is_empty()
    }

    /// Gives the keys of a namespace.
    pub(super) fn keys_of(&self, namespace: &str) -> &[(ServiceKey, Reading)] {
        let keys = self.by_namespace.get(namespace);
        keys.map_or(&[], Vec::as_slice)
    }

    /// Gives the keys that mean the service of a mark, with how much of it.
    pub(super) fn keys_at(&self, mark: u32) -> &[(ServiceKey, Meant)] {
        let keys = self.keys.get(&mark);
        keys.map_or(&[], Vec::as_slice)
    }

    /// Gives the mark of a service; `None`: nobody speaks of it.
    pub(super) fn mark_of(&self, service: &Service) -> Option<u32> {
        if self.marks.is_empty() {
            return None;
        }
        let place = (service.origin, service.key.clone());
        self.marks.get(&place).copied()
    }

    /// Forgets a service that is gone, or that nobody speaks of any more. Tells whether anybody did.
    pub(super) fn forget(&mut self, service: &Service) -> bool {
        if self.marks.is_empty() {
            return false;
        }
        let mark = self.marks.remove(&(service.origin, service.key.clone()));
        mark.is_some_and(|mark| self.keys.remove(&mark).is_some())
    }

    /// Takes the keys that mean a service. Tells whether they are others than before: then it has another mark, so that its entries are
    /// new ones, and begin with what operators say.
    pub(super) fn mark(&mut self, service: &Service, keys: Vec<(ServiceKey, Meant)>) -> bool {
        if keys.is_empty() {
            return self.forget(service);
        }
        let place = (service.origin, service.key.clone());
        let former = self.marks.get(&place).copied();
        if former.is_some_and(|former| self.keys_at(former) == keys) {
            return false;
        }
        if let Some(former) = former {
            self.keys.remove(&former);
        }
        self.last_mark = self.last_mark.wrapping_add(1).max(1);
        self.marks.insert(place, self.last_mark);
        self.keys.insert(self.last_mark, keys);
        true
    }
}
