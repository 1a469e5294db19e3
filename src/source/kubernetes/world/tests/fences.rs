//! Fences: one that cannot match is refused, and while one is refused the last one that could be read stays in force.

use super::*;
use crate::model::Groups;

/// What is said of a fence that was refused.
const REFUSED: &str = "its fence was refused: whom it keeps out is not known";
/// What is said of a group that nobody defined.
const MISSING: &str = "no group is called `EU27` (there are EEA, EFTA, EU-27, GDPR)";

/// What is said besides where there was one that could be read.
const LAST: &str = "; the last one that could be read stays in force for its names";

fn fenced(fence: &str) -> ServiceRecord {
    service(said(&[("hostname", "a.example.com"), ("fence", fence)]))
}

#[test]
fn a_fence_of_a_group_that_nobody_defined_is_refused() {
    let mut play = Play::listed();
    for (fence, is_fine) in [
        ("group:EU-27->country:FR;*->*", true),
        ("group:EU27->country:FR;*->*", false),
        ("*->group:EU27", false),
        ("group:EU-27->group:EEA", true),
    ] {
        play.put("web", fenced(fence));
        let shard = play.service("web");
        let is_refused = refused(&shard) == [("fence", MISSING)] && shard.unserved.is_some();
        let is_served = shard.refused.is_empty() && shard.unserved.is_none();
        assert!(if is_fine { is_served } else { is_refused }, "{shard:?}");
    }
    play.put("web", fenced("*->group:EU27"));
    assert!(
        play.service("web")
            .unserved
            .is_some_and(|why| why.starts_with(REFUSED))
    );
}

#[test]
fn the_fence_of_a_gateway_is_looked_at_too() {
    let mut play = Play::listed();
    let common = said(&[("fence", "group:EU27->*")]);
    play.put("gw", gateway(common, vec![listener("a", "")]));
    play.put("web", route(enabled(&[]), &[], vec![parent("gw")]));
    let wanted = format!(
        "the fence of Gateway shop/gw was refused: whom it keeps out is not known: {MISSING}"
    );
    assert_eq!(play.route("web").unserved.as_deref(), Some(&*wanted));
}

#[test]
fn other_keys_of_such_a_group_are_refused_for_themselves() {
    let mut play = Play::listed();
    play.put(
        "web",
        service(enabled(&[
            ("maps", "group:EU27->*"),
            ("tiers", "group:EU27,*"),
            ("weights", "group:EU27=1,*=2"),
            ("bias", "group:EU27=1"),
            ("answers", "2"),
        ])),
    );
    let shard = play.service("web");
    assert_eq!(
        refused(&shard),
        ["maps", "tiers", "weights", "bias"].map(|key| (key, MISSING))
    );
    assert_eq!(shard.unserved, None);
    let keys = &shard.keys;
    let left = (&keys.maps, &keys.tiers, &keys.weights, &keys.bias);
    assert_eq!(left, (&None, &None, &None, &None));
    assert_eq!(keys.answers, Some(2));
}

#[test]
fn groups_of_the_configuration_count_as_they_change() {
    let mut play = Play::listed();
    play.put("web", fenced("group:nordics->*"));
    assert!(play.service("web").unserved.is_some());
    let mut groups = Rules::default().groups;
    let nordics = ["DK", "SE"].map(|code| code.parse().unwrap());
    groups.0.insert("nordics".into(), nordics.into());
    let rules = |groups: Groups| {
        Arc::new(Rules {
            groups,
            ..Rules::default()
        })
    };
    play.world.set_rules(rules(groups));
    let shard = play.service("web");
    assert_eq!((shard.unserved, shard.refused.len()), (None, 0));
    play.world.set_rules(rules(Rules::default().groups));
    assert!(play.service("web").unserved.is_some());
}

#[test]
fn the_last_fence_that_could_be_read_stays_in_force() {
    let mut play = Play::listed();
    // Nobody knows one yet.
    play.put("web", fenced("country:DE>*"));
    let shard = play.service("web");
    assert_eq!(shard.unserved.as_deref(), Some(REFUSED));
    assert_eq!(shard.keys.fence, None);
    play.put("web", fenced("country:DE->country:FR"));
    let good = play.service("web").keys.fence.clone();
    assert!(good.is_some());
    for slip in ["country:DE>*", "group:EU27->*", "country:UK->*"] {
        play.put("web", fenced(slip));
        let shard = play.service("web");
        assert_eq!(shard.unserved, Some(format!("{REFUSED}{LAST}").into()));
        assert_eq!(shard.keys.fence, good, "{slip}");
    }
    // One that is taken away is taken away.
    play.put("web", service(said(&[("hostname", "a.example.com")])));
    let shard = play.service("web");
    assert_eq!((shard.unserved, &shard.keys.fence), (None, &None));
    play.put("web", fenced("country:DE>*"));
    assert_eq!(play.service("web").keys.fence, None);
}

#[test]
fn the_last_fence_stays_in_force_over_a_restart() {
    let mut play = Play::listed();
    play.put("web", fenced("country:DE->country:FR"));
    let good = play.service("web").keys.fence.clone();
    play.put("web", fenced("country:DE>*"));
    let held = play.service("web");
    let mut again = Play::with(Rules::default(), vec![held.clone()]);
    assert_eq!(again.take(), []);
    for watched in kinds() {
        let objects = match watched {
            Watched::Services => vec![("web", fenced("country:DE>*").into())],
            _ => Vec::new(),
        };
        again.list(watched, objects);
    }
    let shard = again.service("web");
    assert_eq!(
        (&shard.unserved, &shard.keys.fence),
        (&held.unserved, &good)
    );
}
