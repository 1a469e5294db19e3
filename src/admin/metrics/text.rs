//! The builder of the exposition format (Prometheus text 0.0.4): the one place that knows its syntax.

use std::fmt::{Display, Write as _};
use std::ops::RangeInclusive;

use crate::telemetry::Times;

/// What a family is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::admin) enum Kind {
    /// Only grows, until a restart.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by size.
    Histogram,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// The text as it grows. Writing to a `String` cannot fail.
#[derive(Debug, Default)]
pub(in crate::admin) struct Text(String);

impl Text {
    /// Begins with room for a usual scrape.
    pub(in crate::admin) fn new() -> Self {
        Self(String::with_capacity(64 << 10))
    }

    /// Begins a family; `name` is without the prefix `meridian_`.
    pub(in crate::admin) fn family(&mut self, name: &str, kind: Kind, help: &str) -> Family<'_> {
        let name = format!("meridian_{name}");
        let kind = kind.as_str();
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Family {
            text: &mut self.0,
            name,
        }
    }

    /// Writes a gauge of one value.
    pub(in crate::admin) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, Kind::Gauge, help).value(&[], value);
    }

    /// Writes a counter of one value.
    pub(in crate::admin) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, Kind::Counter, help).value(&[], value);
    }

    /// Gives the text.
    pub(in crate::admin) fn finish(self) -> String {
        self.0
    }
}

/// One family, to which values are added.
#[derive(Debug)]
pub(in crate::admin) struct Family<'t> {
    text: &'t mut String,
    name: String,
}

impl Family<'_> {
    /// Adds a value. Values of labels are escaped here; their names are ours.
    pub(in crate::admin) fn value(&mut self, labels: &[(&str, &str)], value: impl Display) {
        let labels = in_braces(labels, None);
        let _ = writeln!(self.text, "{}{labels} {value}", self.name);
    }

    /// Adds a value whose labels are written out already, braces included.
    pub(in crate::admin) fn value_of(&mut self, labels: &'static str, value: u64) {
        let _ = writeln!(self.text, "{}{labels} {value}", self.name);
    }

    /// Adds a histogram, with a bucket for each doubling of a microsecond.
    pub(in crate::admin) fn times(&mut self, times: &Times, doublings: RangeInclusive<usize>) {
        let name = &self.name;
        for doubling in doublings {
            let bound = (1_u64 << doubling) as f64 / 1e6;
            let labels = in_braces(&[], Some(&bound.to_string()));
            let count = times.at_most(doubling);
            let _ = writeln!(self.text, "{name}_bucket{labels} {count}");
        }
        let count = times.count();
        let _ = write!(
            self.text,
            "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {}\n{name}_count {count}\n",
            times.sum_seconds()
        );
    }
}

/// Writes labels.
fn in_braces(labels: &[(&str, &str)], bound: Option<&str>) -> String {
    let all = labels
        .iter()
        .copied()
        .chain(bound.map(|bound| ("le", bound)));
    let all: Vec<String> = all
        .map(|(name, value)| format!("{name}=\"{}\"", escape(value)))
        .collect();
    if all.is_empty() {
        String::new()
    } else {
        format!("{{{}}}", all.join(","))
    }
}

/// Escapes a label's value.
fn escape(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::telemetry::Histogram;

    #[test]
    fn families_are_written_as_the_format_wants_them() {
        let mut text = Text::new();
        text.gauge("ready", "Yes.", 1);
        let mut family = text.family("a_total", Kind::Counter, "All.");
        family.value(&[("zone", "a\\b\"\n"), ("type", "A")], 2);
        family.value_of("{x=\"y\"}", 3);
        let histogram = Histogram::default();
        histogram.observe(Duration::from_micros(3), 2);
        let mut family = text.family("t_seconds", Kind::Histogram, "Times.");
        family.times(&Times::of([&histogram]), 1..=2);
        let expected = "\
# HELP meridian_ready Yes.
# TYPE meridian_ready gauge
meridian_ready 1
# HELP meridian_a_total All.
# TYPE meridian_a_total counter
meridian_a_total{zone=\"a\\\\b\\\"\\n\",type=\"A\"} 2
meridian_a_total{x=\"y\"} 3
# HELP meridian_t_seconds Times.
# TYPE meridian_t_seconds histogram
meridian_t_seconds_bucket{le=\"0.000002\"} 0
meridian_t_seconds_bucket{le=\"0.000004\"} 2
meridian_t_seconds_bucket{le=\"+Inf\"} 2
meridian_t_seconds_sum 0.000006
meridian_t_seconds_count 2
";
        assert_eq!(text.finish(), expected);
    }
}
