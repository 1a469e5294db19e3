//! What nodes say, in words for people: times, numbers, targets. Foreign text is made harmless to terminals here.

use jiff::Timestamp;

use crate::admin::dto::{
    ChangeDto, CountsDto, DrainDto, DrainState, ForcedVerdict, HealthState, LeavingDto, Severity,
    TargetDto, TargetKind,
};

/// Makes foreign text fit for one line of a terminal: control characters and those that turn the direction of writing are shown
/// as a mark, so that no name or reason moves the cursor or hides something.
pub(super) fn clean(text: &str) -> String {
    let strange = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let shown = text.trim().chars();
    shown
        .map(|c| match c {
            '\n' | '\t' | '\r' => ' ',
            c if strange(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Says how long something takes: `42 s`, `3 m`, `5 h`, `2 d`. Days are of 24 hours.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} m", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Says when something was or will be, seen from `now`: `3 m ago`, `in 10 m`, `now`. What is no RFC 3339 time is shown as it came.
pub(super) fn when(now: Timestamp, time: &str) -> String {
    let Ok(then) = time.parse::<Timestamp>() else {
        return clean(time);
    };
    let seconds = now.as_second().saturating_sub(then.as_second());
    let length = span(seconds.unsigned_abs());
    match seconds {
        0 => "now".to_owned(),
        1.. => format!("{length} ago"),
        _ => format!("in {length}"),
    }
}

/// As [`when`], for what may never have been.
pub(super) fn when_if(now: Timestamp, time: Option<&str>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| when(now, time))
}

/// Writes a whole number in groups of three: `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut written = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

/// Writes a number of something, the word in its form: `1 cluster`, `3 clusters`.
pub(super) fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Writes a rate or a duration with as many decimals as say something: `0`, `0.25`, `3.1`, `120`, `12,345`.
pub(super) fn decimal(number: f64) -> String {
    let size = number.abs();
    if !number.is_finite() {
        return "-".to_owned();
    }
    if size >= 100.0 {
        // In range: far above it floats have no neighbors of 1 anyway.
        let whole = format!("{:.0}", size);
        let grouped = whole.parse().map_or(whole, count);
        return if number < 0.0 {
            format!("-{grouped}")
        } else {
            grouped
        };
    }
    let text = if size >= 1.0 {
        format!("{number:.1}")
    } else {
        format!("{number:.2}")
    };
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if matches!(short, "" | "-" | "-0") {
        "0".to_owned()
    } else {
        short.to_owned()
    }
}

/// As [`decimal`], with a unit, for what may be unknown.
pub(super) fn measure(number: Option<f64>, unit: &str) -> String {
    number.map_or_else(
        || "-".to_owned(),
        |number| format!("{} {unit}", decimal(number)),
    )
}

/// Shows what may be absent.
pub(super) fn or_dash(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), clean)
}

/// Joins foreign texts.
pub(super) fn join(texts: &[String]) -> String {
    if texts.is_empty() {
        return "-".to_owned();
    }
    let texts: Vec<String> = texts.iter().map(|text| clean(text)).collect();
    texts.join(", ")
}

/// Says what is up of how many: `3/4`. Not judged counts as up, for so it is answered.
pub(super) fn up_of(counts: &CountsDto) -> String {
    format!(
        "{}/{}",
        count(counts.up + counts.unknown),
        count(counts.total())
    )
}

