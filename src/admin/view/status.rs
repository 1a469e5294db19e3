//! The whole in a glance: what is wrong now, worst first.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{ServiceQuery, View, words};
use crate::admin::dto::{
    CountsDto, DrainState, HealthState, NodeDto, PeerDto, ProblemDto, RatesDto, Severity,
    SourceDto, SourceKind, SourceState, StatusDto, TrafficDto,
};
use crate::health::Refusal;
use crate::model::{ClusterIndex, Rejection, Verdict, counted};
use crate::telemetry::{ReplyCode, wall_time};

/// Problems listed.
const LISTED: usize = 50;
/// Services listed as problems one by one.
const SERVICES: u32 = 10;

impl View {
    /// Shows the state of everything.
    pub async fn status(&self) -> StatusDto {
        let now = wall_time();
        let controller = self.controller().status();
        let look = self.look().await;
        let clusters = self.clusters().await;
        let peers = self.peers().await;
        let mut by_state = CountsDto::default();
        for cluster in &clusters {
            super::catalog::count(&mut by_state, cluster.state);
        }
        let mut problems = Vec::new();
        self.service_problems(&mut problems).await;
        if let Some(look) = &look {
            self.empty_problems(look, &mut problems).await;
        }
        for cluster in &clusters {
            problems.extend(cluster_problem(cluster));
        }
        self.drain_problems(&mut problems);
        self.challenge_problems(&mut problems);
        self.monitor_problems(&mut problems);
        self.member_problems(&mut problems);
        self.leaving_problems(&mut problems);
        self.sender_problems(&mut problems);
        self.source_problems(&mut problems).await;
        problems.extend(peers.iter().filter_map(peer_problem));
        problems.sort_by_key(|problem| std::cmp::Reverse(problem.severity));
        let problem_count = super::number(problems.len());
        problems.truncate(LISTED);
        let started = self
            .sources_of_node()
            .events
            .started
            .load(Ordering::Relaxed);
        StatusDto {
            node: NodeDto {
                name: self.vantage().node().to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                started: words::unix_time(started),
                // To the second: what is the same for a moment has the same tag for it.
                now: words::unix_time(now.0 / 1000),
                ready: self.sources_of_node().ready.is_ready(),
                generation: controller.generation.0,
                names: super::number(controller.names),
            },
            problems,
            problem_count,
            clusters: by_state,
            services: look.map(|look| look.standing.counts).unwrap_or_default(),
            monitors: self.monitor_counts(),
            rates: self.rates(),
            senders: self.senders(),
            drains: super::number(self.standing_drains().len()),
            forces: super::number(self.standing_forces().len()),
            challenges: super::number(self.standing_challenges().len()),
            members: self.member_sums(),
            peers,
        }
    }

    /// Shows the last hour, for charts.
    #[must_use]
    pub fn traffic(&self) -> TrafficDto {
        let history = self.history();
        let status = self.controller().status();
        let names = &status.world.clusters;
        let name = |index: ClusterIndex| {
            let found = names.iter().find(|(other, _)| *other == index);
            found.map_or_else(
                || "others".to_owned(),
                |(_, cluster)| cluster.id.to_string(),
            )
        };
        let steps = &history.steps;
        let mut dto = TrafficDto {
            end: steps.last().map_or(0, |step| step.unix),
            step_seconds: super::STEP_SECONDS,
            queries: steps
                .iter()
                .map(|step| super::rounded(step.queries))
                .collect(),
            ..TrafficDto::default()
        };
        for (at, code) in ReplyCode::ALL.iter().enumerate() {
            let rates: Vec<f64> = steps
                .iter()
                .map(|step| step.replies.get(at).copied().map_or(0.0, super::rounded))
                .collect();
            if rates.iter().any(|rate| *rate > 0.0) {
                dto.replies.insert(code.as_str().to_owned(), rates);
            }
        }
        let zeros = || vec![0.0; steps.len()];
        for (at, step) in steps.iter().enumerate() {
            for cluster in &step.clusters {
                let name = name(cluster.cluster);
                let answers = dto.clusters.entry(name.clone()).or_insert_with(zeros);
                if let Some(cell) = answers.get_mut(at) {
                    *cell = super::rounded(cluster.answers);
                }
                let probes = dto.probe_ms.entry(name).or_insert_with(zeros);
                if let Some(cell) = probes.get_mut(at) {
                    *cell = f64::from(cluster.probe_tenths_ms) / 10.0;
                }
            }
            let micros = |time: Option<f32>| time.map_or(0.0, |time| super::rounded(time * 1e6));
            dto.latency_p50_us.push(micros(step.p50));
            dto.latency_p99_us.push(micros(step.p99));
        }
        for (country, count) in &history.countries {
            let code = country.map_or_else(|| "unknown".to_owned(), |code| code.to_string());
            dto.countries.insert(code, *count);
        }
        dto
    }

