//! Whom monitors speak for: nearly always one endpoint each, and seldom a hundred thousand.

use std::collections::BTreeSet;

use super::observation::MonitorId;
use crate::model::{EndpointIndex, Slab};

/// A set of endpoints, in an eighth of the space that one of its own takes. What it holds is read by [`Sets`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum SpokenFor {
    /// None.
    #[default]
    Nobody,
    /// One.
    One(EndpointIndex),
    /// Two at least: the set of this number.
    Many(u32),
}

impl SpokenFor {
    /// Tells whether there is none.
    pub(super) fn is_empty(self) -> bool {
        matches!(self, Self::Nobody)
    }
}

/// The sets of those that have more than one.
#[derive(Debug, Default)]
pub(super) struct Sets(Slab<BTreeSet<EndpointIndex>>);

impl Sets {
    /// Adds one.
    pub(super) fn insert(&mut self, to: &mut SpokenFor, endpoint: EndpointIndex) {
        match *to {
            SpokenFor::Nobody => *to = SpokenFor::One(endpoint),
            SpokenFor::One(held) if held == endpoint => {}
            SpokenFor::One(held) => {
                let set = BTreeSet::from([held, endpoint]);
                *to = SpokenFor::Many(self.0.insert(set));
            }
            SpokenFor::Many(number) => {
                if let Some(set) = self.0.get_mut(number) {
                    set.insert(endpoint);
                }
            }
        }
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, from: &mut SpokenFor, endpoint: EndpointIndex) {
        match *from {
            SpokenFor::One(held) if held == endpoint => *from = SpokenFor::Nobody,
            SpokenFor::Nobody | SpokenFor::One(_) => {}
            SpokenFor::Many(number) => {
                let Some(set) = self.0.get_mut(number) else {
                    return;
                };
                set.remove(&endpoint);
                if let (1, Some(last)) = (set.len(), set.first()) {
                    *from = SpokenFor::One(*last);
                    self.0.take(number);
                    self.0.give_back(number);
                }
            }
        }
    }

    /// Gives the first.
    pub(super) fn first(&self, of: SpokenFor) -> Option<EndpointIndex> {
        match of {
            SpokenFor::Nobody => None,
            SpokenFor::One(held) => Some(held),
            SpokenFor::Many(number) => self.0.get(number)?.first().copied(),
        }
    }

    /// Counts them.
    pub(super) fn len(&self, of: SpokenFor) -> usize {
        match of {
            SpokenFor::Nobody => 0,
            SpokenFor::One(_) => 1,
            SpokenFor::Many(number) => self.0.get(number).map_or(0, BTreeSet::len),
        }
    }

    /// Lists them, ascending.
    pub(super) fn list(&self, of: SpokenFor) -> Vec<EndpointIndex> {
        match of {
            SpokenFor::Nobody => Vec::new(),
            SpokenFor::One(held) => vec![held],
            SpokenFor::Many(number) => {
                let set = self.0.get(number).into_iter().flatten();
                set.copied().collect()
            }
        }
    }
}

/// Which monitor judges an endpoint. Endpoints are numbered densely, so that a number each is enough.
#[derive(Debug, Default)]
pub(super) struct Judges(Vec<u32>);

/// Nobody judges this one.
const NONE: u32 = u32::MAX;

impl Judges {
    /// Gives the monitor of an endpoint.
    pub(super) fn get(&self, endpoint: EndpointIndex) -> Option<MonitorId> {
        let number = self.0.get(endpoint.get()).copied()?;
        (number != NONE).then_some(MonitorId(number))
    }

    /// Sets or takes away the monitor of an endpoint; gives the former one.
    pub(super) fn set(
        &mut self,
        endpoint: EndpointIndex,
        monitor: Option<MonitorId>,
    ) -> Option<MonitorId> {
        let former = self.get(endpoint);
        if former.is_none() && monitor.is_none() {
            return None;
        }
        if self.0.len() <= endpoint.get() {
            self.0.resize(endpoint.get() + 1, NONE);
        }
        if let Some(place) = self.0.get_mut(endpoint.get()) {
            *place = monitor.map_or(NONE, |id| id.0);
        }
        former
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_sets(steps in proptest::collection::vec((any::<bool>(), 0..3_usize, 0_u32..5), 0..60)) {
            let mut sets = Sets::default();
            let mut spoken = [SpokenFor::default(); 3];
            let mut wanted: [BTreeSet<EndpointIndex>; 3] = Default::default();
            for (is_added, at, endpoint) in steps {
                let endpoint = EndpointIndex(endpoint);
                if is_added {
                    sets.insert(&mut spoken[at], endpoint);
                    wanted[at].insert(endpoint);
                } else {
                    sets.remove(&mut spoken[at], endpoint);
                    wanted[at].remove(&endpoint);
                }
                for (one, wanted) in spoken.into_iter().zip(&wanted) {
                    prop_assert_eq!(sets.list(one), wanted.iter().copied().collect::<Vec<_>>());
                    prop_assert_eq!(sets.first(one), wanted.first().copied());
                    prop_assert_eq!((sets.len(one), one.is_empty()), (wanted.len(), wanted.is_empty()));
                }
            }
            let many = wanted.iter().filter(|wanted| wanted.len() > 1).count();
            prop_assert_eq!(sets.0.iter().count(), many, "none is left over");
        }

        #[test]
        fn an_endpoint_has_one_judge(steps in proptest::collection::vec((0_u32..9, proptest::option::of(0_u32..4)), 0..40)) {
            let (mut judges, mut wanted) = (Judges::default(), HashMap::new());
            for (endpoint, monitor) in steps {
                let (endpoint, monitor) = (EndpointIndex(endpoint), monitor.map(MonitorId));
                let former = match monitor {
                    Some(id) => wanted.insert(endpoint, id),
                    None => wanted.remove(&endpoint),
                };
                prop_assert_eq!(judges.set(endpoint, monitor), former);
                for endpoint in (0..10).map(EndpointIndex) {
                    prop_assert_eq!(judges.get(endpoint), wanted.get(&endpoint).copied());
                }
            }
        }
    }
}
