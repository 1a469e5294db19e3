//! Clusters, and one of them.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use crate::admin::dashboard::charts::{self, Chart};
use crate::admin::dashboard::shell::Dashboard;
use crate::admin::dashboard::shell::{Asked, Shell, page};
use crate::admin::dashboard::timeline::Timeline;
use crate::admin::dashboard::words;
use crate::admin::dto::{
    ClusterDto, EventDto, EventKind, MonitorDto, Page, ServiceRowDto, TrafficDto,
};
use crate::admin::view::{EventQuery, MonitorQuery, ServiceQuery, ViewError};

/// Services, monitors and events shown of a cluster; the rest is a link away.
const SHOWN: u32 = 20;
/// Flips drawn.
const FLIPS: u32 = 200;

/// All clusters.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "clusters.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Clusters {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) clusters: Vec<ClusterDto>,
}

page!(Clusters);

/// One cluster.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "cluster.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Cluster {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) cluster: ClusterDto,
    pub(in crate::admin::dashboard) services: Page<ServiceRowDto>,
    pub(in crate::admin::dashboard) monitors: Page<MonitorDto>,
    pub(in crate::admin::dashboard) timeline: Timeline,
    pub(in crate::admin::dashboard) events: Vec<EventDto>,
    pub(in crate::admin::dashboard) charts: Vec<Chart>,
}

page!(Cluster);

impl Cluster {
    /// Makes the charts of its own lines.
    pub(in crate::admin::dashboard) fn charts(traffic: &TrafficDto, name: &str) -> Vec<Chart> {
        charts::cluster(traffic, name)
    }
}

/// Shows all clusters.
pub(in crate::admin::dashboard) async fn list(
    asked: Asked,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        Ok::<_, ViewError>(Clusters {
            shell: dashboard.shell(&asked, "Clusters"),
            clusters: dashboard.view.clusters().await,
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}

/// Shows one cluster.
pub(in crate::admin::dashboard) async fn show(
    asked: Asked,
    Path(name): Path<String>,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        let view = &dashboard.view;
        let cluster = view.cluster(&name).await?;
        let services = ServiceQuery {
            cluster: Some(name.clone()),
            limit: Some(SHOWN),
            ..ServiceQuery::default()
        };
        let monitors = MonitorQuery {
            cluster: Some(name.clone()),
            limit: Some(SHOWN),
            ..MonitorQuery::default()
        };
        let events = EventQuery {
            cluster: Some(name.clone()),
            limit: Some(SHOWN),
            ..EventQuery::default()
        };
        let flips = EventQuery {
            kind: Some(EventKind::Flip),
            limit: Some(FLIPS),
            ..events.clone()
        };
        let shell = dashboard.shell(&asked, format!("Cluster {name}"));
        Ok::<_, ViewError>(Cluster {
            services: view.services(&services).await?,
            monitors: view.monitors(&monitors).await?,
            timeline: Timeline::of(&view.events(&flips)?.items, shell.now),
            events: view.events(&events)?.items,
            charts: Cluster::charts(&view.traffic(), &name),
            cluster,
            shell,
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}
