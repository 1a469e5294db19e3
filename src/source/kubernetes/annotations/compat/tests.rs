//! Every key with good, bad and odd values, and what goes before what.

use super::*;
use crate::source::kubernetes::annotations::{PREFIX, Target, read as read_all};

/// Reads annotations with some readers on; gives what counts.
fn with(readers: &[Reader], annotations: &[(&str, &str)]) -> Read {
    let mut read = read_all(annotations.iter().copied());
    let compat = Compat {
        readers: readers.to_vec(),
        ..Compat::default()
    };
    read.lay(&compat);
    read
}

/// Reader, key after its prefixes, prefixes, key of ours, good values with what ours would be, bad values.
type Row = (
    Reader,
    &'static [&'static str],
    Option<&'static str>,
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
);

const TABLE: &[Row] = &[
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/hostname",
            "external-dns.alpha.kubernetes.io/hostname",
        ],
        Some("hostname"),
        &[
            ("a.example", "a.example"),
            ("*.A.example., b.example", "*.a.example,b.example"),
        ],
        &["", "a..b", "a b", "a.*.b", "a.example,"],
    ),
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/ttl",
            "external-dns.alpha.kubernetes.io/ttl",
        ],
        Some("ttl"),
        &[
            ("60", "60"),
            ("1m30s", "90"),
            (" 5 ", "5"),
            ("86400", "86400"),
        ],
        &["", "-1", "soon", "25h", "500ms"],
    ),
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/target",
            "external-dns.alpha.kubernetes.io/target",
        ],
        Some("target"),
        &[
            ("192.0.2.1", "192.0.2.1"),
            ("2001:db8::1, lb.example.", "2001:db8::1,lb.example"),
        ],
        &["", "a b", "192.0.2.1,"],
    ),
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/controller",
            "external-dns.alpha.kubernetes.io/controller",
        ],
        Some("enabled"),
        &[
            ("other", "false"),
            ("", "false"),
            ("DNS-controller", "false"),
        ],
        &[],
    ),
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/aws-weight",
            "external-dns.alpha.kubernetes.io/aws-weight",
        ],
        Some("weight"),
        &[("0", "0"), ("255", "255")],
        &["", "256", "-1", "1.5", "x"],
    ),
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/set-identifier",
            "external-dns.alpha.kubernetes.io/set-identifier",
        ],
        None,
        &[],
        &["eu", ""],
    ),
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/ingress-hostname-source",
            "external-dns.alpha.kubernetes.io/ingress-hostname-source",
        ],
        None,
        &[],
        &["annotation-only"],
    ),
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/gateway-hostname-source",
            "external-dns.alpha.kubernetes.io/gateway-hostname-source",
        ],
        None,
        &[],
        &["annotation-only"],
    ),
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/aws-failover",
            "external-dns.alpha.kubernetes.io/aws-failover",
        ],
        None,
        &[],
        &["PRIMARY", "SECONDARY"],
    ),
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/aws-region",
            "external-dns.alpha.kubernetes.io/aws-region",
        ],
        None,
        &[],
        &["eu-west-1"],
    ),
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/aws-geolocation-continent-code",
            "external-dns.alpha.kubernetes.io/aws-geolocation-continent-code",
        ],
        None,
        &[],
        &["EU"],
    ),
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/aws-geolocation-country-code",
            "external-dns.alpha.kubernetes.io/aws-geolocation-country-code",
        ],
        None,
        &[],
        &["DE"],
    ),
    (
        Reader::ExternalDns,
        &[
            "external-dns.kubernetes.io/aws-geolocation-subdivision-code",
            "external-dns.alpha.kubernetes.io/aws-geolocation-subdivision-code",
        ],
        None,
        &[],
        &["CA"],
    ),
    (
        Reader::K8gb,
        &["k8gb.io/strategy"],
        Some("steer"),
        &[
            ("roundRobin", "roundRobin"),
            ("geoip", "proximity"),
            ("FAILOVER", "failover"),
        ],
        &["", "weighted", "all", "nearest"],
    ),
    (
        Reader::K8gb,
        &["k8gb.io/primary-geotag"],
        Some("tiers"),
        &[("eu1", "eu1,*"), ("eu-west-1", "eu-west-1,*")],
        &["", "a,b", "a|b", "*", "region:eu", "a b", "ü"],
    ),
    (
        Reader::K8gb,
        &["k8gb.io/dns-ttl-seconds"],
        Some("ttl"),
        &[("30", "30"), ("86400", "86400")],
        &["", "30s", "-1", "86401"],
    ),
    (
        Reader::K8gb,
        &["k8gb.io/hostname"],
        Some("hostname"),
        &[("a.example", "a.example")],
        &["", "a..b"],
    ),
    (
        Reader::K8gb,
        &["k8gb.io/exposed-ip-addresses"],
        Some("target"),
        &[
            ("192.0.2.1,192.0.2.2", "192.0.2.1,192.0.2.2"),
            ("2001:db8::1", "2001:db8::1"),
        ],
        &["", "lb.example", "192.0.2.1,lb.example", "192.0.2.300."],
    ),
    (
        Reader::K8gb,
        &["k8gb.io/exposed-hostnames"],
        Some("target"),
        &[("lb.example,lb2.example", "lb.example,lb2.example")],
        &["", "192.0.2.1", "lb.example,192.0.2.1"],
    ),
    (
        Reader::Cilium,
        &["service.cilium.io/global", "io.cilium/global-service"],
        Some("enabled"),
        &[("true", "true"), ("false", "false"), ("1", "true")],
        &["", "yes", "tRUE"],
    ),
    (
        Reader::Cilium,
        &["service.cilium.io/shared", "io.cilium/shared-service"],
        None,
        &[("true", "")],
        &["", "false", "no"],
    ),
    (
        Reader::Cilium,
        &["service.cilium.io/affinity", "io.cilium/service-affinity"],
        None,
        &[("none", "")],
        &["", "local", "remote", "both"],
    ),
];

