//! What stands behind Services: their EndpointSlices, counted.
//!
//! Addresses are kept of the few that may be asked for them: of slices of Services without an address of their own. Of a Service
//! that has one nothing but counts is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::kind::{Kind, Phase};
use crate::inventory::{Backing, Refused};
use crate::source::kubernetes::{
    AddressType, Event, Key, Port, Record, SliceEndpoint, SliceRecord,
};

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

/// The endpoints of one EndpointSlice, by their addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// The first of them, in order.
    pub(super) endpoints: Box<[SliceEndpoint]>,
    /// Where they listen.
    pub(super) ports: Box<[Port]>,
    /// The slice says itself that its Service has no address.
    is_sure: bool,
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

/// Keeps the endpoints of a slice.
fn kept_of(record: SliceRecord) -> Kept {
    Kept {
        endpoints: record.first.into(),
        ports: record.ports.into(),
        is_sure: record.is_headless,
    }
}

/// All EndpointSlices of a cluster.
#[derive(Debug, Default)]
pub(super) struct Behind {
    slices: Kind<Slice>,
    /// Service -> sums over its EndpointSlices, by what they are reached by. No sums are of none.
    sums: BTreeMap<Key, Sums>,
    /// Service -> EndpointSlice -> endpoints, where the Service has no address of its own or is not known.
    kept: BTreeMap<Key, BTreeMap<Arc<str>, Kept>>,
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

    /// Lists the endpoints of a Service without an address of its own, by EndpointSlice.
    pub(super) fn kept<'s>(&'s self, service: &Key) -> impl Iterator<Item = &'s Kept> + use<'s> {
        self.kept
            .get(service)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// A Service turns out to have an address of its own: nobody asks for those of its endpoints.
    pub(super) fn shed(&mut self, service: &Key) {
        if let Some(kept) = self.kept.get_mut(service) {
            kept.retain(|_, kept| kept.is_sure);
            if kept.is_empty() {
                self.kept.remove(service);
            }
        }
    }

    /// Takes what the watch saw. A record of another kind is passed over. `is_ordinary`: a Service is known, and has an address of
    /// its own.
    pub(super) fn apply(&mut self, event: Event, is_ordinary: impl Fn(&Key) -> bool) -> Touched {
        let before = (self.phase(), self.slices.is_partial());
        let mut touched = BTreeSet::new();
        match event {
            Event::Listing => self.slices.begin(),
            Event::Applied(key, record) => {
                if let Record::Slice(record) = *record {
                    let slice = Slice::of(&key, &record);
                    let name = Arc::clone(&key.name);
                    let former = self.slices.put(key, slice.clone());
                    let former_kept = former
                        .as_ref()
                        .and_then(|former| self.take_kept(&former.service, &name));
                    let is_left = !record.is_headless && is_ordinary(&slice.service);
                    let kept = (!is_left).then(|| kept_of(record));
                    let is_same = former.as_ref() == Some(&slice) && former_kept == kept;
                    if let Some(kept) = kept {
                        let of_service = self.kept.entry(slice.service.clone()).or_default();
                        of_service.insert(name, kept);
                    }
                    if !is_same {
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
                self.drop_kept(former.as_ref(), &key.name);
                self.forget(former, &mut touched);
            }
            Event::Listed => {
                for (key, former) in self.slices.end() {
                    self.drop_kept(former.as_ref(), &key.name);
                    self.forget(former, &mut touched);
                }
            }
            Event::LeftOut => self.slices.leave_out(),
            Event::Unserved => {
                // Nobody reads them any more, and a server that serves them again lists them anew.
                self.slices.leave();
                self.slices.clear();
                self.sums.clear();
                self.kept.clear();
            }
        }
        let is_same = (self.phase(), self.slices.is_partial()) == before;
        if is_same {
            Touched::Some(touched)
        } else {
            Touched::All
        }
    }

    /// Takes what is kept of an EndpointSlice of a Service out.
    fn take_kept(&mut self, service: &Key, name: &str) -> Option<Kept> {
        let of_service = self.kept.get_mut(service)?;
        let kept = of_service.remove(name);
        if of_service.is_empty() {
            self.kept.remove(service);
        }
        kept
    }

    /// Forgets what is kept of an EndpointSlice that is gone.
    fn drop_kept(&mut self, former: Option<&Slice>, name: &str) {
        if let Some(former) = former {
            self.take_kept(&former.service, name);
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
