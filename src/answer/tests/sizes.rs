//! Sizes: RFC 1035 section 4.2.1, RFC 6891 section 6.2, RFC 9715, RFC 2181 section 9; names at the limit.

use super::world::world;
use super::{Ask, decode};
use crate::answer::Transport;
use crate::telemetry::Count;

#[test]
fn rfc6891_6_2_rfc2181_9_datagrams_are_bounded() {
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
fn rfc2181_9_help_is_dropped_without_tc() {
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
fn rfc1035_4_1_4_compression_is_used_and_leads_backwards() {
    let mut world = world();
    let ask = Ask::of("example MX");
    let reply = world
        .send(&ask.packet(), ask.sender, Transport::Udp)
        .unwrap();
    // Header, question; two MX with owner pointers and exchanges of one label and a pointer; two addresses of pointers.
    let mx = |label: usize| 2 + 10 + 2 + 1 + label + 2;
    assert_eq!(reply.len(), 12 + 9 + 4 + mx(4) + mx(5) + 2 * 16);
}

/// RFC 6891 section 6.2.3: what a client says below 512 counts as 512.
#[test]
fn rfc1035_4_2_1_rfc6891_6_2_3_the_last_octet_counts() {
    let mut world = world();
    for (size, payload, whole) in [
        (511, None, true),
        (512, None, true),
        (513, None, false),
        (501, Some(0), true),
        (501, Some(100), true),
        (501, Some(511), true),
        (501, Some(512), true),
        (502, Some(511), false),
        (502, Some(512), false),
        (502, Some(513), true),
    ] {
        let mut ask = Ask::of(&format!("sz{size}.example TXT"));
        ask.edns = payload.map(|payload| (payload, [0; 4], Vec::new()));
        let octets = world
            .send(&ask.packet(), ask.sender, Transport::Udp)
            .unwrap();
        let reply = decode(&octets);
        assert_eq!(!reply.metadata.truncation, whole, "{size} {payload:?}");
        let opt = if payload.is_some() { 11 } else { 0 };
        if whole {
            assert_eq!(octets.len(), size + opt);
        } else {
            assert!(reply.answers.is_empty(), "{size} {payload:?}");
        }
    }
}

#[test]
fn rfc9471_3_2_sibling_glue_is_dropped_without_tc() {
    let mut world = world();
    let reply = world.ask(&Ask::of("www.tight.example A"));
    assert!(!reply.metadata.truncation);
    assert_eq!(reply.authorities.len(), 13);
    assert!(reply.additionals.len() < 26);
    let whole = world.ask_over(&Ask::of("www.tight.example A"), Transport::Tcp);
    assert_eq!((whole.authorities.len(), whole.additionals.len()), (13, 26));
}

#[test]
fn rfc2181_9_a_chain_cut_by_size_says_so() {
    let mut world = world();
    let ask = Ask::of("bigalias.example A").edns(1232);
    let cut = world.ask(&ask);
    assert!(cut.metadata.truncation);
    assert_eq!(
        cut.answers.len(),
        1,
        "the CNAME is whole, the addresses are absent"
    );
    let whole = world.ask_over(&ask, Transport::Tcp);
    assert!(!whole.metadata.truncation);
    assert_eq!(whole.answers.len(), 151);
}

/// A pointer has 14 bits: names that stand behind 0x3fff are written again.
#[test]
fn rfc1035_4_1_4_nothing_points_above_0x3fff() {
    let mut world = world();
    let ask = Ask::of("huge.example MX");
    let octets = world
        .send(&ask.packet(), ask.sender, Transport::Tcp)
        .unwrap();
    let reply = decode(&octets);
    assert_eq!((reply.answers.len(), reply.additionals.len()), (1101, 2));
    let last = reply.additionals.last().unwrap();
    assert_eq!(last.to_string(), "mail2.example. 300 IN A 192.0.2.26");
    let places: Vec<usize> = (0..octets.len() - 6)
        .filter(|&at| octets[at..].starts_with(b"\x05mail2"))
        .collect();
    assert_eq!(places.len(), 2, "it is not pointed to");
    assert!(places[0] > 0x3fff, "{places:?}");
}
