//! Names of endpoints of headless services in cluster sets (KEP-1645).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::world::{AMERICAN, GERMAN, world_of_hosts};
use super::zones::with_file;
use super::{Ask, Transport, World, lines};
use crate::answer::{explain, synthesized_service};
use crate::model::{ClientSubnet, LowerName, PrefixLen, RecordType};
use crate::zone::{NameForms, Zone, ZoneSpec};

/// Static records beside the endpoints: they go first.
const RECORDS: &str = "
db-1.us.db.shop.svc TXT own
deep.db-0.us.db.shop.svc TXT below
*.wild.shop.svc TXT wild
alias CNAME db-0.eu.db.shop.svc
";

fn world() -> World {
    let text = format!("$TTL 300\n@ NS ns.example.\n{RECORDS}");
    let spec = ZoneSpec {
        nameservers: Vec::new(),
        forms: NameForms {
            cluster_set: true,
            ..NameForms::default()
        },
        ..with_file("svc.test", text)
    };
    world_of_hosts(vec![Arc::new(Zone::compile(&spec).expect("a good zone"))])
}

/// Asks for a name in `svc.test`; gives the code and the records in order, without the zone's name and the SOA's data.
fn ask(world: &mut World, question: &str, client: &str) -> String {
    let (name, qtype) = question.split_once(' ').unwrap();
    let ask = Ask::of(&format!("{name}.svc.test {qtype}")).ecs(client);
    let reply = lines(&world.ask_over(&ask, Transport::Tcp));
    let brief = |line: &String| {
        let line = line.split(" IN SOA").next().unwrap_or_default();
        line.replace(".svc.test.", "")
    };
    let shown = reply.iter().filter(|line| !line.starts_with("edns"));
    let mut shown: Vec<String> = shown.map(brief).collect();
    // An RRset has no order.
    let count = shown.len() - 1;
    if let Some(records) = shown.get_mut(1..count) {
        records.sort();
    }
    shown.join("; ")
}

fn check(world: &mut World, client: &str, table: &[(&str, &str)]) {
    for (question, wanted) in table {
        assert_eq!(ask(world, question, client), *wanted, "{question}");
    }
}

const NODATA: &str = "NOERROR aa; ns svc.test. 20; ecs 24 0";
const BRIEF: &str = "NOERROR aa; ns svc.test. 5; ecs 24 0";
const NXDOMAIN: &str = "NXDOMAIN aa; ns svc.test. 20; ecs 24 0";

#[test]
fn an_endpoint_is_answered_at_its_own_name() {
    check(
        &mut world(),
        GERMAN,
        &[
            (
                "db.shop.svc A",
                "NOERROR aa; an db.shop.svc 30 IN A 10.1.0.1; an db.shop.svc 30 IN A 10.1.0.2; an db.shop.svc 30 IN A 10.1.0.3; an db.shop.svc 30 IN A 10.2.0.1; ecs 24 0",
            ),
            (
                "db-0.eu.db.shop.svc A",
                "NOERROR aa; an db-0.eu.db.shop.svc 30 IN A 10.1.0.1; ecs 24 0",
            ),
            (
                "db-0.eu.db.shop.svc AAAA",
                "NOERROR aa; an db-0.eu.db.shop.svc 30 IN AAAA 2001:db8:1::1; ecs 24 0",
            ),
            // Several of one label: all of them.
            (
                "db-1.eu.db.shop.svc A",
                "NOERROR aa; an db-1.eu.db.shop.svc 30 IN A 10.1.0.2; an db-1.eu.db.shop.svc 30 IN A 10.1.0.3; ecs 24 0",
            ),
            (
                "db-0.us.db.shop.svc A",
                "NOERROR aa; an db-0.us.db.shop.svc 30 IN A 10.2.0.1; ecs 24 0",
            ),
            ("db-1.eu.db.shop.svc AAAA", BRIEF),
            ("db-0.eu.db.shop.svc TXT", NODATA),
            ("db-0.eu.db.shop.svc SRV", NODATA),
            // Endpoints lie below the name of a cluster (RFC 8020), and below no other.
            ("eu.db.shop.svc A", NODATA),
            ("us.db.shop.svc TXT", NODATA),
            ("ap.db.shop.svc A", NXDOMAIN),
            ("eu.none.shop.svc A", NXDOMAIN),
            ("us.mixed.shop.svc A", NXDOMAIN),
            ("eu.web.shop.svc A", NXDOMAIN),
            ("db-2.eu.db.shop.svc A", NXDOMAIN),
            ("db-1.ap.db.shop.svc A", NXDOMAIN),
            ("db-0.db.shop.svc A", NXDOMAIN),
            ("x.db-0.eu.db.shop.svc A", NXDOMAIN),
            ("db-0.eu.web.shop.svc A", NXDOMAIN),
            ("db-0.eu.new.shop.svc A", NXDOMAIN),
            // Static records, and what stands above them.
            (
                "db-1.us.db.shop.svc TXT",
                "NOERROR aa; an db-1.us.db.shop.svc 300 IN TXT own; ecs 24 0",
            ),
            ("db-1.us.db.shop.svc A", NODATA),
            (
                "db-0.eu.wild.shop.svc TXT",
                "NOERROR aa; an db-0.eu.wild.shop.svc 300 IN TXT wild; ecs 24 0",
            ),
            ("db-0.eu.wild.shop.svc A", NODATA),
            (
                "alias A",
                "NOERROR aa; an alias 300 IN CNAME db-0.eu.db.shop.svc; an db-0.eu.db.shop.svc 30 IN A 10.1.0.1; ecs 24 0",
            ),
        ],
    );
}

