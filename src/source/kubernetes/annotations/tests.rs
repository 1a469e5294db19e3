//! Every key with good, bad and odd values; any octets whatever.

use proptest::prelude::*;

use super::*;
use crate::model::{ClusterSelector, Steer, Ttl};
use crate::source::kubernetes::words::SHOWN;

/// Reads one key.
fn one(key: &str, value: &str) -> Read {
    let key = format!("{PREFIX}{key}");
    read([(key.as_str(), value)])
}

/// Reads one key that must be good; gives what is said.
fn good(key: &str, value: &str) -> Service {
    let out = one(key, value);
    assert_eq!(out.refused, [], "{key}: {value}");
    assert_ne!(out.said, Service::default(), "{key}: {value} says nothing");
    out.said
}

/// Reads one key that must be refused, and leave nothing behind; gives the reason.
fn bad(key: &str, value: &str) -> String {
    let out = one(key, value);
    assert_eq!(out.said, Service::default(), "{key}: {value}");
    let [refused] = out.refused.as_slice() else {
        panic!("{key}: {value} is not refused")
    };
    assert_eq!(&*refused.key, format!("{PREFIX}{key}"));
    refused.reason.to_string()
}

/// Key, good values, bad values.
const TABLE: &[(&str, &[&str], &[&str])] = &[
    (
        "enabled",
        &["true", "false", "1", "F", " True "],
        &["", "yes", "tRUE", "2"],
    ),
    (
        "class",
        &["meridian", "a", "internal-2"],
        &["", "A", "a_b", "a b", "ü"],
    ),
    (
        "hostname",
        &[
            "shop.example.com",
            "shop.example.com.,*.shop.example.com",
            "SHOP.example.com",
            "bücher.example",
            "*.bücher.example.",
            "xn--bcher-kva.example",
            "_sip.example",
        ],
        &[
            "",
            ",",
            "a.example,",
            ".",
            "a..example",
            "a.*.example",
            "*",
            "*.",
            "a\\.b.example",
            "a b.example",
            "-ü-.example",
            "xn--\u{fc}.example",
            "a\u{200b}b.example",
            "a\u{2064}b.example",
            "a\u{180b}b.example",
            "a\u{e0100}b.example",
            "-a.example",
            "a-.example",
        ],
    ),
    (
        "federation-name",
        &["prod", "Prod-1", "0", " a "],
        &["", "a.b", "-a", "a-", "a_b", "ü", "a b"],
    ),
    ("clusterset-name", &["true", "F"], &["", "yes"]),
    (
        "steer",
        &[
            "proximity",
            "WEIGHTED",
            "roundrobin",
            "roundRobin",
            "all",
            "failover",
            "geoip",
            "geo",
            "nearest",
        ],
        &["", "random", "proximity,all"],
    ),
    ("policy", &["weighted"], &["fastest"]),
    (
        "weight",
        &["0", "1", "65535"],
        &["", "-1", "65536", "1.5", "many"],
    ),
    (
        "weights-from",
        &["endpoints", "none", "Endpoints", " none "],
        &["", "hub", "replicas", "capacity", "endpoints,none", "1"],
    ),
    (
        "weights",
        &["eu1=80,us1=20", "region:eu-west-1=1, *=0", "country:DE=3"],
        &[
            "",
            "eu1",
            "eu1=",
            "=5",
            "eu1=-1",
            "country:DEU=1",
            "eu1=1,,us1=2",
        ],
    ),
    (
        "tiers",
        &[
            "eu1,region:eu-west-1|region:eu-central-1,*",
            "*",
            "cluster:eu1",
        ],
        &["", ",", "eu1,", "eu1||us1", "planet:mars"],
    ),
    ("failover-order", &["eu1,us1"], &["eu1,,us1"]),
    (
        "bias",
        &["eu1=-99,us1=99", "*=0"],
        &["eu1=100", "eu1=-100", "eu1=x"],
    ),
    (
        "maps",
        &[
            "country:CH->eu1;*->*",
            "continent:AF|country:BR->eu1|us1;",
            "unknown->us1",
        ],
        &["", "country:CH", "country:CH->", "->eu1", "nowhere->eu1"],
    ),
    (
        "fence",
        &[
            "group:EU-27->group:EU-27;country:CH->country:CH|group:EU-27;*->*",
            "unknown->;*->*",
            "192.0.2.0/24->eu1",
        ],
        &[
            "",
            "group:EU-27",
            "EU->*",
            "*->planet:mars",
            "country:DE->*;;*->*",
        ],
    ),
    ("geo-fence", &["*->continent:EU"], &["*"]),
    (
        "fence-answer",
        &["192.0.2.1", "192.0.2.1,2001:db8::1", "sorry.example.com"],
        &[
            "",
            "192.0.2.1,sorry.example.com",
            "a,b",
            "*.example.com",
            "0.0.0.0",
        ],
    ),
    (
        "fallback",
        &["192.0.2.1", "sorry.example.com"],
        &["", "192.0.2.1,sorry.example.com"],
    ),
    (
        "ttl",
        &["5", "30s", "1m30s", "24h", "1.0s"],
        &[
            "",
            "-1",
            "25h",
            "500ms",
            "1500ms",
            "1.5s",
            "30 s",
            "s",
            "1d",
            "99999999999",
        ],
    ),
    ("answers", &["1", "32"], &["0", "33", "", "x"]),
    (
        "panic",
        &["0", "0.5", "1", "1.0"],
        &["", "-0.1", "1.1", "NaN", "inf", "50%"],
    ),
    (
        "target",
        &[
            "192.0.2.1,lb.example.com",
            "2001:db8::1",
            "::ffff:192.0.2.1",
        ],
        &[
            "",
            "192.0.2.1,,",
            "a b",
            ".",
            "*.example.com",
            "224.0.0.1",
            "255.255.255.255",
        ],
    ),
    (
        "clients",
        &["10.0.0.0/8", "10.0.0.0/8, 2001:db8::/32"],
        &[
            "",
            "10.0.0.1/8",
            "10.0.0.0",
            "0.0.0.0/33",
            "::ffff:10.0.0.0/104",
        ],
    ),
    (
        "drain",
        &[
            "true",
            "false",
            "2026-12-24T20:00:00Z",
            "2026-12-24T20:00:00+01:00/2026-12-25T00:00:00+01:00",
            "2026-12-24T20:00:00Z/4h",
            "2026-12-24T20:00:00Z/90",
        ],
        &[
            "",
            "tomorrow",
            "2026-12-24",
            "2026-12-24T20:00:00Z/2026-12-24T19:00:00Z",
            "2026-12-24T20:00:00Z/0",
            "2026-12-24T20:00:00Z/",
            "/4h",
            "9999-12-31T00:00:00Z/4294967295",
        ],
    ),
    (
        "min-ready-endpoints",
        &["0", "1", "3", "50%", "100%"],
        &["", "-1", "0%", "101%", "half", "1.5"],
    ),
    (
        "health-check",
        &["none", "tcp", "http", "HTTPS", "endpoints"],
        &["", "ping", "tls", "grpc", "dns"],
    ),
    (
        "health-check-port",
        &["1", "65535", "http", "web-2"],
        &["", "0", "65536", "a name too long for it", "Web"],
    ),
    (
        "health-check-path",
        &["/", "/healthz?full=1"],
        &["", "healthz", "/a b", "/\u{fc}"],
    ),
    ("health-check-host", &["shop.example.com"], &["", "a..b"]),
    ("health-check-method", &["GET", "head"], &["", "POST"]),
    (
        "health-check-expect",
        &["200", "200-399,401", "100-599"],
        &["", "99", "600", "399-200", "200-", "2xx"],
    ),
    (
        "health-check-interval",
        &["100ms", "2s", "1h", "30"],
        &["", "99ms", "61m", "0"],
    ),
    ("health-check-timeout", &["10ms", "1s"], &["", "9ms", "2h"]),
    (
        "health-check-unhealthy-threshold",
        &["1", "20"],
        &["0", "21"],
    ),
    ("health-check-healthy-threshold", &["1", "20"], &["0", "21"]),
    (
        "health-check-tls",
        &[
            "verify",
            "skip",
            "pin:00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF",
        ],
        &[
            "",
            "pin:",
            "pin:0011",
            "pin:+0112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF",
            "none",
        ],
    ),
];

