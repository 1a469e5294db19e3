//! How numbers, times and states read: with units, the same on every page.
//!
//! What comes back as [`Safe`] is made of closed sets and of numbers alone; text from outside never is.

use askama::filters::Safe;
use jiff::Timestamp;

use crate::admin::dto::{
    BackingDto, ChallengeState, CountsDto, DrainState, EventKind, ForcedVerdict, HealthState,
    KindStateDto, LinkDto, LocationDto, ObjectDto, OriginDto, ServiceOrigin, Severity, SourceKind,
    SourceState, TargetDto, TargetKind,
};

// === Numbers ===

/// Groups the digits of a whole number by thousands.
pub(super) fn whole(value: &u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes a count with its noun: `1 service`, `2,000 services`.
pub(super) fn count(value: &u64, noun: &str) -> String {
    let plural = if *value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", whole(value))
}

/// Writes a number with three digits that matter: `0.25`, `12.3`, `1,234`.
pub(super) fn number(value: &f64) -> String {
    if !value.is_finite() || *value <= 0.0 {
        return "0".to_owned();
    }
    if *value >= 99.95 {
        #[expect(clippy::cast_possible_truncation, reason = "such a cast saturates")]
        return whole(&(value.round() as u64));
    }
    let decimals = if *value >= 9.995 { 1 } else { 2 };
    let text = format!("{value:.decimals$}");
    match text.strip_suffix(".00").or_else(|| text.strip_suffix(".0")) {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// Writes microseconds in the unit that fits.
pub(super) fn micros(value: &f64) -> String {
    if *value >= 1000.0 {
        format!("{} ms", number(&(value / 1000.0)))
    } else {
        format!("{} µs", number(value))
    }
}

/// Writes microseconds, or a dash where nothing was measured.
pub(super) fn maybe_micros(value: &Option<f64>) -> String {
    value.as_ref().map_or_else(|| "–".to_owned(), micros)
}

/// Writes milliseconds, or a dash where nothing was measured.
pub(super) fn maybe_millis(value: &Option<f64>) -> String {
    value
        .as_ref()
        .map_or_else(|| "–".to_owned(), |value| format!("{} ms", number(value)))
}

/// Writes whole milliseconds in the unit that fits.
pub(super) fn millis(value: &u64) -> String {
    if *value < 1000 {
        format!("{value} ms")
    } else if value.is_multiple_of(1000) {
        seconds(&(value / 1000))
    } else if *value < 120_000 {
        format!("{}.{} s", value / 1000, value % 1000 / 100)
    } else {
        seconds(&(value / 1000))
    }
}

/// Writes whole seconds in at most two units.
pub(super) fn seconds(value: &u64) -> String {
    let two = |high: u64, high_unit: &str, low: u64, low_unit: &str| {
        if low == 0 {
            format!("{high} {high_unit}")
        } else {
            format!("{high} {high_unit} {low} {low_unit}")
        }
    };
    match *value {
        0..120 => format!("{value} s"),
        120..7200 => two(
            value / 60,
            "min",
            if *value < 600 { value % 60 } else { 0 },
            "s",
        ),
        7200..172_800 => two(value / 3600, "h", value % 3600 / 60, "min"),
        _ => two(value / 86_400, "d", value % 86_400 / 3600, "h"),
    }
}

/// Writes a TTL.
pub(super) fn ttl(value: &u32) -> String {
    seconds(&u64::from(*value))
}

/// Writes seconds with a part, rounded up: what is left is never said to be less.
pub(super) fn left(value: &f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "such a cast saturates")]
    seconds(&(value.ceil().max(0.0) as u64))
}

/// Writes a share as a percentage.
pub(super) fn percent(value: &f64) -> String {
    format!("{} %", number(&(value * 100.0)))
}

// === Times ===

/// Reads a time of the API's.
fn parse(time: &str) -> Option<Timestamp> {
    time.parse().ok()
}

/// Writes a time as an element: the date and the second in UTC. A script adds the local time.
pub(super) fn clock(time: &str) -> Safe<String> {
    Safe(parse(time).map_or_else(
        || "unknown".to_owned(),
        |time| {
            format!(
                "<time datetime=\"{time:.0}\">{}</time>",
                time.strftime("%Y-%m-%d %H:%M:%S UTC")
            )
        },
    ))
}

/// Writes how long ago a time is, as an element whose `datetime` says when.
pub(super) fn ago(time: &str, now: &Timestamp) -> Safe<String> {
    Safe(parse(time).map_or_else(
        || "unknown".to_owned(),
        |time| {
            let distance = now.as_second() - time.as_second();
            let text = seconds(&distance.unsigned_abs());
            let text = match distance {
                0 => "now".to_owned(),
                1.. => format!("{text} ago"),
                _ => format!("in {text}"),
            };
            let utc = time.strftime("%Y-%m-%d %H:%M:%S UTC");
            format!("<time datetime=\"{time:.0}\" title=\"{utc}\" data-ago>{text}</time>")
        },
    ))
}

/// Writes a time of today as hour, minute and second.
pub(super) fn time_of_day(unix: u64) -> String {
    let seconds = i64::try_from(unix).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds)
        .map(|time| time.strftime("%H:%M").to_string())
        .unwrap_or_default()
}

