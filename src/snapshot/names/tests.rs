//! The table of names against a map, and what a change copies.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::edit::{Home, NamesEdit};
use super::table::NameTable;
use crate::model::{LowerName, NodeIndex, ServiceIndex, ZoneIndex};
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