/// Lists what there is, by state, well first: `3 up, 1 down`.
pub(super) fn by_state(counts: &CountsDto) -> String {
    let parts = [
        (counts.up, "up"),
        (counts.unknown, "unknown"),
        (counts.drained, "drained"),
        (counts.degraded, "degraded"),
        (counts.down, "down"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{} {word}", count(number)))
        .collect();
    if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.join(", ")
    }
}

/// Names a target: `cluster a`, `service shop/web in cluster a`, `endpoint 192.0.2.1 of cluster a`.
pub(super) fn target(target: &TargetDto) -> String {
    let part = |text: &Option<String>| or_dash(text.as_deref());
    match target.kind {
        TargetKind::Cluster => format!("cluster {}", part(&target.cluster)),
        TargetKind::Service => match &target.cluster {
            Some(cluster) => format!("service {} in {}", part(&target.service), clean(cluster)),
            None => format!("service {}", part(&target.service)),
        },
        TargetKind::Endpoint => {
            let of = format!(
                "endpoint {} of {}",
                part(&target.address),
                part(&target.cluster)
            );
            match &target.service {
                Some(service) => format!("{of} for {}", clean(service)),
                None => of,
            }
        }
    }
}

/// Says who did something, and why: `alice, 3 m ago: kernel update`.
pub(super) fn change(now: Timestamp, change: &ChangeDto) -> String {
    format!(
        "{}, {}: {}",
        clean(&change.actor),
        when(now, &change.time),
        clean(&change.reason)
    )
}

/// Says how far the leaving of a cluster is, in one phrase.
pub(super) fn leaving(leaving: &LeavingDto) -> String {
    match (leaving.held, leaving.remaining_seconds) {
        (0, Some(seconds)) if seconds > 0.0 => {
            format!("leaving, {} s left", decimal(seconds.ceil()))
        }
        (0, _) => "leaving".to_owned(),
        _ => "leaving, held".to_owned(),
    }
}

/// Says how far a drain is, in one phrase.
pub(super) fn drain_state(now: Timestamp, drain: &DrainDto) -> String {
    match drain.state {
        DrainState::Announced => format!("announced, begins {}", when(now, &drain.starts)),
        DrainState::Partial => format!("partial {}/{}", drain.acknowledged, drain.expected),
        DrainState::Draining => match remaining(drain) {
            Some(seconds) if seconds > 0.0 => {
                format!("draining, {} s left", decimal(seconds.ceil()))
            }
            _ => "draining".to_owned(),
        },
        DrainState::Held => "held".to_owned(),
        DrainState::Safe => "safe to stop".to_owned(),
        DrainState::Ended => "ended".to_owned(),
    }
}

/// Gives the seconds until caches have let go, by the slowest node that says.
pub(super) fn remaining(drain: &DrainDto) -> Option<f64> {
    let each = drain.nodes.iter().filter_map(|node| node.remaining_seconds);
    each.reduce(f64::max)
}

/// Gives a state's word.
pub(super) fn verdict(verdict: ForcedVerdict) -> &'static str {
    match verdict {
        ForcedVerdict::Up => "up",
        ForcedVerdict::Down => "down",
    }
}

/// Gives a severity's word.
pub(super) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
}

/// Says yes or no.
pub(super) fn yes(it_is: bool) -> &'static str {
    if it_is { "yes" } else { "no" }
}

/// Gives the word that the API uses for a value of one of its closed sets.
pub(super) fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "-".to_owned(),
    }
}

/// How a text is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    /// Ordinary.
    #[default]
    Plain,
    /// Well.
    Good,
    /// Doubtful.
    Doubtful,
    /// Wrong.
    Bad,
}

impl From<HealthState> for Tone {
    fn from(state: HealthState) -> Self {
        match state {
            HealthState::Up => Self::Good,
            HealthState::Unknown => Self::Plain,
            HealthState::Drained | HealthState::Degraded => Self::Doubtful,
            HealthState::Unready | HealthState::Down => Self::Bad,
        }
    }
}

impl From<Severity> for Tone {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Info => Self::Plain,
            Severity::Warning => Self::Doubtful,
            Severity::Critical => Self::Bad,
        }
    }
}

impl From<DrainState> for Tone {
    fn from(state: DrainState) -> Self {
        match state {
            DrainState::Safe => Self::Good,
            DrainState::Announced | DrainState::Partial | DrainState::Draining => Self::Doubtful,
            DrainState::Held => Self::Bad,
            DrainState::Ended => Self::Plain,
        }
    }
}

