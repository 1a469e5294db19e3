//! The ledger against what must hold of it, elections between clocks that do not agree, and objects as they are written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::inventory::{ObjectKind, ObjectRef};
use crate::model::Moment;

fn at(millis: u64) -> Moment {
    Moment(Duration::from_millis(millis))
}

fn object(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef {
        kind: ObjectKind::Service,
        namespace: namespace.into(),
        name: name.into(),
    }
}

fn statement(namespace: &str, reason: Reason, message: &str) -> Arc<Statement> {
    Arc::new(Statement::new(object(namespace, "web"), reason, message))
}

// === Ledger ===

/// Says all that is due up to a moment; gives what was said, and when.
fn say_all(
    ledger: &mut Ledger,
    mut now: Moment,
    end: Moment,
) -> Vec<(Moment, Arc<Statement>, u32)> {
    let mut said = Vec::new();
    loop {
        match ledger.next(now) {
            Next::Say(statement, count) => {
                ledger.said(&statement, (count + 1, false), now);
                said.push((now, statement, count));
            }
            Next::At(next) if next <= end => {
                assert!(next > now, "time stands still");
                now = next;
            }
            Next::At(_) | Next::Never => return said,
        }
    }
}

const HOUR: u64 = 3_600_000;

#[test]
fn what_stands_is_said_once_after_its_hold_and_a_warning_again() {
    let normal = statement("shop", Reason::Published, "here");
    let warning = statement("shop", Reason::NoHealthyCluster, "nothing");
    let mut ledger = Ledger::default();
    ledger.take(&[normal.clone(), warning.clone()], at(0));
    let said = say_all(&mut ledger, at(0), at(HOUR));
    let expected = [
        (at(1000), normal, 0),
        (at(10_000), warning.clone(), 0),
        (at(10_000 + HOUR / 2), warning, 1),
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_flip_is_damped_and_a_return_is_said_again_only_later() {
    let warning = statement("shop", Reason::NoHealthyCluster, "nothing");
    let standing = std::slice::from_ref(&warning);
    let mut ledger = Ledger::default();
    // It never stood for long enough.
    for second in 0..20_u64 {
        let standing = if second % 2 == 0 { standing } else { &[] };
        ledger.take(standing, at(second * 5000));
        assert!(say_all(&mut ledger, at(second * 5000), at(second * 5000)).is_empty());
    }
    ledger.take(standing, at(100_000));
    assert_eq!(say_all(&mut ledger, at(100_000), at(120_000)).len(), 1);
    ledger.take(&[], at(120_000));
    ledger.take(standing, at(130_000));
    let said = say_all(&mut ledger, at(130_000), at(HOUR / 4));
    // Five minutes after it was said first.
    assert_eq!(said, [(at(110_000 + 300_000), warning, 1)]);
}

#[test]
fn one_who_takes_over_says_what_stands_once_more_and_what_is_found_is_not_written() {
    let normal = statement("shop", Reason::Published, "here");
    let warning = statement("shop", Reason::InvalidAnnotation, "bad");
    let all = [normal.clone(), warning.clone()];
    let mut ledger = Ledger::default();
    ledger.take(&all, at(0));
    assert_eq!(say_all(&mut ledger, at(0), at(5000)).len(), 2);
    ledger.follow();
    assert_eq!(ledger.waiting(), 2);
    ledger.lead(at(60_000));
    for _ in 0..2 {
        let Next::Say(statement, 0) = ledger.next(at(60_000)) else {
            panic!("both are to be said");
        };
        ledger.said(&statement, (7, true), at(60_000));
    }
    assert_eq!(ledger.waiting(), 0);
    // The other may have said it half an hour ago.
    let said = say_all(&mut ledger, at(60_000), at(HOUR / 2));
    assert_eq!(said, [(at(60_000 + HOUR / 4), warning, 7)]);
}

#[test]
fn what_fails_is_tried_again_less_and_less_often_and_holds_up_nobody() {
    let bad = statement("a", Reason::InvalidAnnotation, "bad");
    let good = statement("b", Reason::InvalidAnnotation, "good");
    let mut ledger = Ledger::default();
    ledger.take(&[bad.clone(), good.clone()], at(0));
    let (mut tries, mut now) = (Vec::new(), at(0));
    let mut is_said = false;
    while now < at(HOUR / 4) {
        match ledger.next(now) {
            Next::Say(statement, _) if statement == bad => {
                tries.push(now.0.as_secs());
                ledger.failed(&statement, now);
            }
            Next::Say(statement, count) => {
                is_said = true;
                ledger.said(&statement, (count + 1, false), now);
            }
            Next::At(next) => now = next,
            Next::Never => break,
        }
    }
    assert!(is_said);
    assert_eq!(tries, [1, 6, 16, 36, 76, 156, 316, 616]);
}

#[test]
fn namespaces_have_turns_whatever_one_of_them_says() {
    let mut all: Vec<Arc<Statement>> = (0..5000)
        .map(|number| {
            let object = object("noisy", &format!("web-{number}"));
            Arc::new(Statement::new(object, Reason::InvalidAnnotation, "bad"))
        })
        .collect();
    let quiet = statement("quiet", Reason::Published, "here");
    all.push(quiet.clone());
    let mut ledger = Ledger::default();
    ledger.take(&all, at(0));
    let said = say_all(&mut ledger, at(0), at(3000));
    let place = said.iter().position(|(_, one, _)| *one == quiet);
    assert!(place.is_some_and(|place| place <= 1), "{place:?}");
}

#[test]
fn one_object_does_not_flood_the_others() {
    let mut ledger = Ledger::default();
    let mut count = 0;
    // Another fault every second.
    for second in 0..600_u64 {
        let bad = statement("shop", Reason::InvalidAnnotation, &format!("{second}"));
        ledger.take(&[bad], at(second * 1000));
        count += say_all(&mut ledger, at(second * 1000), at(second * 1000 + 999)).len();
        // What is new today was not there yesterday, and its hold is not over.
        let still = statement("shop", Reason::InvalidAnnotation, &format!("{second}"));
        ledger.take(&[still], at(second * 1000 + 999));
        count += say_all(
            &mut ledger,
            at(second * 1000 + 999),
            at(second * 1000 + 999),
        )
        .len();
    }
    assert!(count <= 27, "{count}");
}

#[test]
fn memory_is_bounded_and_what_finds_no_room_is_counted() {
    let all: Vec<Arc<Statement>> = (0..12_000)
        .map(|number| statement("shop", Reason::Published, &format!("{number}")))
        .collect();
    let mut ledger = Ledger::default();
    ledger.take(&all, at(0));
    assert_eq!((ledger.waiting(), ledger.left_out()), (10_000, 2000));
    // What is gone makes room.
    ledger.take(&all[2000..], at(1000));
    assert_eq!((ledger.waiting(), ledger.left_out()), (10_000, 0));
}

/// A step of a course: what stands from then on, as bits, and how long.
fn courses() -> impl Strategy<Value = Vec<(u16, u64, u8)>> {
    prop::collection::vec((any::<u16>(), 0..400_000_u64, 0..10_u8), 1..40)
}

proptest! {
    /// Whatever stands and falls, whatever fails: never more than the rate, never one twice within five minutes, and at the end
    /// everything that stands for long was said.
    #[test]
    fn a_ledger_keeps_the_rate_says_nothing_twice_and_everything_in_the_end(course in courses()) {
        let all: Vec<Arc<Statement>> = (0..16_usize)
            .map(|number| {
                let reason = Reason::ALL[number % Reason::ALL.len()];
                let object = object(["a", "b", "c"][number % 3], &format!("web-{}", number / 3));
                Arc::new(Statement::new(object, reason, &format!("{number}")))
            })
            .collect();
        let mut ledger = Ledger::default();
        let mut last: BTreeMap<Arc<Statement>, Moment> = BTreeMap::new();
        let mut writes: Vec<Moment> = Vec::new();
        let mut now = at(0);
        let course = course.into_iter().chain([(u16::MAX, 7_200_000, 0)]);
        for (bits, span, faults) in course {
            let standing = (0..16).filter(|bit| bits & (1 << bit) != 0);
            let standing: Vec<_> = standing.map(|bit| all[bit].clone()).collect();
            ledger.take(&standing, now);
            let end = now.after(Duration::from_millis(span));
            let mut faults = faults;
            loop {
                match ledger.next(now) {
                    Next::Say(one, count) => {
                        prop_assert!(standing.contains(&one), "it does not stand");
                        writes.push(now);
                        if faults > 0 {
                            faults -= 1;
                            ledger.failed(&one, now);
                            continue;
                        }
                        if let Some(before) = last.insert(one.clone(), now) {
                            prop_assert!(now.since(before) >= Duration::from_secs(300));
                        }
                        ledger.said(&one, (count + 1, false), now);
                    }
                    Next::At(next) if next <= end => {
                        prop_assert!(next > now);
                        now = next;
                    }
                    Next::At(_) | Next::Never => break,
                }
            }
            now = end;
        }
        prop_assert_eq!(last.len(), 16, "all of them stood for two hours");
        prop_assert_eq!(ledger.waiting(), 0);
        for (index, first) in writes.iter().enumerate() {
            let within = |span: u64| {
                let end = first.after(Duration::from_millis(span));
                writes[index..].iter().filter(|write| **write < end).count()
            };
            // 25 at once, and 5 a second.
            prop_assert!(within(1000) <= 25 + 5);
            prop_assert!(within(10_000) <= 25 + 50);
        }
    }
}

// === Election ===

/// What the server has: the Lease and its version.
#[derive(Default)]
struct Store {
    lease: Option<Lease>,
    version: u64,
}

impl Store {
    /// Does what is asked, if the version is right.
    fn put(&mut self, before: Option<&str>, holder: &str) -> Option<Lease> {
        let is_right = self.lease.as_ref().map(|lease| &*lease.version) == before;
        is_right.then(|| {
            self.version += 1;
            let lease = Lease {
                version: self.version.to_string().into(),
                holder: holder.into(),
                duration: Duration::from_secs(15),
                transitions: 0,
                acquired: None,
            };
            self.lease = Some(lease.clone());
            lease
        })
    }
}

/// What a server answers: the Lease, or that there is none; or that it stands otherwise.
type Served = Result<Option<Lease>, ()>;

impl Store {
    /// Does what is asked.
    fn serve(&mut self, ask: &Ask, me: &str) -> Served {
        match ask {
            Ask::Read => Ok(self.lease.clone()),
            Ask::Create => self.put(None, me).map(Some).ok_or(()),
            Ask::Take(before) | Ask::Renew(before) => {
                self.put(Some(&before.version), me).map(Some).ok_or(())
            }
        }
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug)]
struct Fate {
    /// Real milliseconds to the server, and back.
    there: u64,
    back: u64,
    /// It is lost on its way there, or back.
    lost_there: bool,
    lost_back: bool,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate =
        (0..6000_u64, 0..3000_u64, 0..10_u8, 0..10_u8).prop_map(|(there, back, a, b)| Fate {
            there,
            back,
            lost_there: a == 0,
            lost_back: b == 0,
        });
    prop::collection::vec(fate, 1..60)
}

/// A node with a clock of its own, and its request under way.
struct Voter {
    election: Election,
    /// Its clock runs so many thousandths as fast as time.
    rate: u64,
    offset: u64,
    fates: Vec<Fate>,
    turn: usize,
    under_way: Option<(Ask, Moment, Fate, u64)>,
    answer: Option<Served>,
    /// Requests that were given up and are still on their way, with when they arrive.
    ghosts: Vec<(Ask, u64)>,
}

impl Voter {
    fn new(me: &str, rate: u64, offset: u64, fates: Vec<Fate>) -> Self {
        Self {
            election: Election::new(me),
            rate,
            offset,
            fates,
            turn: 0,
            under_way: None,
            answer: None,
            ghosts: Vec::new(),
        }
    }

    fn now(&self, time: u64) -> Moment {
        at(self.offset + time * self.rate / 1000)
    }

    /// Lives one step of real time.
    fn step(&mut self, time: u64, store: &mut Store) {
        let now = self.now(time);
        let due = |ghost: &(Ask, u64)| ghost.1 <= time;
        for (ask, _) in self.ghosts.extract_if(.., |ghost| due(ghost)) {
            let _ = store.serve(&ask, self.election.me());
        }
        let Some((ask, asked, fate, sent)) = self.under_way.clone() else {
            if self.election.due() <= now {
                let fate = self.fates[self.turn % self.fates.len()];
                self.turn += 1;
                self.under_way = Some((self.election.ask(now), now, fate, time));
                self.answer = None;
            }
            return;
        };
        if self.answer.is_none() && !fate.lost_there && time >= sent + fate.there {
            self.answer = Some(store.serve(&ask, self.election.me()));
        }
        // It waits for three seconds of its own.
        let is_late = now.since(asked) >= Duration::from_secs(3);
        let is_back = !fate.lost_back && time >= sent + fate.there + fate.back;
        let answer = self.answer.clone().filter(|_| is_back);
        match (answer, ask) {
            (_, ask) if is_late => {
                // What is under way still arrives.
                if self.answer.is_none() && !fate.lost_there {
                    self.ghosts.push((ask, sent + fate.there));
                }
                self.election.failed(now);
            }
            (None, _) => return,
            (Some(Ok(found)), Ask::Read) => self.election.read(found, now),
            (Some(Ok(Some(lease))), _) => self.election.granted(lease, asked),
            (Some(_), _) => self.election.conflicted(now),
        }
        self.under_way = None;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Two nodes, clocks that run up to a tenth fast or slow, requests that are late or lost: never both.
    #[test]
    fn no_two_nodes_ever_believe_that_they_write(
        rates in (900..=1100_u64, 900..=1100_u64),
        offset in 0..1_000_000_u64,
        fates in (fates(), fates()),
    ) {
        let mut store = Store::default();
        let mut voters = [
            Voter::new("a", rates.0, 0, fates.0),
            Voter::new("b", rates.1, offset, fates.1),
        ];
        for time in (0..600_000_u64).step_by(50) {
            for voter in &mut voters {
                voter.step(time, &mut store);
            }
            let lead = voters.each_ref().map(|one| one.election.leads(one.now(time)).is_some());
            prop_assert!(lead != [true, true], "both at {time}");
        }
    }
}

#[test]
fn one_who_vanishes_is_followed_within_the_time_of_the_lease_and_a_look() {
    let calm = vec![Fate {
        there: 1,
        back: 1,
        lost_there: false,
        lost_back: false,
    }];
    let mut store = Store::default();
    let mut first = Voter::new("a", 1000, 0, calm.clone());
    let mut second = Voter::new("b", 1000, 77, calm);
    let mut led = 0;
    for time in (0..60_000_u64).step_by(10) {
        first.step(time, &mut store);
        second.step(time, &mut store);
        led += u64::from(first.election.leads(first.now(time)).is_some()) * 10;
        assert!(second.election.leads(second.now(time)).is_none());
    }
    assert!(led > 59_000, "{led}");
    let taken = (60_000..).step_by(10).find(|time| {
        second.step(*time, &mut store);
        second.election.leads(second.now(*time)).is_some()
    });
    let waited = taken.unwrap() - 60_000;
    assert!((10_000..=19_500).contains(&waited), "{waited}");
}

#[test]
fn a_lease_given_back_is_taken_at_the_next_look_and_our_own_at_once() {
    let lease = |holder: &str| Lease {
        version: "7".into(),
        holder: holder.into(),
        duration: Duration::from_secs(15),
        transitions: 3,
        acquired: None,
    };
    for (holder, ask) in [
        ("", Ask::Take(lease(""))),
        ("me", Ask::Take(lease("me"))),
        ("other", Ask::Read),
    ] {
        let mut election = Election::new("me");
        assert_eq!(election.ask(at(0)), Ask::Read);
        election.read(Some(lease(holder)), at(10));
        assert_eq!(election.ask(at(10)), ask, "{holder}");
    }
    // Nobody's Lease is believed for ever.
    let mut election = Election::new("me");
    let mut long = lease("other");
    long.duration = Duration::from_secs(1_000_000);
    election.read(Some(long.clone()), at(0));
    assert_eq!(election.ask(at(59_000)), Ask::Read);
    assert_eq!(election.ask(at(60_000)), Ask::Take(long));
}

#[test]
fn a_refusal_is_asked_about_slowly_and_ends_the_lead() {
    let lease = Lease {
        version: "7".into(),
        holder: "me".into(),
        duration: Duration::from_secs(15),
        transitions: 0,
        acquired: None,
    };
    let mut election = Election::new("me");
    election.granted(lease, at(0));
    assert_eq!(election.leads(at(9999)), Some(at(10_000)));
    assert_eq!(election.leads(at(10_000)), None);
    election.refused(at(4000));
    assert_eq!(election.due(), at(64_000));
    assert_eq!(election.leads(at(9999)), Some(at(10_000)));
    assert_eq!(election.ask(at(64_000)), Ask::Read);
}

// === Bodies ===

#[test]
fn names_of_events_are_the_same_everywhere_and_fit() {
    let one = statement("shop", Reason::Published, "here");
    let name = event_name(&one, "uid-1");
    assert_eq!(name, event_name(&one, "uid-1"));
    assert!(name.starts_with("web."), "{name}");
    for other in [
        event_name(&one, "uid-2"),
        event_name(&statement("shop", Reason::Published, "there"), "uid-1"),
        event_name(&statement("shop", Reason::Draining, "here"), "uid-1"),
    ] {
        assert_ne!(name, other);
    }
    let long = object("shop", &format!("{}.{}", "x".repeat(199), "y".repeat(53)));
    let long = Statement::new(long, Reason::Published, "here");
    let name = event_name(&long, "uid");
    assert!(name.len() <= 253 && !name.contains(".."), "{name}");
}

#[test]
fn messages_are_one_line_and_fit() {
    let message = format!("a\nb\u{202e}c\u{0}{}", "ä".repeat(2000));
    let one = statement("shop", Reason::Published, &message);
    assert!(one.message().starts_with("abcä"), "{}", one.message());
    assert!(one.message().len() <= 1024 && one.message().ends_with('…'));
}

#[test]
fn objects_are_written_as_servers_take_them() {
    let now = Timestamp::from_millisecond(1_795_219_200_042).unwrap();
    let one = statement("shop", Reason::HostnameConflict, "not yours");
    let event = event(&one, ("v1", "uid-1"), "fra-1", now);
    assert_eq!(event["eventTime"], "2026-11-21T00:00:00.042000Z");
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["reportingController"], "meridian-dns.io/meridian");
    assert_eq!(event["metadata"]["namespace"], "shop");
    assert_eq!(event["regarding"]["uid"], "uid-1");
    assert_eq!(series(0, now)["series"]["count"], 2);
    let place = ("meridian", "meridian-events");
    let first = lease(place, "a", None, now);
    assert!(first["metadata"]["resourceVersion"].is_null());
    assert_eq!(first["spec"]["leaseTransitions"], 0);
    let mut held = read_lease(
        json!({"metadata": {"resourceVersion": "7"}, "spec": first["spec"]})
            .to_string()
            .as_bytes(),
    )
    .unwrap();
    assert_eq!((&*held.holder, &*held.version), ("a", "7"));
    assert_eq!(held.duration, Duration::from_secs(15));
    held.transitions = 4;
    let later = Timestamp::from_second(1_795_300_000).unwrap();
    for (me, transitions, acquired) in [
        ("a", 4, "2026-11-21T00:00:00.042000Z"),
        ("b", 5, "2026-11-21T22:26:40.000000Z"),
        ("", 4, "2026-11-21T22:26:40.000000Z"),
    ] {
        let next = lease(place, me, Some(&held), later);
        assert_eq!(next["spec"]["leaseTransitions"], transitions, "{me}");
        assert_eq!(next["spec"]["acquireTime"], acquired, "{me}");
        assert_eq!(next["metadata"]["resourceVersion"], "7", "{me}");
    }
}

#[test]
fn what_a_server_says_is_read_as_far_as_it_makes_sense() {
    for (octets, count) in [
        (r#"{"series": {"count": 7}}"#, Some(7)),
        (r#"{"series": null}"#, Some(1)),
        (r#"{"series": {"count": -7}}"#, Some(1)),
        ("{}", Some(1)),
        ("[]", None),
        ("", None),
    ] {
        assert_eq!(read_count(octets.as_bytes()), count, "{octets}");
    }
    let bare = read_lease(br#"{"metadata": {"resourceVersion": "1"}}"#).unwrap();
    assert!(bare.holder.is_empty());
    assert!(read_lease(b"{}").is_none());
    let odd = br#"{"metadata": {"resourceVersion": "1"}, "spec": {"leaseDurationSeconds": -5, "leaseTransitions": 99999999999}}"#;
    let odd = read_lease(odd).unwrap();
    assert_eq!((odd.duration, odd.transitions), (Duration::ZERO, 0));
}
