//! Proximity: how far a cluster counts as being from a client (DESIGN section 4.2).
//!
//! Great circle on a sphere, then Route 53's geoproximity bias, then the cluster's cost in kilometers. Points are unit vectors,
//! so that neither the antimeridian nor a pole is special.

use crate::model::Coordinates;

/// The earth's mean radius (IUGG R1). The sphere is wrong by at most 0.6 %, less than GeoIP data are.
const EARTH_RADIUS_KM: f64 = 6371.0088;

/// A point on the globe as a vector of length 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point([f64; 3]);

impl From<Coordinates> for Point {
    fn from(coordinates: Coordinates) -> Self {
        let (sin_latitude, cos_latitude) = coordinates.latitude().to_radians().sin_cos();
        let (sin_longitude, cos_longitude) = coordinates.longitude().to_radians().sin_cos();
        Self([
            cos_latitude * cos_longitude,
            cos_latitude * sin_longitude,
            sin_latitude,
        ])
    }
}

impl Point {
    /// Gives the great-circle distance, 0.0..=20016.0. Exact near zero and near the antipode alike.
    pub(super) fn distance_km(self, other: Self) -> f64 {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        let dot = a * d + b * e + c * f;
        let (x, y, z) = (b * f - c * e, c * d - a * f, a * e - b * d);
        EARTH_RADIUS_KM * (x * x + y * y + z * z).sqrt().atan2(dot)
    }
}

/// Applies Route 53's geoproximity bias, -99..=99: above 0 a cluster's region grows (distance times 1 - bias/100), below 0 it
/// shrinks (distance divided by 1 + bias/100).
pub(super) fn biased_km(distance_km: f64, bias: i8) -> f64 {
    let share = f64::from(bias) / 100.0;
    if bias >= 0 {
        distance_km * (1.0 - share)
    } else {
        distance_km / (1.0 + share)
    }
}

/// Gives what clusters are compared by: biased distance plus cost, in whole meters, so that two computations of one distance
/// never differ, on no machine. Kept as a float, which holds whole meters exactly.
pub(super) fn meters(distance_km: f64, bias: i8, cost_km: f64) -> f64 {
    ((biased_km(distance_km, bias) + cost_km) * 1000.0).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The law of cosines: another formula, good enough away from 0 and the antipode.
    fn cosines_km(a: (f64, f64), b: (f64, f64)) -> f64 {
        let (lat_a, lat_b) = (a.0.to_radians(), b.0.to_radians());
        let turn = (b.1 - a.1).to_radians();
        let cosine = lat_a.sin() * lat_b.sin() + lat_a.cos() * lat_b.cos() * turn.cos();
        EARTH_RADIUS_KM * cosine.clamp(-1.0, 1.0).acos()
    }

    fn distance(a: (f64, f64), b: (f64, f64)) -> f64 {
        let point =
            |(latitude, longitude)| Point::from(Coordinates::new(latitude, longitude).unwrap());
        point(a).distance_km(point(b))
    }

    #[test]
    fn distances_are_right_everywhere_on_the_globe() {
        let quarter = EARTH_RADIUS_KM * std::f64::consts::FRAC_PI_2;
        let degree = EARTH_RADIUS_KM * 1.0_f64.to_radians();
        for (from, to, expected) in [
            ((0.0, 0.0), (0.0, 0.0), 0.0),
            // Across the antimeridian: two degrees, not 358.
            ((0.0, 179.0), (0.0, -179.0), 2.0 * degree),
            ((0.0, 180.0), (0.0, -180.0), 0.0),
            // Across the poles: over the top, not around.
            ((89.0, 0.0), (89.0, 180.0), 2.0 * degree),
            ((-89.0, 90.0), (-89.0, -90.0), 2.0 * degree),
            // At a pole every longitude is the same point.
            ((90.0, 13.0), (90.0, -170.0), 0.0),
            ((90.0, 0.0), (0.0, 77.0), quarter),
            // Antipodes.
            ((10.0, 20.0), (-10.0, -160.0), 2.0 * quarter),
            // Frankfurt to Sydney, and Frankfurt to New York, by the published great circles, 0.1 % allowed.
            ((50.1109, 8.6821), (-33.8688, 151.2093), 16_478.0),
            ((50.1109, 8.6821), (40.7128, -74.0060), 6_205.0),
        ] {
            let got = distance(from, to);
            assert!(
                (got - expected).abs() <= 1e-6 + expected * 1e-3,
                "{from:?} {to:?}: {got}"
            );
            assert_eq!(
                got.to_bits(),
                distance(to, from).to_bits(),
                "{from:?} {to:?}"
            );
        }
    }

    #[test]
    fn distances_agree_with_the_law_of_cosines() {
        for a in 0..24_i32 {
            for b in 0..24_i32 {
                let from = (f64::from(a * 7 - 80), f64::from(a * 15 - 180));
                let to = (f64::from(b * 7 - 83), f64::from(b * 15 - 173));
                let (got, expected) = (distance(from, to), cosines_km(from, to));
                assert!(
                    (got - expected).abs() < 0.1,
                    "{from:?} {to:?}: {got} {expected}"
                );
            }
        }
    }

    #[test]
    fn bias_is_route_53s() {
        for (bias, expected) in [
            (0, 1000.0),
            (20, 800.0),
            (50, 500.0),
            (99, 10.0),
            (-50, 2000.0),
            (-20, 1250.0),
            (-99, 100_000.0),
        ] {
            assert!((biased_km(1000.0, bias) - expected).abs() < 1e-6, "{bias}");
        }
        assert!((meters(1000.0, 50, 300.0) - 800_000.0).abs() < f64::EPSILON);
    }
}