#[test]
fn every_key_takes_what_is_good_and_refuses_what_is_not() {
    for (key, goods, bads) in TABLE {
        for value in *goods {
            good(key, value);
        }
        for value in *bads {
            let reason = bad(key, value);
            assert!(
                !reason.is_empty() && !reason.ends_with('.'),
                "{key}: {value}: {reason}"
            );
        }
    }
    // Nothing is left out, and every name is there once.
    let mut names: Vec<&str> = keys()
        .iter()
        .flat_map(|key| key.aliases.iter().copied().chain([key.name]))
        .collect();
    let mut tested: Vec<&str> = TABLE.iter().map(|(key, ..)| *key).collect();
    names.sort_unstable();
    tested.sort_unstable();
    assert_eq!(names, tested);
}

#[test]
fn values_mean_what_they_say() {
    assert_eq!(good("steer", "failover").name.steer, Some(Steer::Proximity));
    assert!(good("steer", "failover").needs_tiers && !good("steer", "geoip").needs_tiers);
    assert_eq!(good("ttl", "1m30s").name.ttl, Ttl::new(90));
    let names = |value: &str| -> Vec<String> {
        let names = good("hostname", value).hostnames.unwrap();
        names.iter().map(ToString::to_string).collect()
    };
    // Case, the last dot and the script are no differences (RFC 4343, RFC 5891).
    assert_eq!(names("Bücher.Example."), names("xn--bcher-kva.example"));
    assert_eq!(names("straße.example"), names("xn--strae-oqa.example"));
    assert_eq!(names("*.BÜCHER.example"), names("*.xn--bcher-kva.example."));
    let fence = good("fence", "country:CH->country:CH|group:EU-27;unknown->")
        .name
        .fence
        .unwrap();
    assert_eq!(fence.len(), 2);
    assert_eq!((fence[0].clients.len(), fence[0].clusters.len()), (1, 2));
    assert!(fence[1].clusters.is_empty());
    assert_eq!(good("maps", "*->eu1").name.maps.unwrap()[0].clients, []);
    let weights = good("weights", "region:eu-west-1=80,*=1")
        .name
        .weights
        .unwrap();
    assert_eq!(weights[1], (ClusterSelector::Any, Weight(1)));
    let moment = |text: &str| Some(text.parse::<Timestamp>().unwrap());
    assert_eq!(good("drain", "true").drain, Some(Drain::From(None, None)));
    assert_eq!(
        good("drain", "2026-12-24T20:00:00+01:00/90m").drain,
        Some(Drain::From(
            moment("2026-12-24T19:00:00Z"),
            moment("2026-12-24T20:30:00Z")
        ))
    );
    assert_eq!(
        good("min-ready-endpoints", "50%").min_ready,
        Some(MinReady::Percent(50))
    );
    assert_eq!(
        good("target", "::ffff:192.0.2.1").targets.unwrap(),
        [Target::Address("192.0.2.1".parse().unwrap())]
    );
    let checks = good(
        "health-check-tls",
        "pin:00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF",
    )
    .checks;
    assert!(matches!(checks.tls, Some(TlsMode::Pin(pin)) if pin[1] == 0x11 && pin[31] == 0xff));
}

