//! The map: where clusters are, how they are, and where the answers of the last minutes went.

use std::collections::BTreeMap;

use super::words;
use crate::admin::dto::{ClusterDto, HealthState};
use crate::geo;

/// Width of the drawing; [`HEIGHT`] of it are shown.
const WIDTH: f64 = 2000.0;
/// Height of the drawing: the land between Antarctica and the North Pole.
pub(super) const HEIGHT: u32 = 930;
/// Where the equator is. `assets/land.mjs` has the same numbers.
const CENTER_Y: f64 = 560.0;
/// Most circles drawn: the rest is in the table.
const CIRCLES: usize = 100;

/// A cluster on the map.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) name: String,
    pub(super) state: HealthState,
    pub(super) x: String,
    pub(super) y: String,
    /// Where its name is written; `None` where it would cover another's.
    pub(super) label: Option<Label>,
}

/// Where a name is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    pub(super) x: String,
    pub(super) y: String,
    /// `start` or `end`.
    pub(super) anchor: &'static str,
}

/// Answers that went to a country.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Country {
    pub(super) code: String,
    pub(super) name: String,
    pub(super) answers: u64,
    /// Share of all answers, 0 to 1.
    pub(super) share: f64,
    /// The circle; `None` for what is no country.
    pub(super) circle: Option<(String, String, String)>,
}

/// Projects a place: Natural Earth I (Šavrič et al. 2011).
fn project(latitude: f64, longitude: f64) -> (f64, f64) {
    let (phi, lambda) = (latitude.to_radians(), longitude.to_radians());
    let p2 = phi * phi;
    let p4 = p2 * p2;
    let x = lambda
        * (0.8707 - 0.131_979 * p2 + p4 * (-0.013_791 + p4 * (0.003_971 * p2 - 0.001_529 * p4)));
    let y =
        phi * (1.007_226 + p2 * (0.015_085 + p4 * (-0.044_475 + 0.028_874 * p2 - 0.005_916 * p4)));
    let scale = WIDTH / (2.0 * 0.8707 * std::f64::consts::PI);
    (x.mul_add(scale, WIDTH / 2.0), y.mul_add(-scale, CENTER_Y))
}

/// Writes a coordinate.
fn at(value: f64) -> String {
    // Adding zero makes -0 plain.
    format!("{:.0}", value.round() + 0.0)
}

/// Places the clusters whose location is known; the worst last, so that they lie on top.
pub(super) fn marks(clusters: &[ClusterDto]) -> Vec<Mark> {
    let mut placed: Vec<(&ClusterDto, (f64, f64))> = clusters
        .iter()
        .filter_map(|cluster| {
            let location = cluster.location.as_ref()?;
            Some((cluster, project(location.latitude, location.longitude)))
        })
        .collect();
    placed.sort_by_key(|(cluster, _)| cluster.state);
    let points: Vec<(f64, f64)> = placed.iter().map(|(_, point)| *point).collect();
    let mut taken: Vec<[f64; 4]> = Vec::new();
    // The worst get their names first.
    let mut marks: Vec<Mark> = placed
        .iter()
        .rev()
        .map(|(cluster, (x, y))| Mark {
            name: cluster.name.clone(),
            state: cluster.state,
            x: at(*x),
            y: at(*y),
            label: label(&cluster.name, (*x, *y), &points, &mut taken),
        })
        .collect();
    marks.reverse();
    marks
}

/// Finds a place for a name: right, left, below or above of its mark, where it covers neither a mark nor a name.
fn label(
    name: &str,
    (x, y): (f64, f64),
    points: &[(f64, f64)],
    taken: &mut Vec<[f64; 4]>,
) -> Option<Label> {
    let letters = u32::try_from(name.chars().count()).unwrap_or(u32::MAX);
    // As wide as letters of 24 units are at most, on the average.
    let width = f64::from(letters) * 14.0;
    let tries = [
        (x + 24.0, y + 8.0, "start"),
        (x - 24.0, y + 8.0, "end"),
        (x - 10.0, y + 42.0, "start"),
        (x - 10.0, y - 26.0, "start"),
        (x + 10.0, y + 42.0, "end"),
        (x + 10.0, y - 26.0, "end"),
    ];
    for (lx, ly, anchor) in tries {
        let left = if anchor == "start" { lx } else { lx - width };
        let space = [left, ly - 22.0, left + width, ly + 6.0];
        let is_inside = space[0] >= 0.0 && space[2] <= WIDTH;
        let covers_mark = points.iter().any(|point| {
            *point != (x, y)
                && overlaps(
                    space,
                    [
                        point.0 - 18.0,
                        point.1 - 18.0,
                        point.0 + 18.0,
                        point.1 + 18.0,
                    ],
                )
        });
        if is_inside && !covers_mark && !taken.iter().any(|other| overlaps(space, *other)) {
            taken.push(space);
            return Some(Label {
                x: at(lx),
                y: at(ly),
                anchor,
            });
        }
    }
    None
}

