//! The API under `/api/v1`: what is shown, what may be changed, and its OpenAPI document.
//!
//! Handlers turn a request into a question to [`View`], and its answer into JSON: they decide nothing themselves. What a
//! request may hold is said once, in the shapes, and both the document and the checks are made of it. One file a resource;
//! `input` reads requests, `output` writes responses, `document` finishes the document, `page` shows it to people.

mod clusters;

mod document;
mod events;
mod examples;
mod input;
mod limits;
mod live;
mod nodes;
mod operate;
mod output;
mod page;

mod challenges;
mod services;
mod status;

#[cfg(test)]
mod tests;

use axum::Router;
use axum::extract::{DefaultBodyLimit, OriginalUri};
use axum::http::{Method, StatusCode};
use axum::routing::any;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::Problem;
use super::view::View;

/// Longest body in octets: a change with a reason of 500 characters of four octets, each escaped, has its place twice over.
const MAX_BODY: usize = 16 * 1024;

/// Makes the routes below `/api`, and the document that describes them. A route elsewhere may still be more specific.
///
/// Every route asks who calls by what it takes; the guard stands before all of them.
pub(in crate::admin) fn routes(view: View) -> (Router, OpenApi) {
    let (described, document) = described().split_for_parts();
    let document = document::complete(document);
    let router = described
        .with_state(view)
        .merge(document::routes(&document))
        .merge(page::routes(&document))
        .route("/api/{*path}", any(unknown))
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY));
    (router, document)
}

/// Lists what is described.
fn described() -> OpenApiRouter<View> {
    OpenApiRouter::with_openapi(document::frame())
        .routes(routes!(status::get_status))
        .routes(routes!(status::get_traffic))
        .routes(routes!(clusters::list_clusters))
        .routes(routes!(clusters::get_cluster, clusters::drop_cluster))
        .routes(routes!(services::list_services))
        .routes(routes!(services::get_service))
        .routes(routes!(services::get_name))
        .routes(routes!(services::list_monitors))
        .routes(routes!(services::explain))
        .routes(routes!(events::list_events))
        .routes(routes!(operate::list_drains, operate::start_drain))
        .routes(routes!(operate::get_drain, operate::end_drain))
        .routes(routes!(operate::list_forces, operate::start_force))
        .routes(routes!(operate::get_force, operate::end_force))
        .routes(routes!(
            challenges::list_challenges,
            challenges::set_challenge
        ))
        .routes(routes!(
            challenges::get_challenge,
            challenges::clear_challenge
        ))
        .routes(routes!(operate::list_audit))
        .routes(routes!(nodes::list_peers))
        .routes(routes!(nodes::list_zones))
        .routes(routes!(nodes::get_zone))
        .routes(routes!(nodes::list_sources))
}

/// Answers for paths that are none.
async fn unknown(OriginalUri(uri): OriginalUri) -> Problem {
    Problem::not_found("there is no such path; /api/ lists those there are").at(uri.path())
}

/// Answers for methods that a path does not know; `Allow` is added outside.
async fn wrong_method(method: Method, OriginalUri(uri): OriginalUri) -> Problem {
    let detail = format!("{method} is not for this path; `Allow` lists what is");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).at(uri.path())
}
