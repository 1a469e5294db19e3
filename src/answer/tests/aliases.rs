//! Host names in `fallback` and `fenceAnswer`: an owner is a CNAME for every type at once, or for none (RFC 2181 section 10.1).

use super::world::{AMERICAN, GERMAN, world, world_at_apex};
use super::{Ask, lines};
use crate::answer::explain;
use crate::model::{ClientSubnet, PrefixLen, RecordType};

const TYPES: [&str; 9] = [
    "A", "AAAA", "CNAME", "ANY", "MX", "TXT", "HTTPS", "SRV", "NS",
];

/// Asks for every type; gives the first line of each answer section, and the code.
fn answers(name: &str, client: &str) -> Vec<(String, Option<String>)> {
    let mut world = world();
    TYPES
        .iter()
        .map(|qtype| {
            let shown = lines(&world.ask(&Ask::of(&format!("{name} {qtype}")).ecs(client)));
            let answer = shown.iter().find(|line| line.starts_with("an "));
            (shown[0].clone(), answer.cloned())
        })
        .collect()
}

#[test]
fn rfc2181_10_1_a_fallback_host_name_is_the_answer_to_every_type() {
    let cname = "an dead3.svc.test. 30 IN CNAME cdn.example.net.".to_owned();
    for answer in answers("dead3.svc.test", GERMAN) {
        assert_eq!(answer, ("NOERROR aa".to_owned(), Some(cname.clone())));
    }
}

#[test]
fn rfc2181_10_1_a_fence_answer_host_name_is_the_answer_to_every_type() {
    let cname = "an fenced3.svc.test. 30 IN CNAME www.example.".to_owned();
    for answer in answers("fenced3.svc.test", AMERICAN) {
        assert_eq!(answer, ("NOERROR aa".to_owned(), Some(cname.clone())));
    }
}

/// Inside the fence the same name has addresses: then no type has a CNAME.
#[test]
fn rfc2181_10_1_a_name_with_addresses_is_no_cname() {
    let mut world = world();
    for qtype in TYPES {
        let ask = Ask::of(&format!("fenced3.svc.test {qtype}")).ecs(GERMAN);
        let shown = lines(&world.ask(&ask));
        assert_eq!(shown[0], "NOERROR aa");
        assert!(
            !shown.iter().any(|line| line.contains("CNAME")),
            "{shown:?}"
        );
        let is_negative = shown[1].starts_with("ns svc.test. 5 IN SOA");
        let has_data = matches!(qtype, "A" | "AAAA" | "ANY");
        assert_eq!(is_negative, !has_data, "{shown:?}");
        // It would be a CNAME for others: the scope says for whom it is not.
        assert_eq!(shown.last().unwrap(), "ecs 24 24", "{qtype}");
    }
}

/// RFC 1034 section 3.6.2: no CNAME can stand at the apex, and without its addresses a `fallback` is no answer there.
#[test]
fn a_fallback_that_nobody_has_resolved_leaves_the_apex_its_endpoints() {
    let mut world = world_at_apex();
    for (question, answer) in [
        (
            "dead.svc.test A",
            "an dead.svc.test. 30 IN CNAME cdn.example.net.",
        ),
        ("svc.test A", "an svc.test. 30 IN A 10.5.0.1"),
    ] {
        let shown = lines(&world.ask(&Ask::of(question).ecs(GERMAN)));
        assert_eq!(shown[..2], ["NOERROR aa", answer], "{question}");
    }
    let client = ClientSubnet {
        address: "192.0.2.0".parse().unwrap(),
        source: PrefixLen(24),
    };
    let name = "svc.test".parse().unwrap();
    let words = explain(&world.snapshot, &name, RecordType::A, client);
    assert_eq!(words.cluster.as_deref(), Some("eu"), "{:?}", words.steps);
    assert_eq!(words.answer.len(), 1, "{:?}", words.answer);
}
