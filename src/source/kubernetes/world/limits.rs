//! How much one namespace of a cluster may have of what all share, and one allocation for equal monitors.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::inventory::{NameKeys, ObjectRef};
use crate::model::MonitorSpec;

/// Specs kept before the first sweep.
const SWEEP_AT_LEAST: usize = 64;

/// Addresses of one object that are probed, at most: so many of them are used.
const MOST_PROBES: usize = 64;

/// Host names of one namespace of one cluster, at most.
const NAMES_OF_NAMESPACE: usize = 10_000;
/// Host names of one cluster, at most: beyond that each namespace has fewer.
const NAMES_OF_CLUSTER: usize = 1_000_000;

/// What objects ask for of something that is limited by namespace. The first ones in their order have it, whoever came first: the
/// same on every node.
#[derive(Debug, Default)]
struct Turns {
    /// None is empty.
    by_namespace: BTreeMap<Arc<str>, Namespace>,
    /// What all of them ask for.
    sum: usize,
    /// How much each namespace may have.
    limit: usize,
}

/// The objects of one namespace that ask.
#[derive(Debug, Default)]
struct Namespace {
    /// How much each asks for; never 0.
    asked: BTreeMap<ObjectRef, usize>,
    /// How much all of them ask for.
    sum: usize,
    /// How much those before the edge ask for: they have all of it.
    within: usize,
    /// The first that does not have all that it asks for: it has the rest, and those behind it nothing. `None`: all have all.
    edge: Option<ObjectRef>,
}

impl Turns {
    /// Takes how much an object asks for; 0: nothing. Gives the other objects of which that may change how much they have: no more than
    /// comes or goes.
    fn set(&mut self, object: &ObjectRef, wanted: usize) -> Vec<ObjectRef> {
        let limit = self.limit;
        let asking = match self.by_namespace.get_mut(&object.namespace) {
            Some(asking) => asking,
            None if wanted == 0 => return Vec::new(),
            None => self
                .by_namespace
                .entry(Arc::clone(&object.namespace))
                .or_default(),
        };
        let former = asking.put(object, wanted);
        if former == wanted {
            return Vec::new();
        }
        self.sum = self.sum - former + wanted;
        let mut turned = asking.settle(limit);
        turned.retain(|other| other != object);
        if asking.asked.is_empty() {
            self.by_namespace.remove(&object.namespace);
        }
        turned
    }

    /// Gives how much an object has.
    fn allowance(&self, object: &ObjectRef) -> usize {
        let asking = self.by_namespace.get(&object.namespace);
        asking.map_or(0, |asking| asking.allowance(object, self.limit))
    }

    /// Puts a limit in force. Gives the objects of which that may change how much they have.
    fn limit(&mut self, limit: usize) -> Vec<ObjectRef> {
        if limit == self.limit {
            return Vec::new();
        }
        self.limit = limit;
        let all = self.by_namespace.values_mut();
        all.flat_map(|asking| asking.settle(limit)).collect()
    }
}

impl Namespace {
    /// Takes how much an object asks for, and gives how much it asked for before.
    fn put(&mut self, object: &ObjectRef, wanted: usize) -> usize {
        let former = match wanted {
            0 => self.asked.remove(object),
            _ => self.asked.insert(object.clone(), wanted),
        };
        let former = former.unwrap_or(0);
        self.sum = self.sum - former + wanted;
        if self.edge.as_ref().is_none_or(|edge| object < edge) {
            self.within = self.within - former + wanted;
        } else if wanted == 0 && self.edge.as_ref() == Some(object) {
            self.edge = self.behind(object);
        }
        former
    }

    /// Finds the object behind another one.
    fn behind(&self, object: &ObjectRef) -> Option<ObjectRef> {
        let behind = (Bound::Excluded(object), Bound::Unbounded);
        let mut behind = self.asked.range::<ObjectRef, _>(behind);
        behind.next().map(|(object, _)| object.clone())
    }

