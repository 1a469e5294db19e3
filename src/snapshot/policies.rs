//! Compiled policies: one per distinct (policy as written, set of clusters), with its classes of places.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::inputs::Inputs;
use super::services::ServiceTable;
use crate::inventory::Service;
use crate::model::{Cluster, ClusterIndex, PolicyIndex, PolicySpec, Pools};
use crate::steering::{Classes, Policy, Words, resolved};

/// Policies kept before the first sweep.
const SWEEP_AT_LEAST: usize = 16;

/// A policy with its classes of places.
#[derive(Clone, Debug)]
pub struct Steering {
    /// The compiled policy.
    pub policy: Policy,
    /// Address to class. Shared by policies that differ in what does not concern places.
    pub classes: Arc<Classes>,
}

/// What one compiled policy was made of.
#[derive(Clone, Debug)]
struct Entry {
    /// Interned by the inventory: the pointer tells equality.
    spec: Arc<PolicySpec>,
    /// In the order of the services' pools.
    clusters: Box<[ClusterIndex]>,
}

/// All policies by index. Cheap to clone.
///
/// Memory: a table of classes has one range for each border between classes, so about the octets of the geo table where every
/// place ranks the clusters differently, and far less where few clusters compete. There are as many as distinct sets of
/// clusters times distinct policies (apart from `answers`, `panic`, `fallback` and `fenceAnswer`, which concern no place).
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyTable {
    /// What queries read.
    steerings: Arc<[Option<Arc<Steering>>]>,
    /// What building reads.
    book: Arc<Book>,
}

/// How a policy is found again.
#[derive(Clone, Debug, Default)]
struct Book {
    /// As long as the list of compiled policies.
    entries: Vec<Option<Entry>>,
    /// Hash of the key, and index.
    by_key: HashTable<(u64, u32)>,
    hasher: RandomState,
    /// Entries left after the last sweep.
    swept: usize,
}

impl Book {
    fn hash(&self, spec: &Arc<PolicySpec>, clusters: impl Iterator<Item = ClusterIndex>) -> u64 {
        let start = self.hasher.hash_one(Arc::as_ptr(spec).addr());
        clusters.fold(start, |hash, cluster| {
            self.hasher.hash_one((hash, cluster.0))
        })
    }

    fn find(&self, spec: &Arc<PolicySpec>, pools: &Pools) -> Option<PolicyIndex> {
        let hash = self.hash(spec, pools.clusters());
        let is_it = |&(_, index): &(u64, u32)| {
            let entry = self.entries.get(index as usize).and_then(Option::as_ref);
            entry.is_some_and(|entry| {
                Arc::ptr_eq(&entry.spec, spec)
                    && pools.clusters().eq(entry.clusters.iter().copied())
            })
        };
        let &(_, index) = self.by_key.find(hash, is_it)?;
        Some(PolicyIndex(index))
    }

    fn used(&self) -> usize {
        self.by_key.len()
    }
}

impl PolicyTable {
    /// Gives a policy.
    #[inline]
    pub(super) fn get(&self, index: PolicyIndex) -> Option<&Steering> {
        self.steerings.get(index.get())?.as_deref()
    }

    /// Counts the policies, the distinct tables of classes, and the octets of these.
    pub(super) fn count(&self) -> (usize, usize, usize) {
        let mut seen = HashSet::new();
        let mut policies = 0;
        let mut memory = 0;
        for steering in self.steerings.iter().flatten() {
            policies += 1;
            if seen.insert(Arc::as_ptr(&steering.classes).addr()) {
                memory += steering.classes.memory();
            }
        }
        (policies, seen.len(), memory)
    }

    /// Begins to change the table.
    pub(super) fn edit(&self) -> PolicyEdit {
        PolicyEdit {
            table: self.clone(),
            steerings: None,
            words: OnceCell::new(),
            last: None,
        }
    }
}

/// A table being changed.
#[derive(Debug)]
pub(super) struct PolicyEdit {
    table: PolicyTable,
    /// The list of compiled policies, once it differs from the table's.
    steerings: Option<Vec<Option<Arc<Steering>>>>,
    /// What bare words are, once a policy has one: clusters stay as they are while one snapshot is built.
    words: OnceCell<Words>,
    /// The last policy found: services often come in rows of equal ones.
    last: Option<(Arc<PolicySpec>, Box<[ClusterIndex]>, PolicyIndex)>,
}

impl PolicyEdit {
    /// Gives the index of a service's policy, compiled now if there is none yet.
    pub(super) fn index_of(&mut self, service: &Service, inputs: &Inputs<'_>) -> PolicyIndex {
        let (spec, pools) = (&service.policy, &service.pools);
        if let Some((last_spec, clusters, index)) = &self.last
            && Arc::ptr_eq(last_spec, spec)
            && pools.clusters().eq(clusters.iter().copied())
        {
            return *index;
        }
        let clusters: Box<[ClusterIndex]> = pools.clusters().collect();
        let index = self
            .table
            .book
            .find(spec, pools)
            .unwrap_or_else(|| self.add(spec, &clusters, inputs));
        self.last = Some((Arc::clone(spec), clusters, index));
        index
    }

