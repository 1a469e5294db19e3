//! Random policies, clusters, states and places: the walk against the slow reference, and the promises.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::prelude::*;
use proptest::sample::select;

use super::reference::{Outcome, Question};
use super::world::{Client, Entry, World, at, client_from, country, parse, selectors};
use crate::model::{
    ClientSelector, Cluster, ClusterSelector, EndpointState, FallbackSpec, FenceRule, Forced,
    Groups, Location, MapEntry, PolicySpec, Steer, Verdict, Weight,
};
use crate::steering::{Chosen, Family};

/// Everything that is random about one run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) spec: PolicySpec,
    pub(super) clusters: Vec<Cluster>,
    entries: Vec<Entry>,
    pub(super) states: Vec<EndpointState>,
    pub(super) others: Vec<EndpointState>,
    location: Location,
    address: &'static str,
}

/// The prefixes of the two sets of `clients`.
const CLIENT_SETS: [&str; 2] = ["10.0.0.0/8", "2001:db8:1::/48"];

fn groups() -> Groups {
    Groups([("dach".into(), vec![parse("DE"), parse("CH")])].into())
}

fn locations() -> Vec<Location> {
    let both = |code: &str, continent: &str, latitude, longitude| Location {
        coordinates: at(latitude, longitude).coordinates,
        ..country(code, continent)
    };
    vec![
        Location::default(),
        Location {
            asn: Some(64496),
            ..Location::default()
        },
        both("DE", "EU", 50.1, 8.7),
        both("US", "NA", 38.9, -77.4),
        both("FJ", "OC", -17.7, 178.0),
        both("WS", "OC", -13.8, -171.8),
        at(90.0, 0.0),
        country("CH", "EU"),
        Location {
            cluster: Some(parse("b")),
            ..both("DE", "EU", 50.1, 8.7)
        },
        Location {
            cluster: Some(parse("a")),
            ..Location::default()
        },
        Location {
            subdivision: Some(parse("US-CA")),
            asn: Some(64496),
            ..both("US", "NA", 37.0, -120.0)
        },
    ]
}

fn some_client() -> impl Strategy<Value = ClientSelector> {
    select(vec![
        "*",
        "unknown",
        "continent:EU",
        "continent:OC",
        "country:US",
        "subdivision:US-CA",
        "asn:64496",
        "198.51.0.0/16",
        "10.1.0.0/16",
        "2001:db8::/32",
        "group:dach",
        "group:none",
        "cluster:b",
    ])
    .prop_map(parse)
}

fn some_cluster() -> impl Strategy<Value = ClusterSelector> {
    select(vec![
        "*",
        "a",
        "b",
        "c",
        "d",
        "cluster:a",
        "r2",
        "t1",
        "tag:t1",
        "region:r1",
        "region:r2",
        "zone:z1",
        "provider:p",
        "country:DE",
        "continent:OC",
        "group:dach",
    ])
    .prop_map(parse)
}

fn some_clusters(least: usize) -> impl Strategy<Value = Vec<ClusterSelector>> {
    prop::collection::vec(some_cluster(), least..3)
}

fn some_fallback() -> impl Strategy<Value = Option<FallbackSpec>> {
    select(vec![
        None,
        Some(FallbackSpec::Addresses(vec![parse("203.0.113.1")])),
        Some(FallbackSpec::Hostname(parse("cdn.example.net"))),
    ])
}

fn some_spec() -> impl Strategy<Value = PolicySpec> {
    let clients = || prop::collection::vec(some_client(), 1..3);
    let rule = (clients(), some_clusters(0))
        .prop_map(|(clients, clusters)| FenceRule { clients, clusters });
    let fence = prop::collection::vec(rule, 1..4);
    let entry = (prop::collection::vec(some_client(), 0..3), some_clusters(1))
        .prop_map(|(clients, clusters)| MapEntry { clients, clusters });
    let weights = (some_cluster(), select(vec![0, 1, 2, 5]))
        .prop_map(|(selector, weight)| (selector, Weight(weight)));
    let bias = (some_cluster(), -99_i8..=99);
    (
        select(vec![Steer::Proximity, Steer::Weighted, Steer::RoundRobin, Steer::All]),
        prop::collection::vec(some_clusters(0), 0..3),
        prop_oneof![3 => Just(Vec::new()).boxed(), 1 => prop::collection::vec(weights, 1..3).boxed()],
        prop::collection::vec(bias, 0..2),
        prop::collection::vec(entry, 0..3),
        prop_oneof![2 => Just(Vec::new()).boxed(), 1 => prop::collection::vec(fence, 1..3).boxed()],
        (some_fallback(), some_fallback(), select(vec![0.0, 0.0, 0.5, 1.0]), 0_u8..6),
    )
        .prop_map(|(steer, tiers, weights, bias, maps, fences, rest)| PolicySpec {
            steer,
            tiers,
            weights,
            bias,
            maps,
            fences,
            fence_answer: rest.0,
            fallback: rest.1,
            panic: rest.2,
            answers: rest.3,
        })
}

