//! Services, and one of them.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::{cluster_names, fields, next};
use crate::admin::dashboard::shell::Dashboard;
use crate::admin::dashboard::shell::{Asked, Shell, page};
use crate::admin::dashboard::timeline::Timeline;
use crate::admin::dashboard::words;
use crate::admin::dto::{EndpointDto, HealthState, Page, ServiceDto, ServiceOrigin, ServiceRowDto};
use crate::admin::view::{ServiceQuery, ViewError};

/// States that can be asked for.
const STATES: [HealthState; 5] = [
    HealthState::Down,
    HealthState::Degraded,
    HealthState::Drained,
    HealthState::Unknown,
    HealthState::Up,
];

/// A page of services.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "services.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Services {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) query: ServiceQuery,
    pub(in crate::admin::dashboard) clusters: Vec<String>,
    pub(in crate::admin::dashboard) page: Page<ServiceRowDto>,
    pub(in crate::admin::dashboard) next: Option<String>,
}

page!(Services);

impl Services {
    /// Lists the states that can be asked for, and whether each is.
    fn states(&self) -> impl Iterator<Item = (&'static str, bool)> {
        STATES
            .iter()
            .map(|state| (state.as_str(), self.query.state == Some(*state)))
    }

    /// Tells whether a cluster is asked for.
    fn wants(&self, cluster: &str) -> bool {
        self.query.cluster.as_deref() == Some(cluster)
    }

    /// Tells whether anything was asked for but all.
    fn is_filtered(&self) -> bool {
        let query = &self.query;
        query.search.is_some()
            || query.namespace.is_some()
            || query.cluster.is_some()
            || query.state.is_some()
    }
}

/// One service.
#[derive(Template)]
#[template(config = "src/admin/dashboard/askama.toml", path = "service.html", blocks = ["live"])]
pub(in crate::admin::dashboard) struct Service {
    pub(in crate::admin::dashboard) shell: Shell,
    pub(in crate::admin::dashboard) service: ServiceDto,
    pub(in crate::admin::dashboard) timeline: Timeline,
}

page!(Service);

impl Service {
    /// Names the monitor, or who judges without one.
    fn monitor(&self) -> &str {
        let none = match self.service.origin {
            ServiceOrigin::Configuration => "none: nobody judges its endpoints",
            ServiceOrigin::Kubernetes => {
                "none: its clusters say what is ready, unless `health-check` is `none`"
            }
        };
        self.service.monitor.as_deref().unwrap_or(none)
    }

    /// Says what it fails over by without a monitor.
    fn unprobed(&self) -> &'static str {
        match self.service.origin {
            ServiceOrigin::Configuration => {
                "None: nobody judges its endpoints, so it never fails over."
            }
            ServiceOrigin::Kubernetes => {
                "None: nobody probes its endpoints. It fails over when a cluster says that too few are ready; by health-check: none, never."
            }
        }
    }

    /// Gives the link to the form that drains or forces an endpoint.
    fn endpoint_link(&self, action: &str, endpoint: &EndpointDto) -> String {
        format!(
            "{}/{action}?cluster={}&address={}",
            words::service_path(&self.service.key),
            words::encode(&endpoint.cluster),
            words::encode(&endpoint.address),
        )
    }
}

/// Shows a page of services.
pub(in crate::admin::dashboard) async fn list(
    asked: Asked,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        let query: ServiceQuery = fields(&asked)?;
        let page = dashboard.view.services(&query).await?;
        Ok::<_, ViewError>(Services {
            shell: dashboard.shell(&asked, "Services"),
            next: next("/services", asked.query(), page.next.as_deref()),
            clusters: cluster_names(&dashboard).await,
            query,
            page,
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}

/// Shows one service.
pub(in crate::admin::dashboard) async fn show(
    asked: Asked,
    Path((namespace, name)): Path<(String, String)>,
    State(dashboard): State<Dashboard>,
) -> Response {
    let make = async {
        let key = format!("{namespace}/{name}");
        let service = dashboard.view.service(&key).await?;
        let shell = dashboard.shell(&asked, format!("Service {key}"));
        Ok::<_, ViewError>(Service {
            timeline: Timeline::of(&service.history, shell.now),
            service,
            shell,
        })
    };
    Box::pin(dashboard.serve(&asked, make)).await
}
