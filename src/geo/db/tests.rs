//! Sources and overrides in one table.

use ipnet::IpNet;

use super::{GeoDb, Source, SourceKind};
use crate::geo::testing::mmdb_writer::{Mmdb, asn, city, country};
use crate::geo::testing::{code, distance_km};
use crate::geo::{self, Override, OverridePlace};
use crate::model::{ClientSubnet, Continent, Coordinates, Location, PrefixLen};

/// Makes a source of a written file.
fn source(name: &str, file: &Mmdb) -> Source {
    Source {
        name: name.to_owned(),
        kind: SourceKind::Mmdb,
        bytes: file.write().into(),
    }
}

/// The embedded database.
fn embedded() -> Source {
    Source {
        name: "embedded".to_owned(),
        kind: SourceKind::EmbeddedCountry,
        bytes: Vec::new().into(),
    }
}

/// Makes an override that puts a prefix in a place.
fn placed(prefix: &str, location: Location) -> Override {
    Override {
        prefix: prefix.parse().unwrap(),
        place: OverridePlace::Place(location),
    }
}

/// A place of which only the country is known.
fn in_country(text: &str) -> Location {
    Location {
        country: Some(code(text)),
        ..Location::default()
    }
}

/// Locates one sender.
fn locate(db: &GeoDb, client: &str) -> (Location, u8) {
    let found = db.locate(ClientSubnet::host(client.parse().unwrap()));
    assert_eq!(found.location.is_none(), found.place == 0, "{client}");
    (found.location.cloned().unwrap_or_default(), found.scope.0)
}

#[test]
fn nothing_compiled_knows_nothing() {
    for db in [GeoDb::default(), GeoDb::compile(&[], &[]).0] {
        assert_eq!(locate(&db, "192.0.2.1"), (Location::default(), 0));
        assert_eq!(locate(&db, "2001:db8::1"), (Location::default(), 0));
        assert_eq!(db.places(), [Location::default()]);
    }
}

#[test]
fn sources_are_joined_part_by_part_and_the_later_wins() {
    let cities = Mmdb::new("GeoLite2-City")
        .with("192.0.2.0/24", city("DE", "EU", "BE", 52.5, 13.4))
        .with("198.51.100.0/24", city("FR", "EU", "IDF", 48.9, 2.4))
        .with("2001:db8::/32", city("JP", "AS", "13", 35.7, 139.7));
    let countries = Mmdb::new("GeoLite2-Country")
        .with("192.0.2.128/25", country("DE", "EU"))
        .with("198.51.100.128/25", country("CH", "EU"))
        .with("203.0.113.0/24", country("AU", "OC"));
    let networks = Mmdb::new("GeoLite2-ASN")
        .with("192.0.2.0/25", asn(64_500))
        .with("2001:db8:8000::/33", asn(64_501));
    let sources = [
        source("city", &cities),
        source("country", &countries),
        source("asn", &networks),
    ];
    let (db, rejections) = GeoDb::compile(&sources, &[]);
    assert_eq!(rejections, []);
    let berlin = Coordinates::new(52.5, 13.4).ok();
    let center = |text| geo::country(code(text)).map(|entry| entry.center);
    for (client, home, coordinates, number, scope) in [
        ("192.0.2.1", "DE", berlin, Some(64_500), 25),
        ("192.0.2.200", "DE", berlin, None, 25),
        (
            "198.51.100.1",
            "FR",
            Coordinates::new(48.9, 2.4).ok(),
            None,
            25,
        ),
        // Another country than the city database says: its parts are not mixed in.
        ("198.51.100.200", "CH", center("CH"), None, 25),
        ("203.0.113.7", "AU", center("AU"), None, 24),
        (
            "2001:db8::1",
            "JP",
            Coordinates::new(35.7, 139.7).ok(),
            None,
            33,
        ),
        (
            "2001:db8:8000::1",
            "JP",
            Coordinates::new(35.7, 139.7).ok(),
            Some(64_501),
            33,
        ),
    ] {
        let (location, bits) = locate(&db, client);
        assert_eq!(location.country, Some(code(home)), "{client}");
        assert_eq!(location.coordinates, coordinates, "{client}");
        assert_eq!(location.asn, number, "{client}");
        assert_eq!(bits, scope, "{client}");
    }
    assert_eq!(locate(&db, "198.51.100.200").0.subdivision, None);
    let names: Vec<_> = db
        .databases()
        .iter()
        .map(|info| info.name.as_str())
        .collect();
    assert_eq!(names, ["city", "country", "asn"]);
}

#[test]
fn a_broken_source_is_left_out_and_reported() {
    let good = Mmdb::new("GeoLite2-Country").with("192.0.2.0/24", country("DE", "EU"));
    let mut cut = source("cut.mmdb", &good);
    cut.bytes = cut.bytes[..cut.bytes.len() - 1].into();
    let (db, rejections) = GeoDb::compile(&[cut, source("good.mmdb", &good)], &[]);
    assert_eq!(rejections.len(), 1);
    assert_eq!(rejections[0].source, "cut.mmdb");
    assert!(
        rejections[0].reason.starts_with("no usable MMDB file"),
        "{}",
        rejections[0]
    );
    assert_eq!(locate(&db, "192.0.2.1").0.country, Some(code("DE")));
    assert_eq!(db.databases().len(), 1);
}

