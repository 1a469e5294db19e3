//! Mass deletions of a whole cluster: by lists, one by one, by rules. `guard.rs` tests the rule itself.

use super::*;

fn labels(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("s{number:02}")).collect()
}

fn full(count: usize) -> Play {
    let mut play = Play::listed();
    for label in labels(count) {
        play.put(&label, service(enabled(&[])));
    }
    play.take();
    play
}

#[test]
fn an_empty_list_empties_nothing() {
    let mut play = full(12);
    play.list(Watched::Services, vec![]);
    assert_eq!(play.take_at(1), []);
    assert_eq!(play.world.due(), Some(at(301)));
    let held = play.world.overview().held.unwrap();
    assert_eq!((held.since, held.until, held.count), (at(1), at(301), 12));
    // Some come back, as they were and otherwise; the rest goes when its time is over.
    play.put("s00", service(enabled(&[])));
    assert_eq!(play.take_at(2), []);
    play.put("s01", service(enabled(&[("weight", "3")])));
    assert_eq!(play.take_at(3).len(), 1);
    assert_eq!(play.take_at(300), []);
    assert_eq!(play.take_at(301).len(), 10);
    assert_eq!(play.shards.len(), 2);
    assert_eq!(play.world.overview().held, None);
    assert_eq!(play.world.due(), None);
}

#[test]
fn one_by_one_is_a_mass_too() {
    let mut play = full(12);
    for (second, label) in (0..).zip(labels(12)) {
        play.gone(Watched::Services, &label);
        play.take_at(second);
    }
    assert_eq!(play.shards.len(), 3);
}

#[test]
fn few_of_many_go_at_once() {
    let mut play = full(30);
    for label in labels(10) {
        play.gone(Watched::Services, &label);
    }
    assert_eq!(play.take().len(), 10);
}

#[test]
fn what_was_about_to_go_counts_the_same() {
    let mut play = full(12);
    for label in labels(12) {
        let mut record = service(enabled(&[]));
        record.common.is_deleting = true;
        play.put(&label, record);
    }
    play.take();
    for label in labels(12) {
        play.gone(Watched::Services, &label);
    }
    assert_eq!(play.take(), []);
    assert!(play.shards.values().all(|shard| shard.is_drained));
}

#[test]
fn a_last_good_state_is_guarded_too() {
    let held: Vec<Shard> = full(12).shards.into_values().collect();
    let mut play = Play::with(Rules::default(), held);
    play.list(Watched::Services, vec![]);
    assert_eq!(play.take_at(0), []);
    assert_eq!(play.take_at(300).len(), 12);
}

#[test]
fn rules_and_annotations_pass_the_guard_too() {
    let mut play = full(12);
    let blue = Rules {
        class: "blue".into(),
        ..Rules::default()
    };
    play.world.set_rules(Arc::new(blue.clone()));
    assert_eq!(play.take(), []);
    play.world.set_rules(Arc::default());
    assert_eq!(play.take(), []);
    assert_eq!(play.world.overview().held, None);
    for label in labels(12) {
        play.put(&label, service(said(&[])));
    }
    assert_eq!(play.take(), []);
    assert_eq!(play.world.overview().held.unwrap().count, 12);
    // Switched off, it lets go what it holds.
    let mut rules = Rules::default();
    rules.mass_deletion.hold = false;
    play.world.set_rules(Arc::new(rules));
    assert_eq!(play.take().len(), 12);
}

#[test]
fn what_is_held_and_odd_is_there() {
    let mut play = full(12);
    play.list(Watched::Services, vec![]);
    play.take_at(0);
    let odd = Event::Unreadable(key("s00"), refusal("metadata"));
    play.event(Watched::Services, odd);
    assert_eq!(play.take_at(300).len(), 11);
    assert_eq!(play.shards.len(), 1);
}

#[test]
fn routes_that_lose_the_word_of_their_gateway_are_held() {
    let mut play = Play::listed();
    play.put(
        "gw",
        gateway(enabled(&[]), vec![listener("a", "*.example.com")]),
    );
    for label in labels(12) {
        let host = format!("{label}.example.com");
        play.put(&label, route(said(&[]), &[&host], vec![parent("gw")]));
    }
    play.take();
    play.gone(Watched::Gateways, "gw");
    assert_eq!(play.take_at(0), []);
    play.put(
        "gw",
        gateway(enabled(&[]), vec![listener("a", "*.example.com")]),
    );
    assert_eq!(play.take_at(1), []);
    assert_eq!(play.world.overview().held, None);
}
