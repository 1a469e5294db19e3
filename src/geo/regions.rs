//! The table of cloud regions.

use std::sync::LazyLock;

use super::countries::country;
use crate::model::{Coordinates, CountryCode, Location, Provider, Subdivision};

/// A cloud region.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// Who runs it.
    pub provider: Provider,
    /// Its name in that provider's API, such as `us-east-1`.
    pub name: &'static str,
    /// Coordinates, country, continent (and subdivision where it is certain).
    pub location: Location,
}

/// Finds a region by provider and name; case does not matter.
#[must_use]
pub fn region(provider: Provider, name: &str) -> Option<&'static Region> {
    regions(provider).find(|region| region.name.eq_ignore_ascii_case(name))
}

/// Lists all regions of one provider, by name (ASCII, ignoring case).
pub fn regions(provider: Provider) -> impl Iterator<Item = &'static Region> {
    TABLE
        .iter()
        .filter(move |region| region.provider == provider)
}

/// `geoip/regions.tsv`, parsed. It is compiled in and held by tests, so a bad row is a bug of ours.
static TABLE: LazyLock<Vec<Region>> = LazyLock::new(|| {
    include_str!("../../geoip/regions.tsv")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| row(line).expect("tests read every row of regions.tsv"))
        .collect()
});

/// Parses one row: provider, name, latitude, longitude, place (ISO 3166-2 or 3166-1), town.
fn row(line: &'static str) -> Option<Region> {
    let mut columns = line.split('\t');
    let provider = columns.next()?.parse().ok()?;
    let name = columns.next()?;
    let latitude = columns.next()?.parse().ok()?;
    let longitude = columns.next()?.parse().ok()?;
    let place = columns.next()?;
    let subdivision: Option<Subdivision> = place.parse().ok();
    let code: CountryCode = match subdivision {
        Some(part) => part.country(),
        None => place.parse().ok()?,
    };
    let location = Location {
        coordinates: Some(Coordinates::new(latitude, longitude).ok()?),
        continent: Some(country(code)?.continent),
        country: Some(code),
        subdivision,
        ..Location::default()
    };
    Some(Region {
        provider,
        name,
        location,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::geo::testing::{code, distance_km};
    use crate::model::Continent;

    #[test]
    fn every_provider_has_its_regions() {
        for (provider, at_least) in [
            (Provider::Aws, 37),
            (Provider::Gcp, 42),
            (Provider::Azure, 60),
            (Provider::Alibaba, 30),
            (Provider::Tencent, 20),
            (Provider::Huawei, 25),
            (Provider::Oci, 45),
            (Provider::DigitalOcean, 13),
            (Provider::Hetzner, 6),
            (Provider::Ovh, 15),
            (Provider::Scaleway, 4),
            (Provider::Linode, 30),
            (Provider::Ibm, 10),
        ] {
            let count = regions(provider).count();
            assert!(count >= at_least, "{provider}: {count}");
        }
        let sum: usize = Provider::ALL
            .map(|provider| regions(provider).count())
            .iter()
            .sum();
        assert_eq!(sum, TABLE.len());
    }

    #[test]
    fn rows_are_sorted_and_unique() {
        let key = |region: &Region| (region.provider.as_str(), region.name.to_ascii_lowercase());
        assert!(TABLE.is_sorted_by_key(key));
        let keys: BTreeSet<_> = TABLE.iter().map(key).collect();
        assert_eq!(keys.len(), TABLE.len());
    }

    #[test]
    fn regions_lie_in_their_countries() {
        for region in TABLE.iter() {
            let home = region.location.country.unwrap();
            let at_most_km = match home.as_str() {
                "US" | "CA" | "AU" | "CN" | "BR" | "RU" => 3_000.0,
                "IN" | "ID" | "MX" | "ZA" | "SA" => 1_500.0,
                _ => 700.0,
            };
            let center = country(home).unwrap().center;
            let off = distance_km(center, region.location.coordinates.unwrap());
            assert!(off <= at_most_km, "{region:?}: {off:.0} km");
        }
    }

    #[test]
    fn one_town_has_one_place() {
        let mut towns = std::collections::BTreeMap::new();
        for line in include_str!("../../geoip/regions.tsv")
            .lines()
            .filter(|line| !line.starts_with('#'))
        {
            let columns: Vec<&str> = line.split('\t').collect();
            assert_eq!(columns.len(), 6, "{line}");
            let place = columns[2..5].to_vec();
            assert_eq!(
                towns.entry(columns[5]).or_insert_with(|| place.clone()),
                &place,
                "{line}"
            );
        }
    }

    #[test]
    fn known_regions_are_found() {
        let virginia = region(Provider::Aws, "us-east-1").unwrap();
        assert_eq!(virginia.location.country, Some(code("US")));
        assert_eq!(virginia.location.subdivision.unwrap().to_string(), "US-VA");
        assert_eq!(virginia.location.continent, Some(Continent::NorthAmerica));
        assert_eq!(region(Provider::Ovh, "gra11").unwrap().name, "GRA11");
        assert!(region(Provider::Gcp, "us-east-1").is_none());
        assert_eq!(
            region(Provider::Aws, "cn-north-1")
                .unwrap()
                .location
                .country,
            Some(code("CN"))
        );
        assert_eq!(
            region(Provider::Azure, "usgovtexas")
                .unwrap()
                .location
                .country,
            Some(code("US"))
        );
    }
}
