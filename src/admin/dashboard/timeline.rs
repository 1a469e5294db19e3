//! The history of verdicts, drawn: one lane a target, red where it was down.

use jiff::Timestamp;

use super::words;
use crate::admin::dto::{EventDto, EventKind, Severity};

/// Most lanes: the list of events below has the rest.
const LANES: usize = 12;
/// Width of a lane.
const WIDTH: f64 = 600.0;
/// The longest span shown, seconds.
const LONGEST: i64 = 86_400;
/// The shortest span shown, seconds.
const SHORTEST: i64 = 600;

/// A lane.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lane {
    pub(super) target: String,
    /// In words.
    pub(super) summary: String,
    pub(super) segments: Vec<Segment>,
}

/// A time of one verdict.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Segment {
    /// `up`, `down` or `unknown`.
    pub(super) class: &'static str,
    pub(super) x: String,
    pub(super) width: String,
}

/// One flip.
#[derive(Clone, Copy, Debug)]
struct Flip {
    /// Unix time, seconds.
    time: i64,
    is_up: bool,
    /// Nothing was known before it.
    was_unknown: bool,
}

/// All lanes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Timeline {
    pub(super) lanes: Vec<Lane>,
    /// The span shown, in words.
    pub(super) span: String,
}

impl Timeline {
    /// Draws the flips among events, newest first, up to `now`.
    pub(super) fn of(events: &[EventDto], now: Timestamp) -> Self {
        let flips = events.iter().filter(|event| event.kind == EventKind::Flip);
        let now = now.as_second();
        let mut by_target: Vec<(&str, Vec<Flip>)> = Vec::new();
        for flip in flips {
            let (Some(target), Ok(time)) = (&flip.target, flip.time.parse::<Timestamp>()) else {
                continue;
            };
            let point = Flip {
                time: time.as_second(),
                // A flip to up is ordinary; any other is not.
                is_up: flip.severity == Severity::Info,
                was_unknown: flip.before.as_deref() == Some("unknown"),
            };
            if let Some((_, points)) = by_target.iter_mut().find(|(name, _)| name == target) {
                points.push(point);
            } else if by_target.len() < LANES {
                by_target.push((target, vec![point]));
            }
        }
        let oldest = by_target.iter().flat_map(|(_, points)| points);
        let oldest = oldest.map(|flip| flip.time).min().unwrap_or(now);
        // A little before the oldest, so that it is seen what was before.
        let span = ((now - oldest) * 11 / 10).clamp(SHORTEST, LONGEST);
        let lanes = by_target
            .into_iter()
            .map(|(target, points)| lane(target, points, now, span));
        Self {
            lanes: lanes.collect(),
            span: words::seconds(&span.unsigned_abs()),
        }
    }
}

/// Draws a lane from its flips, newest first.
fn lane(target: &str, mut flips: Vec<Flip>, now: i64, span: i64) -> Lane {
    flips.reverse();
    let begin = now - span;
    let place = |time: i64| (time.max(begin) - begin) as f64 * WIDTH / span as f64;
    let segment = |class, from: i64, to: i64| {
        let (x, end) = (place(from), place(to));
        (end > x).then(|| Segment {
            class,
            x: format!("{x:.1}"),
            // Never too thin to be seen.
            width: format!("{:.1}", (end - x).max(1.5)),
        })
    };
    let class = |is_up: bool| if is_up { "up" } else { "down" };
    // Before its first flip it was what it flipped from.
    let before = flips.first().map(|first| match first {
        Flip {
            was_unknown: true, ..
        } => "unknown",
        first => class(!first.is_up),
    });
    let ends = flips.iter().skip(1).map(|flip| flip.time).chain([now]);
    let spans = flips.iter().zip(ends);
    let spans = spans.map(|(flip, end)| (class(flip.is_up), flip.time, end));
    let first = flips.first().map_or(now, |first| first.time);
    let spans: Vec<_> = before
        .map(|before| (before, begin, first))
        .into_iter()
        .chain(spans)
        .collect();
    let down = spans.iter().filter(|(class, ..)| *class == "down");
    let down: i64 = down
        .map(|(_, from, to)| (to - (*from).max(begin)).max(0))
        .sum();
    let count = u64::try_from(flips.len()).unwrap_or(u64::MAX);
    Lane {
        target: target.to_owned(),
        summary: format!(
            "{}, down for {} of {}, {} now",
            words::count(&count, "flip"),
            words::seconds(&down.unsigned_abs()),
            words::seconds(&span.unsigned_abs()),
            class(flips.last().is_some_and(|last| last.is_up)),
        ),
        segments: spans
            .into_iter()
            .filter_map(|(class, from, to)| segment(class, from, to))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::dashboard::samples;

    #[test]
    fn a_lane_is_red_where_its_target_was_down() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let flip = |time: &str, severity| EventDto {
            time: time.to_owned(),
            severity,
            target: Some("192.0.2.1:80".to_owned()),
            ..samples::flip(1)
        };
        let events = [
            flip("2026-11-21T11:55:00Z", Severity::Info),
            flip("2026-11-21T11:52:00Z", Severity::Warning),
        ];
        let timeline = Timeline::of(&events, now);
        assert_eq!(timeline.lanes.len(), 1);
        let lane = &timeline.lanes[0];
        let drawn: Vec<(&str, &str, &str)> = lane
            .segments
            .iter()
            .map(|part| (part.class, part.x.as_str(), part.width.as_str()))
            .collect();
        assert_eq!(
            drawn,
            [
                ("up", "0.0", "120.0"),
                ("down", "120.0", "180.0"),
                ("up", "300.0", "300.0")
            ]
        );
        assert_eq!(lane.summary, "2 flips, down for 3 min of 10 min, up now");
        let mut first = flip("2026-11-21T11:55:00Z", Severity::Warning);
        first.before = Some("unknown".to_owned());
        let lane = &Timeline::of(&[first], now).lanes[0];
        let classes: Vec<&str> = lane.segments.iter().map(|part| part.class).collect();
        assert_eq!(classes, ["unknown", "down"]);
        assert_eq!(lane.summary, "1 flip, down for 5 min of 10 min, down now");
        assert_eq!(Timeline::of(&[], now).lanes, []);
    }
}
