//! MMDB files: good ones against the crate's own lookup, bad ones against everything.

use std::net::IpAddr;

use proptest::prelude::*;

use super::{MmdbError, compile};
use crate::geo::compiled::Compiled;
use crate::geo::testing::code;
use crate::geo::testing::mmdb_writer::{BUILD_EPOCH, Mmdb, Value, asn, city, country, pack};
use crate::model::{Continent, Location};

/// Finds an address's place in a compiled source.
fn place<'a>(compiled: &'a Compiled, client: &str) -> &'a Location {
    let number = compiled.table.lookup(client.parse().unwrap()).value;
    &compiled.places[number as usize]
}

/// A small file of the City kind.
fn sample() -> Mmdb {
    Mmdb::new("GeoLite2-City")
        .with("81.2.69.0/24", city("GB", "EU", "ENG", 51.5, -0.1))
        .with("203.0.113.0/24", city("JP", "AS", "13", 35.7, 139.7))
        .with("203.0.113.128/25", city("AU", "OC", "NSW", -33.9, 151.2))
        .with("2001:db8::/32", city("DE", "EU", "BE", 52.5, 13.4))
        .with(
            "2001:db8:1::/48",
            city("ZZ", "XX", "far too long", 1.0, 2.0),
        )
}

#[test]
fn every_layout_record_size_and_version_is_read() {
    for record_size in [24, 28, 32] {
        for (ip_version, aliases) in [(4, false), (6, false), (6, true)] {
            let mut file = Mmdb::new("GeoLite2-Country")
                .with("81.2.69.0/24", country("GB", "EU"))
                .with("10.0.0.0/8", asn(64_500))
                .with("192.0.2.0/25", city("US", "NA", "CA", 37.8, -122.4));
            (file.record_size, file.ip_version, file.aliases) = (record_size, ip_version, aliases);
            let compiled = compile("here.mmdb", &file.write()).unwrap();
            let case = format!("{record_size} {ip_version} {aliases}");
            let london = place(&compiled, "81.2.69.160");
            assert_eq!(london.country, Some(code("GB")), "{case}");
            assert_eq!(london.continent, Some(Continent::Europe), "{case}");
            assert_eq!(place(&compiled, "10.1.2.3").asn, Some(64_500), "{case}");
            let town = place(&compiled, "192.0.2.5");
            assert_eq!(town.subdivision.unwrap().to_string(), "US-CA", "{case}");
            assert_eq!(
                town.coordinates.unwrap().latitude().to_bits(),
                37.8_f64.to_bits()
            );
            assert!(place(&compiled, "192.0.2.129").is_unknown(), "{case}");
            assert_eq!(compiled.info.networks, 3, "{case}");
            assert_eq!(compiled.info.build_epoch, BUILD_EPOCH);
            assert_eq!(compiled.info.database_type, "GeoLite2-Country");
            assert_eq!(compiled.info.name, "here.mmdb");
        }
    }
}

#[test]
fn ipv4_is_read_once_and_aliases_are_holes() {
    let compiled = compile("x", &sample().write()).unwrap();
    assert_eq!(
        compiled.info.networks, 20,
        "a network inside cuts its parent"
    );
    assert_eq!(place(&compiled, "81.2.69.160").country, Some(code("GB")));
    for hole in [
        "::81.2.69.160",
        "::ffff:81.2.69.160",
        "2002:5102:45a0::1",
        "2001:0:5102:45a0::1",
    ] {
        assert!(place(&compiled, hole).is_unknown(), "{hole}");
    }
    // Beside the alias 2001::/32 the rest of 2001::/16 is as written.
    assert_eq!(place(&compiled, "2001:db8::1").country, Some(code("DE")));
}

#[test]
fn a_leaf_above_the_ipv4_subtree_counts_for_ipv4() {
    let mut file = Mmdb::new("x").with("::/64", country("FR", "EU"));
    file.aliases = false;
    let compiled = compile("x", &file.write()).unwrap();
    assert_eq!(place(&compiled, "192.0.2.1").country, Some(code("FR")));
    assert_eq!(place(&compiled, "::1").country, Some(code("FR")));
    assert!(place(&compiled, "2001:db8::1").is_unknown());
}

