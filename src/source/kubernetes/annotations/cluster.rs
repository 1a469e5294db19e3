//! Annotations about a cluster: on the Secret that has its kubeconfig, and on whatever else stands for a cluster.
//!
//! As with those of services, a bad value is refused for its key alone. What is said of the place goes before all others: Nodes,
//! the built-in table, the configuration.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::grammar::{self, Said};
use super::{Drain, MAX_REFUSED, MAX_VALUE, PREFIX, Refused, refused};
use crate::geo;
use crate::model::{
    Cluster, Continent, Coordinates, CountryCode, Location, Provider, Subdivision, Weight,
};

/// What annotations say of a cluster; `None` where they say nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterSaid {
    /// The cloud region.
    pub region: Option<Box<str>>,
    /// The availability zones.
    pub zones: Option<Vec<Box<str>>>,
    /// The cloud.
    pub provider: Option<Box<str>>,
    /// The country.
    pub country: Option<CountryCode>,
    /// The continent.
    pub continent: Option<Continent>,
    /// The part of a country.
    pub subdivision: Option<Subdivision>,
    /// The point.
    pub coordinates: Option<Coordinates>,
    /// What `tag:` selectors match.
    pub tags: Option<Vec<Box<str>>>,
    /// Multiplies the weights of its endpoints.
    pub weight: Option<Weight>,
    /// When no new answers name it.
    pub drain: Option<Drain>,
    /// It is not to be followed.
    pub ignore: bool,
    /// Both halves of the point, until they are put together.
    halves: (Option<f64>, Option<f64>),
}

/// What came of the annotations of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterRead {
    /// What they say.
    pub said: ClusterSaid,
    /// Those that count, as they are written.
    pub counted: Vec<(Box<str>, Box<str>)>,
    /// What was refused, in the order of the keys.
    pub refused: Vec<Refused>,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct ClusterKey {
    /// Its name after the prefix.
    pub name: &'static str,
    /// How it is written.
    pub grammar: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    read: fn(&str, &mut ClusterSaid) -> Said<()>,
}

/// Keys that are known and do nothing yet: whoever relies on one must hear of it.
const LATER: &[&str] = &[
    "access",
    "capacity",
    "dns-label",
    "egress-cidrs",
    "hub-health",
    "identity",
    "ingress",
];

/// Begins a table entry.
const fn key(
    name: &'static str,
    grammar: &'static str,
    about: &'static str,
    read: fn(&str, &mut ClusterSaid) -> Said<()>,
) -> ClusterKey {
    ClusterKey {
        name,
        grammar,
        about,
        read,
    }
}

const KEYS: &[ClusterKey] = &[
    key(
        "region",
        "a name, such as `eu-west-1`",
        "The cloud region; with `provider` it gives the place.",
        |text, said| {
            said.region = Some(grammar::label(text)?);
            Ok(())
        },
    ),
    key(
        "zone",
        "names between commas",
        "The availability zones.",
        |text, said| {
            said.zones = Some(grammar::labels(text)?);
            Ok(())
        },
    ),
    key(
        "provider",
        "a name, such as `aws`",
        "The cloud.",
        |text, said| {
            said.provider = Some(grammar::label(text)?);
            Ok(())
        },
    ),
    key(
        "country",
        "a code of ISO 3166-1, such as `DE`",
        "The country; where nothing tells the point, its center is taken.",
        |text, said| {
            said.country = Some(grammar::country(text)?);
            Ok(())
        },
    ),
    key(
        "continent",
        "`AF`, `AN`, `AS`, `EU`, `NA`, `OC` or `SA`",
        "The continent.",
        |text, said| {
            said.continent = Some(grammar::continent(text)?);
            Ok(())
        },
    ),
    key(
        "subdivision",
        "a code of ISO 3166-2, such as `US-CA`",
        "The part of the country; it gives the country too.",
        |text, said| {
            said.subdivision = Some(grammar::subdivision(text)?);
            Ok(())
        },
    ),
    key(
        "latitude",
        "decimal degrees, -90 to 90",
        "The point, together with `longitude`.",
        |text, said| {
            said.halves.0 = Some(grammar::degrees(text, 90.0)?);
            Ok(())
        },
    ),
    key(
        "longitude",
        "decimal degrees, -180 to 180",
        "The point, together with `latitude`.",
        |text, said| {
            said.halves.1 = Some(grammar::degrees(text, 180.0)?);
            Ok(())
        },
    ),
    key(
        "geo-tag",
        "tags between commas: letters, digits and hyphens",
        "What `tag:` selectors and bare words match.",
        |text, said| {
            said.tags = Some(grammar::tags(text)?);
            Ok(())
        },
    ),
    key(
        "cluster-weight",
        "0..65535",
        "Multiplies the weights of the cluster’s endpoints, up to 65535; 0 is no new traffic. A policy’s own `weights` go before.",
        |text, said| {
            said.weight = Some(Weight(grammar::number(text, 0, u16::MAX)?));
            Ok(())
        },
    ),
    key(
        "drain",
        "`true`, `false`, a moment, or a window `MOMENT/MOMENT` or `MOMENT/DURATION`",
        "No new answers name the cluster from then on; a window ends by itself.",
        |text, said| {
            said.drain = Some(grammar::drain(text)?);
            Ok(())
        },
    ),
    key(
        "ignore",
        "BOOL",
        "The cluster is not followed; one that was served is drained first.",
        |text, said| {
            said.ignore = grammar::boolean(text)?;
            Ok(())
        },
    ),
];

