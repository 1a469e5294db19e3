//! Drains: by an object's own word, by its Gateway's, by its end.

use super::*;

const WINDOW: &str = "2027-01-15T08:00:10Z/2027-01-15T08:00:20Z";

#[test]
fn the_windows_of_the_tests_are_where_they_think() {
    assert_eq!(at(10), "2027-01-15T08:00:10Z".parse().unwrap());
}

#[test]
fn drains_begin_and_end_by_themselves() {
    for (drain, moments) in [
        ("true", &[(0, true, None), (1_000, true, None)][..]),
        ("false", &[(0, false, None)]),
        (
            "2027-01-15T08:00:10Z",
            &[
                (0, false, Some(10)),
                (9, false, Some(10)),
                (10, true, None),
                (99, true, None),
            ],
        ),
        (
            WINDOW,
            &[
                (0, false, Some(10)),
                (10, true, Some(20)),
                (19, true, Some(20)),
                (20, false, None),
            ],
        ),
        // A clock that goes back goes back with the drain.
        (
            WINDOW,
            &[
                (15, true, Some(20)),
                (5, false, Some(10)),
                (25, false, None),
                (15, true, Some(20)),
            ],
        ),
    ] {
        let mut play = Play::listed();
        play.put("web", service(enabled(&[("drain", drain)])));
        for &(second, is_drained, due) in moments {
            play.take_at(second);
            assert_eq!(
                play.service("web").is_drained,
                is_drained,
                "{drain} at {second}"
            );
            assert_eq!(play.world.due(), due.map(at), "{drain} at {second}");
        }
    }
}

#[test]
fn a_window_that_is_taken_back_is_forgotten() {
    let mut play = Play::listed();
    play.put("web", service(enabled(&[("drain", WINDOW)])));
    play.take();
    play.put("web", service(enabled(&[])));
    play.take();
    assert_eq!(play.world.due(), None);
    play.put("web", service(enabled(&[("drain", WINDOW)])));
    play.take();
    play.gone(Watched::Services, "web");
    play.take();
    assert_eq!(play.world.due(), None);
}

#[test]
fn what_is_being_deleted_is_drained() {
    let mut play = Play::listed();
    let mut common = enabled(&[("drain", "false")]);
    common.is_deleting = true;
    play.put("web", service(common));
    let shard = play.service("web");
    assert!(shard.is_drained);
    assert_eq!(enters(&shard), ["192.0.2.1"]);
}

#[test]
fn any_drain_wins_over_a_route() {
    for (of_gateway, of_route, is_drained) in [
        ("true", "false", true),
        ("false", "true", true),
        ("false", "false", false),
    ] {
        let mut play = Play::listed();
        let common = said(&[("drain", of_gateway)]);
        play.put("gw", gateway(common, vec![listener("a", "")]));
        let common = enabled(&[("drain", of_route)]);
        play.put("web", route(common, &[], vec![parent("gw")]));
        assert_eq!(play.route("web").is_drained, is_drained);
    }
    let mut play = Play::listed();
    let common = said(&[("drain", WINDOW)]);
    play.put("gw", gateway(common, vec![listener("a", "")]));
    play.put("web", route(enabled(&[]), &[], vec![parent("gw")]));
    for (second, is_drained, due) in [
        (0, false, Some(10)),
        (10, true, Some(20)),
        (20, false, None),
    ] {
        play.take_at(second);
        assert_eq!(play.route("web").is_drained, is_drained);
        assert_eq!(play.world.due(), due.map(at));
    }
    let mut record = gateway(said(&[]), vec![listener("a", "")]);
    record.common.is_deleting = true;
    play.put("gw", record);
    assert!(play.route("web").is_drained);
}
