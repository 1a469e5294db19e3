//! How many objects of one namespace may have a probed monitor, and one allocation for equal monitors.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::inventory::{NameKeys, ObjectRef};
use crate::model::MonitorSpec;

/// Specs kept before the first sweep.
const SWEEP_AT_LEAST: usize = 64;

/// The objects that ask for a monitor, by namespace. The first ones in their order get it.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// No set is empty.
    by_namespace: BTreeMap<Arc<str>, BTreeSet<ObjectRef>>,
}

impl Asking {
    /// Takes whether an object asks. Gives the other object whose turn that changes.
    pub(super) fn set(
        &mut self,
        object: &ObjectRef,
        is_asking: bool,
        limit: usize,
    ) -> Option<ObjectRef> {
        if is_asking {
            let asking = self
                .by_namespace
                .entry(object.namespace.clone())
                .or_default();
            if !asking.insert(object.clone()) || asking.len() <= limit {
                return None;
            }
            // The first one beyond was the last one within, unless it is the new one.
            let beyond = asking.iter().nth(limit)?;
            return (object < beyond).then(|| beyond.clone());
        }
        let asking = self.by_namespace.get_mut(&object.namespace)?;
        if !asking.remove(object) {
            return None;
        }
        if asking.is_empty() {
            self.by_namespace.remove(&object.namespace);
            return None;
        }
        // The last one within was the first one beyond, if one within went.
        let within = asking.iter().nth(limit.checked_sub(1)?)?;
        (object < within).then(|| within.clone())
    }

    /// Tells whether an object that asks gets one.
    pub(super) fn allows(&self, object: &ObjectRef, limit: usize) -> bool {
        let Some(asking) = self.by_namespace.get(&object.namespace) else {
            return true;
        };
        asking.len() <= limit || asking.range(..object).take(limit).count() < limit
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