fn some_states(count: usize) -> impl Strategy<Value = Vec<EndpointState>> {
    let state = (
        any::<bool>(),
        prop::bool::weighted(0.2),
        0..8,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(down, drained, forced, doubt, refused)| {
            let forced = match forced {
                0 => Forced::Up,
                1 => Forced::Down,
                _ => Forced::No,
            };
            EndpointState::UP
                .with_verdict(if down { Verdict::Down } else { Verdict::Up })
                .with_drained(drained)
                .with_forced(forced)
                .with_doubt(doubt)
                .with_refused(refused)
        });
    // Whole worlds that are Down come up often enough to reach the last resorts.
    prop_oneof![
        3 => prop::collection::vec(state.clone(), count).boxed(),
        1 => prop::collection::vec(state.prop_map(|state| state.with_verdict(Verdict::Down).with_forced(Forced::No)), count).boxed(),
        1 => Just(vec![EndpointState::UP; count]).boxed(),
    ]
}

/// The palette of clusters; a run takes the first few. `b` and `e` are at one point, `d` is nowhere.
fn palette() -> Vec<Cluster> {
    let cluster = |name: &str, location: Location, region: &str, cost_km: f64| Cluster {
        id: parse(name),
        location,
        region: Some(region.into()),
        provider: (region == "r1").then(|| "p".into()),
        zones: vec!["z1".into()],
        tags: if region == "r1" {
            vec!["t1".into()]
        } else {
            Vec::new()
        },
        cost_km,
    };
    let all = locations();
    vec![
        cluster("a", all[2].clone(), "r1", 0.0),
        cluster("b", all[3].clone(), "r2", 0.0),
        cluster("c", all[4].clone(), "r1", 0.0),
        cluster("d", Location::default(), "r2", 0.0),
        cluster("e", all[3].clone(), "r1", 0.0),
        cluster("f", at(-90.0, 5.0), "r3", 2500.0),
    ]
}

/// Entries for some clusters: each has at least one.
fn some_entries(clusters: usize, hostnames: bool) -> impl Strategy<Value = Vec<Entry>> {
    let entry = (
        0..clusters,
        select(vec![0_u16, 1, 1, 2, 5]),
        select(vec![None, None, None, Some(0), Some(1)]),
        0_usize..3,
        0_usize..3,
    );
    prop::collection::vec(entry, 0..6).prop_map(move |more| {
        let first = (0..clusters).map(|cluster| (cluster, 1, None, cluster % 3, (cluster + 1) % 2));
        first
            .chain(more)
            .enumerate()
            .map(|(n, (cluster, weight, clients, v4, v6))| {
                let v4 = (0..v4).map(|at| parse(&format!("192.0.2.{}", n * 8 + at)));
                let v6 = (0..v6).map(|at| parse(&format!("2001:db8::{n}:{at}")));
                Entry {
                    cluster,
                    weight,
                    clients,
                    hostname: hostnames.then_some(n),
                    addresses: if hostnames {
                        Vec::new()
                    } else {
                        v6.chain(v4).collect()
                    },
                }
            })
            .collect()
    })
}

pub(super) fn some_plan() -> impl Strategy<Value = Plan> {
    (1_usize..=6, prop::bool::weighted(0.1))
        .prop_flat_map(|(clusters, hostnames)| (Just(clusters), some_entries(clusters, hostnames)))
        .prop_flat_map(|(clusters, entries)| {
            let count = entries.iter().map(|entry| entry.addresses.len()).sum();
            (
                some_spec(),
                Just(clusters),
                Just(entries),
                some_states(count),
                some_states(count),
                select(locations()),
                select(vec![
                    "198.51.100.1",
                    "10.1.2.3",
                    "2001:db8:1::1",
                    "2001:db9::1",
                ]),
            )
        })
        .prop_map(
            |(spec, clusters, entries, states, others, location, address)| Plan {
                spec,
                clusters: palette().into_iter().take(clusters).collect(),
                entries,
                states,
                others,
                location,
                address,
            },
        )
}

impl Plan {
    pub(super) fn world(&self) -> World {
        let mut world = World::with_groups(&self.spec, &self.clusters, &self.entries, &groups());
        world.client_sets = CLIENT_SETS
            .iter()
            .map(|text| [parse(text)].into())
            .collect();
        world.states.0.clone_from(&self.states);
        world
    }

