//! What is told of sources: refused, and no longer; gone, and back. One event a change: a retry with the same outcome is none.

use std::collections::BTreeSet;
use std::path::Path;

use super::load::{Refused, RefusedFiles};
use crate::controller::{Event, Journal, Kind, Weightiness};
use crate::disk::Unread;
use crate::model::Refusals;
use crate::telemetry::wall_time;
use crate::vantage::PeerNews;

/// Most files of a kind that are told of one by one after one look.
const TOLD: usize = 50;

/// Places with kubeconfigs of many clusters: a fault of one is none of the others'.
const PLACES: [&str; 2] = ["Directory of kubeconfigs", "Source of clusters"];

/// Tells what changed in why a source is refused, if anything did.
pub(super) fn of_source(
    what: &str,
    name: &str,
    (before, now): (&Refusals, &Refusals),
) -> Option<Event> {
    if before == now {
        return None;
    }
    let Some(first) = now.kept().first() else {
        let text = format!("{what} {name} is refused no longer");
        return Some(Event::new(Kind::Refusal, Weightiness::Info, text));
    };
    // The fault may lie in a file that it includes.
    let whose = if first.source == name {
        what.to_owned()
    } else {
        format!("{what} {name}")
    };
    let more = match now.count() - 1 {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let outcome = if PLACES.contains(&what) && !now.is_whole(name) {
        "has faults, the rest of it is in force"
    } else {
        "is refused, what was last good stays in force"
    };
    let text = format!("{whose} {outcome}: {}{more}", first.located());
    Some(Event::new(Kind::Refusal, Weightiness::Warning, text))
}

/// Tells what changed in which files are refused.
pub(super) fn of_files(before: &RefusedFiles, now: &RefusedFiles) -> Vec<Event> {
    let mut events = of_kind("GeoIP database", (&before.databases, &now.databases));
    events.extend(of_kind("Zone file", (&before.zones, &now.zones)));
    let [before, now] = [before, now].map(|files| by_place(&files.directories));
    let [directories, secrets] = [(&before.0, &now.0), (&before.1, &now.1)];
    for (what, change) in PLACES.into_iter().zip([directories, secrets]) {
        events.extend(of_kind(what, change));
    }
    events
}

/// Parts directories, whose names are absolute paths, from Secrets.
fn by_place(refused: &Refused) -> (Refused, Refused) {
    let all = refused.clone().into_iter();
    all.partition(|(name, _)| name.starts_with('/'))
}

/// Tells it of one kind: of the first ones by name, and how many there are besides.
fn of_kind(what: &str, (before, now): (&Refused, &Refused)) -> Vec<Event> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let none = Refusals::default();
    let told = names.into_iter().filter_map(|name| {
        let change = [before, now].map(|refused| refused.get(name).unwrap_or(&none));
        let [before, now] = change;
        of_source(what, name, (before, now))
    });
    let mut events: Vec<Event> = told.collect();
    let untold = events.split_off(events.len().min(TOLD));
    let weight = untold.iter().map(|event| event.weight).max();
    events.extend(weight.map(|weight| {
        let text = format!(
            "{what}: {} more are refused, or no longer; the page Sources lists them",
            untold.len()
        );
        Event::new(Kind::Refusal, weight, text)
    }));
    events
}

/// Records which files of the state directory cannot be read.
pub(super) fn tell_unread(unread: &Unread, journal: &Journal) {
    for file in unread.list() {
        let event = Event::new(Kind::Source, Weightiness::Warning, file.to_string());
        journal.record(event, wall_time());
    }
}

/// Tells that the configuration file is gone, or back.
pub(super) fn of_configuration(path: &Path, is_gone: bool) -> Event {
    let path = path.display();
    let (weight, text) = if is_gone {
        let text = format!(
            "Configuration file {path} is gone; what is in force stays, a restart would fail"
        );
        (Weightiness::Warning, text)
    } else {
        (
            Weightiness::Info,
            format!("Configuration file {path} is back"),
        )
    };
    Event::new(Kind::Source, weight, text)
}

