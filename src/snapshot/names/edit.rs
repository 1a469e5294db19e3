//! Changing a table of names: names bring their ancestors with them.

use foldhash::fast::RandomState;

use super::shard::{Record, Shard};
use super::shard_edit::{ShardEdit, SteeredOf};
use super::table::{FULL_SHARD, MAX_BITS, MIN_BITS, NameTable, bits_for, hash, shard_of};
use crate::model::{NameRef, ZoneIndex};
use crate::snapshot::grouped::Grouped;

/// Where a name is put: its zone, and how long that zone's apex is. Ancestors are made up to the apex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::snapshot) struct Home {
    /// The longest zone that the name lies in.
    pub(in crate::snapshot) zone: ZoneIndex,
    /// Octets of the apex's wire form.
    pub(in crate::snapshot) apex_octets: usize,
}

/// A table being changed.
#[derive(Debug)]
pub(in crate::snapshot) struct NamesEdit {
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
    pub(in crate::snapshot) fn new(table: &NameTable) -> Self {
        let shards = table.shards.len();
        Self {
            open: Open::Shards(std::iter::repeat_with(|| None).take(shards).collect()),
            table: table.clone(),
        }
    }

    /// Begins to make a table from nothing, for about that many names with that many octets. The hash is that of `table`.
    pub(in crate::snapshot) fn from_nothing(
        table: &NameTable,
        names: usize,
        octets: usize,
    ) -> Self {
        Self {
            table: NameTable::with_bits(MIN_BITS, table.hasher.clone()),
            open: Open::Whole(ShardEdit::with_capacity(names, octets)),
        }
    }

    /// Finds a name's record as it stands now.
    pub(in crate::snapshot) fn get(&self, name: NameRef<'_>) -> Option<Record> {
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
    pub(in crate::snapshot) fn change(
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
    pub(in crate::snapshot) fn adopt(&mut self, name: NameRef<'_>, home: Home) {
        self.change(name, home, |record| record.children += 1);
    }

    /// Has the shard of a name made anew: what its service is has changed.
    pub(in crate::snapshot) fn touch(&mut self, name: NameRef<'_>, zone: ZoneIndex) {
        self.change_one(name, zone, |_| {});
    }

    /// Freezes. Untouched shards stay shared with the table before, unless there are so many names that there must be more
    /// shards. Entries of the others take what `steered` gives of their services.
    pub(in crate::snapshot) fn seal(self, steered: SteeredOf<'_>) -> NameTable {
        let Self { table, open } = self;
        let edits = match open {
            Open::Whole(all) => return spread(&all, &table.hasher, steered),
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
                *shard = edit.seal(|name| hash(&table.hasher, name), steered);
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
            respread(&table, steered)
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
fn spread(all: &ShardEdit, hasher: &RandomState, steered: SteeredOf<'_>) -> NameTable {
    let bits = bits_for(all.len());
    let shift = u64::BITS - bits;
    let sealed = all.seal_into(
        1 << bits,
        (|name| hash(hasher, name), |hash| shard_of(hash, shift)),
        steered,
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
fn respread(table: &NameTable, steered: SteeredOf<'_>) -> NameTable {
    let octets = table.shards.iter().map(Shard::memory).sum();
    let mut all = ShardEdit::with_capacity(table.len, octets);
    for (name, entry) in table.shards.iter().flat_map(Shard::iter) {
        let name = name.name();
        all.change(table.hash(name), name, entry.record(), |_| {});
    }
    spread(&all, &table.hasher, steered)
}
