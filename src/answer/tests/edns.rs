//! EDNS: RFC 6891, 7871, 7828, 5001, 7873, 8945.

use super::world::{GERMAN, world, world_with};
use super::{Ask, decode, lines};
use crate::answer::Transport;
use crate::snapshot::{EcsTrust, Settings};
use crate::telemetry::Count;

const WWW: [&str; 3] = [
    "NOERROR aa",
    "an upper.example. 300 IN A 192.0.2.82",
    "edns 0 1232",
];

/// What a query with EDNS gets beside its one answer.
fn with(extra: &[&'static str]) -> Vec<&'static str> {
    WWW.iter().chain(extra).copied().collect()
}

fn upper() -> Ask {
    Ask::of("upper.example A")
}

#[test]
fn rfc6891_6_1_1_opt_answers_opt() {
    let mut world = world();
    world.check(upper(), &WWW[..2]);
    world.check(upper().edns(4096), &with(&[]));
    world.check(upper().edns(0), &with(&[]));
    // DO is copied, the other flags are not; an extended RCODE in a query means nothing.
    world.check(
        upper().extended([0xff, 0, 0xff, 0xff]),
        &[WWW[0], WWW[1], "edns 0 1232 do"],
    );
    // Unknown options are ignored and not echoed.
    world.check(upper().option(65001, &[1, 2, 3]), &with(&[]));
    world.check(upper().option(12, &[0; 100]), &with(&[]));
}

#[test]
fn rfc6891_6_1_3_other_versions_get_badvers() {
    let mut world = world();
    for ask in [
        upper().extended([0, 1, 0, 0]),
        upper().extended([0, 255, 0, 0]),
        // Its options are not judged.
        upper().option(8, &[1]).extended([0, 1, 0, 0]),
        upper().ecs("192.0.2.0/24").extended([0, 1, 0, 0]),
    ] {
        let reply = world.ask(&ask);
        assert_eq!(u16::from(reply.metadata.response_code), 16);
        assert!(reply.answers.is_empty() && !reply.metadata.authoritative);
        assert_eq!(lines(&reply)[1..], ["edns 0 1232"]);
        assert_eq!(world.counted(&ask).last(), Some(&Count::BadVers));
    }
}

#[test]
fn rfc6891_6_1_1_bad_opt_is_formerr() {
    let mut world = world();
    let whole = upper().edns(1232).packet();
    let opt = whole[whole.len() - 11..].to_vec();
    let mut two = [whole.clone(), opt.clone()].concat();
    two[11] = 2;
    let mut owned = upper().packet();
    owned[11] = 1;
    owned.extend([1, b'a']);
    owned.extend(&opt);
    let mut in_answer = whole.clone();
    (in_answer[7], in_answer[11]) = (1, 0);
    for (packet, edns) in [(two, true), (owned, false), (in_answer, true)] {
        let reply = decode(&world.send(&packet, upper().sender, Transport::Udp).unwrap());
        assert_eq!(lines(&reply)[0], "FORMERR");
        assert_eq!((reply.queries.len(), reply.edns.is_some()), (1, edns));
    }
}

#[test]
fn rfc7871_7_2_1_static_data_has_scope_0() {
    let mut world = world();
    for (network, echo) in [
        ("192.0.2.0/24", "ecs 24 0"),
        ("0.0.0.0/0", "ecs 0 0"),
        ("2001:db8:d::/48", "ecs 48 0"),
        ("::/0", "ecs 0 0"),
    ] {
        world.check(upper().ecs(network), &with(&[echo]));
    }
    world.check(
        Ask::of("www.example.net A").ecs(GERMAN),
        &["REFUSED", "edns 0 1232", "ecs 24 0", "option 15 [0, 20]"],
    );
    let referral = world.ask(&Ask::of("child.example A").ecs(GERMAN));
    assert_eq!(lines(&referral).last().unwrap(), "ecs 24 0");
}

#[test]
fn rfc7871_7_1_2_malformed_ecs_is_formerr() {
    let mut world = world();
    for data in [
        &[0, 1, 33, 0, 1, 2, 3, 4, 5][..],
        &[0, 1, 24, 0, 1, 2],
        &[0, 1, 23, 0, 1, 2, 3],
        &[0, 1, 24, 1, 1, 2, 3],
        &[0, 9, 0, 0],
        &[0, 1, 24],
        &[],
    ] {
        let ask = upper().option(8, data);
        world.check(ask.clone(), &["FORMERR", "edns 0 1232"]);
        assert_eq!(world.counted(&ask), [Count::FormErr]);
    }
    // The octets of the option come back as they were, family 0 included.
    let reply = upper().option(8, &[0, 0, 0, 0]);
    let reply = world
        .send(&reply.packet(), reply.sender, Transport::Udp)
        .unwrap();
    assert_eq!(&reply[reply.len() - 8..], [0, 8, 0, 4, 0, 0, 0, 0]);
}

#[test]
fn rfc7828_3_2_1_keepalive_is_for_streams() {
    let mut world = world();
    let offer = upper().option(11, &[]);
    world.check(offer.clone(), &with(&[]));
    world.check(upper().option(11, &[0, 1]), &with(&[]));
    let over_tcp = world.ask_over(&offer, Transport::Tcp);
    assert_eq!(lines(&over_tcp), with(&["option 11 [0, 100]"]));
    let bad = world.ask_over(&upper().option(11, &[0, 1]), Transport::Tcp);
    assert_eq!(lines(&bad), ["FORMERR", "edns 0 1232"]);
}

#[test]
fn rfc5001_2_3_nsid_only_when_asked() {
    world().check(upper().option(3, &[]), &with(&[]));
    let mut named = world_with(Settings {
        identity: b"fra-1".as_slice().into(),
        ..Settings::default()
    });
    named.check(upper().edns(1232), &with(&[]));
    named.check(upper().option(3, &[]), &with(&["nsid fra-1"]));
    named.check(upper().option(3, &[7]), &with(&["nsid fra-1"]));
}

#[test]
fn rfc7873_5_2_2_cookie_lengths() {
    let mut world = world();
    for length in 0..50 {
        let good = length == 8 || (16..=40).contains(&length);
        let reply = world.ask(&upper().option(10, &vec![7; length]));
        assert_eq!(lines(&reply)[0] == "NOERROR aa", good, "{length}");
    }
}

#[test]
fn rfc7871_7_1_2_untrusted_senders_get_their_own_answer() {
    let trust = EcsTrust::From(vec!["203.0.113.0/24".parse().unwrap()]);
    let mut world = world_with(Settings {
        ecs_trust: trust,
        ..Settings::default()
    });
    let near = Ask::of("near.svc.test A").ecs(GERMAN);
    let trusted = world.ask(&near);
    let stranger = world.ask(&near.clone().from("198.51.100.7"));
    assert_eq!(trusted.answers[0].data.to_string(), "10.1.0.1");
    assert_eq!(stranger.answers[0].data.to_string(), "10.2.0.1");
    assert_eq!(lines(&stranger).last().unwrap(), "ecs 24 0");
}

/// An UPDATE or a query with these octets appended and counted as additional.
fn signed(ask: &Ask, tsig: &[u8]) -> Vec<u8> {
    let mut packet = ask.packet();
    packet[11] += 1;
    packet.extend(tsig);
    packet
}

#[test]
fn rfc8945_5_2_1_unknown_keys_are_notauth_with_badkey() {
    let mut world = world();
    let tsig = |mac: &[u8], error: u8| {
        let mut record = b"\x03key\x00\x00\xfa\x00\xff\x00\x00\x00\x00\x00".to_vec();
        record.push(29 + u8::try_from(mac.len()).unwrap());
        record.extend(b"\x0bhmac-sha256\x00\x00\x00\x65\x43\x21\x00\x01\x2c\x00");
        record.push(u8::try_from(mac.len()).unwrap());
        record.extend(mac);
        record.extend([0x12, 0x34, 0, error, 0, 0]);
        record
    };
    for (ask, opt) in [(upper(), 0), (upper().edns(1232), 11)] {
        let packet = signed(&ask, &tsig(&[7; 32], 0));
        let reply = world.send(&packet, ask.sender, Transport::Udp).unwrap();
        assert_eq!(reply[3] & 15, 9, "NOTAUTH");
        assert_eq!(
            reply[..12][4..],
            [0, 1, 0, 0, 0, 0, 0, u8::from(opt > 0) + 1]
        );
        assert_eq!(reply[31 + opt..], tsig(&[], 17), "BADKEY, unsigned, last");
        assert!(reply.len() <= packet.len());
    }
    // Anywhere but last, twice, or malformed it is FORMERR (section 5.2).
    let good = tsig(&[7; 32], 0);
    let mut misplaced = signed(&upper(), &good);
    misplaced[11] = 2;
    misplaced.extend(&good);
    let empty = signed(&upper(), &[1, b'k', 0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 0]);
    for packet in [misplaced, empty] {
        let reply = world.send(&packet, upper().sender, Transport::Udp).unwrap();
        assert_eq!(reply[3] & 15, 1);
    }
}

/// OPT comes back also where the counts of questions are wrong, or the message was cut off behind it.
#[test]
fn rfc6891_6_1_1_a_formerr_has_opt_too() {
    let mut world = world();
    let question = upper().packet()[12..].to_vec();
    let opt = upper().edns(1232).packet()[12 + question.len()..].to_vec();
    let header = |questions: u8| vec![0x12, 0x34, 0, 0, 0, questions, 0, 0, 0, 0, 0, 1];
    for (packet, has_opt) in [
        ([header(0), opt.clone()].concat(), true),
        ([header(0), Vec::new()].concat(), false),
        (
            [header(2), question.clone(), question.clone(), opt.clone()].concat(),
            true,
        ),
        ([header(3), question.clone(), opt.clone()].concat(), false),
        // The counts of the first byte lie: nothing there.
        (
            [
                vec![0x12, 0x34, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 1],
                opt.clone(),
            ]
            .concat(),
            false,
        ),
        // Options announced that are not there.
        (
            [
                header(1),
                question.clone(),
                opt[..9].to_vec(),
                vec![0xff, 0xff, 1],
            ]
            .concat(),
            true,
        ),
    ] {
        let reply = world.send(&packet, upper().sender, Transport::Udp).unwrap();
        let reply = decode(&reply);
        assert_eq!(lines(&reply)[0], "FORMERR", "{packet:02x?}");
        assert_eq!(reply.edns.is_some(), has_opt, "{packet:02x?}");
    }
}

#[test]
fn rfc7871_7_2_2_no_ecs_in_no_ecs_out() {
    world().check(
        Ask::of("near.svc.test A").from("192.0.2.7").edns(1232),
        &[
            "NOERROR aa",
            "an near.svc.test. 30 IN A 10.1.0.1",
            "edns 0 1232",
        ],
    );
}