    /// Finds the last object before the edge, with how much it asks for.
    fn last(&self) -> Option<(ObjectRef, usize)> {
        let end = self.edge.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut before = self.asked.range::<ObjectRef, _>((Bound::Unbounded, end));
        let (object, wanted) = before.next_back()?;
        Some((object.clone(), *wanted))
    }

    /// Moves the edge to where the limit is reached. Gives the objects that it passed, and those that it stood and stands at.
    fn settle(&mut self, limit: usize) -> Vec<ObjectRef> {
        let mut turned: Vec<ObjectRef> = self.edge.iter().cloned().collect();
        while self.within > limit {
            let Some((last, wanted)) = self.last() else {
                break;
            };
            self.within -= wanted;
            turned.push(last.clone());
            self.edge = Some(last);
        }
        while let Some(edge) = self.edge.take() {
            let wanted = self.asked.get(&edge).copied().unwrap_or(0);
            if self.within + wanted > limit {
                turned.push(edge.clone());
                self.edge = Some(edge);
                break;
            }
            self.within += wanted;
            self.edge = self.behind(&edge);
            turned.push(edge);
        }
        turned
    }

    /// Gives how much an object has.
    fn allowance(&self, object: &ObjectRef, limit: usize) -> usize {
        let wanted = self.asked.get(object).copied().unwrap_or(0);
        match &self.edge {
            Some(edge) if object > edge => 0,
            Some(edge) if object == edge => limit.saturating_sub(self.within).min(wanted),
            _ => wanted,
        }
    }
}

/// The objects that ask for a monitor, each with the addresses that it would be probed at. Those that begin below the limit get it,
/// so that the last one of them is probed whole.
#[derive(Debug, Default)]
pub(super) struct Asking(Turns);

impl Asking {
    /// Takes at how many addresses an object asks to be probed; `None`: it does not ask. Gives the other objects whose turn that
    /// may change.
    pub(super) fn set(
        &mut self,
        object: &ObjectRef,
        addresses: Option<usize>,
        limit: usize,
    ) -> Vec<ObjectRef> {
        let wanted = addresses.map_or(0, |addresses| addresses.clamp(1, MOST_PROBES));
        let mut turned = self.0.limit(limit);
        turned.extend(self.0.set(object, wanted));
        turned
    }

    /// Tells whether an object that asks gets one.
    pub(super) fn allows(&self, object: &ObjectRef) -> bool {
        self.0.allowance(object) > 0
    }
}

/// The objects that ask for host names.
#[derive(Debug)]
pub(super) struct Names {
    turns: Turns,
    /// How many all of the cluster may have.
    most: usize,
}

impl Default for Names {
    fn default() -> Self {
        Self::with(NAMES_OF_CLUSTER)
    }
}

impl Names {
    /// Makes one for a cluster that may have so many.
    fn with(most: usize) -> Self {
        Self {
            turns: Turns {
                limit: NAMES_OF_NAMESPACE,
                ..Turns::default()
            },
            most,
        }
    }

    /// Takes how many names an object asks for. Gives the other objects of which that may change how many they have.
    pub(super) fn set(&mut self, object: &ObjectRef, names: usize) -> Vec<ObjectRef> {
        self.turns.set(object, names)
    }

    /// Looks whether all that namespaces may have has room in the cluster; while it has not, each may have half of that. So those who
    /// ask for much make room, and those who ask for little keep what they have. Gives the objects of which that may change how
    /// many names they have.
    pub(super) fn level(&mut self) -> Vec<ObjectRef> {
        let mut limit = NAMES_OF_NAMESPACE;
        if self.turns.sum > self.most {
            let fits = |limit: usize| {
                let all = self.turns.by_namespace.values();
                all.map(|asking| asking.sum.min(limit)).sum::<usize>() <= self.most
            };
            while limit > 1 && !fits(limit) {
                limit /= 2;
            }
        }
        self.turns.limit(limit)
    }

