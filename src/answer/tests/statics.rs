//! Static zones: RFC 1034, 2308, 4592, 6604, 6672, 8020, 8482, 9471 and what follows from them.

use super::world::world;
use super::{Ask, decode, lines};
use crate::answer::Transport;
use crate::telemetry::Count;

const SOA: &str = "ns example. 60 IN SOA ns1.example. hostmaster.example. 7 7200 900 1209600 60";

#[test]
fn rfc1035_4_1_1_the_question_and_its_flags_come_back() {
    let mut world = world();
    let www = [
        "an www.example. 300 IN A 192.0.2.80",
        "an www.example. 300 IN A 192.0.2.81",
    ];
    for (flags, shown) in [
        ([0, 0], "NOERROR aa"),
        ([1, 0], "NOERROR aa rd"),
        // AA, TC, RA, Z, AD and an RCODE in a query mean nothing; CD is copied (RFC 4035 section 3.1.6).
        ([0x06, 0xef], "NOERROR aa"),
        ([0, 0x10], "NOERROR aa cd"),
    ] {
        world.check(
            Ask::of("www.example A").flags(flags),
            &[shown, www[0], www[1]],
        );
    }
    let ask = Ask::of("wWw.EXAmple A");
    let reply = world
        .send(&ask.packet(), ask.sender, Transport::Udp)
        .unwrap();
    assert_eq!(&reply[..2], [0x12, 0x34]);
    assert_eq!(
        &reply[12..29],
        &ask.packet()[12..29],
        "case of the question is kept"
    );
    assert_eq!(decode(&reply).answers[0].name.to_ascii(), "wWw.EXAmple.");
}

#[test]
fn rfc4343_3_names_differ_by_more_than_ascii_case_only() {
    let mut world = world();
    world.check(
        Ask::of("upper.example A"),
        &["NOERROR aa", "an upper.example. 300 IN A 192.0.2.82"],
    );
    for (name, address) in [
        (r"d\.ot.example", "192.0.2.130"),
        (r"n\000l.example", "192.0.2.131"),
        (r"sp\032e.example", "192.0.2.132"),
    ] {
        let reply = world.ask(&Ask::of(&format!("{name} A")));
        assert_eq!(reply.answers[0].data.to_string(), address);
    }
    assert_eq!(
        lines(&world.ask(&Ask::of("d.ot.example A")))[0],
        "NXDOMAIN aa"
    );
}

#[test]
fn rfc2308_3_rfc4592_2_2_2_rfc8020_2_negatives_carry_the_soa() {
    let mut world = world();
    for (question, code) in [
        ("nothing.example A", "NXDOMAIN aa"),
        ("deep.er.nothing.example A", "NXDOMAIN aa"),
        ("www.example TXT", "NOERROR aa"),
        ("www.example TYPE65281", "NOERROR aa"),
        // RFC 8020 section 2, RFC 4592 section 2.2.2: an empty non-terminal exists.
        ("b.ent.example A", "NOERROR aa"),
        ("ent.example NS", "NOERROR aa"),
        ("x.ent.example A", "NXDOMAIN aa"),
        // Nothing is below a name that has no children.
        ("x.www.example A", "NXDOMAIN aa"),
        // RFC 9156: intermediate names of a name with `_`.
        ("_tcp.example NS", "NOERROR aa"),
    ] {
        world.check(Ask::of(question), &[code, SOA]);
    }
}

#[test]
fn rfc8914_4_21_names_of_others_are_refused() {
    let mut world = world();
    for question in [
        "www.example.net A",
        ". NS",
        "test A",
        "com DS",
        "www.example.net ANY",
    ] {
        world.check(Ask::of(question), &["REFUSED"]);
        world.check(
            Ask::of(question).edns(1232),
            &["REFUSED", "edns 0 1232", "option 15 [0, 20]"],
        );
    }
}

#[test]
fn rfc4592_3_wildcards() {
    let mut world = world();
    for (question, expected) in [
        (
            "a.wild.example A",
            ["NOERROR aa", "an a.wild.example. 300 IN A 192.0.2.99"],
        ),
        (
            "a.b.wild.example A",
            ["NOERROR aa", "an a.b.wild.example. 300 IN A 192.0.2.99"],
        ),
        (
            "*.wild.example A",
            ["NOERROR aa", "an *.wild.example. 300 IN A 192.0.2.99"],
        ),
        ("a.wild.example TXT", ["NOERROR aa", SOA]),
        ("x.wild.example A", ["NOERROR aa", SOA]),
        ("a.x.wild.example A", ["NXDOMAIN aa", SOA]),
    ] {
        world.check(Ask::of(question), &expected);
    }
    world.check(
        Ask::of("a.cw.example AAAA"),
        &[
            "NOERROR aa",
            "an a.cw.example. 300 IN CNAME www.example.",
            "an www.example. 300 IN AAAA 2001:db8::80",
        ],
    );
}

