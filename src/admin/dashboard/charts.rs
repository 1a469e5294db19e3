//! Charts: what was asked and answered over the last hour, as lines, as a sentence and as a table.
//!
//! The server draws the lines as SVG. A script replaces them with charts to point at, fed by `/traffic.json`.

use std::collections::BTreeMap;

use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::shell::Asked;
use super::shell::Dashboard;
use super::words;
use crate::admin::dto::TrafficDto;

/// Most lines of a chart: as many colors can be told apart. The rest is summed up.
const LINES: usize = 8;
/// Most points of a line that the server draws.
const POINTS: usize = 120;
/// Width of what the server draws.
const WIDTH: f64 = 600.0;
/// Height of what the server draws.
const HEIGHT: f64 = 150.0;
/// Most steps that the script gets: as many as pixels of a chart on a phone.
const STEPS: usize = 240;
/// Seconds of a row of the table.
const ROW: usize = 300;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) values: Vec<f64>,
}

/// One chart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chart {
    /// The key in `/traffic.json`.
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    /// In words.
    pub(super) summary: String,
    pub(super) unit: &'static str,
    /// The cluster it is about, if one: the query of `/traffic.json`.
    pub(super) cluster: String,
    pub(super) names: Vec<String>,
    /// Points of the server's lines.
    pub(super) lines: Vec<String>,
    /// The highest value, with unit.
    pub(super) top: String,
    /// The first and the last time.
    pub(super) span: (String, String),
    /// The table: time, and a value a line.
    pub(super) rows: Vec<(String, Vec<String>)>,
}

/// What a chart shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Queries,
    Clusters,
    Latency,
    Probes,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Queries, Self::Clusters, Self::Latency, Self::Probes];

    const fn key(self) -> &'static str {
        match self {
            Self::Queries => "queries",
            Self::Clusters => "clusters",
            Self::Latency => "latency",
            Self::Probes => "probes",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Queries => "Queries",
            Self::Clusters => "Answers by cluster",
            Self::Latency => "Time to answer",
            Self::Probes => "Time of probes",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Queries | Self::Clusters => "/s",
            Self::Latency => "µs",
            Self::Probes => "ms",
        }
    }

    /// Gives the lines; of one cluster alone where it is named.
    fn series(self, traffic: &TrafficDto, cluster: Option<&str>) -> Vec<Series> {
        let one = |name: &str, values: &[f64]| Series {
            name: name.to_owned(),
            values: values.to_vec(),
        };
        match self {
            Self::Queries => {
                let mut lines = vec![one("Queries", &traffic.queries)];
                let failures = traffic.replies.iter().filter(|(rcode, values)| {
                    rcode.as_str() != "NOERROR" && values.iter().any(|value| *value > 0.0)
                });
                lines.extend(failures.map(|(rcode, values)| one(rcode, values)));
                lines.truncate(LINES);
                lines
            }
            Self::Clusters => largest(&traffic.clusters, cluster, true),
            Self::Latency => vec![
                one("Half take less", &traffic.latency_p50_us),
                one("99 of 100 take less", &traffic.latency_p99_us),
            ],
            Self::Probes => largest(&traffic.probe_ms, cluster, false),
        }
    }
}

/// Takes the lines with the highest sums; the rest is added up where adding makes sense.
fn largest(all: &BTreeMap<String, Vec<f64>>, only: Option<&str>, adds: bool) -> Vec<Series> {
    let wanted = all
        .iter()
        .filter(|(name, _)| only.is_none_or(|only| only == name.as_str()));
    let mut lines: Vec<Series> = wanted
        .map(|(name, values)| Series {
            name: name.clone(),
            values: values.clone(),
        })
        .collect();
    if lines.len() <= LINES {
        return lines;
    }
    let sum = |series: &Series| series.values.iter().sum::<f64>();
    lines.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
    let rest = lines.split_off(if adds { LINES - 1 } else { LINES });
    if adds {
        let length = rest.iter().map(|series| series.values.len()).max();
        let at = |step: usize| {
            rest.iter()
                .filter_map(|series| series.values.get(step))
                .sum()
        };
        lines.push(Series {
            name: format!("{} others", rest.len()),
            values: (0..length.unwrap_or(0)).map(at).collect(),
        });
    }
    lines
}

/// Makes the charts of the overview.
pub(super) fn overview(traffic: &TrafficDto) -> Vec<Chart> {
    Kind::ALL.map(|kind| chart(kind, traffic, None)).into()
}

/// Makes the charts of a cluster's page.
pub(super) fn cluster(traffic: &TrafficDto, name: &str) -> Vec<Chart> {
    [Kind::Clusters, Kind::Probes]
        .map(|kind| chart(kind, traffic, Some(name)))
        .into()
}