    /// Gives the rates of the last step.
    fn rates(&self) -> RatesDto {
        let history = self.history();
        let Some(step) = history.steps.last() else {
            return RatesDto::default();
        };
        let fail = ReplyCode::ALL
            .iter()
            .position(|code| code.as_str() == "SERVFAIL");
        let failures = fail.and_then(|at| step.replies.get(at)).copied();
        let micros = |time: Option<f32>| time.map(|time| super::rounded(time * 1e6));
        RatesDto {
            queries_per_second: super::rounded(step.queries),
            failures_per_second: failures.map_or(0.0, super::rounded),
            latency_p50_us: micros(step.p50),
            latency_p99_us: micros(step.p99),
        }
    }

    /// Counts monitors by verdict.
    fn monitor_counts(&self) -> CountsDto {
        let reports = Arc::clone(&self.reports().borrow());
        let mut counts = CountsDto::default();
        for report in reports.iter() {
            let cell = match (report.verdict, report.in_doubt) {
                (Verdict::Down, _) => &mut counts.down,
                (_, true) => &mut counts.degraded,
                (Verdict::Up, false) => &mut counts.up,
                (Verdict::Unknown, false) => &mut counts.unknown,
            };
            *cell += 1;
        }
        counts
    }

    /// Lists services with nothing up.
    async fn service_problems(&self, problems: &mut Vec<ProblemDto>) {
        let query = ServiceQuery {
            state: Some(HealthState::Down),
            limit: Some(SERVICES),
            ..ServiceQuery::default()
        };
        let Ok(page) = self.services(&query).await else {
            return;
        };
        for row in &page.items {
            let names = few(&row.hostnames);
            problems.push(ProblemDto {
                severity: Severity::Critical,
                title: format!("{} has nothing up", row.key),
                text: format!("{names}: no endpoint passes its checks. Answers go on with the last resorts of its policy."),
                link: format!("/services/{}", row.key),
                since: None,
            });
        }
        let listed = super::number(page.items.len());
        if page.total > listed {
            problems.push(ProblemDto {
                severity: Severity::Critical,
                title: format!("{} more services have nothing up", page.total - listed),
                text: "Their last resorts are answered.".to_owned(),
                link: "/services?state=down".to_owned(),
                since: None,
            });
        }
    }

    /// Lists drains that wait for somebody.
    fn drain_problems(&self, problems: &mut Vec<ProblemDto>) {
        for drain in self.standing_drains() {
            let what = drain
                .target
                .cluster
                .as_deref()
                .or(drain.target.service.as_deref());
            let what = what.unwrap_or_default();
            let (severity, title) = match drain.state {
                DrainState::Held => (Severity::Warning, "is held"),
                DrainState::Partial => (Severity::Warning, "is not in force everywhere"),
                _ => continue,
            };
            problems.push(ProblemDto {
                severity,
                title: format!("The drain of {what} {title}"),
                text: drain.waiting_for.join("; "),
                link: format!("/drains/{}", drain.id),
                since: Some(drain.starts.clone()),
            });
        }
    }