// === States ===

/// Names a state, its color and its shape.
pub(super) fn badge(state: &HealthState) -> Safe<String> {
    let class = match state {
        HealthState::Unready => HealthState::Down,
        other => *other,
    };
    tag(class.as_str(), shape(state), &capital(state.as_str()))
}

/// Gives the shape that a state has wherever it is drawn.
pub(super) const fn shape(state: &HealthState) -> &'static str {
    match state {
        HealthState::Up => "●",
        HealthState::Unknown => "○",
        HealthState::Drained => "■",
        HealthState::Degraded => "◆",
        HealthState::Unready | HealthState::Down => "▲",
    }
}

/// Names what a monitor says: `up`, `down`, `unknown`.
pub(super) fn verdict(word: &str) -> Safe<String> {
    let state = match word {
        "up" => HealthState::Up,
        "down" => HealthState::Down,
        _ => HealthState::Unknown,
    };
    badge(&state)
}

/// Tells whether a target is a tenant's.
pub(super) fn is_tenants(origin: &OriginDto) -> bool {
    *origin == OriginDto::Tenant
}

/// Names what an operator forced something to.
pub(super) fn forced(verdict: &ForcedVerdict) -> Safe<String> {
    match verdict {
        ForcedVerdict::Up => tag("up", "⚑", "Forced up"),
        ForcedVerdict::Down => tag("down", "⚑", "Forced down"),
    }
}

/// Names how much something matters.
pub(super) fn severity(severity: &Severity) -> Safe<String> {
    match severity {
        Severity::Info => tag("info", "●", "Info"),
        Severity::Warning => tag("degraded", "◆", "Warning"),
        Severity::Critical => tag("down", "▲", "Critical"),
    }
}

/// Gives the style of a severity.
pub(super) const fn severity_class(severity: &Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "degraded",
        Severity::Critical => "down",
    }
}

/// Names how far a drain is.
pub(super) fn drain_state(state: &DrainState) -> Safe<String> {
    match state {
        DrainState::Announced => tag("info", "○", "Announced"),
        DrainState::Partial => tag("degraded", "◆", "Partial"),
        DrainState::Draining => tag("drained", "■", "Draining"),
        DrainState::Held => tag("degraded", "◆", "Held"),
        DrainState::Safe => tag("up", "●", "Safe to stop"),
        DrainState::Ended => tag("unknown", "○", "Ended"),
    }
}

/// Names how far a challenge is.
pub(super) fn challenge_state(state: &ChallengeState) -> Safe<String> {
    match state {
        ChallengeState::Partial => tag("degraded", "◆", "Not everywhere"),
        ChallengeState::Served => tag("up", "●", "Served"),
        ChallengeState::Ended => tag("unknown", "○", "Ended"),
    }
}