#[test]
fn rfc1034_4_3_2_chains_are_followed_in_order() {
    let mut world = world();
    let alias = "an alias.example. 60 IN CNAME www.example.";
    let alias2 = "an alias2.example. 300 IN CNAME alias.example.";
    for (question, expected) in [
        (
            "alias2.example AAAA",
            &[
                "NOERROR aa",
                alias2,
                alias,
                "an www.example. 300 IN AAAA 2001:db8::80",
            ][..],
        ),
        ("alias2.example CNAME", &["NOERROR aa", alias2]),
        // RFC 6604: the last code counts.
        (
            "gone.example A",
            &[
                "NXDOMAIN aa",
                "an gone.example. 300 IN CNAME nothing.example.",
                SOA,
            ],
        ),
        (
            "nodata.example AAAA",
            &[
                "NOERROR aa",
                "an nodata.example. 300 IN CNAME mail.example.",
                SOA,
            ],
        ),
        (
            "out.example A",
            &[
                "NOERROR aa",
                "an out.example. 300 IN CNAME www.example.net.",
            ],
        ),
        (
            "loop1.example A",
            &[
                "NOERROR aa",
                "an loop1.example. 300 IN CNAME loop2.example.",
                "an loop2.example. 300 IN CNAME loop1.example.",
            ],
        ),
        (
            "self.example A",
            &["NOERROR aa", "an self.example. 300 IN CNAME self.example."],
        ),
    ] {
        world.check(Ask::of(question), expected);
    }
    let below = world.ask(&Ask::of("below.example A"));
    let shown = lines(&below);
    assert_eq!(
        shown[..2],
        [
            "NOERROR aa",
            "an below.example. 300 IN CNAME x.child.example."
        ]
    );
    assert_eq!(below.authorities.len(), 3, "a chain may end in a referral");
}

#[test]
fn rfc1034_3_6_2_a_chain_has_sixteen_links_at_most() {
    let mut world = world();
    let long = world.ask_over(&Ask::of("c0.example A"), Transport::Tcp);
    assert_eq!(long.answers.len(), 17);
    let fits = world.ask_over(&Ask::of("c2.example A"), Transport::Tcp);
    assert_eq!(
        fits.answers.last().unwrap().to_string(),
        "c18.example. 300 IN A 192.0.2.118"
    );
}

#[test]
fn rfc9471_2_1_referrals_have_all_glue() {
    let mut world = world();
    for question in [
        "child.example A",
        "x.y.child.example AAAA",
        "child.example NS",
    ] {
        world.check(
            Ask::of(question),
            &[
                "NOERROR",
                "ns child.example. 300 IN NS ns.child.example.",
                "ns child.example. 300 IN NS ns.sibling.example.",
                "ns child.example. 300 IN NS ns.example.net.",
                "ar ns.child.example. 300 IN A 192.0.2.100",
                "ar ns.child.example. 300 IN AAAA 2001:db8::100",
                "ar ns.sibling.example. 300 IN A 192.0.2.101",
            ],
        );
    }
    assert_eq!(
        world.counted(&Ask::of("child.example A")),
        [Count::Referral]
    );
    let wide = world.ask(&Ask::of("wide.example A"));
    assert!(
        wide.metadata.truncation,
        "in-domain glue is all there, or TC is set"
    );
    let wide = world.ask_over(&Ask::of("wide.example A"), Transport::Tcp);
    assert_eq!((wide.authorities.len(), wide.additionals.len()), (13, 26));
}

#[test]
fn rfc4035_3_1_4_1_ds_is_the_parents() {
    let mut world = world();
    let child = world.ask(&Ask::of("child.example DS"));
    assert_eq!(lines(&child)[0], "NOERROR aa");
    assert_eq!(child.answers.len(), 1);
    world.check(Ask::of("sibling.example DS"), &["NOERROR aa", SOA]);
}

