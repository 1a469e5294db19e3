//! What people may know, and where the cluster is.

use super::*;
use crate::geo::region;
use crate::inventory::ClusterFacts;
use crate::model::{Location, Provider};
use crate::source::kubernetes::NodeRecord;
use crate::source::kubernetes::world::Reading;
use crate::source::kubernetes::world::facts::MAX_ZONES;

#[test]
fn kinds_are_counted_and_their_reading_told() {
    let mut play = Play::new();
    play.list(
        Watched::Services,
        vec![
            ("a", service(enabled(&[])).into()),
            ("b", service(said(&[])).into()),
        ],
    );
    play.put("a-1", slice("a", 1, 1));
    play.event(Watched::Gateways, Event::Unserved);
    play.take();
    let overview = play.world.overview();
    let kinds = overview.kinds.iter();
    let kinds: Vec<_> = kinds
        .map(|kind| (kind.watched, kind.reading, kind.objects))
        .filter(|(_, reading, objects)| (*reading, *objects) != (Reading::Awaited, 0))
        .collect();
    assert_eq!(
        kinds,
        [
            (Watched::Services, Reading::Listed, 2),
            (Watched::EndpointSlices, Reading::Awaited, 1),
            (Watched::Gateways, Reading::Unserved, 0),
        ]
    );
    assert_eq!(overview.kinds.len(), 10);
    assert_eq!((overview.shards, overview.held), (1, None));
}

#[test]
fn what_is_not_served_or_refused_is_told() {
    let mut play = Play::listed();
    let internal = |common| ServiceRecord {
        is_load_balancer: false,
        ..service(common)
    };
    play.put("fine", service(enabled(&[])));
    play.put("silent", service(said(&[])));
    play.put(
        "off",
        service(said(&[("enabled", "false"), ("weight", "1")])),
    );
    play.put("other", service(enabled(&[("class", "blue")])));
    play.put("internal", internal(enabled(&[])));
    play.put("asks-not", service(said(&[("weight", "1")])));
    play.put("fence", service(enabled(&[("fence", "->")])));
    play.put("weight", service(enabled(&[("weight", "-1")])));
    play.event(
        Watched::EndpointSlices,
        Event::Unreadable(key("x-1"), refusal("endpoints[0]")),
    );
    play.event(
        Watched::Nodes,
        Event::Unreadable(key("/n1"), refusal("metadata")),
    );
    play.take();
    let overview = play.world.overview();
    assert_eq!(overview.shards, 2, "`fine` and `weight`");
    let told: Vec<_> = overview
        .told
        .iter()
        .map(|told| {
            let what: Vec<&str> = told.refused.iter().map(|refused| &*refused.what).collect();
            (told.watched, &*told.key.name, told.is_served, what)
        })
        .collect();
    assert_eq!(
        told,
        [
            (
                Watched::Services,
                "asks-not",
                false,
                vec!["meridian-dns.io/enabled"]
            ),
            (
                Watched::Services,
                "fence",
                false,
                vec!["meridian-dns.io/fence"]
            ),
            (Watched::Services, "internal", false, vec!["spec.type"]),
            (
                Watched::Services,
                "weight",
                true,
                vec!["meridian-dns.io/weight"]
            ),
            (Watched::EndpointSlices, "x-1", true, vec!["endpoints[0]"]),
            (Watched::Nodes, "n1", true, vec!["metadata"]),
        ]
    );
    // What was mended is not told any more.
    for text in ["internal", "asks-not", "fence", "weight"] {
        play.put(text, service(enabled(&[])));
    }
    play.gone(Watched::EndpointSlices, "x-1");
    play.gone(Watched::Nodes, "/n1");
    play.take();
    assert_eq!(play.world.overview().told, []);
}

#[test]
fn an_overview_is_bounded() {
    let mut play = Play::listed();
    for number in 0..1_003 {
        let text = format!("s{number}");
        play.put(&text, service(enabled(&[("weight", "-1")])));
    }
    play.take();
    let overview = play.world.overview();
    assert_eq!((overview.told.len(), overview.untold), (1_000, 3));
    // So is what it says of one object.
    let all = [
        "ttl",
        "weight",
        "steer",
        "answers",
        "panic",
        "min-ready",
        "clients",
        "drain",
        "tiers",
    ];
    for (count, last) in [(8, "weight"), (9, "others")] {
        let odd: Vec<_> = all.iter().take(count).map(|key| (*key, "-1?")).collect();
        let mut play = Play::listed();
        play.put("a", service(enabled(&odd)));
        play.take();
        let told = play.world.overview().told;
        assert_eq!((told.len(), told[0].refused.len()), (1, 8));
        let others = told[0].refused.iter().filter(|one| &*one.what == "others");
        let others: Vec<&str> = others.map(|one| &*one.reason).collect();
        let expected: &[&str] = if last == "others" {
            &["2 more were refused"]
        } else {
            &[]
        };
        assert_eq!(others, expected);
    }
}

// === Facts ===

/// A Node by provider, region and zone; "": not said.
fn node((provider, region, zone): (&str, &str, &str)) -> Box<Record> {
    let said = |text: &str| (!text.is_empty()).then(|| text.into());
    Box::new(Record::Node(NodeRecord {
        provider: said(provider),
        region: said(region),
        zone: said(zone),
    }))
}

