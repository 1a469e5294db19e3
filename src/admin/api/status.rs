//! The whole in a glance.

use axum::extract::State;
use axum::response::Response;

use super::examples;
use super::input::{Asked, Nothing};
use super::output::Held;
use crate::admin::access::Viewer;
use crate::admin::dto::{StatusDto, TrafficDto};
use crate::admin::view::View;

/// Shows the state of everything.
///
/// What is wrong now comes first, worst first. `node.ready` is what `/readyz` says.
#[utoipa::path(
    get,
    path = "/api/v1/status",
    tag = "status",
    responses((status = 200, description = "The state of everything.", body = StatusDto, example = json!(examples::status())))
)]
pub(super) async fn get_status(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Response {
    held.or_json(&view.status().await)
}

/// Shows the traffic of the last hour.
///
/// All series have one value a step, oldest first.
#[utoipa::path(
    get,
    path = "/api/v1/status/traffic",
    tag = "status",
    responses((status = 200, description = "The traffic of the last hour.", body = TrafficDto, example = json!(examples::traffic())))
)]
pub(super) async fn get_traffic(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Response {
    held.or_json(&view.traffic())
}
