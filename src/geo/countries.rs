//! The table of countries.

use std::sync::LazyLock;

use crate::model::{Continent, Coordinates, CountryCode};

/// A country's entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Country {
    /// ISO 3166-1 alpha-2.
    pub code: CountryCode,
    /// English short name.
    pub name: &'static str,
    /// The continent, by the convention of GeoIP databases.
    pub continent: Continent,
    /// The center of its population.
    pub center: Coordinates,
}

/// Finds a country.
#[must_use]
pub fn country(code: CountryCode) -> Option<&'static Country> {
    find(&TABLE.countries, code)
}

/// Says that a code is no country, and which one may be meant.
#[must_use]
pub fn no_country(code: CountryCode) -> String {
    let hint = match code.as_str() {
        "UK" => "; the United Kingdom is GB",
        "EL" => "; Greece is GR",
        "EU" => "; for the European Union write group:EU-27",
        _ => "",
    };
    format!("`{code}` is no country of ISO 3166-1{hint}")
}

/// Lists all countries, by code: ISO 3166-1 and `XK`.
#[must_use]
pub fn countries() -> &'static [Country] {
    &TABLE.countries
}

/// Finds a code that GeoIP data uses for something that is no country, such as `EU`: it gives a continent and a point.
pub(super) fn area(code: CountryCode) -> Option<&'static Country> {
    find(&TABLE.areas, code)
}

/// Finds an entry in a sorted list.
fn find(list: &'static [Country], code: CountryCode) -> Option<&'static Country> {
    let at = list.binary_search_by_key(&code, |entry| entry.code).ok()?;
    list.get(at)
}

/// The line of the file after which the areas come.
const AREAS: &str = "# No countries:";

/// `geoip/countries.tsv`, parsed.
struct Entries {
    countries: Vec<Country>,
    areas: Vec<Country>,
}

static TABLE: LazyLock<Entries> = LazyLock::new(|| {
    let file = include_str!("../../geoip/countries.tsv");
    let (countries, areas) = file.split_once(AREAS).unwrap_or((file, ""));
    Entries {
        countries: parse(countries),
        areas: parse(areas),
    }
});

/// Parses the rows of a part of the file. It is compiled in and held by tests, so a bad row is a bug of ours.
fn parse(part: &'static str) -> Vec<Country> {
    part.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| row(line).expect("tests read every row of countries.tsv"))
        .collect()
}

/// Parses one row: code, name, continent, latitude, longitude.
fn row(line: &'static str) -> Option<Country> {
    let mut columns = line.split('\t');
    let code = columns.next()?.parse().ok()?;
    let name = columns.next()?;
    let continent = columns.next()?.parse().ok()?;
    let latitude = columns.next()?.parse().ok()?;
    let longitude = columns.next()?.parse().ok()?;
    Some(Country {
        code,
        name,
        continent,
        center: Coordinates::new(latitude, longitude).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::testing::{code, distance_km};

    /// ISO 3166-1 alpha-2 in full: 249 codes.
    const ISO: &str = "\
        AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC CD \
        CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF \
        GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN \
        KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA \
        NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI \
        SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI \
        VN VU WF WS YE YT ZA ZM ZW";

    #[test]
    fn every_iso_code_is_there_once_and_in_order() {
        let mut expected: Vec<&str> = ISO.split_whitespace().chain(["XK"]).collect();
        assert_eq!(expected.len(), 250);
        expected.sort_unstable();
        let found: Vec<&str> = countries()
            .iter()
            .map(|entry| entry.code.as_str())
            .collect();
        assert_eq!(found, expected);
        for entry in countries() {
            assert_eq!(country(entry.code), Some(entry));
            assert!(area(entry.code).is_none(), "{} twice", entry.code);
            assert!(entry.name.len() > 2 && entry.name.trim() == entry.name);
        }
    }

    #[test]
    fn areas_are_no_countries() {
        assert!(TABLE.areas.is_sorted_by_key(|entry| entry.code));
        let areas: Vec<&str> = TABLE
            .areas
            .iter()
            .map(|entry| entry.code.as_str())
            .collect();
        assert_eq!(areas, ["AN", "AP", "EU"]);
        assert_eq!(area(code("EU")).unwrap().continent, Continent::Europe);
        assert!(country(code("EU")).is_none());
    }

    #[test]
    fn centers_lie_where_people_live() {
        // Country, a large city or the middle of several, and how far the center may be from there.
        for (name, latitude, longitude, at_most_km) in [
            ("US", 37.4, -92.3, 150.0),
            ("RU", 56.57, 53.5, 150.0),
            ("CA", 46.8, -88.5, 150.0),
            ("AU", -33.87, 151.21, 600.0),
            ("BR", -19.92, -43.94, 600.0),
            ("CL", -33.45, -70.67, 200.0),
            ("AR", -34.6, -58.38, 400.0),
            ("EG", 30.04, 31.24, 200.0),
            ("CN", 32.5, 113.4, 150.0),
            ("ID", -6.21, 106.85, 450.0),
            ("NO", 59.91, 10.75, 250.0),
            ("SE", 59.33, 18.07, 250.0),
            ("FI", 60.17, 24.94, 250.0),
            ("DZ", 36.75, 3.06, 200.0),
            ("LY", 32.89, 13.19, 400.0),
            ("SA", 24.71, 46.68, 400.0),
            ("MN", 47.92, 106.92, 200.0),
            ("GL", 64.18, -51.72, 100.0),
            ("PE", -12.05, -77.04, 400.0),
            ("JP", 35.5, 137.0, 200.0),
            ("DE", 50.8, 9.9, 150.0),
            ("FR", 47.0, 2.5, 150.0),
            ("GB", 52.9, -1.6, 150.0),
            ("IN", 22.9, 79.5, 300.0),
            ("FJ", -18.14, 178.44, 100.0),
            ("NZ", -39.3, 175.2, 150.0),
        ] {
            let center = country(code(name)).unwrap().center;
            let off = distance_km(center, Coordinates::new(latitude, longitude).unwrap());
            assert!(off <= at_most_km, "{name}: {off:.0} km off");
        }
    }

    #[test]
    fn no_two_countries_share_a_center_and_continents_hold_theirs() {
        // Rough boxes: south, north, west, east. Oceania crosses the antimeridian, so only its latitudes count.
        let inside = |entry: &Country| {
            let (south, north, west, east) = match entry.continent {
                Continent::Africa => (-36.0, 38.0, -26.0, 60.0),
                Continent::Antarctica => (-90.0, -48.0, -180.0, 180.0),
                Continent::Asia => (-13.0, 56.0, 26.0, 146.0),
                Continent::Europe => (34.0, 82.0, -32.0, 61.0),
                Continent::NorthAmerica => (7.0, 84.0, -170.0, -11.0),
                Continent::Oceania => (-55.0, 30.0, -180.0, 180.0),
                Continent::SouthAmerica => (-56.0, 13.0, -93.0, -34.0),
            };
            (south..=north).contains(&entry.center.latitude())
                && (west..=east).contains(&entry.center.longitude())
        };
        for (at, entry) in countries().iter().enumerate() {
            assert!(inside(entry), "{entry:?}");
            let twin = countries()[..at]
                .iter()
                .find(|other| other.center == entry.center);
            assert_eq!(twin, None, "{entry:?}");
        }
    }
}