#[test]
fn records_are_read_as_documented() {
    let no_country = Value::Map(vec![
        (
            "registered_country",
            Value::Map(vec![("iso_code", "US".into())]),
        ),
        (
            "represented_country",
            Value::Map(vec![("iso_code", "US".into())]),
        ),
        ("continent", Value::Map(vec![("code", "AS".into())])),
    ]);
    let enterprise = Value::Map(vec![(
        "traits",
        Value::Map(vec![("autonomous_system_number", Value::U32(64_501))]),
    )]);
    let file = sample()
        .with("198.51.100.0/24", no_country)
        .with("10.0.0.0/8", enterprise)
        .with("11.0.0.0/8", country("UK", "EU"))
        .with("12.0.0.0/8", country("EU", "EU"));
    let compiled = compile("x", &file.write()).unwrap();
    let held = place(&compiled, "198.51.100.1");
    assert_eq!(
        (held.country, held.continent),
        (None, Some(Continent::Asia))
    );
    assert_eq!(place(&compiled, "10.0.0.1").asn, Some(64_501));
    assert_eq!(place(&compiled, "11.0.0.1").country, Some(code("GB")));
    let union = place(&compiled, "12.0.0.1");
    assert_eq!(
        (union.country, union.continent),
        (None, Some(Continent::Europe))
    );
    let odd = place(&compiled, "2001:db8:1::1");
    assert_eq!(
        (odd.country, odd.continent, odd.subdivision),
        (None, None, None)
    );
    assert!(odd.coordinates.is_some());
    assert_eq!(compiled.info.unknown_codes, ["ZZ"]);
}

/// Tells why bytes are refused.
fn refusal(bytes: &[u8]) -> String {
    compile("x", bytes)
        .expect_err("must be refused")
        .to_string()
}

#[test]
fn files_that_are_none_are_refused() {
    let mut garbage = vec![0_u8; 4096];
    let mut state = 1_u32;
    for octet in &mut garbage {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *octet = (state >> 24) as u8;
    }
    let good = sample().write();
    let tree_size = good.len() / 2;
    let mut hollow = good.clone();
    hollow[..tree_size].fill(0);
    let text = b"#!/bin/sh\necho not a database\n".to_vec();
    let marker = b"\xab\xcd\xefMaxMind.com".to_vec();
    for (what, bytes, reason) in [
        ("empty", Vec::new(), "the file is empty"),
        ("zeros", vec![0; 1 << 20], "no usable MMDB file"),
        ("garbage", garbage, "no usable MMDB file"),
        ("text", text, "no usable MMDB file"),
        ("marker", marker, "no usable MMDB file"),
        ("hollow", hollow, "the search tree is damaged"),
    ] {
        let found = refusal(&bytes);
        assert!(found.starts_with(reason), "{what}: {found}");
    }
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let good = sample().write();
    for len in 0..good.len() {
        refusal(&good[..len]);
    }
}

#[test]
fn wrong_kinds_are_refused_by_name() {
    let anonymous = Value::Map(vec![("is_anonymous", Value::Bool(true))]);
    let file = Mmdb::new("GeoIP2-Anonymous-IP").with("10.0.0.0/8", anonymous);
    assert!(refusal(&file.write()).contains("GeoIP2-Anonymous-IP"));
    assert!(refusal(&Mmdb::new("GeoLite2-City").write()).contains("holds no country"));
    // A layout of another vendor: the country is text, not a map.
    let flat = Value::Map(vec![("country", "DE".into())]);
    let file = Mmdb::new("other").with("10.0.0.0/8", flat);
    assert!(refusal(&file.write()).contains("of another layout"));
    for (latitude, longitude) in [(91.0, 0.0), (0.0, -180.5), (f64::NAN, 0.0)] {
        let file = Mmdb::new("x").with("10.0.0.0/8", city("DE", "EU", "BE", latitude, longitude));
        assert!(refusal(&file.write()).contains("not on the globe"));
    }
}

/// A file of raw nodes, one record, and metadata that claims `nodes`.
fn raw(nodes: &[[u32; 2]], claim: u32) -> Vec<u8> {
    let shape = Mmdb::new("GeoLite2-Country");
    let mut out = Vec::new();
    for &node in nodes {
        pack(&mut out, shape.record_size, node);
    }
    out.extend([0; 16]);
    country("DE", "EU").encode(&mut out);
    out.extend(shape.metadata(claim));
    out
}

