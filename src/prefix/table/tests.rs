//! Tables against a slow reading of the same prefixes.

use std::cell::RefCell;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use proptest::prelude::*;

use super::{Match, Table};
use crate::model::PrefixLen;

/// The obvious longest match: every prefix is looked at; of equal lengths the later wins.
fn oracle(prefixes: &[(IpNet, u32)], default: u32, address: IpAddr) -> u32 {
    prefixes
        .iter()
        .filter(|(net, _)| net.contains(&address))
        .max_by_key(|(net, _)| net.prefix_len())
        .map_or(default, |&(_, value)| value)
}

/// Gives an address as a number aligned to the left of 128 bits, and its width.
fn left(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    }
}

/// The inverse of [`left`].
fn address(bits: u128, width: u8) -> IpAddr {
    if width == 32 {
        Ipv4Addr::from_bits((bits >> 96) as u32).into()
    } else {
        Ipv6Addr::from_bits(bits).into()
    }
}

/// Gives the first and last address of the prefix of `len` bits around an address.
fn ends(around: IpAddr, len: u8) -> (IpAddr, IpAddr) {
    let (bits, width) = left(around);
    let host = u128::MAX.checked_shr(u32::from(len)).unwrap_or(0);
    (address(bits & !host, width), address(bits | host, width))
}

/// Every address at which a value may change inside the prefix of `len` bits around an address.
fn corners(prefixes: &[(IpNet, u32)], around: IpAddr, len: u8) -> Vec<IpAddr> {
    let (first, last) = ends(around, len);
    let mut all = vec![first, last, around];
    for (net, _) in prefixes {
        let (start, end) = (net.network(), net.broadcast());
        let (bits, width) = left(end);
        let one = 1_u128 << (128 - u32::from(width));
        all.extend([start, end]);
        all.extend(bits.checked_add(one).map(|after| address(after, width)));
    }
    all.retain(|at| at.is_ipv4() == around.is_ipv4() && *at >= first && *at <= last);
    all
}

/// Holds one lookup against the oracle: the value, that the scope is honest, and that it is the widest.
fn check(table: &Table, prefixes: &[(IpNet, u32)], default: u32, client: IpAddr) {
    let Match { value, scope } = table.lookup(client);
    assert_eq!(value, oracle(prefixes, default, client), "{client}");
    let differs = |len| {
        corners(prefixes, client, len)
            .into_iter()
            .find(|at| oracle(prefixes, default, *at) != value)
    };
    assert_eq!(differs(scope.0), None, "{client} in /{}", scope.0);
    if let Some(wider) = scope.0.checked_sub(1) {
        assert!(differs(wider).is_some(), "{client}/{wider} is as good");
    }
}

/// Prefixes crowded into a few networks, so that they nest, touch and repeat; values are few, so that neighbors merge.
fn prefix() -> impl Strategy<Value = (IpNet, u32)> {
    let v4 = (any::<u32>(), 0..=32_u8, any::<bool>()).prop_map(|(bits, len, crowd)| {
        let bits = if crowd {
            bits & 0x0103_00ff | 0x0a00_0000
        } else {
            bits
        };
        IpNet::from(
            Ipv4Net::new(Ipv4Addr::from_bits(bits), len)
                .unwrap()
                .trunc(),
        )
    });
    let v6 = (any::<u128>(), 0..=128_u8, 0..4_u8).prop_map(|(bits, len, crowd)| {
        let bits = match crowd {
            0 => bits,
            1 => bits & (3 << 90 | 0xff) | 0x2a10_b000 << 96,
            2 => bits & (7 << 106) | 0x2001 << 112,
            _ => bits >> 3 | 1 << 125,
        };
        IpNet::from(
            Ipv6Net::new(Ipv6Addr::from_bits(bits), len)
                .unwrap()
                .trunc(),
        )
    });
    (prop_oneof![v4, v6], 0..4_u32)
}

