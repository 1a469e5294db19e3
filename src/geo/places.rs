//! Places: each distinct one once, by number; and how two sources' words on one network are joined.

use std::collections::HashMap;

use super::countries::{area, country};
use crate::model::{ClusterId, Continent, CountryCode, Location, Subdivision};

/// A location as a key: coordinates by their bits, for floating-point numbers have no hash.
type Key = (
    Option<(u64, u64)>,
    Option<Continent>,
    Option<CountryCode>,
    Option<Subdivision>,
    Option<u32>,
    Option<ClusterId>,
);

/// Distinct places. Number 0 is the unknown place.
#[derive(Debug)]
pub(super) struct Places {
    list: Vec<Location>,
    by_key: HashMap<Key, u32>,
}

impl Places {
    /// Begins with the unknown place alone.
    pub(super) fn new() -> Self {
        let mut places = Self {
            list: Vec::new(),
            by_key: HashMap::new(),
        };
        places.number(Location::default());
        places
    }

    /// Gives a place's number; a new one when it was not seen before.
    pub(super) fn number(&mut self, location: Location) -> u32 {
        let key = (
            location
                .coordinates
                .map(|at| (at.latitude().to_bits(), at.longitude().to_bits())),
            location.continent,
            location.country,
            location.subdivision,
            location.asn,
            location.cluster.clone(),
        );
        let list = &mut self.list;
        *self.by_key.entry(key).or_insert_with(|| {
            // A table has fewer than 2^32 runs, so also fewer places.
            let number = u32::try_from(list.len()).unwrap_or(0);
            list.push(location);
            number
        })
    }

    /// Gives the places by number.
    pub(super) fn into_list(self) -> Vec<Location> {
        self.list
    }
}

/// Joins what two sources say of one network, part by part; the later one wins.
///
/// Parts of different countries are never mixed: where the later source names a country, what the earlier one says of the
/// ground counts only if it names the same. A later source that names none adds what is missing. AS numbers are apart.
pub(super) fn join(earlier: &Location, later: &Location) -> Location {
    let (first, second) = match later.country {
        Some(code) if earlier.country == Some(code) => (later, Some(earlier)),
        Some(_) => (later, None),
        None => (earlier, Some(later)),
    };
    Location {
        coordinates: first.coordinates.or_else(|| second?.coordinates),
        continent: first.continent.or_else(|| second?.continent),
        country: first.country,
        subdivision: first.subdivision.or_else(|| second?.subdivision),
        asn: later.asn.or(earlier.asn),
        cluster: None,
    }
}

/// Fills in what follows from what is known: the country of a subdivision; the continent and the center of a country.
pub(super) fn complete(mut location: Location) -> Location {
    location.country = location
        .country
        .or_else(|| location.subdivision.map(Subdivision::country));
    if let Some(known) = location.country.and_then(country) {
        location.continent = location.continent.or(Some(known.continent));
        location.coordinates = location.coordinates.or(Some(known.center));
    }
    location
}

/// Codes of countries that the table does not know, as found in data. Few, short and printable, whatever the data holds.
#[derive(Debug, Default)]
pub(super) struct UnknownCodes(Vec<String>);

impl UnknownCodes {
    /// The most that are kept: there are not many more codes than two letters give on any list, and it is for people to read.
    const LIMIT: usize = 100;
    /// The most characters kept of one.
    const CHARACTERS: usize = 8;

    /// Gives what a code of the data says of the ground; remembers it when it says nothing.
    ///
    /// `UK` is read as `GB`. A code that stands for no country, such as `EU`, gives a continent and a point.
    pub(super) fn read(&mut self, text: &str) -> Location {
        let code: Option<CountryCode> = if text == "UK" { "GB" } else { text }.parse().ok();
        if let Some(known) = code.and_then(country) {
            return Location {
                country: Some(known.code),
                ..Location::default()
            };
        }
        if let Some(area) = code.and_then(area) {
            return Location {
                continent: Some(area.continent),
                coordinates: Some(area.center),
                ..Location::default()
            };
        }
        self.remember(text);
        Location::default()
    }

    /// Notes a code once.
    fn remember(&mut self, text: &str) {
        let text = printable(text, Self::CHARACTERS);
        if self.0.len() < Self::LIMIT && !self.0.contains(&text) {
            self.0.push(text);
        }
    }

    /// Gives the codes in order.
    pub(super) fn into_list(mut self) -> Vec<String> {
        self.0.sort_unstable();
        self.0
    }
}

/// Makes text from a file fit for logs: at most `limit` characters, `?` for all but visible ASCII and spaces.
pub(super) fn printable(text: &str, limit: usize) -> String {
    let visible = |c: char| {
        if c == ' ' || c.is_ascii_graphic() {
            c
        } else {
            '?'
        }
    };
    text.chars().take(limit).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::testing::code;
    use crate::model::Coordinates;

    /// A place of a city database.
    fn city() -> Location {
        Location {
            coordinates: Coordinates::new(52.5, 13.4).ok(),
            continent: Some(Continent::Europe),
            country: Some(code("DE")),
            subdivision: "DE-BE".parse().ok(),
            ..Location::default()
        }
    }

    #[test]
    fn parts_are_joined_and_countries_never_mixed() {
        let german = Location {
            country: Some(code("DE")),
            ..Location::default()
        };
        let french = Location {
            country: Some(code("FR")),
            ..Location::default()
        };
        let network = Location {
            asn: Some(64_500),
            ..Location::default()
        };
        let union = UnknownCodes::default().read("EU");
        let both = Location {
            asn: Some(64_500),
            ..city()
        };
        for (earlier, later, joined) in [
            (city(), german.clone(), city()),
            (city(), network.clone(), both.clone()),
            (network, city(), both),
            (city(), french.clone(), french.clone()),
            (union.clone(), french.clone(), french),
            (city(), union.clone(), city()),
            (Location::default(), union.clone(), union),
            (city(), Location::default(), city()),
        ] {
            assert_eq!(join(&earlier, &later), joined, "{earlier:?} + {later:?}");
        }
    }

    #[test]
    fn what_follows_is_filled_in() {
        let part = Location {
            subdivision: "US-CA".parse().ok(),
            ..Location::default()
        };
        let part = complete(part);
        assert_eq!(part.country, Some(code("US")));
        assert_eq!(part.continent, Some(Continent::NorthAmerica));
        assert_eq!(part.coordinates, country(code("US")).map(|us| us.center));
        assert_eq!(complete(city()), city());
        assert!(complete(Location::default()).is_unknown());
    }

    #[test]
    fn unknown_codes_are_few_short_and_printable() {
        let mut codes = UnknownCodes::default();
        assert_eq!(codes.read("UK").country, Some(code("GB")));
        assert_eq!(codes.read("de").country, Some(code("DE")));
        for text in ["ZZ", "ZZ", "\u{1b}[31mevil\n", "", "ÄÖ"] {
            assert!(codes.read(text).is_unknown(), "{text}");
        }
        assert_eq!(codes.0, ["ZZ", "?[31mevi", "", "??"]);
        for number in 0..1000 {
            codes.read(&number.to_string());
        }
        assert_eq!(codes.into_list().len(), UnknownCodes::LIMIT);
    }

    #[test]
    fn equal_places_have_one_number() {
        let mut places = Places::new();
        assert_eq!(places.number(Location::default()), 0);
        assert_eq!(places.number(city()), 1);
        assert_eq!(
            places.number(Location {
                asn: Some(1),
                ..city()
            }),
            2
        );
        assert_eq!(places.number(city()), 1);
        assert_eq!(places.into_list().len(), 3);
    }
}