#[test]
fn every_key_is_read_as_ours_or_refused() {
    for (reader, names, ours, goods, bads) in TABLE {
        for name in *names {
            for (value, same) in *goods {
                let read = with(&[*reader], &[(name, value)]);
                assert_eq!(read.refused, [], "{name}: {value}");
                let wanted = ours.map_or_else(Service::default, |ours| {
                    read_all([(format!("{PREFIX}{ours}").as_str(), *same)]).said
                });
                assert_eq!(read.said, wanted, "{name}: {value}");
                // Off by default, and by itself.
                for others in [&[][..], &Reader::ALL] {
                    let others: Vec<Reader> = others
                        .iter()
                        .copied()
                        .filter(|other| other != reader)
                        .collect();
                    let read = with(&others, &[(name, value)]);
                    assert_eq!((read.said, read.refused), (Service::default(), vec![]));
                }
            }
            for value in *bads {
                let read = with(&[*reader], &[(name, value)]);
                assert_eq!(read.said, Service::default(), "{name}: {value}");
                let [refused] = read.refused.as_slice() else {
                    panic!("{name}: {value} is not refused: {read:?}")
                };
                assert_eq!(&*refused.key, *name);
                assert!(!refused.reason.ends_with('.'), "{refused:?}");
                assert_eq!(with(&[], &[(name, value)]).refused, []);
            }
        }
    }
    // Nothing is left out.
    let tested: Vec<_> = TABLE
        .iter()
        .map(|(reader, names, ours, ..)| (*reader, names.to_vec(), *ours))
        .collect();
    let all: Vec<_> = Reader::ALL
        .iter()
        .flat_map(|reader| {
            reader
                .keys()
                .iter()
                .map(|key| (*reader, key.names.to_vec(), key.ours))
        })
        .collect();
    assert_eq!(all, tested);
}