/// A table's prefixes and, for clients, addresses at and around their edges and elsewhere.
fn case() -> impl Strategy<Value = (Vec<(IpNet, u32)>, Vec<IpAddr>)> {
    let clients = prop::collection::vec(any::<IpAddr>(), 8);
    (prop::collection::vec(prefix(), 0..40), clients).prop_map(|(prefixes, mut clients)| {
        for (net, _) in &prefixes {
            let (bits, width) = left(net.network());
            let one = 1_u128 << (128 - u32::from(width));
            clients.extend([net.network(), net.broadcast()]);
            clients.push(address(bits.wrapping_sub(one), width));
            clients.push(address(left(net.broadcast()).0.wrapping_add(one), width));
        }
        (prefixes, clients)
    })
}

proptest! {
    #[test]
    fn lookup_agrees_with_the_slow_reading((prefixes, clients) in case(), default in 0..4_u32) {
        let table = Table::build(prefixes.iter().copied(), default);
        for client in clients {
            check(&table, &prefixes, default, client);
        }
    }

    #[test]
    fn map_is_build_of_mapped_values((prefixes, clients) in case()) {
        let f = |value: u32| value / 2;
        let mapped = Table::build(prefixes.iter().copied(), 3).map(f);
        let prefixes: Vec<_> = prefixes.into_iter().map(|(net, value)| (net, f(value))).collect();
        for client in clients {
            check(&mapped, &prefixes, f(3), client);
        }
    }

    #[test]
    fn zip_joins_values_and_keeps_the_widest_scope((one, mut clients) in case(), (two, more) in case()) {
        clients.extend(more);
        let (a, b) = (Table::build(one.iter().copied(), 0), Table::build(two.iter().copied(), 1));
        let joined = a.zip(&b, |a, b| (a + 2 * b) % 5);
        let both: Vec<_> = one.iter().chain(&two).copied().collect();
        let truth = |at| (oracle(&one, 0, at) + 2 * oracle(&two, 1, at)) % 5;
        for client in clients {
            let Match { value, scope } = joined.lookup(client);
            prop_assert_eq!(value, truth(client));
            let same = |len| corners(&both, client, len).into_iter().all(|at| truth(at) == value);
            prop_assert!(same(scope.0), "{} in /{}", client, scope.0);
            prop_assert!(scope.0 == 0 || !same(scope.0 - 1), "{} beyond /{}", client, scope.0);
        }
    }

    #[test]
    fn runs_and_prefixes_make_the_same_table((prefixes, clients) in case()) {
        let table = Table::build(prefixes.iter().copied(), 2);
        let mut again = Table::builder(9);
        table.v4.runs().for_each(|(start, value)| again.v4(start, value));
        table.v6.runs().for_each(|(start, value)| again.v6(start, value));
        let again = again.build();
        prop_assert_eq!(table.ranges(), again.ranges());
        for client in clients {
            prop_assert_eq!(table.lookup(client), again.lookup(client));
        }
    }
}

/// Builds from text.
fn prefixes(list: &[(&str, u32)]) -> Vec<(IpNet, u32)> {
    list.iter()
        .map(|&(net, value)| (net.parse().unwrap(), value))
        .collect()
}