/// Tells that a peer is lost, or back.
pub(super) fn of_peer(news: &PeerNews) -> Event {
    let url = &news.url;
    let name = news.name.as_ref();
    let peer = name.map_or_else(|| url.clone(), |name| format!("{name} ({url})"));
    let (weight, text) = match &news.error {
        Some(error) => (
            Weightiness::Warning,
            format!("Peer {peer} cannot be reached: {error}"),
        ),
        None => (Weightiness::Info, format!("Peer {peer} is heard of again")),
    };
    Event::new(Kind::Source, weight, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Rejection;

    fn refusals(file: &str, lines: &[usize]) -> Refusals {
        let faults = lines.iter().map(|line| Rejection {
            source: file.to_owned(),
            place: format!("line {line}"),
            reason: "no TTL".to_owned(),
        });
        faults.collect()
    }

    /// Zone files, each with the lines that it is refused for.
    type Files<'a> = &'a [(&'a str, &'a [usize])];

    /// Makes zones that are refused, each for its lines.
    fn zones(files: Files<'_>) -> RefusedFiles {
        let files = files.iter();
        let zones = files.map(|(file, lines)| ((*file).to_owned(), refusals(file, lines)));
        RefusedFiles {
            zones: zones.collect(),
            ..RefusedFiles::default()
        }
    }

    #[test]
    fn each_change_is_told_once_with_its_first_reason() {
        let steps: [(Files<'_>, &[&str]); 5] = [
            (
                &[("a.zone", &[7])],
                &["Zone file is refused, what was last good stays in force: a.zone:7: no TTL"],
            ),
            (&[("a.zone", &[7])], &[]),
            (
                &[("a.zone", &[7, 9, 11]), ("b.zone", &[1])],
                &[
                    "Zone file is refused, what was last good stays in force: a.zone:7: no TTL, and 2 more",
                    "Zone file is refused, what was last good stays in force: b.zone:1: no TTL",
                ],
            ),
            (
                &[("b.zone", &[1])],
                &["Zone file a.zone is refused no longer"],
            ),
            (&[], &["Zone file b.zone is refused no longer"]),
        ];
        let mut before = RefusedFiles::default();
        for (files, told) in steps {
            let now = zones(files);
            let events = of_files(&before, &now);
            let texts: Vec<&str> = events.iter().map(|event| &*event.text).collect();
            assert_eq!(texts, told);
            for event in &events {
                let is_over = event.text.ends_with("no longer");
                let weight = if is_over {
                    Weightiness::Info
                } else {
                    Weightiness::Warning
                };
                assert_eq!((event.kind, event.weight), (Kind::Refusal, weight));
            }
            before = now;
        }
    }

    #[test]
    fn a_fault_of_another_file_names_the_source_too() {
        let event = of_source(
            "Zone file",
            "a.zone",
            (&Refusals::default(), &refusals("parts/b.zone", &[2])),
        );
        assert_eq!(
            event.unwrap().text,
            "Zone file a.zone is refused, what was last good stays in force: parts/b.zone:2: no TTL"
        );
    }

    #[test]
    fn one_kubeconfig_of_many_is_not_all_of_them() {
        let of = |source: &str, place: &str| -> Refusals {
            let one = Rejection {
                source: source.to_owned(),
                place: place.to_owned(),
                reason: "is wrong".to_owned(),
            };
            [one].into_iter().collect()
        };
        let text = |refused: Refusals| {
            let now = RefusedFiles {
                directories: [("/c.d".to_owned(), refused)].into(),
                ..RefusedFiles::default()
            };
            let events = of_files(&RefusedFiles::default(), &now);
            events
                .into_iter()
                .map(|event| event.text)
                .collect::<String>()
        };
        assert_eq!(
            text(of("/c.d/a.yaml", "")),
            "Directory of kubeconfigs /c.d has faults, the rest of it is in force: /c.d/a.yaml: is wrong"
        );
        assert_eq!(
            text(of("/c.d", "")),
            "Directory of kubeconfigs is refused, what was last good stays in force: /c.d: is wrong"
        );
        assert!(text(of("Secret m/a", "weight")).ends_with("force: Secret m/a: weight: is wrong"));
    }

    #[test]
    fn many_files_are_told_of_in_a_bounded_number_of_events() {
        let names: Vec<String> = (0..500).map(|number| format!("{number:03}.zone")).collect();
        let files: Vec<(&str, &[usize])> = names.iter().map(|name| (&**name, &[3][..])).collect();
        let now = zones(&files);
        let events = of_files(&RefusedFiles::default(), &now);
        assert_eq!(events.len(), TOLD + 1);
        let last = events.last().unwrap();
        assert_eq!(last.weight, Weightiness::Warning);
        assert!(last.text.starts_with("Zone file: 450 more"), "{last:?}");
        let back = of_files(&now, &RefusedFiles::default());
        assert_eq!(back.len(), TOLD + 1);
        assert_eq!(back.last().unwrap().weight, Weightiness::Info);
    }

    #[test]
    fn lost_and_returning_sources_have_their_weights() {
        let news = |name: Option<&str>, error: Option<&str>| PeerNews {
            url: "https://ns2.example:8053".to_owned(),
            name: name.map(str::to_owned),
            error: error.map(str::to_owned),
        };
        let path = Path::new("m.yaml");
        for (event, weight, words) in [
            (
                of_peer(&news(None, Some("connection refused"))),
                Weightiness::Warning,
                "Peer https://ns2.example:8053 cannot be reached: connection refused",
            ),
            (
                of_peer(&news(Some("ns2"), None)),
                Weightiness::Info,
                "Peer ns2 (https://ns2.example:8053) is heard of again",
            ),
            (
                of_configuration(path, true),
                Weightiness::Warning,
                "Configuration file m.yaml is gone; what is in force stays, a restart would fail",
            ),
            (
                of_configuration(path, false),
                Weightiness::Info,
                "Configuration file m.yaml is back",
            ),
        ] {
            assert_eq!(
                (event.kind, event.weight, &*event.text),
                (Kind::Source, weight, words)
            );
        }
    }
}
