//! What stands behind Services: their EndpointSlices, counted.

use std::collections::{BTreeMap, BTreeSet};

use super::kind::{Kind, Phase};
use crate::inventory::{Backing, Refused};
use crate::source::kubernetes::{AddressType, Event, Key, Record, SliceRecord};

/// Endpoints of one EndpointSlice, or of all of one Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Ready ones.
    pub(super) ready: u64,
    /// Serving ones, ready or not.
    pub(super) serving: u64,
    /// Those about to end.
    pub(super) terminating: u64,
    /// All.
    pub(super) all: u64,
    /// The EndpointSlices that this is the sum of.
    slices: u64,
}

impl Count {
    /// Adds another.
    pub(super) fn add(&mut self, other: Self) {
        self.ready += other.ready;
        self.serving += other.serving;
        self.terminating += other.terminating;
        self.all += other.all;
        self.slices += other.slices;
    }

    /// Takes away what was added before.
    fn take_away(&mut self, other: Self) {
        self.ready -= other.ready;
        self.serving -= other.serving;
        self.terminating -= other.terminating;
        self.all -= other.all;
        self.slices -= other.slices;
    }

    /// Counts those that are to stay. Those about to end are replaced by others: a rollout is no loss.
    pub(super) fn staying(self) -> u64 {
        self.all.saturating_sub(self.terminating).max(self.ready)
    }

    /// Gives what the inventory keeps of it.
    pub(super) fn backing(self) -> Backing {
        let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Backing {
            ready: small(self.ready),
            serving: small(self.serving),
            terminating: small(self.terminating),
            total: small(self.staying()),
        }
    }
}

/// An EndpointSlice as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slice {
    service: Key,
    addresses: AddressType,
    count: Count,
}

impl Slice {
    /// Keeps what is counted.
    fn of(key: &Key, record: &SliceRecord) -> Self {
        Self {
            service: Key {
                namespace: key.namespace.clone(),
                name: record.service.as_ref().into(),
            },
            addresses: record.addresses,
            count: Count {
                ready: record.backing.ready.into(),
                serving: record.backing.serving.into(),
                terminating: record.backing.terminating.into(),
                all: record.endpoints.into(),
                slices: 1,
            },
        }
    }
}

/// What an event changed.
#[derive(Debug)]
pub(super) enum Touched {
    /// The endpoints of these Services.
    Some(BTreeSet<Key>),
    /// Those of all: whether endpoints are known at all turned.
    All,
}

/// What can be said of the endpoints of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// They are not read yet, or left out: what was counted last stands.
    Awaited,
    /// The server does not serve EndpointSlices: nothing is said.
    Silent,
    /// So many.
    Known(Count),
}

/// What the EndpointSlices of one Service count, by what their endpoints are reached by. Those of a Service of two families are in
/// slices of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    v4: Count,
    v6: Count,
    name: Count,
}

impl Sums {
    /// Gives the sum of one kind.
    fn of(&mut self, addresses: AddressType) -> &mut Count {
        match addresses {
            AddressType::V4 => &mut self.v4,
            AddressType::V6 => &mut self.v6,
            AddressType::Name => &mut self.name,
        }
    }

    /// Gives the sum that has most ready endpoints: none counts twice.
    fn most(&self) -> Count {
        let all = [self.v4, self.v6, self.name];
        let most = all.into_iter().max_by_key(|count| (count.ready, count.all));
        most.unwrap_or_default()
    }
}

/// All EndpointSlices of a cluster.
#[derive(Debug, Default)]
pub(super) struct Behind {
    slices: Kind<Slice>,
    /// Service -> sums over its EndpointSlices, by what they are reached by. No sums are of none.
    sums: BTreeMap<Key, Sums>,
}

impl Behind {
    /// Tells how far they are read.
    pub(super) fn phase(&self) -> Phase {
        self.slices.phase()
    }

    /// Counts the EndpointSlices.
    pub(super) fn len(&self) -> usize {
        self.slices.len()
    }

    /// Lists those whose last version cannot be read.
    pub(super) fn unreadable(&self) -> &BTreeMap<Key, Refused> {
        self.slices.unreadable()
    }

    /// Tells what stands behind a Service.
    pub(super) fn of(&self, service: &Key) -> Sight {
        let known = self.sums.get(service).map(Sums::most);
        match self.slices.phase() {
            Phase::Leaving(_) | Phase::Absent => Sight::Silent,
            // Where EndpointSlices are left out, a Service without any may have some.
            Phase::Awaited | Phase::Listed if self.slices.is_partial() => {
                known.map_or(Sight::Awaited, Sight::Known)
            }
            Phase::Awaited => Sight::Awaited,
            Phase::Listed => Sight::Known(known.unwrap_or_default()),
        }
    }

    /// Takes what the watch saw. A record of another kind is passed over.
    pub(super) fn apply(&mut self, event: Event) -> Touched {
        let before = (self.phase(), self.slices.is_partial());
        let mut touched = BTreeSet::new();
        match event {
            Event::Listing => self.slices.begin(),
            Event::Applied(key, record) => {
                if let Record::Slice(record) = *record {
                    let slice = Slice::of(&key, &record);
                    let former = self.slices.put(key, slice.clone());
                    if former.as_ref() != Some(&slice) {
                        self.forget(former, &mut touched);
                        let sums = self.sums.entry(slice.service.clone()).or_default();
                        sums.of(slice.addresses).add(slice.count);
                        touched.insert(slice.service);
                    }
                }
            }
            Event::Unreadable(key, why) => self.slices.put_unreadable(key, why),
            Event::Gone(key) => {
                let former = self.slices.remove(&key);
                self.forget(former, &mut touched);
            }
            Event::Listed => {
                for (_, former) in self.slices.end() {
                    self.forget(former, &mut touched);
                }
            }
            Event::LeftOut => self.slices.leave_out(),
            Event::Unserved => {
                // Nobody reads them any more, and a server that serves them again lists them anew.
                self.slices.leave();
                self.slices.clear();
                self.sums.clear();
            }
        }
        let is_same = (self.phase(), self.slices.is_partial()) == before;
        if is_same {
            Touched::Some(touched)
        } else {
            Touched::All
        }
    }

    /// Takes a former EndpointSlice out of the sum of its Service.
    fn forget(&mut self, former: Option<Slice>, touched: &mut BTreeSet<Key>) {
        let Some(Slice {
            service,
            addresses,
            count,
        }) = former
        else {
            return;
        };
        if let Some(sums) = self.sums.get_mut(&service) {
            sums.of(addresses).take_away(count);
            if *sums == Sums::default() {
                self.sums.remove(&service);
            }
        }
        touched.insert(service);
    }
}