/// Names how a source is.
pub(super) fn source_state(state: &SourceState) -> Safe<String> {
    match state {
        SourceState::Ok => tag("up", "●", "In force"),
        SourceState::Stale => tag("degraded", "◆", "Stale"),
        SourceState::Refused => tag("down", "▲", "Refused"),
    }
}

/// Names a kind of source.
pub(super) const fn source_kind(kind: &SourceKind) -> &'static str {
    match kind {
        SourceKind::Configuration => "Configuration",
        SourceKind::ZoneFile => "Zone file",
        SourceKind::Database => "GeoIP database",
        SourceKind::Directory => "Directory of kubeconfigs",
        SourceKind::Secrets => "Secrets with kubeconfigs",
        SourceKind::LastGoodState => "Last good state",
        SourceKind::TokenFile => "Token file",
        SourceKind::Kubernetes => "Member cluster",
        SourceKind::Peer => "Peer",
    }
}

/// Says how old what is in force is: since a member cluster answered, and since anything else was made or written.
pub(super) fn source_age(kind: &SourceKind, age: &u64) -> String {
    match kind {
        SourceKind::Kubernetes => format!("answered {} ago", seconds(age)),
        _ => format!("content is {} old", seconds(age)),
    }
}

/// Names how a member cluster is connected.
pub(super) fn link(link: &LinkDto) -> Safe<String> {
    match link {
        LinkDto::Synced => tag("up", "●", "Synced"),
        LinkDto::Stale => tag("degraded", "◆", "Stale"),
        LinkDto::Never => tag("unknown", "○", "Never synced"),
    }
}

/// Names how a kind of objects is followed.
/// Of a cluster that is not seen nothing is watched now, whatever was the last that was known.
pub(super) fn kind_state(state: &KindStateDto, link: &LinkDto) -> Safe<String> {
    match state {
        KindStateDto::Watching if *link == LinkDto::Synced => tag("up", "●", "Watching"),
        KindStateDto::Watching => tag("degraded", "◆", "Watched, not seen"),
        KindStateDto::Listing => tag("info", "○", "Listing"),
        KindStateDto::Waiting => tag("degraded", "◆", "Waiting"),
        KindStateDto::Unserved => tag("unknown", "○", "Not served"),
        KindStateDto::Refused => tag("down", "▲", "Refused"),
    }
}

/// Names whether an object can take traffic.
pub(super) fn readiness(object: &ObjectDto) -> Safe<String> {
    match (object.served, object.ready, object.drained) {
        (false, ..) => tag("degraded", "◆", "Not served"),
        (true, _, true) => tag("drained", "■", "Drained"),
        (true, true, false) => tag("up", "●", "Ready"),
        (true, false, false) => tag("down", "▲", "Unready"),
    }
}

/// Counts what stands behind an object: `2 of 4 ready, 3 serving, 1 ending`.
pub(super) fn backing(backing: &Option<BackingDto>) -> String {
    let Some(backing) = backing else {
        return "–".to_owned();
    };
    let ending = match backing.terminating {
        0 => String::new(),
        some => format!(", {some} ending"),
    };
    format!(
        "{} of {} ready, {} serving{ending}",
        backing.ready, backing.total, backing.serving
    )
}

/// Writes a point as maps do: `33.93° S, 77.49° W`.
pub(super) fn coordinates(point: &LocationDto) -> String {
    let side = |degrees: f64, [plus, minus]: [char; 2]| {
        let letter = if degrees < 0.0 { minus } else { plus };
        format!("{:.2}° {letter}", degrees.abs())
    };
    let north = side(point.latitude, ['N', 'S']);
    format!("{north}, {}", side(point.longitude, ['E', 'W']))
}

