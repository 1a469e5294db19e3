//! Entries of the table of endpoint states: who shares one, and when one is no longer needed.

use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::apart::Apart;
use super::intern::Interner;
use crate::model::{ClusterIndex, Condition, EndpointIndex, Lookup, MonitorSpec, Slab, Target};

/// Entries that came to be.
#[derive(Debug)]
pub(super) struct Appeared<'d> {
    /// Those that a monitor should judge.
    pub(super) watch: &'d mut Vec<(EndpointIndex, Target)>,
    /// Those that no monitor judges, and those of which their cluster says something.
    pub(super) conditioned: &'d mut Vec<EndpointIndex>,
}

/// One entry.
#[derive(Debug)]
struct Entry {
    /// Where it leads; the unspecified address in the shared entry of a cluster.
    address: IpAddr,
    cluster: ClusterIndex,
    /// Endpoints of services that refer to it. Not counted in the shared entry of a cluster.
    users: u32,
    /// Who judges it, interned; `None`: nobody, this is the shared entry of a cluster.
    spec: Option<Arc<MonitorSpec>>,
}

/// Which (cluster, address, monitor) has which index.
///
/// An ingress that 100,000 services name with equal monitors is one entry. Endpoints that nobody monitors share one entry a
/// cluster, which stays for good.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    entries: Slab<Entry>,
    /// Monitored entries by (cluster, address, monitor's allocation).
    by_key: Lookup,
    /// The shared entry of each cluster that has unmonitored endpoints, by cluster index.
    unmonitored: Vec<Option<EndpointIndex>>,
    /// Freed since the last [`Endpoints::settle`]: a snapshot in force may still read them under their old meaning.
    parked: Vec<u32>,
    specs: Interner<MonitorSpec>,
    /// Entries that are an operator's to set apart.
    apart: Apart,
}

impl Endpoints {
    /// Gives an entry that is not shared with what is not `owner`'s or has not this condition: an operator spoke of it alone, or
    /// its cluster did. `owner` 0 is an address of its own for all services. `spec` is interned. A new entry is added to
    /// `appeared`.
    pub(super) fn acquire_apart(
        &mut self,
        (cluster, address): (ClusterIndex, IpAddr),
        (owner, condition): (u32, Condition),
        spec: Option<&Arc<MonitorSpec>>,
        appeared: &mut Appeared<'_>,
    ) -> EndpointIndex {
        let check = spec.map_or(0, |spec| Arc::as_ptr(spec).addr());
        let key = (cluster, address, check, owner, condition);
        if let Some(index) = self.apart.take(&key) {
            return index;
        }
        let index = EndpointIndex(self.entries.insert(Entry {
            address,
            cluster,
            users: 1,
            spec: spec.map(Arc::clone),
        }));
        self.apart.put(key, index);
        // Nobody judges a host name, which has no address.
        let judged = spec.filter(|_| !address.is_unspecified());
        if condition != Condition::default() || judged.is_none() {
            appeared.conditioned.push(index);
        }
        if let Some(spec) = judged {
            let target = Target {
                address: SocketAddr::new(address, spec.check.port()),
                spec: Arc::clone(spec),
            };
            appeared.watch.push((index, target));
        }
        index
    }

    /// Gives what its cluster says of an entry.
    pub(super) fn condition(&self, index: EndpointIndex) -> Condition {
        self.apart.condition(index)
    }

    /// Tells whether any entry is set apart.
    pub(super) fn has_apart(&self) -> bool {
        !self.apart.is_empty()
    }

    /// Gives whose an entry is that was set apart; `None`: it is shared.
    pub(super) fn owner(&self, index: EndpointIndex) -> Option<u32> {
        self.apart.owner(index)
    }

    /// Gives the one allocation of a monitor.
    pub(super) fn intern(&mut self, spec: Arc<MonitorSpec>) -> Arc<MonitorSpec> {
        self.specs.intern(spec)
    }