    pub(super) fn client(&self) -> Client {
        client_from(self.address, self.location.clone())
    }

    /// Runs with the reference for one family.
    pub(super) fn with_reference<R>(
        &self,
        world: &World,
        family: Family,
        then: impl FnOnce(&Question<'_>) -> R,
    ) -> R {
        let client = self.client();
        let groups = groups();
        let question = Question {
            spec: &self.spec,
            groups: &groups,
            clusters: &self.clusters,
            entries: &self.entries,
            client_sets: &world.client_sets,
            state: &|address| world.state(address),
            sender: client.sender,
            address: client.subnet.address,
            location: &client.location,
            family,
        };
        then(&question)
    }
}

/// Says what was chosen in the reference's words.
pub(super) fn outcome(spec: &PolicySpec, chosen: &Chosen<'_>) -> Outcome {
    match *chosen {
        Chosen::Cluster { rank, level } => Outcome::Cluster(rank, level),
        Chosen::Everything { level } => Outcome::Everything(level),
        Chosen::Hostname(at) => Outcome::Hostname(at),
        Chosen::OtherFamily => Outcome::OtherFamily,
        Chosen::Nothing => Outcome::Nothing,
        Chosen::Fallback(answer) => {
            assert_eq!(Some(answer), spec.fallback.as_ref());
            Outcome::Fallback
        }
        Chosen::FenceAnswer(answer) => {
            assert_eq!(Some(answer), spec.fence_answer.as_ref());
            Outcome::Refused
        }
        Chosen::Denied => {
            assert_eq!(None, spec.fence_answer);
            Outcome::Refused
        }
    }
}

/// Tells whether one list is the other, begun elsewhere.
pub(super) fn is_rotation(a: &[IpAddr], b: &[IpAddr]) -> bool {
    let mut b = b.to_vec();
    a.len() == b.len()
        && (0..a.len().max(1)).any(|_| {
            let is = a == b;
            if !b.is_empty() {
                b.rotate_left(1);
            }
            is
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_walk_agrees_with_the_reference(plan in some_plan()) {
        let world = plan.world();
        for family in [Family::V4, Family::V6] {
            let (expected, all) = plan.with_reference(&world, family, |question| {
                let outcomes = question.outcomes();
                let addresses = outcomes.iter().map(|(outcome, _)| question.addresses(outcome)).collect::<Vec<_>>();
                (outcomes, addresses)
            });
            let shared = matches!(plan.spec.steer, Steer::Weighted | Steer::RoundRobin);
            let turn: u32 = if shared { expected.iter().map(|(_, weight)| weight).sum() } else { 3 };
            let mut counts = BTreeMap::new();
            for draw in 0..turn {
                let client = Client { draw, ..plan.client() };
                let got = world.ask(&client, family, |ask, decision| {
                    (outcome(&plan.spec, &decision.chosen), world.endpoints(&decision, ask))
                });
                let at = expected.iter().position(|(outcome, _)| *outcome == got.0);
                prop_assert!(at.is_some(), "{:?}: got {:?}, expected {:?}", family, got.0, expected);
                let addresses = &all[at.unwrap()];
                prop_assert!(is_rotation(&got.1, addresses), "{:?}: got {:?}, expected {:?}", family, got, addresses);
                *counts.entry(at.unwrap()).or_insert(0_u32) += 1;
            }
            if shared {
                let common = |a: u32, b: u32| (1..=a.max(b)).rev().find(|n| a.is_multiple_of(*n) && b.is_multiple_of(*n)).unwrap_or(1);
                let divisor = expected.iter().fold(0, |a, (_, weight)| common(a, *weight)).max(1);
                for (at, (outcome, weight)) in expected.iter().enumerate() {
                    // Two clusters may have the same host name.
                    let same = expected.iter().filter(|(other, _)| other == outcome).count();
                    if same == 1 {
                        prop_assert_eq!(counts.get(&at).copied().unwrap_or(0) / divisor * divisor, *weight, "{:?}", outcome);
                    }
                }
            }
        }
    }

    /// Promise 1: while there is any address for this client inside the fence, health leaves no one without.
    #[test]
    fn health_never_empties_an_answer(plan in some_plan()) {
        let world = plan.world();
        let client = plan.client();
        let class = world.policy.classify(&client.location, client.subnet.address);
        let empty = |family| world.ask(&client, family, |ask, decision| {
            match decision.chosen {
                Chosen::Cluster { .. } | Chosen::Everything { .. } => world.endpoints(&decision, ask).is_empty(),
                Chosen::Hostname(_) | Chosen::Fallback(_) => false,
                Chosen::FenceAnswer(_) | Chosen::Denied | Chosen::OtherFamily | Chosen::Nothing => true,
            }
        });
        let may_have = |entry: &Entry| entry.clients.is_none_or(|at| {
            world.client_sets[at].iter().any(|net| net.contains(&client.sender))
        });
        let has = |v4: bool| class.ranks().any(|rank| plan.entries.iter().any(|entry| {
            entry.cluster == usize::from(rank)
                && may_have(entry)
                && (entry.hostname.is_some() || entry.addresses.iter().any(|address| address.is_ipv4() == v4))
        }));
        if has(true) {
            prop_assert!(!empty(Family::V4), "A");
        }
        if has(false) && empty(Family::V6) {
            // NODATA for AAAA: then A has an answer, and says so by the same cluster.
            prop_assert!(!empty(Family::V4), "AAAA");
            world.ask(&client, Family::V6, |_, decision| assert_eq!(decision.chosen, Chosen::OtherFamily));
        }
    }

    /// DESIGN section 4.2: under proximity A and AAAA name the same cluster, unless that has no IPv4 for this client.
    #[test]
    fn families_agree_under_proximity(mut plan in some_plan()) {
        plan.spec.steer = Steer::Proximity;
        plan.spec.weights.clear();
        let world = plan.world();
        let client = plan.client();
        let chosen = |family| world.ask(&client, family, |_, decision| match decision.chosen {
            Chosen::Cluster { rank, level } => Some((rank, level)),
            _ => None,
        });
        if let (Some(a), Some(aaaa)) = (chosen(Family::V4), chosen(Family::V6)) && a != aaaa {
            let v4_of = |rank: u8| plan.entries.iter()
                .filter(|entry| entry.cluster == usize::from(rank) && entry.weight > 0)
                .filter(|entry| entry.clients.is_none_or(|at| world.client_sets[at].iter().any(|net| net.contains(&client.sender))))
                .flat_map(|entry| entry.addresses.clone())
                .any(|address| address.is_ipv4() && world.state(address).is_usable());
            prop_assert!(!v4_of(aaaa.0), "{a:?} {aaaa:?}");
        }
    }

    /// Promise 5: health and drain never change a scope.
    #[test]
    fn scopes_do_not_depend_on_health(plan in some_plan()) {
        let mut world = plan.world();
        for family in [Family::V4, Family::V6] {
            world.states.0.clone_from(&plan.states);
            let before = world.ask(&plan.client(), family, |_, decision| decision.scope);
            world.states.0.clone_from(&plan.others);
            let after = world.ask(&plan.client(), family, |_, decision| decision.scope);
            prop_assert_eq!(before, after);
            if !world.policy.reads_client() {
                prop_assert_eq!(before.0, 0);
            }
        }
    }

    /// What is answered with is never doubtful without saying so, and nothing is brief without a doubt.
    #[test]
    fn doubts_are_told(plan in some_plan()) {
        let world = plan.world();
        for family in [Family::V4, Family::V6] {
            world.ask(&plan.client(), family, |ask, decision| {
                let doubtful = world.endpoints(&decision, ask).into_iter().any(|address| world.state(address).is_in_doubt());
                assert!(!doubtful || decision.brief);
                assert!(!decision.brief || plan.states.iter().any(|state| state.is_in_doubt()));
            });
        }
    }

    /// Promise 4: `explain`'s ranking is the packet's class.
    #[test]
    fn the_ranking_is_the_class(plan in some_plan()) {
        let world = plan.world();
        let client = plan.client();
        let class = world.policy.classify(&client.location, client.subnet.address);
        let ranking = world.policy.ranking(&client.location, client.sender);
        let allowed: Vec<u8> = ranking.clusters.iter().filter(|ranked| ranked.allowed).map(|ranked| ranked.rank).collect();
        prop_assert_eq!(allowed, class.ranks().collect::<Vec<_>>());
        prop_assert_eq!(ranking.basis, class.basis());
        prop_assert_eq!(ranking.clusters.len(), plan.clusters.len());
        prop_assert_eq!(ranking.fence_rules.len(), plan.spec.fences.len());
    }
}

/// Keeps the palette honest: what the selectors above name exists.
#[test]
fn the_palette_has_what_the_selectors_name() {
    let clusters = palette();
    assert_eq!(selectors(&["a", "b"]).len(), 2);
    assert_eq!(clusters[1].location, clusters[4].location);
    assert_eq!(clusters[3].location, Location::default());
}
