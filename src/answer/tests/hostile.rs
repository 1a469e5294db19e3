//! Any octets in: never a panic, never a reply to a reply, and every reply decodes elsewhere.

use std::sync::{Mutex, OnceLock};

use hickory_proto::op::Message;
use proptest::prelude::*;

use super::world::world;
use super::{Ask, World, decode, lines};
use crate::answer::{Outcome, Query, QueryError, Sender, Transport};

/// One world for all cases: building one costs more than asking it.
fn shared() -> &'static Mutex<World> {
    static WORLD: OnceLock<Mutex<World>> = OnceLock::new();
    WORLD.get_or_init(|| Mutex::new(world()))
}

#[test]
fn what_is_no_query_is_told_apart() {
    let good = Ask::of("www.example A").packet();
    let with = |at: usize, octet: u8| {
        let mut packet = good.clone();
        packet[at] = octet;
        packet
    };
    for (packet, expected) in [
        (good.clone(), Ok(())),
        (Vec::new(), Err(QueryError::Drop)),
        (good[..11].to_vec(), Err(QueryError::Drop)),
        (with(2, 0x80), Err(QueryError::Drop)),
        (with(2, 0xa0), Err(QueryError::Drop)),
        (with(2, 0x20), Err(QueryError::Rare)),
        (with(2, 0x78), Err(QueryError::Rare)),
        (good[..12].to_vec(), Err(QueryError::Malformed)),
        // RFC 9619 section 4.
        (with(5, 0), Err(QueryError::Malformed)),
        (with(5, 2), Err(QueryError::Malformed)),
        (with(4, 1), Err(QueryError::Malformed)),
        // Compressed, cut off, left over, records that are not there.
        (with(12, 0xc0), Err(QueryError::Malformed)),
        (good[..good.len() - 1].to_vec(), Err(QueryError::Malformed)),
        ([good.clone(), vec![0]].concat(), Err(QueryError::Malformed)),
        (with(7, 1), Err(QueryError::Malformed)),
        (with(9, 1), Err(QueryError::Malformed)),
        (with(11, 1), Err(QueryError::Malformed)),
    ] {
        assert_eq!(Query::parse(&packet).map(|_| ()), expected, "{packet:?}");
    }
    // Other records are skipped, compressed owners too: an IXFR has a SOA in authority (RFC 1995 section 3).
    let mut ixfr = good.clone();
    ixfr[9] = 1;
    ixfr.extend([0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0]);
    assert!(Query::parse(&ixfr).is_ok());
}

#[test]
fn rfc9619_4_formerr_has_what_could_be_read() {
    let mut world = world();
    let good = Ask::of("www.example A")
        .flags([1, 0x10])
        .edns(1232)
        .packet();
    for (at, octet, questions) in [(5, 2, 0), (5, 0, 0), (7, 1, 1), (12, 0xc0, 0)] {
        let mut packet = good.clone();
        packet[at] = octet;
        let reply = world
            .send(&packet, "192.0.2.1".parse().unwrap(), Transport::Udp)
            .unwrap();
        let message = decode(&reply);
        assert_eq!(lines(&message)[0], "FORMERR rd cd");
        assert_eq!(
            (message.metadata.id, message.queries.len()),
            (0x1234, questions)
        );
        assert_eq!(message.edns.is_some(), questions == 1);
    }
}