#[test]
fn who_may_not_have_an_endpoint_is_answered_as_for_the_service() {
    let mut world = world();
    let denied = "NOERROR aa; ns svc.test. 5; ecs 24 24; ede 18";
    let service = ask(&mut world, "fenced.shop.svc A", AMERICAN);
    check(
        &mut world,
        AMERICAN,
        &[
            ("db-0.eu.fenced.shop.svc A", &service),
            ("db-0.us.fenced.shop.svc A", &service),
            ("_http._tcp.fenced.shop.svc SRV", &service),
            (
                "db-0.eu.fenced2.shop.svc A",
                "NOERROR aa; an db-0.eu.fenced2.shop.svc 30 IN A 203.0.113.80; ecs 24 6",
            ),
            (
                "_http._tcp.fenced2.shop.svc SRV",
                "NOERROR aa; an _http._tcp.fenced2.shop.svc 30 IN SRV 0 0 80 fenced2.shop.svc; ecs 24 6",
            ),
            (
                "db-0.eu.fenced3.shop.svc A",
                "NOERROR aa; an db-0.eu.fenced3.shop.svc 30 IN CNAME www.example.; ecs 24 6",
            ),
        ],
    );
    assert!(
        service.starts_with(denied.split(';').next().unwrap()),
        "{service}"
    );
    assert!(!service.contains(" IN A "), "{service}");
    // Inside the fence a client has its own cluster's, and not those of another.
    check(
        &mut world,
        GERMAN,
        &[(
            "db-0.eu.fenced.shop.svc A",
            "NOERROR aa; an db-0.eu.fenced.shop.svc 30 IN A 10.1.0.1; ecs 24 24",
        )],
    );
    let other = ask(&mut world, "db-0.us.fenced.shop.svc A", GERMAN);
    assert!(!other.contains(" IN A "), "{other}");
}

#[test]
fn health_makes_no_empty_answer_of_an_endpoint() {
    check(
        &mut world(),
        GERMAN,
        &[
            (
                "dead.shop.svc A",
                "NOERROR aa; an dead.shop.svc 30 IN A 10.7.0.1; ecs 24 0",
            ),
            (
                "db-0.eu.dead.shop.svc A",
                "NOERROR aa; an db-0.eu.dead.shop.svc 30 IN A 10.3.0.1; ecs 24 0",
            ),
        ],
    );
}

#[test]
fn a_port_has_an_srv_for_each_endpoint_that_the_client_is_answered_with() {
    let mut world = world();
    check(
        &mut world,
        GERMAN,
        &[
            (
                "_http._tcp.db.shop.svc SRV",
                "NOERROR aa; an _http._tcp.db.shop.svc 30 IN SRV 0 0 8080 db-0.eu.db.shop.svc; an _http._tcp.db.shop.svc 30 IN SRV 0 0 8080 db-0.us.db.shop.svc; an _http._tcp.db.shop.svc 30 IN SRV 0 0 8080 db-1.eu.db.shop.svc; ecs 24 0",
            ),
            // Only those that are up.
            (
                "_http._tcp.dead.shop.svc SRV",
                "NOERROR aa; an _http._tcp.dead.shop.svc 30 IN SRV 0 0 8080 db-1.eu.dead.shop.svc; ecs 24 0",
            ),
            // Where it has an address of its own, its own name stands beside.
            (
                "_http._tcp.mixed.shop.svc SRV",
                "NOERROR aa; an _http._tcp.mixed.shop.svc 30 IN SRV 0 0 80 mixed.shop.svc; an _http._tcp.mixed.shop.svc 30 IN SRV 0 0 8080 db-0.eu.mixed.shop.svc; ecs 24 0",
            ),
            // No endpoint listens there, or there is none.
            ("_dns._udp.db.shop.svc SRV", BRIEF),
            ("_http._tcp.none.shop.svc SRV", BRIEF),
            ("_https._tcp.db.shop.svc SRV", NXDOMAIN),
            ("_tcp.db.shop.svc SRV", NODATA),
        ],
    );
    let many = ask(&mut world, "_http._tcp.many.shop.svc SRV", GERMAN);
    assert_eq!(many.matches(" SRV ").count(), 32);
    let targets: BTreeSet<&str> = many.split("8080 ").skip(1).collect();
    assert_eq!(targets.len(), 32);
    // Over UDP it is whole or cut off.
    let cut = world.ask(&Ask::of("_http._tcp.many.shop.svc.svc.test SRV"));
    assert_eq!((cut.answers.len(), cut.metadata.truncation), (0, true));
}

