//! Clusters.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;

use super::examples;
use super::input::{Asked, Nothing, Place};
use super::output::Held;
use crate::admin::access::Viewer;
use crate::admin::dto::{ClusterDto, Page};
use crate::admin::problem::Problem;
use crate::admin::view::View;

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
