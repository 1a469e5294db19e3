//! Owner name to service or node: shards by hash bits, each an open table with flat records.

use std::fmt;
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

use super::grouped::Grouped;
use super::shard::{Hit, Record, Shard, ShardEdit};
use crate::model::{NameRef, ServiceIndex, ZoneIndex};
use crate::zone::{Found, NameTree};

/// Fewest shards, as bits of the hash: 64, one group.
const MIN_BITS: u32 = 6;
/// Most shards, as bits of the hash: 4096. What lookups read of the list of shards, 24 octets each, then fits into the second
/// cache with room for others.
const MAX_BITS: u32 = 12;
/// Names a shard is made for.
const PER_SHARD: usize = 64;
/// Names a shard may have on average before there are more shards, as long as there may be more.
const FULL_SHARD: usize = 256;

/// A name's hash, seeded per process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameHash(pub u64);

/// A record that may be the one looked for: its tag matches, as one in 256 others does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate(Hit);

/// All owner names of all zones, empty non-terminals included. Cheap to clone: shards are shared.
///
/// Names are spread over shards by their top hash bits. A change copies the shards it touches, about 256 names each, and the
/// part of the list that each is in.
#[derive(Clone)]
pub struct NameTable {
    /// A power of two of shards.
    shards: Grouped<Shard>,
    /// 64 less the bits that choose the shard.
    shift: u32,
    len: usize,
    /// The same in all tables made of one another; random otherwise, for names come from outside.
    hasher: RandomState,
}

impl Default for NameTable {
    fn default() -> Self {
        Self::with_bits(MIN_BITS, RandomState::default())
    }
}

impl fmt::Debug for NameTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameTable")
            .field("len", &self.len)
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}

impl NameTable {
    /// Hashes a name in lower case, wire form.
    #[must_use]
    #[inline]
    pub fn hash(&self, name: NameRef<'_>) -> NameHash {
        hash(&self.hasher, name)
    }

    /// First stage: hints that the slot of this hash will be read.
    #[inline]
    pub fn prefetch(&self, hash: NameHash) {
        if let Some(shard) = self.shard(hash) {
            shard.prefetch(hash);
        }
    }

    /// Second stage: reads the slot, hints that the record will be read. `None`: the name is not in the table.
    #[must_use]
    #[inline]
    pub fn candidate(&self, hash: NameHash) -> Option<Candidate> {
        self.shard(hash)?.candidate(hash).map(Candidate)
    }

    /// Between second and third stage, where there is a batch to fill the time: reads which service the candidate names, so
    /// that its slot can be hinted at. Wrong for one name in 256: good for hints only.
    #[must_use]
    #[inline]
    pub fn likely_service(&self, hash: NameHash, candidate: Candidate) -> Option<ServiceIndex> {
        self.shard(hash)?.service_at(candidate.0)
    }

    /// Third stage: finds exactly this name, beginning at the candidate.
    #[must_use]
    #[inline]
    pub fn confirm(
        &self,
        hash: NameHash,
        candidate: Option<Candidate>,
        name: NameRef<'_>,
    ) -> Option<Found> {
        let record = self.shard(hash)?.confirm(hash, candidate?.0, name)?;
        Some(record.found())
    }

