//! Lists: a difference and never an emptying; what is held; what cannot be read, or is not served any more.

use super::*;
use crate::inventory::Readiness;

fn web(common: Common) -> Record {
    service(common).into()
}

fn held(texts: &[&str]) -> Vec<Shard> {
    let mut play = Play::listed();
    for text in texts {
        play.put(text, service(enabled(&[])));
    }
    play.take();
    play.shards.into_values().collect()
}

/// Lists the names of what is served.
fn served(play: &mut Play) -> Vec<String> {
    play.take();
    let objects = play.shards.keys();
    objects.map(|object| object.name.to_string()).collect()
}

#[test]
fn a_relist_is_a_difference() {
    let mut play = Play::listed();
    for text in ["a", "b", "c"] {
        play.put(text, service(enabled(&[])));
    }
    assert_eq!(served(&mut play), ["a", "b", "c"]);
    play.event(Watched::Services, Event::Listing);
    assert_eq!(
        served(&mut play),
        ["a", "b", "c"],
        "nothing goes before the end"
    );
    play.put("a", service(enabled(&[])));
    // It breaks off, and begins anew.
    play.event(Watched::Services, Event::Listing);
    play.put("b", service(enabled(&[])));
    play.put("d", service(enabled(&[])));
    assert_eq!(served(&mut play), ["a", "b", "c", "d"]);
    play.event(Watched::Services, Event::Listed);
    let changes = play.take();
    assert_eq!(
        changes,
        ["a", "c"].map(|text| ShardChange::Remove(object(ObjectKind::Service, text)))
    );
    assert_eq!(served(&mut play), ["b", "d"]);
    // The same list again changes nothing.
    play.list(
        Watched::Services,
        vec![("b", web(enabled(&[]))), ("d", web(enabled(&[])))],
    );
    assert_eq!(play.take(), []);
    play.gone(Watched::Services, "b");
    play.gone(Watched::Services, "nobody");
    assert_eq!(served(&mut play), ["d"]);
}

#[test]
fn an_event_touches_what_depends_on_it() {
    let mut play = Play::listed();
    play.put(
        "gw",
        gateway(said(&[]), vec![listener("a", "*.example.com")]),
    );
    let mut record = route(enabled(&[]), &["a.example.com"], vec![parent("gw")]);
    record.backends = backs(&[("web", true)]);
    play.put("r", record);
    play.put("in", ingress(enabled(&[]), &[], &[("web", true)]));
    play.put("web", service(enabled(&[])));
    play.put("other", service(enabled(&[])));
    play.take();
    // The endpoints of a Service: it, and who sends traffic there.
    play.put("web-1", slice("web", 1, 1));
    assert_eq!(play.world.dirty.len(), 3);
    assert_eq!(play.take().len(), 3);
    // A Gateway: it and its Routes; not so the count of its Routes.
    let mut record = gateway(said(&[]), vec![listener("a", "*.example.com")]);
    record.listeners[0].attached = 7;
    play.put("gw", record.clone());
    assert_eq!(play.world.dirty.len(), 1);
    record.entries = entries(&["192.0.2.33"]);
    play.put("gw", record.clone());
    assert_eq!(play.world.dirty.len(), 2);
    assert_eq!(play.take().len(), 1);
    // A Service: itself alone, as long as unready endpoints count as before.
    play.put("web", service(enabled(&[("weight", "2")])));
    assert_eq!(play.world.dirty.len(), 1);
    play.take();
    // The same again: nobody.
    play.put("gw", record);
    play.put("web", service(enabled(&[("weight", "2")])));
    play.put("web-1", slice("web", 1, 1));
    assert_eq!(play.world.dirty.len(), 0);
    // Who turns to other Services is not touched by the former ones.
    play.put("in", ingress(enabled(&[]), &[], &[("other", true)]));
    play.take();
    play.put("web-1", slice("web", 2, 2));
    assert_eq!(play.world.dirty.len(), 2);
}

