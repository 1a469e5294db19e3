//! The other end of the exchange between nodes.

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};

use super::access::PeerNode;
use super::problem::Problem;
use super::view::View;
use crate::vantage::{EXCHANGE_LIMIT, EXCHANGE_PATH, ExchangeDto};

/// Makes the route.
pub(super) fn routes(view: View) -> Router {
    Router::new()
        .route(EXCHANGE_PATH, post(exchange))
        .layer(DefaultBodyLimit::max(EXCHANGE_LIMIT))
        .with_state(view)
}

/// Takes a peer's records in, and gives back what it may lack.
async fn exchange(
    PeerNode(peer): PeerNode,
    State(view): State<View>,
    body: Bytes,
) -> Result<Json<ExchangeDto>, Problem> {
    let theirs: ExchangeDto = serde_json::from_slice(&body)
        .map_err(|error| Problem::bad_request(format!("no exchange of ours: {error}")))?;
    // News are written to disk, and noted in the audit log, before they are acknowledged: also when nobody waits for it any more.
    let answering = tokio::task::spawn_blocking(move || view.answer_peer(theirs, &peer));
    let answer = answering.await;
    let answer = answer
        .map_err(|_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the node is going down"))?;
    answer.map(Json).map_err(Problem::bad_request)
}
