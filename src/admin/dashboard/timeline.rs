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
    /// `up` or `down`.
    pub(super) class: &'static str,
    pub(super) x: String,
    pub(super) width: String,
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
        let mut by_target: Vec<(&str, Vec<(i64, bool)>)> = Vec::new();
        for flip in flips {
            let (Some(target), Ok(time)) = (&flip.target, flip.time.parse::<Timestamp>()) else {
                continue;
            };
            // A flip to up is ordinary; any other is not.
            let point = (time.as_second(), flip.severity == Severity::Info);
            if let Some((_, points)) = by_target.iter_mut().find(|(name, _)| name == target) {
                points.push(point);
            } else if by_target.len() < LANES {
                by_target.push((target, vec![point]));
            }
        }
        let oldest = by_target.iter().flat_map(|(_, points)| points);
        let oldest = oldest.map(|(time, _)| *time).min().unwrap_or(now);
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
fn lane(target: &str, mut points: Vec<(i64, bool)>, now: i64, span: i64) -> Lane {
    points.reverse();
    let begin = now - span;
    let place = |time: i64| (time.max(begin) - begin) as f64 * WIDTH / span as f64;
    let mut segments = Vec::new();
    let mut down = 0;
    let mut push = |from: i64, to: i64, is_up: bool| {
        if !is_up {
            down += (to - from.max(begin)).max(0);
        }
        let (x, end) = (place(from), place(to));
        if end > x {
            segments.push(Segment {
                class: if is_up { "up" } else { "down" },
                x: format!("{x:.1}"),
                // Never too thin to be seen.
                width: format!("{:.1}", (end - x).max(1.5)),
            });
        }
    };
    let mut from = begin;
    // Before its first flip it was what it flipped from.
    let mut is_up = points.first().is_some_and(|(_, up)| !up);
    for (time, up) in &points {
        push(from, *time, is_up);
        (from, is_up) = (*time, *up);
    }
    push(from, now, is_up);
    let flips = u64::try_from(points.len()).unwrap_or(u64::MAX);
    Lane {
        target: target.to_owned(),
        summary: format!(
            "{}, down for {} of {}, {} now",
            words::count(&flips, "flip"),
            words::seconds(&down.unsigned_abs()),
            words::seconds(&span.unsigned_abs()),
            if is_up { "up" } else { "down" },
        ),
        segments,
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
        assert_eq!(Timeline::of(&[], now).lanes, []);
    }
}