/// Makes a chart.
fn chart(kind: Kind, traffic: &TrafficDto, cluster: Option<&str>) -> Chart {
    let series = kind.series(traffic, cluster);
    let step = usize::try_from(traffic.step_seconds.max(1)).unwrap_or(1);
    let length = series.iter().map(|series| series.values.len()).max();
    let length = length.unwrap_or(0);
    let highest = series.iter().flat_map(|series| &series.values);
    let highest = highest.copied().fold(0.0, f64::max);
    let before = |steps: usize| {
        let seconds = u64::try_from(steps.saturating_mul(step)).unwrap_or(u64::MAX);
        words::time_of_day(traffic.end.saturating_sub(seconds))
    };
    Chart {
        key: kind.key(),
        title: kind.title(),
        summary: summary(kind, &series, cluster),
        unit: kind.unit(),
        cluster: cluster.unwrap_or_default().to_owned(),
        lines: series
            .iter()
            .map(|series| line(&series.values, highest))
            .collect(),
        top: format!("{} {}", words::number(&highest), kind.unit()),
        span: (before(length), before(0)),
        rows: rows(&series, step, length, before),
        names: series.into_iter().map(|series| series.name).collect(),
    }
}

/// Draws a line: each point is the highest value of its span, so that no peak is lost.
fn line(values: &[f64], highest: f64) -> String {
    let span = values.len().div_ceil(POINTS).max(1);
    let points = values.chunks(span).enumerate().map(|(at, values)| {
        let value = values.iter().copied().fold(0.0, f64::max);
        (at, value)
    });
    let points: Vec<(usize, f64)> = points.collect();
    let last = points.len().saturating_sub(1).max(1) as f64;
    let mut text = String::new();
    for (at, value) in points {
        let x = at as f64 * WIDTH / last;
        let y = HEIGHT - value / highest.max(f64::MIN_POSITIVE) * (HEIGHT - 10.0);
        let space = if text.is_empty() { "" } else { " " };
        text.push_str(&format!("{space}{x:.0},{y:.0}"));
    }
    text
}

/// Averages the lines over the rows of the table, newest first.
fn rows(
    series: &[Series],
    step: usize,
    length: usize,
    before: impl Fn(usize) -> String,
) -> Vec<(String, Vec<String>)> {
    let a_row = (ROW / step).max(1);
    let row = |at: usize| {
        let end = length - at * a_row;
        let begin = end.saturating_sub(a_row);
        let average = |series: &Series| {
            let values = series.values.get(begin..end.min(series.values.len()));
            let values = values.unwrap_or_default();
            words::number(&(values.iter().sum::<f64>() / values.len().max(1) as f64))
        };
        (before(length - begin), series.iter().map(average).collect())
    };
    (0..length.div_ceil(a_row)).map(row).collect()
}

/// Says what a chart shows.
fn summary(kind: Kind, series: &[Series], cluster: Option<&str>) -> String {
    let now = |series: &Series| series.values.last().copied().unwrap_or(0.0);
    let Some(first) = series.first() else {
        return "Nothing was measured yet.".to_owned();
    };
    match (kind, cluster) {
        (Kind::Queries, _) => {
            let highest = first.values.iter().copied().fold(0.0, f64::max);
            format!(
                "{} queries a second now, {} at most in the last hour.",
                words::number(&now(first)),
                words::number(&highest)
            )
        }
        (Kind::Clusters, Some(name)) => format!(
            "{} answers a second with endpoints of {name} now.",
            words::number(&now(first))
        ),
        (Kind::Clusters, None) => busiest(series),
        (Kind::Latency, _) => {
            let lines: Vec<String> = series
                .iter()
                .map(|line| words::micros(&now(line)))
                .collect();
            match lines.as_slice() {
                [half, most] => format!(
                    "Half of the batches of queries take less than {half}, 99 of 100 less than {most}."
                ),
                _ => String::new(),
            }
        }
        (Kind::Probes, _) => {
            // Where nothing was probed there is no time.
            let probed = series.iter().filter(|line| now(line) > 0.0);
            let slowest = probed.max_by(|a, b| now(a).total_cmp(&now(b)));
            slowest.map_or_else(String::new, |slowest| {
                format!(
                    "Half of the probes of {} take less than {} ms{}.",
                    slowest.name,
                    words::number(&now(slowest)),
                    if cluster.is_some() {
                        ""
                    } else {
                        ": the slowest cluster"
                    },
                )
            })
        }
    }
}

