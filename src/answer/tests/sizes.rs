//! Sizes: RFC 1035 section 4.2.1, RFC 6891 section 6.2, RFC 9715, RFC 2181 section 9; names at the limit.

use super::world::world;
use super::{Ask, decode};
use crate::answer::Transport;
use crate::telemetry::Count;

#[test]
fn rfc6891_6_2_datagrams_are_bounded() {
    let mut world = world();
    // 40 addresses need 671 octets, 150 need 2431, 32 of IPv6 need 927.
    for (question, size, whole) in [
        ("medium.example A", None, false),
        ("medium.example A", Some(100), false),
        ("medium.example A", Some(512), false),
        ("medium.example A", Some(1232), true),
        ("medium.example A", Some(65535), true),
        ("large.example A", Some(65535), false),
        ("many.svc.test AAAA", None, false),
        ("many.svc.test AAAA", Some(1232), true),
    ] {
        let mut ask = Ask::of(question);
        if let Some(size) = size {
            ask = ask.edns(size);
        }
        let octets = world
            .send(&ask.packet(), ask.sender, Transport::Udp)
            .unwrap();
        let reply = decode(&octets);
        let limit = size.map_or(512, |size| usize::from(size.clamp(512, 1232)));
        assert!(octets.len() <= limit, "{question} {size:?}");
        assert_eq!(reply.metadata.truncation, !whole, "{question} {size:?}");
        assert_eq!(
            reply.answers.is_empty(),
            !whole,
            "an RRset is whole or absent"
        );
        assert_eq!(reply.edns.is_some(), size.is_some(), "OPT is always kept");
        let full = world.ask_over(&ask, Transport::Tcp);
        assert!(!full.metadata.truncation);
        assert!(full.answers.len() >= 32);
    }
    assert!(
        world
            .counted(&Ask::of("large.example A"))
            .contains(&Count::Truncated)
    );
}

#[test]
fn help_is_dropped_without_tc() {
    let mut world = world();
    let ask = Ask::of("example MX");
    let small = world
        .send(&ask.packet(), ask.sender, Transport::Udp)
        .unwrap();
    assert_eq!(decode(&small).additionals.len(), 2);
    // A buffer that holds the answer and no more.
    for length in 0..small.len() {
        let mut out = vec![0; length];
        let sender = crate::answer::Sender {
            address: ask.sender,
            transport: Transport::Udp,
        };
        let worker = (&mut world.draws, &world.counters);
        let outcome =
            crate::answer::answer(&world.snapshot, &ask.packet(), sender, &mut out, worker);
        let crate::answer::Outcome::Reply(written) = outcome else {
            assert!(length < ask.packet().len());
            continue;
        };
        let reply = decode(&out[..written]);
        assert_eq!(
            reply.metadata.truncation,
            reply.answers.is_empty(),
            "{length}"
        );
    }
}

#[test]
fn rfc1035_2_3_4_names_of_255_octets_work() {
    let mut world = world();
    let label = "x".repeat(63);
    // 3 * 64 + 49 + 5 + 8 + 1 octets.
    let name = format!("{label}.{label}.{label}.{}.wild.example", "y".repeat(48));
    let ask = Ask::of(&format!("{name} A"));
    assert_eq!(ask.name.len(), 255);
    let reply = world.ask(&ask);
    assert_eq!(reply.answers[0].data.to_string(), "192.0.2.99");
    let mut longer = ask.packet();
    // One octet more in the first label would make it 64; so the fourth grows.
    let at = 12 + 3 * 64;
    longer[at] += 1;
    longer.insert(at + 1, b'y');
    let reply = world.send(&longer, ask.sender, Transport::Udp).unwrap();
    assert_eq!(reply[3] & 15, 1, "256 octets are FORMERR");
}

#[test]
fn compression_is_used_and_leads_backwards() {
    let mut world = world();
    let ask = Ask::of("example MX");
    let reply = world
        .send(&ask.packet(), ask.sender, Transport::Udp)
        .unwrap();
    // Header, question; two MX with owner pointers and exchanges of one label and a pointer; two addresses of pointers.
    let mx = |label: usize| 2 + 10 + 2 + 1 + label + 2;
    assert_eq!(reply.len(), 12 + 9 + 4 + mx(4) + mx(5) + 2 * 16);
}