impl Tone {
    /// Gives the tone of a verdict's word.
    pub(super) fn of_verdict(word: &str) -> Self {
        match word {
            "up" => Self::Good,
            "down" => Self::Bad,
            _ => Self::Plain,
        }
    }

    /// Gives good or bad.
    pub(super) fn of_truth(it_is: bool) -> Self {
        if it_is { Self::Good } else { Self::Bad }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_relative() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        for (time, words) in [
            ("2026-11-21T12:00:00Z", "now"),
            ("2026-11-21T12:00:00.9Z", "now"),
            ("2026-11-21T11:59:59Z", "1 s ago"),
            ("2026-11-21T11:59:01Z", "59 s ago"),
            ("2026-11-21T11:59:00Z", "1 m ago"),
            ("2026-11-21T11:00:01Z", "59 m ago"),
            ("2026-11-21T11:00:00Z", "1 h ago"),
            ("2026-11-19T12:00:01Z", "47 h ago"),
            ("2026-11-19T12:00:00Z", "2 d ago"),
            ("2026-11-21T13:30:00+01:00", "in 30 m"),
            ("2026-11-21T12:00:10Z", "in 10 s"),
            ("yesterday\u{1b}[2J", "yesterday\u{fffd}[2J"),
        ] {
            assert_eq!(when(now, time), words, "{time}");
        }
    }

    #[test]
    fn numbers() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(count(number), text);
        }
        for (number, text) in [
            (0.0, "0"),
            (-0.001, "0"),
            (0.25, "0.25"),
            (0.1, "0.1"),
            (1.0, "1"),
            (3.12, "3.1"),
            (20.0, "20"),
            (99.96, "100"),
            (120.4, "120"),
            (12_345.6, "12,346"),
            (-12_345.6, "-12,346"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(decimal(number), text, "{number}");
        }
        assert_eq!(plural(1, "node", "nodes"), "1 node");
        assert_eq!(plural(1_000, "node", "nodes"), "1,000 nodes");
    }

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        for (text, shown) in [
            ("plain", "plain"),
            ("two\nlines\there", "two lines here"),
            ("\u{1b}]0;title\u{7}", "\u{fffd}]0;title\u{fffd}"),
            ("a\u{202e}b", "a\u{fffd}b"),
            ("\u{9b}31m", "\u{fffd}31m"),
            ("Köln 東京", "Köln 東京"),
        ] {
            assert_eq!(clean(text), shown);
        }
    }

    #[test]
    fn targets_have_names() {
        let of =
            |kind, cluster: Option<&str>, service: Option<&str>, address: Option<&str>| TargetDto {
                kind,
                cluster: cluster.map(str::to_owned),
                service: service.map(str::to_owned),
                address: address.map(str::to_owned),
            };
        for (dto, words) in [
            (of(TargetKind::Cluster, Some("a"), None, None), "cluster a"),
            (
                of(TargetKind::Service, None, Some("n/s"), None),
                "service n/s",
            ),
            (
                of(TargetKind::Service, Some("a"), Some("n/s"), None),
                "service n/s in a",
            ),
            (
                of(TargetKind::Endpoint, Some("a"), None, Some("192.0.2.1")),
                "endpoint 192.0.2.1 of a",
            ),
            (
                of(TargetKind::Endpoint, Some("a"), Some("n/s"), Some("::1")),
                "endpoint ::1 of a for n/s",
            ),
        ] {
            assert_eq!(target(&dto), words);
        }
    }

    #[test]
    fn states_are_listed_well_first_and_only_where_there_are_some() {
        let counts = CountsDto {
            up: 1_200,
            unknown: 1,
            degraded: 2,
            drained: 0,
            down: 3,
        };
        assert_eq!(by_state(&counts), "1,200 up, 1 unknown, 2 degraded, 3 down");
        assert_eq!(by_state(&CountsDto::default()), "none");
        assert_eq!(up_of(&counts), "1,201/1,206");
    }
}