#[test]
fn what_is_held_stands_until_its_kind_is_listed() {
    let mut play = Play::with(Rules::default(), held(&["a", "b", "c"]));
    assert_eq!(play.take(), []);
    for watched in kinds() {
        if watched != Watched::Services && watched != Watched::EndpointSlices {
            play.list(watched, vec![]);
        }
    }
    assert_eq!(play.take(), [], "other kinds say nothing about it");
    play.event(Watched::Services, Event::Listing);
    play.put("b", service(enabled(&[("weight", "5")])));
    let changes = play.take();
    assert_eq!(changes.len(), 1, "what comes counts at once");
    assert_eq!(served(&mut play), ["a", "b", "c"]);
    play.put("a", service(enabled(&[])));
    play.event(Watched::Services, Event::Listed);
    assert_eq!(served(&mut play), ["a", "b"]);
}

#[test]
fn a_world_that_finds_what_it_held_says_nothing() {
    let mut play = Play::listed();
    play.put("a", service(enabled(&[("drain", "true")])));
    play.put("a-1", slice("a", 1, 2));
    let before = play.service("a");
    let mut play = Play::with(Rules::default(), vec![before]);
    let drained = web(enabled(&[("drain", "true")]));
    play.list(Watched::Services, vec![("a", drained)]);
    assert_eq!(play.take(), []);
    play.list(
        Watched::EndpointSlices,
        vec![("a-1", slice("a", 1, 2).into())],
    );
    assert_eq!(play.take(), []);
}

#[test]
fn routes_wait_for_their_gateways() {
    let mut play = Play::listed();
    play.put(
        "gw",
        gateway(enabled(&[]), vec![listener("a", "*.example.com")]),
    );
    let record = route(said(&[]), &["a.example.com"], vec![parent("gw")]);
    play.put("old", record.clone());
    let old = play.route("old");
    let mut play = Play::with(Rules::default(), vec![old.clone()]);
    let routes = vec![("old", record.clone().into()), ("new", record.into())];
    play.list(Watched::HttpRoutes, routes);
    assert_eq!(play.take(), []);
    let told = play.world.overview().told;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].key, key("new"));
    assert_eq!(&*told[0].refused[0].reason, "Gateways are not read yet");
    let found = gateway(enabled(&[]), vec![listener("a", "*.example.com")]);
    play.list(Watched::Gateways, vec![("gw", found.into())]);
    play.take();
    assert_eq!(play.route("old"), old);
    assert_eq!(hosts(&play.route("new")), ["a.example.com"]);
    assert_eq!(play.world.overview().told, []);
}

#[test]
fn an_object_that_cannot_be_read_stands() {
    let mut play = Play::with(Rules::default(), held(&["a", "b"]));
    play.event(Watched::Services, Event::Listing);
    let spoil = |play: &mut Play, text| {
        play.event(
            Watched::Services,
            Event::Unreadable(key(text), refusal("metadata")),
        );
    };
    spoil(&mut play, "a");
    spoil(&mut play, "never");
    play.put("b", service(enabled(&[])));
    play.event(Watched::Services, Event::Listed);
    assert_eq!(served(&mut play), ["a", "b"]);
    spoil(&mut play, "b");
    assert_eq!(play.take(), []);
    let told = play.world.overview().told;
    let told: Vec<_> = told
        .iter()
        .map(|told| (&*told.key.name, told.is_served))
        .collect();
    assert_eq!(told, [("a", true), ("b", true), ("never", false)]);
    // A list that names it keeps it; one that does not takes it away.
    play.event(Watched::Services, Event::Listing);
    spoil(&mut play, "a");
    play.event(Watched::Services, Event::Listed);
    assert_eq!(served(&mut play), ["a"]);
    play.put("a", service(enabled(&[("weight", "2")])));
    play.take();
    assert_eq!(play.world.overview().told, []);
    spoil(&mut play, "a");
    play.gone(Watched::Services, "a");
    assert_eq!(served(&mut play), Vec::<String>::new());
    assert_eq!(play.world.overview().told, []);
}