    /// Counts the names, empty non-terminals included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Tells whether no zone is served.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over all names, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (NameRef<'_>, Found)> {
        self.shards
            .iter()
            .flat_map(Shard::iter)
            .map(|(name, record)| (name, record.found()))
    }

    /// Gives the octets held.
    #[must_use]
    pub fn memory(&self) -> usize {
        let shards: usize = self.shards.iter().map(Shard::memory).sum();
        shards + self.shards.memory()
    }

    /// Tells whether no shard differs in allocation from another table's.
    #[cfg(test)]
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        self.shards.is_shared_with(&other.shards)
    }

    /// Finds a name's whole record.
    pub(super) fn record(&self, name: NameRef<'_>) -> Option<Record> {
        let hash = self.hash(name);
        let shard = self.shard(hash)?;
        shard.confirm(hash, shard.candidate(hash)?, name)
    }

    fn with_bits(bits: u32, hasher: RandomState) -> Self {
        let mut shards = Grouped::default().edit();
        // Makes all up to the last.
        shards.get_mut((1 << bits) - 1);
        Self {
            shards: shards.seal(),
            shift: u64::BITS - bits,
            len: 0,
            hasher,
        }
    }

    #[inline]
    fn shard(&self, hash: NameHash) -> Option<&Shard> {
        self.shards.get(shard_of(hash, self.shift))
    }
}

impl NameTree for NameTable {
    #[inline]
    fn find(&self, name: NameRef<'_>) -> Option<Found> {
        let hash = self.hash(name);
        self.confirm(hash, self.candidate(hash), name)
    }
}

#[inline]
fn hash(hasher: &RandomState, name: NameRef<'_>) -> NameHash {
    let mut hasher = hasher.build_hasher();
    hasher.write(name.as_wire());
    NameHash(hasher.finish())
}

/// Gives the position of the shard of a hash.
#[inline]
fn shard_of(hash: NameHash, shift: u32) -> usize {
    usize::try_from(hash.0 >> shift).unwrap_or(usize::MAX)
}

/// Gives the bits of the hash that choose the shard, for that many names.
fn bits_for(names: usize) -> u32 {
    let shards = names.div_ceil(PER_SHARD).max(1);
    shards.next_power_of_two().ilog2().clamp(MIN_BITS, MAX_BITS)
}

// === Editing ===

/// Where a name is put: its zone, and how long that zone's apex is. Ancestors are made up to the apex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    /// The longest zone that the name lies in.
    pub(super) zone: ZoneIndex,
    /// Octets of the apex's wire form.
    pub(super) apex_octets: usize,
}

/// A table being changed.
#[derive(Debug)]
pub(super) struct NamesEdit {
    table: NameTable,
    open: Open,
}

/// What is open for change.
#[derive(Debug)]
enum Open {
    /// Those shards that were touched.
    Shards(Vec<Option<Box<ShardEdit>>>),
    /// All names in one, spread over shards when it is sealed: for many names at once.
    Whole(ShardEdit),
}

impl NamesEdit {
    /// Begins to change a table.
    pub(super) fn new(table: &NameTable) -> Self {
        let shards = table.shards.len();
        Self {
            open: Open::Shards(std::iter::repeat_with(|| None).take(shards).collect()),
            table: table.clone(),
        }
    }

    /// Begins to make a table from nothing, for about that many names with that many octets. The hash is that of `table`.
    pub(super) fn from_nothing(table: &NameTable, names: usize, octets: usize) -> Self {
        Self {
            table: NameTable::with_bits(MIN_BITS, table.hasher.clone()),
            open: Open::Whole(ShardEdit::with_capacity(names, octets)),
        }
    }

    /// Finds a name's record as it stands now.
    pub(super) fn get(&self, name: NameRef<'_>) -> Option<Record> {
        let hash = self.table.hash(name);
        match &self.open {
            Open::Whole(all) => all.get(hash, name),
            Open::Shards(shards) => match shards.get(shard_of(hash, self.table.shift))? {
                Some(shard) => shard.get(hash, name),
                None => self.table.record(name),
            },
        }
    }

    /// Changes the record of a name, which is made if it is not there. A name that nothing stands at and nothing lies below
    /// is dropped. Ancestors up to the apex come and go with their descendants.
    pub(super) fn change(
        &mut self,
        name: NameRef<'_>,
        home: Home,
        change: impl FnOnce(&mut Record),
    ) {
        let (before, after) = self.change_one(name, home.zone, change);
        if before != after && name.as_wire().len() > home.apex_octets {
            self.change_ancestors(name, home, after);
        }
    }