/// Tells whether two rectangles share a place: left, top, right, bottom.
fn overlaps([a0, b0, a1, b1]: [f64; 4], [c0, d0, c1, d1]: [f64; 4]) -> bool {
    a0 < c1 && c0 < a1 && b0 < d1 && d0 < b1
}

/// Lists the countries that asked, the most answers first, each with a circle whose area is its share.
pub(super) fn countries(answers: &BTreeMap<String, u64>) -> Vec<Country> {
    let total: u64 = answers.values().sum();
    let most = answers.values().copied().max().unwrap_or(0).max(1);
    let mut list: Vec<Country> = answers
        .iter()
        .filter(|(_, answers)| **answers > 0)
        .map(|(code, &answers)| {
            let country = code.parse().ok().and_then(geo::country);
            let circle = country.map(|country| {
                let (x, y) = project(country.center.latitude(), country.center.longitude());
                let radius = 8.0 + 52.0 * (answers as f64 / most as f64).sqrt();
                (at(x), at(y), at(radius))
            });
            Country {
                code: code.clone(),
                name: country.map_or_else(|| unnamed(code), |country| country.name.to_owned()),
                answers,
                share: answers as f64 / total.max(1) as f64,
                circle,
            }
        })
        .collect();
    list.sort_by_key(|country| std::cmp::Reverse(country.answers));
    for country in list.iter_mut().skip(CIRCLES) {
        country.circle = None;
    }
    list
}

/// Names what is no country.
fn unnamed(code: &str) -> String {
    if matches!(code, "" | "unknown") {
        "Unknown place".to_owned()
    } else {
        words::capital(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::dashboard::samples;

    #[test]
    fn places_are_where_the_coast_lines_have_them() {
        // The corners of the projection, and a point that the script that made the coast lines puts at the same place.
        for (latitude, longitude, expected) in [
            (0.0, 0.0, ("1000", "560")),
            (0.0, 180.0, ("2000", "560")),
            (0.0, -180.0, ("0", "560")),
            (51.5, 0.0, ("1000", "229")),
            (-33.9, 151.2, ("1794", "779")),
        ] {
            let (x, y) = project(latitude, longitude);
            assert_eq!((at(x).as_str(), at(y).as_str()), expected);
        }
    }

    #[test]
    fn names_on_the_map_never_cover_each_other() {
        let clusters = samples::clusters();
        let marks = marks(&clusters);
        assert!(marks.len() >= 7);
        assert_eq!(marks.last().unwrap().state, HealthState::Down);
        assert!(marks.last().unwrap().label.is_some());
        // A hundred at one place: a few names, a hundred marks.
        let crowd = vec![clusters[0].clone(); 100];
        let marks = super::marks(&crowd);
        let named = marks.iter().filter(|mark| mark.label.is_some()).count();
        assert_eq!(marks.len(), 100);
        assert!((1..=6).contains(&named), "{named}");
    }

    #[test]
    fn circles_are_for_countries() {
        let answers = BTreeMap::from([
            ("DE".to_owned(), 900),
            ("unknown".to_owned(), 90),
            ("ZZ".to_owned(), 10),
            ("FR".to_owned(), 0),
        ]);
        let list = countries(&answers);
        assert_eq!(list.len(), 3);
        assert_eq!((list[0].name.as_str(), list[0].share), ("Germany", 0.9));
        assert_eq!(list[0].circle.as_ref().unwrap().2, "60");
        assert_eq!(
            (list[1].name.as_str(), &list[1].circle),
            ("Unknown place", &None)
        );
    }
}
