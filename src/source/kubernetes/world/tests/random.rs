//! Random events: whatever came in between, the same objects make the same shards.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Objects of each kind.
const OBJECTS: u8 = 3;

/// One object in one of its looks.
fn look(watched: Watched, which: u8, look: u8) -> Record {
    let pick = |count: u8| look % count;
    let common = match pick(6) {
        0 => said(&[]),
        1 => enabled(&[]),
        2 => said(&[("hostname", "x.example.com")]),
        3 => enabled(&[("weight", "2"), ("drain", "2027-01-15T08:00:10Z/10s")]),
        4 => enabled(&[("health-check", "endpoints"), ("ttl", "9")]),
        _ => enabled(&[("min-ready-endpoints", "50%"), ("fence", "*->*")]),
    };
    let host = ["a.example.com", "b.example.com", "*.example.com"][usize::from(pick(3))];
    let backend = [("s0", true), ("s1", true), ("s2", look < 12)][usize::from((look / 3) % 3)];
    match watched {
        Watched::Services if look % 8 == 6 => ServiceRecord {
            is_load_balancer: false,
            is_headless: true,
            entries: Ingresses::default(),
            ..service(enabled(&[("clusterset-name", "true")]))
        }
        .into(),
        Watched::Services => ServiceRecord {
            is_load_balancer: look != 7,
            publishes_not_ready: look % 4 == 1,
            ..service(common)
        }
        .into(),
        Watched::EndpointSlices => {
            let service = format!("s{}", (which + look / 7) % OBJECTS);
            let endpoint = |at: u8| SliceEndpoint {
                label: format!("{service}-{at}").parse().unwrap(),
                address: [10, 1, which, at + look % 2].into(),
                is_ready: at < pick(3),
            };
            SliceRecord {
                is_headless: look.is_multiple_of(5),
                first: (0..3).map(endpoint).collect(),
                ..slice(&service, u32::from(pick(3)), 3)
            }
            .into()
        }
        Watched::Ingresses => ingress(common, &[host], &[backend]).into(),
        Watched::Gateways => {
            let mut record = gateway(common, vec![listener("a", host), listener("b", "")]);
            record.unready = (look % 5 == 4).then(|| "not yet".into());
            record.listeners[0].attached = u32::from(look);
            record.into()
        }
        _ => {
            let at = format!("g{}", look % OBJECTS);
            let section = if look.is_multiple_of(2) { "" } else { "#b" };
            let parents = vec![parent(&format!("{at}{section}"))];
            let mut record = route(common, &[host], parents);
            record.backends = backs(&[backend]);
            record.into()
        }
    }
}

/// Names an object: `s0`, `e1`, `i2`.
fn label(watched: Watched, which: u8) -> String {
    let letter = match watched {
        Watched::Services => 's',
        Watched::EndpointSlices => 'e',
        Watched::Ingresses => 'i',
        Watched::Gateways => 'g',
        _ => 'r',
    };
    format!("{letter}{which}")
}

const PLAYED: [Watched; 5] = [
    Watched::Services,
    Watched::EndpointSlices,
    Watched::Ingresses,
    Watched::Gateways,
    Watched::HttpRoutes,
];

