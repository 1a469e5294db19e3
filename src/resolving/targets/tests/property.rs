//! Any outcomes in any order: what must hold whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;

use super::super::flatten::Flattened;
use super::super::known::{Family, MAX_ADDRESSES, Outcome};
use super::super::queue::IN_FLIGHT;
use super::super::table::{Resolution, TargetState};
use super::{at, failed, name, ours};
use crate::model::{LowerName, Moment, Ttl};

/// What becomes of one question.
#[derive(Clone, Debug)]
enum Step {
    /// Addresses with these last numbers, and the TTL.
    Answer(Vec<u8>, u32),
    NoData(Option<u32>),
    NxDomain,
    Failed,
    /// Only addresses that are refused.
    Loopback,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (prop::collection::vec(any::<u8>(), 1..80), any::<u8>())
            .prop_map(|(last, ttl)| Step::Answer(last, u32::from(ttl))),
        2 => prop::option::of(0_u32..1000).prop_map(Step::NoData),
        1 => Just(Step::NxDomain),
        3 => Just(Step::Failed),
        1 => Just(Step::Loopback),
    ]
}

impl Step {
    fn outcome(&self, family: Family) -> Outcome {
        let ttl = |ttl: &Option<u32>| ttl.map(Ttl::from_wire);
        match self {
            Self::Answer(last, seconds) => Outcome::Addresses {
                addresses: last.iter().map(|last| address(family, *last)).collect(),
                ttl: Ttl::from_wire(*seconds),
            },
            Self::NoData(seconds) => Outcome::NoData { ttl: ttl(seconds) },
            Self::NxDomain => Outcome::NxDomain { ttl: None },
            Self::Failed => failed(),
            Self::Loopback => Outcome::Addresses {
                addresses: vec![match family {
                    Family::V4 => [127, 0, 0, 1].into(),
                    Family::V6 => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
                }],
                ttl: Ttl::from_wire(60),
            },
        }
    }
}

fn address(family: Family, last: u8) -> IpAddr {
    match family {
        Family::V4 => [192, 0, 2, last].into(),
        Family::V6 => [0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)].into(),
    }
}

/// What name servers said of one family, as far as it matters for what must be there.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    had_any: bool,
    denials: u32,
}

/// The slow and obvious rule: the last addresses go when both families were denied twice in a row, and never before.
#[derive(Debug, Default)]
struct Model {
    said: BTreeMap<(LowerName, Family), Said>,
}

impl Model {
    fn take(&mut self, name: &LowerName, family: Family, step: &Step) {
        let said = self.said.entry((name.clone(), family)).or_default();
        match step {
            Step::Answer(..) => {
                *said = Said {
                    had_any: true,
                    denials: 0,
                };
            }
            Step::NoData(_) | Step::NxDomain => said.denials += 1,
            Step::Failed | Step::Loopback => {}
        }
    }

    fn has_addresses(&self, name: &LowerName) -> bool {
        let said = |family| {
            let said = self.said.get(&(name.clone(), family));
            said.copied().unwrap_or_default()
        };
        let both = [said(Family::V4), said(Family::V6)];
        both.iter().any(|said| said.had_any) && !both.iter().all(|said| said.denials >= 2)
    }
}

fn all(known: &Resolution) -> BTreeSet<IpAddr> {
    known.addresses.iter().chain(&known.old).copied().collect()
}

/// Checks what a reader relies on.
fn check(known: &Resolution, now: Moment) {
    for list in [&known.addresses, &known.old] {
        assert!(list.is_sorted_by(|one, next| one < next), "{list:?}");
        for is_v4 in [true, false] {
            let count = list.iter().filter(|a| a.is_ipv4() == is_v4).count();
            assert!(count <= MAX_ADDRESSES);
        }
    }
    assert_eq!(all(known).len(), known.addresses.len() + known.old.len());
    assert_eq!(known.expires.is_some(), !known.addresses.is_empty());
    let (current, old) = (!known.addresses.is_empty(), !known.old.is_empty());
    match known.state {
        TargetState::Unresolved | TargetState::Gone | TargetState::Own => assert!(!current && !old),
        TargetState::Fresh => assert!(current && !old),
        TargetState::Failing { since } => assert!(current && since <= now),
        TargetState::Expired { since } => {
            assert!(!current && old && now.since(since) >= Duration::from_secs(3600));
        }
    }
}

proptest! {
    #[test]
    fn addresses_are_lost_by_denials_only(
        targets in 1_usize..40,
        steps in prop::collection::vec((step(), 0_u64..900), 1..300),
    ) {
        let wanted: BTreeSet<LowerName> = (0..targets).map(|at| name(&format!("t{at}.example"))).collect();
        let mut flattened = Flattened::new(9);
        flattened.want(&wanted, &ours(&[]), at(0));
        let (mut model, mut out, mut now) = (Model::default(), Vec::new(), at(0));
        for (step, wait) in steps {
            out.extend(flattened.due(now));
            prop_assert!(out.len() <= IN_FLIGHT);
            if out.is_empty() {
                now = flattened.next_due().unwrap();
                continue;
            }
            let question = out.swap_remove(usize::try_from(wait).unwrap() % out.len());
            let before = flattened.resolution(&question.name).unwrap().clone();
            model.take(&question.name, question.family, &step);
            let changed = flattened.answered(&question, step.outcome(question.family), now);
            let table = flattened.table();
            let after = table.get(&question.name).unwrap();
            prop_assert_eq!(changed, before != *after);
            check(after, now);
            prop_assert_eq!(!all(after).is_empty(), model.has_addresses(&question.name), "{:?}", after);
            if matches!(step, Step::Failed | Step::Loopback) {
                // A failure may make them old. It takes none, but those of a family that was denied before.
                let is_doubted = model.said.iter().any(|((name, _), said)| *name == question.name && said.denials > 0);
                prop_assert!(is_doubted || all(&before) == all(after), "{:?} {:?}", before, after);
            }
            now = now.after(Duration::from_secs(wait));
        }
    }
}