#[test]
fn rfc8482_4_2_any_is_one_hinfo() {
    let mut world = world();
    for name in [
        "www.example",
        "b.ent.example",
        "near.svc.test",
        "a.wild.example",
    ] {
        for transport in [Transport::Udp, Transport::Tcp] {
            let reply = world.ask_over(&Ask::of(&format!("{name} ANY")), transport);
            let shown = lines(&reply);
            assert_eq!(
                (shown[0].as_str(), reply.answers.len()),
                ("NOERROR aa", 1),
                "{name}"
            );
            assert!(
                shown[1].contains("HINFO") && shown[1].contains("RFC8482"),
                "{shown:?}"
            );
        }
    }
    // HINFO is for owners without CNAME.
    for (question, cname) in [
        (
            "alias.example ANY",
            "an alias.example. 60 IN CNAME www.example.",
        ),
        (
            "host.svc.test ANY",
            "an host.svc.test. 30 IN CNAME www.example.",
        ),
    ] {
        world.check(Ask::of(question), &["NOERROR aa", cname]);
    }
    world.check(Ask::of("nothing.example ANY"), &["NXDOMAIN aa", SOA]);
}

#[test]
fn rfc1034_4_3_2_additional_addresses_help() {
    let mut world = world();
    for (question, answers, help) in [
        (
            "example MX",
            2,
            &[
                "ar mail.example. 300 IN A 192.0.2.25",
                "ar mail2.example. 300 IN A 192.0.2.26",
            ][..],
        ),
        (
            "example NS",
            2,
            &[
                "ar ns1.example. 300 IN A 192.0.2.53",
                "ar ns1.example. 300 IN AAAA 2001:db8::53",
                "ar ns2.example. 300 IN A 192.0.2.54",
            ],
        ),
        (
            "svc.example HTTPS",
            1,
            &["ar svc.example. 300 IN A 192.0.2.120"],
        ),
    ] {
        let reply = world.ask(&Ask::of(question));
        let shown = lines(&reply);
        assert_eq!(
            (shown[0].as_str(), reply.answers.len()),
            ("NOERROR aa", answers)
        );
        assert_eq!(&shown[1 + answers..], help, "{question}");
    }
    // RFC 9460 section 4.1: an alias brings its target's records too.
    let alias = world.ask(&Ask::of("https.example HTTPS"));
    assert_eq!((alias.answers.len(), alias.additionals.len()), (1, 2));
    let srv = world.ask(&Ask::of("_s._tcp.example SRV"));
    assert_eq!((srv.answers.len(), srv.additionals.len()), (1, 3));
}

#[test]
fn rfc3597_4_unknown_types_are_data() {
    let mut world = world();
    let ask = Ask::of("new.example TYPE65280");
    let reply = world
        .send(&ask.packet(), ask.sender, Transport::Udp)
        .unwrap();
    assert_eq!(&reply[reply.len() - 6..], [0, 4, 10, 0, 0, 1]);
}

#[test]
fn rfc4892_rfc5936_4_2_rfc8906_3_1_4_classes_and_meta_types_that_nobody_may_ask_for() {
    let mut world = world();
    for (ask, code) in [
        (Ask::of("version.bind TXT").class(3), "REFUSED"),
        (Ask::of("www.example A").class(3), "REFUSED"),
        (Ask::of("www.example A").class(255), "REFUSED"),
        (Ask::of("www.example A").class(254), "REFUSED"),
        (Ask::of("www.example A").class(0), "REFUSED"),
        // RFC 5936 section 4.2, RFC 1995.
        (Ask::of("example AXFR"), "REFUSED"),
        (Ask::of("example IXFR"), "REFUSED"),
        // RFC 8906 section 3.1.4.
        (Ask::of("example MAILA"), "NOTIMP"),
        (Ask::of("example MAILB"), "NOTIMP"),
        (Ask::of("example OPT"), "FORMERR"),
        (Ask::of("example TSIG"), "FORMERR"),
        (Ask::of("example TKEY"), "FORMERR"),
        (Ask::of("example NXNAME"), "FORMERR"),
        (Ask::of("example TYPE200"), "FORMERR"),
    ] {
        world.check(ask, &[code]);
    }
    // RFC 9824 section 3.5.
    world.check(
        Ask::of("example NXNAME").edns(1232),
        &["FORMERR", "edns 0 1232", "option 15 [0, 30]"],
    );
}

#[test]
fn replies_are_counted_by_what_they_are() {
    let mut world = world();
    for (question, count) in [
        ("www.example A", Count::NoError),
        ("www.example TXT", Count::NoData),
        ("nothing.example A", Count::NxDomain),
        ("www.example.net A", Count::Refused),
        ("example OPT", Count::FormErr),
        ("example MAILA", Count::NotImp),
    ] {
        assert_eq!(world.counted(&Ask::of(question)), [count], "{question}");
    }
}