/// Lists the keys that work, as the reference does.
#[must_use]
pub fn cluster_keys() -> &'static [ClusterKey] {
    KEYS
}

/// Reads the annotations of one cluster; those of others are passed over.
pub fn read_cluster<'a>(annotations: impl IntoIterator<Item = (&'a str, &'a str)>) -> ClusterRead {
    let ours = annotations.into_iter();
    let mut ours: Vec<(&str, &str)> = ours.filter(|(key, _)| key.starts_with(PREFIX)).collect();
    ours.sort_unstable();
    let mut out = ClusterRead::default();
    for (written, value) in ours {
        let word = written.get(PREFIX.len()..).unwrap_or_default();
        let result = match KEYS.iter().find(|key| key.name == word) {
            Some(_) if value.len() > MAX_VALUE => {
                Err(format!("it has more than {MAX_VALUE} octets"))
            }
            Some(key) => (key.read)(value.trim(), &mut out.said),
            None if LATER.contains(&word) => Err("not supported yet".to_owned()),
            None => Err(format!("there is no key `{PREFIX}{word}` about clusters")),
        };
        match result {
            Ok(()) => out.counted.push((written.into(), value.trim().into())),
            Err(reason) if out.refused.len() < MAX_REFUSED => {
                out.refused.push(refused(written, value, &reason));
            }
            Err(_) => {}
        }
    }
    put_together(&mut out);
    check_part(&mut out);
    out
}

/// Makes a point of both its halves. One alone says nothing.
fn put_together(out: &mut ClusterRead) {
    let (said, missing) = match out.said.halves {
        (Some(latitude), Some(longitude)) => {
            out.said.coordinates = Coordinates::new(latitude, longitude).ok();
            return;
        }
        (None, None) => return,
        (Some(_), None) => ("latitude", "longitude"),
        (None, Some(_)) => ("longitude", "latitude"),
    };
    withdraw(
        out,
        said,
        &format!("`{missing}` is missing: both come together"),
    );
}

/// Refuses a part of another country than the one that is said.
fn check_part(out: &mut ClusterRead) {
    if let (Some(country), Some(part)) = (out.said.country, out.said.subdivision)
        && part.country() != country
    {
        out.said.subdivision = None;
        let reason = format!("it is no part of {country}, the `country`");
        withdraw(out, "subdivision", &reason);
    }
}

/// Refuses a key that counted alone and does not beside others.
fn withdraw(out: &mut ClusterRead, word: &str, reason: &str) {
    let written = format!("{PREFIX}{word}");
    let at = out.counted.iter().position(|(key, _)| **key == *written);
    if let Some(at) = at {
        let (key, value) = out.counted.remove(at);
        out.refused.push(refused(&key, &value, reason));
    }
}

impl ClusterSaid {
    /// Lays it over what is known of a cluster. Its Nodes fill in what is open after that.
    #[must_use]
    pub fn over(&self, cluster: &Cluster) -> Cluster {
        let mut whole = cluster.clone();
        whole.region = self.region.clone().or(whole.region);
        whole.provider = self.provider.clone().or(whole.provider);
        if let Some(zones) = &self.zones {
            whole.zones.clone_from(zones);
        }
        if let Some(tags) = &self.tags {
            whole.tags.clone_from(tags);
        }
        // What the configuration took from the table is of its own region.
        let of_table = table(cluster);
        if whole.location.is_unknown() || of_table.as_ref() == Some(&whole.location) {
            whole.location = table(&whole).unwrap_or_default();
        }
        self.locate(&mut whole.location);
        whole
    }

    /// Lays what is said of the place over a location.
    fn locate(&self, location: &mut Location) {
        let of_part = self.subdivision.map(Subdivision::country);
        let country = self.country.or(of_part);
        if let Some(code) = country {
            let known = geo::country(code);
            let (continent, center) = known.map(|one| (one.continent, one.center)).unzip();
            let is_elsewhere = match location.country {
                Some(other) => other != code,
                None => location.continent.is_some() && location.continent != continent,
            };
            if is_elsewhere {
                // Neither point nor part is of this country.
                *location = Location::default();
            }
            location.country = Some(code);
            location.continent = location.continent.or(continent);
            location.coordinates = location.coordinates.or(center);
        }
        location.continent = self.continent.or(location.continent);
        location.subdivision = self.subdivision.or(location.subdivision);
        location.coordinates = self.coordinates.or(location.coordinates);
    }