/// Says which clusters answer most.
fn busiest(series: &[Series]) -> String {
    let mut now: Vec<(&str, f64)> = series
        .iter()
        .map(|series| {
            (
                series.name.as_str(),
                series.values.last().copied().unwrap_or(0.0),
            )
        })
        .collect();
    let total: f64 = now.iter().map(|(_, value)| value).sum();
    if total <= 0.0 {
        return "No answers with endpoints now.".to_owned();
    }
    now.sort_by(|a, b| b.1.total_cmp(&a.1));
    let told: Vec<String> = now
        .iter()
        .take(3)
        .filter(|(_, value)| *value > 0.0)
        .map(|(name, value)| format!("{name} {}", words::percent(&(value / total))))
        .collect();
    format!("Answers now: {}.", told.join(", "))
}

// === Data ===

/// What the script asks for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    cluster: Option<String>,
}

/// What the script gets.
#[derive(Debug, Serialize)]
struct Data {
    end: u64,
    step: u32,
    charts: BTreeMap<&'static str, Vec<Series>>,
}

/// Serves the lines of all charts.
pub(super) async fn data(
    asked: Asked,
    Query(wanted): Query<Wanted>,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = || numbers(&dashboard.view.traffic(), wanted.cluster.as_deref());
    let body = dashboard.shared(&asked, make).await;
    let head = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (head, body).into_response()
}

/// Writes the lines of all charts, with three digits that matter: a chart shows no more, and it is a third of the octets.
fn numbers(traffic: &TrafficDto, cluster: Option<&str>) -> Vec<u8> {
    let span = traffic.queries.len().div_ceil(STEPS).max(1);
    let mut charts = BTreeMap::new();
    for kind in Kind::ALL {
        let mut series = kind.series(traffic, cluster);
        for line in &mut series {
            line.values = coarse(&line.values, span);
        }
        charts.insert(kind.key(), series);
    }
    let data = Data {
        end: traffic.end,
        step: traffic
            .step_seconds
            .saturating_mul(u32::try_from(span).unwrap_or(1)),
        charts,
    };
    serde_json::to_vec(&data).unwrap_or_default()
}

/// Averages over spans, the last of them whole.
fn coarse(values: &[f64], span: usize) -> Vec<f64> {
    let average = |values: &[f64]| short(values.iter().sum::<f64>() / values.len().max(1) as f64);
    let mut spans: Vec<f64> = values.rchunks(span).map(average).collect();
    spans.reverse();
    spans
}

/// Rounds to three digits.
fn short(value: f64) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return 0.0;
    }
    let scale = 10_f64.powf(2.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::dashboard::samples;

    #[test]
    fn a_chart_is_a_sentence_a_table_and_lines() {
        let charts = overview(&samples::traffic());
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title).collect();
        assert_eq!(
            titles,
            [
                "Queries",
                "Answers by cluster",
                "Time to answer",
                "Time of probes"
            ]
        );
        for chart in &charts {
            assert!(chart.summary.ends_with('.'), "{}", chart.summary);
            assert_eq!(chart.lines.len(), chart.names.len());
            assert_eq!(chart.rows.len(), 12, "an hour in rows of five minutes");
            assert!(
                chart
                    .rows
                    .iter()
                    .all(|row| row.1.len() == chart.names.len())
            );
            assert!(
                chart
                    .lines
                    .iter()
                    .all(|line| line.matches(' ').count() < POINTS)
            );
        }
        // What was not probed took no time.
        let mut traffic = samples::traffic();
        for times in traffic.probe_ms.values_mut() {
            times.fill(0.0);
        }
        for chart in overview(&traffic) {
            assert!(
                !chart.summary.contains("less than 0 ms"),
                "{}",
                chart.summary
            );
        }
        for chart in overview(&TrafficDto::default()) {
            assert!(chart.rows.is_empty());
            assert!(chart.summary.ends_with('.'), "{}", chart.summary);
        }
    }

    #[test]
    fn many_clusters_are_the_largest_and_the_rest() {
        let mut traffic = samples::traffic();
        traffic.clusters = (0..40)
            .map(|at| (format!("c{at:02}"), vec![f64::from(at); 3]))
            .collect();
        let series = Kind::Clusters.series(&traffic, None);
        assert_eq!(series.len(), LINES);
        assert_eq!(series[0].name, "c39");
        assert_eq!(series[7].name, "33 others");
        let sum: f64 = series.iter().map(|series| series.values[0]).sum();
        assert_eq!(sum, f64::from(39 * 40 / 2));
        let one = Kind::Clusters.series(&traffic, Some("c05"));
        assert_eq!((one.len(), one[0].values[0]), (1, 5.0));
    }

    #[test]
    fn numbers_for_the_script_are_short() {
        assert_eq!(short(0.0), 0.0);
        assert_eq!(short(1234.567), 1230.0);
        assert_eq!(short(0.012_345), 0.0123);
        assert_eq!(coarse(&[9.0, 1.0, 2.0, 3.0, 4.0], 2), [9.0, 1.5, 3.5]);
        let text = numbers(&samples::traffic(), None);
        assert!(text.len() < 40_000, "{}", text.len());
    }
}
