//! `explain` says what the packet says.

use super::world::{AMERICAN, GERMAN, world};
use super::{Ask, World};
use crate::answer::{Asker, Explanation, Transport, explain, explain_offline};
use crate::model::{ClientSubnet, PrefixLen, RecordType};

fn explained(world: &World, question: &str, client: &str) -> Explanation {
    let (name, qtype) = question.split_once(' ').unwrap();
    let (address, source) = client.split_once('/').unwrap();
    let client = ClientSubnet {
        address: address.parse().unwrap(),
        source: PrefixLen(source.parse().unwrap()),
    };
    let qtype: RecordType = qtype.parse().unwrap();
    explain(&world.snapshot, &name.parse().unwrap(), qtype, client)
}

#[test]
fn the_reply_is_the_packets() {
    let mut world = world();
    for question in [
        "near.svc.test A",
        "near.svc.test AAAA",
        "near.example A",
        "fenced.svc.test A",
        "dead2.svc.test A",
        "host2.svc.test A",
        "all.svc.test A",
        "nothing.svc.test A",
        "www.example MX",
        "example MX",
        "example SOA",
        "example.net A",
        "child.example A",
        "_s._tcp.example SRV",
        "x.wild.example TXT",
        "new.example TYPE65280",
    ] {
        for client in [GERMAN, AMERICAN, "203.0.113.0/24"] {
            let words = explained(&world, question, client);
            let packet = world.ask_over(&Ask::of(question).ecs(client), Transport::Tcp);
            let code = format!("{:?}", packet.metadata.response_code).to_uppercase();
            assert_eq!(words.rcode, code, "{question}");
            assert_eq!(words.answer.len(), packet.answers.len(), "{question}");
            let ttl = packet.answers.iter().map(|record| record.ttl).min();
            assert!(ttl.is_none() || ttl == words.ttl, "{question}");
        }
    }
}

#[test]
fn the_steps_name_place_distance_and_choice() {
    let world = world();
    let words = explained(&world, "near.svc.test A", GERMAN);
    let text = words.steps.join("\n");
    assert_eq!(words.cluster.as_deref(), Some("eu"));
    assert_eq!(words.answer, ["near.svc.test. 30 IN A 10.1.0.1"]);
    assert_eq!((words.scope, words.ttl), (24, Some(30)));
    for part in [
        "steered name of zone svc.test",
        "country DE",
        "Cluster eu: 0 km, 1 in the order of use (group 1, tier 1), 1 of 1 IPv4 endpoints up",
        "Cluster us: 6",
        "the nearest comes first",
        "Chosen: cluster eu; TTL 30",
        "first 24 bits",
    ] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    let denied = explained(&world, "fenced.svc.test A", AMERICAN)
        .steps
        .join("\n");
    assert!(
        denied.contains("the fence leaves this client no cluster"),
        "{denied}"
    );
    let drawn = explained(&world, "weighted.svc.test A", AMERICAN)
        .steps
        .join("\n");
    assert!(drawn.contains("eu 75.0 %, us 25.0 %"), "{drawn}");
}

#[test]
fn ipv4_in_ipv6_dress_is_ipv4_as_in_the_packet() {
    let world = world();
    let plain = explained(&world, "near.svc.test A", GERMAN);
    let dressed = explained(&world, "near.svc.test A", "::ffff:192.0.2.0/120");
    assert_eq!(dressed.answer, plain.answer);
    assert_eq!(
        (dressed.cluster.as_deref(), dressed.scope),
        (Some("eu"), plain.scope + 96)
    );
    let text = dressed.steps.join("\n");
    assert!(text.contains("192.0.2.0/24 in IPv6 dress"), "{text}");
}

#[test]
fn refusals_are_explained_by_the_fence_and_with_the_ttl_sent() {
    let world = world();
    let denied = explained(&world, "fenced.svc.test A", AMERICAN);
    let text = denied.steps.join("\n");
    assert!(
        text.contains("Why: the fence leaves this client none of the service's 2 clusters"),
        "{text}"
    );
    assert!(text.contains("kept for 5 s"), "{text}");
    assert!(
        !text.contains("TTL 30") && !text.contains("one cluster"),
        "{text}"
    );
    // Addresses answer no other type, whatever was chosen.
    let text = explained(&world, "near.svc.test TXT", GERMAN)
        .steps
        .join("\n");
    assert!(!text.contains("TTL 30"), "{text}");
}

#[test]
fn a_configuration_alone_knows_no_health_and_a_resolver_sends_no_network() {
    let world = world();
    let asker = Asker::Resolver("192.0.2.7".parse().unwrap());
    let name = "near.svc.test".parse().unwrap();
    let words = explain_offline(&world.snapshot, &name, RecordType::A, asker);
    let text = words.steps.join("\n");
    assert_eq!((words.cluster.as_deref(), words.scope), (Some("eu"), 0));
    for part in [
        "by 192.0.2.7, which sends no Client Subnet",
        "Health is not looked at: every endpoint counts as up",
        "1 IPv4 endpoint",
        "NOERROR, 1 record, kept for 30 s, for all clients of this resolver",
    ] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    assert!(!text.contains("endpoints up"), "{text}");
}
