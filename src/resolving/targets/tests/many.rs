//! Many targets: how many are asked for at once, when, and which never.

use std::collections::{BTreeSet, HashSet};

use super::super::flatten::{Flattened, MAX_TARGETS, TargetQuestion};
use super::super::known::Family;
use super::super::queue::{FAILED_IN_FLIGHT, IN_FLIGHT, NEW_IN_FLIGHT};
use super::super::table::TargetState;
use super::{answer, at, failed, name, names, ours};
use crate::model::{LowerName, Moment};

fn many(count: usize) -> BTreeSet<LowerName> {
    (0..count)
        .map(|number| name(&format!("lb{number:05}.example.net")))
        .collect()
}

#[test]
fn at_most_64_questions_are_out() {
    let mut flattened = Flattened::new(1);
    flattened.want(&many(500), &ours(&[]), at(0));
    let mut asked = HashSet::new();
    let mut out = flattened.due(at(0));
    assert_eq!(out.len(), NEW_IN_FLIGHT);
    while let Some(question) = out.pop() {
        // Nothing is due before there is a place, and then it is due at once.
        assert_eq!(flattened.due(at(0)), []);
        assert!(flattened.next_due().is_none_or(|next| next > at(0)));
        assert!(asked.insert((question.name.clone(), question.family)));
        flattened.answered(&question, answer("192.0.2.1", 60), at(0));
        out.extend(flattened.due(at(0)));
        assert!(out.len() <= NEW_IN_FLIGHT);
        if out.len() < NEW_IN_FLIGHT {
            break;
        }
    }
    for question in out {
        assert!(asked.insert((question.name.clone(), question.family)));
        flattened.answered(&question, failed(), at(0));
    }
    assert_eq!(asked.len(), 1000);
    // What was answered may take all places.
    assert_eq!(flattened.due(at(100)).len(), IN_FLIGHT);
}

#[test]
fn names_without_answers_keep_nobody_waiting() {
    let victim = name("elb.example.org");
    let well = |question: &TargetQuestion| match question.family {
        Family::V4 => answer("192.0.2.1", 60),
        Family::V6 => answer("2001:db8::1", 60),
    };
    let mut flattened = Flattened::new(1);
    flattened.want(&names(&["elb.example.org"]), &ours(&[]), at(0));
    for question in flattened.due(at(0)) {
        flattened.answered(&question, well(&question), at(0));
    }
    // Thousands of names come whose servers are silent: their questions end after 20 s, and not with an answer.
    let mut wanted = many(5000);
    wanted.insert(victim.clone());
    flattened.want(&wanted, &ours(&[]), at(1));
    let mut silent: Vec<(u64, TargetQuestion)> = Vec::new();
    let mut asked = Vec::new();
    for second in 1..2000 {
        let ended = silent.extract_if(.., |(until, _)| *until <= second);
        for (_, question) in ended.collect::<Vec<_>>() {
            flattened.answered(&question, failed(), at(second));
        }
        for question in flattened.due(at(second)) {
            if question.name == victim {
                asked.push((question.family, second));
                flattened.answered(&question, well(&question), at(second));
            } else {
                silent.push((second + 20, question));
            }
        }
        assert!(silent.len() <= NEW_IN_FLIGHT + FAILED_IN_FLIGHT);
    }
    // Whoever is answered is asked in time, both families.
    for family in [Family::V4, Family::V6] {
        let of = asked.iter().filter(|(of, _)| *of == family);
        let times: Vec<u64> = of.map(|(_, second)| *second).collect();
        for two in times.windows(2) {
            assert!(two[1] - two[0] <= 60, "{two:?}");
        }
        assert!(times.len() >= 30, "{}", times.len());
    }
}

#[test]
fn equal_seeds_ask_at_equal_times() {
    let trace = |seed| {
        let mut flattened = Flattened::new(seed);
        flattened.want(&many(40), &ours(&[]), at(0));
        let mut trace: Vec<(Moment, TargetQuestion)> = Vec::new();
        while trace.len() < 400 {
            let now = flattened.next_due().unwrap();
            for question in flattened.due(now) {
                flattened.answered(&question, answer("192.0.2.1", 60), now);
                trace.push((now, question));
            }
        }
        trace
    };
    assert_eq!(trace(3), trace(3));
    assert_ne!(trace(3), trace(4));
    // They spread: what began together is not asked together.
    let moments: HashSet<u128> = trace(3)[80..]
        .iter()
        .map(|(now, _)| now.0.as_millis() / 100)
        .collect();
    assert!(moments.len() > 50, "{moments:?}");
}

#[test]
fn places_of_forgotten_questions_come_back() {
    let mut flattened = Flattened::new(1);
    flattened.want(&many(100), &ours(&[]), at(0));
    let lost = flattened.due(at(0));
    flattened.want(&many(0), &ours(&[]), at(0));
    flattened.want(&many(100), &ours(&[]), at(0));
    assert_eq!(flattened.due(at(0)), []);
    for question in &lost {
        assert!(!flattened.answered(question, failed(), at(0)));
    }
    assert_eq!(flattened.due(at(0)).len(), NEW_IN_FLIGHT);
}

#[test]
fn our_own_zones_are_never_asked_for() {
    let own = ours(&["example.org", "svc.example.com"]);
    let mut flattened = Flattened::new(1);
    let wanted = names(&[
        "svc.example.com",
        "a.b.svc.example.com",
        "xsvc.example.com",
        "example.com",
    ]);
    flattened.want(&wanted, &own, at(0));
    let asked: BTreeSet<String> = flattened
        .due(at(0))
        .iter()
        .map(|question| question.name.to_string())
        .collect();
    assert_eq!(
        asked.into_iter().collect::<Vec<_>>(),
        ["example.com", "xsvc.example.com"]
    );
    let table = flattened.table();
    for text in ["svc.example.com", "a.b.svc.example.com"] {
        let known = table.get(&name(text)).unwrap();
        assert_eq!(known.state, TargetState::Own);
        assert!(
            known
                .error
                .as_deref()
                .unwrap()
                .contains("own zone svc.example.com")
        );
    }
    // Zones come and go.
    assert!(!flattened.want(&wanted, &own, at(0)));
    assert!(flattened.want(&wanted, &ours(&["example.com"]), at(0)));
    assert!(
        flattened
            .table()
            .iter()
            .all(|(_, known)| known.state == TargetState::Own)
    );
    assert_eq!(flattened.next_due(), None);
    assert!(flattened.want(&wanted, &ours(&[]), at(1)));
    assert_eq!(flattened.due(at(1)).len(), 8);
}

#[test]
fn targets_beyond_the_most_are_refused() {
    let mut flattened = Flattened::new(1);
    let mut wanted = many(MAX_TARGETS);
    flattened.want(&wanted, &ours(&[]), at(0));
    wanted.insert(name("a.example"));
    flattened.want(&wanted, &ours(&[]), at(0));
    // Those that were there stay, whatever the order of names. After a restart the order of names decides: only a limit of each
    // namespace, elsewhere, keeps one of them from taking all places.
    let table = flattened.table();
    let last = table.get(&name("a.example")).unwrap();
    assert_eq!(last.state, TargetState::Unresolved);
    assert!(last.error.as_deref().unwrap().contains("more than 65536"));
    let refused = table.iter().filter(|(_, known)| known.error.is_some());
    assert_eq!(refused.count(), 1);
    // There is room again.
    wanted.pop_last();
    flattened.want(&wanted, &ours(&[]), at(0));
    assert!(
        flattened
            .table()
            .get(&name("a.example"))
            .unwrap()
            .error
            .is_none()
    );
}