    /// Names the keys that something of the place is taken from: `coordinates`, `country`, `continent`, `region` or `zones`; empty:
    /// it is not taken from annotations.
    #[must_use]
    pub fn evidence(&self, what: &str) -> String {
        let region = (self.region.is_some(), "region");
        let country = (self.country.is_some(), "country");
        let subdivision = (self.subdivision.is_some(), "subdivision");
        let point = (self.coordinates.is_some(), "latitude");
        let keys: &[(bool, &str)] = match what {
            "coordinates" => &[point, country, subdivision, region],
            "country" => &[country, subdivision, region],
            "continent" => &[
                (self.continent.is_some(), "continent"),
                country,
                subdivision,
                region,
            ],
            "region" => &[region],
            "zones" => &[(self.zones.is_some(), "zone")],
            _ => &[],
        };
        let mut text = String::new();
        if let Some((_, key)) = keys.iter().find(|(is_said, _)| *is_said) {
            // Writing to a String cannot fail.
            let _ = write!(text, "annotation {PREFIX}{key}");
        }
        text
    }

    /// Tells whether no new answers name it at a moment.
    #[must_use]
    pub fn is_drained(&self, now: Timestamp) -> bool {
        match self.drain {
            None | Some(Drain::No) => false,
            Some(Drain::From(since, until)) => {
                since.is_none_or(|since| since <= now) && until.is_none_or(|until| now < until)
            }
        }
    }
}

