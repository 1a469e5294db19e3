//! The scope is honest: every address inside it gets the same reply (RFC 7871 sections 7.2.1 and 7.3.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::world::{world, world_under};
use super::{Ask, World, lines};
use crate::model::{FallbackSpec, FenceRule, MapEntry, PolicySpec, Steer};

/// First address of `::ffff:0:0/96`.
const MAPPED: u128 = 0xffff_0000_0000;

/// Asks for a network; gives the reply without EDNS, its records in order, and the scope.
fn ask(world: &mut World, question: &str, network: &str) -> (Vec<String>, u8) {
    let mut shown = lines(&world.ask(&Ask::of(question).ecs(network)));
    let ecs = shown
        .iter()
        .position(|line| line.starts_with("ecs "))
        .unwrap();
    let scope = shown.remove(ecs);
    let scope = scope.rsplit(' ').next().unwrap().parse().unwrap();
    // Addresses are rotated: an RRset has no order.
    shown.sort();
    (shown, scope)
}

#[test]
fn rfc7871_7_2_1_ipv6_scopes_leave_mapped_ipv4_out() {
    let mut world = world();
    for (network, least) in [
        ("::/64", 81),
        ("::1/128", 81),
        ("::fffe:0:0/95", 96),
        ("::1:0:0/96", 81),
        ("2001:db8:e::/48", 3),
        ("8000::/1", 1),
    ] {
        let (_, scope) = ask(&mut world, "near.svc.test A", network);
        assert!(scope >= least, "{network}: {scope}");
        // What ignores the client is the same everywhere.
        assert_eq!(ask(&mut world, "weighted.svc.test A", network).1, 0);
        assert_eq!(ask(&mut world, "near.svc.test TXT", network).1, 0);
        assert_eq!(ask(&mut world, "www.example A", network).1, 0);
    }
    // The block itself, without a bit of IPv4: the sender is answered, but for this block only.
    assert_eq!(ask(&mut world, "near.svc.test A", "::ffff:0:0/96").1, 96);
    assert_eq!(ask(&mut world, "www.example A", "::ffff:0:0/96").1, 0);
    assert_eq!(
        ask(&mut world, "near.svc.test A", "::ffff:192.0.2.0/120").1,
        120
    );
}

/// Places where places differ, in IPv4 bits.
const BORDERS: [u32; 6] = [
    0xc000_0200,
    0xc633_6400,
    0xc633_6480,
    0x0a00_0000,
    0xc000_0000,
    0x0000_0000,
];

fn policies() -> impl Strategy<Value = PolicySpec> {
    let clients = prop::sample::select(vec![
        "country:DE",
        "continent:NA",
        "unknown",
        "*",
        "192.0.2.128/25",
        "2001:db8:d:1::/64",
        "198.51.100.0/23",
        "10.0.0.0/9",
    ]);
    let cluster = || prop::sample::select(vec!["eu", "us"]);
    let map = (clients.clone(), cluster()).prop_map(|(clients, cluster)| MapEntry {
        clients: vec![clients.parse().unwrap()],
        clusters: vec![cluster.parse().unwrap()],
    });
    let rule = (clients, cluster()).prop_map(|(clients, cluster)| FenceRule {
        clients: vec![clients.parse().unwrap()],
        clusters: vec![cluster.parse().unwrap()],
    });
    let rules = prop::option::of(prop::collection::vec(rule, 1..3));
    let answer = prop::option::of(prop::sample::select(vec!["www.example", "203.0.113.80"]));
    (
        prop::collection::vec(map, 0..3),
        rules,
        answer,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(maps, rules, answer, tiers, all)| PolicySpec {
            maps,
            fences: rules.into_iter().collect(),
            fence_answer: answer.map(|text| match text.parse::<IpAddr>() {
                Ok(address) => FallbackSpec::Addresses(vec![address]),
                Err(_) => FallbackSpec::Hostname(text.parse().unwrap()),
            }),
            tiers: if tiers {
                vec![vec!["us".parse().unwrap()], vec!["eu".parse().unwrap()]]
            } else {
                Vec::new()
            },
            steer: if all { Steer::All } else { Steer::Proximity },
            ..PolicySpec::default()
        })
}