#[test]
fn what_a_cluster_says_for_itself_is_its_own() {
    let own: Vec<&str> = keys()
        .iter()
        .filter(|key| key.level == Level::Shard && !key.name.starts_with("health-check"))
        .map(|key| key.name)
        .collect();
    assert_eq!(
        own,
        [
            "weight",
            "target",
            "clients",
            "drain",
            "min-ready-endpoints"
        ]
    );
    let checks = keys()
        .iter()
        .filter(|key| key.name.starts_with("health-check"));
    assert!(checks.clone().count() == 11 && checks.clone().all(|key| key.level == Level::Shard));
}

#[test]
fn a_timeout_is_no_longer_than_its_interval() {
    let out = read([
        ("meridian-dns.io/health-check-interval", "100ms"),
        ("meridian-dns.io/health-check-timeout", "1h"),
    ]);
    assert!(out.said.checks.timeout.is_none() && out.said.checks.interval.is_some());
    assert_eq!(
        &*out.refused[0].reason,
        "it is longer than the interval of 100ms"
    );
}

#[test]
fn zero_is_the_default_ttl() {
    let out = one("ttl", "0");
    assert_eq!((out.said, out.refused), (Service::default(), vec![]));
}

#[test]
fn a_bad_value_is_refused_for_its_key_alone() {
    let out = read([
        ("meridian-dns.io/hostname", "shop.example.com"),
        ("meridian-dns.io/ttl", "soon"),
        ("kubernetes.io/ttl", "soon"),
        ("meridian-dns.io/capacity", "20k rps"),
        ("meridian-dns.io/hostnmae", "x"),
    ]);
    assert_eq!(out.said.hostnames.unwrap().len(), 1);
    let refused: Vec<(&str, &str)> = out
        .refused
        .iter()
        .map(|one| (&*one.key, &*one.reason))
        .collect();
    assert_eq!(
        refused,
        [
            ("meridian-dns.io/capacity", "not supported yet"),
            (
                "meridian-dns.io/hostnmae",
                "there is no key `meridian-dns.io/hostnmae`"
            ),
            (
                "meridian-dns.io/ttl",
                "a duration such as `30`, `30s` or `1m30s` is wanted"
            ),
        ]
    );
    assert!(!out.is_fence_refused);
}