fn facts(nodes: &[(&str, &str, &str)]) -> Option<ClusterFacts> {
    let mut play = Play::new();
    play.list(Watched::Nodes, Vec::new());
    for (number, said) in nodes.iter().enumerate() {
        let key = key(&format!("/n{number}"));
        play.event(Watched::Nodes, Event::Applied(key, node(*said)));
    }
    play.world.facts()
}

#[test]
fn a_cluster_is_where_most_of_its_nodes_are() {
    assert_eq!(facts(&[]), None);
    let virginia = region(Provider::Aws, "us-east-1").unwrap().location.clone();
    for (nodes, place, zones, evidence) in [
        (
            &[
                ("aws", "us-east-1", "us-east-1b"),
                ("aws", "us-east-1", "us-east-1a"),
                ("aws", "us-east-1", "us-east-1b"),
                ("aws", "eu-west-1", "eu-west-1a"),
            ][..],
            ("aws", "us-east-1", &virginia),
            &["us-east-1a", "us-east-1b"][..],
            "labels of 3 of 4 nodes",
        ),
        // Of equally many the first by name; virtual ones without a place do not outvote.
        (
            &[
                ("aws", "us-west-1", ""),
                ("aws", "us-east-1", ""),
                ("", "", ""),
                ("", "", ""),
                ("kind", "", ""),
                ("kind", "", ""),
            ],
            ("aws", "us-east-1", &virginia),
            &[],
            "labels of 1 of 6 nodes",
        ),
        (
            &[("aws", "nowhere-9", "z")],
            ("aws", "nowhere-9", &Location::default()),
            &["z"],
            "labels of 1 of 1 node",
        ),
        (
            &[("kind", "", ""), ("", "", "")],
            ("kind", "", &Location::default()),
            &[],
            "labels of 1 of 2 nodes",
        ),
        (
            &[("", "", "")],
            ("", "", &Location::default()),
            &[],
            "nothing on 1 node",
        ),
    ] {
        let found = facts(nodes).unwrap();
        let (provider, region, location) = place;
        assert_eq!(found.provider.as_deref().unwrap_or_default(), provider);
        assert_eq!(found.region.as_deref().unwrap_or_default(), region);
        let found_zones: Vec<&str> = found.zones.iter().map(|zone| &**zone).collect();
        assert_eq!(found_zones, zones);
        assert_eq!(&found.location, location);
        assert_eq!(&*found.evidence, evidence);
    }
}

#[test]
fn the_first_nodes_of_a_list_do_not_move_a_cluster() {
    let west = || node(("aws", "us-west-1", "us-west-1a"));
    let east = || node(("aws", "us-east-1", "us-east-1a"));
    for is_whole in [true, false] {
        let mut play = Play::new();
        play.event(Watched::Nodes, Event::Listing);
        play.event(Watched::Nodes, Event::Applied(key("/a"), west()));
        assert_eq!(play.world.facts(), None, "others may outvote it");
        for name in ["/b", "/c"] {
            play.event(Watched::Nodes, Event::Applied(key(name), east()));
        }
        assert_eq!(play.world.facts(), None);
        // A list that has too many is all that there is to go by.
        let end = if is_whole {
            Event::Listed
        } else {
            Event::LeftOut
        };
        play.event(Watched::Nodes, end);
        let facts = play.world.facts().unwrap();
        assert_eq!(facts.region.as_deref(), Some("us-east-1"));
    }
}

#[test]
fn a_cluster_has_so_many_zones_and_no_more() {
    let zone = |number: usize| format!("rack-{number:03}");
    let zones: Vec<String> = (0..MAX_ZONES + 2).rev().map(zone).collect();
    let nodes = |count: usize| {
        let zones = zones.iter().rev().take(count);
        let nodes: Vec<_> = zones.map(|zone| ("aws", "us-east-1", &**zone)).collect();
        facts(&nodes).unwrap()
    };
    let (all, more) = (nodes(MAX_ZONES), nodes(MAX_ZONES + 2));
    assert_eq!(&*all.evidence, "labels of 256 of 256 nodes");
    assert_eq!(more.zones, all.zones, "the first by name");
    assert_eq!(
        &*more.evidence,
        "labels of 258 of 258 nodes, with the first 256 of 258 zones"
    );
}

#[test]
fn nodes_come_and_go() {
    let mut play = Play::new();
    play.list(Watched::Nodes, Vec::new());
    let east = ("aws", "us-east-1", "");
    let west = ("aws", "us-west-1", "");
    let put = |play: &mut Play, text, said| {
        play.event(Watched::Nodes, Event::Applied(key(text), node(said)));
    };
    let of = |play: &Play| play.world.facts().and_then(|facts| facts.region);
    put(&mut play, "/a", east);
    put(&mut play, "/b", west);
    put(&mut play, "/c", west);
    assert_eq!(of(&play).as_deref(), Some("us-west-1"));
    put(&mut play, "/b", east);
    assert_eq!(of(&play).as_deref(), Some("us-east-1"));
    play.gone(Watched::Nodes, "/a");
    play.gone(Watched::Nodes, "/b");
    assert_eq!(of(&play).as_deref(), Some("us-west-1"));
    // A cluster whose Nodes nobody shows any more does not move.
    play.event(Watched::Nodes, Event::Unserved);
    assert_eq!(of(&play).as_deref(), Some("us-west-1"));
    play.event(Watched::Nodes, Event::Listing);
    put(&mut play, "/d", east);
    play.event(Watched::Nodes, Event::Listed);
    assert_eq!(of(&play).as_deref(), Some("us-east-1"));
    play.list(Watched::Nodes, vec![]);
    assert_eq!(play.world.facts(), None);
}
