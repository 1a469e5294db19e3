//! What the node reads and writes: configuration, files, the last good state, logs.

use std::sync::atomic::Ordering;

use super::super::sources::{SourceFile, SourceKind, Sources};
use super::text::{Kind, Text};
use super::world::DATABASES;
use crate::disk::UnreadFile;
use crate::telemetry::{lost_log_lines, lost_query_log_lines, lost_spans};

/// The files of the state directory that a start reads.
const STATE_FILES: [&str; 5] = [
    "state.json",
    "offers.json",
    "seen.json",
    "operators.json",
    "kubeconfigs.json",
];
/// Zone files shown one by one.
const ZONE_FILES: usize = 32;
/// Directories of kubeconfigs shown one by one.
const DIRECTORIES: usize = 16;

/// Writes all of it.
pub(super) fn write(text: &mut Text, sources: &Sources) {
    events(text, sources);
    files(text, &sources.events.files());
    unread(text, &sources.events.unread.list());
    text.counter(
        "telemetry_log_lines_lost_total",
        "Log lines that could not be written: is the disk full, or does nobody read the log?",
        lost_log_lines(),
    );
    text.counter(
        "telemetry_query_log_lines_lost_total",
        "Lines of the query log that could not be written: is the disk full?",
        lost_query_log_lines(),
    );
    text.counter(
        "telemetry_spans_lost_total",
        "Spans of traces that could not be sent: does the collector answer?",
        lost_spans(),
    );
}

/// Shows what happened outside the answering path.
fn events(text: &mut Text, sources: &Sources) {
    let events = &sources.events;
    text.counter(
        "config_reloads_total",
        "Reloads put in force.",
        events.reloads.load(Ordering::Relaxed),
    );
    text.counter(
        "config_reload_failures_total",
        "Reloads refused; the former configuration stays.",
        events.reload_failures.load(Ordering::Relaxed),
    );
    for (name, help, value) in [
        (
            "config_reload_failing",
            "1 while the newest configuration file is refused or gone.",
            &events.reload_failing,
        ),
        (
            "start_time_seconds",
            "Unix time of the start.",
            &events.started,
        ),
        (
            "config_last_load_timestamp_seconds",
            "Unix time at which the configuration in force was put there.",
            &events.last_load,
        ),
        (
            "controller_last_good_failures",
            "Writes of the last good state that failed in a row.",
            &*events.last_good_failures,
        ),
        (
            "controller_last_good_write_timestamp_seconds",
            "Unix time of the last write of the last good state that succeeded; 0: none did since the start, or none is kept.",
            &*events.last_good_written,
        ),
        (
            "controller_offers_failures",
            "Writes of what member clusters offer that failed in a row.",
            &*events.offers_failures,
        ),
    ] {
        text.gauge(name, help, value.load(Ordering::Relaxed));
    }
    let targets = &events.targets;
    let mut family = text.family(
        "resolving_targets",
        Kind::Gauge,
        "Host names of endpoints, by how well each is known.",
    );
    for (state, value) in [
        ("fresh", &targets.fresh),
        ("failing", &targets.failing),
        ("expired", &targets.expired),
        ("unresolved", &targets.unresolved),
        ("gone", &targets.gone),
        ("inside", &targets.inside),
        ("refused", &targets.refused),
    ] {
        family.value(&[("state", state)], value.load(Ordering::Relaxed));
    }
    let mut family = text.family(
        "source_refused_files",
        Kind::Gauge,
        "Files that are not what is served: refused at their last reading.",
    );
    for (kind, value) in [
        ("configuration", &events.reload_failing),
        ("database", &events.refused_databases),
        ("zone", &events.refused_zones),
        ("directory", &events.refused_directories),
        ("secrets", &events.refused_secrets),
    ] {
        family.value(&[("kind", kind)], value.load(Ordering::Relaxed));
    }
}

/// Shows which files of the state directory could not be read at the start.
fn unread(text: &mut Text, unread: &[UnreadFile]) {
    let mut family = text.family(
        "disk_unread_files",
        Kind::Gauge,
        "Files of the state directory that could not be read at the start, or not whole; each is put aside before it is written over.",
    );
    for name in STATE_FILES {
        let is_it = |file: &&UnreadFile| file.path.file_name().is_some_and(|own| own == name);
        family.value(&[("file", name)], unread.iter().filter(is_it).count());
    }
}

/// Shows the files one by one, the refused ones first: where there are more than are shown, those count.
fn files(text: &mut Text, files: &[SourceFile]) {
    let of = |kind: SourceKind, most: usize| {
        let mut files: Vec<_> = files.iter().filter(|file| file.kind == kind).collect();
        files.sort_by_key(|file| file.refused.is_empty());
        files.truncate(most);
        files
    };
    let shown = [
        of(SourceKind::Database, DATABASES),
        of(SourceKind::Zone, ZONE_FILES),
        of(SourceKind::Directory, DIRECTORIES),
    ];
    let shown = shown.concat();
    let mut family = text.family(
        "source_file_modified_timestamp_seconds",
        Kind::Gauge,
        "When a file was last modified, as of its last reading; 0: it is gone.",
    );
    for file in &shown {
        let labels = [("kind", file.kind.as_str()), ("name", &file.name)];
        family.value(&labels, file.modified);
    }
    let mut family = text.family(
        "source_file_refused",
        Kind::Gauge,
        "1 while what is served is not what the file says: it was refused at its last reading.",
    );
    for file in &shown {
        let labels = [("kind", file.kind.as_str()), ("name", &file.name)];
        family.value(&labels, u8::from(!file.refused.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::disk::Unread;

    #[test]
    fn each_file_of_the_state_directory_that_was_not_read_is_shown() {
        for name in STATE_FILES {
            let noted = Unread::default();
            noted.note(&Path::new("/state").join(name), "torn");
            let mut text = Text::new();
            unread(&mut text, &noted.list());
            let text = text.finish();
            let ones = text.lines().filter(|line| line.ends_with(" 1"));
            let expected = format!("meridian_disk_unread_files{{file=\"{name}\"}} 1");
            assert_eq!(ones.collect::<Vec<_>>(), [expected], "{text}");
        }
        assert!(STATE_FILES.contains(&"kubeconfigs.json"), "it has tokens");
    }
}