#[test]
fn claims_and_cycles_are_refused_in_bounded_time() {
    // Each node has two ways to the next: 2^n paths.
    let ladder = |count: u32, last: u32| -> Vec<[u32; 2]> {
        (1..=count)
            .map(|next| if next == count { [last; 2] } else { [next; 2] })
            .collect()
    };
    let mut early_v4 = ladder(96, 96);
    early_v4.push([97, 97]);
    for (what, bytes, reason) in [
        ("itself", raw(&[[0, 0]], 1), "the search tree is damaged"),
        (
            "a pair",
            raw(&[[1, 1], [0, 0]], 2),
            "the search tree is damaged",
        ),
        (
            "paths to nothing",
            raw(&ladder(120, 120), 120),
            "the search tree is damaged",
        ),
        (
            "paths to data",
            raw(&ladder(120, 136), 120),
            "the search tree is damaged",
        ),
        (
            "paths to IPv4",
            raw(&early_v4, 97),
            "the search tree is damaged",
        ),
        (
            "huge claim",
            raw(&[[1, 1]], u32::MAX),
            "no usable MMDB file",
        ),
        (
            "claim into the metadata",
            raw(&[[1, 1]], 20),
            "the search tree is damaged",
        ),
        (
            "pointer beyond the data",
            raw(&[[1, 0x0fff_ffff]], 1),
            "the record of",
        ),
        (
            "pointer into the separator",
            raw(&[[1, 5]], 1),
            "the record of",
        ),
        ("no nodes", raw(&[], 0), "no usable MMDB file"),
    ] {
        // Unbounded, each of these would take longer than the world stands.
        let found = refusal(&bytes);
        assert!(found.starts_with(reason), "{what}: {found}");
    }
}

#[test]
fn too_large_a_file_is_refused_unread() {
    let zeros = vec![0_u8; crate::geo::GeoDb::MAX_BYTES + 1];
    assert!(matches!(compile("x", &zeros), Err(MmdbError::TooLarge(_))));
}

proptest! {
    #[test]
    fn lookups_agree_with_the_crate(
        nets in prop::collection::vec((any::<u32>(), 1..=32_u8, 0..20_u32), 1..30),
        wide in prop::collection::vec((any::<u128>(), 4..=128_u8, 0..20_u32), 0..30),
        clients in prop::collection::vec(any::<IpAddr>(), 20),
        size in prop::sample::select(vec![24_u16, 28, 32]),
    ) {
        let mut file = Mmdb::new("GeoLite2-ASN");
        file.record_size = size;
        let mut all = clients;
        for (bits, len, number) in nets {
            let address = IpAddr::from(std::net::Ipv4Addr::from_bits(bits));
            file = file.with(&format!("{address}/{len}"), asn(number));
            all.push(address);
        }
        for (bits, len, number) in wide {
            // Global unicast without the aliases, so that both sides mean the same.
            let address = IpAddr::from(std::net::Ipv6Addr::from_bits(bits >> 4 | 3 << 124));
            file = file.with(&format!("{address}/{len}"), asn(number));
            all.push(address);
        }
        let bytes = file.write();
        let compiled = compile("x", &bytes).unwrap();
        let reader = maxminddb::Reader::from_source(&bytes[..]).unwrap();
        for client in all {
            if client.is_ipv6() && client.to_canonical() != client {
                continue;
            }
            let found = reader.lookup(client).unwrap();
            let expected: Option<u32> = found
                .decode_path(&[maxminddb::PathElement::Key("autonomous_system_number")])
                .unwrap();
            let number = compiled.table.lookup(client).value;
            prop_assert_eq!(compiled.places[number as usize].asn, expected, "{}", client);
        }
    }

    #[test]
    fn damaged_octets_never_panic_or_hang(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = sample().write();
        for (at, octet) in damage {
            let at = at.index(bytes.len());
            bytes[at] = octet;
        }
        let _ = compile("x", &bytes);
    }

    #[test]
    fn any_octets_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), nodes in 0..40_u32) {
        let _ = compile("x", &bytes);
        let mut framed = bytes;
        framed.extend(Mmdb::new("x").metadata(nodes));
        let _ = compile("x", &framed);
    }
}
