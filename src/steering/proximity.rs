//! Distance on the globe, and what it costs.

use crate::model::Coordinates;

/// Mean radius of the earth (IUGG R1), in kilometers.
const EARTH_RADIUS_KM: f64 = 6371.0088;

/// Gives the great-circle distance in kilometers, 0.0..=20_015.1. The haversine formula: well-behaved for near points, at
/// the poles and across the antimeridian.
pub(super) fn distance_km(a: Coordinates, b: Coordinates) -> f64 {
    let (latitude_a, latitude_b) = (a.latitude().to_radians(), b.latitude().to_radians());
    let half_height = ((latitude_b - latitude_a) / 2.0).sin();
    let half_width = ((b.longitude() - a.longitude()).to_radians() / 2.0).sin();
    let h =
        half_height * half_height + latitude_a.cos() * latitude_b.cos() * half_width * half_width;
    // Rounding may lift h above 1 for antipodes.
    2.0 * EARTH_RADIUS_KM * h.min(1.0).sqrt().asin()
}

/// Applies a geoproximity bias, -99..=99, as Route 53 does: a positive one shrinks the distance by as many hundredths, a
/// negative one divides it by what is left.
pub(super) fn biased_km(distance_km: f64, bias: i8) -> f64 {
    let share = f64::from(bias.clamp(-99, 99)) / 100.0;
    if share >= 0.0 {
        distance_km * (1.0 - share)
    } else {
        distance_km / (1.0 + share)
    }
}

/// A distance as a key to sort and compare by, in whole meters: what differs by less is equal. Without coordinates a cluster
/// comes after all others.
pub(super) fn key(km: Option<f64>) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 2e12: far inside u64"
    )]
    km.map_or(u64::MAX, |km| (km.clamp(0.0, 2e9) * 1000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(latitude: f64, longitude: f64) -> Coordinates {
        Coordinates::new(latitude, longitude).unwrap()
    }

    #[test]
    fn known_distances() {
        for (a, b, km, within) in [
            (at(50.11, 8.68), at(50.11, 8.68), 0.0, 0.001),
            (at(0.0, 0.0), at(0.0, 90.0), 10_007.557, 0.01),
            (at(0.0, 0.0), at(0.0, 180.0), 20_015.115, 0.01),
            (at(90.0, 0.0), at(-90.0, 77.0), 20_015.115, 0.01),
            // Across the antimeridian: Fiji to Samoa is near.
            (at(-18.1, 178.4), at(-13.8, -171.8), 1_151.3, 1.0),
            (at(0.0, 179.5), at(0.0, -179.5), 111.195, 0.01),
            // Over the pole, not around it.
            (at(89.0, 0.0), at(89.0, 180.0), 222.39, 0.01),
            // London to New York.
            (at(51.5074, -0.1278), at(40.7128, -74.006), 5_570.0, 5.0),
        ] {
            assert!(
                (distance_km(a, b) - km).abs() < within,
                "{a:?} {b:?}: {}",
                distance_km(a, b)
            );
            assert!((distance_km(b, a) - distance_km(a, b)).abs() < 1e-9);
        }
    }

    #[test]
    fn bias_is_route_53s() {
        for (bias, km) in [
            (0, 1000.0),
            (50, 500.0),
            (99, 10.0),
            (-50, 2000.0),
            (-99, 100_000.0),
        ] {
            assert!((biased_km(1000.0, bias) - km).abs() < 1e-6, "{bias}");
        }
    }

    #[test]
    fn keys_order_as_distances_do() {
        assert!(key(Some(1.0)) < key(Some(1.001)));
        assert_eq!(key(Some(1.0)), key(Some(1.000_000_1)));
        assert!(key(Some(1e9)) < key(None));
    }
}