#[test]
fn a_gateway_that_could_never_be_read_holds_its_routes() {
    let mut play = Play::listed();
    let record = route(enabled(&[]), &["a.example.com"], vec![parent("gw")]);
    play.put("gw", gateway(said(&[]), vec![listener("a", "")]));
    play.put("web", record.clone());
    let before = play.route("web");
    let mut play = Play::with(Rules::default(), vec![before]);
    play.event(Watched::Gateways, Event::Listing);
    let odd = Event::Unreadable(key("gw"), refusal("spec"));
    play.event(Watched::Gateways, odd.clone());
    play.event(Watched::Gateways, Event::Listed);
    play.list(Watched::EndpointSlices, vec![]);
    play.list(Watched::HttpRoutes, vec![("web", record.into())]);
    assert_eq!(play.take(), []);
    // Without a Gateway it is not ready; that it came and is odd, it stands as it is.
    play.gone(Watched::Gateways, "gw");
    assert_eq!(unready(&play.route("web")), "Gateway shop/gw is not there");
    play.event(Watched::Gateways, odd);
    assert_eq!(play.take(), []);
    assert_eq!(play.world.overview().told.len(), 1);
}

#[test]
fn a_kind_that_is_not_served_any_more_is_believed_after_a_while() {
    let mut play = Play::with(Rules::default(), held(&["a", "b"]));
    play.event(Watched::Services, Event::Unserved);
    assert_eq!(play.take_at(0), []);
    assert_eq!(play.world.due(), Some(at(300)));
    let held = play.world.overview().held.unwrap();
    assert_eq!((held.since, held.until, held.count), (at(0), at(300), 2));
    assert_eq!(play.take_at(299), []);
    // It is served again: nothing was lost.
    play.event(Watched::Services, Event::Listing);
    assert_eq!(play.take_at(301), []);
    assert_eq!(play.world.due(), None);
    let both = vec![("a", web(enabled(&[]))), ("b", web(enabled(&[])))];
    play.list(Watched::Services, both);
    assert_eq!(served(&mut play), ["a", "b"]);
    // Said twice it is once; and what else happens counts.
    play.event(Watched::Services, Event::Unserved);
    play.take_at(400);
    play.event(Watched::Services, Event::Unserved);
    play.list(
        Watched::EndpointSlices,
        vec![("a-1", slice("a", 1, 1).into())],
    );
    play.take_at(500);
    assert_eq!(unready(&play.service("a")), "");
    assert_eq!(served(&mut play), ["a", "b"]);
    assert_eq!(play.take_at(700).len(), 2);
    assert_eq!(served(&mut play), Vec::<String>::new());
    assert_eq!(play.world.overview().held, None);
    // It comes back empty, and full.
    play.list(Watched::Services, vec![]);
    assert_eq!(play.take(), []);
    play.put("a", service(enabled(&[])));
    assert_eq!(served(&mut play), ["a"]);
}

#[test]
fn gateways_that_nobody_shows_any_more_stay_for_their_routes() {
    let mut play = Play::listed();
    play.put(
        "gw",
        gateway(enabled(&[]), vec![listener("a", "*.example.com")]),
    );
    play.put(
        "web",
        route(said(&[]), &["a.example.com"], vec![parent("gw")]),
    );
    let before = play.route("web");
    play.event(Watched::Gateways, Event::Unserved);
    play.event(Watched::EndpointSlices, Event::Unserved);
    assert_eq!(play.take_at(10), []);
    assert_eq!(play.take_at(309), []);
    assert_eq!(play.route("web"), before);
    // Believed: both were served by the Gateway's word.
    assert_eq!(play.take_at(310).len(), 2);
}