    /// Counts one more name below `name`, which is made if it is not there, with its ancestors: for a zone inside a zone.
    pub(super) fn adopt(&mut self, name: NameRef<'_>, home: Home) {
        self.change(name, home, |record| record.children += 1);
    }

    /// Freezes. Untouched shards stay shared with the table before, unless there are so many names that there must be more
    /// shards.
    pub(super) fn seal(self) -> NameTable {
        let Self { table, open } = self;
        let edits = match open {
            Open::Whole(all) => return spread(&all, &table.hasher),
            Open::Shards(edits) => edits,
        };
        if edits.iter().all(Option::is_none) {
            return table;
        }
        let mut shards = table.shards.edit();
        let mut len = table.len;
        let touched = edits.into_iter().enumerate();
        for (at, edit) in touched.filter_map(|(at, edit)| Some((at, edit?))) {
            if let Some(shard) = shards.get_mut(at) {
                len -= shard.len();
                *shard = edit.seal(|name| hash(&table.hasher, name));
                len += shard.len();
            }
        }
        let table = NameTable {
            shards: shards.seal(),
            len,
            ..table
        };
        let bits = u64::BITS - table.shift;
        if bits < MAX_BITS && len > FULL_SHARD << bits {
            respread(&table)
        } else {
            table
        }
    }

    /// Tells the ancestors of a name that came (`is_there`) or went.
    fn change_ancestors(&mut self, name: NameRef<'_>, home: Home, is_there: bool) {
        let mut name = name;
        while name.as_wire().len() > home.apex_octets
            && let Some(parent) = name.parent()
        {
            let (before, after) = self.change_one(parent, home.zone, |record| {
                record.children = if is_there {
                    record.children.saturating_add(1)
                } else {
                    record.children.saturating_sub(1)
                };
            });
            if before == after {
                return;
            }
            name = parent;
        }
    }

    /// Changes one record alone. Gives whether the name existed before and after.
    fn change_one(
        &mut self,
        name: NameRef<'_>,
        zone: ZoneIndex,
        change: impl FnOnce(&mut Record),
    ) -> (bool, bool) {
        let hasher = &self.table.hasher;
        let hash = hash(hasher, name);
        let fresh = Record {
            zone,
            node: None,
            service: None,
            children: 0,
        };
        let shards = match &mut self.open {
            Open::Whole(all) => return all.change(hash, name, fresh, change),
            Open::Shards(shards) => shards,
        };
        let at = shard_of(hash, self.table.shift);
        let (Some(open), Some(frozen)) = (shards.get_mut(at), self.table.shards.get(at)) else {
            return (false, false);
        };
        open.get_or_insert_with(|| {
            Box::new(ShardEdit::open(frozen, |name| self::hash(hasher, name)))
        })
        .change(hash, name, fresh, change)
    }
}

/// Freezes all names into as many shards as they need.
fn spread(all: &ShardEdit, hasher: &RandomState) -> NameTable {
    let bits = bits_for(all.len());
    let shift = u64::BITS - bits;
    let sealed = all.seal_into(
        1 << bits,
        |name| hash(hasher, name),
        |hash| shard_of(hash, shift),
    );
    let mut shards = Grouped::default().edit();
    let mut len = 0;
    for (at, shard) in sealed.into_iter().enumerate() {
        len += shard.len();
        if let Some(place) = shards.get_mut(at) {
            *place = shard;
        }
    }
    NameTable {
        shards: shards.seal(),
        shift,
        len,
        hasher: hasher.clone(),
    }
}