    /// Names monitors whose checks may be wrong, and those that may not look.
    fn monitor_problems(&self, problems: &mut Vec<ProblemDto>) {
        let reports = Arc::clone(&self.reports().borrow());
        let refused = reports.iter().filter_map(|report| report.refused);
        problems.extend(refused_problem(refused.collect()));
        let never = reports
            .iter()
            .filter(|report| report.never_succeeded)
            .count();
        if never > 0 {
            problems.push(ProblemDto {
                severity: Severity::Warning,
                title: format!("{} never succeeded", counted(never, "monitor")),
                text: "No probe succeeded since they began: is the check right? What they judge counts as down.".to_owned(),
                link: "/monitors?neverSucceeded=true".to_owned(),
                since: None,
            });
        }
    }

    /// Names sources that are not in order; member clusters and peers are named apart.
    async fn source_problems(&self, problems: &mut Vec<ProblemDto>) {
        let mut parts = 0;
        for source in self.sources().await {
            if source.kind == SourceKind::Kubernetes {
                parts += source.refused_count;
            }
            let Some((title, text)) = source_problem(&source) else {
                continue;
            };
            problems.push(ProblemDto {
                severity: Severity::Warning,
                title,
                text,
                link: "/sources".to_owned(),
                since: None,
            });
        }
        let world = Arc::clone(&self.controller().status().world);
        let claims = world.rejected.saturating_sub(world.rejected_objects);
        let disputes = world.refused_objects.iter();
        let disputes = disputes.filter(|one| is_dispute(one)).count();
        let parts = usize::try_from(parts).unwrap_or(usize::MAX);
        let refused = [
            (
                disputes,
                "part",
                "of services refused",
                "Most members say otherwise, there are too many objects, or a host name is not followed. The rest is served.",
            ),
            (
                claims,
                "claim",
                "to names refused",
                "Another owner has the name, or it lies outside of all zones. The rest is served.",
            ),
            (
                parts,
                "part",
                "of Kubernetes objects refused",
                "Fields that cannot be read, or names that their namespace may not have. The rest of each object is served.",
            ),
        ];
        for (count, noun, of, text) in refused.into_iter().filter(|(count, ..)| *count > 0) {
            problems.push(ProblemDto {
                severity: Severity::Warning,
                title: format!("{} {of}", counted(count, noun)),
                text: text.to_owned(),
                link: "/sources".to_owned(),
                since: None,
            });
        }
    }
}

/// Says what is wrong with a source, in a title and a text; `None`: nothing that is told here.
fn source_problem(source: &SourceDto) -> Option<(String, String)> {
    let has_many = matches!(source.kind, SourceKind::Directory | SourceKind::Secrets);
    let is_whole = || source.refused.iter().any(|one| one.source == source.name);
    Some(match (source.state, source.kind) {
        (SourceState::Ok | SourceState::Refused, _)
            if has_many && source.refused_count > 0 && !is_whole() =>
        {
            let text = first_fault(source);
            let text = format!("{text}. What was last good of it is in force, and all else.");
            (format!("{} has faults", source.name), text)
        }
        (SourceState::Ok, _) | (_, SourceKind::Kubernetes | SourceKind::Peer) => return None,
        (SourceState::Refused, SourceKind::TokenFile) => (
            format!("{} has faults", source.name),
            format!("{}. Its other lines are in force.", first_fault(source)),
        ),
        (SourceState::Refused, _) => (
            format!("{} is refused", source.name),
            format!("{}. What was last good is in force.", first_fault(source)),
        ),
        (SourceState::Stale, SourceKind::LastGoodState) => (
            format!("{} cannot be written", source.name),
            format!(
                "{}. Serving goes on; a restart would begin with what was written last.",
                words::sentence(&source.details.join("; "))
            ),
        ),
        (SourceState::Stale, _) => (
            format!("{} is stale", source.name),
            "It is gone or cannot be used. What was last good is in force.".to_owned(),
        ),
    })
}