proptest! {
    #[test]
    fn any_octets_parse_without_panic(packet in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = Query::parse(&packet);
    }

    #[test]
    fn any_tail_after_a_good_header_parses_without_panic(
        counts in prop::array::uniform6(0..3_u8),
        tail in prop::collection::vec(prop_oneof![Just(0), Just(0xc0), Just(41), 0..70_u8, any::<u8>()], 0..200),
    ) {
        let [a, b, c, d, e, f] = counts;
        let mut packet = vec![a, b, 0, 0, 0, 1, 0, c, 0, d, 0, e.max(f)];
        packet.extend(tail);
        if let Ok(query) = Query::parse(&packet) {
            let name = query.name().as_wire();
            prop_assert_eq!(name, &packet[12..12 + name.len()]);
        }
    }

    #[test]
    fn any_octets_get_a_sound_reply_or_none(
        flip in prop::collection::vec((0..120_usize, any::<u8>()), 0..5),
        cut in 0..140_usize,
        which in 0..6_usize,
        tcp in any::<bool>(),
    ) {
        let questions = ["near.svc.test A", "x.wild.svc.test AAAA", "alias2.example A", "x.dname.example A",
            "child.example NS", "example MX"];
        let mut packet = Ask::of(questions[which]).ecs("192.0.2.0/24").option(10, &[1; 8]).packet();
        for (at, octet) in flip {
            let length = packet.len();
            packet[at % length] = octet;
        }
        packet.truncate(cut);
        let transport = if tcp { Transport::Tcp } else { Transport::Udp };
        let mut world = shared().lock().unwrap();
        let reply = world.send(&packet, "192.0.2.1".parse().unwrap(), transport);
        if let Some(reply) = reply {
            prop_assert!(reply.len() <= 1232);
            prop_assert_eq!(&reply[..2], &packet[..2]);
            prop_assert!(reply[2] & 0x80 != 0 && packet[2] & 0x80 == 0);
            let message = Message::from_vec(&reply);
            prop_assert!(message.is_ok(), "{:?} {:02x?}", message, reply);
        }
    }

    #[test]
    fn any_buffer_is_enough_or_dropped(length in 0..300_usize, which in 0..4_usize) {
        let questions = ["near.svc.test A", "alias2.example A", "wide.example A", "x.dname.example A"];
        let packet = Ask::of(questions[which]).ecs("192.0.2.0/24").packet();
        let mut out = vec![0; length];
        let mut world = shared().lock().unwrap();
        let World { snapshot, draws, counters } = &mut *world;
        let sender = Sender { address: "192.0.2.1".parse().unwrap(), transport: Transport::Udp };
        match crate::answer::answer(snapshot, &packet, sender, &mut out, (draws, counters)) {
            Outcome::Reply(written) => prop_assert!(written <= length && Message::from_vec(&out[..written]).is_ok()),
            outcome => prop_assert_eq!(outcome, Outcome::Drop),
        }
    }
}

#[test]
fn udp_and_tcp_agree() {
    let mut world = world();
    for question in [
        "near.svc.test A",
        "www.example A",
        "nothing.example A",
        "child.example A",
        "x.dname.example A",
        "example NS",
        "www.example.net A",
        "example AXFR",
        "fenced.svc.test A",
    ] {
        let ask = Ask::of(question).ecs("198.51.100.0/24");
        let [udp, tcp] =
            [Transport::Udp, Transport::Tcp].map(|over| lines(&world.ask_over(&ask, over)));
        assert_eq!(udp, tcp, "{question}");
    }
}

#[test]
fn stages_and_the_whole_give_the_same() {
    let mut world = world();
    for question in [
        "near.svc.test A",
        "nothing.example A",
        "a.b.wild.example A",
        "host.svc.test A",
    ] {
        let packet = Ask::of(question).ecs("192.0.2.0/24").packet();
        let sender = Sender {
            address: "192.0.2.1".parse().unwrap(),
            transport: Transport::Udp,
        };
        let whole = world.send(&packet, sender.address, sender.transport);
        for ahead in [false, true] {
            let mut batch = [None, None];
            crate::answer::Lookup::begin(&mut batch[1], &world.snapshot, &packet, sender);
            if ahead {
                crate::answer::Lookup::advance(&mut batch, &world.snapshot);
            }
            let [_, Some(mut lookup)] = batch else {
                unreachable!()
            };
            let mut out = vec![0; 1232];
            let outcome =
                lookup.finish(&world.snapshot, &mut out, &mut world.draws, &world.counters);
            let Outcome::Reply(length) = outcome else {
                panic!("{outcome:?}")
            };
            assert_eq!(Some(out[..length].to_vec()), whole);
        }
    }
}