    /// Drops policies that no service uses when there are twice as many as the last time, or in any case if `all`.
    pub(super) fn sweep(&mut self, services: &ServiceTable, all: bool) {
        let used = self.table.book.used();
        let due = self.steerings.is_some() && used > self.table.book.swept * 2 + SWEEP_AT_LEAST;
        if !due && !all {
            return;
        }
        let needed: HashSet<PolicyIndex> = services.iter().map(|(_, slot)| slot.policy).collect();
        let book = Arc::make_mut(&mut self.table.book);
        let steerings = self
            .steerings
            .get_or_insert_with(|| self.table.steerings.to_vec());
        book.by_key
            .retain(|&mut (_, index)| needed.contains(&PolicyIndex(index)));
        let all = (0..).zip(book.entries.iter_mut().zip(steerings.iter_mut()));
        for (_, (entry, steering)) in
            all.filter(|(index, _)| !needed.contains(&PolicyIndex(*index)))
        {
            *entry = None;
            *steering = None;
        }
        book.swept = needed.len();
        self.last = None;
    }

    /// Compiles every policy anew, at its old index: places, clusters or groups changed.
    pub(super) fn compile_all(&mut self, inputs: &Inputs<'_>) {
        let book = Arc::clone(&self.table.book);
        let mut steerings: Vec<Option<Arc<Steering>>> = vec![None; book.entries.len()];
        for (at, entry) in book.entries.iter().enumerate() {
            let Some(entry) = entry else { continue };
            let compiled = (&*book.entries, &*steerings);
            let steering = compile(entry, compiled, inputs, &self.words);
            if let Some(place) = steerings.get_mut(at) {
                *place = Some(Arc::new(steering));
            }
        }
        self.steerings = Some(steerings);
    }

    /// Freezes.
    pub(super) fn seal(self) -> PolicyTable {
        match self.steerings {
            Some(steerings) => PolicyTable {
                steerings: steerings.into(),
                book: self.table.book,
            },
            None => self.table,
        }
    }

    /// Compiles one policy and keeps it.
    fn add(
        &mut self,
        spec: &Arc<PolicySpec>,
        clusters: &[ClusterIndex],
        inputs: &Inputs<'_>,
    ) -> PolicyIndex {
        let entry = Entry {
            spec: Arc::clone(spec),
            clusters: clusters.into(),
        };
        let steerings = self
            .steerings
            .get_or_insert_with(|| self.table.steerings.to_vec());
        let book = Arc::make_mut(&mut self.table.book);
        let compiled = (&*book.entries, &**steerings);
        let steering = Some(Arc::new(compile(&entry, compiled, inputs, &self.words)));
        let is_full = book.used() == book.entries.len();
        let free = (!is_full).then(|| book.entries.iter().position(Option::is_none));
        let at = free.flatten().unwrap_or(book.entries.len());
        match (book.entries.get_mut(at), steerings.get_mut(at)) {
            (Some(old_entry), Some(old_steering)) => {
                *old_entry = Some(entry);
                *old_steering = steering;
            }
            _ => {
                book.entries.push(Some(entry));
                steerings.push(steering);
            }
        }
        let index = u32::try_from(at).expect("there are at most as many policies as services");
        let hash = book.hash(spec, clusters.iter().copied());
        book.by_key
            .insert_unique(hash, (hash, index), |&(hash, _)| hash);
        PolicyIndex(index)
    }
}

/// Compiles one policy. `steerings` are those already compiled of `entries`: classes are shared where places rank alike.
fn compile(
    entry: &Entry,
    (entries, steerings): (&[Option<Entry>], &[Option<Arc<Steering>>]),
    inputs: &Inputs<'_>,
    words: &OnceCell<Words>,
) -> Steering {
    let nowhere = nowhere();
    let clusters: Vec<&Cluster> = entry
        .clusters
        .iter()
        .map(|&index| {
            inputs
                .inventory
                .cluster(index)
                .map_or(&nowhere, Arc::as_ref)
        })
        .collect();
    let all = || inputs.inventory.clusters().map(|(_, one)| &**one);
    let spec = resolved(&entry.spec, || words.get_or_init(|| Words::of(all())));
    let policy = Policy::compile(&spec, &clusters, inputs.groups);
    let shared = entries.iter().zip(steerings).find_map(|(other, steering)| {
        let other = other.as_ref()?;
        let same = other.clusters == entry.clusters && rank_alike(&other.spec, &entry.spec);
        Some(Arc::clone(&steering.as_ref().filter(|_| same)?.classes))
    });
    let classes = shared.unwrap_or_else(|| {
        Arc::new(Classes::build(
            &policy,
            inputs.geo.table(),
            inputs.geo.places(),
        ))
    });
    Steering { policy, classes }
}

/// Tells whether two policies say the same of every place: all that fences, maps and ranking read is equal.
fn rank_alike(a: &PolicySpec, b: &PolicySpec) -> bool {
    a.steer == b.steer
        && a.tiers == b.tiers
        && a.weights == b.weights
        && a.bias == b.bias
        && a.maps == b.maps
        && a.fences == b.fences
}

/// Stands for a cluster that pools name and the list of clusters does not have (any more): nothing is known of it.
fn nowhere() -> Cluster {
    Cluster::named(
        "gone"
            .parse()
            .expect("a word of lower-case letters is a name"),
    )
}
