//! The state machine by tables.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

use super::super::flatten::{Flattened, RememberedTarget};
use super::super::known::{Family, KEPT, MAX_ADDRESSES, Outcome};
use super::super::table::{Resolution, TargetState};
use super::{answer, at, failed, name, names, ours};
use crate::model::{Moment, Ttl};

fn nxdomain() -> Outcome {
    Outcome::NxDomain { ttl: None }
}

fn nodata() -> Outcome {
    Outcome::NoData { ttl: None }
}

/// One target, and what it is told by hand.
struct One {
    flattened: Flattened,
    now: Moment,
}

const LB: &str = "lb.example.net";

impl One {
    fn new() -> Self {
        let mut flattened = Flattened::new(7);
        assert!(flattened.want(&names(&[LB]), &ours(&[]), at(0)));
        Self {
            flattened,
            now: at(0),
        }
    }

    /// Answers both families when they are next due; gives whether the table changed by either.
    fn both(&mut self, v4: Outcome, v6: Outcome) -> bool {
        self.both_at(|_| (v4, v6))
    }

    /// Does that with what is answered at that moment.
    fn both_at(&mut self, answer: impl FnOnce(Moment) -> (Outcome, Outcome)) -> bool {
        // The families' jitters differ: both are due when the later is.
        let mut questions = Vec::new();
        while questions.len() < 2 {
            self.now = self.now.max(self.flattened.next_due().unwrap());
            questions.extend(self.flattened.due(self.now));
        }
        let (v4, v6) = answer(self.now);
        let mut outcomes = [(Family::V4, Some(v4)), (Family::V6, Some(v6))];
        let mut changed = false;
        for question in questions {
            let outcome = outcomes
                .iter_mut()
                .find(|(family, _)| *family == question.family)
                .and_then(|(_, outcome)| outcome.take());
            let outcome = outcome.expect("one question a family");
            changed |= self.flattened.answered(&question, outcome, self.now);
        }
        changed
    }

    /// Answers IPv4, and that there is no IPv6.
    fn v4(&mut self, outcome: Outcome) -> bool {
        self.both(outcome, nodata())
    }

    /// Fails until `until`.
    fn fail_until(&mut self, until: Moment) {
        while self.now < until {
            self.both(failed(), failed());
        }
    }

    fn known(&mut self) -> Resolution {
        let table = self.flattened.table();
        (**table.get(&name(LB)).unwrap()).clone()
    }

    fn addresses(&mut self) -> String {
        shown(&self.known().addresses)
    }

    fn old(&mut self) -> String {
        shown(&self.known().old)
    }

    fn state(&mut self) -> TargetState {
        self.known().state
    }

    fn error(&mut self) -> String {
        self.known().error.unwrap_or_default().into()
    }
}

