//! Monitors.

use std::sync::Arc;

use super::{MonitorQuery, View, ViewError, words};
use crate::admin::dto::{MonitorDto, OriginDto, Page};
use crate::controller::World;
use crate::health::MonitorReport;
use crate::model::{Origin, Verdict};

impl View {
    /// Lists monitors, worst first: down, refused, in doubt, unknown, up; among equals by target.
    ///
    /// # Errors
    /// When the cursor is none, or there is no such verdict or cluster.
    pub async fn monitors(&self, query: &MonitorQuery) -> Result<Page<MonitorDto>, ViewError> {
        let verdict = query.verdict.as_deref().map(read_verdict).transpose()?;
        let reports = Arc::clone(&self.reports().borrow());
        let world = Arc::clone(&self.controller().status().world);
        let cluster = super::find_cluster(&world, query.cluster.as_deref())?;
        let search = query.search.as_deref().map(str::to_ascii_lowercase);
        let paging = query.paging();
        let from = super::offset(&paging)?;
        let matches = |report: &MonitorReport<'_>| {
            verdict.is_none_or(|wanted| report.verdict == wanted)
                && query
                    .never_succeeded
                    .is_none_or(|wanted| report.never_succeeded == wanted)
                && cluster.is_none_or(|wanted| world.cluster_of(report.endpoint) == Some(wanted))
                && search
                    .as_deref()
                    .is_none_or(|text| has_text(report, text, &world))
        };
        let mut found: Vec<MonitorReport<'_>> = reports.iter().filter(matches).collect();
        found.sort_by_key(|report| (badness(report), report.target.address));
        let page = found.iter().skip(from).take(paging.limit());
        Ok(Page {
            items: page.map(|report| monitor(report, &world)).collect(),
            total: super::number(found.len()),
            next: super::next(from, &paging, found.len()),
        })
    }
}

/// Reads a verdict.
fn read_verdict(text: &str) -> Result<Verdict, ViewError> {
    match text {
        "up" => Ok(Verdict::Up),
        "down" => Ok(Verdict::Down),
        "unknown" => Ok(Verdict::Unknown),
        other => Err(ViewError::Invalid(format!(
            "verdict: `{}` is none; there are up, down and unknown",
            words::shorten(other)
        ))),
    }
}

/// Orders monitors: what somebody should look at first.
fn badness(report: &MonitorReport<'_>) -> u8 {
    match report.verdict {
        Verdict::Down => 0,
        _ if report.never_succeeded || report.refused.is_some() => 1,
        _ if report.in_doubt => 2,
        Verdict::Unknown => 3,
        Verdict::Up => 4,
    }
}

/// Tells whether a text is part of a monitor's target, check or cluster.
fn has_text(report: &MonitorReport<'_>, text: &str, world: &World) -> bool {
    report.target.address.to_string().contains(text)
        || words::check(&report.target.spec)
            .to_ascii_lowercase()
            .contains(text)
        || cluster(report, world).is_some_and(|name| name.contains(text))
}

/// Names the cluster of a monitor's endpoints.
fn cluster(report: &MonitorReport<'_>, world: &World) -> Option<String> {
    let index = world.cluster_of(report.endpoint)?;
    let found = world.clusters.iter().find(|(other, _)| *other == index);
    found.map(|(_, cluster)| cluster.id.to_string())
}

/// Shows one monitor.
fn monitor(report: &MonitorReport<'_>, world: &World) -> MonitorDto {
    let spec = &report.target.spec;
    MonitorDto {
        id: words::monitor_id(report.target),
        target: report.target.address.to_string(),
        origin: match spec.origin {
            Origin::Operator => OriginDto::Operator,
            Origin::Tenant => OriginDto::Tenant,
        },
        check: words::check(spec),
        verdict: report.verdict.to_string(),
        in_doubt: report.in_doubt,
        never_succeeded: report.never_succeeded,
        refused: report.refused.map(|why| why.to_string()),
        last: report.last.map(words::probe),
        clusters: cluster(report, world).into_iter().collect(),
        endpoints: super::number(report.endpoints),
        interval_ms: words::millis(spec.interval),
        timeout_ms: words::millis(spec.timeout),
        rise: spec.rise,
        fall: spec.fall,
    }
}
