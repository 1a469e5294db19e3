//! How many addresses of one namespace may be probed, and one allocation for equal monitors.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::inventory::{NameKeys, ObjectRef};
use crate::model::MonitorSpec;

/// Specs kept before the first sweep.
const SWEEP_AT_LEAST: usize = 64;

/// Addresses of one object that are probed, at most: so many of them are used.
const MOST_PROBES: usize = 64;

/// The objects that ask for a monitor, by namespace, each with the addresses that it would be probed at. The first ones in their
/// order get it: those that begin below the limit, so that the last one of them is probed whole.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// None is empty.
    by_namespace: BTreeMap<Arc<str>, Namespace>,
}

/// The objects of one namespace that ask.
#[derive(Debug, Default)]
struct Namespace {
    /// At how many addresses each would be probed; never 0.
    probes: BTreeMap<ObjectRef, usize>,
    /// At how many all of them.
    sum: usize,
}

impl Asking {
    /// Takes at how many addresses an object asks to be probed; `None`: it does not ask. Gives the other objects whose turn that
    /// changes: no more than addresses come or go.
    pub(super) fn set(
        &mut self,
        object: &ObjectRef,
        addresses: Option<usize>,
        limit: usize,
    ) -> Vec<ObjectRef> {
        let Some(addresses) = addresses else {
            return self.unset(object, limit);
        };
        let probes = addresses.clamp(1, MOST_PROBES);
        let namespace = object.namespace.clone();
        let asking = self.by_namespace.entry(namespace).or_default();
        if asking.probes.get(object) == Some(&probes) {
            return Vec::new();
        }
        let before = asking.first_beyond(limit).cloned();
        let former = asking.probes.insert(object.clone(), probes);
        asking.sum = asking.sum - former.unwrap_or(0) + probes;
        asking.turned(before, limit, object)
    }

    fn unset(&mut self, object: &ObjectRef, limit: usize) -> Vec<ObjectRef> {
        let Some(asking) = self.by_namespace.get_mut(&object.namespace) else {
            return Vec::new();
        };
        let before = asking.first_beyond(limit).cloned();
        let Some(former) = asking.probes.remove(object) else {
            return Vec::new();
        };
        asking.sum -= former;
        let turned = asking.turned(before, limit, object);
        if asking.probes.is_empty() {
            self.by_namespace.remove(&object.namespace);
        }
        turned
    }

    /// Tells whether an object that asks gets one.
    pub(super) fn allows(&self, object: &ObjectRef, limit: usize) -> bool {
        let asking = self.by_namespace.get(&object.namespace);
        let beyond = asking.and_then(|asking| asking.first_beyond(limit));
        beyond.is_none_or(|beyond| object < beyond)
    }
}

impl Namespace {
    /// Finds the first object that gets none; `None`: all get one. Looks at no more objects than the limit is.
    fn first_beyond(&self, limit: usize) -> Option<&ObjectRef> {
        if self.sum <= limit {
            return None;
        }
        let mut sum = 0;
        let mut beyond = self.probes.iter().skip_while(|(_, probes)| {
            let is_within = sum < limit;
            sum += **probes;
            is_within
        });
        beyond.next().map(|(object, _)| object)
    }

    /// Lists the objects whose turn changed since `before` was the first beyond, but for the one that made it change.
    fn turned(&self, before: Option<ObjectRef>, limit: usize, but: &ObjectRef) -> Vec<ObjectRef> {
        let after = self.first_beyond(limit).cloned();
        let (first, last) = match (before, after) {
            (Some(before), Some(after)) if before < after => (before, Some(after)),
            (Some(before), Some(after)) => (after, Some(before)),
            (Some(only), None) | (None, Some(only)) => (only, None),
            (None, None) => return Vec::new(),
        };
        let between = self.probes.range(first..).map(|(object, _)| object);
        let between = between.take_while(|object| last.as_ref().is_none_or(|last| *object < last));
        between.filter(|object| *object != but).cloned().collect()
    }
}

/// One allocation for each monitor in use, and for keys that say nothing.
#[derive(Debug, Default)]
pub(super) struct Shared {
    monitors: HashSet<Arc<MonitorSpec>>,
    /// Monitors that were left after the last sweep.
    swept: usize,
    silent: Arc<NameKeys>,
}

impl Shared {
    /// Takes a monitor that is in use.
    pub(super) fn adopt(&mut self, spec: &Arc<MonitorSpec>) {
        self.monitors.insert(Arc::clone(spec));
    }

    /// Gives the one allocation of a monitor.
    pub(super) fn monitor(&mut self, spec: MonitorSpec) -> Arc<MonitorSpec> {
        if let Some(kept) = self.monitors.get(&spec) {
            return Arc::clone(kept);
        }
        if self.monitors.len() >= self.swept * 2 + SWEEP_AT_LEAST {
            self.monitors.retain(|kept| Arc::strong_count(kept) > 1);
            self.swept = self.monitors.len();
        }
        let spec = Arc::new(spec);
        self.monitors.insert(Arc::clone(&spec));
        spec
    }

    /// Gives an allocation of an object's keys, its former one where nothing changed.
    pub(super) fn keys(&self, keys: NameKeys, former: Option<&Arc<NameKeys>>) -> Arc<NameKeys> {
        if *self.silent == keys {
            return Arc::clone(&self.silent);
        }
        match former {
            Some(former) if **former == keys => Arc::clone(former),
            _ => Arc::new(keys),
        }
    }
}
