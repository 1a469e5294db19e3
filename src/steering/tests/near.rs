//! Levels of a federation's names: by example, and against the slow reference.

use std::collections::BTreeSet;
use std::net::IpAddr;

use proptest::prelude::*;

use super::properties::{Plan, is_rotation, outcome, some_plan};
use super::world::{World, at, client, cluster_at, down, drained, entry, parse, selectors};
use crate::model::{ClusterIndex, FenceRule, PolicySpec, Steer};
use crate::steering::{Ask, Chosen, Decision, Family, Level};

/// Asks for levels of these clusters by number, narrowest first.
fn near<R>(
    world: &World,
    levels: &[Vec<ClusterIndex>],
    then: impl FnOnce(&Ask<'_>, Decision<'_>, Option<usize>) -> R,
) -> R {
    world.ask(&client(at(50.0, 8.0)), Family::V4, |ask, _| {
        let levels = levels.iter().map(Vec::as_slice);
        let (decision, by) = world.policy.select_near(ask, levels, &world.states);
        then(ask, decision, by)
    })
}

/// The first cluster, for it is up.
const NEAREST: Chosen<'static> = Chosen::Cluster {
    rank: 0,
    level: Level::Up,
};

fn indices(numbers: &[u16]) -> Vec<ClusterIndex> {
    numbers.iter().copied().map(ClusterIndex).collect()
}

/// Three clusters, the first the nearest to the client, each a step farther away.
fn three(spec: &PolicySpec) -> World {
    let clusters = [
        cluster_at("a", 50.0, 8.0),
        cluster_at("b", 40.0, -70.0),
        cluster_at("c", -30.0, 150.0),
    ];
    World::plain(spec, &clusters)
}

#[test]
fn a_level_decides_while_it_has_something_usable_and_the_next_wider_one_else() {
    let mut world = three(&PolicySpec::default());
    let levels = [indices(&[2]), indices(&[1, 2])];
    let check = |world: &World, rank: u8, by: Option<usize>, level: Level| {
        near(world, &levels, |_, decision, decided| {
            assert_eq!(decision.chosen, Chosen::Cluster { rank, level });
            assert_eq!(decided, by);
        });
    };
    check(&world, 2, Some(0), Level::Up);
    world.set_cluster(2, drained);
    check(&world, 1, Some(1), Level::Up);
    world.set_cluster(2, down);
    check(&world, 1, Some(1), Level::Up);
    world.set_cluster(1, down);
    check(&world, 0, None, Level::Up);
    // All Down is all Up for the whole name, and for no level of it.
    world.set_cluster(0, down);
    check(&world, 0, None, Level::AsIfUp);
}

#[test]
fn the_fence_goes_before_every_level_and_weight_0_is_no_answer_of_one() {
    let to = |clusters: &[&str]| PolicySpec {
        fences: vec![vec![FenceRule {
            clients: vec![parse("*")],
            clusters: selectors(clusters),
        }]],
        ..PolicySpec::default()
    };
    // A place of which the country is known is no unknown one.
    let fenced = three(&to(&["a"]));
    near(&fenced, &[indices(&[2])], |_, decision, by| {
        assert_eq!((decision.chosen, by), (NEAREST, None));
    });
    near(&three(&to(&[])), &[indices(&[0])], |_, decision, by| {
        assert_eq!((decision.chosen, by), (Chosen::Denied, None));
    });
    let clusters = [cluster_at("a", 50.0, 8.0), cluster_at("b", 40.0, -70.0)];
    let idle = World::new(
        &PolicySpec::default(),
        &clusters,
        &[entry(0, 1, &["192.0.2.1"]), entry(1, 0, &["192.0.2.2"])],
    );
    near(&idle, &[indices(&[1])], |_, decision, by| {
        assert_eq!((decision.chosen, by), (NEAREST, None));
    });
}

#[test]
fn a_level_of_all_answers_its_own_clusters_and_shares_stay_among_them() {
    let all = PolicySpec {
        steer: Steer::All,
        ..PolicySpec::default()
    };
    let world = three(&all);
    near(&world, &[indices(&[1, 2])], |ask, decision, by| {
        let mut addresses = world.endpoints(&decision, ask);
        addresses.sort();
        assert_eq!(addresses, ["192.0.2.1", "192.0.2.2"].map(parse::<IpAddr>));
        assert_eq!(by, Some(0));
        let again = world.policy.select_again(ask, &decision, &world.states);
        assert_eq!(again, decision);
    });
    let turn = PolicySpec {
        steer: Steer::RoundRobin,
        ..PolicySpec::default()
    };
    let world = three(&turn);
    near(&world, &[indices(&[1, 2])], |ask, decision, _| {
        let ranks: BTreeSet<u8> = (0..20)
            .map(|draw| {
                let mut ask = *ask;
                ask.client.draw = draw;
                let again = world.policy.select_again(&ask, &decision, &world.states);
                match again.chosen {
                    Chosen::Cluster { rank, .. } => rank,
                    other => panic!("{other:?}"),
                }
            })
            .collect();
        assert_eq!(ranks, [1, 2].into());
    });
}