#[test]
fn without_the_guard_a_kind_that_is_not_served_goes_at_once() {
    let mut rules = Rules::default();
    rules.mass_deletion.hold = false;
    let mut play = Play::with(rules, held(&["a", "b"]));
    play.event(Watched::Services, Event::Unserved);
    assert_eq!(play.take().len(), 2);
    // Where nothing was, nothing is held.
    let mut play = Play::listed();
    play.event(Watched::Ingresses, Event::Unserved);
    play.take();
    assert_eq!(play.world.due(), None);
    assert_eq!(play.world.overview().held, None);
}

#[test]
fn new_rules_project_everything_again() {
    let mut play = Play::listed();
    play.put("a", service(said(&[])));
    play.put("b", service(enabled(&[])));
    assert_eq!(served(&mut play), ["b"]);
    let rules = Rules {
        opt_in: false,
        ..Rules::default()
    };
    play.world.set_rules(Arc::new(rules.clone()));
    assert_eq!(served(&mut play), ["a", "b"]);
    play.world.set_rules(Arc::new(rules));
    assert_eq!(play.world.dirty.len(), 0);
    play.world.set_rules(Arc::default());
    assert_eq!(served(&mut play), ["b"]);
}

#[test]
fn records_of_another_kind_are_passed_over() {
    let mut play = Play::listed();
    for watched in [Watched::Ingresses, Watched::EndpointSlices, Watched::Nodes] {
        let record = Box::new(web(enabled(&[])));
        play.event(watched, Event::Applied(key("a"), record));
    }
    let record = Box::new(slice("a", 1, 1).into());
    play.event(Watched::Services, Event::Applied(key("a"), record));
    assert_eq!(play.take(), []);
    assert!(
        play.world
            .overview()
            .kinds
            .iter()
            .all(|kind| kind.objects == 0)
    );
}

#[test]
fn what_a_list_leaves_out_is_not_gone() {
    let mut play = Play::with(Rules::default(), held(&["a", "b", "c"]));
    play.event(Watched::Services, Event::Listing);
    play.put("b", service(enabled(&[])));
    play.event(Watched::Services, Event::LeftOut);
    assert_eq!(served(&mut play), ["a", "b", "c"]);
    // What is said to be gone is gone all the same.
    play.gone(Watched::Services, "b");
    assert_eq!(served(&mut play), ["a", "c"]);
    play.put("b", service(enabled(&[])));
    assert_eq!(served(&mut play), ["a", "b", "c"]);
    // The next list has room for all.
    play.list(Watched::Services, vec![("a", web(enabled(&[])))]);
    assert_eq!(served(&mut play), ["a"]);
    // Once one was complete, what is not there is known to be gone.
    play.put("d", service(enabled(&[])));
    play.event(Watched::Services, Event::LeftOut);
    play.gone(Watched::Services, "d");
    assert_eq!(served(&mut play), ["a"]);
}

#[test]
fn endpoints_that_are_left_out_are_not_missing() {
    let ready = |play: &mut Play, text: &str| play.service(text).readiness;
    let mut play = Play::listed();
    for text in ["a", "b"] {
        play.put(text, service(enabled(&[])));
        play.put(&format!("{text}-1"), slice(text, 1, 1));
        assert_eq!(ready(&mut play, text), Readiness::Ready);
    }
    play.event(Watched::EndpointSlices, Event::Listing);
    play.put("a-1", slice("a", 0, 1));
    play.gone(Watched::EndpointSlices, "b-1");
    play.event(Watched::EndpointSlices, Event::LeftOut);
    assert_ne!(ready(&mut play, "a"), Readiness::Ready, "it is seen");
    assert_eq!(ready(&mut play, "b"), Readiness::Ready, "nobody knows");
    // Another one comes, and is left out at once.
    play.put("c", service(enabled(&[])));
    assert_eq!(ready(&mut play, "c"), Readiness::Ready);
    play.list(
        Watched::EndpointSlices,
        vec![("a-1", slice("a", 1, 1).into())],
    );
    assert_eq!(ready(&mut play, "a"), Readiness::Ready);
    assert_ne!(ready(&mut play, "b"), Readiness::Ready);
}