/// Tells whether something is refused of a service, and not of an object of one cluster.
fn is_dispute(one: &Rejection) -> bool {
    one.source.starts_with("service ")
}

/// Says how many targets are refused, and why.
fn refused_problem(refused: Vec<Refusal>) -> Option<ProblemDto> {
    if refused.is_empty() {
        return None;
    }
    let reasons = Refusal::ALL.into_iter().filter_map(|why| {
        let count = refused.iter().filter(|one| **one == why).count();
        (count > 0).then(|| format!("{why} ({count})"))
    });
    let reasons: Vec<String> = reasons.collect();
    Some(ProblemDto {
        severity: Severity::Warning,
        title: format!("{} of tenants refused", counted(refused.len(), "target")),
        text: format!(
            "{}. Nobody probes them, and they are answered as up. `probes.allow` opens prefixes.",
            reasons.join(", ")
        ),
        link: "/monitors?verdict=unknown".to_owned(),
        since: None,
    })
}

/// Says what is wrong with a cluster.
fn cluster_problem(cluster: &crate::admin::dto::ClusterDto) -> Option<ProblemDto> {
    let counts = &cluster.endpoints;
    let services = counted(
        usize::try_from(cluster.services).unwrap_or(usize::MAX),
        "service",
    );
    let (severity, title, text) = match cluster.state {
        HealthState::Down => (
            Severity::Critical,
            format!("Cluster {} is down", cluster.name),
            format!(
                "{} checks: {services} answered from elsewhere where possible.",
                match counts.total() {
                    1 => "Its only endpoint fails its".to_owned(),
                    all => format!("All {all} of its endpoints fail their"),
                }
            ),
        ),
        HealthState::Degraded => (
            Severity::Warning,
            format!("Cluster {} is degraded", cluster.name),
            format!(
                "{} of {} endpoints {} down; it has {services}.",
                counts.down,
                counts.total(),
                if counts.down == 1 { "is" } else { "are" }
            ),
        ),
        _ => return None,
    };
    Some(ProblemDto {
        severity,
        title,
        text,
        link: format!("/clusters/{}", cluster.name),
        since: None,
    })
}

/// Says why a source is refused: its first fault, and how many there are besides.
fn first_fault(source: &SourceDto) -> String {
    let Some(first) = source.refused.first() else {
        return "Its newest content has faults".to_owned();
    };
    let more = match source.refused_count.saturating_sub(1) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{}: {}{more}", first.place, first.reason)
}

/// Says what is wrong with a peer.
fn peer_problem(peer: &PeerDto) -> Option<ProblemDto> {
    if peer.reachable {
        return None;
    }
    let name = peer.name.as_deref().unwrap_or(&peer.url);
    let why = peer.error.as_deref().unwrap_or("it was not heard of yet");
    Some(ProblemDto {
        severity: Severity::Warning,
        title: format!("Node {name} is out of reach"),
        text: format!("{why}. Answers go on; drains are not said to be safe meanwhile."),
        link: "/sources".to_owned(),
        since: None,
    })
}

/// Joins the first few names.
pub(super) fn few(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
    match names.len() {
        0 => "It has no name".to_owned(),
        count if count > 3 => format!("{} and {} more", shown.join(", "), count - 3),
        _ => shown.join(", "),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn refused_targets_are_a_problem_with_its_reasons() {
        assert_eq!(refused_problem(Vec::new()), None);
        let refused = vec![Refusal::Private, Refusal::Own, Refusal::Private];
        let problem = refused_problem(refused).unwrap();
        assert_eq!(problem.title, "3 targets of tenants refused");
        assert_eq!(
            problem.text,
            "listener of this node (1), private address (2). Nobody probes them, and they are answered as up. \
             `probes.allow` opens prefixes."
        );
    }
}
