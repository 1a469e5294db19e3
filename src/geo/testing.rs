//! What the tests of this room share.

use crate::model::{Coordinates, CountryCode};

/// Makes a country code.
pub(super) fn code(text: &str) -> CountryCode {
    text.parse().unwrap()
}

/// The great circle between two points on a ball of the Earth's mean radius (haversine).
pub(super) fn distance_km(a: Coordinates, b: Coordinates) -> f64 {
    let (lat_a, lat_b) = (a.latitude().to_radians(), b.latitude().to_radians());
    let east = (b.longitude() - a.longitude()).to_radians();
    let half = ((lat_b - lat_a) / 2.0).sin().powi(2)
        + lat_a.cos() * lat_b.cos() * (east / 2.0).sin().powi(2);
    2.0 * 6371.0 * half.sqrt().min(1.0).asin()
}

/// Writes MMDB files.
#[path = "../../tests/fixtures/mmdb_writer.rs"]
pub(super) mod mmdb_writer;
