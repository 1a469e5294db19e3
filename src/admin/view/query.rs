//! What lists can be asked for.

use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::admin::dto::{EventKind, HealthState, Severity};

/// Items of a page where the request says nothing.
const PAGE: u32 = 50;
/// Most items of a page.
const MAX_PAGE: u32 = 500;

/// Which page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, IntoParams, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[into_params(parameter_in = Query)]
pub struct Paging {
    /// Items a page, 1 to 500; default 50.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// `next` of the page before.
    #[param(max_length = 1024)]
    pub cursor: Option<String>,
}

impl Paging {
    /// Gives the items of a page.
    #[must_use]
    pub fn limit(&self) -> usize {
        let limit = self.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}

/// Which services.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, IntoParams, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[into_params(parameter_in = Query)]
pub struct ServiceQuery {
    /// Part of the key or of a name in the DNS, whatever the case.
    #[param(max_length = 253)]
    pub search: Option<String>,
    /// In this namespace.
    #[param(max_length = 253)]
    pub namespace: Option<String>,
    /// With an endpoint in this cluster.
    #[param(max_length = 253)]
    pub cluster: Option<String>,
    /// In this state.
    pub state: Option<HealthState>,
    /// Items a page, 1 to 500; default 50.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// `next` of the page before.
    #[param(max_length = 1024)]
    pub cursor: Option<String>,
}

/// Which monitors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, IntoParams, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[into_params(parameter_in = Query)]
pub struct MonitorQuery {
    /// Part of the target, the check or a cluster's name, whatever the case.
    #[param(max_length = 253)]
    pub search: Option<String>,
    /// `up`, `down` or `unknown`.
    #[param(pattern = "^(up|down|unknown)$")]
    pub verdict: Option<String>,
    /// Of endpoints in this cluster: the first of those that share the monitor.
    #[param(max_length = 253)]
    pub cluster: Option<String>,
    /// Only those that never succeeded.
    pub never_succeeded: Option<bool>,
    /// Items a page, 1 to 500; default 50.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// `next` of the page before.
    #[param(max_length = 1024)]
    pub cursor: Option<String>,
}

/// Which events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, IntoParams, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[into_params(parameter_in = Query)]
pub struct EventQuery {
    /// Part of the text, of a cluster's name, of a service's key or of a target, whatever the case.
    #[param(max_length = 253)]
    pub search: Option<String>,
    /// Of this kind.
    pub kind: Option<EventKind>,
    /// At least this severe.
    pub severity: Option<Severity>,
    /// About this cluster.
    #[param(max_length = 253)]
    pub cluster: Option<String>,
    /// About this service, `namespace/name`.
    #[param(max_length = 512)]
    pub service: Option<String>,
    /// Items a page, 1 to 500; default 50.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// `next` of the page before.
    #[param(max_length = 1024)]
    pub cursor: Option<String>,
}

/// What to explain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, IntoParams, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[into_params(parameter_in = Query)]
pub struct ExplainQuery {
    /// The name asked for.
    #[param(
        required = true,
        min_length = 1,
        max_length = 1024,
        example = "www.svc.example.com"
    )]
    pub name: String,
    /// The record type; default A.
    #[param(max_length = 20)]
    pub r#type: Option<String>,
    /// The client's network or address, as a believed resolver's ECS option would give it.
    #[param(max_length = 64)]
    pub client: Option<String>,
    /// The address of a resolver that sends no ECS option.
    #[param(max_length = 64)]
    pub resolver: Option<String>,
}

macro_rules! paged {
    ($($name:ident),*) => { $(
        impl $name {
            /// Gives the page asked for.
            #[must_use]
            pub fn paging(&self) -> Paging {
                Paging { limit: self.limit, cursor: self.cursor.clone() }
            }
        }
    )* };
}

paged!(ServiceQuery, MonitorQuery, EventQuery);
