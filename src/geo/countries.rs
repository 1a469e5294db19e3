//! The table of countries.

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
    let _ = code;
    todo!()
}

/// Lists all countries, by code.
#[must_use]
pub fn countries() -> &'static [Country] {
    todo!()
}
