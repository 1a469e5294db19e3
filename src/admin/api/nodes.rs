//! What a node stands on: other nodes, zones, sources.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;

use super::clusters::whole;
use super::examples;
use super::input::{Asked, Nothing, Place};
use super::output::Held;
use super::services::plain;
use crate::admin::access::Viewer;
use crate::admin::dto::{Page, PeerDto, SourceDto, ZoneDto};
use crate::admin::problem::Problem;
use crate::admin::view::View;

/// Longest time that an answer waits for what the parent says.
const DELEGATION: Duration = Duration::from_secs(3);

/// Which zone.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct ZonePath {
    /// Its apex, in any case, with or without the dot at its end.
    #[param(min_length = 1, max_length = 1024, example = "svc.example.com")]
    name: String,
}

/// Lists the other nodes.
#[utoipa::path(
    get,
    path = "/api/v1/vantage",
    tag = "nodes",
    responses((status = 200, description = "The nodes in `peers`, on one page.", body = Page<PeerDto>, example = json!(examples::page(examples::peer()))))
)]
pub(super) async fn list_peers(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Response {
    held.or_json(&whole(view.peers().await))
}

/// Lists zones by name.
#[utoipa::path(
    get,
    path = "/api/v1/zones",
    tag = "nodes",
    responses((status = 200, description = "All zones, on one page.", body = Page<ZoneDto>, example = json!(examples::page(examples::zone(None)))))
)]
pub(super) async fn list_zones(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Response {
    held.or_json(&whole(view.zones().await))
}

/// Shows a zone with its delegation.
///
/// The parent and the zone's servers are asked, 3 seconds at most; what they said is kept for a minute.
#[utoipa::path(
    get,
    path = "/api/v1/zones/{name}",
    tag = "nodes",
    params(ZonePath),
    responses((status = 200, description = "The zone.", body = ZoneDto, example = json!(examples::zone(Some(examples::delegation())))))
)]
pub(super) async fn get_zone(
    State(view): State<View>,
    _viewer: Viewer,
    Place(path): Place<ZonePath>,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Result<Response, Problem> {
    Ok(held.or_json(&view.zone(&plain(&path.name), DELEGATION).await?))
}

/// Lists what this node serves from: files, databases, other nodes.
#[utoipa::path(
    get,
    path = "/api/v1/sources",
    tag = "nodes",
    responses((status = 200, description = "All sources, on one page.", body = Page<SourceDto>, example = json!(examples::page(examples::source()))))
)]
pub(super) async fn list_sources(
    State(view): State<View>,
    _viewer: Viewer,
    Asked(Nothing {}): Asked<Nothing>,
    held: Held,
) -> Response {
    held.or_json(&whole(view.sources().await))
}
