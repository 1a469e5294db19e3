//! The table of names against a map, and what a change copies.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::edit::{Home, NamesEdit};
use super::line::Steered;
use super::shard::Shard;
use super::table::NameTable;
use crate::model::{LowerName, NodeIndex, PolicyIndex, Pools, ServiceIndex, Ttl, ZoneIndex};
use crate::zone::{Found, NameTree};

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

/// Each service has a policy and a TTL by its own number; every fifth has more than an entry takes.
fn steered(index: ServiceIndex) -> Option<Steered> {
    (!index.0.is_multiple_of(5)).then(|| Steered {
        pools: Pools::default(),
        policy: PolicyIndex(index.0 + 1),
        ttl: Ttl::new(index.0),
    })
}

/// Finds a name with what stands beside it.
fn whole(table: &NameTable, name: &LowerName) -> Option<(Found, Option<Steered>)> {
    let hash = table.hash(name.as_ref());
    table.prefetch(hash);
    let candidate = table.candidate(hash, name.as_wire().len());
    let (found, steered) = table.confirm(hash, candidate, name.as_ref())?;
    Some((found, steered.cloned()))
}

/// Says what [`whole`] must give.
fn with_steered(found: Option<Found>) -> Option<(Found, Option<Steered>)> {
    Some((found?, found?.service.and_then(steered)))
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
    (edit.seal(&steered), model)
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
                table = edit.seal(&steered);
                edit = NamesEdit::new(&table);
            }
        }
        table = edit.seal(&steered);
        for name in &universe {
            let expected = expected(&model, name);
            prop_assert_eq!(table.find(name.as_ref()), expected, "{}", name);
            prop_assert_eq!(whole(&table, name), with_steered(expected), "{}", name);
        }
        let existing = universe.iter().filter(|name| expected(&model, name).is_some()).count();
        let walked = table.shards.iter().flat_map(Shard::iter);
        let walked = walked.filter(|(name, _)| universe.binary_search(&name.name().to_lower()).is_ok());
        prop_assert_eq!((table.len(), walked.count()), (existing, existing));
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
        table = edit.seal(&steered);
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
    assert_eq!(edit.seal(&steered).find(name.as_ref()), None);
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
        let found = whole(&table, &name);
        assert_eq!(found, with_steered(table.find(name.as_ref())));
        assert_eq!(found.is_some(), n < 500);
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
    let after = edit.seal(&steered);
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
    let after = edit.seal(&steered);
    assert_eq!(after.len(), 3);
    assert!(after.memory() < before.memory() / 20);
}

/// Makes a name of that many octets: 63 to a label, the last but one as long as fits, then `.z`.
fn long(octets: usize, salt: u8) -> LowerName {
    let mut labels = Vec::new();
    let mut left = octets - 3;
    while left > 0 {
        // No label of nothing may be left over.
        let taken = if left == 65 { 63 } else { left.min(64) };
        let letters: String = (1..taken).map(|_| char::from(b'a' + salt)).collect();
        labels.push(letters);
        left -= taken;
    }
    labels.push("z".to_owned());
    name(&labels.join("."))
}

#[test]
fn names_of_every_length_are_told_apart() {
    let lengths = || 5..=255;
    let mut edit = NamesEdit::new(&zones().0);
    for octets in lengths() {
        let name = long(octets, 0);
        assert_eq!(name.as_wire().len(), octets);
        let index = ServiceIndex(u32::try_from(octets).unwrap());
        edit.change(name.as_ref(), home(&name), |record| {
            record.service = Some((index, false));
        });
    }
    // Once more through open shards.
    let mut edit = NamesEdit::new(&edit.seal(&steered));
    for octets in lengths() {
        edit.touch(long(octets, 0).as_ref(), ZoneIndex(0));
    }
    let table = edit.seal(&steered);
    for octets in lengths() {
        let index = ServiceIndex(u32::try_from(octets).unwrap());
        let (found, beside) = whole(&table, &long(octets, 0)).unwrap();
        assert_eq!(
            (found.service, beside),
            (Some(index), steered(index)),
            "{octets}"
        );
        assert_eq!(whole(&table, &long(octets, 3)), None, "{octets}");
    }
}

#[test]
fn a_touched_name_takes_up_what_its_service_is() {
    let before = filled(200, 200);
    let name = name("svc-7.z");
    let mut edit = NamesEdit::new(&before);
    edit.touch(name.as_ref(), ZoneIndex(0));
    let other = |index: ServiceIndex| {
        let ttl = Ttl::new(7777);
        steered(index).map(|own| Steered { ttl, ..own })
    };
    let after = edit.seal(&other);
    assert_eq!(whole(&before, &name).unwrap().1, steered(ServiceIndex(7)));
    assert_eq!(whole(&after, &name).unwrap().1, other(ServiceIndex(7)));
    assert_eq!(before.len(), after.len());
}
