//! Clusters.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;

use super::examples;
use super::input::{Asked, Nothing, Place};
use super::operate::{EndQuery, Reason};
use super::output::{Held, changed};
use crate::admin::access::{Operator, Viewer};
use crate::admin::dto::{ClusterDto, Page};
use crate::admin::problem::Problem;
use crate::admin::view::{Actor, View};

/// Which cluster.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ClusterPath {
    /// The cluster's name.
    #[param(min_length = 1, max_length = 253, example = "aws-use1")]
    name: String,
}

/// Makes one page of a list that is never long.
pub(super) fn whole<T>(items: Vec<T>) -> Page<T> {
    Page {
        total: u64::try_from(items.len()).unwrap_or(u64::MAX),
        items,
        next: None,
    }
}

/// Lists all clusters by name.
#[utoipa::path(
    get,
    path = "/api/v1/clusters",
    tag = "clusters",
    responses((status = 200, description = "All clusters, on one page.", body = Page<ClusterDto>, example = json!(examples::page(examples::cluster()))))
)]
pub(super) async fn list_clusters(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Response {
    held.or_json(&whole(view.clusters().await))
}

/// Shows a cluster.
///
/// Where it is and how that is known, its endpoints, and the drain and the force on it as a whole.
#[utoipa::path(
    get,
    path = "/api/v1/clusters/{name}",
    tag = "clusters",
    params(ClusterPath),
    responses((status = 200, description = "The cluster.", body = ClusterDto, example = json!(examples::cluster())))
)]
pub(super) async fn get_cluster(
    State(view): State<View>,
    _viewer: Viewer,
    Place(path): Place<ClusterPath>,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Result<Response, Problem> {
    Ok(held.or_json(&view.cluster(&path.name).await?))
}

/// Drops a cluster that has no kubeconfig any more.
///
/// Either it is leaving, and would go by itself once nobody is sent there any more; or a source of clusters was never read since
/// the start or a reload, so that nobody knows whether it is still there, and it is kept and answered with. It is dropped at once,
/// with all that it offers: a name that has nothing else has no address then. The reason may also be sent as a body of JSON, `{"reason": "…"}`, in
/// place of the parameter.
#[utoipa::path(
    delete,
    path = "/api/v1/clusters/{name}",
    tag = "clusters",
    params(ClusterPath, EndQuery),
    responses((status = 200, description = "The cluster as it was.", body = ClusterDto, example = json!(examples::leaving_cluster())))
)]
pub(super) async fn drop_cluster(
    State(view): State<View>,
    Operator(identity): Operator,
    Place(path): Place<ClusterPath>,
    Reason(reason): Reason,
) -> Result<Response, Problem> {
    let actor = Actor::from(&identity);
    let dropped = view.drop_cluster(&path.name, &reason, &actor).await?;
    Ok(changed(&dropped, None))
}