/// Names where a service comes from.
pub(super) const fn origin(origin: &ServiceOrigin) -> &'static str {
    match origin {
        ServiceOrigin::Configuration => "the configuration",
        ServiceOrigin::Kubernetes => "Kubernetes objects",
    }
}

/// Names a kind of event.
pub(super) const fn event_kind(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::Flip => "Flip",
        EventKind::Service => "Service",
        EventKind::Publish => "Publish",
        EventKind::Drain => "Drain",
        EventKind::Force => "Force",
        EventKind::Challenge => "Challenge",
        EventKind::Refusal => "Refusal",
        EventKind::Conflict => "Conflict",
        EventKind::Source => "Source",
    }
}

/// Says yes or no with a shape.
pub(super) fn yes(value: &bool) -> Safe<String> {
    if *value {
        tag("up", "●", "Yes")
    } else {
        tag("degraded", "◆", "No")
    }
}

/// Puts a word, its shape and its color together.
fn tag(class: &str, shape: &str, word: &str) -> Safe<String> {
    Safe(format!(
        "<span class=\"tag {class}\"><span aria-hidden=\"true\">{shape}</span> {word}</span>"
    ))
}

/// Writes the first letter large.
pub(super) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Draws how many are in each state, as one bar with the words beside it for those who cannot see it.
pub(super) fn bar(counts: &CountsDto) -> Safe<String> {
    let parts = [
        ("up", counts.up),
        ("unknown", counts.unknown),
        ("drained", counts.drained),
        ("degraded", counts.degraded),
        ("down", counts.down),
    ];
    let total = counts.total().max(1);
    let mut rectangles = String::new();
    let mut label = String::new();
    let mut x = 0.0;
    for (class, value) in parts.into_iter().filter(|(_, value)| *value > 0) {
        let width = value as f64 * 100.0 / total as f64;
        rectangles.push_str(&format!(
            "<rect class=\"fill {class}\" x=\"{x:.2}\" y=\"0\" width=\"{width:.2}\" height=\"8\"/>"
        ));
        x += width;
        let comma = if label.is_empty() { "" } else { ", " };
        label.push_str(&format!("{comma}{} {class}", whole(&value)));
    }
    let label = if label.is_empty() { "none" } else { &label };
    Safe(format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{label}\">{rectangles}</svg>"
    ))
}

/// Draws a share.
pub(super) fn share(value: &f64) -> Safe<String> {
    let width = (value * 100.0).clamp(0.0, 100.0);
    Safe(format!(
        "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"fill accent\" x=\"0\" y=\"0\" width=\"{width:.2}\" height=\"8\"/></svg>"
    ))
}

/// Says in words how many are in each state.
pub(super) fn counts(counts: &CountsDto) -> String {
    let parts = [
        (counts.down, "down"),
        (counts.degraded, "degraded"),
        (counts.drained, "drained"),
        (counts.unknown, "unknown"),
        (counts.up, "up"),
    ];
    let told: Vec<String> = parts
        .into_iter()
        .filter(|(value, _)| *value > 0)
        .map(|(value, word)| format!("{} {word}", whole(&value)))
        .collect();
    if told.is_empty() {
        "none".to_owned()
    } else {
        told.join(", ")
    }
}

/// Says in words how many monitors say what: what counts as degraded among them is in doubt.
pub(super) fn monitors(all: &CountsDto) -> String {
    counts(all).replace("degraded", "in doubt")
}

// === Things ===

/// Says what a drain or a force is about.
pub(super) fn target(target: &TargetDto) -> String {
    let cluster = target.cluster.as_deref().unwrap_or("?");
    let service = target.service.as_deref();
    match (target.kind, service) {
        (TargetKind::Cluster, _) => format!("cluster {cluster}"),
        (TargetKind::Service, service) => {
            let service = service.unwrap_or("?");
            match &target.cluster {
                Some(cluster) => format!("service {service} in cluster {cluster}"),
                None => format!("service {service}"),
            }
        }
        (TargetKind::Endpoint, service) => {
            let address = target.address.as_deref().unwrap_or("?");
            match service {
                Some(service) => format!("endpoint {address} of {service} in cluster {cluster}"),
                None => format!("endpoint {address} in cluster {cluster}"),
            }
        }
    }
}