    /// Gives the entry of one endpoint and counts one more user. `spec` is interned. A new entry is added to `appeared`.
    pub(super) fn acquire(
        &mut self,
        cluster: ClusterIndex,
        address: IpAddr,
        spec: Option<&Arc<MonitorSpec>>,
        appeared: &mut Appeared<'_>,
    ) -> EndpointIndex {
        let Some(spec) = spec else {
            return self.shared(cluster, appeared);
        };
        let hash = self.by_key.hash(&key(cluster, address, spec));
        let entries = &self.entries;
        let found = self.by_key.find(hash, |index| {
            entries.get(index).is_some_and(|entry| {
                entry.address == address
                    && entry.cluster == cluster
                    && entry
                        .spec
                        .as_ref()
                        .is_some_and(|own| Arc::ptr_eq(own, spec))
            })
        });
        if let Some(index) = found {
            if let Some(entry) = self.entries.get_mut(index) {
                entry.users = entry.users.saturating_add(1);
            }
            return EndpointIndex(index);
        }
        let index = self.entries.insert(Entry {
            address,
            cluster,
            users: 1,
            spec: Some(Arc::clone(spec)),
        });
        let (entries, lookup) = (&self.entries, &mut self.by_key);
        let hasher = lookup.hasher();
        lookup.insert(hash, index, |index| {
            entries.get(index).map_or(0, |entry| {
                let spec = entry.spec.as_ref();
                spec.map_or(0, |spec| {
                    hasher.hash_one(key(entry.cluster, entry.address, spec))
                })
            })
        });
        let target = Target {
            address: SocketAddr::new(address, spec.check.port()),
            spec: Arc::clone(spec),
        };
        appeared.watch.push((EndpointIndex(index), target));
        EndpointIndex(index)
    }

    /// Counts one user less. An entry without users is gone, and added to `gone`.
    pub(super) fn release(&mut self, index: EndpointIndex, gone: &mut Vec<EndpointIndex>) {
        if let Some(is_last) = self.apart.release(index) {
            if is_last {
                self.entries.take(index.0);
                self.parked.push(index.0);
                gone.push(index);
            }
            return;
        }
        let Some(entry) = self.entries.get_mut(index.0) else {
            return;
        };
        let Some(spec) = &entry.spec else {
            return;
        };
        entry.users = entry.users.saturating_sub(1);
        if entry.users == 0 {
            let hash = self.by_key.hash(&key(entry.cluster, entry.address, spec));
            self.by_key.remove(hash, index.0);
            self.entries.take(index.0);
            self.parked.push(index.0);
            gone.push(index);
        }
    }

    /// Lets freed indices be used again.
    pub(super) fn settle(&mut self) {
        for index in self.parked.drain(..) {
            self.entries.give_back(index);
        }
    }

    /// Gives what an entry stands for: cluster, address, monitor; `None` for a free index. The address is unspecified in the
    /// entry that the unmonitored endpoints of a cluster share.
    pub(super) fn get(
        &self,
        index: EndpointIndex,
    ) -> Option<(ClusterIndex, IpAddr, Option<&Arc<MonitorSpec>>)> {
        let entry = self.entries.get(index.0)?;
        Some((entry.cluster, entry.address, entry.spec.as_ref()))
    }

    /// Gives one more than the highest index ever given.
    pub(super) fn end(&self) -> usize {
        self.entries.end() as usize
    }

    /// Gives the entry that all unmonitored endpoints of a cluster share.
    fn shared(&mut self, cluster: ClusterIndex, appeared: &mut Appeared<'_>) -> EndpointIndex {
        if let Some(Some(index)) = self.unmonitored.get(cluster.get()) {
            return *index;
        }
        let index = EndpointIndex(self.entries.insert(Entry {
            address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            cluster,
            users: 0,
            spec: None,
        }));
        if self.unmonitored.len() <= cluster.get() {
            self.unmonitored.resize(cluster.get() + 1, None);
        }
        if let Some(slot) = self.unmonitored.get_mut(cluster.get()) {
            *slot = Some(index);
        }
        appeared.conditioned.push(index);
        index
    }
}

/// The key of a monitored entry: an interned monitor is told by its address.
fn key(cluster: ClusterIndex, address: IpAddr, spec: &Arc<MonitorSpec>) -> (u16, IpAddr, usize) {
    (cluster.0, address, Arc::as_ptr(spec).addr())
}
