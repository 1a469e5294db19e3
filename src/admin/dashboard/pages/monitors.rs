//! Monitors.

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::{cluster_names, fields, next};
use crate::admin::dashboard::shell::Dashboard;
use crate::admin::dashboard::shell::{Asked, Shell, page};
use crate::admin::dashboard::words;
use crate::admin::dto::{MonitorDto, Page};
use crate::admin::view::{MonitorQuery, ViewError};

/// A page of monitors.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "monitors.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Monitors {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) query: MonitorQuery,
    pub(in crate::admin::dashboard) clusters: Vec<String>,
    pub(in crate::admin::dashboard) page: Page<MonitorDto>,
    pub(in crate::admin::dashboard) next: Option<String>,
}

page!(Monitors);

impl Monitors {
    /// Lists the verdicts that can be asked for, and whether each is.
    fn verdicts(&self) -> impl Iterator<Item = (&'static str, bool)> {
        ["down", "unknown", "up"]
            .into_iter()
            .map(|verdict| (verdict, self.query.verdict.as_deref() == Some(verdict)))
    }

    /// Tells whether a cluster is asked for.
    fn wants(&self, cluster: &str) -> bool {
        self.query.cluster.as_deref() == Some(cluster)
    }
}

/// Shows a page of monitors.
pub(in crate::admin::dashboard) async fn list(
    asked: Asked,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        let query: MonitorQuery = fields(&asked)?;
        let page = dashboard.view.monitors(&query).await?;
        Ok::<_, ViewError>(Monitors {
            shell: dashboard.shell(&asked, "Monitors"),
            clusters: cluster_names(&dashboard).await,
            next: next("/monitors", asked.query(), page.next.as_deref()),
            query,
            page,
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}
