//! Which path leads where: one function for the dashboard's listeners, one for those of metrics alone.

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tracing::field::Empty;
use tracing::{Instrument as _, trace_span};

use super::access::{MAX_BODY, Viewer, guard, open};
use super::metrics::render;
use super::problem::Problem;
use super::sources::Sources;
use super::view::View;
use super::{api, dashboard, exchange, login};
use crate::telemetry::SPANS;

/// Makes the routes of `admin.listen`. The guard stands before all of them; what each needs it says by its extractors.
pub(super) fn all(sources: &Sources, view: &View) -> Router {
    let signing = Router::new()
        .route("/login", get(login::show).post(login::sign_in))
        .route("/logout", post(login::sign_out))
        .with_state(sources.access.clone());
    let metrics = Router::new()
        .route("/metrics", get(metrics_of_viewers))
        .with_state(view.clone());
    probes(sources)
        .merge(signing)
        .merge(metrics)
        .merge(dashboard::routes(view.clone()))
        .merge(dashboard::assets())
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .merge(exchange::routes(view.clone()))
        .merge(api::routes(view.clone()).0)
        .route_layer(from_fn(traced))
        .fallback(nowhere)
        .layer(from_fn_with_state(sources.access.clone(), guard))
        .layer(from_fn(dashboard::as_pages))
}

/// Makes the routes of `metrics.listen`: open to all who reach it.
pub(super) fn metrics_alone(sources: &Sources, view: &View) -> Router {
    let metrics = Router::new()
        .route("/metrics", get(metrics))
        .with_state(view.clone());
    probes(sources)
        .merge(metrics)
        .fallback(nowhere)
        .layer(from_fn(open))
}

/// Makes the routes of those who watch the node.
fn probes(sources: &Sources) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .with_state(sources.clone())
}

/// Answers inside a span: method, route and status, and nothing else of what was asked.
async fn traced(request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or("", MatchedPath::as_str);
    let method = request.method().as_str();
    let span = trace_span!(target: SPANS, "request", http.request.method = method, http.route = path, http.response.status_code = Empty);
    let response = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", response.status().as_u16());
    response
}

/// Says that nothing is there.
async fn nowhere() -> Problem {
    Problem::not_found("there is nothing at this path")
}

/// Says yes once a snapshot is served, and no only at shutdown.
async fn readyz(State(sources): State<Sources>) -> impl IntoResponse {
    if sources.ready.is_ready() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}

/// Shows the counters to those who may read.
async fn metrics_of_viewers(_: Viewer, view: State<View>) -> impl IntoResponse {
    metrics(view).await
}

/// Shows the counters.
async fn metrics(State(view): State<View>) -> impl IntoResponse {
    let kind: [(HeaderName, &str); 1] = [(
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    )];
    (kind, render(&view))
}