    /// Gives how many names an object has.
    pub(super) fn allowance(&self, object: &ObjectRef) -> usize {
        self.turns.allowance(object)
    }

    /// Gives how many names one namespace may have now.
    pub(super) fn limit(&self) -> usize {
        self.turns.limit
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::inventory::ObjectKind;

    fn object(namespace: &str, name: usize) -> ObjectRef {
        ObjectRef {
            kind: ObjectKind::Ingress,
            namespace: namespace.into(),
            name: format!("in-{name:05}").as_str().into(),
        }
    }

    /// What each object of a namespace has, said in the plainest way.
    fn plain(asked: &BTreeMap<usize, usize>, limit: usize) -> BTreeMap<usize, usize> {
        let mut room = limit;
        let has = asked.iter().map(|(name, wanted)| {
            // Behind the first that does not get all, nobody gets anything.
            let had = room.min(*wanted);
            room = if had < *wanted { 0 } else { room - had };
            (*name, had)
        });
        has.collect()
    }

    proptest! {
        #[test]
        fn the_first_in_order_have_it_and_every_change_is_told(
            steps in prop::collection::vec((0..8_usize, 0..5_usize, 1..12_usize), 1..60),
        ) {
            let (mut turns, mut asked) = (Turns::default(), BTreeMap::new());
            let mut before = BTreeMap::new();
            let mut limit = 6;
            for (name, wanted, next) in steps {
                let mut turned = Vec::new();
                // Now and then another limit is in force.
                if next > 8 {
                    limit = next - 6;
                }
                turned.extend(turns.limit(limit));
                turned.extend(turns.set(&object("shop", name), wanted));
                match wanted {
                    0 => asked.remove(&name),
                    _ => asked.insert(name, wanted),
                };
                let now = plain(&asked, limit);
                for other in 0..8 {
                    let has = turns.allowance(&object("shop", other));
                    prop_assert_eq!(has, now.get(&other).copied().unwrap_or(0));
                    if other != name && before.get(&other) != now.get(&other) {
                        prop_assert!(turned.contains(&object("shop", other)));
                    }
                }
                prop_assert_eq!(turns.sum, asked.values().sum::<usize>());
                before = now;
            }
        }
    }

    #[test]
    fn a_namespace_has_ten_thousand_names_and_takes_nobody_elses() {
        let mut names = Names::default();
        for at in 0..12 {
            names.set(&object("loud", at), 1_000);
        }
        names.set(&object("quiet", 0), 3);
        assert_eq!(names.level(), []);
        let has = |namespace: &str, at| names.allowance(&object(namespace, at));
        assert_eq!(
            [has("loud", 9), has("loud", 10), has("loud", 11)],
            [1_000, 0, 0]
        );
        assert_eq!(has("quiet", 0), 3);
    }

    #[test]
    fn where_all_are_too_many_those_with_most_make_room() {
        let mut names = Names::with(12_000);
        for at in 0..10 {
            names.set(&object("big", at), 1_000);
        }
        names.set(&object("small", 0), 500);
        assert_eq!((names.level().len(), names.limit()), (0, 10_000));
        for at in 0..4 {
            names.set(&object("other", at), 1_000);
        }
        // 10,000 + 4,000 + 500 are too many, 5,000 + 4,000 + 500 are not.
        let turned = names.level();
        assert_eq!(names.limit(), 5_000);
        assert!(turned.contains(&object("big", 7)) && !turned.contains(&object("small", 0)));
        let has = |names: &Names, namespace: &str, at| names.allowance(&object(namespace, at));
        assert_eq!([has(&names, "big", 4), has(&names, "big", 5)], [1_000, 0]);
        assert_eq!(
            [has(&names, "other", 3), has(&names, "small", 0)],
            [1_000, 500]
        );
        // They have their names back when there is room.
        for at in 0..4 {
            names.set(&object("other", at), 0);
        }
        assert!(names.level().contains(&object("big", 9)));
        assert_eq!([has(&names, "big", 9), names.limit()], [1_000, 10_000]);
    }
}
