//! The table of cloud regions.

use crate::model::{Location, Provider};

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

/// Finds a region by provider and name.
#[must_use]
pub fn region(provider: Provider, name: &str) -> Option<&'static Region> {
    let _ = (provider, name);
    todo!()
}

/// Lists all regions of one provider, by name.
pub fn regions(provider: Provider) -> impl Iterator<Item = &'static Region> {
    let _ = provider;
    std::iter::empty()
}