/// Gives a path of ours as it is, and the overview for anything else: a link never leaves this server.
pub(super) fn local(path: &str) -> &str {
    let is_ours = path.starts_with('/') && !path.starts_with("//") && !path.starts_with("/\\");
    if is_ours { path } else { "/" }
}

/// Encodes a part of a path or of a query (RFC 3986): all but unreserved characters.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for octet in text.bytes() {
        if octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(octet));
        } else {
            out.push_str(&format!("%{octet:02X}"));
        }
    }
    out
}

/// Gives the path of a service's page: `namespace/name`, each part encoded.
pub(super) fn service_path(key: &str) -> String {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    format!("/services/{}/{}", encode(namespace), encode(name))
}

/// Gives the path of a cluster's page.
pub(super) fn cluster_path(name: &str) -> String {
    format!("/clusters/{}", encode(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_have_letters_and_no_signs() {
        for (latitude, longitude, text) in [
            (-33.93, -77.49, "33.93° S, 77.49° W"),
            (48.1, 11.6, "48.10° N, 11.60° E"),
            (0.0, 0.0, "0.00° N, 0.00° E"),
        ] {
            let point = LocationDto {
                latitude,
                longitude,
            };
            assert_eq!(coordinates(&point), text);
        }
    }

    #[test]
    fn what_is_not_seen_is_not_watched() {
        let watching = |link| kind_state(&KindStateDto::Watching, &link).0;
        assert!(watching(LinkDto::Synced).contains("tag up"));
        assert!(watching(LinkDto::Stale).contains("tag degraded"));
    }

    #[test]
    fn numbers_have_three_digits_that_matter() {
        for (value, text) in [
            (0.0, "0"),
            (f64::NAN, "0"),
            (0.254, "0.25"),
            (1.0, "1"),
            (12.34, "12.3"),
            (99.96, "100"),
            (1234.5, "1,235"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(number(&value), text);
        }
        assert_eq!(micros(&85.0), "85 µs");
        assert_eq!(micros(&1850.0), "1.85 ms");
        assert_eq!(percent(&0.333), "33.3 %");
        assert_eq!(count(&1, "name"), "1 name");
        assert_eq!(count(&2000, "name"), "2,000 names");
    }

    #[test]
    fn durations_have_two_units_at_most() {
        for (value, text) in [
            (0, "0 s"),
            (119, "119 s"),
            (120, "2 min"),
            (150, "2 min 30 s"),
            (3599, "59 min"),
            (7260, "2 h 1 min"),
            (172_800, "2 d"),
            (180_000, "2 d 2 h"),
        ] {
            assert_eq!(seconds(&value), text);
        }
        assert_eq!(millis(&1500), "1.5 s");
        assert_eq!(millis(&2000), "2 s");
        assert_eq!(millis(&250), "250 ms");
        assert_eq!(left(&0.2), "1 s");
    }

    #[test]
    fn times_say_when_and_how_long_ago() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let Safe(text) = ago("2026-11-21T09:58:00.25Z", &now);
        assert_eq!(
            text,
            "<time datetime=\"2026-11-21T09:58:00Z\" title=\"2026-11-21 09:58:00 UTC\" data-ago>2 min ago</time>"
        );
        assert!(ago("2026-11-21T10:00:30Z", &now).0.contains("in 30 s"));
        assert_eq!(ago("<script>", &now).0, "unknown");
        assert_eq!(clock("nonsense").0, "unknown");
    }

    #[test]
    fn links_stay_here() {
        for (path, link) in [
            ("/clusters/a", "/clusters/a"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("javascript:alert(1)", "/"),
        ] {
            assert_eq!(local(path), link);
        }
        assert_eq!(service_path("a b/c?d"), "/services/a%20b/c%3Fd");
    }
}
