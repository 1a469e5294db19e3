//! Forms of names that a zone makes of services, and the one parser of the names of KubeFed's levels.
//!
//! KubeFed asks for one service by up to three names: `<service>.<namespace>.<federation>.svc` before the apex is the whole
//! federation, and a region, or a zone and its region, between `svc` and the apex narrows it (DESIGN section 4.5).

use crate::model::{NameRef, SERVICE_LABEL};

/// Labels of a name of the whole federation before the apex: service, namespace, federation and `svc`.
const WHOLE: usize = 4;
/// Labels that say a level, at most: a zone and its region.
const AREA: usize = 2;

/// Which names a zone makes beside `{service}.{namespace}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameForms {
    /// Names of KubeFed's levels are answered: those of steered names of the form `<service>.<namespace>.<federation>.svc`.
    pub kubefed: bool,
    /// It is the zone of a cluster set: `dns-version` says so (KEP-1645).
    pub cluster_set: bool,
}

/// A name read as one of a level: `front` and the apex are the name of the whole federation, `area` says the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelName<'n> {
    /// Labels before the area in wire form, without the root: empty, or ending in `svc`.
    pub front: &'n [u8],
    /// Labels of the area in wire form, without the root: a region, a zone and its region, or a zone alone.
    pub area: &'n [u8],
    /// The front has all four labels, so that a service may stand there; else names lie below it at most.
    pub is_whole: bool,
}

/// Reads a name below an apex as that of a level, in each of the ways that its labels allow: at most one for each number of labels
/// that say the level, fewest first. Both in lower case. Empty for a name that is no such name whatever regions and zones there are.
pub fn level_names<'n>(
    name: NameRef<'n>,
    apex: NameRef<'_>,
) -> impl Iterator<Item = LevelName<'n>> + use<'n> {
    let before = name.as_wire().len().checked_sub(apex.as_wire().len());
    let before = before.filter(|_| name.is_at_or_below(apex));
    let labels = before.and_then(|end| name.as_wire().get(..end));
    let count = name
        .label_count()
        .checked_sub(apex.label_count())
        .filter(|count| (1..=WHOLE + AREA).contains(count));
    let labels = labels.zip(count);
    (1..=AREA).filter_map(move |area| {
        let (labels, count) = labels?;
        let front = count.checked_sub(area).filter(|front| *front <= WHOLE)?;
        let (front_wire, area_wire) = labels.split_at_checked(end_of(name, front))?;
        let ends_in_svc = || {
            let last = front.checked_sub(1).and_then(|at| name.labels().nth(at));
            last.is_none_or(|label| label == SERVICE_LABEL)
        };
        ends_in_svc().then_some(LevelName {
            front: front_wire,
            area: area_wire,
            is_whole: front == WHOLE,
        })
    })
}

/// Counts the octets of a name's first labels.
fn end_of(name: NameRef<'_>, labels: usize) -> usize {
    let first = name.labels().take(labels);
    first.map(|label| label.len() + 1).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::LowerName;

    fn name(text: &str) -> LowerName {
        text.parse().unwrap()
    }

    /// Writes labels out: `front/area`, with `!` where the front is whole.
    fn read(text: &str) -> Vec<String> {
        let (name, apex) = (name(text), name("fed.example"));
        let shown = |wire: &[u8]| {
            let whole = [wire, &[0]].concat();
            let text = NameRef::from_wire(&whole).unwrap().to_string();
            text.trim_end_matches('.').to_owned()
        };
        let names = level_names(name.as_ref(), apex.as_ref());
        names
            .map(|level| {
                let mark = if level.is_whole { "!" } else { "" };
                format!("{}{mark}/{}", shown(level.front), shown(level.area))
            })
            .collect()
    }

    #[test]
    fn names_of_levels_are_read_in_every_way_that_their_labels_allow() {
        for (text, wanted) in [
            (
                "web.shop.prod.svc.eu.fed.example",
                &["web.shop.prod.svc!/eu"][..],
            ),
            (
                "web.shop.prod.svc.a.eu.fed.example",
                &["web.shop.prod.svc!/a.eu"],
            ),
            ("shop.prod.svc.a.eu.fed.example", &["shop.prod.svc/a.eu"]),
            ("prod.svc.eu.fed.example", &["prod.svc/eu"]),
            ("svc.eu.fed.example", &["svc/eu", "/svc.eu"]),
            ("svc.a.eu.fed.example", &["svc/a.eu"]),
            ("a.eu.fed.example", &["/a.eu"]),
            ("eu.fed.example", &["/eu"]),
            // The whole federation is a name of the table, and no level.
            ("web.shop.prod.svc.fed.example", &[]),
            // A federation, a region or a zone of this name is read both ways.
            (
                "web.shop.svc.svc.eu.fed.example",
                &["web.shop.svc.svc!/eu", "web.shop.svc/svc.eu"],
            ),
            (
                "web.shop.prod.svc.svc.fed.example",
                &["web.shop.prod.svc!/svc"],
            ),
            (
                "web.shop.prod.svc.svc.svc.fed.example",
                &["web.shop.prod.svc!/svc.svc"],
            ),
            ("svc.svc.fed.example", &["svc/svc", "/svc.svc"]),
            // One label too many, as later releases of CoreDNS ask for an endpoint.
            ("x.web.shop.prod.svc.eu.fed.example", &[]),
            ("x.web.shop.prod.svc.a.eu.fed.example", &[]),
            ("web.shop.prod.svc.b.a.eu.fed.example", &[]),
            ("web.shop.prod.pod.eu.fed.example", &[]),
            ("web.shop.prod.svc.eu.fed.example.org", &[]),
            ("web.shop.prod.svc.eu.xfed.example", &[]),
            ("fed.example", &[]),
            ("example", &[]),
            (".", &[]),
            // Dots inside of labels divide nothing.
            (
                "web.shop.prod.svc.eu\\.a.fed.example",
                &["web.shop.prod.svc!/eu\\.a"],
            ),
            (
                "web\\.shop.prod.svc.eu.fed.example",
                &["web\\.shop.prod.svc/eu"],
            ),
            (
                "\\000.\\255.*.svc.eu.fed.example",
                &["\\000.\\255.*.svc!/eu"],
            ),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
    }

    proptest! {
        /// Whatever the labels, a name read is the name that was asked for, and nothing panics.
        #[test]
        fn a_name_read_is_the_name_asked_for(
            labels in proptest::collection::vec(
                prop_oneof![
                    Just(b"svc".to_vec()),
                    Just(b"eu".to_vec()),
                    proptest::collection::vec(any::<u8>(), 1..=20),
                ],
                0..9,
            ),
            apex in prop_oneof![Just("."), Just("fed.example"), Just("svc"), Just("svc.svc")],
        ) {
            let apex = name(apex);
            let mut whole = apex.clone();
            for label in labels.iter().rev() {
                whole = whole.prepend(label).unwrap();
            }
            for level in level_names(whole.as_ref(), apex.as_ref()) {
                let joined = [level.front, level.area, apex.as_wire()].concat();
                prop_assert_eq!(joined.as_slice(), whole.as_wire());
                prop_assert!(level.front.is_empty() || level.front.ends_with(b"\x03svc"));
                prop_assert!(!level.area.is_empty());
            }
        }
    }
}