#[test]
fn scopes_of_known_cases() {
    let list = prefixes(&[
        ("10.0.0.0/8", 1),
        ("10.1.0.0/16", 2),
        ("11.0.0.0/8", 1),
        ("192.0.2.0/25", 3),
        ("192.0.2.128/25", 3),
        ("192.0.2.1/32", 3),
        ("198.51.100.7/32", 4),
        ("2001:db8::/32", 5),
        ("2001:db8:0:0:8000::/65", 6),
        ("2001:db8::1/128", 7),
        ("ffff::/16", 8),
    ]);
    let table = Table::build(list, 0);
    for (client, value, scope) in [
        ("10.0.0.1", 1, 16),
        ("10.1.2.3", 2, 16),
        ("10.2.0.0", 1, 15),
        // 10.128.0.0/9 touches 11/8 of equal value, but no prefix spans both without 10.1/16.
        ("10.200.0.0", 1, 9),
        ("11.0.0.0", 1, 8),
        ("192.0.2.1", 3, 24),
        ("198.51.100.7", 4, 32),
        ("198.51.100.6", 0, 32),
        ("0.0.0.0", 0, 5),
        ("255.255.255.255", 0, 3),
        ("2001:db8::1", 7, 128),
        ("2001:db8::", 5, 128),
        ("2001:db8::2", 5, 127),
        ("2001:db8:0:0:8000::5", 6, 65),
        ("2001:db8:0:1::", 5, 64),
        ("::1", 0, 3),
        ("ffff::", 8, 16),
    ] {
        let expected = Match {
            value,
            scope: PrefixLen(scope),
        };
        assert_eq!(table.lookup(client.parse().unwrap()), expected, "{client}");
    }
}

#[test]
fn an_empty_table_has_one_value_for_all() {
    for (table, value) in [(Table::default(), 0), (Table::build([], 7), 7)] {
        for client in ["0.0.0.0", "255.255.255.255", "::", "2001:db8::1"] {
            let found = table.lookup(client.parse().unwrap());
            let scope = PrefixLen(0);
            assert_eq!(found, Match { value, scope });
        }
        assert_eq!(table.ranges(), (1, 1));
        assert!(table.memory() < 1024, "{}", table.memory());
    }
}

#[test]
fn of_equal_prefixes_the_later_wins_and_host_bits_are_ignored() {
    let list = [
        ("192.0.2.0/24".parse().unwrap(), 1),
        (
            Ipv4Net::new(Ipv4Addr::new(192, 0, 2, 9), 24)
                .unwrap()
                .into(),
            2,
        ),
        ("::/0".parse().unwrap(), 3),
        ("::/0".parse().unwrap(), 4),
        ("0.0.0.0/0".parse().unwrap(), 5),
    ];
    let table = Table::build(list, 0);
    assert_eq!(table.lookup("192.0.2.200".parse().unwrap()).value, 2);
    assert_eq!(table.lookup("2001:db8::".parse().unwrap()).value, 4);
    assert_eq!(table.lookup("8.8.8.8".parse().unwrap()).value, 5);
}

#[test]
fn functions_are_called_once_a_value() {
    let list = prefixes(&[
        ("10.0.0.0/24", 1),
        ("10.0.2.0/24", 1),
        ("2001:db8::/32", 1),
        ("2001:db9::/32", 2),
    ]);
    let table = Table::build(list, 0);
    let seen = RefCell::new(HashSet::new());
    let once = |key: (u32, u32)| assert!(seen.borrow_mut().insert(key), "{key:?} twice");
    let _ = table.map(|value| {
        once((value, 99));
        value
    });
    let _ = table.zip(&table, |a, b| {
        once((a, b));
        a
    });
    assert_eq!(seen.borrow().len(), 6);
}

#[test]
fn neighbors_that_become_equal_are_merged() {
    let list = prefixes(&[("10.0.0.0/8", 1), ("2001:db8::/32", 2)]);
    let table = Table::build(list, 0);
    assert_eq!(table.ranges(), (3, 3));
    assert_eq!(table.map(|_| 9).ranges(), (1, 1));
    assert_eq!(table.zip(&table, |a, b| a - b).ranges(), (1, 1));
}

#[test]
fn hints_never_fail() {
    let table = Table::build(prefixes(&[("10.0.0.0/8", 1)]), 0);
    for client in [
        "0.0.0.0",
        "10.1.1.1",
        "255.255.255.255",
        "::",
        "3fff:ffff::",
        "ffff::",
    ] {
        let client = client.parse().unwrap();
        table.prefetch(client);
        table.prefetch_runs(client);
    }
}