/// Looks up a cluster's region.
fn table(cluster: &Cluster) -> Option<Location> {
    let (provider, region) = cluster.provider.as_deref().zip(cluster.region.as_deref())?;
    let provider: Provider = provider.parse().ok()?;
    Some(geo::region(provider, region)?.location.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rows: &[(&str, &str)]) -> ClusterRead {
        let keys: Vec<(String, &str)> = rows
            .iter()
            .map(|(key, value)| (format!("{PREFIX}{key}"), *value))
            .collect();
        read_cluster(keys.iter().map(|(key, value)| (key.as_str(), *value)))
    }

    fn named() -> Cluster {
        Cluster::named("a".parse().unwrap())
    }

    #[test]
    fn every_key_is_read_or_refused_by_name() {
        for (key, good, bad, part) in [
            ("region", "eu-west-1", "a b", "printable"),
            ("zone", "a, b", "a,,b", "empty"),
            ("provider", "aws", "", "1 to 253"),
            ("country", "DE", "UK", "no country"),
            ("country", "DE", "de-by", "country"),
            ("continent", "EU", "Europe", "continent"),
            ("subdivision", "US-CA", "US", "subdivision"),
            ("subdivision", "US-CA", "XX-CA", "no country"),
            ("geo-tag", "eu, EU-2", "a b", "a tag has"),
            ("cluster-weight", "65535", "-1", "0 to 65535"),
            ("cluster-weight", "0", "1e3", "0 to 65535"),
            ("drain", "2026-12-24T20:00:00Z/2h", "soon", "MOMENT"),
            ("ignore", "T", "yes", "`true` or `false`"),
        ] {
            let well = read(&[(key, good)]);
            assert_eq!((well.refused.len(), well.counted.len()), (0, 1), "{key}");
            assert_ne!(well.said, ClusterSaid::default(), "{key}");
            let badly = read(&[(key, bad), ("geo-tag", "stays")]);
            let refused = badly.refused.iter().find(|one| one.key.ends_with(key));
            let reason = &refused.unwrap().reason;
            assert!(reason.contains(part), "{key}: {reason}");
            if key != "geo-tag" {
                assert!(badly.said.tags.is_some(), "{key} alone is refused");
            }
        }
        for key in LATER {
            let later = read(&[(key, "x")]);
            assert_eq!(&*later.refused[0].reason, "not supported yet", "{key}");
            assert_eq!(later.said, ClusterSaid::default());
        }
        let unknown = read(&[("hostname", "www.example")]);
        assert!(unknown.refused[0].reason.contains("about clusters"));
        let huge = "x".repeat(MAX_VALUE + 1);
        assert!(
            read(&[("region", &huge)]).refused[0]
                .reason
                .contains("octets")
        );
        assert_eq!(
            read_cluster([("example.com/region", "x")]),
            ClusterRead::default()
        );
    }

    #[test]
    fn halves_of_a_point_come_together() {
        let both = read(&[("latitude", "-33.9"), ("longitude", "18.4")]);
        let point = both.said.coordinates.unwrap();
        assert_eq!((point.latitude(), point.longitude()), (-33.9, 18.4));
        for (key, value) in [("latitude", "10"), ("longitude", "10")] {
            let one = read(&[(key, value)]);
            assert_eq!(one.said.coordinates, None);
            assert!(one.refused[0].reason.contains("is missing"), "{key}");
            assert!(one.counted.is_empty());
        }
        for (key, value) in [
            ("latitude", "90.1"),
            ("longitude", "NaN"),
            ("latitude", "1e400"),
        ] {
            assert!(
                read(&[(key, value)]).refused[0].reason.contains("degrees"),
                "{value}"
            );
        }
    }

    #[test]
    fn a_part_is_one_of_its_country() {
        let both = |country, part| read(&[("country", country), ("subdivision", part)]);
        let well = both("US", "US-CA");
        assert_eq!((well.counted.len(), well.refused.len()), (2, 0));
        let badly = both("DE", "US-CA");
        assert_eq!(badly.said.subdivision, None);
        assert_eq!(badly.said.country.unwrap().as_str(), "DE");
        assert_eq!(badly.counted.len(), 1);
        let refused = &badly.refused[0];
        assert!(refused.key.ends_with("subdivision"), "{refused:?}");
        assert_eq!(&*refused.reason, "it is no part of DE, the `country`");
        // The part alone gives its country, as before.
        assert!(read(&[("subdivision", "US-CA")]).refused.is_empty());
    }

    #[test]
    fn annotations_go_before_the_configuration_and_the_table() {
        let over = |rows: &[(&str, &str)], cluster: &Cluster| read(rows).said.over(cluster);
        let cloud = [("provider", "aws"), ("region", "af-south-1")];
        let placed = over(&cloud, &named());
        assert_eq!(placed.location.country.unwrap().as_str(), "ZA");
        assert!(placed.location.coordinates.is_some());
        // A region of the configuration gives way with all that the table said of it.
        let configured = over(&[("provider", "aws"), ("region", "eu-west-1")], &named());
        assert_eq!(over(&cloud, &configured).location, placed.location);
        // A point of its own stays, where the annotation says none.
        let mut own = named();
        own.location.coordinates = Coordinates::new(1.0, 2.0).ok();
        assert_eq!(
            over(&cloud, &own).location.coordinates,
            own.location.coordinates
        );
        let moved = over(&[("latitude", "3"), ("longitude", "4")], &own);
        assert_eq!(moved.location.coordinates, Coordinates::new(3.0, 4.0).ok());
        // Another country has another center, and parts of its own.
        let german = over(&[("country", "DE")], &placed);
        let center = geo::country("DE".parse().unwrap()).unwrap().center;
        assert_eq!(german.location.coordinates, Some(center));
        assert_eq!(german.location.continent, Some(Continent::Europe));
        // So has one on another continent than was written, whatever else was.
        let mut abroad = named();
        abroad.location.continent = Some(Continent::NorthAmerica);
        abroad.location.coordinates = Coordinates::new(40.0, -100.0).ok();
        let german = over(&[("country", "DE")], &abroad);
        assert_eq!(german.location.continent, Some(Continent::Europe));
        assert_eq!(german.location.coordinates, Some(center));
        let part = over(&[("subdivision", "US-CA"), ("continent", "OC")], &named());
        assert_eq!(part.location.country.unwrap().as_str(), "US");
        assert_eq!(part.location.continent, Some(Continent::Oceania));
        assert_eq!(over(&[], &configured), configured);
    }

    #[test]
    fn it_tells_where_each_part_of_a_place_is_from() {
        let said = read(&[("country", "DE"), ("zone", "a")]).said;
        assert_eq!(
            said.evidence("coordinates"),
            "annotation meridian-dns.io/country"
        );
        assert_eq!(said.evidence("zones"), "annotation meridian-dns.io/zone");
        assert_eq!(said.evidence("region"), "");
    }

    #[test]
    fn a_drain_is_a_word_a_moment_or_a_window() {
        let is_drained = |text: &str, now: &str| {
            let said = read(&[("drain", text)]).said;
            said.is_drained(now.parse().unwrap())
        };
        let (before, after) = ("2026-12-24T19:59:59Z", "2026-12-24T20:00:00Z");
        assert!(is_drained("true", before) && !is_drained("false", before));
        let moment = "2026-12-24T20:00:00Z";
        assert!(!is_drained(moment, before) && is_drained(moment, after));
        let window = "2026-12-24T20:00:00Z/1h";
        assert!(is_drained(window, after) && !is_drained(window, "2026-12-24T21:00:00Z"));
        assert!(!ClusterSaid::default().is_drained(before.parse().unwrap()));
    }
}