/// A client's address and source prefix length: IPv4, IPv6, or IPv4 inside IPv6, near the borders.
fn clients() -> impl Strategy<Value = (IpAddr, u8)> {
    let v4 = (
        prop::sample::select(BORDERS.to_vec()),
        any::<u32>(),
        0..=32_u8,
        1..=32_u8,
    )
        .prop_map(|(border, noise, keep, source)| {
            let noise = noise.checked_shr(keep.into()).unwrap_or(0);
            (border ^ noise, source)
        });
    let v6 = prop::sample::select(vec![
        0x2001_0db8_000d_0000_u128 << 64,
        0x2001_0db8_000d_0001_u128 << 64,
        MAPPED,
        MAPPED - 1,
        MAPPED | 0xc000_0200,
        0,
        0x2a00_u128 << 112,
    ]);
    let v6 =
        (v6, any::<u128>(), 0..=128_u8, 1..=128_u8).prop_map(|(border, noise, keep, source)| {
            let noise = noise.checked_shr(keep.into()).unwrap_or(0);
            (IpAddr::V6(Ipv6Addr::from(border ^ noise)), source)
        });
    prop_oneof![
        v4.clone()
            .prop_map(|(bits, source)| (IpAddr::V4(Ipv4Addr::from(bits)), source)),
        v4.prop_map(|(bits, source)| {
            (
                IpAddr::V6(Ipv6Addr::from(MAPPED | u128::from(bits))),
                96 + source,
            )
        }),
        v6,
    ]
}

/// Writes the network of an address.
fn network(address: IpAddr, source: u8) -> String {
    match address {
        IpAddr::V4(address) => {
            let beyond = u32::MAX.checked_shr(source.into()).unwrap_or(0);
            format!("{}/{source}", Ipv4Addr::from(u32::from(address) & !beyond))
        }
        IpAddr::V6(address) => {
            let beyond = u128::MAX.checked_shr(source.into()).unwrap_or(0);
            format!("{}/{source}", Ipv6Addr::from(u128::from(address) & !beyond))
        }
    }
}

/// Makes an address that shares so many bits with another one: the rest is taken from `noise`.
fn inside(address: IpAddr, scope: u8, noise: u128) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let beyond = u32::MAX.checked_shr(scope.into()).unwrap_or(0);
            let noise = u32::try_from(noise & u128::from(u32::MAX)).unwrap();
            IpAddr::V4(Ipv4Addr::from(
                u32::from(address) & !beyond | noise & beyond,
            ))
        }
        IpAddr::V6(address) => {
            let beyond = u128::MAX.checked_shr(scope.into()).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(
                u128::from(address) & !beyond | noise & beyond,
            ))
        }
    }
}

/// What fills the rest of an address: anything, or where another place begins.
fn noise() -> impl Strategy<Value = u128> {
    prop_oneof![
        any::<u128>(),
        prop::sample::select(BORDERS.to_vec()).prop_map(u128::from),
        prop::sample::select(BORDERS.to_vec()).prop_map(|bits| MAPPED | u128::from(bits)),
        Just(0),
        Just(u128::MAX),
        Just(0x2001_0db8_000d_0001_u128 << 64),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn rfc7871_7_3_1_every_address_inside_the_scope_gets_the_same_reply(
        policy in policies(),
        tied in any::<bool>(),
        (address, source) in clients(),
        noises in prop::collection::vec(noise(), 8),
    ) {
        let endpoints: &[(u16, &[&str])] = if tied {
            &[(0, &["10.1.0.1", "2001:db8:1::1"]), (1, &["10.2.0.1"])]
        } else {
            &[(0, &["10.1.0.1"]), (1, &["10.2.0.1", "2001:db8:2::1"])]
        };
        let mut world = world_under(policy, endpoints);
        for question in [
            "near.svc.test A", "near.svc.test AAAA", "near.svc.test TXT", "near.example A", "nothing.svc.test A",
            "www.example A", "near.dnin.example AAAA",
        ] {
            let given = network(address, source);
            let (reply, scope) = ask(&mut world, question, &given);
            let start: IpAddr = given.split_once('/').unwrap().0.parse().unwrap();
            // Without a bit of IPv4 it is the sender who was answered.
            if matches!(start, IpAddr::V6(address) if u128::from(address) == MAPPED) && source == 96 {
                continue;
            }
            for &noise in &noises {
                let other = inside(start, scope, noise);
                let full = if other.is_ipv4() { 32 } else { 128 };
                let (same, _) = ask(&mut world, question, &network(other, full));
                prop_assert_eq!(&same, &reply, "{}: {} has scope {}, {} differs", question, given, scope, other);
            }
        }
    }
}