#[test]
fn overrides_win_the_most_specific_first() {
    let database = Mmdb::new("GeoLite2-Country")
        .with("10.0.0.0/8", country("DE", "EU"))
        .with("10.1.2.0/24", country("JP", "AS"))
        .with("2001:db8::/32", country("DE", "EU"));
    let london = Location {
        coordinates: Coordinates::new(51.5, -0.1).ok(),
        ..in_country("GB")
    };
    let overrides = [
        placed("10.1.0.0/16", in_country("FR")),
        Override {
            prefix: "10.1.1.0/24".parse().unwrap(),
            place: OverridePlace::Cluster("eu1".parse().unwrap(), london.clone()),
        },
        placed("::ffff:172.16.0.0/108", in_country("US")),
        placed("10.9.0.0/16", Location::default()),
        placed("2001:db8::5/128", in_country("CA")),
    ];
    let (db, rejections) = GeoDb::compile(&[source("x", &database)], &overrides);
    assert_eq!(rejections, []);
    let home = |client| locate(&db, client).0.country.map(|code| code.to_string());
    for (client, expected, scope) in [
        ("10.0.0.1", Some("DE"), 16),
        ("10.1.0.1", Some("FR"), 24),
        // More specific in the database, and yet the override wins.
        ("10.1.2.1", Some("FR"), 23),
        ("10.1.1.1", Some("GB"), 24),
        ("172.16.5.5", Some("US"), 12),
        ("10.9.1.1", None, 16),
        ("2001:db8::5", Some("CA"), 128),
        ("2001:db8::4", Some("DE"), 128),
    ] {
        assert_eq!(home(client).as_deref(), expected, "{client}");
        assert_eq!(locate(&db, client).1, scope, "{client}");
    }
    let inside = locate(&db, "10.1.1.1").0;
    assert_eq!(inside.cluster, "eu1".parse().ok());
    assert_eq!(inside.coordinates, london.coordinates);
    let french = locate(&db, "10.1.0.1").0;
    assert_eq!(french.continent, Some(Continent::Europe));
    assert!(french.coordinates.is_some(), "the center of the country");
}

#[test]
fn mapped_networks_are_located_as_ipv4() {
    let database = Mmdb::new("GeoLite2-Country").with("192.0.2.0/24", country("DE", "EU"));
    let (db, _) = GeoDb::compile(&[source("x", &database)], &[]);
    let mapped = ClientSubnet {
        address: "::ffff:192.0.2.0".parse().unwrap(),
        source: PrefixLen(120),
    };
    let found = db.locate(mapped);
    assert_eq!(found.location.unwrap().country, Some(code("DE")));
    assert_eq!(found.scope, PrefixLen(120));
    assert_eq!(locate(&db, "::ffff:192.0.2.7").1, 24, "a sender is IPv4");
}

#[test]
#[cfg(feature = "embedded-geoip")]
fn the_embedded_database_knows_famous_networks() {
    let (db, rejections) = GeoDb::compile(&[embedded()], &[]);
    assert_eq!(rejections, []);
    for (client, home) in [
        ("8.8.8.8", "US"),
        ("193.0.6.139", "NL"),
        ("202.12.27.33", "JP"),
        ("200.160.2.3", "BR"),
        ("196.216.2.6", "ZA"),
        ("2001:67c:2e8:22::c100:68b", "NL"),
        ("2001:4860:4860::8888", "US"),
        ("::ffff:193.0.6.139", "NL"),
    ] {
        let (location, scope) = locate(&db, client);
        assert_eq!(location.country, Some(code(home)), "{client}");
        assert!(scope > 0);
        let center = geo::country(code(home)).unwrap().center;
        assert!(distance_km(center, location.coordinates.unwrap()) < 1.0);
    }
    for hole in ["10.0.0.1", "127.0.0.1", "::1", "fe80::1", "fd00::1"] {
        assert!(locate(&db, hole).0.is_unknown(), "{hole}");
    }
    let info = &db.databases()[0];
    assert_eq!(info.database_type, "IPFire Location Database (country)");
    assert!(info.networks > 600_000);
}

#[test]
#[cfg(feature = "embedded-geoip")]
fn every_place_of_the_embedded_database_can_be_measured_from() {
    let (db, _) = GeoDb::compile(&[embedded()], &[]);
    for place in db.places().iter().skip(1) {
        assert!(
            place.coordinates.is_some() && place.continent.is_some(),
            "{place:?}"
        );
    }
}

#[test]
#[cfg(not(feature = "embedded-geoip"))]
fn without_the_feature_the_embedded_database_is_refused() {
    let (_, rejections) = GeoDb::compile(&[embedded()], &[]);
    assert!(rejections[0].reason.contains("embedded-geoip"));
}

#[test]
fn host_bits_of_overrides_do_no_harm() {
    let odd: IpNet = "192.0.2.77/24".parse().unwrap();
    let overrides = [Override {
        prefix: odd,
        place: OverridePlace::Place(in_country("DE")),
    }];
    let (db, _) = GeoDb::compile(&[], &overrides);
    assert_eq!(locate(&db, "192.0.2.1").0.country, Some(code("DE")));
}
