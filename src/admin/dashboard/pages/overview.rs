//! The overview: what is wrong now, totals, the map, charts, what happened last.

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use crate::admin::dashboard::charts::{self, Chart};
use crate::admin::dashboard::map::{self, Country, Mark};
use crate::admin::dashboard::shell::Dashboard;
use crate::admin::dashboard::shell::{Asked, Shell, page};
use crate::admin::dashboard::words;
use crate::admin::dto::{ClusterDto, EventDto, HealthState, StatusDto, TrafficDto};
use crate::admin::view::{EventQuery, ViewError};

/// Events shown.
const EVENTS: u32 = 8;
/// Clusters listed beside the map; all are on their page.
const CLUSTERS: usize = 24;

/// The page.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "overview.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Overview {
    shell: Shell,
    status: StatusDto,
    clusters: Vec<ClusterDto>,
    more_clusters: usize,
    marks: Vec<Mark>,
    placeless: Vec<String>,
    countries: Vec<Country>,
    charts: Vec<Chart>,
    events: Vec<EventDto>,
    height: u32,
}

page!(Overview);

impl Overview {
    /// Puts the page together.
    pub(in crate::admin::dashboard) fn new(
        shell: Shell,
        status: StatusDto,
        mut clusters: Vec<ClusterDto>,
        traffic: &TrafficDto,
        events: Vec<EventDto>,
    ) -> Self {
        let placeless = clusters.iter().filter(|cluster| cluster.location.is_none());
        let placeless = placeless.map(|cluster| cluster.name.clone()).collect();
        let marks = map::marks(&clusters);
        clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.state));
        let more_clusters = clusters.len().saturating_sub(CLUSTERS);
        clusters.truncate(CLUSTERS);
        Self {
            shell,
            status,
            clusters,
            more_clusters,
            marks,
            placeless,
            countries: map::countries(&traffic.countries),
            charts: charts::overview(traffic),
            events,
            height: map::HEIGHT,
        }
    }

    /// Lists the states, for the legend.
    fn states(&self) -> &'static [HealthState] {
        &[
            HealthState::Up,
            HealthState::Unknown,
            HealthState::Drained,
            HealthState::Degraded,
            HealthState::Down,
        ]
    }

    /// Says in one sentence how things are: read aloud when it changes, so it has no ages and no rates in it.
    fn verdict(&self) -> String {
        let problems = &self.status.problems;
        match problems.first() {
            None => format!(
                "Nothing is wrong: {}, {} and {} are served.",
                words::count(&self.status.clusters.total(), "cluster"),
                words::count(&self.status.services.total(), "service"),
                words::count(&self.status.node.names, "name"),
            ),
            Some(worst) if self.status.problem_count == 1 => format!("1 problem: {}", worst.title),
            Some(worst) => format!(
                "{} problems, worst first: {}",
                words::whole(&self.status.problem_count),
                worst.title
            ),
        }
    }
}

/// Shows the page.
pub(in crate::admin::dashboard) async fn show(
    asked: Asked,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        let latest = EventQuery {
            limit: Some(EVENTS),
            ..EventQuery::default()
        };
        let status = dashboard.view.status().await;
        Ok::<_, ViewError>(Overview::new(
            dashboard.shell(&asked, "Overview"),
            status,
            dashboard.view.clusters().await,
            &dashboard.view.traffic(),
            dashboard.view.events(&latest)?.items,
        ))
    };
    Box::pin(dashboard.serve(&asked, make)).await
}