/// Some levels for up to six clusters, each within the next.
fn some_levels() -> impl Strategy<Value = Vec<Vec<u8>>> {
    (0_u8..64, 0_u8..64, 1_usize..=2).prop_map(|(zone, region, count)| {
        let ranks = |bits: u8| (0..6).filter(|rank| bits & (1 << rank) != 0).collect();
        let levels: [Vec<u8>; 2] = [ranks(zone & region), ranks(region)];
        levels.into_iter().rev().take(count).rev().collect()
    })
}

fn as_indices(levels: &[Vec<u8>]) -> Vec<Vec<ClusterIndex>> {
    let level = |level: &Vec<u8>| {
        level
            .iter()
            .map(|&rank| ClusterIndex(rank.into()))
            .collect()
    };
    levels.iter().map(level).collect()
}

/// Asks a plan's world for levels.
fn asked<R>(
    (plan, world): (&Plan, &World),
    (levels, family, draw): (&[Vec<u8>], Family, u32),
    then: impl FnOnce(&Ask<'_>, Decision<'_>, Option<usize>) -> R,
) -> R {
    let mut client = plan.client();
    client.draw = draw;
    let levels = as_indices(levels);
    world.ask(&client, family, |ask, _| {
        let levels = levels.iter().map(Vec::as_slice);
        let (decision, by) = world.policy.select_near(ask, levels, &world.states);
        then(ask, decision, by)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn levels_agree_with_the_reference(plan in some_plan(), levels in some_levels()) {
        let world = plan.world();
        for family in [Family::V4, Family::V6] {
            let (expected, by, all) = plan.with_reference(&world, family, |question| {
                let (outcomes, by) = question.near(&levels);
                let addresses = |outcome| match by {
                    Some(level) => question.addresses_near(outcome, &levels[level]),
                    None => question.addresses(outcome),
                };
                let all: Vec<_> = outcomes.iter().map(|(outcome, _)| addresses(outcome)).collect();
                (outcomes, by, all)
            });
            for draw in 0..5 {
                asked((&plan, &world), (&levels, family, draw), |ask, decision, decided| {
                    prop_assert_eq!(decided, by);
                    let got = (outcome(&plan.spec, &decision.chosen), world.endpoints(&decision, ask));
                    let at = expected.iter().position(|(outcome, _)| *outcome == got.0);
                    prop_assert!(at.is_some(), "{:?}: got {:?}, expected {:?}", family, got.0, expected);
                    prop_assert!(is_rotation(&got.1, &all[at.unwrap()]), "{:?}: got {:?}, expected {:?}", family, got, all);
                    if let Some(level) = decided {
                        let own = as_indices(&levels)[level].clone();
                        let endpoints = world.policy.endpoints(&decision, ask, &world.states);
                        prop_assert!(endpoints.into_iter().all(|endpoint| own.contains(&endpoint.cluster)));
                    }
                    Ok(())
                })?;
            }
        }
    }

    /// Promise 5: neither health nor the level asked for changes a scope.
    #[test]
    fn scopes_depend_on_neither_health_nor_level(plan in some_plan(), levels in some_levels()) {
        let mut world = plan.world();
        for family in [Family::V4, Family::V6] {
            world.states.0.clone_from(&plan.states);
            let whole = world.ask(&plan.client(), family, |_, decision| decision.scope);
            let before = asked((&plan, &world), (&levels, family, 0), |_, decision, _| decision.scope);
            world.states.0.clone_from(&plan.others);
            let after = asked((&plan, &world), (&levels, family, 0), |_, decision, _| decision.scope);
            prop_assert_eq!((before, after), (whole, whole));
        }
    }

    /// What is answered with, and what was passed over on the way, is never doubtful without saying so.
    #[test]
    fn doubts_are_told_at_every_level(plan in some_plan(), levels in some_levels()) {
        let world = plan.world();
        asked((&plan, &world), (&levels, Family::V4, 0), |ask, decision, by| {
            let is_in_doubt = |address: IpAddr| world.state(address).is_in_doubt();
            let doubtful = world.endpoints(&decision, ask).into_iter().any(is_in_doubt);
            prop_assert!(!doubtful || decision.brief);
            prop_assert!(!decision.brief || plan.states.iter().any(|state| state.is_in_doubt()));
            if by.is_none() {
                prop_assert!(decision.brief || !world.policy.select(ask, &world.states).brief);
            }
            Ok(())
        })?;
    }
}
