//! A small world, and what the tests of all sections share.

mod accepted;
mod accepted_services;
mod clusters_from;
mod doubts;
mod federation;
mod keys;
mod kubernetes;
mod refused;
mod refused_services;
mod samples;

use std::collections::BTreeMap;
use std::path::Path;

use super::atlas::Atlas;
use super::{Surroundings, parse_with};
use crate::config::checked::Config;
use crate::config::faults::{Fault, Warning};
use crate::config::spec::Lane;
use crate::inventory::ClusterRegistry;
use crate::model::{Continent, Coordinates, CountryCode, Groups, Location, Provider};

/// Countries of the small world: code, continent, center.
const COUNTRIES: [(&str, Continent, f64, f64); 12] = [
    ("BR", Continent::SouthAmerica, -15.0, -47.0),
    ("CH", Continent::Europe, 47.0, 8.0),
    ("DE", Continent::Europe, 51.0, 10.0),
    ("DK", Continent::Europe, 56.0, 10.0),
    ("FI", Continent::Europe, 61.0, 25.0),
    ("FR", Continent::Europe, 47.0, 2.0),
    ("IE", Continent::Europe, 53.0, -8.0),
    ("IS", Continent::Europe, 64.0, -22.0),
    ("NO", Continent::Europe, 60.0, 10.0),
    ("SE", Continent::Europe, 59.0, 18.0),
    ("SG", Continent::Asia, 1.0, 104.0),
    ("US", Continent::NorthAmerica, 39.0, -98.0),
];

/// Regions of the small world: provider, name, country, coordinates.
const REGIONS: [(Provider, &str, &str, f64, f64); 6] = [
    (Provider::Aws, "us-east-1", "US", 38.9, -77.4),
    (Provider::Aws, "eu-west-1", "IE", 53.3, -6.3),
    (Provider::Aws, "eu-central-1", "DE", 50.1, 8.7),
    (Provider::Aws, "ap-southeast-1", "SG", 1.35, 103.8),
    (Provider::Gcp, "europe-west1", "FR", 50.4, 3.8),
    (Provider::Azure, "germanywestcentral", "DE", 50.1, 8.7),
];

fn country(code: CountryCode) -> Option<(Continent, Coordinates)> {
    let (_, continent, latitude, longitude) =
        COUNTRIES.iter().find(|(name, ..)| *name == code.as_str())?;
    Some((*continent, Coordinates::new(*latitude, *longitude).ok()?))
}

fn region(provider: Provider, name: &str) -> Option<Location> {
    let found = REGIONS
        .iter()
        .find(|(of, region, ..)| (*of, *region) == (provider, name));
    let (_, _, code, latitude, longitude) = found?;
    let code: CountryCode = code.parse().ok()?;
    Some(Location {
        coordinates: Coordinates::new(*latitude, *longitude).ok(),
        continent: country(code).map(|(continent, _)| continent),
        country: Some(code),
        ..Location::default()
    })
}

fn regions(provider: Provider) -> Vec<&'static str> {
    REGIONS
        .iter()
        .filter(|(of, ..)| *of == provider)
        .map(|(_, name, ..)| *name)
        .collect()
}

/// Makes the small world.
fn atlas() -> Atlas {
    let codes = |text: &str| text.split(' ').map(|code| code.parse().unwrap()).collect();
    let groups = [
        ("EU-27", "DE DK FI FR IE SE"),
        ("EEA", "DE DK FI FR IE IS NO SE"),
        ("EFTA", "CH IS NO"),
        ("GDPR", "DE DK FI FR IE IS NO SE"),
    ];
    let groups: BTreeMap<Box<str>, Vec<CountryCode>> = groups
        .into_iter()
        .map(|(name, text)| (name.into(), codes(text)))
        .collect();
    Atlas {
        groups: Groups(groups),
        country,
        region,
        regions,
    }
}

type Parsed = Result<(Config, Vec<Warning>), Vec<Fault>>;

fn parse_lane(text: &str, lane: Lane) -> Parsed {
    let atlas = atlas();
    let surroundings = Surroundings {
        node_name: "host-1",
        atlas: &atlas,
        lane,
    };
    parse_with(
        text,
        Path::new("/etc/meridian/meridian.yaml"),
        &mut ClusterRegistry::default(),
        surroundings,
    )
    .map_err(|faulty| faulty.faults)
}

/// Parses in both lanes, which must agree in all but what is not comparable.
fn parse(text: &str) -> Parsed {
    let (auto, whole) = (parse_lane(text, Lane::Auto), parse_lane(text, Lane::Whole));
    match (&auto, &whole) {
        (Ok((one, warnings)), Ok((other, others))) => {
            assert_eq!(one.services, other.services, "{text}");
            assert_eq!(warnings, others, "{text}");
        }
        // Text that is no YAML is refused item by item in one lane, and at the first place in the other.
        (Err(faults), Err(others)) => {
            let is_syntax = |faults: &[Fault]| {
                faults
                    .iter()
                    .any(|fault| fault.message.contains("not YAML"))
            };
            assert!(
                faults == others || is_syntax(others),
                "{text}\n{faults:#?}\n{others:#?}"
            );
        }
        _ => panic!("the lanes disagree: {text}\n{auto:#?}\n{whole:#?}"),
    }
    auto
}

/// Parses what must be accepted.
fn accept(text: &str) -> (Config, Vec<Warning>) {
    parse(text).unwrap_or_else(|faults| {
        let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
        panic!("{text}\n{}", all.join("\n"))
    })
}

/// Everything that services need: three clusters, one zone.
const BASE: &str = "\
version: 1
zones:
  - {name: svc.example, nameservers: [{name: ns1.example.net}]}
clusters:
  - {name: a, provider: aws, region: us-east-1}
  - {name: b, provider: aws, region: eu-west-1}
  - {name: c, location: {country: SG}}
";

/// Adds a service with these keys to the base; it stands on line 9.
fn with_service(keys: &str) -> String {
    format!("{BASE}services:\n  - {{namespace: n, name: s, hostnames: [s.svc.example], {keys}}}\n")
}

/// Endpoints that are right.
const ENDPOINTS: &str =
    "endpoints: [{cluster: a, addresses: [192.0.2.1]}, {cluster: b, addresses: [192.0.2.2]}]";
