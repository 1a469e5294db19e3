//! What configuration needs to know of the world: countries, cloud regions, groups. Tests bring a small world of their own.

use crate::geo;
use crate::model::{Continent, Coordinates, CountryCode, Groups, Location, Provider};

/// The world as configuration sees it.
pub(crate) struct Atlas {
    /// The built-in groups.
    pub(crate) groups: Groups,
    /// Finds a country's continent and center.
    pub(crate) country: fn(CountryCode) -> Option<(Continent, Coordinates)>,
    /// Finds a cloud region's location.
    pub(crate) region: fn(Provider, &str) -> Option<Location>,
    /// Lists the names of a provider's regions.
    pub(crate) regions: fn(Provider) -> Vec<&'static str>,
}

impl Atlas {
    /// Gives the tables of `geo`.
    pub(crate) fn built_in() -> Self {
        Self {
            groups: geo::built_in_groups(),
            country: |code| geo::country(code).map(|country| (country.continent, country.center)),
            region: |provider, name| {
                geo::region(provider, name).map(|region| region.location.clone())
            },
            regions: |provider| geo::regions(provider).map(|region| region.name).collect(),
        }
    }
}