#[test]
fn an_object_whose_fence_cannot_be_read_is_told_apart() {
    for key in ["fence", "geo-fence"] {
        assert!(one(key, "EU->*").is_fence_refused);
        assert!(!one(key, "*->*").is_fence_refused);
    }
    let long = "*->*;".repeat(MAX_VALUE);
    let out = one("fence", &long);
    assert!(out.is_fence_refused);
    assert!(out.refused[0].value.len() <= SHOWN);
    // What is shown ends between characters.
    let reason = bad("fence", &"\u{20ac}".repeat(SHOWN));
    assert!(reason.len() <= SHOWN && reason.ends_with('…'), "{reason}");
}

#[test]
fn a_country_that_there_is_not_matches_nobody_and_is_refused() {
    for (key, value, wanted) in [
        (
            "fence",
            "country:UK->*;*->*",
            "`UK` is no country of ISO 3166-1; the United Kingdom is GB",
        ),
        (
            "fence",
            "country:XX->*;*->*",
            "`XX` is no country of ISO 3166-1",
        ),
        (
            "fence",
            "*->country:EU",
            "`EU` is no country of ISO 3166-1; for the European Union write group:EU-27",
        ),
        (
            "fence",
            "subdivision:XX-BE->*;*->*",
            "`XX` is no country of ISO 3166-1",
        ),
        (
            "maps",
            "country:EL->eu1",
            "`EL` is no country of ISO 3166-1; Greece is GR",
        ),
        (
            "maps",
            "country:GR->subdivision:UK-ENG",
            "`UK` is no country of ISO 3166-1; the United Kingdom is GB",
        ),
        (
            "weights",
            "country:XX=1,*=2",
            "`XX` is no country of ISO 3166-1",
        ),
        ("tiers", "country:XX,*", "`XX` is no country of ISO 3166-1"),
        ("bias", "country:XX=1", "`XX` is no country of ISO 3166-1"),
    ] {
        assert_eq!(bad(key, value), wanted, "{key}: {value}");
    }
    assert!(one("fence", "country:UK->*;*->*").is_fence_refused);
    good("fence", "country:XK->*;subdivision:DE-BE->*");
}

#[test]
fn two_names_of_one_key_are_not_both_taken() {
    let out = read([
        ("meridian-dns.io/steer", "all"),
        ("meridian-dns.io/policy", "weighted"),
    ]);
    assert_eq!(out.said.name.steer, Some(Steer::Weighted));
    assert_eq!(
        &*out.refused[0].reason,
        "`meridian-dns.io/policy` says the same, and counts"
    );
    // One that is refused does not stand in the way.
    let out = read([
        ("meridian-dns.io/steer", "all"),
        ("meridian-dns.io/policy", "fastest"),
    ]);
    assert_eq!(
        (out.said.name.steer, out.refused.len()),
        (Some(Steer::All), 1)
    );
    // A second fence that is not looked at might keep somebody out.
    let out = read([
        ("meridian-dns.io/fence", "*->*"),
        ("meridian-dns.io/geo-fence", "*->continent:EU"),
    ]);
    assert!(out.is_fence_refused);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(at in 0..TABLE.len(), value in "\\PC{0,60}") {
        let (key, ..) = TABLE[at];
        let out = one(key, &value);
        prop_assert!(out.refused.len() <= 1);
        prop_assert_eq!(out.is_fence_refused, key.ends_with("fence") && out.refused.len() == 1);
    }

    #[test]
    fn damaged_values_are_read_or_refused(at in 0..TABLE.len(), pick in 0..8_usize, cut in 0..40_usize, put in "\\PC{0,4}") {
        let (key, goods, _) = TABLE[at];
        let mut value: String = goods[pick % goods.len()].chars().take(cut).collect();
        value.push_str(&put);
        let out = one(key, &value);
        prop_assert!(out.refused.is_empty() || out.said == Service::default());
    }
}