/// Spreads a table's names over more shards.
fn respread(table: &NameTable) -> NameTable {
    let octets = table.shards.iter().map(Shard::memory).sum();
    let mut all = ShardEdit::with_capacity(table.len, octets);
    for (name, record) in table.shards.iter().flat_map(Shard::iter) {
        all.change(table.hash(name), name, record, |_| {});
    }
    spread(&all, &table.hasher)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::model::{LowerName, NodeIndex};

    /// The apexes of the tests: the second zone lies inside the first, two labels below.
    const APEXES: [&str; 2] = ["z", "c.b.z"];

    fn name(text: &str) -> LowerName {
        text.parse().unwrap()
    }

    /// Gives the home of a name by the longest apex.
    fn home(name: &LowerName) -> Home {
        let apexes = APEXES.map(self::name);
        let (zone, apex) = (0..)
            .zip(&apexes)
            .filter(|(_, apex)| name.as_ref().is_at_or_below(apex.as_ref()))
            .max_by_key(|(_, apex)| apex.as_wire().len())
            .unwrap();
        Home {
            zone: ZoneIndex(zone),
            apex_octets: apex.as_wire().len(),
        }
    }

    /// What stands at a name.
    type Stands = (Option<NodeIndex>, Option<(ServiceIndex, bool)>);

    /// Says what a lookup must find: a name exists when something stands there or below.
    fn expected(model: &BTreeMap<LowerName, Stands>, name: &LowerName) -> Option<Found> {
        let below = |other: &LowerName| other.as_ref().is_at_or_below(name.as_ref());
        let (node, service) = model.get(name).copied().unwrap_or_default();
        model.keys().any(below).then(|| Found {
            zone: home(name).zone,
            node,
            service: service.map(|(index, _)| index),
            is_cname: service.is_some_and(|(_, is_cname)| is_cname),
        })
    }

    /// All names of up to three labels below an apex.
    fn universe() -> Vec<LowerName> {
        let labels = ["a", "b", "c", "*"];
        let mut names: Vec<LowerName> = APEXES.map(name).into();
        let mut last = names.clone();
        for _ in 0..3 {
            last = last
                .iter()
                .flat_map(|name| labels.map(|label| name.prepend(label.as_bytes()).unwrap()))
                .collect();
            names.extend(last.iter().cloned());
        }
        names.sort();
        names.dedup();
        names
    }

    /// Puts both apexes in.
    fn zones() -> (NameTable, BTreeMap<LowerName, Stands>) {
        let mut edit = NamesEdit::new(&NameTable::default());
        let mut model = BTreeMap::new();
        for apex in APEXES.map(name) {
            edit.change(apex.as_ref(), home(&apex), |r| r.node = Some(NodeIndex(0)));
            model.insert(apex, (Some(NodeIndex(0)), None));
        }
        edit.adopt(name("b.z").as_ref(), home(&name("b.z")));
        (edit.seal(), model)
    }

    proptest! {
        #[test]
        fn the_table_agrees_with_a_map(
            steps in prop::collection::vec(
                (any::<prop::sample::Index>(), prop::option::of(0..9_u32), prop::option::of((0..9_u32, any::<bool>())), any::<bool>()),
                0..120,
            ),
        ) {
            let universe = universe();
            let (mut table, mut model) = zones();
            let mut edit = NamesEdit::new(&table);
            for (at, node, service, seals) in steps {
                let name = at.get(&universe);
                let is_apex = APEXES.map(self::name).contains(name);
                let node = node.or_else(|| is_apex.then_some(0)).map(NodeIndex);
                let service = service.map(|(index, is_cname)| (ServiceIndex(index), is_cname));
                edit.change(name.as_ref(), home(name), |record| {
                    record.node = node;
                    record.service = service;
                });
                model.insert(name.clone(), (node, service));
                if node.is_none() && service.is_none() {
                    model.remove(name);
                }
                prop_assert_eq!(edit.get(name.as_ref()).map(|r| r.found()), expected(&model, name));
                if seals {
                    table = edit.seal();
                    edit = NamesEdit::new(&table);
                }
            }
            table = edit.seal();
            for name in &universe {
                prop_assert_eq!(table.find(name.as_ref()), expected(&model, name), "{}", name);
            }
            let existing = universe.iter().filter(|name| expected(&model, name).is_some()).count();
            prop_assert_eq!((table.len(), table.iter().count()), (existing, existing));
        }
    }

    /// Fills a table in steps, so that it spreads over more shards on the way.
    fn filled(count: u32, step: usize) -> NameTable {
        let mut table = zones().0;
        let all: Vec<u32> = (0..count).collect();
        for chunk in all.chunks(step) {
            let mut edit = NamesEdit::new(&table);
            for &n in chunk {
                let name = name(&format!("svc-{n}.z"));
                let service = Some((ServiceIndex(n), n % 3 == 0));
                edit.change(name.as_ref(), home(&name), |record| {
                    record.service = service
                });
            }
            table = edit.seal();
        }
        table
    }

    #[test]
    fn a_name_that_is_gone_stays_gone_when_cleared_again() {
        let mut edit = NamesEdit::new(&zones().0);
        let name = name("a.z");
        for service in [Some((ServiceIndex(1), false)), None, None] {
            edit.change(name.as_ref(), home(&name), |record| {
                record.service = service
            });
        }
        assert_eq!(edit.get(name.as_ref()), None);
        assert_eq!(edit.seal().find(name.as_ref()), None);
    }

    #[test]
    fn nothing_is_lost_while_shards_multiply() {
        let table = filled(40_000, 700);
        assert!(table.shards.len() > 64);
        assert_eq!(table.len(), 40_003);
        for n in 0..40_000 {
            let name = name(&format!("svc-{n}.z"));
            let found = table.find(name.as_ref()).unwrap();
            assert_eq!(
                (found.service, found.is_cname),
                (Some(ServiceIndex(n)), n % 3 == 0)
            );
        }
        for absent in ["svc-40000.z", "svc-.z", "z.z", "."] {
            assert_eq!(table.find(name(absent).as_ref()), None, "{absent}");
        }
    }

    #[test]
    fn stages_find_what_find_finds() {
        let table = filled(500, 500);
        for n in 0..1000 {
            let name = name(&format!("svc-{n}.z"));
            let hash = table.hash(name.as_ref());
            table.prefetch(hash);
            let candidate = table.candidate(hash);
            let found = table.confirm(hash, candidate, name.as_ref());
            assert_eq!(found, table.find(name.as_ref()));
            assert_eq!(found.is_some(), n < 500);
            if let (Some(found), Some(candidate)) = (found, candidate) {
                // Another record with this tag may stand before; with 500 names in 64 shards that is rare, not wrong.
                let likely = table.likely_service(hash, candidate);
                assert!(likely == found.service || likely.is_some());
            }
        }
    }

    #[test]
    fn a_change_copies_one_shard() {
        let before = filled(2000, 2000);
        let mut edit = NamesEdit::new(&before);
        let name = name("svc-7.z");
        edit.change(name.as_ref(), home(&name), |record| {
            record.service = Some((ServiceIndex(9999), false));
        });
        let after = edit.seal();
        let copied = before
            .shards
            .iter()
            .zip(after.shards.iter())
            .filter(|(a, b)| !a.is_shared_with(b))
            .count();
        assert_eq!(copied, 1);
        let service = |table: &NameTable| table.find(name.as_ref()).unwrap().service;
        assert_eq!(service(&before), Some(ServiceIndex(7)));
        assert_eq!(service(&after), Some(ServiceIndex(9999)));
    }

    #[test]
    fn all_gone_leaves_nothing() {
        let before = filled(3000, 3000);
        let mut edit = NamesEdit::new(&before);
        for n in 0..3000 {
            let name = name(&format!("svc-{n}.z"));
            edit.change(name.as_ref(), home(&name), |record| record.service = None);
        }
        let after = edit.seal();
        assert_eq!(after.len(), 3);
        assert!(after.memory() < before.memory() / 20);
    }
}