#[test]
fn ports_of_a_service_that_is_steered_by_place_are_those_of_the_clients_cluster() {
    let mut world = world();
    for (client, cluster, scope) in [(GERMAN, "eu", 24), (AMERICAN, "us", 24)] {
        let wanted = format!(
            "NOERROR aa; an _http._tcp.near.shop.svc 30 IN SRV 0 0 8080 db-0.{cluster}.near.shop.svc; ecs 24 {scope}"
        );
        let found = ask(&mut world, "_http._tcp.near.shop.svc SRV", client);
        assert_eq!(found, wanted);
    }
}

#[test]
fn ports_of_a_service_that_takes_turns_are_of_each_cluster_as_often() {
    let mut world = world();
    let mut of_eu = 0;
    for _ in 0..400 {
        let found = ask(&mut world, "_http._tcp.turn.shop.svc SRV", GERMAN);
        assert_eq!(found.matches(" SRV ").count(), 1, "{found}");
        of_eu += found.matches("db-0.eu.").count();
    }
    assert!((150..=250).contains(&of_eu), "{of_eu} of 400");
}

#[test]
fn an_endpoint_by_its_own_name_is_the_same_for_everybody_where_no_fence_is() {
    let mut world = world();
    for (name, scope) in [("db-0.eu.near", 0), ("db-0.eu.fenced", 24)] {
        let found = ask(&mut world, &format!("{name}.shop.svc A"), GERMAN);
        assert!(found.ends_with(&format!("; ecs 24 {scope}")), "{found}");
    }
}

#[test]
fn the_case_is_that_of_the_question_and_explain_says_what_it_is() {
    let mut world = world();
    let reply = lines(&world.ask(&Ask::of("DB-0.EU.Db.shop.svc.SVC.test A")));
    assert_eq!(
        reply[1],
        "an DB-0.EU.Db.shop.svc.SVC.test. 30 IN A 10.1.0.1"
    );
    let explained = |name: &str, qtype| {
        let client = ClientSubnet {
            address: "192.0.2.0".parse().unwrap(),
            source: PrefixLen(24),
        };
        let name: LowerName = format!("{name}.svc.test").parse().unwrap();
        let explained = explain(&world.snapshot, &name, qtype, client);
        (explained.steps.join("\n"), explained.answer.len())
    };
    let (text, count) = explained("db-0.us.db.shop.svc", RecordType::A);
    for part in [
        "the name of an endpoint of a service in the cluster set of zone svc.test",
        "Why: the endpoint was asked for by its name",
        "Chosen: cluster us; TTL 30",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(count, 1);
    let (text, count) = explained("_http._tcp.db.shop.svc", RecordType::SRV);
    for part in [
        "80: one SRV with the name of each endpoint, at its own number",
        "Chosen: every endpoint of 2 clusters; TTL 30",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(count, 3);
}

#[test]
fn the_service_of_an_endpoint_is_found() {
    let world = world();
    let found = |name: &str| {
        let name: LowerName = format!("{name}.svc.test").parse().unwrap();
        synthesized_service(&world.snapshot, name.as_ref(), RecordType::A).is_some()
    };
    for (name, wanted) in [
        ("db-0.eu.db.shop.svc", true),
        ("db-0.us.db.shop.svc", true),
        ("db-1.us.db.shop.svc", false),
        ("eu.db.shop.svc", false),
        ("db.shop.svc", false),
        ("db-0.eu.wild.shop.svc", false),
    ] {
        assert_eq!(found(name), wanted, "{name}");
    }
}