/// What may happen to one kind.
#[derive(Clone, Debug)]
enum Step {
    Put(usize, u8, u8),
    Gone(usize, u8),
    /// A complete list of these looks; `None`: not there.
    List(usize, Vec<Option<u8>>),
    /// A list that breaks off after the first.
    Broken(usize, u8),
    Odd(usize, u8),
    Unserved(usize),
    Take,
    Later,
    Back,
    Limit(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let kind = 0..PLAYED.len();
    let which = 0..OBJECTS;
    prop_oneof![
        12 => (kind.clone(), which.clone(), 0..24_u8).prop_map(|(kind, which, look)| Step::Put(kind, which, look)),
        4 => (kind.clone(), which.clone()).prop_map(|(kind, which)| Step::Gone(kind, which)),
        3 => (kind.clone(), prop::collection::vec(prop::option::of(0..24_u8), usize::from(OBJECTS)))
            .prop_map(|(kind, looks)| Step::List(kind, looks)),
        1 => (kind.clone(), 0..24_u8).prop_map(|(kind, look)| Step::Broken(kind, look)),
        1 => (kind.clone(), which).prop_map(|(kind, which)| Step::Odd(kind, which)),
        1 => kind.prop_map(Step::Unserved),
        4 => Just(Step::Take),
        2 => Just(Step::Later),
        1 => Just(Step::Back),
        1 => (0..4_usize).prop_map(Step::Limit),
    ]
}

/// The rules of the play: no guard, which remembers what was.
fn rules(limit: usize) -> Rules {
    let mut rules = Rules {
        monitors_per_namespace: limit,
        ..Rules::default()
    };
    rules.mass_deletion.hold = false;
    rules
}

/// Plays one step; `there` has what is there afterwards, by kind and name.
fn play_step(play: &mut Play, there: &mut BTreeMap<(usize, u8), u8>, step: Step) {
    match step {
        Step::Put(kind, which, number) => {
            let watched = PLAYED[kind];
            play.put(&label(watched, which), look(watched, which, number));
            there.insert((kind, which), number);
        }
        Step::Gone(kind, which) => {
            let watched = PLAYED[kind];
            play.gone(watched, &label(watched, which));
            there.remove(&(kind, which));
        }
        Step::List(kind, looks) => {
            there.retain(|(other, _), _| *other != kind);
            for (which, number) in (0..).zip(looks) {
                if let Some(number) = number {
                    there.insert((kind, which), number);
                }
            }
            list(play, there, kind);
        }
        Step::Broken(kind, number) => {
            play.event(PLAYED[kind], Event::Listing);
            play_step(play, there, Step::Put(kind, 0, number));
        }
        Step::Odd(kind, which) => {
            let watched = PLAYED[kind];
            let odd = Event::Unreadable(key(&label(watched, which)), refusal("spec"));
            play.event(watched, odd);
        }
        Step::Unserved(kind) => {
            play.event(PLAYED[kind], Event::Unserved);
        }
        Step::Take => {
            play.take();
        }
        Step::Later => {
            play.second += 7;
            play.take();
        }
        Step::Back => {
            play.second -= 9;
            play.take();
        }
        Step::Limit(limit) => play.world.set_rules(Arc::new(rules(limit))),
    }
}

/// Lists what is there of one kind.
fn list(play: &mut Play, there: &BTreeMap<(usize, u8), u8>, kind: usize) {
    let watched = PLAYED[kind];
    let of_kind = there.iter().filter(|((other, _), _)| *other == kind);
    let of_kind: Vec<(String, Record)> = of_kind
        .map(|((_, which), number)| (label(watched, *which), look(watched, *which, *number)))
        .collect();
    let of_kind = of_kind
        .iter()
        .map(|(label, record)| (label.as_str(), record.clone()));
    play.list(watched, of_kind.collect());
}

/// Lists everything.
fn list_all(play: &mut Play, there: &BTreeMap<(usize, u8), u8>) {
    for kind in 0..PLAYED.len() {
        list(play, there, kind);
    }
}

proptest! {
    /// A world that saw anything and a new one end alike. What is remembered on purpose is not played here: addresses and
    /// acceptance stay as they are.
    #[test]
    fn whatever_came_in_between(steps in prop::collection::vec(step(), 0..60), limit in 0..4_usize) {
        let mut play = Play::with(rules(2), Vec::new());
        let mut there = BTreeMap::new();
        for step in steps {
            play_step(&mut play, &mut there, step);
        }
        list_all(&mut play, &there);
        play.world.set_rules(Arc::new(rules(limit)));
        // Gateways come and go, and their Routes keep the names of before: forgotten by a moment without.
        let routes: BTreeMap<_, _> = there.extract_if(.., |(kind, _), _| *kind == 4).collect();
        list_all(&mut play, &there);
        play.take();
        there.extend(routes);
        list_all(&mut play, &there);
        play.take();

        let mut fresh = Play::with(rules(limit), Vec::new());
        fresh.second = play.second;
        list_all(&mut fresh, &there);
        fresh.take();
        prop_assert_eq!(&play.shards, &fresh.shards);
        prop_assert_eq!(play.world.due(), fresh.world.due());
        prop_assert_eq!(play.world.overview(), fresh.world.overview());

        // A restart from the last good state, whatever the order of the lists, changes nothing.
        let held = play.shards.values().cloned().collect();
        let mut again = Play::with(rules(limit), held);
        again.second = play.second;
        prop_assert_eq!(again.take(), []);
        for kind in (0..PLAYED.len()).rev() {
            list(&mut again, &there, kind);
        }
        again.take();
        prop_assert_eq!(&again.shards, &fresh.shards);
    }

    /// With the guard: nothing that is there is ever held back, and what is gone goes in the end.
    #[test]
    fn the_guard_holds_for_a_while_and_no_longer(steps in prop::collection::vec(step(), 0..60)) {
        guarded(steps)?;
    }
}

/// Plays with the guard, and compares with a world that never saw what is gone.
fn guarded(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut rules = rules(2);
    rules.mass_deletion.hold = true;
    rules.mass_deletion.at_least = 2;
    let mut play = Play::with(rules.clone(), Vec::new());
    let mut there = BTreeMap::new();
    for step in steps
        .into_iter()
        .filter(|step| !matches!(step, Step::Limit(_)))
    {
        play_step(&mut play, &mut there, step);
    }
    there.retain(|(kind, _), _| *kind != 4);
    list_all(&mut play, &there);
    play.take();
    let mut fresh = Play::with(rules, Vec::new());
    fresh.second = play.second;
    list_all(&mut fresh, &there);
    fresh.take();
    for (object, shard) in &fresh.shards {
        prop_assert_eq!(play.shards.get(object), Some(shard));
    }
    play.take_at(play.second + 300);
    fresh.take_at(play.second);
    prop_assert_eq!(&play.shards, &fresh.shards);
    prop_assert_eq!(play.world.overview().held, None);
    Ok(())
}

/// Gateways that are served no more were held for a Route that was served, and went only at the next look after it.
#[test]
fn what_is_held_for_a_route_goes_with_it() {
    let steps = vec![
        Step::List(3, vec![None; 3]),
        Step::List(4, vec![None, Some(1), None]),
        Step::Take,
        Step::List(4, vec![Some(11), None, None]),
        Step::Put(0, 0, 0),
        Step::Unserved(3),
        Step::Odd(3, 2),
        Step::Take,
    ];
    guarded(steps).unwrap();
}