fn shown(addresses: &[IpAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    texts.join(" ")
}

#[test]
fn the_addresses_of_two_periods_are_one_set() {
    // What is answered in turn, each in a period of its own, and what is known then.
    for (answers, known) in [
        (&["192.0.2.1"][..], "192.0.2.1"),
        (&["192.0.2.2 192.0.2.1 192.0.2.2"], "192.0.2.1 192.0.2.2"),
        (&["192.0.2.1", "192.0.2.2"], "192.0.2.1 192.0.2.2"),
        (&["192.0.2.2", "192.0.2.1"], "192.0.2.1 192.0.2.2"),
        (
            &["192.0.2.1", "192.0.2.2", "192.0.2.3"],
            "192.0.2.2 192.0.2.3",
        ),
        (&["192.0.2.1", "192.0.2.2", "192.0.2.2"], "192.0.2.2"),
        (
            &["192.0.2.1", "192.0.2.2", "192.0.2.1"],
            "192.0.2.1 192.0.2.2",
        ),
    ] {
        let mut one = One::new();
        for addresses in answers {
            one.v4(answer(addresses, 60));
        }
        assert_eq!(one.addresses(), known, "{answers:?}");
        assert_eq!(one.state(), TargetState::Fresh);
        assert_eq!(one.error(), "");
    }
}

#[test]
fn families_are_one_list_and_the_earlier_ttl_counts() {
    let mut one = One::new();
    assert_eq!(
        one.known(),
        Resolution::empty(TargetState::Unresolved, None)
    );
    assert!(one.both(
        answer("203.0.113.9 192.0.2.1", 300),
        answer("2001:db8::1", 60)
    ));
    assert_eq!(one.addresses(), "192.0.2.1 203.0.113.9 2001:db8::1");
    assert_eq!(one.known().expires, Some(at(60)));
}

#[test]
fn what_a_cache_answers_again_is_the_same_period() {
    let mut one = One::new();
    // IPv6 is asked for more often, so that it holds nothing up.
    let v6 = || answer("2001:db8::1", 1);
    one.both(answer("192.0.2.1", 60), v6());
    one.both(answer("192.0.2.2", 600), v6());
    // Each answer's TTL ends where the one before it did, give or take the rounding of a second.
    let ends = one.now.after(Duration::from_secs(600));
    for _ in 0..2 {
        one.both_at(|now| {
            let rest = u32::try_from(ends.since(now).as_secs()).unwrap();
            (answer("192.0.2.2", rest), v6())
        });
        assert_eq!(one.addresses(), "192.0.2.1 192.0.2.2 2001:db8::1");
    }
    one.both(answer("192.0.2.2", 60), v6());
    assert_eq!(one.addresses(), "192.0.2.2 2001:db8::1");
}

#[test]
fn ttl_0_counts_as_1_s() {
    let mut one = One::new();
    one.v4(answer("192.0.2.1", 0));
    assert_eq!(one.known().expires, Some(at(1)));
    // And nobody is asked all the time for it.
    assert!(one.flattened.next_due() >= Some(at(5)));
    // Bit 31 counts as 0 (RFC 2181 section 8), and years as a day.
    one.v4(answer("192.0.2.1", 1 << 31));
    assert_eq!(
        one.known().expires,
        Some(one.now.after(Duration::from_secs(1)))
    );
    one.v4(answer("192.0.2.1", 0x7fff_ffff));
    assert_eq!(
        one.known().expires,
        Some(one.now.after(Duration::from_secs(86_400)))
    );
}

#[test]
fn pauses_follow_the_ttl_within_bounds() {
    let denied = |ttl| Outcome::NxDomain {
        ttl: Some(Ttl::from_wire(ttl)),
    };
    // What is answered, and the bounds of the pause in milliseconds.
    for (outcome, least, most) in [
        (answer("192.0.2.1", 0), 5000, 5500),
        (answer("192.0.2.1", 1), 5000, 5500),
        (answer("192.0.2.1", 60), 54_000, 59_400),
        (answer("192.0.2.1", 300), 270_000, 297_000),
        (answer("192.0.2.1", 86_400), 272_000, 300_000),
        (denied(0), 5000, 5500),
        (denied(60), 60_000, 66_000),
        (denied(86_400), 272_000, 300_000),
        (nxdomain(), 30_000, 33_000),
        (failed(), 1000, 1100),
        // Nothing but addresses that are refused: a failure.
        (answer("127.0.0.1", 3600), 1000, 1100),
    ] {
        let mut pauses = HashSet::new();
        for seed in 0..20 {
            let mut flattened = Flattened::new(seed);
            flattened.want(&names(&[LB]), &ours(&[]), at(5));
            let due = flattened.due(at(5));
            assert_eq!((due.len(), due[0].family), (2, Family::V4));
            flattened.answered(&due[0], outcome.clone(), at(5));
            let pause = flattened.next_due().unwrap().since(at(5)).as_millis();
            assert!((least..=most).contains(&pause), "{outcome:?}: {pause} ms");
            pauses.insert(pause);
        }
        assert!(least == most || pauses.len() > 5, "{outcome:?}: {pauses:?}");
    }
}

#[test]
fn failures_are_asked_again_ever_later() {
    let mut one = One::new();
    for failures in 0..40_u32 {
        one.both(failed(), failed());
        let due = one.flattened.next_due().unwrap();
        let pause = due.since(one.now).as_millis();
        let least = 1000 * 2_u128.pow(failures.min(10)).min(60);
        assert!(
            (least..least * 11 / 10).contains(&pause),
            "{failures}: {pause} ms"
        );
    }
    // One answer, and they begin anew.
    one.both(answer("192.0.2.1", 1), failed());
    one.both(failed(), failed());
    let due = one.flattened.next_due().unwrap();
    assert_eq!(due.since(one.now).as_secs(), 1);
}

#[test]
fn two_denials_in_a_row_remove() {
    // What both families are answered in turn, and what is known then.
    for (steps, addresses, state) in [
        ("good nx", "192.0.2.1", "Failing"),
        ("good no", "192.0.2.1", "Failing"),
        ("good nx nx", "", "Gone"),
        ("good no no", "", "Gone"),
        ("good nx no", "", "Gone"),
        // An answer between them counts, a failure says nothing.
        ("good nx good nx", "192.0.2.1", "Failing"),
        ("good nx bad bad", "192.0.2.1", "Failing"),
        ("good nx bad nx", "", "Gone"),
        // It stays gone while nobody knows, and comes back with an answer.
        ("good nx nx bad bad", "", "Gone"),
        ("good nx nx good", "192.0.2.1", "Fresh"),
        ("nx", "", "Unresolved"),
        ("bad", "", "Unresolved"),
        ("nx nx", "", "Gone"),
        ("nx nx good", "192.0.2.1", "Fresh"),
    ] {
        let mut one = One::new();
        for step in steps.split(' ') {
            match step {
                "good" => one.v4(answer("192.0.2.1", 60)),
                "nx" => one.both(nxdomain(), nxdomain()),
                "no" => one.both(nodata(), nodata()),
                "bad" => one.both(failed(), failed()),
                other => panic!("{other}"),
            };
        }
        let found = format!("{:?}", one.state());
        assert_eq!(one.addresses(), addresses, "{steps}");
        assert!(found.starts_with(state), "{steps}: {found}");
    }
}

#[test]
fn removed_addresses_do_not_come_back_beside_new_ones() {
    let mut one = One::new();
    one.v4(answer("192.0.2.1", 60));
    one.both(nxdomain(), nxdomain());
    one.both(nxdomain(), nxdomain());
    assert_eq!(one.error(), "A and AAAA: does not exist (NXDOMAIN)");
    one.v4(answer("192.0.2.2", 60));
    assert_eq!(one.addresses(), "192.0.2.2");
}

#[test]
fn a_family_goes_alone_only_while_the_other_has_addresses() {
    let mut one = One::new();
    one.both(answer("192.0.2.1", 60), answer("2001:db8::1", 60));
    one.both(answer("192.0.2.1", 60), nodata());
    assert_eq!(one.addresses(), "192.0.2.1 2001:db8::1");
    assert_eq!(one.error(), "AAAA: has no address");
    one.both(answer("192.0.2.1", 60), nodata());
    assert_eq!(one.addresses(), "192.0.2.1");
    assert_eq!((one.state(), &*one.error()), (TargetState::Fresh, ""));

    // Nobody ever knew of IPv6: that IPv4 is denied is not the last word.
    let mut one = One::new();
    one.both(answer("192.0.2.1", 60), failed());
    assert_eq!(one.state(), TargetState::Fresh);
    assert_eq!(one.error(), "AAAA: 192.0.2.53:53 answers SERVFAIL");
    for _ in 0..3 {
        one.both(nodata(), failed());
        assert_eq!(one.addresses(), "192.0.2.1");
        assert!(matches!(one.state(), TargetState::Failing { .. }));
    }
    one.both(nodata(), nodata());
    one.both(nodata(), nodata());
    assert_eq!(one.state(), TargetState::Gone);
}

#[test]
fn failures_keep_the_last_for_an_hour_and_then_as_old() {
    let mut one = One::new();
    one.both(answer("192.0.2.1", 60), answer("2001:db8::1", 60));
    one.both(failed(), failed());
    let since = one.now;
    assert_eq!(one.state(), TargetState::Failing { since });
    assert_eq!(one.known().expires, Some(at(60)));
    one.fail_until(since.after(KEPT - Duration::from_secs(70)));
    assert_eq!(one.state(), TargetState::Failing { since });
    assert_eq!(one.addresses(), "192.0.2.1 2001:db8::1");
    one.fail_until(since.after(KEPT));
    assert_eq!(one.state(), TargetState::Expired { since });
    assert_eq!(
        (one.addresses(), one.known().expires),
        (String::new(), None)
    );
    assert_eq!(one.old(), "192.0.2.1 2001:db8::1");
    // A day later they are still there.
    one.fail_until(since.after(Duration::from_secs(86_400)));
    assert_eq!(one.old(), "192.0.2.1 2001:db8::1");
    // One family comes back: its old ones are gone, the other's stay old.
    one.both(answer("192.0.2.7", 60), failed());
    assert_eq!(
        (&*one.addresses(), &*one.old()),
        ("192.0.2.7", "2001:db8::1")
    );
    assert_eq!(one.state(), TargetState::Failing { since });
    one.both(answer("192.0.2.7", 60), answer("2001:db8::1", 60));
    assert_eq!(
        (&*one.addresses(), &*one.old()),
        ("192.0.2.7 2001:db8::1", "")
    );
    assert_eq!(one.state(), TargetState::Fresh);
}

#[test]
fn an_hour_does_not_end_before_the_ttl() {
    let mut one = One::new();
    one.v4(answer("192.0.2.1", 7200));
    one.fail_until(at(7000));
    assert!(matches!(one.state(), TargetState::Failing { .. }));
    assert_eq!(one.addresses(), "192.0.2.1");
    one.fail_until(at(7200));
    assert!(matches!(one.state(), TargetState::Expired { .. }));
}

#[test]
fn addresses_that_nobody_can_be_sent_to_are_refused_and_counted() {
    let mut one = One::new();
    one.both(
        answer(
            "127.0.0.1 169.254.1.1 0.0.0.0 224.0.0.1 255.255.255.255 192.0.2.1 2001:db8::7",
            60,
        ),
        answer("::1 fe80::1 :: ff02::1 ::ffff:192.0.2.9 2001:db8::1", 60),
    );
    let known = one.known();
    assert_eq!(shown(&known.addresses), "192.0.2.1 2001:db8::1");
    assert_eq!((known.refused, known.state), (11, TargetState::Fresh));
    let error = known.error.unwrap();
    assert!(
        error.contains("A: 6 addresses are refused, one of them: 0.0.0.0"),
        "{error}"
    );
    assert!(error.contains("AAAA: 5 addresses are refused"), "{error}");

    // Nothing else is left: that is no answer, and no denial.
    one.both(answer("127.0.0.1", 60), answer("::1", 60));
    one.both(answer("127.0.0.1", 60), answer("::1", 60));
    assert_eq!(one.addresses(), "192.0.2.1 2001:db8::1");
    assert!(matches!(one.state(), TargetState::Failing { .. }));
    assert!(
        one.error()
            .starts_with("A: an address is refused: 127.0.0.1 is a loopback")
    );
}

#[test]
fn at_most_64_addresses_of_a_family() {
    let many = |from: u32, count: u32| Outcome::Addresses {
        addresses: (from..from + count)
            .map(|last| IpAddr::V4((0xc000_0200 + last).into()))
            .collect(),
        ttl: Ttl::from_wire(60),
    };
    let mut one = One::new();
    one.v4(many(0, 100));
    let known = one.known();
    assert_eq!((known.addresses.len(), known.refused), (MAX_ADDRESSES, 36));
    assert!(known.error.unwrap().contains("beyond the first 64"));
    // Those of this period come before those of the last.
    one.v4(many(200, 50));
    let addresses = one.known().addresses;
    assert_eq!(addresses.len(), MAX_ADDRESSES);
    assert!(addresses.is_sorted());
    let fresh = addresses
        .iter()
        .filter(|address| **address >= IpAddr::from([192, 0, 2, 200]));
    assert_eq!(fresh.count(), 50);
}

#[test]
fn reasons_are_one_short_line() {
    let mut one = One::new();
    let long = "x\n\u{1b}".repeat(500);
    one.both(
        Outcome::Failed(long.into()),
        Outcome::Failed("y".repeat(5000).into()),
    );
    let error = one.error();
    assert!(
        error.len() < 500 && !error.contains(char::is_control),
        "{error}"
    );
}

#[test]
fn an_empty_answer_is_a_denial() {
    let mut one = One::new();
    one.v4(answer("192.0.2.1", 60));
    one.v4(answer("", 60));
    assert_eq!(one.addresses(), "192.0.2.1");
    one.v4(answer("", 60));
    assert_eq!(one.state(), TargetState::Gone);
}

#[test]
fn the_table_is_made_anew_only_when_something_changed() {
    let mut one = One::new();
    let first = one.flattened.table();
    assert!(std::sync::Arc::ptr_eq(&first, &one.flattened.table()));
    assert!(!first.is_empty() && first.len() == 1);
    assert!(one.v4(answer("192.0.2.1", 60)));
    let second = one.flattened.table();
    assert!(!std::sync::Arc::ptr_eq(&first, &second));
    // The first failure changes it, the second says nothing new.
    assert!(one.both(failed(), failed()));
    assert!(!one.both(failed(), failed()));
    // What is the same in both is shared.
    one.flattened
        .want(&names(&[LB, "b.example.net"]), &ours(&[]), one.now);
    let (third, b) = (one.flattened.table(), name("b.example.net"));
    one.flattened
        .want(&names(&["b.example.net"]), &ours(&[]), one.now);
    let fourth = one.flattened.table();
    let [shared, still] = [&third, &fourth].map(|table| table.get(&b).unwrap());
    assert!(std::sync::Arc::ptr_eq(shared, still));
    assert_eq!(
        fourth.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        [&b]
    );
}

#[test]
fn names_left_out_are_forgotten() {
    let mut one = One::new();
    one.v4(answer("192.0.2.1", 60));
    // Questions are out while the name goes and comes back: their answers are for another life.
    let now = at(100);
    let old = one.flattened.due(now);
    assert_eq!(old.len(), 2);
    assert!(one.flattened.want(&names(&[]), &ours(&[]), now));
    assert!(one.flattened.table().is_empty());
    assert_eq!(one.flattened.next_due(), None);
    assert!(one.flattened.want(&names(&[LB]), &ours(&[]), now));
    assert_eq!(one.state(), TargetState::Unresolved);
    assert!(
        !one.flattened
            .answered(&old[0], answer("192.0.2.9", 60), now)
    );
    assert_eq!(one.state(), TargetState::Unresolved);
    // A second answer to one question is none, and names asked for again are asked.
    let new = one.flattened.due(now);
    assert_eq!(new.len(), 2);
    assert!(
        one.flattened
            .answered(&new[0], answer("192.0.2.2", 60), now)
    );
    assert!(
        !one.flattened
            .answered(&new[0], answer("192.0.2.3", 60), now)
    );
    assert_eq!(one.addresses(), "192.0.2.2");
    // To want the same again changes nothing.
    assert!(!one.flattened.want(&names(&[LB]), &ours(&[]), now));
    assert_eq!(one.addresses(), "192.0.2.2");
}

#[test]
fn what_was_known_before_the_start_stays_until_an_answer_comes() {
    let remembered = |addresses: &[&str], old: &[&str]| {
        let all = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let target = RememberedTarget {
            addresses: all(addresses),
            old: all(old),
        };
        let mut flattened = Flattened::new(7);
        flattened.remember([(name(LB), target)].into());
        assert!(flattened.want(&names(&[LB]), &ours(&[]), at(0)));
        One {
            flattened,
            now: at(0),
        }
    };
    let both = ["192.0.2.1", "2001:db8::1", "127.0.0.1"];
    // Nothing comes: they stay for an hour, and are old then.
    let mut one = remembered(&both, &[]);
    let since = at(0);
    assert_eq!(one.addresses(), "192.0.2.1 2001:db8::1");
    assert_eq!(one.state(), TargetState::Failing { since });
    assert_eq!(one.known().expires, Some(since));
    one.fail_until(at(3500));
    assert_eq!(one.addresses(), "192.0.2.1 2001:db8::1");
    one.fail_until(at(3800));
    assert_eq!(
        (one.addresses(), one.old()),
        (String::new(), "192.0.2.1 2001:db8::1".into())
    );
    // An answer takes the place of its family's.
    let mut one = remembered(&both, &[]);
    one.both(answer("192.0.2.2", 60), failed());
    assert_eq!(one.addresses(), "192.0.2.2 2001:db8::1");
    // From then on periods count as ever.
    one.both(answer("192.0.2.3", 60), answer("2001:db8::2", 60));
    assert_eq!(one.addresses(), "192.0.2.2 192.0.2.3 2001:db8::2");
    assert_eq!(one.state(), TargetState::Fresh);
    // Denied twice in a row they go, and not before.
    let mut one = remembered(&both, &[]);
    one.both(nodata(), nodata());
    assert_eq!(one.addresses(), "192.0.2.1 2001:db8::1");
    one.both(nodata(), nodata());
    assert_eq!(
        (one.addresses(), one.state()),
        (String::new(), TargetState::Gone)
    );
    // What was old is old.
    let mut one = remembered(&[], &["192.0.2.1"]);
    assert_eq!(
        (one.addresses(), one.old()),
        (String::new(), "192.0.2.1".into())
    );
    assert_eq!(one.state(), TargetState::Expired { since });
    one.both(answer("192.0.2.2", 60), nodata());
    assert_eq!(
        (one.addresses(), one.old()),
        ("192.0.2.2".into(), String::new())
    );
}

#[test]
fn what_was_known_before_the_start_is_for_the_first_hour() {
    for (start, addresses) in [(3599, "192.0.2.1"), (3600, "")] {
        let mut flattened = Flattened::new(7);
        let target = RememberedTarget {
            addresses: ["192.0.2.1".parse().unwrap()].into(),
            old: Box::default(),
        };
        flattened.remember([(name(LB), target)].into());
        flattened.want(&names(&[LB]), &ours(&[]), at(start));
        let known = flattened.resolution(&name(LB)).unwrap();
        assert_eq!(shown(&known.addresses), addresses, "{start}");
    }
}