#[test]
fn ours_goes_first_key_by_key_and_the_new_prefix_before_the_old() {
    let all = Reader::ALL;
    let names = |read: &Read| -> Vec<String> {
        let names = read.said.hostnames.iter().flatten();
        names.map(ToString::to_string).collect()
    };
    let read = with(
        &all,
        &[
            ("meridian-dns.io/hostname", "ours.example"),
            ("external-dns.kubernetes.io/hostname", "new.example"),
            ("external-dns.kubernetes.io/ttl", "77"),
        ],
    );
    assert_eq!(names(&read), ["ours.example"]);
    assert_eq!(read.said.name.ttl.map(crate::model::Ttl::seconds), Some(77));
    // One of ours that is refused leaves the key to the next level.
    let read = with(
        &all,
        &[
            ("meridian-dns.io/hostname", "a..b"),
            ("external-dns.alpha.kubernetes.io/hostname", "old.example"),
        ],
    );
    assert_eq!(
        (names(&read), read.refused.len()),
        (vec!["old.example".to_owned()], 1)
    );
    let both = [
        ("external-dns.alpha.kubernetes.io/hostname", "old.example"),
        ("external-dns.kubernetes.io/hostname", "new.example"),
        ("k8gb.io/hostname", "k8gb.example"),
    ];
    assert_eq!(names(&with(&all, &both)), ["new.example"]);
    assert_eq!(
        names(&with(&[Reader::K8gb, Reader::ExternalDns], &both)),
        ["k8gb.example"]
    );
    // What is laid twice, or otherwise, is laid over what was there.
    let mut read = with(&all, &both);
    read.lay(&Compat::default());
    assert_eq!(
        (names(&read).len(), read.said.clone()),
        (0, Service::default())
    );
    read.lay(&Compat {
        readers: vec![Reader::K8gb],
        ..Compat::default()
    });
    assert_eq!(names(&read), ["k8gb.example"]);
}

#[test]
fn what_says_that_it_is_ours_is_served_whatever_others_say() {
    let other = ("external-dns.kubernetes.io/controller", "other");
    for (own, enabled) in [
        (None, Some(false)),
        (Some(("meridian-dns.io/hostname", "a.example")), None),
        (Some(("meridian-dns.io/class", "meridian")), None),
        (Some(("meridian-dns.io/enabled", "true")), Some(true)),
        (Some(("meridian-dns.io/ttl", "5")), Some(false)),
    ] {
        let pairs: Vec<_> = own.into_iter().chain([other]).collect();
        assert_eq!(
            with(&[Reader::ExternalDns], &pairs).said.enabled,
            enabled,
            "{own:?}"
        );
    }
}

#[test]
fn the_defaults_of_the_configuration_go_first() {
    let pairs = [
        ("k8gb.io/strategy", "failover"),
        ("k8gb.io/primary-geotag", "eu1"),
        ("k8gb.io/exposed-ip-addresses", "192.0.2.1"),
        ("k8gb.io/exposed-hostnames", "lb.example"),
    ];
    let read = with(&[Reader::K8gb], &pairs);
    assert!(read.said.needs_tiers && read.said.name.steer.is_some());
    assert_eq!(read.said.name.tiers.as_ref().map(Vec::len), Some(2));
    let targets = read.said.targets.unwrap();
    assert!(matches!(
        targets[..],
        [Target::Address(_), Target::Hostname(_)]
    ));
    for (keeps_steer, keeps_tiers) in [(true, false), (false, true)] {
        let mut read = read_all(pairs);
        read.lay(&Compat {
            readers: vec![Reader::K8gb],
            keeps_steer,
            keeps_tiers,
        });
        assert_eq!(read.said.name.steer.is_none(), keeps_steer);
        assert_eq!(read.said.name.tiers.is_none(), keeps_tiers);
    }
}
